/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptors of connections: from the first to the last. No lock held in these. */
#ifndef BWS_FDS_H
#define BWS_FDS_H

#include <stdbool.h>

/* This descriptor is something new: what was known of it is not true any more. */
void bws_forget(int fd);
/* A socket that was just connected, or accepted. */
void bws_follow(int fd, bool connector);
/* If this is a TCP socket that may be connected later, it is followed from now on. */
void bws_expect(int fd);
/* The kernel and other libraries alone use it from now on; it is by TCP. */
void bws_unfollow(int fd);
int bws_close(int fd);
/* Does the entry `name` of a directory in /proc, that of a descriptor, lead to this? Any thread. */
bool bws_leads_to(int dir, const char *name, const char *what);
/* `to` is a copy of `from`. */
void bws_copied(int from, int to);
/* The kernel is about to close it, to put another one there. */
void bws_replaced(int fd);
struct bws_conn;
/* Is this descriptor still the connection's? Any thread. */
bool bws_fds_is(int fd, const struct bws_conn *c);
int bws_shutdown(struct bws_conn *c, int fd, int how);

#endif
