/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel link: a socket of the kernel module, whose port is an engine of its own.
 * Acknowledgements and repair go on in the kernel whatever the program does, and long messages
 * travel between the pages of the two programs. On the wire it is an endpoint with the packet
 * link, and peers take it for one.
 *
 * It stands beside the engine of the endpoint, as the local link does: a peer is reached by one of
 * the three. The engine then has no link but UDP, for peers that raw frames do not reach.
 */
#ifndef BW_KERNEL_H
#define BW_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "addr.h"
#include "beowire.h"
#include "env.h"
#include "link/link.h"
#include "protocol.h"

struct bw_ep;
struct bw_iface;
struct bw_remote;
struct bw_kernel;

/* Identity that the module gave this node; 0: it is not loaded. */
uint64_t bw_kernel_node(void);

/* Open a port, and fill in what `self` says of it, and its interface. key: of the cluster, or NULL.
 * 0, or a negative errno with *why naming the fix: the module is not loaded, no interface is
 * attached, the user may not open sockets, the node has not that key (-EKEYREJECTED) ... */
int bw_kernel_open(struct bw_kernel **out, const struct bw_env *env, const uint8_t *key,
		   struct bw_addr_fields *self, struct bw_iface *iface, const char **why);
/* What was sent eagerly still reaches its peers. */
void bw_kernel_close(struct bw_kernel *k);

/* bw_kernel_poll() has work when poll() tells one of the events that it awaits of the descriptor,
 * and at the time that is due, if not BW_NEVER. */
int bw_kernel_fd(const struct bw_kernel *k);
short bw_kernel_awaits(const struct bw_kernel *k);
uint64_t bw_kernel_due(const struct bw_kernel *k);
const char *bw_kernel_interface(const struct bw_kernel *k);
/* Operations whose end is awaited. */
uint32_t bw_kernel_under_way(const struct bw_kernel *k);

/* Can an endpoint with this address be reached? */
bool bw_kernel_reaches(const struct bw_ep *ep, const struct bw_addr_fields *a);
/* Choose this link for a peer. 0, -EAGAIN, -EHOSTUNREACH, -ENOMEM. */
int bw_kernel_connect(struct bw_ep *ep, struct bw_remote *p);
/* The same, if UDP reaches it as well: -EAGAIN until it is known whether raw frames do. */
int bw_kernel_meet(struct bw_ep *ep, struct bw_remote *p);
/* Is this frame, which came by UDP, for the engine? Not while the port speaks with its sender. */
bool bw_kernel_admits(struct bw_ep *ep, const struct bw_rx_frame *f);
/* Find out the name of a peer's host, for messages to people. */
void bw_kernel_name(const struct bw_ep *ep, struct bw_remote *p);
void bw_kernel_watch(struct bw_ep *ep, const struct bw_remote *p, bool on);
/* Off: the module may let it go for others, as bw_kernel_poll() finds of those that the program has
 * not named; what comes from it is enough for it to be needed again. */
void bw_kernel_need(struct bw_ep *ep, struct bw_remote *p, bool on);

/* Is any of this memory being read for a peer? */
bool bw_kernel_serving(const struct bw_ep *ep, const void *buf, uint64_t len);
void bw_kernel_pressure(struct bw_ep *ep, bool on);

/* Deliver what has arrived. How many messages and ends of operations. */
int bw_kernel_poll(struct bw_ep *ep);

/* Counters of the engine in the kernel, added to *c, and of the link. */
void bw_kernel_counters(const struct bw_kernel *k, struct bw_counters *c,
			struct bw_link_counters *link);

#endif
