/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Strangers at a port of the kernel module. It keeps every peer whose number it has told; so that
 * those who only called do not fill it, it is told whom the program does not need: as the
 * endpoint's own engine asks (bw_handlers.peer_needed), but some at a time, before room is wanted.
 */
#include <sys/ioctl.h>

#include "ep.h"
#include "link/kernel/impl.h"

#define BW_NEEDS_PAUSE (50 * BW_MS) /* between two looks, */
#define BW_NEEDS_MOST  64	    /* at so many buckets, which there are at least */

void bw_kernel_need(struct bw_ep *ep, struct bw_remote *p, bool on)
{
	struct beowire_watch need = {.peer = p->kernel, .on = on};

	/* It fails only for a peer that is down, of which an event tells. */
	ioctl(ep->kernel->fd, BEOWIRE_IOC_NEED, &need);
	p->unneeded = !on;
}

static bool bw_kernel_needed(const struct bw_ep *ep, const struct bw_remote *p)
{
	if (p->unneeded || p->complete || p->meeting || p->watch)
		return true; /* nothing is to be told */
	return !ep->handlers->peer_needed || ep->handlers->peer_needed(ep->arg, p->number);
}

void bw_kernel_needs(struct bw_ep *ep)
{
	struct bw_kernel *k = ep->kernel;

	k->needs_at = ep->now + BW_NEEDS_PAUSE;
	for (uint32_t i = 0; i < BW_NEEDS_MOST; i++) {
		struct bw_remote *p = k->by_number[k->needs_next++ & (k->buckets - 1)];

		for (; p; p = p->next_kernel)
			if (!bw_kernel_needed(ep, p))
				bw_kernel_need(ep, p, false);
	}
}
