/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ways of a message: TCP, its receiver in recv(), and Beowire, its receiver in bw_wait(). Each
 * receiver prints where it is to be found, then waits.
 */
#include "arrival.h"

#include "beowire.h"
#include "rng.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define SECOND 1000000000ull

/* Sends each when it is due. */
static void pace(uint32_t count, uint64_t interval_ns,
		 void (*give)(void *arg, const struct arrival_message *m), void *arg)
{
	struct arrival_message m = {.number = 0};
	struct sim_rng rng = {.state = 1};

	memcpy(m.token, arrival_token, sizeof(m.token));
	for (uint32_t i = 0; i < count; i++) {
		bw_clock_sleep(bw_clock_now() + interval_ns / 2 + sim_below(&rng, interval_ns + 1));
		m.number++;
		m.sent = bw_clock_now();
		give(arg, &m);
	}
}

static struct addrinfo *resolve(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				 .ai_family = AF_INET,
				 .ai_flags = host ? 0 : AI_PASSIVE},
			*found;
	int error = getaddrinfo(host, port, &hints, &found);

	if (error)
		act_fail("%s: %s", port, gai_strerror(error));
	return found;
}

/* Calls with a limit of time end when the program is stopped and goes on: signal(7). */
static int accept_one(int fd)
{
	int conn;

	do
		conn = accept(fd, NULL, NULL);
	while (conn < 0 && errno == EINTR);
	return conn;
}

static bool receive_whole(int conn, void *to, size_t n)
{
	uint8_t *at = to;
	ssize_t some;

	for (; n; at += some, n -= (size_t)some) {
		do
			some = recv(conn, at, n, MSG_WAITALL);
		while (some < 0 && errno == EINTR);
		if (some <= 0)
			return false;
	}
	return true;
}

void arrival_tcp_receive(struct arrival *arrival, const char *port)
{
	struct addrinfo *at = resolve(NULL, port);
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, conn;
	struct timeval patience = {.tv_sec = ACT_PATIENCE};
	struct arrival_message m;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (fd < 0 || bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, 1))
		act_fail("port %s: %s", port, strerror(errno));
	printf("ready\n");
	fflush(stdout);
	conn = accept_one(fd);
	if (conn < 0)
		act_fail("nobody called: %s", strerror(errno));
	setsockopt(conn, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	while (!arrival_ended(arrival)) {
		if (!receive_whole(conn, &m, sizeof(m)))
			act_fail("no message: %s", strerror(errno));
		arrival_came(arrival, &m);
	}
}

static void tcp_give(void *arg, const struct arrival_message *m)
{
	if (send(*(int *)arg, m, sizeof(*m), MSG_NOSIGNAL) != sizeof(*m))
		act_fail("send: %s", strerror(errno));
}

void arrival_tcp_send(const char *host, const char *port, uint32_t count, uint64_t interval_ns)
{
	struct addrinfo *to = resolve(host, port);
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	char end;

	if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen))
		act_fail("connect: %s", strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	pace(count, interval_ns, tcp_give, &fd);
	while (recv(fd, &end, 1, 0) > 0)
		;
}

static void on_message(void *arg, const struct bw_message *m)
{
	if (m->envelope || m->len != sizeof(struct arrival_message))
		act_fail("a message of another kind");
	arrival_came(arg, m->data);
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
	struct arrival *arrival = arg;

	if (arrival && !arrival_ended(arrival))
		act_fail("the sender is gone: %s", strerror(-status));
}

static void on_sent(void *arg, void *op, int status)
{
	if (status)
		act_fail("a message was lost: %s", strerror(-status));
}

/* Nothing is pulled: messages are short. */
static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static const struct bw_handlers handlers = {
	.message = on_message,
	.sent = on_sent,
	.pulled = on_pulled,
	.peer_down = on_down,
};

/* Without threads of the library: who waits is the program. */
static struct bw_ep *open_endpoint(void *arg, bool helper)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .arg = arg, .no_helper = !helper};
	const char *why = "out of memory";
	struct bw_ep *ep;

	if (bw_ep_open(&ep, &attr, &why) < 0)
		act_fail("%s", why);
	return ep;
}

void arrival_beowire_receive(struct arrival *arrival)
{
	struct bw_ep *ep = open_endpoint(arrival, false);
	uint32_t before = 0;
	struct bw_addr addr;
	int r;

	bw_ep_addr(ep, &addr);
	printf("ready ");
	for (size_t i = 0; i < sizeof(addr.bytes); i++)
		printf("%02x", addr.bytes[i]);
	printf("\n");
	fflush(stdout);
	for (uint64_t until = 0; !arrival_ended(arrival);) {
		if (!until || arrival->seen != before)
			until = bw_clock_now() + ACT_PATIENCE * SECOND;
		before = arrival->seen;
		r = bw_wait(ep, SECOND);
		if (r < 0 || bw_clock_now() > until)
			act_fail("no message: %s", r < 0 ? strerror(-r) : "time is over");
	}
	bw_ep_close(ep, SECOND);
}

struct line {
	struct bw_ep *ep;
	bw_peer_no peer;
};

static void beowire_give(void *arg, const struct arrival_message *m)
{
	struct line *line = arg;
	uint64_t until = bw_clock_now() + ACT_PATIENCE * SECOND;
	int r;

	while ((r = bw_send(line->ep, line->peer, 1, 0, 0, m, sizeof(*m), 0, NULL)) == -EAGAIN &&
	       bw_clock_now() < until)
		bw_wait(line->ep, SECOND / 1000);
	if (r < 0)
		act_fail("bw_send: %s", strerror(-r));
}

void arrival_beowire_send(const char *address, uint32_t count, uint64_t interval_ns)
{
	struct line line = {.ep = open_endpoint(NULL, true)};
	struct bw_addr addr;
	unsigned int byte;

	for (size_t i = 0; i < sizeof(addr.bytes); i++) {
		if (strlen(address) != 2 * sizeof(addr.bytes) ||
		    sscanf(address + 2 * i, "%2x", &byte) != 1)
			act_fail("%s is no address", address);
		addr.bytes[i] = (uint8_t)byte;
	}
	if (bw_peer_find(line.ep, &addr, &line.peer) < 0)
		act_fail("the address leads nowhere");
	pace(count, interval_ns, beowire_give, &line);
	bw_ep_close(line.ep, 5 * SECOND);
}
