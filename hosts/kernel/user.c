/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Users and what is held for them; see user.h. */
#include "user.h"

#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include <net/net_namespace.h>

#define BWK_USER_BITS 6

/* Bytes that a processor counts by itself before it tells the others: sends on several of them do
 * not meet in one place. */
#define BWK_USER_BATCH (256 << 10)

static DEFINE_HASHTABLE(bwk_users, BWK_USER_BITS);
static DEFINE_SPINLOCK(bwk_users_lock);
static atomic_long_t bwk_users_limited;

static unsigned long bwk_user_memory_max;
module_param_named(user_memory_max, bwk_user_memory_max, ulong, 0644);
MODULE_PARM_DESC(user_memory_max, "bytes that are held for one user, root excepted; 0: an eighth "
				  "of the memory");

static unsigned int bwk_user_ports_max = 4096;
module_param_named(user_ports_max, bwk_user_ports_max, uint, 0644);
MODULE_PARM_DESC(user_ports_max, "ports that one user may have, root excepted");

/* Where root is: on the machine itself, or nobody knows in which container, or in that whose
 * network namespace has this cookie. Others are the same everywhere. */
#define BWK_USER_ANYWHERE  0
#define BWK_USER_CONTAINED (~0ull)

static struct bwk_user *bwk_user_find(kuid_t uid, u64 place)
{
	struct bwk_user *user;

	hash_for_each_possible(bwk_users, user, hash, __kuid_val(uid))
		if (uid_eq(user->uid, uid) && user->place == place)
			return user;
	return NULL;
}

static bool bwk_user_is_bounded(const struct bwk_user *user)
{
	return !uid_eq(user->uid, GLOBAL_ROOT_UID) || user->place != BWK_USER_ANYWHERE;
}

/* Whoever makes a network namespace that the initial user namespace owns may do anything; one that
 * belongs to a user namespace its root could have many of. */
static u64 bwk_user_place(kuid_t uid, const struct net *net)
{
	if (!uid_eq(uid, GLOBAL_ROOT_UID))
		return BWK_USER_ANYWHERE;
	if (net->user_ns != &init_user_ns || current_user_ns() != &init_user_ns)
		return BWK_USER_CONTAINED;
	return net_eq(net, &init_net) ? BWK_USER_ANYWHERE : net->net_cookie;
}

static kuid_t bwk_user_uid(void)
{
	const struct user_namespace *ns = current_user_ns();

	if (ns == &init_user_ns)
		return current_fsuid();
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	return uid_eq(ns->owner, GLOBAL_ROOT_UID) ? current_fsuid() : ns->owner;
}

static void bwk_user_free(struct bwk_user *user)
{
	percpu_counter_destroy(&user->held);
	kfree(user);
}

static struct bwk_user *bwk_user_new(kuid_t uid, u64 place)
{
	struct bwk_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);

	if (!user)
		return NULL;
	if (percpu_counter_init(&user->held, 0, GFP_KERNEL_ACCOUNT)) {
		kfree(user);
		return NULL;
	}
	user->uid = uid;
	user->place = place;
	return user;
}

struct bwk_user *bwk_user_of_task(const struct net *net)
{
	kuid_t uid = bwk_user_uid();
	u64 place = bwk_user_place(uid, net);
	struct bwk_user *user, *new = NULL;

	do {
		spin_lock_bh(&bwk_users_lock);
		user = bwk_user_find(uid, place);
		if (!user && new) {
			hash_add(bwk_users, &new->hash, __kuid_val(uid));
			user = new;
			new = NULL;
		}
		if (user)
			user->refs++;
		spin_unlock_bh(&bwk_users_lock);
	} while (!user && (new = bwk_user_new(uid, place)));
	if (new)
		bwk_user_free(new); /* another task was faster */
	return user;
}

void bwk_user_put(struct bwk_user *user)
{
	bool last;

	spin_lock_bh(&bwk_users_lock);
	last = !--user->refs;
	if (last)
		hash_del(&user->hash);
	spin_unlock_bh(&bwk_users_lock);
	/* What is not given back would be given back to memory of somebody else's. */
	if (last && !WARN_ON_ONCE(percpu_counter_sum(&user->held) || user->ports))
		bwk_user_free(user);
}

void bwk_user_limited(void)
{
	atomic_long_inc(&bwk_users_limited);
}

static s64 bwk_user_most(void)
{
	return (s64)(READ_ONCE(bwk_user_memory_max) ?: (totalram_pages() << PAGE_SHIFT) / 8);
}

u64 bwk_user_room(const struct bwk_user *user)
{
	s64 room = bwk_user_most() - percpu_counter_read((struct percpu_counter *)&user->held);

	return bwk_user_is_bounded(user) ? max_t(s64, room, 0) : U64_MAX;
}

bool bwk_user_charge(struct bwk_user *user, u64 bytes)
{
	s64 most = bwk_user_most();

	percpu_counter_add_batch(&user->held, (s64)bytes, BWK_USER_BATCH);
	if (!bwk_user_is_bounded(user) ||
	    __percpu_counter_compare(&user->held, most, BWK_USER_BATCH) <= 0)
		return true;
	bwk_user_uncharge(user, bytes);
	bwk_user_limited();
	return false;
}

void bwk_user_uncharge(struct bwk_user *user, u64 bytes)
{
	percpu_counter_add_batch(&user->held, -(s64)bytes, BWK_USER_BATCH);
}

bool bwk_user_take_port(struct bwk_user *user)
{
	bool free;

	spin_lock_bh(&bwk_users_lock);
	free = !bwk_user_is_bounded(user) || user->ports < READ_ONCE(bwk_user_ports_max);
	user->ports += free;
	spin_unlock_bh(&bwk_users_lock);
	if (!free)
		bwk_user_limited();
	return free;
}

void bwk_user_free_port(struct bwk_user *user)
{
	spin_lock_bh(&bwk_users_lock);
	user->ports--;
	spin_unlock_bh(&bwk_users_lock);
}

/* ---- what can be read of it ---- */

static int bwk_user_held_show(char *to, const struct kernel_param *param)
{
	struct bwk_user *user;
	s64 sum = 0;
	int bucket;

	spin_lock_bh(&bwk_users_lock);
	hash_for_each(bwk_users, bucket, user, hash)
		sum += percpu_counter_sum(&user->held);
	spin_unlock_bh(&bwk_users_lock);
	return sysfs_emit(to, "%lld\n", sum);
}

static int bwk_user_limited_show(char *to, const struct kernel_param *param)
{
	return sysfs_emit(to, "%ld\n", atomic_long_read(&bwk_users_limited));
}

static int bwk_user_set(const char *value, const struct kernel_param *param)
{
	return -EPERM; /* when the module is loaded; afterwards the file's mode says so */
}

static const struct kernel_param_ops bwk_user_held_ops = {
	.get = bwk_user_held_show,
	.set = bwk_user_set,
};
module_param_cb(held_bytes, &bwk_user_held_ops, NULL, 0400);
MODULE_PARM_DESC(held_bytes, "bytes that are held for all users now (read only)");

static const struct kernel_param_ops bwk_user_limited_ops = {
	.get = bwk_user_limited_show,
	.set = bwk_user_set,
};
module_param_cb(user_limited, &bwk_user_limited_ops, NULL, 0400);
MODULE_PARM_DESC(user_limited, "how often a user's bound was met (read only)");
