/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The host of an engine whose sockets and frames are behind rings. See instance.h. */
#include "instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "plain.h"

#define RETRY_NS  (100 * BW_US) /* until the next try when no frame could be sent */
#define LINGER_NS (60 * BW_S)
#define HELD_NS	  BW_MS		/* until the next look at what is held back */
#define ASK_NS	  (200 * BW_MS) /* until one of it is sent to hear whether more may be */

/* A message whose receiver asks for nothing more just now. */
struct instance_held {
	struct instance_held *next;
	struct sockaddr_beowire to;
	struct plain_buffer *bytes;
};

/* ---- answers ---- */

/* The kernel takes all answers in its turn, so that there is room after one. */
static struct beowire_record *instance_reserve(struct rings *rings, uint32_t id, uint16_t type,
					       uint32_t bytes)
{
	struct beowire_record *record = rings_reserve(rings, BEOWIRE_ANSWERS, type, id, bytes);

	if (record)
		return record;
	rings_turn(rings, 0);
	return rings_reserve(rings, BEOWIRE_ANSWERS, type, id, bytes);
}

static void instance_answer_with(struct rings *rings, uint32_t id, uint16_t type, int status,
				 uint32_t bytes, uint32_t flags)
{
	struct beowire_record *record = instance_reserve(rings, id, type, 0);

	if (!record)
		return;
	record->result.status = status;
	record->result.bytes = bytes;
	record->result.flags = flags;
	rings_commit(rings, BEOWIRE_ANSWERS, record);
}

void instance_answer(struct rings *rings, uint32_t id, uint16_t type, int status, uint32_t bytes)
{
	instance_answer_with(rings, id, type, status, bytes, 0);
}

static void instance_deliver(struct instance *in, const struct sockaddr_beowire *from,
			     const void *bytes, uint32_t len)
{
	struct beowire_record *record = instance_reserve(in->rings, in->id, BEOWIRE_ARRIVED, len);

	if (!record)
		return;
	record->addr = *from;
	memcpy(record + 1, bytes, len);
	rings_commit(in->rings, BEOWIRE_ANSWERS, record);
}

/* ---- links ---- */

/* Is it in use, as far as is known? */
static bool instance_in_use(const struct rings *rings, uint32_t ifindex)
{
	int i;

	for (i = 0; i < BEOWIRE_SERVER_IFACES; i++)
		if (ifindex && rings->link[i].ifindex == ifindex)
			return true;
	return false;
}

/* The engine's number of this interface, the same for as long as there is the instance; 0: of the
 * first one. What has gone keeps its number, and the kernel drops frames for it; what comes gets
 * one that none has had. */
static int instance_link(struct instance *in, uint32_t ifindex)
{
	int i;

	ifindex = ifindex ? ifindex : in->rings->link[0].ifindex;
	if (!ifindex)
		return -1;
	for (i = 0; i < BEOWIRE_SERVER_IFACES; i++) {
		if (in->ifindex[i] == ifindex)
			return i;
		if (in->ifindex[i])
			continue;
		if (!instance_in_use(in->rings, ifindex))
			return -1;
		in->ifindex[i] = ifindex;
		return i;
	}
	return -1;
}

static struct bw_link_addr instance_address(int link, const uint8_t *mac)
{
	struct bw_link_addr a = {.link = (uint8_t)link, .len = 6};

	memcpy(a.bytes, mac, 6);
	return a;
}

/* ---- peers ---- */

static void instance_met(struct instance *in, const struct bw_event *e)
{
	struct bw_op leave = {.type = BW_OP_DISCONNECT, .peer = e->peer};
	struct peer *peer = peers_make(&in->peers, e->peer);

	if (!peer) { /* nobody could be told from whom its messages are */
		in->protocol->submit(in->engine, &leave, bw_clock_now());
		in->unmet++;
		return;
	}
	peer->addr = (struct sockaddr_beowire){
		.sbw_port = e->engine,
		.sbw_ifindex = in->ifindex[e->from.link % BEOWIRE_SERVER_IFACES],
		.sbw_node = e->node,
		.sbw_inc = e->inc,
	};
	memcpy(peer->addr.sbw_mac, e->from.bytes, 6);
}

/* A stranger's end is nothing to a program that has not sent to it: else whoever calls could end
 * its calls. */
static void instance_lost(struct instance *in, const struct bw_event *e)
{
	struct peer *peer = peers_find(&in->peers, e->peer);
	bool told = peer && peer->spoken && e->status != BW_DOWN_CLOSED;
	int status = e->status;

	if (peer)
		peers_drop(&in->peers, peer);
	if (status == BW_DOWN_CANCELED) /* we have given it up: see memory.h */
		status = BW_DOWN_TIMEOUT;
	if (told)
		instance_answer(in->rings, in->id, BEOWIRE_FAILED, status, 0);
}

/* needed() of struct bw_host_ops. */
static bool instance_needs(void *host, uint32_t handle)
{
	struct instance *in = host;
	const struct peer *peer = peers_find(&in->peers, handle);

	return peer && peer->spoken;
}

/* ---- messages that the engine has ---- */

/* At its close() an engine forgets them. */
static void instance_keep(struct instance *in, struct plain_buffer *b)
{
	b->next = in->sending;
	b->link = &in->sending;
	if (b->next)
		b->next->link = &b->next;
	in->sending = b;
}

static void instance_drop(struct plain_buffer *b)
{
	*b->link = b->next;
	if (b->next)
		b->next->link = b->link;
	free(b);
}

/* ---- the engine ---- */

static void instance_message(struct instance *in, const struct bw_event *e, const void *frame)
{
	const struct peer *peer = peers_find(&in->peers, e->peer);
	const void *bytes =
		e->buf ? plain_buffer_of(e->buf)->bytes : (const uint8_t *)frame + e->frame_off;

	if (peer)
		instance_deliver(in, &peer->addr, bytes, (uint32_t)e->len);
	if (e->buf)
		memory_buf_put(in, e->buf);
}

static void instance_events(struct instance *in, const void *frame)
{
	struct bw_event e;

	while (memset(&e, 0, sizeof(e)), in->protocol->next_event(in->engine, &e)) {
		if (e.type == BW_EV_MESSAGE) {
			instance_message(in, &e, frame);
		} else if (e.type == BW_EV_SENT) {
			struct plain_buffer *b = plain_buffer_of(e.cookie);

			instance_answer(in->rings, in->id, BEOWIRE_DONE, 0, (uint32_t)b->len);
			instance_drop(b);
		} else if (e.type == BW_EV_PEER_UP) {
			instance_met(in, &e);
		} else if (e.type == BW_EV_PEER_DOWN) {
			instance_lost(in, &e);
		}
	}
}

/* False when there is no room for it. */
static bool instance_transmit(struct instance *in, const struct bw_tx_frame *f)
{
	struct beowire_record *record =
		rings_reserve(in->rings, BEOWIRE_FRAMES_OUT, BEOWIRE_FRAME, in->id, f->len);
	uint8_t *to = (uint8_t *)(record + 1);
	uint32_t at = 0, i;

	if (!record)
		return false;
	record->frame.ifindex = in->ifindex[f->to.link % BEOWIRE_SERVER_IFACES];
	memcpy(record->frame.mac, f->to.bytes, 6);
	for (i = 0; i < f->segments; i++) {
		const struct bw_tx_segment *s = &f->segment[i];

		memcpy(to, (const uint8_t *)f->head + at, s->head_end - at);
		to += s->head_end - at;
		at = s->head_end;
		if (s->buf)
			memcpy(to, plain_buffer_of(s->buf)->bytes + s->off, s->len);
		else
			memset(to, 0, s->len);
		to += s->len;
	}
	memcpy(to, (const uint8_t *)f->head + at, f->head_len - at);
	rings_commit(in->rings, BEOWIRE_FRAMES_OUT, record);
	return true;
}

static void instance_retry(struct instance *in);

void instance_run(struct instance *in)
{
	uint64_t retry_at = BW_NEVER;
	struct bw_tx_frame f;

	if (in->held && !in->retrying) /* called again out of it */
		instance_retry(in);
	while (in->protocol->next_frame(in->engine, &f, bw_clock_now())) {
		if (instance_transmit(in, &f))
			continue;
		in->protocol->unsent(in->engine, bw_clock_now());
		retry_at = bw_clock_now() + RETRY_NS;
		break;
	}
	instance_events(in, NULL);
	if (in->crowded)
		memory_relieve(in);
	if (in->protocol->hungry(in->engine))
		memory_feed(in);
	in->deadline = in->protocol->next_deadline(in->engine);
	if (in->deadline <= bw_clock_now() && retry_at != BW_NEVER)
		in->deadline = retry_at;
	if (in->held && in->deadline > bw_clock_now() + HELD_NS)
		in->deadline = bw_clock_now() + HELD_NS;
}

/* Submit an operation, with more memory for the engine if that is what it lacks. If there is none,
 * whoever has to make room for it has gone once its end is told. */
static int instance_submit(struct instance *in, struct bw_op *op)
{
	int error = in->protocol->submit(in->engine, op, bw_clock_now());

	if (error != -EAGAIN)
		return error;
	instance_run(in);
	memory_grow(in);
	error = in->protocol->submit(in->engine, op, bw_clock_now());
	if (error != -EAGAIN)
		return error;
	instance_run(in);
	return in->protocol->submit(in->engine, op, bw_clock_now());
}

/* -EBUSY: the receiver is under pressure; `ask`: send it all the same. The word that pressure is
 * over may be lost, and comes again only with an acknowledgement. */
static int instance_submit_send(struct instance *in, const struct sockaddr_beowire *to,
				struct plain_buffer *b, bool ask)
{
	struct bw_op op = {.type = BW_OP_CONNECT};
	struct peer *peer;
	int link = instance_link(in, to->sbw_ifindex), error;

	if (link < 0)
		return -EHOSTUNREACH;
	op.connect.node = to->sbw_node;
	op.connect.engine = to->sbw_port;
	op.connect.inc = to->sbw_inc;
	op.connect.paths = 1;
	op.connect.path[0] = instance_address(link, to->sbw_mac);
	error = instance_submit(in, &op);
	if (error)
		return error;
	peer = peers_make(&in->peers, op.peer);
	if (!peer)
		return -ENOMEM;
	peer->spoken = true;
	if (!ask && in->protocol == &bw_reliable && bw_reliable_pressed(in->engine, op.peer))
		return -EBUSY;
	op = (struct bw_op){.type = BW_OP_SEND, .peer = op.peer, .cookie = (uintptr_t)b};
	op.send.buf = b->len ? (uintptr_t)b : 0;
	op.send.len = (uint32_t)b->len;
	error = instance_submit(in, &op);
	if (!error)
		instance_keep(in, b);
	return error;
}

static bool instance_same(const struct sockaddr_beowire *a, const struct sockaddr_beowire *b)
{
	return a->sbw_port == b->sbw_port && !memcmp(a->sbw_mac, b->sbw_mac, sizeof(a->sbw_mac));
}

/* Messages to one receiver keep their order. */
static bool instance_holds(const struct instance *in, const struct sockaddr_beowire *to,
			   const struct instance_held *before)
{
	const struct instance_held *h;

	for (h = in->held; h != before; h = h->next)
		if (instance_same(&h->to, to))
			return true;
	return false;
}

/* A message of so many bytes will never be sent. */
static void instance_unsent(struct instance *in, uint32_t bytes, int error)
{
	instance_answer(in->rings, in->id, BEOWIRE_DONE, 0, bytes);
	instance_answer(in->rings, in->id, BEOWIRE_FAILED, error == -EAGAIN ? -ENOBUFS : error, 0);
}

/* It has been sent or is held, or never will be. */
static void instance_sent(struct instance *in, struct plain_buffer *b, int error)
{
	if (!error)
		return;
	instance_unsent(in, (uint32_t)b->len, error);
	free(b);
}

/* Does it go now? */
static int instance_try_held(struct instance *in, const struct instance_held *h)
{
	if (instance_holds(in, &h->to, h))
		return -EBUSY;
	return instance_submit_send(in, &h->to, h->bytes, bw_clock_now() >= in->ask_at);
}

static void instance_retry(struct instance *in)
{
	struct instance_held **at = &in->held, *h;
	int error;

	in->retrying = true;
	while ((h = *at)) {
		error = instance_try_held(in, h);
		if (error == -EBUSY) {
			at = &h->next;
			continue;
		}
		in->ask_at = bw_clock_now() + ASK_NS;
		instance_sent(in, h->bytes, error);
		*at = h->next;
		free(h);
	}
	in->retrying = false;
}

/* For later. */
static int instance_hold(struct instance *in, const struct sockaddr_beowire *to,
			 struct plain_buffer *b)
{
	struct instance_held **at = &in->held, *h = malloc(sizeof(*h));

	if (!h)
		return -ENOMEM;
	if (!in->held)
		in->ask_at = bw_clock_now() + ASK_NS;
	*h = (struct instance_held){.to = *to, .bytes = b};
	while (*at)
		at = &(*at)->next;
	*at = h;
	return 0;
}

void instance_send(struct instance *in, const struct beowire_record *send)
{
	struct plain_buffer *b = plain_buffer_new(send->bytes);
	int error = -EBUSY;

	if (!b) {
		instance_unsent(in, send->bytes, -ENOMEM);
		return;
	}
	memcpy(b->bytes, send + 1, send->bytes);
	if (!instance_holds(in, &send->addr, NULL))
		error = instance_submit_send(in, &send->addr, b, false);
	if (error == -EBUSY)
		error = instance_hold(in, &send->addr, b);
	instance_sent(in, b, error);
	instance_run(in);
}

void instance_press(struct instance *in, bool on)
{
	struct bw_op op = {.type = BW_OP_PRESSURE, .on = on};

	if (in->protocol == &bw_reliable)
		instance_submit(in, &op);
	instance_run(in);
}

void instance_frame(struct instance *in, const struct beowire_record *record)
{
	int link = instance_link(in, record->frame.ifindex);
	struct bw_rx_frame f = {
		.head = record + 1,
		.head_len = record->bytes,
		.len = record->bytes,
	};

	if (link < 0)
		return;
	f.from = instance_address(link, record->frame.mac);
	in->protocol->rx(in->engine, &f, bw_clock_now());
	instance_events(in, f.head); /* while the frame is here */
	instance_run(in);
}

/* ---- from OPEN to the end ---- */

/* Messages of other protocols than the reliable one are taken to be one frame each. */
static uint32_t instance_longest(const struct instance *in, const struct bw_config *cfg)
{
	uint32_t longest = BW_FRAME_MAX_MTU;
	int i;

	if (in->protocol == &bw_reliable)
		return BW_EAGER_LIMIT;
	for (i = 0; i < BEOWIRE_SERVER_IFACES && in->ifindex[i]; i++)
		longest = longest < cfg->link_mtu[i] ? longest : cfg->link_mtu[i];
	return longest - (uint32_t)(sizeof(struct bw_hdr) + sizeof(struct bw_dgram));
}

static int instance_open_engine(struct instance *in, struct bw_config *cfg)
{
	size_t size;
	int i;

	if (rings_read_links(in->rings) || !in->rings->link[0].ifindex)
		return -EADDRNOTAVAIL;
	for (i = 0; i < BEOWIRE_SERVER_IFACES; i++) {
		const struct beowire_server_iface *link = &in->rings->link[i];

		in->ifindex[i] = link->ifindex;
		cfg->link_mtu[i] = link->ifindex ? link->mtu : BW_FRAME_MIN_MTU;
	}
	gethostname(cfg->name, sizeof(cfg->name));
	size = in->protocol->size(cfg);
	in->engine = aligned_alloc(64, (size + 63) & ~(size_t)63);
	if (!in->engine)
		return -ENOMEM;
	in->ops = plain_host_ops;
	in->ops.buf_get = memory_buf_get;
	in->ops.buf_put = memory_buf_put;
	in->ops.needed = instance_needs;
	peers_init(&in->peers, &in->ops, in);
	return in->protocol->open(in->engine, cfg, &in->ops, in, bw_clock_now());
}

static void instance_free(struct instance *in)
{
	memory_free(in);
	peers_free(&in->peers);
	while (in->held) {
		struct instance_held *next = in->held->next;

		free(in->held->bytes);
		free(in->held);
		in->held = next;
	}
	while (in->sending)
		instance_drop(in->sending);
	free(in->engine);
	free(in);
}

struct instance *instance_open(struct rings *rings, const struct bw_protocol *protocol,
			       const struct beowire_record *open)
{
	struct instance *in = calloc(1, sizeof(*in));
	struct bw_config cfg = {
		.node = rings->node,
		.incarnation = open->addr.sbw_inc,
		.cluster = rings->cluster,
		.engine = open->addr.sbw_port,
		.rx_budget = 1 << 20,
		.features = BW_FEATURE_CHECKSUM,
		.dead_ns = 60 * BW_S,
	};
	int error = -ENOMEM;

	if (in) {
		in->id = open->socket;
		in->port = open->addr.sbw_port;
		in->protocol = protocol;
		in->rings = rings;
		error = instance_open_engine(in, &cfg);
	}
	instance_answer_with(rings, open->socket, BEOWIRE_OPENED, error,
			     error ? 0 : instance_longest(in, &cfg),
			     protocol == &bw_reliable ? BEOWIRE_OPENED_KEEP : 0);
	if (!error)
		return in;
	if (in)
		instance_free(in);
	return NULL;
}

void instance_close(struct instance *in)
{
	in->closing = true;
	in->linger_until = bw_clock_now() + LINGER_NS;
}

bool instance_over(const struct instance *in)
{
	return in->closing && ((!in->protocol->busy(in->engine) && !in->held) ||
			       bw_clock_now() >= in->linger_until);
}

static void instance_tell(const struct instance *in)
{
	if (in->given_up)
		fprintf(stderr,
			"beowire-server: port %u: %llu peers were given up whose messages stood "
			"still and filled the socket's memory\n",
			in->port, (unsigned long long)in->given_up);
	if (in->unmet)
		fprintf(stderr,
			"beowire-server: port %u: %llu callers were left as there was no memory "
			"for them\n",
			in->port, (unsigned long long)in->unmet);
}

void instance_end(struct instance *in)
{
	struct bw_tx_frame f;

	in->protocol->close(in->engine, bw_clock_now());
	while (in->protocol->next_frame(in->engine, &f, bw_clock_now()))
		instance_transmit(in, &f);
	rings_turn(in->rings, 0); /* the kernel takes answers first: then frames are nobody's */
	instance_answer(in->rings, in->id, BEOWIRE_CLOSED, 0, 0);
	instance_tell(in);
	instance_free(in);
}
