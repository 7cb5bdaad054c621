/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The host's half of the engine's interface: its callbacks (buffers, placement, checksums), frames
 * in and out, and memory to grow by. Everything here runs under the endpoint's lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arriving.h"
#include "checksum.h"
#include "ep.h"
#include "keyed.h"
#include "place.h"

#define BW_HOST_RETRY_NS  (20 * BW_US) /* until the next try when the kernel had no room */
#define BW_HOST_SHORT	  1024	       /* bytes; a shorter frame is a peer's last, probably */
#define BW_HOST_GROWN_MAX (1ull << 30) /* bytes that one engine may take */
/* Of these for what others send us, whoever they are, and for each peer that the program named. */
#define BW_HOST_FED_MAX	 (256ull << 20)
#define BW_HOST_FED_EACH (64ull << 10)

static uint32_t bw_host_payload_crc(void *host, uint64_t buf, uint64_t off, uint32_t n)
{
	struct bw_ep *ep = host;
	const void *from = bw_buffer_at(bw_buffer_of(buf), off);
	void *to = ep->ahead ? bw_batch_place(ep->ahead, ep->tx.head_len, from, n) : NULL;

	return to ? bw_checksum_copy(0, to, from, n) : bw_checksum(0, from, n);
}

static int bw_host_place(void *host, uint64_t buf, uint64_t off, const struct bw_rx_frame *f,
			 uint32_t at, uint32_t n, bool check, uint32_t crc)
{
	struct bw_ep *ep = host;
	const uint8_t *from = (const uint8_t *)f->head + at;

	if (!buf) {
		if (check && bw_checksum(0, from, n) != crc)
			return -EBADMSG;
	} else {
		void *to = bw_buffer_at(bw_buffer_of(buf), off);

		if (!check)
			memcpy(to, from, n);
		else if (bw_checksum_copy(0, to, from, n) != crc)
			return -EBADMSG;
	}
	if (f->from.link < BW_LINK_NO_UDP)
		ep->packet[f->from.link].count.rx_payload += n;
	else
		ep->udp.count.rx_payload += n;
	return 0;
}

static uint64_t bw_host_buf_get(void *host, uint32_t peer, uint64_t n, bool next)
{
	return bw_arriving_get(host, peer, n, next);
}

static void bw_host_buf_put(void *host, uint64_t buf)
{
	struct bw_ep *ep = host;

	struct bw_buffer *b = bw_buffer_of(buf);

	if (b->use != BW_BUFFER_PLACED) /* else its peer's end comes next */
		bw_arriving_put(ep, b);
}

static uint64_t bw_host_buf_for(void *host, const struct bw_event *ev)
{
	return bw_place_find(host, ev);
}

static int bw_host_region_find(void *host, uint32_t peer, uint64_t key, uint64_t off, uint64_t n,
			       uint64_t *buf, uint64_t *buf_off)
{
	struct bw_ep *ep = host;
	struct bw_remote *p = bw_remote_by_handle(&ep->remotes, peer);
	const void *at;

	if (!p || !ep->handlers->region)
		return -EACCES;
	p->known = true;
	at = ep->handlers->region(ep->arg, p->number, key, off, n);
	if (!at)
		return -EACCES;
	*buf = bw_buffer_cookie(&ep->memory);
	*buf_off = (uint64_t)(uintptr_t)at;
	return 0;
}

/* What the program holds of it, and what is under way to it behind the engine's back. */
static bool bw_host_needed(void *host, uint32_t peer)
{
	struct bw_ep *ep = host;
	const struct bw_remote *p = bw_remote_by_handle(&ep->remotes, peer);

	if (!p || p->complete || p->local || p->kernel || p->sent || p->arriving || p->copied)
		return true;
	return ep->handlers->peer_needed ? ep->handlers->peer_needed(ep->arg, p->number) : p->known;
}

static void bw_host_sent(void *host, uint64_t cookie)
{
	bw_message_acked(host, cookie);
}

/* A message in the frame just handed over, within rx(): the handler may use the engine again. */
static void bw_host_message(void *host, const struct bw_event *ev)
{
	struct bw_ep *ep = host;

	ep->handled++;
	ep->dispatching = true;
	bw_message_event(ep, ev);
	ep->dispatching = false;
}

/* Where the link has put it: in a ring or a buffer of ours. */
static int bw_host_unseal(void *host, const struct bw_rx_frame *f, uint32_t end,
			  const struct bw_seal_by *by)
{
	return bw_open_frame((void *)(uintptr_t)f->head, end, by);
}

static uint64_t bw_host_random(void *host)
{
	struct bw_ep *ep = host;

	return bw_secret_draw(&ep->secret);
}

/* Where no helper serves peers while the program computes, that is how programs are. */
static void bw_host_excused(void *host, uint32_t peer, uint64_t late_ns)
{
	const struct bw_ep *ep = host;
	const struct bw_remote *p = bw_remote_by_handle(&ep->remotes, peer);
	const char *them = p && p->name[0] ? p->name : "a peer";

	bw_log_once(ep->helper.wanted ? BW_LOG_WARN : BW_LOG_INFO, "excused",
		    "this process stood still, or the clock jumped, by %llu ms at least%s%s; no "
		    "peer is given up for that",
		    (unsigned long long)(late_ns / BW_MS), p ? " while it waited for " : "",
		    p ? them : "");
}

const struct bw_host_ops bw_host_ops = {
	.crc32c = bw_checksum,
	.payload_crc = bw_host_payload_crc,
	.place = bw_host_place,
	.buf_get = bw_host_buf_get,
	.buf_put = bw_host_buf_put,
	.buf_for = bw_host_buf_for,
	.region_find = bw_host_region_find,
	.random = bw_host_random,
	.siphash = bw_siphash,
	.hmac_sha256 = bw_hmac_sha256,
	.sent = bw_host_sent,
	.needed = bw_host_needed,
	.message = bw_host_message,
	.unseal = bw_host_unseal,
	.excused = bw_host_excused,
};

/* More memory for the engine. */
static bool bw_host_grow(struct bw_ep *ep)
{
	void *more = ep->grown_bytes < BW_HOST_GROWN_MAX ? bw_grown_add(ep) : NULL;

	if (more)
		bw_reliable.grow(ep->engine, more);
	return more;
}

static bool bw_host_may_feed(const struct bw_ep *ep)
{
	return ep->grown_bytes < BW_HOST_FED_MAX + ep->remotes.named * BW_HOST_FED_EACH;
}

bool bw_host_feed(struct bw_ep *ep)
{
	if (bw_host_may_feed(ep) && bw_host_grow(ep))
		return true;
	bw_reliable.grow(ep->engine, NULL);
	return false;
}

int bw_host_submit(struct bw_ep *ep, struct bw_op *op)
{
	int error;

	if (ep->dead)
		return -EINVAL;
	/* Where there is memory left a table is full, which more of it does not change. */
	do {
		error = bw_reliable.submit(ep->engine, op, ep->now);
	} while (error == -EAGAIN && bw_reliable.hungry(ep->engine) && bw_host_grow(ep));
	ep->given = true;
	return error;
}

void bw_host_events(struct bw_ep *ep)
{
	struct bw_event ev;

	if (ep->dispatching) /* called by a handler: the loop further out goes on */
		return;
	ep->dirty = false;
	while (bw_reliable.next_event(ep->engine, &ev)) {
		ep->handled++;
		ep->dispatching = true;
		bw_message_event(ep, &ev);
		ep->dispatching = false;
	}
	if (BW_UNLIKELY(ep->after)) {
		ep->dispatching = true;
		if (ep->after & BW_AFTER_TELL)
			bw_message_tell_all(ep);
		if (ep->after & BW_AFTER_RELIEVE)
			bw_arriving_relieve(ep);
		ep->dispatching = false;
	}
}

void bw_host_receive(struct bw_ep *ep, const struct bw_rx_frame *f)
{
	ep->rx_head = f->head;
	ep->given = true;
	bw_reliable.rx(ep->engine, f, ep->now);
	bw_host_events(ep);
}

void bw_host_receive_row(struct bw_ep *ep, const struct bw_rx_frame *f, uint32_t n)
{
	uint32_t taken;

	for (; n; f += taken, n -= taken) {
		ep->rx_head = f->head;
		ep->given = true;
		bw_reliable.rx_row(ep->engine, f, n, &taken, ep->now);
		bw_host_events(ep);
	}
}

static bool bw_host_flush(struct bw_ep *ep)
{
	bool gone = true;

	for (int i = 0; i < ep->packets; i++) {
		if (ep->packet[i].batch->count)
			gone &= bw_batch_flush(ep->packet[i].batch, ep->packet[i].fd, ep->now);
	}
	if (ep->has_udp && ep->udp.batch->count)
		gone &= bw_udp_flush(&ep->udp, ep->now);
	return gone;
}

/* Collect one frame; false when the batch is better sent now: it is full, or the frame is a short
 * one, which says that the engine has no more for its peer, and that somebody waits for it. A frame
 * that finds a full batch, which others have filled, goes back to the engine. alike: next_alike()
 * made it. */
static BW_WITHIN bool bw_host_collect(struct bw_ep *ep, const struct bw_tx_frame *f, bool alike)
{
	struct bw_batch *batch;
	bool added;

	if (f->to.link < ep->packets) {
		struct bw_packet *p = &ep->packet[f->to.link];

		batch = p->batch;
		added = bw_packet_add(p, f);
	} else if (f->to.link == BW_LINK_NO_UDP && ep->has_udp) {
		batch = ep->udp.batch;
		added = alike ? bw_udp_add_alike(&ep->udp, f) : bw_udp_add(&ep->udp, f);
	} else {
		return true; /* a link that was named by no one: the frame is lost */
	}
	if (!added)
		bw_reliable.unsent(ep->engine, ep->now);
	return added && f->len > BW_HOST_SHORT && !bw_batch_ripe(batch);
}

/* The frames that carry on the one collected last; false as above. */
static BW_APART bool bw_host_row(struct bw_ep *ep)
{
	bool collected = true;

	ep->ahead = ep->tx.to.link < ep->packets ? ep->packet[ep->tx.to.link].batch
		    : ep->has_udp		 ? ep->udp.batch
						 : NULL;
	while (collected && bw_reliable.next_alike(ep->engine, &ep->tx))
		collected = bw_host_collect(ep, &ep->tx, true);
	ep->ahead = NULL;
	return collected;
}

void bw_host_transmit(struct bw_ep *ep)
{
	uint64_t at = 0;
	bool more = true, collected;

	if (BW_UNLIKELY(!ep->looked && bw_host_parting(ep))) {
		ep->given = true; /* the next round sends */
		return;
	}
	ep->given = false;
	if (ep->stuck && ep->now < ep->retry_at)
		return;
	if (BW_UNLIKELY(ep->stuck))
		ep->stuck = !bw_host_flush(ep);
	while (more && !ep->stuck) {
		at = bw_reliable.next_deadline(ep->engine);
		more = at <= ep->now && bw_reliable.next_frame(ep->engine, &ep->tx, ep->now);
		collected = more && bw_host_collect(ep, &ep->tx, false) && bw_host_row(ep);
		if (!collected)
			ep->stuck = !bw_host_flush(ep);
	}
	if (BW_UNLIKELY(bw_reliable.hungry(ep->engine)) && bw_host_feed(ep))
		at = 0;
	if (at <= ep->now) /* not asked since the engine was last called */
		at = bw_reliable.next_deadline(ep->engine);
	ep->dirty = at <= ep->now;
	ep->deadline = at;
	if (BW_UNLIKELY(ep->stuck)) {
		ep->retry_at = ep->now + BW_HOST_RETRY_NS;
		ep->deadline = ep->retry_at;
	}
	bw_helper_deadline(ep);
}
