/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pi by quadrature [B6, short messages]: the ranks sum slices of 4/(1+x^2) over [0,1] and combine
 * eight bytes after each round of slices. Partial sums travel as fixed-point integers, whose
 * addition is exact in any order: the result has the same bits for any transport, MPI library,
 * reduction tree and number of ranks.
 */
#include "common.h"

#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <string.h>

static const char help[] =
	"usage: mpirun -n RANKS pi [options]\n"
	"Computes pi as the integral of 4/(1+x^2) over [0,1]; many short messages.\n"
	"  --precision E  error allowed, 1e-11 to 0.1 (default 1e-8): about 1/E intervals are "
	"summed\n"
	"  --slice N      intervals that a rank sums between two exchanges (default 1000)\n"
	"  --wait US      wait as well, for so many microseconds a slice, as slower ranks would "
	"take\n"
	"  --json         print one JSON object instead of text\n"
	"  --help         print this\n"
	"Exits with 0 if pi is within the precision, 1 if not, 2 on bad arguments.\n";

struct options {
	double precision;
	uint64_t slice; /* intervals per slice */
	uint64_t wait_us;
	bool json;
};

struct result {
	uint64_t intervals;
	uint64_t rounds; /* exchanges: one Allreduce of 8 bytes each */
	double pi;
	uint64_t time_ns; /* of the slowest rank */
};

static struct options options_read(int argc, char **argv)
{
	static const struct option table[] = {
		{"precision", required_argument, NULL, 'p'},
		{"slice", required_argument, NULL, 's'},
		{"wait", required_argument, NULL, 'w'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options options = {.precision = 1e-8, .slice = 1000};
	int option;

	while ((option = ex_option(argc, argv, table, help)) != EX_OPTIONS_END) {
		switch (option) {
		case 'p':
			options.precision = ex_parse_real("--precision", optarg, 1e-11, 0.1);
			break;
		case 's':
			options.slice = ex_parse_integer("--slice", optarg, 1, 1u << 30);
			break;
		case 'w':
			options.wait_us = ex_parse_integer("--wait", optarg, 1, 1u << 30);
			break;
		case 'j':
			options.json = true;
			break;
		}
	}
	return options;
}

/* The share of pi in intervals [@first, @end) of @intervals, by the left rectangle rule. */
static double slice_sum(uint64_t first, uint64_t end, uint64_t intervals)
{
	const double width = 1.0 / (double)intervals;
	double sum = 0;

	for (uint64_t i = first; i < end; i++) {
		double x = (double)i * width;

		sum += 4.0 / (1.0 + x * x);
	}
	return sum * width;
}

/*
 * Slices are dealt in turn, one to each rank in a round; the exchange after each round tells every
 * rank the sum so far. A slice's sum is rounded to a multiple of 2^-60, which leaves room for the
 * sum of all (less than 4) in 63 bits and costs less than 1e-18 a slice.
 */
static struct result pi_compute(const struct options *options)
{
	const double fixed_one = 0x1p60;
	struct result result = {0};
	uint64_t slices, start_ns, elapsed_ns;
	int64_t total = 0;
	int rank, size;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	/* The rule's error is one interval's width; 1 % more of them leave room for rounding. */
	result.intervals = (uint64_t)ceil(1.01 / options->precision);
	slices = (result.intervals + options->slice - 1) / options->slice;
	result.rounds = (slices + (uint64_t)size - 1) / (uint64_t)size;

	MPI_Barrier(MPI_COMM_WORLD);
	start_ns = ex_now_ns();
	for (uint64_t round = 0; round < result.rounds; round++) {
		uint64_t slice = round * (uint64_t)size + (uint64_t)rank;
		int64_t part = 0, sum;

		if (slice < slices) {
			uint64_t first = slice * options->slice;
			uint64_t end = first + options->slice;

			if (end > result.intervals)
				end = result.intervals;
			part = llrint(slice_sum(first, end, result.intervals) * fixed_one);
			ex_wait(1000 * options->wait_us);
		}
		MPI_Allreduce(&part, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
		total += sum;
	}
	elapsed_ns = ex_now_ns() - start_ns;
	MPI_Allreduce(&elapsed_ns, &result.time_ns, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
	result.pi = (double)total / fixed_one;
	return result;
}

static void result_print(const struct options *options, const struct result *result, int size)
{
	double error = fabs(result->pi - M_PI);
	uint64_t bits;

	memcpy(&bits, &result->pi, sizeof(bits));
	if (!options->json) {
		printf("pi        %.17g (bits %016llx)\n", result->pi, (unsigned long long)bits);
		printf("error     %.3g (allowed %g)\n", error, options->precision);
		printf("intervals %llu in %llu rounds on %d ranks\n",
		       (unsigned long long)result->intervals, (unsigned long long)result->rounds,
		       size);
		printf("time      %.6f s\n", (double)result->time_ns / 1e9);
		return;
	}
	printf("{\"program\": \"pi\", \"library\": ");
	ex_json_string(stdout, ex_library());
	printf(", \"ranks\": %d, \"precision\": %g, \"slice\": %llu, \"wait_us\": %llu, "
	       "\"intervals\": %llu, "
	       "\"rounds\": %llu, \"pi\": %.17g, \"checksum\": \"%016llx\", \"error\": %.6g, "
	       "\"time_ns\": %llu}\n",
	       size, options->precision, (unsigned long long)options->slice,
	       (unsigned long long)options->wait_us, (unsigned long long)result->intervals,
	       (unsigned long long)result->rounds, result->pi, (unsigned long long)bits, error,
	       (unsigned long long)result->time_ns);
}

int main(int argc, char **argv)
{
	struct options options;
	struct result result;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	options = options_read(argc, argv);
	result = pi_compute(&options);
	if (rank == 0)
		result_print(&options, &result, size);
	if (!(fabs(result.pi - M_PI) <= options.precision))
		ex_quit(EX_EXIT_WRONG, "pi is off by %g, more than the precision %g",
			fabs(result.pi - M_PI), options.precision);
	MPI_Finalize();
	return 0;
}
