/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that use io_uring(7). See rings.c. */
#ifndef BWS_RINGS_H
#define BWS_RINGS_H

#include <stdbool.h>
#include <stdint.h>

/* When the next look is due: looks take a bounded share of the time. Both by the control thread
 * alone, in ns. */
uint64_t bws_rings_due(void);
/* Has this process an instance that may be for connections? */
bool bws_rings_here(uint64_t now);

#endif
