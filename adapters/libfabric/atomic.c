// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Atomic operations, the initiator's side: a request with operands goes to the target's provider,
 * which carries it out and answers with the values before. Requests are always eager messages, so
 * they keep the order of their calls.
 */
#include "bwf.h"

struct bwf_atomic_args {
	enum bwf_atomic_kind kind;
	const struct fi_ioc *iov;
	size_t n;
	const struct fi_ioc *compare;
	size_t compare_n;
	const struct fi_ioc *result;
	size_t result_n;
	const struct fi_rma_ioc *rma;
	size_t rma_n;
	fi_addr_t addr;
	enum fi_datatype type;
	enum fi_op op;
	uint64_t data;
	void *context;
	uint64_t flags;
	bool silent; /* an inject call */
};

#define BWF_ATOMIC_HEAD_MAX                                                                        \
	(sizeof(struct bwf_atomic_request) + BWF_IOV_MAX * sizeof(struct bwf_segment))

static size_t bwf_atomic_count(const struct fi_ioc *iov, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += iov[i].count;
	return count;
}

/* Elements of the operation, or a negative error. `size`: bytes of one of them. */
static ssize_t bwf_atomic_check(const struct bwf_atomic_args *a, size_t *size)
{
	size_t count = 0;

	*size = bwf_atomic_size(a->type, a->op, a->kind);
	if (!*size)
		return -FI_EOPNOTSUPP;
	if (a->n > BWF_IOV_MAX || a->compare_n > BWF_IOV_MAX || a->result_n > BWF_IOV_MAX ||
	    !a->rma_n || a->rma_n > BWF_IOV_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < a->rma_n; i++)
		count += a->rma[i].count;
	if (!count || (a->op != FI_ATOMIC_READ && bwf_atomic_count(a->iov, a->n) != count))
		return -FI_EINVAL;
	if (a->kind != BWF_ATOMIC_BASE && bwf_atomic_count(a->result, a->result_n) != count)
		return -FI_EINVAL;
	if (a->kind == BWF_ATOMIC_COMPARE && bwf_atomic_count(a->compare, a->compare_n) != count)
		return -FI_EINVAL;
	return count * *size > BWF_ATOMIC_MAX ? -FI_EMSGSIZE : (ssize_t)count;
}

static size_t bwf_atomic_gather(char *to, const struct fi_ioc *iov, size_t n, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		memcpy(to + at, iov[i].addr, iov[i].count * size);
		at += iov[i].count * size;
	}
	return at;
}

/* Put the request together. Returns its length. */
static size_t bwf_atomic_request(char *to, const struct bwf_atomic_args *a, uint64_t token,
				 size_t count, size_t size)
{
	struct bwf_atomic_request req = {
		.token = token,
		.data = a->data,
		.count = (uint32_t)count,
		.flags = a->flags & FI_REMOTE_CQ_DATA ? BWF_WRITE_HAS_DATA : 0,
		.type = (uint16_t)a->type,
		.op = (uint16_t)a->op,
		.kind = (uint16_t)a->kind,
		.segments = (uint16_t)a->rma_n,
	};
	size_t at = sizeof(req);

	memcpy(to, &req, sizeof(req));
	for (size_t i = 0; i < a->rma_n; i++) {
		struct bwf_segment seg = {a->rma[i].addr, a->rma[i].count, a->rma[i].key};

		memcpy(to + at, &seg, sizeof(seg));
		at += sizeof(seg);
	}
	if (a->op != FI_ATOMIC_READ)
		at += bwf_atomic_gather(to + at, a->iov, a->n, size);
	if (a->kind == BWF_ATOMIC_COMPARE)
		at += bwf_atomic_gather(to + at, a->compare, a->compare_n, size);
	return at;
}

static int bwf_atomic_start_locked(struct bwf_ep *ep, const struct bwf_atomic_args *a, size_t count,
				   size_t size)
{
	char buf[BWF_ATOMIC_HEAD_MAX + 2 * BWF_ATOMIC_MAX];
	bool fetch = a->kind != BWF_ATOMIC_BASE;
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
	op->flags = FI_ATOMIC | (fetch ? FI_READ : FI_WRITE);
	op->cntr = ep->cntr[fetch ? BWF_CNTR_READ : BWF_CNTR_WRITE];
	op->results = fetch ? (uint8_t)a->result_n : 0;
	for (int i = 0; i < op->results; i++) {
		op->result[i].iov_base = a->result[i].addr;
		op->result[i].iov_len = a->result[i].count * size;
	}
	if (bwf_op_await(ep, op, BWF_CODE_ATOMIC_DONE))
		ret = bw_send(ep->bw, peer, BWF_CODE_ATOMIC, 0, 0, buf,
			      bwf_atomic_request(buf, a, bwf_op_token(op), count, size),
			      BW_SEND_EAGER, NULL);
	else
		ret = -FI_EAGAIN;
	if (ret < 0) {
		bwf_op_put(ep, op);
		return ret;
	}
	return 0;
}

static ssize_t bwf_atomic_start(struct fid_ep *fid, const struct bwf_atomic_args *a)
{
	struct bwf_ep *ep = bwf_ep_of(fid);
	size_t size;
	ssize_t ret = bwf_atomic_check(a, &size);

	if (ret < 0)
		return ret;
	bw_ep_lock(ep->bw);
	ret = bwf_atomic_start_locked(ep, a, (size_t)ret, size);
	bw_ep_unlock(ep->bw);
	return ret;
}

/* With what the three kinds of messages have in common. */
static ssize_t bwf_atomic_start_msg(struct fid_ep *fid, struct bwf_atomic_args *a,
				    const struct fi_msg_atomic *msg, uint64_t flags)
{
	a->iov = msg->msg_iov;
	a->n = msg->iov_count;
	a->rma = msg->rma_iov;
	a->rma_n = msg->rma_iov_count;
	a->addr = msg->addr;
	a->type = msg->datatype;
	a->op = msg->op;
	a->data = msg->data;
	a->context = msg->context;
	a->flags = flags;
	return bwf_atomic_start(fid, a);
}

/* With one range of the target, of `count` elements. */
static ssize_t bwf_atomic_start_at(struct fid_ep *fid, struct bwf_atomic_args *a, uint64_t addr,
				   size_t count, uint64_t key)
{
	struct fi_rma_ioc rma = {addr, count, key};

	a->rma = &rma;
	a->rma_n = 1;
	a->flags = a->silent ? 0 : BWF_FACE(fid)->tx_flags;
	return bwf_atomic_start(fid, a);
}

/* Operations without a result. */
static ssize_t bwf_atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   uint64_t flags)
{
	return bwf_atomic_start_msg(fid, &(struct bwf_atomic_args){.kind = BWF_ATOMIC_BASE}, msg,
				    flags);
}

static ssize_t bwf_atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				 size_t count, fi_addr_t dest, uint64_t addr, uint64_t key,
				 enum fi_datatype type, enum fi_op op, void *context)
{
	struct bwf_atomic_args a = {.kind = BWF_ATOMIC_BASE,
				    .iov = iov,
				    .n = count,
				    .addr = dest,
				    .type = type,
				    .op = op,
				    .context = context};

	return bwf_atomic_start_at(fid, &a, addr, bwf_atomic_count(iov, count), key);
}

static ssize_t bwf_atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type,
				enum fi_op op, void *context)
{
	struct fi_ioc iov = {(void *)buf, count};

	return bwf_atomic_writev(fid, &iov, &desc, 1, dest, addr, key, type, op, context);
}

static ssize_t bwf_atomic_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t dest,
				 uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op)
{
	struct fi_ioc iov = {(void *)buf, count};
	struct bwf_atomic_args a = {.kind = BWF_ATOMIC_BASE,
				    .iov = &iov,
				    .n = 1,
				    .addr = dest,
				    .type = type,
				    .op = op,
				    .silent = true};

	return bwf_atomic_start_at(fid, &a, addr, count, key);
}

/* Operations that fetch the values before. */
static ssize_t bwf_atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				       struct fi_ioc *resultv, void **result_desc,
				       size_t result_count, uint64_t flags)
{
	struct bwf_atomic_args a = {
		.kind = BWF_ATOMIC_FETCH, .result = resultv, .result_n = result_count};

	return bwf_atomic_start_msg(fid, &a, msg, flags);
}

static ssize_t bwf_atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				     size_t count, struct fi_ioc *resultv, void **result_desc,
				     size_t result_count, fi_addr_t dest, uint64_t addr,
				     uint64_t key, enum fi_datatype type, enum fi_op op,
				     void *context)
{
	struct bwf_atomic_args a = {.kind = BWF_ATOMIC_FETCH,
				    .iov = iov,
				    .n = count,
				    .result = resultv,
				    .result_n = result_count,
				    .addr = dest,
				    .type = type,
				    .op = op,
				    .context = context};

	return bwf_atomic_start_at(fid, &a, addr, bwf_atomic_count(resultv, result_count), key);
}

static ssize_t bwf_atomic_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				    void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
				    uint64_t key, enum fi_datatype type, enum fi_op op,
				    void *context)
{
	struct fi_ioc iov = {(void *)buf, count}, resultv = {result, count};

	return bwf_atomic_readwritev(fid, &iov, &desc, 1, &resultv, &result_desc, 1, dest, addr,
				     key, type, op, context);
}

/* Operations that compare first. */
static ssize_t bwf_atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				       const struct fi_ioc *comparev, void **compare_desc,
				       size_t compare_count, struct fi_ioc *resultv,
				       void **result_desc, size_t result_count, uint64_t flags)
{
	struct bwf_atomic_args a = {.kind = BWF_ATOMIC_COMPARE,
				    .compare = comparev,
				    .compare_n = compare_count,
				    .result = resultv,
				    .result_n = result_count};

	return bwf_atomic_start_msg(fid, &a, msg, flags);
}

static ssize_t bwf_atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				     size_t count, const struct fi_ioc *comparev,
				     void **compare_desc, size_t compare_count,
				     struct fi_ioc *resultv, void **result_desc,
				     size_t result_count, fi_addr_t dest, uint64_t addr,
				     uint64_t key, enum fi_datatype type, enum fi_op op,
				     void *context)
{
	struct bwf_atomic_args a = {.kind = BWF_ATOMIC_COMPARE,
				    .iov = iov,
				    .n = count,
				    .compare = comparev,
				    .compare_n = compare_count,
				    .result = resultv,
				    .result_n = result_count,
				    .addr = dest,
				    .type = type,
				    .op = op,
				    .context = context};

	return bwf_atomic_start_at(fid, &a, addr, bwf_atomic_count(iov, count), key);
}

static ssize_t bwf_atomic_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				    const void *compare, void *compare_desc, void *result,
				    void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
				    enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_ioc iov = {(void *)buf, count}, comparev = {(void *)compare, count};
	struct fi_ioc resultv = {result, count};

	return bwf_atomic_compwritev(fid, &iov, &desc, 1, &comparev, &compare_desc, 1, &resultv,
				     &result_desc, 1, dest, addr, key, type, op, context);
}

/* What is offered. */
static int bwf_atomic_valid(enum fi_datatype type, enum fi_op op, size_t *count,
			    enum bwf_atomic_kind kind)
{
	size_t size = bwf_atomic_size(type, op, kind);

	if (!size)
		return -FI_EOPNOTSUPP;
	if (count)
		*count = BWF_ATOMIC_MAX / size;
	return 0;
}

static int bwf_atomic_writevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op,
				 size_t *count)
{
	return bwf_atomic_valid(type, op, count, BWF_ATOMIC_BASE);
}

static int bwf_atomic_readwritevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op,
				     size_t *count)
{
	return bwf_atomic_valid(type, op, count, BWF_ATOMIC_FETCH);
}

static int bwf_atomic_compwritevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op,
				     size_t *count)
{
	return bwf_atomic_valid(type, op, count, BWF_ATOMIC_COMPARE);
}

int bwf_atomic_query(struct fid_domain *fid, enum fi_datatype type, enum fi_op op,
		     struct fi_atomic_attr *attr, uint64_t flags)
{
	enum bwf_atomic_kind kind = BWF_ATOMIC_BASE;

	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC | FI_TAGGED))
		return -FI_EBADFLAGS;
	if (flags & FI_TAGGED)
		return -FI_EOPNOTSUPP;
	if (flags & FI_COMPARE_ATOMIC)
		kind = BWF_ATOMIC_COMPARE;
	else if (flags & FI_FETCH_ATOMIC)
		kind = BWF_ATOMIC_FETCH;
	attr->size = bwf_atomic_size(type, op, kind);
	return bwf_atomic_valid(type, op, &attr->count, kind);
}

struct fi_ops_atomic bwf_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = bwf_atomic_write,
	.writev = bwf_atomic_writev,
	.writemsg = bwf_atomic_writemsg,
	.inject = bwf_atomic_inject,
	.readwrite = bwf_atomic_readwrite,
	.readwritev = bwf_atomic_readwritev,
	.readwritemsg = bwf_atomic_readwritemsg,
	.compwrite = bwf_atomic_compwrite,
	.compwritev = bwf_atomic_compwritev,
	.compwritemsg = bwf_atomic_compwritemsg,
	.writevalid = bwf_atomic_writevalid,
	.readwritevalid = bwf_atomic_readwritevalid,
	.compwritevalid = bwf_atomic_compwritevalid,
};
