/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which beowired serves an interface: one at a time, told by a claim (claim.h) in the interface's
 * network namespace, which is free again however its holder ends.
 */
#ifndef BS_OWNER_H
#define BS_OWNER_H

/* Claim the interface of this index. 0 with a descriptor, which holds it, or -EBUSY: a beowired of
 * root's or of our user's has it. Names that strangers hold are stepped around; if they hold all,
 * nothing can be told, and *claim is -1. */
int bs_owner_claim(int index, int *claim);
/* Somebody has asked who holds this claim: the kernel has told, and there is room for the next. */
void bs_owner_answer(int claim);

#endif
