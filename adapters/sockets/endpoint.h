/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Opening the endpoint, by the control thread. What fails today may succeed later, so it is tried
 * again: after pauses that grow, and only while some connection could use it.
 */
#ifndef BWS_ENDPOINT_H
#define BWS_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

/* Open it, if there is none and a try is due; may take milliseconds, or seconds where the service
 * does not answer. False: there is none now. No lock held. */
bool bws_endpoint_open(void);
/* When the next try is due; UINT64_MAX: never. */
uint64_t bws_endpoint_due(void);

/* For fork(): none opens meanwhile. */
void bws_endpoint_hold(void);
void bws_endpoint_release(void);
/* In a child of fork(): there is none, and nothing was tried. */
void bws_endpoint_forget(void);

#endif
