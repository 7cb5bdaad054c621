/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the thread `thread` hashes one or two words by: how often, and by which key. It stands at
 * the kernel's functions for that, which the module finds peers by.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/siphash.h>

static int thread;
module_param(thread, int, 0644);
MODULE_PARM_DESC(thread, "number of the thread");

static unsigned int one, two;
module_param(one, uint, 0444);
MODULE_PARM_DESC(one, "how often it has hashed one word (read only)");
module_param(two, uint, 0444);
MODULE_PARM_DESC(two, "the same of two words (read only)");

static unsigned long long one_by, two_by;
module_param(one_by, ullong, 0444);
MODULE_PARM_DESC(one_by, "half of the key by which it hashed one word last (read only)");
module_param(two_by, ullong, 0444);
MODULE_PARM_DESC(two_by, "the same of two words (read only)");

#ifdef CONFIG_KPROBES

/* Behind the words. */
static u64 key_of(struct pt_regs *regs, unsigned int words)
{
	const siphash_key_t *key = (const void *)regs_get_kernel_argument(regs, words);

	return key->key[0];
}

static int before_one(struct kprobe *probe, struct pt_regs *regs)
{
	if (READ_ONCE(thread) == current->pid) {
		one++;
		one_by = key_of(regs, 1);
	}
	return 0;
}

static int before_two(struct kprobe *probe, struct pt_regs *regs)
{
	if (READ_ONCE(thread) == current->pid) {
		two++;
		two_by = key_of(regs, 2);
	}
	return 0;
}

static struct kprobe of_one = {.symbol_name = "siphash_1u64", .pre_handler = before_one};
static struct kprobe of_two = {.symbol_name = "siphash_2u64", .pre_handler = before_two};
static struct kprobe *probes[] = {&of_one, &of_two};

static int __init begin(void)
{
	return register_kprobes(probes, ARRAY_SIZE(probes));
}

static void __exit finish(void)
{
	unregister_kprobes(probes, ARRAY_SIZE(probes));
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
MODULE_DESCRIPTION("What is hashed and by which key, for tests");
MODULE_LICENSE("Dual BSD/GPL");
