/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The groups of unit tests of the engine, one per file; each returns how many of its tests failed.
 */
#ifndef TEST_GROUPS_H
#define TEST_GROUPS_H

#include <stdlib.h>

#include "world.h"

int contact_tests(void);
int cookie_tests(void);
int order_tests(void);
int segments_tests(void);
int pull_tests(void);
int ack_tests(void);
int loss_tests(void);
int named_tests(void);
int late_tests(void);
int credit_tests(void);
int congestion_tests(void);
int path_tests(void);
int size_tests(void);
int places_tests(void);
int parser_tests(void);
int dead_tests(void);
int spans_tests(void);
int slab_tests(void);
int timer_tests(void);
int wrap_tests(void);
int memory_tests(void);
int pieces_tests(void);
int datagram_tests(void);
int refusal_tests(void);
int farewell_tests(void);
int pull_end_tests(void);
int single_tests(void);
int row_tests(void);
int stripe_tests(void);
int carry_tests(void);
int hkdf_tests(void);
int key_tests(void);
int encrypt_tests(void);
int version_tests(void);
int distance_tests(void);
int duplex_tests(void);
int view_tests(void);
int shrink_tests(void);
#endif
