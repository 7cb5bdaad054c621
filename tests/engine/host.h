/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a node of the test world does as a host: memory for messages and regions, filled with
 * patterns that are checked on arrival, and taking events.
 */
#ifndef TEST_HOST_H
#define TEST_HOST_H

#include "world.h"

extern const struct bw_host_ops host_ops;
extern const struct bw_host_ops host_ops_direct; /* takes messages at once where it may */

/* What siphash() gives while world.strangers is false. */
#define HOST_COOKIE 0xC00C1Eu

struct buffer *buffer_new(int node, uint64_t len);
void buffer_free(struct buffer *b);
/* Bytes [off, off + n) of the pattern of `seed`. */
void pattern(uint64_t seed, uint64_t off, uint8_t *to, uint64_t n);
/* Payload bytes of a submitted buffer; the test fails if it has been given back. */
void buffer_read(uint64_t buf, uint64_t off, void *to, uint32_t n);
/* Take all events of a node: check what they bring, and log them. */
void take_events(int n);
/* Add a line to a log of LOG_BYTES. */
void log_line(char *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
