/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port: one engine of a node with its number, lock and timer. Frames for it are handled in
 * softirq as they arrive, and so are acknowledgements and repair, whatever the program does.
 *
 * One engine for each port instead of one for the whole node: a user's port can neither use up
 * another one's memory nor wait for its lock, and other nodes cannot tell it from an endpoint of
 * user space, so that both speak with one another.
 *
 * A port outlives its socket until its peers have what was sent (`lingering`).
 */
#ifndef BWK_PORT_H
#define BWK_PORT_H

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/siphash.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "beowire_socket.h"
#include "buf.h"
#include "compat.h"
#include "hosts.h"
#include "node.h"
#include "out.h"
#include "protocol.h"
#include "row.h"
#include "table.h"

struct bwk_port;
struct bwk_shards;

/* A peer of a port as sockets know it. Guarded by the port's lock; freed with its last
 * reference. */
struct bwk_peer {
	struct hlist_node by_addr, by_handle, by_identity; /* the last one once it is up */
	refcount_t refs;
	u32 number;	       /* the program's, from 1 */
	u32 handle;	       /* the engine's; 0 once it is down */
	int status;	       /* 0, or why it is down, or is to be */
	u16 versions;	       /* down with BW_DOWN_VERSION: what it speaks; see BEOWIRE_DOWN */
	struct list_head down; /* in sock.downs: its end is to be reported */
	struct sockaddr_beowire addr;
	char name[BW_NAME_MAX + 1]; /* of its host, "" if unknown */
	struct bwk_port *port;
	struct bwk_account *account; /* who is charged for it; a reference */
	struct list_head asks;	     /* its questions that wait, or are answered: region.c; */
	u32 questions;		     /* so many */
	u64 unread;		     /* bytes of answers to these that it has not asked for again */
	u32 unfetched; /* long messages of a closed connection that it has yet to fetch */
	bool in_part;  /* it has ended with messages that were not complete */
	bool told;     /* the program has sent to it, or was told its number, */
	bool known;    /* and has not said since that it needs it no more */
	bool answered; /* it was told that there is no connection: once is enough */
	bool lined;    /* its messages wait apart; written with that queue's lock held */
	struct sk_buff_head line; /* these: apart.c. Locked by its socket's receive queue's lock, */
	struct list_head turn;	  /* as its place in sock.apart, */
	u32 line_bytes;		  /* and its bytes */
	/* connections */
	void *conn;	/* its socket */
	bool ended;	/* it sends nothing more */
	bool end_acked; /* it knows that we send nothing more */
};

/* What the owner of a port is told. All are called with the port's lock held, in any context. */
struct bwk_port_ops {
	/* A message, whose bytes begin at `off` of skb; `whole`: nothing else is in it. The owner
	 * takes a reference of its own if it keeps skb. */
	void (*message)(void *owner, struct bwk_peer *peer, const struct bw_event *ev,
			struct sk_buff *skb, u32 off, bool whole);
	/* A buffer is free, as `status` and `got` in it say; the owner frees it. */
	void (*done)(void *owner, struct bwk_buf *b);
	/* A peer is lost (status). */
	void (*peer_down)(void *owner, struct bwk_peer *peer);
	/* There is a question for the program, which is woken: a peer wants to read its memory.
	 * False: the program takes no questions. May be NULL. */
	bool (*region)(void *owner);
};

#define BWK_PORT_SHARED (BEOWIRE_PORTS + 1) /* a number that no port has: see shard.h */

#define BWK_PORT_ROW	16 /* frames that an engine is given at a time */
#define BWK_GROWN_HEAD	64 /* bytes before each chunk of memory that an engine grew by */
#define BWK_GROWN_BYTES (BW_GROW_BYTES + BWK_GROWN_HEAD)

struct bwk_port {
	struct hlist_node hash; /* in node.ports */
	refcount_t refs;
	spinlock_t lock; /* the engine, and what has no other guard below */
	struct bwk_node *node;
	u16 number;
	u32 own; /* the number, or BWK_PORT_SHARED: others have it as well */
	u32 inc;
	struct bwk_shards __rcu
		*shards;      /* NULL: the number is its alone. Else that is for ever, and */
	u32 shard;	      /* this its place among them, and */
	u32 sharers;	      /* so many take what one port may; else 1 */
	u32 key_set, cluster; /* as of its node when it was opened: which key, */
	const struct bw_protocol *protocol;
	struct module *module; /* of the protocol */
	void *engine;
	const struct bwk_port_ops *ops; /* NULL once the socket is closed */
	void *owner;
	u32 users;   /* sockets */
	u32 dead_ms; /* as its engine knows it */
	kuid_t uid;
	u32 priority;		     /* SO_PRIORITY of the socket that sent last */
	struct bwk_account *account; /* who is charged; a reference */
	u64 paid;		     /* bytes: itself, its engine, what that grew by */
	u64 arriving_bytes;	     /* charged for messages of which a part has come, and */
	u64 arriving_paid;	     /* paid for already: arrive.c */

	struct bw_rx_frame rx_row[BWK_PORT_ROW]; /* their cookies are the socket buffers */
	const struct bw_rx_frame *rx; /* of them, in which events lie that are told now */
	bool rx_used;		      /* a message of it was delivered, or one is made of it */
	bool running;		      /* inside bwk_port_run() */
	bool lingering; /* its socket is closed; it ends when its peers have everything */
	bool dead;
	u64 linger_until;
	u64 now;      /* as read when the lock was taken */
	u64 timer_at; /* when the timer goes off; BW_NEVER: not set */
	struct hrtimer timer;
	struct work_struct work; /* grows the engine, ends the port */
	bool hungry;
	bool crowded; /* the engine was told that there is no more memory */
	struct bw_tx_frame tx;
	u32 checks; /* of payloads in `tx`, that are put off */
	struct bwk_out out;
	struct hlist_head bufs; /* buffers that the engine has, and no socket */
	void *grown;		/* chained through the first word */
	size_t secret;		/* bytes of `engine`, if it has keys in it and in `grown` */
	bool seals;		/* and encrypts */
	u64 grown_bytes;
	/* Of programs' memory that peers read, region.c: questions; those that are answered and
	 * read for; of these, those that nobody reads for any more; and of these, those to whose
	 * pages frames still refer. */
	struct list_head regions, read, read_over, read_last;
	struct rb_root_cached answered; /* those with memory, by its address in the program */
	u32 region_count, region_asks;
	u64 region_ids;
	u64 region_expire; /* the first one of them does; BW_NEVER: none */

	u32 pressing;		/* sockets whose queues are too long */
	u32 peer_next;		/* number, if nobody has it */
	struct bwk_peer *last;	/* found by its address, as the next one mostly is */
	struct bwk_peer *heard; /* the same by its handle */
	struct xarray by_number;
	struct bwk_table by_addr, by_handle, by_identity;
	siphash_key_t key;	/* of their hashes */
	u64 tx_bytes, rx_bytes; /* of frames */
	u64 copied_tx, copied_rx, pinned, tx_busy;
	atomic_long_t memlock_limited; /* counted without the lock */
	bool tallied;		       /* readings of the node's tally ask its engine */
	u64 reading;		       /* the last one that did */
	struct rcu_work free;
};

struct bwk_port_attr {
	const struct bw_protocol *protocol;
	struct module *module; /* a reference goes to the port */
	const struct bwk_port_ops *ops;
	void *owner;
	struct bwk_port **place; /* of the owner: set before he is told anything */
	struct bwk_account *account;
	u16 number;		 /* 0: any that is free */
	struct bwk_port *beside; /* it is a shard of the same number as this one; NULL: not */
	bool checksum;
	u32 dead_ms;
	u32 rx_budget; /* bytes under way to us */
};

/* port.c. Process context. 0, -EADDRINUSE, -EADDRNOTAVAIL (no interface), -ENOMEM, -ENOBUFS (the
 * user has too many, or holds too much), -ESTALE (`beside` has other settings). */
int bwk_port_open(struct bwk_node *node, const struct bwk_port_attr *attr);
/* One more socket uses the port. Lock held. */
void bwk_port_join(struct bwk_port *port);
/* A socket goes; `owner` is told nothing any more. With the last one the port ends, once its peers
 * have what was sent. */
void bwk_port_release(struct bwk_port *port, const void *owner);
void bwk_port_hold(struct bwk_port *port);
void bwk_port_put(struct bwk_port *port);
/* Ends all ports of a node, lingering ones too. */
void bwk_port_end_all(struct bwk_node *node);
void bwk_port_flush(void);
int bwk_port_init(void);
void bwk_port_exit(void);
/* Feed the engine, or end the port, soon and in process context. Lock held. */
void bwk_port_later(struct bwk_port *port);
/* Takes a number that no port has, or 0: `wanted`, or any for 0. DROP: it is free again. The node's
 * ports_lock held. */
u16 bwk_port_pick(struct bwk_node *node, u16 wanted);
void bwk_port_drop(struct bwk_node *node, u16 number);
/* The port that has this number alone. RCU's read lock held. */
struct bwk_port *bwk_port_find(struct bwk_node *node, u16 number);

/* Does this protocol keep a message until its receiver has fetched it, unless it is taken back?
 * Only then may frames refer to a program's own pages, or a message stay with its sender. Others
 * send at once and are done, though a receiver on the same machine holds the very frame. Of
 * engines, too, only this one may be asked what reliable.h declares: the memory of others has
 * another form. */
static inline bool bwk_reliable(const struct bw_protocol *protocol)
{
	return protocol == &bw_reliable;
}

/* Bytes that its engine may take, and the same of what arrives: the setting, of which each shard
 * has its part. */
static inline u64 bwk_port_memory_max(const struct bwk_port *port)
{
	return READ_ONCE(port->node->set.memory_max) / READ_ONCE(port->sharers);
}

/* A function of the port's protocol. The one that nearly all ports have lies in the same unit
 * (unit.c), so that the compiler sees which function that is, and what it does. */
#define bwk_engine(port, function, ...)                                                            \
	(likely(bwk_reliable((port)->protocol))                                                    \
		 ? bw_reliable.function((port)->engine, ##__VA_ARGS__)                             \
		 : (port)->protocol->function((port)->engine, ##__VA_ARGS__))

/* out.c: frames of the list leave. */
/* Sends what waits, or lets another one do so. The port's lock is held, softirqs are off; the lock
 * is given back. */
void bwk_out_send(struct bwk_port *port) __releases(&port->lock);
/* The same; softirqs are on again. */
void bwk_out_send_bh(struct bwk_port *port) __releases(&port->lock);

/* With the lock comes the time that everything done under it has. */
static inline void bwk_port_lock(struct bwk_port *port)
{
	spin_lock_bh(&port->lock);
	port->now = ktime_get_ns();
}

/* Frames that were added meanwhile leave. */
static inline void bwk_port_unlock(struct bwk_port *port)
{
	if (port->out.first)
		bwk_out_send_bh(port);
	else
		spin_unlock_bh(&port->lock);
}

/* By who does much under the lock, for each piece of it: now and then the lock is given away for a
 * moment, and the processor to who wants it. Process context. */
void bwk_port_breathe(struct bwk_port *port, u32 *done) __must_hold(&port->lock);

/* host.c: the rest with the port's lock held */
extern const struct bw_host_ops bwk_host_ops;
/* Submit an operation; -EAGAIN: bwk_port_feed() without the lock, and try again. */
int bwk_port_submit(struct bwk_port *port, struct bw_op *op);
/* As bwk_port_submit(), for an operation that ends as many pulls as a peer may have under way: the
 * lock is given away now and then, as by bwk_port_breathe(). */
int bwk_port_submit_breathing(struct bwk_port *port, struct bw_op *op, u32 *done)
	__must_hold(&port->lock);
/* A peer's long message is needed no longer: its buffer is free. As bwk_port_submit(). */
int bwk_port_give_up(struct bwk_port *port, u32 handle, u64 key);
/* Deliver events, as many as belong to a visit: who has gone makes room with the last one of what
 * is left behind. False: there were none. */
bool bwk_port_hear(struct bwk_port *port);
/* Make frames, deliver events, and set the timer. */
void bwk_port_run(struct bwk_port *port);
/* The timer goes off at `deadline`, or earlier. */
void bwk_port_timer_set(struct bwk_port *port, u64 deadline);
#define BWK_RETRY_NS (50 * BW_US) /* until the next try when an interface had no room */
/* The same within a millisecond, unless somebody does it before. */
void bwk_port_run_soon(struct bwk_port *port);
/* Frames have come, chained by `next`. Their references are used up. */
void bwk_port_receive(struct bwk_port *port, struct sk_buff *skb, const struct bwk_iface *iface);
/* The last frame that referred to a buffer is gone, after the engine was done with it. Process
 * context; uses up the buffer's reference to the port. */
void bwk_port_back(struct bwk_port *port, struct bwk_buf *b);
enum hrtimer_restart bwk_port_timer(struct hrtimer *timer);

/* grow.c: more memory for the engine, for what its program asks; where there is none, peers whom
 * nobody needs go, in pieces. Process context, lock not held. 0: try again; -ENOMEM, -ENOBUFS (its
 * limit). */
int bwk_port_feed(struct bwk_port *port);
/* The same for what peers send, who do not get all unless what the program sends is `starved`. */
int bwk_port_feed_peers(struct bwk_port *port, bool starved);

/* region.c: all with the port's lock held. FIND: 0 and the buffer, -EAGAIN: the program is
 * asked. */
int bwk_region_find(struct bwk_port *port, u32 handle, u64 key, u64 off, u64 n, u64 *buf);
/* What is neither read nor waited for any more is let go, of what was read at most so much. True:
 * there may be more. Cheap if there is none. */
bool bwk_region_collect(struct bwk_port *port, u32 most);
/* What was found in this buffer is read by its peer no longer. */
void bwk_region_served(struct bwk_port *port, struct bwk_buf *b);
/* A peer is lost: its questions are answered to nobody. */
void bwk_region_leave(struct bwk_port *port, struct bwk_peer *peer);
/* The lock is given away now and then, as by bwk_port_breathe(). */
void bwk_region_drop_all(struct bwk_port *port, u32 *done);
void bwk_region_forbid_all(struct bwk_port *port) __must_hold(&port->lock);
/* No frame refers to this buffer any more. False: it is no region's. */
bool bwk_region_back(struct bwk_port *port, struct bwk_buf *b);
/* A question to the program, if there is one, and who asks. */
bool bwk_region_take(struct bwk_port *port, struct beowire_info *info,
		     struct sockaddr_beowire *from);

/* peer.c. INIT: 0 or -ENOMEM; sleeps. */
int bwk_peer_init(struct bwk_port *port, struct bwk_account *account);
void bwk_peer_exit(struct bwk_port *port);
struct bwk_peer *bwk_peer_by_handle(struct bwk_port *port, u32 handle);
/* Is there contact with this node, port and incarnation? */
bool bwk_peer_is_up(struct bwk_port *port, const struct sockaddr_beowire *who);
struct bwk_peer *bwk_peer_by_number(struct bwk_port *port, u32 number);
/* Does the address mean this peer, which is there? Did it mean this one, which may have gone? */
bool bwk_peer_matches(const struct bwk_peer *peer, const struct sockaddr_beowire *addr);
bool bwk_peer_was_at(const struct bwk_peer *peer, const struct sockaddr_beowire *addr);
/* The peer at this address, met for the first time if need be. ERR_PTR(-EHOSTUNREACH: no such
 * interface, -EAGAIN: as of bwk_port_submit(), -ENOMEM, -ENOBUFS: the user holds too much). */
struct bwk_peer *bwk_peer_find(struct bwk_port *port, const struct sockaddr_beowire *addr);
/* Does anybody need it, if nothing is under way between the two? Else it may go for others. */
bool bwk_peer_needed(struct bwk_port *port, u32 handle);
/* The program was told its number. Any context; the caller has a reference. */
static inline void bwk_peer_tell(struct bwk_peer *peer)
{
	if (READ_ONCE(peer->known))
		return;
	WRITE_ONCE(peer->told, true);
	WRITE_ONCE(peer->known, true);
}

/* Is the program neither connected to it, nor needs it? What such peers make it hold leaves room
 * for others. Any context. */
static inline bool bwk_peer_is_stranger(const struct bwk_peer *peer)
{
	return !READ_ONCE(peer->known) && !peer->conn;
}

/* Forget a peer: nothing more is to be said to it, and it is told so. */
void bwk_peer_leave(struct bwk_port *port, const struct bwk_peer *peer);
void bwk_peer_event(struct bwk_port *port, const struct bw_event *ev);
void bwk_peer_put(struct bwk_peer *peer);
/* Any peer is forgotten; false: there is none left. */
bool bwk_peer_end_one(struct bwk_port *port);

/* tx.c: the frame is added to those that leave, or lost. Lock held. */
void bwk_transmit(struct bwk_port *port, struct bw_tx_frame *f);
/* Is the check of so many bytes of this buffer put off? */
bool bwk_tx_puts_off(const struct bwk_buf *b, u32 n);
/* An empty frame with room for what the device puts before and behind it. KEPT: its receiver may
 * keep it. NULL. */
struct sk_buff *bwk_tx_new(const struct net_device *dev, u32 bytes, bool kept);
/* Its Ethernet header lies before its data from now on. */
void bwk_tx_address(struct sk_buff *skb, struct net_device *dev, const u8 *to, u32 port);
void bwk_tx_finish_long(struct sk_buff *skb);
/* Frames, chained by `next`, that are not finished are lost; may be NULL. */
void bwk_tx_drop(struct sk_buff *list);

/* Copies and checks that were put off are made. Lock not held. */
static inline void bwk_tx_finish(struct sk_buff *skb)
{
	if (unlikely(bwk_tx_cb(skb)->copy || bwk_tx_cb(skb)->head))
		bwk_tx_finish_long(skb);
}

/* leave.c: frames of a port, chained by `next`, leave by their interfaces; lock not held, softirqs
 * off. What finds no room now, and all behind it, is returned. */
struct sk_buff *bwk_leave(const struct bwk_node *node, struct sk_buff *list);
/* A frame as it is: its header, and n bytes that follow. Process context. 0, -EBUSY, -ENODEV (no
 * such interface in use), -EMSGSIZE, -ENETDOWN. */
int bwk_transmit_bytes(struct bwk_node *node, u32 ifindex, const u8 *to, const struct bw_hdr *hdr,
		       const void *bytes, u32 n);
/* Refuse a frame for a port that there is not. */
void bwk_transmit_refusal(struct bwk_iface *iface, struct sk_buff *refused);

#endif
