/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The peers of a port: numbered for programs, found by address and by the engine's handle. */
#include <linux/etherdevice.h>
#include <linux/hash.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "port.h"

/* Charged for a peer: what describes it, and nodes of the index of numbers, of which two may be
 * there for it alone. */
#define BWK_PEER_BYTES (sizeof(struct bwk_peer) + 2 * sizeof(struct xa_node))

/* Addresses and identities are what strangers say. */
static u32 bwk_peer_addr_hash(const struct bwk_port *port, const struct sockaddr_beowire *addr)
{
	u64 who = ether_addr_to_u64(addr->sbw_mac) << 16 | addr->sbw_port;

	return (u32)siphash_1u64(who, &port->key);
}

static u32 bwk_peer_identity_hash(const struct bwk_port *port, const struct sockaddr_beowire *addr)
{
	return (u32)siphash_2u64(addr->sbw_node, (u64)addr->sbw_inc << 16 | addr->sbw_port,
				 &port->key);
}

/* Handles are our engine's. */
static inline u32 bwk_peer_handle_hash(u32 handle)
{
	return hash_32(handle, 32);
}

static u32 bwk_peer_hash_by_addr(const struct hlist_node *node, const void *port)
{
	return bwk_peer_addr_hash(port, &hlist_entry(node, struct bwk_peer, by_addr)->addr);
}

static u32 bwk_peer_hash_by_identity(const struct hlist_node *node, const void *port)
{
	return bwk_peer_identity_hash(port, &hlist_entry(node, struct bwk_peer, by_identity)->addr);
}

static u32 bwk_peer_hash_by_handle(const struct hlist_node *node, const void *port)
{
	return bwk_peer_handle_hash(hlist_entry(node, struct bwk_peer, by_handle)->handle);
}

int bwk_peer_init(struct bwk_port *port, struct bwk_account *account)
{
	get_random_bytes(&port->key, sizeof(port->key));
	xa_init_flags(&port->by_number, XA_FLAGS_LOCK_BH | XA_FLAGS_ALLOC1);
	if (!bwk_table_init(&port->by_addr, account) &&
	    !bwk_table_init(&port->by_handle, account) &&
	    !bwk_table_init(&port->by_identity, account))
		return 0;
	return -ENOMEM; /* EXIT frees what there is */
}

void bwk_peer_exit(struct bwk_port *port)
{
	bwk_table_free(&port->by_addr);
	bwk_table_free(&port->by_handle);
	bwk_table_free(&port->by_identity);
}

void bwk_peer_put(struct bwk_peer *peer)
{
	if (!refcount_dec_and_test(&peer->refs))
		return;
	bwk_account_give(peer->account, BWK_PEER_BYTES);
	bwk_account_put(peer->account);
	kfree(peer);
}

struct bwk_peer *bwk_peer_by_handle(struct bwk_port *port, u32 handle)
{
	struct bwk_peer *peer = port->heard;

	if (likely(peer && peer->handle == handle))
		return peer;
	hlist_for_each_entry(peer, bwk_table_slot(&port->by_handle, bwk_peer_handle_hash(handle)),
			     by_handle) {
		if (peer->handle != handle)
			continue;
		port->heard = peer;
		return peer;
	}
	return NULL;
}

struct bwk_peer *bwk_peer_by_number(struct bwk_port *port, u32 number)
{
	return xa_load(&port->by_number, number);
}

bool bwk_peer_is_up(struct bwk_port *port, const struct sockaddr_beowire *who)
{
	u32 hash = bwk_peer_identity_hash(port, who);
	const struct bwk_peer *peer;

	hlist_for_each_entry(peer, bwk_table_slot(&port->by_identity, hash), by_identity)
		if (peer->addr.sbw_node == who->sbw_node && peer->addr.sbw_port == who->sbw_port &&
		    peer->addr.sbw_inc == who->sbw_inc)
			return true;
	return false;
}

/* For one more peer. */
static bool bwk_peer_tables_ready(struct bwk_port *port)
{
	return bwk_table_ready(&port->by_addr, bwk_peer_hash_by_addr, port) &&
	       bwk_table_ready(&port->by_handle, bwk_peer_hash_by_handle, port) &&
	       bwk_table_ready(&port->by_identity, bwk_peer_hash_by_identity, port);
}

/* ERR_PTR(-ENOMEM, -ENOBUFS). */
static struct bwk_peer *bwk_peer_new(struct bwk_port *port, const struct sockaddr_beowire *addr,
				     u32 handle)
{
	struct bwk_peer *peer;

	/* Frames make them, too. */
	if (!bwk_peer_tables_ready(port) || !bwk_account_take(port->account, BWK_PEER_BYTES))
		return ERR_PTR(-ENOBUFS);
	peer = kzalloc(sizeof(*peer), GFP_ATOMIC);
	/* Programs are told the number as an int. It comes again once all others were given. */
	if (!peer || xa_alloc_cyclic(&port->by_number, &peer->number, peer, XA_LIMIT(1, INT_MAX),
				     &port->peer_next, GFP_ATOMIC) < 0) {
		bwk_account_give(port->account, BWK_PEER_BYTES);
		kfree(peer);
		return ERR_PTR(-ENOMEM);
	}
	peer->account =
		bwk_account_hold(port->account); /* what refers to a peer may outlive the port */
	refcount_set(&peer->refs, 1);
	INIT_LIST_HEAD(&peer->down);
	INIT_LIST_HEAD(&peer->turn);
	INIT_LIST_HEAD(&peer->asks);
	__skb_queue_head_init(&peer->line);
	peer->handle = handle;
	peer->port = port;
	peer->addr = *addr;
	peer->addr.sbw_family = bwk_family;
	bwk_table_add(&port->by_addr, &peer->by_addr, bwk_peer_addr_hash(port, addr));
	bwk_table_add(&port->by_handle, &peer->by_handle, bwk_peer_handle_hash(handle));
	return peer;
}

static __always_inline bool bwk_peer_at(const struct bwk_peer *peer,
					const struct sockaddr_beowire *addr)
{
	return peer->addr.sbw_port == addr->sbw_port &&
	       ether_addr_equal(peer->addr.sbw_mac, addr->sbw_mac) &&
	       (!addr->sbw_inc || !peer->addr.sbw_inc || peer->addr.sbw_inc == addr->sbw_inc) &&
	       (!addr->sbw_ifindex || peer->addr.sbw_ifindex == addr->sbw_ifindex);
}

bool bwk_peer_matches(const struct bwk_peer *peer, const struct sockaddr_beowire *addr)
{
	return peer->handle && bwk_peer_at(peer, addr);
}

bool bwk_peer_was_at(const struct bwk_peer *peer, const struct sockaddr_beowire *addr)
{
	return bwk_peer_at(peer, addr);
}

/* First contact. */
static void bwk_peer_disconnect(struct bwk_port *port, u32 handle)
{
	struct bw_op op = {.type = BW_OP_DISCONNECT, .peer = handle};

	bwk_port_submit(port, &op);
}

static noinline struct bwk_peer *bwk_peer_meet(struct bwk_port *port,
					       const struct sockaddr_beowire *addr)
{
	struct bw_op op = {.type = BW_OP_CONNECT};
	struct sockaddr_beowire full = *addr;
	struct bwk_iface *iface;
	struct bwk_peer *peer;
	int error;

	if (!addr->sbw_port) /* connect() meanwhile: nowhere */
		return ERR_PTR(-EDESTADDRREQ);
	rcu_read_lock();
	iface = bwk_iface_find(port->node, addr->sbw_ifindex);
	if (iface) {
		full.sbw_ifindex = iface->dev->ifindex;
		op.connect.path[0].link = iface->link;
	}
	rcu_read_unlock();
	if (!iface)
		return ERR_PTR(-EHOSTUNREACH);
	op.connect.node = addr->sbw_node;
	op.connect.engine = addr->sbw_port;
	op.connect.inc = addr->sbw_inc;
	op.connect.paths = 1;
	op.connect.path[0].len = ETH_ALEN;
	ether_addr_copy(op.connect.path[0].bytes, addr->sbw_mac);
	error = bwk_port_submit(port, &op);
	/* The place of who has gone for this one is taken before others see it. */
	if (error == -EAGAIN && port->crowded && bwk_port_hear(port) &&
	    !bw_reliable_untold(port->engine))
		error = bwk_port_submit(port, &op);
	if (error)
		return ERR_PTR(error);
	peer = bwk_peer_by_handle(port, op.peer);
	if (!peer)
		peer = bwk_peer_new(port, &full, op.peer);
	if (IS_ERR(peer))
		bwk_peer_disconnect(port, op.peer);
	else
		bwk_peer_tell(peer);
	return peer;
}

struct bwk_peer *bwk_peer_find(struct bwk_port *port, const struct sockaddr_beowire *addr)
{
	struct bwk_peer *peer;

	if (port->last && bwk_peer_matches(port->last, addr))
		return port->last;
	hlist_for_each_entry(peer, bwk_table_slot(&port->by_addr, bwk_peer_addr_hash(port, addr)),
			     by_addr) {
		if (!bwk_peer_matches(peer, addr))
			continue;
		port->last = peer;
		bwk_peer_tell(peer);
		return peer;
	}
	return bwk_peer_meet(port, addr);
}

/* A connection, what the program has not taken, and whom it knows. Who has told it a number lets go
 * of its reference only then. */
bool bwk_peer_needed(struct bwk_port *port, u32 handle)
{
	const struct bwk_peer *peer = bwk_peer_by_handle(port, handle);

	if (!peer || peer->conn || refcount_read(&peer->refs) > 1)
		return true;
	smp_acquire__after_ctrl_dep();
	return READ_ONCE(peer->known);
}

void bwk_peer_leave(struct bwk_port *port, const struct bwk_peer *peer)
{
	if (peer->handle)
		bwk_peer_disconnect(port, peer->handle);
}

static void bwk_peer_unhash(struct bwk_peer *peer)
{
	struct bwk_port *port = peer->port;

	xa_erase(&port->by_number, peer->number);
	bwk_table_del(&port->by_addr, &peer->by_addr);
	bwk_table_del(&port->by_handle, &peer->by_handle);
	bwk_table_del(&port->by_identity, &peer->by_identity);
	if (port->last == peer)
		port->last = NULL;
	if (port->heard == peer)
		port->heard = NULL;
	WRITE_ONCE(peer->handle, 0); /* readers of what has arrived do not lock */
}

static void bwk_peer_came(struct bwk_port *port, const struct bw_event *ev)
{
	struct bwk_peer *peer = bwk_peer_by_handle(port, ev->peer);
	struct sockaddr_beowire addr = {.sbw_port = ev->engine};
	struct bwk_iface *iface;

	if (!peer) {
		rcu_read_lock();
		iface = rcu_dereference(port->node->iface[ev->from.link % BWK_IFACES]);
		addr.sbw_ifindex = iface ? iface->dev->ifindex : 0;
		rcu_read_unlock();
		ether_addr_copy(addr.sbw_mac, ev->from.bytes);
		peer = bwk_peer_new(port, &addr, ev->peer);
	}
	if (IS_ERR(peer)) {
		this_cpu_inc(port->node->count->peers_refused);
		bwk_peer_disconnect(port, ev->peer);
		return;
	}
	memcpy(peer->name, ev->name, sizeof(peer->name));
	bwk_table_del(&port->by_identity, &peer->by_identity);
	peer->addr.sbw_node = ev->node;
	peer->addr.sbw_inc = ev->inc;
	bwk_table_add(&port->by_identity, &peer->by_identity,
		      bwk_peer_identity_hash(port, &peer->addr));
}

static void bwk_peer_went(struct bwk_port *port, struct bwk_peer *peer, int status)
{
	if (!peer->status)
		peer->status = status;
	if (status == BW_DOWN_KEY)
		bwk_tell_key(port->node, peer);
	if (status == BW_DOWN_ENCRYPT)
		bwk_tell_encrypts(port->node, peer);
	if (peer->in_part && status == BW_DOWN_TIMEOUT)
		this_cpu_inc(port->node->count->arriving_expired);
	bwk_peer_unhash(peer);
	if (peer->questions)
		bwk_region_leave(port, peer);
	if (port->ops)
		port->ops->peer_down(port->owner, peer);
	bwk_peer_put(peer);
}

void bwk_peer_event(struct bwk_port *port, const struct bw_event *ev)
{
	struct bwk_peer *peer;

	if (ev->type == BW_EV_PEER_UP) {
		bwk_peer_came(port, ev);
	} else if (ev->type == BW_EV_PEER_DOWN) {
		peer = bwk_peer_by_handle(port, ev->peer);
		if (peer && ev->name[0])
			memcpy(peer->name, ev->name, sizeof(peer->name));
		if (peer && ev->status == BW_DOWN_VERSION) {
			peer->versions = ev->version_min | ev->version_max << 8;
			bwk_tell_version(port->node, peer, ev);
		}
		if (peer)
			bwk_peer_went(port, peer, ev->status);
	}
}

bool bwk_peer_end_one(struct bwk_port *port)
{
	unsigned long number = 0;
	struct bwk_peer *peer = xa_find(&port->by_number, &number, ULONG_MAX, XA_PRESENT);

	if (peer)
		bwk_peer_went(port, peer, -ESHUTDOWN);
	return peer;
}
