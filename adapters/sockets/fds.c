/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which descriptors are whose. See fds.h. */
#include "fds.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "core.h"
#include "data.h"
#include "flow.h"
#include "owned.h"
#include "real.h"
#include "table.h"
#include "tell.h"
#include "wait.h"
#include "watch.h"

#define BWS_FDS_PATIENCE (2 * BWS_S) /* for the way back to TCP, of calls that wait for it */

static bool bws_is_tcp(int fd)
{
	socklen_t len = sizeof(int);
	int protocol;

	return !bws_r()->getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) &&
	       protocol == IPPROTO_TCP;
}

bool bws_leads_to(int dir, const char *name, const char *what)
{
	size_t len = strlen(what);
	char to[64];

	return readlinkat(dir, name, to, sizeof(to)) == (ssize_t)len && !memcmp(to, what, len);
}

bool bws_fds_is(int fd, const struct bws_conn *c)
{
	struct bws_conn *now = bws_table_conn(fd);

	if (now)
		bws_conn_put(now);
	return now == c;
}

/* One of the connection's descriptors is gone. Lock held. True if it was the last one. */
static bool bws_fds_drop(struct bws_conn *c, int fd)
{
	bws_watch_closed(c, fd);
	bws_table_set(fd, BWS_NOTHING, NULL);
	if (--c->refs) {
		for (int i = bws_table_next(0); i >= 0 && c->fd == fd; i = bws_table_next(i + 1)) {
			struct bws_conn *other = bws_table_conn(i);

			if (other == c)
				c->fd = i;
			if (other)
				bws_conn_put(other);
		}
		return false;
	}
	bws_watch_closed(c, -1);
	bws_conn_leave(c);
	return true;
}

/* The last one: what is on its way by Beowire is brought to its end by the control thread. */
static void bws_fds_end(struct bws_conn *c, int fd)
{
	struct linger linger = {0}, none = {.l_onoff = 1};
	socklen_t len = sizeof(linger);
	/* One that never came near Beowire has nothing to bring to its end. */
	bool plain = !c->paired && !c->answered && bws_settled(c);
	bool reset = !plain && !bws_r()->getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len) &&
		     linger.l_onoff && !linger.l_linger;
	bool left = false; /* bytes that TCP has not got */
	int kept = -1;

	if (!c->error && !reset) {
		bws_return(c, true);
		left = c->tx.way != BWS_TCP;
		/* A child that has it as well sends nothing of what is left. */
		if (!bws_settled(c) && (left || bws_conn_alone(c)))
			kept = bws_own(bws_r()->fcntl(fd, F_DUPFD_CLOEXEC, 0));
	}
	if (kept < 0) {
		/* The peer's TCP must not take it for a good end. */
		if (left) {
			bws_r()->setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
			c->error = ECONNRESET;
			c->why = "closed, and no descriptor to bring it to its end";
		}
		bws_tell(c);
		bws_conn_free(c);
		return;
	}
	c->fd = kept;
	c->orphan = true;
	c->offer_at = bw_clock_now() + BWS_ORPHAN;
	bws_attend();
}

void bws_replaced(int fd)
{
	struct bws_conn *c;
	struct bws_epoll *e;

	/* A child of vfork() has descriptors of its own, but our memory. */
	if (bws.pid != getpid())
		return;
	bws_lock();
	c = bws_table_conn(fd);
	e = bws_table_epoll(fd);
	if (c && bws_fds_drop(c, fd))
		bws_fds_end(c, fd);
	if (e)
		bws_epoll_closed(e, fd);
	if (c)
		bws_conn_put(c);
	bws_table_set(fd, BWS_NOTHING, NULL);
	bws_unlock();
}

void bws_forget(int fd)
{
	struct bws_conn *c = bws_table_conn(fd);

	if (bws_table_epoll(fd) || c)
		bws_replaced(fd);
	if (c)
		bws_conn_put(c);
}

static void bws_fds_linger(int fd)
{
	struct linger linger = {0};
	socklen_t len = sizeof(linger);
	struct bws_conn *c = bws_table_conn(fd);

	if (!c)
		return;
	if (atomic_load(&c->slow) && c->refs == 1 && bws_blocks(fd, 0) &&
	    !bws_r()->getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len) && linger.l_onoff &&
	    linger.l_linger)
		bws_return_wait(c, true, (uint64_t)linger.l_linger * BWS_S);
	bws_conn_put(c);
}

int bws_close(int fd)
{
	/* A child of vfork() has descriptors of its own, but our memory. */
	if (bws.on && bws.pid == getpid()) {
		bws_fds_linger(fd);
		if (bws_table_next(fd) == fd)
			bws_replaced(fd);
	}
	return bws_r()->close(fd);
}

static struct bws_conn *bws_fds_new(int fd, bool connector)
{
	struct bws_conn *c;

	bws_lock();
	c = bws_conn_new(fd, connector);
	if (c && bws.pinned) {
		c->pinned = true;
		c->why = bws.pinned;
	}
	if (c)
		bws_table_set(fd, BWS_CONN, c);
	bws_unlock();
	return c;
}

void bws_follow(int fd, bool connector)
{
	struct bws_conn *c = bws_table_conn(fd);

	if (c)
		bws_conn_put(c);
	/* Else it is expected, or connect() is called once more, to hear what has become of it. */
	if (!c || !connector) {
		bws_forget(fd);
		c = bws_is_tcp(fd) ? bws_fds_new(fd, connector) : NULL;
	}
	if (c && !bws.after && !atomic_exchange(&c->candidate, true))
		bws_control_want(c);
}

void bws_expect(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (bws.on && bws.pid == getpid() &&
	    !bws_r()->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	    info.tcpi_state == TCP_CLOSE && bws_is_tcp(fd))
		bws_fds_new(fd, true);
}

void bws_unfollow(int fd)
{
	struct bws_conn *c;

	bws_lock();
	c = bws_table_conn(fd);
	if (c && bws_fds_drop(c, fd)) {
		bws_tell(c);
		bws_conn_free(c);
	}
	if (c)
		bws_conn_put(c);
	bws_unlock();
}

void bws_copied(int from, int to)
{
	struct bws_conn *c;

	if (!bws.on)
		return;
	/* A child of vfork(), before exec: the copy is for the new program. */
	if (bws.pid != getpid()) {
		c = bws_table_conn(from);
		if (c)
			bws_pin(c, "given to another program");
		if (c)
			bws_conn_put(c);
		return;
	}
	bws_forget(to);
	bws_lock();
	c = bws_table_conn(from);
	if (c) {
		c->refs++;
		bws_table_set(to, BWS_CONN, c);
	} else {
		bws_epoll_copied(from, to);
	}
	bws_unlock();
	/* The C library's streams of these numbers read and write past us. */
	if (c && to <= STDERR_FILENO)
		bws_pin(c, "a standard stream");
	if (c)
		bws_conn_put(c);
}

int bws_shutdown(struct bws_conn *c, int fd, int how)
{
	int rc = 0;

	bws_lock();
	/* What has come is the program's still, then there is an end. */
	if (how != SHUT_WR && c->rx.way != BWS_TCP)
		c->rx.shut = true;
	else if (how != SHUT_WR)
		bws_rx_return(c, false);
	if ((how == SHUT_WR || how == SHUT_RDWR) && c->tx.way != BWS_TCP) {
		c->tx.shut = true;
		bws_tx_back(c);
		bws_attend();
		if (how == SHUT_RDWR)
			rc = bws_r()->shutdown(fd, SHUT_RD);
	} else {
		rc = bws_r()->shutdown(fd, how);
		c->tx.shut |= !rc && how != SHUT_RD;
	}
	if (how != SHUT_WR)
		c->pinned = true;
	bws_wake(c, EPOLLIN | EPOLLOUT);
	bws_unlock();
	return rc;
}

static void bws_pin_begin(struct bws_conn *c, const char *why)
{
	bws_lock();
	if (!c->pinned)
		c->why = why;
	c->pinned = true;
	bws_unlock();
}

/* What TCP has no room for, by the offset of its first byte; UINT64_MAX: nothing. */
static uint64_t bws_pin_left(struct bws_conn *c)
{
	const struct bws_piece *p;
	uint64_t at = UINT64_MAX;

	bws_lock();
	p = c->tx.queue.first;
	if (c->tx.way == BWS_DRAIN && !c->error && p)
		at = p->off + p->done;
	bws_unlock();
	return at;
}

/* Nobody may send by TCP now, as bytes that belong before are not with it: its connection ends. */
static bool bws_pin_failed(struct bws_conn *c)
{
	const struct sockaddr none = {.sa_family = AF_UNSPEC};

	bws_lock();
	bws_break(c, ECONNRESET, "the peer does not give the way back");
	if (!c->error && c->tx.way != BWS_TCP) {
		c->error = ECONNRESET;
		c->why = "the peer's program does not take what was sent";
		bws_conn_settle(c);
		bws_watch_changed(c);
		bws_wake(c, EPOLLIN | EPOLLOUT);
	}
	bws_r()->connect(c->fd, &none, sizeof(none));
	bws_unlock();
	errno = ECONNRESET;
	return false;
}

bool bws_pin(struct bws_conn *c, const char *why)
{
	uint64_t left = UINT64_MAX, now;
	int still = 0; /* waits, not time: this process may stand still itself */

	bws_pin_begin(c, why);
	while (!bws_return_wait(c, false, BWS_FDS_PATIENCE)) {
		now = bws_pin_left(c);
		if (now == UINT64_MAX)
			return bws_settled(c) || bws_pin_failed(c);
		still = now == left ? still + 1 : 0;
		left = now;
		if (still > (int)(BWS_ORPHAN / BWS_FDS_PATIENCE))
			return bws_pin_failed(c);
	}
	errno = c->error;
	return !c->error;
}

bool bws_pin_fd(int fd, const char *why)
{
	struct bws_conn *c = bws_table_conn(fd);
	bool done = !c || bws_pin(c, why);

	if (c)
		bws_conn_put(c);
	return done;
}

bool bws_pin_to_receive(struct bws_conn *c, const char *why)
{
	int error;

	bws_pin_begin(c, why);
	bws_lock();
	bws_return(c, false);
	error = c->error;
	bws_unlock();
	errno = error;
	return !error;
}

bool bws_pin_to_send(struct bws_conn *c, int fd, const char *why, int flags)
{
	struct bws_patience patience = bws_patience(BWS_FDS_PATIENCE);
	uint64_t deadline = UINT64_MAX;
	int rc = 0;

	bws_pin_begin(c, why);
	/* The way back is a round trip; what TCP has no room for then waits as a send does. */
	while (!bws_return_wait(c, false, BWS_MS) && bws_pin_left(c) == UINT64_MAX) {
		if (!bws_patient(&patience))
			return bws_settled(c) || bws_pin_failed(c);
	}
	if (!bws_blocks(fd, flags))
		rc = -EAGAIN;
	else
		deadline = bws_deadline(fd, SO_SNDTIMEO);
	bws_lock();
	while (c->tx.way == BWS_DRAIN && !c->error && !rc && bws_fds_is(fd, c)) {
		rc = bws_await(c, fd, POLLOUT, deadline);
		if (rc == -EINTR && bws_restarts(deadline))
			rc = 0;
	}
	if (c->error || c->tx.way == BWS_TCP)
		rc = -c->error;
	bws_unlock();
	errno = -rc;
	return !rc;
}

bool bws_pass(const struct msghdr *m)
{
	bool done = true;

	if (!bws.on || !m->msg_control || !m->msg_controllen)
		return true;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR((struct msghdr *)m, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= h->cmsg_len; at += sizeof(int)) {
			struct bws_conn *c =
				bws_table_conn(((int *)CMSG_DATA(h))[at / sizeof(int)]);

			if (c)
				done = bws_pin(c, "passed to another process") && done;
			if (c)
				bws_conn_put(c);
		}
	}
	return done;
}

/* For tests, and for whoever is curious: 1: this descriptor receives by Beowire, 2: it sends. */
BWS_CALL int beowire_sockets_way(int fd)
{
	struct bws_conn *c = bws_table_conn(fd);
	int way;

	if (!c)
		return 0;
	way = (c->rx.way == BWS_BW) | (c->tx.way == BWS_BW) << 1;
	bws_conn_put(c);
	return way;
}

/* The same: why it is where it is; "" of what is no connection. */
BWS_CALL const char *beowire_sockets_why(int fd)
{
	struct bws_conn *c = bws_table_conn(fd);
	const char *why;

	if (!c)
		return "";
	bws_lock();
	why = bws_tell_why(c);
	bws_unlock();
	bws_conn_put(c);
	return why;
}
