/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All that differs between kernel versions, from 6.1 on. */
#ifndef BWK_COMPAT_H
#define BWK_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/net.h>
#include <linux/sysctl.h>
#include <linux/version.h>
#include <net/net_namespace.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
static inline void bwk_hrtimer_setup(struct hrtimer *timer,
				     enum hrtimer_restart (*run)(struct hrtimer *), clockid_t clock,
				     enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = run;
}
#else
#define bwk_hrtimer_setup hrtimer_setup
#endif

/* Tables of sysctls end with an empty entry before 6.11. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define bwk_register_net_sysctl(net, path, table, n) register_net_sysctl(net, path, table)
#else
#define bwk_register_net_sysctl(net, path, table, n) register_net_sysctl_sz(net, path, table, n)
#endif

/* Addresses handed to bind() and connect(). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
typedef struct sockaddr bwk_sockaddr;
#else
typedef struct sockaddr_unsized bwk_sockaddr;
#endif

/* What accept() is told. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define BWK_ACCEPT_PARAMETERS int flags, bool kern
#define BWK_ACCEPT_FLAGS      flags
#else
#define BWK_ACCEPT_PARAMETERS struct proto_accept_arg *arg
#define BWK_ACCEPT_FLAGS      ((unsigned int)arg->flags)
#endif

#endif
