/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fork(), exec and the end of the process: before each of them all connections go back to TCP,
 * where the kernel knows what becomes of them. See life.h.
 */
#include "life.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Another program gets the descriptors that are not closed then. */
static void bws_life_give(void)
{
	for (int fd = bws_table_next(0); bws.on && fd >= 0; fd = bws_table_next(fd + 1)) {
		struct bws_conn *c = bws_table_conn(fd);

		if (c && !(bws_r()->fcntl(fd, F_GETFD) & FD_CLOEXEC))
			bws_pin(c, "given to another program");
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
	bws_life_give();
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

/* The C library forks and executes inside these, without a call that we would see. */
BWS_CALL int posix_spawn(pid_t *restrict pid, const char *restrict path,
			 const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *restrict attr, char *const words[restrict],
			 char *const variables[restrict])
{
	bws_life_give();
	return bws_r()->posix_spawn(pid, path, actions, attr, words, variables);
}

BWS_CALL int posix_spawnp(pid_t *restrict pid, const char *restrict name,
			  const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *restrict attr, char *const words[restrict],
			  char *const variables[restrict])
{
	bws_life_give();
	return bws_r()->posix_spawnp(pid, name, actions, attr, words, variables);
}

/* Connections that a command has as long as system() runs it. What it leaves running has them
 * longer, which nobody knows. */
struct bws_life_lent {
	struct bws_conn **conn; /* each counts one more user */
	size_t n, room;
};

/* On TCP, and staying there. */
static void bws_life_lend(struct bws_life_lent *l)
{
	for (int fd = bws_table_next(0); bws.on && fd >= 0; fd = bws_table_next(fd + 1)) {
		struct bws_conn *c = bws_table_conn(fd), **more;

		if (!c)
			continue;
		if (bws_r()->fcntl(fd, F_GETFD) & FD_CLOEXEC) {
			bws_conn_put(c);
			continue;
		}
		if (l->n == l->room) {
			more = realloc(l->conn, (2 * l->room + 8) * sizeof(*more));
			if (!more) {
				bws_pin(c, "given to another program");
				bws_conn_put(c);
				continue;
			}
			l->conn = more;
			l->room = 2 * l->room + 8;
		}
		bws_lock();
		bws_conn_forking(c);
		bws_unlock();
		l->conn[l->n++] = c;
		bws_return_wait(c, false, BWS_LIFE_PATIENCE);
	}
}

static void bws_life_take_back(struct bws_life_lent *l)
{
	bws_lock();
	for (size_t i = 0; i < l->n; i++)
		bws_conn_forked(l->conn[i]);
	bws_attend();
	bws_unlock();
	for (size_t i = 0; i < l->n; i++)
		bws_conn_put(l->conn[i]);
	free(l->conn);
}

BWS_CALL int system(const char *line)
{
	struct bws_life_lent lent = {0};
	int rc, error;

	bws_life_lend(&lent);
	rc = bws_r()->system(line);
	error = errno;
	bws_life_take_back(&lent);
	errno = error;
	return rc;
}

BWS_CALL FILE *popen(const char *line, const char *how)
{
	bws_life_give();
	return bws_r()->popen(line, how);
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
