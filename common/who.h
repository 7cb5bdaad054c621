/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who may attach to whom among the processes of a node: those of one user, and nobody else. Both
 * sides ask, of whoever calls and of whoever answers under a name, and believe the kernel alone.
 * Root is no exception: it has other ways to a user's process, and must not be led to hand memory
 * or sockets to whoever took a name.
 */
#ifndef BW_WHO_H
#define BW_WHO_H

#include <sys/socket.h>

/* The process at the other end of a connected unix socket. 0 if it is of our user, -EACCES if it
 * is not, or another negative errno. `who` may be NULL. */
int bw_who_may(int fd, struct ucred *who);

#endif
