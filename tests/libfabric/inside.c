// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The provider inside a test's program: see inside.h. */
#include "inside.h"

struct inside_calls inside_calls;
atomic_size_t inside_malloc_max = SIZE_MAX;

int __wrap_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info);
int __wrap_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int __wrap_bw_pull(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
		   uint64_t len, void *op);
int __wrap_bw_pull_early(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
			 uint64_t len, void *op);
int __wrap_bw_send(struct bw_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, uint64_t imm,
		   const void *buf, uint64_t len, unsigned flags, void *op);
bool __real_bw_send_copies(struct bw_ep *ep, bw_peer_no peer, uint64_t len);
bool __wrap_bw_send_copies(struct bw_ep *ep, bw_peer_no peer, uint64_t len);
int __wrap_bw_wait(struct bw_ep *ep, uint64_t timeout_ns);
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

void *__wrap_malloc(size_t n)
{
	return n > inside_malloc_max ? NULL : __real_malloc(n);
}

int __wrap_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info)
{
	return bwf_getinfo(version, node, service, flags, hints, info);
}

int __wrap_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return bwf_fabric_open(attr, fabric, context);
}

int __wrap_bw_pull(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
		   uint64_t len, void *op)
{
	return (inside_calls.pull ? inside_calls.pull : __real_bw_pull)(ep, peer, rndv, buf, len,
									op);
}

int __wrap_bw_pull_early(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
			 uint64_t len, void *op)
{
	if (!inside_calls.pull_early)
		return -EOPNOTSUPP;
	return inside_calls.pull_early(ep, peer, rndv, buf, len, op);
}

int __wrap_bw_send(struct bw_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, uint64_t imm,
		   const void *buf, uint64_t len, unsigned flags, void *op)
{
	return (inside_calls.send ? inside_calls.send : __real_bw_send)(ep, peer, code, tag, imm,
									buf, len, flags, op);
}

bool __wrap_bw_send_copies(struct bw_ep *ep, bw_peer_no peer, uint64_t len)
{
	return (inside_calls.send_copies ? inside_calls.send_copies
					 : __real_bw_send_copies)(ep, peer, len);
}

int __wrap_bw_wait(struct bw_ep *ep, uint64_t timeout_ns)
{
	return (inside_calls.wait ? inside_calls.wait : __real_bw_wait)(ep, timeout_ns);
}

bool inside_counted(const char *text)
{
	char *stats = bw_ep_stats(inside(&b)->bw);
	bool found = strstr(stats, text) != NULL;

	free(stats);
	return found;
}
