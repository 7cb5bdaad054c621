/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whom a process lets read its memory where Yama's scope is 1: processes of its launcher, and no
 * other ones of its user. To be run as root in a guest, by test_local_yama.py.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link/local/impl.h"

#define USER 65534

static struct {
	volatile pid_t rank; /* that lets others read it; then */
	volatile int done;   /* it may end, and */
	volatile int told;   /* what its neighbour found, plus 1 */
} * board;

static uint64_t word = 0x600DF00D;

static int reads(pid_t pid)
{
	uint64_t seen = 0;
	struct iovec local = {&seen, sizeof(seen)}, remote = {&word, sizeof(word)};

	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0)
		return errno;
	return seen == word ? 0 : EIO;
}

/* Run in a child; its exit status. */
static int status_of(int (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(body());
	waitpid(pid, &status, 0);
	return status;
}

static int neighbour(void)
{
	return reads(board->rank);
}

/* Two ranks, one of which reads the other. */
static int launcher(void)
{
	pid_t rank = fork();

	if (rank == 0) {
		prctl(PR_SET_DUMPABLE, 1);
		bw_local_cma_allow();
		board->rank = getpid();
		while (!board->done)
			usleep(1000);
		_exit(0);
	}
	while (!board->rank)
		usleep(1000);
	board->told = 1 + WEXITSTATUS(status_of(neighbour));
	while (!board->done)
		usleep(1000);
	return 0;
}

static int stranger(void)
{
	while (!board->rank)
		usleep(1000);
	return reads(board->rank);
}

/* Without a launcher nobody may read it. */
static int alone(void)
{
	board->rank = board->done = 0;
	if (fork() == 0) {
		while (getppid() > 1)
			usleep(1000);
		prctl(PR_SET_DUMPABLE, 1);
		bw_local_cma_allow();
		board->rank = getpid();
		while (!board->done)
			usleep(1000);
		_exit(0);
	}
	return 0;
}

int main(void)
{
	int launched, foreign, orphan;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED || setresuid(USER, USER, USER))
		return 1;
	if (fork() == 0)
		_exit(launcher());
	while (!board->told)
		usleep(1000);
	launched = board->told - 1;
	foreign = WEXITSTATUS(status_of(stranger)); /* while the launcher lives */
	board->done = 1;
	status_of(alone);
	orphan = WEXITSTATUS(status_of(stranger));
	board->done = 1;
	fprintf(stderr, "launched %d foreign %d orphan %d\n", launched, foreign, orphan);
	return launched != 0 || foreign != EPERM || orphan != EPERM;
}
