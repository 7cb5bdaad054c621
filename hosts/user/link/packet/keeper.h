/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keeper of a fan-out group: a thread of one endpoint that makes the packet sockets of all
 * endpoints of its user on one interface members of a group, and tells the kernel which of them a
 * frame is for.
 */
#ifndef BW_KEEPER_H
#define BW_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#define BW_KEEPER_MAGIC 0x6B656570u

/* What an endpoint sends by its connection to the keeper: first with its packet socket, then when
 * it takes the watch. */
struct bw_keeper_call {
	uint32_t magic;
	uint16_t engine;
	uint8_t watch; /* gets the frames for engines that are no members' */
	uint8_t zero;
};

struct bw_keeper;

/* Serve this listening socket, which belongs to the keeper from then on, for packet sockets bound
 * to this interface and EtherType (network byte order). NULL without threads or descriptors. */
struct bw_keeper *bw_keeper_start(int listener, int interface, uint16_t ethertype);

/* Has it given up? Then it holds nothing any more and waits for bw_keeper_stop(). */
bool bw_keeper_ended(const struct bw_keeper *k);
void bw_keeper_stop(struct bw_keeper *k);

/* Around fork(): its descriptors do not change between. The child closes them. */
void bw_keeper_hold(struct bw_keeper *k);
void bw_keeper_release(struct bw_keeper *k);
void bw_keeper_abandon(struct bw_keeper *k);

#endif
