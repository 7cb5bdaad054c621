/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What programs are told, and whether it is what was done; see endpoint_ops.h. */
#include "endpoint_ledger.h"

#include <string.h>

/* Its end is told. */
static void op_told(struct op *op, int s, int status)
{
	if (op < op_all || op >= op_all + op_count || op->state != PENDING || op->side != s)
		fuzz_bad("the end of what is not under way");
	op->status = status;
	if (status > 0)
		fuzz_bad("a status that is no error");
}

/* Which side's incarnation a peer of side s is; -1: none that there is now. */
static int side_of_peer(int s, bw_peer_no peer)
{
	const struct bw_remote *p = bw_remote_get(&world.side[s].ep->remotes, peer);

	if (!p)
		fuzz_bad("a handler is told of a peer that there is not");
	for (int t = 0; t < world.sides; t++)
		if (t != s && p->addr.engine == world.side[t].engine &&
		    p->addr.inc == world.side[t].inc)
			return t;
	return -1;
}

static void expect_bytes(const void *bytes, uint32_t from, uint64_t len)
{
	if (ops_honest && len && memcmp(bytes, op_pattern + from, len))
		fuzz_bad("other bytes than were sent");
}

/* Nothing of it but that it can be read matters. */
static void touch(const uint8_t *bytes, uint64_t len)
{
	static volatile uint8_t sum;

	for (uint64_t i = 0; i < len; i += 64)
		sum = (uint8_t)(sum + bytes[i]);
	if (len)
		sum = (uint8_t)(sum + bytes[len - 1]);
}

/* A message with this tag comes to side s. NULL: nothing is known of it. */
static struct op *op_of(int s, const struct bw_message *m)
{
	struct op *op = m->tag < op_count ? &op_all[m->tag] : NULL;

	if (!ops_honest)
		return NULL;
	if (!op || op->kind != SEND || op->to != s || op->len != m->len || op->imm != m->imm ||
	    op->code != m->code)
		fuzz_bad("a message that nobody has sent");
	return op;
}

static void deliver(int s, struct op *op)
{
	uint32_t *next = &program[s].with[op->side].next;

	if (op->inc != program[s].with[op->side].inc || op->conv > program[s].with[op->side].from)
		*next = 0;
	else if (op->conv < program[s].with[op->side].from)
		fuzz_bad("a message of a conversation that is over");
	program[s].with[op->side].inc = op->inc;
	program[s].with[op->side].from = op->conv;
	if (op->seq != (*next)++ || op->delivered)
		fuzz_bad("a message is missing, or comes twice");
	op->delivered = true;
}

static void keep(int s, const struct bw_message *m, struct op *op)
{
	uint32_t n = program[s].n_kept;

	if (n == KEPT) { /* of a hostile peer: that may fail */
		bw_pull(world.side[s].ep, m->peer, &m->rndv, NULL, 0, NULL);
		return;
	}
	program[s].kept[n].of = op;
	program[s].kept[n].rndv = m->rndv;
	program[s].kept[n].len = m->len;
	program[s].kept[n].peer = m->peer;
	program[s].kept[n].from = side_of_peer(s, m->peer);
	program[s].n_kept++;
}

static void on_message(void *arg, const struct bw_message *m)
{
	int s = (int)(intptr_t)arg;
	struct op *op = op_of(s, m);

	if (op && side_of_peer(s, m->peer) >= 0 && side_of_peer(s, m->peer) != op->side)
		fuzz_bad("a message of somebody else");
	if (op)
		deliver(s, op);
	if (!m->envelope) {
		touch(m->data, m->len);
		expect_bytes(m->data, op ? op->pattern : 0, m->len);
		return;
	}
	keep(s, m, op);
	if (ops_habits & 1 && program[s].n_kept && program[s].n_kept < KEPT)
		program_fetch(s, program[s].n_kept - 1, bw_min_u64(m->len, LONGEST), false);
}

static void *on_place(void *arg, const struct bw_message *m, void **to)
{
	int s = (int)(intptr_t)arg;
	struct op *of = op_of(s, m), *op;

	if (m->len > BW_LONG_LIMIT || m->data)
		fuzz_bad("a place for what no peer may send");
	if (!(ops_habits & 2) || m->tag % 3 == 0)
		return NULL;
	op = op_new(PLACE, s, side_of_peer(s, m->peer), m->len);
	if (!op)
		return NULL;
	op->of = of;
	op->pattern = of ? of->pattern : 0;
	op->state = PENDING;
	*to = op;
	return op->buf;
}

static void on_sent(void *arg, void *told, int status)
{
	struct op *op = told;

	op_told(op, (int)(intptr_t)arg, status);
	if (op->kind != SEND)
		fuzz_bad("a send has ended that is none");
	if (ops_honest && !status && op->flags & BW_SEND_HANDED && !op->delivered)
		fuzz_bad("handed over, and nobody was called");
	if (ops_honest && !status && op->flags & BW_SEND_SYNC && !op->taken)
		fuzz_bad("sent in step with a receiver that has not taken it");
	if (op->canceled && !status)
		fuzz_bad("what was taken back is sent");
	op_end(op, ENDED);
}

static void on_pulled(void *arg, void *told, int status, uint64_t len)
{
	struct op *op = told;
	int s = (int)(intptr_t)arg;

	op_told(op, s, status);
	if (op->kind == SEND || (!status && len > op->len))
		fuzz_bad("more is fetched than there was room for");
	if (op->canceled && !status)
		fuzz_bad("what was given up is fetched");
	if (!status && op->kind == PLACE && op->of)
		deliver(s, op->of);
	if (ops_honest && !status && len != op->len)
		fuzz_bad("less is fetched than was asked for");
	if (!status && op->buf)
		expect_bytes(op->buf, op->pattern, len);
	op_end(op, ENDED);
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
	int s = (int)(intptr_t)arg, t = side_of_peer(s, peer);

	for (uint32_t k = program[s].n_kept; k--;)
		if (program[s].kept[k].peer == peer)
			program_unkeep(s, k);
	if (status >= 0)
		fuzz_bad("a peer is down for no reason");
	if (status != BW_DOWN_EVICTED && bw_peer_status(world.side[s].ep, peer) != status)
		fuzz_bad("a peer is down, and is not");
	if (t < 0)
		return;
	/* Whoever is there and was heard is not given up by an honest peer. */
	if (ops_honest && !world.lossy && world.side[t].ep && !program[t].with[s].breaks &&
	    !program[s].with[t].breaks)
		fuzz_bad("a peer is given up that answers");
	program[s].with[t].conv++;
	program[s].with[t].seq = 0;
	program_break_up(s, t);
}

static void *on_region(void *arg, bw_peer_no peer, uint64_t key, uint64_t off, uint64_t n)
{
	int s = (int)(intptr_t)arg;

	side_of_peer(s, peer);
	if (key != KEY_BASE + (uint64_t)s || program[s].forbids || off > REGION || n > REGION - off)
		return NULL;
	return program[s].region + off;
}

static bool on_needed(void *arg, bw_peer_no peer)
{
	side_of_peer((int)(intptr_t)arg, peer);
	return ops_honest || ops_habits & 4;
}

const struct bw_handlers ops_handlers = {
	.message = on_message,
	.sent = on_sent,
	.pulled = on_pulled,
	.peer_down = on_down,
	.region = on_region,
	.place = on_place,
	.peer_needed = on_needed,
};
