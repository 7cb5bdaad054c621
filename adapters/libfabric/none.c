// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Refusals. libfabric's inline wrappers call most slots of an operation table without a look, so
 * every slot that the provider does not offer holds one of these.
 */
#include "bwf.h"

int bwf_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

int bwf_no_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

int bwf_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	return -FI_ENOSYS;
}

int bwf_no_tostr(const struct fid *fid, char *buf, size_t len)
{
	return -FI_ENOSYS;
}

int bwf_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t bwf_no_barrier(struct fid_ep *ep, fi_addr_t coll, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t bwf_no_broadcast(struct fid_ep *ep, void *buf, size_t count, void *desc,
				fi_addr_t coll, fi_addr_t root, enum fi_datatype type,
				uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t bwf_no_alltoall(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			       void *result, void *result_desc, fi_addr_t coll,
			       enum fi_datatype type, uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t bwf_no_allreduce(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				void *result, void *result_desc, fi_addr_t coll,
				enum fi_datatype type, enum fi_op op, uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t bwf_no_reduce(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			     void *result, void *result_desc, fi_addr_t coll, fi_addr_t root,
			     enum fi_datatype type, enum fi_op op, uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t bwf_no_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			      void *result, void *result_desc, fi_addr_t coll, fi_addr_t root,
			      enum fi_datatype type, uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t bwf_no_collective_msg(struct fid_ep *ep, const struct fi_msg_collective *msg,
				     struct fi_ioc *result, void **result_desc, size_t n,
				     uint64_t flags)
{
	return -FI_ENOSYS;
}

static ssize_t bwf_no_barrier2(struct fid_ep *ep, fi_addr_t coll, uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

struct fi_ops_collective bwf_collective_ops = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = bwf_no_barrier,
	.broadcast = bwf_no_broadcast,
	.alltoall = bwf_no_alltoall,
	.allreduce = bwf_no_allreduce,
	.allgather = bwf_no_alltoall,
	.reduce_scatter = bwf_no_allreduce,
	.reduce = bwf_no_reduce,
	.scatter = bwf_no_scatter,
	.gather = bwf_no_scatter,
	.msg = bwf_no_collective_msg,
	.barrier2 = bwf_no_barrier2,
};
