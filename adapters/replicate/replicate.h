/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of the preload library share: areas of memory, copies of them, settings. */
#ifndef BWRP_REPLICATE_H
#define BWRP_REPLICATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BWRP_AREAS_MAX 1024
#define BWRP_HUGE      (2ul << 20) /* a large page of x86-64, and of arm64 with pages of 4 KiB */

/* A private mapping of a file that nobody writes to. */
struct bwrp_area {
	uintptr_t start, end;
	uint64_t offset; /* in the file */
	int prot;	 /* as mmap() has it */
	const char *path;
};

enum bwrp_pages { BWRP_PAGES_AUTO, BWRP_PAGES_SMALL, BWRP_PAGES_HUGE };

struct bwrp_settings {
	enum bwrp_pages pages;
	bool explain;
	bool dry;	    /* tell what would be done, and end the process */
	uint64_t max_bytes; /* of all copies of a process */
	const char *keeper; /* path of the socket of whoever keeps copies, or NULL */
	unsigned int node;
};

static inline size_t bwrp_length(const struct bwrp_area *area)
{
	return area->end - area->start;
}

/* maps.c: the areas of a text such as /proc/self/maps, which is changed: paths end in it. Returns
 * how many there are, at most `room`. */
size_t bwrp_maps_parse(char *text, struct bwrp_area *areas, size_t room);
/* Whether a large page fits into it, at its place. */
bool bwrp_area_fits_huge(const struct bwrp_area *area);

/* copy.c: a file that lies in memory of a node, of that size; a descriptor, or -1. */
int bwrp_copy_begin(const char *path, uint64_t size, unsigned int node);
/* The area goes into the copy, if the file still is what lies in memory. */
bool bwrp_copy_fill(int copy, int file, const struct bwrp_area *area);
/* Nobody changes it from now on. */
bool bwrp_copy_seal(int copy);
/* Whether a copy that somebody else made is sealed, and so large. */
bool bwrp_copy_sealed(int copy, uint64_t size);
/* Whether the copy is what lies in memory. */
bool bwrp_copy_equal(int copy, const struct bwrp_area *area);
/* The copy takes the area's place. Without `copy` (-1) it is one of this process alone, in large
 * pages. 0, or a negative errno; in that case the area is as it was. */
int bwrp_copy_map(int copy, int file, const struct bwrp_area *area);
int bwrp_copy_map_huge(int file, const struct bwrp_area *area, unsigned int node);
/* How many pages of the area lie on that node, and on others. */
void bwrp_pages_count(const struct bwrp_area *area, unsigned int node, size_t *here,
		      size_t *elsewhere);

/* replace.c: the mapping at `from` takes the place of the area; if that fails the file does. */
int bwrp_replace(void *from, int file, const struct bwrp_area *area);

/* keeper.c: copies are shared through a keeper. A connection, or -1. */
int bwrp_keeper_connect(const char *path);
/* The copy of that name, or -1. */
int bwrp_keeper_get(int keeper, const char *name);
/* Offers ours; the one that is kept by that name, which may be another, or -1. */
int bwrp_keeper_put(int keeper, const char *name, int copy);

#endif
