/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Another user of the node ties sockets to what he calls us with, or answers us with, that take
 * days to be closed: nobody waits for them. As root, in a network namespace of its own, with
 * processes of another user, and on a kernel that knows no SO_PASSRIGHTS, which is played here if
 * it is not so.
 */
#include "../check.h"
#include "claim.h"
#include "discard.h"
#include "link/local/local.h"
#include "link/packet/keeper.h"
#include "who.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define STRANGER 65534
#define LINGER_S 1000000
#define STANDS_S 5   /* what takes so long stands still */
#define SOON_S	 240 /* far beyond what a process does here */
#define SOON_MS	 60000
#define LOOK_US	 1000
#define FILLS	 20 /* looks whether a socket takes more */
#define MANY	 (2 * BW_DISCARD_MOST)
#define CLAIM	 "test/discard"

/* What the stranger is to do, and has done. */
static struct {
	struct sockaddr_un name;
	socklen_t len;
	int times;
	_Atomic int sent,
		refused; /* descriptors that he gave us, and that the kernel did not take */
} * board;

static bool older;  /* this kernel knows no SO_PASSRIGHTS */
static bool awaits; /* who asks for who answers gives him the time to say something first */

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t n);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t n);
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *n);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *n);

static bool unknown(int level, int name)
{
	if (!older || level != SOL_SOCKET || name != BW_PASSRIGHTS)
		return false;
	errno = ENOPROTOOPT;
	return true;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t n)
{
	return unknown(level, name) ? -1 : __real_setsockopt(fd, level, name, value, n);
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *n)
{
	int rc;

	if (unknown(level, name))
		return -1;
	rc = __real_getsockopt(fd, level, name, value, n);
	for (int i = 0; awaits && name == SO_PEERCRED && !board->sent && i < STANDS_S * 1000; i++)
		usleep(LOOK_US);
	return rc;
}

/* ---- the stranger ---- */

/* The parent may go on. */
static void ready(void)
{
	alarm(0);
	CHECK(write(3, "", 1) == 1);
}

static pid_t stranger; /* his process; 0: none */

/* It stays until it is killed; the parent goes on when `body` is done. */
static void start(void (*body)(void))
{
	int tell[2];
	char byte;

	assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
	stranger = fork();
	if (stranger == 0) {
		/* Nothing of ours stays open for his sake. */
		CHECK(dup2(tell[1], 3) == 3 && !close_range(4, ~0u, 0));
		CHECK(!setresgid(STRANGER, STRANGER, STRANGER));
		CHECK(!setresuid(STRANGER, STRANGER, STRANGER));
		CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL)); /* what setresuid() takes away */
		alarm(SOON_S);
		body();
		ready();
		pause();
	}
	close(tell[1]);
	assert_int_equal(read(tell[0], &byte, 1), 1);
	close(tell[0]);
}

static void stop(void)
{
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
	stranger = 0;
}

/* A TCP connection that is not closed before its peer, which this process has, has read it all. */
static int lingering(void)
{
	const struct linger linger = {1, LINGER_S};
	const int little = 1;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(at);
	static char bytes[65536];
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(!setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)));
	CHECK(!bind(listener, (struct sockaddr *)&at, n) && !listen(listener, 1));
	CHECK(!getsockname(listener, (struct sockaddr *)&at, &n));
	CHECK(!connect(fd, (struct sockaddr *)&at, n) && accept(listener, NULL, NULL) >= 0);
	close(listener);
	for (int i = 0; i < FILLS; i++) {
		while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
		usleep(LOOK_US);
	}
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	return fd;
}

/* Send it, and close it. */
static void give(int connection, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec io = {"", 1};
	struct msghdr message = {.msg_iov = &io,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};

	ssize_t n;
	int error;

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	n = sendmsg(connection, &message, MSG_NOSIGNAL);
	error = errno;
	if (n < 0) /* else he would wait for it himself */
		CHECK(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){0},
				  sizeof(struct linger)));
	close(fd);
	board->sent += n == 1;
	board->refused += n < 0 && error == EPERM;
}

static int seqpacket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	return fd;
}

static void call(void)
{
	for (int i = 0; i < board->times; i++) {
		int connection = seqpacket();

		CHECK(!connect(connection, (struct sockaddr *)&board->name, board->len));
		give(connection, lingering());
		close(connection);
	}
}

/* He has the name, and answers. */
static void answer(void)
{
	int listener = seqpacket();

	CHECK(!bind(listener, (struct sockaddr *)&board->name, board->len));
	CHECK(!listen(listener, 16));
	ready();
	for (;;) {
		int fd = lingering();

		give(accept(listener, NULL, NULL), fd);
	}
}

/* ---- what the tests share ---- */

static void name_set(const char *name)
{
	board->name = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(board->name.sun_path + 1, name, strlen(name));
	board->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	board->times = 1;
	board->sent = board->refused = 0;
}

static volatile sig_atomic_t stood;

static void stands(int signal)
{
	stood = 1;
}

/* Did that take no time? Else it is interrupted. */
static bool prompt(void (*act)(void))
{
	stood = 0;
	alarm(STANDS_S);
	act();
	alarm(0);
	return !stood;
}

static int threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = -2; /* . and .. */

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* All has been closed, and the thread that did it is gone. */
static void await_end(void)
{
	for (int i = 0; threads() > 1 && i < SOON_MS; i++)
		usleep(LOOK_US);
	assert_int_equal(threads(), 1);
}

static int begin(void **state)
{
	struct sigaction action = {.sa_handler = stands};
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	sigaction(SIGALRM, &action, NULL); /* without SA_RESTART */
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (geteuid() || unshare(CLONE_NEWNET))
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
	close(fd);
	return 0;
}

static int each(void **state)
{
	older = true;
	awaits = false;
	return 0;
}

/* Of a test that failed he would hold up the next one. */
static int after(void **state)
{
	if (stranger > 0)
		stop();
	return 0;
}

#define AS_ROOT                                                                                    \
	do {                                                                                       \
		if (geteuid())                                                                     \
			skip();                                                                    \
	} while (0)

/* ---- the listeners ---- */

static int claim;
static struct bw_local *local;
static const struct bw_local_handlers no_handlers;

static void claim_open(void)
{
	name_set(CLAIM "/0");
	claim = bw_claim_name(CLAIM);
	assert_true(claim >= 0);
}

static void drain(void)
{
	bw_claim_drain(claim);
}

static void claim_close(void)
{
	bw_discard_listener(claim);
}

static void discard__a_claim_is_drained_at_once(void **state)
{
	AS_ROOT;
	claim_open();
	start(call);
	assert_int_equal(board->sent, 1);
	assert_true(prompt(drain));
	assert_int_equal(threads(), 2);
	stop();
	await_end();
	assert_true(prompt(claim_close));
}

static void discard__a_claim_is_closed_at_once(void **state)
{
	AS_ROOT;
	claim_open();
	board->times = 3;
	start(call);
	assert_int_equal(board->sent, 3);
	assert_true(prompt(claim_close));
	/* Nobody has the name any more. */
	claim = bw_claim_name(CLAIM);
	assert_true(claim >= 0);
	assert_int_equal(bw_claim_strangers(), 0);
	close(claim);
	stop();
	await_end();
}

static void seek(void)
{
	assert_int_equal(bw_claim_dial(CLAIM), -ECONNREFUSED);
}

static void discard__who_has_a_name_keeps_nobody(void **state)
{
	AS_ROOT;
	name_set(CLAIM "/0");
	start(answer);
	awaits = true;
	assert_true(prompt(seek));
	assert_true(board->sent > 0);
	stop();
	await_end();
}

static void local_open(void)
{
	struct bw_local_attr attr = {
		.self = {.node = 1, .cluster = 2, .incarnation = 3, .engine = 40000},
		.handlers = &no_handlers,
		.claim = bw_local_claim(40000),
	};

	name_set("beowire.40000");
	assert_true(attr.claim >= 0);
	assert_int_equal(bw_local_open(&local, &attr), 0);
}

static uint64_t now;

static void look(void)
{
	now += 1000000;
	bw_local_poll(local, now, true);
}

static void local_close(void)
{
	bw_local_close(local);
}

static void discard__a_call_by_the_local_link_is_turned_away_at_once(void **state)
{
	AS_ROOT;
	local_open();
	start(call);
	assert_int_equal(board->sent, 1);
	assert_true(prompt(look));
	assert_int_equal(bw_local_counters(local)->turned_away, 1);
	assert_true(prompt(local_close));
	stop();
	await_end();
}

static void discard__the_local_link_is_closed_at_once(void **state)
{
	AS_ROOT;
	local_open();
	board->times = 3;
	start(call);
	assert_int_equal(board->sent, 3);
	assert_true(prompt(local_close));
	stop();
	await_end();
}

static void reach(void)
{
	struct bw_local_peer *p;

	assert_int_equal(bw_local_connect(local, 40001, 5, NULL, &p), -EACCES);
}

static void discard__who_has_a_peers_name_keeps_nobody(void **state)
{
	AS_ROOT;
	local_open();
	name_set("beowire.40001");
	start(answer);
	awaits = true;
	assert_true(prompt(reach));
	assert_true(board->sent > 0);
	awaits = false;
	stop();
	await_end();
	local_close();
}

static struct bw_keeper *keeper;

static void keeper_hold(void)
{
	/* It accepts when the listener is readable. */
	usleep(100 * LOOK_US);
	bw_keeper_hold(keeper);
	bw_keeper_release(keeper);
}

static void keeper_stop(void)
{
	bw_keeper_stop(keeper);
}

static void discard__a_keeper_turns_away_at_once(void **state)
{
	AS_ROOT;
	claim_open();
	bw_discard_rights(claim, true);
	start(call);
	assert_int_equal(board->sent, 1);
	keeper = bw_keeper_start(claim, (int)if_nametoindex("lo"), htons(0x88B5));
	assert_non_null(keeper);
	assert_true(prompt(keeper_hold));
	assert_true(prompt(keeper_stop));
	stop();
	await_end();
}

/* ---- the closer ---- */

/* Until one is being closed, and as many wait as may. */
static void drain_many(void)
{
	for (int i = 0; i < 20; i++) {
		bw_claim_drain(claim);
		usleep(10 * LOOK_US);
	}
}

/* Calls that wait for the listener. */
static bool readable(int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	return poll(&wait, 1, 0) == 1;
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = -3; /* . and .., and its own */

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void discard__so_many_wait_and_no_more_are_accepted(void **state)
{
	int before;
	AS_ROOT;
	claim_open();
	board->times = MANY;
	before = descriptors();
	start(call);
	assert_int_equal(board->sent, MANY);
	assert_true(prompt(drain_many));
	/* One is being closed, whose number is free. */
	assert_true(readable(claim));
	assert_false(bw_discard_room());
	assert_int_equal(threads(), 2);
	assert_int_equal(descriptors(), before + BW_DISCARD_MOST);
	/* Whoever has to do with strangers waits as well, and nobody else. */
	assert_int_equal(bw_claim_dial(CLAIM), -ECONNREFUSED);
	stop();
	await_end();
	assert_true(bw_discard_room());
	assert_int_equal(descriptors(), before);
	assert_true(prompt(drain_many));
	await_end();
	assert_false(readable(claim));
	assert_true(prompt(claim_close));
}

static void discard__a_listener_that_is_full_is_closed_at_once(void **state)
{
	int before = descriptors();
	AS_ROOT;
	claim_open();
	board->times = MANY;
	start(call);
	assert_int_equal(board->sent, MANY);
	assert_true(prompt(claim_close));
	assert_int_equal(threads(), 3);
	stop();
	await_end();
	assert_int_equal(descriptors(), before);
}

/* What cannot be accepted does not keep awake who sleeps on it. */
static void discard__a_full_local_link_sleeps(void **state)
{
	uint64_t most = BW_DISCARD_MOST + 1;
	AS_ROOT;
	local_open();
	assert_true(bw_local_due(local, now) == UINT64_MAX);
	board->times = MANY;
	start(call);
	assert_int_equal(board->sent, MANY);
	for (int i = 0; i < 3; i++) {
		assert_true(prompt(look));
		usleep(LOOK_US);
	}
	assert_in_range(bw_local_counters(local)->turned_away, most - 1, most);
	assert_false(readable(bw_local_fd(local)));
	assert_in_range(bw_local_due(local, now), now + 1, now + 1000000000);
	stop();
	await_end();
	for (int i = 0; i < 3; i++) {
		look();
		await_end();
	}
	assert_int_equal(bw_local_counters(local)->turned_away, MANY);
	assert_true(bw_local_due(local, now) == UINT64_MAX);
	local_close();
}

/* All signals but those that nobody can block. */
static void discard__the_closer_handles_no_signals(void **state)
{
	unsigned long long blocked = 0;
	char path[300], line[256];
	struct dirent *e;
	DIR *d;

	AS_ROOT;
	claim_open();
	start(call);
	drain();
	d = opendir("/proc/self/task");
	while ((e = readdir(d))) {
		FILE *f;

		if (atoi(e->d_name) == getpid() || e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		f = fopen(path, "re");
		while (fgets(line, sizeof(line), f)) {
			if (sscanf(line, "SigBlk: %llx", &blocked) == 1)
				break;
		}
		fclose(f);
	}
	closedir(d);
	for (int i = 1; i < SIGRTMIN - 2; i++)
		assert_true(i == SIGKILL || i == SIGSTOP || blocked >> (i - 1) & 1);
	stop();
	await_end();
	claim_close();
}

/* It has no thread, makes one when it needs one, and closes what had waited. */
static void child(void)
{
	CHECK(threads() == 1 && descriptors() > 3 && !bw_discard_room());
	for (int i = 0; threads() > 1 && i < SOON_MS; i++)
		usleep(LOOK_US);
	CHECK(threads() == 1 && bw_discard_room());
}

static void discard__a_child_has_a_closer_of_its_own(void **state)
{
	pid_t ours;
	int status, before;

	AS_ROOT;
	claim_open();
	board->times = MANY;
	before = descriptors();
	start(call);
	drain_many();
	assert_int_equal(descriptors(), before + BW_DISCARD_MOST);
	assert_false(bw_discard_room());
	ours = fork();
	if (ours == 0) {
		alarm(STANDS_S);
		child();
		_exit(0);
	}
	assert_int_equal(waitpid(ours, &status, 0), ours);
	/* The parent's are open still, so that no close takes the child any time. */
	assert_int_equal(status, 0);
	assert_int_equal(threads(), 2);
	stop();
	await_end();
	claim_close();
}

/* Where the kernel keeps descriptors away there is no thread. */
static void discard__descriptors_are_kept_away(void **state)
{
	int may = 1;
	socklen_t n = sizeof(may);

	AS_ROOT;
	older = false;
	claim_open();
	if (getsockopt(claim, SOL_SOCKET, BW_PASSRIGHTS, &may, &n)) {
		close(claim);
		print_message("this kernel has no SO_PASSRIGHTS (Linux 6.16)\n");
		skip();
	}
	assert_int_equal(may, 0);
	await_end(); /* the thread that has closed the last test's listener */
	start(call);
	assert_int_equal(board->sent, 0);
	assert_int_equal(board->refused, 1);
	drain();
	assert_int_equal(threads(), 1);
	assert_false(readable(claim));
	claim_close();
	stop();

	name_set(CLAIM "/0");
	start(answer);
	seek();
	stop();
	assert_int_equal(board->sent, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(discard__a_claim_is_drained_at_once, each, after),
		cmocka_unit_test_setup_teardown(discard__a_claim_is_closed_at_once, each, after),
		cmocka_unit_test_setup_teardown(discard__who_has_a_name_keeps_nobody, each, after),
		cmocka_unit_test_setup_teardown(
			discard__a_call_by_the_local_link_is_turned_away_at_once, each, after),
		cmocka_unit_test_setup_teardown(discard__the_local_link_is_closed_at_once, each,
						after),
		cmocka_unit_test_setup_teardown(discard__who_has_a_peers_name_keeps_nobody, each,
						after),
		cmocka_unit_test_setup_teardown(discard__a_keeper_turns_away_at_once, each, after),
		cmocka_unit_test_setup_teardown(discard__so_many_wait_and_no_more_are_accepted,
						each, after),
		cmocka_unit_test_setup_teardown(discard__a_listener_that_is_full_is_closed_at_once,
						each, after),
		cmocka_unit_test_setup_teardown(discard__a_full_local_link_sleeps, each, after),
		cmocka_unit_test_setup_teardown(discard__the_closer_handles_no_signals, each,
						after),
		cmocka_unit_test_setup_teardown(discard__a_child_has_a_closer_of_its_own, each,
						after),
		cmocka_unit_test_setup_teardown(discard__descriptors_are_kept_away, each, after),
	};

	return cmocka_run_group_tests_name("what strangers give us", tests, begin, NULL);
}
