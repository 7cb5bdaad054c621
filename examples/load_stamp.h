/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of a message's content: a short one as a whole, of a long one its first and last
 * bytes and words in between. Writing and checking all of a long one would take as long as other
 * messages need to cross the line.
 */
#ifndef EXAMPLES_LOAD_STAMP_H
#define EXAMPLES_LOAD_STAMP_H

#include <stddef.h>
#include <stdint.h>

/* Writes the content of @seed. */
void stamp_write(void *data, size_t bytes, uint64_t seed);

/* @bytes if it is found, else the offset of a byte that differs. */
size_t stamp_check(const void *data, size_t bytes, uint64_t seed);

#endif
