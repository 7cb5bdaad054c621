/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few basics the engine needs from its surroundings: fixed-width integers, memcpy/memset and
 * errno numbers; and probes, where there is something for them. This is the only engine file that
 * may know whether it is compiled into a kernel.
 */
#ifndef BW_PLATFORM_H
#define BW_PLATFORM_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>
#define INT32_MAX  S32_MAX
#define UINT8_MAX  U8_MAX
#define UINT16_MAX U16_MAX
#define UINT32_MAX U32_MAX
#define UINT64_MAX U64_MAX
#else
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#endif

/* Places where people's tools can look into a running process (USDT): a nop each. */
#ifdef BW_PROBES
#include <sys/sdt.h>
#define BW_PROBE2(name, a, b)	 DTRACE_PROBE2(beowire, name, a, b)
#define BW_PROBE3(name, a, b, c) DTRACE_PROBE3(beowire, name, a, b, c)
#else
#define BW_PROBE2(name, a, b)	 ((void)0)
#define BW_PROBE3(name, a, b, c) ((void)0)
#endif

#define BW_LIKELY(x)   __builtin_expect(!!(x), 1)
#define BW_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Stays a function of its own: its caller need not save registers for what is rare. */
#define BW_APART __attribute__((__noinline__))
/* The opposite: part of each caller, made for what is known there. */
#define BW_WITHIN inline __attribute__((__always_inline__))

#define BW_US	 1000ull       /* one microsecond, in nanoseconds */
#define BW_MS	 1000000ull    /* one millisecond, in nanoseconds */
#define BW_S	 1000000000ull /* one second, in nanoseconds */
#define BW_NEVER UINT64_MAX    /* a deadline that never comes */

static inline uint64_t bw_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t bw_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
