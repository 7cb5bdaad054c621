/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Steps of the differential test with epoll instances. See differ.c. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "differ.h"

static int adders[2]; /* copies of the descriptors in `epolls`, by which connections are added */

/* Programs wait by one descriptor and add by its copy, made before there is anything in it. */
void open_epolls(void)
{
	for (int k = 0; k < 2; k++) {
		epolls[k] = epoll_create1(EPOLL_CLOEXEC);
		adders[k] = dup(epolls[k]);
	}
}

/* The same instances under other numbers; the one that was waited for is closed. */
void copy_epolls(void)
{
	for (int k = 0; k < 2; k++) {
		close(epolls[k]);
		epolls[k] = adders[k];
		adders[k] = fcntl(epolls[k], F_DUPFD_CLOEXEC, 50);
	}
}

static void add(uint32_t events)
{
	struct epoll_event e = {.events = events, .data.u32 = 7};

	for (int k = 0; k < 2; k++) {
		if (epoll_ctl(adders[k], EPOLL_CTL_ADD, streams[k], &e))
			bad("epoll_ctl: %s", strerror(errno));
	}
}

/* By TCP again: a child, or a row of them, has the connections, too, for a moment. */
static void go_back(void)
{
	for (uint64_t left = sim_below(&rng, 4) ? 1 : 6; left; left--) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
}

/* Level-triggered, edge-triggered, once: twice asked without reading, and once after more came. */
void look_by_epoll(void)
{
	static const uint32_t kinds[] = {0, EPOLLET, EPOLLONESHOT};
	uint32_t kind = kinds[sim_below(&rng, 3)], seen[2][3] = {0};
	struct epoll_event e;

	if (!waiting)
		come(size());
	add(EPOLLIN | kind);
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < 2; i++) {
			if (epoll_wait(epolls[k], &e, 1, 0) == 1)
				seen[k][i] = e.events | e.data.u32 << 24;
		}
	}
	come(size());
	for (int k = 0; k < 2; k++) {
		if (epoll_wait(epolls[k], &e, 1, 0) == 1)
			seen[k][2] = e.events | e.data.u32 << 24;
		epoll_ctl(adders[k], EPOLL_CTL_DEL, streams[k], NULL);
	}
	for (int i = 0; i < 3; i++) {
		if (seen[0][i] != seen[1][i])
			bad("epoll of kind %x, look %d: %x, but TCP says %x", kind, i, seen[0][i],
			    seen[1][i]);
	}
}

/* In an instance by Beowire, and then by TCP again: the kernel's word is all there is. */
void back_by_epoll(void)
{
	struct epoll_event e;

	drain();
	add(EPOLLIN);
	go_back();
	for (int k = 0; k < 2; k++) {
		if (epoll_wait(epolls[k], &e, 1, 20))
			bad("epoll tells of nothing: %x, %u", e.events, e.data.u32);
	}
	come(1);
	for (int k = 0; k < 2; k++) {
		if (epoll_wait(epolls[k], &e, 1, SOON_MS) != 1 || e.events != EPOLLIN ||
		    e.data.u32 != 7)
			bad("epoll after a way back: %x, %u", e.events, e.data.u32);
		epoll_ctl(adders[k], EPOLL_CTL_DEL, streams[k], NULL);
	}
}

void await_peer(void)
{
	uint64_t until = bw_clock_now() + SOON_NS;

	while (preloaded() && !(way_of(streams[0]) & order(WAY, 0, 0) & 2)) {
		if (bw_clock_now() > until)
			bad("not switched: %d", way_of(streams[0]));
		usleep(1000);
	}
}

/* Whatever comes, and whichever way: nobody is told who has been told once. */
static void not_told_again(const char *when)
{
	struct epoll_event e;

	await_peer();
	come(size());
	for (int k = 0; k < 2; k++) {
		if (epoll_wait(epolls[k], &e, 1, 60))
			bad("told a second time %s: %x, %u", when, e.events, e.data.u32);
	}
}

/* It is told once by TCP, and then by Beowire only if it is asked for again; told by Beowire, it is
 * not told again after a way by TCP. */
void once_of_both_ways(void)
{
	struct epoll_event e = {0}, again = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = 7};

	drain();
	go_back();
	come(size());
	add(EPOLLIN | EPOLLONESHOT);
	for (int k = 0; k < 2; k++) {
		if (epoll_wait(epolls[k], &e, 1, SOON_MS) != 1)
			bad("no event by TCP");
	}
	not_told_again("after TCP");
	for (int k = 0; k < 2; k++) {
		epoll_ctl(adders[k], EPOLL_CTL_MOD, streams[k], &again);
		if (epoll_wait(epolls[k], &e, 1, SOON_MS) != 1 || e.events != EPOLLIN ||
		    e.data.u32 != 7)
			bad("asked again, and not told: %x, %u", e.events, e.data.u32);
	}
	drain();
	go_back();
	not_told_again("after Beowire and TCP");
	for (int k = 0; k < 2; k++)
		epoll_ctl(adders[k], EPOLL_CTL_DEL, streams[k], NULL);
}

/* What is there came by TCP, mostly, and is not read; what comes next comes by Beowire. */
void edge_of_both_ways(void)
{
	struct epoll_event e;

	drain();
	go_back();
	come(size());
	add(EPOLLIN | EPOLLET);
	await_peer();
	for (int k = 0; k < 2; k++) {
		while (epoll_wait(epolls[k], &e, 1, 0) == 1)
			;
	}
	come(size());
	for (int k = 0; k < 2; k++) {
		if (epoll_wait(epolls[k], &e, 1, SOON_MS) != 1 || e.events != EPOLLIN ||
		    e.data.u32 != 7)
			bad("no edge for what came by Beowire behind TCP");
		epoll_ctl(adders[k], EPOLL_CTL_DEL, streams[k], NULL);
	}
}
