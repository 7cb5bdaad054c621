/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The peers that the kernel module has told numbers of. It counts on for each peer that ever comes,
 * strangers too, so that numbers say nothing of how many there are. They are not for peers to
 * choose, and those that lie side by side have buckets of their own.
 */
#include <errno.h>
#include <stdlib.h>

#include "link/kernel/impl.h"
#include "remote.h"

#define BW_KERNEL_BUCKETS 64 /* at first; a power of two */

static struct bw_remote **bw_kernel_bucket(const struct bw_kernel *k, uint32_t number)
{
	return &k->by_number[number & (k->buckets - 1)];
}

int bw_kernel_table_init(struct bw_kernel *k)
{
	k->buckets = BW_KERNEL_BUCKETS;
	k->by_number = calloc(k->buckets, sizeof(struct bw_remote *));
	return k->by_number ? 0 : -ENOMEM;
}

struct bw_remote *bw_kernel_find(const struct bw_kernel *k, uint32_t number)
{
	struct bw_remote *p = *bw_kernel_bucket(k, number);

	while (p && p->kernel != number)
		p = p->next_kernel;
	return p;
}

static void bw_kernel_link(struct bw_kernel *k, struct bw_remote *p)
{
	struct bw_remote **at = bw_kernel_bucket(k, p->kernel);

	p->next_kernel = *at;
	*at = p;
}

/* Without memory the chains get longer. */
static void bw_kernel_grow(struct bw_kernel *k)
{
	struct bw_remote **old = k->by_number;
	uint32_t n = k->buckets;
	struct bw_remote **by_number = calloc((size_t)2 * n, sizeof(struct bw_remote *));

	if (!by_number)
		return;
	k->by_number = by_number;
	k->buckets = 2 * n;
	for (uint32_t i = 0; i < n; i++) {
		for (struct bw_remote *p = old[i], *next; p; p = next) {
			next = p->next_kernel;
			bw_kernel_link(k, p);
		}
	}
	free(old);
}

void bw_kernel_note(struct bw_kernel *k, uint32_t number, struct bw_remote *p)
{
	if (p->kernel)
		bw_kernel_unnote(k, p);
	if (k->noted == k->buckets)
		bw_kernel_grow(k);
	p->kernel = number;
	p->unneeded = false;
	bw_kernel_link(k, p);
	k->noted++;
	if (!p->by)
		p->by = &bw_by_kernel;
}

void bw_kernel_unnote(struct bw_kernel *k, struct bw_remote *p)
{
	struct bw_remote **at = bw_kernel_bucket(k, p->kernel);

	while (*at != p)
		at = &(*at)->next_kernel;
	*at = p->next_kernel;
	p->kernel = 0;
	k->noted--;
}
