/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that use io_uring(7). See rings.c. */
#ifndef BWS_RINGS_H
#define BWS_RINGS_H

#include <stdbool.h>
#include <stdint.h>

/* Has this process an instance that may be for connections? What the last look has found counts for
 * a while, as looks take a bounded share of the time; then, at bws_rings_due(), it is to be asked
 * again. Both in ns, by the control thread alone. */
bool bws_rings_here(uint64_t now);
uint64_t bws_rings_due(void);

#endif
