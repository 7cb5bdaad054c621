/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which protocols there are. */
#ifndef BWK_REGISTRY_H
#define BWK_REGISTRY_H

#include "beowire_protocol.h"

/* The protocol of this number with a reference to its module, which goes into *owner; or NULL. */
const struct bw_protocol *bwk_registry_get(int number, struct module **owner);

#endif
