/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening an endpoint, for callers of this project. */
#ifndef BW_OPEN_H
#define BW_OPEN_H

#include "beowire.h"

/* bw_ep_open() by one interface, whatever BEOWIRE_INTERFACE and BEOWIRE_INTERFACES say; NULL: as
 * they say. */
int bw_ep_open_by(struct bw_ep **ep, const struct bw_ep_attr *attr, const char *interface,
		  const char **why);

#endif
