// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Counters of finished operations, and waiting for a count to be reached.
 */
#include "bwf.h"

#include <stdlib.h>

/* Change one of the two counts and wake who waits for it. */
static void bwf_cntr_change(struct bwf_cntr *cntr, _Atomic uint64_t *which, uint64_t value,
			    bool add)
{
	bwf_lock_take(&cntr->lock);
	if (add)
		value += atomic_load_explicit(which, memory_order_relaxed);
	atomic_store_explicit(which, value, memory_order_release);
	bwf_port_notify(&cntr->port);
	bwf_lock_drop(&cntr->lock);
}

void bwf_cntr_count(struct bwf_cntr *cntr, int status)
{
	bwf_cntr_change(cntr, status ? &cntr->errors : &cntr->count, 1, true);
}

static uint64_t bwf_cntr_read(struct fid_cntr *fid)
{
	struct bwf_cntr *cntr = BWF_OF(fid, struct bwf_cntr, fid);
	uint64_t count;

	bwf_port_progress(&cntr->port);
	count = atomic_load_explicit(&cntr->count, memory_order_acquire);
	atomic_store_explicit(&cntr->seen, count, memory_order_relaxed);
	return count;
}

static uint64_t bwf_cntr_readerr(struct fid_cntr *fid)
{
	struct bwf_cntr *cntr = BWF_OF(fid, struct bwf_cntr, fid);
	uint64_t errors;

	bwf_port_progress(&cntr->port);
	errors = atomic_load_explicit(&cntr->errors, memory_order_acquire);
	atomic_store_explicit(&cntr->seen_errors, errors, memory_order_relaxed);
	return errors;
}

static int bwf_cntr_add(struct fid_cntr *fid, uint64_t value)
{
	struct bwf_cntr *cntr = BWF_OF(fid, struct bwf_cntr, fid);

	bwf_cntr_change(cntr, &cntr->count, value, true);
	return 0;
}

static int bwf_cntr_set(struct fid_cntr *fid, uint64_t value)
{
	struct bwf_cntr *cntr = BWF_OF(fid, struct bwf_cntr, fid);

	bwf_cntr_change(cntr, &cntr->count, value, false);
	return 0;
}

static int bwf_cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	struct bwf_cntr *cntr = BWF_OF(fid, struct bwf_cntr, fid);

	bwf_cntr_change(cntr, &cntr->errors, value, true);
	return 0;
}

static int bwf_cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	struct bwf_cntr *cntr = BWF_OF(fid, struct bwf_cntr, fid);

	bwf_cntr_change(cntr, &cntr->errors, value, false);
	return 0;
}

/* 0 when the threshold is reached, -FI_EAVAIL when an error came since, else -FI_EAGAIN. */
static int bwf_cntr_test(struct bwf_cntr *cntr, uint64_t threshold, uint64_t errors)
{
	if (atomic_load_explicit(&cntr->count, memory_order_acquire) >= threshold)
		return 0;
	if (atomic_load_explicit(&cntr->errors, memory_order_acquire) != errors)
		return -FI_EAVAIL;
	return -FI_EAGAIN;
}

static int bwf_cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout_ms)
{
	struct bwf_cntr *cntr = BWF_OF(fid, struct bwf_cntr, fid);
	uint64_t errors = atomic_load_explicit(&cntr->errors, memory_order_acquire);
	uint64_t deadline_ns = bwf_deadline_ns(timeout_ms);

	for (;;) {
		int ret = bwf_cntr_test(cntr, threshold, errors);
		uint32_t wakes;

		if (ret != -FI_EAGAIN)
			return ret;
		bwf_port_progress(&cntr->port);
		bwf_lock_take(&cntr->lock);
		ret = bwf_cntr_test(cntr, threshold, errors);
		if (ret == -FI_EAGAIN)
			atomic_fetch_add(&cntr->port.sleepers, 1);
		wakes = atomic_load(&cntr->port.wakes);
		bwf_lock_drop(&cntr->lock);
		if (ret != -FI_EAGAIN)
			return ret;
		if (deadline_ns == UINT64_MAX || bwf_now_ns() < deadline_ns)
			ret = bwf_port_sleep(&cntr->port, wakes, deadline_ns);
		else
			ret = -FI_ETIMEDOUT;
		atomic_fetch_sub(&cntr->port.sleepers, 1);
		if (ret == -FI_ETIMEDOUT || ret == -FI_EINTR)
			return ret;
	}
}

/* An error forbids to sleep once: a program that never asks for errors is not to turn in circles.
 */
int bwf_cntr_trywait(struct bwf_cntr *cntr)
{
	uint64_t errors;
	int ret;

	if (cntr->port.wait_obj != FI_WAIT_FD)
		return -FI_EINVAL;
	ret = bwf_port_arm(&cntr->port);
	if (ret)
		return ret;
	bwf_lock_take(&cntr->lock);
	errors = atomic_load(&cntr->errors);
	if (atomic_load(&cntr->count) != atomic_load(&cntr->seen) ||
	    errors != atomic_load(&cntr->seen_errors))
		ret = -FI_EAGAIN;
	else
		atomic_store(&cntr->port.armed, true);
	atomic_store(&cntr->seen_errors, errors);
	bwf_lock_drop(&cntr->lock);
	if (ret)
		bwf_port_pass_on(&cntr->port);
	return ret;
}

static int bwf_cntr_close(struct fid *fid)
{
	struct bwf_cntr *cntr = BWF_OF(fid, struct bwf_cntr, fid.fid);

	if (atomic_load(&cntr->refs))
		return -FI_EBUSY;
	bwf_port_close(&cntr->port);
	atomic_fetch_sub(&cntr->dom->refs, 1);
	free(cntr);
	return 0;
}

static int bwf_cntr_control(struct fid *fid, int command, void *arg)
{
	return bwf_port_getwait(&BWF_OF(fid, struct bwf_cntr, fid.fid)->port, command, arg);
}

static struct fi_ops bwf_cntr_fid_ops = BWF_FID_OPS(bwf_cntr_close, bwf_no_bind, bwf_cntr_control);

static struct fi_ops_cntr bwf_cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = bwf_cntr_read,
	.readerr = bwf_cntr_readerr,
	.add = bwf_cntr_add,
	.set = bwf_cntr_set,
	.wait = bwf_cntr_wait,
	.adderr = bwf_cntr_adderr,
	.seterr = bwf_cntr_seterr,
};

int bwf_cntr_open(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **out,
		  void *context)
{
	enum fi_wait_obj wait_obj = attr ? attr->wait_obj : FI_WAIT_UNSPEC;
	struct bwf_cntr *cntr;

	if (attr && attr->events != FI_CNTR_EVENTS_COMP)
		return -FI_ENOSYS;
	if (wait_obj == FI_WAIT_MUTEX_COND || wait_obj == FI_WAIT_POLLFD || wait_obj == FI_WAIT_SET)
		return -FI_ENOSYS;
	if (wait_obj > FI_WAIT_POLLFD)
		return -FI_EINVAL;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.context = context;
	cntr->fid.fid.ops = &bwf_cntr_fid_ops;
	cntr->fid.ops = &bwf_cntr_ops;
	cntr->dom = BWF_OF(fid, struct bwf_domain, fid);
	bwf_port_init(&cntr->port, wait_obj);
	atomic_fetch_add(&cntr->dom->refs, 1);
	*out = &cntr->fid;
	return 0;
}
