/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The couple of the local link's tests. */
#include "couple.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct node a, b;

bool direct(void)
{
	const char *setting = getenv("BEOWIRE_LOCAL_CMA");

	return !setting || strcmp(setting, "off") != 0;
}

static int open_bytes(uint32_t ring_bytes)
{
	seed_set(42);
	node_open(&a, ring_bytes, 0);
	node_open(&b, ring_bytes, 0);
	node_pair(&a, &b);
	node_story(&a);
	assert_string_equal(node_story(&b), "new | ");
	return 0;
}

int couple_open(void **state)
{
	return open_bytes(0);
}

int couple_open_small(void **state)
{
	return open_bytes(SMALL_RING);
}

int couple_close(void **state)
{
	node_close(&a);
	node_close(&b);
	return 0;
}
