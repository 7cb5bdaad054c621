/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What both sides of the differential test share. See differ.c. */
#ifndef DIFFER_H
#define DIFFER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum what { WRITE, READ, SHUT, CLOSE, FORK, WAY };

/* To the server, of both connections; it answers when it is done. */
struct order {
	int64_t what;
	int64_t n[2];
};

extern int streams[2], control; /* the one that may be switched, the reference, and orders */

__attribute__((noreturn, format(printf, 1, 2))) void bad(const char *format, ...);
/* The bytes of a stream follow from their places in it. */
uint8_t byte_at(uint64_t place);
void fill(uint8_t *to, uint64_t place, size_t n);
void check(const uint8_t *bytes, uint64_t place, size_t n, const char *what);
void whole(int fd, void *bytes, size_t n, bool in);

void stay_on_tcp(int fd);
/* 1: receives by Beowire, 2: sends. */
int way_of(int fd);

void drive(const char *address, uint16_t port, uint64_t seed, int steps);

#endif
