/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames as bytes and as text; see frame.h. This reads the wire by itself, without the engine's
 * parser. */
#include "frame.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sealing.h"

struct frame *frame_new(const struct bw_tx_frame *t,
			void (*read)(uint64_t buf, uint64_t off, void *to, uint32_t n))
{
	struct frame *f = calloc(1, sizeof(*f));
	uint32_t head = 0, at = 0, i;

	f->link = t->to.link;
	f->len = t->len;
	f->bytes = calloc(1, t->len);
	for (i = 0; i < t->segments; i++) {
		const struct bw_tx_segment *s = &t->segment[i];

		memcpy(f->bytes + at, (const uint8_t *)t->head + head, s->head_end - head);
		at += s->head_end - head;
		head = s->head_end;
		if (s->buf)
			read(s->buf, s->off, f->bytes + at, s->len);
		at += s->len;
	}
	memcpy(f->bytes + at, (const uint8_t *)t->head + head, t->head_len - head);
	if (t->seal.key) {
		f->trailer = BW_SEAL_TAG;
		f->pn = t->seal.pn;
		memcpy(f->seal, t->seal.key, sizeof(f->seal));
	}
	return f;
}

void frame_encipher(struct frame *f)
{
	struct bw_seal_by by = {.key = f->seal};
	uint32_t end;

	if (!f->trailer || f->sealed || f->len < BW_DATA_HEAD)
		return;
	end = sizeof(struct bw_hdr) + frame_hdr(f)->len;
	if (end > f->len || end < BW_DATA_HEAD + BW_SEAL_TAG)
		return;
	by.pn = f->pn >> 32 << 32 | frame_hdr(f)->pn; /* a test may have given it another one */
	bw_seal_frame(f->bytes, end - BW_SEAL_TAG, &by);
	f->sealed = true;
}

struct frame *frame_copy(const struct frame *f)
{
	struct frame *copy = malloc(sizeof(*copy));

	*copy = *f;
	copy->bytes = malloc(f->len);
	memcpy(copy->bytes, f->bytes, f->len);
	return copy;
}

void frame_free(struct frame *f)
{
	if (f)
		free(f->bytes);
	free(f);
}

static uint32_t part_bytes(uint8_t kind)
{
	return kind == BW_PART_BULK || kind == BW_PART_PAD ? sizeof(struct bw_part_bulk)
							   : sizeof(struct bw_part_msg);
}

struct bw_part *frame_part(const struct frame *f, unsigned int i)
{
	uint32_t end = sizeof(struct bw_hdr) + frame_hdr(f)->len - f->trailer, at = BW_DATA_HEAD;

	for (; at < end && at + sizeof(struct bw_part) <= f->len; i--) {
		struct bw_part *part = (struct bw_part *)(f->bytes + at);

		if (!i)
			return part;
		at += part_bytes(part->kind) + part->plen;
		at = (at + 7) & ~7u;
	}
	return NULL;
}

uint8_t *frame_payload(const struct frame *f, const struct bw_part *part)
{
	return (uint8_t *)(uintptr_t)part + part_bytes(part->kind);
}

uint32_t frame_fixed(const struct frame *f, uint8_t *to)
{
	const struct bw_hdr *h = frame_hdr(f);
	uint32_t end = sizeof(*h) + h->len, from = 0, n = 0;
	struct bw_part *part;
	unsigned int i;

	if (f->trailer) {
		memcpy(to, f->bytes, BW_DATA_HEAD);
		return BW_DATA_HEAD;
	}
	for (i = 0; h->type == BW_FRAME_DATA && (part = frame_part(f, i)); i++) {
		uint32_t pay = (uint32_t)(frame_payload(f, part) - f->bytes);

		memcpy(to + n, f->bytes + from, pay - from);
		n += pay - from;
		from = pay + part->plen;
	}
	memcpy(to + n, f->bytes + from, end - from);
	return n + end - from;
}

void frame_seal(struct frame *f)
{
	uint8_t *fixed = malloc(f->len);

	frame_hdr(f)->hcrc = 0;
	frame_hdr(f)->hcrc = bw_crc32c(0, fixed, frame_fixed(f, fixed));
	free(fixed);
}

struct line {
	char *text;
	size_t room;
};

__attribute__((format(printf, 2, 3))) static void say(struct line *l, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(l->text, l->room, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= l->room)
		abort();
	l->text += n;
	l->room -= (size_t)n;
}

static void say_part(struct line *l, const struct bw_part *part)
{
	const struct bw_part_msg *m = (const struct bw_part_msg *)part;
	const struct bw_part_bulk *b = (const struct bw_part_bulk *)part;
	/* Both kinds of parts begin alike; only the longer one has a total. */
	bool is_short = part->kind == BW_PART_BULK || part->kind == BW_PART_PAD;
	unsigned long long id = b->id, off = b->offset, total = is_short ? 0 : m->total;

	switch (part->kind) {
	case BW_PART_MESSAGE:
		say(l, " [MESSAGE %llu %llu+%u/%llu", id, off, part->plen, total);
		if (m->src_ep || m->dst_ep)
			say(l, " ep %u>%u", m->src_ep, m->dst_ep);
		break;
	case BW_PART_PULL:
		say(l, " [PULL %llu %llu+%llu%s%s", id, off, total,
		    m->status & BW_PULL_FINAL ? " final" : "",
		    m->status & BW_PULL_HOST_KEY ? " host" : "");
		break;
	case BW_PART_PULL_ERROR:
		say(l, " [PULL_ERROR %llu %s", id, strerrorname_np(-m->status));
		break;
	case BW_PART_BULK:
		say(l, " [BULK %llu+%u", (unsigned long long)b->offset, part->plen);
		break;
	default:
		say(l, " [PAD");
	}
	say(l, "]");
}

static void say_data(struct line *l, const struct frame *f, struct frame_view *v)
{
	const struct bw_hdr *h = frame_hdr(f);
	const struct bw_ackblk *b = frame_body(f);
	const struct bw_part *part;
	unsigned int i;

	say(l, "DATA %u%s", h->pn, h->flags & BW_HDR_ACK_NOW ? " now" : "");
	if (!(b->flags & BW_ACKBLK_NO_ACK) && b->ack != v->last_ack)
		say(l, " ack %u", v->last_ack = b->ack);
	for (i = 0; (part = frame_part(f, i)); i++) {
		if (part->kind == BW_PART_PAD && f->len == FRAME_PING)
			continue;
		say_part(l, part);
		if (part->kind == BW_PART_PAD)
			say(l, " of %u", f->len);
	}
}

static void say_ack(struct line *l, const struct frame *f, struct frame_view *v)
{
	const struct bw_ackblk *b = frame_body(f);
	const struct bw_ack *a = (const struct bw_ack *)(b + 1);
	const struct bw_range *r = (const struct bw_range *)(a + 1);
	uint32_t at = b->ack + 1, i;

	if (b->flags & BW_ACKBLK_NO_ACK)
		say(l, "ACK none");
	else
		say(l, "ACK %u", v->last_ack = b->ack);
	for (i = 0; i < a->ranges; i++) {
		at += r[i].gap;
		say(l, " +[%u,%u)", at, at + r[i].run);
		at += r[i].run;
	}
}

static void say_block(struct line *l, const struct frame *f, const struct frame_view *v)
{
	const struct bw_ackblk *b = frame_body(f);

	if (v->floor)
		say(l, " floor %u", b->floor);
	if (v->credit)
		say(l, " credit %llu", (unsigned long long)b->credit * BW_CREDIT_UNIT);
	if (v->marks)
		say(l, " marks %u", b->marks);
	if (b->flags & BW_ACKBLK_PRESSURE)
		say(l, " pressure");
}

void frame_describe(const struct frame *f, struct frame_view *v, char *text, size_t room)
{
	static const char *const why[] = {"?",	    "incarnation", "version", "handle",
					  "engine", "key",	   "encrypt"};
	struct line l = {text, room};

	switch (frame_type(f)) {
	case BW_FRAME_HELLO:
		say(&l, "HELLO%s", frame_hdr(f)->flags & BW_HDR_ANSWER ? " answer" : "");
		break;
	case BW_FRAME_DATA:
		say_data(&l, f, v);
		say_block(&l, f, v);
		break;
	case BW_FRAME_ACK:
		say_ack(&l, f, v);
		say_block(&l, f, v);
		break;
	case BW_FRAME_REFUSE:
		say(&l, "REFUSE %s", why[((struct bw_refuse *)frame_body(f))->why]);
		break;
	case BW_FRAME_BYE:
		say(&l, "BYE");
		break;
	case BW_FRAME_CHALLENGE:
		say(&l, "CHALLENGE");
		break;
	default:
		say(&l, "DGRAM %u", ((struct bw_dgram *)frame_body(f))->plen);
	}
}
