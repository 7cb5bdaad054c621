/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fork(), exec and the end of the process. */
#ifndef BWS_LIFE_H
#define BWS_LIFE_H

#include <stdbool.h>

struct tcp_info;

/* What the kernel counts of a connection, by <linux/tcp.h>. False: it counts no bytes. */
bool bws_life_counters(int fd, struct tcp_info *info);

/* Look after fork() from now on. To be called when the library is loaded, after libbeowire's own
 * constructor: our handlers run before its own. */
void bws_life_begin(void);

/* In a child of fork(): threads that slept are the parent's. */
void bws_sleepers_forget(void);

#endif
