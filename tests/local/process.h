/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests between real processes: a child runs a function, tells what went wrong and fails its parent
 * by its exit status; what all of them see lies on one board of shared memory. A wait that stands
 * still for STUCK_MS fails. Storms of rounds end early, after SPAN_MS, where cores are short.
 */
#ifndef TEST_LOCAL_PROCESS_H
#define TEST_LOCAL_PROCESS_H

#include "../check.h"

#include "node.h"

#define STUCK_MS   60000
#define SPAN_MS	   2000
#define NOBODY	   65534 /* user and group without rights */
#define PROCESSES  4
#define LONGEST	   200000 /* bytes of a message in storms */
#define SMALL_RING (16u << 10)

/* What the processes of a test see of each other. */
struct board {
	uint16_t engine[PROCESSES];
	uint32_t ready, done;
	uint64_t taken;
	uint64_t last; /* number of rounds; see round_begins() */
	struct {
		uint64_t rounds; /* see meet() */
		uint8_t pad[120];
	} gate[2];
};

extern struct board *board;
extern uint64_t effort; /* multiplies rounds */

/* A fresh board; setup and teardown of a test. */
int board_setup(void **state);
int board_teardown(void **state);

/* Run body(me) in a child, which ends with its parent. */
pid_t start(void (*body)(uint32_t), uint32_t me);
/* Wait for its end: as waitpid(). */
int status_of(pid_t pid);
/* Run body in two children that must both end well. */
void two(void (*body)(uint32_t));

/* One process announces each round of a storm before it can be noticed. The others go on while
 * their round is less than rounds_in_all(), which they ask when they have noticed the one before.
 */
void round_begins(uint64_t round, uint64_t rounds);
uint64_t rounds_in_all(void);

/* Wait until a counter of the board has reached a value. */
void reach(uint32_t *counter, uint32_t value);
/* Go on when both of two processes are here, and as much at the same time as can be. */
void meet(uint32_t me);
/* Open n as one of two endpoints that know each other. */
void rendezvous(struct node *n, uint32_t me, uint32_t ring_bytes);
/* Leave when both have come here. */
void part(void);
/* Poll; sleep if nothing happened. A sleep without end is a lost wake-up. */
void turn(struct node *n);
/* Pass some time, without a system call. */
void spin(uint64_t turns);

#endif
