// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Completion queues: a ring that grows, since the size that applications ask for is a hint. While
 * it is full, with what is under way, new operations find no room (FI_EAGAIN, as resource
 * management promises). Entries are kept whole and packed into the queue's format when they are
 * read; an error stays at the head until it is taken with readerr.
 */
#include "bwf.h"

#include <stdio.h>
#include <stdlib.h>

#define BWF_CQ_ROOM_MIN 256
#define BWF_CQ_MOST	65536 /* entries of a full one, unless the application asks for more */
#define BWF_CQ_OVERFULL 16    /* times as many */

bool bwf_cq_ready(struct bwf_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_acquire) !=
	       atomic_load_explicit(&cq->tail, memory_order_acquire);
}

static uint64_t bwf_cq_entries(const struct bwf_cq *cq)
{
	uint64_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);

	/* Later than head: never less. */
	return atomic_load_explicit(&cq->tail, memory_order_relaxed) - head;
}

bool bwf_cq_full(const struct bwf_cq *cq, uint64_t under_way)
{
	return cq && bwf_cq_entries(cq) + under_way >= cq->most;
}

bool bwf_cq_overfull(const struct bwf_cq *cq)
{
	return cq && bwf_cq_entries(cq) >= cq->most * BWF_CQ_OVERFULL;
}

/* Double the ring. Called with the lock. */
static bool bwf_cq_grow(struct bwf_cq *cq)
{
	struct bwf_cqe *ring = malloc(2 * cq->room * sizeof(*ring));

	if (!ring)
		return false;
	for (uint64_t i = cq->head; i != cq->tail; i++)
		ring[i & (2 * cq->room - 1)] = cq->ring[i & (cq->room - 1)];
	free(cq->ring);
	cq->ring = ring;
	cq->room *= 2;
	return true;
}

void bwf_cq_push(struct bwf_cq *cq, const struct bwf_cqe *e)
{
	uint64_t tail;

	bwf_lock_take(&cq->lock);
	tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	if (tail - cq->head == cq->room && !bwf_cq_grow(cq)) {
		bwf_lock_drop(&cq->lock);
		bwf_log(BWF_LOG_ERROR, "out of memory: a completion of %s is lost",
			e->err ? "a failed operation" : "an operation");
		return;
	}
	cq->ring[tail & (cq->room - 1)] = *e;
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
	bwf_port_notify(&cq->port);
	bwf_lock_drop(&cq->lock);
}

static void bwf_cq_pack(const struct bwf_cq *cq, const struct bwf_cqe *e, void *to)
{
	struct fi_cq_tagged_entry full;

	if (cq->format == FI_CQ_FORMAT_CONTEXT) {
		*(struct fi_cq_entry *)to = (struct fi_cq_entry){.op_context = e->context};
		return;
	}
	full = (struct fi_cq_tagged_entry){
		.op_context = e->context,
		.flags = e->flags,
		.len = e->len,
		.buf = e->buf,
		.data = e->data,
		.tag = e->tag,
	};
	if (cq->format == FI_CQ_FORMAT_TAGGED)
		*(struct fi_cq_tagged_entry *)to = full;
	else
		memcpy(to, &full, cq->entry_size); /* each format is a prefix of the next one */
}

/* Entries from `head` on are left. Of several threads that sleep one may have taken back, before it
 * sleeps, the word that was to wake them all. Called with the lock. */
static void bwf_cq_leave(struct bwf_cq *cq, uint64_t head)
{
	atomic_store_explicit(&cq->head, head, memory_order_release);
	if (head != cq->tail)
		bwf_port_notify(&cq->port);
}

static ssize_t bwf_cq_take(struct bwf_cq *cq, char *buf, size_t count, fi_addr_t *src)
{
	size_t n = 0;
	uint64_t head;

	bwf_lock_take(&cq->lock);
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	while (n < count && head != cq->tail) {
		const struct bwf_cqe *e = &cq->ring[head & (cq->room - 1)];

		if (e->err)
			break;
		bwf_cq_pack(cq, e, buf + n * cq->entry_size);
		if (src)
			src[n] = e->src;
		n++;
		head++;
	}
	bwf_cq_leave(cq, head);
	if (!n && count && head != cq->tail) {
		bwf_lock_drop(&cq->lock);
		return -FI_EAVAIL;
	}
	bwf_lock_drop(&cq->lock);
	return n ? (ssize_t)n : -FI_EAGAIN;
}

static ssize_t bwf_cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
	struct bwf_cq *cq = BWF_OF(fid, struct bwf_cq, fid);

	if (!bwf_cq_ready(cq) || !count) {
		bwf_port_progress(&cq->port);
		if (!bwf_cq_ready(cq))
			return -FI_EAGAIN;
	}
	return bwf_cq_take(cq, buf, count, src);
}

static ssize_t bwf_cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return bwf_cq_readfrom(fid, buf, count, NULL);
}

static ssize_t bwf_cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct bwf_cq *cq = BWF_OF(fid, struct bwf_cq, fid);
	ssize_t ret = -FI_EAGAIN;
	uint64_t head;

	if (!bwf_cq_ready(cq))
		bwf_port_progress(&cq->port);
	bwf_lock_take(&cq->lock);
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	if (head != cq->tail && cq->ring[head & (cq->room - 1)].err) {
		const struct bwf_cqe *e = &cq->ring[head & (cq->room - 1)];

		buf->op_context = e->context;
		buf->flags = e->flags;
		buf->len = e->len;
		buf->buf = e->buf;
		buf->data = e->data;
		buf->tag = e->tag;
		buf->olen = e->olen;
		buf->err = e->err;
		buf->prov_errno = e->err;
		if (FI_VERSION_GE(cq->dom->fabric->fid.api_version, FI_VERSION(1, 5)))
			buf->err_data_size = 0;
		bwf_cq_leave(cq, head + 1);
		ret = 1;
	}
	bwf_lock_drop(&cq->lock);
	return ret;
}

static ssize_t bwf_cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src,
				const void *cond, int timeout_ms)
{
	struct bwf_cq *cq = BWF_OF(fid, struct bwf_cq, fid);
	uint64_t deadline_ns = bwf_deadline_ns(timeout_ms);

	if (cq->port.wait_obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	for (;;) {
		ssize_t n = bwf_cq_readfrom(fid, buf, count, src);
		uint32_t wakes;
		bool sleep;

		if (n != -FI_EAGAIN)
			return n;
		if (deadline_ns != UINT64_MAX && bwf_now_ns() >= deadline_ns)
			return -FI_EAGAIN;
		bwf_lock_take(&cq->lock);
		if (atomic_exchange(&cq->port.signalled, false)) {
			bwf_lock_drop(&cq->lock);
			return -FI_EAGAIN;
		}
		sleep = !bwf_cq_ready(cq);
		if (sleep)
			atomic_fetch_add(&cq->port.sleepers, 1);
		wakes = atomic_load(&cq->port.wakes);
		bwf_lock_drop(&cq->lock);
		if (!sleep)
			continue;
		n = bwf_port_sleep(&cq->port, wakes, deadline_ns);
		atomic_fetch_sub(&cq->port.sleepers, 1);
		if (n == -FI_EINTR && !bwf_cq_ready(cq))
			return -FI_EINTR;
	}
}

static ssize_t bwf_cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond,
			    int timeout_ms)
{
	return bwf_cq_sreadfrom(fid, buf, count, NULL, cond, timeout_ms);
}

static int bwf_cq_signal(struct fid_cq *fid)
{
	struct bwf_cq *cq = BWF_OF(fid, struct bwf_cq, fid);

	if (cq->port.wait_obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	bwf_lock_take(&cq->lock);
	atomic_store(&cq->port.signalled, true);
	bwf_port_notify(&cq->port);
	bwf_lock_drop(&cq->lock);
	return 0;
}

static const char *bwf_cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data,
				   char *buf, size_t len)
{
	return bwf_strerror(prov_errno, buf, len);
}

int bwf_cq_trywait(struct bwf_cq *cq)
{
	int ret;

	if (cq->port.wait_obj != FI_WAIT_FD)
		return -FI_EINVAL;
	ret = bwf_port_arm(&cq->port);
	if (ret)
		return ret;
	bwf_lock_take(&cq->lock);
	if (bwf_cq_ready(cq))
		ret = -FI_EAGAIN;
	else
		atomic_store(&cq->port.armed, true);
	bwf_lock_drop(&cq->lock);
	if (ret)
		bwf_port_pass_on(&cq->port);
	return ret;
}

static int bwf_cq_close(struct fid *fid)
{
	struct bwf_cq *cq = BWF_OF(fid, struct bwf_cq, fid.fid);

	if (atomic_load(&cq->refs))
		return -FI_EBUSY;
	bwf_port_close(&cq->port);
	atomic_fetch_sub(&cq->dom->refs, 1);
	free(cq->ring);
	free(cq);
	return 0;
}

static int bwf_cq_control(struct fid *fid, int command, void *arg)
{
	return bwf_port_getwait(&BWF_OF(fid, struct bwf_cq, fid.fid)->port, command, arg);
}

static struct fi_ops bwf_cq_fid_ops = BWF_FID_OPS(bwf_cq_close, bwf_no_bind, bwf_cq_control);

static struct fi_ops_cq bwf_cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = bwf_cq_read,
	.readfrom = bwf_cq_readfrom,
	.readerr = bwf_cq_readerr,
	.sread = bwf_cq_sread,
	.sreadfrom = bwf_cq_sreadfrom,
	.signal = bwf_cq_signal,
	.strerror = bwf_cq_strerror,
};

static size_t bwf_cq_entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return 0;
	}
}

int bwf_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **out, void *context)
{
	enum fi_cq_format format =
		attr->format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT : attr->format;
	struct bwf_cq *cq;

	if (attr->wait_obj == FI_WAIT_MUTEX_COND || attr->wait_obj == FI_WAIT_POLLFD ||
	    attr->wait_obj == FI_WAIT_SET)
		return -FI_ENOSYS;
	if (!bwf_cq_entry_size(format) || attr->wait_obj > FI_WAIT_POLLFD)
		return -FI_EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	cq->room = BWF_CQ_ROOM_MIN;
	cq->most = attr->size > BWF_CQ_MOST ? attr->size : BWF_CQ_MOST;
	cq->ring = malloc(cq->room * sizeof(*cq->ring));
	if (!cq->ring) {
		free(cq);
		return -FI_ENOMEM;
	}
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &bwf_cq_fid_ops;
	cq->fid.ops = &bwf_cq_ops;
	cq->dom = BWF_OF(fid, struct bwf_domain, fid);
	cq->format = format;
	cq->entry_size = bwf_cq_entry_size(format);
	attr->format = format;
	bwf_port_init(&cq->port, attr->wait_obj);
	atomic_fetch_add(&cq->dom->refs, 1);
	*out = &cq->fid;
	return 0;
}
