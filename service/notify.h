/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the service manager that started the service is told: sd_notify(3)'s protocol, datagrams to
 * the socket whose path is in NOTIFY_SOCKET. */
#ifndef BS_NOTIFY_H
#define BS_NOTIFY_H

/* Tell it a state; nobody may be there to hear. */
void bs_notify(const char *state);

#endif
