/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hosts' memory. What is sent needs no memory of its own, since its content is a stretch of one
 * pattern; what is received is real memory, compared with that stretch when it is complete. A
 * cookie names a buffer and its generation, so that every use after its end is noticed.
 */
#include "sim.h"

#include <stdlib.h>

#include "keyed.h"

/* Bytes of content that lie in one piece behind any place. */
#define SIM_PIECE (BW_FRAME_MAX_MTU + 1)

uint64_t sim_buf_new(struct sim_node *n, enum sim_buf_kind kind, uint64_t len, uint64_t base)
{
	struct sim_buf *b;
	uint32_t i;

	if (!n->free_buf) {
		n->bufs = realloc(n->bufs, (n->nbufs + 256) * sizeof(*n->bufs));
		if (!n->bufs)
			abort();
		for (i = n->nbufs + 256; i > n->nbufs; i--) {
			n->bufs[i - 1] = (struct sim_buf){.gen = 1, .next_free = n->free_buf};
			n->free_buf = i;
		}
		n->nbufs += 256;
	}
	i = n->free_buf;
	b = &n->bufs[i - 1];
	n->free_buf = b->next_free;
	b->kind = kind;
	b->len = len;
	b->base = base % SIM_PATTERN;
	b->op = 0;
	b->mem = NULL;
	if (kind == SIM_BUF_TARGET || kind == SIM_BUF_MESSAGE) {
		b->mem = malloc(len ? len : 1);
		if (!b->mem)
			abort();
	}
	return (uint64_t)b->gen << 32 | i;
}

struct sim_buf *sim_buf_get(struct sim_node *n, uint64_t cookie)
{
	uint32_t i = (uint32_t)cookie;
	struct sim_buf *b;

	if (!i || i > n->nbufs)
		return NULL;
	b = &n->bufs[i - 1];
	return b->kind != SIM_BUF_FREE && b->gen == cookie >> 32 ? b : NULL;
}

void sim_buf_end(struct sim_node *n, uint64_t cookie)
{
	struct sim_buf *b = sim_buf_get(n, cookie);

	free(b->mem);
	b->mem = NULL;
	b->kind = SIM_BUF_FREE;
	b->gen++;
	b->next_free = n->free_buf;
	n->free_buf = (uint32_t)cookie;
}

const uint8_t *sim_content(const struct sim *s, uint64_t base, uint64_t off)
{
	return s->pattern + (base + off) % SIM_PATTERN;
}

bool sim_content_same(const struct sim *s, const uint8_t *p, uint64_t base, uint64_t off,
		      uint64_t n)
{
	uint64_t piece;

	for (; n; n -= piece, p += piece, off += piece) {
		piece = n < SIM_PIECE ? n : SIM_PIECE;
		if (memcmp(p, sim_content(s, base, off), piece))
			return false;
	}
	return true;
}

static uint32_t sim_ops_payload_crc(void *host, uint64_t buf, uint64_t off, uint32_t n)
{
	struct sim_node *node = host;
	struct sim_buf *b = sim_buf_get(node, buf);

	if (!b || (b->kind != SIM_BUF_SOURCE && b->kind != SIM_BUF_HOST)) {
		sim_fail(node->sim, "node %u reads a buffer after its completion", node->number);
		return 0;
	}
	if (off > b->len || n > b->len - off) {
		sim_fail(node->sim, "node %u reads beyond the end of a buffer", node->number);
		return 0;
	}
	return bw_checksum(0, sim_content(node->sim, b->base, off), n);
}

/* Is the frame one of those that the engine was given? */
static bool sim_ops_shown(const struct sim_node *node, const struct sim_frame *frame)
{
	const struct sim_frame *f = node->current;
	uint32_t i;

	for (i = 0; i < node->shown && f; i++, f = f->next)
		if (f == frame)
			return true;
	return false;
}

static int sim_ops_place(void *host, uint64_t buf, uint64_t off, const struct bw_rx_frame *f,
			 uint32_t at, uint32_t n, bool check, uint32_t crc)
{
	struct sim_node *node = host;
	const struct sim_frame *frame = f->cookie;
	const uint8_t *from = (const uint8_t *)frame->data + at;
	struct sim_buf *b;

	if (!sim_ops_shown(node, frame) || at > f->len || n > f->len - at) {
		sim_fail(node->sim, "node %u places bytes that are not in the frame", node->number);
		return -EBADMSG;
	}
	if (check && bw_checksum(0, from, n) != crc)
		return -EBADMSG;
	if (!buf)
		return 0;
	b = sim_buf_get(node, buf);
	if (!b || !b->mem) {
		sim_fail(node->sim, "node %u writes into a buffer after its completion",
			 node->number);
		return -EBADMSG;
	}
	if (off > b->len || n > b->len - off) {
		sim_fail(node->sim, "node %u writes beyond the end of a buffer", node->number);
		return -EBADMSG;
	}
	memcpy(b->mem + off, from, n);
	if (b->op)
		sim_prompt_came(node, frame->src, sim_op_get(node, b->op), n);
	node->sim->progress_frames = node->sim->frames;
	return 0;
}

static uint64_t sim_ops_buf_get(void *host, uint32_t peer, uint64_t n, bool next)
{
	struct sim_node *node = host;

	if (sim_chance(&node->sim->rng, node->sim->spec.no_buffer_ppm))
		return 0;
	if (!n || n > (node->sim->spec.longs ? BW_LONG_LIMIT : BW_EAGER_LIMIT))
		sim_fail(node->sim, "node %u asks for a buffer of %llu bytes", node->number,
			 (unsigned long long)n);
	node->engine_bufs++;
	return sim_buf_new(node, SIM_BUF_MESSAGE, n, 0);
}

/* Half of the receivers know where they want it. */
static uint64_t sim_ops_buf_for(void *host, const struct bw_event *e)
{
	struct sim_node *node = host;

	sim_oracle_due(node, e);
	if (e->tag % 2)
		return 0;
	node->engine_bufs++;
	return sim_buf_new(node, SIM_BUF_MESSAGE, e->len, 0);
}

static void sim_ops_buf_put(void *host, uint64_t buf)
{
	struct sim_node *node = host;
	struct sim_buf *b = sim_buf_get(node, buf);

	if (!b || b->kind != SIM_BUF_MESSAGE) {
		sim_fail(node->sim, "node %u puts back a buffer that it does not have",
			 node->number);
		return;
	}
	node->engine_bufs--;
	sim_buf_end(node, buf);
}

static int sim_ops_region_find(void *host, uint32_t peer, uint64_t key, uint64_t off, uint64_t n,
			       uint64_t *buf, uint64_t *buf_off)
{
	struct sim_node *node = host;
	struct sim_peer *p = sim_peer_find(node, peer);

	if (!p || p->gone)
		sim_fail(node->sim, "node %u is asked for memory by no peer", node->number);
	if (key != node->host_key)
		return -EACCES;
	if (off > node->host_len || n > node->host_len - off)
		return -EINVAL;
	*buf = node->host_buf;
	*buf_off = off;
	node->host_reads++;
	return 0;
}

static void sim_ops_served(void *host, uint64_t buf)
{
	struct sim_node *node = host;

	if (buf != node->host_buf || !node->host_reads--)
		sim_fail(node->sim, "node %u: a read that it did not allow is over", node->number);
}

/* Dealt with after rx(), as the protocol must not be called now. */
static void sim_ops_sent(void *host, uint64_t cookie)
{
	struct sim_node *node = host;

	node->quiet = realloc(node->quiet, (node->nquiet + 1) * sizeof(*node->quiet));
	if (!node->quiet)
		abort();
	node->quiet[node->nquiet++] = cookie;
}

/* The whole frame lies elsewhere, if the engine is shown its beginning only. */
static int sim_ops_unseal(void *host, const struct bw_rx_frame *f, uint32_t end,
			  const struct bw_seal_by *by)
{
	struct sim_node *node = host;
	struct sim_frame *frame = f->cookie;
	int error;

	if (frame != node->current || end > f->len || f->len - end < BW_SEAL_TAG) {
		sim_fail(node->sim, "node %u opens what is not in the frame", node->number);
		return -EBADMSG;
	}
	error = bw_open_frame(frame->data, end, by);
	if (!error && f->head != frame->data)
		memcpy(node->head_copy, frame->data, BW_HEAD_MAX);
	return error;
}

static void sim_ops_message(void *host, const struct bw_event *ev)
{
	sim_event_take(host, ev);
}

static uint64_t sim_ops_random(void *host)
{
	struct sim_node *node = host;

	return sim_random(&node->chance);
}

#define SIM_HOST_OPS                                                                               \
	.crc32c = bw_checksum, .payload_crc = sim_ops_payload_crc, .place = sim_ops_place,         \
	.buf_get = sim_ops_buf_get, .buf_put = sim_ops_buf_put,                                    \
	.region_find = sim_ops_region_find, .served = sim_ops_served, .random = sim_ops_random,    \
	.siphash = bw_siphash, .hmac_sha256 = bw_hmac_sha256, .sent = sim_ops_sent,                \
	.unseal = sim_ops_unseal

const struct bw_host_ops sim_host_ops = {SIM_HOST_OPS};
const struct bw_host_ops sim_host_ops_direct = {SIM_HOST_OPS, .message = sim_ops_message,
						.buf_for = sim_ops_buf_for};
