/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counting and judging; see tally.h. */
#include "tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void em_tally_given(struct em_tally *t, struct em_last *last, const struct em_fate *fate,
		    uint64_t given)
{
	bool follows = last->any && fate->period == last->period;

	t->given++;
	em_histogram_add(&t->late, given > fate->due ? given - fate->due : 0);
	if (fate->held_back)
		return;
	if (follows) {
		t->busy.periods += !last->follows;
		t->busy.took_ns += given - last->given;
		t->busy.planned_ns += fate->sent - last->sent;
		t->busy.wire_bytes += fate->charged - last->charged;
	}
	*last = (struct em_last){given, fate->sent, fate->charged, fate->period, true, follows};
}

void em_tally_reset(struct em_tally *t)
{
	struct em_settings set = t->set;

	memset(t, 0, sizeof(*t));
	t->set = set;
	t->delay_least = set.delay;
}

uint64_t em_tally_rate(const struct em_tally *t)
{
	if (!t->busy.took_ns || !t->set.rate)
		return 0;
	return (uint64_t)((unsigned __int128)t->busy.wire_bytes * 8 * 1000000000u /
			  t->busy.took_ns);
}

uint32_t em_tally_loss(const struct em_tally *t)
{
	uint64_t carried = t->count.lost + t->count.passed - t->count.duplicated;

	return carried ? (uint32_t)((unsigned __int128)t->count.lost * EM_SHARE_ONE / carried) : 0;
}

uint64_t em_tally_dropped(const struct em_tally *t)
{
	/* a device without a carrier counts what it is given as thrown away */
	return t->dropped_device > t->down ? t->dropped_device - t->down : 0;
}

uint64_t em_bound_late(const struct em_bound *b, uint64_t delay)
{
	uint64_t share = (uint64_t)((unsigned __int128)delay * b->late_share / EM_SHARE_ONE);

	return share > b->late_ns ? share : b->late_ns;
}

struct em_reasons {
	char (*text)[EM_WHY_MAX];
	const char *direction;
	int n;
};

static void em_reason(struct em_reasons *r, uint64_t frames, const char *what)
{
	if (!frames || r->n == EM_REASONS)
		return;
	snprintf(r->text[r->n++], EM_WHY_MAX, "%s: %" PRIu64 " frames %s", r->direction, frames,
		 what);
}

static void em_reason_late(struct em_reasons *r, const struct em_tally *t, const struct em_bound *b)
{
	uint64_t late = em_histogram_quantile(&t->late, 990);
	uint64_t bound = em_bound_late(b, t->delay_least);

	if (late <= bound || r->n == EM_REASONS)
		return;
	snprintf(r->text[r->n++], EM_WHY_MAX,
		 "%s: 1 %% of the frames left more than %.1f us late, the bound is %.1f us; lower "
		 "the rate, or give it a core (--cpu)",
		 r->direction, (double)late / 1e3, (double)bound / 1e3);
}

/* Each busy period may begin or end as late as a frame may be: that is judged by the lateness. */
static void em_reason_rate(struct em_reasons *r, const struct em_tally *t, const struct em_bound *b)
{
	const struct em_busy *y = &t->busy;
	uint64_t off = y->took_ns > y->planned_ns ? y->took_ns - y->planned_ns
						  : y->planned_ns - y->took_ns;
	uint64_t edges = y->periods * em_bound_late(b, t->delay_least);

	if (y->planned_ns < EM_RATE_LEAST_NS || r->n == EM_REASONS || off <= edges ||
	    off - edges <= (unsigned __int128)y->planned_ns * EM_RATE_SHARE / EM_SHARE_ONE)
		return;
	snprintf(r->text[r->n++], EM_WHY_MAX,
		 "%s: the busy link took %.3f s for what takes %.3f s at its rate; lower the rate, "
		 "or give it a core (--cpu)",
		 r->direction, (double)y->took_ns / 1e9, (double)y->planned_ns / 1e9);
}

int em_verdict(const struct em_tally *t, const struct em_bound *b, const char *direction,
	       char reason[EM_REASONS][EM_WHY_MAX])
{
	struct em_reasons r = {reason, direction, 0};

	em_reason_late(&r, t, b);
	em_reason_rate(&r, t, b);
	em_reason(&r, t->missed, "were missed: the receive ring was full");
	em_reason(&r, t->refused, "could not be sent: the kernel had no room for them");
	em_reason(&r, em_tally_dropped(t), "were thrown away by the outgoing interface");
	em_reason(&r, t->no_memory, "found no memory; a shorter queue or delay needs less");
	em_reason(&r, t->beyond_mtu, "are longer than the outgoing interface's MTU; raise that");
	em_reason(&r, t->odd,
		  "had offloads that are not understood; switch them off at the sender");
	return r.n;
}
