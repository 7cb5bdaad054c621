/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Places for messages while they arrive. */
#include "place.h"

#include "ep.h"
#include "hosts.h"

static void bw_place_end(struct bw_ep *ep, struct bw_buffer *b, int status, uint64_t len)
{
	void *op = b->op;

	bw_buffer_unlink(&ep->placing, b);
	bw_buffer_put(&ep->buffers, b);
	ep->handlers->pulled(ep->arg, op, status, len);
}

uint64_t bw_place_find(struct bw_ep *ep, const struct bw_event *ev)
{
	struct bw_remote *p = bw_remote_by_handle(&ep->remotes, ev->peer);
	struct bw_buffer *b;

	if (!ep->handlers->place || !p || p->status || ev->code & BW_CODE_ENVELOPE)
		return 0;
	b = bw_buffer_describe(&ep->buffers, NULL, ev->len);
	if (!b)
		return 0;
	b->data = ep->handlers->place(ep->arg,
				      &(struct bw_message){.peer = p->number,
							   .code = ev->code & BW_CODE_MAX,
							   .tag = ev->tag,
							   .imm = ev->imm,
							   .len = ev->len},
				      &b->op);
	if (!b->data) {
		bw_buffer_put(&ep->buffers, b);
		return 0;
	}
	p->known = true;
	b->use = BW_BUFFER_PLACED;
	b->peer = p->number;
	bw_buffer_link(&ep->placing, b);
	ep->placed++;
	return bw_buffer_cookie(b);
}

void bw_place_whole(struct bw_ep *ep, struct bw_buffer *b)
{
	bw_place_end(ep, b, 0, b->len);
}

void bw_place_down(struct bw_ep *ep, const struct bw_remote *p, int status)
{
	struct bw_buffer *b = ep->placing;

	while (b) {
		if (b->peer != p->number) {
			b = b->next;
			continue;
		}
		bw_place_end(ep, b, status, 0);
		b = ep->placing; /* the handler may have changed the list */
	}
}
