// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory regions: a table from key to memory with its access rights. Nothing is pinned and nothing
 * is known to hardware; a region only says what peers may touch, and how they name it. Programs
 * hand keys over in messages of their own, so that nobody here knows who was given one: a key that
 * is chosen here cannot be guessed, and who names keys that nobody has is given up.
 */
#include "bwf.h"
#include "count.h"

#include <stdlib.h>
#include <unistd.h>

#define BWF_MR_ACCESS                                                                              \
	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_COLLECTIVE)

#define BWF_MR_SETTLE_NS 1000000 /* between two looks at transfers under way */

/* Reads of a region that is being closed may take so long, and fetches into it so much more for
 * each byte (1 MB/s); then they are given up. */
#define BWF_MR_GRACE_NS	  1000000000ULL
#define BWF_MR_GRACE_EACH 1000

static struct bwf_mr **bwf_mr_bucket(struct bwf_domain *dom, uint64_t key)
{
	return &dom->mr[(key * 0x9E3779B97F4A7C15u >> 32) % BWF_MR_BUCKETS];
}

static struct bwf_mr *bwf_mr_lookup(struct bwf_domain *dom, uint64_t key)
{
	struct bwf_mr *mr = *bwf_mr_bucket(dom, key);

	while (mr && mr->fid.key != key)
		mr = mr->next;
	return mr;
}

void *bwf_mr_find(struct bwf_domain *dom, uint64_t key, uint64_t addr, uint64_t n, uint64_t access,
		  struct bwf_mr **out)
{
	struct bwf_mr *mr;
	char *p = NULL;

	bwf_lock_take(&dom->mr_lock);
	mr = bwf_mr_lookup(dom, key);
	if (mr && (mr->access & access) == access && addr >= mr->start &&
	    addr - mr->start <= mr->len && n <= mr->len - (addr - mr->start)) {
		p = mr->base + (addr - mr->start);
		if (out)
			*out = mr;
	}
	bwf_lock_drop(&dom->mr_lock);
	return p;
}

static bool bwf_mr_known(struct bwf_domain *dom, uint64_t key)
{
	bool known;

	bwf_lock_take(&dom->mr_lock);
	known = bwf_mr_lookup(dom, key) != NULL;
	bwf_lock_drop(&dom->mr_lock);
	return known;
}

void *bwf_mr_ask(struct bwf_ep *ep, bw_peer_no number, uint64_t key, uint64_t addr, uint64_t n,
		 uint64_t access, struct bwf_mr **out)
{
	struct bwf_peer *peer = bwf_peer_get(ep, number);
	void *p;

	if (!peer || peer->refused || peer->guesses >= BWF_GUESSES_MAX ||
	    (!peer->trusted && !bwf_stranger_may_guess(ep, number)))
		return NULL;
	p = bwf_mr_find(ep->dom, key, addr, n, access, out);
	if (p) {
		peer->trusted = true;
		return p;
	}
	if (bwf_mr_known(ep->dom, key))
		return NULL;
	bw_count_event(ep->bw, BW_COUNT_KEY_GUESSES);
	bwf_stranger_guessed(ep, number);
	if (++peer->guesses == BWF_GUESSES_MAX)
		bwf_todo_refuse(ep, number, "names memory by keys that nobody has");
	return NULL;
}

/* An endpoint of the domain's; NULL: there are no more. Others may come meanwhile. */
static struct bwf_ep *bwf_domain_ep(struct bwf_domain *dom, size_t i)
{
	struct bwf_ep *ep;

	bwf_lock_take(&dom->ep_lock);
	ep = i < dom->eps_count ? dom->eps[i] : NULL;
	bwf_lock_drop(&dom->ep_lock);
	return ep;
}

/* Does anything of an endpoint still touch the region? Then some progress is made, and after
 * `until` (ns of bwf_now_ns()) it is given up. Called with the endpoint's lock. */
static bool bwf_mr_touched(struct bwf_ep *ep, const struct bwf_mr *mr, uint64_t until)
{
	if (!bwf_target_uses(ep, mr))
		return false;
	if (bwf_now_ns() >= until)
		bwf_target_give_up(ep, mr);
	bw_wait(ep->bw, BWF_MR_SETTLE_NS);
	bwf_todo_retry(ep);
	return true;
}

/* Transfers that were granted before may still be under way: the last frames of a read whose
 * receipt is not acknowledged yet, a long write of a peer. They end, or their peer is given up, or
 * what its living peer is too slow to read or to send. One that has found no room to begin is
 * tried again here: nobody else may make progress. */
static void bwf_mr_settle(struct bwf_domain *dom, struct bwf_mr *mr)
{
	uint64_t until = bwf_now_ns() + BWF_MR_GRACE_NS;
	bool touched, first = true;
	struct bwf_ep *ep;

	do {
		touched = false;
		pthread_mutex_lock(&dom->walk);
		for (size_t i = 0; (ep = bwf_domain_ep(dom, i)); i++) {
			bw_ep_lock(ep->bw);
			if (first)
				until += bwf_target_placing(ep, mr) * BWF_MR_GRACE_EACH;
			touched |= bwf_mr_touched(ep, mr, until);
			bw_ep_unlock(ep->bw);
		}
		pthread_mutex_unlock(&dom->walk);
		first = false;
		if (touched)
			sched_yield(); /* to who closes an endpoint meanwhile */
	} while (touched);
}

static int bwf_mr_close(struct fid *fid)
{
	struct bwf_mr *mr = BWF_OF(fid, struct bwf_mr, fid.fid);
	struct bwf_domain *dom = mr->dom;
	struct bwf_mr **at = bwf_mr_bucket(dom, mr->fid.key);

	if (dom->pid != getpid()) /* what touches it ends in the parent alone */
		return 0;
	bwf_lock_take(&dom->mr_lock);
	mr->access = 0; /* its key is nobody else's until all is over */
	bwf_lock_drop(&dom->mr_lock);
	bwf_mr_settle(dom, mr);
	bwf_lock_take(&dom->mr_lock);
	while (*at != mr)
		at = &(*at)->next;
	*at = mr->next;
	bwf_lock_drop(&dom->mr_lock);
	if (mr->cntr)
		atomic_fetch_sub(&mr->cntr->refs, 1);
	atomic_fetch_sub(&dom->refs, 1);
	free(mr);
	return 0;
}

static int bwf_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct bwf_mr *mr = BWF_OF(fid, struct bwf_mr, fid.fid);

	if (bfid->fclass == FI_CLASS_EP)
		return 0;
	if (bfid->fclass != FI_CLASS_CNTR || !(flags & FI_REMOTE_WRITE) || mr->cntr)
		return -FI_EINVAL;
	mr->cntr = BWF_OF(bfid, struct bwf_cntr, fid.fid);
	atomic_fetch_add(&mr->cntr->refs, 1);
	return 0;
}

static int bwf_mr_control(struct fid *fid, int command, void *arg)
{
	struct bwf_mr *mr = BWF_OF(fid, struct bwf_mr, fid.fid);
	struct fi_mr_raw_attr *raw = arg;

	switch (command) {
	case FI_ENABLE:
	case FI_REFRESH:
		return 0;
	case FI_GET_RAW_MR:
		if (*raw->key_size < sizeof(mr->fid.key)) {
			*raw->key_size = sizeof(mr->fid.key);
			return -FI_ETOOSMALL;
		}
		*raw->key_size = sizeof(mr->fid.key);
		*raw->base_addr = mr->start;
		memcpy(raw->raw_key, &mr->fid.key, sizeof(mr->fid.key));
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops bwf_mr_fid_ops = BWF_FID_OPS(bwf_mr_close, bwf_mr_bind, bwf_mr_control);

/* A key that is not in use, nor one that programs take for none. Called with mr_lock. */
static uint64_t bwf_mr_draw_key(struct bwf_domain *dom)
{
	uint64_t key;

	do
		key = bw_secret_draw(&dom->mr_secret);
	while (!key || key == FI_KEY_NOTAVAIL || bwf_mr_lookup(dom, key));
	return key;
}

/* Give the region its key and put it into the table. */
static int bwf_mr_insert(struct bwf_domain *dom, struct bwf_mr *mr, uint64_t requested_key)
{
	struct bwf_mr **bucket;
	int ret = 0;

	bwf_lock_take(&dom->mr_lock);
	mr->fid.key = dom->prov_key ? bwf_mr_draw_key(dom) : requested_key;
	bucket = bwf_mr_bucket(dom, mr->fid.key);
	if (bwf_mr_lookup(dom, mr->fid.key)) {
		ret = -FI_ENOKEY;
	} else {
		mr->next = *bucket;
		*bucket = mr;
	}
	bwf_lock_drop(&dom->mr_lock);
	return ret;
}

static int bwf_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
			  struct fid_mr **out)
{
	struct bwf_domain *dom = BWF_OF(fid, struct bwf_domain, fid.fid);
	struct bwf_mr *mr;
	int ret;

	if (fid->fclass != FI_CLASS_DOMAIN || attr->iov_count != 1 || !attr->mr_iov ||
	    (attr->access & ~BWF_MR_ACCESS))
		return -FI_EINVAL;
	if (flags & ~FI_RMA_EVENT)
		return -FI_EBADFLAGS;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = &bwf_mr_fid_ops;
	mr->fid.mem_desc = mr;
	mr->dom = dom;
	mr->base = attr->mr_iov[0].iov_base;
	mr->len = attr->mr_iov[0].iov_len;
	mr->access = attr->access;
	mr->start = dom->virt_addr ? (uintptr_t)mr->base : attr->offset;
	ret = bwf_mr_insert(dom, mr, attr->requested_key);
	if (ret) {
		free(mr);
		return ret;
	}
	atomic_fetch_add(&dom->refs, 1);
	*out = &mr->fid;
	return 0;
}

static int bwf_mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		       uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		       void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
	};

	return bwf_mr_regattr(fid, &attr, flags, mr);
}

static int bwf_mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
		      uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		      void *context)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return bwf_mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr bwf_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = bwf_mr_reg,
	.regv = bwf_mr_regv,
	.regattr = bwf_mr_regattr,
};
