// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the program waits for, and what waits for it, for people who ask why it stands still. */
#include "bwf.h"

#define BWF_AWAITS_EACH (BW_AWAITED_MAX / 2) /* receives told of, and messages */

/* Buffers for any number of messages say nothing: they are posted always. */
static void bwf_awaits_receives(const struct bwf_match *m, bool tagged, struct bw_program *told)
{
	for (const struct bwf_posted *p = m->posted_head; p && told->n < BWF_AWAITS_EACH;
	     p = p->next) {
		const struct bwf_rx *rx = BWF_OF(p, struct bwf_rx, posted);

		if (rx->multi)
			continue;
		told->awaited[told->n++] = (struct bw_awaited){
			.peer = p->peer == BWF_MATCH_ANY ? BW_PEER_NONE : p->peer,
			.tagged = tagged,
			.tag = p->tag,
			.ignore = p->ignore,
			.bytes = rx->len,
			.id = p->seq,
		};
	}
	told->receives += m->posted_count;
}

static void bwf_awaits_messages(const struct bwf_match *m, bool tagged, struct bw_program *told)
{
	for (const struct bwf_arrived *a = m->arrived_head; a && told->n < BW_AWAITED_MAX;
	     a = a->next) {
		told->awaited[told->n++] = (struct bw_awaited){
			.peer = a->peer,
			.arrived = true,
			.tagged = tagged,
			.tag = a->tag,
			.bytes = BWF_OF(a, struct bwf_unexpected, arrived)->len,
			.id = (uintptr_t)a,
		};
	}
	told->unexpected += m->arrived_count;
}

void bwf_awaits(void *arg, struct bw_program *told)
{
	const struct bwf_ep *ep = arg;

	bwf_awaits_receives(&ep->tagged, true, told);
	bwf_awaits_receives(&ep->msg, false, told);
	bwf_awaits_messages(&ep->tagged, true, told);
	bwf_awaits_messages(&ep->msg, false, told);
	told->unexpected_bytes = ep->unexpected.bytes;
}
