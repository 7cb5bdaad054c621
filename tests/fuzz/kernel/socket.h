/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets, and what calls of them are given. Who sleeps calls fake_waits(), which the target sets:
 * there the world goes on.
 */
#ifndef FUZZ_KERNEL_SOCKET_H
#define FUZZ_KERNEL_SOCKET_H

#define SOCK_LINGER    0
#define SOCK_STREAM    1
#define SOCK_DGRAM     2
#define SOCK_RDM       4
#define SOCK_SEQPACKET 5
#define SOMAXCONN      4096
#define RCV_SHUTDOWN   1
#define SEND_SHUTDOWN  2
#define SHUTDOWN_MASK  3
#define SHUT_RD	       0
#define SHUT_WR	       1
#define SHUT_RDWR      2
#define AF_UNSPEC      0
#define MSG_OOB	       1
#define MSG_PEEK       2
#define MSG_TRUNC      0x20
#define MSG_DONTWAIT   0x40
#define MSG_EOR	       0x80
#define MSG_WAITALL    0x100
#define MSG_ERRQUEUE   0x2000
#define MSG_NOSIGNAL   0x4000
#define MSG_MORE       0x8000
#define MSG_BATCH      0x40000
#ifndef O_NONBLOCK
#define O_NONBLOCK 04000
#endif
#ifndef EPOLLIN
#define EPOLLIN	    0x001
#define EPOLLOUT    0x004
#define EPOLLERR    0x008
#define EPOLLHUP    0x010
#define EPOLLRDNORM 0x040
#define EPOLLWRNORM 0x100
#define EPOLLWRBAND 0x200
#define EPOLLRDHUP  0x2000
#endif
typedef unsigned int __poll_t;

enum { TCP_ESTABLISHED = 1, TCP_SYN_SENT, TCP_CLOSE = 7, TCP_LISTEN = 10 };

struct sock;
struct socket;
struct msghdr;
struct file;
struct sockaddr;
struct sockaddr_unsized {
	unsigned short sa_family;
	char sa_data[];
};
struct vm_area_struct;
struct mm_struct;
struct ctl_table;
struct ctl_table_header;
typedef int proc_handler(const struct ctl_table *table, int write, void *buffer, size_t *len,
			 loff_t *at);
typedef struct {
	int unused;
} poll_table;
typedef struct {
	const void *at; /* of the program's */
} sockptr_t;

struct proto {
	const char *name;
	struct module *owner;
	size_t obj_size;
	void (*fake_end)(struct sock *sk); /* its last reference is gone */
};

struct sock {
	struct net *net;
	int refs, sk_type, sk_err, sk_sndbuf, sk_shutdown;
	void (*sk_state_change)(struct sock *sk), (*sk_write_space)(struct sock *sk);
	void (*sk_data_ready)(struct sock *sk);
	void (*sk_destruct)(struct sock *sk);
	struct sk_buff_head sk_receive_queue;
	int sk_rcvbuf, sk_family, sk_state;
	u32 sk_priority, sk_ack_backlog, sk_max_ack_backlog;
	long sk_rcvtimeo, sk_sndtimeo;
	unsigned long sk_lingertime;
	kuid_t sk_uid;
	atomic_t sk_rmem_alloc, sk_drops;
	struct {
		spinlock_t slock;
	} sk_lock;
	struct proto *sk_prot;
	bool linger;
};

struct proto_accept_arg {
	int flags;
};
struct proto_ops {
	int family;
	struct module *owner;
	int (*release)(struct socket *sock);
	int (*bind)(struct socket *sock, struct sockaddr_unsized *addr, int len);
	int (*connect)(struct socket *sock, struct sockaddr_unsized *addr, int len, int flags);
	int (*socketpair)(struct socket *a, struct socket *b);
	int (*accept)(struct socket *sock, struct socket *fresh, struct proto_accept_arg *arg);
	int (*getname)(struct socket *sock, struct sockaddr *addr, int peer);
	__poll_t (*poll)(struct file *file, struct socket *sock, poll_table *wait);
	int (*ioctl)(struct socket *sock, unsigned int command, unsigned long arg);
	int (*listen)(struct socket *sock, int backlog);
	int (*shutdown)(struct socket *sock, int how);
	int (*setsockopt)(struct socket *sock, int level, int name, sockptr_t value,
			  unsigned int len);
	int (*getsockopt)(struct socket *sock, int level, int name, char *value, int *len);
	int (*sendmsg)(struct socket *sock, struct msghdr *m, size_t len);
	int (*recvmsg)(struct socket *sock, struct msghdr *m, size_t len, int flags);
	int (*mmap)(struct file *file, struct socket *sock, struct vm_area_struct *vma);
};
#define sock_no_socketpair NULL
#define sock_no_accept	   NULL
#define sock_no_listen	   NULL
#define sock_no_mmap	   NULL

struct socket {
	struct sock *sk;
	short type;
	const struct proto_ops *ops;
};

struct net_proto_family {
	int family;
	int (*create)(struct net *net, struct socket *sock, int protocol, int kern);
	struct module *owner;
};
/* The only one. */
__attribute__((weak)) struct net_proto_family *fake_family;
#define sock_register(f)	  (fake_family = (f), 0)
#define sock_unregister(number)	  ((void)(fake_family = NULL))
#define proto_register(p, cached) ((p)->fake_end = fake_sock_end, 0)
#define proto_unregister(p)	  ((void)(p))
void fake_sock_end(struct sock *sk);

struct sock *sk_alloc(struct net *net, int family, gfp_t gfp, struct proto *proto, int kern);
void sock_init_data(struct socket *sock, struct sock *sk);

#define sock_hold(sk) ((void)(sk)->refs++)
static inline void sock_put(struct sock *sk)
{
	if (!--sk->refs && sk->sk_prot)
		sk->sk_prot->fake_end(sk);
}
#define sock_flag(sk, flag)	       ((sk)->linger)
#define sock_net(sk)		       ((sk)->net)
#define sock_orphan(sk)		       ((void)(sk))
#define sock_graft(s, to)	       ((void)((to)->sk = (s)))
#define sock_prot_inuse_add(net, p, n) ((void)0)
#define sock_poll_wait(file, sock, w)  ((void)(w))
#define sk_error_report(sk)	       ((void)(sk))
#define sk_acceptq_is_full(sk)	       ((sk)->sk_ack_backlog > (sk)->sk_max_ack_backlog)
#define sk_acceptq_added(sk)	       ((void)(sk)->sk_ack_backlog++)
#define sk_acceptq_removed(sk)	       ((void)(sk)->sk_ack_backlog--)
#define sock_rcvtimeo(sk, nonblock)    ((nonblock) ? 0 : (sk)->sk_rcvtimeo)
#define sock_sndtimeo(sk, nonblock)    ((nonblock) ? 0 : (sk)->sk_sndtimeo)

static inline int sock_error(struct sock *sk)
{
	int error = sk->sk_err;

	sk->sk_err = 0;
	return -error;
}

static inline void sock_rfree(struct sk_buff *skb)
{
	skb->sk->sk_rmem_alloc.n -= (int)skb->truesize;
	if (skb->sk->sk_rmem_alloc.n < 0)
		fuzz_bad("a socket is charged for less than nothing");
}

static inline void skb_set_owner_r(struct sk_buff *skb, struct sock *sk)
{
	skb_orphan(skb);
	skb->sk = sk;
	skb->destructor = sock_rfree;
	sk->sk_rmem_alloc.n += (int)skb->truesize;
}

/* ---- waiting ---- */

#define MAX_SCHEDULE_TIMEOUT LONG_MAX
#define TASK_INTERRUPTIBLE   1
#define FAKE_WAIT	     10 /* jiffies */

__attribute__((weak)) void (*fake_waits)(void);

/* For a while; what is left of the time. */
static inline long fake_wait(long left)
{
	fake_sleeps();
	fake_waits();
	if (left == MAX_SCHEDULE_TIMEOUT)
		return left;
	return left > FAKE_WAIT ? left - FAKE_WAIT : 0;
}

#define sk_sleep(sk)		    (&(wait_queue_head_t){0})
#define wake_up_all(queue)	    ((void)(queue))
#define DEFINE_WAIT_FUNC(name, f)   int name = 0
#define add_wait_queue(queue, w)    ((void)(w))
#define remove_wait_queue(queue, w) ((void)(w))
#define wait_woken(w, state, left)  fake_wait(left)
#define sock_intr_errno(left)	    ((left) == MAX_SCHEDULE_TIMEOUT ? -ERESTARTSYS : -EINTR)
#define wait_event_interruptible_timeout(queue, so, time)                                          \
	({                                                                                         \
		long fake_left = (time);                                                           \
		bool fake_so;                                                                      \
		while (!(fake_so = (so)) && fake_left && !signal_pending(current))                 \
			fake_left = fake_wait(fake_left);                                          \
		fake_so ? max(fake_left, 1l) : fake_left ? -ERESTARTSYS : 0;                       \
	})
/* Who has a signal waits a hundred times longer, and is killed then. */
#define wait_event_killable_timeout(queue, so, time)                                               \
	({                                                                                         \
		long fake_left = (time);                                                           \
		int fake_turns = 100;                                                              \
		bool fake_so;                                                                      \
		while (!(fake_so = (so)) && fake_left && fake_turns--)                             \
			fake_left = fake_wait(fake_left);                                          \
		fake_so ? max(fake_left, 1l) : fake_left ? -ERESTARTSYS : 0;                       \
	})
#define wait_event_killable(queue, so)                                                             \
	(wait_event_killable_timeout(queue, so, MAX_SCHEDULE_TIMEOUT) > 0 ? 0 : -ERESTARTSYS)

/* ---- calls ---- */

struct msghdr {
	void *msg_control;
	size_t msg_controllen;
	void *msg_name;
	int msg_namelen, msg_flags;
	struct iov_iter msg_iter;
};

/* One fits where there is any room: msg_control has its bytes then. */
static inline int put_cmsg(struct msghdr *m, int level, int type, int n, const void *bytes)
{
	fake_sleeps();
	if (m->msg_control)
		memcpy(m->msg_control, bytes, (size_t)n);
	return 0;
}

int skb_copy_datagram_msg(const struct sk_buff *skb, u32 off, struct msghdr *m, u32 n);
#define fault_in_iov_iter_writeable(iter, n) ((n) > (iter)->count)

/* Pages of the program; 0 or less: there are none. PIN and GET are the same here. */
int fake_pages(unsigned long at, u32 n, struct page **to);
/* To mark them as written to sleeps. */
void fake_pages_put(struct page **pages, u32 n, bool dirty);
extern unsigned long fake_lockable; /* pages that a user may lock */
#define FOLL_WRITE				 1
#define FOLL_LONGTERM				 2
#define pin_user_pages_fast(at, n, how, to)	 ((void)(how), fake_pages(at, n, to))
#define get_user_pages_fast(at, n, how, to)	 fake_pages(at, n, to)
#define unpin_user_pages_dirty_lock(p, n, dirty) fake_pages_put(p, n, dirty)
#define rlimit(what)				 (fake_lockable << PAGE_SHIFT)
#define atomic_long_add_return(change, a)	 ((a)->n += (long)(change))
#define module_param_cb(name, ops, arg, mode)	 extern int fake_param
#define sysfs_emit(to, format, ...)		 0
#define pr_err(...)				 ((void)0)
struct kernel_param;
struct kernel_param_ops {
	int (*set)(const char *value, const struct kernel_param *param);
	int (*get)(char *to, const struct kernel_param *param);
};

#endif
