/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A node's key: set by its administrator, told by its fingerprint alone, gone with the node. */
#ifndef BWK_NODE_KEY_H
#define BWK_NODE_KEY_H

#include <linux/spinlock.h>
#include <linux/sysctl.h>
#include <linux/types.h>

#define BWK_KEY_BYTES 32

struct bwk_key {
	spinlock_t lock;
	bool set;
	u8 bytes[BWK_KEY_BYTES];
};

void bwk_key_init(struct bwk_key *key);
/* Copies it, to be wiped by who has it. False: there is none. Any context. */
bool bwk_key_get(struct bwk_key *key, u8 bytes[BWK_KEY_BYTES]);
/* Forgets it. */
void bwk_key_wipe(struct bwk_key *key);

/* The sysctl; `data` of its table is the key of a node. */
proc_handler bwk_key_handler;

#endif
