/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Claims: names that one process of a user can hold at a time in a network namespace, and that
 * vanish with it however it ends. They are abstract unix sockets, so nothing is left in any file
 * system. Anybody can bind any name, so each claim listens: whoever finds a name taken asks the
 * kernel who holds it, and steps around one that another user holds.
 */
#ifndef BW_CLAIM_H
#define BW_CLAIM_H

#include <stdint.h>
#include <sys/types.h>

/* Claim a name (at most 90 bytes, the user's number is added). A descriptor that listens, or
 * -EADDRINUSE if another process of this user holds it, -EACCES if strangers alone do, so that
 * there is nobody to leave it to, or another negative errno. */
int bw_claim_name(const char *name);

/* The same for what may exist once on a node: with the number of `owner` in the name, in the hands
 * of that user's processes or of ours, whatever forms of it strangers hold or held. Who is silent
 * is asked for a tenth of a second before it is taken for a stranger. */
int bw_claim_sole(const char *name, uid_t owner);

/* A connection to who holds the name and listens, of this user; -ECONNREFUSED if there is none, or
 * another negative errno. */
int bw_claim_dial(const char *name);

/* Turn away who has asked. Claims that are held for long are to be emptied now and then. They are
 * closed by bw_discard_listener(), and no descriptors come by them, nor by what bw_claim_dial()
 * gives, unless bw_discard_rights() lets them. */
void bw_claim_drain(int fd);

/* Names of this process that strangers were found to hold, ever. */
uint64_t bw_claim_strangers(void);

#endif
