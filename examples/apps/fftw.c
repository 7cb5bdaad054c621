/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fourier transforms of a cube by FFTW's MPI library, forth and back: each moves the whole cube
 * between all ranks. `beowire bench apps` compiles and starts it; the normal build does not.
 */
#include "common.h"

#include <fftw3-mpi.h>
#include <getopt.h>
#include <math.h>

static const char help[] =
	"usage: mpirun -n RANKS fftw [options]\n"
	"Transforms a cube of complex numbers forth and back.\n"
	"  --side N   of the cube, 8 to 1024 (default 96)\n"
	"  --turns N  forth and back (default 20)\n"
	"  --help     print this\n"
	"Exits with 0, with 1 if the cube does not come back, 2 on bad arguments.\n";

struct options {
	ptrdiff_t side;
	uint64_t turns;
};

static struct options options_read(int argc, char **argv)
{
	static const struct option table[] = {
		{"side", required_argument, NULL, 's'},
		{"turns", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct options options = {.side = 96, .turns = 20};
	int option;

	while ((option = ex_option(argc, argv, table, help)) != EX_OPTIONS_END) {
		if (option == 's')
			options.side = (ptrdiff_t)ex_parse_integer("--side", optarg, 8, 1024);
		else
			options.turns = ex_parse_integer("--turns", optarg, 1, 1000000);
	}
	return options;
}

/* Numbers in [-1, 1), the same for each number of ranks. */
static double value_at(uint64_t place)
{
	return (double)(int64_t)ex_mix(place) / 0x1p63;
}

/* The largest difference from what was filled in, of all ranks. */
static double error_of(fftw_complex *data, ptrdiff_t count, ptrdiff_t first, double scale)
{
	double error = 0, all;

	for (ptrdiff_t i = 0; i < count; i++) {
		error = fmax(error, fabs(data[i][0] * scale - value_at(2 * (uint64_t)(first + i))));
		error = fmax(error,
			     fabs(data[i][1] * scale - value_at(2 * (uint64_t)(first + i) + 1)));
	}
	MPI_Allreduce(&error, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return all;
}

/* The sum of all absolute values, of all ranks: the answer. */
static double norm_of(fftw_complex *data, ptrdiff_t count)
{
	double sum = 0, all;

	for (ptrdiff_t i = 0; i < count; i++)
		sum += hypot(data[i][0], data[i][1]);
	MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return all;
}

int main(int argc, char **argv)
{
	ptrdiff_t planes, first_plane, room, count, first;
	fftw_plan forth, back;
	fftw_complex *data;
	struct options options;
	double norm, error;
	uint64_t began_ns, took_ns;
	int rank;

	MPI_Init(&argc, &argv);
	fftw_mpi_init();
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	options = options_read(argc, argv);
	room = fftw_mpi_local_size_3d(options.side, options.side, options.side, MPI_COMM_WORLD,
				      &planes, &first_plane);
	data = fftw_alloc_complex((size_t)room);
	/* No plans by measurement: both transports are to do the same. */
	forth = fftw_mpi_plan_dft_3d(options.side, options.side, options.side, data, data,
				     MPI_COMM_WORLD, FFTW_FORWARD, FFTW_ESTIMATE);
	back = fftw_mpi_plan_dft_3d(options.side, options.side, options.side, data, data,
				    MPI_COMM_WORLD, FFTW_BACKWARD, FFTW_ESTIMATE);
	if (!data || !forth || !back)
		ex_abort("there is no memory or no plan for a cube of %td", options.side);
	count = planes * options.side * options.side;
	first = first_plane * options.side * options.side;
	for (ptrdiff_t i = 0; i < count; i++) {
		data[i][0] = value_at(2 * (uint64_t)(first + i));
		data[i][1] = value_at(2 * (uint64_t)(first + i) + 1);
	}
	fftw_execute(forth);
	norm = norm_of(data, count);
	fftw_execute(back);
	MPI_Barrier(MPI_COMM_WORLD);
	began_ns = ex_now_ns();
	for (uint64_t turn = 0; turn < options.turns; turn++) {
		double scale = 1.0 / pow((double)options.side, 3);

		for (ptrdiff_t i = 0; i < count; i++) {
			data[i][0] *= scale;
			data[i][1] *= scale;
		}
		fftw_execute(forth);
		fftw_execute(back);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	took_ns = ex_now_ns() - began_ns;
	error = error_of(data, count, first, 1.0 / pow((double)options.side, 3));
	if (rank == 0)
		printf("{\"time_s\": %.9f, \"norm\": %.17g, \"error\": %.3g}\n",
		       (double)took_ns / 1e9, norm, error);
	if (!(error < 1e-9))
		ex_quit(EX_EXIT_WRONG, "the cube came back with an error of %g", error);
	fftw_destroy_plan(forth);
	fftw_destroy_plan(back);
	fftw_free(data);
	MPI_Finalize();
	return 0;
}
