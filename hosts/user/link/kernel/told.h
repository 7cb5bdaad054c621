/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel module says of this node, in /proc/net/beowire/node. */
#ifndef BW_KERNEL_TOLD_H
#define BW_KERNEL_TOLD_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "key.h"

struct bw_kernel_told {
	uint64_t node;
	uint32_t cluster;
	int family;
	uint32_t ifindex, mtu; /* of the interface that is meant */
	char name[IF_NAMESIZE];
	uint8_t mac[6];
	bool any; /* an interface is attached */
};

/* Ask, of the interface with number `meant`, or with 0 of the first. False: it is not loaded. */
bool bw_kernel_ask(struct bw_kernel_told *t, uint32_t meant);
/* The fingerprint of the node's key, or `none`: also if it has no such file. */
void bw_kernel_key(char text[BW_KEY_FINGERPRINT]);
/* Does the module encrypt on this node? One that cannot has no such file. */
bool bw_kernel_encrypts(void);
/* What to say, and to do, when it is not loaded; static text. */
const char *bw_kernel_absent(void);

#endif
