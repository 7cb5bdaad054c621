/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the example programs share: options read alike by every rank, errors said once per job, a
 * clock, and a data pattern that can be checked. Everything here is collective-safe: each rank
 * takes the same decisions from the same arguments, so that no rank waits for one that left.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes: a wrong result, and arguments that make no sense. */
#define EX_EXIT_WRONG 1
#define EX_EXIT_USAGE 2

/*
 * Ends the program in order: rank 0 prints "PROGRAM: message" to stderr, every rank calls
 * MPI_Finalize and exits with @code. Every rank must call it.
 */
_Noreturn void ex_quit(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * The next option of the command line as getopt_long() gives it by its @table, EX_OPTIONS_END after
 * the last. An unknown option, a missing value and anything that is no option end the program by
 * ex_quit(), and "help", 'h' in the table, by rank 0 printing @help. Every rank must call it.
 */
#define EX_OPTIONS_END (-1)
struct option;
int ex_option(int argc, char **argv, const struct option *table, const char *help);

/* For a failure of one rank alone: prints it with the rank's number and aborts the whole job. */
_Noreturn void ex_abort(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Numbers from arguments, by ex_quit() if @text is no number or outside [@min, @max]. @name is the
 * option's name for the message. Integers may end in k, m or g (powers of 1024).
 */
uint64_t ex_parse_integer(const char *name, const char *text, uint64_t min, uint64_t max);
double ex_parse_real(const char *name, const char *text, double min, double max);

/*
 * Integers with commas between them, each as above, into @values, which has room for @room: their
 * count.
 */
size_t ex_parse_integers(const char *name, const char *text, uint64_t min, uint64_t max,
			 uint64_t *values, size_t room);

/*
 * Opens @path for rank 0's report, "-" and NULL being stdout; where that fails, every rank ends by
 * ex_quit(). Every rank must call it; ex_report_close() is rank 0's alone.
 */
FILE *ex_report_open(const char *path);
void ex_report_close(FILE *out);

/* Memory aligned to pages and touched, so that no page fault falls into a measurement. */
void *ex_alloc(size_t bytes);

/* The monotonic clock in nanoseconds. */
uint64_t ex_now_ns(void);

/* Sleeps for @ns from now on; for 0 it returns at once. */
void ex_wait(uint64_t ns);

/* FNV-1a over @bytes of @data, going on from @hash; begin with EX_HASH_START. */
#define EX_HASH_START 0xcbf29ce484222325u
uint64_t ex_hash(uint64_t hash, const void *data, size_t bytes);

/* A value that looks random and depends on @x alone (the finalizer of splitmix64). */
uint64_t ex_mix(uint64_t x);

/*
 * Fills @bytes at @data with the pattern of @seed; ex_pattern_check() returns @bytes if the pattern
 * is found there, else the offset of the first byte that differs.
 */
void ex_pattern_fill(void *data, size_t bytes, uint64_t seed);
size_t ex_pattern_check(const void *data, size_t bytes, uint64_t seed);

/* Writes @text as a JSON string with its quotes. */
void ex_json_string(FILE *out, const char *text);

/* The name and version of the MPI library, the first line of what it says of itself. */
const char *ex_library(void);

#endif
