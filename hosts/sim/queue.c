/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The event queue; see queue.h. A heap with four children per node. */
#include "queue.h"

#include <stdlib.h>

/* Time and insertion number as one number, so that comparing needs no branch: what comes first is a
 * toss-up, which no processor predicts. */
static inline unsigned __int128 sim_event_key(const struct sim_event *e)
{
	return (unsigned __int128)e->at << 64 | e->order;
}

/* The least of the heap's entries [child, end). */
static inline uint32_t sim_queue_least(const struct sim_queue *q, uint32_t child, uint32_t end)
{
	unsigned __int128 key, least = sim_event_key(&q->heap[child]);
	uint32_t best = child;

	while (++child < end) {
		key = sim_event_key(&q->heap[child]);
		best = key < least ? child : best;
		least = key < least ? key : least;
	}
	return best;
}

void sim_queue_add(struct sim_queue *q, uint64_t at, uint32_t kind, void *what, uint32_t arg)
{
	struct sim_event e = {
		.at = at, .order = q->inserted++, .what = what, .arg = arg, .kind = kind};
	uint32_t i = q->used++, up;

	if (i == q->room) {
		q->room = q->room ? 2 * q->room : 256;
		q->heap = realloc(q->heap, q->room * sizeof(*q->heap));
		if (!q->heap)
			abort();
	}
	for (; i > 0; i = up) {
		up = (i - 1) / 4;
		if (sim_event_key(&e) > sim_event_key(&q->heap[up]))
			break;
		q->heap[i] = q->heap[up];
	}
	q->heap[i] = e;
}

bool sim_queue_take(struct sim_queue *q, struct sim_event *out)
{
	struct sim_event last;
	uint32_t i = 0, child, best, end;

	if (!q->used)
		return false;
	*out = q->heap[0];
	last = q->heap[--q->used];
	for (;;) {
		child = 4 * i + 1;
		if (child >= q->used)
			break;
		end = child + 4 < q->used ? child + 4 : q->used;
		best = sim_queue_least(q, child, end);
		if (sim_event_key(&q->heap[best]) > sim_event_key(&last))
			break;
		q->heap[i] = q->heap[best];
		i = best;
	}
	q->heap[i] = last;
	return true;
}

void sim_queue_free(struct sim_queue *q)
{
	free(q->heap);
	*q = (struct sim_queue){0};
}
