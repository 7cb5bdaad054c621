/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One-sided communication: put, get, accumulate and the fetching operations, under fence, lock and
 * post-start-complete-wait, with lengths from 8 bytes to a megabyte.
 */
#include "check.h"

#include <stdlib.h>

enum { SLOT = 1 << 17 }; /* 8-byte values in one rank's slot: a megabyte */

static const int lengths[] = {1, 16, 1000, 8192, SLOT};

struct window {
	struct check check;
	MPI_Win handle;
	int64_t *values; /* one slot for each rank */
};

static int64_t value_of(int from, int to, int i)
{
	return (int64_t)(ex_mix((uint64_t)from << 40 | (uint64_t)to << 20 | (uint64_t)i) >> 8);
}

static struct window window_make(struct check check)
{
	struct window window = {.check = check};
	size_t bytes = (size_t)check.size * SLOT * sizeof(int64_t);

	MPI_Win_allocate((MPI_Aint)bytes, sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &window.values, &window.handle);
	return window;
}

/* Clears this rank's part; the fences around keep it apart from what others do. */
static void window_clear(struct window *window)
{
	MPI_Win_fence(0, window->handle);
	for (size_t i = 0; i < (size_t)window->check.size * SLOT; i++)
		window->values[i] = 0;
	MPI_Win_fence(0, window->handle);
}

static int64_t *values_make(int from, int to, int count)
{
	int64_t *values = ex_alloc((size_t)count * sizeof(*values));

	for (int i = 0; i < count; i++)
		values[i] = value_of(from, to, i);
	return values;
}

static void slot_check(const int64_t *slot, int from, int to, int count, const char *what)
{
	for (int i = 0; i < count; i++)
		check_that(slot[i] == value_of(from, to, i), "%s: %d of %d from %d to %d differs",
			   what, i, count, from, to);
	for (int i = count; i < SLOT; i++)
		check_that(slot[i] == 0, "%s: place %d behind %d values was written", what, i,
			   count);
}

/* Each rank puts into its slot at every rank, then gets it back, between fences. */
static void fences(struct window *window, int count)
{
	int rank = window->check.rank, size = window->check.size;
	int64_t *got = ex_alloc((size_t)count * sizeof(*got));
	int64_t **sent = ex_alloc((size_t)size * sizeof(*sent));

	window_clear(window);
	for (int to = 0; to < size; to++) {
		sent[to] = values_make(rank, to, count);
		MPI_Put(sent[to], count, MPI_INT64_T, to, (MPI_Aint)rank * SLOT, count, MPI_INT64_T,
			window->handle);
	}
	MPI_Win_fence(0, window->handle);
	for (int from = 0; from < size; from++)
		slot_check(window->values + (size_t)from * SLOT, from, rank, count, "put, fence");
	for (int to = 0; to < size; to++) {
		MPI_Win_fence(0, window->handle);
		MPI_Get(got, count, MPI_INT64_T, to, (MPI_Aint)rank * SLOT, count, MPI_INT64_T,
			window->handle);
		MPI_Win_fence(0, window->handle);
		for (int i = 0; i < count; i++)
			check_that(got[i] == value_of(rank, to, i), "get, fence: %d of %d", i,
				   count);
		free(sent[to]);
	}
	free(sent);
	free(got);
}

/* The same under exclusive and shared locks, without the target's help. */
static void locks(struct window *window, int count)
{
	int rank = window->check.rank, size = window->check.size;
	int64_t *got = ex_alloc((size_t)count * sizeof(*got));

	window_clear(window);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, window->handle);
	for (int step = 0; step < size; step++) {
		int to = (rank + step) % size;
		int64_t *sent = values_make(rank, to, count);

		MPI_Win_lock(step % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, to, 0,
			     window->handle);
		MPI_Put(sent, count, MPI_INT64_T, to, (MPI_Aint)rank * SLOT, count, MPI_INT64_T,
			window->handle);
		MPI_Win_flush(to, window->handle);
		MPI_Get(got, count, MPI_INT64_T, to, (MPI_Aint)rank * SLOT, count, MPI_INT64_T,
			window->handle);
		MPI_Win_unlock(to, window->handle);
		for (int i = 0; i < count; i++)
			check_that(got[i] == sent[i], "get, lock: %d of %d", i, count);
		free(sent);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window->handle);
	for (int from = 0; from < size; from++)
		slot_check(window->values + (size_t)from * SLOT, from, rank, count, "put, lock");
	MPI_Win_unlock(rank, window->handle);
	MPI_Barrier(MPI_COMM_WORLD);
	free(got);
}

/* All ranks add into the same places of rank 0; every contribution must be there. */
static void accumulates(struct window *window, int count)
{
	int rank = window->check.rank, size = window->check.size;
	int64_t *sent = values_make(rank, 0, count);

	window_clear(window);
	for (int i = 0; i < 3; i++)
		MPI_Accumulate(sent, count, MPI_INT64_T, 0, 0, count, MPI_INT64_T, MPI_SUM,
			       window->handle);
	MPI_Win_fence(0, window->handle);
	for (int i = 0; rank == 0 && i < count; i++) {
		int64_t sum = 0;

		for (int from = 0; from < size; from++)
			sum += 3 * value_of(from, 0, i);
		check_that(window->values[i] == sum, "accumulate: sum %d of %d differs", i, count);
	}
	free(sent);
}

/* A ticket counter and a lock word at rank 0: no ticket twice, none missing, one holder. */
static void fetching(struct window *window)
{
	enum { TICKETS = 200 };

	int rank = window->check.rank, size = window->check.size;
	int64_t one = 1, zero = 0, ticket, last = -1, holder, mine = rank + 1;

	window_clear(window);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, window->handle);
	MPI_Win_lock_all(0, window->handle);
	for (int i = 0; i < TICKETS; i++) {
		MPI_Fetch_and_op(&one, &ticket, MPI_INT64_T, 0, 0, MPI_SUM, window->handle);
		MPI_Win_flush(0, window->handle);
		check_that(ticket > last && ticket < (int64_t)TICKETS * size,
			   "ticket %lld after %lld", (long long)ticket, (long long)last);
		last = ticket;
	}
	for (int i = 0; i < 10; i++) {
		do {
			MPI_Compare_and_swap(&mine, &zero, &holder, MPI_INT64_T, 0, 1,
					     window->handle);
			MPI_Win_flush(0, window->handle);
		} while (holder != 0);
		/* Alone here: a get and a put of the sum cannot be disturbed. */
		MPI_Get(&ticket, 1, MPI_INT64_T, 0, 2, 1, MPI_INT64_T, window->handle);
		MPI_Win_flush(0, window->handle);
		ticket += mine;
		MPI_Put(&ticket, 1, MPI_INT64_T, 0, 2, 1, MPI_INT64_T, window->handle);
		MPI_Win_flush(0, window->handle);
		MPI_Compare_and_swap(&zero, &mine, &holder, MPI_INT64_T, 0, 1, window->handle);
		MPI_Win_flush(0, window->handle);
		check_that(holder == mine, "the lock of %lld is held by %lld", (long long)mine,
			   (long long)holder);
	}
	MPI_Win_unlock_all(window->handle);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window->handle);
	MPI_Get(&ticket, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window->handle);
	MPI_Get(&holder, 1, MPI_INT64_T, 0, 2, 1, MPI_INT64_T, window->handle);
	MPI_Win_unlock(0, window->handle);
	check_that(ticket == (int64_t)TICKETS * size, "%lld tickets", (long long)ticket);
	check_that(holder == (int64_t)5 * size * (size + 1), "sum %lld", (long long)holder);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Get_accumulate returns what was there and adds. Ranks take turns, so that each value is known. */
static void get_accumulate(struct window *window, int count)
{
	int rank = window->check.rank, size = window->check.size;
	int64_t *sent = values_make(0, 0, count), *got = ex_alloc((size_t)count * sizeof(*got));

	window_clear(window);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, window->handle);
	for (int turn = 0; turn < size; turn++) {
		if (turn == rank) {
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, window->handle);
			MPI_Get_accumulate(sent, count, MPI_INT64_T, got, count, MPI_INT64_T,
					   size - 1, 0, count, MPI_INT64_T, MPI_SUM,
					   window->handle);
			MPI_Win_unlock(size - 1, window->handle);
			for (int i = 0; i < count; i++)
				check_that(got[i] == turn * sent[i], "get_accumulate: %d of %d", i,
					   count);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	free(got);
	free(sent);
}

/* A flush is the end of what was asked for, at once, at both sides: the last rank gets, puts and
 * accumulates at rank 0 and looks at every value behind each flush. */
static void flushes(struct window *window, int count)
{
	int last = window->check.size - 1;
	int64_t *sent = values_make(last, 0, count), *got = ex_alloc((size_t)count * sizeof(*got));

	window_clear(window);
	if (window->check.rank == last) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window->handle);
		for (int64_t turn = 0; turn < 4; turn++) {
			for (int i = 0; i < count; i++)
				got[i] = -1;
			MPI_Get(got, count, MPI_INT64_T, 0, 0, count, MPI_INT64_T, window->handle);
			MPI_Win_flush(0, window->handle);
			for (int i = 0; i < count; i++)
				check_that(got[i] == turn * sent[i], "get, flush: %d of %d", i,
					   count);
			MPI_Get_accumulate(sent, count, MPI_INT64_T, got, count, MPI_INT64_T, 0, 0,
					   count, MPI_INT64_T, MPI_SUM, window->handle);
			MPI_Win_flush(0, window->handle);
			for (int i = 0; i < count; i++)
				check_that(got[i] == turn * sent[i],
					   "get_accumulate, flush: %d of %d", i, count);
			MPI_Put(sent, count, MPI_INT64_T, 0, count, count, MPI_INT64_T,
				window->handle);
			MPI_Win_flush(0, window->handle);
			MPI_Get(got, count, MPI_INT64_T, 0, count, count, MPI_INT64_T,
				window->handle);
			MPI_Win_flush(0, window->handle);
			for (int i = 0; i < count; i++)
				check_that(got[i] == sent[i], "put, get, flush: %d of %d", i,
					   count);
		}
		MPI_Win_unlock(0, window->handle);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	free(got);
	free(sent);
}

/* Rank 0 exposes its memory to the last rank only. */
static void post_start(struct window *window, int count)
{
	int rank = window->check.rank, last = window->check.size - 1;
	int64_t *sent = values_make(last, 0, count);
	MPI_Group world, peer;
	int other = last - rank;

	window_clear(window);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, window->handle);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	if (rank == 0 || rank == last) {
		MPI_Group_incl(world, 1, &other, &peer);
		if (rank == 0) {
			MPI_Win_post(peer, 0, window->handle);
			MPI_Win_wait(window->handle);
			slot_check(window->values + (size_t)last * SLOT, last, 0, count,
				   "put, post");
		} else {
			MPI_Win_start(peer, 0, window->handle);
			MPI_Put(sent, count, MPI_INT64_T, 0, (MPI_Aint)last * SLOT, count,
				MPI_INT64_T, window->handle);
			MPI_Win_complete(window->handle);
		}
		MPI_Group_free(&peer);
	}
	MPI_Group_free(&world);
	MPI_Barrier(MPI_COMM_WORLD);
	free(sent);
}

int main(int argc, char **argv)
{
	struct window window = window_make(check_start(&argc, &argv, 2));
	int max;

	max = (int)check_option(argc, argv, "--max", SLOT, 1, SLOT);
	check_options(argc, argv);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		if (lengths[i] > max)
			break;
		fences(&window, lengths[i]);
		locks(&window, lengths[i]);
		accumulates(&window, lengths[i]);
		get_accumulate(&window, lengths[i]);
		flushes(&window, lengths[i]);
		post_start(&window, lengths[i]);
	}
	fetching(&window);
	MPI_Win_free(&window.handle);
	return check_finish();
}
