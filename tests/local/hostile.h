/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A victim with a friend and an enemy. The enemy's side of the pair is written into by the test;
 * the victim may give that peer up, but must neither crash, nor lose an operation, nor stop serving
 * its friend. Build with -Db_sanitize=address,undefined to see the most.
 */
#ifndef TEST_LOCAL_HOSTILE_H
#define TEST_LOCAL_HOSTILE_H

#include "link/local/impl.h"
#include "node.h"

#define SMALL_RING (16u << 10)
#define BUFFER	   20000

extern struct node victim, friend, enemy;
extern uint64_t sends_open, pulls_open; /* the victim's operations */
extern uint8_t buffer[BUFFER];
/* Kind of record that the enemy prefers, so that it is not noticed too soon. */
extern uint32_t favourite;

/* Open all three, with what the seed says of rings and of who calls whom. */
int setup_seed(uint64_t seed);
/* The victim reads so much of the enemy's memory; what lies behind its buffer must stay. */
void victim_read(uint64_t len);
/* It does one thing or another. */
void victim_step(void);
/* The friend is served as ever, and the victim ends with nothing open. Closes all three. */
void aftermath(void);

#endif
