/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The evidence of crowding: /proc/thread-self/schedstat and the control group's cpu.stat. A thread
 * that no longer spins gathers no more evidence, so a judgement holds for a time that doubles each
 * time it proves right.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crowd.h"
#include "rng.h"

#define BW_CROWD_SHARE	  8 /* evidence: more than 1/8 of the time spent waiting for a core */
#define BW_CROWD_SAMPLES  2 /* in a row with evidence: crowded */
#define BW_CROWD_SPREAD	  3 /* the same where moving may help: cores are looked at for 20 ms */
#define BW_CROWD_TRIES	  8 /* to move to a core that was idle, before that */
#define BW_CROWD_HOLD_MIN (100 * 1000000ull)
#define BW_CROWD_HOLD_MAX (8 * 1000000000ull)

static size_t bw_crowd_read(const char *path, char *text, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, n - 1);

	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = 0;
	return got > 0 ? (size_t)got : 0;
}

/* Time that this thread was runnable but had no core, in nanoseconds. */
static uint64_t bw_crowd_delay(void)
{
	char text[128];
	unsigned long long ran, waited;

	bw_crowd_read("/proc/thread-self/schedstat", text, sizeof(text));
	return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? waited : 0;
}

static uint64_t bw_crowd_throttled(const struct bw_crowd *c)
{
	char text[1024];
	const char *at;

	if (!c->cpu_stat[0] || !bw_crowd_read(c->cpu_stat, text, sizeof(text)))
		return 0;
	at = strstr(text, "nr_throttled ");
	return at ? strtoull(at + 13, NULL, 10) : 0;
}

/* The cores of a quota file: version 2 has "max 100000" or "50000 100000", version 1 the quota
 * alone
 * (-1: none), its period in a file of its own. 0: no quota. */
static double bw_crowd_quota(const char *dir, bool v2)
{
	char path[400], text[64];
	double quota, period;

	snprintf(path, sizeof(path), "%s/%s", dir, v2 ? "cpu.max" : "cpu.cfs_quota_us");
	if (!bw_crowd_read(path, text, sizeof(text)))
		return 0;
	if (v2)
		return sscanf(text, "%lf %lf", &quota, &period) == 2 ? quota / period : 0;
	quota = atof(text);
	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
	if (quota <= 0 || !bw_crowd_read(path, text, sizeof(text)) || atof(text) <= 0)
		return 0;
	return quota / atof(text);
}

/* Walk from our control group up to the root: the first group with a quota, its cores, or 0. */
static double bw_crowd_group(struct bw_crowd *c, const char *root, const char *group, bool v2)
{
	char dir[300];

	snprintf(dir, sizeof(dir), "%s%.200s", root, group);
	while (strlen(dir) >= strlen(root)) {
		double cores = bw_crowd_quota(dir, v2);

		if (cores > 0) {
			snprintf(c->cpu_stat, sizeof(c->cpu_stat), "%.240s/cpu.stat", dir);
			return cores;
		}
		char *slash = strrchr(dir, '/');

		if (!slash)
			break;
		*slash = 0;
	}
	return 0;
}

static double bw_crowd_quota_cores(struct bw_crowd *c)
{
	char line[256], group[200];
	double cores = 0;
	FILE *f = fopen("/proc/self/cgroup", "re");

	while (f && cores <= 0 && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "0::%199s", group) == 1)
			cores = bw_crowd_group(c, "/sys/fs/cgroup", group, true);
		else if (sscanf(line, "%*d:cpu:%199s", group) == 1 ||
			 sscanf(line, "%*d:cpu,cpuacct:%199s", group) == 1 ||
			 sscanf(line, "%*d:cpuacct,cpu:%199s", group) == 1)
			cores = bw_crowd_group(c, "/sys/fs/cgroup/cpu", group, false);
	}
	if (f)
		fclose(f);
	return cores;
}

double bw_crowd_cores(struct bw_crowd *c)
{
	cpu_set_t set;
	double cores = 1, quota = bw_crowd_quota_cores(c);

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		cores = CPU_COUNT(&set);
	return quota > 0 && quota < cores ? quota : cores;
}

static void bw_crowd_judge(struct bw_crowd *c, bool crowded, uint64_t now)
{
	if (crowded) {
		c->until = now + c->hold_ns;
		if (c->hold_ns < BW_CROWD_HOLD_MAX)
			c->hold_ns *= 2;
	} else if (!c->crowded && now > c->until + 2 * c->hold_ns) {
		c->hold_ns = BW_CROWD_HOLD_MIN;
	}
	c->crowded = crowded;
}

void bw_crowd_init(struct bw_crowd *c, uint64_t now)
{
	memset(c, 0, sizeof(*c));
	c->hold_ns = BW_CROWD_HOLD_MIN;
	/* With a quota below one core do not even begin to spin. */
	bw_crowd_judge(c, bw_crowd_cores(c) < 1, now);
}

/*
 * A core has been idle while this thread waited for its own: rather than to sleep, move there. As
 * the other thread that spins on this core sees the same, and each may ask twice (libbeowire and
 * the library for socket programs do), chance decides whether this one goes. False: none was idle,
 * or it did not help.
 */
static bool bw_crowd_spread(struct bw_crowd *c, uint64_t now)
{
	struct sim_rng rng = {.state = now ^ (uint64_t)c->thread << 32};

	if (c->tries == BW_CROWD_TRIES || !bw_cores_other(&c->cores, now, !sim_below(&rng, 4)))
		return false;
	c->tries++;
	return true;
}

void bw_crowd_sample(struct bw_crowd *c, uint64_t now)
{
	uint32_t samples = c->spread ? BW_CROWD_SPREAD : BW_CROWD_SAMPLES;
	uint64_t elapsed = now - c->sampled_at;

	if (elapsed < BW_CROWD_SAMPLE_NS)
		return;
	uint64_t delay = bw_crowd_delay(), throttled = bw_crowd_throttled(c);
	int thread = (int)syscall(SYS_gettid);
	bool fresh = !c->sampled_at || thread != c->thread || elapsed > 10 * BW_CROWD_SAMPLE_NS;
	bool crowded = !fresh && ((delay - c->delay_ns) > elapsed / BW_CROWD_SHARE ||
				  throttled > c->throttled);

	c->thread = thread;
	c->sampled_at = now;
	c->delay_ns = delay;
	c->evidence = crowded ? c->evidence + 1 : 0;
	bool quota = throttled > c->throttled; /* on another core it is the same */

	c->throttled = throttled;
	if (c->crowded) {
		if (now >= c->until) {
			c->crowded = false;
			c->evidence = 0;
		}
		return;
	}
	if (!crowded)
		c->tries = 0;
	if (c->evidence == 1 && c->spread)
		bw_cores_read(&c->cores, now);
	if (c->evidence == samples && c->spread && !quota && bw_crowd_spread(c, now))
		c->evidence = 1;
	bw_crowd_judge(c, c->evidence >= samples, now);
	if (c->crowded)
		c->tries = 0;
}
