/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The host's books: which operations are under way and which peers it knows. A cookie names a place
 * and its generation, so that a completion that comes twice finds nothing.
 */
#include "sim.h"

#include <stdlib.h>

uint64_t sim_op_new(struct sim_node *n, struct sim_peer *p, enum bw_op_type type)
{
	struct sim_op *op;
	uint32_t i;

	if (!n->free_op) {
		n->ops = realloc(n->ops, (n->nops + 256) * sizeof(*n->ops));
		if (!n->ops)
			abort();
		for (i = n->nops + 256; i > n->nops; i--) {
			n->ops[i - 1] = (struct sim_op){.gen = 1, .next_free = n->free_op};
			n->free_op = i;
		}
		n->nops += 256;
	}
	i = n->free_op;
	op = &n->ops[i - 1];
	n->free_op = op->next_free;
	*op = (struct sim_op){.type = type, .gen = op->gen, .peer = p, .since = n->sim->now};
	p->pending++;
	p->exposed += type == BW_OP_EXPOSE;
	n->pending++;
	n->sim->pending++;
	return (uint64_t)op->gen << 32 | i;
}

struct sim_op *sim_op_get(struct sim_node *n, uint64_t cookie)
{
	uint32_t i = (uint32_t)cookie;
	struct sim_op *op;

	if (!i || i > n->nops)
		return NULL;
	op = &n->ops[i - 1];
	return op->type && op->gen == cookie >> 32 ? op : NULL;
}

void sim_op_end(struct sim_node *n, uint64_t cookie)
{
	struct sim_op *op = sim_op_get(n, cookie);
	struct sim *s = n->sim;

	if (op->buf)
		sim_buf_end(n, op->buf);
	if (op->type == BW_OP_PULL && !op->host_key) {
		s->regions[op->object].pulls--;
		s->regions[op->object].finals -= op->final && op->len && !op->must_fail;
	}
	if (op->type == BW_OP_EXPOSE) {
		s->regions[op->object].op = 0;
		op->peer->exposed--;
	}
	op->peer->pending--;
	n->pending--;
	s->pending--;
	op->type = 0;
	op->gen++;
	op->next_free = n->free_op;
	n->free_op = (uint32_t)cookie;
	s->progress_frames = s->frames;
	if (n->full)
		sim_queue_add(&s->queue, s->now, SIM_WORK, n, n->work_gen);
	n->full = false;
}

struct sim_peer *sim_peer_find(struct sim_node *n, uint32_t handle)
{
	struct sim_peer *p;
	uint32_t i;

	for (i = 0; i < n->sim->spec.nodes; i++)
		if (n->live[i] && n->live[i]->handle == handle)
			return n->live[i];
	for (p = n->peers; p; p = p->next)
		if (p->handle == handle && !p->gone)
			return p;
	return NULL;
}

struct sim_peer *sim_peer_new(struct sim_node *n, uint32_t handle, int32_t remote)
{
	struct sim_peer *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->node = n;
	p->node_inc = n->cfg.incarnation;
	p->handle = handle;
	p->remote = remote;
	p->next = n->peers;
	n->peers = p;
	if (remote >= 0)
		n->live[remote] = p;
	return p;
}

void sim_op_forget_all(struct sim_node *n)
{
	struct sim_peer *p;
	uint32_t i;

	for (i = 0; i < n->nops; i++)
		if (n->ops[i].type)
			sim_op_end(n, (uint64_t)n->ops[i].gen << 32 | (i + 1));
	for (p = n->peers; p; p = p->next)
		p->gone = true;
	memset(n->live, 0, sizeof(n->live));
}
