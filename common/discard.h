/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of strangers, and how they are closed. Anybody can connect to an abstract unix
 * socket, or listen under a name that nobody has, and send descriptors (SCM_RIGHTS). To close a
 * connection with such a message unread is to close these as well, in the thread that does it: a
 * TCP socket that lingers (SO_LINGER) takes as long as its sender likes.
 *
 * A kernel with SO_PASSRIGHTS (Linux 6.16) keeps descriptors away. For others, and where they
 * belong to what is said, a thread closes such connections. It is made when there is one and ends
 * when there is none. Of those that wait there are at most BW_DISCARD_MOST: who would meet a
 * stranger has a place for the connection before.
 *
 * All is for any thread. Children of fork() have what waited, and make a thread of their own for it
 * when they next need one; what was just being closed may stay open in a child until it executes a
 * program.
 */
#ifndef BW_DISCARD_H
#define BW_DISCARD_H

#include <stdbool.h>

#define BW_DISCARD_MOST 64 /* connections */

#ifdef SO_PASSRIGHTS
#define BW_PASSRIGHTS SO_PASSRIGHTS
#else
#define BW_PASSRIGHTS 83 /* of most architectures: as SO_PEERCRED and others that are used here */
#endif

/* May descriptors come with messages to this unix socket, and to those that are accepted from it?
 * To be denied before anybody can reach it. Kernels that do not know that let them come. */
void bw_discard_rights(int fd, bool may);

/* Take a place; false: there is none, do not accept or connect now. Then one of the next two. */
bool bw_discard_reserve(void);

/* It is not needed. */
void bw_discard_return(void);

/* Close the connection, which belongs to the place now. */
void bw_discard(int fd);

/* Would there be a place? */
bool bw_discard_room(void);

/* Close a listener that strangers may have called, and that no other process is to go on with. */
void bw_discard_listener(int fd);

/* Have a thread that nobody waits for close what is ours; false if there can be none. */
bool bw_discard_alone(int fd);

/* In a process that can make no threads: whatever it takes, all is closed at once. */
void bw_discard_at_once(void);

#endif
