/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "area.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26 /* linux/mman.h */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define BW_AREA_LINE 64u

/* At the beginning of each. */
struct bw_area {
	struct bw_area *next;
	size_t bytes; /* of all that is mapped */
};

_Static_assert(sizeof(struct bw_area) <= BW_AREA_LINE, "what is got begins on a cache line");

static size_t bw_area_up(size_t n, size_t unit)
{
	return (n + unit - 1) & ~(unit - 1);
}

size_t bw_area_huge_default(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];

	while (f && !kib && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Hugepagesize: %llu kB", &kib) != 1)
			kib = 0;
	}
	if (f)
		fclose(f);
	return (size_t)kib << 10;
}

static bool bw_area_place(const struct bw_areas *areas, void *at, size_t bytes)
{
	return !areas->placed || !bw_policy_bind(&areas->policy, at, bytes);
}

static void *bw_area_map(size_t bytes, int flags)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
			-1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Of the reserve. A page that a node of the policy does not have is told by SIGBUS when it is
 * touched; so all are filled now. */
static void *bw_area_map_huge(const struct bw_areas *areas, size_t bytes)
{
	int size = __builtin_ctzll(areas->huge) << MAP_HUGE_SHIFT;
	void *at = bw_area_map(bytes, MAP_HUGETLB | size);

	if (at && bw_area_place(areas, at, bytes) && !madvise(at, bytes, MADV_POPULATE_WRITE))
		return at;
	if (at)
		munmap(at, bytes);
	return NULL;
}

/* Where a huge page may begin: what is mapped too much goes back. */
static void *bw_area_map_aligned(size_t bytes, size_t unit)
{
	uint8_t *all = bw_area_map(bytes + unit, MAP_NORESERVE);
	uint8_t *at = (uint8_t *)bw_area_up((uintptr_t)all, unit);

	if (!all)
		return NULL;
	if (at > all)
		munmap(all, (size_t)(at - all));
	munmap(at + bytes, unit - (size_t)(at - all));
	return at;
}

static void *bw_area_make(struct bw_areas *areas, size_t *bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = NULL;

	if (areas->huge) {
		*bytes = bw_area_up(*bytes, areas->huge);
		at = bw_area_map_huge(areas, *bytes);
		areas->pages = BW_AREA_HUGE;
		if (at)
			return at;
		at = bw_area_map_aligned(*bytes, areas->huge);
		areas->pages = at && !madvise(at, *bytes, MADV_HUGEPAGE) ? BW_AREA_TRANSPARENT
									 : BW_AREA_PLAIN;
	} else {
		*bytes = bw_area_up(*bytes, page);
		at = bw_area_map(*bytes, 0);
	}
	if (at && !bw_area_place(areas, at, *bytes)) {
		munmap(at, *bytes);
		at = NULL;
	}
	return at;
}

void *bw_area_get(struct bw_areas *areas, size_t bytes)
{
	struct bw_area *area;
	size_t room = bw_area_up(bytes, BW_AREA_LINE), all = room + BW_AREA_LINE;
	void *got;

	if (!areas->own)
		return aligned_alloc(BW_AREA_LINE, room);
	if (room > areas->left) {
		area = bw_area_make(areas, &all);
		if (!area)
			return NULL;
		area->bytes = all;
		area->next = areas->list;
		areas->list = area;
		areas->at = (unsigned char *)area + BW_AREA_LINE;
		areas->left = all - BW_AREA_LINE;
	}
	got = areas->at;
	areas->at += room;
	areas->left -= room;
	return got;
}

void bw_area_put(struct bw_areas *areas, void *at)
{
	if (!areas->own)
		free(at);
}

void *bw_area_get_alone(struct bw_areas *areas, size_t bytes)
{
	return areas->own ? bw_area_get(areas, bytes) : bw_area_map(bytes, 0);
}

void bw_area_put_alone(struct bw_areas *areas, void *at, size_t bytes)
{
	if (!areas->own)
		munmap(at, bytes);
}

void bw_area_end(struct bw_areas *areas)
{
	while (areas->list) {
		struct bw_area *area = areas->list;

		areas->list = area->next;
		munmap(area, area->bytes);
	}
	areas->at = NULL;
	areas->left = 0;
}
