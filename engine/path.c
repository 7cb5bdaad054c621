/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of one path to a peer: its round trip (RFC 6298), how much may be under way on it
 * (additive increase, multiplicative decrease, marks as in RFC 8257), and how large a frame passes
 * (probing as in RFC 8899). All in integers.
 */
#include "reliable.h"

#define BW_ALPHA_ONE 1024 /* mark_alpha: all packets marked */

void bw_path_init(struct bw_engine *e, struct bw_path *t, const struct bw_link_addr *to)
{
	memset(t, 0, sizeof(*t));
	t->to = *to;
	t->state = BW_PATH_TRYING;
	t->remote_no = BW_PATH_UNKNOWN;
	t->hello_due = true;
	t->hello_pause = BW_HELLO_FIRST;
	t->hello_next = e->now + BW_HELLO_FIRST;
	t->pn_next = 1;
	t->floor = 1;
	t->rx.base = 1;
	t->loss_at = BW_NEVER;
	t->ack_at = BW_NEVER;
	t->reorder = BW_REORDER_MIN;
	t->cwnd = BW_CWND_INITIAL;
	t->ssthresh = UINT64_MAX;
	bw_list_init(&t->flight);
}

/* Largest frame that both ends can handle on this path. */
static uint32_t bw_path_ceiling(const struct bw_engine *e, const struct bw_path *t)
{
	uint32_t mtu = e->cfg.link_mtu[t->to.link % 8];

	return t->frame_max < mtu ? t->frame_max : mtu;
}

void bw_path_up(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	uint32_t ceiling = bw_path_ceiling(e, t);

	if (t->state == BW_PATH_UP)
		return;
	t->state = BW_PATH_UP;
	t->pto_count = 0;
	t->mtu = ceiling < BW_MTU_BASE ? ceiling : BW_MTU_BASE;
	t->mtu_fail = ceiling + 1;
	t->probe_size = ceiling > t->mtu ? ceiling : 0;
	t->probe_tries = 0;
	t->probe_flying = false;
	bw_path_choose(e, p);
	bw_event_push(e, &t->ev, BW_EV_PATH);
	bw_peer_ready(e, p);
}

void bw_path_choose(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i, best = p->npaths;

	for (i = 0; i < p->npaths; i++) {
		if (p->path[i].state != BW_PATH_UP)
			continue;
		if (best == p->npaths || p->path[i].to.link < p->path[best].to.link)
			best = i;
	}
	if (best != p->npaths)
		p->best = best;
	bw_peer_ready(e, p);
}

void bw_path_rtt(struct bw_path *t, uint64_t sample)
{
	uint64_t diff;

	if (!t->rtt_min || sample < t->rtt_min)
		t->rtt_min = sample ? sample : 1;
	if (!t->srtt) {
		t->srtt = sample ? sample : 1;
		t->rttvar = sample / 2;
		return;
	}
	diff = sample > t->srtt ? sample - t->srtt : t->srtt - sample;
	t->rttvar += diff / 4;
	t->rttvar -= t->rttvar / 4;
	t->srtt += sample / 8;
	t->srtt -= t->srtt / 8;
	if (!t->srtt)
		t->srtt = 1;
}

uint64_t bw_path_pto(const struct bw_engine *e, const struct bw_path *t)
{
	uint64_t srtt = t->srtt ? t->srtt : BW_RTT_INITIAL;
	uint64_t pto = bw_max_u64(2 * srtt, srtt + 4 * t->rttvar);
	uint32_t shift = t->pto_count < 16 ? t->pto_count : 16;

	pto = bw_max_u64(pto, BW_PTO_MIN) + e->cfg.ack_delay_ns;
	return bw_min_u64(pto << shift, bw_max_u64(BW_PTO_MAX, pto));
}

static uint64_t bw_path_cwnd_min(const struct bw_path *t)
{
	return (uint64_t)BW_CWND_PACKETS * t->mtu;
}

void bw_path_cc_ack(struct bw_engine *e, struct bw_path *t, uint64_t bytes, uint64_t pn)
{
	bool slow_start = t->cwnd < t->ssthresh;

	if (!t->limited || pn < t->recovery_pn)
		return;
	if (slow_start && t->rtt_min && t->srtt > 2 * t->rtt_min + 500 * BW_US) {
		/* Queues build up: the delay says so before a loss does. */
		t->ssthresh = t->cwnd;
		slow_start = false;
	}
	t->cwnd += slow_start ? bytes : (uint64_t)t->mtu * bytes / t->cwnd + 1;
	t->cwnd = bw_min_u64(t->cwnd, BW_CWND_MAX);
}

void bw_path_cc_loss(struct bw_engine *e, struct bw_path *t, uint64_t pn)
{
	if (pn < t->recovery_pn)
		return;
	t->undo_cwnd = t->cwnd;
	t->undo_ssthresh = t->ssthresh;
	t->cwnd = bw_max_u64(t->cwnd * 7 / 10, bw_path_cwnd_min(t)); /* factor of RFC 9438 4.6 */
	t->ssthresh = t->cwnd;
	t->recovery_pn = t->pn_next;
	e->count.backoffs++;
}

void bw_path_cc_undo(struct bw_path *t)
{
	if (!t->undo_cwnd)
		return;
	t->cwnd = bw_max_u64(t->cwnd, t->undo_cwnd);
	t->ssthresh = bw_max_u64(t->ssthresh, t->undo_ssthresh);
	t->recovery_pn = 0;
	t->undo_cwnd = 0;
}

void bw_path_cc_marks(struct bw_engine *e, struct bw_path *t, uint16_t marks, uint32_t packets)
{
	int16_t fresh = (int16_t)(marks - t->marks_seen);
	uint32_t share;

	t->round_packets += packets;
	if (fresh > 0) { /* else the frame is older than what is known */
		t->marks_seen = marks;
		t->round_marks += (uint32_t)fresh;
	}
	if (t->acked_max < t->round_pn || !t->round_packets)
		return;
	share = t->round_marks >= t->round_packets ? BW_ALPHA_ONE
						   : t->round_marks * BW_ALPHA_ONE / t->round_packets;
	t->mark_alpha += share / 16;
	t->mark_alpha -= t->mark_alpha / 16; /* gain of RFC 8257 4.2 */
	if (t->round_marks) {
		t->cwnd -= t->cwnd * t->mark_alpha / (2 * BW_ALPHA_ONE);
		t->cwnd = bw_max_u64(t->cwnd, bw_path_cwnd_min(t));
		t->ssthresh = t->cwnd;
		e->count.backoffs++;
	}
	t->round_pn = t->pn_next;
	t->round_packets = 0;
	t->round_marks = 0;
}

/* Halve the interval between what passes and what does not, until it is small. */
static void bw_path_probe_next(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	t->probe_tries = 0;
	t->probe_size = 0;
	if (t->mtu_fail > t->mtu + BW_PROBE_GRAIN)
		t->probe_size = (t->mtu + (t->mtu_fail - t->mtu) / 2) & ~7u;
	else
		bw_event_push(e, &t->ev, BW_EV_PATH);
	bw_peer_ready(e, p);
}

void bw_path_probe_acked(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t size)
{
	t->probe_flying = false;
	if (size <= t->mtu)
		return;
	t->mtu = size;
	bw_path_probe_next(e, p, t);
}

void bw_path_probe_lost(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t size)
{
	t->probe_flying = false;
	bw_peer_ready(e, p);
	if (size != t->probe_size || ++t->probe_tries < BW_PROBE_TRIES)
		return;
	t->mtu_fail = size;
	bw_path_probe_next(e, p, t);
}

/* When several large frames in a row get lost, and none of their size or larger arrives in between,
 * but smaller ones do, the path no longer takes this size (a "black hole", RFC 8899 4.3). */
void bw_path_size_acked(struct bw_path *t, uint32_t size)
{
	if (BW_LIKELY(!t->large_lost))
		return;
	if (size < t->large_least)
		t->small_acked = true;
	else
		t->large_lost = 0;
}

void bw_path_size_lost(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t size)
{
	if (size <= BW_MTU_BASE / 2) { /* then it is not for their size that frames get lost */
		t->large_lost = 0;
		return;
	}
	if (!t->large_lost)
		t->small_acked = false;
	if (!t->large_lost || size < t->large_least)
		t->large_least = size;
	if (++t->large_lost < BW_BLACK_HOLE || !t->small_acked)
		return;
	t->large_lost = 0;
	t->mtu_fail = t->mtu;
	t->mtu = t->mtu > BW_MTU_BASE ? BW_MTU_BASE : BW_FRAME_MIN_MTU;
	bw_event_push(e, &t->ev, BW_EV_PATH);
	bw_path_probe_next(e, p, t);
}
