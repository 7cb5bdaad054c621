/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text of others made printable. See text.h. */
#include "text.h"

void bw_text_printable(char *out, size_t room, const void *bytes, size_t n)
{
	const unsigned char *from = bytes;
	size_t i;

	for (i = 0; i < n && i < room - 1 && from[i]; i++)
		out[i] = from[i] >= ' ' && from[i] <= '~' ? (char)from[i] : '?';
	out[i] = 0;
}

void bw_text_line(char *line)
{
	for (; *line; line++) {
		unsigned char c = (unsigned char)*line;

		if (c < ' ' || c == 0x7F)
			*line = '?';
	}
}
