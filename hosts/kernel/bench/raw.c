/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Raw sockets, which send and receive Ethernet frames without any protocol: bound to an EtherType
 * of their own, or (ETH_P_ALL) given every frame of the interface, of which they keep theirs.
 * Neither sees what its own node sends.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>

#include "bench.h"

#define ETHERTYPE 0x88B6 /* the second of IEEE 802's two for experiments */

static void bind_raw(struct bench_end *end, uint16_t protocol)
{
	struct sockaddr_ll own = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = end->net->ifindex[end->side],
	};

	end->fd = bench_socket(AF_PACKET, SOCK_RAW, 0);
	bench_option(end->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
	if (bind(end->fd, (struct sockaddr *)&own, sizeof(own)))
		bench_fail("raw: cannot bind");
}

static void open_raw(struct bench_end *end)
{
	bind_raw(end, ETHERTYPE);
}

static void open_raw_all(struct bench_end *end)
{
	bind_raw(end, ETH_P_ALL);
}

static void join_raw(struct bench_end *end, const struct bench_end *peer)
{
	struct ethhdr *header = (struct ethhdr *)end->buffer;

	memcpy(header->h_dest, end->net->mac[peer->side], ETH_ALEN);
	memcpy(header->h_source, end->net->mac[end->side], ETH_ALEN);
	header->h_proto = htons(ETHERTYPE);
}

static void send_raw(struct bench_end *end, size_t bytes)
{
	bench_send_all(end, ETH_HLEN + bytes);
}

/* Frames go behind the header that is sent. */
static void receive_raw(struct bench_end *end, size_t bytes)
{
	const struct ethhdr *header = (struct ethhdr *)(end->buffer + ETH_HLEN);
	size_t n;

	do {
		n = bench_receive_some(end, ETH_HLEN, BENCH_BYTES_MAX - ETH_HLEN);
	} while (n < ETH_HLEN || header->h_proto != htons(ETHERTYPE));
	if (n != ETH_HLEN + bytes)
		bench_fail("raw: a frame of another length came");
}

const struct bench_transport bench_raw = {
	.name = "raw",
	.head = ETH_HLEN,
	.open = open_raw,
	.join = join_raw,
	.send = send_raw,
	.receive = receive_raw,
};

const struct bench_transport bench_raw_all = {
	.name = "raw-all",
	.head = ETH_HLEN,
	.open = open_raw_all,
	.join = join_raw,
	.send = send_raw,
	.receive = receive_raw,
};
