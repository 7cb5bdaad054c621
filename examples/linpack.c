/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The work of HPL [C2]: a dense system A x = b solved by LU with partial pivoting, in blocks dealt
 * cyclically to the ranks. ScaLAPACK's pdgesv does it. The ranks form one row, so that a pivot is
 * searched on one rank and each panel of columns is broadcast once. The answer is checked as HPL
 * checks its own.
 */
#include "common.h"

#include <float.h>
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>

static const char help[] =
	"usage: mpirun -n RANKS linpack [options]\n"
	"Solves a dense system of equations by LU in blocks, with ScaLAPACK.\n"
	"  --size N    unknowns (default 1000, at most 65536)\n"
	"  --block NB  columns of a block (default 100)\n"
	"  --json      print one JSON object instead of text\n"
	"  --help      print this\n"
	"Exits with 0 if the scaled residual is small enough, 1 if not, 2 on bad arguments.\n";

/* ScaLAPACK 2.2 has no header: BLACS in C, the rest as Fortran passes its arguments. */
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridexit(int context);
int numroc_(const int *n, const int *block, const int *process, const int *first,
	    const int *processes);
void descinit_(int *desc, const int *m, const int *n, const int *mb, const int *nb,
	       const int *first_row, const int *first_column, const int *context, const int *lead,
	       int *info);
void pdgesv_(const int *n, const int *nrhs, double *a, const int *ia, const int *ja,
	     const int *desc_a, int *pivots, double *b, const int *ib, const int *jb,
	     const int *desc_b, int *info);

/* The largest scaled residual that HPL accepts. */
static const double residual_max = 16.0;

struct options {
	int size, block;
	bool json;
};

/* The system as this rank holds it: whole columns of the matrix; rank 0 also holds b, then x. */
struct system {
	int size, block, rank, ranks;
	int context;
	int columns; /* of the matrix, on this rank */
	int desc_a[9], desc_b[9];
	double *a, *b;
	int *pivots;
};

struct result {
	double residual;
	uint64_t checksum; /* of the solution's bits */
	uint64_t time_ns;
};

static struct options options_read(int argc, char **argv)
{
	static const struct option table[] = {
		{"size", required_argument, NULL, 's'},
		{"block", required_argument, NULL, 'b'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options options = {.size = 1000, .block = 100};
	int option;

	while ((option = ex_option(argc, argv, table, help)) != EX_OPTIONS_END) {
		switch (option) {
		case 's':
			options.size = (int)ex_parse_integer("--size", optarg, 1, 65536);
			break;
		case 'b':
			options.block = (int)ex_parse_integer("--block", optarg, 1, 65536);
			break;
		case 'j':
			options.json = true;
			break;
		}
	}
	return options;
}

static struct system system_make(const struct options *options)
{
	static const int zero, one = 1;
	struct system s = {.size = options->size, .block = options->block};
	int info, lead = s.size;

	MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
	Cblacs_get(-1, 0, &s.context);
	Cblacs_gridinit(&s.context, "Row", 1, s.ranks);
	s.columns = numroc_(&s.size, &s.block, &s.rank, &zero, &s.ranks);
	descinit_(s.desc_a, &s.size, &s.size, &s.block, &s.block, &zero, &zero, &s.context, &lead,
		  &info);
	descinit_(s.desc_b, &s.size, &one, &s.block, &s.block, &zero, &zero, &s.context, &lead,
		  &info);
	s.a = ex_alloc((size_t)s.size * (size_t)(s.columns + 1) * sizeof(double));
	s.b = ex_alloc((size_t)s.size * sizeof(double));
	s.pivots = ex_alloc((size_t)(s.size + s.block) * sizeof(int));
	return s;
}

static void system_free(struct system *s)
{
	Cblacs_gridexit(s->context);
	free(s->a);
	free(s->b);
	free(s->pivots);
}

/* Column @j of the matrix has which number on the rank that holds it? -1: another rank does. */
static int system_local(const struct system *s, int j)
{
	int number = j / s->block;

	if (number % s->ranks != s->rank)
		return -1;
	return number / s->ranks * s->block + j % s->block;
}

/* Element (@i, @j) of the matrix, in [-0.5, 0.5); column @size is the right-hand side. */
static double system_element(const struct system *s, int i, int j)
{
	return (double)(int64_t)ex_mix((uint64_t)j * (uint64_t)s->size + (uint64_t)i) * 0x1p-64;
}

static void system_generate(struct system *s)
{
	for (int j = 0; j < s->size; j++) {
		int local = system_local(s, j);

		for (int i = 0; local >= 0 && i < s->size; i++)
			s->a[(size_t)local * (size_t)s->size + (size_t)i] = system_element(s, i, j);
	}
	for (int i = 0; i < s->size; i++)
		s->b[i] = system_element(s, i, s->size);
}

static uint64_t system_solve(struct system *s)
{
	static const int one = 1;
	uint64_t start_ns;
	int info;

	MPI_Barrier(MPI_COMM_WORLD);
	start_ns = ex_now_ns();
	pdgesv_(&s->size, &one, s->a, &one, &one, s->desc_a, s->pivots, s->b, &one, &one, s->desc_b,
		&info);
	MPI_Barrier(MPI_COMM_WORLD);
	if (info != 0)
		ex_quit(EX_EXIT_WRONG, "pdgesv fails with %d", info);
	return ex_now_ns() - start_ns;
}

/*
 * ||A x - b|| / (eps (||A|| ||x|| + ||b||) n) in the maximum norm, as HPL has it. @x is the whole
 * solution; the matrix is made again, each rank sums over its own columns.
 */
static double system_residual(const struct system *s, const double *x)
{
	size_t rows = (size_t)s->size;
	double *sum = ex_alloc(2 * rows * sizeof(double)), *weight = sum + rows;
	double worst = 0, a_norm = 0, x_norm = 0, b_norm = 0;

	for (size_t i = 0; i < 2 * rows; i++)
		sum[i] = 0;
	for (int j = 0; j < s->size; j++) {
		if (system_local(s, j) < 0)
			continue;
		for (int i = 0; i < s->size; i++) {
			double element = system_element(s, i, j);

			sum[i] += element * x[j];
			weight[i] += fabs(element);
		}
	}
	MPI_Allreduce(MPI_IN_PLACE, sum, 2 * s->size, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < s->size; i++) {
		double b = system_element(s, i, s->size);

		if (isnan(sum[i]))
			worst = INFINITY;
		worst = fmax(worst, fabs(sum[i] - b));
		a_norm = fmax(a_norm, weight[i]);
		x_norm = fmax(x_norm, fabs(x[i]));
		b_norm = fmax(b_norm, fabs(b));
	}
	free(sum);
	/* HPL's eps is LAPACK's: half of the distance from 1 to the next number */
	return worst / (DBL_EPSILON / 2 * (a_norm * x_norm + b_norm) * s->size);
}

static void result_print(const struct system *s, bool json, const struct result *result)
{
	double n = s->size, time_s = (double)result->time_ns / 1e9;
	double flops = 2.0 / 3.0 * n * n * n + 3.0 / 2.0 * n * n; /* as HPL counts them */

	if (!json) {
		printf("residual  %.3g, scaled (allowed %g)\n", result->residual, residual_max);
		printf("checksum  %016llx\n", (unsigned long long)result->checksum);
		printf("unknowns  %d in blocks of %d on %d ranks\n", s->size, s->block, s->ranks);
		printf("time      %.6f s, %.3f Gflop/s\n", time_s, flops / time_s / 1e9);
		return;
	}
	printf("{\"program\": \"linpack\", \"library\": ");
	ex_json_string(stdout, ex_library());
	printf(", \"ranks\": %d, \"size\": %d, \"block\": %d, \"residual\": %.6g, \"checksum\": "
	       "\"%016llx\", \"flops\": %.0f, \"time_ns\": %llu}\n",
	       s->ranks, s->size, s->block, result->residual, (unsigned long long)result->checksum,
	       flops, (unsigned long long)result->time_ns);
}

int main(int argc, char **argv)
{
	struct options options;
	struct result result;
	struct system s;

	MPI_Init(&argc, &argv);
	options = options_read(argc, argv);
	s = system_make(&options);
	system_generate(&s);
	result.time_ns = system_solve(&s);
	MPI_Bcast(s.b, s.size, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	result.residual = system_residual(&s, s.b);
	result.checksum = ex_hash(EX_HASH_START, s.b, (size_t)s.size * sizeof(double));
	if (s.rank == 0)
		result_print(&s, options.json, &result);
	if (!(result.residual <= residual_max))
		ex_quit(EX_EXIT_WRONG, "the scaled residual %g is larger than %g", result.residual,
			residual_max);
	system_free(&s);
	MPI_Finalize();
	return 0;
}
