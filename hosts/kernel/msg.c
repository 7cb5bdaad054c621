/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets without connections, SOCK_RDM and SOCK_DGRAM: each message goes to the address it is sent
 * to. A short message is copied and sent eagerly; of a long one the receiver gets an envelope and
 * pulls the bytes out of the sender's pages straight into its own.
 */
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>

#include "conn.h"

/* ---- what comes from the port, its lock held ---- */

static void bwk_msg_message(void *owner, struct bwk_peer *peer, const struct bw_event *ev,
			    struct sk_buff *skb, u32 off, bool whole)
{
	struct bwk_sock *bs = owner;

	if (ev->dst_ep != BW_EP_MESSAGES) {
		if (ev->code == BW_CONN_REQUEST && bwk_reliable(bs->protocol))
			bwk_conn_refuse(peer->port, peer);
		return;
	}
	/* A connected socket for datagrams gets those of its peer only, as POSIX says. */
	if (bs->sk.sk_type == SOCK_DGRAM && bs->to.sbw_port && !bwk_peer_matches(peer, &bs->to)) {
		atomic_inc(&bs->sk.sk_drops);
		return;
	}
	bwk_queue_message(bs, peer, ev, skb, off, whole);
}

static void bwk_msg_done(void *owner, struct bwk_buf *b)
{
	bwk_sock_done(owner, b);
}

/* Is what becomes of this peer anything to the program: has it spoken to it, or does it know its
 * number? Else whoever calls could end its calls. Port's lock held. */
static bool bwk_msg_concerns(const struct bwk_sock *bs, const struct bwk_peer *peer)
{
	return READ_ONCE(peer->told) || (bs->to.sbw_port && bwk_peer_was_at(peer, &bs->to));
}

static void bwk_msg_peer_down(void *owner, struct bwk_peer *peer)
{
	struct bwk_sock *bs = owner;
	struct sock *sk = &bs->sk;

	if (!bwk_msg_concerns(bs, peer))
		return;
	if (READ_ONCE(bs->info_wanted)) {
		refcount_inc(&peer->refs);
		list_add_tail(&peer->down, &bs->downs);
		bwk_sock_readable(sk);
	} else if (peer->status != -ESHUTDOWN) {
		WRITE_ONCE(sk->sk_err, -peer->status);
		sk_error_report(sk);
	}
}

static bool bwk_msg_region(void *owner)
{
	struct bwk_sock *bs = owner;

	if (!READ_ONCE(bs->info_wanted))
		return false;
	bwk_sock_readable(&bs->sk);
	return true;
}

static const struct bwk_port_ops bwk_msg_port_ops = {
	.message = bwk_msg_message,
	.done = bwk_msg_done,
	.peer_down = bwk_msg_peer_down,
	.region = bwk_msg_region,
};

/* ---- sending ---- */

static int bwk_msg_sendmsg(struct socket *sock, struct msghdr *m, size_t len)
{
	struct bwk_sock *bs = bwk_sk(sock->sk);
	struct sockaddr_beowire to BWK_FILLED;
	struct bwk_send s BWK_FILLED;
	struct bwk_port *port;
	int error;

	if (m->msg_flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (READ_ONCE(sock->sk->sk_shutdown) & SEND_SHUTDOWN)
		return -EPIPE;
	bwk_send_begin(&s, sock->sk, m, BW_EP_MESSAGES);
	if (len > (bwk_reliable(bs->protocol) ? BEOWIRE_MSG_MAX : U16_MAX))
		return -EMSGSIZE;
	if (m->msg_controllen) {
		error = bwk_given_info(sock->sk, m, &s.info);
		if (error)
			return error;
	}
	if ((s.info.flags & (BEOWIRE_SEND_EAGER | BEOWIRE_SEND_SHORT)) && len > BW_EAGER_LIMIT)
		return -EMSGSIZE;
	if (m->msg_name) {
		error = bwk_given_target(sock->sk, m->msg_name, m->msg_namelen, &to);
		if (error)
			return error;
		s.to = &to;
	} else if (!s.info.peer && !READ_ONCE(bs->to_port)) {
		return -EDESTADDRREQ;
	}
	port = bwk_sock_port(bs, &bwk_msg_port_ops, bs);
	if (IS_ERR(port))
		return PTR_ERR(port);
	error = bwk_send(bs, port, &m->msg_iter, len, &s);
	return error ? error : (int)len;
}

/* ---- receiving ---- */

/* Does a peer wait for an answer about the program's memory? */
static bool bwk_msg_asked(const struct bwk_sock *bs)
{
	const struct bwk_port *port = READ_ONCE(bs->port);

	return port && READ_ONCE(port->region_asks);
}

static bool bwk_msg_ready(const struct sock *sk)
{
	const struct bwk_sock *bs = bwk_sk(sk);

	return bwk_queue_ready(sk) || (!list_empty(&bs->apart) && bwk_apart_ready(bwk_sk(sk))) ||
	       !skb_queue_empty_lockless(&bs->apart_lost) ||
	       (READ_ONCE(bs->info_wanted) && (!list_empty(&bs->done) || bwk_msg_asked(bs) ||
					       (!list_empty(&bs->downs) && bwk_apart_alone(bs))));
}

/* Or nothing more is to be received. */
static bool bwk_msg_decided(const struct sock *sk)
{
	return bwk_msg_ready(sk) || (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN);
}

static int bwk_msg_put_info(struct msghdr *m, const struct beowire_info *info)
{
	return put_cmsg(m, SOL_BEOWIRE, BEOWIRE_INFO, sizeof(*info), (void *)info);
}

/* What is to be said of a message. Apart: Debian's kernels clear every variable on the stack, and
 * its own is cleared only where somebody asks. */
static noinline int bwk_msg_describe(struct msghdr *m, const struct bwk_cb *cb)
{
	u8 event = READ_ONCE(cb->event);
	const struct beowire_info info = {
		.tag = cb->tag,
		.imm = cb->imm,
		.len = cb->len,
		.key = event == BEOWIRE_ENVELOPE ? cb->key : 0, /* AHEAD: a buffer of ours */
		.peer = cb->peer->number,
		.event = event == BWK_EVENT_AHEAD ? BEOWIRE_MESSAGE : event,
		.code = cb->code,
	};

	bwk_peer_tell(cb->peer);
	return bwk_msg_put_info(m, &info);
}

/* The end of a send, of a pull, or of a peer, if there is one to report; *got is what recvmsg()
 * returns. A peer's end comes after its last message. Apart for the same reason. */
static noinline bool bwk_msg_take_event(struct bwk_sock *bs, struct msghdr *m, int *got)
{
	struct beowire_info info = {0};
	struct bwk_buf *b = NULL;
	struct bwk_peer *peer = NULL;
	struct sockaddr_beowire from = {0};
	bool asked = false;
	int error, n = 0;

	if (list_empty(&bs->done) && list_empty(&bs->downs) && !bwk_msg_asked(bs))
		return false;
	bwk_port_lock(bs->port);
	b = list_first_entry_or_null(&bs->done, struct bwk_buf, ended);
	if (b) {
		list_del(&b->ended);
	} else if (bwk_region_take(bs->port, &info, &from)) {
		asked = true;
	} else if (bwk_apart_alone(bs)) {
		peer = list_first_entry_or_null(&bs->downs, struct bwk_peer, down);
		if (peer)
			list_del_init(&peer->down);
	}
	bwk_port_unlock(bs->port);
	if (b) {
		info.event = b->use == BWK_BUF_PULL ? BEOWIRE_PULLED : BEOWIRE_SENT;
		info.cookie = b->cookie;
		info.status = b->status;
		info.len = b->got;
		info.peer = b->peer;
		if (b->to && !b->status && bwk_buf_copy_out(bs->port->node, b))
			info.status = -EFAULT;
		bwk_buf_free_now(b);
	} else if (peer) {
		info.event = BEOWIRE_DOWN;
		info.peer = peer->number;
		info.status = peer->status;
		info.imm = peer->versions;
		info.len = strnlen(peer->name, BW_NAME_MAX);
		n = copy_to_iter(peer->name, info.len, &m->msg_iter);
		bwk_peer_put(peer);
	} else if (!asked) {
		return false;
	} else if (m->msg_name) {
		memcpy(m->msg_name, &from, sizeof(from));
		m->msg_namelen = sizeof(from);
	}
	error = bwk_msg_put_info(m, &info);
	*got = error ? error : n;
	return true;
}

/* Is it more than is fetched ahead? */
static bool bwk_msg_is_too_long(const struct bwk_sock *bs, const struct bwk_cb *cb)
{
	return cb->event == BEOWIRE_ENVELOPE && cb->len > READ_ONCE(bs->port->node->set.memory_max);
}

/* The bytes of a long message. -EAGAIN, a signal's errno, -ENOMEM, -ENOBUFS: not now, another call
 * may have it; -EBUSY: nor this one, before it has given what others have sent. */
static int bwk_msg_fetch(struct bwk_sock *bs, struct sk_buff *skb, struct msghdr *m, size_t n,
			 bool nonblock, long *timeout)
{
	const struct bwk_cb *cb = bwk_cb(skb);
	struct bwk_source from = {.handle = READ_ONCE(cb->peer->handle),
				  .last = true,
				  .yields = cb->apart && bwk_peer_is_stranger(cb->peer)};
	const struct bwk_buf *b;
	int error;

	do {
		if ((nonblock || (from.yields && !bwk_apart_alone(bs))) &&
		    cb->event == BEOWIRE_ENVELOPE) {
			error = bwk_fetch_ahead(bs, skb);
			/* Another thread was faster; or it never will be. */
			if (!nonblock && (error == -EAGAIN || bwk_msg_is_too_long(bs, cb)))
				return -EBUSY;
			if (error || cb->event == BEOWIRE_MESSAGE)
				return error;
		}
		b = bwk_fetch_found(skb);
		if (!b) {
			from.key = cb->key;
			return bwk_fetch_now(bs, &from, &m->msg_iter, n, timeout);
		}
		error = bwk_fetch_await(bs, skb, timeout);
	} while (error == -ESTALE);
	return error ? error : bwk_buf_to_iter(b, cb->off, n, &m->msg_iter);
}

/* Is the message still there for another call? */
static bool bwk_msg_stays(int error)
{
	return error == -EAGAIN || error == -EINTR || error == -ERESTARTSYS || error == -ENOMEM ||
	       error == -ENOBUFS || error == -EBUSY;
}

/* A stranger's message that is too long to be fetched ahead, and cannot be fetched otherwise as
 * others send, or as the call does not wait: no such call would ever have it. */
static bool bwk_msg_is_hopeless(const struct bwk_sock *bs, const struct bwk_cb *cb, int error,
				bool nonblock)
{
	return (error == -EBUSY || (error == -ENOBUFS && nonblock)) && bs->sk.sk_type == SOCK_RDM &&
	       bwk_peer_is_stranger(cb->peer) && bwk_msg_is_too_long(bs, cb);
}

/* Its sender has to go. */
static int bwk_msg_refuse(struct bwk_sock *bs, const struct bwk_peer *peer)
{
	bwk_port_lock(bs->port);
	bwk_queue_lose(bs, peer);
	bwk_port_run(bs->port);
	bwk_port_unlock(bs->port);
	return -ECANCELED;
}

/* Does the next message come in its place? Its sender has taken it back; or is a stranger, who has
 * announced what cannot be fetched of him, or not as long as others have sent something. */
static bool bwk_msg_passes(struct bwk_sock *bs, const struct bwk_peer *peer, int error)
{
	bool concerns;

	if (error == -ECANCELED || error >= 0 || error == -EFAULT || bwk_msg_stays(error))
		return error == -ECANCELED || error == -EBUSY;
	bwk_port_lock(bs->port);
	concerns = bwk_msg_concerns(bs, peer);
	bwk_port_unlock(bs->port);
	return !concerns;
}

/* One message out of its socket buffer. */
static int bwk_msg_deliver(struct bwk_sock *bs, struct sk_buff *skb, struct msghdr *m, size_t len,
			   int flags, long *timeout)
{
	const struct bwk_cb *cb = bwk_cb(skb);
	size_t n = min_t(size_t, len, cb->len);
	int error = 0;

	if (m->msg_name) {
		memcpy(m->msg_name, &cb->peer->addr, sizeof(cb->peer->addr));
		m->msg_namelen = sizeof(cb->peer->addr);
	}
	if (cb->event == BEOWIRE_MESSAGE && cb->off + n <= skb_headlen(skb))
		/* The bounds were looked at just now: hardened user copies need not do it again. */
		error = _copy_to_iter(skb->data + cb->off, n, &m->msg_iter) == n ? 0 : -EFAULT;
	else if (cb->event == BEOWIRE_MESSAGE)
		error = skb_copy_datagram_msg(skb, cb->off, m, (int)n);
	else if ((READ_ONCE(bs->info_wanted) && cb->event == BEOWIRE_ENVELOPE) ||
		 (flags & MSG_PEEK))
		n = 0;
	else
		error = bwk_msg_fetch(bs, skb, m, n, flags & MSG_DONTWAIT, timeout);
	/* Not of what another thread may take meanwhile: the option can be set during the call. */
	if (!error && !(flags & MSG_PEEK) && READ_ONCE(bs->info_wanted))
		error = bwk_msg_describe(m, cb);
	if (error)
		return error;
	if (n < cb->len && !READ_ONCE(bs->info_wanted))
		m->msg_flags |= MSG_TRUNC;
	return flags & MSG_TRUNC ? (int)cb->len : (int)n;
}

/* The first message, which stays in the queue for MSG_PEEK; NULL: nothing more comes, an
 * error, or an event that was given instead: *error. */
static struct sk_buff *bwk_msg_first(struct bwk_sock *bs, struct msghdr *m, int flags,
				     long *timeout, int *error)
{
	struct sock *sk = &bs->sk;
	struct sk_buff *skb;

	do {
		if (READ_ONCE(bs->info_wanted) && bwk_msg_take_event(bs, m, error))
			return NULL;
		if (!skb_queue_empty_lockless(&bs->apart_lost))
			bwk_apart_drop_lost(bs);
		if (flags & MSG_PEEK) {
			if (!list_empty(&bs->apart))
				bwk_apart_show(bs);
			spin_lock_bh(&sk->sk_receive_queue.lock);
			skb = skb_peek(&sk->sk_receive_queue);
			if (skb) {
				skb_get(skb);
				refcount_inc(&bwk_cb(skb)->peer->refs);
			}
			spin_unlock_bh(&sk->sk_receive_queue.lock);
		} else {
			skb = skb_dequeue(&sk->sk_receive_queue);
			if (!skb && !list_empty(&bs->apart))
				skb = bwk_apart_take(bs);
		}
		if (skb)
			return skb;
		*error = sock_error(sk);
		if (*error || (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN))
			return NULL;
		*error = bwk_sock_wait_busy(sk, bwk_msg_decided, timeout);
		if (!*error && fatal_signal_pending(current)) /* other threads may take all */
			*error = -EINTR;
	} while (!*error);
	return NULL;
}

/* A message has been dealt with, or is put back. */
static void bwk_msg_settle(struct bwk_sock *bs, struct sk_buff *skb, int error)
{
	if (bwk_msg_stays(error)) {
		/* The next call is to find more than this one. */
		if (bwk_cb(skb)->event == BEOWIRE_ENVELOPE)
			bwk_fetch_ahead(bs, skb);
		if (bwk_cb(skb)->apart)
			bwk_apart_put_back(bs, skb);
		else
			bwk_queue_put_back(bs, skb);
		return;
	}
	if (bwk_fetch_found(skb))
		bwk_fetch_taken(bs, bwk_fetch_found(skb));
	if (bwk_cb(skb)->apart)
		bwk_apart_leave(bs, skb);
	else if (!list_empty(&bs->apart) && !READ_ONCE(bs->info_wanted))
		bwk_apart_step(bs);
	else if (!list_empty(&bs->apart)) /* asked for meanwhile: a line may be due now */
		bwk_apart_tell(bs);
	bwk_queue_free(skb);
	bwk_queue_relieve(bs);
}

static int bwk_msg_recvmsg(struct socket *sock, struct msghdr *m, size_t len, int flags)
{
	struct bwk_sock *bs = bwk_sk(sock->sk);
	long timeout = bwk_sock_rcvtimeo(sock->sk, flags & MSG_DONTWAIT);
	struct sk_buff *skb;
	bool passes;
	int error = 0;

	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return -EOPNOTSUPP;
	if ((flags & MSG_PEEK) && READ_ONCE(bs->info_wanted))
		return -EOPNOTSUPP; /* events are given once */
	do {
		skb = bwk_msg_first(bs, m, flags, &timeout, &error);
		if (!skb)
			return error;
		error = bwk_msg_deliver(bs, skb, m, len, flags, &timeout);
		if (unlikely(bwk_msg_is_hopeless(bs, bwk_cb(skb), error, flags & MSG_DONTWAIT)))
			error = bwk_msg_refuse(bs, bwk_cb(skb)->peer);
		passes = error < 0 && bwk_msg_passes(bs, bwk_cb(skb)->peer, error);
		if (flags & MSG_PEEK)
			bwk_queue_free(skb);
		else
			bwk_msg_settle(bs, skb, error);
	} while (passes);
	return error;
}

/* Where a pull puts its bytes: into the program's pages, or if they cannot be pinned and the
 * program is told of the end (`told`), into ours, to be copied then. -EDQUOT, -EAGAIN: neither. */
static struct bwk_buf *bwk_msg_pull_room(struct bwk_sock *bs, const struct beowire_pull *pull,
					 bool told)
{
	struct bwk_buf *b = ERR_PTR(-EAGAIN);
	struct iov_iter to;
	struct iovec part;
	int error = bwk_iter_user((void __user *)pull->buf, pull->len, &part, &to);

	if (error)
		return ERR_PTR(error);
	if (pull->len && (pull->len > READ_ONCE(bs->copy_max) || !told))
		b = bwk_buf_pin(bs->account, &to, pull->len, BWK_PIN_WRITE_LONG);
	if (b == ERR_PTR(-EDQUOT) && told)
		atomic_long_inc(&bs->port->memlock_limited);
	if ((b != ERR_PTR(-EAGAIN) && b != ERR_PTR(-EDQUOT)) || (pull->len && !told))
		return b;
	b = bwk_buf_held(bs->account, pull->len);
	if (!IS_ERR(b) && pull->len)
		bwk_buf_copy_later(b, pull->buf);
	return b;
}

/* Nobody would come to copy the bytes later: they are waited for. */
static int bwk_msg_pull_now(struct bwk_sock *bs, const struct bwk_source *from,
			    const struct beowire_pull *pull)
{
	long timeout = bwk_sock_rcvtimeo(&bs->sk, false);
	struct iov_iter to;
	struct iovec part;
	int error = bwk_iter_user((void __user *)pull->buf, pull->len, &part, &to);

	return error ? error : bwk_fetch_now(bs, from, &to, pull->len, &timeout);
}

int bwk_msg_pull(struct bwk_sock *bs, const struct beowire_pull *pull)
{
	struct bwk_port *port = smp_load_acquire(&bs->port);
	struct bwk_source from = {.key = pull->key, .off = pull->off};
	bool told = pull->cookie && READ_ONCE(bs->info_wanted);
	struct bwk_peer *peer;
	struct bwk_buf *b;
	u64 id;
	int error;

	if (!port)
		return -ENOTCONN;
	if ((pull->flags & ~BEOWIRE_PULL_MEMORY) || pull->len > BEOWIRE_MSG_MAX)
		return -EINVAL;
	from.memory = pull->flags & BEOWIRE_PULL_MEMORY;
	from.last = !from.memory;
	bwk_port_lock(port);
	peer = bwk_peer_by_number(port, pull->peer);
	if (peer)
		from.handle = peer->handle;
	bwk_port_unlock(port);
	if (!from.handle)
		return -ENOTCONN;
	b = bwk_msg_pull_room(bs, pull, told);
	if (b == ERR_PTR(-EAGAIN) || b == ERR_PTR(-EDQUOT))
		return bwk_msg_pull_now(bs, &from, pull);
	if (IS_ERR(b))
		return PTR_ERR(b);
	b->cookie = pull->cookie;
	b->notify = told;
	b->peer = pull->peer;
	b->owner = bs;
	error = bwk_fetch(port, &from, b, &id);
	if (error)
		bwk_buf_free_now(b);
	return error;
}

/* A send that its receiver fetches goes on; a pull ends at once, whatever it has fetched. */
static int bwk_msg_cancel_buf(struct bwk_port *port, const struct bwk_buf *b)
{
	struct bw_op op = {.type = BW_OP_RETRACT, .peer = b->handle};

	op.expose.key = b->key;
	if (b->use == BWK_BUF_PULL) {
		op.type = BW_OP_CANCEL_PULL;
		op.pull_id = b->key;
	} else if (bw_reliable_begun(port->engine, b->key)) {
		return -ENOENT;
	}
	return bwk_port_submit(port, &op) ? -ENOENT : 0;
}

int bwk_msg_cancel(struct bwk_sock *bs, u64 cookie)
{
	struct bwk_port *port = smp_load_acquire(&bs->port);
	int error = -ENOENT;
	struct bwk_buf *b;

	if (!port)
		return -ENOENT;
	bwk_port_lock(port);
	b = bwk_sock_named(bs, cookie);
	if (b)
		error = bwk_msg_cancel_buf(port, b);
	bwk_port_run(port);
	bwk_port_unlock(port);
	return error;
}

int bwk_msg_watch(struct bwk_sock *bs, const struct beowire_watch *watch)
{
	struct bwk_port *port = smp_load_acquire(&bs->port);
	struct bw_op op = {.type = BW_OP_WATCH, .on = watch->on};
	struct bwk_peer *peer;
	int error = -ENOTCONN;

	if (!port)
		return -ENOTCONN;
	if (watch->on > 1)
		return -EINVAL;
	bwk_port_lock(port);
	peer = bwk_peer_by_number(port, watch->peer);
	if (peer && peer->handle) {
		op.peer = peer->handle;
		error = bwk_port_submit(port, &op);
	}
	bwk_port_run(port);
	bwk_port_unlock(port);
	return error;
}

int bwk_msg_need(struct bwk_sock *bs, const struct beowire_watch *need)
{
	struct bwk_port *port = smp_load_acquire(&bs->port);
	struct bwk_peer *peer;

	if (!port)
		return -ENOTCONN;
	if (need->on > 1)
		return -EINVAL;
	bwk_port_lock(port);
	peer = bwk_peer_by_number(port, need->peer);
	if (peer && need->on)
		bwk_peer_tell(peer);
	else if (peer)
		WRITE_ONCE(peer->known, false);
	if (!need->on && port->last == peer)
		port->last = NULL; /* the next send by its address looks for it, and tells it */
	bwk_port_unlock(port);
	return peer ? 0 : -ENOTCONN;
}

void bwk_msg_pressure(struct bwk_sock *bs, bool on)
{
	struct bwk_port *port = smp_load_acquire(&bs->port);

	WRITE_ONCE(bs->hold, on);
	if (!port)
		return;
	bwk_port_lock(port);
	if (on)
		bwk_queue_press(bs, true);
	bwk_port_run(port);
	bwk_port_unlock(port);
	bwk_queue_relieve(bs);
}

/* ---- the rest of the calls ---- */

static int bwk_msg_bind(struct socket *sock, bwk_sockaddr *addr, int len)
{
	struct bwk_sock *bs = bwk_sk(sock->sk);
	struct sockaddr_beowire self;
	int error = bwk_given_addr(sock->sk, addr, len, &self);

	return error ? error : bwk_sock_bind_to(bs, &self, &bwk_msg_port_ops, bs);
}

int bwk_msg_connect(struct socket *sock, bwk_sockaddr *addr, int len, int flags)
{
	struct bwk_sock *bs = bwk_sk(sock->sk);
	struct sockaddr_beowire to = {0};
	int error = 0;

	if (len < (int)sizeof(addr->sa_family))
		return -EINVAL;
	if (addr->sa_family != AF_UNSPEC)
		error = bwk_given_target(sock->sk, addr, len, &to);
	if (error)
		return error;
	mutex_lock(&bs->lock);
	if (bs->port)
		bwk_port_lock(bs->port);
	bwk_sock_direct(bs, &to);
	if (bs->port)
		bwk_port_unlock(bs->port);
	mutex_unlock(&bs->lock);
	return 0;
}

static __poll_t bwk_msg_poll(struct file *file, struct socket *sock, poll_table *wait)
{
	struct sock *sk = sock->sk;
	__poll_t events = 0;
	int shutdown;

	sock_poll_wait(file, sock, wait);
	shutdown = READ_ONCE(sk->sk_shutdown);
	if (READ_ONCE(sk->sk_err))
		events |= EPOLLERR;
	if (shutdown & RCV_SHUTDOWN)
		events |= EPOLLRDHUP | EPOLLIN | EPOLLRDNORM;
	if (shutdown == SHUTDOWN_MASK)
		events |= EPOLLHUP;
	if (bwk_msg_ready(sk))
		events |= EPOLLIN | EPOLLRDNORM;
	if (bwk_sock_roomy(sk, atomic_read(&bwk_sk(sk)->sending)))
		events |= EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND;
	return events;
}

int bwk_msg_shutdown(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	if (!READ_ONCE(bwk_sk(sk)->to_port))
		return -ENOTCONN;
	spin_lock_bh(&sk->sk_lock.slock);
	bwk_sock_shut(sk, how + 1);
	spin_unlock_bh(&sk->sk_lock.slock);
	sk->sk_state_change(sk);
	return 0;
}

/* The memory of a program that goes is used no longer; what was copied is still sent. False: its
 * receiver has several fetches of it under way, of which one was ended. */
static bool bwk_msg_abandon_buf(struct bwk_sock *bs, struct bwk_buf *b)
{
	struct bw_op op = {.type = BW_OP_RETRACT, .peer = b->handle, .one = true};
	const struct bwk_peer *peer;
	int error;

	if (b->kind != BWK_BUF_USER)
		return true;
	op.expose.key = b->key;
	if (b->use == BWK_BUF_PULL) {
		op.type = BW_OP_CANCEL_PULL;
		op.pull_id = b->key;
	}
	error = bwk_port_submit(bs->port, &op);
	peer = error == -EAGAIN ? bwk_peer_by_handle(bs->port, b->handle) : NULL;
	if (peer) /* there is no memory to tell it */
		bwk_peer_leave(bs->port, peer);
	return error != -EINPROGRESS;
}

static void bwk_msg_abandon(struct bwk_sock *bs)
{
	bwk_port_lock(bs->port);
	bwk_sock_disown(bs, bwk_msg_abandon_buf);
	bwk_port_run(bs->port);
	bwk_port_unlock(bs->port);
}

static int bwk_msg_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs;

	if (!sk)
		return 0;
	bs = bwk_sk(sk);
	bwk_sock_hide(bs);
	if (bs->port) {
		bwk_fetch_forget(bs);
		bwk_msg_abandon(bs);
		bwk_port_release(bs->port, bs);
	}
	/* From here on the port tells nothing any more. */
	bwk_queue_drop_all(bs);
	while (!list_empty(&bs->done)) {
		struct bwk_buf *b = list_first_entry(&bs->done, struct bwk_buf, ended);

		list_del(&b->ended);
		bwk_buf_free_now(b);
	}
	while (!list_empty(&bs->downs)) {
		struct bwk_peer *peer = list_first_entry(&bs->downs, struct bwk_peer, down);

		list_del(&peer->down);
		bwk_peer_put(peer);
	}
	sock->sk = NULL;
	bwk_sock_end(sk);
	return 0;
}

const struct proto_ops bwk_msg_ops = {
	.family = AF_BEOWIRE,
	.owner = THIS_MODULE,
	.release = bwk_msg_release,
	.bind = bwk_msg_bind,
	.connect = bwk_msg_connect,
	.socketpair = sock_no_socketpair,
	.accept = sock_no_accept,
	.getname = bwk_sock_getname,
	.poll = bwk_msg_poll,
	.ioctl = bwk_sock_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl = bwk_sock_compat_ioctl,
#endif
	.listen = sock_no_listen,
	.shutdown = bwk_msg_shutdown,
	.setsockopt = bwk_sock_setsockopt,
	.getsockopt = bwk_sock_getsockopt,
	.sendmsg = bwk_msg_sendmsg,
	.recvmsg = bwk_msg_recvmsg,
	.mmap = bwk_bell_mmap,
};
