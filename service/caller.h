/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who calls, as the kernel tells it. */
#ifndef BS_CALLER_H
#define BS_CALLER_H

#include <stdbool.h>
#include <sys/socket.h>

#include "policy.h"

/* Who is charged for what this process gets: its user, or whose number that is (subuid.h). */
uint32_t bs_caller_account(const struct bs_policy *p, const struct ucred *who);

/* May the process at the other end of this connection have endpoints: by its user, by one of its
 * groups, or by who is charged? */
bool bs_caller_allowed(const struct bs_policy *p, int fd, const struct ucred *who);

#endif
