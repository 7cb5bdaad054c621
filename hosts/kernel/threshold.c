/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From which length on pages are pinned instead of copied [B6]: measured when the module is
 * loaded, with the very functions that sends use, on memory of the process that loads it. It takes
 * a few hundred microseconds. Of each length the best of several tries counts, so that what comes
 * between does not matter, and only powers of two come out, so that the same machine finds the
 * same.
 */
#include "threshold.h"

#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched.h>

#include "buf.h"
#include "compat.h"

#define BWK_THRESHOLD_LEAST   4096 /* bytes */
#define BWK_THRESHOLD_MOST    65536
#define BWK_THRESHOLD_DEFAULT 16384 /* where nothing can be measured */
#define BWK_THRESHOLD_TRIES   5
#define BWK_THRESHOLD_TICK_NS 100 /* a clock that is coarser tells nothing */

u32 bwk_threshold = BWK_THRESHOLD_DEFAULT;

/* Nanoseconds that it takes to take `len` bytes and let them go; U64_MAX: it failed. */
static u64 bwk_threshold_try(struct bwk_account *account, unsigned long at, size_t len, bool pin)
{
	struct iov_iter from;
	struct iovec part;
	struct bwk_buf *b;
	u64 start;

	if (bwk_iter_user_source((void __user *)at, len, &part, &from))
		return U64_MAX;
	start = ktime_get_ns();
	b = pin ? bwk_buf_pin(account, &from, len, BWK_PIN_READ)
		: bwk_buf_copy(NULL, account, &from, len);
	if (IS_ERR(b))
		return U64_MAX;
	bwk_buf_free_now(b);
	return ktime_get_ns() - start;
}

static u64 bwk_threshold_best(struct bwk_account *account, unsigned long at, size_t len, bool pin)
{
	u64 best = U64_MAX;
	int i;

	for (i = 0; i < BWK_THRESHOLD_TRIES; i++)
		best = min(best, bwk_threshold_try(account, at, len, pin));
	return best;
}

/* The longest that is copied in less time than it is pinned; 0: not to be told. */
static u32 bwk_threshold_find(struct bwk_account *account, unsigned long at)
{
	u32 len = BWK_THRESHOLD_LEAST, found = BWK_THRESHOLD_LEAST;
	u64 copied, pinned;

	for (; len <= BWK_THRESHOLD_MOST; len *= 2) {
		copied = bwk_threshold_best(account, at, len, false);
		pinned = bwk_threshold_best(account, at, len, true);
		if (!copied || !pinned || copied == U64_MAX || pinned == U64_MAX)
			return 0;
		if (pinned < copied)
			break;
		found = len;
	}
	return found;
}

void bwk_threshold_measure(void)
{
	struct bwk_account *account;
	unsigned long at;
	u32 found = 0;

	if (!current->mm || ktime_get_resolution_ns() > BWK_THRESHOLD_TICK_NS)
		return;
	account = bwk_account_new(&init_net);
	if (!account)
		return;
	at = vm_mmap(NULL, 0, BWK_THRESHOLD_MOST, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (!IS_ERR_VALUE(at)) {
		if (!clear_user((void __user *)at, BWK_THRESHOLD_MOST)) /* pages of its own */
			found = bwk_threshold_find(account, at);
		vm_munmap(at, BWK_THRESHOLD_MOST);
	}
	bwk_account_put(account);
	if (found)
		bwk_threshold = found;
}
