/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Transmission by batches. The common case is one short frame: one copy and one sendto(). The
 * system calls are made directly, since the C library's wrappers are cancellation points, which
 * costs two atomic operations each in a process with threads.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "batch.h"
#include "buffer.h"

/* A row is a run of pieces, of which one message has room for UIO_MAXIOV (1024). */
_Static_assert(BW_BATCH_FRAMES *BW_BATCH_PIECES <= 1024, "a row has too many pieces");

struct bw_batch *bw_batch_new(unsigned int prefix, bool named)
{
	struct bw_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->prefix = prefix;
	b->named = named;
	return b;
}

void bw_batch_free(struct bw_batch *b)
{
	if (!b)
		return;
	for (unsigned int i = 0; i < BW_BATCH_FRAMES; i++)
		free(b->slot[i].spill);
	free(b);
}

/* What a segment without a buffer refers to: padding. */
static const uint8_t bw_batch_zeroes[BW_FRAME_MAX_MTU];

static const void *bw_batch_payload(const struct bw_tx_segment *s)
{
	return s->buf ? bw_buffer_at(bw_buffer_of(s->buf), s->off) : bw_batch_zeroes;
}

/* Head parts and payloads one after another in out. */
static void bw_batch_weave(uint8_t *out, const struct bw_tx_frame *f)
{
	const uint8_t *head = (const uint8_t *)f->head;
	uint32_t from = 0;

	for (uint32_t i = 0; i < f->segments; i++) {
		const struct bw_tx_segment *s = &f->segment[i];

		memcpy(out, head + from, s->head_end - from);
		out += s->head_end - from;
		from = s->head_end;
		if (s->len)
			memcpy(out, bw_batch_payload(s), s->len);
		out += s->len;
	}
	if (from < f->head_len)
		memcpy(out, head + from, f->head_len - from);
}

/* The same as a list of pieces; the head parts lie in the slot behind the link's header. */
static uint32_t bw_batch_pieces(struct iovec *iov, struct bw_batch_slot *slot, unsigned int prefix,
				const struct bw_tx_frame *f)
{
	uint8_t *at = slot->prefix + BW_BATCH_PREFIX - prefix;
	uint32_t from = 0, n = 0;

	memcpy(slot->flat, f->head, f->head_len);
	for (uint32_t i = 0; i < f->segments; i++) {
		const struct bw_tx_segment *s = &f->segment[i];
		uint8_t *end = slot->flat + s->head_end;

		if (end != at)
			iov[n++] = (struct iovec){at, (size_t)(end - at)};
		at = end;
		from = s->head_end;
		iov[n++] = (struct iovec){(void *)bw_batch_payload(s), s->len};
	}
	if (from < f->head_len)
		iov[n++] = (struct iovec){at, f->head_len - from};
	return n;
}

struct bw_batch_slot *bw_batch_add(struct bw_batch *b, const struct bw_tx_frame *f)
{
	struct bw_batch_slot *slot;
	struct iovec *iov;

	if (BW_UNLIKELY(bw_batch_full(b)))
		return NULL;
	slot = &b->slot[b->count++];
	slot->first = b->pieces;
	slot->len = b->prefix + f->len;
	iov = b->piece + b->pieces;
	if (f->len <= BW_BATCH_FLAT) {
		bw_batch_weave(slot->flat, f);
		*iov = (struct iovec){bw_batch_header(b, slot), slot->len};
		slot->pieces = 1;
	} else {
		slot->pieces = bw_batch_pieces(iov, slot, b->prefix, f);
	}
	b->pieces += slot->pieces;
	return slot;
}

static bool bw_batch_same_way(const struct bw_batch_slot *a, const struct bw_batch_slot *b)
{
	return a->to.sin_addr.s_addr == b->to.sin_addr.s_addr && a->to.sin_port == b->to.sin_port;
}

/* How many frames from the i-th on go as one message: those of its length and address, and behind
 * them one that is shorter. */
static unsigned int bw_batch_row(const struct bw_batch *b, unsigned int i)
{
	const struct bw_batch_slot *first = &b->slot[i], *last = first;
	uint32_t bytes = first->len;
	unsigned int n = 1;

	if (!b->join || b->singly)
		return 1;
	for (; i + n < b->count && n < BW_BATCH_ROW && last->len == first->len; n++) {
		last = &b->slot[i + n];
		bytes += last->len;
		if (last->len > first->len || bytes > BW_BATCH_ROW_BYTES ||
		    !bw_batch_same_way(first, last))
			break;
	}
	return n;
}

/* The message for the row that begins with the i-th frame, as entry n: its number of frames. */
static unsigned int bw_batch_message(struct bw_batch *b, unsigned int n, unsigned int i)
{
	struct msghdr *m = &b->msg[n].msg_hdr;
	struct bw_batch_slot *slot = &b->slot[i];
	struct bw_batch_row *row = &b->row[n];
	uint16_t cut = (uint16_t)slot->len;

	row->frames = bw_batch_row(b, i);
	m->msg_name = b->named ? &slot->to : NULL;
	m->msg_namelen = b->named ? sizeof(slot->to) : 0;
	m->msg_iov = b->piece + slot->first;
	m->msg_iovlen = slot->pieces;
	m->msg_control = NULL;
	m->msg_controllen = 0;
	if (row->frames == 1)
		return 1;
	for (unsigned int k = 1; k < row->frames; k++)
		m->msg_iovlen += b->slot[i + k].pieces;
	row->control.align.cmsg_level = IPPROTO_UDP;
	row->control.align.cmsg_type = UDP_SEGMENT;
	row->control.align.cmsg_len = CMSG_LEN(sizeof(cut));
	memcpy(CMSG_DATA(&row->control.align), &cut, sizeof(cut));
	m->msg_control = row->control.bytes;
	m->msg_controllen = sizeof(row->control.bytes);
	return row->frames;
}

/* Number of messages that the kernel took, or -1 and errno. */
static long bw_batch_call(struct bw_batch *b, int fd)
{
	struct bw_batch_slot *slot = &b->slot[b->done];
	const struct iovec *iov = b->piece + slot->first;
	unsigned int n = 0;

	if (b->count - b->done == 1 && slot->pieces == 1) {
		b->row[0].frames = 1;
		return syscall(SYS_sendto, fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT,
			       b->named ? &slot->to : NULL, b->named ? sizeof(slot->to) : 0) < 0
			       ? -1
			       : 1;
	}
	for (unsigned int i = b->done; i < b->count; n++)
		i += bw_batch_message(b, n, i);
	return syscall(SYS_sendmmsg, fd, b->msg, n, MSG_DONTWAIT);
}

/* The kernel took so many messages of the last call. */
static void bw_batch_sent(struct bw_batch *b, unsigned int messages)
{
	for (unsigned int n = 0; n < messages; n++) {
		unsigned int frames = b->row[n].frames;

		b->done += frames;
		b->rows += frames > 1;
		b->row_frames += frames > 1 ? frames : 0;
	}
	b->tries = 0;
}

static void bw_batch_copy(uint8_t *to, const struct iovec *iov, uint32_t pieces)
{
	for (uint32_t i = 0; i < pieces && to; i++) {
		memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

/* Copy what is left, since the buffers referred to may be gone at the next try. A frame for which
 * there is no memory fails there (EFAULT) and is lost; the engine sends its content again. */
static void bw_batch_keep(struct bw_batch *b)
{
	uint32_t next = 0;

	for (unsigned int i = b->done; i < b->count; i++) {
		struct bw_batch_slot *slot = &b->slot[i];
		const struct iovec *iov = b->piece + slot->first;
		struct iovec whole = *iov;

		if (slot->pieces > 1) {
			slot->spill = malloc(slot->len);
			whole = (struct iovec){slot->spill, slot->len};
			bw_batch_copy(slot->spill, iov, slot->pieces);
		}
		/* Pieces stay a run: none moves up. */
		b->piece[next] = whole;
		slot->first = next++;
		slot->pieces = 1;
	}
	b->pieces = next;
}

static void bw_batch_empty(struct bw_batch *b)
{
	for (unsigned int i = 0; i < b->count; i++) {
		if (b->slot[i].spill) {
			free(b->slot[i].spill);
			b->slot[i].spill = NULL;
		}
	}
	b->count = 0;
	b->done = 0;
	b->tries = 0;
	b->pieces = 0;
	b->singly = false;
}

/* The kernel did not take a row, and errno says why. EIO: it cannot leave the checksums of such a
 * socket to the device, now or later. Otherwise it may be that one frame of the row alone fails. */
static void bw_batch_part(struct bw_batch *b)
{
	if (errno == EIO)
		b->join = false;
	b->singly = true;
	b->tries = 0;
}

/* The kernel has no room: true if what is left is given up. */
static bool bw_batch_wait(struct bw_batch *b, uint64_t now)
{
	if (!b->tries++)
		b->since = now;
	if (now - b->since <= BW_BATCH_PATIENCE) {
		bw_batch_keep(b);
		return false;
	}
	b->errors += b->count - b->done;
	bw_batch_empty(b);
	return true;
}

bool bw_batch_flush(struct bw_batch *b, int fd, uint64_t now)
{
	bool again = false;

	while (b->done < b->count) {
		long n = bw_batch_call(b, fd);

		if (BW_LIKELY(n == 1 && b->count == 1))
			break; /* the common case */
		if (n > 0) {
			bw_batch_sent(b, (unsigned int)n);
			again = false;
			continue;
		}
		/* ENOBUFS: the device had no room, or cannot carry such a frame at all: there is no
		 * telling, so the tries are limited. */
		if (errno == EAGAIN || errno == EINTR ||
		    (errno == ENOBUFS && b->tries < BW_BATCH_TRIES))
			return bw_batch_wait(b, now);
		/* An error of an earlier datagram (ICMP) is reported by the next call, whose frame
		 * deserves a second try; anything else concerns this frame. */
		if (errno == ECONNREFUSED && !again) {
			b->refused = true;
			again = true;
			continue;
		}
		again = false;
		if (b->row[0].frames > 1) {
			bw_batch_part(b);
			continue;
		}
		b->errors++;
		b->done++;
		b->tries = 0;
	}
	bw_batch_empty(b);
	return true;
}
