/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frame of the MPI test programs: start, compare, say "ok NAME". A program that finds a
 * difference says what and where and aborts the job; one that ends has compared everything.
 */
#ifndef TESTS_MPI_CHECK_H
#define TESTS_MPI_CHECK_H

#include "../../examples/common.h"

#include <mpi.h>

struct check {
	int rank, size; /* in MPI_COMM_WORLD */
};

/* Starts MPI; quits with a usage error if there are fewer than @least ranks. */
struct check check_start(int *argc, char ***argv, int least);

/* As check_start(), for programs that call MPI from several threads at once. */
struct check check_start_threaded(int *argc, char ***argv, int least);

/* Waits for all ranks, prints "ok NAME" at rank 0 and returns the exit code of main(). */
int check_finish(void);

/* Unless @condition holds: prints the message with rank and place, and aborts the job. */
#define check_that(condition, ...)                                                                 \
	do {                                                                                       \
		if (!(condition))                                                                  \
			check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__);                 \
	} while (0)

_Noreturn void check_failed(const char *file, int line, const char *condition, const char *format,
			    ...) __attribute__((format(printf, 4, 5)));

/* Checks that @bytes at @data hold the pattern of @seed; @what names them in the message. */
void check_pattern(const void *data, size_t bytes, uint64_t seed, const char *what);

/* Checks that all of @bytes at @data are @value: guards that no receive may touch. */
void check_untouched(const void *data, size_t bytes, unsigned char value, const char *what);

/* Checks source, tag and count of bytes in @status. */
void check_status(const MPI_Status *status, int source, int tag, size_t bytes);

/*
 * The value of option "--NAME value" (an integer in [@min, @max]), or @otherwise. check_options()
 * at the end quits if an argument was none of those asked for.
 */
uint64_t check_option(int argc, char **argv, const char *name, uint64_t otherwise, uint64_t min,
		      uint64_t max);
void check_options(int argc, char **argv);

/* A random number generator that every rank can run alike: the state is a seed. */
uint64_t check_random(uint64_t *state);

/* A random size: often short, at times around thresholds, seldom near @max. */
size_t check_random_size(uint64_t *state, size_t max);

/* Peak resident memory of this process in KiB (VmHWM of /proc/self/status). */
uint64_t check_peak_kib(void);

#endif
