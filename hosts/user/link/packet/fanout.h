/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The packet sockets of all endpoints that a user has on an interface form a fan-out group
 * (PACKET_FANOUT, packet(7)): the kernel runs one program for a frame instead of a filter for each
 * socket. One endpoint has the keeper of the group, the others are connected to it. An endpoint
 * that is not in the group, or no longer, receives by itself: it only costs more.
 */
#ifndef BW_FANOUT_H
#define BW_FANOUT_H

#include <stdbool.h>
#include <stdint.h>

struct bw_ep;
struct bw_keeper;

/* One packet link's part in it. */
struct bw_fanout {
	int connection;		  /* to the keeper; -1: none */
	bool handed;		  /* a keeper was given the socket, which may be a member since */
	bool watch;		  /* the keeper knows that we keep the watch */
	uint64_t try_at;	  /* when to try next for what is not so; BW_NEVER: never */
	struct bw_keeper *keeper; /* ours; NULL: another endpoint has it, or nobody */
};

/* The endpoint's link `i` was opened. */
void bw_fanout_init(struct bw_ep *ep, int i);

/* Now and then: join, and leave a group whose keeper is gone. */
void bw_fanout_visit(struct bw_ep *ep);

/* The number of links whose sockets are members of a group (system calls). */
unsigned int bw_fanout_joined(const struct bw_ep *ep);

/* Close a socket that is of no use any more; where there are threads nobody waits for it. */
void bw_fanout_discard(const struct bw_ep *ep, int fd);

/* End the keepers. Lock held, and they do not need it. */
void bw_fanout_end(struct bw_ep *ep);

/* Around fork(), for the child of which the keepers' descriptors are closed. */
void bw_fanout_hold(struct bw_ep *ep);
void bw_fanout_release(struct bw_ep *ep);
void bw_fanout_abandon(struct bw_ep *ep);

#endif
