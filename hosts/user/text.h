/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text that others wrote (host names in frames, lines of a control connection) and that people are
 * to read: a terminal obeys escape sequences, and a line feed begins a line in our name.
 */
#ifndef BW_TEXT_H
#define BW_TEXT_H

#include <stddef.h>

/* Copy at most n bytes, up to a zero byte, into out of `room` bytes (at least 1), always ended by a
 * zero byte. What is not printable ASCII becomes '?'. out may be `bytes` itself. */
void bw_text_printable(char *out, size_t room, const void *bytes, size_t n);

/* Replace control characters in a line of ours; bytes of other alphabets stay. */
void bw_text_line(char *line);

#endif
