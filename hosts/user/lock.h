/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lock of an endpoint: recursive for its holder, one compare-and-swap when nobody else wants
 * it, a short spin and then a futex when somebody does. `word` is 0 free, 1 held, 2 held and
 * awaited.
 */
#ifndef BW_LOCK_H
#define BW_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct bw_lock {
	_Atomic uint32_t word;
	uint32_t depth;		 /* of the holder's recursion */
	_Atomic uintptr_t owner; /* pthread_self() of the holder, 0: none */
	_Atomic uint32_t turns;	 /* times that it was taken, recursion aside */
};

void bw_lock_wait(struct bw_lock *l);
void bw_lock_hand_over(struct bw_lock *l);

static inline bool bw_lock_mine(struct bw_lock *l)
{
	return atomic_load_explicit(&l->owner, memory_order_relaxed) == (uintptr_t)pthread_self();
}

/* How often it was taken. Read by anybody; does not change while it is free or held on. */
static inline uint32_t bw_lock_turn(struct bw_lock *l)
{
	return atomic_load_explicit(&l->turns, memory_order_relaxed);
}

static inline void bw_lock_own(struct bw_lock *l)
{
	atomic_store_explicit(&l->owner, (uintptr_t)pthread_self(), memory_order_relaxed);
	atomic_store_explicit(&l->turns, bw_lock_turn(l) + 1, memory_order_relaxed);
	l->depth = 1;
}

static inline bool bw_lock_try(struct bw_lock *l)
{
	uint32_t free = 0;

	if (bw_lock_mine(l)) {
		l->depth++;
		return true;
	}
	if (!atomic_compare_exchange_strong_explicit(&l->word, &free, 1, memory_order_acquire,
						     memory_order_relaxed))
		return false;
	bw_lock_own(l);
	return true;
}

static inline void bw_lock_take(struct bw_lock *l)
{
	if (bw_lock_try(l))
		return;
	bw_lock_wait(l);
	bw_lock_own(l);
}

static inline void bw_lock_release(struct bw_lock *l)
{
	if (--l->depth)
		return;
	atomic_store_explicit(&l->owner, 0, memory_order_relaxed);
	if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2)
		bw_lock_hand_over(l);
}

#endif
