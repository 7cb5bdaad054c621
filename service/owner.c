/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Claims of interfaces; see owner.h. */
#include "owner.h"

#include <errno.h>
#include <stdio.h>

#include "audit.h"
#include "claim.h"

#define BS_OWNER_ROOT 0 /* in the names: services of several users find one another */

int bs_owner_claim(int index, int *claim)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "beowired/%d", index);
	fd = bw_claim_sole(name, BS_OWNER_ROOT);
	*claim = fd < 0 ? -1 : fd;
	if (fd == -EADDRINUSE)
		return -EBUSY;
	if (fd != -EACCES)
		return fd < 0 ? fd : 0;
	bs_audit(BS_WARNING,
		 "other users hold all names that claim interface %d: a second beowired would not "
		 "find this one",
		 index);
	return 0;
}

void bs_owner_answer(int claim)
{
	bw_claim_drain(claim);
}
