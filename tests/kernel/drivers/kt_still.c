/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The whole machine stands still for as many milliseconds as are written to `ms`: every processor
 * waits with its interrupts off, as one of a virtual machine does that its host does not run.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/stop_machine.h>

#define LONGEST 3000 /* ms; clocks that count with few bits are read in time */

static int stand(void *arg)
{
	const unsigned int *ms = arg;

	mdelay(*ms);
	return 0;
}

static int set(const char *text, const struct kernel_param *param)
{
	unsigned int ms;
	int error = kstrtouint(text, 0, &ms);

	if (error)
		return error;
	return ms > LONGEST ? -ERANGE : stop_machine(stand, &ms, cpu_online_mask);
}

static const struct kernel_param_ops ops = {.set = set};

module_param_cb(ms, &ops, NULL, 0200);
MODULE_PARM_DESC(ms, "it stands still now, for so many milliseconds");
MODULE_DESCRIPTION("Has all processors stand still, for tests");
MODULE_LICENSE("Dual BSD/GPL");
