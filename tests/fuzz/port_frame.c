/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames that nobody's engine made, valid as far as the script likes; see port_world.h. */
#include "port_world.h"

#include "seal.h"

static uint8_t flat[BW_FRAME_MAX_MTU];

/* What is sealed is not enciphered, and has this tag: port_rest.c. */
static void seal(uint32_t size)
{
	struct bw_hdr h;

	seal_frame(flat, size);
	if (!world.seals || size < sizeof(h))
		return;
	memcpy(&h, flat, sizeof(h));
	if (h.type != BW_FRAME_DATA && h.type != BW_FRAME_ACK && h.type != BW_FRAME_BYE)
		return;
	h.token = 0;
	h.hcrc = FUZZ_TAG;
	memcpy(flat, &h, sizeof(h));
}

static void arrive(uint32_t len, uint32_t who)
{
	const struct port_frame f = {len, flat};

	port_arrive(&world.side[US], &f, 1, who, true);
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

static void fill_header(uint8_t type, uint8_t flags, uint32_t pn, uint32_t who)
{
	struct bw_hdr h = {.magic = BW_MAGIC,
			   .version = BW_VERSION,
			   .type = type,
			   .cluster = FUZZ_CLUSTER,
			   .dst_engine = 1,
			   .src_engine = (uint16_t)(2 + who),
			   .token = type == BW_FRAME_HELLO ? 0 : world.token[who],
			   .conn = world.conn[who],
			   .pn = pn,
			   .flags = flags};

	memcpy(flat, &h, sizeof(h));
}

static void set_len(uint32_t size)
{
	uint16_t body = (uint16_t)(size - sizeof(struct bw_hdr));

	memcpy(flat + offsetof(struct bw_hdr, len), &body, sizeof(body));
}

void port_make_bytes(struct fuzz_input *in, enum port_made made)
{
	uint8_t how = fuzz_u8(in);
	uint32_t who = how >> 3 & 3, len = fuzz_u16(in) % FUZZ_MTU, given = len;
	const uint8_t *bytes = fuzz_bytes(in, &given);
	struct bw_hdr h;

	memset(flat, 0, sizeof(h) + len);
	memcpy(flat, bytes, given);
	if (made >= PORT_ADDRESSED && len >= sizeof(h)) {
		memcpy(&h, flat, sizeof(h));
		fill_header(h.type % BW_FRAME_CHALLENGE + 1, h.flags, h.pn, who);
		if (made == PORT_NUMBERED)
			memcpy(flat + offsetof(struct bw_hdr, pn), &(uint32_t){++world.pn[who]}, 4);
	}
	if (made >= PORT_SEALED && len >= sizeof(h)) {
		if (!(how & 1))
			set_len(len);
		seal(len);
	}
	arrive(len, who);
}

/* What the acknowledgement states, counted back from the last number that we sent. */
static void fill_block(struct fuzz_input *in, uint32_t who)
{
	struct bw_ackblk b = {.ack = world.sent - (uint32_t)some_number(in),
			      .floor = world.pn[who] - (uint32_t)some_number(in),
			      .credit = (uint32_t)some_number(in) * 64,
			      .flags = fuzz_u8(in) & 3,
			      .marks = fuzz_u8(in)};

	memcpy(flat + sizeof(struct bw_hdr), &b, sizeof(b));
}

/* The region, or the pull, that a small number names. */
static uint64_t name(uint8_t kind, uint64_t n)
{
	const struct port_side *us = &world.side[US];

	if (n >= PORT_NAMES)
		return n;
	return kind == BW_PART_PULL ? us->region[n].key : us->pull[n];
}

static uint32_t fill_part(struct fuzz_input *in, uint32_t at)
{
	uint8_t kind = fuzz_u8(in) % 6, flags = fuzz_u8(in);
	uint64_t id = some_number(in), off = some_number(in), total = some_number(in);
	uint16_t plen = (uint16_t)((uint64_t)some_number(in) % 700);
	struct bw_part part = {
		.kind = kind, .code = flags & 0x40 ? BW_CODE_ENVELOPE : flags >> 5, .plen = plen};
	struct bw_part_msg m = {part, id, off, total, flags >> 4, flags >> 4};
	struct bw_part_bulk b = {part, name(kind, id), off};
	uint32_t head = kind == BW_PART_BULK || kind == BW_PART_PAD ? sizeof(b) : sizeof(m), i;

	if (kind == BW_PART_PULL || kind == BW_PART_PULL_ERROR) {
		m.dst_ep = m.src_ep = BW_EP_CONTROL;
		m.tag = name(kind, m.tag);
		m.status = flags & 3;
	} else if (kind == BW_PART_MESSAGE && flags & 2) {
		m.total = off + plen;
	}
	for (i = 0; i < plen; i++)
		flat[at + head + i] = (uint8_t)(i + id);
	m.part.crc = b.part.crc = flags & 1 ? 0 : bw_crc32c(0, flat + at + head, plen);
	if (head == sizeof(b))
		memcpy(flat + at, &b, sizeof(b));
	else
		memcpy(flat + at, &m, sizeof(m));
	return at + head + plen;
}

void port_make_parts(struct fuzz_input *in)
{
	uint32_t at = BW_DATA_HEAD, i, end = at, who;
	uint8_t how = fuzz_u8(in);

	who = how & 16 ? how >> 7 : 0;
	memset(flat, 0, FUZZ_MTU);
	world.pn[who] += how & 64 ? (uint32_t)some_number(in) : 1;
	fill_header(BW_FRAME_DATA, how & BW_HDR_ACK_NOW, world.pn[who], who);
	fill_block(in, who);
	for (i = 0; i <= (how >> 2 & 3) && at < 1200; i++) {
		end = fill_part(in, at);
		at = (end + 7) & ~7u;
	}
	end += world.seals ? BW_SEAL_TAG : 0;
	set_len(end);
	seal(end);
	/* Bytes behind the stated end are legal. */
	arrive(end + (how & 32 ? 1 + how % 60 : 0), who);
}

void port_make_ack(struct fuzz_input *in)
{
	uint32_t at = BW_DATA_HEAD, i;
	struct bw_ack a = {.delay_ns = fuzz_u8(in) * 1000u, .ranges = fuzz_u8(in) % 5};

	memset(flat, 0, FUZZ_MTU);
	fill_header(BW_FRAME_ACK, 0, 0, 0);
	fill_block(in, 0);
	a.largest = world.sent - fuzz_u8(in);
	memcpy(flat + at, &a, sizeof(a));
	at += sizeof(a);
	for (i = 0; i < a.ranges; i++, at += sizeof(struct bw_range)) {
		struct bw_range r = {(uint32_t)some_number(in), (uint32_t)some_number(in)};

		memcpy(flat + at, &r, sizeof(r));
	}
	set_len(at);
	seal(at);
	arrive(at, 0);
}

/* Of a stranger, who has been challenged already (port_rest.c), or of the other side. */
void port_make_hello(struct fuzz_input *in)
{
	uint8_t how = fuzz_u8(in);
	uint32_t who = how & 3, len = sizeof(struct bw_hdr) + sizeof(struct bw_hello);
	struct bw_hello b = {.node = 2 + who,
			     .features = BW_FEATURE_CHECKSUM | BW_FEATURE_STRIPE |
					 (world.seals ? BW_FEATURE_ENCRYPT : 0) |
					 (how & 4 ? BW_FEATURE_LONG : 0),
			     .inc = 1 + (how >> 3 & 3),
			     .conn = 1 + who,
			     .version_min = how & 32 ? BW_VERSION + 1 : BW_VERSION,
			     .version_max = BW_VERSION + (how >> 5 & 1),
			     .engine = (uint16_t)(2 + who),
			     .credit = (uint32_t)some_number(in) * 64,
			     .charge_min = (uint32_t)some_number(in),
			     .frame_max = 600 + (uint32_t)some_number(in),
			     .token = 7,
			     .nonce = 1,
			     .cookie = FUZZ_TAG};

	memset(flat, 0, FUZZ_MTU);
	fill_header(BW_FRAME_HELLO, how & 64 ? BW_HDR_ANSWER : 0, 0, who);
	if (how & 128)
		memset(flat + offsetof(struct bw_hdr, conn), 0, 4);
	memcpy(flat + sizeof(struct bw_hdr), &b, sizeof(b));
	world.pn[who] = 0;
	set_len(len);
	seal(len);
	arrive(len, who);
}

void port_make_changed(struct fuzz_input *in, uint8_t *bytes, uint32_t len)
{
	uint32_t at = fuzz_u16(in), n = 1 + fuzz_u8(in) % 8, i;

	memcpy(flat, bytes, len);
	for (i = 0; i < n; i++)
		flat[(at + i) % len] ^= fuzz_u8(in);
	seal(len);
	memcpy(bytes, flat, len);
}
