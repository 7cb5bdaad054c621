/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is computed with a key; see keyed.h. libsodium seals what lies in one piece only, so the
 * construction of RFC 8439, 2.8 is made here of its stream cipher, which begins at any block, and
 * its authenticator, which takes pieces. Payload is enciphered from where it lies to where it
 * goes, and authenticated there while the processor's cache still has it.
 */
#include "keyed.h"

#include <errno.h>
#include <sodium.h>

#define BW_KEYED_BLOCK 64u   /* bytes that ChaCha20 makes of one number */
#define BW_KEYED_CHUNK 4096u /* whole blocks, and short beside the first cache */

_Static_assert(BW_KEYED_SIP_KEY == crypto_shorthash_siphash24_KEYBYTES, "SipHash's key");
_Static_assert(BW_KEYED_HASH == crypto_auth_hmacsha256_BYTES, "HMAC");
_Static_assert(BW_SEAL_KEY == crypto_stream_chacha20_ietf_KEYBYTES, "ChaCha20's key");
_Static_assert(BW_SEAL_NONCE == crypto_stream_chacha20_ietf_NONCEBYTES, "ChaCha20's nonce");
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

bool bw_same(const void *a, const void *b, size_t len)
{
	return sodium_memcmp(a, b, len) == 0;
}

void bw_wipe(void *secret, size_t len)
{
	sodium_memzero(secret, len);
}

/* The key stream from some byte of the payload on; payload begins with block 1. */
struct bw_stream {
	const struct bw_seal *s;
	uint64_t at;
	uint32_t block; /* of which `made` is; 0: of none */
	uint8_t made[BW_KEYED_BLOCK];
};

static void bw_stream_begin(struct bw_stream *x, const struct bw_seal *s, uint64_t at)
{
	x->s = s;
	x->at = at;
	x->block = 0;
}

/* Parts of a block, of which several pieces may have one each. */
static size_t bw_stream_part(struct bw_stream *x, uint8_t *to, const uint8_t *from, size_t len)
{
	uint32_t block = 1 + (uint32_t)(x->at / BW_KEYED_BLOCK), at = x->at % BW_KEYED_BLOCK;

	if (x->block != block) {
		memset(x->made, 0, sizeof(x->made));
		crypto_stream_chacha20_ietf_xor_ic(x->made, x->made, sizeof(x->made), x->s->nonce,
						   block, x->s->key);
		x->block = block;
	}
	if (len > BW_KEYED_BLOCK - at)
		len = BW_KEYED_BLOCK - at;
	for (size_t i = 0; i < len; i++)
		to[i] = from[i] ^ x->made[at + i];
	return len;
}

/* Enciphers or deciphers the next bytes: how many. */
static size_t bw_stream_some(struct bw_stream *x, uint8_t *to, const uint8_t *from, size_t len)
{
	if (x->at % BW_KEYED_BLOCK || len < BW_KEYED_BLOCK) {
		len = bw_stream_part(x, to, from, len);
	} else {
		len = len > BW_KEYED_CHUNK ? BW_KEYED_CHUNK : len - len % BW_KEYED_BLOCK;
		crypto_stream_chacha20_ietf_xor_ic(to, from, len, x->s->nonce,
						   1 + (uint32_t)(x->at / BW_KEYED_BLOCK),
						   x->s->key);
	}
	x->at += len;
	return len;
}

static void bw_stream_end(struct bw_stream *x)
{
	sodium_memzero(x->made, sizeof(x->made));
}

/* The authenticator of one payload. */
struct bw_authenticator {
	crypto_onetimeauth_poly1305_state poly;
	uint64_t head;
	uint64_t payload;
};

static const uint8_t zeroes[16];

static void bw_authenticator_fill(struct bw_authenticator *a, uint64_t len)
{
	if (len % sizeof(zeroes))
		crypto_onetimeauth_poly1305_update(&a->poly, zeroes,
						   sizeof(zeroes) - len % sizeof(zeroes));
}

/* Its key is the beginning of block 0 (RFC 8439, 2.6). */
static void bw_authenticator_begin(struct bw_authenticator *a, const struct bw_seal *s)
{
	uint8_t key[crypto_onetimeauth_poly1305_KEYBYTES];

	crypto_stream_chacha20_ietf(key, sizeof(key), s->nonce, s->key);
	crypto_onetimeauth_poly1305_init(&a->poly, key);
	sodium_memzero(key, sizeof(key));
	a->head = a->payload = 0;
	for (size_t i = 0; i < s->heads; i++) {
		crypto_onetimeauth_poly1305_update(&a->poly, s->head[i].base, s->head[i].len);
		a->head += s->head[i].len;
	}
	bw_authenticator_fill(a, a->head);
}

static void bw_authenticator_add(struct bw_authenticator *a, const void *sealed, size_t len)
{
	crypto_onetimeauth_poly1305_update(&a->poly, sealed, len);
	a->payload += len;
}

static void bw_authenticator_end(struct bw_authenticator *a, uint8_t tag[BW_SEAL_TAG])
{
	uint8_t lengths[16];

	bw_authenticator_fill(a, a->payload);
	for (int i = 0; i < 8; i++) {
		lengths[i] = (uint8_t)(a->head >> 8 * i);
		lengths[8 + i] = (uint8_t)(a->payload >> 8 * i);
	}
	crypto_onetimeauth_poly1305_update(&a->poly, lengths, sizeof(lengths));
	crypto_onetimeauth_poly1305_final(&a->poly, tag);
	sodium_memzero(&a->poly, sizeof(a->poly));
}

void bw_seal(const struct bw_seal *s, const struct bw_piece *piece, size_t pieces, void *out,
	     uint8_t tag[BW_SEAL_TAG])
{
	struct bw_authenticator a;
	struct bw_stream x;
	uint8_t *to = out;

	bw_authenticator_begin(&a, s);
	bw_stream_begin(&x, s, 0);
	for (size_t i = 0; i < pieces; i++) {
		const uint8_t *from = piece[i].base;

		for (size_t left = piece[i].len, n; left; left -= n, from += n, to += n) {
			n = bw_stream_some(&x, to, from, left);
			bw_authenticator_add(&a, to, n);
		}
	}
	bw_stream_end(&x);
	bw_authenticator_end(&a, tag);
}

bool bw_seal_genuine(const struct bw_seal *s, const struct bw_piece *piece, size_t pieces,
		     const uint8_t tag[BW_SEAL_TAG])
{
	uint8_t wanted[BW_SEAL_TAG];
	struct bw_authenticator a;

	bw_authenticator_begin(&a, s);
	for (size_t i = 0; i < pieces; i++)
		bw_authenticator_add(&a, piece[i].base, piece[i].len);
	bw_authenticator_end(&a, wanted);
	return sodium_memcmp(wanted, tag, sizeof(wanted)) == 0;
}

static uint8_t *bw_stream_all(struct bw_stream *x, uint8_t *to, const uint8_t *from, size_t len)
{
	for (size_t n; len; len -= n, from += n, to += n)
		n = bw_stream_some(x, to, from, len);
	return to;
}

void bw_seal_read(const struct bw_seal *s, size_t offset, void *out, const void *sealed, size_t len)
{
	struct bw_stream x;

	bw_stream_begin(&x, s, offset);
	bw_stream_all(&x, out, sealed, len);
	bw_stream_end(&x);
}

int bw_open(const struct bw_seal *s, const struct bw_piece *piece, size_t pieces, void *out,
	    const uint8_t tag[BW_SEAL_TAG])
{
	struct bw_stream x;
	uint8_t *to = out;

	if (!bw_seal_genuine(s, piece, pieces, tag))
		return -EBADMSG;
	bw_stream_begin(&x, s, 0);
	for (size_t i = 0; i < pieces; i++)
		to = bw_stream_all(&x, to, piece[i].base, piece[i].len);
	bw_stream_end(&x);
	return 0;
}
