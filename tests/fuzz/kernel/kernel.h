/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What files of hosts/kernel take from the kernel, for one thread of a program. All names of kernel
 * headers that they include lead here (meson.build). Locks tell only whether they are held; memory
 * of a program is what fake_user() says.
 *
 * lists.h, memory.h, work.h, net.h, skb.h and socket.h have the rest by topics; what their C files
 * have behind them only those targets link that call it.
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
typedef int16_t s16;
typedef unsigned int gfp_t;

#define LINUX_VERSION_CODE	KERNEL_VERSION(6, 19, 0)
#define KERNEL_VERSION(a, b, c) ((a) << 16 | (b) << 8 | (c))

#define U16_MAX UINT16_MAX
#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX

#define __user
#define __rcu
#define __percpu
#define noinline  __attribute__((noinline))
#define likely(x) (x)
#define __read_mostly
#define __printf(format, from)
#define THIS_MODULE		     NULL
#define IS_ENABLED(x)		     0
#define IS_REACHABLE(x)		     0
#define BIT(n)			     (1ul << (n))
#define ARRAY_SIZE(a)		     (sizeof(a) / sizeof((a)[0]))
#define container_of(p, type, field) ((type *)((char *)(p)-offsetof(type, field)))
#define unlikely(x)		     (x)
#define BUILD_BUG_ON(x)		     _Static_assert(!(x), "")

#define ERESTARTSYS 512
#define ENOIOCTLCMD 515

#define data_race(x)		    (x)
#define READ_ONCE(x)		    __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, value)	    __atomic_store_n(&(x), value, __ATOMIC_RELAXED)
#define smp_load_acquire(p)	    __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, value) __atomic_store_n(p, value, __ATOMIC_RELEASE)
#define barrier()		    __asm__ volatile("" ::: "memory")
#define cond_resched()		    fake_sleeps()
#define this_cpu_inc(word)	    ((void)(word)++)
#define this_cpu_add(word, n)	    ((void)((word) += (n)))
#define min_t(type, a, b)	    ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define max_t(type, a, b)	    ((type)(a) > (type)(b) ? (type)(a) : (type)(b))
#define min(a, b)		    ((a) < (b) ? (a) : (b))
#define min_not_zero(a, b)	    ((a) == 0 ? (b) : (b) == 0 ? (a) : min(a, b))
#define max(a, b)		    ((a) > (b) ? (a) : (b))
#define round_down(x, to)	    ((x) / (to) * (to))
#define round_up(x, to)		    (((x) + (to)-1) / (to) * (to))
#define DIV_ROUND_UP(x, by)	    (((x) + (by)-1) / (by))
#define div_u64(x, by)		    ((u64)(x) / (by))
#define ALIGN(x, to)		    (((x) + (to)-1) & ~((to)-1u))
#define ALIGN_DOWN(x, to)	    ((x) & ~((to)-1u))
#define hweight16(x)		    __builtin_popcount((u16)(x))

static inline void *ERR_PTR(long error)
{
	return (void *)error;
}
#define PTR_ERR(p)	   ((long)(p))
#define PTR_ERR_OR_ZERO(p) (IS_ERR(p) ? (int)PTR_ERR(p) : 0)
#define IS_ERR(p)	   ((unsigned long)(p) >= (unsigned long)-4095)

/* ---- locks and counts ---- */

__attribute__((noreturn)) void fuzz_bad(const char *what); /* fuzz.h */

typedef struct {
	bool held; /* by the thread */
} spinlock_t;
struct mutex {
	bool held;
};

/* How many spinlocks are held, and how often softirqs were disabled. */
__attribute__((weak)) int fake_spinning, fake_bh;

/* Called by all that may sleep. */
static inline void fake_sleeps(void)
{
	if (fake_spinning)
		fuzz_bad("it may sleep with a spinlock held");
}

static inline void fake_take(bool *held)
{
	if (*held)
		fuzz_bad("a lock is taken twice");
	*held = true;
}

static inline void fake_give(bool *held)
{
	if (!*held)
		fuzz_bad("a lock is given back that is not held");
	*held = false;
}

static inline void spin_lock(spinlock_t *lock)
{
	fake_take(&lock->held);
	fake_spinning++;
}

static inline void spin_unlock(spinlock_t *lock)
{
	fake_give(&lock->held);
	fake_spinning--;
}

static inline void local_bh_disable(void)
{
	fake_bh++;
}

static inline void local_bh_enable(void)
{
	if (--fake_bh < 0)
		fuzz_bad("softirqs are enabled too often");
}

static inline void spin_lock_bh(spinlock_t *lock)
{
	local_bh_disable();
	spin_lock(lock);
}

static inline void spin_unlock_bh(spinlock_t *lock)
{
	spin_unlock(lock);
	local_bh_enable();
}

static inline void mutex_lock(struct mutex *lock)
{
	fake_sleeps();
	fake_take(&lock->held);
}

static inline void mutex_unlock(struct mutex *lock)
{
	fake_give(&lock->held);
}

static inline int mutex_trylock(struct mutex *lock)
{
	if (lock->held)
		return 0;
	lock->held = true;
	return 1;
}

#define __releases(lock)
#define __must_hold(lock)
#define spin_lock_init(lock)	      ((lock)->held = false)
#define mutex_init(lock)	      ((lock)->held = false)
#define mutex_lock_interruptible(l)   (mutex_lock(l), 0)
#define lockdep_assert_held(lock)     ((lock)->held ? (void)0 : fuzz_bad("a lock is not held"))
#define lockdep_assert_not_held(lock) ((lock)->held ? fuzz_bad("a lock is held") : (void)0)
#define lockdep_is_held(lock)	      ((lock)->held)
#define rtnl_lock()		      ((void)0)
#define rtnl_unlock()		      ((void)0)

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
#define atomic_read(a)		      ((a)->n)
#define atomic_read_acquire(a)	      ((a)->n)
#define atomic_set(a, value)	      ((void)((a)->n = (value)))
#define atomic_inc(a)		      ((void)(a)->n++)
#define atomic_dec(a)		      ((void)(a)->n--)
#define atomic_xchg(a, is)	      __atomic_exchange_n(&(a)->n, is, __ATOMIC_SEQ_CST)
#define atomic_long_read(a)	      ((a)->n)
#define atomic_long_inc(a)	      ((void)(a)->n++)
#define atomic_long_add(change, a)    ((void)((a)->n += (long)(change)))
#define atomic_long_sub(change, a)    ((void)((a)->n -= (long)(change)))
#define atomic64_read(a)	      ((a)->n)
#define smp_acquire__after_ctrl_dep() ((void)0)
#define smp_wmb()		      ((void)0)
#define smp_rmb()		      ((void)0)
#define smp_mb()		      ((void)0)
#define atomic_try_cmpxchg(a, was, is)                                                             \
	__atomic_compare_exchange_n(&(a)->n, was, is, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#define atomic_sub_return(change, a) ((a)->n -= (int)(change))
#define test_bit(bit, word)	     (*(word) >> (bit)&1)

static inline int atomic_cmpxchg(atomic_t *a, int was, int is)
{
	__atomic_compare_exchange_n(&a->n, &was, is, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return was;
}

/* A count that has come to 0 stays there. */
static inline void refcount_set(refcount_t *r, int n)
{
	r->n = n;
}

static inline int refcount_read(const refcount_t *r)
{
	return r->n;
}

static inline void refcount_inc(refcount_t *r)
{
	if (r->n <= 0)
		fuzz_bad("a reference to what has gone");
	r->n++;
}

static inline bool refcount_inc_not_zero(refcount_t *r)
{
	return r->n > 0 && ++r->n;
}

static inline bool refcount_dec_and_test(refcount_t *r)
{
	if (r->n <= 0)
		fuzz_bad("a reference is given back twice");
	return !--r->n;
}

typedef struct {
	unsigned int val;
} kuid_t;

#include "lists.h"

/* ---- what is there, of which only these fields matter ---- */

struct ratelimit_state {
	int unused;
};
struct percpu_counter {
	int unused;
};
typedef struct {
	int unused;
} siphash_key_t;
struct module {
	int unused;
};

struct user_namespace;
struct net {
	struct user_namespace *user_ns;
};
#include "memory.h"
#include "work.h"
#include "net.h"
#include "skb.h"

#include "socket.h"

#define CAP_NET_ADMIN 12
bool ns_capable(struct user_namespace *ns, int capability);
struct net_device *__dev_get_by_name(struct net *net, const char *name);

enum { ITER_DEST, ITER_SOURCE };
int import_ubuf(int way, void *at, size_t n, struct iov_iter *iter);
void *iter_iov_addr(const struct iov_iter *iter);
size_t iter_iov_len(const struct iov_iter *iter);

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

#define copy_from_sockptr(to, from, n) copy_from_user(to, (from).at, n)

static inline void strscpy(char *to, const char *from, size_t room)
{
	strncpy(to, from, room - 1);
	to[room - 1] = '\0';
}

/* Control messages, as the kernel has copied them. */
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
