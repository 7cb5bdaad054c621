/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prints how many thousand times per second this machine's time stamp counter counts. An emulated
 * processor shows its guest this counter; a kernel that boots on a busy machine and measures it
 * against emulated timers may be wrong tenfold, so guests are told (tsc_early_khz=).
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define APART_NS 50000000 /* both readings within 100 ns: wrong by 4 millionths */
#define TRIES	 100

struct reading {
	uint64_t ns, ticks;
};

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Clock and counter at the same time: the try that was interrupted least. */
static struct reading read_both(void)
{
	uint64_t least = UINT64_MAX;
	struct reading best = {0};

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = clock_ns(), ticks = __rdtsc(), after = clock_ns();

		if (after - before < least) {
			least = after - before;
			best = (struct reading){before + least / 2, ticks};
		}
	}
	return best;
}

int main(void)
{
	const struct timespec pause = {.tv_nsec = APART_NS};
	struct reading from, to;

	from = read_both();
	nanosleep(&pause, NULL);
	to = read_both();
	printf("%.0f\n", (double)(to.ticks - from.ticks) * 1e6 / (double)(to.ns - from.ns));
	return 0;
}
