/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Accounts; see account.h. What the control group is charged goes through sk_forward_alloc, as of
 * any protocol that has memory_allocated; the account's lock guards it, as frames and calls come at
 * the same time. */
#include "account.h"

#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>

#include "compat.h"
#include "node.h"

static atomic_long_t bwk_account_pages;
static DEFINE_PER_CPU(int, bwk_account_forward);
static int bwk_account_least; /* no socket has a part that is not counted */

/* As net.ipv4.tcp_mem; but what is charged here is told of no pressure, and no socket has a part
 * that is not counted, so that the kernel refuses what goes beyond the first of the three. */
static long bwk_account_limits[3];

static void bwk_account_limit(long pages)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bwk_account_limits); i++)
		WRITE_ONCE(bwk_account_limits[i], pages);
}

static int bwk_account_limit_set(const char *text, const struct kernel_param *param)
{
	long pages;
	int error = kstrtol(text, 0, &pages);

	if (!error && pages <= 0)
		error = -EINVAL;
	if (!error)
		bwk_account_limit(pages);
	return error;
}

static int bwk_account_limit_get(char *text, const struct kernel_param *param)
{
	return scnprintf(text, PAGE_SIZE, "%ld\n", READ_ONCE(bwk_account_limits[0]));
}

static const struct kernel_param_ops bwk_account_limit_ops = {
	.set = bwk_account_limit_set,
	.get = bwk_account_limit_get,
};
module_param_cb(memory_pages, &bwk_account_limit_ops, NULL, 0644);
MODULE_PARM_DESC(memory_pages, "pages that all sockets together may be charged for; default: half "
			       "of the memory");

static struct proto bwk_account_proto = {
	.name = "BEOWIRE-MEMORY",
	.obj_size = sizeof(struct bwk_account),
	.memory_allocated = &bwk_account_pages,
	.per_cpu_fw_alloc = &bwk_account_forward,
	.sysctl_mem = bwk_account_limits,
	.sysctl_wmem = &bwk_account_least,
	.sysctl_rmem = &bwk_account_least,
};

static void bwk_account_destruct(struct sock *sk)
{
	struct bwk_account *account = container_of(sk, struct bwk_account, sk);

	bwk_account_lower(account, (u32)atomic_read(&account->spare));
	WARN_ON_ONCE(sk->sk_forward_alloc);
	bwk_user_put(account->user);
}

struct bwk_account *bwk_account_new(const struct net *net)
{
	struct bwk_user *user = bwk_user_of_task(net);
	struct bwk_account *account;
	struct sock *sk;

	if (!user)
		return NULL;
	/* Of the kernel, and of a namespace that stays: it keeps none from ending. */
	sk = sk_alloc(&init_net, bwk_family, GFP_KERNEL_ACCOUNT, &bwk_account_proto, 1);
	if (!sk) {
		bwk_user_put(user);
		return NULL;
	}
	sock_init_data(NULL, sk);
	sk->sk_destruct = bwk_account_destruct;
	account = container_of(sk, struct bwk_account, sk);
	spin_lock_init(&account->lock);
	account->user = user;
	return account;
}

bool bwk_account_raise(struct bwk_account *account, u32 bytes)
{
	bool taken;

	if (!bwk_user_charge(account->user, bytes))
		return false;
	spin_lock_bh(&account->lock);
	taken = sk_wmem_schedule(&account->sk, (int)bytes);
	if (taken)
		sk_mem_charge(&account->sk, (int)bytes);
	spin_unlock_bh(&account->lock);
	if (taken)
		return true;
	bwk_user_uncharge(account->user, bytes);
	bwk_user_limited();
	return false;
}

void bwk_account_lower(struct bwk_account *account, u32 bytes)
{
	spin_lock_bh(&account->lock);
	sk_mem_uncharge(&account->sk, (int)bytes);
	spin_unlock_bh(&account->lock);
	bwk_user_uncharge(account->user, bytes);
}

struct mem_cgroup *bwk_account_enter(const struct bwk_account *account)
{
	return set_active_memcg(bwk_sk_memcg(&account->sk));
}

void bwk_account_left(struct mem_cgroup *before)
{
	set_active_memcg(before);
}

int bwk_account_init(void)
{
	if (!bwk_account_limits[0])
		bwk_account_limit(max_t(long, (long)(totalram_pages() / 2), 1));
	return proto_register(&bwk_account_proto, 0);
}

void bwk_account_exit(void)
{
	proto_unregister(&bwk_account_proto);
}
