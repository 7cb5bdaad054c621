/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * More strangers than a port of the module has memory for call an endpoint by the kernel link,
 * whose program needs none of them but one: all are heard, as those that are needed no more make
 * room, and that one stays. Callers are sockets of the same node.
 *
 *	strangers CALLERS
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "beowire.h"
#include "beowire_socket.h"
#include "clock.h"

#define LIMIT_NS 200000000000ull
#define CALLERS	 4096 /* at most */

static bool heard[CALLERS];
static int callers, missing, downs, evicted;
static bw_peer_no friend = BW_PEER_NONE;
static bool friend_down;

static void on_message(void *arg, const struct bw_message *m)
{
	uint16_t who;

	if (m->len != sizeof(who))
		return;
	memcpy(&who, m->data, sizeof(who));
	if (who >= callers || heard[who])
		return;
	heard[who] = true;
	missing--;
	if (who == 0)
		friend = m->peer;
}

static void on_sent(void *arg, void *op, int status)
{
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
	downs++;
	evicted += status == -ENOBUFS;
	friend_down |= peer == friend;
}

static bool is_needed(void *arg, bw_peer_no peer)
{
	return peer == friend;
}

static const struct bw_handlers handlers = {
	.message = on_message,
	.sent = on_sent,
	.pulled = on_pulled,
	.peer_down = on_down,
	.peer_needed = is_needed,
};

/* What the module says of the node; 0: it does not say that. */
static int told(const char *path, const char *format)
{
	FILE *f = fopen(path, "r");
	char line[200];
	int value = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, format, &value) == 1)
			break;
	if (f)
		fclose(f);
	return value;
}

static int call(int family, uint16_t who, const struct sockaddr_beowire *at)
{
	int fd = socket(family, SOCK_RDM, 0);

	if (fd < 0 || sendto(fd, &who, sizeof(who), 0, (const void *)at, sizeof(*at)) < 0)
		return -1;
	return fd;
}

static int run(struct bw_ep *ep)
{
	static int fd[CALLERS];
	int family = told("/proc/net/beowire/node", "family %d");
	struct sockaddr_beowire at = {.sbw_family = (uint16_t)family};
	socklen_t len = sizeof(at);
	uint64_t until = bw_clock_now() + LIMIT_NS;
	int error;

	at.sbw_port = (uint16_t)told("/proc/net/beowire/ports", "%d reliable");
	for (uint16_t i = 0; i < callers; i++) {
		struct sockaddr_beowire own = at;

		if (i == 0) { /* whose address has the node's in it */
			int first = socket(family, SOCK_RDM, 0);

			own.sbw_port = 0;
			if (bind(first, (void *)&own, sizeof(own)) ||
			    getsockname(first, (void *)&own, &len))
				return 1;
			memcpy(at.sbw_mac, own.sbw_mac, sizeof(at.sbw_mac));
			close(first);
		}
		fd[i] = call(family, i, &at);
		if (fd[i] < 0)
			return 2;
		bw_wait(ep, 0);
	}
	while (missing && bw_clock_now() < until) {
		bw_wait(ep, 1000000);
		for (uint16_t i = 0; i < callers; i++) { /* who was sent away calls again */
			len = sizeof(error);
			if (heard[i] || getsockopt(fd[i], SOL_SOCKET, SO_ERROR, &error, &len) ||
			    !error)
				continue;
			close(fd[i]);
			fd[i] = call(family, i, &at);
			if (fd[i] < 0)
				return 3;
		}
	}
	if (missing)
		return 4;
	return friend_down || downs != evicted || evicted < callers / 4 ? 5 : 0;
}

int main(int argc, char **argv)
{
	const struct rlimit files = {2 * CALLERS, 2 * CALLERS};
	struct bw_ep_attr attr = {.handlers = &handlers, .no_helper = true};
	struct bw_ep *ep;
	const char *why;
	int status;

	callers = missing = argc == 2 ? atoi(argv[1]) : 0;
	if (callers < 1 || callers > CALLERS || setrlimit(RLIMIT_NOFILE, &files))
		return 2;
	if (bw_ep_open(&ep, &attr, &why)) {
		printf("%s\n", why);
		return 1;
	}
	status = run(ep);
	printf("%s %d: %d not heard, %d gone, %d of these for others, the friend %s\n",
	       status ? "failed" : "ok", status, missing, downs, evicted,
	       friend_down ? "gone" : "there");
	bw_ep_close(ep, 0);
	return status;
}
