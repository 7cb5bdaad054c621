/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An interface as one end of the link: a packet socket with a mapped receive ring for what comes
 * in, and one past the queueing discipline for what leaves. Frames travel with the header that says
 * what segmentation and checksums were left to a device (PACKET_VNET_HDR), so that a super-frame is
 * known as one. The interface is promiscuous while a port is open.
 */
#ifndef EM_PORT_H
#define EM_PORT_H

#include <linux/if_packet.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "settings.h"

struct em_port {
	char name[IFNAMSIZ]; /* as given; the interface may be renamed later */
	int index;
	int rx, tx;
	uint32_t mtu; /* bytes, at the beginning */
	uint8_t *ring;
	size_t ring_bytes;
	uint32_t slots, slot_bytes, block_bytes, per_block;
	uint32_t next;	  /* slot that the kernel fills next */
	uint32_t dropped; /* frames that the device had thrown away when last asked */
};

/* 0, or a negative errno and a text that says what to do. A closed port may be closed again. */
int em_port_open(struct em_port *p, const char *name, char why[EM_WHY_MAX]);
void em_port_close(struct em_port *p);

static inline struct tpacket2_hdr *em_port_slot(const struct em_port *p)
{
	return (struct tpacket2_hdr *)(p->ring + (size_t)(p->next / p->per_block) * p->block_bytes +
				       (size_t)(p->next % p->per_block) * p->slot_bytes);
}

/* Has a frame come in that was not taken? */
static inline bool em_port_filled(const struct em_port *p)
{
	return *(volatile uint32_t *)&em_port_slot(p)->tp_status & TP_STATUS_USER;
}

/* Frames that found the ring or its memory full since the last call. */
uint32_t em_port_overruns(struct em_port *p);

/* Frames that the device threw away when they were sent, since the last call. */
uint32_t em_port_dropped(struct em_port *p);

/* Is the interface still in this network namespace? */
bool em_port_exists(const struct em_port *p);

/* Is it up, with a carrier? */
bool em_port_runs(const struct em_port *p);

#endif
