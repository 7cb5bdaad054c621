/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A frame in words, short enough for a line of a log or of a test: "@100002 DATA#7[MESSAGE 3 8B]",
 * "@100002 ACK 4 6-7", "@100002 HELLO.answer of 100005" (handles: the receiver's behind the @, the
 * sender's own in its HELLO). It reads bytes as wire.h states them and trusts none of them.
 */
#include "sim.h"

#include <stdarg.h>

struct sim_text {
	char *at;
	size_t left;
};

static void __attribute__((format(printf, 2, 3)))
sim_text_add(struct sim_text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->at, t->left, format, args);
	va_end(args);
	if (n < 0)
		return;
	if ((size_t)n >= t->left)
		n = (int)t->left - 1;
	t->at += n;
	t->left -= (size_t)n;
}

static void sim_text_message(struct sim_text *t, const struct bw_part_msg *m)
{
	unsigned long long id = m->id, off = m->offset, total = m->total;

	if (m->part.kind == BW_PART_PULL)
		sim_text_add(t, "[PULL %llu %llu+%llu%s]", id, off, total,
			     m->status & BW_PULL_FINAL ? " final" : "");
	else if (m->part.kind == BW_PART_PULL_ERROR)
		sim_text_add(t, "[PULL_ERROR %llu %d]", id, m->status);
	else if (m->part.plen == total)
		sim_text_add(t, "[MESSAGE %llu %lluB]", id, total);
	else
		sim_text_add(t, "[MESSAGE %llu %llu+%u/%llu]", id, off, m->part.plen, total);
}

static void sim_text_parts(struct sim_text *t, const uint8_t *frame, uint32_t end)
{
	uint32_t at = sizeof(struct bw_hdr) + sizeof(struct bw_ackblk);

	while (at + sizeof(struct bw_part_bulk) <= end) {
		const struct bw_part *part = (const struct bw_part *)(frame + at);
		const struct bw_part_bulk *bulk = (const struct bw_part_bulk *)part;
		uint32_t size = sizeof(*bulk);

		if (part->kind >= BW_PART_MESSAGE && part->kind <= BW_PART_PULL_ERROR) {
			size = sizeof(struct bw_part_msg);
			if (at + size > end)
				break;
			sim_text_message(t, (const struct bw_part_msg *)part);
		} else if (part->kind == BW_PART_BULK) {
			sim_text_add(t, "[BULK %llu+%u]", (unsigned long long)bulk->offset,
				     part->plen);
		} else if (part->kind == BW_PART_PAD) {
			sim_text_add(t, "[PAD %u]", part->plen);
		} else {
			break;
		}
		at = (at + size + part->plen + 7) & ~7u;
	}
	if (at < end)
		sim_text_add(t, "[?]");
}

static void sim_text_data(struct sim_text *t, const uint8_t *frame, uint32_t end)
{
	const struct bw_hdr *h = (const struct bw_hdr *)frame;
	const struct bw_ackblk *b = (const struct bw_ackblk *)(h + 1);

	sim_text_add(t, "DATA#%u", h->pn);
	sim_text_parts(t, frame, end);
	if (!(b->flags & BW_ACKBLK_NO_ACK))
		sim_text_add(t, " ack %u", b->ack);
	if (h->flags & BW_HDR_ACK_NOW)
		sim_text_add(t, " !");
}

static void sim_text_ack(struct sim_text *t, const uint8_t *frame, uint32_t end)
{
	const struct bw_ackblk *b = (const struct bw_ackblk *)(frame + sizeof(struct bw_hdr));
	const struct bw_ack *a = (const struct bw_ack *)(b + 1);
	const struct bw_range *r = (const struct bw_range *)(a + 1);
	uint32_t i, from = b->ack + 1;

	sim_text_add(t, "ACK");
	if (!(b->flags & BW_ACKBLK_NO_ACK))
		sim_text_add(t, " %u", b->ack);
	for (i = 0; i < a->ranges && (const uint8_t *)(r + i + 1) <= frame + end; i++) {
		uint32_t lo = from + r[i].gap;

		from = lo + r[i].run;
		sim_text_add(t, from - lo == 1 ? " %u" : " %u-%u", lo, from - 1);
	}
	if (b->flags & BW_ACKBLK_PRESSURE)
		sim_text_add(t, " pressure");
}

static void sim_text_hello(struct sim_text *t, const uint8_t *frame, uint32_t end)
{
	const struct bw_hdr *h = (const struct bw_hdr *)frame;
	const struct bw_hello *b = (const struct bw_hello *)(h + 1);

	sim_text_add(t, h->flags & BW_HDR_ANSWER ? "HELLO.answer" : "HELLO");
	if (end >= sizeof(*h) + sizeof(*b))
		sim_text_add(t, " of %x", b->conn);
}

static const char *sim_text_refusal(uint8_t why)
{
	static const char *const names[] = {"?",	 "incarnation", "version", "handle",
					    "no engine", "key",		"encrypt"};

	return names[why <= BW_REFUSAL_ENCRYPT ? why : 0];
}

void sim_text_frame(char *text, size_t size, const void *frame, uint32_t len)
{
	struct sim_text t = {.at = text, .left = size};
	const struct bw_hdr *h = frame;
	uint32_t body = len > sizeof(*h) ? len - (uint32_t)sizeof(*h) : 0, end;

	text[0] = 0;
	if (len < sizeof(*h) || h->magic != BW_MAGIC) {
		sim_text_add(&t, "foreign %uB", len);
		return;
	}
	end = (uint32_t)sizeof(*h) + (h->len < body ? h->len : body);
	if (h->path)
		sim_text_add(&t, "path%u ", h->path);
	if (h->conn)
		sim_text_add(&t, "@%x ", h->conn);
	if (h->type == BW_FRAME_HELLO)
		sim_text_hello(&t, frame, end);
	else if (h->type == BW_FRAME_DATA && end >= sizeof(*h) + sizeof(struct bw_ackblk))
		sim_text_data(&t, frame, end);
	else if (h->type == BW_FRAME_ACK &&
		 end >= sizeof(*h) + sizeof(struct bw_ackblk) + sizeof(struct bw_ack))
		sim_text_ack(&t, frame, end);
	else if (h->type == BW_FRAME_REFUSE && end >= sizeof(*h) + sizeof(struct bw_refuse))
		sim_text_add(&t, "REFUSE %s",
			     sim_text_refusal(((const struct bw_refuse *)(h + 1))->why));
	else if (h->type == BW_FRAME_BYE)
		sim_text_add(&t, "BYE");
	else if (h->type == BW_FRAME_DGRAM)
		sim_text_add(&t, "DGRAM %uB", end - (uint32_t)sizeof(*h));
	else
		sim_text_add(&t, "type%u %uB", h->type, len);
}
