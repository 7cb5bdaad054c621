/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cores of the machine. See cores.h. */
#include "cores.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BW_CORES_TICK_MS 10	     /* what is told is rounded to */
#define BW_CORES_TEXT	 (48u << 10) /* of /proc/stat: its lines of cores come first */

void bw_cores_parse(struct bw_cores *c, const char *text, long ticks_per_s)
{
	const char *line = strchr(text, '\n'); /* the first one is the sum of all */
	unsigned long long idle, waiting;
	int core;

	c->n = 0;
	memset(c->idle, 0xFF, sizeof(c->idle));
	for (; line && !strncmp(line, "\ncpu", 4); line = strchr(line + 1, '\n')) {
		/* user, nice, system, idle, waiting for a disk; cores that are off are left out */
		if (sscanf(line, "\ncpu%d %*u %*u %*u %llu %llu", &core, &idle, &waiting) != 3)
			break;
		if (core < 0 || core >= BW_CORES_MAX)
			continue;
		c->idle[core] = (uint32_t)((idle + waiting) * 1000 / (unsigned long)ticks_per_s);
		c->n = core + 1;
	}
}

void bw_cores_read(struct bw_cores *c, uint64_t now)
{
	int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	char *text = malloc(BW_CORES_TEXT);
	ssize_t n = fd < 0 || !text ? -1 : read(fd, text, BW_CORES_TEXT - 1);

	c->at = 0;
	if (n > 0) {
		text[n] = 0;
		bw_cores_parse(c, text, sysconf(_SC_CLK_TCK));
		c->at = now;
	}
	free(text);
	if (fd >= 0)
		close(fd);
}

static bool bw_cores_near(unsigned int node, int core)
{
	char path[80];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpu%d", node, core);
	return access(path, F_OK) == 0;
}

/* Milliseconds; of a core that came meanwhile, or whose clock jumped, nothing is known: 0. */
static uint64_t bw_cores_idle_ms(const struct bw_cores *before, const struct bw_cores *after,
				 int core, uint64_t span_ms)
{
	uint64_t idle = (uint32_t)(after->idle[core] - before->idle[core]);

	return idle > 2 * span_ms + BW_CORES_TICK_MS ? 0 : idle;
}

int bw_cores_idle(const struct bw_cores *before, const struct bw_cores *after,
		  const bool allowed[BW_CORES_MAX], int own)
{
	uint64_t span_ms = (after->at - before->at) / 1000000, sum = 0, best = 0;
	int n = before->n < after->n ? before->n : after->n, found = own;
	unsigned int node = 0;

	if (!before->at || !after->at)
		return -1;
	getcpu(NULL, &node);
	for (int core = 0; core < n; core++) {
		uint64_t idle = bw_cores_idle_ms(before, after, core, span_ms);

		if (!allowed[core])
			continue;
		sum += idle;
		if (core == own || idle < span_ms / 4)
			continue;
		if (idle + span_ms / 4 <= best)
			continue;
		if (bw_cores_near(node, core))
			idle += span_ms / 4;
		if (idle <= best)
			continue;
		best = idle;
		found = core;
	}
	return sum + BW_CORES_TICK_MS >= span_ms - span_ms / 8 ? found : -1;
}

bool bw_cores_move(int core)
{
	cpu_set_t all, one;

	CPU_ZERO(&one);
	CPU_SET((unsigned int)core, &one);
	if (sched_getaffinity(0, sizeof(all), &all) || sched_setaffinity(0, sizeof(one), &one))
		return false;
	if (!sched_setaffinity(0, sizeof(all), &all))
		return true;
	/* The control group's cores are others now: the kernel takes those of all that it has. */
	memset(&all, 0xFF, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	return true;
}

bool bw_cores_other(struct bw_cores *before, uint64_t now, bool move)
{
	bool allowed[BW_CORES_MAX];
	struct bw_cores after;
	cpu_set_t set;
	int core, own;

	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < 2)
		return false;
	for (core = 0; core < BW_CORES_MAX; core++)
		allowed[core] = CPU_ISSET((unsigned int)core, &set);
	bw_cores_read(&after, now);
	own = sched_getcpu();
	core = bw_cores_idle(before, &after, allowed, own);
	*before = after;
	if (core < 0)
		return false;
	if (move && core != own)
		bw_cores_move(core);
	return true;
}
