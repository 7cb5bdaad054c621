/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control thread of the process: offers, the way to the node's registrar, and connections that
 * have something to be done while the program does not call. It is started for the first connection
 * that is worth an offer.
 */
#ifndef BWS_CONTROL_H
#define BWS_CONTROL_H

#include <stdatomic.h>

#include "conn.h"

/* Offer this one, or await that it is offered. No lock held. */
void bws_control_want(struct bws_conn *c);

/* Fill in both ends, as they are now. False: there is no such connection yet, or not any more. */
bool bws_control_name(struct bws_conn *c);

/* In a child of fork(): there is no such thread. */
void bws_control_forget(void);

#endif
