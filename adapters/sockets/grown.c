/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See grown.h. */
#include "grown.h"

#include <sys/mman.h>

#define BWS_GROWN_STEP (256u << 10) /* bytes: a multiple of every page size */

bool bws_grown_reserve(struct bws_grown *g, size_t bytes)
{
	void *at = mmap(NULL, bytes + BWS_GROWN_STEP, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return false;
	*g = (struct bws_grown){.base = at};
	return true;
}

bool bws_grown_to(struct bws_grown *g, size_t bytes)
{
	size_t usable = (bytes + BWS_GROWN_STEP - 1) / BWS_GROWN_STEP * BWS_GROWN_STEP;

	if (bytes <= g->usable)
		return true;
	if (mprotect(g->base + g->usable, usable - g->usable, PROT_READ | PROT_WRITE))
		return false;
	g->usable = usable;
	return true;
}
