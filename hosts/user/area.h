/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory for what an endpoint keeps until it is closed: plain, or areas of whole pages with a
 * policy of NUMA, in huge pages where they are to be had.
 */
#ifndef BW_AREA_H
#define BW_AREA_H

#include <stdbool.h>
#include <stddef.h>

#include "numa.h"

/* What the areas of a pool are made of. */
enum bw_area_pages {
	BW_AREA_PLAIN,	     /* pages of the common size */
	BW_AREA_TRANSPARENT, /* huge ones where the kernel finds some (madvise) */
	BW_AREA_HUGE	     /* of the reserve (vm.nr_hugepages) */
};

struct bw_area;

struct bw_areas {
	bool own;		  /* areas of our own; else memory comes from malloc() */
	bool placed;		  /* with this policy */
	struct bw_policy policy;  /* */
	size_t huge;		  /* bytes of a huge page that is wished for, 0: none */
	enum bw_area_pages pages; /* of the area made last */
	struct bw_area *list;
	unsigned char *at; /* what is left of the first one */
	size_t left;
};

/* `bytes`, 64-aligned; NULL without memory. All zero areas are plain memory. */
void *bw_area_get(struct bw_areas *areas, size_t bytes);
/* Give it back: of areas of our own nothing is free before the end of all. */
void bw_area_put(struct bw_areas *areas, void *at);
/* The same of what is mostly given back before the end, and alone: to give it back takes no longer
 * if there is much free beside it, as it may with free(). All pages begin with zeros. */
void *bw_area_get_alone(struct bw_areas *areas, size_t bytes);
void bw_area_put_alone(struct bw_areas *areas, void *at, size_t bytes);
void bw_area_end(struct bw_areas *areas);
/* The default size of the kernel's huge pages, in bytes; 0: it has none. */
size_t bw_area_huge_default(void);

#endif
