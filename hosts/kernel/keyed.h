/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is computed with a key, by the kernel's library: tags of frames, keys from keys, and sealed
 * payloads (sealing.h), also where they lie in the pages of a frame. In any context. A kernel that
 * lacks a part of the library (BWK_KEYED is 0) takes no keys, and nothing here is called.
 */
#ifndef BWK_KEYED_H
#define BWK_KEYED_H

#include <linux/skbuff.h>

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

/* Seals `len` bytes of a frame, from `at` behind the start of its data on, where they are: all of
 * that memory is ours alone. 0, or -EINVAL if the frame is shorter. */
int bwk_seal_frame(const struct bw_seal *s, struct sk_buff *skb, u32 at, u32 len,
		   u8 tag[BW_SEAL_TAG]);
/* Is this what was sealed? Nothing is written, so the frame may be others', too. */
bool bwk_seal_genuine_frame(const struct bw_seal *s, struct sk_buff *skb, u32 at, u32 len,
			    const u8 tag[BW_SEAL_TAG]);
/* Opens `len` bytes from `at` on, which begin `offset` bytes behind the payload's start, to
 * elsewhere. 0 or -EINVAL. */
int bwk_seal_read_frame(const struct bw_seal *s, u64 offset, struct sk_buff *skb, u32 at, u32 len,
			void *to);

/* keyed_check.c: does all of this give what the standards say? 0, or -EIO, which is told. */
int bwk_keyed_check(void);

#endif
