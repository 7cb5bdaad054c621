/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of any content, and operations of a host, against the reliable protocol. The input is a
 * script; its first byte chooses where the engine stands: fresh, after first contact, or in the
 * midst of messages and pulls with a second engine, whose genuine frames can be mixed in; and
 * whether both encrypt.
 */
#include "fuzz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { US = 1, THEM = 2 }; /* numbers of the two engines */

enum step {
	STEP_RAW,	/* bytes as they are */
	STEP_SEALED,	/* ... with a right checksum */
	STEP_ADDRESSED, /* ... and from the peer that we know, to us */
	STEP_NUMBERED,	/* ... and with the next packet number; ids 0 to 7 name what there is */
	STEP_PARTS,	/* DATA whose parts are well-formed, with small fields */
	STEP_ACK,	/* ACK with small numbers, near to what was sent */
	STEP_TIME,
	STEP_SUBMIT,
	STEP_GENUINE, /* a frame of the other engine, perhaps damaged */
	STEP_LOSE,    /* our frames get lost from now on, or no longer */
	STEPS,
};

#define NAMES 8 /* ids of pulls, and keys of regions, that scripts can name */

static struct {
	struct fuzz_host us, them;
	uint32_t peer, their_peer; /* handles */
	uint32_t conn, token;	   /* what the peer is to put into its headers */
	uint32_t pn, sent;	   /* last packet numbers received and sent */
	uint64_t pull[NAMES], key[NAMES];
	uint32_t pulls, keys;
	bool lose;
} world;

static uint8_t flat[BW_FRAME_MAX_MTU];

static void seen_by_us(const struct bw_event *e)
{
	if (e->type == BW_EV_PEER_UP)
		world.peer = e->peer;
}

static void seen_by_them(const struct bw_event *e)
{
	if (e->type == BW_EV_PEER_UP)
		world.their_peer = e->peer;
}

/* All that we have to send now goes to the other engine, unless it gets lost. */
static void send_ours(void)
{
	uint32_t len, frames = 0;

	while ((len = fuzz_next_frame(&world.us, flat))) {
		struct bw_hdr h;

		if (++frames > 10000)
			fuzz_bad("frames without end");
		memcpy(&h, flat, sizeof(h));
		if (h.type == BW_FRAME_DATA)
			world.sent = h.pn;
		if (h.type == BW_FRAME_HELLO) {
			struct bw_hello b;

			memcpy(&b, flat + sizeof(h), sizeof(b));
			world.conn = b.conn;
			world.token = b.token;
		}
		if (world.them.mem && !world.lose) {
			fuzz_receive(&world.them, flat, len, false, false);
			fuzz_events(&world.them, seen_by_them);
		}
	}
	fuzz_events(&world.us, seen_by_us);
}

static void check_idle(void)
{
	uint32_t rounds = 0;

	while (world.us.protocol->next_deadline(world.us.mem) <= world.us.now) {
		send_ours();
		if (++rounds > 4)
			fuzz_bad("a deadline that is over, but nothing to send");
	}
}

/* As fuzz_seal(), of what may be tagged. */
static void seal(uint32_t size, bool len)
{
	struct bw_hdr h;

	fuzz_seal(flat, size, len);
	if (!world.us.seals || size < sizeof(h))
		return;
	memcpy(&h, flat, sizeof(h));
	if (h.type != BW_FRAME_DATA && h.type != BW_FRAME_ACK && h.type != BW_FRAME_BYE)
		return;
	h.token = 0;
	h.hcrc = FUZZ_TAG;
	memcpy(flat, &h, sizeof(h));
}

/* The next frame of the other engine arrives, damaged at `at` by `mask`. */
static bool genuine(uint32_t at, uint8_t mask, bool sealed)
{
	uint32_t len = fuzz_next_frame(&world.them, flat);
	struct bw_hdr h;

	fuzz_events(&world.them, seen_by_them);
	if (!len)
		return false;
	flat[at % len] ^= mask;
	if (sealed)
		seal(len, false);
	memcpy(&h, flat, sizeof(h));
	if (h.type == BW_FRAME_DATA)
		world.pn = h.pn;
	fuzz_receive(&world.us, flat, len, false, false);
	return true;
}

static void connect(void)
{
	struct bw_op op = {.type = BW_OP_CONNECT};

	op.connect.node = THEM;
	op.connect.engine = THEM;
	op.connect.paths = 1;
	op.connect.path[0] = (struct bw_link_addr){.link = 0, .len = 1, .bytes = {9}};
	if (world.us.protocol->submit(world.us.mem, &op, world.us.now))
		fuzz_bad("CONNECT failed");
	world.peer = op.peer;
	send_ours();
}

/* Everything lies at the end of the memory, so that sanitizers see what goes beyond it. */
static uint64_t memory_of(struct fuzz_host *h)
{
	return (uint64_t)(uintptr_t)h->memory;
}

static void submit_send(struct fuzz_host *h, uint32_t peer, uint32_t len)
{
	struct bw_op op = {.type = BW_OP_SEND, .peer = peer};

	op.send.buf = memory_of(h);
	op.send.buf_off = FUZZ_MEMORY - len;
	op.send.len = len;
	op.send.src_ep = len & 1;
	op.send.urgent = len & 2;
	h->protocol->submit(h->mem, &op, h->now);
}

static uint64_t submit_expose(struct fuzz_host *h, uint32_t peer, uint32_t len)
{
	struct bw_op op = {.type = BW_OP_EXPOSE, .peer = peer};

	op.expose.buf = memory_of(h);
	op.expose.buf_off = FUZZ_MEMORY - len;
	op.expose.len = len;
	return h->protocol->submit(h->mem, &op, h->now) ? 0 : op.expose.key;
}

static uint64_t submit_pull(struct fuzz_host *h, uint32_t peer, uint64_t key, uint32_t len,
			    uint32_t flags)
{
	struct bw_op op = {.type = BW_OP_PULL, .peer = peer};

	op.pull.key = key;
	op.pull.len = len;
	op.pull.buf = memory_of(h);
	op.pull.buf_off = FUZZ_MEMORY - len;
	op.pull.flags = flags;
	return h->protocol->submit(h->mem, &op, h->now) ? 0 : op.pull.id;
}

static void submit_other(enum bw_op_type type, uint64_t what, bool on)
{
	struct bw_op op = {.type = type, .peer = world.peer};

	if (type == BW_OP_RETRACT)
		op.expose.key = what;
	else if (type == BW_OP_CANCEL_PULL)
		op.pull_id = what;
	else
		op.on = on;
	world.us.protocol->submit(world.us.mem, &op, world.us.now);
}

/* Messages and pulls both ways, some of it under way. */
static void make_traffic(void)
{
	uint64_t key;
	int i;

	submit_send(&world.us, world.peer, 5000);
	submit_send(&world.us, world.peer, 100);
	key = submit_expose(&world.them, world.their_peer, 9000);
	world.pull[world.pulls++] = submit_pull(&world.us, world.peer, key, 9000, 0);
	world.key[world.keys++] = submit_expose(&world.us, world.peer, 9000);
	submit_send(&world.them, world.their_peer, 5000);
	submit_pull(&world.them, world.their_peer, world.key[0], 9000, 0);
	send_ours();
	for (i = 0; i < 4; i++)
		genuine(0, 0, false);
}

static void begin(uint8_t where)
{
	memset(&world, 0, sizeof(world));
	world.us.seals = world.them.seals = where >= 0xF0;
	fuzz_open(&world.us, &bw_reliable, US);
	if (where & 8)
		world.us.protocol->grow(world.us.mem, world.us.grown[world.us.grown_n++] =
							      aligned_alloc(64, BW_GROW_BYTES));
	if (where % 3 == 0)
		return;
	fuzz_open(&world.them, &bw_reliable, THEM);
	world.us.seen = seen_by_us;
	world.them.seen = seen_by_them;
	connect();
	while (genuine(0, 0, false))
		send_ours();
	if (!world.their_peer)
		fuzz_bad("the other engine knows nobody");
	if (where % 3 == 2)
		make_traffic();
}

/* Small ids in the parts of a DATA frame become those of what there is. */
static void name_parts(uint8_t *bytes, uint32_t len)
{
	uint32_t at = sizeof(struct bw_hdr) + sizeof(struct bw_ackblk);

	while (at + sizeof(struct bw_part_msg) <= len) {
		struct bw_part_msg m;
		struct bw_part_bulk b;

		memcpy(&m, bytes + at, sizeof(m));
		memcpy(&b, bytes + at, sizeof(b));
		if (m.part.kind == BW_PART_PULL && m.tag < NAMES)
			m.tag = world.key[m.tag];
		if (m.part.kind == BW_PART_PULL_ERROR && m.tag < NAMES)
			m.tag = world.pull[m.tag];
		if (m.part.kind == BW_PART_PULL || m.part.kind == BW_PART_PULL_ERROR)
			memcpy(bytes + at, &m, sizeof(m));
		if (m.part.kind == BW_PART_BULK && b.id < NAMES) {
			b.id = world.pull[b.id];
			memcpy(bytes + at, &b, sizeof(b));
		}
		at += m.part.kind == BW_PART_BULK || m.part.kind == BW_PART_PAD ? sizeof(b)
										: sizeof(m);
		at = (at + m.part.plen + 7) & ~7u;
	}
}

static void step_frame(struct fuzz_input *in, enum step step)
{
	uint8_t how = fuzz_u8(in);
	uint32_t len = fuzz_u16(in) % FUZZ_MTU, given = len;
	const uint8_t *bytes = fuzz_bytes(in, &given);
	struct bw_hdr h;

	memset(flat, 0, len);
	memcpy(flat, bytes, given);
	if (step >= STEP_ADDRESSED && len >= sizeof(h)) {
		memcpy(&h, flat, sizeof(h));
		h.magic = BW_MAGIC;
		h.version = BW_VERSION;
		h.type = h.type % BW_FRAME_DGRAM + 1;
		h.cluster = FUZZ_CLUSTER;
		h.dst_engine = US;
		h.src_engine = THEM;
		h.token = h.type == BW_FRAME_HELLO ? US : world.token;
		h.conn = world.conn;
		if (step == STEP_NUMBERED && h.type == BW_FRAME_DATA) {
			h.path = 0;
			h.pn = world.pn += 1 + (how >> 6);
			name_parts(flat, len);
		}
		memcpy(flat, &h, sizeof(h));
	}
	if (step >= STEP_SEALED)
		seal(len, !(how & 1));
	fuzz_receive(&world.us, flat, len, how & 2, how & 4);
}

/* A small number, now and then a large one. */
static uint64_t some_number(struct fuzz_input *in)
{
	uint8_t low = fuzz_u8(in);

	switch (low >> 6) {
	case 2:
		return (low & 63u) * 601u;
	case 3:
		return (uint64_t)(int64_t)(int8_t)low; /* just below 2^64 */
	}
	return low;
}

static void fill_header(uint8_t type, uint8_t flags, uint32_t pn)
{
	struct bw_hdr h = {.magic = BW_MAGIC,
			   .version = BW_VERSION,
			   .type = type,
			   .cluster = FUZZ_CLUSTER,
			   .dst_engine = US,
			   .src_engine = THEM,
			   .token = type == BW_FRAME_HELLO ? US : world.token,
			   .conn = world.conn,
			   .pn = pn,
			   .flags = flags};

	memcpy(flat, &h, sizeof(h));
}

/* What the acknowledgement states, counted back from the last number that we sent. */
static void fill_block(struct fuzz_input *in)
{
	struct bw_ackblk b = {.ack = world.sent - (uint32_t)some_number(in),
			      .floor = world.pn - (uint32_t)some_number(in),
			      .credit = (uint32_t)some_number(in) * 64,
			      .flags = fuzz_u8(in) & 3,
			      .marks = fuzz_u8(in)};

	memcpy(flat + sizeof(struct bw_hdr), &b, sizeof(b));
}

static uint32_t fill_part(struct fuzz_input *in, uint32_t at)
{
	uint8_t kind = fuzz_u8(in) % 6, flags = fuzz_u8(in);
	uint64_t id = some_number(in), off = some_number(in), total = some_number(in);
	uint16_t plen = (uint16_t)((uint64_t)some_number(in) % 500);
	struct bw_part part = {.kind = kind, .plen = plen, .crc = flags & 1 ? 0 : 0xC4C4C4C4};
	struct bw_part_msg m = {part, id, off, total, flags >> 4, flags >> 4};
	struct bw_part_bulk b = {part, id % NAMES, off};

	if (kind == BW_PART_PULL || kind == BW_PART_PULL_ERROR) {
		m.dst_ep = m.src_ep = BW_EP_CONTROL;
		m.status = flags & 3;
	} else if (kind == BW_PART_MESSAGE && flags & 2) {
		m.total = off + plen;
	}
	if (kind == BW_PART_BULK || kind == BW_PART_PAD) {
		memcpy(flat + at, &b, sizeof(b));
		return at + (uint32_t)sizeof(b) + plen;
	}
	memcpy(flat + at, &m, sizeof(m));
	return at + (uint32_t)sizeof(m) + plen;
}

static void step_parts(struct fuzz_input *in)
{
	uint32_t at = sizeof(struct bw_hdr) + sizeof(struct bw_ackblk), i, end = at;
	uint8_t how = fuzz_u8(in);

	memset(flat, 0, FUZZ_MTU);
	world.pn += how & 64 ? (uint32_t)some_number(in) : 1;
	fill_header(BW_FRAME_DATA, how & BW_HDR_ACK_NOW, world.pn);
	fill_block(in);
	for (i = 0; i < (how >> 2 & 3) && at < 1200; i++) {
		end = fill_part(in, at);
		at = (end + 7) & ~7u;
	}
	name_parts(flat, end);
	end += world.us.seals ? BW_SEAL_TAG : 0;
	seal(end, true);
	fuzz_receive(&world.us, flat, end, how & 16, how & 32);
}

static void step_ack(struct fuzz_input *in)
{
	uint32_t at = sizeof(struct bw_hdr) + sizeof(struct bw_ackblk), i;
	struct bw_ack a = {.delay_ns = fuzz_u8(in) * 1000u, .ranges = fuzz_u8(in) % 5};

	memset(flat, 0, FUZZ_MTU);
	fill_header(BW_FRAME_ACK, 0, 0);
	fill_block(in);
	a.largest = world.sent - fuzz_u8(in);
	memcpy(flat + at, &a, sizeof(a));
	at += sizeof(a);
	for (i = 0; i < a.ranges; i++, at += sizeof(struct bw_range)) {
		struct bw_range r = {(uint32_t)some_number(in), (uint32_t)some_number(in)};

		memcpy(flat + at, &r, sizeof(r));
	}
	seal(at, true);
	fuzz_receive(&world.us, flat, at, false, false);
}

static void step_submit(struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in), arg = fuzz_u8(in);
	uint64_t r;

	switch (what % 8) {
	case 0:
		submit_send(&world.us, world.peer, arg * 257u);
		break;
	case 1:
		r = submit_expose(&world.us, world.peer, arg * 100u);
		if (r)
			world.key[world.keys++ % NAMES] = r;
		break;
	case 2:
		r = submit_pull(&world.us, world.peer, arg, arg * 100u, what >> 6);
		if (r)
			world.pull[world.pulls++ % NAMES] = r;
		break;
	case 3:
		submit_other(BW_OP_RETRACT, world.key[arg % NAMES], false);
		break;
	case 4:
		submit_other(BW_OP_CANCEL_PULL, world.pull[arg % NAMES], false);
		break;
	case 5:
		submit_other(BW_OP_PRESSURE, 0, arg & 1);
		break;
	case 6:
		submit_other(BW_OP_WATCH, 0, arg & 1);
		break;
	case 7:
		if (arg == 0xFF)
			submit_other(BW_OP_DISCONNECT, 0, false);
		else if (arg >= 0x100 - FUZZ_ROW)
			world.us.hold = arg % FUZZ_ROW; /* frames, until one comes with them */
		else if (world.them.mem)
			submit_send(&world.them, world.their_peer, arg * 257u);
	}
	fuzz_events(&world.us, seen_by_us);
}

static void one_step(struct fuzz_input *in)
{
	enum step step = fuzz_u8(in) % STEPS;
	uint8_t arg;

	switch (step) {
	case STEP_TIME:
		world.us.now += 1ull << fuzz_u8(in) % 36;
		world.them.now = world.us.now;
		break;
	case STEP_SUBMIT:
		step_submit(in);
		break;
	case STEP_GENUINE:
		arg = fuzz_u8(in);
		if (world.them.mem)
			genuine(fuzz_u16(in), arg, arg & 1);
		break;
	case STEP_PARTS:
		step_parts(in);
		break;
	case STEP_ACK:
		step_ack(in);
		break;
	case STEP_LOSE:
		world.lose = !world.lose;
		break;
	default:
		step_frame(in, step);
	}
	fuzz_after(&world.us);
	send_ours();
	check_idle();
	fuzz_after(&world.us);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	uint32_t steps = 0;

	begin(fuzz_u8(&in));
	while (in.at < in.end && steps++ < 100)
		one_step(&in);
	fuzz_close(&world.us);
	if (world.them.mem)
		fuzz_close(&world.them);
	return 0;
}
