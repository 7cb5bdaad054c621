/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ports: opening, numbers, and the way to their end. See port.h. */
#include "port.h"

#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/utsname.h>

#include "arrive.h"
#include "server.h"
#include "shard.h"

#define BWK_PORT_FIRST 1024 /* numbers given out begin here */
#define BWK_LINGER_NS  (60 * BW_S)

/* Each time it runs out is an interrupt: as rare as repair on a local network allows. Whoever waits
 * for an acknowledgement asks for it at once. */
#define BWK_ACK_DELAY (500 * BW_US)

#define BWK_PIECE    64 /* peers, or things of one, that the engine looks at in a call */
#define BWK_END_MOST 64 /* peers, buffers or frames that an end deals with at a time */

static struct workqueue_struct *bwk_port_queue;

int bwk_port_init(void)
{
	bwk_port_queue = alloc_workqueue("beowire", WQ_UNBOUND, 0);
	return bwk_port_queue ? 0 : -ENOMEM;
}

void bwk_port_exit(void)
{
	bwk_buf_exit();
	bwk_port_flush();
	destroy_workqueue(bwk_port_queue);
}

void bwk_port_later(struct bwk_port *port)
{
	bwk_port_hold(port);
	if (!queue_work(bwk_port_queue, &port->work))
		bwk_port_put(port);
}

void bwk_port_hold(struct bwk_port *port)
{
	refcount_inc(&port->refs);
}

static void bwk_port_free(struct work_struct *work)
{
	struct bwk_port *port = container_of(to_rcu_work(work), struct bwk_port, free);

	while (port->grown) {
		void *next = *(void **)port->grown;

		kvfree_sensitive(port->grown, port->secret ? BWK_GROWN_BYTES : 0);
		port->grown = next;
	}
	kvfree_sensitive(port->engine, port->secret);
	bwk_peer_exit(port);
	module_put(port->module);
	bwk_account_uncharge(port->account, port->paid);
	bwk_account_put(port->account);
	kfree(port);
}

void bwk_port_put(struct bwk_port *port)
{
	if (refcount_dec_and_test(&port->refs)) {
		INIT_RCU_WORK(&port->free, bwk_port_free);
		queue_rcu_work(bwk_port_queue, &port->free);
	}
}

struct bwk_port *bwk_port_find(struct bwk_node *node, u16 number)
{
	struct bwk_port *port;

	hash_for_each_possible_rcu(node->ports, port, hash, number)
		if (READ_ONCE(port->own) == number)
			return port;
	return NULL;
}

u16 bwk_port_pick(struct bwk_node *node, u16 wanted)
{
	unsigned long first = BWK_PORT_FIRST, number = wanted;

	if (!wanted) {
		first += get_random_u32() % (BEOWIRE_PORTS - BWK_PORT_FIRST + 1);
		number = find_next_zero_bit(node->numbers, BEOWIRE_PORTS + 1, first);
		if (number > BEOWIRE_PORTS)
			number = find_next_zero_bit(node->numbers, first, BWK_PORT_FIRST);
	}
	return __test_and_set_bit(number, node->numbers) ? 0 : (u16)number;
}

void bwk_port_drop(struct bwk_node *node, u16 number)
{
	__clear_bit(number, node->numbers);
}

/* Into the node's table under its number, or any free one, or that of the one that it is a shard
 * beside. The table has a reference. */
static int bwk_port_claim(struct bwk_port *port, struct bwk_port *beside)
{
	struct bwk_node *node = port->node;
	u16 number;

	spin_lock_bh(&node->ports_lock);
	if (beside)
		bwk_shards_join(port, beside);
	number = beside ? beside->number : bwk_port_pick(node, port->number);
	if (number) {
		port->number = number;
		port->own = beside ? BWK_PORT_SHARED : number;
		hash_add_rcu(node->ports, &port->hash, number);
	}
	spin_unlock_bh(&node->ports_lock);
	return number ? 0 : -EADDRINUSE;
}

static void bwk_port_unhash(struct bwk_port *port)
{
	bool last;

	spin_lock_bh(&port->node->ports_lock);
	hash_del_rcu(&port->hash);
	last = bwk_shards_leave(port);
	if (last)
		bwk_port_drop(port->node, port->number);
	spin_unlock_bh(&port->node->ports_lock);
	if (last)
		bwk_user_free_port(port->account->user);
	bwk_port_put(port);
}

/* Farewells of a closed port that are to be said at `now`, as many as may wait at a time and belong
 * to one visit; when there are more, BW_NEVER if not at all. Lock held. */
static u64 bwk_port_farewell(struct bwk_port *port, u64 now)
{
	u32 left = BWK_END_MOST;
	u64 at;

	while (left && !bwk_out_full(&port->out)) {
		if (port->protocol->next_frame(port->engine, &port->tx, now)) {
			bwk_transmit(port, &port->tx);
			left--;
			continue;
		}
		at = port->protocol->next_deadline(port->engine);
		return at > now ? at : BW_NEVER;
	}
	if (!left) {
		this_cpu_inc(port->node->count->squeezed);
		return now;
	}
	return port->out.stuck ? BW_NEVER : now;
}

/* What is said again comes within a millisecond, for which whoever ends the port waits. */
static void bwk_port_farewell_again(struct bwk_port *port, u64 at)
{
	u64 now;

	while (at != BW_NEVER) {
		now = ktime_get_ns();
		if (now < at)
			usleep_range(div_u64(at - now, 1000) + 1, div_u64(at - now, 1000) + 50);
		else
			cond_resched();
		bwk_port_lock(port);
		at = bwk_port_farewell(port, max(at, now));
		bwk_port_unlock(port);
		cond_resched();
	}
}

static void bwk_port_give_way(struct bwk_port *port) __must_hold(&port->lock)
{
	this_cpu_inc(port->node->count->squeezed);
	if (!port->dead)
		bwk_port_run(port);
	bwk_port_unlock(port);
	cond_resched();
	bwk_port_lock(port);
}

void bwk_port_breathe(struct bwk_port *port, u32 *done) __must_hold(&port->lock)
{
	if (++*done % BWK_END_MOST == 0)
		bwk_port_give_way(port);
}

/* What a dead port has left: nothing is added any more. Lock held. */
static void bwk_port_clear(struct bwk_port *port)
{
	struct bwk_buf *b;
	u32 done = 0;

	while (!hlist_empty(&port->bufs)) {
		b = hlist_entry(port->bufs.first, struct bwk_buf, held);
		hlist_del_init(&b->held);
		if (!b->back)
			bwk_buf_free(b);
		bwk_port_breathe(port, &done);
	}
	bwk_region_drop_all(port, &done);
	bwk_arrive_close(port);
}

/* Close the engine, in pieces: peers may have left much that has not arrived completely. */
static void bwk_port_close(struct bwk_port *port) __must_hold(&port->lock)
{
	if (!bwk_reliable(port->protocol)) {
		port->protocol->close(port->engine, ktime_get_ns());
		return;
	}
	bw_reliable_close_begin(port->engine, ktime_get_ns());
	while (bw_reliable_close_piece(port->engine))
		bwk_port_give_way(port);
}

/* End the engine: farewells, and every buffer back. Nothing happens to the port afterwards. Sleeps
 * for less than a millisecond if there is a peer, and a little longer for thousands. */
static void bwk_port_end(struct bwk_port *port)
{
	u64 at = BW_NEVER;
	u32 done = 0;
	bool gone;

	bwk_port_lock(port);
	gone = port->dead;
	port->dead = true;
	if (!gone) {
		bwk_port_close(port);
		at = bwk_port_farewell(port, ktime_get_ns());
		while (bwk_peer_end_one(port))
			bwk_port_breathe(port, &done);
	}
	bwk_port_unlock(port);
	if (gone)
		return;
	bwk_port_farewell_again(port, at);
	bwk_out_close(port);
	hrtimer_cancel(&port->timer);
	bwk_port_lock(port);
	bwk_port_clear(port);
	bwk_tally_end(port);
	bwk_port_unlock(port);
	bwk_port_unhash(port);
}

static void bwk_port_work(struct work_struct *work)
{
	struct bwk_port *port = container_of(work, struct bwk_port, work);
	bool over, hungry, starved;

	bwk_port_lock(port);
	hungry = port->hungry;
	port->hungry = false; /* if there is no memory now, it will ask again */
	starved = !port->dead && bwk_reliable(port->protocol) && bw_reliable_starved(port->engine);
	bwk_port_unlock(port);
	if (hungry)
		bwk_port_feed_peers(port, starved);
	bwk_port_lock(port);
	over = port->lingering &&
	       (!port->protocol->busy(port->engine) || ktime_get_ns() >= port->linger_until);
	bwk_port_unlock(port);
	if (over)
		bwk_port_end(port);
	bwk_port_put(port);
}

/* To other nodes the two are one port. */
static bool bwk_port_like(const struct bwk_port *port, const struct bwk_port *other)
{
	return port->cluster == other->cluster && port->key_set == other->key_set &&
	       port->seals == other->seals;
}

static int bwk_port_open_engine(struct bwk_port *port, const struct bwk_port_attr *attr)
{
	struct bw_config cfg = {
		.node = port->node->id,
		.incarnation = port->inc,
		.cluster = READ_ONCE(port->node->set.cluster),
		.engine = port->number,
		.rx_budget = attr->rx_budget,
		.features = attr->checksum ? BW_FEATURE_CHECKSUM : 0,
		.dead_ns = attr->dead_ms * BW_MS,
		.ack_delay_ns = BWK_ACK_DELAY,
		.piece = BWK_PIECE,
	};
	const char *name = utsname()->nodename; /* as its program sees it */
	int i, usable = 0, error;
	size_t size;

	rcu_read_lock();
	for (i = 0; i < BWK_IFACES; i++) {
		struct bwk_iface *iface = rcu_dereference(port->node->iface[i]);

		cfg.link_mtu[i] = iface ? bwk_iface_mtu(iface->dev) : BW_FRAME_MIN_MTU;
		usable += !!iface;
	}
	rcu_read_unlock();
	if (!usable)
		return -EADDRNOTAVAIL;
	memcpy_and_pad(cfg.name, sizeof(cfg.name), name, strnlen(name, sizeof(cfg.name)), 0);
	size = port->protocol->size(&cfg);
	if (!bwk_account_charge(port->account, sizeof(*port) + size))
		return -ENOBUFS;
	port->paid = sizeof(*port) + size;
	port->dead_ms = attr->dead_ms;
	port->engine = kvzalloc(size, GFP_KERNEL_ACCOUNT);
	if (!port->engine)
		return -ENOMEM;
	cfg.keyed = bwk_key_get(&port->node->set.key, cfg.key, &port->key_set);
	port->secret = cfg.keyed ? size : 0;
	port->seals = READ_ONCE(port->node->set.encrypt);
	port->cluster = cfg.cluster;
	cfg.features |= port->seals ? BW_FEATURE_ENCRYPT : 0;
	/* Who has a key is not to be heard without one, nor who encrypts in the clear. */
	if (cfg.keyed ? !bwk_reliable(port->protocol) : port->seals)
		error = -EKEYREJECTED;
	else if (attr->beside && !bwk_port_like(port, attr->beside))
		error = -ESTALE;
	else
		error = port->protocol->open(port->engine, &cfg, &bwk_host_ops, port,
					     ktime_get_ns());
	memzero_explicit(&cfg, sizeof(cfg));
	return error;
}

/* The port has a number, and its user one more port, however many shards that has. */
static int bwk_port_enlist(struct bwk_port *port, struct bwk_account *account,
			   struct bwk_port *beside)
{
	int error;

	if (!beside && !bwk_user_take_port(account->user))
		return -ENOBUFS;
	port->account = bwk_account_hold(account);
	error = bwk_port_claim(port, beside);
	if (!error)
		return 0;
	bwk_user_free_port(account->user);
	bwk_account_put(account);
	return error;
}

int bwk_port_open(struct bwk_node *node, const struct bwk_port_attr *attr)
{
	struct bwk_port *port = kzalloc(sizeof(*port), GFP_KERNEL_ACCOUNT);
	int error, i;

	if (!port)
		return -ENOMEM;
	refcount_set(&port->refs, 2); /* the owner's, the table's */
	spin_lock_init(&port->lock);
	INIT_WORK(&port->work, bwk_port_work);
	INIT_LIST_HEAD(&port->regions);
	INIT_LIST_HEAD(&port->read);
	INIT_LIST_HEAD(&port->read_last);
	INIT_LIST_HEAD(&port->read_over);
	port->answered = RB_ROOT_CACHED;
	port->region_expire = BW_NEVER;
	bwk_hrtimer_setup(&port->timer, bwk_port_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	port->timer_at = BW_NEVER;
	for (i = 0; i < BWK_PORT_ROW; i++)
		port->rx_row[i].from.len = ETH_ALEN;
	port->node = node;
	port->protocol = attr->protocol;
	port->ops = attr->ops;
	port->owner = attr->owner;
	port->users = 1;
	port->number = attr->number;
	port->uid = attr->beside ? attr->beside->uid : current_euid();
	port->inc = get_random_u32() | 1;
	port->sharers = 1;
	port->dead = true; /* for frames that come before the engine is open */
	error = bwk_peer_init(port, attr->account)
			?: bwk_port_enlist(port, attr->account, attr->beside);
	if (error) {
		bwk_peer_exit(port);
		kfree(port);
		return error;
	}
	error = bwk_port_open_engine(port, attr);
	if (error) {
		bwk_port_unhash(port);
		bwk_port_put(port);
		return error;
	}
	port->module = attr->module;
	bwk_port_lock(port);
	port->dead = false;
	bwk_tally_begin(port);
	smp_store_release(attr->place, port);
	bwk_port_unlock(port);
	return 0;
}

void bwk_port_join(struct bwk_port *port)
{
	port->users++;
	bwk_port_hold(port);
}

void bwk_port_release(struct bwk_port *port, const void *owner)
{
	bool busy = true;

	bwk_port_lock(port);
	if (port->owner == owner)
		port->owner = NULL;
	if (!--port->users) {
		port->ops = NULL;
		if (bwk_reliable(port->protocol))
			bwk_region_forbid_all(port);
		port->lingering = true;
		port->linger_until = ktime_get_ns() + BWK_LINGER_NS;
		busy = !port->dead && port->protocol->busy(port->engine);
		if (busy)
			bwk_port_run(port);
	}
	bwk_port_unlock(port);
	if (!busy)
		bwk_port_end(port);
	bwk_port_put(port);
}

void bwk_port_end_all(struct bwk_node *node)
{
	struct bwk_port *port;
	int bucket;

	do {
		bool found = false;

		rcu_read_lock();
		hash_for_each_rcu(node->ports, bucket, port, hash) {
			found = refcount_inc_not_zero(&port->refs);
			if (found)
				break;
		}
		rcu_read_unlock();
		if (!found)
			break;
		bwk_port_end(port);
		bwk_port_put(port);
		cond_resched(); /* another thread may be ending it */
	} while (true);
	bwk_port_flush();
}

void bwk_port_flush(void)
{
	flush_workqueue(bwk_port_queue);
	rcu_barrier();
	flush_workqueue(bwk_port_queue);
	bwk_buf_flush();
}
