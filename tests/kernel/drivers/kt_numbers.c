/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The next number that is given to a peer, by the thread `thread`, is the last one that an int
 * holds, as after so many others. It stands at the kernel's function that numbers are given by,
 * and knows the module's calls of it by their bounds.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/xarray.h>

static int thread;
module_param(thread, int, 0644);
MODULE_PARM_DESC(thread, "number of the thread; 0 once it has been given that number");

#ifdef CONFIG_KPROBES

/* Arguments of __xa_alloc_cyclic(). */
enum { LIMIT = 3, NEXT };

static int before(struct kprobe *probe, struct pt_regs *regs)
{
	const unsigned long given = regs_get_kernel_argument(regs, LIMIT);
	const struct xa_limit limit = {.max = (u32)given, .min = (u32)(given >> 32)};
	u32 *next = (u32 *)regs_get_kernel_argument(regs, NEXT);

	if (READ_ONCE(thread) != current->pid || limit.min != 1 || limit.max < INT_MAX)
		return 0;
	*next = INT_MAX;
	WRITE_ONCE(thread, 0);
	return 0;
}

static struct kprobe probe = {.symbol_name = "__xa_alloc_cyclic", .pre_handler = before};

static int __init begin(void)
{
	return register_kprobe(&probe);
}

static void __exit finish(void)
{
	unregister_kprobe(&probe);
}

#else

static int __init begin(void)
{
	return -EOPNOTSUPP;
}

static void __exit finish(void)
{
}

#endif

module_init(begin);
module_exit(finish);
MODULE_DESCRIPTION("Numbers of peers that come late, for tests");
MODULE_LICENSE("Dual BSD/GPL");
