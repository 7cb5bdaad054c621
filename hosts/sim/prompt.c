/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nothing that was promised waits for much longer than a silent peer is waited for, whatever else
 * is heard of it: it ends, or it fails with its peer. From when that time counts, and how long it
 * is, follows from what the engine does with an operation.
 *
 * - A message waits until all of it has left. As long as messages leave for its peer, others are
 *   ahead of it. Then every byte of it is under way, what is lost of it goes before all else, and
 *   only silence can hold it up.
 * - A pull waits for its turn among those of its peer, of which each has 32 frames at a time, and
 *   messages eight frames of nine. Who has waited for long is passed over by so many bytes at most.
 * - A peer that is silent on all paths is given up dead_ns after its last answer. That came before
 *   the ways between the two were cut; but if nothing passes one way any more, new bytes of a pull
 *   still come the other way, and count as answers, until the peer gives up in its turn.
 * - A path that is silent alone is left for another one when BW_PTO_LEAVE tail probes have met
 *   silence and the other has answered since, so often as there are other paths.
 *
 * Time in which a host gets no memory comes on top, and a second in which frames are lost by
 * chance, answers stand in queues, HELLOs are repeated and a message crosses a slow line. A host
 * that stands still or restarts, a cut that heals and bursts of losses would make the bound as long
 * as they last: runs with these make no such promise.
 */
#include "reliable.h"
#include "sim.h"

#include <stdlib.h>

#define SIM_PROMPT_EVERY (100 * BW_MS)
#define SIM_PROMPT_SLACK BW_S
#define SIM_PROMPT_TURN	 32 /* frames, as BW_SERVE_TURN and BW_STRIPE_TURN */
#define SIM_PROMPT_DRY	 10 /* times in a row that a host gets no memory; each: 0.3 */

/* From one node to another: when messages left that had not before, when payload came, and when
 * that of pulls did; bytes of it. */
struct sim_pair {
	uint64_t left, came, pulled, bytes;
};

struct sim_prompt {
	uint64_t patience; /* ns */
	uint32_t mtu;	   /* the largest */
	struct sim_pair pair[SIM_NODES][SIM_NODES];
};

/* The longest time for which a frame may be under way, in queues too. */
static uint64_t sim_prompt_way(const struct sim_spec *spec)
{
	uint64_t longest = 0;
	uint32_t i;

	for (i = 0; i < spec->planes; i++) {
		const struct sim_wire *w = &spec->wire[i];
		uint64_t way = 2 * w->delay_ns + w->jitter_ns;

		way += w->reorder_ppm ? w->reorder_ns : 0;
		way += sim_wire_time(w->rate_bps / 2, w->queue_bytes + spec->driver_bytes);
		longest = way > longest ? way : longest;
	}
	return longest + spec->ring * spec->rx_cost_ns + spec->clock_ns;
}

/* The longest time in which a path is found to be silent, though it was the slowest there is. */
static uint64_t sim_prompt_find(const struct sim_spec *spec)
{
	uint64_t rtt = 2 * sim_prompt_way(spec), sum = 0, pause;
	uint32_t i;

	pause = 3 * rtt + spec->ack_delay_ns + BW_ACK_DELAY + BW_PTO_MIN;
	for (i = 0; i < BW_PTO_LEAVE + 2; i++) {
		sum += pause < BW_PTO_MAX ? pause : BW_PTO_MAX;
		pause *= 2;
	}
	return sum;
}

void sim_prompt_begin(struct sim *s)
{
	const struct sim_spec *spec = &s->spec;
	uint32_t i;

	if (!spec->prompt)
		return;
	s->prompt = calloc(1, sizeof(*s->prompt));
	if (!s->prompt)
		abort();
	s->prompt->patience = spec->dead_ns + SIM_PROMPT_SLACK +
			      (spec->planes - 1) * sim_prompt_find(spec) +
			      SIM_PROMPT_DRY * spec->no_memory_ns;
	for (i = 0; i < spec->planes; i++)
		if (spec->wire[i].mtu > s->prompt->mtu)
			s->prompt->mtu = spec->wire[i].mtu;
	sim_prompt_check(s);
}

void sim_prompt_left(struct sim_node *n, uint32_t to, struct sim_msg *m, uint32_t end)
{
	if (!n->sim->prompt || (m->left && end <= m->left_end))
		return;
	m->left_end = end;
	m->left = n->sim->prompt->pair[n->number][to].left = n->sim->now;
}

void sim_prompt_came(struct sim_node *n, uint32_t from, struct sim_op *op, uint64_t bytes)
{
	struct sim_pair *pair;

	if (!n->sim->prompt)
		return;
	pair = &n->sim->prompt->pair[from][n->number];
	pair->came = n->sim->now;
	pair->bytes += bytes;
	if (op)
		op->moved = pair->pulled = n->sim->now;
}

static uint64_t sim_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Does the host know a way to its peer that works in both directions? */
static bool sim_prompt_way_works(const struct sim *s, const struct sim_op *op, uint32_t node)
{
	uint32_t cut = sim_fault_cut(s, node, (uint32_t)op->peer->remote);

	return op->peer->planes & ~cut & (s->spec.move_every_ns ? ~1u : ~0u);
}

/* Has the turn of others come so often since the pull was late that its own should have, too? */
static bool sim_prompt_passed(struct sim *s, struct sim_op *op, const struct sim_pair *from)
{
	uint64_t frames = (uint64_t)op->ahead * SIM_PROMPT_TURN * (BW_EAGER_TURN + 1);

	if (s->now >= from->came + s->prompt->patience)
		return true;
	if (!op->ahead) {
		op->ahead = op->peer->pending;
		op->passed = from->bytes;
		return false;
	}
	return from->bytes - op->passed > frames * s->prompt->mtu;
}

/* Has it waited for too long? */
static bool sim_prompt_late(struct sim *s, struct sim_op *op, uint32_t node)
{
	uint32_t remote = (uint32_t)op->peer->remote;
	const struct sim_pair *to = &s->prompt->pair[node][remote];
	const struct sim_pair *from = &s->prompt->pair[remote][node];
	const struct sim_msg *m = op->type == BW_OP_SEND ? &s->msgs[op->object] : NULL;
	uint64_t since = sim_later(op->since, sim_fault_since(s, node, remote));

	if (!sim_prompt_way_works(s, op, node))
		since = sim_later(since, from->pulled);
	if (m && (!m->left || m->left_end < m->len))
		since = sim_later(since, to->left);
	since = sim_later(since, m ? m->left : op->moved);
	if (s->now >= since + s->prompt->patience)
		return m || sim_prompt_passed(s, op, from);
	op->ahead = 0;
	return false;
}

void sim_prompt_check(struct sim *s)
{
	uint32_t i, k;

	for (i = 0; i < s->spec.nodes; i++)
		for (k = 0; k < s->nodes[i].nops; k++) {
			struct sim_op *op = &s->nodes[i].ops[k];

			if ((op->type != BW_OP_SEND && op->type != BW_OP_PULL) ||
			    op->peer->remote < 0 || !sim_prompt_late(s, op, i))
				continue;
			sim_fail(s, "node %u: %s to node %d, begun at %llu us, takes too long", i,
				 op->type == BW_OP_SEND ? "SEND" : "PULL", op->peer->remote,
				 (unsigned long long)(op->since / 1000));
		}
	if (s->working || s->pending)
		sim_queue_add(&s->queue, s->now + SIM_PROMPT_EVERY, SIM_OVERDUE, NULL, 0);
}
