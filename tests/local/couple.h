/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two links in one process that know each other, whose polls the test decides. */
#ifndef TEST_LOCAL_COUPLE_H
#define TEST_LOCAL_COUPLE_H

#include "node.h"

#define SMALL_RING (16u << 10)

extern struct node a, b;

/* Setup and teardown of a test, with rings of the usual size or small ones. */
int couple_open(void **state);
int couple_open_small(void **state);
int couple_close(void **state);

/* May these tests use cross-memory attach? */
bool direct(void);

#endif
