/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inputs read as scripts, and the end of a run; see fuzz.h. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

void fuzz_bad(const char *what)
{
	fprintf(stderr, "fuzz: %s\n", what);
	abort();
}

uint8_t fuzz_u8(struct fuzz_input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

uint16_t fuzz_u16(struct fuzz_input *in)
{
	uint16_t low = fuzz_u8(in);

	return (uint16_t)(low | fuzz_u8(in) << 8);
}

uint64_t fuzz_number(struct fuzz_input *in)
{
	uint8_t how = fuzz_u8(in);

	switch (how & 3) {
	case 0:
		return how >> 2;
	case 1:
		return fuzz_u16(in);
	case 2:
		return UINT64_MAX - (how >> 2);
	default:
		return (uint64_t)fuzz_u16(in) << (how >> 2);
	}
}

uint8_t fuzz_odd(struct fuzz_input *in)
{
	uint8_t how = fuzz_u8(in);

	return how < 200 ? (uint8_t)(1u << how % 8) : how;
}

const uint8_t *fuzz_bytes(struct fuzz_input *in, uint32_t *n)
{
	const uint8_t *at = in->at;

	if (*n > (uint64_t)(in->end - in->at))
		*n = (uint32_t)(in->end - in->at);
	in->at += *n;
	return at;
}
