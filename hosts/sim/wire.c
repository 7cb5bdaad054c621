/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The network: each node has, per plane, a port into a switch and a port out of it. Misfortune
 * strikes on the way in; queues, drops for want of room and marks are on the way out, where senders
 * meet.
 */
#include "sim.h"

#include <stdlib.h>

#define SIM_ETHERNET_BYTES 38 /* header, FCS, preamble and gap around each frame */

static const uint32_t sim_frame_rooms[4] = {256, 2048, 9216, 65536};

static struct sim_frame *sim_frame_fresh(struct sim_frame *f, uint32_t len)
{
	f->len = len;
	f->mark = f->astray = false;
	f->place = 0;
	f->kind = SIM_FRAME_ENGINE;
	return f;
}

struct sim_frame *sim_frame_new(struct sim *s, uint32_t len)
{
	struct sim_frame *f;
	uint32_t class = 0;

#ifdef __SANITIZE_ADDRESS__
	class = 4; /* exact size, so that every byte read beyond the frame is seen */
#else
	while (len > sim_frame_rooms[class])
		class ++;
	f = s->spare[class];
	if (f) {
		s->spare[class] = f->next;
		return sim_frame_fresh(f, len);
	}
#endif
	f = malloc(sizeof(*f) + (class < 4 ? sim_frame_rooms[class] : len));
	if (!f)
		abort();
	f->room = class < 4 ? sim_frame_rooms[class] : 0;
	return sim_frame_fresh(f, len);
}

void sim_frame_free(struct sim *s, struct sim_frame *f)
{
	uint32_t class = 0;

	if (!f->room) {
		free(f);
		return;
	}
	while (f->room != sim_frame_rooms[class])
		class ++;
	f->next = s->spare[class];
	s->spare[class] = f;
}

uint64_t sim_wire_time(uint64_t rate_bps, uint32_t bytes)
{
	if (!rate_bps)
		return 0;
	return (bytes + SIM_ETHERNET_BYTES) * 8ull * 1000000000ull / rate_bps;
}

static uint64_t sim_port_backlog(const struct sim *s, const struct sim_port *p)
{
	if (p->busy_until <= s->now)
		return 0;
	return (p->busy_until - s->now) * (p->wire.rate_bps / 1000) / 8000000;
}

bool sim_wire_ready(struct sim *s, const struct sim_node *n, uint8_t plane)
{
	return !n->out[plane].wire.rate_bps ||
	       sim_port_backlog(s, &n->out[plane]) < s->spec.driver_bytes;
}

static void sim_wire_fate(struct sim *s, const struct sim_frame *f, enum sim_fate fate,
			  const char *word)
{
	s->fate[fate]++;
	if (s->trace)
		sim_log(s, "      #%llu %s", (unsigned long long)f->serial, word);
}

/* Bursts of losses: a two-state chain [Gilbert 1960, Elliott 1963]. */
static bool sim_port_loses(struct sim *s, struct sim_port *p)
{
	const struct sim_wire *w = &p->wire;

	if (p->burst)
		p->burst = !sim_chance(&s->rng, w->burst_end_ppm);
	else
		p->burst = sim_chance(&s->rng, w->burst_ppm);
	return p->burst || sim_chance(&s->rng, w->loss_ppm);
}

static void sim_frame_corrupt(struct sim *s, struct sim_frame *f)
{
	uint64_t bits = sim_between(&s->rng, 1, 8);
	uint64_t where = sim_below(&s->rng, f->len * 8ull);

	/* Within 32 bits half of the time: a burst, which a CRC must always find. */
	if (sim_chance(&s->rng, 500000)) {
		for (; bits; bits--, where += sim_between(&s->rng, 1, 4))
			if (where < f->len * 8ull)
				((uint8_t *)f->data)[where / 8] ^= (uint8_t)(1 << where % 8);
		return;
	}
	for (; bits; bits--, where = sim_below(&s->rng, f->len * 8ull))
		((uint8_t *)f->data)[where / 8] ^= (uint8_t)(1 << where % 8);
}

static void sim_wire_fly(struct sim *s, struct sim_frame *f, struct sim_port *p, uint64_t depart)
{
	const struct sim_wire *w = &p->wire;
	uint64_t at = depart + w->delay_ns;
	const struct sim_port *in = &s->nodes[f->dst].in[f->plane];

	if (w->jitter_ns)
		at += sim_below(&s->rng, w->jitter_ns);
	if (sim_chance(&s->rng, w->reorder_ppm)) {
		at += sim_between(&s->rng, 1, w->reorder_ns);
	} else {
		at = at > p->last_out ? at : p->last_out;
		p->last_out = at;
	}
	sim_queue_add(&s->queue, at, in->wire.rate_bps ? SIM_AT_SWITCH : SIM_AT_NODE, f, 0);
}

static struct sim_frame *sim_frame_copy(struct sim *s, const struct sim_frame *f, uint32_t len)
{
	struct sim_frame *copy = sim_frame_new(s, len);

	copy->serial = f->serial;
	copy->src = f->src;
	copy->dst = f->dst;
	copy->plane = f->plane;
	copy->place = f->place;
	memcpy(copy->data, f->data, len < f->len ? len : f->len);
	return copy;
}

/* A frame of random bytes; often one that begins like a real one. */
static void sim_wire_garbage(struct sim *s, const struct sim_frame *like, struct sim_port *p,
			     uint64_t depart)
{
	uint32_t len = (uint32_t)sim_scale(&s->rng, 1, 2000), i;
	struct sim_frame *f = sim_frame_copy(s, like, len);

	/* At most the common header is spared: no whole frame may be left of it. */
	i = (uint32_t)(sim_chance(&s->rng, 500000) ? sim_below(&s->rng, sizeof(struct bw_hdr) + 1)
						   : 0);
	for (; i < len; i++)
		((uint8_t *)f->data)[i] = (uint8_t)sim_random(&s->rng);
	sim_wire_fate(s, f, SIM_FATE_GARBAGE, "followed by random bytes");
	sim_wire_fly(s, f, p, depart);
}

/* What may happen to a frame of an engine on the way; false when nothing of it is left. */
static bool sim_wire_harm(struct sim *s, struct sim_frame *f, struct sim_port *p, uint64_t depart)
{
	const struct sim_wire *w = &p->wire;

	if (sim_chance(&s->rng, w->garbage_ppm))
		sim_wire_garbage(s, f, p, depart);
	if (sim_chance(&s->rng, w->dup_ppm)) {
		sim_wire_fate(s, f, SIM_FATE_DUP, "duplicated");
		sim_wire_fly(s, sim_frame_copy(s, f, f->len), p,
			     depart + sim_below(&s->rng, 2 * w->delay_ns + 1));
	}
	if (sim_chance(&s->rng, w->corrupt_ppm)) {
		sim_wire_fate(s, f, SIM_FATE_DAMAGED, "corrupted");
		sim_frame_corrupt(s, f);
	}
	if (sim_chance(&s->rng, w->truncate_ppm)) {
		sim_wire_fate(s, f, SIM_FATE_DAMAGED, "truncated");
		f->len = (uint32_t)sim_below(&s->rng, f->len);
	}
	return f->len > 0;
}

void sim_wire_send(struct sim *s, struct sim_frame *f)
{
	struct sim_node *src = &s->nodes[f->src], *dst = &s->nodes[f->dst];
	struct sim_port *p = &src->out[f->plane];
	uint64_t depart = p->busy_until > s->now ? p->busy_until : s->now;

	s->frames++;
	depart += sim_wire_time(p->wire.rate_bps, f->len);
	p->busy_until = depart;
	if (p->dead || dst->in[f->plane].dead || src->side != dst->side || sim_fault_loses(s, f)) {
		sim_wire_fate(s, f, SIM_FATE_CUT, "cut off");
	} else if (p->wire.hole && f->len > p->wire.hole) {
		sim_wire_fate(s, f, SIM_FATE_HOLE, "too long for the path");
	} else if (sim_port_loses(s, p)) {
		sim_wire_fate(s, f, SIM_FATE_LOST, "lost");
	} else if (f->kind != SIM_FRAME_ENGINE || sim_wire_harm(s, f, p, depart)) {
		sim_wire_fly(s, f, p, depart);
		return;
	}
	sim_frame_free(s, f);
}

void sim_wire_switch(struct sim *s, struct sim_frame *f)
{
	struct sim_port *p = &s->nodes[f->dst].in[f->plane];
	uint64_t backlog = sim_port_backlog(s, p);

	if (p->wire.queue_bytes && backlog + f->len > p->wire.queue_bytes) {
		sim_wire_fate(s, f, SIM_FATE_QUEUE, "queue full");
		sim_frame_free(s, f);
		return;
	}
	if (p->wire.mark_bytes && backlog > p->wire.mark_bytes)
		f->mark = true;
	p->busy_until = (p->busy_until > s->now ? p->busy_until : s->now) +
			sim_wire_time(p->wire.rate_bps, f->len);
	sim_queue_add(&s->queue, p->busy_until, SIM_AT_NODE, f, 0);
}
