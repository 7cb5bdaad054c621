/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The simulator's only source of chance, and chance elsewhere that nobody is harmed by guessing:
 * SplitMix64 (Steele, Lea, Flood 2014), whose whole state is one number, so that a run repeats from
 * its seed.
 */
#ifndef SIM_RNG_H
#define SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct sim_rng {
	uint64_t state;
};

static inline uint64_t sim_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ x >> 27) * 0x94D049BB133111EBull;
	return x ^ x >> 31;
}

static inline uint64_t sim_random(struct sim_rng *r)
{
	r->state += 0x9E3779B97F4A7C15ull;
	return sim_mix(r->state);
}

/* Uniform in [0, n); n >= 1. The bias of the high product is far below what any run could show. */
static inline uint64_t sim_below(struct sim_rng *r, uint64_t n)
{
	return (uint64_t)((unsigned __int128)sim_random(r) * n >> 64);
}

/* Uniform in [lo, hi]. */
static inline uint64_t sim_between(struct sim_rng *r, uint64_t lo, uint64_t hi)
{
	return lo + sim_below(r, hi - lo + 1);
}

/* True in `ppm` of a million cases. Costs nothing when ppm is 0. */
static inline bool sim_chance(struct sim_rng *r, uint32_t ppm)
{
	return ppm && sim_below(r, 1000000) < ppm;
}

/* Uniform on a logarithmic scale in [lo, hi]: small values are as likely as large ones; lo >= 1. */
static inline uint64_t sim_scale(struct sim_rng *r, uint64_t lo, uint64_t hi)
{
	uint32_t doublings = 63 - (uint32_t)__builtin_clzll(hi / lo);
	uint64_t from = lo << sim_below(r, doublings + 1);

	return sim_between(r, from, 2 * from - 1 < hi ? 2 * from - 1 : hi);
}

#endif
