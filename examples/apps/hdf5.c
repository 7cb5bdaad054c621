/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A matrix written to a file and read again by HDF5, collectively: each rank has some columns of
 * every row, so that the ranks exchange what they have before anything is written. `beowire bench
 * apps` compiles and starts it; the normal build does not.
 */
#include "common.h"

#include <getopt.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"usage: mpirun -n RANKS hdf5 [options]\n"
	"Writes a matrix of doubles to a file and reads it, each rank some columns.\n"
	"  --rows N     of the matrix (default 1024)\n"
	"  --columns N  of the matrix, for each rank (default 512)\n"
	"  --turns N    written and read (default 20)\n"
	"  --file NAME  (default apps.h5), removed at the end\n"
	"  --help       print this\n"
	"Exits with 0, with 1 if what was read is not what was written, 2 on bad arguments.\n";

struct options {
	hsize_t rows;
	hsize_t columns;
	uint64_t turns;
	const char *file;
};

static struct options options_read(int argc, char **argv)
{
	static const struct option table[] = {
		{"rows", required_argument, NULL, 'r'},	 {"columns", required_argument, NULL, 'c'},
		{"turns", required_argument, NULL, 't'}, {"file", required_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},	 {NULL, 0, NULL, 0},
	};
	struct options options = {.rows = 1024, .columns = 512, .turns = 20, .file = "apps.h5"};
	int option;

	while ((option = ex_option(argc, argv, table, help)) != EX_OPTIONS_END) {
		if (option == 'r')
			options.rows = ex_parse_integer("--rows", optarg, 1, 1 << 20);
		else if (option == 'c')
			options.columns = ex_parse_integer("--columns", optarg, 1, 1 << 20);
		else if (option == 't')
			options.turns = ex_parse_integer("--turns", optarg, 1, 1000000);
		else
			options.file = optarg;
	}
	return options;
}

/* A file and what describes the part of it that this rank has. */
struct part {
	hid_t file, space, memory, set, together;
};

static struct part part_open(const struct options *options, int rank, int size)
{
	hsize_t whole[2] = {options->rows, options->columns * (hsize_t)size};
	hsize_t first[2] = {0, options->columns * (hsize_t)rank};
	hsize_t own[2] = {options->rows, options->columns};
	hid_t access = H5Pcreate(H5P_FILE_ACCESS);
	struct part part;

	H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
	part.file = H5Fcreate(options->file, H5F_ACC_TRUNC, H5P_DEFAULT, access);
	H5Pclose(access);
	part.space = H5Screate_simple(2, whole, NULL);
	part.memory = H5Screate_simple(2, own, NULL);
	H5Sselect_hyperslab(part.space, H5S_SELECT_SET, first, NULL, own, NULL);
	part.set = H5Dcreate2(part.file, "matrix", H5T_NATIVE_DOUBLE, part.space, H5P_DEFAULT,
			      H5P_DEFAULT, H5P_DEFAULT);
	part.together = H5Pcreate(H5P_DATASET_XFER);
	H5Pset_dxpl_mpio(part.together, H5FD_MPIO_COLLECTIVE);
	if (part.file < 0 || part.set < 0)
		ex_abort("%s cannot be made", options->file);
	return part;
}

static void part_close(const struct part *part)
{
	H5Pclose(part->together);
	H5Dclose(part->set);
	H5Sclose(part->memory);
	H5Sclose(part->space);
	H5Fclose(part->file);
}

/* A turn: new numbers are written, read into `back`, and compared. */
static void turn_make(const struct part *part, double *data, double *back, size_t bytes,
		      uint64_t seed)
{
	ex_pattern_fill(data, bytes, seed);
	if (H5Dwrite(part->set, H5T_NATIVE_DOUBLE, part->memory, part->space, part->together,
		     data) < 0 ||
	    H5Dread(part->set, H5T_NATIVE_DOUBLE, part->memory, part->space, part->together, back) <
		    0)
		ex_abort("the matrix cannot be written or read");
	if (memcmp(data, back, bytes) != 0)
		ex_abort("what was read is not what was written");
}

int main(int argc, char **argv)
{
	uint64_t began_ns, took_ns, hash, sum = 0;
	struct options options;
	struct part part;
	double *data, *back;
	size_t bytes;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	options = options_read(argc, argv);
	bytes = options.rows * options.columns * sizeof(double);
	data = ex_alloc(bytes);
	back = ex_alloc(bytes);
	part = part_open(&options, rank, size);
	turn_make(&part, data, back, bytes, (uint64_t)rank);
	MPI_Barrier(MPI_COMM_WORLD);
	began_ns = ex_now_ns();
	for (uint64_t turn = 1; turn <= options.turns; turn++)
		turn_make(&part, data, back, bytes, turn * (uint64_t)size + (uint64_t)rank);
	MPI_Barrier(MPI_COMM_WORLD);
	took_ns = ex_now_ns() - began_ns;
	hash = ex_hash(EX_HASH_START, back, bytes) >> 16; /* exact as a number of JSON */
	MPI_Reduce(&hash, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	part_close(&part);
	if (rank == 0) {
		unlink(options.file);
		printf("{\"time_s\": %.9f, \"hash\": %llu}\n", (double)took_ns / 1e9,
		       (unsigned long long)sum);
	}
	free(data);
	free(back);
	MPI_Finalize();
	return 0;
}
