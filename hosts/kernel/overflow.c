/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See overflow.h. */
#include "overflow.h"

#include <linux/mm.h>
#include <linux/moduleparam.h>

static atomic_long_t bwk_overflow;
static unsigned long bwk_overflow_max;

module_param_named(overflow_max, bwk_overflow_max, ulong, 0644);
MODULE_PARM_DESC(overflow_max, "bytes that may wait in all sockets together beyond SO_RCVBUF of "
			       "each, and in part; 0: an eighth of the memory");

bool bwk_overflow_admits(const struct bwk_user *user, bool stranger)
{
	unsigned long most = READ_ONCE(bwk_overflow_max) ?: (totalram_pages() << PAGE_SHIFT) / 8;
	unsigned long used = atomic_long_read(&bwk_overflow);
	unsigned long waiting = atomic_long_read(&user->waiting);

	return used < most && waiting < (stranger ? (most - used) / 2 : most - used);
}

void bwk_overflow_add(struct bwk_user *user, u32 bytes)
{
	atomic_long_add(bytes, &bwk_overflow);
	atomic_long_add(bytes, &user->waiting);
}

void bwk_overflow_sub(struct bwk_user *user, u32 bytes)
{
	atomic_long_sub(bytes, &bwk_overflow);
	atomic_long_sub(bytes, &user->waiting);
}
