/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measurements of paths that carry data together: what two give compared with each alone, and how
 * long nothing arrives when one of them is cut.
 */
#include "report.h"

#define STRIPE_NS    (2 * BW_S)
#define STRIPE_STEP  BW_MS	    /* in which the receiver is looked at while a path is cut */
#define STRIPE_CUT   (1 * BW_S)	    /* for so long a path is cut */
#define STRIPE_KNOWN 16		    /* paths that are measured alone */
#define STRIPE_BACK  (1500 * BW_MS) /* after its return, until it is measured */

static struct sim_spec stripe_spec(uint64_t first, uint64_t second, uint32_t mtu)
{
	struct sim_spec spec = report_spec(2, first, mtu);

	spec.planes = 2;
	spec.stripe = true;
	spec.wire[1] = spec.wire[0];
	spec.wire[1].rate_bps = second;
	/* A host that cannot send by one link stops sending: that is not to be measured here. */
	spec.driver_bytes = 8u << 20;
	return spec;
}

/* The same with one of its paths only. */
static struct sim_spec stripe_alone(const struct sim_spec *both, uint32_t plane)
{
	struct sim_spec spec = *both;

	spec.planes = 1;
	spec.stripe = false;
	spec.wire[0] = both->wire[plane];
	return spec;
}

/* Mbit/s of payload. */
static double stripe_rate(const struct report *r, const struct sim_spec *spec)
{
	double sum = 0;
	uint64_t seed;

	for (seed = r->first; seed <= r->last; seed++) {
		struct sim *s = sim_new(spec, &bw_reliable, seed);
		uint64_t before;

		sim_begin(s);
		sim_run_until(s, REPORT_WARM);
		before = report_bytes(s, 1);
		sim_run_until(s, REPORT_WARM + STRIPE_NS);
		sum += (double)(report_bytes(s, 1) - before) * 8e3 / (double)STRIPE_NS;
		sim_free(s);
	}
	return sum / (double)(r->last - r->first + 1);
}

/* What one of the paths gives alone. Several cases have such a path: it is measured once. */
static double stripe_rate_alone(const struct report *r, const struct sim_spec *both, uint32_t plane)
{
	static struct {
		struct sim_spec spec;
		double rate;
	} known[STRIPE_KNOWN];
	struct sim_spec spec = stripe_alone(both, plane);
	uint32_t i;

	for (i = 0; i < STRIPE_KNOWN && known[i].rate; i++)
		if (!memcmp(&known[i].spec.wire[0], &spec.wire[0], sizeof(spec.wire[0])) &&
		    known[i].spec.depth == spec.depth)
			return known[i].rate;
	if (i == STRIPE_KNOWN)
		return stripe_rate(r, &spec);
	known[i].spec = spec;
	known[i].rate = stripe_rate(r, &spec);
	return known[i].rate;
}

static void stripe_row(struct report *r, const char *name, const struct sim_spec *both)
{
	double a = stripe_rate_alone(r, both, 0), b = stripe_rate_alone(r, both, 1);
	double sum = stripe_rate(r, both);

	report_row(r,
		   "what=stripe case=%s mtu=%u bytes=%u in_flight=%u first_mbit=%.1f "
		   "second_mbit=%.1f both_mbit=%.1f share=%.3f",
		   name, both->wire[0].mtu, both->stream_len, both->depth, a, b, sum,
		   sum / (a + b));
}

/* A path dies in both directions, or comes back. */
static void stripe_cut(struct sim *s, uint32_t plane, bool dead)
{
	uint32_t i;

	for (i = 0; i < s->spec.nodes; i++)
		s->nodes[i].out[plane].dead = s->nodes[i].in[plane].dead = dead;
}

/* Run to `at`; the longest time in which nothing arrived, in ns. */
static uint64_t stripe_watch(struct sim *s, uint64_t at)
{
	uint64_t bytes = report_bytes(s, 1), since = s->now, worst = 0;

	while (s->now < at) {
		sim_run_until(s, s->now + STRIPE_STEP);
		if (report_bytes(s, 1) != bytes)
			since = s->now;
		bytes = report_bytes(s, 1);
		worst = s->now - since > worst ? s->now - since : worst;
	}
	return worst;
}

static double stripe_mbit(const struct sim *s, uint64_t before, uint64_t ns)
{
	return (double)(report_bytes(s, 1) - before) * 8e3 / (double)ns;
}

static void stripe_row_cut(struct report *r, const char *name, const struct sim_spec *both,
			   uint32_t plane)
{
	struct sim *s = sim_new(both, &bw_reliable, r->first);
	uint64_t before, stall;
	double whole, cut, back;

	sim_begin(s);
	sim_run_until(s, REPORT_WARM);
	before = report_bytes(s, 1);
	sim_run_until(s, s->now + BW_S);
	whole = stripe_mbit(s, before, BW_S);
	before = report_bytes(s, 1);
	stripe_cut(s, plane, true);
	stall = stripe_watch(s, s->now + STRIPE_CUT);
	cut = stripe_mbit(s, before, STRIPE_CUT);
	stripe_cut(s, plane, false);
	sim_run_until(s, s->now + STRIPE_BACK);
	before = report_bytes(s, 1);
	sim_run_until(s, s->now + BW_S);
	back = stripe_mbit(s, before, BW_S);
	report_row(r,
		   "what=stripe case=%s mtu=%u cut=%u before_mbit=%.1f cut_mbit=%.1f "
		   "after_mbit=%.1f stall_ms=%.0f",
		   name, both->wire[0].mtu, plane, whole, cut, back, (double)stall / (double)BW_MS);
	sim_free(s);
}

void report_stripe(struct report *r)
{
	static const uint32_t depths[] = {1, 4};
	struct sim_spec spec;
	uint32_t mtu, d;

	for (mtu = 1500; mtu <= 9000; mtu += 7500) {
		for (d = 0; d < 2; d++) {
			spec = stripe_spec(GBIT, GBIT, mtu);
			spec.depth = depths[d];
			stripe_row(r, "equal", &spec);
			spec = stripe_spec(GBIT, GBIT / 10, mtu);
			spec.depth = depths[d];
			stripe_row(r, "unequal", &spec);
		}
		spec = stripe_spec(GBIT, GBIT, mtu);
		spec.wire[1].loss_ppm = 50000;
		stripe_row(r, "lossy", &spec);
		spec = stripe_spec(GBIT, GBIT, mtu);
		spec.wire[1].delay_ns *= 10;
		stripe_row(r, "detour", &spec);
		spec = stripe_spec(GBIT, GBIT, mtu);
		stripe_row_cut(r, "equal", &spec, 0);
		stripe_row_cut(r, "equal", &spec, 1);
		spec = stripe_spec(GBIT, GBIT / 10, mtu);
		stripe_row_cut(r, "unequal", &spec, 0);
		stripe_row_cut(r, "unequal", &spec, 1);
	}
}
