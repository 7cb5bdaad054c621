/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The construction of RFC 8439, 2.8; see sealing.h. Payload is enciphered from where it lies to
 * where it goes, and authenticated there while the processor's cache still has it.
 */
#include "sealing.h"

#define BW_SEALING_BLOCK 64u   /* bytes that ChaCha20 makes of one number */
#define BW_SEALING_CHUNK 4096u /* whole blocks, and short beside the first cache */

/* The key stream of a payload, which begins with block 1. */
struct bw_stream {
	const struct bw_seal *s;
	uint64_t at;
	uint32_t block; /* of which `made` is; 0: of none */
	uint8_t made[BW_SEALING_BLOCK];
};

/* The authenticator of one payload. */
struct bw_authenticator {
	struct bw_sealing_poly poly;
	uint64_t head;
	uint64_t payload;
};

static void bw_stream_begin(struct bw_stream *x, const struct bw_seal *s)
{
	x->s = s;
	x->at = 0;
	x->block = 0;
}

/* Parts of a block, of which several pieces may have one each. */
static size_t bw_stream_part(struct bw_stream *x, uint8_t *to, const uint8_t *from, size_t len)
{
	uint32_t block = 1 + (uint32_t)(x->at / BW_SEALING_BLOCK), at = x->at % BW_SEALING_BLOCK;

	if (x->block != block) {
		memset(x->made, 0, sizeof(x->made));
		bw_sealing_xor(x->made, x->made, sizeof(x->made), x->s, block);
		x->block = block;
	}
	if (len > BW_SEALING_BLOCK - at)
		len = BW_SEALING_BLOCK - at;
	for (size_t i = 0; i < len; i++)
		to[i] = from[i] ^ x->made[at + i];
	return len;
}

/* Enciphers or deciphers the next bytes: how many. */
static size_t bw_stream_some(struct bw_stream *x, uint8_t *to, const uint8_t *from, size_t len)
{
	if (x->at % BW_SEALING_BLOCK || len < BW_SEALING_BLOCK) {
		len = bw_stream_part(x, to, from, len);
	} else {
		len = len > BW_SEALING_CHUNK ? BW_SEALING_CHUNK : len - len % BW_SEALING_BLOCK;
		bw_sealing_xor(to, from, len, x->s, 1 + (uint32_t)(x->at / BW_SEALING_BLOCK));
	}
	x->at += len;
	return len;
}

static void bw_stream_end(struct bw_stream *x)
{
	bw_sealing_wipe(x->made, sizeof(x->made));
}

static void bw_authenticator_fill(struct bw_authenticator *a, uint64_t len)
{
	static const uint8_t zeroes[16];

	if (len % sizeof(zeroes))
		bw_sealing_poly_add(&a->poly, zeroes, sizeof(zeroes) - len % sizeof(zeroes));
}

/* Its key is the beginning of block 0 (RFC 8439, 2.6). */
static void bw_authenticator_begin(struct bw_authenticator *a, const struct bw_seal *s)
{
	uint8_t key[BW_SEALING_BLOCK] = {0};

	bw_sealing_xor(key, key, sizeof(key), s, 0);
	bw_sealing_poly_begin(&a->poly, key);
	bw_sealing_wipe(key, sizeof(key));
	a->head = a->payload = 0;
	for (size_t i = 0; i < s->heads; i++) {
		bw_sealing_poly_add(&a->poly, s->head[i].base, s->head[i].len);
		a->head += s->head[i].len;
	}
	bw_authenticator_fill(a, a->head);
}

static void bw_authenticator_add(struct bw_authenticator *a, const void *sealed, size_t len)
{
	bw_sealing_poly_add(&a->poly, sealed, len);
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
	bw_sealing_poly_add(&a->poly, lengths, sizeof(lengths));
	bw_sealing_poly_end(&a->poly, tag);
	bw_sealing_wipe(&a->poly, sizeof(a->poly));
}

/* Enciphers or deciphers the next bytes. Returns where those behind them go. */
static uint8_t *bw_stream_all(struct bw_stream *x, uint8_t *to, const uint8_t *from, size_t len)
{
	for (size_t n; len; len -= n, from += n, to += n)
		n = bw_stream_some(x, to, from, len);
	return to;
}

/* Enciphers the next bytes and authenticates them where they are now. */
static uint8_t *bw_sealing_more(struct bw_stream *x, struct bw_authenticator *a, uint8_t *to,
				const uint8_t *from, size_t len)
{
	for (size_t n; len; len -= n, from += n, to += n) {
		n = bw_stream_some(x, to, from, len);
		bw_authenticator_add(a, to, n);
	}
	return to;
}

void bw_seal(const struct bw_seal *s, const struct bw_piece *piece, size_t pieces, void *out,
	     uint8_t tag[BW_SEAL_TAG])
{
	struct bw_authenticator a;
	struct bw_stream x;
	uint8_t *to = out;

	bw_authenticator_begin(&a, s);
	bw_stream_begin(&x, s);
	for (size_t i = 0; i < pieces; i++)
		to = bw_sealing_more(&x, &a, to, piece[i].base, piece[i].len);
	bw_stream_end(&x);
	bw_authenticator_end(&a, tag);
}

/* Is this what was sealed? */
static bool bw_seal_genuine(const struct bw_seal *s, const struct bw_piece *piece, size_t pieces,
			    const uint8_t tag[BW_SEAL_TAG])
{
	uint8_t wanted[BW_SEAL_TAG];
	struct bw_authenticator a;

	bw_authenticator_begin(&a, s);
	for (size_t i = 0; i < pieces; i++)
		bw_authenticator_add(&a, piece[i].base, piece[i].len);
	bw_authenticator_end(&a, wanted);
	return bw_sealing_same(wanted, tag, sizeof(wanted));
}

int bw_open(const struct bw_seal *s, const struct bw_piece *piece, size_t pieces, void *out,
	    const uint8_t tag[BW_SEAL_TAG])
{
	struct bw_stream x;
	uint8_t *to = out;

	if (!bw_seal_genuine(s, piece, pieces, tag))
		return -EBADMSG;
	bw_stream_begin(&x, s);
	for (size_t i = 0; i < pieces; i++)
		to = bw_stream_all(&x, to, piece[i].base, piece[i].len);
	bw_stream_end(&x);
	return 0;
}

void bw_seal_of(struct bw_seal *s, struct bw_piece *head, const void *frame,
		const struct bw_seal_by *by)
{
	*head = (struct bw_piece){frame, BW_DATA_HEAD};
	s->key = by->key;
	bw_seal_nonce(s->nonce, ((const uint8_t *)frame)[offsetof(struct bw_hdr, path)], by->pn);
	s->head = head;
	s->heads = 1;
}

void bw_seal_frame(void *frame, uint32_t end, const struct bw_seal_by *by)
{
	uint8_t *at = (uint8_t *)frame + BW_DATA_HEAD;
	struct bw_piece head, all = {at, end - BW_DATA_HEAD};
	struct bw_seal s;

	bw_seal_of(&s, &head, frame, by);
	bw_seal(&s, &all, 1, at, (uint8_t *)frame + end);
}

int bw_open_frame(void *frame, uint32_t end, const struct bw_seal_by *by)
{
	uint8_t *at = (uint8_t *)frame + BW_DATA_HEAD;
	struct bw_piece head, all = {at, end - BW_DATA_HEAD};
	struct bw_seal s;

	bw_seal_of(&s, &head, frame, by);
	return bw_open(&s, &all, 1, at, (const uint8_t *)frame + end);
}
