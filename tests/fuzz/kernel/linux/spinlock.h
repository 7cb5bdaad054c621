/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What hosts/kernel/server_ring.c takes from the kernel, for one thread of a program. */
#ifndef FUZZ_KERNEL_SPINLOCK_H
#define FUZZ_KERNEL_SPINLOCK_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef struct {
	bool held; /* by the thread */
} spinlock_t;

#define spin_lock_bh(lock)	    ((lock)->held = true)
#define spin_unlock_bh(lock)	    ((lock)->held = false)
#define smp_load_acquire(p)	    __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, value) __atomic_store_n(p, value, __ATOMIC_RELEASE)
#define READ_ONCE(x)		    __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, value)	    __atomic_store_n(&(x), value, __ATOMIC_RELAXED)
#define barrier()		    __asm__ volatile("" ::: "memory")
#define min_t(type, a, b)	    ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define ALIGN(x, to)		    (((x) + (to)-1) & ~((to)-1u))
#define ALIGN_DOWN(x, to)	    ((x) & ~((to)-1u))

#endif
