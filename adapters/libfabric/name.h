/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of endpoints: programs that know each other only by node and service (a host and a port
 * number) put these where an address belongs. A name is turned into an address by asking the UDP
 * port of that number at that host, where the endpoint that was opened with the name answers.
 */
#ifndef BWF_NAME_H
#define BWF_NAME_H

#include <stdbool.h>

#include "beowire.h"

struct bwf_names; /* the answering service of one endpoint */

/* The name (node, service) as an address; either may be NULL. -FI_ENODATA: no such node or service.
 */
int bwf_name_make(const char *node, const char *service, bool numeric, struct bw_addr *addr);
bool bwf_name_is(const struct bw_addr *addr);
/* Does this name say a port, so that an endpoint opened with it must answer there? */
bool bwf_name_has_port(const struct bw_addr *addr);
/* Replace a name by the address of the endpoint that answers to it. -FI_EHOSTUNREACH: none does. */
int bwf_name_resolve(struct bw_addr *addr);

/* Answer to `name` with the address of `bw`, which stays open, from now on. Errors of socket(),
 * bind() and pthread_create(). */
int bwf_names_open(struct bwf_names **names, const struct bw_addr *name, struct bw_ep *bw);
void bwf_names_close(struct bwf_names *names); /* NULL is fine */
/* In a child of fork(), whose parent goes on answering; likewise. */
void bwf_names_leave(struct bwf_names *names);

#endif
