/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sealed payloads, AEAD_CHACHA20_POLY1305 of RFC 8439, of any host's stream cipher that begins at
 * any block and authenticator that takes pieces. Any thread may call any function.
 */
#ifndef BW_SEALING_H
#define BW_SEALING_H

#include "protocol.h"

#define BW_SEAL_NONCE 12

/* Bytes somewhere in memory; those of a frame lie in several such pieces. */
struct bw_piece {
	const void *base;
	size_t len;
};

/* Everything about a sealed payload but its bytes. */
struct bw_seal {
	const uint8_t *key;	      /* BW_SEAL_KEY bytes */
	uint8_t nonce[BW_SEAL_NONCE]; /* never the same twice with one key */
	const struct bw_piece *head;  /* what is shown, but must not be changed, in order */
	size_t heads;
};

/* The nonce of a packet: its path's number and its own. */
static inline void bw_seal_nonce(uint8_t nonce[BW_SEAL_NONCE], uint32_t path, uint64_t packet)
{
	for (int i = 0; i < 4; i++)
		nonce[i] = (uint8_t)(path >> 8 * i);
	for (int i = 0; i < 8; i++)
		nonce[4 + i] = (uint8_t)(packet >> 8 * i);
}

/* That of a DATA frame, whose first bytes are `frame`: what lies before BW_DATA_HEAD is shown. */
void bw_seal_of(struct bw_seal *s, struct bw_piece *head, const void *frame,
		const struct bw_seal_by *by);

/* Seal the pieces, one behind the other, to `out`, which has room for all of them and is none of
 * them, or lies where the only one does. The tag may lie right behind. */
void bw_seal(const struct bw_seal *s, const struct bw_piece *piece, size_t pieces, void *out,
	     uint8_t tag[BW_SEAL_TAG]);

/* Open what was sealed. 0, or -EBADMSG if a byte of head, payload or tag is not what was sealed;
 * then nothing was written. `out` as in bw_seal(). */
int bw_open(const struct bw_seal *s, const struct bw_piece *piece, size_t pieces, void *out,
	    const uint8_t tag[BW_SEAL_TAG]);

/* A DATA frame that lies in one piece, sealed and opened where it is; its tag begins at `end`. 0,
 * or as bw_open(). */
void bw_seal_frame(void *frame, uint32_t end, const struct bw_seal_by *by);
int bw_open_frame(void *frame, uint32_t end, const struct bw_seal_by *by);

/*
 * What the host has:
 */

/* The authenticator's state. */
struct bw_sealing_poly {
	_Alignas(16) uint8_t opaque[384];
};

/* Poly1305; `key` is the one-time key. */
void bw_sealing_poly_begin(struct bw_sealing_poly *poly, const uint8_t key[32]);
void bw_sealing_poly_add(struct bw_sealing_poly *poly, const void *bytes, size_t len);
void bw_sealing_poly_end(struct bw_sealing_poly *poly, uint8_t tag[BW_SEAL_TAG]);
/* ChaCha20 with this seal's key and nonce over whole blocks from this one on, the last one perhaps
 * in part; `to` may be `from`. */
void bw_sealing_xor(uint8_t *to, const uint8_t *from, size_t len, const struct bw_seal *s,
		    uint32_t block);
/* Are these the same? In a time that does not tell where they differ. */
bool bw_sealing_same(const void *a, const void *b, size_t len);
/* Zeroes that are written, though nobody reads them. */
void bw_sealing_wipe(void *secret, size_t len);

#endif
