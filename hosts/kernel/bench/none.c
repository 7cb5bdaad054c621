/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * No transport at all: what a case costs without its messages, such as the bulk beside them.
 */
#include "bench.h"

static void open_none(struct bench_end *end)
{
	(void)end;
}

static void join_none(struct bench_end *end, const struct bench_end *peer)
{
	(void)end;
	(void)peer;
}

static void move_none(struct bench_end *end, size_t bytes)
{
	(void)end;
	(void)bytes;
}

const struct bench_transport bench_none = {
	.name = "none",
	.open = open_none,
	.join = join_none,
	.send = move_none,
	.receive = move_none,
};
