// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sends, tagged or not. A short one goes to libbeowire and is done, without any state here; a long
 * one, or one whose completion says more than "the buffer is yours again", becomes a bwf_op.
 */
#include "bwf.h"

#include <stdlib.h>

#define BWF_GATHER_MAX                                                                             \
	16384 /* bytes that several segments may have to be put together on the stack */

void bwf_tx_report(struct bwf_ep *ep, void *context, uint64_t flags, int status)
{
	if (!ep->tx_cq)
		return;
	bwf_cq_push(ep->tx_cq, &(struct bwf_cqe){.context = context,
						 .flags = flags,
						 .src = FI_ADDR_NOTAVAIL,
						 .err = -status});
}

static void bwf_tx_gather(char *to, const struct iovec *iov, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

/*
 * How libbeowire must report the end to satisfy the completion level asked for, fi_cq(3). Without
 * one, and for FI_INJECT_COMPLETE, the buffer is the program's again; and its receiver has the
 * message before it has anything sent to it later. What is handed over lies in the program's buffer
 * if there was a receive for it, else with the provider: delivered, but not matched.
 */
static unsigned bwf_tx_level(uint64_t flags)
{
	if (flags & FI_MATCH_COMPLETE)
		return BW_SEND_SYNC;
	if (flags & FI_DELIVERY_COMPLETE)
		return BW_SEND_HANDED;
	if (flags & FI_TRANSMIT_COMPLETE)
		return BW_SEND_ACKED;
	return 0;
}

static uint64_t bwf_tx_completion(uint8_t code)
{
	return FI_SEND | ((code & BWF_CODE_MASK) == BWF_CODE_TAGGED ? FI_TAGGED : FI_MSG);
}

/* A send that may stay pending. `owned`: buf was malloc'ed and goes with the operation. */
static int bwf_tx_start(struct bwf_ep *ep, bw_peer_no peer, const struct bwf_tx_args *a, void *buf,
			size_t len, unsigned level, bool owned, bool report)
{
	struct bwf_op *op = bwf_op_new(ep, peer);
	uint8_t code = a->code;
	int ret;

	if (!op)
		return -FI_EAGAIN;
	if (!level && bw_send_copies(ep->bw, peer, len))
		code |= BWF_CODE_DONE;
	op->parts = 1;
	op->report = report;
	op->context = a->context;
	op->flags = bwf_tx_completion(a->code);
	op->cntr = ep->cntr[BWF_CNTR_SEND];
	op->bounce = owned ? buf : NULL;
	ret = bw_send(ep->bw, peer, code, a->tag, a->data, buf, len, level, &op->done);
	if (ret == 1) {
		bwf_op_part(ep, op, 0);
		return 0;
	}
	if (ret) {
		op->bounce = NULL;
		bwf_op_put(ep, op);
	}
	return ret;
}

/* A send of a private copy. */
static int bwf_tx_copy(struct bwf_ep *ep, bw_peer_no peer, const struct bwf_tx_args *a, size_t len,
		       unsigned level, bool report)
{
	char *copy = malloc(len ? len : 1);
	int ret;

	if (!copy)
		return -FI_EAGAIN;
	bwf_tx_gather(copy, a->iov, a->n);
	ret = bwf_tx_start(ep, peer, a, copy, len, level, true, report);
	if (ret)
		free(copy);
	return ret;
}

/* Several short segments: put together on the stack and sent eagerly. */
static int bwf_tx_gathered(struct bwf_ep *ep, bw_peer_no peer, const struct bwf_tx_args *a,
			   size_t len, bool report)
{
	char buf[BWF_GATHER_MAX];

	bwf_tx_gather(buf, a->iov, a->n);
	return bwf_tx_start(ep, peer, a, buf, len, BW_SEND_EAGER, false, report);
}

/* May this one go eagerly, whatever the peer's state? Then libbeowire keeps nothing about it. */
static bool bwf_tx_is_short(struct bwf_ep *ep, bw_peer_no peer, size_t len)
{
	return len <= BW_EAGER_LEAST || len <= bw_eager_max(ep->bw, peer);
}

/* A send that is done when it has left. */
static int bwf_tx_short(struct bwf_ep *ep, bw_peer_no peer, const struct bwf_tx_args *a, size_t len,
			bool report)
{
	int ret;

	if (bwf_cq_full(ep->tx_cq, ep->ops.under_way))
		return -FI_EAGAIN;
	ret = bw_send(ep->bw, peer, a->code, a->tag, a->data, a->iov[0].iov_base, len,
		      BW_SEND_EAGER, NULL);
	if (ret != 1)
		return ret;
	if (ep->cntr[BWF_CNTR_SEND])
		bwf_cntr_count(ep->cntr[BWF_CNTR_SEND], 0);
	if (report)
		bwf_tx_report(ep, a->context, bwf_tx_completion(a->code), 0);
	return 0;
}

static int bwf_tx_send_locked(struct bwf_ep *ep, const struct bwf_tx_args *a, size_t len)
{
	bool report = !ep->tx_selective || (a->flags & FI_COMPLETION);
	unsigned level = bwf_tx_level(a->flags);
	bw_peer_no peer;
	int ret = bwf_peer_to(ep, a->addr, &peer);

	if (ret)
		return ret;
	if (bwf_tx_fenced(ep, peer, a->flags))
		return -FI_EAGAIN;
	if (a->n == 1 && !level && bwf_tx_is_short(ep, peer, len))
		return bwf_tx_short(ep, peer, a, len, report);
	if (a->n == 1 && !(a->flags & FI_INJECT))
		return bwf_tx_start(ep, peer, a, a->iov[0].iov_base, len, level, false, report);
	if (level || len > BWF_GATHER_MAX || len > bw_eager_max(ep->bw, peer))
		return bwf_tx_copy(ep, peer, a, len, level, report);
	return bwf_tx_gathered(ep, peer, a, len, report);
}

ssize_t bwf_tx_send(struct bwf_face *face, const struct bwf_tx_args *a)
{
	size_t len = bwf_iov_len(a->iov, a->n);
	struct bwf_ep *ep = face->ep;
	int ret;

	if (a->n > BWF_IOV_MAX)
		return -FI_EINVAL;
	if (len > BWF_MESSAGE_MAX || ((a->flags & FI_INJECT) && len > BWF_INJECT_MAX))
		return -FI_EMSGSIZE;
	bw_ep_lock(ep->bw);
	ret = bwf_tx_send_locked(ep, a, len);
	bw_ep_unlock(ep->bw);
	return ret;
}

ssize_t bwf_tx_inject(struct bwf_face *face, const void *buf, size_t len, fi_addr_t addr,
		      uint64_t tag, uint64_t data, uint8_t code)
{
	struct bwf_ep *ep = face->ep;
	bw_peer_no peer;
	int ret;

	if (len > BWF_INJECT_MAX)
		return -FI_EMSGSIZE;
	bw_ep_lock(ep->bw);
	ret = bwf_peer_to(ep, addr, &peer);
	if (ret)
		goto out;
	if (bwf_tx_is_short(ep, peer, len)) {
		ret = bw_send(ep->bw, peer, code, tag, data, buf, len, BW_SEND_EAGER, NULL);
		if (ret == 1) {
			ret = 0;
			if (ep->cntr[BWF_CNTR_SEND])
				bwf_cntr_count(ep->cntr[BWF_CNTR_SEND], 0);
		}
	} else {
		struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

		ret = bwf_tx_copy(ep, peer,
				  &(struct bwf_tx_args){.iov = &iov,
							.n = 1,
							.tag = tag,
							.data = data,
							.code = code | BWF_CODE_DONE},
				  len, 0, false);
	}
out:
	bw_ep_unlock(ep->bw);
	return ret;
}
