/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A table that grows at its end and stays where it is. Its addresses are reserved; what is in use
 * can be written. Where the kernel overcommits no memory (vm.overcommit_memory 2), it counts all
 * that can be written as used, and again in each child of fork(). */
#ifndef BWS_GROWN_H
#define BWS_GROWN_H

#include <stdbool.h>
#include <stddef.h>

struct bws_grown {
	char *base;    /* NULL: there is none yet */
	size_t usable; /* bytes that can be written */
};

/* Addresses of so many bytes, of which none can be written. False: there are none. */
bool bws_grown_reserve(struct bws_grown *g, size_t bytes);
/* At least the first `bytes`, which are reserved, can be written, and were 0 before they could.
 * False: there is no memory. Lock held. */
bool bws_grown_to(struct bws_grown *g, size_t bytes);

#endif
