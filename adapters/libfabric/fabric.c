// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The fabric object: only a name and a counter of what was opened through it.
 */
#include "bwf.h"

#include <stdlib.h>

static int bwf_fabric_close(struct fid *fid)
{
	struct bwf_fabric *fabric = BWF_OF(fid, struct bwf_fabric, fid.fid);

	if (atomic_load(&fabric->refs))
		return -FI_EBUSY;
	free(fabric);
	return 0;
}

static int bwf_fabric_trywait(struct fid_fabric *fid, struct fid **fids, int count)
{
	int ret;

	for (int i = 0; i < count; i++) {
		switch (fids[i]->fclass) {
		case FI_CLASS_CQ:
			ret = bwf_cq_trywait(BWF_OF(fids[i], struct bwf_cq, fid.fid));
			break;
		case FI_CLASS_CNTR:
			ret = bwf_cntr_trywait(BWF_OF(fids[i], struct bwf_cntr, fid.fid));
			break;
		case FI_CLASS_EQ:
			ret = bwf_eq_trywait((struct bwf_eq *)fids[i]);
			break;
		default:
			ret = -FI_EINVAL;
		}
		if (ret)
			return ret;
	}
	return 0;
}

static int bwf_fabric_no_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
				    struct fid_pep **pep, void *context)
{
	return -FI_ENOSYS;
}

static struct fi_ops bwf_fabric_fid_ops =
	BWF_FID_OPS(bwf_fabric_close, bwf_no_bind, bwf_no_control);

static struct fi_ops_fabric bwf_fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = bwf_domain_open,
	.passive_ep = bwf_fabric_no_passive_ep,
	.eq_open = bwf_eq_open,
	.wait_open = bwf_wait_open,
	.trywait = bwf_fabric_trywait,
	.domain2 = bwf_domain_open2,
};

int bwf_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fid, void *context)
{
	struct bwf_fabric *fabric;

	if (attr->name && strcmp(attr->name, BWF_NAME) != 0)
		return -FI_ENODATA;
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return -FI_ENOMEM;
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = &bwf_fabric_fid_ops;
	fabric->fid.ops = &bwf_fabric_ops;
	fabric->fid.api_version = attr->api_version;
	*fid = &fabric->fid;
	return 0;
}
