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

fi_addr_t inside_source_of_next(struct bw_ep *ep, bw_peer_no peer)
{
	static char buf[8];
	struct fi_cq_tagged_entry e;
	fi_addr_t src = 0;

	pair_retry(fi_trecv(b.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 9, 0, NULL));
	while (bw_send(ep, peer, BWF_CODE_TAGGED, 9, 0, "x", 1, BW_SEND_EAGER, NULL) == -EAGAIN)
		bw_progress(ep);
	while (fi_cq_readfrom(b.rx, &e, 1, &src) == -FI_EAGAIN) {
		pair_progress();
		bw_progress(ep);
	}
	return src;
}

struct bw_ep *inside_stranger(const struct bw_handlers *handlers, struct bw_addr *addr,
			      bw_peer_no *peer, bw_peer_no *there)
{
	size_t n = sizeof(*addr);
	struct bw_ep *ep;

	assert_int_equal(fi_getname(&b.ep->fid, addr, &n), 0);
	assert_int_equal(bw_ep_open(&ep, &(struct bw_ep_attr){.handlers = handlers}, NULL), 0);
	assert_int_equal(bw_peer_find(ep, addr, peer), 0);
	inside_source_of_next(ep, *peer);
	bw_ep_addr(ep, addr);
	assert_int_equal(bw_peer_find(inside(&b)->bw, addr, there), 0);
	return ep;
}

bool inside_counted(const char *text)
{
	char *stats = bw_ep_stats(inside(&b)->bw);
	bool found = strstr(stats, text) != NULL;

	free(stats);
	return found;
}
