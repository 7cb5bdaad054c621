/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is computed with a key, by libsodium: tags of frames (SipHash-2-4), keys from keys
 * (HMAC-SHA-256), and sealed payloads (sealing.h). None of it takes a
 * time that depends on a key or on what is hidden.
 *
 * Any thread may call any function, after bw_keyed_start() has returned true once.
 */
#ifndef BW_KEYED_H
#define BW_KEYED_H

#include "sealing.h"

#define BW_KEYED_SIP_KEY 16
#define BW_KEYED_HASH	 32 /* bytes of an HMAC-SHA-256 */

/* Choose the fastest way that the processor has. False if the library cannot be used. */
bool bw_keyed_start(void);

/* The library's version, for people. */
const char *bw_keyed_version(void);

/* SipHash-2-4: the tag's 8 bytes as a little-endian number. */
uint64_t bw_siphash(const uint8_t key[BW_KEYED_SIP_KEY], const void *data, size_t len);

/* HMAC-SHA-256 (RFC 2104, RFC 6234); a key of any length. */
void bw_hmac_sha256(uint8_t out[BW_KEYED_HASH], const uint8_t *key, size_t keylen, const void *data,
		    size_t len);

/* SHA-256 (RFC 6234), which takes no key. */
void bw_sha256(uint8_t out[BW_KEYED_HASH], const void *data, size_t len);

/* Are two secrets the same? In a time that does not tell where they differ. */
static inline bool bw_same(const void *a, const void *b, size_t len)
{
	return bw_sealing_same(a, b, len);
}

/* Forget a secret, whatever the optimizer thinks of that. */
static inline void bw_wipe(void *secret, size_t len)
{
	bw_sealing_wipe(secret, len);
}

#endif
