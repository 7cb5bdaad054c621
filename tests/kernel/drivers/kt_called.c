/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How often two functions were called since it was loaded, whoever called them; by their names. */
#include <linux/kprobes.h>
#include <linux/module.h>

static char *one = "";
module_param(one, charp, 0444);
MODULE_PARM_DESC(one, "name of a function");

static char *two = "";
module_param(two, charp, 0444);
MODULE_PARM_DESC(two, "name of another one");

static atomic_t calls[2];

static int tell(char *to, const struct kernel_param *param)
{
	return sysfs_emit(to, "%d %d\n", atomic_read(&calls[0]), atomic_read(&calls[1]));
}

static const struct kernel_param_ops ops = {.get = tell};

module_param_cb(calls, &ops, NULL, 0444);
MODULE_PARM_DESC(calls, "how often each was called (read only)");

#ifdef CONFIG_KPROBES

static int before(struct kprobe *probe, struct pt_regs *regs);

static struct kprobe probe[] = {{.pre_handler = before}, {.pre_handler = before}};
static struct kprobe *probes[] = {&probe[0], &probe[1]};

static int before(struct kprobe *at, struct pt_regs *regs)
{
	atomic_inc(&calls[at - probe]);
	return 0;
}

static int __init begin(void)
{
	probe[0].symbol_name = one;
	probe[1].symbol_name = two;
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
MODULE_DESCRIPTION("How often functions are called, for tests");
MODULE_LICENSE("Dual BSD/GPL");
