/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Children, their board, and how two of them meet. */
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#define IMPATIENCE 2000 /* looks at what another process writes before the core is given away */

struct board *board;
uint64_t effort = 1;

int board_setup(void **state)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	return board == MAP_FAILED ? -1 : 0;
}

int board_teardown(void **state)
{
	return munmap(board, sizeof(*board));
}

pid_t start(void (*body)(uint32_t), uint32_t me)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body(me);
		_exit(0);
	}
	return pid;
}

int status_of(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	return status;
}

void two(void (*body)(uint32_t))
{
	pid_t pid[2] = {start(body, 0), start(body, 1)};
	int first, second;
	bool other = waitpid(-1, &first, 0) == pid[0];

	/* Nobody is left waiting for one that failed. */
	if (first != 0)
		kill(pid[other], SIGKILL);
	second = status_of(pid[other]);
	assert_int_equal(first, 0);
	assert_int_equal(second, 0);
}

void round_begins(uint64_t round, uint64_t rounds)
{
	static uint64_t begin;

	if (round == 0)
		begin = now_ns();
	if (round + 1 >= rounds || now_ns() - begin > SPAN_MS * 1000000ull * effort)
		__atomic_store_n(&board->last, round + 1, __ATOMIC_RELEASE);
}

uint64_t rounds_in_all(void)
{
	uint64_t last = __atomic_load_n(&board->last, __ATOMIC_ACQUIRE);

	return last ? last : UINT64_MAX;
}

void reach(uint32_t *counter, uint32_t value)
{
	for (uint64_t begin = now_ns(); __atomic_load_n(counter, __ATOMIC_ACQUIRE) < value;) {
		CHECK(now_ns() - begin < STUCK_MS * 1000000ull);
		usleep(200);
	}
}

void meet(uint32_t me)
{
	uint64_t *other = &board->gate[!me].rounds;
	uint64_t round = board->gate[me].rounds + 1;

	__atomic_store_n(&board->gate[me].rounds, round, __ATOMIC_RELEASE);
	for (uint64_t i = 1; __atomic_load_n(other, __ATOMIC_ACQUIRE) < round; i++)
		if (i % IMPATIENCE == 0)
			sched_yield();
}

void rendezvous(struct node *n, uint32_t me, uint32_t ring_bytes)
{
	seed_set(me);
	node_open(n, ring_bytes, 9);
	n->quiet = true;
	board->engine[me] = n->engine;
	__atomic_fetch_add(&board->ready, 1, __ATOMIC_ACQ_REL);
	reach(&board->ready, 2);
	if (me == 0)
		CHECK(bw_local_connect(n->link, board->engine[1], 9, NULL, &n->peer) == 0);
	/* Before the answer every message rings the doorbell: that would hide what is tested. */
	for (struct bw_local_id id = {0}; id.name[0] == 0;) {
		node_poll(n);
		if (n->peer)
			bw_local_peer_id(n->peer, &id);
	}
}

void part(void)
{
	__atomic_fetch_add(&board->done, 1, __ATOMIC_ACQ_REL);
	reach(&board->done, 2);
}

void turn(struct node *n)
{
	struct pollfd fd = {.fd = bw_local_fd(n->link), .events = POLLIN};

	if (bw_local_poll(n->link, now_ns(), false) > 0 || bw_local_arm(n->link) < 0)
		return;
	CHECK(poll(&fd, 1, STUCK_MS) == 1);
	bw_local_poll(n->link, now_ns(), true);
}

void spin(uint64_t turns)
{
	for (volatile uint64_t i = 0; i < turns; i++)
		;
}
