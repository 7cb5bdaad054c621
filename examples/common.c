/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options, errors, clock and data pattern of the example programs (see common.h). The rule behind
 * it: what is wrong for one rank is wrong for all, so all leave through MPI_Finalize and one
 * speaks.
 */
#include "common.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int ex_rank(void)
{
	int rank = 0;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	return rank;
}

_Noreturn void ex_quit(int code, const char *format, ...)
{
	if (ex_rank() == 0) {
		va_list args;

		va_start(args, format);
		fprintf(stderr, "%s: ", program_invocation_short_name);
		vfprintf(stderr, format, args);
		fputc('\n', stderr);
		va_end(args);
	}
	MPI_Finalize();
	exit(code);
}

static _Noreturn void ex_help(const char *text)
{
	if (ex_rank() == 0)
		fputs(text, stdout);
	MPI_Finalize();
	exit(0);
}

int ex_option(int argc, char **argv, const struct option *table, const char *help)
{
	int option;

	opterr = 0;
	option = getopt_long(argc, argv, "", table, NULL);
	if (option == 'h')
		ex_help(help);
	if (option == '?')
		ex_quit(EX_EXIT_USAGE, "'%s' is no option here or lacks a value; see --help",
			argv[optind - 1]);
	if (option == EX_OPTIONS_END && optind < argc)
		ex_quit(EX_EXIT_USAGE, "'%s' is not expected; see --help", argv[optind]);
	return option;
}

_Noreturn void ex_abort(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "%s: rank %d: ", program_invocation_short_name, ex_rank());
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	fflush(stderr);
	MPI_Abort(MPI_COMM_WORLD, EX_EXIT_WRONG);
	abort();
}

uint64_t ex_parse_integer(const char *name, const char *text, uint64_t min, uint64_t max)
{
	static const char units[] = "kmg";
	const char *unit;
	uint64_t value;
	int shift = 0;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (end == text || *text == '-' || errno)
		ex_quit(EX_EXIT_USAGE, "%s: '%s' is not a whole number", name, text);
	unit = *end ? strchr(units, *end | 0x20) : NULL;
	if (unit) {
		shift = 10 * (int)(unit - units + 1);
		end++;
	}
	if (*end)
		ex_quit(EX_EXIT_USAGE, "%s: '%s' is not a whole number", name, text);
	if (value > UINT64_MAX >> shift || value << shift < min || value << shift > max)
		ex_quit(EX_EXIT_USAGE, "%s: %s is outside %llu to %llu", name, text,
			(unsigned long long)min, (unsigned long long)max);
	return value << shift;
}

double ex_parse_real(const char *name, const char *text, double min, double max)
{
	double value;
	char *end;

	value = strtod(text, &end);
	if (end == text || *end || !isfinite(value))
		ex_quit(EX_EXIT_USAGE, "%s: '%s' is not a number", name, text);
	if (value < min || value > max)
		ex_quit(EX_EXIT_USAGE, "%s: %s is outside %g to %g", name, text, min, max);
	return value;
}

size_t ex_parse_integers(const char *name, const char *text, uint64_t min, uint64_t max,
			 uint64_t *values, size_t room)
{
	char *copy = strdup(text), *rest = copy, *item;
	size_t count = 0;

	while ((item = strsep(&rest, ","))) {
		if (count == room)
			ex_quit(EX_EXIT_USAGE, "%s: more than %zu sizes", name, room);
		values[count++] = ex_parse_integer(name, item, min, max);
	}
	free(copy);
	return count;
}

FILE *ex_report_open(const char *path)
{
	FILE *out = stdout;
	int error = 0;

	if (ex_rank() == 0 && path && strcmp(path, "-") != 0) {
		out = fopen(path, "w");
		error = out ? 0 : errno;
	}
	MPI_Bcast(&error, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (error)
		ex_quit(EX_EXIT_USAGE, "cannot write %s: %s", path, strerror(error));
	return out;
}

void ex_report_close(FILE *out)
{
	if (fflush(out) != 0 || ferror(out) || (out != stdout && fclose(out) != 0))
		ex_abort("cannot write the results: %s", strerror(errno));
}

void *ex_alloc(size_t bytes)
{
	const size_t page_bytes = 4096;
	void *memory = aligned_alloc(page_bytes, (bytes / page_bytes + 1) * page_bytes);

	if (!memory)
		ex_abort("no memory for %zu bytes; choose smaller sizes", bytes);
	memset(memory, 0, bytes);
	return memory;
}

uint64_t ex_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void ex_wait(uint64_t ns)
{
	uint64_t end_ns = ex_now_ns() + ns;
	struct timespec end = {
		.tv_sec = (time_t)(end_ns / 1000000000u),
		.tv_nsec = (long)(end_ns % 1000000000u),
	};

	if (!ns)
		return;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

uint64_t ex_hash(uint64_t hash, const void *data, size_t bytes)
{
	const uint64_t fnv_prime = 0x100000001b3u;
	const unsigned char *byte = data;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ byte[i]) * fnv_prime;
	return hash;
}

uint64_t ex_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/*
 * The pattern is a row of 64-bit words, each a step from the one before, from a start that depends
 * on the seed: cheap enough to check bandwidth tests, and no two offsets or seeds look alike.
 */
static const uint64_t pattern_step = 0x9e3779b97f4a7c15u;

void ex_pattern_fill(void *data, size_t bytes, uint64_t seed)
{
	uint64_t word = ex_mix(seed);
	unsigned char *to = data;

	for (; bytes >= sizeof(word); bytes -= sizeof(word), to += sizeof(word)) {
		memcpy(to, &word, sizeof(word));
		word += pattern_step;
	}
	memcpy(to, &word, bytes);
}

size_t ex_pattern_check(const void *data, size_t bytes, uint64_t seed)
{
	uint64_t word = ex_mix(seed);
	const unsigned char *from = data;
	size_t at = 0;

	for (; at < bytes; at += sizeof(word), word += pattern_step) {
		size_t part = bytes - at < sizeof(word) ? bytes - at : sizeof(word);

		if (memcmp(from + at, &word, part) != 0)
			break;
	}
	if (at >= bytes)
		return bytes;
	for (const unsigned char *want = (const void *)&word; from[at] == *want; want++)
		at++;
	return at;
}

void ex_json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			fprintf(out, "\\u%04x", *text);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

const char *ex_library(void)
{
	static char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int length;

	MPI_Get_library_version(text, &length);
	text[strcspn(text, "\n,")] = '\0';
	return text;
}
