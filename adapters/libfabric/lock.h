/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A lock for the provider's short critical sections (a queue, a table): a few instructions when it
 * is free, and a yield to the scheduler when its holder has lost the processor.
 */
#ifndef BWF_LOCK_H
#define BWF_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

struct bwf_lock {
	atomic_bool held;
};

#define BWF_LOCK_SPINS 100 /* tries before the processor is given away */

static inline bool bwf_lock_try(struct bwf_lock *l)
{
	return !atomic_load_explicit(&l->held, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&l->held, true, memory_order_acquire);
}

static inline void bwf_lock_take(struct bwf_lock *l)
{
	for (unsigned tries = 1; !bwf_lock_try(l); tries++) {
		if (tries % BWF_LOCK_SPINS == 0)
			sched_yield();
	}
}

static inline void bwf_lock_drop(struct bwf_lock *l)
{
	atomic_store_explicit(&l->held, false, memory_order_release);
}

#endif
