/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the module holds for a user, in all network namespaces together, and how much that may be.
 * One account for everything that a program can make the module keep beyond the small allowances of
 * its sockets (short messages up to SO_SNDBUF, unread ones up to SO_RCVBUF), whose number
 * RLIMIT_NOFILE bounds:
 *
 *	held	 copies of messages and of what is fetched, buffers whose end is yet to be told,
 *		 peers, engines and what they grow by; at most user_memory_max, then -ENOBUFS
 *	waiting	 unread messages beyond SO_RCVBUF; a share of overflow_max, see queue.c
 *	ports	 numbers, those that linger too; at most user_ports_max, then -ENOBUFS
 *
 * Pages of programs are not in it: they count as locked memory.
 */
#ifndef BWK_USER_H
#define BWK_USER_H

#include <linux/atomic.h>
#include <linux/percpu_counter.h>
#include <linux/uidgid.h>

struct bwk_user {
	struct hlist_node hash;
	kuid_t uid;		    /* as the initial user namespace sees it */
	u32 refs, ports;	    /* the table's lock */
	struct percpu_counter held; /* bytes */
	atomic_long_t waiting;	    /* bytes */
};

/* Who is charged for what the current task opens, with a reference: the owner of its user
 * namespace, that is of the outermost one beside the initial, so that nobody becomes another by a
 * namespace of his own; in those that root made, the task's own fsuid. NULL: no memory. Process
 * context. */
struct bwk_user *bwk_user_of_task(void);
/* One more reference. Sockets, ports and peers have one each, and buffers from bwk_buf_put_off()
 * on; what else is charged goes before these do. Any context, as for all that follow. */
struct bwk_user *bwk_user_hold(struct bwk_user *user);
void bwk_user_put(struct bwk_user *user);

/* false: it would be too much, and is counted. Never for root. */
bool bwk_user_charge(struct bwk_user *user, u64 bytes);
void bwk_user_uncharge(struct bwk_user *user, u64 bytes);
/* A number for a port; false: the user has enough. */
bool bwk_user_take_port(struct bwk_user *user);
void bwk_user_free_port(struct bwk_user *user);
/* Something was refused, or lost, because a user holds too much. */
void bwk_user_limited(void);

#endif
