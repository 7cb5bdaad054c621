/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See port_world.h. */
#include "port_world.h"

#include <stdlib.h>

struct port_world world;

struct port_side *port_other(const struct port_side *s)
{
	return &world.side[s == &world.side[US] ? THEM : US];
}

static void locked(const struct bwk_port *port)
{
	if (!port->lock.held)
		fuzz_bad("the port's lock is not held");
}

uint8_t port_byte(uint64_t seed, uint64_t i)
{
	return (uint8_t)(seed * 31 + i * 7 + (i >> 8));
}

/* ---- what an owner is told ---- */

static void read_kept(struct port_side *s, struct port_kept *k)
{
	static uint8_t bytes[BW_LONG_LIMIT];
	uint32_t i;

	if (k->len > sizeof(bytes) || skb_copy_bits(k->skb, k->off, bytes, k->len))
		fuzz_bad("a message that does not lie in its socket buffer");
	for (i = 0; world.plain && i < k->len; i++)
		if (bytes[i] != port_byte(k->tag, i))
			fuzz_bad("a message of other bytes than were sent");
	k->skb->next = k->skb->prev = NULL;
	fake_bh++;
	napi_consume_skb(k->skb, 1);
	fake_bh--;
}

void port_read(struct port_side *s, uint32_t n)
{
	uint32_t i;

	if (n > s->kepts)
		n = s->kepts;
	for (i = 0; i < n; i++)
		read_kept(s, &s->kept[i]);
	s->kepts -= n;
	memmove(s->kept, s->kept + n, s->kepts * sizeof(*s->kept));
}

static void check_sent(struct port_side *s, const struct bw_event *ev)
{
	const struct port_side *from = port_other(s);

	if (ev->tag >= from->sent || ev->len != from->length[ev->tag])
		fuzz_bad("a message that was not sent");
	if (s->got[ev->tag] || ev->tag < s->next)
		fuzz_bad("a message twice, or out of order");
	s->got[ev->tag] = true;
	s->next = (uint32_t)ev->tag + 1;
}

static void message(void *owner, struct bwk_peer *peer, const struct bw_event *ev,
		    struct sk_buff *skb, u32 off, bool whole)
{
	struct port_side *s = owner;
	struct port_kept *k;

	locked(s->port);
	if (peer->port != s->port || !peer->handle)
		fuzz_bad("a message of a peer that is not there");
	if (!skb && !ev->len)
		return;
	if (off > skb->len || ev->len > skb->len - off)
		fuzz_bad("a message beyond the end of its socket buffer");
	if (world.plain)
		check_sent(s, ev);
	if (s->kepts == PORT_KEPT)
		port_read(s, PORT_KEPT / 2);
	skb = whole ? skb_get(skb) : skb_clone(skb, GFP_ATOMIC);
	if (!skb) {
		s->lost = true;
		return;
	}
	/* It is the owner's, who may put it into a queue. */
	memset(skb->cb, 0xEE, sizeof(skb->cb));
	skb->next = skb->prev = (struct sk_buff *)8;
	k = &s->kept[s->kepts++];
	*k = (struct port_kept){skb, off, (uint32_t)ev->len, ev->tag};
	if (!whole || skb_shared(skb) || (k->tag & 3))
		return;
	read_kept(s, k); /* at once */
	s->kepts--;
}

static void check_pulled(const struct bwk_buf *b)
{
	uint8_t *bytes = malloc(b->len + 1);
	uint64_t i;

	if (b->len)
		bwk_buf_read(b, 0, bytes, (u32)b->len);
	for (i = 0; i < b->len; i++)
		if (bytes[i] != port_byte(b->cookie, i))
			fuzz_bad("other bytes were pulled than are there");
	free(bytes);
}

static void done(void *owner, struct bwk_buf *b)
{
	struct port_side *s = owner;
	uint32_t i;

	locked(s->port);
	if (b->use == BWK_BUF_PULL && !b->status && b->got != b->len)
		fuzz_bad("a pull that has ended without all");
	if (world.plain && b->use == BWK_BUF_PULL && !b->status)
		check_pulled(b);
	for (i = 0; i < PORT_NAMES; i++)
		if (s->region[i].b == b)
			s->region[i].b = NULL;
	bwk_buf_free(b);
}

static void peer_down(void *owner, struct bwk_peer *peer)
{
	struct port_side *s = owner;

	locked(s->port);
	if (!peer->status || peer->handle)
		fuzz_bad("a peer that is not down");
	s->downs++;
}

static bool region(void *owner)
{
	struct port_side *s = owner;

	locked(s->port);
	return !(s == &world.side[US] && world.ignores);
}

static const struct bwk_port_ops port_ops = {
	.message = message, .done = done, .peer_down = peer_down, .region = region};

/* ---- beginning and end ---- */

static void open_port(struct port_side *s, uint16_t number)
{
	struct bwk_port_attr attr = {.protocol = &bw_reliable,
				     .ops = &port_ops,
				     .owner = s,
				     .place = &s->port,
				     .account = &s->account,
				     .number = number,
				     .checksum = true,
				     .dead_ms = 60000,
				     .rx_budget = 1 << 20};

	if (bwk_port_open(&s->node, &attr))
		fuzz_bad("no port");
	s->answers.port = s->port;
	s->answers.account = &s->account;
}

static struct net_device *peer_dev(struct net_device *dev)
{
	return NULL;
}

static void open_side(struct port_side *s, uint16_t number)
{
	/* Ours is as a veth is, to which frames go as copies of a program's pages. */
	static const struct net_device_ops veth = {.ndo_get_peer_dev = peer_dev}, plain;

	s->account.user = &s->user;
	s->account.sk.refs = 1;
	s->limit = UINT64_MAX;
	s->node.net = &s->net;
	s->node.id = number;
	s->node.count = &s->count;
	s->node.set.cluster = FUZZ_CLUSTER;
	s->node.set.memory_max = PORT_MEMORY_MAX;
	s->node.set.encrypt = world.seals;
	bwk_tally_init(&s->node.tally);
	s->dev.ifindex = 1;
	s->dev.mtu = FUZZ_MTU;
	s->dev.type = ARPHRD_ETHER;
	s->dev.dev_addr = s->mac;
	s->dev.net = &s->net;
	s->dev.netdev_ops = s == &world.side[US] ? &veth : &plain;
	s->dev.features = NETIF_F_SG | NETIF_F_FRAGLIST | NETIF_F_GSO | NETIF_F_GSO_FRAGLIST;
	if (bwk_iface_attach(&s->node, &s->dev))
		fuzz_bad("no interface");
	if (world.kind == PORT_RECORDS)
		open_port(s, number);
	else
		port_socks_open(s, number);
	s->addr = (struct sockaddr_beowire){.sbw_family = AF_BEOWIRE, .sbw_port = number};
	memcpy(s->addr.sbw_mac, s->mac, ETH_ALEN);
}

void port_begin(struct fuzz_input *in)
{
	uint8_t how = fuzz_u8(in);

	memset(&world, 0, sizeof(world));
	memset(&fake_memory, 0, sizeof(fake_memory));
	memset(&fake_task, 0, sizeof(fake_task));
	fake_time = BW_S;
	fake_drawn = 0;
	fake_waits = port_wait;
	fake_lockable = 64;
	port_pages_begin();
	world.in = in;
	world.plain = how & 1;
	world.seals = how & 2;
	world.kind = how >> 3 & 3;
	bwk_row_init();
	bwk_sock_init();
	bwk_sock_ready();
	port_mac(world.side[THEM].mac, 0);
	port_mac(world.side[US].mac, PORT_STRANGERS);
	open_side(&world.side[US], 1);
	open_side(&world.side[THEM], 2);
	port_patience(100);
	if (how & 4)
		return;
	if (world.kind != PORT_RECORDS)
		port_socks_meet(how & 32);
	port_say(&world.side[US], BW_OP_WATCH, false); /* first contact */
	port_settle();
}

static void release(struct port_side *s)
{
	port_patience(2);
	port_read(s, PORT_KEPT);
	if (world.kind == PORT_RECORDS)
		bwk_port_release(s->port, s);
	else
		port_socks_close(s);
}

/* A port that lingers ends after a minute at most. */
static void check_gone(struct port_side *s)
{
	struct bwk_account *a = &s->account;

	bwk_iface_detach_all(&s->node);
	if (s->numbers || !hlist_empty(&s->node.ports[0]))
		fuzz_bad("a port that does not end");
	if (a->sk.refs != 1)
		fuzz_bad("references to an account are left");
	if (s->held != (uint64_t)a->spare.n)
		fuzz_bad("something is charged for nothing");
	if (s->user.waiting.n)
		fuzz_bad("something waits for nobody");
	if (s->dev.refs)
		fuzz_bad("an interface is held");
}

/* Of an exchange in which nothing went wrong but frames everything arrives. */
static void check_all_came(void)
{
	struct port_side *us = &world.side[US], *them = &world.side[THEM];
	uint32_t i, n;

	world.lose = world.full = world.lazy = false;
	fake_memory.fail = 0;
	us->limit = them->limit = UINT64_MAX;
	us->node.set.memory_max = PORT_MEMORY_MAX;
	for (n = 0; n < 4000 && (bw_reliable.busy(us->port->engine) ||
				 bw_reliable.busy(them->port->engine) || us->frames);
	     n++) {
		struct port_frame f;

		if (world.kind == PORT_RECORDS) {
			port_answer(us, 1);
			port_answer(them, 1);
		} else {
			port_socks_drain(us);
			port_socks_drain(them);
		}
		while (them->frames) {
			port_wire_take(them, &f, 1);
			port_arrive(us, &f, 1, 0, false);
			free(f.bytes);
			port_settle();
		}
		fake_time += 20 * BW_MS;
		port_settle();
	}
	if (us->downs || them->downs || world.kind != PORT_RECORDS)
		return;
	for (i = 0; i < them->sent; i++)
		if (!us->got[i])
			fuzz_bad("a message that never came");
	for (i = 0; i < us->sent; i++)
		if (!them->got[i])
			fuzz_bad("a message of ours that never came");
}

void port_end(void)
{
	struct port_side *us = &world.side[US], *them = &world.side[THEM];
	int i;

	if (world.plain)
		check_all_came();
	port_taps_end();
	world.lose = true;
	release(us);
	world.lazy = false;
	fake_memory.fail = 0;
	port_settle();
	release(them);
	for (i = 0; i < 70; i++) {
		port_settle();
		port_wire_drop(us);
		port_wire_drop(them);
		fake_time += BW_S;
	}
	bwk_port_flush();
	port_wire_drop(us);
	port_wire_drop(them);
	check_gone(us);
	check_gone(them);
	bwk_row_exit();
	bwk_sock_exit();
	port_pages_end();
	if (fake_task.task_frag.page)
		put_page(fake_task.task_frag.page);
	if (fake_skbs)
		fuzz_bad("socket buffers are left");
	if (fake_memory.pieces)
		fuzz_bad("memory is left");
}

/* Nothing is wrong with a frame that was not changed, whatever its shape. */
static void check_drops(const struct port_side *s)
{
	static const uint8_t wrong[] = {
		BW_DROP_SHORT, BW_DROP_FOREIGN,	  BW_DROP_VERSION, BW_DROP_CLUSTER, BW_DROP_HEADER,
		BW_DROP_TYPE,  BW_DROP_MALFORMED, BW_DROP_ADDRESS, BW_DROP_DATA,    BW_DROP_SEAL};
	const struct bw_counters *c = bw_reliable.counters(s->port->engine);

	for (uint32_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (c->drop[wrong[i]])
			fuzz_bad("a frame that nothing is wrong with is dropped");
	if (s->count.malformed || s->count.foreign)
		fuzz_bad("a frame that nothing is wrong with is no frame");
}

void port_check(void)
{
	uint32_t i;

	if (fake_spinning || fake_bh)
		fuzz_bad("a lock is kept");
	for (i = 0; i < SIDES; i++) {
		struct bwk_port *port = world.side[i].port;
		const char *bad = bw_reliable_check(port->engine);

		if (bad)
			fuzz_bad(bad);
		if (port->arriving_bytes > port->arriving_paid)
			fuzz_bad("what arrives is not paid for");
		if (world.plain && !world.amiss)
			check_drops(&world.side[i]);
		if (port->running || port->rx)
			fuzz_bad("a port that is still at it");
	}
}
