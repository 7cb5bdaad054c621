/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A server's loop: it speaks one protocol for all sockets of one number. One in a process, one
 * thread.
 */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"

/* Claim the number. `spin`: never sleep. 0, or a negative errno as of rings_open(). */
int serve_open(uint32_t number, const struct bw_protocol *protocol, bool spin);
/* Serve until a signal ends the process, and the kernel tidies up. A negative errno: the kernel
 * module does not go along. */
int serve_loop(void);

#endif
