/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections of strangers are closed at once, each in a place of its own. */
#include "descriptors.h"
#include "discard.h"

static bool place;

bool bw_discard_reserve(void)
{
	if (place)
		fuzz_bad("a place is kept");
	place = !fuzz_fails(EMFILE);
	return place;
}

void bw_discard_return(void)
{
	if (!place)
		fuzz_bad("a place is given back that was not taken");
	place = false;
}

void bw_discard(int fd)
{
	bw_discard_return();
	close(fd);
}

void bw_discard_listener(int fd)
{
	close(fd);
}
