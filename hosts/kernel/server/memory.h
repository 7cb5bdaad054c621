/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an instance may hold for peers, so that whoever calls cannot use up the memory of all
 * sockets: memory that its engine grows by, and buffers of messages of which not all has come. Of
 * the first a quarter is left to what the program itself asks for; when there is no more, peers
 * that nobody needs make room (engine/guest.c). Of the second a part is for messages that wait for
 * no other one; where it is used up, peers whose messages stand still are given up.
 */
#ifndef SERVER_MEMORY_H
#define SERVER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

#define MEMORY_GROWN_MAX      (64ull << 20) /* bytes that an engine grows by */
#define MEMORY_ARRIVING_MAX   (32ull << 20) /* bytes of all messages that have begun, */
#define MEMORY_ARRIVING_NEXT  (8ull << 20)  /* and beyond that of those that wait for no other */
#define MEMORY_ARRIVING_STALE (2 * BW_S)    /* a peer whose messages have not moved for so long */

struct instance;
struct plain_buffer;

/* More memory for the engine, for what the program asks; or it is told that there is none. */
void memory_grow(struct instance *in);
/* The same for what peers send. */
void memory_feed(struct instance *in);
/* All that the engine grew by is free. It is closed. */
void memory_free(struct instance *in);

/* buf_get() and buf_put() of struct bw_host_ops; `host` is the instance. */
uint64_t memory_buf_get(void *host, uint32_t peer, uint64_t n, bool next);
void memory_buf_put(void *host, uint64_t buf);
/* Where messages had to be refused: give up who keeps others out. Outside the engine. */
void memory_relieve(struct instance *in);

#endif
