/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of users that are somebody's besides his own, by /etc/subuid (subuid(5)): in a user
 * namespace he may be any of them, and stays who he is.
 */
#ifndef BS_SUBUID_H
#define BS_SUBUID_H

#include <stdbool.h>
#include <stdint.h>

#define BS_SUBUID_FILE "/etc/subuid"
#define BS_SUBUIDS     8192 /* ranges that are known */

struct bs_subuid {
	uint32_t first, last;
	uint32_t owner;
};

struct bs_subuids {
	struct bs_subuid range[BS_SUBUIDS];
	uint32_t n;
	bool more; /* the file has more than is known */
};

/* Read the file; none is one without ranges. Lines that newuidmap(1) would not take give nothing,
 * nor do those of root, who may be anybody. Where the owner's name is not known, the first number
 * of a range stands for him. */
void bs_subuids_read(struct bs_subuids *all, const char *path);

/* Whose number this is: its own, if it is in no range. */
uint32_t bs_subuids_owner(const struct bs_subuids *all, uint32_t uid);

#endif
