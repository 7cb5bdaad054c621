/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What some files of hosts/kernel take from the kernel, for one thread of a program. All names of
 * kernel headers that they include lead here (meson.build). Locks tell only whether they are held;
 * memory of a program is what fake_user() says.
 */
#ifndef FUZZ_KERNEL_H
#define FUZZ_KERNEL_H

#include <errno.h>
#include <limits.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
typedef unsigned int gfp_t;

#define LINUX_VERSION_CODE	KERNEL_VERSION(6, 19, 0)
#define KERNEL_VERSION(a, b, c) ((a) << 16 | (b) << 8 | (c))

#define __user
#define __rcu
#define __percpu
#define noinline	__attribute__((noinline))
#define likely(x)	(x)
#define unlikely(x)	(x)
#define BUILD_BUG_ON(x) _Static_assert(!(x), "")

#define ERESTARTSYS 512
#define ENOIOCTLCMD 515

#define data_race(x)		    (x)
#define READ_ONCE(x)		    __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, value)	    __atomic_store_n(&(x), value, __ATOMIC_RELAXED)
#define smp_load_acquire(p)	    __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, value) __atomic_store_n(p, value, __ATOMIC_RELEASE)
#define barrier()		    __asm__ volatile("" ::: "memory")
#define cond_resched()		    ((void)0)
#define this_cpu_inc(word)	    ((void)(word)++)
#define min_t(type, a, b)	    ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define min(a, b)		    ((a) < (b) ? (a) : (b))
#define ALIGN(x, to)		    (((x) + (to)-1) & ~((to)-1u))
#define ALIGN_DOWN(x, to)	    ((x) & ~((to)-1u))
#define hweight16(x)		    __builtin_popcount((u16)(x))

static inline void *ERR_PTR(long error)
{
	return (void *)error;
}
#define PTR_ERR(p) ((long)(p))
#define IS_ERR(p)  ((unsigned long)(p) >= (unsigned long)-4095)

/* ---- locks and counts ---- */

typedef struct {
	bool held; /* by the thread */
} spinlock_t;
struct mutex {
	bool held;
};
#define __releases(lock)
#define __must_hold(lock)
#define spin_lock_bh(lock)	    ((lock)->held = true)
#define spin_unlock_bh(lock)	    ((lock)->held = false)
#define mutex_lock(lock)	    ((lock)->held = true)
#define mutex_unlock(lock)	    ((lock)->held = false)
#define mutex_lock_interruptible(l) (mutex_lock(l), 0)
#define rtnl_lock()		    ((void)0)
#define rtnl_unlock()		    ((void)0)

typedef struct {
	int n;
} atomic_t;
typedef struct {
	long n;
} atomic_long_t;
typedef struct {
	long long n;
} atomic64_t;
typedef atomic_t refcount_t;
#define atomic_read(a)	    ((a)->n)
#define atomic_long_read(a) ((a)->n)
#define atomic_try_cmpxchg(a, was, is)                                                             \
	__atomic_compare_exchange_n(&(a)->n, was, is, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#define atomic_sub_return(change, a) ((a)->n -= (int)(change))
#define test_bit(bit, word)	     (*(word) >> (bit)&1)

typedef struct {
	unsigned int val;
} kuid_t;

/* ---- lists ---- */

struct list_head {
	struct list_head *next, *prev;
};
struct hlist_node {
	struct hlist_node *next;
};
struct hlist_head {
	struct hlist_node *first;
};

static inline void hlist_add_head(struct hlist_node *n, struct hlist_head *list)
{
	n->next = list->first;
	list->first = n;
}

struct llist_node {
	struct llist_node *next;
};
struct rb_node {
	struct rb_node *left, *right;
};
struct rb_root {
	struct rb_node *rb_node;
};
struct rb_root_cached {
	struct rb_root rb_root;
	struct rb_node *rb_leftmost;
};
struct llist_head {
	struct llist_node *first;
};
#define list_empty(list)	 ((list)->next == (list))
#define list_empty_careful(list) list_empty(list)
#define list_first_entry_or_null(list, type, field)                                                \
	(list_empty(list) ? NULL : (type *)((char *)(list)->next - offsetof(type, field)))

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list->prev = list;
}

static inline void list_add_tail(struct list_head *item, struct list_head *list)
{
	item->prev = list->prev;
	item->next = list;
	list->prev->next = item;
	list->prev = item;
}

static inline void list_del_init(struct list_head *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	INIT_LIST_HEAD(item);
}

#define FAKE_SLOTS 8
struct xarray {
	void *slot[FAKE_SLOTS];
};
#define xa_load(xa, index) ((index) < FAKE_SLOTS ? (xa)->slot[index] : NULL)
#define xa_for_each(xa, index, entry)                                                              \
	for ((index) = 0; (index) < FAKE_SLOTS; (index)++)                                         \
		if (((entry) = (xa)->slot[index]))

#define DECLARE_BITMAP(name, bits)    unsigned long name[((bits) + 63) / 64]
#define DECLARE_HASHTABLE(name, bits) struct hlist_head name[1 << (bits)]

/* ---- what is there, of which only these fields matter ---- */

enum hrtimer_restart { HRTIMER_NORESTART };
struct rcu_head {
	int unused;
};
struct packet_type {
	int unused;
};
struct ratelimit_state {
	int unused;
};
struct percpu_counter {
	int unused;
};
struct hrtimer {
	int unused;
};
struct work_struct {
	int unused;
};
struct delayed_work {
	int unused;
};
struct rcu_work {
	int unused;
};
typedef struct {
	int unused;
} siphash_key_t;
struct ubuf_info {
	int unused;
};
struct proto {
	int unused;
};
struct proto_ops {
	int unused;
};
struct module {
	int unused;
};
typedef struct rcu_head wait_queue_head_t;

struct user_namespace;
struct net {
	struct user_namespace *user_ns;
};
struct net_device {
	int ifindex;
	unsigned int mtu;
};
struct sk_buff {
	char cb[48];
};
struct sk_buff_head {
	int unused;
};
#define skb_queue_empty_lockless(queue) true

struct sock {
	struct net *net;
	int refs, sk_type, sk_err, sk_sndbuf, sk_shutdown;
	void (*sk_state_change)(struct sock *sk), (*sk_write_space)(struct sock *sk);
	void (*sk_data_ready)(struct sock *sk);
	struct sk_buff_head sk_receive_queue;
};
static inline long sock_rcvtimeo(const struct sock *sk, bool nonblock)
{
	return 0;
}
static inline long sock_sndtimeo(const struct sock *sk, bool nonblock)
{
	return 0;
}
struct socket {
	struct sock *sk;
	short type;
};
struct sockaddr;
struct sockaddr_unsized;
struct page;
struct file;
struct vm_area_struct;
struct mm_struct;
struct user_struct;
struct ctl_table;
struct ctl_table_header;
typedef int proc_handler(const struct ctl_table *table, int write, void *buffer, size_t *len,
			 loff_t *at);
struct iov_iter;
#define SOCK_LINGER	    0
#define SOCK_DGRAM	    2
#define SOCK_RDM	    4
#define sock_flag(sk, flag) false
#define sock_hold(sk)	    ((sk)->refs++)
#define sock_put(sk)	    ((sk)->refs--)
#define sock_net(sk)	    ((sk)->net)
#define sk_error_report(sk) ((void)(sk))
#define ktime_get_ns()	    0

#define CAP_NET_ADMIN 12
bool ns_capable(struct user_namespace *ns, int capability);
struct net_device *__dev_get_by_name(struct net *net, const char *name);

/* Of compat.h: declared for functions that nobody calls. */
enum { ITER_DEST, ITER_SOURCE };
int import_ubuf(int way, void *at, size_t n, struct iov_iter *iter);
void *iter_iov_addr(const struct iov_iter *iter);
size_t iter_iov_len(const struct iov_iter *iter);

/* ---- Ethernet ---- */

static inline bool is_valid_ether_addr(const u8 *mac)
{
	static const u8 none[6];

	return !(mac[0] & 1) && memcmp(mac, none, sizeof(none));
}

/* ---- memory of a program ---- */

/* All of it lies there, and may be used. */
bool fake_user(const void *at, size_t n);

static inline unsigned long copy_from_user(void *to, const void *from, size_t n)
{
	if (!fake_user(from, n))
		return n;
	memcpy(to, from, n);
	return 0;
}
#define copy_to_user(to, from, n) (fake_user(to, n) ? (memcpy(to, from, n), 0) : 1)
#define get_user(x, from)	  (copy_from_user(&(x), from, sizeof(*(from))) ? -EFAULT : 0)
#define put_user(x, to)		  (copy_to_user(to, &(x), sizeof(*(to))) ? -EFAULT : 0)

typedef struct {
	const void *at;
} sockptr_t;
#define copy_from_sockptr(to, from, n) copy_from_user(to, (from).at, n)

static inline void strscpy(char *to, const char *from, size_t room)
{
	strncpy(to, from, room - 1);
	to[room - 1] = '\0';
}

/* Control messages, as the kernel has copied them. */
struct msghdr {
	void *msg_control;
	size_t msg_controllen;
};
struct cmsghdr {
	size_t cmsg_len;
	int cmsg_level, cmsg_type;
};
#define CMSG_LEN(n)  (sizeof(struct cmsghdr) + (n))
#define CMSG_DATA(c) ((void *)((c) + 1))

/* Bytes from here to the end of all. */
static inline size_t fake_left(const struct msghdr *m, const struct cmsghdr *c)
{
	return m->msg_controllen - (size_t)((const char *)c - (const char *)m->msg_control);
}

static inline struct cmsghdr *fake_next(const struct msghdr *m, struct cmsghdr *c)
{
	size_t step = (c->cmsg_len + 7) & ~(size_t)7, left = fake_left(m, c);

	if (step > left || left - step < sizeof(*c))
		return NULL;
	return (struct cmsghdr *)((char *)c + step);
}
#define CMSG_OK(m, c) ((c)->cmsg_len >= sizeof(*(c)) && (c)->cmsg_len <= fake_left(m, c))
#define for_each_cmsghdr(c, m)                                                                     \
	for (c = (m)->msg_controllen >= sizeof(*c) ? (m)->msg_control : NULL; c;                   \
	     c = fake_next(m, c))

#endif
