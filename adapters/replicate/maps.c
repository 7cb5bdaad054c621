/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The areas of a process, out of /proc/self/maps (proc_pid_maps(5)): lines of the form
 * "START-END rwxp OFFSET MAJOR:MINOR INODE PATH". Wanted are private mappings of files that are not
 * writable; a file that is gone says so behind its name and is not wanted.
 */
#include "replicate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char deleted[] = " (deleted)";

/* A hexadecimal number that ends with `last`; moves on behind it. */
static bool hex(char **text, char last, uint64_t *value)
{
	char *end;

	if (**text == ' ' || **text == '-' || **text == '+')
		return false;
	*value = strtoull(*text, &end, 16);
	if (end == *text || *end != last)
		return false;
	*text = end + 1;
	return true;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

/* One line without its end. */
static bool parse(char *line, struct bwrp_area *area)
{
	uint64_t start, end, major, minor;
	char *rights;

	if (!hex(&line, '-', &start) || !hex(&line, ' ', &end) || start >= end)
		return false;
	rights = line;
	if (strlen(line) < 5 || rights[0] != 'r' || rights[1] != '-' || rights[3] != 'p' ||
	    rights[4] != ' ')
		return false;
	line += 5;
	if (!hex(&line, ' ', &area->offset) || !hex(&line, ':', &major) ||
	    !hex(&line, ' ', &minor) || strtoull(line, &line, 10) == 0)
		return false;
	line += strspn(line, " ");
	if (*line != '/' || ends_with(line, deleted))
		return false;
	area->start = (uintptr_t)start;
	area->end = (uintptr_t)end;
	area->prot = rights[2] == 'x' ? PROT_READ | PROT_EXEC : PROT_READ;
	area->path = line;
	return true;
}

size_t bwrp_maps_parse(char *text, struct bwrp_area *areas, size_t room)
{
	size_t n = 0;
	char *end;

	/* A last line that is cut off has no end. */
	for (; n < room && (end = strchr(text, '\n')); text = end + 1) {
		*end = 0;
		if (parse(text, &areas[n]))
			n++;
	}
	return n;
}

bool bwrp_area_fits_huge(const struct bwrp_area *area)
{
	uintptr_t first = (area->start + BWRP_HUGE - 1) & ~(BWRP_HUGE - 1);

	return first >= area->start && area->end >= BWRP_HUGE && first <= area->end - BWRP_HUGE;
}
