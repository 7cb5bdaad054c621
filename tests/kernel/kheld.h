/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the module says that it holds, and a relay between a and b that keeps a part of what makes
 * it hold more. */
#ifndef KHELD_H
#define KHELD_H

#include "kframe.h"
#include "ktest.h"

#define KIB	   1024u
#define MIB	   (1024 * KIB)
#define KT_ARRIVED (4 * MIB) /* of a long message */

/* Bytes of all users. */
uint64_t kt_held(void);
/* What the list of sockets says of one in this namespace: bytes of sends under way, or of unread
 * messages that are charged. */
uint64_t kt_listed(const char *netns, int fd, bool sends);
/* The latter of a socket of b's. */
uint64_t kt_charged(int fd);
/* Of the port of a socket of b's: what its engine has grown by, and of messages of which a part has
 * come. */
void kt_port_of(int fd, uint64_t *memory, uint64_t *arriving);
/* The latter. */
uint64_t kt_arriving(int fd);

/* What the relay does to frames of data. */
enum {
	HURT_NOTHING,
	HURT_REST,   /* of a message only the first frame arrives */
	HURT_LONGER, /* a message of one frame says that it has 63 bytes more, which never come */
	HURT_PULLED, /* nothing of a long message arrives */
	HURT_BEHIND  /* but what begins within its first 4 MiB */
};

/* For kt_relay_begin(). */
void kt_hurt(struct kt_frame *f, long wanted);
/* b's program speaks to the sender of its next message, who is no stranger then. */
void kt_answer(const struct kt_pair *p);

#endif
