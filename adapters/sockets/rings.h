/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that use io_uring(7). See rings.c. */
#ifndef BWS_RINGS_H
#define BWS_RINGS_H

#include <stdbool.h>
#include <stdint.h>

/* Has this process an instance that may be for connections? It looks now and then: `now` is the
 * time in ns. By the control thread alone. */
bool bws_rings_here(uint64_t now);

#endif
