/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The socket that clients call. */
#ifndef BS_LISTENER_H
#define BS_LISTENER_H

#include "policy.h"

/* Listen at this path, in a directory that belongs to us or to root and that nobody else may write
 * to. A socket that nobody listens at any more is replaced; anything else there is not touched. A
 * descriptor, or a negative errno with the reason. */
int bs_listener_open(const char *path, char why[BS_POLICY_WHY]);
void bs_listener_close(int fd, const char *path);

#endif
