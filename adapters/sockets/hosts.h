/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which nodes have refused offers lately. Used by the control thread alone. */
#ifndef BWS_HOSTS_H
#define BWS_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

/* Is this address one that needs no offer now? */
bool bws_hosts_plain(const uint8_t *address, uint64_t now);
void bws_hosts_refused(const uint8_t *address, uint64_t now);

#endif
