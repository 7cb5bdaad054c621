/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the service may still do once everything is set up. */
#ifndef BS_CONFINE_H
#define BS_CONFINE_H

/* Of the calling thread and those it makes later: give up all capabilities but CAP_NET_RAW,
 * CAP_NET_ADMIN and CAP_BPF, and the right to gain any. 0 or a negative errno. */
int bs_confine_rights(void);
/* The same without any. */
int bs_confine_no_rights(void);

/* Of the whole process: only the system calls that are needed; others fail with EPERM. 0 or a
 * negative errno. */
int bs_confine_calls(void);

#endif
