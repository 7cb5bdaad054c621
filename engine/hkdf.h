/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keys from a key: HKDF with SHA-256 (RFC 5869), of whichever HMAC the host has. */
#ifndef BW_HKDF_H
#define BW_HKDF_H

#include "platform.h"

#define BW_HKDF_HASH	 32  /* bytes that SHA-256 gives */
#define BW_HKDF_INFO_MAX 256 /* bytes of `info` */

typedef void (*bw_hmac_sha256_fn)(uint8_t out[BW_HKDF_HASH], const uint8_t *key, size_t keylen,
				  const void *data, size_t len);

/* A pseudorandom key from a secret; a salt of no bytes stands for one of zeroes. */
void bw_hkdf_extract(uint8_t prk[BW_HKDF_HASH], const void *salt, size_t salt_len,
		     const void *secret, size_t len, bw_hmac_sha256_fn hmac);

/* `len` bytes of key from a pseudorandom key, other ones for each `info`. 0, or -EINVAL: `info` is
 * longer than BW_HKDF_INFO_MAX, or more than 255 hashes are wanted. */
int bw_hkdf_expand(uint8_t *out, size_t len, const uint8_t prk[BW_HKDF_HASH], const void *info,
		   size_t info_len, bw_hmac_sha256_fn hmac);

/* Zeroes that the compiler must write, though nobody reads them. */
void bw_hkdf_forget(void *secret, size_t len);

#endif
