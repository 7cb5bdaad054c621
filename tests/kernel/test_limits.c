/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What one user can make the module hold, in however many sockets and by whatever way, is bounded,
 * and others do not feel it. All of it is given back.
 */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kframe.h"
#include "kuser.h"

#define MIB   (1u << 20)
#define BOUND (16 * MIB) /* of a user's memory */

/* ---- ways to make the module hold memory: exit status 0 if one ends by ENOBUFS ---- */

/* Of a port of b's that there is not, so that what is sent to it stays. */
static struct sockaddr_beowire nowhere(void)
{
	struct sockaddr_beowire addr = {.sbw_family = AF_BEOWIRE, .sbw_port = 5};

	memcpy(addr.sbw_mac, "\x02\x00\x00\x00\x00\x99", 6);
	return addr;
}

static int refused(int error)
{
	return error == ENOBUFS ? 0 : error;
}

/* A socket is charged as well: it may be what the bound refuses. */
static int socket_with(int option, int value)
{
	const int dead_ms = 3000, on = 1;
	int fd = socket(AF_BEOWIRE, SOCK_RDM, 0);

	if (fd < 0)
		exit(refused(errno));
	if (setsockopt(fd, SOL_BEOWIRE, BEOWIRE_DEAD_MS, &dead_ms, sizeof(dead_ms)) ||
	    setsockopt(fd, SOL_BEOWIRE, BEOWIRE_INFO_WANTED, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_BEOWIRE, option, &value, sizeof(value)))
		exit(98);
	return fd;
}

struct way {
	bool keeps; /* its sockets are not closed */
	long most;  /* times that it may succeed */
	const void *bytes;
};

/* Copies of long sends, of which a closed socket keeps the port. */
static int by_sends(void *arg)
{
	const struct beowire_info info = {.flags = BEOWIRE_SEND_ASYNC};
	const struct sockaddr_beowire to = nowhere();
	const struct way *way = arg;

	for (long i = 0; i <= way->most; i++) {
		int fd = socket_with(BEOWIRE_COPY_MAX, INT32_MAX);
		int error = -kt_send_info(fd, way->bytes, MIB, &to, &info, 0);

		if (error)
			return refused(error);
		if (!way->keeps)
			close(fd);
	}
	return 97;
}

/* The same of many short ones: those that wait to be fetched count whatever their length. */
static int by_short_sends(void *arg)
{
	const struct beowire_info info = {.flags = BEOWIRE_SEND_LONG | BEOWIRE_SEND_ASYNC,
					  .cookie = 1};
	const struct sockaddr_beowire to = nowhere();
	const struct rlimit none = {0, 0}; /* nothing is pinned */
	const struct way *way = arg;

	if (setrlimit(RLIMIT_MEMLOCK, &none))
		return 96;
	for (long i = 0; i <= way->most; i++) {
		int fd = socket_with(BEOWIRE_EAGER_MAX, 0), error = 0;

		while (!error)
			error = -kt_send_info(fd, way->bytes, 100, &to, &info, MSG_DONTWAIT);
		if (error != EAGAIN)
			return refused(error);
	}
	return 97;
}

/* Pulls that are under way. */
static int by_pulls(void *arg)
{
	union {
		struct sockaddr_beowire addr;
		int number;
	} who = {.addr = nowhere()};
	const struct way *way = arg;
	struct beowire_pull pull = {.key = 1, .buf = (uintptr_t)way->bytes, .len = MIB};
	int fd = socket_with(BEOWIRE_COPY_MAX, INT32_MAX);
	struct sockaddr_beowire self = {.sbw_family = AF_BEOWIRE};
	socklen_t len = sizeof(who);

	if (bind(fd, (struct sockaddr *)&self, sizeof(self)) ||
	    getsockopt(fd, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &who, &len))
		return 96;
	pull.peer = (uint32_t)who.number;
	for (long i = 0; i <= way->most; i++) {
		pull.cookie = (uint64_t)i + 1;
		if (ioctl(fd, BEOWIRE_IOC_PULL, &pull))
			return refused(errno);
	}
	return 97;
}

/* Events that nobody takes: the ends of sends. */
static int by_events(void *arg)
{
	const struct way *way = arg;
	int fd = socket_with(BEOWIRE_EAGER_MAX, 0), to = socket_with(BEOWIRE_EAGER_MAX, 0);
	struct sockaddr_beowire self = {.sbw_family = AF_BEOWIRE};
	const struct beowire_info sent = {.cookie = 1};
	struct beowire_info got;
	int error;

	if (bind(fd, (struct sockaddr *)&self, sizeof(self)) ||
	    bind(to, (struct sockaddr *)&self, sizeof(self)))
		return 96;
	self = kt_at(to);
	for (long i = 0; i <= way->most; i++) {
		error = -kt_send_info(fd, way->bytes, 8, &self, &sent, 0);
		if (error)
			return refused(error);
		if (kt_recv_info(to, &got, sizeof(got), &got, 0))
			return 95;
	}
	return 97;
}

/* Peers that do not answer. */
static int by_peers(void *arg)
{
	union {
		struct sockaddr_beowire addr;
		int number;
	} who;
	const struct way *way = arg;
	int fd = socket_with(BEOWIRE_EAGER_MAX, 0);
	struct sockaddr_beowire to = {.sbw_family = AF_BEOWIRE};

	if (bind(fd, (struct sockaddr *)&to, sizeof(to)))
		return 96;
	to = nowhere();
	for (int i = 0; i <= way->most; i++) {
		socklen_t len = sizeof(who);

		memcpy(to.sbw_mac + 2, &i, sizeof(i));
		who.addr = to;
		if (!getsockopt(fd, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &who, &len))
			continue;
		/* A send gives the engine more memory. */
		if (errno == EAGAIN && kt_send_to(fd, "x", 1, &to) == 1)
			continue;
		return refused(errno);
	}
	return 97;
}

static void bounded(int (*f)(void *), bool keeps, long most, uint64_t bound)
{
	struct way way = {.keeps = keeps, .most = most};
	uint64_t before = kt_parameter("held_bytes"), met = kt_parameter("user_limited");
	void *bytes = aligned_alloc(4096, MIB);

	memset(bytes, 1, MIB);
	way.bytes = bytes;
	kt_set_parameter("user_memory_max", bound);
	kt_enter("a");
	assert_int_equal(kt_as(KT_BOB, f, &way), 0);
	assert_in_range(kt_parameter("held_bytes"), 0, before + bound);
	assert_true(kt_parameter("user_limited") > met);
	kt_set_parameter("user_memory_max", 0);
	free(bytes);
	kt_becomes(kt_parameter("held_bytes"), 0, before);
}

static void test_many_sockets(void **state)
{
	bounded(by_sends, true, BOUND / MIB, BOUND);
	bounded(by_short_sends, true, 1000, 4 * MIB);
}

static void test_sockets_that_are_closed(void **state)
{
	bounded(by_sends, false, BOUND / MIB, BOUND);
}

static void test_pulls(void **state)
{
	bounded(by_pulls, true, BOUND / MIB, BOUND);
}

static void test_events_untaken(void **state)
{
	bounded(by_events, true, 100000, 2 * MIB);
}

static void test_peers(void **state)
{
	bounded(by_peers, true, 100000, 2 * MIB);
}

/* ---- memory of programs that peers read ---- */

/* A user's process: says where its socket is, waits until it is told something, then says what it
 * has counted. */
struct idler {
	int told[2], count[2];
	struct sockaddr_beowire at;
	pid_t pid;
};

static void begin_with(struct idler *idler, uid_t user, int (*f)(void *))
{
	kt_enter("a");
	assert_int_equal(pipe(idler->told) | pipe(idler->count), 0);
	idler->pid = kt_begin_as(user, user, user, f, idler);
	close(idler->count[1]); /* if it dies, that is seen */
	assert_int_equal(read(idler->count[0], &idler->at, sizeof(idler->at)), sizeof(idler->at));
	idler->at.sbw_ifindex = 0;
}

#define NODE	    "/proc/net/beowire/node"
#define QUESTIONS   20		/* more than answers that there is room for */
#define PATIENCE_NS 10000000000 /* region.c */

/* Is asked about its memory `most` times, and answers when told to: by copies, as nothing may be
 * locked. */
static int ask(const struct idler *idler, int most, struct beowire_info *asked)
{
	const struct rlimit none = {0, 0};
	struct sockaddr_beowire at = {.sbw_family = AF_BEOWIRE};
	socklen_t len = sizeof(at);
	const int dead_ms = 15000; /* the peer is not given up before the last answer */
	int fd = socket_with(BEOWIRE_COPY_MAX, INT32_MAX), n = 0;
	char byte;

	setsockopt(fd, SOL_BEOWIRE, BEOWIRE_DEAD_MS, &dead_ms, sizeof(dead_ms));
	if (setrlimit(RLIMIT_MEMLOCK, &none) || bind(fd, (struct sockaddr *)&at, len) ||
	    getsockname(fd, (struct sockaddr *)&at, &len) ||
	    write(idler->count[1], &at, sizeof(at)) != sizeof(at))
		exit(96);
	while (n < most) {
		if (kt_recv_info(fd, &byte, 1, &asked[n], 0))
			exit(95);
		n += asked[n].event == BEOWIRE_REGION;
	}
	if (write(idler->count[1], &n, sizeof(n)) != sizeof(n) ||
	    read(idler->told[0], &byte, 1) != 1)
		exit(94);
	return fd;
}

/* 0 or an errno. */
static int give(int fd, const struct beowire_info *asked, void *bytes)
{
	struct beowire_region answer = {
		.id = asked->cookie, .buf = (uintptr_t)bytes, .len = asked->len};

	return ioctl(fd, BEOWIRE_IOC_REGION, &answer) ? errno : 0;
}

static int answer_all(void *arg)
{
	struct beowire_info asked[QUESTIONS];
	void *bytes = aligned_alloc(4096, MIB);
	int fd = ask(arg, QUESTIONS, asked), error;

	for (int i = 0; i < QUESTIONS; i++) {
		while ((error = give(fd, &asked[i], bytes)) == EAGAIN)
			usleep(100000);
		if (error)
			return error;
	}
	return 0;
}

static void begin_asked(struct idler *bob, int (*f)(void *), uint64_t bound, const int *fd,
			const int *times, int fds)
{
	int n = 0;

	begin_with(bob, KT_BOB, f);
	for (int i = 0; i < fds; i++)
		kt_want(fd[i], &bob->at, MIB, times[i]);
	assert_int_equal(read(bob->count[0], &n, sizeof(n)), sizeof(n));
	/* Not before: who asks may have closed sockets that still hold more. */
	kt_set_parameter("user_memory_max", bound);
}

/* They wait for a peer that asks no more, and there is room for few. Those that were not asked for
 * again for 2 s make way for the next. */
static void test_answers_to_peers(void **state)
{
	uint64_t before = kt_parameter("held_bytes"), met = kt_parameter("user_limited");
	int fd = kt_watching("b"), times = QUESTIONS, status;
	struct idler bob;

	begin_asked(&bob, answer_all, 4 * MIB, &fd, &times, 1);
	kt_link_of_b("down");
	assert_int_equal(write(bob.told[1], "", 1), 1);
	status = kt_end_of(bob.pid);
	close(fd);
	kt_link_of_b("up");
	assert_int_equal(status, 0);
	assert_true(kt_parameter("user_limited") > met);
	kt_set_parameter("user_memory_max", 0);
	kt_becomes(kt_parameter("held_bytes"), 0, before);
}

/* As many answers to the one who asks for much as there is room for, then the other's. */
static int answer_the_modest(void *arg)
{
	struct beowire_info asked[QUESTIONS + 1];
	void *bytes = aligned_alloc(4096, MIB);
	int fd = ask(arg, QUESTIONS + 1, asked), modest = QUESTIONS, error = 0;

	while (modest && asked[modest].peer == asked[0].peer)
		modest--;
	for (int i = 0; i < QUESTIONS && !error; i++)
		error = i == modest ? 0 : give(fd, &asked[i], bytes);
	/* On a machine so slow that the first ones are old by then, they make way. */
	if (error && error != EAGAIN)
		return 97;
	return give(fd, &asked[modest], bytes);
}

/* One peer that asks for much and fetches nothing makes way for another one's little. */
static void test_answers_to_a_greedy_peer(void **state)
{
	const int times[] = {QUESTIONS, 1};
	int fd[] = {kt_watching("b"), kt_watching("b")}, status;
	uint64_t refused;
	struct idler bob;

	begin_asked(&bob, answer_the_modest, 4 * MIB, fd, times, 2);
	kt_link_of_b("down");
	refused = kt_number("a", NODE, "questions-refused");
	assert_int_equal(write(bob.told[1], "", 1), 1);
	status = kt_end_of(bob.pid);
	close(fd[0]);
	close(fd[1]);
	kt_link_of_b("up");
	kt_set_parameter("user_memory_max", 0);
	assert_int_equal(status, 0);
	assert_true(kt_number("a", NODE, "questions-refused") > refused);
}

/* Answers for as long as it is asked to try again. */
static int answer_in_vain(void *arg)
{
	const struct idler *idler = arg;
	struct beowire_info asked;
	void *bytes = aligned_alloc(4096, MIB);
	int fd = ask(arg, 1, &asked), error, n = 0;
	uint64_t begun = kt_now_ns();
	char byte;

	while ((error = give(fd, &asked, bytes)) == EAGAIN) {
		n++;
		do {
			if (kt_recv_info(fd, &byte, 1, &asked, 0))
				return 93;
		} while (asked.event != BEOWIRE_REGION);
	}
	if (error != ENOBUFS || n < 3 || kt_now_ns() - begun < PATIENCE_NS)
		return error ? error : 97;
	if (give(fd, &asked, NULL) || read(idler->told[0], &byte, 1) != 1)
		return 92;
	return 0;
}

/* Memory for an answer is waited for, for ten seconds, and the program is asked again meanwhile:
 * the peer is refused only then. */
static void test_an_answer_without_memory(void **state)
{
	int fd = kt_watching("b"), once = 1, status;
	struct beowire_info got;
	struct idler bob;

	begin_asked(&bob, answer_in_vain, MIB / 2, &fd, &once, 1);
	assert_int_equal(write(bob.told[1], "", 1), 1);
	kt_until(kt_recv_info(fd, &got, 0, &got, MSG_DONTWAIT) == 0);
	assert_int_equal(write(bob.told[1], "", 1), 1);
	status = kt_end_of(bob.pid);
	kt_set_parameter("user_memory_max", 0);
	assert_int_equal(status, 0);
	assert_int_equal(got.event, BEOWIRE_PULLED);
	assert_int_equal(got.status, -EACCES);
	close(fd);
}

/* ---- numbers ---- */

static int bind_many(void *arg)
{
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE};
	int most = *(int *)arg, n;

	for (n = 0; n < most; n++) {
		int fd = socket(AF_BEOWIRE, SOCK_RDM, 0);

		if (bind(fd, (struct sockaddr *)&any, sizeof(any)))
			return errno == ENOBUFS ? n : 99;
	}
	return n;
}

struct subordinate {
	int ready[2], go[2];
};

/* Bob in a user namespace of his own, and there another user than himself. */
static int bind_as_subordinate(void *arg)
{
	struct subordinate *s = arg;
	int one = 1;
	char byte = unshare(CLONE_NEWUSER) ? (char)errno : 0;

	if (write(s->ready[1], &byte, 1) != 1 || byte || read(s->go[0], &byte, 1) != 1 || setuid(1))
		return 98;
	return bind_many(&one);
}

static int hold_ports(void *arg)
{
	struct subordinate *s = arg;
	int most = 8, n = bind_many(&most);
	char byte;

	if (write(s->ready[1], "", 1) != 1 || read(s->go[0], &byte, 1) != 1)
		return 98;
	return n;
}

static void test_ports(void **state)
{
	uint64_t before = kt_parameter("held_bytes");
	int most = 100;

	kt_set_parameter("user_ports_max", 8);
	kt_enter("a");
	assert_int_equal(kt_as(KT_BOB, bind_many, &most), 8);
	assert_int_equal(kt_as(KT_BOB, bind_many, &most), 8); /* given back */
	kt_set_parameter("user_ports_max", 4096);
	kt_becomes(kt_parameter("held_bytes"), 0, before);
}

static void test_nobody_becomes_another(void **state)
{
	struct subordinate holder, other;
	pid_t holding, binding;
	int one = 1;
	char byte;

	assert_int_equal(pipe(holder.ready) | pipe(holder.go), 0);
	assert_int_equal(pipe(other.ready) | pipe(other.go), 0);
	kt_set_parameter("user_ports_max", 8);
	kt_enter("a");
	holding = kt_begin_as(KT_BOB, KT_BOB, KT_BOB, hold_ports, &holder);
	close(holder.ready[1]); /* if it dies, that is seen */
	assert_int_equal(read(holder.ready[0], &byte, 1), 1);
	assert_int_equal(kt_as(KT_ALICE, bind_many, &one), 1);
	binding = kt_begin_as(KT_BOB, KT_BOB, KT_BOB, bind_as_subordinate, &other);
	close(other.ready[1]);
	assert_int_equal(read(other.ready[0], &byte, 1), 1);
	assert_int_equal(byte, 0);
	kt_shell("printf '0 %d 1\\n1 5000 1\\n' >/proc/%d/uid_map", KT_BOB, binding);
	assert_int_equal(write(other.go[1], "", 1), 1);
	assert_int_equal(kt_end_of(binding), 0);
	assert_int_equal(write(holder.go[1], "", 1), 1);
	assert_int_equal(kt_end_of(holding), 8);
	kt_set_parameter("user_ports_max", 4096);
}

/* ---- unread messages ---- */

/* A socket of a user who reads nothing until he is told to; then he counts. */
static int idle(void *arg)
{
	struct idler *idler = arg;
	struct sockaddr_beowire at = {.sbw_family = AF_BEOWIRE};
	socklen_t len = sizeof(at);
	int fd = socket(AF_BEOWIRE, SOCK_RDM, 0), n = 0;
	char bytes[16];

	if (bind(fd, (struct sockaddr *)&at, len) ||
	    getsockname(fd, (struct sockaddr *)&at, &len) ||
	    write(idler->count[1], &at, sizeof(at)) != sizeof(at) ||
	    read(idler->told[0], bytes, 1) != 1)
		return 98;
	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) == 16)
		n++;
	return write(idler->count[1], &n, sizeof(n)) == sizeof(n) ? 0 : 98;
}

static int end_idling(const struct idler *idler)
{
	int n = -1;

	assert_int_equal(write(idler->told[1], "", 1), 1);
	assert_int_equal(read(idler->count[0], &n, sizeof(n)), sizeof(n));
	assert_int_equal(kt_end_of(idler->pid), 0);
	return n;
}

/* Sends until the receiver has left, or so many; gives how many. */
static int flood(const struct sockaddr_beowire *to, int most)
{
	int fd = kt_bound("b", SOCK_RDM, 0), n;

	for (n = 0; n < most && kt_send_to(fd, "sixteen bytes...", 16, to) == 16; n++)
		;
	usleep(100000);
	if (kt_error(fd) == ECONNRESET)
		n = -n;
	close(fd);
	return n;
}

/* Of the room for what is unread beyond SO_RCVBUF one who reads nothing leaves half to others. */
static void test_one_users_unread_messages(void **state)
{
	uint64_t before = kt_parameter("held_bytes"), unqueued = kt_number("a", NODE, "unqueued");
	struct idler bob[3], alice;
	int i, n;

	kt_set_parameter("overflow_max", 4 * MIB);
	for (i = 0; i < 3; i++) {
		begin_with(&bob[i], KT_BOB, idle);
		flood(&bob[i].at, 20000);
	}
	assert_true(kt_number("a", NODE, "unqueued") > unqueued);
	begin_with(&alice, KT_ALICE, idle);
	assert_int_equal(flood(&alice.at, 1000), 1000); /* four times what SO_RCVBUF takes */
	assert_int_equal(end_idling(&alice), 1000);
	for (i = 0; i < 3; i++) {
		n = end_idling(&bob[i]);
		assert_in_range(n, 100, 10000);
	}
	kt_set_parameter("overflow_max", 0);
	kt_becomes(kt_parameter("held_bytes"), 0, before);
}

/* Strangers who heed no pressure fill half of what may wait for a socket, and have to go; with whom
 * the program has spoken is still heard. */
static void test_strangers_unread_messages(void **state)
{
	enum { SAID = 100 };
	int fd = kt_bound("a", SOCK_RDM, 0), friend = kt_bound("b", SOCK_RDM, 0), heard = 0;
	struct sockaddr_beowire at = kt_at(fd), at_friend = kt_at(friend);
	char bytes[16];
	ssize_t n;

	kt_settings("memory_max", "1048576");
	assert_int_equal(kt_send_to(fd, "f", 1, &at_friend), 1);
	assert_int_equal(recv(friend, bytes, 1, 0), 1);
	for (int i = 0; i < 3; i++)
		assert_true(flood(&at, 20000) < 0);
	for (int i = 0; i < SAID; i++)
		assert_int_equal(kt_send_to(friend, "f", 1, &at), 1);
	while (heard < SAID && (n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
		heard += n == 1;
	assert_int_equal(heard, SAID);
	assert_int_equal(kt_error(friend), 0);
	kt_settings("memory_max", "67108864");
	close(friend);
	close(fd);
}

/* A socket of a user who holds much, and knows so many peers that there is no memory for one more
 * when he is told so. */
static int know_many(void *arg)
{
	union {
		struct sockaddr_beowire addr;
		int number;
	} who;
	const struct idler *idler = arg;
	struct sockaddr_beowire at = {.sbw_family = AF_BEOWIRE}, to = nowhere();
	socklen_t len = sizeof(at);
	int fd = socket(AF_BEOWIRE, SOCK_RDM, 0), most = 20, error = 0;
	char byte;

	if (bind_many(&most) != most || bind(fd, (struct sockaddr *)&at, len) ||
	    getsockname(fd, (struct sockaddr *)&at, &len) ||
	    write(idler->count[1], &at, sizeof(at)) != sizeof(at) ||
	    read(idler->told[0], &byte, 1) != 1)
		return 98;
	for (int i = 0; i < 1000 && !error; i++) {
		memcpy(to.sbw_mac + 2, &i, sizeof(i));
		who.addr = to;
		len = sizeof(who);
		error = getsockopt(fd, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &who, &len) ? errno : 0;
	}
	if (write(idler->count[1], &error, sizeof(error)) != sizeof(error) ||
	    read(idler->told[0], &byte, 1) != 1)
		return 97;
	return 0;
}

/* A caller for whom there is no memory is left, and told so, and is counted. */
static void test_a_caller_without_memory(void **state)
{
	uint64_t refused = kt_number("a", NODE, "peers-refused");
	uint64_t held = kt_parameter("held_bytes");
	struct idler bob;
	int fd, error;

	begin_with(&bob, KT_BOB, know_many);
	kt_set_parameter("user_memory_max", kt_parameter("held_bytes") - held);
	assert_int_equal(write(bob.told[1], "", 1), 1);
	assert_int_equal(read(bob.count[0], &error, sizeof(error)), sizeof(error));
	assert_int_equal(error, ENOBUFS);
	fd = kt_bound("b", SOCK_RDM, 0);
	assert_int_equal(kt_send_to(fd, "x", 1, &bob.at), 1);
	kt_until(kt_error(fd) == ECONNRESET);
	assert_int_equal(kt_number("a", NODE, "peers-refused"), refused + 1);
	close(fd);
	kt_set_parameter("user_memory_max", 0);
	assert_int_equal(write(bob.told[1], "", 1), 1);
	assert_int_equal(kt_end_of(bob.pid), 0);
}

#define CALLERS 32

/* Holds more than all that the callers do, as these are bounded as well. */
static int listen_only(void *arg)
{
	const struct idler *idler = arg;
	struct sockaddr_beowire at = {.sbw_family = AF_BEOWIRE};
	socklen_t len = sizeof(at);
	int fd = socket(AF_BEOWIRE, SOCK_SEQPACKET, 0), most = 3 * CALLERS;
	char byte;

	if (bind_many(&most) != most || bind(fd, (struct sockaddr *)&at, len) ||
	    listen(fd, 2 * CALLERS) || getsockname(fd, (struct sockaddr *)&at, &len) ||
	    write(idler->count[1], &at, sizeof(at)) != sizeof(at) ||
	    read(idler->told[0], &byte, 1) != 1)
		return 98;
	return 0;
}

/* There is memory for the peer of a caller, and not for the socket of its connection: between less
 * memory, by which the peer is refused, and more. What others hold comes and goes, so that place is
 * sought, by steps that get smaller than a socket. */
static void test_a_connection_without_memory(void **state)
{
	uint64_t refused = kt_number("a", NODE, "connections-refused"), now = refused;
	uint64_t bound = MIB, step = MIB;
	int fd[CALLERS], n = 0, error = 0;
	struct idler bob;

	begin_with(&bob, KT_BOB, listen_only);
	for (int i = 0; i < CALLERS; i++)
		fd[i] = kt_bound("b", SOCK_SEQPACKET, 0);
	while (now == refused && n < CALLERS && bound < BOUND * 16) {
		kt_set_parameter("user_memory_max", bound);
		error = kt_connect(fd[n], &bob.at);
		now = kt_number("a", NODE, "connections-refused");
		if (error) {
			bound += step;
			continue;
		}
		n++;
		bound -= step;
		step = step > 4096 ? step / 16 : step;
	}
	assert_int_equal(error, -ECONNREFUSED);
	assert_int_equal(now, refused + 1);
	kt_set_parameter("user_memory_max", 0);
	assert_int_equal(kt_connect(fd[n], &bob.at), 0);
	for (int i = 0; i < CALLERS; i++)
		close(fd[i]);
	assert_int_equal(write(bob.told[1], "", 1), 1);
	assert_int_equal(kt_end_of(bob.pid), 0);
}

/* Datagrams beyond SO_RCVBUF. */
static void test_datagrams_without_room(void **state)
{
	uint64_t unqueued = kt_number("b", NODE, "unqueued");
	struct kt_pair p = kt_couple(SOCK_DGRAM);
	static char bytes[1000];
	int small = 1, n = 0;

	assert_int_equal(setsockopt(p.b, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(send(p.a, bytes, sizeof(bytes), 0), sizeof(bytes));
	kt_until(kt_counters(p.b).rx_frames >= 100);
	while (recv(p.b, bytes, sizeof(bytes), MSG_DONTWAIT) == sizeof(bytes))
		n++;
	assert_in_range(n, 1, 99);
	assert_int_equal(kt_number("b", NODE, "unqueued"), unqueued + 100 - n);
	kt_close(&p);
}

/* ---- messages of which a part has come ---- */

#define PIECE 64 /* port.c */
#define PARTS (5 * PIECE)

/* A message says that it has more bytes than come. */
static void lengthen(struct kt_frame *f, long wanted)
{
	uint8_t *part = kt_part(f, BW_PART_MESSAGE, 0);
	struct bw_part_msg m;

	if (!part || !wanted)
		return;
	memcpy(&m, part, sizeof(m));
	if (m.part.plen)
		m.total = m.part.plen + (uint32_t)wanted;
	memcpy(part, &m, sizeof(m));
}

/* A message of which all that comes is there: it is acknowledged. */
static void send_part(int fd)
{
	const struct beowire_info info = {.cookie = 1};
	struct beowire_info told;
	char byte;

	assert_int_equal(kt_send_info(fd, "x", 1, NULL, &info, 0), 0);
	assert_int_equal(kt_recv_info(fd, &byte, 1, &told, 0), 0);
	assert_int_equal(told.event, BEOWIRE_SENT);
	assert_int_equal(told.status, 0);
}

/* What a peer has left of them goes in pieces when the port ends, between which others have the
 * processor. */
static void test_many_parts(void **state)
{
	struct kt_pair p = {.a = kt_open("a", SOCK_RDM), .b = kt_bound("b", SOCK_RDM, 0)};
	struct sockaddr_beowire to;
	struct kt_relay r;
	uint64_t before;
	char byte;

	p.at_b = kt_at(p.b);
	kt_relay_begin(&r, lengthen);
	kt_option(p.a, BEOWIRE_DEAD_MS, 3000); /* else its port would linger */
	to = kt_relayed(&p.at_b);
	assert_int_equal(kt_connect(p.a, &to), 0);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	r.wanted = 63;
	kt_option(p.a, BEOWIRE_INFO_WANTED, 1);
	for (int i = 0; i < PARTS; i++)
		send_part(p.a);
	before = kt_number("b", NODE, "squeezed");
	close(p.b);
	assert_in_range(kt_number("b", NODE, "squeezed"), before + PARTS / PIECE, UINT64_MAX);
	kt_relay_end(&r);
	close(p.a);
}

/* ---- engines that are full ---- */

#define LEAST_MEMORY "1048576"
#define AT_ONCE_NS   10000000000 /* far less than what a port lingers for */

/* Frames of what is fetched, which are lost. */
static volatile int fetched;

static void starve(struct kt_frame *f, long wanted)
{
	if (!kt_part(f, BW_PART_BULK, 0))
		return;
	f->len = 0;
	fetched++;
}

/* Messages to nobody, until the engine has no memory for one more. */
static void fill_engine(int fd)
{
	const int room = 64 * MIB;
	const struct sockaddr_beowire to = nowhere();
	long n = 0;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)), 0);
	while (sendto(fd, "x", 1, MSG_DONTWAIT, (const struct sockaddr *)&to, sizeof(to)) == 1)
		assert_in_range(++n, 1, 100000);
	assert_int_equal(errno, ENOBUFS);
}

/* The memory of a program that goes while a peer fetches it is let go, though there is none to tell
 * the peer by. */
static void test_a_full_engine_lets_memory_go(void **state)
{
	static _Alignas(4096) uint8_t bytes[MIB];
	const struct beowire_info info = {.flags = BEOWIRE_SEND_ASYNC | BEOWIRE_SEND_LONG};
	struct kt_pair p = {.a = kt_open("a", SOCK_RDM), .b = kt_bound("b", SOCK_RDM, 0)};
	struct sockaddr_beowire to;
	struct kt_relay r;
	uint64_t begun;

	p.at_b = kt_at(p.b);
	kt_relay_begin(&r, starve);
	to = kt_relayed(&p.at_b);
	kt_enter("a");
	assert_int_equal(kt_set("memory_max", LEAST_MEMORY), 0);
	memset(bytes, 1, sizeof(bytes)); /* pages of their own */
	kt_option(p.a, BEOWIRE_COPY_MAX, 1000);
	assert_int_equal(kt_send_info(p.a, bytes, MIB, &to, &info, 0), 0);
	kt_becomes(kt_pinned(), MIB / 4096, MIB / 4096);
	kt_until(recv(p.b, bytes, MIB, MSG_DONTWAIT) < 0 && fetched);
	fill_engine(p.a);
	begun = kt_now_ns();
	close(p.a);
	kt_becomes(kt_pinned(), 0, 0);
	assert_in_range(kt_now_ns() - begun, 0, AT_ONCE_NS);
	kt_until(kt_events(p.b, POLLIN) == POLLIN); /* nor does the peer wait for ever */
	kt_refused(recv(p.b, bytes, MIB, MSG_DONTWAIT), EAGAIN);
	kt_becomes(kt_events(p.b, POLLIN), 0, 0);
	close(p.b);
	kt_relay_end(&r);
	kt_settings("memory_max", "67108864");
}

/* ---- time ---- */

#define LINGER_NS 60000000000 /* port.c */
#define LOOK_US	  200000
#define TIMERS	  500 /* that go off in that time, at most, where nothing goes on */

/* A port of a's whose socket was closed when the program began. */
static struct {
	uint64_t since; /* at this time */
	uint16_t number;
	pid_t holder;	 /* has the socket that does not read what was sent to it */
	bool there;	 /* once it was closed */
	uint64_t timers; /* that went off in the moment after that */
} lingering;

/* Of the kernel, in softirq, as those of ports do. */
static uint64_t timers_gone_off(void)
{
	uint64_t sum = 0;
	char line[4096];
	FILE *f = fopen("/proc/softirqs", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		char *at = strstr(line, "HRTIMER:"), *next;

		for (at = at ? at + 8 : NULL; at; at = next > at ? next : NULL)
			sum += strtoull(at, &next, 10);
	}
	fclose(f);
	return sum;
}

/* A copy that waits to be fetched outlives its socket. */
static int leave_one_lingering(void **state)
{
	static const uint8_t unread[100000];
	struct kt_pair p;
	int status = kt_open_to_all(state);

	if (status)
		return status;
	p = kt_couple(SOCK_RDM);
	assert_int_equal(send(p.a, unread, sizeof(unread), MSG_DONTWAIT), sizeof(unread));
	kt_becomes(kt_counters(p.b).rx_messages, 1, 1);
	lingering.holder = fork();
	if (lingering.holder == 0) {
		close(p.a);
		pause();
		_exit(0);
	}
	lingering.number = p.at_a.sbw_port;
	lingering.since = kt_now_ns();
	kt_close(&p);
	lingering.there = kt_port_is_there("a", lingering.number);
	lingering.timers = timers_gone_off();
	usleep(LOOK_US);
	lingering.timers = timers_gone_off() - lingering.timers;
	return 0;
}

/* It is kept for a peer that never fetches it, but not for ever, and costs no time meanwhile. */
static void test_lingering(void **state)
{
	const struct sockaddr_beowire self = {.sbw_family = AF_BEOWIRE,
					      .sbw_port = lingering.number};
	int fd;

	assert_true(lingering.there);
	assert_in_range(lingering.timers, 0, TIMERS);
	kt_until(!kt_port_is_there("a", lingering.number));
	assert_true(kt_now_ns() >= lingering.since + LINGER_NS);
	fd = kt_open("a", SOCK_RDM);
	kt_until(bind(fd, (const struct sockaddr *)&self, sizeof(self)) == 0);
	close(fd);
}

static int end_holder(void **state)
{
	kill(lingering.holder, SIGKILL);
	waitpid(lingering.holder, NULL, 0);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_many_sockets),
		kt_test(test_sockets_that_are_closed),
		kt_test(test_pulls),
		kt_test(test_events_untaken),
		kt_test(test_peers),
		kt_test(test_answers_to_peers),
		kt_test(test_answers_to_a_greedy_peer),
		kt_test(test_an_answer_without_memory),
		kt_test(test_ports),
		kt_test(test_nobody_becomes_another),
		kt_test(test_one_users_unread_messages),
		kt_test(test_strangers_unread_messages),
		kt_test(test_a_caller_without_memory),
		kt_test(test_a_connection_without_memory),
		kt_test(test_datagrams_without_room),
		kt_test(test_many_parts),
		kt_test(test_a_full_engine_lets_memory_go),
		kt_test(test_lingering),
	};

	return cmocka_run_group_tests(tests, leave_one_lingering, end_holder);
}
