/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is computed with a key, by libsodium: tags of frames (SipHash-2-4), keys from keys
 * (HMAC-SHA-256), and sealed payloads (AEAD_CHACHA20_POLY1305 of RFC 8439). None of it takes a
 * time that depends on a key or on what is hidden.
 *
 * Any thread may call any function, after bw_keyed_start() has returned true once.
 */
#ifndef BW_KEYED_H
#define BW_KEYED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BW_KEYED_SIP_KEY 16
#define BW_KEYED_HASH	 32 /* bytes of an HMAC-SHA-256 */
#define BW_SEAL_KEY	 32
#define BW_SEAL_NONCE	 12
#define BW_SEAL_TAG	 16

/* Bytes somewhere in memory; those of a frame lie in several such pieces. */
struct bw_piece {
	const void *base;
	size_t len;
};

/* Everything about a sealed payload but its bytes. */
struct bw_seal {
	const uint8_t *key;	      /* BW_SEAL_KEY bytes */
	uint8_t nonce[BW_SEAL_NONCE]; /* never the same twice with one key */
	const struct bw_piece *head;  /* what is shown, but must not be changed either, in order */
	size_t heads;
};

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

/* Are two secrets the same? */
bool bw_same(const void *a, const void *b, size_t len);

/* Forget a secret, whatever the optimizer thinks of that. */
void bw_wipe(void *secret, size_t len);

/* The nonce of a packet: its path's number and its own. */
static inline void bw_seal_nonce(uint8_t nonce[BW_SEAL_NONCE], uint32_t path, uint64_t packet)
{
	for (int i = 0; i < 4; i++)
		nonce[i] = (uint8_t)(path >> 8 * i);
	for (int i = 0; i < 8; i++)
		nonce[4 + i] = (uint8_t)(packet >> 8 * i);
}

/* Seal the pieces, one behind the other, to `out`, which has room for all of them and is none of
 * them, or lies where the only one does. The tag may lie right behind. */
void bw_seal(const struct bw_seal *s, const struct bw_piece *piece, size_t pieces, void *out,
	     uint8_t tag[BW_SEAL_TAG]);

/* Open what was sealed. 0, or -EBADMSG if a byte of head, payload or tag is not what was sealed;
 * then nothing was written. `out` as in bw_seal(). */
int bw_open(const struct bw_seal *s, const struct bw_piece *piece, size_t pieces, void *out,
	    const uint8_t tag[BW_SEAL_TAG]);

/*
 * The same in two steps, for payload that goes to several places: first is it genuine, then its
 * bytes, which begin `offset` bytes behind the payload's start, piece by piece in any order.
 */
bool bw_seal_genuine(const struct bw_seal *s, const struct bw_piece *piece, size_t pieces,
		     const uint8_t tag[BW_SEAL_TAG]);
void bw_seal_read(const struct bw_seal *s, size_t offset, void *out, const void *sealed,
		  size_t len);

#endif
