/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A tridiagonal system solved in parallel [B6, long messages]. Rank 0 holds the system, scatters it
 * in blocks of rows (megabytes each) and gathers the solution. Each rank writes its block's
 * solution as u + l*v + r*w, where l and r are the unknowns just before and after the block; only
 * the ends of u, v and w are exchanged to find all l and r (partition method).
 */
#include "common.h"

#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>

static const char help[] =
	"usage: mpirun -n RANKS tridiagonal [options]\n"
	"Solves a diagonally dominant tridiagonal system; few long messages.\n"
	"  --size N    unknowns, at least 2 for each rank (default 2000000; 8 bytes each, k m g "
	"allowed)\n"
	"  --repeat N  number of systems solved, one after the other (default 5)\n"
	"  --wait US   wait as well, as slower ranks would take: microseconds of a system on one "
	"rank\n"
	"  --json      print one JSON object instead of text\n"
	"  --help      print this\n"
	"Exits with 0 if the residual is small enough, 1 if not, 2 on bad arguments.\n";

/* The largest residual allowed, as a share of the largest right-hand side (1). */
static const double residual_max = 1e-13;

struct options {
	uint64_t size;
	uint64_t repeat;
	uint64_t wait_us;
	bool json;
};

/* Rows a[i]*x[i-1] + b[i]*x[i] + c[i]*x[i+1] = d[i]. */
struct system {
	size_t rows;
	double *a, *b, *c, *d, *x;
};

/* How the ranks share the rows: counts and first rows as MPI_Scatterv wants them. */
struct partition {
	int ranks, rank;
	int *count, *first;
};

/* First and last elements of a block's u, v and w: what the other ranks need of it. */
struct block_ends {
	double u_first, v_first, w_first;
	double u_last, v_last, w_last;
};

struct result {
	double residual;
	uint64_t checksum; /* of the bits of all solutions */
	uint64_t time_ns;  /* scatter, solve, gather: the sum over all repetitions at rank 0 */
};

static struct options options_read(int argc, char **argv, int ranks)
{
	static const struct option table[] = {
		{"size", required_argument, NULL, 's'}, {"repeat", required_argument, NULL, 'r'},
		{"wait", required_argument, NULL, 'w'}, {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},	{0},
	};
	struct options options = {.size = 2000000, .repeat = 5};
	int option;

	while ((option = ex_option(argc, argv, table, help)) != EX_OPTIONS_END) {
		switch (option) {
		case 's':
			options.size = ex_parse_integer("--size", optarg, 2, 1u << 30);
			break;
		case 'r':
			options.repeat = ex_parse_integer("--repeat", optarg, 1, 1000000);
			break;
		case 'w':
			options.wait_us = ex_parse_integer("--wait", optarg, 1, 1u << 30);
			break;
		case 'j':
			options.json = true;
			break;
		}
	}
	if (options.size < 2 * (uint64_t)ranks)
		ex_quit(EX_EXIT_USAGE, "--size: %llu unknowns are too few for %d ranks",
			(unsigned long long)options.size, ranks);
	return options;
}

static struct partition partition_make(uint64_t rows)
{
	struct partition part;

	MPI_Comm_rank(MPI_COMM_WORLD, &part.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &part.ranks);
	part.count = ex_alloc((size_t)part.ranks * sizeof(int));
	part.first = ex_alloc((size_t)part.ranks * sizeof(int));
	for (int i = 0; i < part.ranks; i++) {
		uint64_t first = rows * (uint64_t)i / (uint64_t)part.ranks;
		uint64_t end = rows * (uint64_t)(i + 1) / (uint64_t)part.ranks;

		part.first[i] = (int)first;
		part.count[i] = (int)(end - first);
	}
	return part;
}

static void partition_free(struct partition *part)
{
	free(part->count);
	free(part->first);
}

static struct system system_alloc(size_t rows)
{
	size_t bytes = rows * sizeof(double);

	return (struct system){
		.rows = rows,
		.a = ex_alloc(bytes),
		.b = ex_alloc(bytes),
		.c = ex_alloc(bytes),
		.d = ex_alloc(bytes),
		.x = ex_alloc(bytes),
	};
}

static void system_free(struct system *system)
{
	free(system->a);
	free(system->b);
	free(system->c);
	free(system->d);
	free(system->x);
}

/* A number in [-1, 1) that depends on @n alone. */
static double signed_unit(uint64_t n)
{
	return (double)(int64_t)ex_mix(n) * 0x1p-63;
}

/* The @repetition'th system: neighbours weigh up to 1, the diagonal 3 to 5. */
static void system_generate(struct system *system, uint64_t repetition)
{
	for (size_t i = 0; i < system->rows; i++) {
		uint64_t n = repetition << 40 | (uint64_t)i << 2;

		system->a[i] = signed_unit(n);
		system->b[i] = 4.0 + signed_unit(n + 1);
		system->c[i] = signed_unit(n + 2);
		system->d[i] = signed_unit(n + 3);
	}
	system->a[0] = 0;
	system->c[system->rows - 1] = 0;
}

static double system_residual(const struct system *system)
{
	double worst = 0;

	for (size_t i = 0; i < system->rows; i++) {
		double sum = system->b[i] * system->x[i] - system->d[i];

		if (i > 0)
			sum += system->a[i] * system->x[i - 1];
		if (i + 1 < system->rows)
			sum += system->c[i] * system->x[i + 1];
		if (isnan(sum))
			return INFINITY;
		worst = fmax(worst, fabs(sum));
	}
	return worst;
}

/* Sends each rank its block of @whole; @block's arrays receive it. @whole counts at rank 0 only. */
static void system_scatter(const struct partition *part, const struct system *whole,
			   struct system *block)
{
	const double *from[] = {whole->a, whole->b, whole->c, whole->d};
	double *to[] = {block->a, block->b, block->c, block->d};

	for (int i = 0; i < 4; i++)
		MPI_Scatterv(from[i], part->count, part->first, MPI_DOUBLE, to[i],
			     part->count[part->rank], MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

/*
 * Solves the block for three right-hand sides at once: u for d, v for the unknown before the block,
 * w for the one after it. Elimination runs down, substitution up; u, v and w replace d, a and b.
 */
static struct block_ends block_solve(struct system *block)
{
	double *u = block->d, *v = block->a, *w = block->b, *c = block->c;
	size_t last = block->rows - 1;
	double right = -c[last];

	for (size_t i = 0; i <= last; i++) {
		double a = i > 0 ? v[i] : 0;
		double pivot = w[i] - (i > 0 ? a * c[i - 1] : 0);

		u[i] = (u[i] - (i > 0 ? a * u[i - 1] : 0)) / pivot;
		v[i] = (i > 0 ? -a * v[i - 1] : -v[0]) / pivot;
		w[i] = (i < last ? 0 : right) / pivot;
		c[i] = c[i] / pivot;
	}
	for (size_t i = last; i-- > 0;) {
		u[i] -= c[i] * u[i + 1];
		v[i] -= c[i] * v[i + 1];
		w[i] -= c[i] * w[i + 1];
	}
	return (struct block_ends){u[0], v[0], w[0], u[last], v[last], w[last]};
}

/*
 * Finds the unknowns before (*@left) and after (*@right) this rank's block from the ends of all
 * blocks. Going right, each block's last unknown is written as p + q * (first unknown of the next);
 * going left, the values are put in. Every rank does the same sums, so nothing needs to be sent.
 */
static void interface_solve(const struct partition *part, const struct block_ends *ends,
			    double *left, double *right)
{
	int last = part->ranks - 1;
	double *p = ex_alloc((size_t)part->ranks * sizeof(double));
	double *q = ex_alloc((size_t)part->ranks * sizeof(double));
	double next_first = 0; /* the first unknown of block i + 1 */

	p[0] = ends[0].u_last;
	q[0] = ends[0].w_last;
	for (int i = 1; i <= last; i++) {
		const struct block_ends *end = &ends[i];
		double pivot = 1 - end->v_first * q[i - 1];
		double first_p = (end->u_first + end->v_first * p[i - 1]) / pivot;
		double first_q = end->w_first / pivot;

		p[i] = end->u_last + end->v_last * (p[i - 1] + q[i - 1] * first_p);
		q[i] = end->w_last + end->v_last * q[i - 1] * first_q;
	}
	*left = 0;
	*right = 0;
	for (int i = last; i >= part->rank && i > 0; i--) {
		const struct block_ends *end = &ends[i];
		double pivot = 1 - end->v_first * q[i - 1];
		double first =
			(end->u_first + end->v_first * p[i - 1] + end->w_first * next_first) /
			pivot;

		if (i == part->rank) {
			*right = next_first;
			*left = p[i - 1] + q[i - 1] * first;
		}
		next_first = first;
	}
	if (part->rank == 0)
		*right = next_first;
	free(p);
	free(q);
}

/* @wait_ns: on one rank. */
static void system_solve(const struct partition *part, struct system *whole, struct system *block,
			 struct block_ends *ends, uint64_t wait_ns)
{
	const int ends_doubles = sizeof(*ends) / sizeof(double);
	struct block_ends own;
	double left, right;

	system_scatter(part, whole, block);
	own = block_solve(block);
	ex_wait(wait_ns / (uint64_t)part->ranks);
	MPI_Allgather(&own, ends_doubles, MPI_DOUBLE, ends, ends_doubles, MPI_DOUBLE,
		      MPI_COMM_WORLD);
	interface_solve(part, ends, &left, &right);
	for (size_t i = 0; i < block->rows; i++)
		block->x[i] = block->d[i] + left * block->a[i] + right * block->b[i];
	MPI_Gatherv(block->x, part->count[part->rank], MPI_DOUBLE, whole->x, part->count,
		    part->first, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static struct result solve_repeatedly(const struct options *options)
{
	struct partition part = partition_make(options->size);
	struct system whole = system_alloc(part.rank == 0 ? options->size : 0);
	struct system block = system_alloc((size_t)part.count[part.rank]);
	struct block_ends *ends = ex_alloc((size_t)part.ranks * sizeof(*ends));
	struct result result = {.checksum = EX_HASH_START};

	for (uint64_t i = 0; i < options->repeat; i++) {
		uint64_t start_ns;

		if (part.rank == 0)
			system_generate(&whole, i);
		MPI_Barrier(MPI_COMM_WORLD);
		start_ns = ex_now_ns();
		system_solve(&part, &whole, &block, ends, 1000 * options->wait_us);
		result.time_ns += ex_now_ns() - start_ns;
		if (part.rank == 0) {
			result.residual = fmax(result.residual, system_residual(&whole));
			result.checksum =
				ex_hash(result.checksum, whole.x, whole.rows * sizeof(double));
		}
	}
	MPI_Bcast(&result.residual, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	free(ends);
	system_free(&block);
	system_free(&whole);
	partition_free(&part);
	return result;
}

static void result_print(const struct options *options, const struct result *result, int ranks)
{
	unsigned long long size = options->size, repeat = options->repeat;
	unsigned long long block_bytes = size / (unsigned long long)ranks * sizeof(double);

	if (!options->json) {
		printf("residual  %.3g (allowed %g)\n", result->residual, residual_max);
		printf("checksum  %016llx\n", (unsigned long long)result->checksum);
		printf("unknowns  %llu, solved %llu times on %d ranks, messages of %llu bytes\n",
		       size, repeat, ranks, block_bytes);
		printf("time      %.6f s\n", (double)result->time_ns / 1e9);
		return;
	}
	printf("{\"program\": \"tridiagonal\", \"library\": ");
	ex_json_string(stdout, ex_library());
	printf(", \"ranks\": %d, \"size\": %llu, \"repeat\": %llu, \"wait_us\": %llu, "
	       "\"message_bytes\": %llu, "
	       "\"residual\": %.6g, \"checksum\": \"%016llx\", \"time_ns\": %llu}\n",
	       ranks, size, repeat, (unsigned long long)options->wait_us, block_bytes,
	       result->residual, (unsigned long long)result->checksum,
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
	result = solve_repeatedly(&options);
	if (rank == 0)
		result_print(&options, &result, ranks);
	if (!(result.residual <= residual_max))
		ex_quit(EX_EXIT_WRONG, "the residual %g is larger than %g", result.residual,
			residual_max);
	MPI_Finalize();
	return 0;
}
