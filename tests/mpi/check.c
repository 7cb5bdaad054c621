/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frame of the MPI test programs (see check.h). Nothing here measures or waits by time.
 */
#include "check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static struct check check_begin(int least)
{
	struct check check;

	MPI_Comm_rank(MPI_COMM_WORLD, &check.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &check.size);
	if (check.size < least)
		ex_quit(EX_EXIT_USAGE, "needs at least %d ranks", least);
	return check;
}

struct check check_start(int *argc, char ***argv, int least)
{
	MPI_Init(argc, argv);
	return check_begin(least);
}

struct check check_start_threaded(int *argc, char ***argv, int least)
{
	int provided;

	MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
	check_that(provided == MPI_THREAD_MULTIPLE, "the library offers thread level %d only",
		   provided);
	return check_begin(least);
}

int check_finish(void)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		printf("ok %s\n", program_invocation_short_name);
		fflush(stdout);
	}
	MPI_Finalize();
	return 0;
}

_Noreturn void check_failed(const char *file, int line, const char *condition, const char *format,
			    ...)
{
	char message[512];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	ex_abort("%s:%d: %s (not so: %s)", file, line, message, condition);
}

void check_pattern(const void *data, size_t bytes, uint64_t seed, const char *what)
{
	size_t good = ex_pattern_check(data, bytes, seed);

	check_that(good == bytes, "%s: %zu bytes differ from offset %zu on", what, bytes, good);
}

void check_untouched(const void *data, size_t bytes, unsigned char value, const char *what)
{
	const unsigned char *byte = data;

	for (size_t i = 0; i < bytes; i++)
		check_that(byte[i] == value, "%s: byte %zu was overwritten", what, i);
}

void check_status(const MPI_Status *status, int source, int tag, size_t bytes)
{
	int count;

	MPI_Get_count(status, MPI_BYTE, &count);
	check_that(status->MPI_SOURCE == source, "source %d instead of %d", status->MPI_SOURCE,
		   source);
	check_that(status->MPI_TAG == tag, "tag %d instead of %d", status->MPI_TAG, tag);
	check_that((size_t)count == bytes, "%d bytes instead of %zu", count, bytes);
}

uint64_t check_option(int argc, char **argv, const char *name, uint64_t otherwise, uint64_t min,
		      uint64_t max)
{
	for (int i = 1; i + 1 < argc; i++) {
		if (argv[i] && strcmp(argv[i], name) == 0) {
			const char *value = argv[i + 1];

			argv[i] = argv[i + 1] = NULL;
			return ex_parse_integer(name, value, min, max);
		}
	}
	return otherwise;
}

void check_options(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (argv[i])
			ex_quit(EX_EXIT_USAGE, "'%s' is not expected here", argv[i]);
}

uint64_t check_random(uint64_t *state)
{
	return ex_mix((*state)++);
}

size_t check_random_size(uint64_t *state, size_t max)
{
	uint64_t kind = check_random(state) % 16;
	size_t size;

	if (kind < 9)
		size = check_random(state) % 300;
	else if (kind < 12)
		size = ((size_t)512 << check_random(state) % 8) - 4 + check_random(state) % 8;
	else if (kind < 15)
		size = check_random(state) % 20000;
	else
		size = check_random(state) % (max + 1);
	return size < max ? size : max;
}

uint64_t check_peak_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long long kib = 0;
	char line[256];

	check_that(file, "/proc/self/status cannot be read: %s", strerror(errno));
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
			break;
	fclose(file);
	check_that(kib > 0, "/proc/self/status has no VmHWM");
	return kib;
}
