/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The module's sockets, used as a program would: an interface is attached, a port bound, the peer
 * connected to.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "beowire_socket.h"
#include "bench.h"

#define BUSY_US 1000000 /* longer than any wait, so that nobody sleeps */

static __kernel_sa_family_t family(void)
{
	__kernel_sa_family_t number = AF_BEOWIRE;
	FILE *in = fopen("/proc/net/beowire/family", "re");

	if (in && fscanf(in, "%hu", &number) != 1)
		number = AF_BEOWIRE;
	if (in)
		fclose(in);
	return number;
}

static bool has_type(int type)
{
	int fd = socket(family(), type | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0 ||
	       (errno != EAFNOSUPPORT && errno != ESOCKTNOSUPPORT && errno != EPROTONOSUPPORT);
}

static bool has_rdm(void)
{
	return has_type(SOCK_RDM);
}

static bool has_datagram(void)
{
	return has_type(SOCK_DGRAM);
}

static bool has_seqpacket(void)
{
	return has_type(SOCK_SEQPACKET);
}

static bool has_stream(void)
{
	return has_type(SOCK_STREAM);
}

void bench_beowire_attach(const struct bench_end *end)
{
	struct beowire_iface interface = {0};
	int fd = bench_socket(family(), SOCK_RDM, 0);

	strncpy(interface.name, end->net->ifname[end->side], sizeof(interface.name) - 1);
	if (ioctl(fd, BEOWIRE_IOC_ATTACH, &interface) && errno != EEXIST)
		bench_fail("beowire: cannot attach %s", interface.name);
	close(fd);
}

void bench_beowire_bind(struct bench_end *end, int type, int protocol)
{
	struct sockaddr_beowire own = {.sbw_family = family()};
	socklen_t bytes = sizeof(own);
	int fd = bench_socket(own.sbw_family, type, protocol);

	bench_option(fd, SOL_BEOWIRE, BEOWIRE_CHECKSUM, end->c->checksum);
	if (end->c->wait == BENCH_BUSY)
		bench_option(fd, SOL_BEOWIRE, BEOWIRE_BUSY_US, BUSY_US);
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) ||
	    getsockname(fd, (struct sockaddr *)&own, &bytes))
		bench_fail("%s: cannot bind", end->c->transport->name);
	end->port = own.sbw_port;
	end->fd = fd;
}

static void open_beowire(struct bench_end *end, int type)
{
	bench_beowire_attach(end);
	bench_beowire_bind(end, type, 0);
}

void bench_beowire_connect(struct bench_end *end, const struct bench_end *peer)
{
	struct sockaddr_beowire address = {
		.sbw_family = family(),
		.sbw_port = peer->port,
		.sbw_ifindex = (__u32)end->net->ifindex[end->side],
	};

	memcpy(address.sbw_mac, end->net->mac[peer->side], sizeof(address.sbw_mac));
	if (connect(end->fd, (struct sockaddr *)&address, sizeof(address)))
		bench_fail("%s: cannot connect", end->c->transport->name);
}

static void open_rdm(struct bench_end *end)
{
	open_beowire(end, SOCK_RDM);
}

static void open_datagram(struct bench_end *end)
{
	open_beowire(end, SOCK_DGRAM);
}

static void open_connected(struct bench_end *end, int type)
{
	open_beowire(end, type);
	if (end->side == 0)
		return;
	end->listener = end->fd;
	end->fd = -1;
	if (listen(end->listener, 1))
		bench_fail("%s: cannot listen", end->c->transport->name);
}

static void open_seqpacket(struct bench_end *end)
{
	open_connected(end, SOCK_SEQPACKET);
}

static void open_stream(struct bench_end *end)
{
	open_connected(end, SOCK_STREAM);
}

static void join_connected(struct bench_end *end, const struct bench_end *peer)
{
	if (end->side == 0) {
		bench_beowire_connect(end, peer);
		return;
	}
	end->fd = accept(end->listener, NULL, NULL);
	if (end->fd < 0)
		bench_fail("%s: cannot accept", end->c->transport->name);
	if (end->c->wait == BENCH_BUSY)
		bench_option(end->fd, SOL_BEOWIRE, BEOWIRE_BUSY_US, BUSY_US);
}

static void count_beowire(const struct bench_end *end, struct bench_counters *counters)
{
	struct beowire_counters read;
	socklen_t bytes = sizeof(read);

	if (getsockopt(end->fd, SOL_BEOWIRE, BEOWIRE_COUNTERS, &read, &bytes))
		bench_fail("%s: cannot read counters", end->c->transport->name);
	*counters = (struct bench_counters){
		.copied_tx = read.copied_tx,
		.copied_rx = read.copied_rx,
		.pinned = read.pinned,
		.tx_frames = read.tx_frames,
		.rx_frames = read.rx_frames,
		.retransmits = read.retransmits,
	};
}

const struct bench_transport bench_rdm = {
	.name = "rdm",
	.here = has_rdm,
	.open = open_rdm,
	.join = bench_beowire_connect,
	.send = bench_send_all,
	.receive = bench_receive_whole,
	.count = count_beowire,
};

const struct bench_transport bench_datagram = {
	.name = "datagram",
	.here = has_datagram,
	.open = open_datagram,
	.join = bench_beowire_connect,
	.send = bench_send_all,
	.receive = bench_receive_whole,
};

const struct bench_transport bench_seqpacket = {
	.name = "seqpacket",
	.here = has_seqpacket,
	.open = open_seqpacket,
	.join = join_connected,
	.send = bench_send_all,
	.receive = bench_receive_whole,
	.count = count_beowire,
};

const struct bench_transport bench_stream = {
	.name = "stream",
	.here = has_stream,
	.stream = true,
	.open = open_stream,
	.join = join_connected,
	.send = bench_send_all,
	.receive = bench_receive_all,
	.count = count_beowire,
};
