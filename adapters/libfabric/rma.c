// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Remote memory access, the initiator's side. A read is fetched by bw_read() without the target's
 * program. A write is a message to the target's provider, which copies the data into place and
 * answers: short data travel with the request, long data are fetched by the target straight into
 * its memory.
 */
#include "bwf.h"

#include <stdlib.h>

struct bwf_rma_args {
	const struct iovec *iov;
	size_t n;
	const struct fi_rma_iov *rma;
	size_t rma_n;
	fi_addr_t addr;
	uint64_t data;
	void *context;
	uint64_t flags;
	bool silent; /* an inject call: no completion unless it fails */
};

static int bwf_rma_check(const struct bwf_rma_args *a, size_t *len)
{
	uint64_t remote = 0;

	*len = bwf_iov_len(a->iov, a->n);
	if (a->n > BWF_IOV_MAX || !a->rma_n || a->rma_n > BWF_IOV_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < a->rma_n; i++)
		remote += a->rma[i].len;
	if (remote != *len)
		return -FI_EINVAL;
	return *len > BWF_MESSAGE_MAX ? -FI_EMSGSIZE : 0;
}

/* An operation to a peer, with one part. */
static int bwf_rma_begin(struct bwf_ep *ep, const struct bwf_rma_args *a, uint64_t flags,
			 enum bwf_cntr_slot slot, struct bwf_op **out)
{
	struct bwf_op *op;
	bw_peer_no peer;
	int ret = bwf_peer_to(ep, a->addr, &peer);

	if (ret)
		return ret;
	if (bwf_tx_fenced(ep, peer, a->flags))
		return -FI_EAGAIN;
	op = bwf_op_new(ep, peer);
	if (!op)
		return -FI_EAGAIN;
	op->parts = 1;
	op->report = !a->silent && (!ep->tx_selective || (a->flags & FI_COMPLETION));
	op->context = a->context;
	op->flags = FI_RMA | flags;
	op->cntr = ep->cntr[slot];
	*out = op;
	return 0;
}

/* Start the reads of all pieces that are contiguous on both sides. The operation's own part keeps
 * it alive until all are started. */
static int bwf_rma_read_locked(struct bwf_ep *ep, const struct bwf_rma_args *a, size_t len)
{
	size_t i = 0, r = 0, at = 0, rat = 0;
	struct bwf_op *op;
	int ret = bwf_rma_begin(ep, a, FI_READ, BWF_CNTR_READ, &op);

	if (ret)
		return ret;
	while (len) {
		size_t n = a->iov[i].iov_len - at;

		if (n > a->rma[r].len - rat)
			n = a->rma[r].len - rat;
		if (n) {
			op->parts++;
			bwf_todo_read(ep, op->peer, a->rma[r].key, a->rma[r].addr + rat,
				      (char *)a->iov[i].iov_base + at, n, &op->done);
		}
		len -= n;
		at += n;
		rat += n;
		if (at == a->iov[i].iov_len) {
			i++;
			at = 0;
		}
		if (rat == a->rma[r].len) {
			r++;
			rat = 0;
		}
	}
	bwf_op_part(ep, op, 0);
	return 0;
}

static ssize_t bwf_rma_start_read(struct fid_ep *fid, const struct bwf_rma_args *a)
{
	struct bwf_ep *ep = bwf_ep_of(fid);
	size_t len;
	int ret = bwf_rma_check(a, &len);

	if (ret)
		return ret;
	bw_ep_lock(ep->bw);
	ret = bwf_rma_read_locked(ep, a, len);
	bw_ep_unlock(ep->bw);
	return ret;
}

/* The request of a write: header and segments. Returns its length. */
static size_t bwf_rma_request(char *to, const struct bwf_rma_args *a, uint64_t token, size_t len)
{
	struct bwf_write_request req = {
		.token = token,
		.data = a->data,
		.len = len,
		.flags = a->flags & FI_REMOTE_CQ_DATA ? BWF_WRITE_HAS_DATA : 0,
		.segments = (uint32_t)a->rma_n,
	};
	size_t at = sizeof(req);

	memcpy(to, &req, sizeof(req));
	for (size_t i = 0; i < a->rma_n; i++) {
		struct bwf_segment seg = {a->rma[i].addr, a->rma[i].len, a->rma[i].key};

		memcpy(to + at, &seg, sizeof(seg));
		at += sizeof(seg);
	}
	return at;
}

#define BWF_REQUEST_MAX                                                                            \
	(sizeof(struct bwf_write_request) + BWF_IOV_MAX * sizeof(struct bwf_segment))

static void bwf_rma_gather(char *to, const struct iovec *iov, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (iov[i].iov_len)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

static int bwf_rma_write_short(struct bwf_ep *ep, const struct bwf_rma_args *a, struct bwf_op *op,
			       size_t len)
{
	char buf[BWF_REQUEST_MAX + BWF_WRITE_INLINE];
	size_t at = bwf_rma_request(buf, a, bwf_op_token(op), len);

	bwf_rma_gather(buf + at, a->iov, a->n);
	return bw_send(ep->bw, op->peer, BWF_CODE_WRITE, 0, 0, buf, at + len, BW_SEND_EAGER, NULL);
}

/* The request, then the data as a message of their own that names the request by its token. */
static int bwf_rma_write_long(struct bwf_ep *ep, const struct bwf_rma_args *a, struct bwf_op *op,
			      size_t len)
{
	void *data = a->iov[0].iov_base;
	char buf[BWF_REQUEST_MAX];
	size_t at = bwf_rma_request(buf, a, bwf_op_token(op), len);
	int ret;

	if (ep->peer[op->peer].writes_out >= BWF_WRITES_MAX)
		return -FI_EAGAIN;
	if (a->n > 1) {
		data = op->bounce = malloc(len);
		if (!data)
			return -FI_EAGAIN;
		bwf_rma_gather(data, a->iov, a->n);
	}
	ret = bw_send(ep->bw, op->peer, BWF_CODE_WRITE_LONG, 0, 0, buf, at, BW_SEND_EAGER, NULL);
	if (ret < 0)
		return ret;
	op->is_long = true;
	ep->peer[op->peer].writes_out++;
	op->parts++;
	bwf_todo_send(ep, op->peer, BWF_CODE_WRITE_DATA, bwf_op_token(op), data, len, &op->done);
	return 0;
}

static int bwf_rma_write_locked(struct bwf_ep *ep, const struct bwf_rma_args *a, size_t len)
{
	struct bwf_op *op;
	int ret = bwf_rma_begin(ep, a, FI_WRITE, BWF_CNTR_WRITE, &op);

	if (ret)
		return ret;
	if (!bwf_op_await(ep, op, BWF_CODE_WRITE_DONE))
		ret = -FI_EAGAIN;
	else if (len <= BWF_WRITE_INLINE)
		ret = bwf_rma_write_short(ep, a, op, len);
	else
		ret = bwf_rma_write_long(ep, a, op, len);
	if (ret < 0) {
		bwf_op_put(ep, op);
		return ret;
	}
	return 0;
}

static ssize_t bwf_rma_start_write(struct fid_ep *fid, const struct bwf_rma_args *a)
{
	struct bwf_ep *ep = bwf_ep_of(fid);
	size_t len;
	int ret = bwf_rma_check(a, &len);

	if (ret)
		return ret;
	if ((a->silent || (a->flags & FI_INJECT)) && len > BWF_INJECT_MAX)
		return -FI_EMSGSIZE;
	bw_ep_lock(ep->bw);
	ret = bwf_rma_write_locked(ep, a, len);
	bw_ep_unlock(ep->bw);
	return ret;
}

static ssize_t bwf_rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			     fi_addr_t src, uint64_t addr, uint64_t key, void *context)
{
	struct fi_rma_iov rma = {.addr = addr, .len = bwf_iov_len(iov, count), .key = key};

	return bwf_rma_start_read(fid, &(struct bwf_rma_args){.iov = iov,
							      .n = count,
							      .rma = &rma,
							      .rma_n = 1,
							      .addr = src,
							      .context = context,
							      .flags = BWF_FACE(fid)->tx_flags});
}

static ssize_t bwf_rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			    uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = {.iov_base = buf, .iov_len = len};

	return bwf_rma_readv(fid, &iov, &desc, 1, src, addr, key, context);
}

static ssize_t bwf_rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return bwf_rma_start_read(fid, &(struct bwf_rma_args){.iov = msg->msg_iov,
							      .n = msg->iov_count,
							      .rma = msg->rma_iov,
							      .rma_n = msg->rma_iov_count,
							      .addr = msg->addr,
							      .context = msg->context,
							      .flags = flags});
}

/* Writes of one remote segment with the endpoint's default flags and `extra` ones. */
static ssize_t bwf_rma_write_simple(struct fid_ep *fid, const struct iovec *iov, size_t count,
				    uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
				    void *context, uint64_t extra, bool silent)
{
	struct fi_rma_iov rma = {.addr = addr, .len = bwf_iov_len(iov, count), .key = key};
	uint64_t flags = silent ? 0 : BWF_FACE(fid)->tx_flags;

	return bwf_rma_start_write(fid, &(struct bwf_rma_args){.iov = iov,
							       .n = count,
							       .rma = &rma,
							       .rma_n = 1,
							       .addr = dest,
							       .data = data,
							       .context = context,
							       .flags = flags | extra,
							       .silent = silent});
}

static ssize_t bwf_rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc,
			      size_t count, fi_addr_t dest, uint64_t addr, uint64_t key,
			      void *context)
{
	return bwf_rma_write_simple(fid, iov, count, 0, dest, addr, key, context, 0, false);
}

static ssize_t bwf_rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return bwf_rma_write_simple(fid, &iov, 1, 0, dest, addr, key, context, 0, false);
}

static ssize_t bwf_rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return bwf_rma_start_write(fid, &(struct bwf_rma_args){.iov = msg->msg_iov,
							       .n = msg->iov_count,
							       .rma = msg->rma_iov,
							       .rma_n = msg->rma_iov_count,
							       .addr = msg->addr,
							       .data = msg->data,
							       .context = msg->context,
							       .flags = flags});
}

static ssize_t bwf_rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
			      uint64_t addr, uint64_t key)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return bwf_rma_write_simple(fid, &iov, 1, 0, dest, addr, key, NULL, 0, true);
}

static ssize_t bwf_rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
				 uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
				 void *context)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return bwf_rma_write_simple(fid, &iov, 1, data, dest, addr, key, context, FI_REMOTE_CQ_DATA,
				    false);
}

static ssize_t bwf_rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
				  fi_addr_t dest, uint64_t addr, uint64_t key)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return bwf_rma_write_simple(fid, &iov, 1, data, dest, addr, key, NULL, FI_REMOTE_CQ_DATA,
				    true);
}

struct fi_ops_rma bwf_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = bwf_rma_read,
	.readv = bwf_rma_readv,
	.readmsg = bwf_rma_readmsg,
	.write = bwf_rma_write,
	.writev = bwf_rma_writev,
	.writemsg = bwf_rma_writemsg,
	.inject = bwf_rma_inject,
	.writedata = bwf_rma_writedata,
	.injectdata = bwf_rma_injectdata,
};
