/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What goes wrong at times: hosts restart with a new incarnation or stand still, the network falls
 * in two, single paths die. Each kind comes at random intervals and heals by itself, but those of
 * fault.c.
 */
#include "sim.h"

static uint64_t sim_trouble_every(const struct sim_spec *spec, enum sim_trouble what)
{
	const uint64_t every[SIM_TROUBLES] = {
		[SIM_RESTART] = spec->restart_every_ns, [SIM_PAUSE] = spec->pause_every_ns,
		[SIM_CUT] = spec->cut_every_ns,		[SIM_PATH] = spec->path_every_ns,
		[SIM_SEVER] = spec->sever_every_ns,	[SIM_MOVE] = spec->move_every_ns,
		[SIM_REPLAY] = spec->replay_every_ns,
	};

	return every[what];
}

static uint64_t sim_trouble_lasts(struct sim *s, enum sim_trouble what)
{
	const uint64_t longest[SIM_TROUBLES] = {
		[SIM_RESTART] = s->spec.restart_for_ns,
		[SIM_PAUSE] = s->spec.pause_for_ns,
		[SIM_CUT] = s->spec.cut_for_ns,
		[SIM_PATH] = s->spec.path_for_ns,
	};

	return sim_scale(&s->rng, 1, longest[what] + 1);
}

static void sim_trouble_again(struct sim *s, enum sim_trouble what)
{
	uint64_t every = sim_trouble_every(&s->spec, what);

	if (every)
		sim_queue_add(&s->queue, s->now + sim_below(&s->rng, 2 * every), SIM_TROUBLE, NULL,
			      what);
}

void sim_trouble_plan(struct sim *s)
{
	uint32_t i;

	for (i = 0; i < SIM_TROUBLES; i++)
		sim_trouble_again(s, (enum sim_trouble)i);
}

static void sim_path_kill(struct sim *s, struct sim_node *n)
{
	uint32_t plane = (uint32_t)sim_below(&s->rng, s->spec.planes);
	uint64_t how = sim_below(&s->rng, 3);

	n->out[plane].dead = how != 0;
	n->in[plane].dead = how != 1;
	sim_log(s, "node%u: plane %u is dead %s", n->number, plane,
		how == 0   ? "inwards"
		: how == 1 ? "outwards"
			   : "both ways");
}

void sim_trouble_begin(struct sim *s, enum sim_trouble what)
{
	struct sim_node *n = &s->nodes[sim_below(&s->rng, s->spec.nodes)];
	uint32_t i;

	if (!s->working)
		return;
	sim_trouble_again(s, what);
	if (!n->engine)
		return;
	switch (what) {
	case SIM_RESTART:
		sim_node_stop(n, sim_chance(&s->rng, 400000));
		break;
	case SIM_PAUSE:
		sim_log(s, "node%u stands still", n->number);
		n->paused = true;
		break;
	case SIM_CUT:
		sim_log(s, "the network is cut");
		for (i = 0; i < s->spec.nodes; i++)
			s->nodes[i].side = (uint32_t)sim_below(&s->rng, 2);
		break;
	case SIM_SEVER:
		sim_fault_sever(s);
		return;
	case SIM_MOVE:
		sim_fault_move(s);
		return;
	case SIM_REPLAY:
		sim_fault_replay(s);
		return;
	default:
		sim_path_kill(s, n);
	}
	sim_queue_add(&s->queue, s->now + sim_trouble_lasts(s, what), SIM_HEAL, n, what);
}

static void sim_node_resume(struct sim_node *n)
{
	if (!n->paused)
		return;
	sim_log(n->sim, "node%u goes on", n->number);
	n->paused = false;
	if (n->ring_first && !n->serving) {
		n->serving = true;
		sim_queue_add(&n->sim->queue, n->sim->now + n->sim->spec.rx_cost_ns, SIM_SERVE, n,
			      0);
	}
	sim_node_run(n);
}

void sim_trouble_end(struct sim *s, struct sim_node *n, enum sim_trouble what)
{
	uint32_t i;

	switch (what) {
	case SIM_RESTART:
		if (!n->engine)
			sim_node_start(n);
		break;
	case SIM_PAUSE:
		sim_node_resume(n);
		break;
	case SIM_CUT:
		for (i = 0; i < s->spec.nodes; i++)
			s->nodes[i].side = 0;
		break;
	case SIM_SEVER:
	case SIM_MOVE:
	case SIM_REPLAY:
		break;
	default:
		for (i = 0; i < s->spec.planes; i++)
			n->out[i].dead = n->in[i].dead = false;
	}
}
