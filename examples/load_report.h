/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is told of a phase: its messages and their times, and what shows whether senders and
 * processors kept up.
 */
#ifndef EXAMPLES_LOAD_REPORT_H
#define EXAMPLES_LOAD_REPORT_H

#include "load_traffic.h"

#include <stdio.h>

/* Messages that are due in it are told one by one. */
struct span {
	uint64_t from_ns, to_ns; /* after the start; to_ns is not in it */
};

/* Rank 0 writes a line of JSON to @out; every rank must call it. @kind names the phase. */
void report_phase(FILE *out, const char *kind, const struct arrangement *arrangement,
		  const struct traffic *traffic, struct span span, const struct limits *limits);

#endif
