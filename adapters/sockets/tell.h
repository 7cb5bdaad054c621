/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What people are told: a line for each connection, and counters of the process. */
#ifndef BWS_TELL_H
#define BWS_TELL_H

#include "conn.h"

/* This one has come to its end here. Lock held. */
void bws_tell(struct bws_conn *c);

/* Why it is where it is: text. Lock held. */
const char *bws_tell_why(const struct bws_conn *c);
/* The process ends, or becomes another program: all others, and the file. */
void bws_tell_all(void);
/* In a child of fork(): what was counted is the parent's. */
void bws_tell_forget(void);

#endif
