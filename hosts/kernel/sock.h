/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets of the family: what all types have in common. msg.c has those without connections. */
#ifndef BWK_SOCK_H
#define BWK_SOCK_H

#include <net/sock.h>

#include "beowire_socket.h"
#include "port.h"

#define BWK_SEND_COST 512 /* bytes charged for a send beyond its length */

/* Bytes of SO_SNDBUF that count: below it there is room for a message of any length beside what is
 * charged already, in an int. */
#define BWK_SNDBUF_MOST (INT_MAX - BEOWIRE_MSG_MAX - BWK_SEND_COST)

/* Bytes of unread messages that lie in BWK_ACCOUNT_SOCKET. */
#define BWK_QUEUE_FREE 4096

/* What one message each may be fetched ahead of. */
enum bwk_ahead {
	BWK_AHEAD_QUEUE, /* the receive queue */
	BWK_AHEAD_APART, /* what waits apart from it: apart.c */
	BWK_AHEADS,
};

struct bwk_sock {
	struct sock sk;		     /* first */
	struct bwk_port *port;	     /* once bound; stays until release */
	struct bwk_account *account; /* who opened it; a reference. Of an accepted one the
				      * listener's */
	bool counted;		     /* BWK_ACCOUNT_SOCKET is charged */
	const struct bw_protocol *protocol;
	struct bwk_server *server;	/* that speaks the protocol instead; a reference */
	struct bwk_server_port *remote; /* then the port, once bound */
	struct module *module;		/* of the protocol, until a port takes over the reference */
	struct sockaddr_beowire to; /* connect(): where messages go; port 0: nowhere. Written with
					 * the port's lock held, while there is none with `lock` */
	u16 to_port;		    /* of `to`, for who holds neither */
	struct mutex lock;	    /* binding, connecting, options: never over a long wait */
	struct mutex opening;	    /* of servers' sockets: one thread asks for the port */
	struct hlist_node listed;   /* in node.socks */
	bool info_wanted, checksum, pressed, adaptive;
	bool hold; /* BEOWIRE_PRESSURE */
	u32 busy_us, copy_max, eager_max, dead_ms;
	struct mutex reading;	 /* of connections: one reader at a time */
	struct bwk_peer *peer;	 /* of a connection; a reference. See conn.c */
	bool connected;		 /* a connection came about, whatever became of it */
	bool listens;		 /* listen() was called, and stays so */
	bool spread;		 /* its port has what shards it gets; `lock` */
	bool untold;		 /* of an attempt to connect: connect() has not said how it ended */
	struct list_head accept; /* of a listener: connections to be accepted; of one: its place */
	spinlock_t accept_lock;	 /* of a listener: these, and how many there are; inside a port's */
	struct page *bell;	 /* that the program looks at; NULL: it does not */
	void (*ready)(struct sock *sk); /* sk_data_ready without the bell */
	atomic_t sending;		/* bytes charged for sends under way */
	atomic_t told;	     /* of them, those that the socket's server may say are sent */
	unsigned long ahead; /* a bit for each enum bwk_ahead of which one is fetched ahead */
	struct bwk_buf *fetching[BWK_AHEADS]; /* its buffer, until that has ended; port's lock */
	struct delayed_work look;	      /* whether one stands still */
	struct list_head apart;		/* lines of peers: apart.c; the receive queue's lock */
	struct sk_buff *apart_ahead;	/* the first of a line, fetched ahead; the same lock */
	struct sk_buff_head apart_lost; /* lines that have made way; the same lock */
	u64 apart_bytes;		/* of socket buffers in lines; the same lock */
	u64 waited_ns;			/* lately, if adaptive */
	struct bwk_spares spares;
	struct hlist_head bufs; /* buffers that the engine has; port's lock */
	struct rb_root cookies; /* of them, those that bwk_msg_cancel() is to find; port's lock */
	int covered; /* bytes of unread messages that are charged; the receive queue's lock */
	struct list_head done;	/* buffers whose end is to be reported; port's lock */
	struct list_head downs; /* peers likewise */
};

static inline struct bwk_sock *bwk_sk(const struct sock *sk)
{
	return (struct bwk_sock *)sk;
}

/* Is it of a type with connections? */
static inline bool bwk_sock_connects(const struct sock *sk)
{
	return sk->sk_type == SOCK_SEQPACKET || sk->sk_type == SOCK_STREAM;
}

/* Where messages go from now on. Locked as `to` is. */
static inline void bwk_sock_direct(struct bwk_sock *bs, const struct sockaddr_beowire *to)
{
	if (bs->port)
		lockdep_assert_held(&bs->port->lock);
	bs->to = *to;
	WRITE_ONCE(bs->to_port, to->sbw_port);
}

/* Something is to be received, or has ended. The bell may be hung up meanwhile: bell.c. */
static inline void bwk_sock_readable(struct sock *sk)
{
	typeof(sk->sk_data_ready) ready = smp_load_acquire(&sk->sk_data_ready);

	ready(sk);
}

/* Nothing more is received, or sent, or both. Who sees it sees what was queued before. Writers
 * exclude one another: of connections by the port's lock, of other types by sk_lock.slock. */
static inline void bwk_sock_shut(struct sock *sk, int how)
{
	smp_store_release(&sk->sk_shutdown, sk->sk_shutdown | how);
}

/* May another send be charged? `sending`: bytes that are. */
static inline bool bwk_sock_roomy(const struct sock *sk, int sending)
{
	return sending < min_t(int, READ_ONCE(sk->sk_sndbuf), BWK_SNDBUF_MOST);
}

#define BWK_EVENT_AHEAD                                                                            \
	0x80 /* an envelope whose bytes are fetched, or were, into a buffer of ours */

/* What a received message brings along, in its socket buffer. */
struct bwk_cb {
	struct bwk_peer *peer; /* a reference; NULL: none */
	u64 tag, imm;
	u64 key;      /* ENVELOPE: to fetch it by; AHEAD: the buffer's cookie */
	u32 off, len; /* of its bytes in the buffer; ENVELOPE: in the message */
	u8 event;     /* enum beowire_event, or BWK_EVENT_AHEAD */
	u8 code;
	bool apart; /* it was taken out of a line: apart.c */
};

static inline struct bwk_cb *bwk_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct bwk_cb) > sizeof(skb->cb));
	return (struct bwk_cb *)skb->cb;
}

/* sock.c */
/* Defaults of a new socket. The reference to the account goes to it; false: its user holds too
 * much. */
bool bwk_sock_begin(struct bwk_sock *bs, const struct bw_protocol *protocol,
		    struct bwk_account *account);
/* A socket is listed and counted from its beginning on, until it begins to end: then HIDE, while
 * its port is still there. SHOW: any context. */
void bwk_sock_show(struct bwk_sock *bs);
void bwk_sock_hide(struct bwk_sock *bs);
/* The last of a socket that its port no longer knows: what its program held of it. */
void bwk_sock_end(struct sock *sk);
int bwk_sock_init(void);
/* Nothing of the module's start can fail any more: sockets may be opened. */
void bwk_sock_ready(void);
void bwk_sock_exit(void);
/* The socket's port; one with any number is made if there is none. Process context. */
struct bwk_port *bwk_sock_port(struct bwk_sock *bs, const struct bwk_port_ops *ops, void *owner);
/* The port, which the socket has, gets its shards, unless it was. Process context. */
void bwk_sock_spread(struct bwk_sock *bs, const struct bwk_port_ops *ops, void *owner);
int bwk_sock_bind_to(struct bwk_sock *bs, const struct sockaddr_beowire *addr,
		     const struct bwk_port_ops *ops, void *owner);

static inline int bwk_sock_bad(const struct sock *sk, enum bwk_bad kind, int error)
{
	return bwk_bad_call(bwk_node_of(sock_net(sk)), kind, error);
}

/* given.c. An address from a program: 0 or -EINVAL, -EAFNOSUPPORT. */
int bwk_given_addr(const struct sock *sk, const void *addr, int len, struct sockaddr_beowire *out);
/* The same of one that one can send to; else -EADDRNOTAVAIL. */
int bwk_given_target(const struct sock *sk, const void *addr, int len,
		     struct sockaddr_beowire *out);
/* The BEOWIRE_INFO of a send, if there is one. 0 or -EINVAL. */
int bwk_given_info(const struct sock *sk, struct msghdr *m, struct beowire_info *info);

/* sock_wait.c. Wait until `len` more bytes of sends may be under way, and charge them. 0, -EAGAIN,
 * -EINTR ... */
int bwk_sock_charge(struct bwk_sock *bs, size_t len, long *timeout);
/* Wake those who wait for that, if there was no room before, or all is sent. */
void bwk_sock_uncharged(struct bwk_sock *bs, int before, int now);

/* May close() wait for the end of what is sent? Asked in softirq, while setsockopt() may be setting
 * it under the socket's lock. The close() that is to wait comes after that call, and looks at
 * `sending` after the full barrier of bwk_sock_wait() before it sleeps; who asks here has changed
 * `sending` by an atomic operation with a full barrier. So either close() finds nothing under way,
 * or it is seen here that it may wait. */
static inline bool bwk_sock_lingers(const struct sock *sk)
{
	/* as above: an old value is as good */
	return data_race(sock_flag(sk, SOCK_LINGER));
}

/* SO_RCVTIMEO and SO_SNDTIMEO of a call that begins, in jiffies; 0: it does not wait. setsockopt()
 * may be setting them: the call begins before that one or after it. */
static inline long bwk_sock_rcvtimeo(const struct sock *sk, bool nonblock)
{
	/* as above: one word, the old or the new one */
	return data_race(sock_rcvtimeo(sk, nonblock));
}

static inline long bwk_sock_sndtimeo(const struct sock *sk, bool nonblock)
{
	/* as above: one word, the old or the new one */
	return data_race(sock_sndtimeo(sk, nonblock));
}

static inline void bwk_sock_uncharge(struct bwk_sock *bs, u32 charge)
{
	int now = atomic_sub_return(charge, &bs->sending), before = now + (int)charge;

	if (unlikely(!bwk_sock_roomy(&bs->sk, before) || bwk_sock_lingers(&bs->sk)))
		bwk_sock_uncharged(bs, before, now);
}

/* Sleep until `ready(sk)`. 0, -EAGAIN, a signal's errno, or the socket's error. *timeout: jiffies,
 * which become less by those that have passed. */
int bwk_sock_wait(struct sock *sk, bool (*ready)(const struct sock *sk), long *timeout);
/* The same of a receive call: it looks for up to busy_us, which are a part of the timeout, before
 * it sleeps. */
int bwk_sock_wait_busy(struct sock *sk, bool (*ready)(const struct sock *sk), long *timeout);
/* sock_option.c */
int bwk_sock_getsockopt(struct socket *sock, int level, int name, char __user *value,
			int __user *len);
int bwk_sock_setsockopt(struct socket *sock, int level, int name, sockptr_t value,
			unsigned int len);
int bwk_sock_ioctl(struct socket *sock, unsigned int command, unsigned long arg);
/* Of programs of 32 bits; our structures have the same layout there. */
int bwk_sock_compat_ioctl(struct socket *sock, unsigned int command, unsigned long arg);
int bwk_sock_getname(struct socket *sock, struct sockaddr *addr, int peer);
/* The name of a port of this node; its length. */
int bwk_sock_name(struct bwk_node *node, u16 number, u32 inc, struct sockaddr_beowire *out);

/* Sleep until a buffer is done: 0. Else, while it is still under way, -EAGAIN or a signal's errno,
 * as of bwk_sock_wait(); -EBUSY: it yields, and something is queued or waits in a line. */
int bwk_sock_await(struct bwk_sock *bs, const struct bwk_buf *b, long *timeout);
/* Take back by `op` what is awaited. True: it is done; else whoever hears of its end frees it.
 * Port's lock held for STOP_LOCKED. */
bool bwk_sock_stop(struct bwk_port *port, struct bwk_buf *b, struct bw_op *op);
bool bwk_sock_stop_locked(struct bwk_port *port, struct bwk_buf *b, struct bw_op *op);
/* The engine has this buffer from now on. Port's lock held. */
static inline void bwk_sock_lent(struct bwk_port *port, struct bwk_buf *b)
{
	struct bwk_sock *bs = b->owner;

	hlist_add_head(&b->held, bs ? &bs->bufs : &port->bufs);
}

/* It is found by its cookie, if it has one, until it comes back. Port's lock held. */
void bwk_sock_name_buf(struct bwk_sock *bs, struct bwk_buf *b);
/* The one with this cookie, or NULL; of several the oldest. Port's lock held. */
struct bwk_buf *bwk_sock_named(const struct bwk_sock *bs, u64 cookie);
/* A socket goes: its buffers that the engine has are the port's alone, each once `each` is done
 * with it; false: it is to be called again. Port's lock held, which is given away now and then;
 * nobody sends by the socket any more. */
void bwk_sock_disown(struct bwk_sock *bs, bool (*each)(struct bwk_sock *bs, struct bwk_buf *b));
/* A buffer has come back from the engine: told to who waits for it, or freed. Port's lock held. */
void bwk_sock_done(struct bwk_sock *bs, struct bwk_buf *b);

/* queue.c: what has arrived. MESSAGE and PRESS: the port's lock held. MESSAGE: false: it is
 * lost. */
bool bwk_queue_message(struct bwk_sock *bs, struct bwk_peer *peer, const struct bw_event *ev,
		       struct sk_buff *skb, u32 off, bool whole);
void bwk_queue_press(struct bwk_sock *bs, bool on);
/* May more wait? Within SO_RCVBUF; beyond it up to `most` bytes, 0: no more, and to what all
 * sockets together may, of a stranger or not. Any context. */
bool bwk_queue_has_room(const struct sock *sk, u64 most, bool stranger);
/* The socket is charged for what is to wait, and its account. 1: it is beyond SO_RCVBUF, or the
 * account has not much left; -ENOBUFS: that has too little, and the message is not the socket's.
 * Any context. */
int bwk_queue_own(struct sock *sk, struct sk_buff *skb);
/* All beyond so many bytes is charged no more. */
void bwk_queue_uncover(struct bwk_sock *bs, int bytes);
/* The same, if enough is charged for nothing. */
void bwk_queue_spare(struct bwk_sock *bs, int used);
/* After messages were taken. */
void bwk_queue_relieve(struct bwk_sock *bs);
/* The same while something of the queue is fetched ahead. */
bool bwk_queue_ready_ahead(const struct sock *sk);
/* Is there something first that need not be waited for? Any context. */
static inline bool bwk_queue_ready(const struct sock *sk)
{
	return !skb_queue_empty_lockless(&sk->sk_receive_queue) &&
	       (likely(!test_bit(BWK_AHEAD_QUEUE, &bwk_sk(sk)->ahead)) ||
		bwk_queue_ready_ahead(sk));
}

/* What was taken out is put back to be taken again. */
void bwk_queue_put_back(struct bwk_sock *bs, struct sk_buff *skb);
void bwk_queue_free(struct sk_buff *skb);
void bwk_queue_drop_all(struct bwk_sock *bs);
/* A message of this peer is lost, which has to go if its messages are not to be. Port's lock held.
 * False. */
bool bwk_queue_lose(struct bwk_sock *bs, const struct bwk_peer *peer);

/* apart.c: long messages of strangers, and what comes behind them. ADD: port's lock held. False:
 * the message is to be queued, as all others. */
bool bwk_apart_add(struct bwk_sock *bs, struct bwk_peer *peer, struct sk_buff *skb);
/* May it have to wait there? */
static inline bool bwk_apart_may(const struct bwk_sock *bs, const struct bwk_peer *peer,
				 bool announced)
{
	return unlikely(announced || READ_ONCE(peer->lined)) && bs->sk.sk_type == SOCK_RDM &&
	       (READ_ONCE(peer->lined) || !READ_ONCE(bs->info_wanted));
}

/* May one more message of this peer wait there, where so many bytes may? Another peer may have been
 * left for it. Port's lock held. */
bool bwk_apart_has_room(struct bwk_sock *bs, const struct bwk_peer *peer, u64 most);
/* What was lost so goes. Process context. */
void bwk_apart_drop_lost(struct bwk_sock *bs);
/* The first message that has arrived, or if there is none that of a line whose turn it is; cb.apart
 * says which. NULL: neither. It is freed after LEAVE, or goes back. Process context. */
struct sk_buff *bwk_apart_take(struct bwk_sock *bs);
/* It has been dealt with: the next one of its line may follow. */
void bwk_apart_leave(struct bwk_sock *bs, struct sk_buff *skb);
/* It is to be taken again, or queued once it is fetched ahead, if that has begun. */
void bwk_apart_put_back(struct bwk_sock *bs, struct sk_buff *skb);
/* Other threads may wait for what is first now, or for a peer's end. */
void bwk_apart_tell(struct bwk_sock *bs);
/* Is nothing of any other peer there? No lock. */
static inline bool bwk_apart_alone(const struct bwk_sock *bs)
{
	return skb_queue_empty_lockless(&bs->sk.sk_receive_queue) && list_empty(&bs->apart);
}

/* Where nothing is queued, and a line has its turn, its first message is: for a look at it. */
void bwk_apart_show(struct bwk_sock *bs);
/* Is there a message that a call could give, or begin to fetch ahead? Any context. */
bool bwk_apart_ready(struct bwk_sock *bs);
/* One step for who waits apart, while others' messages are taken. Process context. */
void bwk_apart_step(struct bwk_sock *bs);
/* Something that was fetched ahead of a line has ended. Port's lock held. */
void bwk_apart_done(struct bwk_sock *bs, struct bwk_buf *b);
/* What is being fetched ahead of a line, which is an envelope again; NULL: nothing. The receive
 * queue's lock held. */
struct bwk_buf *bwk_apart_forget(struct bwk_sock *bs);
/* Nothing more comes, and nothing is fetched ahead. */
void bwk_apart_drop_all(struct bwk_sock *bs);

/* send.c: one message. `to`, or info.peer, or `peer` says whom to. */
/* What a send is to be. */
struct bwk_send {
	const struct sockaddr_beowire *to; /* NULL: where the socket is connected to */
	struct bwk_peer *peer;
	struct beowire_info info;
	struct bwk_buf *buf, *envelope;
	u16 ep;		     /* BW_EP_* */
	bool nonblock, more; /* more: others follow at once, the last one takes all along */
	bool last;	     /* another one like it has to wait for room */
	bool copied;	     /* never out of the program's own pages */
	long timeout;	     /* jiffies; at first 0 if nonblock */
};

/* As the flags of a call say. */
void bwk_send_begin(struct bwk_send *s, const struct sock *sk, const struct msghdr *m, u16 ep);
/* 0: sent, and its bytes are free unless it is asynchronous; else it is not sent. Process context,
 * sleeps unless nonblock. */
int bwk_send(struct bwk_sock *bs, struct bwk_port *port, struct iov_iter *from, size_t len,
	     struct bwk_send *s);
/* A copy of what cannot be pinned, up to the sysctl memory_max. ERR_PTR(-ENOBUFS, and as
 * bwk_buf_copy()). */
struct bwk_buf *bwk_send_copy(struct bwk_sock *bs, struct iov_iter *from, size_t len);

/* fetch.c: bytes of a long message. */
struct bwk_source {
	u32 handle; /* of the peer */
	u64 key, off;
	bool last;   /* the sender's buffer is free afterwards */
	bool yields; /* what others have sent or announced goes first: -EBUSY */
	bool memory; /* it is registered memory of the peer's */
};

/* Begin to pull b->len bytes into b; *id: for BW_OP_CANCEL_PULL. */
int bwk_fetch(struct bwk_port *port, const struct bwk_source *from, struct bwk_buf *b, u64 *id);
/* Fetch `len` bytes into a program's memory, and wait for them. -EAGAIN, -EBUSY, or a signal's
 * errno: not all have come, and the message is still the sender's. */
int bwk_fetch_now(struct bwk_sock *bs, const struct bwk_source *from, struct iov_iter *to,
		  size_t len, long *timeout);
/* Begin to fetch all of an envelope into memory of ours, and make it BWK_EVENT_AHEAD. -EAGAIN: it
 * is not its turn; -ENOBUFS: it is too long. */
int bwk_fetch_ahead(struct bwk_sock *bs, struct sk_buff *skb);
/* The buffer of what is fetched ahead, or NULL. */
struct bwk_buf *bwk_fetch_found(const struct sk_buff *skb);
/* Wait for its end. 0, or as bwk_fetch_now(); -ESTALE: it stood still and was given up, and is an
 * envelope again. */
int bwk_fetch_await(struct bwk_sock *bs, struct sk_buff *skb, long *timeout);
/* It is an envelope again, to be fetched as if it never had been. The receive queue's lock held. */
void bwk_fetch_renew(struct sk_buff *skb, const struct bwk_buf *b);
/* It has been used up, or given up; its envelope is in no queue any more, or one again. */
void bwk_fetch_taken(struct bwk_sock *bs, struct bwk_buf *b);
/* How that begins, and before a socket leaves its port: nothing of it is fetched any more. */
void bwk_fetch_init(struct bwk_sock *bs);
void bwk_fetch_forget(struct bwk_sock *bs);

/* msg.c */
extern const struct proto_ops bwk_msg_ops;
int bwk_msg_connect(struct socket *sock, bwk_sockaddr *addr, int len, int flags);
int bwk_msg_shutdown(struct socket *sock, int how);
int bwk_msg_pull(struct bwk_sock *bs, const struct beowire_pull *pull);
/* Take back the long send, or end the pull, with this cookie. 0, or -ENOENT: too late. */
int bwk_msg_cancel(struct bwk_sock *bs, u64 cookie);
int bwk_msg_watch(struct bwk_sock *bs, const struct beowire_watch *watch);
int bwk_msg_need(struct bwk_sock *bs, const struct beowire_watch *need);
/* The program wants pressure, or no longer. */
void bwk_msg_pressure(struct bwk_sock *bs, bool on);

/* region.c: the program's answer to BEOWIRE_REGION. 0, -ENOENT: too late. */
int bwk_region_answer(struct bwk_sock *bs, const struct beowire_region *answer);
/* 1 while any of these bytes are being read, else 0. */
int bwk_region_serving(struct bwk_sock *bs, const struct beowire_region *what);

/* bell.c: mmap() */
int bwk_bell_mmap(struct file *file, struct socket *sock, struct vm_area_struct *vma);

/* conn.c */
extern const struct proto_ops bwk_conn_ops;

extern struct proto bwk_proto;

#endif
