/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Contents of messages (see load_stamp.h).
 */
#include "load_stamp.h"

#include "common.h"

#define STAMP_WHOLE_BYTES 512 /* a message of up to so many is written as a whole */
#define STAMP_EDGE_BYTES  64
#define STAMP_WORDS	  16 /* in between, at equal distances */

/* The place of word @i of a long message. */
static size_t word_offset(size_t bytes, size_t i)
{
	return STAMP_EDGE_BYTES + (bytes - 3 * STAMP_EDGE_BYTES) / STAMP_WORDS * i;
}

void stamp_write(void *data, size_t bytes, uint64_t seed)
{
	unsigned char *to = data;

	if (bytes <= STAMP_WHOLE_BYTES) {
		ex_pattern_fill(to, bytes, seed);
		return;
	}
	ex_pattern_fill(to, STAMP_EDGE_BYTES, seed);
	for (size_t i = 0; i < STAMP_WORDS; i++)
		ex_pattern_fill(to + word_offset(bytes, i), sizeof(seed), ex_mix(seed + i));
	ex_pattern_fill(to + bytes - STAMP_EDGE_BYTES, STAMP_EDGE_BYTES, ~seed);
}

size_t stamp_check(const void *data, size_t bytes, uint64_t seed)
{
	const unsigned char *from = data;
	size_t end = bytes - STAMP_EDGE_BYTES, at;

	if (bytes <= STAMP_WHOLE_BYTES)
		return ex_pattern_check(from, bytes, seed);
	at = ex_pattern_check(from, STAMP_EDGE_BYTES, seed);
	if (at < STAMP_EDGE_BYTES)
		return at;
	for (size_t i = 0; i < STAMP_WORDS; i++) {
		size_t word = word_offset(bytes, i);

		at = ex_pattern_check(from + word, sizeof(seed), ex_mix(seed + i));
		if (at < sizeof(seed))
			return word + at;
	}
	return end + ex_pattern_check(from + end, STAMP_EDGE_BYTES, ~seed);
}
