// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Event queues: what the application writes itself and the ends of asynchronous address vector
 * insertions. A list under a lock; a descriptor is readable while it holds something.
 */
#include "bwf.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct bwf_eq_event {
	struct bwf_eq_event *next;
	uint32_t event;
	size_t len;
	char data[];
};

struct bwf_eq {
	struct fid_eq fid; /* first: calls cast struct fid to this */
	struct bwf_fabric *fabric;
	enum fi_wait_obj wait_obj;
	uint64_t flags;
	struct bwf_lock lock;
	struct bwf_eq_event *head, **end;
	int fd; /* an eventfd: readable while the list is not empty */
};

static int bwf_eq_append(struct bwf_eq *eq, struct bwf_eq_event *e)
{
	if (!e)
		return -FI_ENOMEM;
	bwf_lock_take(&eq->lock);
	*eq->end = e;
	eq->end = &e->next;
	eventfd_write(eq->fd, 1);
	bwf_lock_drop(&eq->lock);
	return 0;
}

static struct bwf_eq_event *bwf_eq_event_new(uint32_t event, const void *data, size_t len)
{
	struct bwf_eq_event *e = calloc(1, sizeof(*e) + len);

	if (e) {
		e->event = event;
		e->len = len;
		memcpy(e->data, data, len);
	}
	return e;
}

void bwf_eq_post(struct bwf_eq *eq, uint32_t event, const struct fi_eq_entry *entry)
{
	if (bwf_eq_append(eq, bwf_eq_event_new(event, entry, sizeof(*entry))))
		bwf_log(BWF_LOG_ERROR, "out of memory: an event is lost");
}

/* Remove the first event. Called with the lock. */
static void bwf_eq_drop(struct bwf_eq *eq)
{
	struct bwf_eq_event *e = eq->head;
	eventfd_t ignored;

	eq->head = e->next;
	free(e);
	if (!eq->head) {
		eq->end = &eq->head;
		eventfd_read(eq->fd, &ignored);
	}
}

static ssize_t bwf_eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len,
			   uint64_t flags)
{
	struct bwf_eq *eq = BWF_OF(fid, struct bwf_eq, fid);
	ssize_t ret;

	bwf_lock_take(&eq->lock);
	if (!eq->head) {
		ret = -FI_EAGAIN;
	} else if (len < eq->head->len) {
		ret = -FI_ETOOSMALL;
	} else {
		ret = (ssize_t)eq->head->len;
		*event = eq->head->event;
		memcpy(buf, eq->head->data, eq->head->len);
		if (!(flags & FI_PEEK))
			bwf_eq_drop(eq);
	}
	bwf_lock_drop(&eq->lock);
	return ret;
}

/* No event is ever an error: insertions into an address vector fail in their call. */
static ssize_t bwf_eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	return -FI_EAGAIN;
}

static ssize_t bwf_eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len,
			    uint64_t flags)
{
	struct bwf_eq *eq = BWF_OF(fid, struct bwf_eq, fid);
	int ret;

	if (!(eq->flags & FI_WRITE))
		return -FI_EINVAL;
	ret = bwf_eq_append(eq, bwf_eq_event_new(event, buf, len));
	return ret ? ret : (ssize_t)len;
}

static ssize_t bwf_eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len,
			    int timeout_ms, uint64_t flags)
{
	struct bwf_eq *eq = BWF_OF(fid, struct bwf_eq, fid);
	uint64_t deadline_ns = bwf_deadline_ns(timeout_ms);

	if (eq->wait_obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	for (;;) {
		ssize_t ret = bwf_eq_read(fid, event, buf, len, flags);
		struct pollfd p = {.fd = eq->fd, .events = POLLIN};
		uint64_t now_ns = bwf_now_ns();
		int ms = -1;

		if (ret != -FI_EAGAIN || now_ns >= deadline_ns)
			return ret;
		if (deadline_ns != UINT64_MAX)
			ms = (int)((deadline_ns - now_ns + 999999) / 1000000);
		if (poll(&p, 1, ms) < 0)
			return -errno;
	}
}

static const char *bwf_eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data,
				   char *buf, size_t len)
{
	return bwf_strerror(prov_errno, buf, len);
}

int bwf_eq_trywait(struct bwf_eq *eq)
{
	bool ready;

	if (eq->wait_obj != FI_WAIT_FD)
		return -FI_EINVAL;
	bwf_lock_take(&eq->lock);
	ready = eq->head != NULL;
	bwf_lock_drop(&eq->lock);
	return ready ? -FI_EAGAIN : 0;
}

static int bwf_eq_close(struct fid *fid)
{
	struct bwf_eq *eq = BWF_OF(fid, struct bwf_eq, fid.fid);

	while (eq->head)
		bwf_eq_drop(eq);
	close(eq->fd);
	atomic_fetch_sub(&eq->fabric->refs, 1);
	free(eq);
	return 0;
}

static int bwf_eq_control(struct fid *fid, int command, void *arg)
{
	struct bwf_eq *eq = BWF_OF(fid, struct bwf_eq, fid.fid);

	switch (command) {
	case FI_GETWAIT:
		if (eq->wait_obj != FI_WAIT_FD)
			return -FI_ENODATA;
		*(int *)arg = eq->fd;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = eq->wait_obj;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops bwf_eq_fid_ops = BWF_FID_OPS(bwf_eq_close, bwf_no_bind, bwf_eq_control);

static struct fi_ops_eq bwf_eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = bwf_eq_read,
	.readerr = bwf_eq_readerr,
	.write = bwf_eq_write,
	.sread = bwf_eq_sread,
	.strerror = bwf_eq_strerror,
};

int bwf_eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr, struct fid_eq **out, void *context)
{
	struct bwf_eq *eq;

	if (attr->wait_obj == FI_WAIT_MUTEX_COND || attr->wait_obj == FI_WAIT_POLLFD ||
	    attr->wait_obj == FI_WAIT_SET)
		return -FI_ENOSYS;
	if (attr->wait_obj > FI_WAIT_POLLFD)
		return -FI_EINVAL;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (eq->fd < 0) {
		free(eq);
		return -errno;
	}
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &bwf_eq_fid_ops;
	eq->fid.ops = &bwf_eq_ops;
	eq->fabric = BWF_OF(fid, struct bwf_fabric, fid);
	eq->wait_obj = attr->wait_obj;
	eq->flags = attr->flags;
	eq->end = &eq->head;
	atomic_fetch_add(&eq->fabric->refs, 1);
	*out = &eq->fid;
	return 0;
}
