/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The gate between clients and an interface: two programs in the kernel. One checks each frame that
 * clients send by what its socket may say, and hands it to the interface; the other hands frames
 * that come for clients' engines to them. Nothing else passes either way.
 */
#ifndef BS_GATE_H
#define BS_GATE_H

#include <stdint.h>

#define BS_GRAVES 1024 /* engine numbers that are remembered as ended, besides those that live */

/* Why frames of clients were dropped; the names are in gate.c. */
enum bs_gate_drop {
	BS_DROP_SHORT,
	BS_DROP_OFFLOAD,   /* to be cut or completed by the device behind the check */
	BS_DROP_ETHERTYPE, /* or a VLAN tag */
	BS_DROP_GROUP,	   /* to a group address */
	BS_DROP_MAC,	   /* another source address */
	BS_DROP_MAGIC,
	BS_DROP_SOCKET, /* its endpoint has ended */
	BS_DROP_ENGINE,
	BS_DROP_CLUSTER,
	BS_DROP_REASONS
};

/* Whose frames an engine number gets. */
enum bs_engine {
	BS_ENGINE_LIVES = 1, /* a client's */
	BS_ENGINE_ENDED = 2, /* nobody's: the watch sees some of them */
};

/* What a socket may say. */
struct bs_gate_sender {
	uint16_t engine;
	uint16_t zero;
	uint32_t cluster;
};

struct bs_gate {
	int senders; /* map: socket cookie to struct bs_gate_sender */
	int engines; /* map: engine number, as the frame has it, to enum bs_engine */
	int drops;   /* map: reason to count */
	int out, in; /* programs */
};

/* Between clients behind `veth` and the interface of this index and address. 0 or a negative errno,
 * with everything closed. */
int bs_gate_open(struct bs_gate *g, uint32_t most, uint16_t ethertype, uint32_t interface,
		 const uint8_t mac[6], uint32_t veth);
/* The same for an address that has changed: programs anew, maps as they are. */
int bs_gate_again(struct bs_gate *g, uint16_t ethertype, uint32_t interface, const uint8_t mac[6],
		  uint32_t veth);
void bs_gate_close(struct bs_gate *g);

int bs_gate_admit(struct bs_gate *g, uint64_t cookie, uint16_t engine, uint32_t cluster);
void bs_gate_expel(struct bs_gate *g, uint64_t cookie, uint16_t engine);

/* An engine number whose endpoint has ended, and one that is none of ours any more. */
void bs_gate_mark(const struct bs_gate *g, uint16_t engine);
void bs_gate_forget(const struct bs_gate *g, uint16_t engine);

const char *bs_gate_reason(enum bs_gate_drop why);
uint64_t bs_gate_drops(const struct bs_gate *g, enum bs_gate_drop why);

#endif
