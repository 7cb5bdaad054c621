/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which nodes have refused offers lately. Used by the control thread alone. */
#ifndef BWS_HOSTS_H
#define BWS_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

/* Until when this address needs no offer; 0: it may be asked. */
uint64_t bws_hosts_plain(const uint8_t *address, uint64_t now);
void bws_hosts_refused(const uint8_t *address, uint64_t now);

#endif
