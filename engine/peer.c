/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Life of a peer's state: made on first contact, scheduled by one deadline that stands for all its
 * timers, and taken down with every operation that hangs on it.
 */
#include "contact.h"
#include "credit.h"
#include "duplex.h"
#include "event.h"
#include "keys.h"
#include "late.h"
#include "loss.h"
#include "named.h"
#include "path.h"
#include "peer.h"
#include "pull.h"
#include "recv.h"
#include "reliable.h"
#include "starve.h"
#include "sweep.h"
#include "timer.h"

static void bw_peer_init_lists(struct bw_peer *p)
{
	struct bw_list *lists[] = {
		&p->txmsgs,	&p->controls,	&p->pulls, &p->given_up, &p->regions,  &p->serves,
		&p->serving,	&p->again,	&p->all,   &p->ready,	 &p->app.tx,   &p->app.rx,
		&p->control.tx, &p->control.rx, &p->spare, &p->caller,	 &p->namesake, &p->given};
	uint32_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		bw_list_init(lists[i]);
}

void bw_peer_draw(struct bw_engine *e, struct bw_peer *p)
{
	p->wire_token = bw_nonce(e);
	if (e->cfg.keyed)
		p->keys->random = bw_ops(e)->random(e->host);
}

struct bw_peer *bw_peer_new(struct bw_engine *e)
{
	struct bw_peer *p = bw_slab_alloc(&e->peers_slab);

	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->path[0] = bw_path_new(e, p, 0);
	if (e->cfg.keyed)
		p->keys = bw_slab_alloc(&e->keys);
	if (p->path[0] && (p->keys || !e->cfg.keyed))
		p->handle = bw_table_add(&e->peer_table, p, bw_nonce(e));
	if (!p->handle) {
		if (p->path[0])
			bw_slab_free(&e->paths, p->path[0]);
		if (p->keys)
			bw_slab_free(&e->keys, p->keys);
		bw_slab_free(&e->peers_slab, p);
		return NULL;
	}
	if (p->keys)
		memset(p->keys, 0, sizeof(*p->keys));
	bw_peer_init_lists(p);
	p->wire = p->handle;
	bw_peer_draw(e, p);
	p->control.local_ep = p->control.remote_ep = BW_EP_CONTROL;
	p->ping_at = BW_NEVER;
	p->proven = e->now;
	p->deadline = BW_NEVER;
	bw_credit_start(e, p);
	bw_list_add_before(&e->peers, &p->all);
	e->count.peers++;
	bw_sweep_join(e);
	return p;
}

struct bw_peer *bw_peer_get(struct bw_engine *e, uint32_t handle)
{
	struct bw_peer *p = bw_table_get(&e->peer_table, handle);

	return p && p->state != BW_PEER_DOWN ? p : NULL;
}

struct bw_path *bw_peer_path(struct bw_peer *p, uint8_t remote_no)
{
	uint8_t i;

	for (i = 0; i < p->npaths; i++)
		if (p->path[i]->remote_no == remote_no)
			return p->path[i];
	return NULL;
}

static bool bw_flow_joins(const struct bw_flow *f, uint16_t local_ep, uint16_t remote_ep)
{
	return f->local_ep == local_ep && f->remote_ep == remote_ep;
}

/* The peer chooses the endpoints: a keyed hash keeps it from choosing the bucket. The peer's handle
 * has no part in it: another one may take that over (named.c). */
static uint16_t bw_flow_bucket(struct bw_engine *e, uint16_t local_ep, uint16_t remote_ep)
{
	uint64_t key = (uint32_t)local_ep << 16 | remote_ep;

	return bw_ops(e)->siphash(e->secret, &key, sizeof(key)) % BW_FLOW_BUCKETS;
}

static struct bw_flow *bw_flow_hashed(struct bw_engine *e, struct bw_peer *p, uint16_t local_ep,
				      uint16_t remote_ep)
{
	struct bw_flow *f = p->flow_table->latest;
	uint16_t bucket;

	if (bw_flow_joins(f, local_ep, remote_ep))
		return f;
	bucket = bw_flow_bucket(e, local_ep, remote_ep);
	for (f = p->flow_table->bucket[bucket]; f && f->bucket == bucket; f = f->next) {
		e->steps++;
		if (bw_flow_joins(f, local_ep, remote_ep))
			return p->flow_table->latest = f;
	}
	return NULL;
}

BW_APART struct bw_flow *bw_peer_flow_seek(struct bw_engine *e, struct bw_peer *p,
					   uint16_t local_ep, uint16_t remote_ep)
{
	struct bw_flow *f;

	if (p->flow_table)
		return bw_flow_hashed(e, p, local_ep, remote_ep);
	for (f = p->app.next; f; f = f->next) {
		e->steps++;
		if (bw_flow_joins(f, local_ep, remote_ep))
			return f;
	}
	return NULL;
}

/* Into the list, beside those of its bucket. */
static void bw_flow_enter(struct bw_engine *e, struct bw_peer *p, struct bw_flow *f)
{
	struct bw_flow **first, **at = &p->app.next;

	if (p->flow_table) {
		f->bucket = bw_flow_bucket(e, f->local_ep, f->remote_ep);
		first = &p->flow_table->bucket[f->bucket];
		if (*first)
			at = &(*first)->next;
		else
			*first = f;
		p->flow_table->latest = f;
		if (!bw_list_empty(&f->tx))
			bw_flow_sends(p, f);
	}
	f->next = *at;
	*at = f;
}

/* Can one more be found in few steps? If not, memory is short. */
static bool bw_flow_room(struct bw_engine *e, struct bw_peer *p)
{
	struct bw_flow *f, *next;

	if (p->flows < BW_FLOWS_LISTED || p->flow_table)
		return true;
	p->flow_table = bw_slab_alloc(&e->flow_tables);
	if (!p->flow_table)
		return false;
	memset(p->flow_table, 0, sizeof(*p->flow_table));
	f = p->app.next;
	p->app.next = NULL;
	for (; f; f = next) {
		next = f->next;
		bw_flow_enter(e, p, f);
	}
	return true;
}

struct bw_flow *bw_peer_flow(struct bw_engine *e, struct bw_peer *p, uint16_t local_ep,
			     uint16_t remote_ep)
{
	struct bw_flow *f = bw_peer_flow_find(e, p, local_ep, remote_ep);

	if (f)
		return f;
	f = bw_flow_room(e, p) ? bw_slab_alloc(&e->flows) : NULL;
	if (!f)
		return NULL;
	memset(f, 0, sizeof(*f));
	f->local_ep = local_ep;
	f->remote_ep = remote_ep;
	bw_list_init(&f->tx);
	bw_list_init(&f->rx);
	bw_flow_enter(e, p, f);
	p->flows++;
	return f;
}

void bw_peer_ready(struct bw_engine *e, struct bw_peer *p)
{
	if (p->is_ready || p->gone_at || p->state == BW_PEER_DOWN)
		return;
	p->is_ready = true;
	p->quantum = BW_QUANTUM;
	bw_list_add_before(&e->ready, &p->ready);
}

void bw_peer_first(struct bw_engine *e, struct bw_peer *p)
{
	bw_peer_ready(e, p);
	if (!p->is_ready)
		return;
	bw_list_del(&p->ready);
	bw_list_add_before(e->ready.next, &p->ready);
}

bool bw_peer_idle(const struct bw_peer *p)
{
	uint8_t i;

	if (p->unsent || !bw_list_empty(&p->again) || !bw_list_empty(&p->control.tx) ||
	    !bw_list_empty(&p->serving) || p->aside || p->ping_due || p->striped)
		return false;
	for (i = 0; i < p->npaths; i++)
		if (p->path[i]->rx.ack_now || p->path[i]->hello.due || p->path[i]->pmtu.probe ||
		    p->path[i]->ask)
			return false;
	return true;
}

void bw_peer_proven(struct bw_engine *e, struct bw_peer *p)
{
	p->proven = e->now;
	if (p->ping_pause)
		p->ping_at = e->now + p->ping_pause;
}

void bw_peer_progress(struct bw_peer *p)
{
	if (p->ping_pause != p->ping_first)
		p->ping_pause = 0;
}

static bool bw_peer_expects(const struct bw_peer *p)
{
	return !bw_list_empty(&p->pulls) || p->credit_stalled;
}

bool bw_peer_waits(const struct bw_peer *p)
{
	uint8_t i;

	if (!p->confirmed || bw_peer_expects(p) || !bw_list_empty(&p->again))
		return true;
	for (i = 0; i < p->npaths; i++)
		if (!bw_list_empty(&p->path[i]->flight))
			return true;
	return false;
}

/* The longest pause between questions: an answer must come well before the peer is given up. */
static uint64_t bw_peer_ping_max(const struct bw_engine *e, bool expects)
{
	return bw_min_u64(e->cfg.dead_ns / 4, expects ? BW_PING_MAX : BW_NEVER);
}

/* When to ask a peer whether it lives: one that is watched, or lets us wait. The longer it answers
 * without giving what is expected, the rarer. */
static void bw_peer_plan_ping(struct bw_engine *e, struct bw_peer *p)
{
	bool expects = bw_peer_expects(p);

	if (p->state != BW_PEER_UP || (!expects && !p->watch)) {
		p->ping_at = BW_NEVER;
		p->ping_pause = 0;
		return;
	}
	if (p->ping_pause && p->ping_expects == expects)
		return;
	p->ping_expects = expects;
	p->ping_pause = bw_peer_ping_max(e, expects);
	if (expects)
		p->ping_pause =
			bw_min_u64(p->ping_pause,
				   bw_max_u64(4 * bw_path_pto(e, p->path[p->best]), BW_PING_MIN));
	p->ping_first = p->ping_pause;
	p->ping_at = e->now + p->ping_pause;
}

static uint64_t bw_path_deadline(const struct bw_engine *e, const struct bw_path *t)
{
	uint64_t at;

	if (t->state == BW_PATH_TRYING)
		return bw_min_u64(t->hello.next, t->rx.ack_at);
	if (t->state != BW_PATH_UP)
		return BW_NEVER;
	at = bw_min_u64(bw_min_u64(t->rx.ack_at, t->loss_at), t->cc.pace.until);
	if (!bw_list_empty(&t->flight))
		at = bw_min_u64(at, t->last_sent + bw_path_pto(e, t));
	return at;
}

/* The same of a peer's paths before it is confirmed. In doubt nothing is asked on those that it
 * came by. */
static uint64_t bw_peer_unconfirmed_deadline(const struct bw_engine *e, const struct bw_peer *p)
{
	uint64_t at = p->doubted || p->denied_as ? p->patience : BW_NEVER;
	uint8_t i;

	for (i = 0; i < p->npaths; i++)
		if (!p->doubted || p->path[i]->state == BW_PATH_TRYING)
			at = bw_min_u64(at, bw_path_deadline(e, p->path[i]));
	return at;
}

static BW_APART void bw_peer_excuse(struct bw_engine *e, struct bw_peer *p, uint64_t late)
{
	p->deadline = e->now; /* once for each such time */
	/* the first peer of each such time tells it */
	if ((p->waiting_since || p->arriving) &&
	    (!e->late || e->now - e->late >= e->cfg.dead_ns / 4)) {
		e->late = e->now;
		if (bw_ops(e)->excused)
			bw_ops(e)->excused(e->host, p->handle, late);
	}
	if (p->waiting_since)
		p->waiting_since =
			bw_min_u64(bw_max_u64(p->proven, p->waiting_since) + late, e->now);
	p->arrived = bw_min_u64(p->arrived + late, e->now);
}

/* A peer is looked at this late after its deadline only if the host was stopped, or its clock
 * jumped: nobody was asked meanwhile, and no answer was read. Such a time says nothing about the
 * peer. To be called before its deadline is set anew, by its timer or by a frame that was read
 * first. */
static inline void bw_peer_excuse_late(struct bw_engine *e, struct bw_peer *p)
{
	uint64_t late = e->now - p->deadline;

	if (BW_UNLIKELY(e->now > p->deadline && late >= e->cfg.dead_ns / 4))
		bw_peer_excuse(e, p, late);
}

/* Looked at now and then: how late that is tells of a host that stood still, where the end of the
 * time would be reached by then. Who is waited for is asked more often anyway. */
static BW_APART uint64_t bw_peer_arriving_deadline(const struct bw_engine *e,
						   const struct bw_peer *p)
{
	return bw_min_u64(p->arrived + e->cfg.dead_ns, e->now + e->cfg.dead_ns / 8);
}

void bw_peer_schedule(struct bw_engine *e, struct bw_peer *p)
{
	uint64_t at;
	uint8_t i;
	bool waits;

	if (p->state == BW_PEER_DOWN)
		return;
	if (p->gone_at) {
		bw_timer_set(e, p, bw_max_u64(p->gone_at, e->now + 1));
		return;
	}
	waits = bw_peer_waits(p);
	if (!waits)
		p->waiting_since = 0;
	bw_peer_excuse_late(e, p);
	bw_peer_plan_ping(e, p);
	at = p->ping_at;
	if (BW_LIKELY(p->confirmed))
		for (i = 0; i < p->npaths; i++)
			at = bw_min_u64(at, bw_path_deadline(e, p->path[i]));
	else
		at = bw_min_u64(at, bw_peer_unconfirmed_deadline(e, p));
	if (waits) {
		if (!p->waiting_since)
			p->waiting_since = e->now ? e->now : 1;
		at = bw_min_u64(at, bw_max_u64(p->proven, p->waiting_since) + e->cfg.dead_ns);
	}
	if (BW_UNLIKELY(p->arriving))
		at = bw_min_u64(at, bw_peer_arriving_deadline(e, p));
	/* Never now: a timer whose work waits for something else must not be run again at once. */
	bw_timer_set(e, p, bw_max_u64(at, e->now + 1));
}

void bw_peer_part(struct bw_engine *e, struct bw_peer *p, int32_t status)
{
	if (!p->gone_at) {
		p->gone_at = e->now + BW_BYE_GRACE;
		e->parting++;
		bw_list_del(&p->ready); /* nobody is there to send to */
		p->is_ready = false;
		bw_peer_schedule(e, p);
	}
	p->gone_as = status;
}

void bw_peer_sooner(struct bw_engine *e, struct bw_peer *p, uint64_t at)
{
	if (!p->heap_rank || at < p->deadline)
		bw_timer_set(e, p, bw_max_u64(at, e->now + 1));
}

/* Up to a quarter of the pause, by incarnation. Two engines that start again at the same time would
 * else repeat their HELLOs in step for ever; each that crosses another makes both answers void. */
static uint64_t bw_hello_lag(const struct bw_engine *e, uint64_t pause)
{
	return pause / 4 * ((e->cfg.incarnation * 2654435761u) >> 24) / 256;
}

static void bw_path_timers(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	bool wanted = !p->confirmed || (p->stripes && !bw_list_empty(&p->serves));
	uint64_t longest = wanted ? BW_HELLO_LAST : BW_HELLO_RETRY;

	if (t->state == BW_PATH_TRYING && e->now >= t->hello.next) {
		t->hello.due = true;
		t->hello.repeated = true;
		bw_cookies_again(&t->hello.cookies);
		t->hello.pause = bw_min_u64(2 * t->hello.pause, longest);
		t->hello.next = e->now + t->hello.pause + bw_hello_lag(e, t->hello.pause);
	}
	if (e->now >= t->rx.ack_at) { /* the peer may use a path that we do not */
		t->rx.ack_now = true;
		t->rx.ack_at = BW_NEVER;
	}
	if (t->state != BW_PATH_UP || p->doubted)
		return;
	if (e->now >= t->cc.pace.until)
		t->cc.pace.until = BW_NEVER; /* the peer is ready now */
	if (e->now >= t->loss_at)
		bw_loss_detect(e, p, t);
	if (!bw_list_empty(&t->flight) && e->now >= t->last_sent + bw_path_pto(e, t))
		bw_loss_probe(e, p, t);
}

void bw_peer_timers(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i;

	if (p->gone_at) {
		if (e->now >= p->gone_at)
			bw_peer_down(e, p, p->gone_as);
		else
			bw_peer_schedule(e, p);
		return;
	}
	bw_peer_excuse_late(e, p);
	if (p->waiting_since && bw_peer_waits(p) &&
	    e->now >= bw_max_u64(p->proven, p->waiting_since) + e->cfg.dead_ns) {
		bw_peer_down(e, p, BW_DOWN_TIMEOUT);
		return;
	}
	if (p->arriving && e->now >= p->arrived + e->cfg.dead_ns) {
		/* who begins a message sends all of it */
		if (!p->doubted || bw_named_contradicted(e, p) != -BW_DROP_EARLY)
			bw_peer_down(e, p, BW_DOWN_TIMEOUT);
		return;
	}
	if (!p->confirmed && p->denied_as && e->now >= p->patience) {
		bw_peer_down(e, p,
			     p->denied_as == BW_REFUSAL_VERSION ? BW_DOWN_VERSION : BW_DOWN_KEY);
		return;
	}
	if (p->doubted && e->now >= p->patience)
		bw_named_trust(e, p);
	for (i = 0; i < p->npaths; i++)
		bw_path_timers(e, p, p->path[i]);
	if (e->now >= p->ping_at) {
		p->ping_due = true;
		p->ping_pause = bw_min_u64(2 * p->ping_pause, bw_peer_ping_max(e, p->ping_expects));
		p->ping_at = e->now + p->ping_pause;
	}
	bw_peer_ready(e, p);
	bw_peer_schedule(e, p);
}

/* Records of a peer, of one kind; NULL: it has none. */
static struct bw_list *bw_peer_records(struct bw_peer *p)
{
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		if (!bw_list_empty(&p->path[i]->flight))
			return &p->path[i]->flight;
		if (!bw_list_empty(&p->path[i]->share))
			return &p->path[i]->share;
	}
	if (!bw_list_empty(&p->again))
		return &bw_first(&p->again, struct bw_again, turn)->ranges;
	return bw_list_empty(&p->spare) ? NULL : &p->spare;
}

static void bw_peer_end_send(struct bw_engine *e, struct bw_peer *p)
{
	struct bw_txmsg *m = bw_first(&p->txmsgs, struct bw_txmsg, all);

	bw_list_del(&m->all);
	bw_list_del(&m->queue);
	p->unsent -= !m->sent;
	m->status = p->down_status;
	e->work--;
	bw_event_push(e, &m->ev, BW_EV_SENT);
}

static void bw_peer_end_control(struct bw_engine *e, struct bw_peer *p)
{
	struct bw_txmsg *m = bw_first(&p->controls, struct bw_txmsg, all);

	bw_list_del(&m->all);
	bw_list_del(&m->queue);
	if (m->pull)
		m->pull->request = NULL;
	bw_slab_free(&e->txmsgs, m);
}

/* A message that waits in a flow is dropped, or a flow in which none does. False: there is neither,
 * but for the flow that is a part of the peer. */
static bool bw_peer_end_flow(struct bw_engine *e, struct bw_peer *p)
{
	struct bw_flow *f = p->app.next ? p->app.next : &p->app;

	if (bw_flow_drop_one(e, f))
		return true;
	if (f == &p->app)
		return false;
	p->app.next = f->next;
	bw_slab_free(&e->flows, f);
	return true;
}

/* One thing that a lost peer has left ends: first what owns ranges, then their owners, and flows
 * behind all that lies in their lists. False: there is nothing. */
static bool bw_peer_shed_one(struct bw_engine *e, struct bw_peer *p)
{
	struct bw_list *records = bw_peer_records(p);

	if (records)
		bw_record_forget(e, bw_first(records, struct bw_record, list));
	else if (!bw_list_empty(&p->serves))
		bw_serve_end(e, bw_first(&p->serves, struct bw_serve, all));
	else if (!bw_list_empty(&p->txmsgs))
		bw_peer_end_send(e, p);
	else if (!bw_list_empty(&p->controls))
		bw_peer_end_control(e, p);
	else if (!bw_list_empty(&p->pulls))
		bw_pull_end(e, bw_first(&p->pulls, struct bw_pull, all), p->down_status);
	else if (!bw_list_empty(&p->given_up))
		bw_pull_end(e, bw_first(&p->given_up, struct bw_pull, all), p->down_status);
	else if (!bw_list_empty(&p->regions))
		bw_region_end(e, bw_first(&p->regions, struct bw_region, all), p->down_status);
	else
		return bw_peer_end_flow(e, p);
	return true;
}

bool bw_peer_shed(struct bw_engine *e, struct bw_peer *p)
{
	uint32_t left;

	for (left = e->cfg.piece; left && !e->ev_first; left--, e->looks++)
		if (!bw_peer_shed_one(e, p))
			return true;
	return false;
}

void bw_peer_down(struct bw_engine *e, struct bw_peer *p, int32_t status)
{
	uint8_t i;

	if (p->state == BW_PEER_DOWN)
		return;
	bw_timer_remove(e, p);
	bw_list_del(&p->ready);
	bw_list_del(&p->caller);
	bw_list_del(&p->namesake);
	bw_list_del(&p->given);
	bw_contact_leave(p);
	p->is_ready = false;
	e->parting -= p->gone_at != 0;
	p->state = BW_PEER_DOWN;
	p->down_status = status;
	for (i = 0; i < p->npaths; i++)
		bw_duplex_landed(e, p->path[i], p->path[i]->inflight);
	p->aside = 0;
	bw_late_ended(e, p, NULL);
	bw_sweep_leave(e, p);
	bw_starve_leave(e, p);
	bw_list_del(&p->all);
	e->count.peers--;
	bw_event_push(e, &p->ev_down, BW_EV_PEER_DOWN);
}

void bw_peer_free(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i;

	if (p->flow_table)
		bw_slab_free(&e->flow_tables, p->flow_table);
	if (p->wire != p->handle)
		bw_table_remove(&e->peer_table, p->wire);
	bw_table_remove(&e->peer_table, p->handle);
	for (i = 0; i < BW_PATHS_MAX && p->path[i]; i++)
		bw_slab_free(&e->paths, p->path[i]);
	if (p->keys) {
		memset(p->keys, 0, sizeof(*p->keys));
		bw_slab_free(&e->keys, p->keys);
	}
	bw_slab_free(&e->peers_slab, p);
}
