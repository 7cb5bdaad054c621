/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pools of equal objects, carved from memory that the host hands in, and tables of handles whose
 * generation number makes a stale handle recognizable. Objects go back to their pool. A piece of
 * memory of which all objects are there can go back to the host: which do is found out when the
 * host asks, by sorting free objects into piles, one of each pool in each piece, so that those in
 * use are not counted piece by piece. Sorting has no state but a list of what is to be sorted yet:
 * it may stop after any object, and all free objects can be had at any time. Pages of tables stay,
 * as the generations in them have to.
 */
#ifndef BW_SLAB_H
#define BW_SLAB_H

#include "list.h"
#include "protocol.h"

/* Memory not yet given to a pool: the current chunk, and untouched ones chained through their
 * start. */
struct bw_arena {
	uint8_t *at;
	uint8_t *end;
	void *chunks;
	uint32_t spare; /* untouched chunks */
	uint32_t slabs; /* pools that are carved from it */
	void *rests;	/* what was left at the end of chunks, bw_rest; until it is sorted */
};

/* Lists of objects are chained through the first word of each. */
struct bw_slab {
	struct bw_arena *arena;
	void *free;    /* objects that lie in no pile, and are given out first */
	uint32_t size; /* bytes of an object, multiple of 8 */
	uint32_t in_use;
	uint32_t no;	      /* of the arena's pools it is this one */
	void *unsorted;	      /* free ones that are to be sorted */
	struct bw_list piles; /* that are not empty */
};

#define BW_SLABS 12 /* pools of one arena at most */

/* Free objects of one pool in one piece of memory. */
struct bw_pile {
	struct bw_list list; /* in bw_slab.piles, while there are any */
	void *free;
};

/* The piece begins behind this, which the host has filled with zeros. */
struct bw_grown {
	/* bytes in its piles, and what was left at its end, once that is sorted */
	_Alignas(64) uint32_t free;
	struct bw_pile pile[BW_SLABS];
};

void bw_arena_add(struct bw_arena *a, void *mem, size_t bytes);
/* Zeroed memory, or NULL when the arena is empty. */
void *bw_arena_take(struct bw_arena *a, uint32_t bytes);
/* True when less than half a chunk is left. */
bool bw_arena_low(const struct bw_arena *a);

void bw_slab_init(struct bw_slab *s, struct bw_arena *a, uint32_t size);
/* An object with undefined contents, or NULL. */
void *bw_slab_alloc(struct bw_slab *s);
void bw_slab_free(struct bw_slab *s, void *obj);
/* All objects that are free now are to be sorted. */
void bw_slab_unsort(struct bw_slab *s);
/* Sort one of these into its pile, if one of n pieces, in the order of their addresses, has it.
 * False: there is none left. `piece`: the one that has grown emptier by it, or NULL. */
bool bw_slab_sort(struct bw_slab *s, struct bw_grown *const *pieces, uint32_t n,
		  struct bw_grown **piece);
/* The same of what was left at the end of a chunk. */
bool bw_arena_sort(struct bw_arena *a, struct bw_grown *const *pieces, uint32_t n,
		   struct bw_grown **piece);
/* Does nothing lie in it? */
bool bw_grown_empty(const struct bw_grown *piece);
/* Of such a one: nothing of it is given out any more. */
void bw_grown_leave(struct bw_grown *piece);
/* Would bw_slab_alloc() find one? */
bool bw_slab_roomy(const struct bw_slab *s);

#define BW_TABLE_PAGE  256
#define BW_TABLE_PAGES 2048
/* Low 19 bits of a handle are its slot; the high 13 are its generation, never 0. */
#define BW_HANDLE_BITS	19
#define BW_HANDLE_INDEX (BW_TABLE_PAGE * BW_TABLE_PAGES - 1u)
/* A slot has a handle again after 64 others at the earliest: by so much its generation grows at
 * most. */
#define BW_HANDLE_STEP 128

struct bw_slot {
	void *obj;     /* NULL: free */
	uint32_t gen;  /* generation of the current or last user; 0: none yet */
	uint32_t free; /* of the i-th slot: index of the i-th free one (bw_table.free) */
};

/* Who has seen no handle of a table has 32 bits to guess, but for those that the number of slots in
 * use gives away. Who was given handles himself knows where its pages are; he has to guess which of
 * the free slots another one got, and 13 bits of its generation; 7, if he has had that slot. */
struct bw_table {
	struct bw_arena *arena;
	struct bw_slot *page[BW_TABLE_PAGES];
	uint32_t where; /* the i-th page is page[i ^ where] */
	uint32_t slots; /* in existing pages */
	uint32_t free;	/* slots that are free */
};

/* random: a number that nobody else knows, here and in the next; 0, if handles may be guessed. */
void bw_table_init(struct bw_table *t, struct bw_arena *a, uint32_t random);
/* A fresh handle (never 0) for obj; 0 when memory is short. */
uint32_t bw_table_add(struct bw_table *t, void *obj, uint32_t random);
/* The object, or NULL if the handle is stale. */
void *bw_table_get(const struct bw_table *t, uint32_t handle);
/* A living handle is that of another object from now on. */
void bw_table_give(struct bw_table *t, uint32_t handle, void *obj);
void bw_table_remove(struct bw_table *t, uint32_t handle);

#endif
