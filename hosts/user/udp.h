/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The udp link: the same frames inside UDP datagrams over IPv4. It needs no privilege and crosses
 * routers. Datagrams are never fragmented; a port that nobody has is reported as a refusal.
 */
#ifndef BW_UDP_H
#define BW_UDP_H

#include <netinet/in.h>
#include <stdbool.h>

#include "batch.h"
#include "env.h"
#include "iface.h"
#include "link.h"
#include "protocol.h"
#include "refuse.h"

#define BW_UDP_FRAMES	16    /* datagrams per system call */
#define BW_UDP_OVERHEAD 28    /* bytes of IPv4 and UDP header */
#define BW_UDP_ROW	65536 /* bytes of a datagram that the kernel has joined, at most */

struct bw_udp_slot;

struct bw_udp {
	int fd;
	struct in_addr address;
	uint16_t port;	 /* host byte order */
	uint32_t mtu;	 /* bytes of the largest frame: a multiple of 8, for rows */
	uint32_t rcvbuf; /* bytes that the kernel holds for us */
	struct bw_batch *batch;
	struct mmsghdr rx[BW_UDP_FRAMES];
	struct bw_udp_slot *slot;
	uint8_t *frames; /* of the slots, `stride` bytes each */
	size_t stride;
	int got;	   /* datagrams that the last call brought */
	int next;	   /* of these the one whose frames are being taken */
	uint32_t at;	   /* bytes of it that have been taken */
	uint64_t rx_rows;  /* datagrams of several frames */
	uint32_t overflow; /* SO_RXQ_OVFL seen last */
	struct bw_link_counters count;
};

/* Open on this interface's IPv4 address, for frames to this engine: others that come to the port do
 * not take the room of ours. 0, or a negative errno with *why. */
int bw_udp_open(struct bw_udp *u, const struct bw_env *env, const struct bw_iface *iface,
		uint16_t engine, const char **why);
void bw_udp_close(struct bw_udp *u);

/* Receive what is there: the number of datagrams, whose frames are then to be taken one by one with
 * bw_udp_frame(); 0 if there is none; -ECONNREFUSED if bw_udp_refusal() has something. */
int bw_udp_receive(struct bw_udp *u);
/* The next frame, valid until the one behind it is taken; false when there is no more. */
bool bw_udp_frame(struct bw_udp *u, struct bw_rx_frame *f);

/* The next frame of ours that met a closed port, as the refusal that nobody there could send.
 * False when there is no more. */
bool bw_udp_refusal(struct bw_udp *u, uint32_t cluster, struct bw_refuse_frame *r,
		    struct bw_rx_frame *f);

/* Collect a frame for bw_batch_flush(u->batch); false if that has to come first. */
bool bw_udp_add(struct bw_udp *u, const struct bw_tx_frame *f);

/* The link address of a peer. */
void bw_udp_link_addr(struct bw_link_addr *a, struct in_addr address, uint16_t port);

#endif
