/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that runs from copies of its text: threads, a signal in the middle of its own code, a
 * child, a thread's end from within, and a wait in a known function for whoever looks from outside.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
	caught++;
}

static void *computes(void *arg)
{
	uint64_t x = (uintptr_t)arg;

	for (int i = 0; i < 100000; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	if (x & 1)
		pthread_exit((void *)(uintptr_t)(x >> 32));
	return (void *)(uintptr_t)(x >> 32);
}

/* A debugger stops here. */
static __attribute__((noinline)) long stopped_here(long n)
{
	__asm__ volatile("" : "+r"(n) : : "memory");
	return n + 1;
}

static __attribute__((noinline)) void waits(void)
{
	char byte;
	long n = 0;

	/* Each byte is a step; the end of the input ends it. */
	while (read(STDIN_FILENO, &byte, 1) == 1) {
		n = stopped_here(n);
		printf("%ld\n", n);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	uintptr_t sum = 0;
	pthread_t threads[4];
	int status;
	void *result;
	pid_t child;

	signal(SIGUSR1, on_signal);
	for (uintptr_t i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, computes, (void *)(i + 1)))
			return 1;
	for (int i = 0; i < 4; i++) {
		raise(SIGUSR1);
		pthread_join(threads[i], &result);
		sum += (uintptr_t)result;
	}
	fflush(stdout);
	child = fork();
	if (!child)
		_exit((int)(sum % 100));
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 2;
	printf("%d %llu %d\n", (int)caught, (unsigned long long)sum, WEXITSTATUS(status));
	fflush(stdout);
	if (argc > 1 && !strcmp(argv[1], "wait"))
		waits();
	if (argc > 1 && !strcmp(argv[1], "die"))
		raise(SIGTERM);
	return argc > 1 ? atoi(argv[1]) : 0;
}
