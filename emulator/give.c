/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the hold to the kernel, many frames in one call. Segments of one super-frame that are due by
 * now and follow each other leave as one super-frame again: the receiver gets the same bytes, for
 * less work. The kernel hands the messages of a call to the device one after another: each frame is
 * taken to have left at its share of the time that the call took.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "direction.h"
#include "headers.h"

#define EM_GIVE_PATIENCE 20000000u /* ns that a frame is offered to a kernel without room */

/* May this parcel follow the last one of the message that is being made? */
static bool em_give_joins(const struct em_batch *b, const struct em_parcel *p)
{
	const struct em_parcel *last = &b->parcel[b->parcels - 1];
	const struct em_super *s = &p->buffer->super;
	uint32_t from, first;

	if (!b->n || last->buffer != p->buffer || p->segment != last->segment + 1 ||
	    p->fate.mark != last->fate.mark || p->fate.copy || last->fate.copy)
		return false;
	from = b->n > 1 ? b->end[b->n - 2] : 0;
	first = b->parcel[from].segment;
	return (p->segment - first + 1) * s->size + s->payload - s->network <= EM_RUN_MAX;
}

/* The last message of the batch is now of parcels `from` to the last: its bytes. */
static void em_give_message(struct em_batch *b)
{
	uint32_t k = b->n - 1, from = k ? b->end[k - 1] : 0, n = b->end[k] - from;
	const struct em_parcel *p = &b->parcel[from];
	const struct em_buffer *buffer = p->buffer;
	const struct em_super *s = &buffer->super;
	struct iovec *iov = b->iov[k];

	iov[0] = (struct iovec){&b->vnet[k], sizeof(b->vnet[k])};
	b->msg[k].msg_hdr = (struct msghdr){.msg_iov = iov, .msg_iovlen = 2};
	if (s->count == 1) {
		b->vnet[k] = buffer->vnet;
		iov[1] = (struct iovec){(void *)buffer->bytes, buffer->len};
		if (p->fate.mark)
			em_ecn_mark(p->buffer->bytes, buffer->len);
		return;
	}
	em_super_head(s, buffer->bytes, buffer->len, p->segment, n, b->head[k], &b->vnet[k]);
	if (p->fate.mark)
		em_ecn_mark(b->head[k], s->payload);
	iov[1] = (struct iovec){b->head[k], s->payload};
	iov[2] = (struct iovec){(void *)(buffer->bytes + s->payload + (size_t)p->segment * s->size),
				em_super_piece(s, buffer->len, p->segment, n)};
	b->msg[k].msg_hdr.msg_iovlen = 3;
}

static void em_give_collect(struct em_direction *d, uint64_t now)
{
	struct em_batch *b = &d->batch;
	const struct em_parcel *p;

	b->n = b->done = b->parcels = 0;
	while (b->parcels < EM_BATCH_PARCELS && (p = em_hold_next(&d->hold)) &&
	       p->fate.due <= now) {
		if (b->parcels && em_give_joins(b, p)) {
			b->parcel[b->parcels++] = *p;
			b->end[b->n - 1] = b->parcels;
		} else {
			if (b->n == EM_BATCH)
				break;
			if (b->n)
				em_give_message(b);
			b->parcel[b->parcels++] = *p;
			b->end[b->n++] = b->parcels;
		}
		em_hold_take(&d->hold);
	}
	if (b->n)
		em_give_message(b);
}

/* `n` messages went: their frames are counted and their buffers put back. */
static void em_give_done(struct em_direction *d, uint32_t n, uint64_t begin, uint64_t end)
{
	struct em_batch *b = &d->batch;
	uint32_t i, first = b->done, at = first ? b->end[first - 1] : 0;

	for (i = 0; i < n; i++) {
		uint64_t given = begin + (end - begin) * i / n;

		for (; at < b->end[first + i]; at++) {
			em_tally_given(&d->tally, &d->last, &b->parcel[at].fate, given);
			em_buffer_put(&d->pool, b->parcel[at].buffer);
		}
	}
	b->done += n;
	b->since = 0;
	d->active = end;
}

/* The next message cannot be sent: its frames are counted under `reason`. */
static void em_give_up(struct em_direction *d, uint64_t *reason)
{
	struct em_batch *b = &d->batch;
	uint32_t at = b->done ? b->end[b->done - 1] : 0;

	for (; at < b->end[b->done]; at++) {
		em_buffer_put(&d->pool, b->parcel[at].buffer);
		(*reason)++;
	}
	b->done++;
	b->since = 0;
}

/* False: the same message may go later. */
static bool em_give_failed(struct em_direction *d, int error, uint64_t now)
{
	struct em_batch *b = &d->batch;

	if (error == EINTR)
		return true;
	if (error == EMSGSIZE) {
		em_give_up(d, &d->tally.beyond_mtu);
		return true;
	}
	if (error == ENETDOWN || error == ENXIO || error == ENODEV || !em_port_runs(d->out)) {
		em_give_up(d, &d->tally.down);
		return true;
	}
	if (error == EAGAIN || error == ENOBUFS || error == ENOMEM) {
		if (!b->since)
			b->since = now;
		if (now < b->since + EM_GIVE_PATIENCE)
			return false;
	}
	em_give_up(d, &d->tally.refused);
	return true;
}

/* True when the batch is empty. */
static bool em_give_flush(struct em_direction *d)
{
	struct em_batch *b = &d->batch;

	while (b->done < b->n) {
		uint64_t begin = em_now();
		int n = sendmmsg(d->out->tx, b->msg + b->done, b->n - b->done, MSG_DONTWAIT);

		if (n > 0)
			em_give_done(d, (uint32_t)n, begin, em_now());
		else if (!em_give_failed(d, errno, begin))
			return false;
	}
	return true;
}

bool em_give(struct em_direction *d)
{
	if (!em_give_flush(d))
		return false;
	em_give_collect(d, em_now());
	return em_give_flush(d);
}
