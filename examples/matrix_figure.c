/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the matrix benchmark measures (see matrix_figure.h). A slot is sent with the same contents
 * each time, named by sender and slot, so that what was received can be checked when the clock has
 * stopped.
 */
#include "matrix_figure.h"

#include "common.h"

#include <stdlib.h>
#include <string.h>

const char *const figure_names[FIGURES] = {"latency", "bandwidth", "bidirectional", "rate",
					   "pairs",   "allreduce", "alltoall",	    "broadcast"};

enum tag { TAG_MESSAGE = 1, TAG_DONE = 2 };

#define RING_BYTES     (4u << 20) /* more than most caches of a core's own hold */
#define SLOTS_MIN      2
#define SLOTS_MAX      64
#define LINE_BYTES     64 /* slots share no cache line */
#define SLOT_BYTES_MAX (1u << 30)

static size_t slot_bytes_of(enum figure figure, int ranks, size_t bytes)
{
	return figure == FIGURE_ALLTOALL ? bytes * (size_t)ranks : bytes;
}

static bool between_two(enum figure figure)
{
	return figure < FIGURE_PAIRS;
}

const char *figure_lacks(enum figure figure, int ranks, uint64_t bytes)
{
	if (between_two(figure) && ranks != 2)
		return "two ranks";
	if (ranks < 2 || (figure == FIGURE_PAIRS && ranks % 2))
		return "two ranks or more, and for pairs an even number";
	if (figure == FIGURE_ALLREDUCE && bytes % sizeof(double))
		return "sizes of whole doubles";
	if (bytes == 0 || bytes > SLOT_BYTES_MAX / (uint64_t)ranks)
		return "at least a byte, and not 1 GiB for all ranks together";
	return NULL;
}

static unsigned char *slot_of(const struct figure_run *run, unsigned char *ring, uint64_t message)
{
	return ring + (size_t)(message % (uint64_t)run->slots) * run->stride;
}

/* Names what @from sends @to out of this slot. */
static uint64_t seed(const struct figure_run *run, int from, int to, int slot)
{
	return ((uint64_t)from << 40 | (uint64_t)to << 20 | (uint64_t)slot) * FIGURES +
	       (uint64_t)run->figure;
}

/* Small whole numbers, whose sum is exact in whatever order it is made. */
static double summand(int rank, int slot, size_t index)
{
	return (double)((index * 7 + (size_t)slot + 13 * (size_t)rank) % 1024);
}

static void fill(const struct figure_run *run, int slot)
{
	unsigned char *data = slot_of(run, run->send, (uint64_t)slot);

	if (run->figure == FIGURE_ALLREDUCE) {
		for (size_t i = 0; i < run->bytes / sizeof(double); i++)
			((double *)(void *)data)[i] = summand(run->rank, slot, i);
	} else if (run->figure == FIGURE_ALLTOALL) {
		for (int to = 0; to < run->ranks; to++)
			ex_pattern_fill(data + (size_t)to * run->bytes, run->bytes,
					seed(run, run->rank, to, slot));
	} else {
		ex_pattern_fill(data, run->bytes, seed(run, run->rank, 0, slot));
	}
}

void figure_open(struct figure_run *run)
{
	size_t fit;

	run->slot_bytes = slot_bytes_of(run->figure, run->ranks, run->bytes);
	run->stride = (run->slot_bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
	fit = RING_BYTES / run->stride;
	run->slots = fit < SLOTS_MIN ? SLOTS_MIN : fit > SLOTS_MAX ? SLOTS_MAX : (int)fit;
	run->send = ex_alloc((size_t)run->slots * run->stride);
	run->receive = ex_alloc((size_t)run->slots * run->stride);
	run->requests = ex_alloc(2 * (size_t)run->slots * sizeof(MPI_Request));
	for (int i = 0; i < 2 * run->slots; i++)
		run->requests[i] = MPI_REQUEST_NULL;
	for (int slot = 0; slot < run->slots; slot++)
		fill(run, slot);
	run->next = 0;
}

void figure_close(struct figure_run *run)
{
	free(run->send);
	free(run->receive);
	free(run->requests);
}

static int peer_of(const struct figure_run *run)
{
	int half = run->ranks / 2;

	return run->rank < half ? run->rank + half : run->rank - half;
}

static bool begins(const struct figure_run *run)
{
	return run->rank < run->ranks / 2;
}

static void send_next(struct figure_run *run)
{
	MPI_Send(slot_of(run, run->send, run->next), (int)run->bytes, MPI_BYTE, peer_of(run),
		 TAG_MESSAGE, MPI_COMM_WORLD);
}

static void receive_next(struct figure_run *run)
{
	MPI_Recv(slot_of(run, run->receive, run->next), (int)run->bytes, MPI_BYTE, peer_of(run),
		 TAG_MESSAGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void round_trips(struct figure_run *run, uint64_t units)
{
	for (uint64_t i = 0; i < units; i++, run->next++) {
		if (begins(run)) {
			send_next(run);
			receive_next(run);
		} else {
			receive_next(run);
			send_next(run);
		}
	}
}

static void post(struct figure_run *run, uint64_t message, bool sends, bool receives)
{
	size_t slot = (size_t)(message % (uint64_t)run->slots);

	if (receives)
		MPI_Irecv(slot_of(run, run->receive, message), (int)run->bytes, MPI_BYTE,
			  peer_of(run), TAG_MESSAGE, MPI_COMM_WORLD, &run->requests[2 * slot]);
	if (sends)
		MPI_Isend(slot_of(run, run->send, message), (int)run->bytes, MPI_BYTE, peer_of(run),
			  TAG_MESSAGE, MPI_COMM_WORLD, &run->requests[2 * slot + 1]);
}

/* The side that received says so to the side that sent; where both did, each to the other. */
static void done(struct figure_run *run, bool sends, bool receives)
{
	if (receives)
		MPI_Send(NULL, 0, MPI_BYTE, peer_of(run), TAG_DONE, MPI_COMM_WORLD);
	if (sends)
		MPI_Recv(NULL, 0, MPI_BYTE, peer_of(run), TAG_DONE, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
}

/* As many messages under way as the ring has slots; the oldest one makes room for the next. */
static void stream(struct figure_run *run, uint64_t units, bool sends, bool receives)
{
	uint64_t slots = (uint64_t)run->slots;

	for (uint64_t i = 0; i < units + slots; i++) {
		if (i >= slots)
			MPI_Waitall(2, &run->requests[2 * ((run->next + i) % slots)],
				    MPI_STATUSES_IGNORE);
		if (i < units)
			post(run, run->next + i, sends, receives);
	}
	run->next += units;
	done(run, sends, receives);
}

static void windows(struct figure_run *run, uint64_t units)
{
	bool sends = begins(run);

	for (uint64_t i = 0; i < units; i++) {
		for (int slot = 0; slot < run->slots; slot++)
			post(run, run->next++, sends, !sends);
		MPI_Waitall(2 * run->slots, run->requests, MPI_STATUSES_IGNORE);
		done(run, sends, !sends);
	}
}

/* Roots take turns by slots, so that a slot always comes from the same rank. */
static int root_of(const struct figure_run *run, uint64_t message)
{
	return (int)(message % (uint64_t)run->slots % (uint64_t)run->ranks);
}

static void collective(struct figure_run *run)
{
	unsigned char *out = slot_of(run, run->send, run->next);
	unsigned char *in = slot_of(run, run->receive, run->next);
	int root = root_of(run, run->next);

	if (run->figure == FIGURE_ALLREDUCE)
		MPI_Allreduce(out, in, (int)(run->bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM,
			      MPI_COMM_WORLD);
	else if (run->figure == FIGURE_ALLTOALL)
		MPI_Alltoall(out, (int)run->bytes, MPI_BYTE, in, (int)run->bytes, MPI_BYTE,
			     MPI_COMM_WORLD);
	else
		MPI_Bcast(root == run->rank ? out : in, (int)run->bytes, MPI_BYTE, root,
			  MPI_COMM_WORLD);
	run->next++;
}

void figure_run(struct figure_run *run, uint64_t units)
{
	switch (run->figure) {
	case FIGURE_LATENCY:
		round_trips(run, units);
		return;
	case FIGURE_BANDWIDTH:
		stream(run, units, begins(run), !begins(run));
		return;
	case FIGURE_BIDIRECTIONAL:
		stream(run, units, true, true);
		return;
	case FIGURE_RATE:
		windows(run, units);
		return;
	case FIGURE_PAIRS:
		stream(run, units, begins(run), !begins(run));
		break;
	default:
		for (uint64_t i = 0; i < units; i++)
			collective(run);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

uint64_t figure_unit_messages(const struct figure_run *run)
{
	return run->figure == FIGURE_RATE ? (uint64_t)run->slots : 1;
}

uint64_t figure_least_units(const struct figure_run *run)
{
	bool streams = run->figure == FIGURE_BANDWIDTH || run->figure == FIGURE_BIDIRECTIONAL ||
		       run->figure == FIGURE_PAIRS;

	return streams ? 2 * (uint64_t)run->slots : 1;
}

static void check_bytes(const struct figure_run *run, int from, int slot, size_t offset,
			uint64_t content)
{
	const unsigned char *data = slot_of(run, run->receive, (uint64_t)slot) + offset;
	size_t good = ex_pattern_check(data, run->bytes, content);

	if (good != run->bytes)
		ex_abort("%s of %zu bytes, slot %d, from rank %d: wrong at byte %zu",
			 figure_names[run->figure], run->bytes, slot, from, good);
}

static void check_sums(const struct figure_run *run, int slot)
{
	const void *data = slot_of(run, run->receive, (uint64_t)slot);

	for (size_t i = 0; i < run->bytes / sizeof(double); i++) {
		double sum = 0;

		for (int rank = 0; rank < run->ranks; rank++)
			sum += summand(rank, slot, i);
		if (((const double *)data)[i] != sum)
			ex_abort("allreduce of %zu bytes, slot %d: double %zu is %g, not %g",
				 run->bytes, slot, i, ((const double *)data)[i], sum);
	}
}

static void check_slot(const struct figure_run *run, int slot)
{
	int root = root_of(run, (uint64_t)slot);

	if (run->figure == FIGURE_ALLREDUCE) {
		check_sums(run, slot);
	} else if (run->figure == FIGURE_ALLTOALL) {
		for (int from = 0; from < run->ranks; from++)
			check_bytes(run, from, slot, (size_t)from * run->bytes,
				    seed(run, from, run->rank, slot));
	} else if (run->figure == FIGURE_BROADCAST) {
		if (root != run->rank)
			check_bytes(run, root, slot, 0, seed(run, root, 0, slot));
	} else {
		check_bytes(run, peer_of(run), slot, 0, seed(run, peer_of(run), 0, slot));
	}
}

void figure_check(const struct figure_run *run)
{
	bool both = run->figure == FIGURE_LATENCY || run->figure == FIGURE_BIDIRECTIONAL ||
		    run->figure >= FIGURE_ALLREDUCE;

	if (!both && begins(run))
		return;
	for (int slot = 0; slot < run->slots && (uint64_t)slot < run->next; slot++)
		check_slot(run, slot);
}
