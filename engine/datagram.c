/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The minimal datagram protocol, after the thesis's own test stack [A12], and the model for a new
 * one: a send makes one frame, a received frame makes one message, nothing is sent again. The ring
 * of operations has three cursors: submitted, passed to the wire, reported to the host.
 */
#include "simple.h"

#define DATAGRAM_OPS   256  /* operations under way */
#define DATAGRAM_PEERS 1024 /* fixed, since the nodes of a cluster are known beforehand [A5] */

struct datagram_frame {
	struct bw_hdr hdr;
	struct bw_dgram body;
};

struct datagram_peer { /* just an address; whoever sends to us becomes a peer */
	struct bw_link_addr addr;
	uint16_t engine;
	bool used, leaving, heard;
};

struct datagram {
	struct bw_simple base;
	struct datagram_peer peer[DATAGRAM_PEERS]; /* a handle is the index + 1 */
	struct bw_op op[DATAGRAM_OPS];
	uint32_t submitted, passed, reported; /* ever; reported <= passed <= submitted */
	struct bw_event news[2]; /* of the frame just received: its message, and first contact */
	uint32_t news_due;	 /* how many of them; taken from the end */
};

static size_t datagram_size(const struct bw_config *cfg)
{
	return sizeof(struct datagram);
}

static int datagram_open(void *mem, const struct bw_config *cfg, const struct bw_host_ops *ops,
			 void *host, uint64_t now)
{
	return bw_simple_open(mem, sizeof(struct datagram), cfg, ops, host);
}

static void datagram_close(void *mem, uint64_t now)
{
	struct datagram *d = mem;

	d->passed = d->submitted; /* no farewell: what has not left stays here */
}

/* The handle of this address, perhaps a new one; 0 when there are too many. */
static uint32_t datagram_meet(struct datagram *d, const struct bw_link_addr *addr, uint16_t engine)
{
	struct datagram_peer *p, *end = d->peer + DATAGRAM_PEERS, *unused = NULL;

	for (p = d->peer; p < end; p++) {
		if (p->used && p->engine == engine && !memcmp(&p->addr, addr, sizeof(*addr)))
			return (uint32_t)(p - d->peer) + 1;
		if (!p->used && !unused)
			unused = p;
	}
	if (!unused)
		return 0;
	*unused = (struct datagram_peer){.addr = *addr, .engine = engine, .used = true};
	d->base.count.peers++;
	return (uint32_t)(unused - d->peer) + 1;
}

static int datagram_submit(void *mem, struct bw_op *op, uint64_t now)
{
	struct datagram *d = mem;
	struct datagram_peer *p = &d->peer[(op->peer - 1) % DATAGRAM_PEERS];
	uint32_t fixed = sizeof(struct datagram_frame);

	if (op->type == BW_OP_CONNECT) {
		op->peer = datagram_meet(d, op->connect.path, op->connect.engine);
		return op->peer ? 0 : -EINVAL;
	}
	if (op->type != BW_OP_SEND && op->type != BW_OP_DISCONNECT)
		return -EINVAL; /* nothing can be pulled here */
	if (!op->peer || op->peer > DATAGRAM_PEERS || !p->used || p->leaving)
		return -ENOTCONN;
	if (op->type == BW_OP_SEND &&
	    (uint64_t)op->send.len + fixed > d->base.cfg.link_mtu[p->addr.link % 8])
		return -EMSGSIZE;
	if (d->submitted - d->reported == DATAGRAM_OPS)
		return -EAGAIN;
	p->leaving = op->type == BW_OP_DISCONNECT;
	d->op[d->submitted++ % DATAGRAM_OPS] = *op;
	return 0;
}

static int datagram_rx(void *mem, const struct bw_rx_frame *f, uint64_t now)
{
	struct datagram *d = mem;
	const struct datagram_frame *w = f->head;
	enum bw_drop why = bw_simple_check(&d->base, f, BW_FRAME_DGRAM, sizeof(*w));
	struct bw_event up = {.type = BW_EV_PEER_UP, .from = f->from}, *e = &d->news[0];

	d->base.count.rx_frames++;
	if (!why && w->hdr.len != sizeof(w->body) + w->body.plen)
		why = BW_DROP_MALFORMED;
	if (!why && w->body.crc &&
	    d->base.ops->place(d->base.host, 0, 0, f, sizeof(*w), w->body.plen, true, w->body.crc))
		why = BW_DROP_DATA;
	up.peer = why ? 0 : datagram_meet(d, &f->from, up.engine = w->hdr.src_engine);
	if (!why && !up.peer)
		why = BW_DROP_NO_BUFFER;
	if (why)
		return bw_simple_drop(&d->base, why);
	*e = (struct bw_event){.type = BW_EV_MESSAGE, .peer = up.peer, .len = w->body.plen};
	e->frame_off = sizeof(*w); /* the payload stays where it is: buf is 0 */
	e->dst_ep = w->body.dst_ep;
	e->src_ep = w->body.src_ep;
	d->news[1] = up;
	d->news_due = d->peer[up.peer - 1].heard ? 1 : 2;
	d->peer[up.peer - 1].heard = true;
	d->base.count.rx_messages++;
	return 0;
}

static bool datagram_next_frame(void *mem, struct bw_tx_frame *f, uint64_t now)
{
	struct datagram *d = mem;
	struct datagram_frame *w = (struct datagram_frame *)f->head;
	const struct datagram_peer *p;
	const struct bw_op *op;

	do { /* a DISCONNECT has no frame, it only waits for its turn */
		if (d->passed == d->submitted)
			return false;
		op = &d->op[d->passed++ % DATAGRAM_OPS];
	} while (op->type != BW_OP_SEND);
	p = &d->peer[op->peer - 1];
	bw_simple_frame(f, &p->addr, sizeof(*w), op);
	bw_simple_begin(&d->base, &w->hdr, BW_FRAME_DGRAM, p->engine);
	w->body = (struct bw_dgram){op->send.dst_ep, op->send.src_ep, (uint16_t)op->send.len};
	w->body.crc = bw_simple_crc(&d->base, op);
	bw_simple_seal(&d->base, &w->hdr, f->head_len, f->len);
	d->base.count.tx_frames++;
	return true;
}

static void datagram_unsent(void *mem, uint64_t now)
{
	((struct datagram *)mem)->passed--; /* it is the first to be passed again */
}

static bool datagram_next_event(void *mem, struct bw_event *e)
{
	struct datagram *d = mem;
	const struct bw_op *op = &d->op[d->reported % DATAGRAM_OPS];

	if (d->news_due) {
		*e = d->news[--d->news_due];
		return true;
	}
	if (d->reported == d->passed)
		return false;
	d->reported++;
	*e = (struct bw_event){.type = BW_EV_SENT, .peer = op->peer, .cookie = op->cookie};
	if (op->type == BW_OP_DISCONNECT) {
		e->type = BW_EV_PEER_DOWN;
		e->status = BW_DOWN_CANCELED;
		d->peer[op->peer - 1].used = false;
		d->base.count.peers--;
	}
	return true;
}

static bool datagram_busy(void *mem)
{
	const struct datagram *d = mem;

	return d->passed != d->submitted;
}

static uint64_t datagram_next_deadline(void *mem)
{
	const struct datagram *d = mem; /* what is not yet passed is not reported either */
	return d->reported != d->submitted || d->news_due ? 0 : BW_NEVER;
}

const struct bw_protocol bw_datagram = {
	.name = "datagram",
	.version = BW_VERSION,
	.size = datagram_size,
	.open = datagram_open,
	.close = datagram_close,
	.grow = bw_simple_grow,
	.submit = datagram_submit,
	.rx = datagram_rx,
	.next_frame = datagram_next_frame,
	.next_event = datagram_next_event,
	.next_deadline = datagram_next_deadline,
	.hungry = bw_simple_hungry,
	.unsent = datagram_unsent,
	.busy = datagram_busy,
	.counters = bw_simple_counters,
};
