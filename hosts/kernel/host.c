/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The host's half of the engine's interface: its callbacks, frames in, events out, and time. All of
 * it runs with the port's lock held.
 */
#include <linux/etherdevice.h>
#include <linux/ktime.h>
#include <linux/mm.h>

#include "arrive.h"
#include "compat.h"
#include "crc.h"
#include "keyed.h"
#include "port.h"

#define BWK_SOON_NS BW_MS

/* Frames and events of one visit: others wait for the processor and for the lock meanwhile. */
#define BWK_VISIT_MOST 256
#define BWK_VISIT_LOOK 16 /* of them, for an answer of the engine that there is nothing to send */

/* Bytes of a frame behind which no other one carries on. */
#define BWK_HOST_SHORT 256

/* Of what is long who sends the frame makes the checksum, without the lock. */
static u32 bwk_host_payload_crc(void *host, u64 buf, u64 off, u32 n)
{
	struct bwk_port *port = host;

	if (unlikely(bwk_tx_puts_off(bwk_buf_of(buf), n)) && likely(bwk_reliable(port->protocol)) &&
	    likely(!port->secret)) { /* a tag cannot be fixed afterwards */
		port->checks++;
		return 0;
	}
	return bwk_buf_crc(bwk_buf_of(buf), off, n);
}

/* Is this frame nothing but a segment of one message? Then it can stay as it is. */
static bool bwk_host_keeps(const struct bwk_buf *b, u32 at)
{
	return b->kind == BWK_BUF_CHAIN &&
	       at == sizeof(struct bw_hdr) + sizeof(struct bw_ackblk) + sizeof(struct bw_part_msg);
}

static int bwk_host_check(const struct bw_rx_frame *f, u32 at, u32 n, u32 crc)
{
	u32 found = 0;
	int error = 0;

	if (at + n <= f->head_len)
		found = bwk_crc(0, f->head + at, n);
	else
		error = bwk_buf_place(NULL, 0, f->cookie, at, n, &found);
	return error || found != crc ? -EBADMSG : 0;
}

/* Data of many frames into their buffer. Apart: a message of one frame never comes here, and the
 * variables would be cleared for it as well. */
static noinline int bwk_host_fill(struct bwk_port *port, struct bwk_buf *b, u64 off,
				  const struct bw_rx_frame *f, u32 at, u32 n, bool check, u32 crc)
{
	u32 found = 0;
	int error;

	if (bwk_host_keeps(b, at)) {
		error = check ? bwk_host_check(f, at, n, crc) : 0;
		if (error)
			return error;
		if (bwk_arrive_chain(port, b, off, f->cookie, at, n)) {
			/* An empty message that waited for this one is told with the same frame. */
			port->rx_used = true;
			return 0;
		}
		check = false;
	}
	error = bwk_buf_place(b, off, f->cookie, at, n, check ? &found : NULL);
	if (!error && check && found != crc)
		error = -EBADMSG;
	if (!error) {
		if (b->kind == BWK_BUF_USER)
			port->pinned += n;
		port->copied_rx += n;
	}
	return error;
}

static int bwk_host_place(void *host, u64 buf, u64 off, const struct bw_rx_frame *f, u32 at, u32 n,
			  bool check, u32 crc)
{
	if (buf)
		return bwk_host_fill(host, bwk_buf_of(buf), off, f, at, n, check, crc);
	return check ? bwk_host_check(f, at, n, crc) : 0;
}

static u64 bwk_host_buf_get(void *host, u32 peer, u64 n, bool next)
{
	return bwk_arrive_begin(host, peer, n, next);
}

/* Its peer is going, or the engine. */
static void bwk_host_buf_put(void *host, u64 buf)
{
	struct bwk_buf *b = bwk_buf_of(buf);
	struct bwk_peer *peer = bwk_peer_by_handle(host, b->handle);

	if (peer)
		peer->in_part = true;
	bwk_arrive_end(host, b);
	bwk_buf_free(b);
}

static int bwk_host_region_find(void *host, u32 peer, u64 key, u64 off, u64 n, u64 *buf,
				u64 *buf_off)
{
	*buf_off = 0;
	if (!bwk_reliable(((struct bwk_port *)host)->protocol))
		return -EACCES;
	return bwk_region_find(host, peer, key, off, n, buf);
}

static void bwk_host_served(void *host, u64 buf)
{
	bwk_region_served(host, bwk_buf_of(buf));
}

static void bwk_host_message(void *host, const struct bw_event *ev)
{
	struct bwk_port *port = host;
	struct bwk_peer *peer = bwk_peer_by_handle(port, ev->peer);
	struct bwk_buf *b = bwk_buf_of(ev->buf);

	port->copied_rx += ev->len; /* as it will be, out of the queue */
	if (b)
		bwk_arrive_end(port, b); /* who takes it is charged anew */
	if (peer && port->ops && b) {
		port->ops->message(port->owner, peer, ev, b->skb, 0, true);
	} else if (peer && port->ops) {
		port->ops->message(port->owner, peer, ev, port->rx->cookie, ev->frame_off,
				   !port->rx_used);
		port->rx_used = true;
	}
	if (b)
		bwk_buf_free(b);
}

/* A buffer is no longer the engine's. */
static void bwk_port_returned(struct bwk_port *port, struct bwk_buf *b)
{
	if (port->ops)
		port->ops->done(port->owner, b);
	else
		bwk_buf_free(b);
}

static void bwk_host_sent(void *host, u64 cookie)
{
	struct bwk_port *port = host;
	struct bwk_buf *b = bwk_buf_of(cookie);

	hlist_del_init(&b->held);
	bwk_port_returned(port, b);
}

/* A frame that came to a port that encrypts lies in one piece, which is ours: bwk_port_frame(). It
 * ends where its tag begins from now on, so that it can stay as it is in a message. */
static int bwk_host_unseal(void *host, const struct bw_rx_frame *f, u32 end,
			   const struct bw_seal_by *by)
{
	struct sk_buff *skb = f->cookie;
	int error = bw_open_frame(skb->data, end, by);

	if (!error)
		skb_trim(skb, end);
	return error;
}

static bool bwk_host_needed(void *host, u32 handle)
{
	return bwk_peer_needed(host, handle);
}

static u64 bwk_host_random(void *host)
{
	return get_random_u64();
}

static u64 bwk_host_siphash(const u8 key[16], const void *p, size_t n)
{
	return bwk_siphash(key, p, n);
}

static void bwk_host_excused(void *host, u32 handle, u64 late_ns)
{
	struct bwk_port *port = host;

	bwk_tell_still(port->node, bwk_peer_by_handle(port, handle), port->now, late_ns);
}

const struct bw_host_ops bwk_host_ops = {
	.crc32c = bwk_crc,
	.payload_crc = bwk_host_payload_crc,
	.place = bwk_host_place,
	.buf_get = bwk_host_buf_get,
	.buf_put = bwk_host_buf_put,
	.region_find = bwk_host_region_find,
	.served = bwk_host_served,
	.random = bwk_host_random,
	.siphash = bwk_host_siphash,
	.hmac_sha256 = bwk_hmac_sha256,
	.sent = bwk_host_sent,
	.needed = bwk_host_needed,
	.message = bwk_host_message,
	.unseal = bwk_host_unseal,
	.excused = bwk_host_excused,
};

int bwk_port_submit(struct bwk_port *port, struct bw_op *op)
{
	return port->dead ? -ESHUTDOWN : bwk_engine(port, submit, op, port->now);
}

int bwk_port_submit_breathing(struct bwk_port *port, struct bw_op *op, u32 *done)
{
	int error;

	op->one = true;
	while ((error = bwk_port_submit(port, op)) == -EINPROGRESS)
		bwk_port_breathe(port, done);
	return error;
}

int bwk_port_give_up(struct bwk_port *port, u32 handle, u64 key)
{
	struct bw_op op = {.type = BW_OP_PULL, .peer = handle};

	op.pull.key = key;
	op.pull.flags = BW_PULL_FINAL | BW_OP_QUIET;
	return bwk_port_submit(port, &op);
}

/* How an operation ended goes on to programs, as what a call returns, and decides whether it is
 * tried again. A peer may have said it: of errors only those that an engine makes are believed. */
static int bwk_port_status(const struct bwk_port *port, int status)
{
	switch (status) {
	case -ENOENT: /* of a pull, by its peer: there is no such message, or memory */
	case -EACCES:
	case -EINVAL:
	case -ECANCELED:
	case BW_DOWN_TIMEOUT: /* of anything, by our own engine */
	case BW_DOWN_RESET:
	case BW_DOWN_REFUSED:
	case BW_DOWN_VERSION:
	case BW_DOWN_KEY:
	case BW_DOWN_ENCRYPT:
	case BW_DOWN_CLOSED:
		return status;
	}
	if (!status)
		return 0;
	this_cpu_inc(port->node->count->bad_words);
	return -EIO;
}

static void bwk_port_done(struct bwk_port *port, const struct bw_event *ev)
{
	struct bwk_buf *b = bwk_buf_of(ev->cookie);

	if (!b)
		return;
	b->status = bwk_port_status(port, ev->status);
	b->got = ev->len;
	/* Now, so that it goes along with the acknowledgement of the last bytes. */
	if (b->region && !b->status && bwk_port_give_up(port, ev->peer, b->region) == 0)
		b->region = 0;
	if (!bwk_buf_over(b, port))
		return;
	hlist_del_init(&b->held);
	bwk_port_returned(port, b);
}

void bwk_port_back(struct bwk_port *port, struct bwk_buf *b)
{
	bwk_port_lock(port);
	b->back = NULL;
	if (!hlist_unhashed(&b->held)) {
		hlist_del_init(&b->held);
		bwk_port_returned(port, b);
	} else if (!bwk_region_back(port, b)) {
		bwk_buf_free(b); /* the port has ended */
	}
	bwk_port_unlock(port);
	bwk_port_put(port);
}

/* At most so many events; the rest of that number. Apart: Debian's kernels clear every variable on
 * the stack, and mostly there is no event. */
static noinline u32 bwk_port_events(struct bwk_port *port, u32 most)
{
	struct bw_event ev;

	for (; most && bwk_engine(port, next_event, &ev); most--) {
		switch (ev.type) {
		case BW_EV_MESSAGE:
			bwk_host_message(port, &ev);
			break;
		case BW_EV_SENT:
		case BW_EV_PULLED:
		case BW_EV_REGION_DONE:
			bwk_port_done(port, &ev);
			break;
		case BW_EV_PEER_UP:
		case BW_EV_PEER_DOWN:
		case BW_EV_PATH:
			bwk_peer_event(port, &ev);
			break;
		}
	}
	return most;
}

bool bwk_port_hear(struct bwk_port *port)
{
	if (port->running || !bwk_reliable(port->protocol) || !bw_reliable_untold(port->engine))
		return false;
	port->running = true;
	bwk_port_events(port, BWK_VISIT_MOST);
	port->running = false;
	return true;
}

/* All but the ends of lost peers, and of what these leave behind: messages may lie in a frame that
 * is about to go. */
static noinline void bwk_port_tell(struct bwk_port *port)
{
	while (bwk_reliable(port->protocol)
		       ? bw_reliable_tells(port->engine)
		       : port->protocol->next_deadline(port->engine) <= port->now)
		if (bwk_port_events(port, 1))
			break;
}

/* Events of earlier visits are still to be told, of which there are more than one visit may tell.
 * True: they come first, and what a frame brought would come too late for it. */
static noinline bool bwk_port_behind(struct bwk_port *port)
{
	port->running = true;
	bwk_port_events(port, BWK_VISIT_MOST);
	bwk_port_tell(port);
	port->running = false;
	return bw_reliable_untold(port->engine);
}

/* Frames that carry on where the one before ends, at most so many, or until no more may wait. How
 * many. Apart: a short message has none. */
static noinline u32 bwk_port_row(struct bwk_port *port, u32 most)
{
	u32 n = 0;

	while (n < most && !bwk_out_full(&port->out) &&
	       bw_reliable.next_alike(port->engine, &port->tx)) {
		bwk_transmit(port, &port->tx);
		port->tx_bytes += port->tx.len;
		n++;
	}
	return n;
}

/* One frame, and those that carry on where it ends, at most so many. How many. */
static u32 bwk_port_transmit(struct bwk_port *port, u32 most)
{
	if (!bwk_engine(port, next_frame, &port->tx, port->now))
		return 0;
	bwk_transmit(port, &port->tx);
	port->tx_bytes += port->tx.len;
	if (likely(port->tx.len <= BWK_HOST_SHORT) || unlikely(!bwk_reliable(port->protocol)))
		return 1;
	return 1 + bwk_port_row(port, most - 1);
}

/* Has the engine anything to do, or an event to tell? */
static inline bool bwk_port_due(const struct bwk_port *port)
{
	return likely(bwk_reliable(port->protocol))
		       ? bw_reliable_soonest(port->engine) <= port->now
		       : port->protocol->next_deadline(port->engine) <= port->now;
}

/* A timer that goes off too early costs less than setting it anew each time. */
void bwk_port_timer_set(struct bwk_port *port, u64 deadline)
{
	if (deadline >= port->timer_at)
		return;
	port->timer_at = deadline;
	hrtimer_start(&port->timer, ns_to_ktime(max(deadline, port->now)), HRTIMER_MODE_ABS_SOFT);
}

/* The same for the engine's next deadline, which need not be known if it is not earlier. */
static void bwk_port_timer_follow(struct bwk_port *port)
{
	if (unlikely(port->region_expire < port->timer_at))
		bwk_port_timer_set(port, port->region_expire);
	if (bwk_reliable(port->protocol) && bw_reliable_soonest(port->engine) >= port->timer_at)
		return;
	bwk_port_timer_set(port, bwk_engine(port, next_deadline));
}

/* There is more to be done than one visit may: the timer goes off at once, and so comes after what
 * else waits for softirq. */
static noinline void bwk_port_squeezed(struct bwk_port *port)
{
	this_cpu_inc(port->node->count->squeezed);
	bwk_port_timer_set(port, port->now);
}

void bwk_port_run(struct bwk_port *port)
{
	u32 left = BWK_VISIT_MOST, sent;
	bool busy;

	if (port->running) /* called by an event's handler: the loop further out goes on */
		return;
	port->running = true;
	busy = unlikely(port->out.stuck);
	while (left && bwk_port_due(port)) {
		busy = busy || unlikely(bwk_out_full(&port->out));
		sent = busy ? 0 : bwk_port_transmit(port, left);
		left -= sent;
		if (sent)
			continue;
		/* To find nothing to send the engine may have looked at many peers. */
		left = bwk_port_events(port, left - min_t(u32, left, BWK_VISIT_LOOK));
		if (busy)
			break;
	}
	if (unlikely(!list_empty(&port->read_over)) || unlikely(port->now >= port->region_expire))
		left = bwk_region_collect(port, BWK_VISIT_MOST) ? 0 : left;
	port->running = false;
	if (unlikely(bwk_engine(port, hungry)) && !port->hungry) {
		port->hungry = true;
		bwk_port_later(port);
	}
	if (unlikely(port->lingering)) {
		if (!port->protocol->busy(port->engine) || port->now >= port->linger_until)
			bwk_port_later(port);
		else
			bwk_port_timer_set(port, port->linger_until);
	}
	if (unlikely(busy)) /* the engine is asked again by who sends, when there is room */
		port->out.more = true;
	else if (unlikely(!left))
		bwk_port_squeezed(port);
	else
		bwk_port_timer_follow(port);
}

void bwk_port_run_soon(struct bwk_port *port)
{
	bwk_port_timer_set(port, port->now + BWK_SOON_NS);
}

/* The same as bwk_port_unlock(), in softirq. */
static void bwk_port_unlock_soft(struct bwk_port *port) __releases(&port->lock)
{
	if (port->out.first)
		bwk_out_send(port);
	else
		spin_unlock(&port->lock);
}

enum hrtimer_restart bwk_port_timer(struct hrtimer *timer)
{
	struct bwk_port *port = container_of(timer, struct bwk_port, timer);

	spin_lock(&port->lock);
	port->now = ktime_get_ns();
	port->timer_at = BW_NEVER;
	if (!port->dead)
		bwk_port_run(port);
	bwk_port_unlock_soft(port);
	return HRTIMER_NORESTART;
}

/* How much of a frame must lie in one piece: all heads of its parts. A frame of one part, which
 * long messages make, has one at its start; the payload then stays in its pages. */
static u32 bwk_frame_head(const struct sk_buff *skb)
{
	const u32 fixed = sizeof(struct bw_hdr) + sizeof(struct bw_ackblk);
	const struct bw_hdr *h = (const struct bw_hdr *)skb->data;
	const struct bw_part *part = (const struct bw_part *)(skb->data + fixed);
	u32 size;

	if (skb_headlen(skb) < fixed + sizeof(*part) || h->type != BW_FRAME_DATA)
		return min_t(u32, skb->len, BW_HEAD_MAX);
	size = part->kind == BW_PART_BULK ? sizeof(struct bw_part_bulk)
					  : sizeof(struct bw_part_msg);
	if (fixed + size + part->plen == sizeof(*h) + h->len)
		return fixed + size;
	return min_t(u32, skb->len, BW_HEAD_MAX);
}

/* Neither damaged on the way nor late: its sender is wrong. */
static bool bwk_frame_is_malformed(int error)
{
	return error == -BW_DROP_SHORT || error == -BW_DROP_VERSION || error == -BW_DROP_TYPE ||
	       error == -BW_DROP_MALFORMED;
}

/* The head of a frame does not lie in one piece: it is not all there, or there is no memory. */
static noinline void bwk_port_unpulled(struct bwk_port *port, struct sk_buff *skb,
				       const struct bwk_iface *iface)
{
	if (skb->len < bwk_frame_head(skb)) {
		this_cpu_inc(port->node->count->malformed);
		bwk_bad_frame(iface, skb, -BW_DROP_SHORT);
	} else {
		this_cpu_inc(port->node->count->uncopied);
	}
	kfree_skb(skb);
}

/* What the engine is to know of a frame; false: it is lost, and its reference used up. */
static __always_inline bool bwk_port_prepare(struct bwk_port *port, struct sk_buff *skb,
					     const struct bwk_iface *iface, struct bw_rx_frame *f)
{
	/* What is sealed is opened where it lies: nobody else may refer to it. */
	if (unlikely(!bwk_frags_readable(skb)) ||
	    (unlikely(port->seals) && unlikely(skb_linearize_cow(skb)))) {
		this_cpu_inc(port->node->count->uncopied);
		kfree_skb(skb);
		return false;
	}
	if (unlikely(!pskb_may_pull(skb, bwk_frame_head(skb)))) {
		bwk_port_unpulled(port, skb, iface);
		return false;
	}
	port->rx_bytes += skb->len;
	f->head = skb->data;
	f->head_len = skb_headlen(skb);
	f->len = skb->len;
	f->cookie = skb;
	f->from.link = iface->link;
	ether_addr_copy(f->from.bytes, eth_hdr(skb)->h_source);
	return true;
}

/* A frame and those of n that carry on where it ends, with all that they tell the owner; how many.
 * Lock held; their references are used up. One alone has code of its own. */
static __always_inline u32 bwk_port_take(struct bwk_port *port, const struct bw_rx_frame *f, u32 n,
					 const struct bwk_iface *iface)
{
	u32 taken = 1, i;
	int error;

	if (bwk_reliable(port->protocol) && unlikely(bw_reliable_untold(port->engine)) &&
	    bwk_port_behind(port)) {
		this_cpu_inc(port->node->count->squeezed);
		kfree_skb(f->cookie); /* it comes again */
		return 1;
	}
	port->rx = f;
	port->rx_used = false;
	port->running = true; /* what is told meanwhile is followed by the run of all */
	if (n == 1 || unlikely(!bwk_reliable(port->protocol)))
		error = bwk_engine(port, rx, f, port->now);
	else
		error = bw_reliable.rx_row(port->engine, f, n, &taken, port->now);
	if (unlikely(error < 0) && bwk_frame_is_malformed(error))
		bwk_bad_frame(iface, f->cookie, error);
	if (bwk_port_due(port) && unlikely(!bwk_port_events(port, BWK_VISIT_MOST)))
		bwk_port_tell(port); /* one may lie in the frame */
	port->running = false;
	port->rx = NULL;
	/* A message's frame is charged to a socket, which may be closed once the lock is free. In
	 * softirq a frame goes where the next one is taken from. */
	for (i = 0; i < taken; i++)
		napi_consume_skb(f[i].cookie, 1);
	return taken;
}

/* The same of frames that came together, chained by `next`. */
static noinline void bwk_port_take_all(struct bwk_port *port, struct sk_buff *skb,
				       const struct bwk_iface *iface)
{
	struct sk_buff *next;
	u32 n = 0, at;

	for (; skb; skb = next) {
		next = skb->next;
		skb_mark_not_on_list(skb);
		if (likely(bwk_port_prepare(port, skb, iface, &port->rx_row[n])))
			n++;
		if (next && n < BWK_PORT_ROW)
			continue;
		for (at = 0; at < n;)
			at += bwk_port_take(port, &port->rx_row[at], n - at, iface);
		n = 0;
	}
}

void bwk_port_receive(struct bwk_port *port, struct sk_buff *skb, const struct bwk_iface *iface)
{
	spin_lock(&port->lock);
	port->now = ktime_get_ns();
	if (unlikely(port->dead)) {
		kfree_skb_list(skb);
	} else {
		if (skb->next)
			bwk_port_take_all(port, skb, iface);
		else if (likely(bwk_port_prepare(port, skb, iface, port->rx_row)))
			bwk_port_take(port, port->rx_row, 1, iface);
		bwk_port_run(port);
	}
	bwk_port_unlock_soft(port);
}
