/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeping the watch. Frames of living engines should not bother the watch: each engine that turns
 * out to live is put into the filter, and taken out again after a while, since it may have died.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "checksum.h"
#include "claim.h"
#include "discard.h"
#include "ep.h"
#include "keyed.h"
#include "number.h"
#include "refuse.h"

#define BW_WATCH_CLAIM_NS  (1 * BW_S) /* between two tries for the claim */
#define BW_WATCH_FORGET_NS (2 * BW_S) /* for so long a living engine is taken to live on */
#define BW_WATCH_DRAIN_NS  (2 * BW_S) /* between two looks who has asked for the claim, at least */
#define BW_WATCH_FOREIGN   100	      /* foreign frames that are worth a warning */

/* Of a batch, frames that refusals may fill, so that own frames always find room. */
#define BW_WATCH_SHARE (BW_BATCH_FRAMES / 2)

void bw_watch_init(struct bw_watch *w)
{
	memset(w, 0, sizeof(*w));
	w->claim = -1;
}

void bw_watch_close(struct bw_watch *w, bool inherited)
{
	if (w->claim >= 0 && inherited)
		close(w->claim);
	else if (w->claim >= 0)
		bw_discard_listener(w->claim);
	w->claim = -1;
}

static void bw_watch_filter(struct bw_ep *ep)
{
	struct bw_watch *w = &ep->watch;
	int error = bw_filter_watch(ep->packet[0].fd, ep->self.engine, w->alive, w->n);

	w->changed = false;
	if (error)
		bw_log(BW_LOG_DEBUG, "the watch's filter was not taken: %s", strerror(-error));
}

static void bw_watch_try(struct bw_ep *ep)
{
	struct bw_watch *w = &ep->watch;
	char name[64];

	w->claim_at = ep->now + BW_WATCH_CLAIM_NS;
	snprintf(name, sizeof(name), "beowire/watch/%04x/%d", ep->env.ethertype, ep->iface.index);
	w->claim = bw_claim_name(name);
	if (w->claim == -EACCES) /* nobody keeps it for us: any descriptor will do */
		w->claim = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->claim < 0)
		return;
	w->claim_at = BW_NEVER;
	w->kernel = access(BW_KERNEL_PROC, F_OK) == 0;
	w->forget_at = ep->now + BW_WATCH_FORGET_NS;
	bw_watch_filter(ep);
}

void bw_watch_visit(struct bw_ep *ep)
{
	struct bw_watch *w = &ep->watch;

	if (ep->packet[0].service) /* the service keeps others' frames from us */
		w->claim_at = BW_NEVER;
	if (ep->now >= w->claim_at)
		bw_watch_try(ep);
	if (w->claim < 0)
		return;
	bw_claim_drain(w->claim);
	w->drain_at = ep->now + BW_WATCH_DRAIN_NS;
	if (ep->now >= w->forget_at) {
		w->forget_at = ep->now + BW_WATCH_FORGET_NS;
		w->kernel = access(BW_KERNEL_PROC, F_OK) == 0;
		w->changed |= w->n > 0;
		w->n = 0;
	}
	if (w->changed)
		bw_watch_filter(ep);
}

static void bw_watch_foreign(struct bw_ep *ep)
{
	if (++ep->watch.foreign != BW_WATCH_FOREIGN)
		return;
	bw_log_once(
		BW_LOG_WARN, "foreign",
		"frames that are not Beowire's use its EtherType 0x%04X on %s: they are ignored, "
		"but cost time; fix: another BEOWIRE_ETHERTYPE, the same on all nodes",
		ep->env.ethertype, ep->iface.name);
}

/* Ports of the kernel module are its own affair, as long as it is loaded. */
static bool bw_watch_kernel(const struct bw_watch *w, uint16_t engine)
{
	return engine <= BW_ENGINE_KERNEL && w->kernel;
}

static bool bw_watch_lives(struct bw_watch *w, uint16_t engine)
{
	for (unsigned int i = 0; i < w->n; i++) {
		if (w->alive[i] == engine)
			return true;
	}
	if (!bw_number_held(engine))
		return false;
	if (w->n < BW_FILTER_ALIVE) {
		w->alive[w->n++] = engine;
		w->changed = true;
	}
	return true;
}

/* Whoever is not refused now asks again. */
static bool bw_watch_room(const struct bw_ep *ep)
{
	return !ep->stuck && ep->packet[0].batch->count < BW_WATCH_SHARE;
}

static void bw_watch_refuse(struct bw_ep *ep, const struct bw_rx_frame *f)
{
	const struct bw_refuser we = {
		.cluster = ep->self.cluster,
		.name = ep->host,
		.key = ep->keyed ? ep->watch.key : NULL,
		.crc32c = bw_checksum,
		.siphash = bw_siphash,
	};
	struct bw_refuse_frame refusal;
	struct bw_tx_frame *out = &ep->tx;

	if (!bw_refuse_build(&refusal, &we, f->head, f->head_len, f->len))
		return;
	out->to = f->from;
	out->segments = 0;
	out->seal.key = NULL;
	out->head_len = sizeof(refusal);
	out->len = sizeof(refusal);
	memcpy(out->head, &refusal, sizeof(refusal));
	ep->watch.refused += bw_packet_add(&ep->packet[0], out);
	ep->given = true;
}

void bw_watch_frame(struct bw_ep *ep, const struct bw_rx_frame *f)
{
	const struct bw_hdr *h = f->head;

	if (f->len < sizeof(*h) || h->magic != BW_MAGIC)
		bw_watch_foreign(ep);
	else if (bw_watch_room(ep) && !bw_watch_kernel(&ep->watch, h->dst_engine) &&
		 !bw_watch_lives(&ep->watch, h->dst_engine))
		bw_watch_refuse(ep, f);
}
