/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The thread of a direction: give what is due, take what came, wait. */
#include "direction.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EM_RETRY_NS 50000u /* between two tries where the kernel has no room */

static void em_direction_count(struct em_direction *d)
{
	d->tally.missed += em_port_overruns(d->in);
	d->tally.dropped_device += em_port_dropped(d->out);
	d->tally.set = d->model.set;
	d->tally.count = d->model.count;
	d->tally.under_way = d->hold.n + d->hold.heap_n + d->batch.parcels -
			     (d->batch.done ? d->batch.end[d->batch.done - 1] : 0);
	d->tally.naps = d->nap.naps;
	d->tally.spins = d->nap.spins;
}

static void em_direction_reset(struct em_direction *d)
{
	em_direction_count(d);
	em_tally_reset(&d->tally);
	memset(&d->model.count, 0, sizeof(d->model.count));
	d->nap.naps = d->nap.spins = 0;
}

static void em_direction_orders(struct em_direction *d)
{
	const struct em_order *order = atomic_load(&d->order);
	uint64_t rung;

	if (!order)
		return;
	if (read(d->bell, &rung, sizeof(rung)) < 0 && errno != EAGAIN)
		return;
	switch (order->kind) {
	case EM_ORDER_SET:
		em_model_set(&d->model, &order->set);
		if (order->set.delay < d->tally.delay_least)
			d->tally.delay_least = order->set.delay;
		break;
	case EM_ORDER_TELL:
		em_direction_count(d);
		*order->tell = d->tally;
		break;
	case EM_ORDER_RESET:
		em_direction_reset(d);
		break;
	case EM_ORDER_STOP:
		d->stopped = true;
		break;
	}
	atomic_store(&d->order, NULL);
	sem_post(&d->obeyed);
}

static bool em_direction_seen(const void *whom)
{
	const struct em_direction *d = whom;

	return em_port_filled(d->in) || atomic_load(&((struct em_direction *)d)->order);
}

static void em_direction_wait(struct em_direction *d, bool room)
{
	const struct em_parcel *next = em_hold_next(&d->hold);
	struct em_nap_for f = {
		.due = next ? next->fate.due : EM_NAP_NEVER,
		.deaf = em_hold_in_order(&d->hold),
		.fast = d->model.set.delay < EM_NAP_FAST,
		.active = d->active,
		.fd = {d->in->rx, d->bell},
		.seen = em_direction_seen,
		.whom = d,
	};

	if (!room) {
		f.due = em_now() + EM_RETRY_NS;
		f.deaf = true;
	}
	em_nap(&d->nap, &f);
}

/* As exact as may be; what is refused here is only told by the lateness of frames. */
static void em_direction_settle(struct em_direction *d)
{
	struct sched_param priority = {.sched_priority = 1};
	cpu_set_t cpus;

	if (d->cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET(d->cpu, &cpus);
		sched_setaffinity(0, sizeof(cpus), &cpus);
	}
	em_nap_thread();
	if (d->realtime)
		sched_setscheduler(0, SCHED_FIFO, &priority);
	em_nap_open(&d->nap, d->realtime);
}

static void *em_direction_run(void *whom)
{
	struct em_direction *d = whom;
	bool room, more;

	em_direction_settle(d);
	for (;;) {
		em_direction_orders(d);
		if (d->stopped)
			return NULL;
		room = em_give(d);
		more = em_take(d);
		if (!more)
			em_direction_wait(d, room);
	}
}

int em_direction_open(struct em_direction *d, struct em_port *in, struct em_port *out,
		      const struct em_settings *set, uint64_t seed, char why[EM_WHY_MAX])
{
	memset(d, 0, sizeof(*d));
	d->in = in;
	d->out = out;
	em_model_open(&d->model, set, seed);
	em_hold_open(&d->hold);
	em_pool_open(&d->pool);
	d->tally.set = *set;
	em_tally_reset(&d->tally);
	d->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (d->bell < 0 || sem_init(&d->obeyed, 0, 0)) {
		snprintf(why, EM_WHY_MAX, "no event descriptor: %s; close some files",
			 strerror(errno));
		return -errno;
	}
	return 0;
}

int em_direction_start(struct em_direction *d, int cpu, bool realtime, char why[EM_WHY_MAX])
{
	int error;

	d->cpu = cpu;
	d->realtime = realtime;
	error = pthread_create(&d->thread, NULL, em_direction_run, d);
	d->started = !error;
	if (error)
		snprintf(why, EM_WHY_MAX, "no thread could be started: %s; end other processes",
			 strerror(error));
	return -error;
}

void em_direction_obey(struct em_direction *d, const struct em_order *order)
{
	uint64_t ring = 1;

	/* The bell first: who takes the order reads it too, and it does not ring on. */
	while (write(d->bell, &ring, sizeof(ring)) < 0 && errno == EINTR)
		;
	atomic_store(&d->order, order);
	while (sem_wait(&d->obeyed) && errno == EINTR)
		;
}

static void em_direction_empty(struct em_direction *d)
{
	const struct em_parcel *p;
	uint32_t at = d->batch.done ? d->batch.end[d->batch.done - 1] : 0;

	for (; d->batch.done < d->batch.n && at < d->batch.parcels; at++)
		em_buffer_put(&d->pool, d->batch.parcel[at].buffer);
	while ((p = em_hold_next(&d->hold))) {
		em_buffer_put(&d->pool, p->buffer);
		em_hold_take(&d->hold);
	}
}

void em_direction_close(struct em_direction *d)
{
	static const struct em_order stop = {.kind = EM_ORDER_STOP};

	if (d->started) {
		if (!d->stopped)
			em_direction_obey(d, &stop);
		pthread_join(d->thread, NULL);
	}
	em_direction_empty(d);
	em_model_close(&d->model);
	em_hold_close(&d->hold);
	em_pool_close(&d->pool);
	if (d->bell >= 0)
		close(d->bell);
	sem_destroy(&d->obeyed);
}
