/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose an engine number is. On a node a number belongs to who has bound its name (an abstract unix
 * socket); a client proves it by handing over that socket.
 */
#ifndef BS_NUMBER_H
#define BS_NUMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether `claim` is bound to the name of this number, as an inode: 0, or a negative errno. *here:
 * in our own network namespace. */
int bs_number_proved(int claim, uint16_t engine, bool *here, ino_t *inode);

/* Bind the name in our network namespace, for a client from another one. A descriptor, or a
 * negative errno: -EADDRINUSE, if somebody has it. */
int bs_number_hold(uint16_t engine);

#endif
