/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs share that test the kernel module in a guest. There are two nodes, the network
 * namespaces `a` and `b`, joined by their eth0 (see guest.sh); a socket belongs to the node that
 * its thread was in when it was opened, so that one thread holds both ends of an exchange. The
 * variable KT_ONLY, a name with * and ?, chooses among a program's tests.
 */
#ifndef KTEST_H
#define KTEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <cmocka.h>

#include "beowire_socket.h"

/* Seconds that a test may wait for something: half of what its program may take, by the variable
 * GUEST_LEFT_S of guest-limit, which ends one that takes longer; or 100. */
unsigned kt_patience_s(void);

/* Two bound sockets, and where each is reached by the other. */
struct kt_pair {
	int a, b;
	struct sockaddr_beowire at_a, at_b;
};

#define KT_SOON_NS 60000000000 /* far beyond what anything here takes */
#define KT_SOON_MS 60000

/* A call fails with this errno. */
#define kt_refused(call, code)                                                                     \
	do {                                                                                       \
		errno = 0;                                                                         \
		assert_int_equal((call), -1);                                                      \
		assert_int_equal(errno, (code));                                                   \
	} while (0)

/* `t` points to one type of socket after another: without connections, and with them. */
#define kt_each_message_type(t)	   kt_each_type_(t, SOCK_RDM, SOCK_DGRAM)
#define kt_each_connection_type(t) kt_each_type_(t, SOCK_SEQPACKET, SOCK_STREAM)
#define kt_each_type_(t, ...)	   for (const int *t = (const int[]){__VA_ARGS__, -1}; *t >= 0; t++)

/* Before all tests of a program: the nodes' interfaces are attached. */
int kt_attach(void **state);
/* After each test: nothing that it forgot to close. */
int kt_end(void **state);
#define kt_test(f) cmocka_unit_test_teardown(f, kt_end)
/* A test that counts memory: no socket of an earlier one holds any. */
int kt_begin_counting(void **state);
#define kt_counting_test(f) cmocka_unit_test_setup_teardown(f, kt_begin_counting, kt_end)

/* The calling thread goes to a node: "a" or "b", or another namespace. */
void kt_enter(const char *node);
/* Where a module of the tests' own lies (drivers/): beside this program, for the running kernel. */
void kt_driver(char *path, size_t n, const char *program, const char *name);
/* Runs a command of the shell, which must succeed. */
void kt_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

int kt_open(const char *node, int type);
/* A socket bound to this port; 0: any. */
int kt_bound(const char *node, int type, uint16_t port);
/* Where others reach it. */
struct sockaddr_beowire kt_at(int fd);
/* The i-th of addresses that nobody has. */
struct sockaddr_beowire kt_nobody(int i);
struct kt_pair kt_pair(int type);
/* kt_pair() with each connected to the other. */
struct kt_pair kt_couple(int type);
/* A connection of this type: `a` was connected, `b` accepted; at_b is the listener's address, and
 * it is closed. */
struct kt_pair kt_connection(int type);
void kt_close(struct kt_pair *pair);

/* A socket of b's that listens. */
int kt_listener(int type, int backlog);
/* connect(): 0 or a negative errno. */
int kt_connect(int fd, const struct sockaddr_beowire *to);
/* The error that waits at a socket; it is taken. */
int kt_error(int fd);
/* What poll() says of what it is asked for, as soon as there is something, within KT_SOON_NS. */
int kt_events(int fd, short asked);
/* b's interface goes "down" or "up": frames are lost meanwhile. */
void kt_link_of_b(const char *how);

void kt_option(int fd, int name, int value);
ssize_t kt_send_to(int fd, const void *p, size_t n, const struct sockaddr_beowire *to);
/* A message with its info, and the next event with its info (to be asked for by
 * BEOWIRE_INFO_WANTED); 0 or a negative errno. */
int kt_send_info(int fd, const void *p, size_t n, const struct sockaddr_beowire *to,
		 const struct beowire_info *info, int flags);
int kt_recv_info(int fd, void *p, size_t n, struct beowire_info *info, int flags);
struct beowire_counters kt_counters(int fd);
/* A socket that is told of all that happens. */
int kt_watching(const char *node);
/* This many times so many bytes of the program's memory at `at` are wanted, each time other ones;
 * the ends have cookies from 1 on. */
void kt_want(int fd, const struct sockaddr_beowire *at, uint64_t len, int times);

/* Bytes that follow from a seed. */
void kt_fill(void *p, size_t n, uint32_t seed);
bool kt_filled(const void *p, size_t n, uint32_t seed);
/* The next of a row of random numbers. */
uint64_t kt_random(uint64_t *state);

uint64_t kt_now_ns(void);

/* Until `value`, an expression, is no less and no more than these; after half of the patience the
 * test fails, and tells what it saw last. */
#define kt_becomes(value, low, high)                                                               \
	do {                                                                                       \
		struct kt_wait wait_ = {.least = (low), .most = (high)};                           \
                                                                                                   \
		while (kt_goes_on(&wait_, (value)))                                                \
			;                                                                          \
		if (wait_.late)                                                                    \
			kt_fail_late(&wait_, #value, __FILE__, __LINE__);                          \
	} while (0)
/* The same of what is true at last. */
#define kt_until(condition) kt_becomes(!!(condition), 1, 1)

struct kt_wait {
	uint64_t least, most, seen, begun, looks;
	bool late;
};
/* False: it is as it should be, or late; else a moment has passed. */
bool kt_goes_on(struct kt_wait *wait, uint64_t seen);
void kt_fail_late(const struct kt_wait *wait, const char *what, const char *file, int line);

/* The number behind a word in a file such as /proc/vmstat; `node`: of this namespace, or NULL. */
uint64_t kt_number(const char *node, const char *file, const char *word);
/* Is there a port of this number in the node, open or lingering? */
bool kt_port_is_there(const char *node, uint16_t number);
/* Lines of the kernel's log that have both of these words. */
int kt_logged(const char *one, const char *other);
/* Those that say this of the node of `a`, and name the node of `b`. */
int kt_logged_of(const struct kt_pair *pair, const char *what);
/* The log has no bound: what earlier tests complained of would count towards it. Then a's node. */
void kt_log_every_line(bool on);
/* Pages that are pinned now, in the whole system. */
uint64_t kt_pinned(void);

/* A signal, SIGUSR1, comes to the process after this time; flags as for sigaction(). */
void kt_interrupt_in_ms(int ms, int flags);
/* How many times a signal came since the last kt_interrupt_in_ms() or kt_count_signal(). */
extern volatile int kt_signals;
void kt_count_signal(int number, int flags);

/* What another thread does meanwhile. */
struct kt_thread {
	unsigned long id;
	long (*run)(void *arg);
	void *arg;
	long result;
	volatile int number; /* the kernel's of it; 0: it does not run yet */
};
void kt_start(struct kt_thread *t, long (*run)(void *arg), void *arg);
/* Until it sleeps in this system call (SYS_...), as a signal is to find it. */
void kt_await_sleep(const struct kt_thread *t, long call);
long kt_join(struct kt_thread *t);

/* The kernel's workers that are bound to no processor have none, and the calling thread has another
 * one for itself: until RELEASE, or the test ends. */
void kt_hold_workers(void);
void kt_release_workers(void);

#endif
