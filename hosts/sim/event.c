/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every event that an engine reports is checked here: it completes something that is under way, its
 * status has a reason, and what it says to be in memory is there.
 */
#include "sim.h"

static void sim_event_message(struct sim_node *n, struct sim_peer *p, const struct bw_event *e)
{
	if (!sim_oracle_delivered(n, p, e))
		return;
	sim_work_answer(n, p, e);
	sim_work_enough(n, p);
}

/* An operation failed; the only reason left is that its peer is lost, as PEER_DOWN must say
 * next. */
static void sim_event_failing(struct sim_peer *p, int32_t status)
{
	if (p->failing && p->failing != status)
		sim_fail(p->node->sim, "node %u: operations of one peer fail with %d and %d",
			 p->node->number, p->failing, status);
	p->failing = status;
}

/* Is what the receiver got known here, though it took leave? Unless we took leave ourselves. */
static bool sim_event_known(const struct sim_node *n, int32_t status)
{
	return n->sim->spec.leave_ppm && status != BW_DOWN_CANCELED;
}

static void sim_event_sent(struct sim_node *n, struct sim_op *op, const struct bw_event *e)
{
	if (!e->status) {
		n->sim->msgs[op->object].acked = true;
		return;
	}
	if (sim_event_known(n, e->status) && n->sim->msgs[op->object].delivered)
		sim_fail(n->sim, "node %u: a message ends with %d that node %d got", n->number,
			 e->status, op->peer->remote);
	sim_event_failing(op->peer, e->status);
}

/* May this pull have failed so? */
static bool sim_pull_excused(const struct sim_node *n, const struct sim_op *op, int32_t status)
{
	const struct sim_region *r = &n->sim->regions[op->object];

	if (op->must_fail && (status == -EINVAL || status == -ENOENT || status == -EACCES))
		return true;
	if (op->canceled && status == -ECANCELED)
		return true;
	if (op->host_key)
		return status == -ECANCELED && n->sim->nodes[op->peer->remote].forbade;
	if (r->retracted && (status == -ECANCELED || status == -ENOENT))
		return true;
	/* A final pull that overtook this one releases the region, though others may still read
	 * it. */
	return (r->done || (r->final_asked && !op->final)) && status == -ENOENT;
}

static void sim_event_pulled(struct sim_node *n, struct sim_op *op, const struct bw_event *e)
{
	struct sim *s = n->sim;
	const struct sim_buf *b = op->buf ? sim_buf_get(n, op->buf) : NULL;

	if (e->status) {
		if (!sim_pull_excused(n, op, e->status))
			sim_event_failing(op->peer, e->status);
		return;
	}
	if (op->must_fail)
		sim_fail(s, "node %u: a pull succeeded that must not", n->number);
	else if (e->len != op->len)
		sim_fail(s, "node %u: pulled %llu bytes instead of %llu", n->number,
			 (unsigned long long)e->len, (unsigned long long)op->len);
	else if (op->len && !sim_content_same(s, b->mem + SIM_TARGET_OFF, op->base, 0, op->len))
		sim_fail(s, "node %u: pulled data has the wrong content", n->number);
	s->pulled++;
	n->got_bytes += op->len;
	s->nodes[op->peer->remote].gave_bytes += op->len;
	n->got_items++;
	if (op->final && !op->host_key)
		s->regions[op->object].taken = true;
	sim_work_enough(n, op->peer);
}

static void sim_event_region(struct sim_node *n, struct sim_op *op, const struct bw_event *e)
{
	struct sim_region *r = &n->sim->regions[op->object];

	r->done = true;
	if (e->status == -ECANCELED && r->retracted)
		return;
	if (e->status) {
		if (sim_event_known(n, e->status) && r->taken && !r->pulls)
			sim_fail(n->sim, "node %u: a region ends with %d that node %d pulled",
				 n->number, e->status, op->peer->remote);
		sim_event_failing(op->peer, e->status);
		return;
	}
	if (!r->final_asked)
		sim_fail(n->sim, "node %u: region released, but no final pull was made", n->number);
	if (r->finals)
		sim_fail(n->sim, "node %u: region released before its final pull ended", n->number);
}

static const char *sim_event_type_name(enum bw_event_type type)
{
	static const char *const names[] = {
		[BW_EV_MESSAGE] = "MESSAGE", [BW_EV_SENT] = "SENT",
		[BW_EV_PULLED] = "PULLED",   [BW_EV_REGION_DONE] = "REGION_DONE",
		[BW_EV_PEER_UP] = "PEER_UP", [BW_EV_PEER_DOWN] = "PEER_DOWN",
		[BW_EV_PATH] = "PATH"};

	return type && type <= BW_EV_PATH ? names[type] : "?";
}

static void sim_event_completion(struct sim_node *n, const struct bw_event *e)
{
	static const enum bw_op_type of[] = {[BW_EV_SENT] = BW_OP_SEND,
					     [BW_EV_PULLED] = BW_OP_PULL,
					     [BW_EV_REGION_DONE] = BW_OP_EXPOSE};
	struct sim_op *op = sim_op_get(n, e->cookie);
	struct sim_peer *p;

	if (!op || op->type != of[e->type] || op->peer->handle != e->peer) {
		sim_fail(n->sim, "node %u: %s for what is not under way", n->number,
			 sim_event_type_name(e->type));
		return;
	}
	p = op->peer;
	if (e->type == BW_EV_SENT)
		sim_event_sent(n, op, e);
	else if (e->type == BW_EV_PULLED)
		sim_event_pulled(n, op, e);
	else
		sim_event_region(n, op, e);
	sim_op_end(n, e->cookie);
	if (e->type != BW_EV_PULLED)
		sim_work_ended(n, p);
}

void sim_event_quiet(struct sim_node *n, uint64_t cookie)
{
	struct sim_op *op = sim_op_get(n, cookie);
	struct bw_event e = {.type = BW_EV_SENT, .cookie = cookie};

	if (!op || !op->quiet)
		sim_fail(n->sim, "node %u: a send ends quietly that is not quiet", n->number);
	e.peer = op ? op->peer->handle : 0;
	sim_event_completion(n, &e);
}

/* The peer's former life had called before the host named it, and gives way to the one that it has
 * now. What the host has given since is the beginning. */
static void sim_event_anew(struct sim_node *n, struct sim_peer *p)
{
	uint64_t given[SIM_EPS][SIM_EPS] = {{0}};
	struct sim_msg *m;
	uint32_t i;

	for (i = 0; i < n->nops; i++)
		if (n->ops[i].type == BW_OP_SEND && n->ops[i].peer == p) {
			m = &n->sim->msgs[n->ops[i].object];
			given[m->src_ep][m->dst_ep]++;
		}
	for (i = 0; i < n->nops; i++)
		if (n->ops[i].type == BW_OP_SEND && n->ops[i].peer == p) {
			m = &n->sim->msgs[n->ops[i].object];
			m->seq -= p->tx_seq[m->src_ep][m->dst_ep] - given[m->src_ep][m->dst_ep];
		}
	memcpy(p->tx_seq, given, sizeof(given));
	memset(p->rx_seq, 0, sizeof(p->rx_seq));
	p->rx_from = NULL;
}

static void sim_event_up(struct sim_node *n, const struct bw_event *e)
{
	struct sim *s = n->sim;
	struct sim_peer *p = sim_peer_find(n, e->peer);
	uint32_t remote = (uint32_t)e->from.bytes[4] << 8 | e->from.bytes[5];

	if (remote >= s->spec.nodes || (s->reliable && s->nodes[remote].identity != e->node)) {
		sim_fail(s, "node %u: PEER_UP of an unknown node", n->number);
		return;
	}
	if (p && p->up && p->remote_inc == e->inc)
		sim_fail(s, "node %u: PEER_UP twice", n->number);
	else if (p && p->up)
		sim_event_anew(n, p);
	if (p && p->remote >= 0 && p->remote != (int32_t)remote)
		sim_fail(s, "node %u: PEER_UP of another node than was asked for", n->number);
	if (!p)
		p = sim_peer_new(n, e->peer, (int32_t)remote);
	p->up = true;
	p->remote_inc = e->inc;
}

/* Has its host never meant it, nor got anything of it? Such a peer makes room where memory is short
 * and others wait (engine/guest.c). */
static bool sim_peer_useless(const struct sim_peer *p)
{
	uint32_t i, k;

	for (i = 0; i < SIM_EPS; i++)
		for (k = 0; k < SIM_EPS; k++)
			if (p->tx_seq[i][k] || p->rx_seq[i][k])
				return false;
	return !p->named;
}

/* Is there a reason for a peer to be lost in this way? */
static bool sim_down_excused(const struct sim *s, const struct sim_peer *p, int32_t status)
{
	if (s->spec.steady)
		return false;
	if (status == BW_DOWN_EVICTED)
		return s->spec.no_memory_ns && sim_peer_useless(p);
	return status == BW_DOWN_TIMEOUT || status == BW_DOWN_REFUSED || status == BW_DOWN_RESET ||
	       status == BW_DOWN_CLOSED || (status == BW_DOWN_CANCELED && p->leaving);
}

static void sim_event_down(struct sim_node *n, struct sim_peer *p, const struct bw_event *e)
{
	struct sim *s = n->sim;

	if (p->pending)
		sim_fail(s, "node %u: PEER_DOWN while %u operations are under way", n->number,
			 p->pending);
	if (!sim_down_excused(s, p, e->status))
		sim_fail(s, "node %u: PEER_DOWN of node %d with status %d for no reason", n->number,
			 p->remote, e->status);
	if (p->failing && p->failing != e->status)
		sim_fail(s, "node %u: PEER_DOWN with status %d after failures with %d", n->number,
			 e->status, p->failing);
	p->gone = true;
	if (p->remote >= 0 && n->live[p->remote] == p)
		n->live[p->remote] = NULL;
	s->downs++;
	s->progress_frames = s->frames;
}

void sim_event_take(struct sim_node *n, const struct bw_event *e)
{
	struct sim *s = n->sim;
	struct sim_peer *p;

	if (s->trace)
		sim_log(s, "      node%u: %s peer %x status %d len %llu", n->number,
			sim_event_type_name(e->type), e->peer, e->status,
			(unsigned long long)e->len);
	if (e->type == BW_EV_PEER_UP) {
		sim_event_up(n, e);
		return;
	}
	p = sim_peer_find(n, e->peer);
	if (!p) {
		sim_fail(s, "node %u: %s of a peer that does not exist", n->number,
			 sim_event_type_name(e->type));
		return;
	}
	switch (e->type) {
	case BW_EV_MESSAGE:
		sim_event_message(n, p, e);
		break;
	case BW_EV_SENT:
	case BW_EV_PULLED:
	case BW_EV_REGION_DONE:
		sim_event_completion(n, e);
		break;
	case BW_EV_PEER_DOWN:
		sim_event_down(n, p, e);
		break;
	case BW_EV_PATH:
		break;
	default:
		sim_fail(s, "node %u: event of unknown type %d", n->number, e->type);
	}
}
