/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names that another user has taken, and another user's calls: neither keeps a user's processes
 * from one another. As root, in a network namespace of its own, with processes of two other users.
 */
#include "../check.h"
#include "claim.h"
#include "endpoint.h"
#include "number.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define US	  65533
#define STRANGER  65534
#define SOON_S	  240  /* far beyond what a process does here */
#define FORMS	  8    /* of a claim's name */
#define CALLS	  200  /* more than a listener keeps without a word */
#define SHARE	  4096 /* names that one process takes */
#define SQUATTERS 8

static uint16_t called; /* engine that the stranger calls */

/* A process of this user. With `stays` the parent goes on once `body` is done, and it holds what it
 * has until it is killed. */
static pid_t start(uid_t user, bool stays, void (*body)(void))
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		CHECK(!setresgid(user, user, user) && !setresuid(user, user, user));
		CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL)); /* what setresuid() takes away */
		alarm(SOON_S);
		body();
		if (!stays)
			_exit(0);
		alarm(0);
		CHECK(write(ready[1], "", 1) == 1);
		pause();
	}
	close(ready[1]);
	if (stays)
		assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void run(uid_t user, void (*body)(void))
{
	pid_t pid = start(user, false, body);
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Take a name, and say who one is if one listens. */
static void squat(const char *name, bool listens)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	size_t n = strlen(name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(sun.sun_path + 1, name, n);
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&sun,
			       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)));
	CHECK(!listens || !listen(fd, 16));
}

static void squat_forms(int n, bool listens)
{
	char name[64];

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), i ? "test/names/%d/%d" : "test/names/%d", US, i);
		squat(name, listens);
	}
}

static void squat_some(void)
{
	squat_forms(FORMS / 2, true);
}

static void squat_silently(void)
{
	squat_forms(FORMS / 2, false);
}

static void squat_all(void)
{
	squat_forms(FORMS, true);
}

static int holder; /* who claimed first, of us */

static void claim_first(void)
{
	holder = bw_claim_name("test/names");
	CHECK(holder >= 0);
}

static void claim_first_around(void)
{
	claim_first();
	CHECK(bw_claim_strangers() == FORMS / 2);
}

static void claim_second(void)
{
	int fd = bw_claim_dial("test/names");

	CHECK(bw_claim_name("test/names") == -EADDRINUSE);
	CHECK(fd >= 0);
	close(fd);
}

static void claim_in_vain(void)
{
	CHECK(bw_claim_name("test/names") == -EACCES);
	CHECK(bw_claim_dial("test/names") == -ECONNREFUSED);
	CHECK(bw_claim_strangers() == FORMS);
}

/* One of a user's processes has the name, whoever has taken which of its forms. */
static void claim__steps_around_strangers(void **state)
{
	void (*squatter[])(void) = {squat_some, squat_silently};

	for (int i = 0; i < 2; i++) {
		pid_t stranger = start(STRANGER, true, squatter[i]);
		pid_t first = start(US, true, claim_first_around);

		run(US, claim_second);
		stop(first);
		run(US, claim_first);
		stop(stranger);
	}
}

static void claim__is_left_to_nobody_but_us(void **state)
{
	pid_t stranger = start(STRANGER, true, squat_all);

	run(US, claim_in_vain);
	stop(stranger);
	stranger = start(US, true, claim_first);
	run(US, claim_second);
	stop(stranger);
}

/* Who asks is forgotten, so that there is room for the next. */
static void claim_and_be_asked(void)
{
	int fd = bw_claim_name("test/names"), asked[100];

	CHECK(fd >= 0);
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 100; i++) {
			asked[i] = bw_claim_dial("test/names");
			CHECK(asked[i] >= 0);
		}
		bw_claim_drain(fd);
		for (int i = 0; i < 100; i++)
			close(asked[i]);
	}
}

static void claim__can_be_asked_for_ever(void **state)
{
	run(US, claim_and_be_asked);
}

static uint32_t squatted; /* numbers, by those who came before */

/* As many as fit into the descriptors of a process. */
static void squat_numbers(void)
{
	char name[32];

	for (uint32_t i = squatted; i < squatted + SHARE && i <= UINT16_MAX; i++) {
		snprintf(name, sizeof(name), "beowire.%u", i);
		squat(name, true);
	}
}

static int talked[2], gone[2];

/* Two endpoints whose numbers' names are a stranger's; then he goes. */
static void talk_without_numbers(void)
{
	struct told at_a, at_b;
	struct bw_ep *a = endpoint_open("local", &at_a), *b = endpoint_open("local", &at_b);
	bw_peer_no peer = endpoint_find(a, b);
	char byte;

	CHECK(a->borrowed && b->borrowed && a->self.engine > BW_ENGINE_KERNEL);
	CHECK(bw_send(a, peer, 1, 0, 0, "hello", 5, 0, NULL) == 1);
	endpoint_await(a, b, &at_b.messages, 1);
	CHECK(strstr(bw_peer_describe(a, peer), "local"));
	CHECK(write(talked[1], "", 1) == 1);
	CHECK(read(gone[0], &byte, 1) == 1);
	a->chores_at = 0;
	bw_progress(a);
	CHECK(!a->borrowed && a->number >= 0 && bw_number_held(a->self.engine));
	bw_ep_close(a, 0);
	bw_ep_close(b, 0);
}

static void number__is_had_whoever_took_all(void **state)
{
	struct rlimit limit, before;
	pid_t stranger[SQUATTERS], us;
	int status;
	char byte;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = (struct rlimit){2 * SHARE, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < SQUATTERS; i++) {
		squatted = BW_ENGINE_KERNEL + 1 + (uint32_t)i * SHARE;
		stranger[i] = start(STRANGER, true, squat_numbers);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(pipe2(talked, O_CLOEXEC) || pipe2(gone, O_CLOEXEC), 0);
	us = start(US, false, talk_without_numbers);
	close(talked[1]);
	assert_int_equal(read(talked[0], &byte, 1), 1);
	for (int i = 0; i < SQUATTERS; i++)
		stop(stranger[i]);
	assert_int_equal(write(gone[1], "", 1), 1);
	close(talked[0]);
	close(gone[0]);
	close(gone[1]);
	assert_int_equal(waitpid(us, &status, 0), us);
	assert_int_equal(status, 0);
}

static void call_and_say_nothing(void)
{
	char name[32];
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int n = snprintf(name, sizeof(name), "beowire.%u", called);

	memcpy(sun.sun_path + 1, name, (size_t)n);
	for (int i = 0; i < CALLS; i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		CHECK(fd >= 0);
		CHECK(!connect(fd, (struct sockaddr *)&sun,
			       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)));
	}
}

/* A stranger's calls take nobody's place. */
static void calls__of_strangers_are_turned_away(void **state)
{
	struct told at_a, at_b;
	struct bw_ep *a = endpoint_open("local", &at_a), *b = endpoint_open("local", &at_b);
	bw_peer_no peer = endpoint_find(b, a);
	pid_t stranger;
	int sent;

	called = a->self.engine;
	stranger = start(STRANGER, true, call_and_say_nothing);
	/* They are looked at now and then only. */
	endpoint_await(a, a, &bw_local_counters(a->local)->turned_away, CALLS);
	/* There is no room until its own call has been looked at. */
	while ((sent = bw_send(b, peer, 1, 0, 0, "hello", 5, 0, NULL)) == -EAGAIN) {
		bw_progress(a);
		bw_progress(b);
	}
	assert_int_equal(sent, 1);
	endpoint_await(a, b, &at_a.messages, 1);
	stop(stranger);
	bw_ep_close(a, 0);
	bw_ep_close(b, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(claim__steps_around_strangers),
		cmocka_unit_test(claim__is_left_to_nobody_but_us),
		cmocka_unit_test(claim__can_be_asked_for_ever),
		cmocka_unit_test(number__is_had_whoever_took_all),
		cmocka_unit_test(calls__of_strangers_are_turned_away),
	};

	if (geteuid() != 0) {
		fputs("left out: processes of two users can only be made by root\n", stderr);
		return 77; /* skipped, to meson */
	}
	if (unshare(CLONE_NEWNET) < 0) {
		perror("unshare");
		return 1;
	}
	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
