/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of a program that peers read by a key of the program's own. Where it lies only the
 * program knows, and it is asked: the peer's request is not acknowledged meanwhile and comes
 * again, until the answer is there. Then the pages are pinned while they are read, and the program
 * is not involved.
 */
#include <linux/interval_tree_generic.h>
#include <linux/slab.h>

#include "sock.h"

#define BWK_REGIONS_MAX	    256 /* questions of a port at a time, with answers not asked for */
#define BWK_REGION_EXPIRE   (10 * BW_S) /* a question that nobody has asked again is forgotten */
#define BWK_REGION_STALE    (2 * BW_S)	/* the same, where others want its room */
#define BWK_REGION_AGAIN    (5 * BW_S)	/* one without an answer is told the program again */
#define BWK_REGION_PATIENCE (10 * BW_S) /* for memory to answer with; then it is refused */

enum bwk_region_state {
	BWK_REGION_ASKED = 1,
	BWK_REGION_TOLD,
	BWK_REGION_ANSWERED,
	BWK_REGION_READ
};

struct bwk_region {
	struct list_head all;	  /* in port.regions, or in port.read, .read_over or .read_last */
	struct list_head of_peer; /* in peer.asks, until it is read */
	u64 id, key, off, n;
	struct rb_node answered; /* in port.answered, with memory */
	u64 at;			 /* its address in the program */
	u64 last_below;		 /* the last address of it and those below it in port.answered */
	u64 asked;		 /* when its peer asked last, */
	u64 told;		 /* when the program was told it last, */
	u64 wanting;		 /* and since when memory for its answer is wanting; 0: never */
	struct bwk_peer *peer;	 /* a reference */
	u8 state;
	int status;	     /* of the answer */
	struct bwk_buf *buf; /* the pinned memory */
};

static inline u64 bwk_region_first(const struct bwk_region *r)
{
	return r->at;
}

static inline u64 bwk_region_last(const struct bwk_region *r)
{
	return r->at + r->n - 1;
}

INTERVAL_TREE_DEFINE(struct bwk_region, answered, u64, last_below, bwk_region_first,
		     bwk_region_last, static inline, bwk_answered)

/* Programs look at their number without the lock. */
static void bwk_region_asks(struct bwk_port *port, int more)
{
	WRITE_ONCE(port->region_asks, port->region_asks + more);
}

/* It is no question any more. */
static void bwk_region_answered(struct bwk_port *port, struct bwk_region *r)
{
	list_del(&r->of_peer);
	port->region_count--;
	r->peer->questions--;
}

static void bwk_region_drop(struct bwk_port *port, struct bwk_region *r)
{
	list_del(&r->all);
	bwk_region_asks(port, -(r->state == BWK_REGION_ASKED));
	if (r->state == BWK_REGION_ANSWERED && r->buf)
		r->peer->unread -= r->n;
	if (r->state != BWK_REGION_READ)
		bwk_region_answered(port, r);
	bwk_account_give(r->peer->account, sizeof(*r));
	bwk_peer_put(r->peer);
	if (r->buf && r->n)
		bwk_answered_remove(r, &port->answered);
	if (r->buf)
		r->buf->read_for = NULL;
	if (r->buf && !r->buf->back) /* else with its last frame */
		bwk_buf_free(r->buf);
	kfree(r);
}

void bwk_region_served(struct bwk_port *port, struct bwk_buf *b)
{
	list_move_tail(&b->read_for->all, &port->read_over);
}

/* Questions that nobody has asked again for long, with their answers. A peer that still waits asks
 * at least once in a second. */
static void bwk_region_expire(struct bwk_port *port)
{
	struct bwk_region *r, *next;

	port->region_expire = BW_NEVER;
	list_for_each_entry_safe(r, next, &port->regions, all) {
		if (port->now < r->asked + BWK_REGION_EXPIRE) {
			port->region_expire =
				min(port->region_expire, r->asked + BWK_REGION_EXPIRE);
			continue;
		}
		this_cpu_inc(port->node->count->questions_expired);
		bwk_region_drop(port, r);
	}
}

bool bwk_region_collect(struct bwk_port *port, u32 most)
{
	struct bwk_region *r;

	if (unlikely(port->now >= port->region_expire))
		bwk_region_expire(port);
	for (; most && !list_empty(&port->read_over); most--) {
		r = list_first_entry(&port->read_over, struct bwk_region, all);
		if (bwk_buf_over(r->buf, port))
			bwk_region_drop(port, r);
		else
			list_move_tail(&r->all,
				       &port->read_last); /* until its last frame is gone */
	}
	return !list_empty(&port->read_over);
}

bool bwk_region_back(struct bwk_port *port, struct bwk_buf *b)
{
	if (!b->read_for)
		return false;
	bwk_region_drop(port, b->read_for);
	return true;
}

void bwk_region_leave(struct bwk_port *port, struct bwk_peer *peer)
{
	struct bwk_region *r, *next;

	list_for_each_entry_safe(r, next, &peer->asks, of_peer)
		bwk_region_drop(port, r);
}

/* Whatever a peer reads. Where there is no memory to tell the peer, it is left. Lock held. */
static noinline void bwk_region_forbid_peer(struct bwk_port *port, u32 handle, u32 *done)
	__must_hold(&port->lock)
{
	struct bw_op op = {.type = BW_OP_FORBID, .peer = handle, .forbid.all = true};
	const struct bwk_peer *peer;
	int error = 0;

	while (!error && bwk_port_submit_breathing(port, &op, done) == -EAGAIN) {
		bwk_port_unlock(port);
		error = bwk_port_feed(port);
		bwk_port_lock(port);
	}
	peer = error ? bwk_peer_by_handle(port, handle) : NULL;
	if (peer)
		bwk_peer_leave(port, peer);
}

/* Of a port whose program has gone: nobody keeps its memory by reading it slowly. Lock held; it is
 * given away now and then. */
void bwk_region_forbid_all(struct bwk_port *port)
{
	struct bwk_region *r;
	u32 done = 0, handle;

	while (!list_empty(&port->regions)) {
		bwk_region_drop(port, list_first_entry(&port->regions, struct bwk_region, all));
		bwk_port_breathe(port, &done);
	}
	while (!port->dead && !list_empty(&port->read)) {
		handle = list_first_entry(&port->read, struct bwk_region, all)->peer->handle;
		bwk_region_forbid_peer(port, handle, &done);
		r = list_first_entry_or_null(&port->read, struct bwk_region, all);
		if (r && r->peer->handle == handle)
			list_move_tail(&r->all, &port->read_last); /* its peer is ending */
		bwk_port_breathe(port, &done);
	}
}

void bwk_region_drop_all(struct bwk_port *port, u32 *done)
{
	list_splice_init(&port->read_last, &port->regions);
	list_splice_init(&port->read, &port->regions);
	list_splice_init(&port->read_over, &port->regions);
	while (!list_empty(&port->regions)) {
		bwk_region_drop(port, list_first_entry(&port->regions, struct bwk_region, all));
		bwk_port_breathe(port, done);
	}
}

/* The latest question of the peer that has most of them, if these are more than so many; NULL. */
static struct bwk_region *bwk_region_of_greediest(struct bwk_port *port, u32 most)
{
	struct bwk_region *r, *found = NULL;

	list_for_each_entry(r, &port->regions, all) {
		if (r->peer->questions < most)
			continue;
		most = r->peer->questions;
		found = r;
	}
	return found;
}

static bool bwk_region_stale(const struct bwk_port *port, const struct bwk_region *r)
{
	return port->now - r->asked >= BWK_REGION_STALE;
}

/* A refusal that its peer has not fetched, or else what was not asked again for longest: who still
 * waits asks anew. NULL. */
static struct bwk_region *bwk_region_left_over(struct bwk_port *port)
{
	struct bwk_region *r, *found = NULL;

	list_for_each_entry(r, &port->regions, all) {
		if (r->state == BWK_REGION_ANSWERED && r->status)
			return r;
		if (bwk_region_stale(port, r) && (!found || r->asked < found->asked))
			found = r;
	}
	return found;
}

/* Is there room for one more question of this peer's? A single one leaves half of it to others. Of
 * those who fill it together the one with most gives way: it asks again, as after a lost frame. */
static bool bwk_region_make_room(struct bwk_port *port, const struct bwk_peer *peer)
{
	struct bwk_region *r;

	if (port->region_count < BWK_REGIONS_MAX && peer->questions < BWK_REGIONS_MAX / 2)
		return true;
	this_cpu_inc(port->node->count->questions_refused);
	if (peer->questions >= BWK_REGIONS_MAX / 2)
		return false;
	r = bwk_region_left_over(port) ?: bwk_region_of_greediest(port, peer->questions + 2);
	if (!r)
		return false;
	bwk_region_drop(port, r);
	return true;
}

static int bwk_region_ask(struct bwk_port *port, struct bwk_peer *peer, u64 key, u64 off, u64 n)
{
	struct bwk_region *r;

	if (!port->ops || !port->ops->region || n > BEOWIRE_MSG_MAX)
		return -EACCES;
	if (!bwk_region_make_room(port, peer) || !bwk_account_take(peer->account, sizeof(*r)))
		return -EAGAIN;
	r = kzalloc(sizeof(*r), GFP_ATOMIC);
	if (!r) {
		bwk_account_give(peer->account, sizeof(*r));
		return -EAGAIN;
	}
	r->id = ++port->region_ids;
	r->key = key;
	r->off = off;
	r->n = n;
	r->peer = peer;
	refcount_inc(&peer->refs);
	peer->questions++;
	r->state = BWK_REGION_ASKED;
	r->asked = port->now;
	port->region_expire = min(port->region_expire, r->asked + BWK_REGION_EXPIRE);
	list_add_tail(&r->all, &port->regions);
	list_add_tail(&r->of_peer, &peer->asks);
	port->region_count++;
	bwk_region_asks(port, 1);
	if (port->ops->region(port->owner))
		return -EAGAIN;
	bwk_region_drop(port, r);
	return -EACCES;
}

/* It is still waited for, and there is no answer: the program that was told may have died with the
 * question, and another one that has the socket may answer. */
static void bwk_region_asked_again(struct bwk_port *port, struct bwk_region *r)
{
	r->asked = port->now;
	if (r->state != BWK_REGION_TOLD || port->now - r->told < BWK_REGION_AGAIN || !port->ops)
		return;
	r->state = BWK_REGION_ASKED;
	bwk_region_asks(port, 1);
	port->ops->region(port->owner);
}

int bwk_region_find(struct bwk_port *port, u32 handle, u64 key, u64 off, u64 n, u64 *buf)
{
	struct bwk_peer *peer = bwk_peer_by_handle(port, handle);
	struct bwk_region *r;
	int status;

	if (!peer)
		return -EACCES;
	list_for_each_entry(r, &peer->asks, of_peer) {
		if (r->key != key || r->off != off || r->n != n)
			continue;
		if (r->state != BWK_REGION_ANSWERED) {
			bwk_region_asked_again(port, r);
			return -EAGAIN;
		}
		status = r->status;
		if (status) {
			bwk_region_drop(port, r);
			return status;
		}
		bwk_region_answered(port, r);
		r->peer->unread -= r->n;
		r->state = BWK_REGION_READ;
		list_move_tail(&r->all, &port->read);
		*buf = bwk_buf_cookie(r->buf);
		return 0;
	}
	return bwk_region_ask(port, peer, key, off, n);
}

bool bwk_region_take(struct bwk_port *port, struct beowire_info *info,
		     struct sockaddr_beowire *from)
{
	struct bwk_region *r;

	if (!port->region_asks)
		return false;
	list_for_each_entry(r, &port->regions, all) {
		if (r->state != BWK_REGION_ASKED)
			continue;
		r->state = BWK_REGION_TOLD;
		r->told = port->now;
		bwk_region_asks(port, -1);
		info->event = BEOWIRE_REGION;
		info->cookie = r->id;
		info->peer = r->peer->number;
		bwk_peer_tell(r->peer);
		info->key = r->key;
		info->imm = r->off;
		info->len = r->n;
		if (r->peer->handle)
			*from = r->peer->addr;
		return true;
	}
	return false;
}

/* The question that a program answers; NULL: it is none any more. */
static struct bwk_region *bwk_region_of(struct bwk_port *port, u64 id)
{
	struct bwk_region *r;

	list_for_each_entry(r, &port->regions, all)
		if (r->id == id)
			return r->state == BWK_REGION_ANSWERED ? NULL : r;
	return NULL;
}

static int bwk_region_settle(struct bwk_port *port, const struct beowire_region *answer,
			     struct bwk_buf *b)
{
	struct bwk_region *r = bwk_region_of(port, answer->id);

	if (!r)
		return -ENOENT;
	if (b && b->len != r->n)
		return -EINVAL;
	bwk_region_asks(port, -(r->state == BWK_REGION_ASKED)); /* for the second time */
	r->state = BWK_REGION_ANSWERED;
	r->status = b ? 0 : -EACCES;
	r->buf = b;
	r->at = answer->buf;
	if (!b)
		return 0;
	b->read_for = r;
	r->peer->unread += r->n;
	if (r->n)
		bwk_answered_insert(r, &port->answered);
	return 0;
}

/* An answer that makes way for that to `asked`, for which there is no memory: one that was not
 * fetched for long, or else the latest of the peer with most bytes of such answers, if these are
 * more than the asking one is to have. Its peer asks anew. NULL. */
static struct bwk_region *bwk_region_in_the_way(struct bwk_port *port,
						const struct bwk_region *asked)
{
	u64 most = asked->peer->unread + asked->n + 1;
	struct bwk_region *r, *found = NULL;

	list_for_each_entry(r, &port->regions, all) {
		if (r->state != BWK_REGION_ANSWERED || !r->buf)
			continue;
		if (bwk_region_stale(port, r))
			return r;
		if (r->peer->unread < most)
			continue;
		most = r->peer->unread;
		found = r;
	}
	return found;
}

/* There is no memory for an answer. 0: another one has made way. -EAGAIN: the program is told of
 * the question anew when its peer asks again. `error`: that was so for long enough. -ENOENT. */
static int bwk_region_short(struct bwk_port *port, u64 id, int error)
{
	struct bwk_region *way, *r;

	bwk_port_lock(port);
	r = bwk_region_of(port, id);
	way = r ? bwk_region_in_the_way(port, r) : NULL;
	if (way) {
		this_cpu_inc(port->node->count->questions_refused);
		bwk_region_drop(port, way);
		error = 0;
	} else if (r) {
		if (!r->wanting)
			r->wanting = port->now;
		if (port->now - r->wanting < BWK_REGION_PATIENCE)
			error = -EAGAIN;
		r->told = port->now - BWK_REGION_AGAIN;
	} else {
		error = -ENOENT;
	}
	bwk_port_unlock(port);
	return error;
}

/* The memory that is answered with, or a copy; NULL: it may not be read. */
static struct bwk_buf *bwk_region_memory(struct bwk_sock *bs, struct bwk_port *port,
					 const struct beowire_region *answer)
{
	struct iov_iter from;
	struct iovec part;
	struct bwk_buf *b;
	int error;

	if (!answer->buf)
		return NULL;
	error = bwk_iter_user_source((void __user *)answer->buf, answer->len, &part, &from);
	if (error)
		return ERR_PTR(error);
	b = answer->len ? bwk_buf_pin(bs->account, &from, answer->len, BWK_PIN_READ_LONG)
			: bwk_buf_held(bs->account, 0);
	if (b == ERR_PTR(-EDQUOT))
		atomic_long_inc(&port->memlock_limited);
	if (b == ERR_PTR(-EDQUOT) || b == ERR_PTR(-EAGAIN)) /* read a copy */
		b = bwk_send_copy(bs, &from, answer->len);
	return b;
}

int bwk_region_answer(struct bwk_sock *bs, const struct beowire_region *answer)
{
	struct bwk_port *port = smp_load_acquire(&bs->port);
	struct bwk_buf *b;
	int error;

	if (!port)
		return -ENOENT;
	if (answer->len > BEOWIRE_MSG_MAX)
		return -EINVAL;
	for (;;) {
		b = bwk_region_memory(bs, port, answer);
		if (b != ERR_PTR(-ENOBUFS) && b != ERR_PTR(-ENOMEM))
			break;
		error = bwk_region_short(port, answer->id, PTR_ERR(b));
		if (error)
			return error;
		bwk_buf_flush(); /* of many pages, it goes there */
	}
	if (IS_ERR(b))
		return PTR_ERR(b);
	bwk_port_lock(port);
	error = bwk_region_settle(port, answer, b);
	bwk_port_unlock(port);
	if (error && b)
		bwk_buf_free_now(b);
	return error;
}

int bwk_region_serving(struct bwk_sock *bs, const struct beowire_region *what)
{
	struct bwk_port *port = smp_load_acquire(&bs->port);
	u64 last = what->buf + what->len - 1;
	u32 done = 0;
	int found;

	if (!port || !what->len)
		return 0;
	if (last < what->buf)
		last = U64_MAX;
	bwk_port_lock(port);
	while (bwk_region_collect(port, 1))
		bwk_port_breathe(port, &done);
	found = !!bwk_answered_iter_first(&port->answered, what->buf, last);
	bwk_port_unlock(port);
	return found;
}
