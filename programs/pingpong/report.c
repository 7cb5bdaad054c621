/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What beowire-pingpong tells: a table for people, JSON for machines. The first transport is
 * compared with each other one, round by round.
 */
#include "pingpong.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SYSTEM_CALLS	   100 /* timed together */
#define SYSTEM_CALL_ROUNDS 21

const char *const pp_mode_name[] = {"latency", "bandwidth", "rate", "send", "receive"};
const char *const pp_wait_name[] = {"spin", "block", "adaptive"};

static const char *const unit[] = {"us one way", "GB/s", "million/s", "us", "us"};
static const double scale[] = {1e3, 1e9, 1e6, 1e3, 1e3};

/* Text in JSON's quotes. */
static void quoted(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		if ((unsigned char)*text >= ' ')
			fputc(*text, f);
	}
	fputc('"', f);
}

/* What entering and leaving the kernel costs: the median of calls that do nothing there. */
static double system_call_ns(void)
{
	uint64_t time[SYSTEM_CALL_ROUNDS];

	for (int k = 0; k < SYSTEM_CALL_ROUNDS; k++) {
		uint64_t begin = pp_now();

		for (int i = 0; i < SYSTEM_CALLS; i++)
			syscall(SYS_getppid);
		time[k] = pp_now() - begin;
	}
	return (double)pp_median_u64(time, SYSTEM_CALL_ROUNDS) / SYSTEM_CALLS;
}

static void json_begin(FILE *f)
{
	fprintf(f, "{\"wait\": \"%s\", \"rounds\": %lu, \"iterations\": %lu, \"window\": %lu,\n",
		pp_wait_name[pp_opt.wait], pp_opt.rounds, pp_opt.iterations, pp_opt.window);
	fprintf(f, " \"system_call_ns\": %.1f,\n", system_call_ns());
	fprintf(f, " \"transports\": {");
	for (int i = 0, more = 0; i < PP_CARRIERS; i++) {
		char text[PP_TEXT] = "";

		if (!pp_opt.chosen[i])
			continue;
		pp_carriers[i]->describe(pp_state[i], text);
		fprintf(f, "%s\"%s\": ", more++ ? ", " : "", pp_carriers[i]->name);
		quoted(f, text);
	}
	fprintf(f, "},\n \"results\": [");
}

/* Open the report; describing the transports is left until they have carried something. */
int pp_report_begin(struct pp_report *r)
{
	*r = (struct pp_report){0};
	if (!pp_opt.json)
		return 0;
	r->json = strcmp(pp_opt.json, "-") == 0 ? stdout : fopen(pp_opt.json, "we");
	return r->json ? 0 : pp_fail("cannot write %s: %s", pp_opt.json, strerror(errno));
}

static void json_rounds(FILE *f, const struct pp_figures *x)
{
	fprintf(f, "\"rounds\": [");
	for (size_t i = 0; i < x->rounds; i++)
		fprintf(f, "%s%.1f", i ? ", " : "", x->round[i]);
	fprintf(f, "]");
}

static void json_result(FILE *f, enum pp_mode mode, size_t size, int i, const struct pp_figures *x)
{
	static const struct {
		const char *name;
		double share;
	} percentile[] = {{"min", 0},	 {"p10", 0.1},	  {"p50", 0.5}, {"p90", 0.9},
			  {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};

	fprintf(f, "  {\"mode\": \"%s\", \"size\": %zu, \"transport\": \"%s\", ",
		pp_mode_name[mode], size, pp_carriers[i]->name);
	if (pp_timed(mode))
		for (size_t k = 0; k < sizeof(percentile) / sizeof(percentile[0]); k++)
			fprintf(f, "\"%s_ns\": %llu, ", percentile[k].name,
				(unsigned long long)pp_percentile(x, percentile[k].share));
	fprintf(f, "\"%s\": %.1f, ",
		pp_timed(mode) ? "median_ns" : (mode == PP_RATE ? "messages_per_s" : "bytes_per_s"),
		pp_median(x->round, x->rounds));
	json_rounds(f, x);
}

static int first_chosen(void)
{
	int i = 0;

	while (!pp_opt.chosen[i])
		i++;
	return i;
}

static void table_row(enum pp_mode mode, size_t size, int i, const struct pp_figures *x)
{
	printf("%-9s %9zu %-8s %10.3f %-10s", pp_mode_name[mode], size, pp_carriers[i]->name,
	       pp_median(x->round, x->rounds) / scale[mode], unit[mode]);
	if (pp_timed(mode))
		printf("  p10 %.2f  p90 %.2f  p99 %.2f", (double)pp_percentile(x, 0.1) / 1e3,
		       (double)pp_percentile(x, 0.9) / 1e3, (double)pp_percentile(x, 0.99) / 1e3);
}

/* Add the result of one mode and size: a row and an object for each transport. */
void pp_report_add(struct pp_report *r, enum pp_mode mode, size_t size,
		   const struct pp_figures f[PP_CARRIERS])
{
	FILE *table = r->json == stdout ? NULL : stdout;
	int first = first_chosen();

	if (r->json && !r->more)
		json_begin(r->json);
	for (int i = 0; i < PP_CARRIERS; i++) {
		struct pp_interval x = {0};

		if (!pp_opt.chosen[i])
			continue;
		if (i != first)
			x = pp_ratio(f[first].round, f[i].round, f[i].rounds);
		if (table) {
			table_row(mode, size, i, &f[i]);
			if (i != first)
				printf("  %s / %s = %.3f (%.3f to %.3f)", pp_carriers[first]->name,
				       pp_carriers[i]->name, x.median, x.low, x.high);
			printf("\n");
		}
		if (!r->json)
			continue;
		fprintf(r->json, "%s\n", r->more ? "," : "");
		json_result(r->json, mode, size, i, &f[i]);
		if (i != first)
			fprintf(r->json,
				", \"ratio\": {\"of\": \"%s\", \"median\": %.4f, \"low\": %.4f, "
				"\"high\": %.4f}",
				pp_carriers[first]->name, x.median, x.low, x.high);
		fprintf(r->json, "}");
		r->more = true;
	}
	fflush(stdout);
}

int pp_report_end(struct pp_report *r)
{
	int error = 0;

	if (!r->json && !r->more)
		return 0;
	if (!r->more)
		json_begin(r->json);
	fprintf(r->json, "\n ]}\n");
	if (fflush(r->json) != 0 || ferror(r->json))
		error = pp_fail("cannot write %s: %s", pp_opt.json, strerror(errno));
	if (r->json != stdout && fclose(r->json) != 0 && error == 0)
		error = pp_fail("cannot write %s: %s", pp_opt.json, strerror(errno));
	return error;
}
