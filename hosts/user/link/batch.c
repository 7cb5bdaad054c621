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

#include "link/batch.h"
#include "buffer.h"
#include "sealing.h"

/* Where the first frame begins in what may not be there. */
static uint8_t *bw_batch_first(const struct bw_batch *b, uint8_t *room)
{
	return room && b->prefix ? room + BW_BATCH_PREFIX : room;
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
	b->bytes = 0;
	b->pieces = 0;
	b->next = bw_batch_first(b, b->flat);
	b->sealed = bw_batch_first(b, b->room);
	b->singly = false;
	b->placed = NULL;
}

struct bw_batch *bw_batch_new(unsigned int prefix, bool named)
{
	struct bw_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->prefix = prefix;
	b->named = named;
	bw_batch_empty(b);
	return b;
}

void bw_batch_free(struct bw_batch *b)
{
	if (!b)
		return;
	for (unsigned int i = 0; i < BW_BATCH_FRAMES; i++)
		free(b->slot[i].spill);
	free(b->room);
	free(b);
}

bool bw_batch_full(const struct bw_batch *b)
{
	return b->count == BW_BATCH_FRAMES || b->pieces > BW_BATCH_ALL - BW_BATCH_PIECES;
}

bool bw_batch_ripe(const struct bw_batch *b)
{
	return bw_batch_full(b) || b->bytes + b->slot[b->count - 1].len > BW_BATCH_ROW_BYTES;
}

int bw_batch_make_room(struct bw_batch *b, uint32_t bytes)
{
	b->stride = (BW_BATCH_PREFIX + bytes + BW_BATCH_PREFIX - 1) & ~(BW_BATCH_PREFIX - 1u);
	b->room = aligned_alloc(BW_BATCH_PREFIX, (size_t)BW_BATCH_FRAMES * b->stride);
	if (!b->room)
		return -ENOMEM;
	bw_batch_empty(b);
	return 0;
}

/* What a segment without a buffer refers to: padding. */
static const uint8_t bw_batch_zeroes[BW_FRAME_MAX_MTU];

static const void *bw_batch_payload(const struct bw_tx_segment *s)
{
	return s->buf ? bw_buffer_at(bw_buffer_of(s->buf), s->off) : bw_batch_zeroes;
}

void *bw_batch_place(struct bw_batch *b, uint32_t head_len, const void *from, uint32_t n)
{
	if (head_len + n > BW_BATCH_FLAT || bw_batch_full(b))
		return NULL;
	b->placed = from;
	return b->next + head_len;
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
	uint8_t *at = slot->flat - prefix;
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

/* The whole frame, enciphered while it is copied to its slot. Without the link's headers one lies
 * behind the other. */
static void bw_batch_seal(struct bw_batch *b, struct bw_batch_slot *slot,
			  const struct bw_tx_frame *f)
{
	const uint8_t *head = (const uint8_t *)f->head;
	struct bw_piece piece[BW_BATCH_PIECES], shown;
	uint32_t from = BW_DATA_HEAD, n = 0;
	struct bw_seal s;

	slot->flat = b->sealed;
	b->sealed += b->prefix ? b->stride : f->len;
	memcpy(slot->flat, head, BW_DATA_HEAD);
	for (uint32_t i = 0; i < f->segments; i++) {
		const struct bw_tx_segment *g = &f->segment[i];

		piece[n++] = (struct bw_piece){head + from, g->head_end - from};
		piece[n++] = (struct bw_piece){bw_batch_payload(g), g->len};
		from = g->head_end;
	}
	piece[n++] = (struct bw_piece){head + from, f->head_len - from};
	bw_seal_of(&s, &shown, slot->flat, &f->seal);
	bw_seal(&s, piece, n, slot->flat + BW_DATA_HEAD, slot->flat + f->len - BW_SEAL_TAG);
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
	b->bytes += slot->len;
	slot->fd = -1;
	slot->cut = BW_BATCH_WHOLE;
	slot->same = false;
	iov = b->piece + b->pieces;
	slot->flat = b->next;
	if (BW_UNLIKELY(f->seal.key)) {
		bw_batch_seal(b, slot, f);
		*iov = (struct iovec){bw_batch_header(b, slot), slot->len};
		slot->pieces = 1;
	} else if (f->len <= BW_BATCH_FLAT) {
		b->next += b->prefix ? BW_BATCH_PREFIX + BW_BATCH_FLAT : f->len;
		if (BW_UNLIKELY(b->placed) && f->segments == 1 &&
		    b->placed == bw_batch_payload(&f->segment[0]))
			memcpy(slot->flat, f->head, f->head_len);
		else
			bw_batch_weave(slot->flat, f);
		*iov = (struct iovec){bw_batch_header(b, slot), slot->len};
		slot->pieces = 1;
	} else {
		b->next += BW_BATCH_PREFIX + BW_BATCH_FLAT;
		slot->pieces = bw_batch_pieces(iov, slot, b->prefix, f);
	}
	b->pieces += slot->pieces;
	b->placed = NULL;
	return slot;
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
		    !(last->same || !memcmp(&first->to, &last->to, sizeof(first->to))))
			break;
	}
	return n;
}

/* The destination, where the socket has none of its own. */
static union bw_name *bw_batch_name(const struct bw_batch *b, struct bw_batch_slot *slot)
{
	return b->named && slot->fd < 0 ? &slot->to : NULL;
}

/* A message of pieces that lie one behind the other is one piece. */
static void bw_batch_unite(struct bw_batch_row *row, struct msghdr *m)
{
	row->whole = m->msg_iov[0];
	for (size_t i = 1; i < m->msg_iovlen; i++) {
		if (m->msg_iov[i].iov_base != (uint8_t *)row->whole.iov_base + row->whole.iov_len)
			return;
		row->whole.iov_len += m->msg_iov[i].iov_len;
	}
	m->msg_iov = &row->whole;
	m->msg_iovlen = 1;
}

/* With the message the kernel is told where to cut it; 0: nowhere. */
static void bw_batch_tell(struct bw_batch_row *row, struct msghdr *m, uint16_t cut)
{
	row->control.align.cmsg_level = IPPROTO_UDP;
	row->control.align.cmsg_type = UDP_SEGMENT;
	row->control.align.cmsg_len = CMSG_LEN(sizeof(cut));
	memcpy(CMSG_DATA(&row->control.align), &cut, sizeof(cut));
	m->msg_control = row->control.bytes;
	m->msg_controllen = sizeof(row->control.bytes);
}

/* The message for the row that begins with the i-th frame, as entry n: its number of frames. */
static unsigned int bw_batch_message(struct bw_batch *b, unsigned int n, unsigned int i)
{
	struct msghdr *m = &b->msg[n].msg_hdr;
	struct bw_batch_slot *slot = &b->slot[i];
	struct bw_batch_row *row = &b->row[n];

	row->frames = bw_batch_row(b, i);
	m->msg_name = bw_batch_name(b, slot);
	m->msg_namelen = m->msg_name ? bw_name_bytes(&slot->to) : 0;
	m->msg_iov = b->piece + slot->first;
	m->msg_iovlen = slot->pieces;
	m->msg_control = NULL;
	m->msg_controllen = 0;
	if (row->frames == 1) {
		if (slot->len > slot->cut)
			bw_batch_tell(row, m, 0);
		return 1;
	}
	for (unsigned int k = 1; k < row->frames; k++)
		m->msg_iovlen += b->slot[i + k].pieces;
	bw_batch_unite(row, m);
	if (slot->len != slot->cut)
		bw_batch_tell(row, m, (uint16_t)slot->len);
	return row->frames;
}

/* One message of one piece: 1, or -1 and errno. */
static long bw_batch_single(int fd, const struct iovec *iov, const union bw_name *name)
{
	return syscall(SYS_sendto, fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT, name,
		       name ? bw_name_bytes(name) : 0) < 0
		       ? -1
		       : 1;
}

/* Number of messages that the kernel took, all by one socket, or -1 and errno. */
static long bw_batch_call(struct bw_batch *b, int fd)
{
	struct bw_batch_slot *first = &b->slot[b->done];
	const struct msghdr *m = &b->msg[0].msg_hdr;
	unsigned int n = 0;

	if (first->fd >= 0)
		fd = first->fd;
	if (b->count - b->done == 1 && first->pieces == 1 && first->len <= first->cut) {
		b->row[0].frames = 1;
		return bw_batch_single(fd, b->piece + first->first, bw_batch_name(b, first));
	}
	for (unsigned int i = b->done; i < b->count && b->slot[i].fd == first->fd; n++)
		i += bw_batch_message(b, n, i);
	if (n == 1 && m->msg_iovlen == 1 && !m->msg_control)
		return bw_batch_single(fd, m->msg_iov, m->msg_name);
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

/* The kernel did not take a row, and errno says why. EIO: it cannot leave the checksums of such a
 * socket to the device, now or later. Otherwise it may be that one frame of the row alone fails. */
static void bw_batch_part(struct bw_batch *b)
{
	if (errno == EIO)
		b->join = false;
	b->singly = true;
	b->tries = 0;
}

/* The kernel took nothing by a socket that cuts: the frame may be too long for the interface now,
 * or the checksums cannot be left to the device. The socket cuts no more; true if it did. */
static bool bw_batch_uncut(struct bw_batch *b)
{
	const struct bw_batch_slot *first = &b->slot[b->done];
	int fd = first->fd, nowhere = 0;

	if (first->cut == BW_BATCH_WHOLE || (errno != EINVAL && errno != EIO))
		return false;
	setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &nowhere, sizeof(nowhere));
	for (unsigned int i = b->done; i < b->count; i++) {
		if (b->slot[i].fd == fd)
			b->slot[i].cut = BW_BATCH_WHOLE;
	}
	b->uncut = true;
	return true;
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

void bw_batch_disown(struct bw_batch *b, int fd)
{
	for (unsigned int i = b->done; i < b->count; i++) {
		if (b->slot[i].fd == fd) {
			b->slot[i].fd = -1;
			b->slot[i].cut = BW_BATCH_WHOLE;
		}
	}
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
		if (bw_batch_uncut(b))
			continue;
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
