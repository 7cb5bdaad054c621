/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All that differs between kernel versions, from 6.1 on. */
#ifndef BWK_COMPAT_H
#define BWK_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/net.h>
#include <linux/skbuff.h>
#include <linux/sysctl.h>
#include <linux/uio.h>
#include <linux/version.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <linux/hex.h>
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#include <asm/unaligned.h>
#else
#include <linux/unaligned.h>
#endif

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

/* What handlers of sysctls are told of. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define BWK_CTL_TABLE struct ctl_table
#else
#define BWK_CTL_TABLE const struct ctl_table
#endif

/* States of the crypto library. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
typedef u32 bwk_chacha_state[16];
#define BWK_CHACHA(state) (state)
#else
typedef struct chacha_state bwk_chacha_state;
#define BWK_CHACHA(state) (&(state))
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define bwk_sha256_state struct sha256_state
#else
#define bwk_sha256_state struct sha256_ctx
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

/* A local variable that is filled before it is read: kernels that are built to clear all of them
 * need not clear this one. */
#if __has_attribute(uninitialized)
#define BWK_FILLED __attribute__((uninitialized))
#else
#define BWK_FILLED
#endif

/* A frame lets go of what lies in its pages. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define BWK_LENT_SET(lent, f) ((lent)->callback = (f))
#else
#define BWK_LENT_SET(lent, f)                                                                      \
	do {                                                                                       \
		static const struct ubuf_info_ops ops = {.complete = (f)};                         \
		(lent)->ops = &ops;                                                                \
	} while (0)
#endif

/* Can all of a frame be read by the processor? Device memory cannot. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
static inline bool bwk_frags_readable(const struct sk_buff *skb)
{
	return true;
}
#else
#define bwk_frags_readable skb_frags_readable
#endif

/* The control group that a socket's memory is charged to; NULL: none. */
static inline struct mem_cgroup *bwk_sk_memcg(const struct sock *sk)
{
#ifndef CONFIG_MEMCG
	return NULL;
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
	return sk->sk_memcg;
#else
	return mem_cgroup_from_sk(sk);
#endif
}

/* The first piece of the user's memory that an iterator stands for. */
static inline struct iovec bwk_iter_first(const struct iov_iter *iter)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
	return iov_iter_iovec(iter);
#else
	return (struct iovec){.iov_base = iter_iov_addr(iter), .iov_len = iter_iov_len(iter)};
#endif
}

/* An iterator over one piece of the user's memory, to be written to; `part` lives as long as it. */
static inline int bwk_iter_user(void __user *at, size_t len, struct iovec *part,
				struct iov_iter *iter)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
	return import_single_range(ITER_DEST, at, len, part, iter);
#else
	return import_ubuf(ITER_DEST, at, len, iter);
#endif
}

/* The same memory, to be read. */
static inline int bwk_iter_user_source(void __user *at, size_t len, struct iovec *part,
				       struct iov_iter *iter)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
	return import_single_range(ITER_SOURCE, at, len, part, iter);
#else
	return import_ubuf(ITER_SOURCE, at, len, iter);
#endif
}

#endif
