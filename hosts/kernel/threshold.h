/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From which length on pinning pays on this machine. */
#ifndef BWK_THRESHOLD_H
#define BWK_THRESHOLD_H

#include <linux/types.h>

/* Bytes; longer sends are pinned, longer fetches go into pinned memory, unless the sysctl copy_max
 * or BEOWIRE_COPY_MAX says otherwise. */
extern u32 bwk_threshold;

/* Once, in the process that loads the module. */
void bwk_threshold_measure(void);

#endif
