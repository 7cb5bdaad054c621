// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls of libbeowire that the application cannot repeat itself: when one of them finds no room
 * (-EAGAIN), it is kept here and repeated after progress. Their order does not matter: whatever
 * must keep an order goes through the application's own calls. Every call is finished one day: by
 * success, by its error, or by the peer's death. What a peer asked for is bounded, since it may
 * never make room.
 */
#include "bwf.h"

#include <stdlib.h>

/* Calls kept for what one peer asked: an answer to each request of one that keeps to codes.h, and
 * the data of long writes that were refused. */
#define BWF_TODO_KEPT_MAX (BWF_REQUESTS_MAX + BWF_WRITES_MAX)

static int bwf_todo_try(struct bwf_ep *ep, const struct bwf_todo *t)
{
	switch (t->kind) {
	case BWF_TODO_PULL:
		return bw_pull(ep->bw, t->peer, &t->rndv, t->buf, t->len, t->done);
	case BWF_TODO_REFUSE:
		bwf_peer_refuse(ep, t->peer, t->why);
		return 0;
	case BWF_TODO_READ:
		return bw_read(ep->bw, t->peer, t->tag, t->imm, t->buf, t->len, t->done);
	default:
		return bw_send(ep->bw, t->peer, t->code, t->tag, t->imm, t->buf, t->len, t->flags,
			       t->done);
	}
}

/* A call that returned ret (not -EAGAIN) is over as far as this file is concerned. */
static void bwf_todo_finish(struct bwf_ep *ep, const struct bwf_todo *t, int ret)
{
	if (t->owned)
		free(t->buf);
	if (!t->done || ret == 0)
		return;
	if (ret > 0)
		ret = 0; /* bw_send(): done at once, `sent` will not come */
	t->done->call(ep, t->done, ret, 0);
}

static void bwf_todo_keep(struct bwf_ep *ep, const struct bwf_todo *t)
{
	struct bwf_todo *kept = malloc(sizeof(*kept));

	if (!kept) {
		bwf_todo_finish(ep, t, -FI_ENOMEM);
		return;
	}
	*kept = *t;
	kept->next = NULL;
	*ep->todo_end = kept;
	ep->todo_end = &kept->next;
	atomic_fetch_add_explicit(&ep->todo_count, 1, memory_order_relaxed);
	ep->peer[t->peer].calls++;
	if (t->charged)
		bwf_stranger_keeps(ep, t->peer, 1, t->len);
}

void bwf_todo_refuse(struct bwf_ep *ep, bw_peer_no peer, const char *why)
{
	bwf_todo_keep(ep, &(struct bwf_todo){.kind = BWF_TODO_REFUSE, .peer = peer, .why = why});
}

/* Call, or keep for later. */
static void bwf_todo_start(struct bwf_ep *ep, const struct bwf_todo *t)
{
	int ret = bwf_todo_try(ep, t);

	if (ret == -EAGAIN)
		bwf_todo_keep(ep, t);
	else
		bwf_todo_finish(ep, t, ret);
}

/* A kept call that is in no list any more is over. */
static void bwf_todo_put(struct bwf_ep *ep, struct bwf_todo *t, int ret)
{
	atomic_fetch_sub_explicit(&ep->todo_count, 1, memory_order_relaxed);
	ep->peer[t->peer].calls--;
	if (t->charged)
		bwf_stranger_keeps(ep, t->peer, -1, t->len);
	bwf_todo_finish(ep, t, ret);
	free(t);
}

void bwf_todo_pull(struct bwf_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
		   uint64_t len, struct bwf_done *done)
{
	bwf_todo_start(ep, &(struct bwf_todo){.kind = BWF_TODO_PULL,
					      .peer = peer,
					      .rndv = *rndv,
					      .buf = buf,
					      .len = len,
					      .done = done});
}

void bwf_todo_read(struct bwf_ep *ep, bw_peer_no peer, uint64_t key, uint64_t off, void *buf,
		   uint64_t len, struct bwf_done *done)
{
	bwf_todo_start(ep, &(struct bwf_todo){.kind = BWF_TODO_READ,
					      .peer = peer,
					      .tag = key,
					      .imm = off,
					      .buf = buf,
					      .len = len,
					      .done = done});
}

void bwf_todo_send(struct bwf_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, void *buf,
		   uint64_t len, struct bwf_done *done)
{
	bwf_todo_start(ep, &(struct bwf_todo){.kind = BWF_TODO_SEND,
					      .peer = peer,
					      .code = code,
					      .tag = tag,
					      .buf = buf,
					      .len = len,
					      .done = done});
}

/* May one more call be kept for what this peer asked, with so many bytes? If not it is given up. */
static bool bwf_todo_charge(struct bwf_ep *ep, bw_peer_no number, uint64_t bytes)
{
	const struct bwf_peer *peer = &ep->peer[number];

	if (peer->refused)
		return false;
	if (peer->kept < BWF_TODO_KEPT_MAX && peer->kept_bytes + bytes <= BWF_ANSWERS_MAX)
		return bwf_stranger_may_keep(ep, number, bytes);
	bwf_peer_refuse(ep, number, BWF_TODO_TOO_MANY);
	return false;
}

void bwf_todo_discard(struct bwf_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv)
{
	if (bw_pull(ep->bw, peer, rndv, NULL, 0, NULL) == -EAGAIN && bwf_todo_charge(ep, peer, 0))
		bwf_todo_keep(ep, &(struct bwf_todo){.kind = BWF_TODO_PULL,
						     .peer = peer,
						     .rndv = *rndv,
						     .charged = true});
}

void bwf_todo_answer(struct bwf_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, uint64_t imm,
		     const void *buf, uint64_t len)
{
	void *copy = NULL;

	if (bw_send(ep->bw, peer, code, tag, imm, buf, len, BW_SEND_EAGER, NULL) != -EAGAIN)
		return; /* sent; or the peer is gone, and nobody waits for the answer */
	if (!bwf_todo_charge(ep, peer, len))
		return;
	if (len) {
		copy = malloc(len);
		if (!copy) {
			bwf_log(BWF_LOG_ERROR, "out of memory: an answer to %s is lost",
				bw_peer_describe(ep->bw, peer));
			return;
		}
		memcpy(copy, buf, len);
	}
	bwf_todo_keep(ep, &(struct bwf_todo){.kind = BWF_TODO_SEND,
					     .peer = peer,
					     .code = code,
					     .tag = tag,
					     .imm = imm,
					     .buf = copy,
					     .len = len,
					     .flags = BW_SEND_EAGER,
					     .owned = len != 0,
					     .charged = true});
}

/* Handlers may run inside the calls made here and append to the list: it is taken off first. A peer
 * without room is not asked again in the same round. */
void bwf_todo_retry(struct bwf_ep *ep)
{
	struct bwf_todo *list = ep->todo, *t;
	struct bwf_todo *kept = NULL, **kept_end = &kept;
	uint32_t round = ++ep->todo_round;

	if (ep->todo_busy)
		return;
	ep->todo_busy = true;
	ep->todo = NULL;
	ep->todo_end = &ep->todo;
	while ((t = list)) {
		int ret = -EAGAIN;

		list = t->next;
		if (t->charged && ep->peer[t->peer].refused)
			ret = -FI_ECONNABORTED;
		else if (ep->peer[t->peer].blocked != round)
			ret = bwf_todo_try(ep, t);
		if (ret == -EAGAIN) {
			ep->peer[t->peer].blocked = round;
			t->next = NULL;
			*kept_end = t;
			kept_end = &t->next;
		} else {
			bwf_todo_put(ep, t, ret);
		}
	}
	if (kept) {
		*kept_end = ep->todo;
		if (!ep->todo)
			ep->todo_end = kept_end;
		ep->todo = kept;
	}
	ep->todo_busy = false;
}

void bwf_todo_fail_peer(struct bwf_ep *ep, bw_peer_no peer, int status)
{
	struct bwf_todo *list = ep->todo, *t;

	ep->todo = NULL;
	ep->todo_end = &ep->todo;
	while ((t = list)) {
		list = t->next;
		if (t->peer == peer) {
			bwf_todo_put(ep, t, status);
		} else {
			t->next = NULL;
			*ep->todo_end = t;
			ep->todo_end = &t->next;
		}
	}
}

void bwf_todo_free_all(struct bwf_ep *ep)
{
	while (ep->todo) {
		struct bwf_todo *t = ep->todo;

		ep->todo = t->next;
		if (t->owned)
			free(t->buf);
		free(t);
	}
	ep->todo_end = &ep->todo;
}
