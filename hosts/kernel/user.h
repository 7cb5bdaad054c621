/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the module holds for a user, in all network namespaces together, and how much that may be:
 *
 *	held	 everything but pages of programs, which count as locked memory: sockets, ports,
 *		 peers, engines and what they grow by, copies of messages and of what is fetched,
 *		 buffers, unread messages, messages of which a part has come; at most
 *		 user_memory_max, then -ENOBUFS, or peers have to wait or are left
 *	waiting	 of that what peers cause by themselves: unread messages beyond SO_RCVBUF, and those
 *		 of which a part has come; a share of overflow_max, see overflow.h
 *	ports	 numbers, those that linger too; at most user_ports_max, then -ENOBUFS
 *
 * The root of the machine, uid 0 of the initial user namespace in the initial network namespace, is
 * charged, but not bounded. Root of a container is: it is another user in each network namespace
 * that was made for one.
 */
#ifndef BWK_USER_H
#define BWK_USER_H

#include <linux/atomic.h>
#include <linux/percpu_counter.h>
#include <linux/uidgid.h>

struct net;

struct bwk_user {
	struct hlist_node hash;
	kuid_t uid;		    /* as the initial user namespace sees it */
	u64 place;		    /* of root in containers: BWK_USER_*, or a network namespace */
	u32 refs, ports;	    /* the table's lock */
	struct percpu_counter held; /* bytes */
	atomic_long_t waiting;	    /* bytes */
};

/* Who is charged for what the current task opens in this network namespace, with a reference: the
 * owner of its user namespace, that is of the outermost one beside the initial, so that nobody
 * becomes another by a namespace of his own; in those that root made, the task's own fsuid. NULL:
 * no memory. Process context. */
struct bwk_user *bwk_user_of_task(const struct net *net);
/* Accounts have a reference each. Any context, as for all that follow. */
void bwk_user_put(struct bwk_user *user);

/* false: it would be too much, and is counted. Never for the machine's root. */
bool bwk_user_charge(struct bwk_user *user, u64 bytes);
void bwk_user_uncharge(struct bwk_user *user, u64 bytes);
/* Bytes that may still be charged, about; much for the machine's root. */
u64 bwk_user_room(const struct bwk_user *user);
/* A number for a port; false: the user has enough. */
bool bwk_user_take_port(struct bwk_user *user);
void bwk_user_free_port(struct bwk_user *user);
/* Something was refused, or lost, because a user holds too much. */
void bwk_user_limited(void);

#endif
