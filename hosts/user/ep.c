/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One round of an endpoint's progress: receive, deliver, transmit. An empty round costs one look at
 * the ring and one at the local link; the clock is read every few rounds.
 */
#include <unistd.h>

#include "ep.h"

#define BW_EP_BATCH	 64   /* frames taken from one link per round */
#define BW_EP_ROW	 64   /* frames that the engine takes together */
#define BW_EP_LONG	 1024 /* bytes; others may carry on a longer frame */
#define BW_EP_SHARE	 4    /* of the slots of a ring, which hold frames until they are taken */
#define BW_EP_LOOKS_MAX	 4096 /* at the udp sockets, for all that has arrived there */
#define BW_EP_PASSES_MAX 4    /* over all links, until one finds nothing */
#define BW_EP_CROWDED	 8    /* frames per look at how full the ring is */
#define BW_EP_CLOCK	 8    /* empty rounds per reading of the clock */
#define BW_EP_CLOCK_BUSY 64   /* rounds that find something, likewise: else others would starve */
#define BW_EP_CHORES_NS	 (5 * BW_MS)

/* A child of fork() tries to use its parent's endpoint. */
static void bw_ep_complain(const struct bw_ep *ep)
{
	bw_log_once(BW_LOG_ERROR, "inherited",
		    "process %d uses an endpoint that it inherited by fork(); only the process "
		    "that opened it can: fix: open one after fork(), or start the child by exec",
		    (int)getpid());
}

void bw_ep_addr(struct bw_ep *ep, struct bw_addr *addr)
{
	struct bw_addr_fields self = ep->self;

	bw_addr_pack(&self, addr);
}

void bw_ep_lock(struct bw_ep *ep)
{
	bw_lock_take(&ep->lock);
}

void bw_ep_unlock(struct bw_ep *ep)
{
	bw_lock_release(&ep->lock);
}

/* The filter passes other frames only to the endpoint that keeps the watch. */
static bool bw_ep_ours(const struct bw_ep *ep, const struct bw_rx_frame *f)
{
	const struct bw_hdr *h = f->head;

	return f->len >= sizeof(*h) && h->dst_engine == ep->self.engine && h->magic == BW_MAGIC;
}

static BW_WITHIN void bw_ep_foreign(struct bw_ep *ep, const struct bw_rx_frame *f)
{
	bw_watch_frame(ep, f);
	bw_packet_release(f);
}

/* A long frame of ours that was taken, and those of its length that lie behind it, up to one of
 * another: they carry on one another, mostly. They stay in their slots until the engine has all of
 * them, and most of the ring is the kernel's. How many were taken. */
static BW_APART int bw_ep_receive_row(struct bw_ep *ep, struct bw_packet *p,
				      struct bw_rx_frame *first)
{
	struct bw_rx_frame f[BW_EP_ROW];
	uint32_t most = p->slots / BW_EP_SHARE < BW_EP_ROW ? p->slots / BW_EP_SHARE : BW_EP_ROW;
	uint32_t taken = 1, n = 1;

	f[0] = *first;
	for (; taken < most && f[n - 1].len == f->len && bw_packet_ready(p); taken++) {
		f[n].mark = taken % BW_EP_CROWDED ? f[n - 1].mark : bw_packet_crowded(p);
		bw_packet_take(p, &f[n]);
		if (BW_LIKELY(bw_ep_ours(ep, &f[n])))
			n++;
		else
			bw_ep_foreign(ep, &f[n]);
	}
	p->rx_rows += n > 1;
	p->rx_row_frames += n > 1 ? n : 0;
	bw_host_receive_row(ep, f, n);
	for (uint32_t i = 0; i < n; i++)
		bw_packet_release(&f[i]);
	first->mark = f[n - 1].mark;
	return (int)taken;
}

static void bw_ep_receive_packet(struct bw_ep *ep, struct bw_packet *p)
{
	struct bw_rx_frame f;
	int n = 0;

	bw_packet_prefetch(p);
	ep->now = bw_clock_now();
	f.mark = false;
	do {
		/* A look far ahead in the ring misses every cache: only after some frames. */
		if (n % BW_EP_CROWDED == BW_EP_CROWDED - 1)
			f.mark = bw_packet_crowded(p);
		bw_packet_take(p, &f);
		n++;
		if (BW_UNLIKELY(!bw_ep_ours(ep, &f))) {
			bw_ep_foreign(ep, &f);
		} else if (f.len > BW_EP_LONG && bw_packet_ready(p)) {
			n += bw_ep_receive_row(ep, p, &f) - 1;
		} else {
			bw_host_receive(ep, &f);
			bw_packet_release(&f);
		}
	} while (n < BW_EP_BATCH && bw_packet_ready(p));
	ep->handled += (unsigned int)n;
}

void bw_ep_drain(struct bw_ep *ep, struct bw_packet *p)
{
	for (uint32_t n = 0; n < p->slots && bw_packet_ready(p); n += BW_EP_BATCH)
		bw_ep_receive_packet(ep, p);
}

static void bw_ep_receive_refusals(struct bw_ep *ep)
{
	struct bw_refuse_frame refusal;
	struct bw_rx_frame f;

	while (bw_udp_refusal(&ep->udp, ep->self.cluster, &refusal, &f)) {
		bw_host_receive(ep, &f);
		ep->handled++;
	}
}

/* Looks that are rare are at all of its sockets. */
static int bw_ep_look_at_udp(struct bw_ep *ep)
{
	bool rare = !ep->udp_hot && (ep->has_packet || ep->kernel);

	return rare ? bw_udp_receive_any(&ep->udp) : bw_udp_receive(&ep->udp);
}

/* So many datagrams came: do they carry what is said, or does that go by raw frames, and these are
 * probes? */
static bool bw_ep_udp_carries(struct bw_ep *ep, int n)
{
	uint64_t bytes = ep->udp.count.rx_payload + ep->udp.count.tx_payload, raw = 0;
	bool carries;

	for (int i = 0; i < ep->packets; i++)
		raw += ep->packet[i].count.rx_frames;
	if (raw != ep->udp_raw)
		ep->udp_alone = 0;
	if (ep->udp_alone < BW_UDP_ALONE)
		ep->udp_alone += (unsigned int)n;
	carries = bytes != ep->udp_bytes || ep->udp_alone >= BW_UDP_ALONE;
	ep->udp_bytes = bytes;
	ep->udp_raw = raw;
	return carries;
}

/* Those of some frames that are to be taken. */
static BW_APART void bw_ep_take_row(struct bw_ep *ep, const struct bw_rx_frame *f, int n)
{
	if (!ep->kernel) {
		bw_host_receive_row(ep, f, (uint32_t)n);
		return;
	}
	for (int i = 0; i < n; i++) {
		if (bw_kernel_admits(ep, &f[i]))
			bw_host_receive(ep, &f[i]);
	}
}

/* The frames of one look that found some. */
static int bw_ep_take_datagrams(struct bw_ep *ep)
{
	struct bw_rx_frame f[BW_EP_ROW];
	int n = 0, row;

	ep->now = bw_clock_now();
	while ((row = bw_udp_frames(&ep->udp, f, BW_EP_ROW))) {
		if (BW_LIKELY(row == 1 && !ep->kernel))
			bw_host_receive(ep, f);
		else
			bw_ep_take_row(ep, f, row);
		ep->handled += (unsigned int)row;
		n += row;
	}
	if (n && bw_ep_udp_carries(ep, n))
		ep->udp_hot = BW_UDP_HOT;
	return n;
}

/* Who sleeps has to hear of sockets that were connected since there were so many. */
static void bw_ep_udp_connected(struct bw_ep *ep, uint64_t connects)
{
	if (BW_UNLIKELY(connects != ep->udp.connects))
		bw_wait_udp(ep);
}

/* Take all that has arrived by the engine's links. */
static void bw_ep_receive_all(struct bw_ep *ep)
{
	uint64_t connects = ep->udp.connects;
	bool refused = false;
	int n = 1, looks = 0;

	for (int i = 0; i < ep->packets; i++)
		bw_ep_drain(ep, &ep->packet[i]);
	while (ep->has_udp && n && looks++ < BW_EP_LOOKS_MAX) {
		n = bw_udp_receive_any(&ep->udp);
		if (n)
			bw_ep_take_datagrams(ep);
		refused |= n < 0;
	}
	if (refused)
		ep->udp.batch->refused = true; /* the next round takes the refusals */
	bw_ep_udp_connected(ep, connects);
}

/* Looking at the udp socket costs a system call: at every time only while datagrams come, or while
 * nothing comes by another link. */
static bool bw_ep_udp_always(const struct bw_ep *ep)
{
	return ep->udp_hot || ep->udp.batch->refused ||
	       !(ep->has_packet || ep->kernel || ep->local_hot);
}

static void bw_ep_receive_udp(struct bw_ep *ep)
{
	uint64_t connects = ep->udp.connects;
	int n, all = 0;

	do {
		n = bw_ep_look_at_udp(ep);
		if (n)
			all += bw_ep_take_datagrams(ep);
	} while (n == BW_UDP_FRAMES && all < BW_EP_BATCH);
	/* Looks become rare from when they are no longer made at every time: two that exchange by
	 * udp, of whom one was late once, must not find each other's messages late for ever. */
	if (all || bw_ep_udp_always(ep))
		ep->udp_pause = BW_UDP_PAUSE_NS;
	else
		ep->udp_pause = bw_max_u64(BW_UDP_PAUSE_NS,
					   bw_min_u64(2 * ep->udp_pause, BW_UDP_PAUSE_MAX_NS));
	if (n < 0)
		bw_ep_receive_refusals(ep);
	bw_ep_udp_connected(ep, connects);
}

static bool bw_ep_udp_due(struct bw_ep *ep)
{
	if (!bw_ep_udp_always(ep) && ep->now - ep->udp_seen < ep->udp_pause)
		return false;
	ep->udp_hot -= ep->udp_hot != 0;
	ep->udp_seen = ep->now;
	return true;
}

/* What is not urgent: the watch, interfaces that went down, and links that should pass but do not.
 */
static void bw_ep_chores(struct bw_ep *ep)
{
	ep->chores_at = ep->now + BW_EP_CHORES_NS;
	if (ep->now >= ep->board.at)
		bw_publish(ep);
	if (BW_UNLIKELY(ep->borrowed)) { /* before it is free, and taken for a dead one's */
		ep->number = bw_local_claim(ep->self.engine);
		ep->borrowed = ep->number < 0;
	}
	if (BW_UNLIKELY(ep->remotes.gone))
		bw_remote_bury(ep);
	bw_host_shrink(ep);
	if (!ep->has_packet)
		return;
	for (int i = 0; i < ep->packets; i++)
		bw_packet_clear_error(&ep->packet[i]);
	bw_fanout_visit(ep);
	bw_watch_visit(ep);
	bw_remote_check_links(ep);
}

/* Events that came of no frame. Once they are taken the engine may want something else. */
static void bw_ep_events(struct bw_ep *ep)
{
	bw_host_events(ep);
	ep->given = true;
}

static void bw_ep_poll_local(struct bw_ep *ep)
{
	unsigned int n = (unsigned int)bw_local_poll(ep->local, ep->now, false);

	ep->handled += n;
	if (n)
		ep->local_hot = BW_UDP_HOT;
	else
		ep->local_hot -= ep->local_hot != 0;
}

/* Who is about to be gone may have said something before by another link, or while this process had
 * no processor; and the kernel tells of a closed port before it gives what came from there. */
static void bw_ep_last_words(struct bw_ep *ep)
{
	uint64_t before = ep->handled - 1;
	int passes = 0;

	if (BW_LIKELY(!bw_host_parting(ep)))
		return;
	while (ep->handled != before && passes++ < BW_EP_PASSES_MAX) {
		before = ep->handled;
		bw_ep_receive_all(ep);
	}
	ep->looked = true;
}

/* A round has found something, or not: is the clock to be read? */
static void bw_ep_count(struct bw_ep *ep, bool found)
{
	if (found) {
		ep->idle = ep->idle_timed = 0;
		if (++ep->untimed < BW_EP_CLOCK_BUSY)
			return;
	} else {
		if (++ep->idle - ep->idle_timed < BW_EP_CLOCK)
			return;
		ep->idle_timed = ep->idle;
	}
	ep->untimed = 0;
	ep->now = bw_clock_now();
}

int bw_ep_round(struct bw_ep *ep)
{
	uint64_t before = ep->handled;

	if (BW_UNLIKELY(ep->helper.asleep))
		bw_helper_rouse(ep);
	for (int i = 0; i < ep->packets; i++) {
		if (bw_packet_ready(&ep->packet[i]))
			bw_ep_receive_packet(ep, &ep->packet[i]);
	}
	if (ep->has_udp && bw_ep_udp_due(ep))
		bw_ep_receive_udp(ep);
	if (ep->kernel)
		ep->handled += (unsigned int)bw_kernel_poll(ep);
	if (ep->local)
		bw_ep_poll_local(ep);
	bw_ep_count(ep, ep->handled != before);
	if (ep->given || ep->now >= ep->deadline) {
		bw_ep_last_words(ep);
		bw_host_transmit(ep);
		ep->looked = false;
	}
	if (ep->now >= ep->chores_at)
		bw_ep_chores(ep);
	if (ep->dirty)
		bw_ep_events(ep);
	return (int)(ep->handled - before);
}

/* A round has found nothing in this turn of the lock, which ends now. Would the next one do nothing
 * unless a frame comes by a ring, or a record from a peer in shared memory? Then looks will do. */
static void bw_ep_rest(struct bw_ep *ep, uint32_t turn)
{
	struct bw_local_sight sight[BW_LOOK_PEERS];
	int peers = 0;

	if (bw_lock_turn(&ep->lock) != turn || ep->lock.depth != 1 || ep->kernel || ep->stuck ||
	    ep->given || ep->dirty || (ep->has_udp && bw_ep_udp_always(ep)))
		return;
	if (ep->local)
		peers = bw_local_sights(ep->local, sight, BW_LOOK_PEERS);
	if (peers < 0 || !(ep->packets || peers))
		return;
	bw_look_allow(&ep->look, &ep->lock, ep->packet, ep->packets, sight, peers);
}

/* A sleep on all descriptors has ended: the kernel looked at those meanwhile of which looks cost a
 * system call. Mostly it was none of them. */
void bw_ep_slept(struct bw_ep *ep)
{
	ep->now = bw_clock_now();
	ep->udp_seen = ep->now;
	if (ep->local)
		bw_local_looked(ep->local, ep->now);
}

/* But nothing has come by the others. */
static void bw_ep_expect(struct bw_ep *ep)
{
	ep->udp_pause = 0;
	if (ep->local)
		bw_local_expect(ep->local);
}

int bw_progress(struct bw_ep *ep)
{
	bool armed;
	uint32_t turn;
	int n = 0;

	if (bw_look_empty(&ep->look, &ep->lock, ep->packets))
		return 0;
	bw_lock_take(&ep->lock);
	turn = bw_lock_turn(&ep->lock);
	if (!ep->dead && !ep->dispatching) {
		ep->rounds++;
		armed = ep->armed;
		ep->armed = false;
		if (armed)
			bw_ep_slept(ep);
		ep->idle += bw_look_made(&ep->look);
		n = bw_ep_round(ep);
		if (!n && armed) {
			bw_ep_expect(ep);
			n = bw_ep_round(ep);
		}
		if (!n && bw_wait_yield(ep))
			n = bw_ep_round(ep);
		if (!n)
			bw_ep_rest(ep, turn);
		if (BW_UNLIKELY(armed || atomic_load_explicit(&ep->sleepers, memory_order_relaxed)))
			bw_wait_leave(ep, n != 0, armed);
	} else if (ep->inherited) {
		bw_ep_complain(ep);
	}
	bw_lock_release(&ep->lock);
	return n;
}
