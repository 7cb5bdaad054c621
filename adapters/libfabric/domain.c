// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The domain: holds registered memory and is the parent of address vectors, queues, counters and
 * endpoints.
 */
#include "bwf.h"
#include "device.h"

#include <stdlib.h>
#include <unistd.h>

int bwf_domain_attach(struct bwf_domain *dom, struct bwf_ep *ep)
{
	struct bwf_ep **eps;

	bwf_lock_take(&dom->ep_lock);
	eps = realloc(dom->eps, (dom->eps_count + 1) * sizeof(struct bwf_ep *));
	if (eps) {
		eps[dom->eps_count++] = ep;
		dom->eps = eps;
		atomic_fetch_add(&dom->refs, 1);
	}
	bwf_lock_drop(&dom->ep_lock);
	return eps ? 0 : -FI_ENOMEM;
}

void bwf_domain_detach(struct bwf_domain *dom, struct bwf_ep *ep)
{
	bool found = false;

	pthread_mutex_lock(&dom->walk);
	bwf_lock_take(&dom->ep_lock);
	for (size_t i = 0; i < dom->eps_count && !found; i++) {
		found = dom->eps[i] == ep;
		if (found)
			dom->eps[i] = dom->eps[--dom->eps_count];
	}
	bwf_lock_drop(&dom->ep_lock);
	pthread_mutex_unlock(&dom->walk);
	if (found)
		atomic_fetch_sub(&dom->refs, 1);
}

static int bwf_domain_close(struct fid *fid)
{
	struct bwf_domain *dom = BWF_OF(fid, struct bwf_domain, fid.fid);

	if (atomic_load(&dom->refs))
		return -FI_EBUSY;
	atomic_fetch_sub(&dom->fabric->refs, 1);
	pthread_mutex_destroy(&dom->walk);
	free(dom->eps);
	free(dom);
	return 0;
}

static int bwf_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct bwf_domain *dom = BWF_OF(fid, struct bwf_domain, fid.fid);

	if (bfid->fclass != FI_CLASS_EQ || dom->eq)
		return -FI_EINVAL;
	dom->eq = (struct bwf_eq *)bfid;
	return 0;
}

static int bwf_domain_no_scalable_ep(struct fid_domain *domain, struct fi_info *info,
				     struct fid_ep **sep, void *context)
{
	return -FI_ENOSYS;
}

static int bwf_domain_no_stx(struct fid_domain *domain, struct fi_tx_attr *attr,
			     struct fid_stx **stx, void *context)
{
	return -FI_ENOSYS;
}

static int bwf_domain_no_srx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx,
			     void *context)
{
	return -FI_ENOSYS;
}

static int bwf_domain_no_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
					  struct fi_collective_attr *attr, uint64_t flags)
{
	return -FI_ENOSYS;
}

static struct fi_ops bwf_domain_fid_ops =
	BWF_FID_OPS(bwf_domain_close, bwf_domain_bind, bwf_no_control);

static struct fi_ops_domain bwf_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = bwf_av_open,
	.cq_open = bwf_cq_open,
	.endpoint = bwf_ep_open,
	.scalable_ep = bwf_domain_no_scalable_ep,
	.cntr_open = bwf_cntr_open,
	.poll_open = bwf_poll_open,
	.stx_ctx = bwf_domain_no_stx,
	.srx_ctx = bwf_domain_no_srx,
	.query_atomic = bwf_atomic_query,
	.query_collective = bwf_domain_no_query_collective,
	.endpoint2 = bwf_ep_open2,
};

int bwf_domain_open(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **out,
		    void *context)
{
	int mode = info->domain_attr ? info->domain_attr->mr_mode : 0;
	struct bwf_domain *dom = calloc(1, sizeof(*dom));

	if (!dom)
		return -FI_ENOMEM;
	pthread_mutex_init(&dom->walk, NULL);
	dom->pid = getpid();
	dom->fid.fid.fclass = FI_CLASS_DOMAIN;
	dom->fid.fid.context = context;
	dom->fid.fid.ops = &bwf_domain_fid_ops;
	dom->fid.ops = &bwf_domain_ops;
	dom->fid.mr = &bwf_mr_ops;
	dom->fabric = BWF_OF(fid, struct bwf_fabric, fid);
	bwf_device_interface(info->domain_attr ? info->domain_attr->name : NULL, dom->interface);
	dom->virt_addr = mode == BWF_MR_BASIC || (mode & FI_MR_VIRT_ADDR);
	dom->prov_key = mode == BWF_MR_BASIC || (mode & FI_MR_PROV_KEY);
	atomic_fetch_add(&dom->fabric->refs, 1);
	*out = &dom->fid;
	return 0;
}

int bwf_domain_open2(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **dom,
		     uint64_t flags, void *context)
{
	return flags ? -FI_ENOSYS : bwf_domain_open(fid, info, dom, context);
}
