/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sending and receiving. See data.h. */
#include "data.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <time.h>

#include "clock.h"
#include "control.h"
#include "fds.h"
#include "flow.h"
#include "iov.h"
#include "life.h"
#include "real.h"
#include "wait.h"

#define BWS_DATA_CALL 256 /* bytes that a call counts for, beside its own */

void bws_counted(struct bws_conn *c, uint64_t n)
{
	uint64_t sum = atomic_fetch_add(&c->bytes, n + BWS_DATA_CALL) + n;

	if (sum >= bws.after && !atomic_exchange(&c->candidate, true))
		bws_control_want(c);
}

bool bws_rx_enter(struct bws_conn *c)
{
	atomic_fetch_add(&c->rx.under_way, 1);
	if (!atomic_load(&c->slow))
		return true;
	atomic_fetch_sub(&c->rx.under_way, 1);
	return false;
}

void bws_rx_leave(struct bws_conn *c, ssize_t n)
{
	if (n > 0)
		atomic_fetch_add(&c->shared->rx, (uint64_t)n);
	atomic_fetch_sub(&c->rx.under_way, 1);
	if (n > 0 && !c->candidate)
		bws_counted(c, (uint64_t)n);
}

bool bws_tx_enter(struct bws_conn *c)
{
	atomic_fetch_add(&c->tx.under_way, 1);
	if (!atomic_load(&c->slow))
		return true;
	atomic_fetch_sub(&c->tx.under_way, 1);
	return false;
}

void bws_tx_leave(struct bws_conn *c, ssize_t n)
{
	if (n > 0)
		atomic_fetch_add(&c->shared->tx, (uint64_t)n);
	atomic_fetch_sub(&c->tx.under_way, 1);
	if (n > 0 && !c->candidate)
		bws_counted(c, (uint64_t)n);
}

bool bws_blocks(int fd, int flags)
{
	return !(flags & MSG_DONTWAIT) && !(bws_r()->fcntl(fd, F_GETFL) & O_NONBLOCK);
}

uint64_t bws_deadline(int fd, int option)
{
	struct timeval span = {0};
	socklen_t len = sizeof(span);

	if (bws_r()->getsockopt(fd, SOL_SOCKET, option, &span, &len) ||
	    (!span.tv_sec && !span.tv_usec))
		return UINT64_MAX;
	return bw_clock_now() + (uint64_t)span.tv_sec * BWS_S + (uint64_t)span.tv_usec * 1000;
}

/* Which handler ran is not known: the call ends if there is one that ends calls. */
bool bws_restarts(uint64_t deadline)
{
	struct sigaction a;

	if (deadline != UINT64_MAX)
		return false;
	for (int sig = 1; sig < NSIG; sig++) {
		if (sigaction(sig, NULL, &a))
			continue;
		if (a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN &&
		    !(a.sa_flags & SA_RESTART))
			return false;
	}
	return true;
}

int bws_readable(struct bws_conn *c)
{
	uint64_t left = c->rx.way == BWS_UNTIL ? c->rx.from - c->shared->rx : UINT64_MAX, all;
	int n = 0;

	if (c->rx.way == BWS_BW)
		return (int)(c->rx.next - c->shared->rx);
	if (bws_r()->ioctl(c->fd, FIONREAD, &n))
		n = 0;
	all = (uint64_t)n;
	if (c->rx.way == BWS_UNTIL && all >= left)
		all = left + (c->rx.next - c->rx.from);
	return (int)all;
}

/* What has come by Beowire, from `iov` on. */
static ssize_t bws_recv_pieces(struct bws_conn *c, struct bws_iov *to, int flags)
{
	struct bws_piece *p = c->rx.queue.first;
	uint64_t n = 0;

	if (!p && c->rx.shut)
		return 0;
	if (!p)
		return c->rx.ended ? -ECONNRESET : -EAGAIN;
	while (p && bws_iov_left(to)) {
		struct bws_piece *next = p->next;
		uint64_t some = p->len - p->done;

		if (some > bws_iov_left(to))
			some = bws_iov_left(to);
		if (flags & MSG_TRUNC)
			bws_iov_skip(to, some);
		else
			bws_iov_put(to, p->data + p->done, some);
		n += some;
		if (!(flags & MSG_PEEK)) {
			p->done += (uint32_t)some;
			if (p->done == p->len)
				bws_queue_pop(&c->rx.queue);
		}
		p = next;
	}
	if (!(flags & MSG_PEEK))
		bws_rx_taken(c, n);
	return (ssize_t)n;
}

/* Has TCP, which has ended, brought what was to come by it again? Not all who read it count here:
 * splice(), another program. Its end counts as a byte (tcp_rcv_nxt_update() in net/ipv4). */
static bool bws_recv_is_short(const struct bws_conn *c)
{
	struct tcp_info info;

	return c->shared->rx < c->rx.must &&
	       (!bws_life_counters(c->fd, &info) ||
		info.tcpi_bytes_received + c->rx_beowire < c->rx.must + 1);
}

/* TCP has ended: is that no good end, as the peer did not send by it what is to come yet? */
static bool bws_recv_is_cut(const struct bws_conn *c)
{
	return !c->rx.shut &&
	       (c->rx.way == BWS_UNTIL || (c->rescue && !c->rescued) || bws_recv_is_short(c));
}

/* The kernel tells an error of a connection once. A call that does more with it than the program
 * asked for, or has bytes to tell of, keeps it for the next one: else the end would look like a
 * good one. Lock held. */
static void bws_keep_untold(struct bws_conn *c, ssize_t n)
{
	if (c->error || (n != -ECONNRESET && n != -ETIMEDOUT && n != -EHOSTUNREACH &&
			 n != -ENETUNREACH && n != -ECONNABORTED && n != -ECONNREFUSED &&
			 n != -ENOPROTOOPT && n != -EHOSTDOWN && n != -ENONET && n != -EPROTO))
		return;
	c->untold = (int)-n;
	bws_conn_settle(c);
}

static int bws_take_untold(struct bws_conn *c)
{
	int error = c->untold;

	c->untold = 0;
	bws_conn_settle(c);
	return error;
}

int bws_error_take(struct bws_conn *c, int kernels)
{
	int error = kernels;

	bws_lock();
	if (!error)
		error = bws_take_untold(c);
	if (!error && !c->error_told)
		error = c->error;
	c->error_told = c->error; /* whichever is told: they have one cause */
	bws_unlock();
	return error;
}

/* Of a call that receives, which is told by it. */
static ssize_t bws_recv_lost(struct bws_conn *c)
{
	c->error_told = true;
	return -c->error;
}

/* Lock held; bytes, or a negative errno. What the kernel tells beside them is put into `told`;
 * `full`: it had bytes for all buffers that it was given, and there are more buffers. */
static ssize_t bws_recv_once(struct bws_conn *c, int fd, const struct msghdr *m,
			     struct msghdr *told, struct bws_iov *to, int flags, bool *full)
{
	uint64_t limit = UINT64_MAX;
	struct msghdr part = *m;
	struct iovec some[BWS_IOV_PART];
	uint64_t room = 0;
	ssize_t n;

	*full = false;
	if (c->error && (c->foreign || (c->rx.way == BWS_BW && !c->rx.queue.first)))
		return bws_recv_lost(c);
	if (c->rx.wanted)
		bws_rx_ready(c);
	if (c->rx.way == BWS_BW)
		return bws_recv_pieces(c, to, flags);
	if (c->rx.way == BWS_UNTIL)
		limit = c->rx.from - c->shared->rx;
	part.msg_iov = some;
	part.msg_iovlen = bws_iov_part(to, some, limit);
	n = bws_r()->recvmsg(fd, &part, (flags | MSG_DONTWAIT) & ~MSG_WAITALL);
	if (n <= 0 && c->error)
		return bws_recv_lost(c);
	if (n < 0)
		return -errno;
	if (!n && bws_iov_left(to) && c->untold)
		return -bws_take_untold(c);
	if (!n && bws_iov_left(to) && bws_recv_is_cut(c))
		return -ECONNRESET;
	for (size_t i = 0; i < part.msg_iovlen; i++)
		room += some[i].iov_len;
	*full = part.msg_iovlen == BWS_IOV_PART && (uint64_t)n == room;
	told->msg_controllen = part.msg_controllen;
	told->msg_flags = part.msg_flags;
	bws_iov_skip(to, (uint64_t)n);
	if (!(flags & MSG_PEEK))
		bws_rx_by_tcp(c, (uint64_t)n);
	/* The stream goes on where TCP's part ends. */
	if ((uint64_t)n == limit && bws_iov_left(to) && c->rx.queue.first)
		n += bws_recv_pieces(c, to, flags);
	return n;
}

/* Who never waits hears of the peer's end by this alone. True: it has ended, which is news. */
static bool bws_recv_look(struct bws_conn *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
	uint64_t now = bw_clock_now();

	if (c->rx.way != BWS_BW || c->rx.ended || c->rx.shut || now - c->rx.looked < BWS_MS)
		return false;
	c->rx.looked = now;
	if (bws_r()->ppoll(&p, 1, &(struct timespec){0}, NULL) > 0)
		bws_told(c, POLLIN, p.revents);
	return c->rx.ended;
}

/* A look at all of a message (MSG_PEEK with MSG_WAITALL) finds a part of it: wait for a moment.
 * False: there will be no more, or it has been waited for long enough. Lock held. */
static bool bws_recv_more(struct bws_conn *c, uint64_t deadline)
{
	struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
	const struct timespec moment = {.tv_nsec = 50000};
	bool slept;

	if (c->error || c->rx.ended || c->rx.shut || bw_clock_now() >= deadline ||
	    bws_r()->ppoll(&p, 1, &(struct timespec){0}, NULL) > 0)
		return false;
	bws_unlock();
	bws_progress();
	slept = !nanosleep(&moment, NULL);
	bws_lock();
	return slept;
}

static ssize_t bws_recv_long(struct bws_conn *c, int fd, struct msghdr *m, int flags)
{
	uint64_t deadline = 0, all;
	bool asked = false, full, peek = flags & MSG_PEEK;
	bool whole = (flags & MSG_WAITALL) && !peek;
	struct msghdr told = {0}; /* Beowire brings nothing beside bytes */
	struct bws_iov to;
	ssize_t n = 0, sum = 0;

	bws_iov_begin(&to, m->msg_iov, (size_t)m->msg_iovlen);
	all = bws_iov_left(&to);
	bws_lock();
	for (;;) {
		if (!bws_fds_is(fd, c)) { /* another thread has closed it meanwhile */
			n = -EBADF;
			break;
		}
		n = bws_recv_once(c, fd, m, &told, &to, flags, &full);
		if (n > 0)
			sum += n;
		if (n > 0 && (uint64_t)sum < all && (whole || (full && !peek)))
			continue;
		if (n >= 0 && !(n > 0 && peek && (flags & MSG_WAITALL) && (uint64_t)sum < all))
			break;
		if ((n < 0 && n != -EAGAIN) || (n < 0 && sum && !whole))
			break;
		if (!asked) {
			if (!bws_blocks(fd, flags)) {
				if (n < 0 && bws_recv_look(c))
					continue;
				break;
			}
			deadline = bws_deadline(fd, SO_RCVTIMEO);
			asked = true;
		}
		if (n > 0 && !bws_recv_more(c, deadline))
			break;
		if (n > 0) { /* from the beginning */
			bws_iov_begin(&to, m->msg_iov, (size_t)m->msg_iovlen);
			sum = 0;
			continue;
		}
		n = bws_await(c, fd, POLLIN, deadline);
		if (n == -EAGAIN || (n == -EINTR && (sum || !bws_restarts(deadline))))
			break;
	}
	if (sum)
		bws_keep_untold(c, n);
	bws_unlock();
	if (!sum && n < 0) {
		errno = (int)-n;
		return -1;
	}
	m->msg_namelen = 0;
	m->msg_controllen = told.msg_controllen;
	m->msg_flags = told.msg_flags;
	return sum;
}

ssize_t bws_recvmsg(struct bws_conn *c, int fd, struct msghdr *m, int flags)
{
	ssize_t n;

	if (flags & (MSG_OOB | MSG_ERRQUEUE)) {
		if (flags & MSG_OOB)
			bws_pin(c, "urgent data");
		return bws_r()->recvmsg(fd, m, flags);
	}
	if (bws_rx_enter(c)) {
		n = bws_r()->recvmsg(fd, m, flags);
		bws_rx_leave(c, flags & MSG_PEEK ? -1 : n);
		return n;
	}
	bws_progress();
	return bws_recv_long(c, fd, m, flags);
}

/* Lock held; bytes, or a negative errno. */
static ssize_t bws_send_once(struct bws_conn *c, int fd, const struct msghdr *m,
			     struct bws_iov *from, int flags)
{
	struct iovec some[BWS_IOV_PART];
	struct msghdr part = *m;
	ssize_t n, sum = 0;

	if (c->error)
		return -EPIPE;
	if (c->tx.shut)
		return -EPIPE;
	if (c->tx.way == BWS_TCP)
		bws_tx_switch(c);
	if (c->tx.way == BWS_DRAIN)
		bws_tx_drain(c);
	if (c->tx.way == BWS_DRAIN)
		return -EAGAIN;
	if (c->tx.way == BWS_BW) {
		if (c->rx.ended)
			return -EPIPE;
		while (bws_iov_left(from)) {
			bws_iov_part(from, some, UINT64_MAX);
			n = (ssize_t)bws_tx_add(c, some[0].iov_base, some[0].iov_len);
			bws_iov_skip(from, (uint64_t)n);
			sum += n;
			if ((size_t)n < some[0].iov_len)
				break;
		}
		return sum ? sum : c->error ? -EPIPE : -EAGAIN;
	}
	part.msg_iov = some;
	part.msg_iovlen = bws_iov_part(from, some, UINT64_MAX);
	n = bws_r()->sendmsg(fd, &part, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EPIPE && c->untold ? -bws_take_untold(c) : -errno;
	c->shared->tx += (uint64_t)n;
	bws_iov_skip(from, (uint64_t)n);
	return n;
}

static ssize_t bws_send_long(struct bws_conn *c, int fd, const struct msghdr *m, int flags)
{
	bool asked = false;
	uint64_t deadline = 0;
	struct bws_iov from;
	ssize_t n = 0, sum = 0;

	bws_iov_begin(&from, m->msg_iov, (size_t)m->msg_iovlen);
	bws_lock();
	if (!bws_iov_left(&from) && (c->error || c->tx.shut))
		n = -EPIPE;
	while (bws_iov_left(&from)) {
		if (!bws_fds_is(fd, c)) { /* another thread has closed it meanwhile */
			n = -EBADF;
			break;
		}
		n = bws_send_once(c, fd, m, &from, flags);
		if (n > 0)
			sum += n;
		if (n > 0)
			continue;
		if (n != -EAGAIN)
			break;
		if (!asked) {
			if (!bws_blocks(fd, flags))
				break;
			deadline = bws_deadline(fd, SO_SNDTIMEO);
			asked = true;
		}
		n = bws_await(c, fd, POLLOUT, deadline);
		if (n == -EAGAIN || (n == -EINTR && (sum || !bws_restarts(deadline))))
			break;
	}
	if (sum)
		bws_keep_untold(c, n);
	bws_unlock();
	if (sum)
		return sum;
	if (n == -EPIPE && !(flags & MSG_NOSIGNAL))
		pthread_kill(pthread_self(), SIGPIPE);
	if (n < 0) {
		errno = (int)-n;
		return -1;
	}
	return 0;
}

ssize_t bws_sendmsg(struct bws_conn *c, int fd, const struct msghdr *m, int flags)
{
	ssize_t n;
	int error;

	if (flags & (MSG_OOB | MSG_ZEROCOPY) &&
	    !bws_pin_to_send(c, fd, flags & MSG_OOB ? "urgent data" : "MSG_ZEROCOPY", flags))
		return -1;
	if (bws_tx_enter(c)) {
		n = bws_r()->sendmsg(fd, m, flags);
		bws_tx_leave(c, n);
		return n;
	}
	n = bws_send_long(c, fd, m, flags);
	error = errno;
	bws_progress();
	errno = error;
	return n;
}
