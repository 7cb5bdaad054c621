// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Poll sets: a list of queues and counters, asked one after another whether they hold something.
 * Wait sets are not offered: libfabric deprecates them, and a queue's descriptor does the same.
 */
#include "bwf.h"

#include <stdlib.h>

struct bwf_poll_member {
	struct fid *fid;
	uint64_t count; /* of a counter: what was reported last */
};

struct bwf_poll {
	struct fid_poll fid;
	struct bwf_domain *dom;
	struct bwf_lock lock;
	struct bwf_poll_member *member;
	size_t members;
};

static atomic_int *bwf_poll_refs(struct fid *fid)
{
	if (fid->fclass == FI_CLASS_CQ)
		return &BWF_OF(fid, struct bwf_cq, fid.fid)->refs;
	if (fid->fclass == FI_CLASS_CNTR)
		return &BWF_OF(fid, struct bwf_cntr, fid.fid)->refs;
	return NULL;
}

static bool bwf_poll_ready(struct bwf_poll_member *member)
{
	struct bwf_cntr *cntr;
	struct bwf_cq *cq;
	uint64_t count;

	if (member->fid->fclass == FI_CLASS_CQ) {
		cq = BWF_OF(member->fid, struct bwf_cq, fid.fid);
		if (!bwf_cq_ready(cq))
			bwf_port_progress(&cq->port);
		return bwf_cq_ready(cq);
	}
	cntr = BWF_OF(member->fid, struct bwf_cntr, fid.fid);
	bwf_port_progress(&cntr->port);
	count = atomic_load(&cntr->count) + atomic_load(&cntr->errors);
	if (count == member->count)
		return false;
	member->count = count;
	return true;
}

static int bwf_poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct bwf_poll *set = BWF_OF(fid, struct bwf_poll, fid);
	int n = 0;

	bwf_lock_take(&set->lock);
	for (size_t i = 0; i < set->members; i++) {
		if ((n < count || !count) && bwf_poll_ready(&set->member[i]) && n < count)
			context[n++] = set->member[i].fid->context;
	}
	bwf_lock_drop(&set->lock);
	return n;
}

static int bwf_poll_add(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct bwf_poll *set = BWF_OF(fid, struct bwf_poll, fid);
	atomic_int *refs = bwf_poll_refs(event_fid);
	struct bwf_poll_member *member;
	int ret = -FI_ENOMEM;

	if (!refs)
		return -FI_EINVAL;
	bwf_lock_take(&set->lock);
	member = realloc(set->member, (set->members + 1) * sizeof(*member));
	if (member) {
		set->member = member;
		member[set->members++] = (struct bwf_poll_member){.fid = event_fid};
		atomic_fetch_add(refs, 1);
		ret = 0;
	}
	bwf_lock_drop(&set->lock);
	return ret;
}

static int bwf_poll_del(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct bwf_poll *set = BWF_OF(fid, struct bwf_poll, fid);
	int ret = -FI_EINVAL;

	bwf_lock_take(&set->lock);
	for (size_t i = 0; i < set->members; i++) {
		if (set->member[i].fid == event_fid) {
			set->member[i] = set->member[--set->members];
			atomic_fetch_sub(bwf_poll_refs(event_fid), 1);
			ret = 0;
			break;
		}
	}
	bwf_lock_drop(&set->lock);
	return ret;
}

static int bwf_poll_close(struct fid *fid)
{
	struct bwf_poll *set = BWF_OF(fid, struct bwf_poll, fid.fid);

	for (size_t i = 0; i < set->members; i++)
		atomic_fetch_sub(bwf_poll_refs(set->member[i].fid), 1);
	atomic_fetch_sub(&set->dom->refs, 1);
	free(set->member);
	free(set);
	return 0;
}

static struct fi_ops bwf_poll_fid_ops = BWF_FID_OPS(bwf_poll_close, bwf_no_bind, bwf_no_control);

static struct fi_ops_poll bwf_poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = bwf_poll_poll,
	.poll_add = bwf_poll_add,
	.poll_del = bwf_poll_del,
};

int bwf_poll_open(struct fid_domain *fid, struct fi_poll_attr *attr, struct fid_poll **out)
{
	struct bwf_poll *set;

	if (attr && attr->flags)
		return -FI_EBADFLAGS;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->fid.fid.fclass = FI_CLASS_POLL;
	set->fid.fid.ops = &bwf_poll_fid_ops;
	set->fid.ops = &bwf_poll_ops;
	set->dom = BWF_OF(fid, struct bwf_domain, fid);
	atomic_fetch_add(&set->dom->refs, 1);
	*out = &set->fid;
	return 0;
}

int bwf_wait_open(struct fid_fabric *fid, struct fi_wait_attr *attr, struct fid_wait **wait)
{
	return -FI_ENOSYS;
}
