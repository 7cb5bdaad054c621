/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fork(), exec and the end of the process: before each of them all connections go back to TCP,
 * where the kernel knows what becomes of them. See life.h.
 */
#include "life.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "core.h"
#include "endpoint.h"
#include "fds.h"
#include "flow.h"
#include "owned.h"
#include "real.h"
#include "table.h"
#include "tell.h"
#include "wait.h"

#define BWS_LIFE_LOOKS	  8	       /* at counters that change meanwhile */
#define BWS_LIFE_PATIENCE (10 * BWS_S) /* for the way back to TCP, on a busy machine */
#define BWS_LIFE_ENDING	  (5 * BWS_S)
#define BWS_LIFE_WORDS	  256 /* of execl(), without an allocation */

static __thread bool bws_life_held; /* by the fork() that this thread is in */

static void bws_life_before(void)
{
	if (!bws.on || bws.pid != getpid())
		return;
	bws.held++;
	bws_endpoint_hold();
	bws_return_wait(NULL, false, BWS_LIFE_PATIENCE);
	bws_lock();
	for (struct bws_conn *c = bws_conn_next(NULL); c; c = bws_conn_next(c))
		bws_conn_forking(c);
	bws_life_held = true;
}

static void bws_life_in_parent(void)
{
	if (!bws_life_held)
		return;
	bws_life_held = false;
	bws.held--;
	bws_unlock();
	bws_endpoint_release();
}

/* In a child: Beowire has this connection no more. What was not given back is the parent's to
 * bring to its end: neither bytes nor options of the socket, which is the parent's as well, are
 * touched. */
static void bws_life_leave(struct bws_conn *c)
{
	bool broken = c->rx.way != BWS_TCP || c->tx.way != BWS_TCP || bws_conn_in_doubt(c);

	c->paired = c->rescue = false;
	c->owed = 0;
	c->peer_id = 0;
	c->rx.open = c->rx.wanted = false;
	c->parked = c->peer_parks = false;
	c->tx.epoch = 0;
	c->tx.back = false;
	c->tx.unsent = NULL;
	bws_queue_clear(&c->tx.queue);
	bws_queue_clear(&c->rx.queue);
	atomic_store(&c->rx.way, BWS_TCP);
	atomic_store(&c->tx.way, BWS_TCP);
	if (!broken)
		return;
	c->error = ECONNRESET;
	c->foreign = true;
	c->why = "its way back was not done before fork()";
}

/* Connections that went back are followed on, by TCP; others are the parent's. */
static void bws_life_in_child(void)
{
	struct bws_conn *c;

	if (!bws_life_held)
		return;
	bws_life_held = false;
	bws.pid = getpid();
	bws_endpoint_forget();
	bws.held = 0;
	atomic_store(&bws.pairing, false);
	bws_core_in_child();
	bws_sleepers_forget();
	bws_control_forget();
	bws_tell_forget();
	bws_push_forget();
	bws_conn_in_child();
	for (c = bws_conn_next(NULL); c; c = bws_conn_next(c)) {
		bws_conn_inherit(c);
		atomic_store(&c->users, 0);
		atomic_store(&c->rx.under_way, 0);
		atomic_store(&c->tx.under_way, 0);
		bws_life_leave(c);
		/* Its descriptor is the library's: the program has closed it. */
		if (c->orphan) {
			bws_own_close(c->fd);
			bws_conn_leave(c);
			bws_conn_free(c);
			continue;
		}
		c->candidate = false;
		c->bytes = 0;
		c->offers = 0;
		c->offer_at = 0;
		c->answered = false;
		c->retrying = false;
		c->rx.returning = 0;
		if (!c->pinned && !c->error)
			c->why = "inherited";
		bws_conn_settle(c);
	}
}

void bws_life_begin(void)
{
	pthread_atfork(bws_life_before, bws_life_in_parent, bws_life_in_child);
}

static bool bws_life_goes_along(struct bws_conn *c)
{
	bool goes = false;

	for (int fd = bws_table_next(0); fd >= 0 && !goes; fd = bws_table_next(fd + 1))
		goes = bws_fds_is(fd, c) && !(bws_r()->fcntl(fd, F_GETFD) & FD_CLOEXEC);
	return goes;
}

/* The process is about to end, or to become another program, and some bytes are still not with TCP:
 * the peer must not take that for a good end, nor may another program send behind the gap. */
static void bws_life_reset(bool exec)
{
	const struct sockaddr none = {.sa_family = AF_UNSPEC};
	const struct linger reset = {.l_onoff = 1};

	for (struct bws_conn *c = bws_conn_next(NULL); c; c = bws_conn_next(c)) {
		if (c->tx.way == BWS_TCP || c->error)
			continue;
		bws_r()->setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		if (exec && bws_life_goes_along(c))
			bws_r()->connect(c->fd, &none, sizeof(none));
	}
}

/* Another program would not know that their bytes are another process's. */
static void bws_life_keep_foreign(void)
{
	for (int fd = bws_table_next(0); fd >= 0; fd = bws_table_next(fd + 1)) {
		struct bws_conn *c = bws_table_conn(fd);

		if (c && c->foreign)
			bws_r()->fcntl(fd, F_SETFD, FD_CLOEXEC);
		if (c)
			bws_conn_put(c);
	}
}

/* Before this process becomes another program. A child of vfork() takes descriptors along that are
 * not closed then, but no memory. */
static void bws_life_exec(void)
{
	if (!bws.on)
		return;
	bws_life_keep_foreign();
	if (bws.pid == getpid()) {
		bws.held++;
		/* For good: the endpoint goes with this program. */
		if (!bws_return_wait(NULL, true, BWS_LIFE_PATIENCE)) {
			bws_lock();
			bws_life_reset(true);
			bws_unlock();
		}
		bws_tell_all();
		return;
	}
	for (int fd = bws_table_next(0); fd >= 0; fd = bws_table_next(fd + 1)) {
		struct bws_conn *c = bws_table_conn(fd);

		if (c && !(bws_r()->fcntl(fd, F_GETFD) & FD_CLOEXEC))
			bws_pin(c, "given to another program");
		if (c)
			bws_conn_put(c);
	}
}

/* It did not. */
static int bws_life_no_exec(int rc)
{
	if (bws.on && bws.pid == getpid())
		bws.held--;
	return rc;
}

BWS_CALL int execve(const char *path, char *const *words, char *const *variables)
{
	bws_life_exec();
	return bws_life_no_exec(bws_r()->execve(path, words, variables));
}

BWS_CALL int execv(const char *path, char *const *words)
{
	return execve(path, words, environ);
}

BWS_CALL int execvpe(const char *name, char *const *words, char *const *variables)
{
	bws_life_exec();
	return bws_life_no_exec(bws_r()->execvpe(name, words, variables));
}

BWS_CALL int execvp(const char *name, char *const *words)
{
	return execvpe(name, words, environ);
}

BWS_CALL int fexecve(int fd, char *const *words, char *const *variables)
{
	bws_life_exec();
	return bws_life_no_exec(bws_r()->fexecve(fd, words, variables));
}

/* execl() and its kin: words up to NULL, and for execle() the variables behind them. `with` is what
 * takes them as a list. */
static int bws_life_listed(int (*with)(const char *, char *const *, char *const *),
			   const char *path, const char *first, bool variables, va_list *more)
{
	char *few[BWS_LIFE_WORDS], **words = few;
	size_t n = 0;
	va_list count;
	int rc = -1;

	va_copy(count, *more);
	while (va_arg(count, char *))
		n++;
	va_end(count);
	if (n + 2 > BWS_LIFE_WORDS)
		words = malloc((n + 2) * sizeof(*words));
	if (!words)
		return -1;
	words[0] = (char *)first;
	for (size_t i = 1; i <= n + 1; i++)
		words[i] = va_arg(*more, char *);
	rc = with(path, words, variables ? va_arg(*more, char **) : environ);
	if (words != few)
		free(words);
	return rc;
}

BWS_CALL int execl(const char *path, const char *first, ...)
{
	va_list more;
	int rc;

	va_start(more, first);
	rc = bws_life_listed(execve, path, first, false, &more);
	va_end(more);
	return rc;
}

BWS_CALL int execlp(const char *name, const char *first, ...)
{
	va_list more;
	int rc;

	va_start(more, first);
	rc = bws_life_listed(execvpe, name, first, false, &more);
	va_end(more);
	return rc;
}

BWS_CALL int execle(const char *path, const char *first, ...)
{
	va_list more;
	int rc;

	va_start(more, first);
	rc = bws_life_listed(execve, path, first, true, &more);
	va_end(more);
	return rc;
}

/* The C library makes the copy in the child, without a call that we would see. */
BWS_CALL int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int fd, int to)
{
	struct bws_conn *c = bws_table_conn(fd);

	if (c) {
		bws_pin(c, "given to another program");
		bws_conn_put(c);
	}
	return bws_r()->spawn_dup2(actions, fd, to);
}

/* A descriptor that a program inherits which the C library executes inside one of its functions,
 * without a call that we would see. */
struct bws_life_lent {
	struct bws_conn *conn; /* counts one more user */
	int fd;
	bool kept; /* it is not inherited: not all of its bytes are with TCP, nor soon will be */
	uint64_t tx, rx; /* bytes by TCP that are not counted as ours, when it was lent */
};

struct bws_life_loan {
	struct bws_life_lent *lent;
	size_t n, room;
};

static struct bws_life_lent *bws_life_place(struct bws_life_loan *l)
{
	struct bws_life_lent *more;

	if (l->n < l->room)
		return &l->lent[l->n];
	more = realloc(l->lent, (2 * l->room + 8) * sizeof(*more));
	if (!more)
		return NULL;
	l->lent = more;
	l->room = 2 * l->room + 8;
	return &l->lent[l->n];
}

bool bws_life_counters(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	return !bws_r()->getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) &&
	       len >= offsetof(struct tcp_info, tcpi_bytes_received) +
			       sizeof(info->tcpi_bytes_received);
}

/* Bytes that went by TCP, less those that are counted as the connection's: as long as nobody else
 * sends or receives by it they stay as they are. False: the kernel does not say. Lock held. */
static bool bws_life_others(const struct bws_life_lent *l, uint64_t *tx, uint64_t *rx)
{
	struct tcp_info before, after;
	int out, in;

	for (int tries = 0; tries < BWS_LIFE_LOOKS; tries++) {
		if (!bws_life_counters(l->fd, &before) || bws_r()->ioctl(l->fd, SIOCOUTQ, &out) ||
		    bws_r()->ioctl(l->fd, SIOCINQ, &in) || !bws_life_counters(l->fd, &after))
			return false;
		if (before.tcpi_bytes_acked != after.tcpi_bytes_acked ||
		    before.tcpi_bytes_received != after.tcpi_bytes_received)
			continue;
		*tx = after.tcpi_bytes_acked + (uint64_t)out - l->conn->shared->tx;
		*rx = after.tcpi_bytes_received - (uint64_t)in - l->conn->shared->rx;
		return true;
	}
	return false;
}

static void bws_life_collect(struct bws_life_loan *l)
{
	for (int fd = bws_table_next(0); bws.on && fd >= 0; fd = bws_table_next(fd + 1)) {
		struct bws_conn *c = bws_table_conn(fd);
		struct bws_life_lent *at;

		if (!c)
			continue;
		if (bws_r()->fcntl(fd, F_GETFD) & FD_CLOEXEC && !c->kept) {
			bws_conn_put(c);
			continue;
		}
		at = bws_life_place(l);
		if (!at) {
			bws_pin(c, "given to another program");
			bws_conn_put(c);
			continue;
		}
		*at = (struct bws_life_lent){.conn = c, .fd = fd};
		l->n++;
	}
}

/* Has one of them bytes that are not with TCP, but may soon be? Lock held. */
static bool bws_life_waits(const struct bws_life_loan *l)
{
	bool waits = false;

	for (size_t i = 0; i < l->n; i++) {
		struct bws_conn *c = l->lent[i].conn;

		bws_tx_drain(c);
		waits = waits || (c->id && !bws_settled(c) && !c->error && !c->overdue);
	}
	return waits;
}

/* On TCP, and staying there; one that does not get there is not inherited. As before fork(), all
 * are waited for together, and once. */
static void bws_life_lend(struct bws_life_loan *l)
{
	struct bws_patience patience = bws_patience(BWS_LIFE_PATIENCE);
	bool waits;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	bws_life_collect(l);
	bws_lock();
	for (size_t i = 0; i < l->n; i++) {
		bws_conn_forking(l->lent[i].conn);
		if (l->lent[i].conn->id)
			bws_return(l->lent[i].conn, false);
	}
	waits = bws_life_waits(l);
	bws_unlock();
	while (waits && bws_patient(&patience)) {
		if (!bws_progress())
			bws_pause();
		bws_lock();
		waits = bws_life_waits(l);
		bws_unlock();
	}
	bws_lock();
	for (size_t i = 0; i < l->n; i++) {
		struct bws_life_lent *at = &l->lent[i];

		at->conn->overdue = !bws_settled(at->conn);
		at->kept = (at->conn->overdue || at->conn->foreign) && bws_fds_is(at->fd, at->conn);
		if (at->kept) {
			at->conn->kept++;
			bws_r()->fcntl(at->fd, F_SETFD, FD_CLOEXEC);
		} else if (!bws_life_others(at, &at->tx, &at->rx)) {
			at->tx = UINT64_MAX;
		}
	}
	bws_unlock();
	pthread_setcancelstate(cancel, NULL);
}

/* Was it used, as far as anybody knows? Then nobody can tell where in the stream it is. */
static bool bws_life_used(const struct bws_life_lent *l)
{
	uint64_t tx, rx;

	return !bws_life_others(l, &tx, &rx) || tx != l->tx || rx != l->rx;
}

/* The program has ended, or has them for good: then nobody knows how long. */
static void bws_life_take_back(struct bws_life_loan *l, bool for_good)
{
	if (!l->n)
		return;
	bws_lock();
	for (size_t i = 0; i < l->n; i++)
		l->lent[i].conn->kept -= l->lent[i].kept;
	for (size_t i = 0; i < l->n; i++) {
		struct bws_life_lent *at = &l->lent[i];

		if (at->kept && !at->conn->kept && bws_fds_is(at->fd, at->conn))
			bws_r()->fcntl(at->fd, F_SETFD, 0);
		if (!at->kept && !at->conn->pinned && (for_good || bws_life_used(at))) {
			at->conn->pinned = true;
			at->conn->why = "given to another program";
		}
		bws_conn_forked(at->conn);
	}
	bws_attend();
	bws_unlock();
	for (size_t i = 0; i < l->n; i++)
		bws_conn_put(l->lent[i].conn);
	free(l->lent);
}

static void bws_life_cancelled(void *loan)
{
	bws_life_take_back(loan, true);
}

static int bws_life_spawn(__typeof__(bws_real.posix_spawn) spawn, pid_t *pid, const char *what,
			  const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
			  char *const *words, char *const *variables)
{
	struct bws_life_loan loan = {0};
	int rc;

	bws_life_lend(&loan);
	rc = spawn(pid, what, actions, attr, words, variables);
	bws_life_take_back(&loan, !rc);
	return rc;
}

BWS_CALL int posix_spawn(pid_t *restrict pid, const char *restrict path,
			 const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *restrict attr, char *const words[restrict],
			 char *const variables[restrict])
{
	return bws_life_spawn(bws_r()->posix_spawn, pid, path, actions, attr, words, variables);
}

BWS_CALL int posix_spawnp(pid_t *restrict pid, const char *restrict name,
			  const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *restrict attr, char *const words[restrict],
			  char *const variables[restrict])
{
	return bws_life_spawn(bws_r()->posix_spawnp, pid, name, actions, attr, words, variables);
}

/* What it leaves running has them longer, which nobody knows. */
BWS_CALL int system(const char *line)
{
	struct bws_life_loan loan = {0};
	int rc, error;

	bws_life_lend(&loan);
	pthread_cleanup_push(bws_life_cancelled, &loan);
	rc = bws_r()->system(line);
	error = errno;
	pthread_cleanup_pop(0);
	bws_life_take_back(&loan, false);
	errno = error;
	return rc;
}

BWS_CALL FILE *popen(const char *line, const char *how)
{
	struct bws_life_loan loan = {0};
	FILE *made;
	int error;

	bws_life_lend(&loan);
	made = bws_r()->popen(line, how);
	error = errno;
	bws_life_take_back(&loan, made != NULL);
	errno = error;
	return made;
}

static void bws_life_end(void)
{
	static _Atomic bool ended;

	if (!bws.on || bws.pid != getpid() || atomic_exchange(&ended, true))
		return;
	bws.held++;
	if (bws_core_is_inside()) {
		/* A handler of a signal ends the process in the midst of the library. */
		bws_life_reset(false);
		return;
	}
	if (!bws_return_wait(NULL, true, BWS_LIFE_ENDING)) {
		bws_lock();
		bws_life_reset(false);
		bws_unlock();
	}
	bws_tell_all();
}

__attribute__((destructor)) static void bws_life_unload(void)
{
	bws_life_end();
}

BWS_CALL void _exit(int status)
{
	bws_life_end();
	bws_r()->_exit(status);
	__builtin_unreachable();
}

BWS_CALL void _Exit(int status)
{
	_exit(status);
}
