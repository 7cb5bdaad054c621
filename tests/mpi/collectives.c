/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Collective operations of many kinds, from every root and at lengths from none to hundreds of
 * kilobytes, blocking and non-blocking; all sums are of integers, so that each result is known.
 */
#include "check.h"

#include <stdlib.h>

static const int lengths[] = {0, 1, 7, 1000, 40000}; /* of 8-byte integers */

/* What rank @rank puts at place @i. */
static int64_t value_of(int rank, int i)
{
	return (int64_t)(ex_mix((uint64_t)rank << 32 | (uint64_t)i) >> 16);
}

static int64_t *values_make(int rank, int count)
{
	int64_t *values = ex_alloc((size_t)count * sizeof(*values));

	for (int i = 0; i < count; i++)
		values[i] = value_of(rank, i);
	return values;
}

static void values_check(const int64_t *got, int rank, int first, int count, const char *what)
{
	for (int i = 0; i < count; i++)
		check_that(got[i] == value_of(rank, first + i), "%s: place %d of rank %d differs",
			   what, first + i, rank);
}

/* The sum over ranks [0, @ranks) of what they put at places from @first on. */
static void sums_check(const int64_t *got, int ranks, int first, int count, const char *what)
{
	for (int i = 0; i < count; i++) {
		int64_t sum = 0;

		for (int rank = 0; rank < ranks; rank++)
			sum += value_of(rank, first + i);
		check_that(got[i] == sum, "%s: the sum at place %d differs", what, first + i);
	}
}

static void from_root(const struct check *check, int root, int count)
{
	int64_t *own = values_make(check->rank, count);
	int64_t *all = values_make(root, check->rank == root ? count * check->size : 0);
	int64_t *got = ex_alloc((size_t)count * sizeof(*got));

	if (check->rank == root)
		MPI_Bcast(own, count, MPI_INT64_T, root, MPI_COMM_WORLD);
	else
		MPI_Bcast(got, count, MPI_INT64_T, root, MPI_COMM_WORLD);
	values_check(check->rank == root ? own : got, root, 0, count, "bcast");
	MPI_Scatter(all, count, MPI_INT64_T, got, count, MPI_INT64_T, root, MPI_COMM_WORLD);
	values_check(got, root, check->rank * count, count, "scatter");
	free(got);
	free(all);
	free(own);
}

static void to_root(const struct check *check, int root, int count)
{
	int64_t *own = values_make(check->rank, count);
	int64_t *got = ex_alloc((size_t)count * (size_t)check->size * sizeof(*got));

	MPI_Gather(own, count, MPI_INT64_T, got, count, MPI_INT64_T, root, MPI_COMM_WORLD);
	for (int rank = 0; check->rank == root && rank < check->size; rank++)
		values_check(got + rank * count, rank, 0, count, "gather");
	MPI_Reduce(own, got, count, MPI_INT64_T, MPI_SUM, root, MPI_COMM_WORLD);
	if (check->rank == root)
		sums_check(got, check->size, 0, count, "reduce");
	free(got);
	free(own);
}

static void all_to_all(const struct check *check, int count)
{
	int size = check->size;
	int64_t *own = values_make(check->rank, count * size);
	int64_t *got = ex_alloc((size_t)count * (size_t)size * sizeof(*got));

	MPI_Allgather(own, count, MPI_INT64_T, got, count, MPI_INT64_T, MPI_COMM_WORLD);
	for (int rank = 0; rank < size; rank++)
		values_check(got + rank * count, rank, 0, count, "allgather");
	MPI_Alltoall(own, count, MPI_INT64_T, got, count, MPI_INT64_T, MPI_COMM_WORLD);
	for (int rank = 0; rank < size; rank++)
		values_check(got + rank * count, rank, check->rank * count, count, "alltoall");
	MPI_Allreduce(own, got, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	sums_check(got, size, 0, count, "allreduce");
	MPI_Reduce_scatter_block(own, got, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	sums_check(got, size, check->rank * count, count, "reduce_scatter_block");
	MPI_Scan(own, got, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	sums_check(got, check->rank + 1, 0, count, "scan");
	MPI_Exscan(own, got, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	if (check->rank > 0)
		sums_check(got, check->rank, 0, count, "exscan");
	free(got);
	free(own);
}

/* Unequal parts: rank r sends (r + peer) % 5 times @count / 4 values to each peer. */
static int part_count(int from, int to, int count)
{
	return (from + to) % 5 * (count / 4);
}

static void all_to_all_unequal(const struct check *check, int count)
{
	int size = check->size, out_total = 0, in_total = 0;
	int *tables = ex_alloc((size_t)(4 * size) * sizeof(*tables));
	int *out_count = tables, *out_first = tables + size;
	int *in_count = tables + 2 * size, *in_first = tables + 3 * size;
	int64_t *own, *got;

	for (int peer = 0; peer < size; peer++) {
		out_count[peer] = part_count(check->rank, peer, count);
		in_count[peer] = part_count(peer, check->rank, count);
		out_first[peer] = out_total;
		in_first[peer] = in_total;
		out_total += out_count[peer];
		in_total += in_count[peer];
	}
	own = ex_alloc((size_t)out_total * sizeof(*own));
	got = ex_alloc((size_t)in_total * sizeof(*got));
	for (int peer = 0; peer < size; peer++)
		for (int i = 0; i < out_count[peer]; i++)
			own[out_first[peer] + i] = value_of(check->rank, peer << 20 | i);
	MPI_Alltoallv(own, out_count, out_first, MPI_INT64_T, got, in_count, in_first, MPI_INT64_T,
		      MPI_COMM_WORLD);
	for (int peer = 0; peer < size; peer++)
		values_check(got + in_first[peer], peer, check->rank << 20, in_count[peer],
			     "alltoallv");
	free(got);
	free(own);
	free(tables);
}

/* Several non-blocking operations in flight together. */
static void not_waiting(const struct check *check, int count)
{
	enum { BARRIER, BCAST, SUM, GATHERED, OPERATIONS };

	MPI_Request requests[OPERATIONS];
	int64_t *own = values_make(check->rank, count), *sum = ex_alloc((size_t)count * 8);
	int64_t *cast = values_make(check->rank, count);
	int64_t *all = ex_alloc((size_t)count * (size_t)check->size * 8);
	int root = check->size - 1;

	MPI_Ibarrier(MPI_COMM_WORLD, &requests[BARRIER]);
	MPI_Ibcast(cast, count, MPI_INT64_T, root, MPI_COMM_WORLD, &requests[BCAST]);
	MPI_Iallreduce(own, sum, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &requests[SUM]);
	MPI_Iallgather(own, count, MPI_INT64_T, all, count, MPI_INT64_T, MPI_COMM_WORLD,
		       &requests[GATHERED]);
	MPI_Waitall(OPERATIONS, requests, MPI_STATUSES_IGNORE);
	values_check(cast, root, 0, count, "ibcast");
	sums_check(sum, check->size, 0, count, "iallreduce");
	for (int rank = 0; rank < check->size; rank++)
		values_check(all + rank * count, rank, 0, count, "iallgather");
	free(all);
	free(cast);
	free(sum);
	free(own);
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 1);

	check_options(argc, argv);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (int root = 0; root < check.size; root++) {
			from_root(&check, root, lengths[i]);
			to_root(&check, root, lengths[i]);
		}
		all_to_all(&check, lengths[i]);
		all_to_all_unequal(&check, lengths[i]);
		not_waiting(&check, lengths[i]);
	}
	for (int i = 0; i < 200; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	return check_finish();
}
