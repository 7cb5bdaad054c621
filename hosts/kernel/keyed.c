/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is computed with a key; see keyed.h. The kernel's own AEAD has nonces of 8 bytes and its
 * crypto interface allocates for each key, which softirq cannot wait for: so payloads are sealed
 * by sealing.c with the cipher and the authenticator that both are made of.
 */
#include "keyed.h"

#include <linux/siphash.h>

#include "compat.h"

u64 bwk_siphash(const u8 key[BWK_KEYED_SIP_KEY], const void *data, size_t len)
{
	const siphash_key_t words = {{get_unaligned_le64(key), get_unaligned_le64(key + 8)}};

	return siphash(data, len, &words);
}

void bw_sealing_wipe(void *secret, size_t len)
{
	memzero_explicit(secret, len);
}

#if BWK_KEYED

#include <crypto/algapi.h>
#include <crypto/chacha.h>
#include <crypto/poly1305.h>
#include <crypto/sha2.h>

void bwk_sha256(u8 out[BWK_KEYED_HASH], const void *data, size_t len)
{
	sha256(data, len, out);
}

void bwk_hmac_sha256(u8 out[BWK_KEYED_HASH], const u8 *key, size_t keylen, const void *data,
		     size_t len)
{
	u8 block[SHA256_BLOCK_SIZE] = {0}, inner[BWK_KEYED_HASH];
	bwk_sha256_state state;
	int i;

	if (keylen > sizeof(block))
		sha256(key, keylen, block);
	else
		memcpy(block, key, keylen);
	for (i = 0; i < sizeof(block); i++)
		block[i] ^= 0x36;
	sha256_init(&state);
	sha256_update(&state, block, sizeof(block));
	sha256_update(&state, data, len);
	sha256_final(&state, inner);
	for (i = 0; i < sizeof(block); i++)
		block[i] ^= 0x36 ^ 0x5c;
	sha256_init(&state);
	sha256_update(&state, block, sizeof(block));
	sha256_update(&state, inner, sizeof(inner));
	sha256_final(&state, out);
	memzero_explicit(block, sizeof(block));
	memzero_explicit(inner, sizeof(inner));
	memzero_explicit(&state, sizeof(state));
}

bool bw_sealing_same(const void *a, const void *b, size_t len)
{
	return !crypto_memneq(a, b, len);
}

void bw_sealing_xor(u8 *to, const u8 *from, size_t len, const struct bw_seal *s, u32 block)
{
	u8 iv[CHACHA_IV_SIZE];
	bwk_chacha_state state;
	u32 key[8];
	int i;

	for (i = 0; i < 8; i++)
		key[i] = get_unaligned_le32(s->key + 4 * i);
	put_unaligned_le32(block, iv);
	memcpy(iv + 4, s->nonce, BW_SEAL_NONCE);
	chacha_init(BWK_CHACHA(state), key, iv);
	chacha20_crypt(BWK_CHACHA(state), to, from, len);
	memzero_explicit(key, sizeof(key));
	memzero_explicit(&state, sizeof(state));
}

static struct poly1305_desc_ctx *bwk_poly(struct bw_sealing_poly *poly)
{
	BUILD_BUG_ON(sizeof(struct poly1305_desc_ctx) > sizeof(*poly));
	return (struct poly1305_desc_ctx *)poly;
}

void bw_sealing_poly_begin(struct bw_sealing_poly *poly, const u8 key[32])
{
	poly1305_init(bwk_poly(poly), key);
}

void bw_sealing_poly_add(struct bw_sealing_poly *poly, const void *bytes, size_t len)
{
	poly1305_update(bwk_poly(poly), bytes, len);
}

void bw_sealing_poly_end(struct bw_sealing_poly *poly, u8 tag[BW_SEAL_TAG])
{
	poly1305_final(bwk_poly(poly), tag);
}

#else /* no key can be set, so nobody comes here */

void bwk_sha256(u8 out[BWK_KEYED_HASH], const void *data, size_t len)
{
	memset(out, 0, BWK_KEYED_HASH);
}

void bwk_hmac_sha256(u8 out[BWK_KEYED_HASH], const u8 *key, size_t keylen, const void *data,
		     size_t len)
{
	memset(out, 0, BWK_KEYED_HASH);
}

bool bw_sealing_same(const void *a, const void *b, size_t len)
{
	return false;
}

void bw_sealing_xor(u8 *to, const u8 *from, size_t len, const struct bw_seal *s, u32 block)
{
	memset(to, 0, len);
}

void bw_sealing_poly_begin(struct bw_sealing_poly *poly, const u8 key[32])
{
}

void bw_sealing_poly_add(struct bw_sealing_poly *poly, const void *bytes, size_t len)
{
}

void bw_sealing_poly_end(struct bw_sealing_poly *poly, u8 tag[BW_SEAL_TAG])
{
	memset(tag, 0, BW_SEAL_TAG);
}

#endif
