/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The device /dev/beowire, before the module has it: the module's start fails. Who opens it waits
 * until `go_on` is 1; until then no other device is registered, so that the start stands still
 * before it fails.
 */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched/signal.h>

static bool go_on;
module_param(go_on, bool, 0644);
MODULE_PARM_DESC(go_on, "who opens the device waits no longer");

static bool opening;
module_param(opening, bool, 0444);
MODULE_PARM_DESC(opening, "somebody opens it (read only)");

/* The lock of all such devices is held. */
static int open(struct inode *inode, struct file *file)
{
	WRITE_ONCE(opening, true);
	while (!READ_ONCE(go_on) && !fatal_signal_pending(current))
		msleep(1);
	WRITE_ONCE(opening, false);
	return -EBUSY;
}

static const struct file_operations ops = {
	.owner = THIS_MODULE,
	.open = open,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "beowire",
	.fops = &ops,
	.mode = 0600,
};

module_misc_device(device);
MODULE_DESCRIPTION("Has the device of the module, for tests");
MODULE_LICENSE("Dual BSD/GPL");
