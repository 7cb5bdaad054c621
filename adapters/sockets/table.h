/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the library knows of each descriptor number: nothing, a TCP connection of the program's, an
 * epoll instance with connections in it, or that it is the library's own. Read without a lock.
 */
#ifndef BWS_TABLE_H
#define BWS_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BWS_TABLE_FDS (1u << 20) /* higher numbers stay unknown: TCP carries their connections */

struct bws_conn;
struct bws_epoll;

enum bws_table_kind { BWS_NOTHING, BWS_CONN, BWS_EPOLL, BWS_OWN };

/* Memory for all numbers is reserved, and taken when it is used. False without. */
bool bws_table_init(void);

/* A connection stays what it is until bws_conn_put(). NULL: none of the program's. */
struct bws_conn *bws_table_conn(int fd);
struct bws_epoll *bws_table_epoll(int fd);
bool bws_table_own(int fd);

void bws_table_set(int fd, enum bws_table_kind kind, void *what);

/* The first number from `fd` on that is not unknown; -1: none. */
int bws_table_next(int fd);

#endif
