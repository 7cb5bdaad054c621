/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What both sides of the differential test share. See differ.c. */
#ifndef DIFFER_H
#define DIFFER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rng.h"

enum what { WRITE, READ, SHUT, CLOSE, FORK, WAY };

/* To the server, of both connections; it answers when it is done. */
struct order {
	int64_t what;
	int64_t n[2];
};

extern int streams[2], control; /* the one that may be switched, the reference, and orders */

__attribute__((noreturn, format(printf, 1, 2))) void bad(const char *format, ...);
/* The bytes of a stream follow from their places in it. */
uint8_t byte_at(uint64_t place);
void fill(uint8_t *to, uint64_t place, size_t n);
void check(const uint8_t *bytes, uint64_t place, size_t n, const char *what);
void whole(int fd, void *bytes, size_t n, bool in);

void stay_on_tcp(int fd);
/* 1: receives by Beowire, 2: sends. */
int way_of(int fd);

/*
 * Of the driver:
 */

/* For what has to come; longer than fork() waits for a peer. */
#define SOON_MS 60000
#define SOON_NS (SOON_MS * 1000000ull)

extern struct sim_rng rng;
extern uint64_t waiting; /* bytes that have come and were not read */
extern int epolls[2];	 /* one for each connection */

/* Is the library there? */
bool preloaded(void);
int64_t order(enum what what, uint64_t first, uint64_t second);
/* What the peer sends next comes by Beowire, if the library is there. */
void await_peer(void);
uint64_t size(void);
/* More bytes come, to both; no more than a socket's first buffer holds. */
void come(uint64_t n);
/* All that has come is read. */
void drain(void);
/* Steps with the two connections in epoll instances. */
void open_epolls(void);
void copy_epolls(void);
void look_by_epoll(void);
void back_by_epoll(void);
void edge_of_both_ways(void);
void once_of_both_ways(void);

void drive(const char *address, uint16_t port, uint64_t seed, int steps);

#endif
