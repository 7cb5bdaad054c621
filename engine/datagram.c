/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The minimal datagram protocol, after the thesis's own test stack [A12], and the model for a new
 * one: a send makes one frame, a received frame makes one message, nothing is sent again. The ring
 * of operations has three cursors: submitted, passed to the wire, reported to the host. Memory is
 * fixed, since the nodes of a cluster are known beforehand [A5].
 */
#include "simple_peers.h"

#define DATAGRAM_OPS 256 /* operations under way */

struct datagram_frame {
	struct bw_hdr hdr;
	struct bw_dgram body;
};

struct datagram {
	struct bw_simple base;
	struct bw_simple_peers peers;
	struct bw_op op[DATAGRAM_OPS];
	uint32_t submitted, passed, reported; /* ever; reported <= passed <= submitted */
	/* Of the frame just received: its message, first contact, and who has given way to that; an
	 * operation has the last one only. */
	struct bw_event news[3];
	uint32_t news_due; /* how many of them; taken from the end */
};

static size_t datagram_size(const struct bw_config *cfg)
{
	return sizeof(struct datagram);
}

static int datagram_open(void *mem, const struct bw_config *cfg, const struct bw_host_ops *ops,
			 void *host, uint64_t now)
{
	struct datagram *d = mem;
	int error = bw_simple_open(mem, sizeof(*d), cfg, ops, host);

	bw_simple_peers_init(&d->peers, &d->base.count, ops, host);
	return error;
}

static void datagram_close(void *mem, uint64_t now)
{
	struct datagram *d = mem;

	d->passed = d->submitted; /* no farewell: what has not left stays here */
}

static int datagram_connect(struct datagram *d, struct bw_op *op)
{
	const struct bw_simple_peer *p;

	if (d->news_due) /* who has given way is to be told first */
		return -EAGAIN;
	p = bw_simple_peer_meet(&d->peers, op->connect.path, op->connect.engine, d->news);
	d->news_due = d->news[0].type != 0;
	op->peer = p ? p->handle : 0;
	return p ? 0 : -EAGAIN;
}

static int datagram_submit(void *mem, struct bw_op *op, uint64_t now)
{
	struct datagram *d = mem;
	struct bw_simple_peer *p = bw_simple_peer(&d->peers, op->peer);
	uint32_t fixed = sizeof(struct datagram_frame);

	if (op->type == BW_OP_CONNECT)
		return datagram_connect(d, op);
	if (op->type != BW_OP_SEND && op->type != BW_OP_DISCONNECT)
		return -EINVAL; /* nothing can be pulled here */
	if (!p || p->leaving)
		return -ENOTCONN;
	if (op->type == BW_OP_SEND &&
	    (uint64_t)op->send.len + fixed > d->base.cfg.link_mtu[p->addr.link % 8])
		return -EMSGSIZE;
	if (d->submitted - d->reported == DATAGRAM_OPS)
		return -EAGAIN;
	p->leaving = op->type == BW_OP_DISCONNECT;
	p->ops++;
	bw_simple_peer_touch(&d->peers, p);
	d->op[d->submitted++ % DATAGRAM_OPS] = *op;
	return 0;
}

static int datagram_rx(void *mem, const struct bw_rx_frame *f, uint64_t now)
{
	struct datagram *d = mem;
	const struct datagram_frame *w = f->head;
	enum bw_drop why = bw_simple_check(&d->base, f, BW_FRAME_DGRAM, sizeof(*w));
	struct bw_event up = {.type = BW_EV_PEER_UP, .from = f->from}, down, *e = &d->news[0];
	struct bw_simple_peer *p = NULL;

	d->base.count.rx_frames++;
	if (!why && w->hdr.len != sizeof(w->body) + w->body.plen)
		why = BW_DROP_MALFORMED;
	if (!why && w->body.crc &&
	    d->base.ops->place(d->base.host, 0, 0, f, sizeof(*w), w->body.plen, true, w->body.crc))
		why = BW_DROP_DATA;
	if (!why && !d->news_due)
		p = bw_simple_peer_meet(&d->peers, &f->from, up.engine = w->hdr.src_engine, &down);
	if (!why && !p)
		why = BW_DROP_NO_BUFFER;
	if (why)
		return bw_simple_drop(&d->base, why);
	*e = (struct bw_event){.type = BW_EV_MESSAGE, .peer = p->handle, .len = w->body.plen};
	e->frame_off = sizeof(*w); /* the payload stays where it is: buf is 0 */
	e->dst_ep = w->body.dst_ep;
	e->src_ep = w->body.src_ep;
	up.peer = p->handle;
	d->news[1] = up;
	d->news[2] = down;
	d->news_due = p->heard ? 1 : down.type ? 3 : 2;
	p->heard = true;
	d->base.count.rx_messages++;
	return 0;
}

static bool datagram_next_frame(void *mem, struct bw_tx_frame *f, uint64_t now)
{
	struct datagram *d = mem;
	struct datagram_frame *w = (struct datagram_frame *)f->head;
	const struct bw_simple_peer *p;
	const struct bw_op *op;

	do { /* a DISCONNECT has no frame, it only waits for its turn */
		if (d->passed == d->submitted)
			return false;
		op = &d->op[d->passed++ % DATAGRAM_OPS];
	} while (op->type != BW_OP_SEND);
	p = bw_simple_peer(&d->peers, op->peer); /* it stays until the operation is reported */
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
	struct bw_simple_peer *p;

	if (d->news_due) {
		*e = d->news[--d->news_due];
		return true;
	}
	if (d->reported == d->passed)
		return false;
	d->reported++;
	p = bw_simple_peer(&d->peers, op->peer);
	p->ops--;
	*e = (struct bw_event){.type = BW_EV_SENT, .peer = op->peer, .cookie = op->cookie};
	if (op->type == BW_OP_DISCONNECT) {
		e->type = BW_EV_PEER_DOWN;
		e->status = BW_DOWN_CANCELED;
		bw_simple_peer_forget(&d->peers, p);
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
