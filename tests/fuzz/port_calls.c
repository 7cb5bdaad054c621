/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs of the two nodes do; see port_world.h. */
#include "port_world.h"

#include <stdlib.h>

static void lock(struct port_side *s)
{
	bwk_port_lock(s->port);
}

static void run_and_unlock(struct port_side *s)
{
	bwk_port_run(s->port);
	bwk_port_unlock(s->port);
}

/* The other side, met for the first time if need be; NULL: not now. Lock held. */
static struct bwk_peer *find(struct port_side *s)
{
	struct bwk_peer *peer = bwk_peer_find(s->port, &port_other(s)->addr);

	return IS_ERR(peer) ? NULL : peer;
}

/* Lock not held: the operation with the other side, with more memory if it needs some. */
static int submit(struct port_side *s, struct bw_op *op, struct bwk_buf *b)
{
	struct bwk_peer *peer;
	int error, tries = 0;

	do {
		lock(s);
		peer = find(s);
		error = peer ? 0 : -EAGAIN;
		if (peer) {
			op->peer = peer->handle;
			error = bwk_port_submit(s->port, op);
		}
		if (!error && b) {
			b->handle = op->peer;
			hlist_add_head(&b->held, &s->port->bufs);
		}
		if (error != -EAGAIN)
			bwk_port_run(s->port);
		bwk_port_unlock(s->port);
	} while (error == -EAGAIN && ++tries < 4 && bwk_port_feed(s->port) == 0);
	return error;
}

static struct bwk_buf *filled(struct port_side *s, uint32_t len, uint64_t seed)
{
	uint8_t *bytes = malloc(len + 1);
	struct iov_iter from = {bytes, 0, len};
	struct bwk_buf *b;
	uint32_t i;

	for (i = 0; i < len; i++)
		bytes[i] = port_byte(seed, i);
	b = bwk_buf_copy(NULL, &s->account, &from, len);
	free(bytes);
	return IS_ERR(b) ? NULL : b;
}

void port_send(struct port_side *s, uint32_t len, uint8_t how)
{
	struct bw_op op = {.type = BW_OP_SEND};
	struct bwk_buf *b;
	int error;

	if (s->sent == PORT_MESSAGES)
		return;
	b = filled(s, len, s->sent);
	if (!b)
		return;
	b->use = BWK_BUF_SEND;
	op.cookie = bwk_buf_cookie(b);
	op.send.buf = len ? bwk_buf_cookie(b) : 0;
	op.send.len = len;
	op.send.tag = s->sent;
	op.send.urgent = how & 1;
	op.send.quiet = how & 2;
	s->length[s->sent++] = len;
	error = submit(s, &op, b);
	if (!error)
		return;
	s->sent--;
	bwk_buf_free_now(b);
}

void port_expose(struct port_side *s, uint32_t len)
{
	struct port_region *r = &s->region[s->regions % PORT_NAMES];
	struct bw_op op = {.type = BW_OP_EXPOSE};
	struct bwk_buf *b;

	if (r->b)
		return;
	b = filled(s, len, 1000 + s->regions);
	if (!b)
		return;
	b->use = BWK_BUF_EXPOSED;
	op.cookie = op.expose.buf = bwk_buf_cookie(b);
	op.expose.len = len;
	*r = (struct port_region){b, 0, 1000 + s->regions, len};
	if (submit(s, &op, b)) {
		r->b = NULL;
		bwk_buf_free_now(b);
		return;
	}
	r->key = op.expose.key;
	s->regions++;
}

void port_pull(struct port_side *s, uint32_t which, uint32_t len, uint8_t how, bool memory)
{
	const struct port_region *r = &port_other(s)->region[which % PORT_NAMES];
	struct bw_op op = {.type = BW_OP_PULL};
	struct bwk_buf *b;

	if (!memory && len > r->len)
		len = (uint32_t)r->len;
	b = how & 1 && len ? bwk_buf_growing(&s->account, len) : bwk_buf_held(&s->account, len);
	if (IS_ERR(b))
		return;
	b->use = BWK_BUF_PULL;
	b->cookie = memory ? 2000 + which : r->seed;
	op.cookie = bwk_buf_cookie(b);
	op.pull.buf = len ? bwk_buf_cookie(b) : 0;
	op.pull.len = len;
	op.pull.key = memory ? 2000 + which : r->key;
	op.pull.flags = (how & 2 ? BW_PULL_FINAL : 0) | (memory ? BW_PULL_HOST_KEY : 0);
	if (submit(s, &op, b)) {
		bwk_buf_free_now(b);
		return;
	}
	s->pull[s->pulls++ % PORT_NAMES] = op.pull.id;
}

static void say(struct port_side *s, struct bw_op *op)
{
	struct bwk_peer *peer;

	lock(s);
	peer = find(s);
	op->peer = peer ? peer->handle : 0;
	bwk_port_submit(s->port, op);
	run_and_unlock(s);
}

void port_retract(struct port_side *s, uint32_t which)
{
	struct bw_op op = {.type = BW_OP_RETRACT};

	op.expose.key = s->region[which % PORT_NAMES].key;
	say(s, &op);
}

void port_cancel(struct port_side *s, uint32_t which)
{
	struct bw_op op = {.type = BW_OP_CANCEL_PULL};

	op.pull_id = s->pull[which % PORT_NAMES];
	say(s, &op);
}

void port_say(struct port_side *s, enum bw_op_type type, bool on)
{
	struct bw_op op = {.type = type, .on = on};

	say(s, &op);
}

void port_answer(struct port_side *s, uint8_t how)
{
	struct beowire_info info = {0};
	struct sockaddr_beowire from;
	struct beowire_region answer;
	uint8_t *bytes;
	bool any;
	uint64_t i;

	lock(s);
	any = bwk_region_take(s->port, &info, &from);
	run_and_unlock(s);
	if (!any && !(how & 4))
		return;
	answer = (struct beowire_region){.id = any ? info.cookie : how >> 3, .len = info.len};
	bytes = port_memory + info.key % PORT_NAMES * PORT_PIECE;
	if (answer.len > PORT_PIECE || info.imm)
		how |= 1; /* it may not be read */
	for (i = 0; !(how & 1) && i < answer.len; i++)
		bytes[i] = port_byte(info.key, i);
	answer.buf = how & 1 ? 0 : (uintptr_t)bytes;
	if (how & 2)
		answer.len /= 2; /* not what was asked for */
	bwk_region_answer(&s->answers, &answer);
	bwk_region_serving(&s->answers, &answer);
}
