/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bulk transfer (see load_bulk.h).
 */
#include "load_bulk.h"

#include "common.h"
#include "load_receiver.h"
#include "load_stamp.h"

#include <stdlib.h>

static void bulk_begin(struct bulk *b, int slot)
{
	if (b->begun == b->count)
		return;
	b->place[slot] = b->begun++;
	if (b->rank == 0) {
		MPI_Irecv(b->buffers[slot], (int)b->bytes, MPI_BYTE, 1, LOAD_TAG_BULK,
			  MPI_COMM_WORLD, &b->requests[slot]);
		return;
	}
	stamp_write(b->buffers[slot], b->bytes, b->seed + b->place[slot]);
	MPI_Isend(b->buffers[slot], (int)b->bytes, MPI_BYTE, 0, LOAD_TAG_BULK, MPI_COMM_WORLD,
		  &b->requests[slot]);
}

void bulk_open(struct bulk *b, int rank)
{
	b->rank = rank;
	b->begun = b->ended = b->end_ns = 0;
	if (rank > 1)
		b->count = 0;
	for (int i = 0; i < BULK_WINDOW; i++) {
		b->requests[i] = MPI_REQUEST_NULL;
		b->buffers[i] = b->count ? ex_alloc(b->bytes) : NULL;
		if (rank == 0)
			bulk_begin(b, i);
	}
}

static void bulk_check(const struct bulk *b, int slot)
{
	size_t wrong = stamp_check(b->buffers[slot], b->bytes, b->seed + b->place[slot]);

	if (wrong < b->bytes)
		ex_abort("bulk message %llu is wrong at byte %zu of %llu",
			 (unsigned long long)b->place[slot], wrong, (unsigned long long)b->bytes);
}

bool bulk_step(struct bulk *b, uint64_t start_ns)
{
	bool busy = false;

	if (bulk_done(b))
		return false;
	for (int i = 0; i < BULK_WINDOW && b->rank == 1 && b->ended == 0; i++)
		if (b->requests[i] == MPI_REQUEST_NULL)
			bulk_begin(b, i);
	for (int i = 0; i < BULK_WINDOW; i++) {
		int ended = 0;

		if (b->requests[i] == MPI_REQUEST_NULL)
			continue;
		MPI_Test(&b->requests[i], &ended, MPI_STATUS_IGNORE);
		if (!ended)
			continue;
		busy = true;
		b->ended++;
		if (b->rank == 0) {
			b->end_ns = ex_now_ns() - start_ns;
			bulk_check(b, i);
		}
		bulk_begin(b, i);
	}
	return busy;
}

bool bulk_done(const struct bulk *b)
{
	return b->ended == b->count;
}

void bulk_close(struct bulk *b)
{
	for (int i = 0; i < BULK_WINDOW; i++)
		free(b->buffers[i]);
}
