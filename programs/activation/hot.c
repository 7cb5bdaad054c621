/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work whose code is spread over 4 MiB: 1024 functions, each on a page of its own. A round calls
 * all of them, so it needs 1024 translations of small pages, or two or three of large ones.
 */
#include "activation.h"

#define PAGE 4096
#define HOT  1024

#define EACH4(f, n)   f(n##0) f(n##1) f(n##2) f(n##3)
#define EACH16(f, n)  EACH4(f, n##0) EACH4(f, n##1) EACH4(f, n##2) EACH4(f, n##3)
#define EACH64(f, n)  EACH16(f, n##0) EACH16(f, n##1) EACH16(f, n##2) EACH16(f, n##3)
#define EACH256(f, n) EACH64(f, n##0) EACH64(f, n##1) EACH64(f, n##2) EACH64(f, n##3)
#define EACH1024(f)   EACH256(f, 10) EACH256(f, 11) EACH256(f, 12) EACH256(f, 13)

/* Numbers differ, so that no two functions are the same to the compiler. */
#define DEFINE(n)                                                                                  \
	static __attribute__((noinline, aligned(PAGE))) uint64_t hot_##n(uint64_t x)               \
	{                                                                                          \
		return (x ^ (n)) * 6364136223846793005u + 1;                                       \
	}
#define NAME(n) hot_##n,

EACH1024(DEFINE)

static uint64_t (*const hot[HOT])(uint64_t) = {EACH1024(NAME)};

uint64_t act_work(uint32_t rounds)
{
	uint64_t x = rounds;

	/* An odd stride: no two calls after one another lie beside one another. */
	for (uint32_t i = 0; i < rounds * HOT; i++)
		x = hot[i * 389 % HOT](x);
	return x;
}
