/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which of several paths over one line carries pulled data, and messages of several frames. Such
 * paths share the line and the processors that fill it, so that using them together brings nothing:
 * one carries, the others yield. Which is best depends on what the hosts can do (segmentation
 * offload, large frames) and on the network, so it is measured: after some bytes another path has a
 * short trial, and carries from then on if it was clearly faster. Trials become rare as long as
 * they change nothing.
 */
#include "carry.h"
#include "reliable.h"
#include "send.h"
#include "stripe.h"

#define BW_CARRY_WARM  (512u << 10) /* bytes of a trial that are not measured: the window opens */
#define BW_CARRY_TRIAL (2u << 20)   /* bytes of a trial that are measured */
#define BW_CARRY_USUAL (8u << 20)   /* and before one, so that it has the fastest of more pieces */
#define BW_CARRY_TASTE (256u << 10) /* of a trial of a path that is half as fast as another one */
/* They are measured in pieces, of which the fastest counts: on a busy machine the others tell of
 * who had the processor. Acknowledgements that were waiting are taken in all at once. So a piece
 * goes from when nothing is under way to when nothing is, or it is longer than what can be. */
#define BW_CARRY_PIECE (256 * BW_US) /* at least: hosts do not read the clock for each frame */
#define BW_CARRY_LONG  2	     /* congestion windows */
#define BW_CARRY_LEAST (8ull << 20)  /* bytes between trials, at first */
#define BW_CARRY_ROWS                                                                              \
	(64ull << 20)		   /* the same where super-frames carry: mostly nothing is faster */
#define BW_CARRY_MOST (1ull << 30) /* and at most */

bool bw_carry_rivals(const struct bw_engine *e, const struct bw_path *a, const struct bw_path *b)
{
	uint8_t line = e->cfg.link_line[a->to.link % 8];

	return a != b && line && line == e->cfg.link_line[b->to.link % 8];
}

static bool bw_carry_answers(const struct bw_path *t)
{
	return t->state == BW_PATH_UP && !t->pto_count;
}

/* Bytes that it carries between two trials of others, at first. */
static uint64_t bw_carry_least(const struct bw_engine *e, const struct bw_path *t)
{
	return e->cfg.link_rows[t->to.link % 8] ? BW_CARRY_ROWS : BW_CARRY_LEAST;
}

/* And before the first one. */
static uint64_t bw_carry_first(const struct bw_engine *e, const struct bw_path *t)
{
	return e->cfg.link_rows[t->to.link % 8] ? BW_CARRY_ROWS : BW_CARRY_WARM;
}

/* From now on this path carries what its line does: so many bytes, then it is measured. */
static void bw_carry_take(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t warm)
{
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		struct bw_path *o = p->path[i];

		if (!bw_carry_rivals(e, t, o))
			continue;
		o->carry.yields = true;
		o->carry.trial = false;
		bw_stripe_leave(p, o);
	}
	t->carry.yields = false;
	t->carry.warm = warm;
	t->carry.bytes = t->carry.ns = t->carry.fastest = 0;
	t->carry.measured = 0;
	t->carry.whole = false;
	t->carry.since = e->now;
}

void bw_carry_choose(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i, k;

	for (i = 0; i < p->npaths; i++) {
		struct bw_path *t = p->path[i];
		bool alone = true;

		if (t->state != BW_PATH_UP || !t->carry.yields)
			continue;
		for (k = 0; k < p->npaths; k++)
			alone &= !(bw_carry_rivals(e, t, p->path[k]) && !p->path[k]->carry.yields &&
				   p->path[k]->state == BW_PATH_UP);
		if (alone)
			bw_carry_take(e, p, t, BW_CARRY_WARM);
	}
}

void bw_carry_up(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	uint8_t i;

	t->carry = (struct bw_carry){.warm = bw_carry_first(e, t), .pause = bw_carry_least(e, t)};
	for (i = 0; i < p->npaths; i++) {
		struct bw_path *o = p->path[i];

		if (!bw_carry_rivals(e, t, o) || o->state != BW_PATH_UP || o->carry.yields)
			continue;
		t->carry.yields =
			e->cfg.link_rows[o->to.link % 8] || !e->cfg.link_rows[t->to.link % 8];
		o->carry.warm = bw_min_u64(o->carry.warm, bw_carry_first(e, o));
	}
	if (!t->carry.yields)
		bw_carry_take(e, p, t, bw_carry_first(e, t));
}

/* Of the others over its line that answer the fastest, or the one that was not tried for longest;
 * NULL: there is none. */
static struct bw_path *bw_carry_other(const struct bw_engine *e, struct bw_peer *p,
				      const struct bw_path *t, bool fastest)
{
	struct bw_path *best = NULL;
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		struct bw_path *o = p->path[i];

		if (bw_carry_rivals(e, t, o) && bw_carry_answers(o) &&
		    (!best || (fastest ? o->carry.rate > best->carry.rate
				       : o->carry.tried < best->carry.tried)))
			best = o;
	}
	return best;
}

/* It has carried what it was to: what it was worth, and who is next. */
static void bw_carry_judge(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	bool trial = t->carry.trial;
	struct bw_path *o;

	t->carry.rate = t->carry.fastest;
	t->carry.tried = e->now;
	t->carry.trial = false;
	o = bw_carry_other(e, p, t, trial);
	if (!o) {
		bw_carry_take(e, p, t, t->carry.pause);
	} else if (!trial) {
		o->carry.trial = true;
		bw_carry_take(e, p, o, BW_CARRY_WARM);
	} else if (t->carry.rate > o->carry.rate + o->carry.rate / 8) {
		t->carry.pause = bw_carry_least(e, t);
		bw_carry_take(e, p, t, t->carry.pause);
	} else {
		o->carry.pause = bw_min_u64(2 * o->carry.pause, BW_CARRY_MOST);
		bw_carry_take(e, p, o, o->carry.pause);
	}
}

uint8_t bw_carry_instead(const struct bw_engine *e, const struct bw_peer *p,
			 const struct bw_path *t)
{
	uint8_t i;

	for (i = 0; t->carry.yields && i < p->npaths; i++) {
		const struct bw_path *o = p->path[i];

		if (!o->carry.yields && bw_carry_rivals(e, t, o) && bw_carry_answers(o))
			return i;
	}
	return t->no;
}

/* The path by which what is long leaves; NULL: all are silent. */
static struct bw_path *bw_carry_way(const struct bw_engine *e, const struct bw_peer *p)
{
	uint8_t i;

	for (i = 0; i < p->npaths; i++)
		if (bw_stripe_carries(e, p, p->path[i]))
			return p->path[i];
	return NULL;
}

bool bw_carry_frame(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	struct bw_path *way = bw_carry_message(e, p, bw_send_length(e, p)), *data;
	bool bulk = !bw_list_empty(&p->serving) || p->aside;
	bool turn = bulk && p->eager_turn >= BW_EAGER_TURN;

	if (bw_stripe_probe(e, p, f))
		return true;
	data = bulk || !bw_list_empty(&p->again) ? bw_carry_way(e, p) : way;
	if (!data || data == way)
		return bw_send_by(e, p, way, BW_SEND_ALL, f);
	if (!bw_list_empty(&p->again) && bw_send_by(e, p, data, BW_SEND_AGAIN | BW_SEND_BULK, f))
		return true;
	if (!turn && bw_send_by(e, p, way, BW_SEND_MESSAGES, f))
		return true;
	if (bw_send_by(e, p, data, BW_SEND_AGAIN | BW_SEND_BULK, f))
		return true;
	return turn && bw_send_by(e, p, way, BW_SEND_MESSAGES, f);
}

void bw_carry_sent(struct bw_engine *e, struct bw_path *t, bool load)
{
	if (!t->inflight) {
		t->carry.since = e->now;
		t->carry.loaded = false;
		if (!t->carry.whole) {
			t->carry.bytes = t->carry.ns = 0;
			t->carry.whole = true;
		}
	}
	t->carry.loaded |= load;
}

/* Bytes a millisecond of the piece, as far as it is. */
static uint64_t bw_carry_pace(const struct bw_path *t)
{
	return t->carry.bytes * BW_MS / bw_max_u64(t->carry.ns, 1);
}

/* Has its trial shown already that it is far slower than another one? The piece need not end. */
static bool bw_carry_fails(const struct bw_engine *e, struct bw_peer *p, const struct bw_path *t)
{
	const struct bw_path *o = t->carry.trial ? bw_carry_other(e, p, t, true) : NULL;

	return o && t->carry.measured + t->carry.bytes >= BW_CARRY_TASTE &&
	       (t->carry.whole || t->carry.bytes >= BW_CARRY_LONG * t->cc.cwnd) &&
	       bw_max_u64(t->carry.fastest, bw_carry_pace(t)) < o->carry.rate / 2;
}

/* The piece ends. */
static void bw_carry_piece(struct bw_path *t)
{
	t->carry.fastest = bw_max_u64(t->carry.fastest, bw_carry_pace(t));
	t->carry.measured += t->carry.bytes;
	t->carry.bytes = t->carry.ns = 0;
	t->carry.whole = false;
}

void bw_carry_acked(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t bytes)
{
	uint64_t ns = e->now - t->carry.since;
	bool fails;

	if (t->carry.yields || !t->carry.loaded)
		return;
	t->carry.since = e->now;
	if (t->carry.warm) {
		t->carry.warm -= bw_min_u64(t->carry.warm, bytes);
		t->carry.whole = false;
		return;
	}
	t->carry.bytes += bytes;
	t->carry.ns += ns;
	if (t->carry.ns < BW_CARRY_PIECE)
		return;
	fails = bw_carry_fails(e, p, t);
	if (!fails && (t->inflight || !t->carry.whole) &&
	    t->carry.bytes < BW_CARRY_LONG * t->cc.cwnd)
		return;
	bw_carry_piece(t);
	if (fails || t->carry.measured >= (t->carry.trial ? BW_CARRY_TRIAL : BW_CARRY_USUAL))
		bw_carry_judge(e, p, t);
}
