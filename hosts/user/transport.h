/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ways by which messages travel to a peer: shared memory, a port of the kernel module, or the
 * endpoint's own engine over packet and udp. A peer's way is chosen when it is first sent to
 * (remote.c) and kept, for the order of messages. All is called with the endpoint's lock held.
 */
#ifndef BW_TRANSPORT_H
#define BW_TRANSPORT_H

#include "beowire.h"
#include "buffer.h"
#include "protocol.h"

struct bw_ep;
struct bw_remote;

struct bw_transport {
	/* As bw_send(), of which `op` holds code, tag and imm. */
	int (*send)(struct bw_ep *ep, struct bw_remote *p, struct bw_op *op, const void *buf,
		    uint64_t len, unsigned int flags, void *user_op);
	/* As bw_pull() of an envelope that came this way, which may not be the peer's any more. */
	int (*pull)(struct bw_ep *ep, struct bw_remote *p, const struct bw_rndv *rndv, void *buf,
		    uint64_t len, void *user_op);
	/* As bw_read(). */
	int (*read)(struct bw_ep *ep, struct bw_remote *p, uint64_t key, uint64_t off, void *buf,
		    uint64_t len, void *user_op);
	/* Give up a long send that nobody fetches yet, or a pull; its end is told. 0, or -ENOENT:
	 * too late. */
	int (*cancel)(struct bw_ep *ep, struct bw_remote *p, struct bw_buffer *b);
	/* As bw_eager_max(). */
	uint32_t (*eager_max)(struct bw_ep *ep, struct bw_remote *p);
};

extern const struct bw_transport bw_by_engine; /* message.c */
extern const struct bw_transport bw_by_local;  /* by_local.c */
extern const struct bw_transport bw_by_kernel; /* link/kernel/kernel.c */

#endif
