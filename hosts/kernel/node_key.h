/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A node's key: set by its administrator, told by its fingerprint alone, gone with the node. */
#ifndef BWK_NODE_KEY_H
#define BWK_NODE_KEY_H

#include <linux/atomic.h>
#include <linux/spinlock.h>
#include <linux/sysctl.h>
#include <linux/types.h>

#define BWK_KEY_BYTES 32

#define BWK_REFUSAL_KEY 16

#define BWK_NEWS 8 /* addresses */

/* Of which peers the log was told something last (complaint.c). Without a lock. */
struct bwk_news {
	atomic64_t of[BWK_NEWS]; /* Ethernet addresses; 0: none */
	unsigned int next;	 /* the oldest one's place is this, modulo BWK_NEWS */
};

struct bwk_key {
	spinlock_t lock; /* of key and refusal */
	bool set;
	u32 times; /* that it was set, or forgotten */
	u8 bytes[BWK_KEY_BYTES];
	u8 refusal[BWK_REFUSAL_KEY];   /* made of it, for refusals that no port says */
	struct bwk_news differs, open; /* of who has another key, and of who encrypts otherwise */
};

void bwk_key_init(struct bwk_key *key);
/* Copies it, to be wiped by who has it. False: there is none. *times: another number for each that
 * the node has had. Any context. */
bool bwk_key_get(struct bwk_key *key, u8 bytes[BWK_KEY_BYTES], u32 *times);
/* The same of the key of refusals. */
bool bwk_key_get_refusal(struct bwk_key *key, u8 bytes[BWK_REFUSAL_KEY]);
bool bwk_key_is_set(const struct bwk_key *key);
/* Forgets it. */
void bwk_key_wipe(struct bwk_key *key);

/* The sysctls; `data` of their tables is the key of a node, and whether it encrypts. */
proc_handler bwk_key_handler, bwk_encrypt_handler;

#endif
