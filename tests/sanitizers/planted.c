/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Usage: planted FAULT. Opens an endpoint and does one thing wrong with it. It ends with 0 all the
 * same: only a sanitizer can make it fail.
 */
#include "ep.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_message(void *arg, const struct bw_message *m)
{
}

static void on_ended(void *arg, void *op, int status)
{
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
}

static const struct bw_handlers handlers = {on_message, on_ended, on_pulled, on_down, NULL};

/* What the library has allocated is forgotten. */
static void leak(struct bw_ep *ep)
{
	char *volatile text = bw_ep_stats(ep);

	text = NULL;
	(void)text;
}

/* The library writes one byte more than there is room for. */
static void overrun(struct bw_ep *ep)
{
	volatile size_t size = sizeof(struct bw_addr) - 1;
	struct bw_addr *addr = malloc(size);

	bw_ep_addr(ep, addr);
	free(addr);
}

/* A computation without a result in C. */
static void overflow(struct bw_ep *ep)
{
	volatile int largest = INT32_MAX;

	printf("%d\n", largest + ep->packets + 1);
}

static atomic_bool enough;

static void *make_rounds(void *arg)
{
	while (!atomic_load_explicit(&enough, memory_order_relaxed))
		bw_progress(arg);
	return NULL;
}

#define ROUNDS 1000

/* Looks at what the library writes under its lock, while it writes: nothing orders the two. */
static void race(struct bw_ep *ep)
{
	const volatile uint64_t *rounds = &ep->rounds;
	uint64_t first = *rounds;
	pthread_t thread;

	if (pthread_create(&thread, NULL, make_rounds, ep))
		exit(1);
	while (*rounds - first < ROUNDS)
		sched_yield();
	atomic_store_explicit(&enough, true, memory_order_relaxed);
	pthread_join(thread, NULL);
}

static const struct {
	const char *name;
	void (*plant)(struct bw_ep *ep);
} faults[] = {{"leak", leak}, {"overrun", overrun}, {"overflow", overflow}, {"race", race}};

int main(int argc, char **argv)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .no_helper = true};
	struct bw_ep *ep;

	setenv("BEOWIRE_LINKS", "local", 1);
	if (argc != 2 || bw_ep_open(&ep, &attr, NULL))
		return 2;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (!strcmp(faults[i].name, argv[1]))
			faults[i].plant(ep);
	}
	bw_ep_close(ep, 0);
	return 0;
}
