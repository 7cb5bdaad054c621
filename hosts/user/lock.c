/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The slow half of the lock: what happens when two threads want one endpoint at the same time. */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lock.h"

#define BW_LOCK_SPINS 200 /* about a microsecond: the usual length of a bw_* call */

static inline void bw_lock_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void bw_lock_wait(struct bw_lock *l)
{
	for (int i = 0; i < BW_LOCK_SPINS; i++) {
		uint32_t free = 0;

		if (atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
		    atomic_compare_exchange_weak_explicit(&l->word, &free, 1, memory_order_acquire,
							  memory_order_relaxed))
			return;
		bw_lock_pause();
	}
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
		syscall(SYS_futex, &l->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

void bw_lock_hand_over(struct bw_lock *l)
{
	syscall(SYS_futex, &l->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
