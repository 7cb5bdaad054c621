/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A new policy. It is read by a process of its own: names of users and groups are looked up by
 * whatever plug-ins the node's nsswitch.conf names, which may use any system call, and the service
 * has left itself few. That process has no capability.
 */
#ifndef BS_RELOAD_H
#define BS_RELOAD_H

#include "clients.h"

/* Start the process that reads this file, before anybody has read a key, so that it inherits none. 0
 * or a negative errno. */
int bs_reload_start(struct bs_service *s, const char *path);

/* Have the file read. */
void bs_reload_ask(struct bs_service *s);
/* What was read has come. It holds for who comes from now on; interfaces and the EtherType stay. */
void bs_reload_take(struct bs_service *s);

#endif
