/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Schedules of messages (see load_schedule.h). Three random numbers belong to each message: its
 * gap, its size and its receiver; so what one sender draws does not move another's.
 */
#include "load_schedule.h"

#include "common.h"

#include <math.h>
#include <stdlib.h>

enum { DRAW_GAP, DRAW_SIZE, DRAW_RECEIVER, DRAWS };

/* Above 0, up to 1. */
static double draw(const struct arrangement *a, int from, uint64_t number, int what)
{
	uint64_t stream = ex_mix(ex_mix(a->seed) + (uint64_t)from);
	uint64_t word = ex_mix(stream + number * DRAWS + (uint64_t)what);

	return (double)((word >> 11) + 1) / (double)(1ull << 53);
}

uint64_t message_seed(const struct arrangement *a, const struct message *message)
{
	return ex_mix(ex_mix(a->seed + 1) + (uint64_t)message->from) + message->number;
}

static uint64_t gap_ns(const struct arrangement *a, int from, uint64_t number)
{
	if (a->arrivals == ARRIVALS_WAVES)
		return number > 0 ? a->gap_ns : 0;
	return (uint64_t)(-log(draw(a, from, number, DRAW_GAP)) * (double)a->gap_ns);
}

static int receiver(const struct arrangement *a, int from, uint64_t number)
{
	int other;

	if (!a->to_all)
		return 0;
	other = (int)((1 - draw(a, from, number, DRAW_RECEIVER)) * (a->ranks - 1));
	return other < from ? other : other + 1;
}

/* Makes room for one more, if @room allows. */
static bool schedule_grow(struct schedule *schedule, size_t room)
{
	const size_t least = 1024;
	size_t wanted = schedule->room ? 2 * schedule->room : least;
	struct message *grown;

	if (schedule->count == room)
		return false;
	if (schedule->count < schedule->room)
		return true;
	grown = realloc(schedule->messages, wanted * sizeof(*grown));
	if (!grown)
		ex_abort("no memory for %zu messages; choose a shorter time", wanted);
	schedule->messages = grown;
	schedule->room = wanted;
	return true;
}

static bool schedule_add(struct schedule *schedule, const struct message *message, size_t room)
{
	if (!schedule_grow(schedule, room)) {
		schedule_free(schedule);
		return false;
	}
	schedule->messages[schedule->count++] = *message;
	schedule->bytes += message->bytes;
	return true;
}

static bool idle_draw(struct schedule *schedule, const struct arrangement *a, int from, size_t room)
{
	struct message message = {.from = from, .to = 0};

	for (uint64_t copy = 0; copy < a->idle_copies && from == 1; copy++)
		for (size_t i = 0; i < a->idle_sizes; i++) {
			message.bytes = a->idle_bytes[i];
			if (!schedule_add(schedule, &message, room))
				return false;
			message.due_ns += a->idle_gaps_ns[i];
			message.number++;
		}
	return true;
}

bool schedule_draw(struct schedule *schedule, const struct arrangement *a, int from, int to,
		   size_t room)
{
	struct message message = {.from = from};

	*schedule = (struct schedule){0};
	if (!(a->to_all && a->arrivals != ARRIVALS_IDLE) && (from == 0 || to > 0))
		return true;
	if (a->arrivals == ARRIVALS_IDLE)
		return idle_draw(schedule, a, from, room);
	for (;; message.number++) {
		message.due_ns += gap_ns(a, from, message.number);
		if (message.due_ns >= a->horizon_ns)
			return true;
		message.to = receiver(a, from, message.number);
		message.bytes = sizes_quantile(&a->sizes, draw(a, from, message.number, DRAW_SIZE));
		if ((to < 0 || message.to == to) && !schedule_add(schedule, &message, room))
			return false;
	}
}

void schedule_free(struct schedule *schedule)
{
	free(schedule->messages);
	*schedule = (struct schedule){0};
}
