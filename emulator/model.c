/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The order of events, as on a cable behind a switch's port: a packet that is too long or finds the
 * queue full is dropped; the queue's length decides about a mark; the wire sends the frame, which
 * takes its time also if it gets lost on the way; then it travels. A duplicate is sent behind its
 * original and takes the wire's time again.
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "ethernet.h"

#define EM_NS 1000000000u /* in a second */

void em_model_open(struct em_model *m, const struct em_settings *s, uint64_t seed)
{
	memset(m, 0, sizeof(*m));
	m->set = *s;
	m->rng.state = sim_mix(seed);
}

void em_model_close(struct em_model *m)
{
	free(m->waiting);
	m->waiting = NULL;
	m->n = m->size = 0;
}

void em_model_set(struct em_model *m, const struct em_settings *s)
{
	/* the remainder is one of a division by the old rate */
	m->rest = 0;
	m->set = *s;
}

uint64_t em_model_backlog(struct em_model *m, uint64_t now)
{
	while (m->n && m->waiting[m->first].sent <= now) {
		m->waiting_bytes -= m->waiting[m->first].bytes;
		m->first = (m->first + 1) & (m->size - 1);
		m->n--;
	}
	return m->waiting_bytes;
}

/* False without memory, which counts as a full queue. */
static bool em_model_room(struct em_model *m)
{
	uint32_t size = m->size ? 2 * m->size : 256, i;
	struct em_waiting *larger;

	if (m->n < m->size)
		return true;
	larger = malloc(size * sizeof(*larger));
	if (!larger)
		return false;
	for (i = 0; i < m->n; i++)
		larger[i] = m->waiting[(m->first + i) & (m->size - 1)];
	free(m->waiting);
	m->waiting = larger;
	m->size = size;
	m->first = 0;
	return true;
}

/* May the frame wait, or be sent at once? One frame always may. */
static bool em_model_accepts(struct em_model *m, uint32_t bytes)
{
	if (!m->set.rate)
		return true;
	if (m->n && m->waiting_bytes + bytes > em_settings_queue(&m->set))
		return false;
	return em_model_room(m);
}

/* Send a frame: max(arrival, wire free) + size / rate, in whole nanoseconds, the rest kept. */
static uint64_t em_model_send(struct em_model *m, uint64_t arrival, uint32_t bytes)
{
	uint64_t wire = em_wire_bytes(bytes), bits;

	m->charged += wire;
	if (arrival > m->free || !m->set.rate) {
		m->period++;
		m->free = arrival;
		m->rest = 0;
	}
	if (!m->set.rate)
		return arrival;
	/* at most 65,575 bytes of 8 bits of 1e9 ns each: far below 2^64 */
	bits = wire * 8 * EM_NS + m->rest;
	m->free += bits / m->set.rate;
	m->rest = bits % m->set.rate;
	m->waiting[(m->first + m->n++) & (m->size - 1)] = (struct em_waiting){m->free, bytes};
	m->waiting_bytes += bytes;
	return m->free;
}

/* Interrupt mitigation: the first frame begins a group, which is handed on when its time is up. */
static uint64_t em_model_coalesce(struct em_model *m, uint64_t due)
{
	if (!m->set.coalesce)
		return due;
	if (due > m->group)
		m->group = due + m->set.coalesce;
	return m->group;
}

/* How long a reordered frame is held back: so long that some others can overtake it. */
static uint64_t em_model_hold(const struct em_model *m, uint32_t bytes)
{
	uint64_t hold = m->set.delay / 2;
	uint64_t frames = m->set.rate ? 4ull * em_wire_bytes(bytes) * 8 * EM_NS / m->set.rate : 0;

	hold = hold > frames ? hold : frames;
	return hold > EM_REORDER_LEAST ? hold : EM_REORDER_LEAST;
}

static uint64_t em_model_travel(struct em_model *m, const struct em_fate *fate, uint32_t bytes)
{
	uint64_t due = fate->sent + m->set.delay;

	if (m->set.jitter)
		due = due - m->set.jitter + sim_below(&m->rng, 2 * m->set.jitter + 1);
	if (fate->held_back)
		return em_model_coalesce(m, due + em_model_hold(m, bytes));
	/* a link keeps the order, whatever the jitter */
	due = em_model_coalesce(m, due > m->last ? due : m->last);
	m->last = due;
	return due;
}

static void em_model_leave(struct em_model *m, const struct em_frame *f, struct em_fate *fate)
{
	memset(fate, 0, sizeof(*fate));
	fate->sent = em_model_send(m, m->arrival, f->bytes);
	fate->charged = m->charged;
	fate->period = m->period;
	fate->held_back = em_chance(&m->rng, m->set.reorder);
	fate->due = em_model_travel(m, fate, f->bytes);
	fate->corrupt = !f->spared && em_chance(&m->rng, m->set.corrupt);
	if (fate->corrupt)
		fate->flip = sim_random(&m->rng);
	m->count.reordered += fate->held_back;
	m->count.corrupted += fate->corrupt;
	m->count.passed++;
	m->count.passed_bytes += f->bytes;
}

int em_model_offer(struct em_model *m, const struct em_frame *f, struct em_fate fate[EM_FATES])
{
	uint64_t backlog;
	bool mark;

	if (f->arrival > m->arrival)
		m->arrival = f->arrival;
	m->count.frames++;
	m->count.bytes += f->bytes;
	if (m->set.mtu && f->packet > m->set.mtu) {
		m->count.too_long++;
		return 0;
	}
	backlog = em_model_backlog(m, m->arrival);
	if (!em_model_accepts(m, f->bytes)) {
		m->count.dropped_queue++;
		return 0;
	}
	mark = f->capable && m->set.mark && backlog > m->set.mark;
	if (em_loss_next(&m->loss, &m->set, &m->rng)) {
		em_model_send(m, m->arrival, f->bytes);
		m->count.lost++;
		return 0;
	}
	em_model_leave(m, f, &fate[0]);
	fate[0].mark = mark;
	m->count.marked += mark;
	if (!em_chance(&m->rng, m->set.duplicate) || !em_model_accepts(m, f->bytes))
		return 1;
	em_model_leave(m, f, &fate[1]);
	fate[1].mark = mark;
	fate[1].copy = true;
	m->count.duplicated++;
	return 2;
}
