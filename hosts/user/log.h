/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages to people: lines on stderr by level (BEOWIRE_LOG), and bw_log_once() for what one job
 * should say once and not once per rank.
 */
#ifndef BW_LOG_H
#define BW_LOG_H

#include <stdbool.h>

enum bw_log_level { BW_LOG_ERROR, BW_LOG_WARN, BW_LOG_INFO, BW_LOG_DEBUG };

/* What is more detailed is not told: of the endpoint that was opened last. */
extern _Atomic enum bw_log_level bw_log_limit;

#define BW_LOG_FORMAT(at, first) __attribute__((format(printf, at, first)))

BW_LOG_FORMAT(2, 3) void bw_log(enum bw_log_level level, const char *format, ...);

/* As bw_log(), but only by the first process of this job on this node that says `what`. */
BW_LOG_FORMAT(3, 4)
void bw_log_once(enum bw_log_level level, const char *what, const char *format, ...);

/* The same, of what another node says as well: the line does not tell who says it, so that it is
 * the same on both and `beowire run` passes on one of them. */
BW_LOG_FORMAT(3, 4)
void bw_log_both(enum bw_log_level level, const char *what, const char *format, ...);

/* Whether this process is that one, and this is its first call: for what takes several lines. */
bool bw_log_first(enum bw_log_level level, const char *what);

/* Write a text for `*why` into a thread-local buffer and set *why (if not NULL). Returns `error`.
 */
BW_LOG_FORMAT(3, 4) int bw_fail(const char **why, int error, const char *format, ...);

#endif
