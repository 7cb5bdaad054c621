/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A distribution of sizes (see load_sizes.h).
 */
#include "load_sizes.h"

#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void point_read(struct sizes *sizes, const char *option, char *item)
{
	char *bytes = strchr(item, ':');
	size_t i = sizes->count++;

	if (!bytes)
		ex_quit(EX_EXIT_USAGE, "%s: '%s' is no SHARE:BYTES", option, item);
	*bytes++ = '\0';
	sizes->share[i] = ex_parse_real(option, item, 0, 1);
	sizes->bytes[i] = ex_parse_integer(option, bytes, 1, SIZES_BYTES_MAX);
	if (i > 0 &&
	    (sizes->share[i] < sizes->share[i - 1] || sizes->bytes[i] < sizes->bytes[i - 1]))
		ex_quit(EX_EXIT_USAGE, "%s: shares and sizes must rise", option);
}

void sizes_read(struct sizes *sizes, const char *option, const char *text)
{
	char *copy = strdup(text), *rest = copy, *item;

	*sizes = (struct sizes){0};
	while ((item = strsep(&rest, ","))) {
		if (sizes->count == SIZES_POINTS_MAX)
			ex_quit(EX_EXIT_USAGE, "%s: more than %d points", option, SIZES_POINTS_MAX);
		point_read(sizes, option, item);
	}
	free(copy);
	if (sizes->share[0] > 0 || sizes->share[sizes->count - 1] < 1)
		ex_quit(EX_EXIT_USAGE, "%s: shares must go from 0 to 1", option);
}

uint64_t sizes_quantile(const struct sizes *sizes, double at)
{
	size_t i = 0;
	double step, part;

	while (i + 1 < sizes->count && sizes->share[i + 1] < at)
		i++;
	if (i + 1 == sizes->count)
		return sizes->bytes[i];
	step = sizes->share[i + 1] - sizes->share[i];
	part = step > 0 ? (at - sizes->share[i]) / step : 1;
	return sizes->bytes[i] +
	       (uint64_t)llround(part * (double)(sizes->bytes[i + 1] - sizes->bytes[i]));
}
