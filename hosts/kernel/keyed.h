/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is computed with a key, by the kernel's library: tags of frames, keys from keys, and what
 * sealed payloads (sealing.h) are made of. In any context. A kernel that lacks a part of the
 * library (BWK_KEYED is 0) takes no keys, and nothing here is called.
 */
#ifndef BWK_KEYED_H
#define BWK_KEYED_H

#include <linux/types.h>

#include "sealing.h"

#define BWK_KEYED                                                                                  \
	(IS_REACHABLE(CONFIG_CRYPTO_LIB_SHA256) && IS_REACHABLE(CONFIG_CRYPTO_LIB_CHACHA) &&       \
	 IS_REACHABLE(CONFIG_CRYPTO_LIB_POLY1305))
#define BWK_KEYED_SIP_KEY 16
#define BWK_KEYED_HASH	  32

/* SipHash-2-4. */
u64 bwk_siphash(const u8 key[BWK_KEYED_SIP_KEY], const void *data, size_t len);
/* HMAC-SHA-256 (RFC 2104, RFC 6234); a key of any length. Fits bw_hmac_sha256_fn. */
void bwk_hmac_sha256(u8 out[BWK_KEYED_HASH], const u8 *key, size_t keylen, const void *data,
		     size_t len);
void bwk_sha256(u8 out[BWK_KEYED_HASH], const void *data, size_t len);

/* keyed_check.c: does all of this give what the standards say? 0, or -EIO, which is told. */
int bwk_keyed_check(void);

#endif
