/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The packet link: Ethernet frames with Beowire's own EtherType through an AF_PACKET socket,
 * received from a ring that the kernel fills and we poll without system calls, sent past the
 * queueing discipline.
 */
#ifndef BW_PACKET_H
#define BW_PACKET_H

#include <linux/if_packet.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "link/batch.h"
#include "env.h"
#include "key.h"
#include "link/iface.h"
#include "link/link.h"
#include "link/packet/fanout.h"
#include "protocol.h"

struct bw_packet {
	int fd;
	uint8_t *ring;		   /* mapped; slots of slot_bytes, blocks of block_bytes */
	struct tpacket2_hdr *next; /* the slot behind those that were taken */
	uint32_t index;		   /* of that slot, in the ring */
	uint32_t in_block;	   /* and in its block */
	uint32_t slots;		   /* in the ring */
	uint32_t per_block;
	uint32_t slot_bytes, block_bytes;
	size_t ring_bytes;
	uint8_t link; /* its number towards the engine */
	char name[IFNAMSIZ];
	uint32_t mtu; /* bytes of the largest frame, Ethernet header excluded */
	uint8_t mac[6];
	uint16_t ethertype; /* network byte order */
	int interface;	    /* its index */
	bool service;	    /* the socket is from beowired, whose connection is fanout's */
	uint8_t asks;	    /* if so: it is asked for another socket, see served.c */
	uint8_t refusals;   /* and gave none that was of use, so many times in a row at least */
	bool keyed;	    /* it gave the cluster's key as well, until that is taken from here */
	bool encrypts;	    /* and whoever has it from there encrypts */
	uint8_t key[BW_KEY_BYTES];
	int claim; /* if from beowired, holds the engine number as well; else -1 */
	struct bw_batch *batch;
	struct bw_fanout fanout;
	struct bw_link_counters count;
	uint64_t rx_rows;	/* several frames that the engine was given together */
	uint64_t rx_row_frames; /* in these */
};

/* Open on this interface for the engine of this number, which `claim` holds, as the link of that
 * number: by our own privilege, or else by the service. 0, or a negative errno with *why. */
int bw_packet_open(struct bw_packet *p, const struct bw_env *env, const struct bw_iface *iface,
		   uint16_t engine, int claim, uint8_t link, const char **why);
void bw_packet_close(struct bw_packet *p);

/* Map the ring of p's socket, of so many bytes. 0 or a negative errno. */
int bw_packet_attach(struct bw_packet *p, size_t bytes);

/* The same link, without a socket. */
void bw_packet_bare(const struct bw_packet *p, struct bw_packet *bare);

/* Open another socket for the same link by our own privilege, which receives from now on, too.
 * 0, or a negative errno with *why. */
int bw_packet_renew(const struct bw_packet *p, const struct bw_env *env, uint16_t engine,
		    struct bw_packet *fresh, const char **why);

/* May a ring like fresh's take the place of p's? It must be of the same size, with no fewer slots,
 * as peers were told what fits. 0, or a negative errno with *why. */
int bw_packet_fits(const struct bw_packet *p, const struct bw_packet *fresh, const char **why);

/* Go on with that socket, whose ring takes the place of the old one in memory, since a look without
 * the lock may be on its way there, and must fit. The old descriptor, or a negative errno with *why
 * if all stays as it is, and the fresh one is closed. */
int bw_packet_replace(struct bw_packet *p, struct bw_packet *fresh, const char **why);

static inline bool bw_packet_ready(const struct bw_packet *p)
{
	return __atomic_load_n(&p->next->tp_status, __ATOMIC_RELAXED) & TP_STATUS_USER;
}

/* Start to fetch what a short frame in the next slot consists of. */
static inline void bw_packet_prefetch(const struct bw_packet *p)
{
	__builtin_prefetch((const uint8_t *)p->next + 64);
	__builtin_prefetch((const uint8_t *)p->next + 128);
}

/* The frame in the slot that bw_packet_ready() found, which is ours until bw_packet_release(); the
 * slot behind it is the next one. Who holds all slots finds the first of them again. */
void bw_packet_take(struct bw_packet *p, struct bw_rx_frame *f);
void bw_packet_release(const struct bw_rx_frame *f);

/* Is the ring more than half full? */
bool bw_packet_crowded(const struct bw_packet *p);

/* Collect a frame for bw_batch_flush(p->batch); false if that has to come first. */
bool bw_packet_add(struct bw_packet *p, const struct bw_tx_frame *f);

/* Take the error that an interface which went down has left on the socket: poll() would not sleep
 * any more (a system call). */
void bw_packet_clear_error(struct bw_packet *p);

/* Bring count.rx_overruns up to date (a system call). */
void bw_packet_overruns(struct bw_packet *p);

#endif
