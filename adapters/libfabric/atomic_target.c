// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Atomic operations, the target's side: a request is checked, carried out under the domain's lock,
 * and answered with the values before. Everything in a request comes from another process and is
 * checked before it is used.
 */
#include "bwf.h"
#include "count.h"

/* The target's side: carry it out on each segment, answer with the values before. */
static int bwf_atomic_execute(struct bwf_ep *ep, bw_peer_no peer,
			      const struct bwf_atomic_request *req, const struct bwf_segment *seg,
			      const char *src, const char *cmp, char *old, size_t size)
{
	uint64_t access = req->op == FI_ATOMIC_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE;
	struct bwf_cntr *counts;
	struct bwf_mr *mr = NULL;
	void *dst[BWF_IOV_MAX];
	size_t at = 0;

	if (req->kind != BWF_ATOMIC_BASE)
		access |= FI_REMOTE_READ;
	for (int i = 0; i < req->segments; i++) {
		if (seg[i].len > req->count)
			return -FI_EINVAL;
		dst[i] = bwf_mr_ask(ep, peer, seg[i].key, seg[i].addr, seg[i].len * size, access,
				    &mr);
		if (!dst[i])
			return -FI_EACCES;
		at += seg[i].len;
	}
	if (at != req->count)
		return -FI_EINVAL;
	at = 0;
	bwf_lock_take(&ep->dom->atomic_lock);
	for (int i = 0; i < req->segments; i++) {
		bwf_atomic_apply(req->type, req->op, dst[i], src ? src + at : NULL,
				 cmp ? cmp + at : NULL, old ? old + at : NULL, seg[i].len);
		at += seg[i].len * size;
	}
	bwf_lock_drop(&ep->dom->atomic_lock);
	/* fi_endpoint(3): what fetches or compares counts as a read, though it changes memory. */
	counts = ep->cntr[req->kind == BWF_ATOMIC_BASE ? BWF_CNTR_REMOTE_WRITE
						       : BWF_CNTR_REMOTE_READ];
	if (counts)
		bwf_cntr_count(counts, 0);
	if (req->op != FI_ATOMIC_READ && mr && mr->cntr)
		bwf_cntr_count(mr->cntr, 0);
	return 0;
}

void bwf_atomic_target(struct bwf_ep *ep, const struct bw_message *m)
{
	struct bwf_segment seg[BWF_IOV_MAX];
	struct bwf_atomic_request req;
	_Alignas(16) char src[BWF_ATOMIC_MAX], cmp[BWF_ATOMIC_MAX], old[BWF_ATOMIC_MAX];
	bool fetch, compare, reads;
	const char *at = m->data;
	size_t size, bytes, want;
	int status;

	if (!m->data || m->len < sizeof(req)) {
		bw_count_event(ep->bw, BW_COUNT_MALFORMED);
		return;
	}
	memcpy(&req, at, sizeof(req));
	at += sizeof(req);
	fetch = req.kind != BWF_ATOMIC_BASE;
	compare = req.kind == BWF_ATOMIC_COMPARE;
	reads = req.op == FI_ATOMIC_READ;
	size = bwf_atomic_size(req.type, req.op, req.kind);
	bytes = size * req.count;
	want = sizeof(req) + req.segments * sizeof(seg[0]) + (reads ? 0 : bytes) +
	       (compare ? bytes : 0);
	status = -FI_EINVAL;
	if ((req.flags & BWF_WRITE_HAS_DATA) && bwf_cq_overfull(ep->rx_cq))
		status = -FI_ENOBUFS;
	else if (size && req.segments && req.segments <= BWF_IOV_MAX && bytes <= BWF_ATOMIC_MAX &&
		 m->len == want) {
		memcpy(seg, at, req.segments * sizeof(seg[0]));
		at += req.segments * sizeof(seg[0]);
		if (!reads) {
			memcpy(src, at, bytes);
			at += bytes;
		}
		if (compare)
			memcpy(cmp, at, bytes);
		status = bwf_atomic_execute(ep, m->peer, &req, seg, reads ? NULL : src,
					    compare ? cmp : NULL, fetch ? old : NULL, size);
	}
	if (!status && (req.flags & BWF_WRITE_HAS_DATA) && ep->rx_cq)
		bwf_cq_push(
			ep->rx_cq,
			&(struct bwf_cqe){.flags = FI_ATOMIC | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
					  .len = bytes,
					  .data = req.data,
					  .src = ep->source ? bwf_peer_source(ep, m->peer)
							    : FI_ADDR_NOTAVAIL});
	if (status)
		bw_count_event(ep->bw, BW_COUNT_WRITES_REFUSED);
	bwf_todo_answer(ep, m->peer, BWF_CODE_ATOMIC_DONE, req.token, (uint64_t)-status, old,
			!status && fetch ? bytes : 0);
}
