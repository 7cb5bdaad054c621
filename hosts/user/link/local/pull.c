/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fetching long messages and reading registered memory. Where cross-memory attach works and is the
 * faster way (way.h) the data is read straight from the peer's memory, a piece per poll; else the
 * peer is asked to send it through the ring. A pull is in one place at a time: queued, asked
 * (waiting for the peer) or direct (being read).
 */
#include "clock.h"
#include "link/local/impl.h"

#include <stdlib.h>

#define DIRECT_BUDGET (256u << 10) /* bytes read per peer and poll, 25 to 100 us */

static void enqueue(struct bw_local_queue *q, struct bw_local_pull *x)
{
	x->next = NULL;
	*q->last = x;
	q->last = &x->next;
}

static struct bw_local_pull *dequeue(struct bw_local_queue *q)
{
	struct bw_local_pull *x = q->first;

	q->first = x->next;
	if (!q->first)
		q->last = &q->first;
	return x;
}

/* Take an envelope for ourselves; false if its owner has retracted it. */
static bool envelope_take(struct bw_local_peer *p, uint32_t slot)
{
	uint8_t expected = BW_LOCAL_OFFERED;

	return __atomic_compare_exchange_n(&p->rx.states[slot], &expected, BW_LOCAL_TAKEN, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* How many of its kind x belongs to. */
static uint32_t *count_of(struct bw_local_peer *p, const struct bw_local_pull *x)
{
	return x->slot == BW_LOCAL_NO_SLOT ? &p->reads : &p->pulls;
}

static int start(struct bw_local_peer *p, const struct bw_local_pull *what)
{
	struct bw_local_pull *x;

	if (p->down)
		return p->down;
	if (p->reads == BW_LOCAL_READS_MAX && what->slot == BW_LOCAL_NO_SLOT)
		return -EAGAIN;
	if (p->pulls == BW_LOCAL_SLOTS_USED && what->slot != BW_LOCAL_NO_SLOT) {
		/* It has offered more than an honest peer has slots for. */
		bw_local_peer_fail(p, -EPROTO);
		return -EPROTO;
	}
	x = malloc(sizeof(*x));
	if (!x)
		return -ENOMEM;
	*x = *what;
	++*count_of(p, x);
	enqueue(&p->queued, x);
	p->work = true;
	bw_local_peer_heat(p);
	return 0;
}

/* Nothing is to be fetched, and nobody to be told: that need not be remembered. */
static int discard(struct bw_local_peer *p, uint32_t slot)
{
	if (p->down)
		return p->down;
	envelope_take(p, slot); /* the peer wants to hear of one that it has retracted as well */
	bw_local_release(p, slot, 0);
	return p->down;
}

int bw_local_pull(struct bw_local_peer *p, const struct bw_local_envelope *e, void *buf,
		  uint64_t len, void *op)
{
	struct bw_local_pull what = {
		.op = op,
		.buf = buf,
		.len = len < e->len ? len : e->len,
		.addr = e->addr,
		.slot = e->slot,
	};

	if (e->slot >= BW_LOCAL_NO_SLOT)
		return -EINVAL;
	return len || op ? start(p, &what) : discard(p, e->slot);
}

int bw_local_read(struct bw_local_peer *p, uint64_t key, uint64_t off, void *buf, uint64_t len,
		  void *op)
{
	struct bw_local_pull what = {
		.op = op,
		.buf = buf,
		.len = len,
		.key = key,
		.off = off,
		.slot = BW_LOCAL_NO_SLOT,
	};

	return start(p, &what);
}

static struct bw_local_pull *find_queued(const struct bw_local_queue *q, const void *op)
{
	struct bw_local_pull *x = q->first;

	while (x && x->op != op)
		x = x->next;
	return x;
}

static struct bw_local_pull *find(struct bw_local_peer *p, const void *op)
{
	struct bw_local_pull *x = find_queued(&p->queued, op);

	if (!x)
		x = find_queued(&p->direct, op);
	for (uint32_t id = 0; !x && id < BW_LOCAL_WINDOW; id++)
		if (p->asked[id] && p->asked[id]->op == op)
			x = p->asked[id];
	return x;
}

/* It ends in its place, when its turn comes or what it asked for: only then is its owner released.
 * Of a peer that is down all ends with it. */
int bw_local_cancel(struct bw_local_peer *p, void *op)
{
	struct bw_local_pull *x = p->down ? NULL : find(p, op);
	int error = x ? bw_local_end_later(p, op, -ECANCELED, true) : -ENOENT;

	if (error)
		return error;
	x->op = NULL;
	x->given_up = true;
	p->work = true;
	bw_local_peer_heat(p);
	return 0;
}

/* x is in no queue any more: release its owner and report it. */
static void finish(struct bw_local_peer *p, struct bw_local_pull *x, int status)
{
	struct bw_local *l = p->link;
	uint64_t len = status == 0 ? x->len : 0;
	void *op = x->op;

	if (x->slot != BW_LOCAL_NO_SLOT)
		bw_local_release(p, x->slot, len);
	l->counters.rx_payload += len;
	--*count_of(p, x);
	free(x);
	if (op)
		l->handlers->pulled(l->arg, p->ctx, op, status, len);
}

/* Ask the peer to send the data, or for leave to read it. The caller saw that the window has room.
 */
static void ask(struct bw_local_peer *p, struct bw_local_pull *x, bool address_will_do)
{
	uint32_t id = 0;

	while (p->asked[id])
		id++;
	p->asked[id] = x;
	p->asked_count++;
	x->asked_at = bw_clock_now();

	struct bw_local_note n = {
		.what = BW_LOCAL_WHAT(BW_LOCAL_PULL, 0, x->slot),
		.a = x->len,
		.b = id,
	};

	if (x->slot == BW_LOCAL_NO_SLOT) {
		n.what = BW_LOCAL_WHAT(BW_LOCAL_READ, address_will_do, BW_LOCAL_NO_SLOT);
		n.a = x->key;
		n.c = x->off;
		n.d = x->len;
		n.wide = true;
	}
	bw_local_note(p, &n);
}

/* The pull with this id, taken out of the window if `end`; NULL (and the peer is down) for a lie.
 */
static struct bw_local_pull *asked(struct bw_local_peer *p, uint64_t id, bool end)
{
	struct bw_local_pull *x = id < BW_LOCAL_WINDOW ? p->asked[id] : NULL;

	if (!x) {
		bw_local_peer_fail(p, -EPROTO);
		return NULL;
	}
	if (end) {
		p->asked[id] = NULL;
		p->asked_count--;
		p->work = true;
	}
	return x;
}

/* Is x to be read from the peer's memory? */
static bool goes_direct(struct bw_local_peer *p, const struct bw_local_pull *x)
{
	if (p->cma != BW_LOCAL_CMA_WORKS)
		return false;
	return p->self || p->link->cma_always ||
	       bw_local_way_choose(&p->way, x->len) == BW_LOCAL_WAY_DIRECT;
}

/* The first queued pull, which has something to fetch, goes its way; false if it has to wait. */
static bool go(struct bw_local_peer *p)
{
	struct bw_local_pull *x = p->queued.first;

	if (!x->settled)
		x->direct = goes_direct(p, x);
	x->settled = true;
	if (x->direct && x->slot != BW_LOCAL_NO_SLOT)
		enqueue(&p->direct, dequeue(&p->queued));
	else if (p->asked_count < BW_LOCAL_WINDOW)
		ask(p, dequeue(&p->queued), x->direct);
	else
		return false;
	return true;
}

/* Move the first queued pull on; false if it has to wait. */
static bool begin(struct bw_local_peer *p)
{
	struct bw_local_pull *x = p->queued.first;

	if (bw_local_cma_with(p) == BW_LOCAL_CMA_UNKNOWN) {
		p->link->look_soon = true;
		return false;
	}
	if (x->slot != BW_LOCAL_NO_SLOT && !x->taken) {
		x->taken = envelope_take(p, x->slot);
		x->given_up |= !x->taken;
	}
	if (x->given_up)
		finish(p, dequeue(&p->queued), -ECANCELED);
	else if (x->len == 0)
		finish(p, dequeue(&p->queued), 0);
	else
		return go(p);
	return true;
}

/* All bytes of x were read from the memory at x->addr. Were they still the message? Its owner may
 * have closed meanwhile, or died and left its process number to another. */
static int verdict(struct bw_local_peer *p, const struct bw_local_pull *x)
{
	if (!p->self && !bw_local_alive(p))
		return -ECONNREFUSED;
	/* All bytes were read before the word is: an acquiring load would order what follows it. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (x->slot != BW_LOCAL_NO_SLOT &&
	    __atomic_load_n(&p->rx.states[x->slot], __ATOMIC_RELAXED) != BW_LOCAL_TAKEN)
		return -ECANCELED;
	return 0;
}

/* Cross-memory attach worked before, or seemed to, but is forbidden now: ask for the data instead.
 */
static void direct_give_up(struct bw_local_peer *p)
{
	p->cma = BW_LOCAL_CMA_FORBIDDEN;
	while (p->direct.first) {
		struct bw_local_pull *x = dequeue(&p->direct);

		x->done = 0;
		enqueue(&p->queued, x);
	}
	for (struct bw_local_pull *x = p->queued.first; x; x = x->next)
		x->direct = false;
}

/* Read on for up to `budget` bytes of the first direct pull; how many were read. */
static uint64_t direct_read(struct bw_local_peer *p, uint64_t budget)
{
	struct bw_local_pull *x = p->direct.first;
	uint64_t left = x->len - x->done, began;
	int64_t n;

	if (x->given_up) {
		finish(p, dequeue(&p->direct), -ECANCELED);
		return 0;
	}
	began = bw_clock_now();
	n = bw_local_cma_read(p, x->buf + x->done, x->addr + x->done,
			      left < budget ? left : budget);
	if (n == -EPERM) {
		direct_give_up(p);
		return 0;
	}
	if (n == -ESRCH) {
		bw_local_peer_lost(p, -ECONNREFUSED);
		return 0;
	}
	if (n <= 0) {
		finish(p, dequeue(&p->direct), n < 0 ? (int)n : -EFAULT);
		return 0;
	}
	x->done += (uint64_t)n;
	bw_local_way_learn(&p->way, BW_LOCAL_WAY_DIRECT, began, bw_clock_now(), (uint64_t)n);
	if (x->done == x->len) {
		p->link->counters.pulls_direct++;
		finish(p, dequeue(&p->direct), verdict(p, x));
	}
	return (uint64_t)n;
}

/* Its answer, which wakes us, is to tell whether its memory can be read. */
static bool unanswered(const struct bw_local_peer *p)
{
	return p->cma == BW_LOCAL_CMA_UNKNOWN && p->link->cma && !p->self && !p->status;
}

/* Is there a pull that could go on now, without the peer? */
bool bw_local_pulls_ready(const struct bw_local_peer *p)
{
	if (p->lost || unanswered(p))
		return false;
	return p->direct.first ||
	       (p->queued.first && (p->asked_count < BW_LOCAL_WINDOW || !p->queued.first->settled));
}

/* Go on with all pulls for a while. Returns the number of steps made. */
int bw_local_pulls_run(struct bw_local_peer *p)
{
	uint64_t budget = DIRECT_BUDGET;
	int steps = 0;

	while (p->queued.first && !p->lost && !p->down && begin(p))
		steps++;
	while (p->direct.first && budget > 0 && !p->lost && !p->down) {
		uint64_t n = direct_read(p, budget);

		budget -= n < budget ? n : budget;
		steps++;
	}
	return steps;
}

/* The peer is down: every pull ends. */
void bw_local_pulls_end(struct bw_local_peer *p, int status)
{
	for (uint32_t id = 0; id < BW_LOCAL_WINDOW; id++)
		if (p->asked[id])
			finish(p, asked(p, id, true), status);
	while (p->direct.first)
		finish(p, dequeue(&p->direct), status);
	while (p->queued.first)
		finish(p, dequeue(&p->queued), status);
}

/* The peer lets us read at addr for READ `id`. */
void bw_local_granted(struct bw_local_peer *p, uint64_t id, uint64_t addr)
{
	struct bw_local_pull *x = asked(p, id, true);

	if (!x)
		return;
	x->addr = addr;
	if (x->slot == BW_LOCAL_NO_SLOT && p->cma == BW_LOCAL_CMA_WORKS) {
		enqueue(&p->direct, x);
		return;
	}
	/* An address for a PULL, or one that cannot be used any more: have the data sent. */
	x->direct = false;
	enqueue(&p->queued, x);
	x->done = 0;
}

/* The peer will not serve READ or PULL `id`. */
void bw_local_refused(struct bw_local_peer *p, uint64_t id, int64_t status)
{
	struct bw_local_pull *x = asked(p, id, true);

	if (x)
		finish(p, x, status < 0 && status > -4096 ? (int)status : -EPROTO);
}

/* Data for `id` at `off`: it comes in order, and no more than was asked for. */
void bw_local_data(struct bw_local_peer *p, uint64_t id, uint64_t off, const void *data,
		   uint32_t len)
{
	struct bw_local_pull *x = asked(p, id, false);

	if (!x)
		return;
	if (off != x->done || len > x->len - x->done) {
		bw_local_peer_fail(p, -EPROTO);
		return;
	}
	if (!x->given_up)
		memcpy(x->buf + x->done, data, len);
	x->done += len;
	if (x->done == x->len) {
		p->link->counters.pulls_copied++;
		bw_local_way_learn(&p->way, BW_LOCAL_WAY_COPIED, x->asked_at, bw_clock_now(),
				   x->len);
		finish(p, asked(p, id, true), x->given_up ? -ECANCELED : 0);
	}
}
