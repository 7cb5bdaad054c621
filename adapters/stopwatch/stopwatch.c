/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Times an unmodified MPI program from the end of MPI_Init to the beginning of MPI_Finalize: what
 * its launcher takes does not count. It is preloaded; the functions wrapped here have the same
 * types in every MPI, so that one library serves all, in C and in Fortran. Each process writes one
 * file into the directory that BEOWIRE_STATS names; without it nothing is written.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* 0: MPI was not begun, or its end was told. MPI_Init and MPI_Finalize are for one thread. */
static uint64_t began_ns;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The function of this name that the program would have called. */
static void *next(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (!function) {
		fprintf(stderr, "beowire-stopwatch: the program's MPI has no %s\n", name);
		abort();
	}
	return function;
}

/* A Fortran function may call the C one: the first end and the first beginning count. */
static void begin(void)
{
	if (!began_ns)
		began_ns = now_ns();
}

static void end(void)
{
	const char *directory = getenv("BEOWIRE_STATS");
	uint64_t time_ns = now_ns() - began_ns;
	char host[HOST_NAME_MAX + 1] = "", path[PATH_MAX];
	FILE *file;

	if (!began_ns || !directory)
		return;
	began_ns = 0;
	gethostname(host, sizeof(host) - 1);
	snprintf(path, sizeof(path), "%s/%s-%d.stopwatch", directory, host, (int)getpid());
	file = fopen(path, "w");
	if (!file || fprintf(file, "%llu\n", (unsigned long long)time_ns) < 0 || fclose(file) != 0)
		perror(path);
}

EXPORT int MPI_Init(int *argc, char ***argv)
{
	int (*function)(int *, char ***) = next("MPI_Init");
	int result = function(argc, argv);

	begin();
	return result;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int (*function)(int *, char ***, int, int *) = next("MPI_Init_thread");
	int result = function(argc, argv, required, provided);

	begin();
	return result;
}

EXPORT int MPI_Finalize(void)
{
	int (*function)(void) = next("MPI_Finalize");

	end();
	return function();
}

EXPORT void mpi_init_(int *error)
{
	void (*function)(int *) = next("mpi_init_");

	function(error);
	begin();
}

EXPORT void mpi_init_thread_(int *required, int *provided, int *error)
{
	void (*function)(int *, int *, int *) = next("mpi_init_thread_");

	function(required, provided, error);
	begin();
}

EXPORT void mpi_finalize_(int *error)
{
	void (*function)(int *) = next("mpi_finalize_");

	end();
	function(error);
}

EXPORT void mpi_init_f08_(int *error)
{
	void (*function)(int *) = next("mpi_init_f08_");

	function(error);
	begin();
}

EXPORT void mpi_init_thread_f08_(int *required, int *provided, int *error)
{
	void (*function)(int *, int *, int *) = next("mpi_init_thread_f08_");

	function(required, provided, error);
	begin();
}

EXPORT void mpi_finalize_f08_(int *error)
{
	void (*function)(int *) = next("mpi_finalize_f08_");

	end();
	function(error);
}
