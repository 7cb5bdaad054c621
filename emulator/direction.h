/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One direction of the link and its thread: frames are taken from one port's ring, offered to the
 * model, held until they are due, and given to the other port. All of it is touched by its own
 * thread only; others post an order and wait until it was carried out.
 */
#ifndef EM_DIRECTION_H
#define EM_DIRECTION_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "hold.h"
#include "model.h"
#include "nap.h"
#include "parcel.h"
#include "port.h"
#include "tally.h"

#define EM_BATCH	 32u  /* messages in one system call */
#define EM_BATCH_PARCELS 256u /* segments in them */
#define EM_TAKE		 64u  /* frames taken before others are given */

/* Messages that are being handed to the kernel, and the parcels in them. */
struct em_batch {
	struct mmsghdr msg[EM_BATCH];
	struct iovec iov[EM_BATCH][3];
	struct virtio_net_hdr vnet[EM_BATCH];
	uint8_t head[EM_BATCH][EM_HEAD_MAX];
	struct em_parcel parcel[EM_BATCH_PARCELS];
	uint32_t end[EM_BATCH]; /* behind the last parcel of each message */
	uint32_t n, done, parcels;
	uint64_t since; /* when the kernel first had no room for the next message; 0: it has */
};

enum em_order_kind { EM_ORDER_SET, EM_ORDER_TELL, EM_ORDER_RESET, EM_ORDER_STOP };

struct em_order {
	enum em_order_kind kind;
	struct em_settings set; /* for SET */
	struct em_tally *tell;	/* for TELL: filled in */
};

struct em_direction {
	struct em_port *in, *out;
	struct em_model model;
	struct em_hold hold;
	struct em_pool pool;
	struct em_nap nap;
	struct em_batch batch;
	struct em_tally tally;
	struct em_last last;
	uint64_t active; /* when a frame last came or went */
	uint64_t looked; /* when the ring was last seen empty */
	uint64_t apart;	 /* CLOCK_REALTIME minus CLOCK_MONOTONIC, by which frames are stamped */
	bool stopped;
	int cpu; /* to run on; -1: any */
	bool realtime;
	/* shared with who gives orders */
	pthread_t thread;
	bool started;
	_Atomic(const struct em_order *) order;
	sem_t obeyed;
	int bell; /* eventfd: there is an order */
};

/* 0, or a negative errno and a text. What was opened must be closed, also if it never ran. */
int em_direction_open(struct em_direction *d, struct em_port *in, struct em_port *out,
		      const struct em_settings *set, uint64_t seed, char why[EM_WHY_MAX]);
/* `cpu` -1: wherever; `realtime`: by SCHED_FIFO. */
int em_direction_start(struct em_direction *d, int cpu, bool realtime, char why[EM_WHY_MAX]);
void em_direction_close(struct em_direction *d);

/* Have an order carried out. By one thread at a time, and none after STOP. */
void em_direction_obey(struct em_direction *d, const struct em_order *order);

/* Take frames from the ring (take.c); true if there may be more. */
bool em_take(struct em_direction *d);

/* Give the kernel all that is due (give.c); false if it has no room now. */
bool em_give(struct em_direction *d);

#endif
