/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protocol servers [A2]: processes that speak a protocol for sockets of others, see
 * beowire_server.h. server.c is their device, server_ring.h the memory that is shared with them,
 * server_turn.c what they ask for, server_sock.c the sockets. Nothing here trusts a server: what it
 * writes is copied once, then checked.
 */
#ifndef BWK_SERVER_H
#define BWK_SERVER_H

#include <linux/xarray.h>

#include "beowire_protocol.h"
#include "beowire_server.h"
#include "node.h"
#include "server_ring.h"
#include "sock.h"

/* Between two processes; what is in no other comment is guarded by `lock`. */
struct bwk_server {
	refcount_t refs; /* of the device's file, sockets and ports */
	struct rcu_head rcu;
	struct bwk_node *node;
	u32 number;
	char name[16];
	kuid_t uid;
	spinlock_t lock; /* rings, `ports`, and what they are told */
	bool dead;
	struct xarray ports; /* struct bwk_server_port by id */
	u32 next_id;
	u32 count;		  /* of ports */
	struct list_head closing; /* ports whose CLOSE found no room */
	struct mutex turn;	  /* one turn at a time: the rings out */
	wait_queue_head_t wait;
	struct bwk_ring ring[BEOWIRE_RINGS];
	bool starved; /* somebody waits for room in REQUESTS */
	bool untold;  /* a port's PRESSED found no room; `lock` */
	void *area;
	u64 area_bytes;
	const struct cred *locker; /* whose user has the area among his locked memory */
	/* Words, as others read them meanwhile. */
	unsigned long frames_in, dropped;  /* FRAMES_IN's lock */
	unsigned long frames_out, refused; /* `turn` */
};

#define BWK_SERVER_OPENING 1

/* A port of a server: a number on the node, while its socket lives and until the server is done. */
struct bwk_server_port {
	struct hlist_node hash; /* in node.server_ports */
	struct list_head closing;
	refcount_t refs; /* the table's, the socket's */
	struct rcu_head rcu;
	struct bwk_server *server;
	struct bwk_account *account; /* whose port it is; a reference */
	struct sock *sk;	     /* NULL once closed */
	u32 id, inc;
	u16 number;
	bool closed; /* CLOSE was asked for */
	int status;  /* BWK_SERVER_OPENING, 0, or why it could not be opened */
	u32 limit;   /* bytes of the longest message */
	bool keep;   /* BEOWIRE_OPENED_KEEP */
	/* more is unread than SO_RCVBUF; and what the server knows of that; server's lock */
	bool pressed, told;
};

/* server.c */
int bwk_server_init(void);
void bwk_server_exit(void);
/* The server of this number with a reference, or NULL. Process context. */
struct bwk_server *bwk_server_get(struct bwk_node *node, int number);
void bwk_server_put(struct bwk_server *server);
void bwk_server_wake(struct bwk_server *server);
/* A frame for a port of a server: true, and its reference is used up. RCU's read lock held. */
bool bwk_server_frame(const struct bwk_iface *iface, struct sk_buff *skb, u16 number);
/* The port with this number. RCU's read lock held, or the node's ports_lock. */
struct bwk_server_port *bwk_server_find(struct bwk_node *node, u16 number);

/* server_turn.c: do what is in the rings out. 0, -EPROTO, -EBUSY: an interface has no room now. */
int bwk_server_turn(struct bwk_server *server);

/* server_sock.c */
extern const struct proto_ops bwk_server_sock_ops;
/* Tell the server something in REQUESTS. 0, -EAGAIN (no room), -EPIPE (it is gone). */
int bwk_server_request(struct bwk_server *server, u16 type, u32 id,
		       const struct sockaddr_beowire *addr, const void *bytes, u32 n);
/* A message for a socket, copied. */
void bwk_server_sock_deliver(struct bwk_server_port *port, struct sock *sk,
			     const struct sockaddr_beowire *from, const void *bytes, u32 n);
/* Tell the server of pressure, if it does not know. The server's lock held. */
void bwk_server_port_tell(struct bwk_server_port *port);
/* The server is gone. */
void bwk_server_sock_reset(struct sock *sk);
/* So many bytes of sends are no longer the server's to say of that they are done. False: it was
 * told of fewer. */
bool bwk_server_untell(struct bwk_sock *bs, u32 charge);
void bwk_server_port_put(struct bwk_server_port *port);
/* Out of the tables; their reference is put. The server's lock held. */
void bwk_server_port_forget(struct bwk_server_port *port);

#endif
