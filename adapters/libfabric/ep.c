// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The endpoint: opened on a bw_ep of its own, bound to queues, counters and an address vector,
 * closed in good order. An alias shares everything with it but the default flags of operations.
 */
#include "bwf.h"
#include "count.h"
#include "log.h"
#include "name.h"
#include "open.h"
#include "setting.h"

#include <stdlib.h>
#include <unistd.h>

/* For all that is still under way at fi_close(), however many peers do not take it. */
#define BWF_CLOSE_TIMEOUT_S 10
#define BWF_S		    1000000000ULL /* ns */

/* A message of libbeowire. */
static void bwf_ep_message(void *arg, const struct bw_message *m)
{
	struct bwf_ep *ep = arg;

	if (m->peer >= ep->peer_count || !ep->peer[m->peer].known) {
		struct bwf_peer *peer = bwf_peer_get(ep, m->peer);

		if (!peer) {
			bw_count_event(ep->bw, BW_COUNT_MESSAGES_LOST);
			return;
		}
		peer->known = true;
		bw_peer_watch(ep->bw, m->peer, true);
	}
	if (ep->peer[m->peer].refused) {
		bw_count_event(ep->bw, BW_COUNT_MESSAGES_LOST);
		return;
	}
	switch (m->code & BWF_CODE_MASK) {
	case BWF_CODE_MSG:
	case BWF_CODE_TAGGED:
		bwf_rx_message(ep, m);
		break;
	default:
		bwf_target_message(ep, m);
	}
}

/* A message of several frames arrives: straight into the receive that it will match, if that is
 * known and nothing waits that was sent before. */
static void *bwf_ep_place(void *arg, const struct bw_message *m, void **op)
{
	uint8_t code = m->code & BWF_CODE_MASK;
	struct bwf_ep *ep = arg;

	if (m->peer >= ep->peer_count || !ep->peer[m->peer].known || ep->peer[m->peer].refused ||
	    (code != BWF_CODE_MSG && code != BWF_CODE_TAGGED) ||
	    atomic_load_explicit(&ep->held, memory_order_relaxed))
		return NULL;
	return bwf_rx_place(ep, m, op);
}

static void bwf_ep_sent(void *arg, void *op, int status)
{
	struct bwf_done *done = op;
	struct bwf_ep *ep = arg;

	done->call(ep, done, status, 0);
	if (ep->todo)
		bwf_todo_retry(ep);
}

static void bwf_ep_pulled(void *arg, void *op, int status, uint64_t len)
{
	struct bwf_done *done = op;
	struct bwf_ep *ep = arg;

	done->call(ep, done, status, len);
	if (ep->todo)
		bwf_todo_retry(ep);
}

const struct bw_handlers bwf_handlers = {
	.message = bwf_ep_message,
	.place = bwf_ep_place,
	.sent = bwf_ep_sent,
	.pulled = bwf_ep_pulled,
	.peer_down = bwf_peer_down,
	.peer_needed = bwf_peer_needed,
	.region = bwf_target_region,
	.awaits = bwf_awaits,
};

void bwf_ep_progress(struct bwf_ep *ep)
{
	bw_progress(ep->bw);
	if (atomic_load_explicit(&ep->todo_count, memory_order_relaxed)) {
		bw_ep_lock(ep->bw);
		if (ep->todo)
			bwf_todo_retry(ep);
		bw_ep_unlock(ep->bw);
	}
	if (atomic_load_explicit(&ep->unsought, memory_order_relaxed)) {
		bw_ep_lock(ep->bw);
		bwf_peer_seek(ep);
		bw_ep_unlock(ep->bw);
	}
	if (atomic_load_explicit(&ep->held, memory_order_relaxed)) {
		bw_ep_lock(ep->bw);
		bwf_held_resume(ep);
		bw_ep_unlock(ep->bw);
	}
}

static ssize_t bwf_ep_cancel(fid_t fid, void *context)
{
	struct bwf_ep *ep = BWF_OF(fid, struct bwf_face, fid.fid)->ep;
	int ret;

	bw_ep_lock(ep->bw);
	ret = bwf_rx_cancel(ep, context);
	if (ret)
		ret = bwf_op_cancel(ep, context);
	bw_ep_unlock(ep->bw);
	return ret;
}

static int bwf_ep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	struct bwf_ep *ep = BWF_OF(fid, struct bwf_face, fid.fid)->ep;

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)value = ep->min_multi_recv;
	*len = sizeof(size_t);
	return 0;
}

static int bwf_ep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	struct bwf_ep *ep = BWF_OF(fid, struct bwf_face, fid.fid)->ep;

	/* No function of CUDA is ever called: whoever forbids it gets what he asks for. */
	if (level == FI_OPT_ENDPOINT && name == BWF_FI_OPT_CUDA_API_PERMITTED)
		return len < sizeof(bool) ? -FI_EINVAL : *(const bool *)value ? -FI_EOPNOTSUPP : 0;
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (len < sizeof(size_t))
		return -FI_EINVAL;
	ep->min_multi_recv = *(const size_t *)value;
	return 0;
}

static int bwf_ep_no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr,
			    struct fid_ep **tx, void *context)
{
	return -FI_ENOSYS;
}

static int bwf_ep_no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
			    struct fid_ep **rx, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t bwf_ep_size_left(struct fid_ep *ep)
{
	return BWF_CTX_SIZE; /* queues grow: there is always room for that many */
}

struct fi_ops_ep bwf_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = bwf_ep_cancel,
	.getopt = bwf_ep_getopt,
	.setopt = bwf_ep_setopt,
	.tx_ctx = bwf_ep_no_tx_ctx,
	.rx_ctx = bwf_ep_no_rx_ctx,
	.rx_size_left = bwf_ep_size_left,
	.tx_size_left = bwf_ep_size_left,
};

/* Let what the application was told is sent leave: answers and requests that found no room so far.
 */
static void bwf_ep_flush(struct bwf_ep *ep, uint64_t deadline_ns)
{
	bool pending = true;

	while (pending && bwf_now_ns() < deadline_ns) {
		bwf_ep_progress(ep);
		bw_ep_lock(ep->bw);
		pending = ep->todo || bwf_op_awaiting(ep);
		bw_ep_unlock(ep->bw);
		if (pending)
			bw_wait(ep->bw, 1000000);
	}
}

static int bwf_ep_close(struct fid *fid)
{
	struct bwf_face *face = BWF_OF(fid, struct bwf_face, fid.fid);
	struct bwf_ep *ep = face->ep;
	uint64_t deadline_ns, now_ns;

	if (face != &ep->face) {
		atomic_fetch_sub(&ep->aliases, 1);
		free(face);
		return 0;
	}
	if (atomic_load(&ep->aliases))
		return -FI_EBUSY;
	/* Its threads and what they talk to are the parent's, and a lock may be held for ever. */
	if (ep->dom->pid != getpid()) {
		bwf_names_leave(ep->names);
		ep->names = NULL;
		return 0;
	}
	deadline_ns = bwf_now_ns() + ep->close_ns;
	bwf_names_close(ep->names);
	bwf_ep_flush(ep, deadline_ns);
	bwf_ep_unbind_all(ep);
	bwf_domain_detach(ep->dom, ep);
	now_ns = bwf_now_ns();
	bw_ep_close(ep->bw, now_ns < deadline_ns ? deadline_ns - now_ns : 0);
	bwf_todo_free_all(ep);
	bwf_target_free_all(ep);
	bwf_early_free_all(ep);
	bwf_unexpected_free_all(ep);
	bwf_rx_free_all(ep);
	bwf_op_free_all(ep);
	bwf_match_free(&ep->msg);
	bwf_match_free(&ep->tagged);
	free(ep->peer_of);
	free(ep->peer);
	free(ep);
	return 0;
}

static struct fi_ops bwf_ep_fid_ops = BWF_FID_OPS(bwf_ep_close, bwf_ep_bind, bwf_ep_control);

static void bwf_face_init(struct bwf_face *face, struct bwf_ep *ep, void *context)
{
	face->fid.fid.fclass = FI_CLASS_EP;
	face->fid.fid.context = context;
	face->fid.fid.ops = &bwf_ep_fid_ops;
	face->fid.ops = &bwf_ep_ops;
	face->fid.cm = &bwf_ep_cm_ops;
	face->fid.msg = &bwf_msg_ops;
	face->fid.rma = &bwf_rma_ops;
	face->fid.tagged = &bwf_tagged_ops;
	face->fid.atomic = &bwf_atomic_ops;
	face->fid.collective = &bwf_collective_ops;
	face->ep = ep;
}

int bwf_ep_alias(struct bwf_face *of, const struct fi_alias *alias)
{
	struct bwf_face *face = calloc(1, sizeof(*face));

	if (!face)
		return -FI_ENOMEM;
	bwf_face_init(face, of->ep, of->fid.fid.context);
	face->tx_flags = of->tx_flags;
	face->rx_flags = of->rx_flags;
	if (alias->flags & FI_TRANSMIT)
		face->tx_flags = alias->flags & ~(uint64_t)FI_TRANSMIT;
	else if (alias->flags & FI_RECV)
		face->rx_flags = alias->flags & ~FI_RECV;
	atomic_fetch_add(&of->ep->aliases, 1);
	*alias->fid = &face->fid.fid;
	return 0;
}

/* Answer to the name that the application chose, if it did. */
static int bwf_ep_open_name(struct bwf_ep *ep, const void *name, size_t len)
{
	struct bw_addr wish;
	int ret;

	if (!name || len != sizeof(wish))
		return 0;
	memcpy(&wish, name, sizeof(wish));
	if (!bwf_name_has_port(&wish))
		return 0;
	ret = bwf_names_open(&ep->names, &wish, ep->bw);
	if (ret)
		bwf_log(BWF_LOG_ERROR, "cannot listen for the endpoint's name: %s", strerror(-ret));
	return ret;
}

/* How long the endpoint's end may take: no longer than a silent peer is waited for, as one that
 * answers but takes nothing is no better. What the variable says has been checked. */
static uint64_t bwf_ep_close_ns(void)
{
	const char *dead = bw_setting("BEOWIRE_DEAD_TIMEOUT");
	uint64_t seconds = dead ? strtoull(dead, NULL, 10) : 0;

	if (!seconds || seconds > BWF_CLOSE_TIMEOUT_S)
		seconds = BWF_CLOSE_TIMEOUT_S;
	return seconds * BWF_S;
}

int bwf_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out, void *context)
{
	struct bwf_ep *ep;
	const char *why;
	int ret;

	if (info->ep_attr && (info->ep_attr->type != FI_EP_RDM || info->ep_attr->tx_ctx_cnt > 1 ||
			      info->ep_attr->rx_ctx_cnt > 1))
		return -FI_EINVAL;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	bwf_face_init(&ep->face, ep, context);
	ep->face.tx_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->face.rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	ep->dom = BWF_OF(fid, struct bwf_domain, fid);
	ep->source = (info->caps & FI_SOURCE) != 0;
	ep->directed = (info->caps & FI_DIRECTED_RECV) != 0;
	ep->todo_end = &ep->todo;
	ep->early_end = &ep->early;
	bwf_unexpected_init(ep);
	ret = bw_ep_open_by(&ep->bw, &(struct bw_ep_attr){.handlers = &bwf_handlers, .arg = ep},
			    ep->dom->interface[0] ? ep->dom->interface : NULL, &why);
	if (ret) {
		/* all ranks of a job are told the same */
		bw_log_once(BW_LOG_ERROR, "open", "cannot open an endpoint: %s", why);
		free(ep);
		return ret;
	}
	ep->close_ns = bwf_ep_close_ns();
	ret = bwf_ep_open_name(ep, info->src_addr, info->src_addrlen);
	if (!ret)
		ret = bwf_domain_attach(ep->dom, ep);
	if (ret) {
		bwf_names_close(ep->names);
		bw_ep_close(ep->bw, 0);
		free(ep);
		return ret;
	}
	*out = &ep->face.fid;
	return 0;
}

int bwf_ep_open2(struct fid_domain *fid, struct fi_info *info, struct fid_ep **ep, uint64_t flags,
		 void *context)
{
	return flags ? -FI_ENOSYS : bwf_ep_open(fid, info, ep, context);
}
