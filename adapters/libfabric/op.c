// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Operations of the initiator that take time: their pool, and their end. An operation has one or
 * more parts (calls of libbeowire that will call back, an answer of the target); the first error
 * counts, the last part reports.
 */
#include "bwf.h"

#include <stdlib.h>

static void bwf_op_done(struct bwf_ep *ep, struct bwf_done *done, int status, uint64_t len)
{
	bwf_op_part(ep, BWF_OF(done, struct bwf_op, done), status);
}

static bool bwf_op_grow(struct bwf_op_pool *pool)
{
	struct bwf_op **chunk = realloc(pool->chunk, (pool->chunks + 1) * sizeof(struct bwf_op *));
	struct bwf_op *ops;

	if (!chunk)
		return false;
	pool->chunk = chunk;
	ops = calloc(BWF_OP_CHUNK, sizeof(*ops));
	if (!ops)
		return false;
	for (uint32_t i = BWF_OP_CHUNK; i-- > 0;) {
		ops[i].index = pool->chunks * BWF_OP_CHUNK + i;
		ops[i].next = pool->spare;
		pool->spare = &ops[i];
	}
	pool->chunk[pool->chunks++] = ops;
	return true;
}

struct bwf_op *bwf_op_new(struct bwf_ep *ep, bw_peer_no number)
{
	struct bwf_peer *peer = bwf_peer_get(ep, number);
	struct bwf_op *op;

	if (bwf_cq_full(ep->tx_cq, ep->ops.under_way))
		return NULL;
	if (!peer || (!ep->ops.spare && !bwf_op_grow(&ep->ops)))
		return NULL;
	peer->busy++;
	ep->ops.under_way++;
	op = ep->ops.spare;
	ep->ops.spare = op->next;
	op->done.call = bwf_op_done;
	op->state = BWF_OP_SENDING;
	op->generation++;
	op->peer = number;
	op->parts = 0;
	op->answer = 0;
	op->is_long = false;
	op->status = 0;
	op->report = false;
	op->cntr = NULL;
	op->bounce = NULL;
	op->results = 0;
	return op;
}

bool bwf_op_await(struct bwf_ep *ep, struct bwf_op *op, uint8_t code)
{
	struct bwf_peer *peer = &ep->peer[op->peer];
	size_t bytes = bwf_iov_len(op->result, op->results);

	if (peer->requests_out >= BWF_REQUESTS_MAX || peer->answers_out + bytes > BWF_ANSWERS_MAX)
		return false;
	peer->requests_out++;
	peer->answers_out += bytes;
	op->state = BWF_OP_AWAITING;
	op->answer = code;
	return true;
}

void bwf_op_put(struct bwf_ep *ep, struct bwf_op *op)
{
	struct bwf_peer *peer = &ep->peer[op->peer];

	peer->busy--;
	ep->ops.under_way--;
	peer->writes_out -= op->is_long;
	if (op->state == BWF_OP_AWAITING) {
		peer->requests_out--;
		peer->answers_out -= bwf_iov_len(op->result, op->results);
	}
	free(op->bounce);
	op->bounce = NULL;
	op->state = BWF_OP_FREE;
	op->next = ep->ops.spare;
	ep->ops.spare = op;
}

void bwf_op_part(struct bwf_ep *ep, struct bwf_op *op, int status)
{
	if (status && !op->status)
		op->status = status;
	if (--op->parts)
		return;
	if (op->cntr)
		bwf_cntr_count(op->cntr, op->status);
	if (op->report || op->status)
		bwf_tx_report(ep, op->context, op->flags, op->status);
	bwf_op_put(ep, op);
}

uint64_t bwf_op_token(const struct bwf_op *op)
{
	return (uint64_t)op->generation << 32 | op->index;
}

struct bwf_op *bwf_op_answered(struct bwf_ep *ep, bw_peer_no peer, uint8_t code, uint64_t token)
{
	uint32_t index = (uint32_t)token;
	struct bwf_op *op;

	if (index / BWF_OP_CHUNK >= ep->ops.chunks)
		return NULL;
	op = &ep->ops.chunk[index / BWF_OP_CHUNK][index % BWF_OP_CHUNK];
	if (op->state != BWF_OP_AWAITING || op->generation != token >> 32 || op->peer != peer ||
	    op->answer != code)
		return NULL;
	op->answer = 0;
	return op;
}

/* libbeowire has called back for all its parts by now: what is left waits for the target's answer.
 */
void bwf_op_fail_peer(struct bwf_ep *ep, bw_peer_no peer, int status)
{
	for (uint32_t i = 0; i < ep->ops.chunks * BWF_OP_CHUNK; i++) {
		struct bwf_op *op = &ep->ops.chunk[i / BWF_OP_CHUNK][i % BWF_OP_CHUNK];

		if (op->state == BWF_OP_AWAITING && op->peer == peer) {
			op->parts = 1;
			bwf_op_part(ep, op, status);
		}
	}
}

void bwf_op_refuse_peer(struct bwf_ep *ep, bw_peer_no peer, int status)
{
	for (uint32_t i = 0; i < ep->ops.chunks * BWF_OP_CHUNK; i++) {
		struct bwf_op *op = &ep->ops.chunk[i / BWF_OP_CHUNK][i % BWF_OP_CHUNK];

		if (op->state == BWF_OP_AWAITING && op->peer == peer && op->answer) {
			op->answer = 0;
			bwf_op_part(ep, op, status);
		}
	}
}

int bwf_op_cancel(struct bwf_ep *ep, void *context)
{
	for (uint32_t i = 0; i < ep->ops.chunks * BWF_OP_CHUNK; i++) {
		struct bwf_op *op = &ep->ops.chunk[i / BWF_OP_CHUNK][i % BWF_OP_CHUNK];

		if (op->state == BWF_OP_SENDING && op->context == context)
			return bw_send_cancel(ep->bw, &op->done);
	}
	return -FI_ENOENT;
}

bool bwf_op_awaiting(struct bwf_ep *ep)
{
	for (uint32_t i = 0; i < ep->ops.chunks * BWF_OP_CHUNK; i++) {
		if (ep->ops.chunk[i / BWF_OP_CHUNK][i % BWF_OP_CHUNK].state == BWF_OP_AWAITING)
			return true;
	}
	return false;
}

void bwf_op_free_all(struct bwf_ep *ep)
{
	for (uint32_t i = 0; i < ep->ops.chunks; i++) {
		for (uint32_t j = 0; j < BWF_OP_CHUNK; j++)
			free(ep->ops.chunk[i][j].bounce);
		free(ep->ops.chunk[i]);
	}
	free(ep->ops.chunk);
	ep->ops = (struct bwf_op_pool){0};
}
