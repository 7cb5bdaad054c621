/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is computed with a key; see keyed.h. libsodium seals what lies in one piece only, so the
 * construction of sealing.c is made of its stream cipher and its authenticator.
 */
#include "keyed.h"

#include <sodium.h>

_Static_assert(BW_KEYED_SIP_KEY == crypto_shorthash_siphash24_KEYBYTES, "SipHash's key");
_Static_assert(BW_KEYED_HASH == crypto_auth_hmacsha256_BYTES, "HMAC");
_Static_assert(BW_SEAL_KEY == crypto_stream_chacha20_ietf_KEYBYTES, "ChaCha20's key");
_Static_assert(BW_SEAL_NONCE == crypto_stream_chacha20_ietf_NONCEBYTES, "ChaCha20's nonce");
_Static_assert(sizeof(struct bw_sealing_poly) >= sizeof(crypto_onetimeauth_poly1305_state),
	       "Poly1305's state");
_Static_assert(BW_SEAL_TAG == crypto_onetimeauth_poly1305_BYTES, "Poly1305's tag");

bool bw_keyed_start(void)
{
	return sodium_init() >= 0;
}

const char *bw_keyed_version(void)
{
	return sodium_version_string();
}

uint64_t bw_siphash(const uint8_t key[BW_KEYED_SIP_KEY], const void *data, size_t len)
{
	uint8_t tag[crypto_shorthash_siphash24_BYTES];
	uint64_t number = 0;

	crypto_shorthash_siphash24(tag, data, len, key);
	for (int i = 0; i < 8; i++)
		number |= (uint64_t)tag[i] << 8 * i;
	return number;
}

void bw_hmac_sha256(uint8_t out[BW_KEYED_HASH], const uint8_t *key, size_t keylen, const void *data,
		    size_t len)
{
	crypto_auth_hmacsha256_state state;

	crypto_auth_hmacsha256_init(&state, key, keylen);
	crypto_auth_hmacsha256_update(&state, data, len);
	crypto_auth_hmacsha256_final(&state, out);
	sodium_memzero(&state, sizeof(state));
}

void bw_sha256(uint8_t out[BW_KEYED_HASH], const void *data, size_t len)
{
	crypto_hash_sha256(out, data, len);
}

bool bw_sealing_same(const void *a, const void *b, size_t len)
{
	return sodium_memcmp(a, b, len) == 0;
}

void bw_sealing_wipe(void *secret, size_t len)
{
	sodium_memzero(secret, len);
}

void bw_sealing_xor(uint8_t *to, const uint8_t *from, size_t len, const struct bw_seal *s,
		    uint32_t block)
{
	crypto_stream_chacha20_ietf_xor_ic(to, from, len, s->nonce, block, s->key);
}

static crypto_onetimeauth_poly1305_state *bw_keyed_poly(struct bw_sealing_poly *poly)
{
	return (crypto_onetimeauth_poly1305_state *)poly;
}

void bw_sealing_poly_begin(struct bw_sealing_poly *poly, const uint8_t key[32])
{
	crypto_onetimeauth_poly1305_init(bw_keyed_poly(poly), key);
}

void bw_sealing_poly_add(struct bw_sealing_poly *poly, const void *bytes, size_t len)
{
	crypto_onetimeauth_poly1305_update(bw_keyed_poly(poly), bytes, len);
}

void bw_sealing_poly_end(struct bw_sealing_poly *poly, uint8_t tag[BW_SEAL_TAG])
{
	crypto_onetimeauth_poly1305_final(bw_keyed_poly(poly), tag);
}
