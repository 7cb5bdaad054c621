/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Beowire is compared with: TCP, whose segments are not held back (TCP_NODELAY), and UDP.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "bench.h"

static void bind_inet(const struct bench_end *end, int fd)
{
	struct sockaddr_in own = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = bench_net_address(end->side),
	};

	if (bind(fd, (struct sockaddr *)&own, sizeof(own)))
		bench_fail("%s: cannot bind", end->c->transport->name);
}

static void connect_inet(const struct bench_end *end, int peer)
{
	struct sockaddr_in address;
	socklen_t bytes = sizeof(address);

	if (getsockname(peer, (struct sockaddr *)&address, &bytes) ||
	    connect(end->fd, (struct sockaddr *)&address, bytes))
		bench_fail("%s: cannot connect", end->c->transport->name);
}

static void open_tcp(struct bench_end *end)
{
	int fd = bench_socket(AF_INET, SOCK_STREAM, 0);

	bench_option(fd, IPPROTO_TCP, TCP_NODELAY, 1); /* accept() hands it down */
	bind_inet(end, fd);
	if (end->side == 0) {
		end->fd = fd;
		return;
	}
	end->listener = fd;
	if (listen(fd, 1))
		bench_fail("tcp: cannot listen");
}

static void join_tcp(struct bench_end *end, const struct bench_end *peer)
{
	if (end->side == 0) {
		connect_inet(end, peer->listener);
		return;
	}
	end->fd = accept(end->listener, NULL, NULL);
	if (end->fd < 0)
		bench_fail("tcp: cannot accept");
}

static void open_udp(struct bench_end *end)
{
	end->fd = bench_socket(AF_INET, SOCK_DGRAM, 0);
	bind_inet(end, end->fd);
}

static void join_udp(struct bench_end *end, const struct bench_end *peer)
{
	connect_inet(end, peer->fd);
}

const struct bench_transport bench_tcp = {
	.name = "tcp",
	.stream = true,
	.open = open_tcp,
	.join = join_tcp,
	.send = bench_send_all,
	.receive = bench_receive_all,
};

const struct bench_transport bench_udp = {
	.name = "udp",
	.open = open_udp,
	.join = join_udp,
	.send = bench_send_all,
	.receive = bench_receive_whole,
};
