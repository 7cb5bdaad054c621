/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The scenarios with names, each about one kind of trouble, and those drawn from a seed, which mix
 * all kinds. See scenario.h for the meaning of the fields.
 */
#include "scenario.h"

#include "protocol.h"

#include <stdio.h>

#define GBIT 1000000000ull
/* Of the sequence of ways that are cut; those runs that found defects have none. */
#define SIM_DRAW_SEVERED 1780

/* A table, each scenario in a few lines. */
/* clang-format off */
const struct sim_spec sim_scenarios[] = {
	{.name = "calm", .about = "nothing goes wrong: not one frame may be sent twice",
	 .nodes = 4, .steady = true, .quiet = true, .clean = true},
	{.name = "loss", .about = "5 % of all frames are lost",
	 .nodes = 3, .steady = true, .wire = {{.loss_ppm = 50000}}},
	/* A burst ends after some frames, not after some time: of one probe a second 60 are all
	 * lost in one of 20 bursts, which is longer than peers usually wait. */
	{.name = "burst", .about = "bursts of losses",
	 .nodes = 3, .steady = true, .dead_ns = 600 * BW_S,
	 .wire = {{.burst_ppm = 3000, .burst_end_ppm = 50000}}},
	{.name = "reorder", .about = "a third of all frames are late, some by many round trips",
	 .nodes = 3, .steady = true,
	 .wire = {{.reorder_ppm = 300000, .reorder_ns = 2 * BW_MS}}},
	{.name = "duplicate", .about = "every fifth frame arrives twice",
	 .nodes = 3, .steady = true, .wire = {{.dup_ppm = 200000}}},
	{.name = "damage", .about = "frames corrupted, cut short, made up",
	 .nodes = 3, .steady = true, .scatter = true,
	 .wire = {{.corrupt_ppm = 30000, .truncate_ppm = 10000, .garbage_ppm = 20000}}},
	{.name = "unchecked", .about = "losses without a data checksum",
	 .nodes = 3, .steady = true, .no_checksum = true, .wire = {{.loss_ppm = 20000}}},
	{.name = "partition", .about = "the network is cut at times, for longer than peers wait",
	 .nodes = 5, .cut_every_ns = 300 * BW_MS, .cut_for_ns = BW_S, .dead_ns = 500 * BW_MS,
	 .gap_ns = BW_MS, .work_ns = 4 * BW_S},
	{.name = "restart", .about = "hosts end and come back, with and without a farewell",
	 .nodes = 5, .restart_every_ns = 20 * BW_MS, .restart_for_ns = 50 * BW_MS,
	 .dead_ns = 2 * BW_S, .wire = {{.loss_ppm = 5000}}},
	{.name = "stop", .about = "hosts stand still for up to 30 s, and nobody is given up",
	 .nodes = 3, .steady = true, .pause_every_ns = 20 * BW_S, .pause_for_ns = 30 * BW_S,
	 .ring = 256, .dead_ns = 60 * BW_S, .gap_ns = 10 * BW_MS, .work_ns = 100 * BW_S},
	{.name = "slow", .about = "a host needs 5 us for a frame; its ring holds 128",
	 .nodes = 4, .steady = true, .rx_cost_ns = 5 * BW_US, .ring = 128},
	{.name = "incast", .about = "16 hosts send to one",
	 .nodes = 17, .steady = true, .quiet = true, .work = SIM_WORK_INCAST, .depth = 16,
	 .stream_len = 20000, .rx_cost_ns = 300, .ring = 512, .charge_min = 2048,
	 .rx_budget = 512 * 2048,
	 .wire = {{.rate_bps = 10 * GBIT, .queue_bytes = 400000, .delay_ns = 5 * BW_US}}},
	{.name = "paths", .about = "three paths between each two hosts, which die at times",
	 .nodes = 3, .planes = 3, .uneven = true, .path_every_ns = 10 * BW_MS,
	 .path_for_ns = 200 * BW_MS, .dead_ns = 5 * BW_S, .work_ns = 4 * BW_S,
	 .wire = {{.loss_ppm = 5000}, {.loss_ppm = 5000}, {.loss_ppm = 5000}}},
	{.name = "stripe",
	 .about = "two paths that carry data together, one of them a tenth as fast",
	 .nodes = 3, .planes = 2, .stripe = true, .steady = true,
	 .wire = {{.rate_bps = GBIT, .queue_bytes = 200000, .loss_ppm = 1000},
		  {.rate_bps = GBIT / 10, .queue_bytes = 200000, .loss_ppm = 1000}}},
	{.name = "lossy",
	 .about = "two paths that carry data together; one loses 5 % of the frames",
	 .nodes = 3, .planes = 2, .stripe = true, .steady = true,
	 .wire = {{.rate_bps = GBIT, .queue_bytes = 200000},
		  {.rate_bps = GBIT, .queue_bytes = 200000, .loss_ppm = 50000}}},
	{.name = "detour",
	 .about = "two paths that carry data together; one takes ten times as long",
	 .nodes = 3, .planes = 2, .stripe = true, .steady = true,
	 .wire = {{.rate_bps = GBIT, .queue_bytes = 200000, .delay_ns = 20 * BW_US},
		  {.rate_bps = GBIT, .queue_bytes = 200000, .delay_ns = 200 * BW_US,
		   .reorder_ppm = 10000, .reorder_ns = BW_MS}}},
	{.name = "severed",
	 .about = "three paths that carry data together, and are cut at times",
	 .nodes = 3, .planes = 3, .stripe = true, .uneven = true, .path_every_ns = 20 * BW_MS,
	 .path_for_ns = 400 * BW_MS, .dead_ns = 5 * BW_S, .work_ns = 4 * BW_S,
	 .wire = {{.loss_ppm = 1000}, {.loss_ppm = 1000}, {.dup_ppm = 10000}}},
	{.name = "oneway",
	 .about = "paths that are cut in one direction for good, never the last one", .nodes = 3,
	 .planes = 2, .steady = true, .prompt = true, .sever_every_ns = 100 * BW_MS,
	 .dead_ns = 3 * BW_S, .gap_ns = 4 * BW_MS, .work_ns = 8 * BW_S},
	{.name = "oneway-striped",
	 .about = "the same with three that carry data together, in rows and pieces, with a key",
	 .nodes = 3, .planes = 3, .stripe = true, .uneven = true, .steady = true, .prompt = true,
	 .keyed = true, .longs = true, .piece = 2, .rx_cost_ns = 300,
	 .sever_every_ns = 150 * BW_MS, .dead_ns = 3 * BW_S, .gap_ns = 4 * BW_MS,
	 .bulk_max = 200000, .work_ns = 8 * BW_S,
	 .wire = {{.rate_bps = GBIT, .queue_bytes = 200000},
		  {.rate_bps = GBIT, .queue_bytes = 200000, .loss_ppm = 1000},
		  {.rate_bps = GBIT / 10, .queue_bytes = 200000}}},
	{.name = "deaf",
	 .about = "all paths are cut in one direction, one after the other, for good", .nodes = 4,
	 .planes = 2, .prompt = true, .sever_every_ns = 200 * BW_MS, .sever_all = true,
	 .dead_ns = 2 * BW_S, .gap_ns = 4 * BW_MS, .work_ns = 12 * BW_S},
	{.name = "moved", .about = "hosts whose address changes on one of two paths",
	 .nodes = 3, .planes = 2, .steady = true, .prompt = true, .move_every_ns = 300 * BW_MS,
	 .dead_ns = 3 * BW_S, .gap_ns = 4 * BW_MS, .work_ns = 8 * BW_S},
	{.name = "replayed", .about = "old HELLOs come again from addresses of nobody",
	 .nodes = 3, .planes = 2, .stripe = true, .steady = true, .prompt = true,
	 .replay_every_ns = BW_MS, .dead_ns = 3 * BW_S, .gap_ns = 4 * BW_MS, .work_ns = 8 * BW_S},
	{.name = "hole", .about = "paths on which longer frames than 1500 and 4000 bytes vanish",
	 .nodes = 3, .planes = 2, .steady = true,
	 .wire = {{.mtu = 9000, .hole = 1500}, {.mtu = 9000, .hole = 4000}}},
	{.name = "coarse", .about = "a clock that moves in steps of 4 ms",
	 .nodes = 3, .steady = true, .clock_ns = 4 * BW_MS, .wire = {{.loss_ppm = 20000}}},
	{.name = "short", .about = "hosts short of memory and of room in their links",
	 .nodes = 4, .steady = true, .no_buffer_ppm = 50000, .no_memory_ns = 20 * BW_MS,
	 .unsent_ppm = 20000, .wire = {{.loss_ppm = 5000}}},
	{.name = "starve", .about = "memory for a fraction of what is wanted, and late",
	 .nodes = 8, .steady = true, .quiet = true, .no_memory_ns = 200 * BW_MS, .pending = 2000,
	 .piece = 3,
	 .gap_ns = BW_US, .eager_max = 64, .bulk_max = 2000, .work_ns = 3 * BW_MS},
	{.name = "killed", .about = "hosts ended while frames lie unserved",
	 .nodes = 4, .restart_every_ns = 5 * BW_MS, .restart_for_ns = 5 * BW_MS,
	 .rx_cost_ns = 5 * BW_US, .ring = 512, .dead_ns = BW_S, .bulk_max = 2000,
	 .wire = {{.loss_ppm = 20000}}},
	{.name = "leave",
	 .about = "hosts that stand still for a while, read some frames, and take leave",
	 .nodes = 4, .leave_ppm = 30000, .pause_every_ns = 3 * BW_MS, .pause_for_ns = 50 * BW_MS,
	 .rx_cost_ns = 5 * BW_US, .ring = 1u << 20, .quiet = true, .eager_max = 4000,
	 .bulk_max = 20000, .pending = 8, .gap_ns = 50 * BW_US,
	 .wire = {{.jitter_ns = 500 * BW_US}}},
	{.name = "squeeze", .about = "a budget of credit for hardly two messages",
	 .nodes = 5, .steady = true, .rx_budget = 65536, .charge_min = 9216,
	 .wire = {{.loss_ppm = 5000}}},
	{.name = "jumbo", .about = "frames of 9000 bytes on 10 Gbit/s, little room in the switch",
	 .nodes = 4, .steady = true,
	 .wire = {{.mtu = 9000, .rate_bps = 10 * GBIT, .queue_bytes = 100000,
		   .mark_bytes = 30000, .delay_ns = 10 * BW_US}}},
	{.name = "wan", .about = "25 ms one way, 100 Mbit/s, some loss",
	 .nodes = 3, .steady = true, .gap_ns = 5 * BW_MS, .work_ns = 20 * BW_S,
	 .wire = {{.rate_bps = GBIT / 10, .delay_ns = 25 * BW_MS, .queue_bytes = 200000,
		   .loss_ppm = 2000}}},
	{.name = NULL},
};
/* clang-format on */

const struct sim_spec *sim_scenario_find(const char *name)
{
	const struct sim_spec *spec;

	for (spec = sim_scenarios; spec->name; spec++)
		if (!strcmp(spec->name, name))
			return spec;
	return NULL;
}

static void sim_default_u64(uint64_t *x, uint64_t value)
{
	if (!*x)
		*x = value;
}

static void sim_default_u32(uint32_t *x, uint32_t value)
{
	if (!*x)
		*x = value;
}

void sim_scenario_defaults(struct sim_spec *spec)
{
	uint32_t i;

	sim_default_u32(&spec->nodes, 2);
	sim_default_u32(&spec->planes, 1);
	for (i = 0; i < spec->planes; i++) {
		sim_default_u32(&spec->wire[i].mtu, 1500);
		sim_default_u64(&spec->wire[i].delay_ns, 10 * BW_US);
	}
	sim_default_u32(&spec->ring, 1024);
	sim_default_u32(&spec->driver_bytes, 262144);
	sim_default_u64(&spec->dead_ns, 30 * BW_S);
	sim_default_u32(&spec->rx_budget, 4u << 20);
	sim_default_u64(&spec->work_ns, 10 * BW_S);
	sim_default_u64(&spec->work_frames, 30000);
	sim_default_u64(&spec->gap_ns, 100 * BW_US);
	sim_default_u32(&spec->pending, 100);
	sim_default_u32(&spec->eager_max, BW_EAGER_LIMIT);
	sim_default_u32(&spec->bulk_max, 1u << 20);
	sim_default_u32(&spec->depth, 1);
}

/* With this chance a value up to most, small ones as likely as large ones; else 0. */
static uint64_t sim_maybe(struct sim_rng *r, uint32_t percent, uint64_t most)
{
	return sim_below(r, 100) < percent ? sim_scale(r, most / 128 + 1, most) : 0;
}

static void sim_draw_wire(struct sim_rng *r, struct sim_wire *w)
{
	static const uint64_t rates[] = {0, 0, GBIT / 10, GBIT, 10 * GBIT, 100 * GBIT};
	static const uint32_t mtus[] = {576, 1280, 1500, 1500, 3498, 4000, 9000, 9000, 16384};

	w->rate_bps = rates[sim_below(r, 6)];
	w->delay_ns = sim_scale(r, 500, 2 * BW_MS);
	w->jitter_ns = sim_maybe(r, 30, BW_MS);
	if (w->rate_bps) {
		w->queue_bytes = (uint32_t)sim_scale(r, 30000, 2000000);
		w->mark_bytes = (uint32_t)sim_maybe(r, 30, w->queue_bytes);
	}
	w->loss_ppm = (uint32_t)sim_maybe(r, 60, 100000);
	w->burst_ppm = (uint32_t)sim_maybe(r, 20, 5000);
	w->burst_end_ppm = (uint32_t)sim_scale(r, 20000, 500000);
	w->dup_ppm = (uint32_t)sim_maybe(r, 30, 200000);
	w->reorder_ppm = (uint32_t)sim_maybe(r, 30, 500000);
	w->reorder_ns = sim_scale(r, 1000, 5 * BW_MS);
	w->corrupt_ppm = (uint32_t)sim_maybe(r, 30, 50000);
	w->truncate_ppm = (uint32_t)sim_maybe(r, 20, 20000);
	w->garbage_ppm = (uint32_t)sim_maybe(r, 20, 20000);
	w->mtu = mtus[sim_below(r, 9)];
	if (w->mtu > 1500 && !sim_below(r, 6))
		w->hole = (uint32_t)sim_between(r, 1300, w->mtu);
}

static void sim_draw_trouble(struct sim_rng *r, struct sim_spec *spec)
{
	spec->dead_ns = sim_scale(r, 200 * BW_MS, 60 * BW_S);
	if (!sim_below(r, 4))
		spec->restart_every_ns = sim_scale(r, 5 * BW_MS, BW_S);
	spec->restart_for_ns = sim_scale(r, BW_MS, BW_S);
	if (!sim_below(r, 5))
		spec->pause_every_ns = sim_scale(r, 5 * BW_MS, BW_S);
	spec->pause_for_ns = sim_scale(r, BW_MS, 10 * BW_S);
	if (!sim_below(r, 5))
		spec->cut_every_ns = sim_scale(r, 20 * BW_MS, BW_S);
	spec->cut_for_ns = sim_scale(r, BW_MS, 5 * BW_S);
	if (spec->planes > 1 && !sim_below(r, 2))
		spec->path_every_ns = sim_scale(r, 5 * BW_MS, BW_S);
	spec->path_for_ns = sim_scale(r, BW_MS, 10 * BW_S);
}

static void sim_draw_host(struct sim_rng *r, struct sim_spec *spec)
{
	if (!sim_below(r, 3))
		spec->rx_cost_ns = sim_scale(r, 100, 20 * BW_US);
	spec->ring = (uint32_t)sim_scale(r, 16, 4096);
	if (!sim_below(r, 5))
		spec->clock_ns = sim_scale(r, 100, 10 * BW_MS);
	spec->no_buffer_ppm = (uint32_t)sim_maybe(r, 20, 100000);
	if (!sim_below(r, 5))
		spec->no_memory_ns = sim_scale(r, BW_US, 100 * BW_MS);
	spec->unsent_ppm = (uint32_t)sim_maybe(r, 20, 50000);
	spec->scatter = sim_below(r, 2);
	spec->rx_budget = (uint32_t)sim_scale(r, 16384, 16u << 20);
	spec->charge_min = sim_below(r, 2) ? (uint32_t)sim_scale(r, 1, 16384) : 0;
	if (!sim_below(r, 3))
		spec->ack_delay_ns = sim_scale(r, 1000, 10 * BW_MS);
}

/* From a sequence of its own: what is drawn otherwise stays what it is. Where hosts have several
 * planes ways are cut more often, and mostly nothing else happens that excuses a long wait. */
static void sim_draw_severed(struct sim_spec *spec, uint64_t seed)
{
	struct sim_rng rng = {.state = sim_mix(seed ^ SIM_DRAW_SEVERED)}, *r = &rng;
	uint32_t i;

	if (sim_below(r, 20) >= (spec->planes > 1 ? 8 : 1))
		return;
	spec->sever_every_ns = sim_scale(r, BW_MS, 500 * BW_MS);
	spec->sever_all = spec->planes == 1 || sim_below(r, 2);
	if (!sim_below(r, 4))
		return;
	spec->restart_every_ns = spec->pause_every_ns = 0;
	spec->cut_every_ns = spec->path_every_ns = 0;
	for (i = 0; i < spec->planes; i++)
		spec->wire[i].burst_ppm = 0;
}

/* Does anything happen that makes an operation wait for as long as that lasts? See prompt.c. */
static bool sim_draw_prompt(const struct sim_spec *spec)
{
	bool prompt = !spec->restart_every_ns && !spec->pause_every_ns && !spec->cut_every_ns &&
		      !spec->path_every_ns;
	uint32_t i;

	for (i = 0; i < spec->planes; i++)
		prompt &= !spec->wire[i].burst_ppm;
	return prompt;
}

void sim_scenario_draw(struct sim_spec *spec, uint64_t seed)
{
	struct sim_rng rng = {.state = sim_mix(~seed)}, *r = &rng;
	uint32_t i;

	memset(spec, 0, sizeof(*spec));
	spec->name = "random";
	spec->nodes = (uint32_t)(sim_below(r, 12) ? sim_between(r, 2, 6) : sim_between(r, 7, 17));
	spec->planes = (uint32_t)(sim_below(r, 3) ? 1 : sim_between(r, 2, SIM_PLANES));
	for (i = 0; i < spec->planes; i++)
		sim_draw_wire(r, &spec->wire[i]);
	spec->uneven = sim_below(r, 2);
	spec->direct = seed % 2;
	spec->singly = seed % 8 == 6;
	sim_draw_host(r, spec);
	sim_draw_trouble(r, spec);
	if (!spec->wire[0].corrupt_ppm && !sim_below(r, 8)) {
		spec->no_checksum = true;
		for (i = 0; i < spec->planes; i++)
			spec->wire[i].corrupt_ppm = 0;
	}
	spec->work_ns = 20 * BW_S;
	spec->work_frames = sim_scale(r, 2000, 60000);
	spec->gap_ns = sim_scale(r, BW_US, 2 * BW_MS);
	spec->pending = (uint32_t)sim_scale(r, 1, 400);
	spec->eager_max = (uint32_t)sim_scale(r, 16, BW_EAGER_LIMIT);
	spec->bulk_max = (uint32_t)sim_scale(r, 1000, 4u << 20);
	spec->quiet = !sim_below(r, 4);
	if (!sim_below(r, 12)) {
		spec->work = SIM_WORK_INCAST;
		spec->stream_len = (uint32_t)sim_scale(r, 8, 200000);
		spec->depth = (uint32_t)sim_scale(r, 1, 64);
	}
	spec->stripe = spec->planes > 1 && sim_below(r, 4);
	spec->line = spec->stripe && (seed >> 1) % 2;
	spec->longs = (seed >> 2) % 2;
	spec->keyed = (seed >> 4) % 2;
	spec->encrypted = spec->keyed && seed % 2;
	spec->ack_soon_ns = (seed >> 3) % 2 ? 20 * BW_US : 0;
	spec->piece = (seed >> 5) % 2 ? 1 + (seed >> 6) % 5 : 0;
	if (!sim_below(r, 4))
		spec->replay_every_ns = sim_scale(r, 100 * BW_US, BW_S);
	if (!sim_below(r, 6))
		spec->move_every_ns = sim_scale(r, 10 * BW_MS, 5 * BW_S);
	sim_draw_severed(spec, seed);
	spec->prompt = sim_draw_prompt(spec);
	sim_scenario_defaults(spec);
}

void sim_scenario_print(const struct sim_spec *spec, char *text, size_t size)
{
	const struct sim_wire *w = &spec->wire[0];

	snprintf(text, size,
		 "%s: %u nodes, %u planes, %llu Mbit/s, %llu us, mtu %u, loss %u ppm, dead %llu ms",
		 spec->name, spec->nodes, spec->planes, (unsigned long long)(w->rate_bps / 1000000),
		 (unsigned long long)(w->delay_ns / 1000), w->mtu, w->loss_ppm,
		 (unsigned long long)(spec->dead_ns / BW_MS));
}
