/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is said of a link: JSON for machines, a few lines for people. */
#include <inttypes.h>
#include <stdio.h>

#include "link.h"

static void em_quoted(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		if ((unsigned char)*text >= ' ')
			fputc(*text, f);
		else
			fprintf(f, "\\u%04x", (unsigned char)*text);
	}
	fputc('"', f);
}

static double em_share(uint32_t share)
{
	return (double)share / EM_SHARE_ONE;
}

static void em_json_settings(FILE *f, const struct em_settings *s)
{
	fprintf(f,
		"{\"rate\": %" PRIu64 ", \"delay_ns\": %" PRIu64 ", \"jitter_ns\": %" PRIu64
		", \"loss\": %.9g, \"burst\": %.9g, \"duplicate\": %.9g, \"reorder\": %.9g, "
		"\"corrupt\": %.9g, \"queue\": %" PRIu64 ", \"mark\": %" PRIu64
		", \"mtu\": %u, \"coalesce_ns\": %" PRIu64 "}",
		s->rate, s->delay, s->jitter, em_share(s->loss), (double)s->burst / EM_BURST_ONE,
		em_share(s->duplicate), em_share(s->reorder), em_share(s->corrupt),
		s->rate ? em_settings_queue(s) : s->queue, s->mark, s->mtu, s->coalesce);
}

static void em_json_interfaces(FILE *f, const struct em_link *l)
{
	fprintf(f, "\"interfaces\": [");
	em_quoted(f, l->interface[0]);
	fprintf(f, ", ");
	em_quoted(f, l->interface[1]);
	fprintf(f, "], \"seed\": %" PRIu64, l->seed);
}

void em_report_ready(FILE *f, const struct em_link *l)
{
	int i;

	fprintf(f, "{\"ready\": true, ");
	em_json_interfaces(f, l);
	fprintf(f, ", \"control\": ");
	if (l->control)
		em_quoted(f, l->control);
	else
		fprintf(f, "null");
	for (i = 0; i < EM_DIRECTIONS; i++) {
		fprintf(f, ", \"%s\": {\"settings\": ", em_direction_names[i]);
		em_json_settings(f, &l->set[i]);
		fprintf(f, "}");
	}
	fprintf(f, "}\n");
}

static double em_us(uint64_t ns)
{
	return (double)ns / 1e3;
}

static void em_json_late(FILE *f, const struct em_tally *t, const struct em_bound *b)
{
	const struct em_histogram *h = &t->late;
	const char *comma = "";
	uint32_t i;

	fprintf(f,
		"{\"frames\": %" PRIu64 ", \"median\": %.3f, \"p90\": %.3f, \"p99\": %.3f, "
		"\"max\": %.3f, \"bound\": %.3f, \"histogram\": [",
		h->n, em_us(em_histogram_quantile(h, 500)), em_us(em_histogram_quantile(h, 900)),
		em_us(em_histogram_quantile(h, 990)), em_us(h->max),
		em_us(em_bound_late(b, t->delay_least)));
	for (i = 0; i < EM_BOXES; i++) {
		if (!h->box[i])
			continue;
		fprintf(f, "%s[%.3f, %" PRIu64 "]", comma, em_us(em_histogram_bound(i)), h->box[i]);
		comma = ", ";
	}
	fprintf(f, "]}");
}

static void em_json_direction(FILE *f, const struct em_tally *t, const struct em_bound *b)
{
	const struct em_counts *c = &t->count;
	uint64_t rate = em_tally_rate(t);

	fprintf(f, "{\"settings\": ");
	em_json_settings(f, &t->set);
	fprintf(f,
		", \"frames\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"delivered\": %" PRIu64
		", \"lost\": %" PRIu64 ", \"duplicated\": %" PRIu64 ", \"reordered\": %" PRIu64
		", \"corrupted\": %" PRIu64 ", \"marked\": %" PRIu64 ", \"dropped_queue\": %" PRIu64
		", \"too_long\": %" PRIu64,
		c->frames, c->bytes, t->given, c->lost, c->duplicated, c->reordered, c->corrupted,
		c->marked, c->dropped_queue, c->too_long);
	fprintf(f,
		", \"under_way\": %" PRIu64 ", \"missed\": %" PRIu64 ", \"refused\": %" PRIu64
		", \"dropped_device\": %" PRIu64 ", \"down\": %" PRIu64 ", \"no_memory\": %" PRIu64
		", \"beyond_mtu\": %" PRIu64 ", \"odd_offloads\": %" PRIu64
		", \"realised_loss\": %.9g, \"reached_rate\": ",
		t->under_way, t->missed, t->refused, em_tally_dropped(t), t->down, t->no_memory,
		t->beyond_mtu, t->odd, em_share(em_tally_loss(t)));
	if (rate)
		fprintf(f, "%" PRIu64, rate);
	else
		fprintf(f, "null");
	fprintf(f,
		", \"busy_s\": %.6f, \"naps\": %" PRIu64 ", \"spins\": %" PRIu64
		", \"lateness_us\": ",
		(double)t->busy.planned_ns / 1e9, t->naps, t->spins);
	em_json_late(f, t, b);
	fprintf(f, "}");
}

/* All reasons of both directions; their number. */
static int em_reasons(const struct em_link *l, char reason[2 * EM_REASONS + 1][EM_WHY_MAX])
{
	int n = 0, i;

	if (l->gone[0])
		snprintf(reason[n++], EM_WHY_MAX, "%s", l->gone);
	for (i = 0; i < EM_DIRECTIONS; i++)
		n += em_verdict(&l->tally[i], &l->bound, em_direction_names[i], &reason[n]);
	return n;
}

bool em_report_json(FILE *f, const struct em_link *l)
{
	char reason[2 * EM_REASONS + 1][EM_WHY_MAX];
	int n = em_reasons(l, reason), i;

	fprintf(f, "{\"valid\": %s, \"reasons\": [", n ? "false" : "true");
	for (i = 0; i < n; i++) {
		fprintf(f, "%s", i ? ", " : "");
		em_quoted(f, reason[i]);
	}
	fprintf(f, "], \"seconds\": %.3f, ", (double)(em_now() - l->began) / 1e9);
	em_json_interfaces(f, l);
	for (i = 0; i < EM_DIRECTIONS; i++) {
		fprintf(f, ", \"%s\": ", em_direction_names[i]);
		em_json_direction(f, &l->tally[i], &l->bound);
	}
	fprintf(f, "}\n");
	return !n;
}

static void em_text_direction(FILE *f, const struct em_link *l, int i)
{
	const struct em_tally *t = &l->tally[i];
	const struct em_counts *c = &t->count;
	uint64_t rate = em_tally_rate(t);

	fprintf(f,
		"%s to %s: %" PRIu64 " frames came, %" PRIu64 " left; lost %" PRIu64
		" (%.4g %%), duplicated %" PRIu64 ", reordered %" PRIu64 ", corrupted %" PRIu64
		", marked %" PRIu64 ", dropped by the queue %" PRIu64 ", too long %" PRIu64
		", missed %" PRIu64 "\n",
		l->interface[i], l->interface[!i], c->frames, t->given, c->lost,
		100 * em_share(em_tally_loss(t)), c->duplicated, c->reordered, c->corrupted,
		c->marked, c->dropped_queue, c->too_long, t->missed);
	fprintf(f, "  late by %.1f us (median), %.1f us (99 %%), %.1f us (at most); bound %.1f us",
		em_us(em_histogram_quantile(&t->late, 500)),
		em_us(em_histogram_quantile(&t->late, 990)), em_us(t->late.max),
		em_us(em_bound_late(&l->bound, t->delay_least)));
	if (rate)
		fprintf(f, "; %.2f Mbit/s while busy", (double)rate / 1e6);
	fprintf(f, "\n");
}

void em_report_text(FILE *f, const struct em_link *l)
{
	char reason[2 * EM_REASONS + 1][EM_WHY_MAX];
	int n = em_reasons(l, reason), i;

	for (i = 0; i < EM_DIRECTIONS; i++)
		em_text_direction(f, l, i);
	fprintf(f, "The run is %s\n", n ? "INVALID:" : "valid.");
	for (i = 0; i < n; i++)
		fprintf(f, "  %s\n", reason[i]);
}

void em_report_answer(FILE *f, const char *error)
{
	fprintf(f, "{\"ok\": %s", error ? "false, \"error\": " : "true");
	if (error)
		em_quoted(f, error);
	fprintf(f, "}\n");
}
