/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Jacobi's iteration of Laplace's equation on a grid dealt to the ranks in blocks of rows: each
 * step exchanges one row with either neighbour, computes, and combines the change over all ranks.
 * The start u = i + 2 j is a solution, and the mean of four such numbers is exact: whatever moves a
 * bit shows. Instead of computing a rank can wait for as long as its rows would take, so that more
 * ranks than cores have the times of nodes of their own.
 */
#include "common.h"

#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"usage: mpirun -n RANKS stencil [options]\n"
	"Iterates on a grid; each step exchanges rows with the neighbours and eight bytes with "
	"all.\n"
	"  --rows N     of the grid, at least 1 for each rank (default 1000)\n"
	"  --columns N  of the grid; a message has 8 bytes for each (default 1000)\n"
	"  --steps N    steps (default 100)\n"
	"  --wait US    wait instead of computing: microseconds of a step on one rank\n"
	"  --json       print one JSON object instead of text\n"
	"  --help       print this\n"
	"Exits with 0 if every number is exact, 1 if not, 2 on bad arguments.\n";

struct options {
	uint64_t rows, columns, steps;
	uint64_t wait_us; /* 0: compute */
	bool json;
};

/* A rank's rows of the grid, with one more row above and below. */
struct block {
	size_t first, rows, columns;
	double *now, *next;
};

struct result {
	double error;	  /* the largest difference from the solution */
	uint64_t time_ns; /* of the slowest rank */
};

static struct options options_read(int argc, char **argv, int ranks)
{
	static const struct option table[] = {
		{"rows", required_argument, NULL, 'r'},
		{"columns", required_argument, NULL, 'c'},
		{"steps", required_argument, NULL, 's'},
		{"wait", required_argument, NULL, 'w'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options options = {.rows = 1000, .columns = 1000, .steps = 100};
	int option;

	while ((option = ex_option(argc, argv, table, help)) != EX_OPTIONS_END) {
		switch (option) {
		case 'r':
			options.rows = ex_parse_integer("--rows", optarg, 1, 1u << 20);
			break;
		case 'c':
			options.columns = ex_parse_integer("--columns", optarg, 2, 1u << 24);
			break;
		case 's':
			options.steps = ex_parse_integer("--steps", optarg, 1, 1u << 30);
			break;
		case 'w':
			options.wait_us = ex_parse_integer("--wait", optarg, 1, 1u << 30);
			break;
		case 'j':
			options.json = true;
			break;
		}
	}
	if (options.rows < (uint64_t)ranks)
		ex_quit(EX_EXIT_USAGE, "--rows %llu are fewer than the %d ranks",
			(unsigned long long)options.rows, ranks);
	return options;
}

static double solution(size_t row, size_t column)
{
	return (double)row + 2 * (double)column;
}

/* The block of @rank, filled with the solution: rows and columns beyond the grid's edge too. */
static struct block block_make(const struct options *options, int rank, int ranks)
{
	struct block block = {.columns = options->columns};
	size_t bytes;

	block.first = options->rows * (size_t)rank / (size_t)ranks;
	block.rows = options->rows * (size_t)(rank + 1) / (size_t)ranks - block.first;
	bytes = (block.rows + 2) * block.columns * sizeof(double);
	block.now = ex_alloc(bytes);
	block.next = ex_alloc(bytes);
	for (size_t i = 0; i < block.rows + 2; i++)
		for (size_t j = 0; j < block.columns; j++)
			block.now[i * block.columns + j] = solution(block.first + i, j);
	memcpy(block.next, block.now, bytes);
	return block;
}

/* Spoils what the neighbours are about to send, so that a row that does not come is noticed. */
static void halo_spoil(struct block *block, int above, int below)
{
	size_t last = (block->rows + 1) * block->columns;

	for (size_t j = 0; j < block->columns; j++) {
		if (above != MPI_PROC_NULL)
			block->now[j] = NAN;
		if (below != MPI_PROC_NULL)
			block->now[last + j] = NAN;
	}
}

/* Both rows at once with both neighbours. */
static void halo_exchange(struct block *block, int above, int below)
{
	double *first = block->now + block->columns;
	double *last = block->now + block->rows * block->columns;
	int count = (int)block->columns;
	MPI_Request requests[4];
	MPI_Status statuses[4];

	halo_spoil(block, above, below);
	MPI_Irecv(block->now, count, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[0]);
	MPI_Irecv(last + count, count, MPI_DOUBLE, below, 2, MPI_COMM_WORLD, &requests[1]);
	MPI_Isend(first, count, MPI_DOUBLE, above, 2, MPI_COMM_WORLD, &requests[2]);
	MPI_Isend(last, count, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[3]);
	MPI_Waitall(4, requests, statuses);
}

/* One step of the block; the edge columns stay. */
static void block_step(struct block *block)
{
	size_t width = block->columns;
	double *swap = block->now;

	for (size_t i = 1; i <= block->rows; i++) {
		const double *row = block->now + i * width;
		double *out = block->next + i * width;

		for (size_t j = 1; j + 1 < width; j++)
			out[j] = 0.25 * (row[j - width] + row[j + width] + row[j - 1] + row[j + 1]);
	}
	block->now = block->next;
	block->next = swap;
}

/* The largest difference from the solution; one that is no number counts as infinite. */
static double block_error(const struct block *block)
{
	double error = 0;

	for (size_t i = 0; i < block->rows + 2; i++) {
		for (size_t j = 0; j < block->columns; j++) {
			double value = block->now[i * block->columns + j];
			double off = fabs(value - solution(block->first + i, j));

			if (!(off <= error))
				error = isnan(off) ? INFINITY : off;
		}
	}
	return error;
}

static struct result stencil_run(const struct options *options, int rank, int ranks)
{
	int above = rank ? rank - 1 : MPI_PROC_NULL;
	int below = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
	struct block block = block_make(options, rank, ranks);
	uint64_t wait_ns = 1000 * options->wait_us * block.rows / options->rows;
	uint64_t start_ns, elapsed_ns;
	struct result result = {0};
	double error = 0, worst;

	MPI_Barrier(MPI_COMM_WORLD);
	start_ns = ex_now_ns();
	for (uint64_t step = 0; step < options->steps; step++) {
		halo_exchange(&block, above, below);
		if (options->wait_us)
			ex_wait(wait_ns);
		else
			block_step(&block);
		error = fmax(error, fabs(block.now[block.columns] - solution(block.first + 1, 0)));
		MPI_Allreduce(&error, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	}
	elapsed_ns = ex_now_ns() - start_ns;
	halo_exchange(&block, above, below);
	error = fmax(worst, block_error(&block));
	MPI_Allreduce(&error, &result.error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	MPI_Allreduce(&elapsed_ns, &result.time_ns, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
	free(block.now);
	free(block.next);
	return result;
}

static void result_print(const struct options *options, const struct result *result, int ranks)
{
	if (!options->json) {
		printf("grid   %llu x %llu, %llu steps on %d ranks, %s\n",
		       (unsigned long long)options->rows, (unsigned long long)options->columns,
		       (unsigned long long)options->steps, ranks,
		       options->wait_us ? "waiting" : "computing");
		printf("error  %g\n", result->error);
		printf("time   %.6f s\n", (double)result->time_ns / 1e9);
		return;
	}
	printf("{\"program\": \"stencil\", \"library\": ");
	ex_json_string(stdout, ex_library());
	printf(", \"ranks\": %d, \"rows\": %llu, \"columns\": %llu, \"steps\": %llu, "
	       "\"wait_us\": %llu, \"message_bytes\": %llu, \"error\": %.6g, \"time_ns\": %llu}\n",
	       ranks, (unsigned long long)options->rows, (unsigned long long)options->columns,
	       (unsigned long long)options->steps, (unsigned long long)options->wait_us,
	       (unsigned long long)(8 * options->columns), result->error,
	       (unsigned long long)result->time_ns);
}

int main(int argc, char **argv)
{
	struct options options;
	struct result result;
	int rank, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	options = options_read(argc, argv, ranks);
	result = stencil_run(&options, rank, ranks);
	if (rank == 0)
		result_print(&options, &result, ranks);
	if (result.error != 0)
		ex_quit(EX_EXIT_WRONG, "a number is off by %g", result.error);
	MPI_Finalize();
	return 0;
}
