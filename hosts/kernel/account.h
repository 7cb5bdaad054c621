/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who pays for what a socket makes the module hold, its port and the connections accepted from it
 * included. A socket has one account from its beginning on; ports, peers and accepted sockets share
 * it, and it goes with the last of them.
 *
 * Each byte is charged twice: to the user (user.h), and to the control group of the task that
 * opened the socket. To the latter either as the kernel's memory, by GFP_KERNEL_ACCOUNT, where a
 * call of the program's allocates (CHARGE), or as memory of sockets, as TCP's and UDP's is, where
 * frames of peers do, or memory comes from a cache that is not charged (TAKE).
 */
#ifndef BWK_ACCOUNT_H
#define BWK_ACCOUNT_H

#include <net/sock.h>

#include "user.h"

#define BWK_ACCOUNT_SPARE  16384 /* bytes that stay charged at most */
#define BWK_ACCOUNT_SOCKET 8192 /* bytes charged for a socket, its first unread messages included */

struct bwk_account {
	struct sock sk; /* first: of no program, and in no table; it carries the charge */
	spinlock_t lock;
	atomic_t spare;	       /* bytes that are charged and given back, for what comes next */
	struct bwk_user *user; /* a reference */
};

/* For what the current task opens in this network namespace, with a reference. NULL: no memory.
 * Process context. */
struct bwk_account *bwk_account_new(const struct net *net);

/* Any context, as for all that follow. */
static inline struct bwk_account *bwk_account_hold(struct bwk_account *account)
{
	sock_hold(&account->sk);
	return account;
}

static inline void bwk_account_put(struct bwk_account *account)
{
	sock_put(&account->sk);
}

/* The way by the user and the control group. */
bool bwk_account_raise(struct bwk_account *account, u32 bytes);
void bwk_account_lower(struct bwk_account *account, u32 bytes);

/* Memory that is not charged to a control group otherwise. false: it would be too much. */
static inline bool bwk_account_take(struct bwk_account *account, u32 bytes)
{
	int spare = atomic_read(&account->spare);

	if (spare >= (int)bytes && atomic_try_cmpxchg(&account->spare, &spare, spare - (int)bytes))
		return true;
	return bwk_account_raise(account, bytes);
}

static inline void bwk_account_give(struct bwk_account *account, u32 bytes)
{
	int spare = atomic_read(&account->spare);

	if (bytes > BWK_ACCOUNT_SPARE - spare ||
	    !atomic_try_cmpxchg(&account->spare, &spare, spare + (int)bytes))
		bwk_account_lower(account, bytes);
}

/* Memory that is: to the user only. */
static inline bool bwk_account_charge(const struct bwk_account *account, u64 bytes)
{
	return bwk_user_charge(account->user, bytes);
}

static inline void bwk_account_uncharge(const struct bwk_account *account, u64 bytes)
{
	bwk_user_uncharge(account->user, bytes);
}

/* What is allocated in between is charged to the account's control group, whichever task runs. By
 * bwk_account_left() with what bwk_account_enter() returned. Process context. */
struct mem_cgroup *bwk_account_enter(const struct bwk_account *account);
void bwk_account_left(struct mem_cgroup *before);

int bwk_account_init(void);
void bwk_account_exit(void);

#endif
