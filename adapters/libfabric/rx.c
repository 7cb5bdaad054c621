// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Receives: posted, matched, filled, reported. Data of an eager message are copied from the link's
 * buffer straight into the receive's; of a long one they are fetched (bw_pull) straight into it.
 * Each message placed in a multi-receive buffer gets a child receive, and the last child to finish
 * carries FI_MULTI_RECV.
 *
 * A message that is fetched is complete later than a short one sent after it, and fetched ones
 * overtake one another when frames get lost. Two kinds must not be overtaken, so receives wait for
 * them in a row of their peer's:
 *  - children of multi-receive buffers: these serve as a stream of commands, and MPICH (4.3) loses
 *    a part of some that come too early;
 *  - messages whose sender was told at once that they are done, since a copy is fetched
 *    (BWF_CODE_DONE): Open MPI's one-sided operations by pt2pt (4.1) send a short "all done" next,
 *    and whoever gets it reads the buffer.
 */
#include "bwf.h"
#include "count.h"

#include <stdlib.h>

#define BWF_RX_SLAB 128 /* receives allocated at a time */

struct bwf_rx_slab {
	struct bwf_rx_slab *next;
	struct bwf_rx rx[BWF_RX_SLAB];
};

static void bwf_rx_pulled(struct bwf_ep *ep, struct bwf_done *done, int status, uint64_t len);

static struct bwf_match *bwf_rx_queue(struct bwf_ep *ep, bool tagged)
{
	return tagged ? &ep->tagged : &ep->msg;
}

struct bwf_rx *bwf_rx_new(struct bwf_ep *ep)
{
	struct bwf_rx_slab *slab;
	struct bwf_rx *rx;

	if (!ep->rx_spare) {
		slab = calloc(1, sizeof(*slab));
		if (!slab)
			return NULL;
		slab->next = ep->rx_slabs;
		ep->rx_slabs = slab;
		for (int i = 0; i < BWF_RX_SLAB; i++) {
			slab->rx[i].done.call = bwf_rx_pulled;
			slab->rx[i].next = ep->rx_spare;
			ep->rx_spare = &slab->rx[i];
		}
	}
	rx = ep->rx_spare;
	ep->rx_spare = rx->next;
	return rx;
}

void bwf_rx_put(struct bwf_ep *ep, struct bwf_rx *rx)
{
	rx->state = BWF_RX_FREE;
	rx->next = ep->rx_spare;
	ep->rx_spare = rx;
}

void bwf_rx_free_all(struct bwf_ep *ep)
{
	struct bwf_rx_slab *slab = ep->rx_slabs;

	while (slab) {
		struct bwf_rx_slab *next = slab->next;

		for (int i = 0; i < BWF_RX_SLAB; i++) {
			if (slab->rx[i].state == BWF_RX_PULLING)
				free(slab->rx[i].bounce);
		}
		free(slab);
		slab = next;
	}
	ep->rx_slabs = NULL;
	ep->rx_spare = NULL;
}

static size_t bwf_rx_scatter(const struct bwf_rx *rx, const char *data, size_t len)
{
	size_t done = 0;

	for (int i = 0; i < rx->n && done < len; i++) {
		size_t n = rx->iov[i].iov_len < len - done ? rx->iov[i].iov_len : len - done;

		memcpy(rx->iov[i].iov_base, data + done, n);
		done += n;
	}
	return done;
}

/* The message of a child is in its buffer: is it the last one? */
static void bwf_rx_leave_parent(struct bwf_ep *ep, struct bwf_rx *rx)
{
	struct bwf_rx *parent = rx->parent;

	parent->pulls--;
	ep->parts--;
	if (parent->retired && !parent->pulls) {
		rx->flags |= FI_MULTI_RECV;
		rx->report = true;
		bwf_rx_put(ep, parent);
	}
}

/* Report the end of a receive whose message is known, and free it. */
static void bwf_rx_report(struct bwf_ep *ep, struct bwf_rx *rx)
{
	size_t len = rx->msg_len < rx->len ? rx->msg_len : rx->len;
	int status = rx->status;

	if (!status && rx->msg_len > rx->len)
		status = -FI_ETRUNC;
	if (rx->parent)
		bwf_rx_leave_parent(ep, rx);
	if (ep->cntr[BWF_CNTR_RECV])
		bwf_cntr_count(ep->cntr[BWF_CNTR_RECV], status);
	if (ep->rx_cq && (rx->report || status)) {
		bwf_cq_push(ep->rx_cq, &(struct bwf_cqe){
					       .context = rx->context,
					       .flags = rx->flags,
					       .len = len,
					       .buf = rx->n ? rx->iov[0].iov_base : NULL,
					       .data = rx->data,
					       .tag = rx->tag,
					       .src = ep->source ? bwf_peer_source(ep, rx->src)
								 : FI_ADDR_NOTAVAIL,
					       .err = -status,
					       .olen = rx->msg_len - len,
				       });
	}
	bwf_rx_put(ep, rx);
}

/* A receive waits for the end of those before it that hold, from the time its message comes. */
static void bwf_rx_join_row(struct bwf_ep *ep, struct bwf_rx *rx, bool holds)
{
	struct bwf_peer *peer = &ep->peer[rx->src];

	rx->in_row = holds || peer->row_head;
	if (!rx->in_row)
		return;
	rx->holds = holds;
	rx->over = false;
	rx->next = NULL;
	if (peer->row_head)
		peer->row_tail->next = rx;
	else
		peer->row_head = rx;
	peer->row_tail = rx;
}

/* Take those out of a row that have ended and wait for nobody. The list of them. */
static struct bwf_rx *bwf_rx_leave_row(struct bwf_peer *peer)
{
	struct bwf_rx **at = &peer->row_head, *rx;
	struct bwf_rx *out = NULL, **out_end = &out;
	bool held = false;

	peer->row_tail = NULL;
	while ((rx = *at)) {
		if (rx->over && !held) {
			*at = rx->next;
			*out_end = rx;
			out_end = &rx->next;
		} else {
			held = held || rx->holds;
			peer->row_tail = rx;
			at = &rx->next;
		}
	}
	*out_end = NULL;
	return out;
}

/* A receive ends: its message is in place, or will never be. */
static void bwf_rx_complete(struct bwf_ep *ep, struct bwf_rx *rx, int status)
{
	struct bwf_peer *peer = &ep->peer[rx->src];
	struct bwf_rx *next;

	rx->status = status;
	if (!rx->in_row) {
		bwf_rx_report(ep, rx);
		return;
	}
	rx->over = true;
	if (rx != peer->row_head && peer->row_head->holds)
		return; /* so it does all behind it, of which there may be many */
	for (rx = bwf_rx_leave_row(peer); rx; rx = next) {
		next = rx->next;
		bwf_rx_report(ep, rx);
	}
}

void bwf_rx_fill(struct bwf_ep *ep, struct bwf_rx *rx, const void *data, size_t len, int status)
{
	if (!status)
		bwf_rx_scatter(rx, data, len);
	bwf_rx_complete(ep, rx, status);
}

static void bwf_rx_pulled(struct bwf_ep *ep, struct bwf_done *done, int status, uint64_t len)
{
	struct bwf_rx *rx = BWF_OF(done, struct bwf_rx, done);
	void *bounce = rx->bounce;

	rx->bounce = NULL;
	if (!status && len != (rx->msg_len < rx->len ? rx->msg_len : rx->len))
		status = -FI_EIO; /* the sender has less than its envelope says */
	bwf_rx_fill(ep, rx, bounce, bounce ? len : 0, status);
	free(bounce);
}

/* Fetch the data of an envelope. */
static void bwf_rx_pull(struct bwf_ep *ep, struct bwf_rx *rx, const struct bw_message *m)
{
	size_t len = m->len < rx->len ? m->len : rx->len;
	void *to = rx->n ? rx->iov[0].iov_base : NULL;

	rx->state = BWF_RX_PULLING;
	if (bwf_early_take(ep, rx, m))
		return;
	if (rx->n > 1) {
		rx->bounce = malloc(len ? len : 1);
		if (!rx->bounce) {
			bwf_todo_pull(ep, m->peer, &m->rndv, NULL, 0, NULL);
			bwf_rx_complete(ep, rx, -FI_ENOMEM);
			return;
		}
		to = rx->bounce;
	}
	bwf_todo_pull(ep, m->peer, &m->rndv, to, len, &rx->done);
}

/* What a message says of itself, for a receive that is in no queue and gets it. */
static void bwf_rx_meet(struct bwf_ep *ep, struct bwf_rx *rx, const struct bw_message *m)
{
	rx->src = m->peer;
	rx->msg_len = m->len;
	rx->tag = rx->tagged ? m->tag : 0;
	rx->data = m->code & BWF_CODE_DATA ? m->imm : 0;
	rx->flags = FI_RECV | (rx->tagged ? FI_TAGGED : FI_MSG);
	if (m->code & BWF_CODE_DATA)
		rx->flags |= FI_REMOTE_CQ_DATA;
	bwf_rx_join_row(ep, rx, rx->parent || (m->envelope && (m->code & BWF_CODE_DONE)));
}

/* Give it the message. */
static void bwf_rx_take(struct bwf_ep *ep, struct bwf_rx *rx, const struct bw_message *m)
{
	bwf_rx_meet(ep, rx, m);
	if (m->envelope) {
		bwf_rx_pull(ep, rx, m);
		return;
	}
	if (rx->n == 1 && m->len)
		memcpy(rx->iov[0].iov_base, m->data, m->len < rx->len ? m->len : rx->len);
	else
		bwf_rx_scatter(rx, m->data, m->len);
	bwf_rx_complete(ep, rx, 0);
}

static void bwf_rx_lost(struct bwf_ep *ep, const struct bw_message *m)
{
	bw_count_event(ep->bw, BW_COUNT_MESSAGES_LOST);
	bwf_log(BWF_LOG_ERROR, "out of memory: a message of %s is lost",
		bw_peer_describe(ep->bw, m->peer));
}

/* Reserve the message's place in a multi-receive buffer, which leaves the queue when too little is
 * left. */
static void bwf_rx_take_part(struct bwf_ep *ep, struct bwf_rx *parent, const struct bw_message *m)
{
	size_t room = parent->len - parent->used;
	struct bwf_rx *child = bwf_rx_new(ep);

	if (!child) {
		bwf_rx_lost(ep, m);
		return;
	}
	child->tagged = parent->tagged;
	child->report = parent->report;
	child->context = parent->context;
	child->parent = parent;
	child->multi = false;
	child->bounce = NULL;
	child->n = 1;
	child->iov[0].iov_base = (char *)parent->iov[0].iov_base + parent->used;
	child->iov[0].iov_len = child->len = room;
	parent->used += m->len < room ? m->len : room;
	parent->pulls++;
	ep->parts++;
	room = parent->len - parent->used;
	if (!room || room < ep->min_multi_recv) {
		parent->retired = true;
		if (parent->state == BWF_RX_POSTED)
			bwf_match_unpost(bwf_rx_queue(ep, parent->tagged), &parent->posted);
		parent->state = BWF_RX_PULLING;
	}
	bwf_rx_take(ep, child, m);
}

void bwf_rx_deliver(struct bwf_ep *ep, struct bwf_rx *rx, const struct bw_message *m)
{
	if (rx->multi) {
		bwf_rx_take_part(ep, rx, m);
		return;
	}
	if (rx->state == BWF_RX_POSTED) {
		bwf_match_unpost(bwf_rx_queue(ep, rx->tagged), &rx->posted);
		rx->state = BWF_RX_PULLING;
	}
	bwf_rx_take(ep, rx, m);
}

void *bwf_rx_place(struct bwf_ep *ep, const struct bw_message *m, void **op)
{
	bool tagged = (m->code & BWF_CODE_MASK) == BWF_CODE_TAGGED;
	struct bwf_match *queue = bwf_rx_queue(ep, tagged);
	struct bwf_posted *p = bwf_match_target(queue, m->peer, tagged ? m->tag : 0);
	struct bwf_rx *rx = p ? BWF_OF(p, struct bwf_rx, posted) : NULL;

	if (!rx || rx->multi || rx->n != 1 || m->len > rx->len)
		return NULL;
	bwf_match_unpost(queue, p);
	rx->state = BWF_RX_PULLING;
	bwf_rx_meet(ep, rx, m);
	*op = &rx->done;
	return rx->iov[0].iov_base;
}

void bwf_rx_message(struct bwf_ep *ep, const struct bw_message *m)
{
	bool tagged = (m->code & BWF_CODE_MASK) == BWF_CODE_TAGGED;
	struct bwf_match *queue = bwf_rx_queue(ep, tagged);
	struct bwf_unexpected *u;
	struct bwf_posted *p;

	bwf_held_resume(ep);
	p = bwf_match_target(queue, m->peer, tagged ? m->tag : 0);
	if (p && !bwf_held_keep(ep, BWF_OF(p, struct bwf_rx, posted))) {
		bwf_rx_deliver(ep, BWF_OF(p, struct bwf_rx, posted), m);
		return;
	}
	if (!bwf_unexpected_admits(ep, m)) {
		bw_count_event(ep->bw, BW_COUNT_MESSAGES_LOST);
		bwf_peer_refuse(ep, m->peer, "sends more than may wait for a receive");
		return;
	}
	u = bwf_unexpected_new(ep, m);
	if (u) {
		bwf_match_store(queue, &u->arrived);
		bwf_early_begin(ep, m);
		if (ep->unexpected.strangers > ep->unexpected.strangers_max)
			bwf_stranger_make_room(ep);
	} else {
		bwf_rx_lost(ep, m);
	}
}

/* End a receive that is not posted any more and got no message. */
static void bwf_rx_abort(struct bwf_ep *ep, struct bwf_rx *rx, int err)
{
	uint64_t flags = FI_RECV | (rx->tagged ? FI_TAGGED : FI_MSG);

	if (rx->multi && !rx->pulls)
		flags |= FI_MULTI_RECV;
	if (ep->cntr[BWF_CNTR_RECV])
		bwf_cntr_count(ep->cntr[BWF_CNTR_RECV], -err);
	if (ep->rx_cq)
		bwf_cq_push(ep->rx_cq, &(struct bwf_cqe){.context = rx->context,
							 .flags = flags,
							 .tag = rx->posted.tag,
							 .src = FI_ADDR_NOTAVAIL,
							 .err = err});
	if (rx->multi && rx->pulls)
		rx->retired = true; /* the last message under way frees it */
	else
		bwf_rx_put(ep, rx);
}

void bwf_rx_set(struct bwf_ep *ep, struct bwf_rx *rx, const struct bwf_rx_args *a, bool tagged)
{
	rx->state = BWF_RX_PULLING;
	rx->tagged = tagged;
	rx->report = !ep->rx_selective || (a->flags & FI_COMPLETION);
	rx->multi = (a->flags & FI_MULTI_RECV) != 0;
	rx->retired = false;
	rx->used = 0;
	rx->pulls = 0;
	rx->parent = NULL;
	rx->bounce = NULL;
	rx->context = a->context;
	rx->n = (uint8_t)a->n;
	rx->len = 0;
	for (size_t i = 0; i < a->n; i++) {
		rx->iov[i] = a->iov[i];
		rx->len += a->iov[i].iov_len;
	}
}

int bwf_rx_source(struct bwf_ep *ep, const struct bwf_rx_args *a, uint32_t *peer)
{
	*peer = BWF_MATCH_ANY;
	if (a->addr == FI_ADDR_UNSPEC || !ep->directed)
		return 0;
	return bwf_peer_of(ep, a->addr, peer);
}

void bwf_rx_take_stored(struct bwf_ep *ep, struct bwf_rx *rx, struct bwf_arrived *arrived)
{
	struct bwf_unexpected *u = BWF_OF(arrived, struct bwf_unexpected, arrived);
	struct bw_message m;

	bwf_match_unstore(bwf_rx_queue(ep, rx->tagged), arrived);
	bwf_unexpected_message(u, &m);
	bwf_rx_deliver(ep, rx, &m);
	bwf_unexpected_put(ep, u);
}

static ssize_t bwf_rx_post_locked(struct bwf_ep *ep, const struct bwf_rx_args *a, bool tagged)
{
	struct bwf_match *queue = bwf_rx_queue(ep, tagged);
	uint64_t tag = tagged ? a->tag : 0, ignore = tagged ? a->ignore : 0;
	bool multi = (a->flags & FI_MULTI_RECV) != 0;
	struct bwf_arrived *arrived;
	struct bwf_rx *rx;
	uint32_t peer;
	int ret = bwf_rx_source(ep, a, &peer);

	if (ret)
		return ret;
	bwf_held_resume(ep);
	rx = bwf_cq_full(ep->rx_cq, 0) ? NULL : bwf_rx_new(ep);
	if (!rx)
		return -FI_EAGAIN;
	bwf_rx_set(ep, rx, a, tagged);
	while ((arrived = bwf_match_find(queue, peer, tag, ignore)) && !bwf_held_keep(ep, rx)) {
		bool last = !multi;

		if (multi) {
			uint64_t n = BWF_OF(arrived, struct bwf_unexpected, arrived)->len;
			size_t room = rx->len - rx->used;

			room -= n < room ? n : room;
			last = !room || room < ep->min_multi_recv;
		}
		bwf_rx_take_stored(ep, rx, arrived);
		if (last)
			return 0;
	}
	rx->posted.tag = tag;
	rx->posted.ignore = ignore;
	rx->posted.peer = peer;
	ret = bwf_peer_hopeless(ep, peer);
	if (ret) {
		bwf_rx_abort(ep, rx, -ret);
		return 0;
	}
	rx->state = BWF_RX_POSTED;
	bwf_match_post(queue, &rx->posted);
	return 0;
}

ssize_t bwf_rx_post(struct bwf_ep *ep, const struct bwf_rx_args *a, bool tagged)
{
	ssize_t ret;

	if (a->n > BWF_IOV_MAX || ((a->flags & FI_MULTI_RECV) && a->n != 1))
		return -FI_EINVAL;
	bw_ep_lock(ep->bw);
	ret = bwf_rx_post_locked(ep, a, tagged);
	bw_ep_unlock(ep->bw);
	return ret;
}

/* End posted receives: those with `context`, or (context NULL) those from `peer`. How many there
 * were. */
static unsigned bwf_rx_end(struct bwf_ep *ep, struct bwf_match *queue, void *context, uint32_t peer,
			   int err)
{
	struct bwf_posted *p = queue->posted_head;
	unsigned n = 0;

	while (p) {
		struct bwf_rx *rx = BWF_OF(p, struct bwf_rx, posted);

		p = p->next;
		if (context ? rx->context != context : rx->posted.peer != peer)
			continue;
		bwf_match_unpost(queue, &rx->posted);
		rx->state = BWF_RX_PULLING;
		bwf_rx_abort(ep, rx, err);
		n++;
		if (context)
			break;
	}
	return n;
}

int bwf_rx_cancel(struct bwf_ep *ep, void *context)
{
	if (!context)
		return -FI_ENOENT;
	if (bwf_rx_end(ep, &ep->tagged, context, 0, FI_ECANCELED) ||
	    bwf_rx_end(ep, &ep->msg, context, 0, FI_ECANCELED))
		return 0;
	return -FI_ENOENT;
}

void bwf_rx_fail(struct bwf_ep *ep, uint32_t peer, int err)
{
	bwf_rx_end(ep, &ep->tagged, NULL, peer, err);
	bwf_rx_end(ep, &ep->msg, NULL, peer, err);
}
