/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measurements over a distance: nodes of a gigabit each behind a router whose line is narrower and
 * long. How soon messages with pauses between them arrive, what random losses cost, and what a
 * CUBIC flow keeps of a line that it shares.
 */
#include "report.h"

#define DISTANCE_WARM (5 * BW_S)
#define DISTANCE_MTU  1472 /* of a frame in UDP on Ethernet */
#define DISTANCE_MSS  1448

/* Node 0 streams to node 1; node 2 is there for a TCP flow to node 1. One way takes `delay`. */
static struct sim_spec distance_spec(uint64_t rate, uint64_t delay, uint32_t queue)
{
	struct sim_spec spec = report_spec(3, rate, DISTANCE_MTU);

	spec.wire[0].delay_ns = delay;
	spec.wire[0].queue_bytes = queue;
	spec.depth = 16;
	return spec;
}

/* The line is between router and node 1; what the senders' own links take is faster. */
static struct sim *distance_sim(const struct sim_spec *spec, uint64_t seed)
{
	struct sim *s = sim_new(spec, &bw_reliable, seed);
	uint64_t rate = spec->wire[0].rate_bps < GBIT ? GBIT : 10 * GBIT;

	s->nodes[0].out[0].wire.rate_bps = s->nodes[2].out[0].wire.rate_bps = rate;
	s->nodes[1].out[0].wire.rate_bps = rate;
	s->nodes[0].in[0].wire.rate_bps = s->nodes[2].in[0].wire.rate_bps = rate;
	return s;
}

/* One message after the other, each asked for when the last has come. */
static void distance_messages(struct report *r, uint64_t delay, uint32_t len)
{
	struct sim_spec spec = distance_spec(GBIT / 10, delay, 125000);
	double ideal = (double)len * 80 / 1e6 + 4 * (double)delay / 1e6, ms = 0;
	uint64_t seed, lost = 0;

	spec.depth = 1;
	spec.stream_len = len;
	for (seed = 1; seed <= REPORT_SEEDS; seed++) {
		struct sim *s = distance_sim(&spec, seed);
		uint64_t before;

		sim_begin(s);
		sim_run_until(s, DISTANCE_WARM);
		before = report_bytes(s, 1);
		lost -= s->fate[SIM_FATE_QUEUE];
		sim_run_until(s, DISTANCE_WARM + 20 * BW_S);
		lost += s->fate[SIM_FATE_QUEUE];
		ms += 20e3 * len / (double)(report_bytes(s, 1) - before);
		sim_free(s);
	}
	report_row(r, "what=messages bytes=%u delay_ms=%.0f each_ms=%.1f to_ideal=%.2f lost=%llu",
		   len, (double)delay / 1e6, ms / REPORT_SEEDS, ms / REPORT_SEEDS / ideal,
		   (unsigned long long)lost);
}

/* Payload of Beowire and of TCP, as parts of the line's rate. */
struct distance_share {
	double ours, theirs;
};

static struct distance_share distance_run(const struct sim_spec *spec, bool ours, bool theirs,
					  uint64_t seed, uint64_t from, uint64_t ns)
{
	struct sim *s = distance_sim(spec, seed);
	struct sim_tcp *t = theirs ? sim_tcp_new(s, 2, 1, DISTANCE_MSS, 0) : NULL;
	double bits = (double)spec->wire[0].rate_bps * (double)ns / 1e9;
	struct distance_share share = {0};
	uint64_t before, tcp_before;

	s->working = ours;
	sim_begin(s);
	sim_run_until(s, from);
	before = report_bytes(s, 1);
	tcp_before = t ? sim_tcp_bytes(t) : 0;
	sim_run_until(s, from + ns);
	share.ours = (double)(report_bytes(s, 1) - before) * 8 / bits;
	share.theirs = t ? (double)(sim_tcp_bytes(t) - tcp_before) * 8 / bits : 0;
	sim_free(s);
	return share;
}

static void distance_loss(struct report *r, uint32_t ppm)
{
	struct sim_spec spec = distance_spec(GBIT / 10, 25 * BW_MS, 625000);
	double ours = 0, theirs = 0;
	uint64_t seed;

	spec.wire[0].loss_ppm = ppm;
	for (seed = 1; seed <= REPORT_SEEDS; seed++) {
		ours += distance_run(&spec, true, false, seed, DISTANCE_WARM, 20 * BW_S).ours;
		theirs += distance_run(&spec, false, true, seed, DISTANCE_WARM, 20 * BW_S).theirs;
	}
	report_row(r, "what=random_loss loss=%.4f beowire=%.3f cubic=%.3f ratio=%.2f", ppm / 1e6,
		   ours / REPORT_SEEDS, theirs / REPORT_SEEDS, theirs > 0 ? ours / theirs : 0);
}

static void distance_beside(struct report *r, uint64_t rate, uint64_t delay, uint32_t queue)
{
	struct sim_spec spec = distance_spec(rate, delay, queue);
	double ours = 0, theirs = 0;
	uint64_t seed;

	for (seed = 1; seed <= REPORT_SEEDS; seed++) {
		struct distance_share one =
			distance_run(&spec, true, true, seed, 3 * DISTANCE_WARM, 40 * BW_S);

		ours += one.ours / REPORT_SEEDS;
		theirs += one.theirs / REPORT_SEEDS;
	}
	report_row(
		r, "what=beside_cubic mbit=%llu round_trip_ms=%.0f queue=%u beowire=%.3f tcp=%.3f",
		(unsigned long long)(rate / 1000000), 2 * (double)delay / 1e6, queue, ours, theirs);
}

void report_distance(struct report *r)
{
	static const uint64_t delays[] = {BW_MS / 2, 25 * BW_MS};
	static const uint32_t lengths[] = {100000, 1u << 20, 4u << 20},
			      losses[] = {0, 100, 1000, 10000};
	uint64_t rate, product;
	uint32_t i, d;

	for (i = 0; i < 3; i++)
		distance_messages(r, 25 * BW_MS, lengths[i]);
	for (i = 0; i < 4; i++)
		distance_loss(r, losses[i]);
	for (rate = GBIT / 10; rate <= GBIT; rate *= 10) {
		for (d = 0; d < 2; d++) {
			product = rate / 8 * 2 * delays[d] / BW_S;
			distance_beside(r, rate, delays[d], (uint32_t)(rate / 8 / 100));
			if (product > rate / 8 / 100)
				distance_beside(r, rate, delays[d], (uint32_t)product);
		}
	}
}
