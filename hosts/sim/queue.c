/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The event queue; see queue.h. A heap with four children per node. */
#include "queue.h"

#include <stdlib.h>

static bool sim_event_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
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
		if (!sim_event_before(&e, &q->heap[up]))
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
		for (best = child++; child < end; child++)
			if (sim_event_before(&q->heap[child], &q->heap[best]))
				best = child;
		if (!sim_event_before(&q->heap[best], &last))
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
