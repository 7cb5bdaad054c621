/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Communicators: many duplicates in use at once, halves made by split, groups in reverse order, the
 * processes of one node, an intercommunicator between the halves. Each carries the same traffic;
 * what one carries must never appear in another.
 */
#include "check.h"

#include <stdlib.h>

enum { DUPLICATES = 40 };

/* A ring, with content that names communicator and ranks, then a sum. */
static void use(MPI_Comm comm, int name)
{
	int rank, size, sum, out[3], in[3] = {0};
	MPI_Status status;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	out[0] = name;
	out[1] = rank;
	out[2] = (rank + 1) % size;
	MPI_Sendrecv(out, 3, MPI_INT, out[2], 1, in, 3, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
		     &status);
	check_status(&status, (rank + size - 1) % size, 1, sizeof(in));
	check_that(in[0] == name && in[1] == status.MPI_SOURCE && in[2] == rank,
		   "communicator %d got a message of communicator %d from %d to %d", name, in[0],
		   in[1], in[2]);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
	check_that(sum == size * (size - 1) / 2, "communicator %d: sum %d", name, sum);
}

/* The same message in all duplicates, received in another order than sent. */
static void duplicates(const struct check *check)
{
	MPI_Comm comms[DUPLICATES];
	MPI_Request requests[DUPLICATES];
	int values[DUPLICATES], right = (check->rank + 1) % check->size;

	for (int i = 0; i < DUPLICATES; i++) {
		MPI_Comm_dup(i % 2 ? comms[i - 1] : MPI_COMM_WORLD, &comms[i]);
		use(comms[i], i);
	}
	for (int i = 0; i < DUPLICATES; i++) {
		values[i] = i;
		MPI_Isend(&values[i], 1, MPI_INT, right, 0, comms[i], &requests[i]);
	}
	for (int i = 0; i < DUPLICATES; i++) {
		int which = (i * 7 + 3) % DUPLICATES, value;

		MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[which],
			 MPI_STATUS_IGNORE);
		check_that(value == which, "duplicate %d got the message of %d", which, value);
	}
	MPI_Waitall(DUPLICATES, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < DUPLICATES; i++)
		MPI_Comm_free(&comms[i]);
}

static void halves(const struct check *check)
{
	int odd = check->rank % 2, rank;
	MPI_Comm half, between, merged;

	MPI_Comm_split(MPI_COMM_WORLD, odd, -check->rank, &half);
	MPI_Comm_rank(half, &rank);
	use(half, 100 + odd);
	if (check->size > 1) {
		/* Leaders by rank in the world: the keys above put the largest first. */
		int other_leader = (check->size - 1) % 2 == odd ? check->size - 2 : check->size - 1;
		int remote_size, value = check->rank, other;

		MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, other_leader, 5, &between);
		MPI_Comm_remote_size(between, &remote_size);
		if (rank < remote_size) {
			MPI_Sendrecv(&value, 1, MPI_INT, rank, 2, &other, 1, MPI_INT, rank, 2,
				     between, MPI_STATUS_IGNORE);
			check_that(other % 2 != odd, "half %d got a message of its own", odd);
		} else {
			/* One more here than there: nobody to talk to. */
			check_that(remote_size == rank, "remote half of %d for rank %d",
				   remote_size, rank);
		}
		MPI_Intercomm_merge(between, odd, &merged);
		use(merged, 110);
		MPI_Comm_free(&merged);
		MPI_Comm_free(&between);
	}
	MPI_Comm_free(&half);
}

static void reversed(const struct check *check)
{
	int *ranks = ex_alloc((size_t)check->size * sizeof(*ranks)), rank;
	MPI_Group world, group;
	MPI_Comm comm;

	for (int i = 0; i < check->size; i++)
		ranks[i] = check->size - 1 - i;
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, check->size, ranks, &group);
	MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
	MPI_Comm_rank(comm, &rank);
	check_that(rank == check->size - 1 - check->rank, "rank %d in reverse", rank);
	use(comm, 120);
	MPI_Comm_free(&comm);
	MPI_Group_free(&group);
	MPI_Group_free(&world);
	free(ranks);
}

static void one_node(const struct check *check)
{
	MPI_Comm node, cart;
	int dims[2] = {0}, periods[2] = {1, 1};

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	use(node, 130);
	MPI_Comm_free(&node);
	MPI_Dims_create(check->size, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
	use(cart, 140);
	MPI_Comm_free(&cart);
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 1);

	check_options(argc, argv);
	duplicates(&check);
	halves(&check);
	reversed(&check);
	one_node(&check);
	use(MPI_COMM_WORLD, 150);
	return check_finish();
}
