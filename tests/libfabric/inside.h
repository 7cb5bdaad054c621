/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that are linked with the provider instead of loading it, so that a test decides how some
 * calls of libbeowire end (wraps.txt names them) and looks at the provider's objects.
 */
#ifndef INSIDE_H
#define INSIDE_H

#include "bwf.h"
#include "pair.h"

/* The provider's endpoint behind a side's. */
static inline struct bwf_ep *inside(const struct side *s)
{
	return bwf_ep_of(s->ep);
}

/* Do side b's statistics have this text? */
bool inside_counted(const char *text);

/* What libbeowire's calls do, as beowire.h says. */
int __real_bw_pull(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
		   uint64_t len, void *op);
int __real_bw_send(struct bw_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, uint64_t imm,
		   const void *buf, uint64_t len, unsigned flags, void *op);
int __real_bw_wait(struct bw_ep *ep, uint64_t timeout_ns);

/* Ends of a call as the test wants them; NULL: as libbeowire ends it, bw_pull_early() with
 * -EOPNOTSUPP. Set while no endpoint is open. They run with the endpoint's lock held. */
struct inside_calls {
	int (*pull)(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
		    uint64_t len, void *op);
	int (*pull_early)(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
			  uint64_t len, void *op);
	int (*send)(struct bw_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, uint64_t imm,
		    const void *buf, uint64_t len, unsigned flags, void *op);
	bool (*send_copies)(struct bw_ep *ep, bw_peer_no peer, uint64_t len);
	int (*wait)(struct bw_ep *ep, uint64_t timeout_ns);
};

extern struct inside_calls inside_calls;

/* Bytes; malloc() of more fails, in the provider and in libbeowire. SIZE_MAX at first. */
extern atomic_size_t inside_malloc_max;

#endif
