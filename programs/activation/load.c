/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The load beside a measurement: on each processor a process of the ordinary class that never
 * sleeps. In turn it goes through the hot code, writes 4 MiB, and maps, touches and unmaps 1 MiB:
 * caches, translations and the scheduler are as busy as beside other programs.
 */
#include "activation.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOAD_BYTES (4u << 20)
#define LOAD_FRESH (1u << 20)
#define LOAD_PAGE  4096

static void touch(uint8_t *bytes, size_t n, size_t step)
{
	for (size_t i = 0; i < n; i += step)
		bytes[i]++;
}

static void __attribute__((noreturn)) busy(int processor)
{
	uint8_t *bytes = malloc(LOAD_BYTES), *fresh;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(processor, &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (!bytes)
		act_fail("no memory");
	memset(bytes, 0, LOAD_BYTES);
	for (;;) {
		act_work(4);
		touch(bytes, LOAD_BYTES, 64);
		fresh = mmap(NULL, LOAD_FRESH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
		if (fresh == MAP_FAILED)
			continue;
		touch(fresh, LOAD_FRESH, LOAD_PAGE);
		munmap(fresh, LOAD_FRESH);
	}
}

/* One process for each processor that we may use, at most so many. */
void act_load(int processors)
{
	pid_t parent = getpid(), pid;
	cpu_set_t allowed;
	int started = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever started it may be killed */
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		act_fail("sched_getaffinity: %s", strerror(errno));
	for (int i = 0; i < CPU_SETSIZE && started < processors; i++) {
		if (!CPU_ISSET(i, &allowed))
			continue;
		pid = fork();
		if (pid < 0)
			act_fail("fork: %s", strerror(errno));
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(1);
			busy(i);
		}
		started++;
	}
	printf("{\"processes\": %d}\n", started);
	fflush(stdout);
	for (;;)
		pause();
}
