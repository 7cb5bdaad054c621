/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hostile peer: it belongs to the job, so that its frames come from where they should, with right
 * checks and numbers, and name what there is; all else is as the script says.
 */
#include "checksum.h"
#include "endpoint_world.h"
#include "hosts.h"
#include "seal.h"

#define SEEN 8 /* pulls and keys that scripts can name */

static struct {
	uint64_t pull[SEEN], key[SEEN];
	uint32_t pulls, keys;
	uint64_t message[WORLD_SIDES], control[WORLD_SIDES]; /* next numbers of their flows */
} seen;

void frame_forget(void)
{
	memset(&seen, 0, sizeof(seen));
}

/* Where the part at `at` has its payload; 0: there is no such part, or not all of it. */
static uint32_t payload_at(const uint8_t *bytes, uint32_t len, uint32_t at, struct bw_part *part)
{
	uint32_t head;

	if (at + sizeof(*part) > len)
		return 0;
	memcpy(part, bytes + at, sizeof(*part));
	head = bw_part_bytes(part->kind);
	return head && at + head + part->plen <= len ? at + head : 0;
}

static uint32_t next_part(uint32_t payload, const struct bw_part *part)
{
	return (payload + part->plen + 7) & ~7u;
}

static bool is_data(const uint8_t *bytes, uint32_t len)
{
	return len >= BW_DATA_HEAD && bytes[offsetof(struct bw_hdr, type)] == BW_FRAME_DATA;
}

void frame_see(int from, const uint8_t *bytes, uint32_t len)
{
	uint32_t at, to;
	struct bw_part part;
	struct bw_part_msg m;
	struct bw_envelope e;

	for (at = BW_DATA_HEAD; is_data(bytes, len); at = next_part(to, &part)) {
		to = payload_at(bytes, len, at, &part);
		if (!to)
			return;
		if (part.kind == BW_PART_BULK || part.kind == BW_PART_PAD)
			continue;
		memcpy(&m, bytes + at, sizeof(m));
		if (part.kind == BW_PART_MESSAGE)
			seen.message[from] = m.id + 1;
		else
			seen.control[from] = m.id + 1;
		if (part.kind == BW_PART_PULL) {
			seen.pull[seen.pulls++ % SEEN] = m.imm;
			seen.key[seen.keys++ % SEEN] = m.tag;
		} else if (part.code & BW_CODE_ENVELOPE && part.plen == sizeof(e)) {
			memcpy(&e, bytes + to, sizeof(e));
			seen.key[seen.keys++ % SEEN] = e.key;
		}
	}
}

/* All checks as a receiver computes them. */
static void set_right(uint8_t *bytes, uint32_t len)
{
	uint32_t at, to;
	struct bw_part part;

	for (at = BW_DATA_HEAD; is_data(bytes, len); at = next_part(to, &part)) {
		to = payload_at(bytes, len, at, &part);
		if (!to)
			break;
		part.crc = bw_checksum(0, bytes + to, part.plen);
		memcpy(bytes + at, &part, sizeof(part));
	}
	seal_frame(bytes, len);
}

/* One that there is, a small one, or any. */
static uint64_t some(struct fuzz_input *in, const uint64_t *names)
{
	uint8_t how = fuzz_u8(in);

	if (how < 128)
		return names[how % SEEN] + (how >= 120);
	return how < 192 ? how & 63u : fuzz_number(in);
}

static uint64_t near(struct fuzz_input *in, uint64_t next)
{
	int8_t how = (int8_t)fuzz_u8(in);

	return how == INT8_MIN ? fuzz_number(in) : next + (uint64_t)(int64_t)how;
}

static uint64_t bytes_of(struct fuzz_input *in)
{
	static const uint64_t limits[] = {BW_EAGER_LIMIT, BW_LONG_LIMIT};
	uint8_t how = fuzz_u8(in);

	if (how < 64)
		return how * 8u;
	if (how < 128)
		return fuzz_u16(in);
	if (how < 192)
		return limits[how & 1] + (how >> 1 & 15) - 8;
	return fuzz_number(in);
}

/* One field of a part. */
static void change_part(struct fuzz_input *in, uint8_t *bytes, uint32_t at, uint32_t to)
{
	struct bw_part_msg m;
	struct bw_part_bulk b;
	uint8_t what = fuzz_u8(in);

	memcpy(&m, bytes + at, sizeof(b));
	if (m.part.kind == BW_PART_BULK || m.part.kind == BW_PART_PAD) {
		memcpy(&b, bytes + at, sizeof(b));
		if (what % 4 == 0)
			b.id = some(in, seen.pull);
		else if (what % 4 == 1)
			b.offset = bytes_of(in);
		else
			b.part.kind = fuzz_u8(in) % 7;
		memcpy(bytes + at, &b, sizeof(b));
		return;
	}
	memcpy(&m, bytes + at, sizeof(m));
	switch (what % 12) {
	case 0:
		m.part.kind = fuzz_u8(in) % 7;
		break;
	case 1:
		m.part.code ^= BW_CODE_ENVELOPE;
		break;
	case 2:
		m.part.plen = fuzz_u16(in) >> (what >> 4);
		break;
	case 3:
		m.id = near(in, m.id);
		break;
	case 4:
		m.offset = bytes_of(in);
		break;
	case 5:
		m.total = bytes_of(in);
		break;
	case 6:
		m.tag = some(in, seen.key);
		break;
	case 7:
		m.imm = some(in, seen.pull);
		break;
	case 8:
		m.dst_ep = what & 64 ? BW_EP_CONTROL : fuzz_u8(in) & 3;
		break;
	case 9:
		m.status = (int32_t)fuzz_number(in);
		break;
	case 10:
		m.tag = some(in, seen.pull);
		break;
	default: /* of an envelope, how much it says to be */
		if (m.part.plen == sizeof(struct bw_envelope)) {
			uint64_t len = bytes_of(in);

			memcpy(bytes + to + offsetof(struct bw_envelope, len), &len, sizeof(len));
		}
	}
	memcpy(bytes + at, &m, sizeof(m));
}

static void change_parts(struct fuzz_input *in, uint8_t *bytes, uint32_t len)
{
	uint32_t at = BW_DATA_HEAD, to, skip = fuzz_u8(in) % 4;
	struct bw_part part;

	while ((to = payload_at(bytes, len, at, &part)) && skip--)
		at = next_part(to, &part);
	if (to)
		change_part(in, bytes, at, to);
}

static void change_header(struct fuzz_input *in, uint8_t *bytes)
{
	struct bw_hdr h;

	memcpy(&h, bytes, sizeof(h));
	switch (fuzz_u8(in) % 8) {
	case 0:
		h.type = fuzz_u8(in) % 9;
		break;
	case 1:
		h.src_engine = (uint16_t)near(in, h.src_engine);
		break;
	case 2:
		h.dst_engine = (uint16_t)near(in, h.dst_engine);
		break;
	case 3:
		h.pn += (uint32_t)near(in, 0);
		break;
	case 4:
		h.path = fuzz_u8(in);
		break;
	case 5:
		h.flags = fuzz_u8(in);
		break;
	case 6:
		h.token = (uint32_t)near(in, h.token);
		break;
	default:
		h.conn = (uint32_t)near(in, h.conn);
	}
	memcpy(bytes, &h, sizeof(h));
}

static void change_ack(struct fuzz_input *in, uint8_t *bytes)
{
	struct bw_ackblk b;

	memcpy(&b, bytes + sizeof(struct bw_hdr), sizeof(b));
	b.ack = (uint32_t)near(in, b.ack);
	b.floor = (uint32_t)near(in, b.floor);
	b.credit = (uint32_t)near(in, b.credit);
	b.flags = fuzz_u8(in) & 3;
	memcpy(bytes + sizeof(struct bw_hdr), &b, sizeof(b));
}

static void change_hello(struct fuzz_input *in, uint8_t *bytes)
{
	struct bw_hello b;
	struct bw_hdr h;

	memcpy(&h, bytes, sizeof(h));
	memcpy(&b, bytes + sizeof(h), sizeof(b));
	switch (fuzz_u8(in) % 10) {
	case 0:
		b.node = near(in, b.node);
		break;
	case 1:
		b.inc = (uint32_t)near(in, b.inc);
		break;
	case 2:
		b.engine = h.src_engine = (uint16_t)near(in, b.engine);
		break;
	case 3:
		b.features = fuzz_u8(in);
		break;
	case 4:
		b.credit = (uint32_t)fuzz_number(in);
		break;
	case 5:
		b.charge_min = (uint32_t)fuzz_number(in);
		break;
	case 6:
		b.frame_max = (uint32_t)fuzz_number(in);
		break;
	case 7:
		b.version_min = b.version_max = fuzz_u8(in) & 3;
		break;
	case 8:
		memset(b.name, fuzz_u8(in), sizeof(b.name));
		break;
	default:
		b.conn = (uint32_t)near(in, b.conn);
	}
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), &b, sizeof(b));
}

static void set_length(uint8_t *bytes, uint32_t len)
{
	uint16_t body = (uint16_t)(len - sizeof(struct bw_hdr));

	memcpy(bytes + offsetof(struct bw_hdr, len), &body, sizeof(body));
}

/* Shorter or longer than it was, and it may say so. */
static uint32_t change_length(struct fuzz_input *in, uint8_t *bytes, uint32_t len, uint32_t room)
{
	uint32_t to = (uint32_t)near(in, len) % (room + 1);

	if (to > len)
		memset(bytes + len, 0, to - len);
	if (to >= sizeof(struct bw_hdr) && fuzz_u8(in) & 1)
		set_length(bytes, to);
	return to;
}

uint32_t frame_change(struct fuzz_input *in, uint8_t *bytes, uint32_t len, uint32_t room)
{
	uint8_t what = fuzz_u8(in);
	struct bw_hdr h = {.type = 0};
	uint32_t at;

	if (len >= sizeof(h))
		memcpy(&h, bytes, sizeof(h));
	switch (what % 5) {
	case 0:
		at = fuzz_u16(in);
		if (len)
			bytes[at % len] = fuzz_u8(in);
		break;
	case 1:
		len = change_length(in, bytes, len, room);
		break;
	case 2:
		if (len >= sizeof(h))
			change_header(in, bytes);
		break;
	default:
		if (h.type == BW_FRAME_HELLO && len >= sizeof(h) + sizeof(struct bw_hello))
			change_hello(in, bytes);
		else if (h.type == BW_FRAME_ACK && len >= BW_DATA_HEAD)
			change_ack(in, bytes);
		else if (is_data(bytes, len) && what & 64)
			change_ack(in, bytes);
		else if (is_data(bytes, len))
			change_parts(in, bytes, len);
	}
	if (!(what & 128))
		set_right(bytes, len);
	return len;
}

/* Payload bytes of a part, of which no more follow if it is not whole. */
static uint32_t invent_part(struct fuzz_input *in, int from, uint8_t *bytes, uint32_t at)
{
	static const uint8_t kinds[] = {BW_PART_MESSAGE, BW_PART_MESSAGE, BW_PART_PULL,
					BW_PART_BULK, BW_PART_PULL_ERROR};
	uint8_t how = fuzz_u8(in), kind = kinds[(how & 7) % 5];
	struct bw_part part = {.kind = kind, .plen = (uint16_t)(fuzz_u8(in) * 4u)};
	struct bw_part_msg m = {.part = part, .total = part.plen};
	struct bw_envelope e = {.key = seen.key[how % SEEN]};

	if (kind == BW_PART_BULK) {
		struct bw_part_bulk b = {part, some(in, seen.pull), bytes_of(in)};

		memcpy(bytes + at, &b, sizeof(b));
		memset(bytes + at + sizeof(b), how, part.plen);
		return at + (uint32_t)sizeof(b) + part.plen;
	}
	m.id = kind == BW_PART_MESSAGE ? seen.message[from] : seen.control[from];
	m.id = how & 8 ? near(in, m.id) : m.id;
	m.total = how & 16 ? bytes_of(in) : m.total;
	m.offset = how & 32 ? bytes_of(in) : 0;
	if (kind == BW_PART_MESSAGE) {
		m.tag = fuzz_u8(in);
		if (how & 64) {
			m.total = m.part.plen = sizeof(e) - (how >> 7) * 8u;
			m.part.code = BW_CODE_ENVELOPE;
			e.len = bytes_of(in);
		}
		seen.message[from] = m.id + 1;
	} else {
		m.part.plen = 0;
		m.dst_ep = m.src_ep = BW_EP_CONTROL;
		m.tag = kind == BW_PART_PULL ? some(in, seen.key) : some(in, seen.pull);
		m.imm = some(in, seen.pull);
		m.status = kind == BW_PART_PULL ? how >> 6 : -(how >> 5);
		seen.control[from] = m.id + 1;
	}
	memcpy(bytes + at, &m, sizeof(m));
	memset(bytes + at + sizeof(m), how, m.part.plen);
	if (m.part.code)
		memcpy(bytes + at + sizeof(m), &e, m.part.plen);
	return at + (uint32_t)sizeof(m) + m.part.plen;
}

uint32_t frame_invent(struct fuzz_input *in, int from, uint8_t *bytes, uint32_t room)
{
	uint32_t at = BW_DATA_HEAD, end = at, parts = 1 + fuzz_u8(in) % 4;
	struct bw_hdr h;

	memcpy(&h, bytes, sizeof(h));
	h.pn++;
	memcpy(bytes, &h, sizeof(h));
	while (parts-- && at + 1200 < room) {
		end = invent_part(in, from, bytes, at);
		at = (end + 7) & ~7u;
		memset(bytes + end, 0, at - end);
	}
	set_length(bytes, end);
	set_right(bytes, end);
	return end;
}
