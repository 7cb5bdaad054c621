/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Looks at what may have arrived, without the lock of the endpoint and without a locked
 * instruction: what most rounds of a program that waits come down to. They follow a round that
 * found nothing, as long as nobody has held the lock since: then nothing can have changed but that
 * a frame came, which its slot shows, or that time went by, which rounds do not read more often
 * than every BW_LOOKS + 1 anyway. The lock must have been taken before the first look.
 */
#ifndef BW_LOOK_H
#define BW_LOOK_H

#include "link/local/local.h"
#include "link/packet/packet.h"
#include "lock.h"

#define BW_LOOKS 7 /* between two rounds that find nothing */
/* In shared memory; of an endpoint with more of them only rounds look. */
#define BW_LOOK_PEERS 8

struct bw_look {
	_Atomic uint32_t turn; /* of the lock, in which a round found nothing; looks are allowed
				* until the next one */
	_Atomic uint32_t made; /* looks since; of threads that look at the same time one counts */
	_Atomic(const uint32_t *) status[BW_PACKET_LINKS]; /* of the slots that are filled next */
	_Atomic(const uint64_t *) record[BW_LOOK_PEERS];   /* the first words of the next records */
	_Atomic uint64_t come[BW_LOOK_PEERS];		   /* what they become when these come */
	_Atomic uint32_t peers;				   /* of them */
};

/* Lock held: a round has found nothing. */
static inline void bw_look_allow(struct bw_look *k, struct bw_lock *l, const struct bw_packet *p,
				 int packets, const struct bw_local_sight *sight, int peers)
{
	for (int i = 0; i < packets; i++)
		atomic_store_explicit(&k->status[i], &p[i].next->tp_status, memory_order_relaxed);
	for (int i = 0; i < peers; i++) {
		atomic_store_explicit(&k->record[i], sight[i].record, memory_order_relaxed);
		atomic_store_explicit(&k->come[i], sight[i].come, memory_order_relaxed);
	}
	atomic_store_explicit(&k->peers, (uint32_t)peers, memory_order_relaxed);
	atomic_store_explicit(&k->made, 0, memory_order_relaxed);
	atomic_store_explicit(&k->turn, bw_lock_turn(l), memory_order_release);
}

/* By any thread: certainly nothing to do. False: a round is due, there may be something. A child of
 * fork() has no rings and none of their number. */
static inline bool bw_look_empty(struct bw_look *k, struct bw_lock *l, int packets)
{
	uint32_t made, peers;

	if (atomic_load_explicit(&k->turn, memory_order_acquire) != bw_lock_turn(l))
		return false;
	made = atomic_load_explicit(&k->made, memory_order_relaxed);
	if (made >= BW_LOOKS)
		return false;
	for (int i = 0; i < packets; i++) {
		const uint32_t *status = atomic_load_explicit(&k->status[i], memory_order_relaxed);

		if (__atomic_load_n(status, __ATOMIC_RELAXED) & TP_STATUS_USER)
			return false;
	}
	peers = atomic_load_explicit(&k->peers, memory_order_relaxed);
	for (uint32_t i = 0; i < peers; i++) {
		const uint64_t *record = atomic_load_explicit(&k->record[i], memory_order_relaxed);

		if (__atomic_load_n(record, __ATOMIC_RELAXED) ==
		    atomic_load_explicit(&k->come[i], memory_order_relaxed))
			return false;
	}
	atomic_store_explicit(&k->made, made + 1, memory_order_relaxed);
	return true;
}

/* Lock held, which ends them: looks since the last round. They are counted once. */
static inline uint32_t bw_look_made(struct bw_look *k)
{
	uint32_t made = atomic_load_explicit(&k->made, memory_order_relaxed);

	atomic_store_explicit(&k->made, 0, memory_order_relaxed);
	return made;
}

#endif
