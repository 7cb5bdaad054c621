/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two nodes of the kernel module with a port each, on a clock of the target's own: what their
 * owners were told, and what has to be so. A frame of one node waits in its `wire` until the
 * script, or the world, lets it arrive at the other.
 */
#ifndef PORT_WORLD_H
#define PORT_WORLD_H

#include "fuzz.h"
#include "../../hosts/kernel/arrive.h"
#include "../../hosts/kernel/sock.h"

enum { US, THEM, SIDES };

#define PORT_WIRE	64  /* frames that wait at most; what is beyond is lost */
#define PORT_KEPT	24  /* messages that an owner has not read at most */
#define PORT_MESSAGES	600 /* that a side sends at most */
#define PORT_NAMES	8   /* regions and pulls that scripts can name */
#define PORT_MEMORY_MAX (1u << 20)
#define PORT_PIECE	(16 * 4096u) /* bytes of a program's memory that one call uses */
#define PORT_PIECES	16
#define PORT_MEMORY	(SIDES * PORT_PIECES * PORT_PIECE)
#define PORT_SOCKS	4
#define PORT_STRANGERS	4 /* addresses that made-up frames come from; the first is the other side */

struct port_frame {
	uint32_t len;
	uint8_t *bytes; /* without the Ethernet header */
};

struct port_kept {
	struct sk_buff *skb;
	uint32_t off, len;
	uint64_t tag;
};

struct port_region {
	struct bwk_buf *b; /* exposed, until it is done */
	uint64_t key, seed, len;
};

/* What owns the ports. */
enum port_kind { PORT_RECORDS, PORT_MESSAGES_OF, PORT_PACKETS, PORT_STREAM };

/* A socket of a program. */
struct port_sock {
	struct socket sock; /* sk: NULL if it is closed */
	bool known;	    /* what it sends is checked by the other one that is known */
	uint64_t sent, got; /* messages, or bytes of a stream */
	uint32_t length[PORT_MESSAGES];
	bool unsure; /* a send may have arrived or not */
};

struct port_side {
	struct bwk_node node;
	struct bwk_node_counters count;
	struct bwk_user user;
	struct bwk_account account;
	struct net_device dev;
	struct net net;
	uint8_t mac[ETH_ALEN];
	struct sockaddr_beowire addr;
	struct bwk_port *port;
	struct bwk_sock answers; /* for whom questions are answered */
	uint64_t held, limit;	 /* bytes that are charged, and may be */
	uint32_t numbers;	 /* of ports */

	struct port_sock socks[PORT_SOCKS]; /* the first one has the port */

	struct port_frame wire[PORT_WIRE];
	uint32_t frames;

	uint32_t sent, length[PORT_MESSAGES]; /* messages, by their tags */
	bool got[PORT_MESSAGES];	      /* of the other side's */
	uint32_t next;			      /* tag that none before may come after */
	uint32_t downs;			      /* peers that were lost */
	bool lost;			      /* the owner had no memory for a message */
	struct port_kept kept[PORT_KEPT];
	uint32_t kepts;
	struct port_region region[PORT_NAMES];
	uint32_t regions;
	uint64_t pull[PORT_NAMES];
	uint32_t pulls;
};

struct port_world {
	struct port_side side[SIDES];
	struct fuzz_input *in;
	enum port_kind kind;
	bool plain;   /* nobody makes frames up: what arrives is what was sent */
	bool amiss;   /* a frame was changed on its way, or memory was not there */
	bool seals;   /* both encrypt */
	bool lose;    /* our frames get lost */
	bool full;    /* our interface has no room */
	bool lazy;    /* what is put off is not done yet */
	bool ignores; /* our program takes no questions about its memory */
	/* What an engine wants in frames from each address, as it said in a HELLO to it. */
	uint32_t conn[PORT_STRANGERS], token[PORT_STRANGERS];
	uint32_t pn[PORT_STRANGERS], sent; /* last packet numbers, to us and of ours */
};
extern struct port_world world;

void port_begin(struct fuzz_input *in);
/* Everything ends; nothing may be left. */
void port_end(void);
/* Ten milliseconds pass for who sleeps, and some frames arrive; at last a signal does. */
void port_wait(void);
/* Calls that begin from now on may sleep so often. */
void port_patience(uint32_t times);
/* Timers and work that are due, and our frames to the other side. */
void port_settle(void);
/* What has to be so between two steps. */
void port_check(void);
/* The oldest messages that are kept. */
void port_read(struct port_side *s, uint32_t n);

struct port_side *port_other(const struct port_side *s);
/* Byte `i` of what has this seed. */
uint8_t port_byte(uint64_t seed, uint64_t i);

/* ---- port_calls.c: calls of the programs ---- */

void port_send(struct port_side *s, uint32_t len, uint8_t how);
void port_expose(struct port_side *s, uint32_t len);
/* A region of the other side's, or memory that its program is asked for (`memory`). */
void port_pull(struct port_side *s, uint32_t which, uint32_t len, uint8_t how, bool memory);
void port_retract(struct port_side *s, uint32_t which);
void port_cancel(struct port_side *s, uint32_t which);
void port_say(struct port_side *s, enum bw_op_type type, bool on);
/* The next question is answered. */
void port_answer(struct port_side *s, uint8_t how);

/* ---- port_socks.c: the same of sockets ---- */

void port_socks_open(struct port_side *s, uint16_t number);
/* Both have a connection, if they are of that kind. */
void port_socks_meet(bool swap);
void port_socks_call(struct port_side *s, struct fuzz_input *in);
/* All that came is received, and checked. */
void port_socks_drain(struct port_side *s);
void port_socks_close(struct port_side *s);

/* ---- port_rest.c ---- */

extern uint8_t port_memory[PORT_MEMORY]; /* of the programs */
void port_pages_begin(void);
void port_pages_end(void);

/* ---- port_wire.c ---- */

/* The address of a stranger, or of the other side (0). */
void port_mac(uint8_t mac[ETH_ALEN], uint32_t who);
/* Frames arrive by one interrupt, in shapes that the script says. */
void port_arrive(struct port_side *to, const struct port_frame *frames, uint32_t n, uint32_t who,
		 bool odd);
/* The first n frames of the wire are taken from it. */
void port_wire_take(struct port_side *from, struct port_frame *to, uint32_t n);
void port_wire_drop(struct port_side *from);
/* Who else looked at frames does no more. */
void port_taps_end(void);

/* ---- port_frame.c: frames of nobody's ---- */

enum port_made { PORT_RAW, PORT_SEALED, PORT_ADDRESSED, PORT_NUMBERED };
void port_make_bytes(struct fuzz_input *in, enum port_made made);
void port_make_parts(struct fuzz_input *in);
void port_make_ack(struct fuzz_input *in);
void port_make_hello(struct fuzz_input *in);
/* A frame of the other side's, that the script changes and makes valid again. */
void port_make_changed(struct fuzz_input *in, uint8_t *bytes, uint32_t len);

#endif
