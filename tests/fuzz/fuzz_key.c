/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any text as a file with a key. What is taken is one line of 64 digits among remarks, found here
 * by other means; what is refused has a reason, leaves the key alone and tells nothing of the text.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"
#include "key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Is it? Then its digits. */
static bool holds_key(char *text, size_t size, char digits[65])
{
	char *line = text, *end = text + size, *next;
	uint32_t others = 0;

	for (; line < end; line = next + 1) {
		for (next = line; next < end && *next != '\n';)
			next++;
		if (*line == '#')
			continue;
		if (others++ || next - line != 64)
			return false;
		memcpy(digits, line, 64);
		digits[64] = 0;
	}
	for (uint32_t i = 0; others && i < 64; i++)
		if (!isxdigit((unsigned char)digits[i]))
			return false;
	return others && strspn(digits, "0") < 64;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* exactly as long as the text, so that a byte too far is seen */
	char *text = malloc(size ? size : 1), digits[65], why[80] = "", pair[3] = "";
	uint8_t key[BW_KEY_BYTES], untouched[BW_KEY_BYTES];
	bool wanted;
	int error;

	memcpy(text, data, size);
	memset(key, 0xEE, sizeof(key));
	memset(untouched, 0xEE, sizeof(untouched));
	error = bw_key_parse(text, size, key, why, sizeof(why));
	wanted = holds_key(text, size, digits);
	if (wanted != (error == 0))
		fuzz_bad(wanted ? "a key that is refused" : "a key that is none");
	for (uint32_t i = 0; wanted && i < BW_KEY_BYTES; i++) {
		memcpy(pair, digits + 2 * i, 2);
		if (key[i] != strtoul(pair, NULL, 16))
			fuzz_bad("another key");
	}
	if (!wanted && (error != -EINVAL || !why[0] || memcmp(key, untouched, sizeof(key))))
		fuzz_bad("refused without a word, or not wholly");
	for (const char *c = why; *c; c++)
		if (!isprint((unsigned char)*c))
			fuzz_bad("a reason that is no text");
	free(text);
	return 0;
}
