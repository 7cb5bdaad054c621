/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections in epoll instances of the program. See epoll.c. */
#ifndef BWS_WATCH_H
#define BWS_WATCH_H

#include "conn.h"

struct bws_epoll;

void bws_watch_wake(struct bws_conn *c, uint32_t what);
/* A descriptor of a connection is closed by the program, which takes it out of all instances; a
 * descriptor of an epoll instance is. Lock held. */
void bws_watch_closed(struct bws_conn *c, int fd);
void bws_epoll_closed(struct bws_epoll *e, int fd);
/* The program copies a descriptor, perhaps one of an epoll instance. Lock held. */
void bws_epoll_copied(int from, int to);
/* Somebody waits for this instance by another way than epoll_wait(). */
void bws_epoll_nested(struct bws_epoll *e);

#endif
