/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What goes wrong for good, or is somebody's doing: ways that are cut in one direction, interfaces
 * that are exchanged, and old HELLOs that are sent again from elsewhere.
 */
#include "sim.h"

#include <stdlib.h>

#define SIM_HELLOS 64 /* HELLOs that are remembered, to be sent again */

struct sim_way {
	uint8_t cut;	/* planes on which frames from the one node to the other are lost */
	uint64_t since; /* when that, or one of the addresses, changed last */
};

struct sim_fault {
	struct sim_way way[SIM_NODES][SIM_NODES];
	struct sim_frame *hello[SIM_HELLOS];
	uint64_t hellos; /* ever remembered */
};

struct sim_fault *sim_fault_new(const struct sim *s)
{
	const struct sim_spec *spec = &s->spec;
	struct sim_fault *fault;

	if (!spec->sever_every_ns && !spec->move_every_ns && !spec->replay_every_ns)
		return NULL;
	fault = calloc(1, sizeof(*fault));
	if (!fault)
		abort();
	return fault;
}

void sim_fault_free(struct sim *s)
{
	uint32_t i;

	for (i = 0; s->fault && i < SIM_HELLOS; i++)
		free(s->fault->hello[i]);
	free(s->fault);
}

static void sim_fault_remember(struct sim *s, const struct sim_frame *f)
{
	const struct bw_hdr *h = (const struct bw_hdr *)f->data;
	struct sim_frame **at = &s->fault->hello[s->fault->hellos % SIM_HELLOS];

	if (f->kind != SIM_FRAME_ENGINE || f->len < sizeof(*h) || h->type != BW_FRAME_HELLO)
		return;
	free(*at);
	*at = malloc(sizeof(*f) + f->len);
	if (!*at)
		abort();
	memcpy(*at, f, sizeof(*f) + f->len);
	s->fault->hellos++;
}

bool sim_fault_loses(struct sim *s, const struct sim_frame *f)
{
	if (!s->fault)
		return false;
	if (s->spec.replay_every_ns)
		sim_fault_remember(s, f);
	return f->astray || s->fault->way[f->src][f->dst].cut >> f->plane & 1;
}

uint64_t sim_fault_since(const struct sim *s, uint32_t a, uint32_t b)
{
	const struct sim_fault *fault = s->fault;
	uint64_t x, y;

	if (!fault)
		return 0;
	x = fault->way[a][b].since;
	y = fault->way[b][a].since;
	return x > y ? x : y;
}

uint32_t sim_fault_cut(const struct sim *s, uint32_t a, uint32_t b)
{
	return s->fault ? s->fault->way[a][b].cut | s->fault->way[b][a].cut : 0;
}

void sim_fault_sever(struct sim *s)
{
	struct sim_fault *fault = s->fault;
	uint32_t a = (uint32_t)sim_below(&s->rng, s->spec.nodes);
	uint32_t b = (uint32_t)sim_below(&s->rng, s->spec.nodes - 1);
	uint8_t plane = (uint8_t)sim_below(&s->rng, s->spec.planes), cut;

	b += b >= a;
	cut = (uint8_t)(fault->way[a][b].cut | 1u << plane);
	/* Some plane must work in both directions, but where the last one may be cut, too. */
	if (!s->spec.sever_all && (cut | fault->way[b][a].cut) == (1u << s->spec.planes) - 1)
		return;
	if (cut == fault->way[a][b].cut)
		return;
	sim_log(s, "plane %u is cut from node%u to node%u", plane, a, b);
	fault->way[a][b].cut = cut;
	fault->way[a][b].since = s->now;
}

void sim_fault_move(struct sim *s)
{
	struct sim_node *n = &s->nodes[sim_below(&s->rng, s->spec.nodes)];
	uint32_t i;

	n->place[0] = (uint8_t)((n->place[0] + 1) % SIM_FORGED);
	sim_log(s, "node%u has another address on plane 0", n->number);
	for (i = 0; i < s->spec.nodes; i++)
		s->fault->way[n->number][i].since = s->now;
}

void sim_fault_replay(struct sim *s)
{
	const struct sim_frame *f = s->fault->hello[sim_below(&s->rng, SIM_HELLOS)];
	struct sim_frame *again;

	if (!f)
		return;
	again = sim_frame_new(s, f->len);
	again->serial = f->serial;
	again->src = f->src;
	again->dst = f->dst;
	again->plane = f->plane;
	again->place = (uint8_t)(SIM_FORGED + sim_below(&s->rng, 4));
	memcpy(again->data, f->data, f->len);
	sim_log(s, "#%llu comes again from elsewhere", (unsigned long long)f->serial);
	sim_queue_add(&s->queue, s->now, SIM_AT_NODE, again, 0);
}
