/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How modules bring protocols into the kernel host [A1]. */
#ifndef BEOWIRE_PROTOCOL_H
#define BEOWIRE_PROTOCOL_H

#include <linux/module.h>

#include "protocol.h"

#define BEOWIRE_PROTOCOLS	  16
#define BEOWIRE_PROTOCOL_DATAGRAM 1 /* what SOCK_DGRAM means if no protocol is named */

/*
 * Sockets of SOCK_DGRAM with this protocol number (1 to BEOWIRE_PROTOCOLS - 1) send and receive by
 * `protocol`: each gets an instance of its own, driven as protocol.h says, in softirq and under one
 * lock. Process context. 0, -EINVAL, -EBUSY (the number is taken).
 */
int beowire_register_protocol(const struct bw_protocol *protocol, int number, struct module *owner);

/* No new instances. Those that there are hold a reference to the owner, so that a module's exit
 * finds none. */
void beowire_unregister_protocol(const struct bw_protocol *protocol);

#endif
