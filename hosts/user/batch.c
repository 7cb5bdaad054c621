/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Transmission by batches. The common case is one short frame: one copy and one sendto(). The
 * system calls are made directly, since the C library's wrappers are cancellation points, which
 * costs two atomic operations each in a process with threads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "batch.h"
#include "buffer.h"

struct bw_batch *bw_batch_new(unsigned int prefix, bool named)
{
	struct bw_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->prefix = prefix;
	for (unsigned int i = 0; i < BW_BATCH_FRAMES; i++) {
		struct msghdr *m = &b->msg[i].msg_hdr;

		m->msg_iov = b->slot[i].iov;
		if (named) {
			m->msg_name = &b->slot[i].to;
			m->msg_namelen = sizeof(b->slot[i].to);
		}
	}
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
	memcpy(out, head + from, f->head_len - from);
}

/* The same as a list of pieces; the head parts lie in the slot behind the link's header. */
static size_t bw_batch_pieces(struct bw_batch_slot *slot, unsigned int prefix,
			      const struct bw_tx_frame *f)
{
	uint8_t *at = slot->prefix + BW_BATCH_PREFIX - prefix;
	uint32_t from = 0;
	size_t n = 0;

	memcpy(slot->flat, f->head, f->head_len);
	for (uint32_t i = 0; i < f->segments; i++) {
		const struct bw_tx_segment *s = &f->segment[i];
		uint8_t *end = slot->flat + s->head_end;

		if (end != at)
			slot->iov[n++] = (struct iovec){at, (size_t)(end - at)};
		at = end;
		from = s->head_end;
		slot->iov[n++] = (struct iovec){(void *)bw_batch_payload(s), s->len};
	}
	if (from < f->head_len)
		slot->iov[n++] = (struct iovec){at, f->head_len - from};
	return n;
}

struct bw_batch_slot *bw_batch_add(struct bw_batch *b, const struct bw_tx_frame *f)
{
	struct bw_batch_slot *slot;
	struct msghdr *m;

	if (BW_UNLIKELY(bw_batch_full(b)))
		return NULL;
	slot = &b->slot[b->count];
	m = &b->msg[b->count++].msg_hdr;
	if (f->len <= BW_BATCH_FLAT) {
		bw_batch_weave(slot->flat, f);
		slot->iov[0].iov_base = bw_batch_header(b, slot);
		slot->iov[0].iov_len = b->prefix + f->len;
		m->msg_iovlen = 1;
	} else {
		m->msg_iovlen = bw_batch_pieces(slot, b->prefix, f);
	}
	return slot;
}

/* Number of frames that the kernel took, or -1 and errno. */
static long bw_batch_call(struct bw_batch *b, int fd)
{
	const struct msghdr *m = &b->msg[b->done].msg_hdr;

	if (b->count - b->done == 1 && m->msg_iovlen == 1)
		return syscall(SYS_sendto, fd, m->msg_iov->iov_base, m->msg_iov->iov_len,
			       MSG_DONTWAIT, m->msg_name, m->msg_namelen) < 0
			       ? -1
			       : 1;
	return syscall(SYS_sendmmsg, fd, b->msg + b->done, b->count - b->done, MSG_DONTWAIT);
}

/* Copy what is left, since the buffers referred to may be gone at the next try. A frame for which
 * there is no memory fails there (EFAULT) and is lost; the engine sends its content again. */
static void bw_batch_keep(struct bw_batch *b)
{
	for (unsigned int i = b->done; i < b->count; i++) {
		struct msghdr *m = &b->msg[i].msg_hdr;
		struct bw_batch_slot *slot = &b->slot[i];
		size_t len = 0;

		if (m->msg_iovlen == 1)
			continue;
		for (size_t k = 0; k < m->msg_iovlen; k++)
			len += m->msg_iov[k].iov_len;
		slot->spill = malloc(len);
		len = 0;
		for (size_t k = 0; k < m->msg_iovlen && slot->spill; k++) {
			memcpy((uint8_t *)slot->spill + len, m->msg_iov[k].iov_base,
			       m->msg_iov[k].iov_len);
			len += m->msg_iov[k].iov_len;
		}
		slot->iov[0] = (struct iovec){slot->spill, len};
		m->msg_iovlen = 1;
	}
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
	b->tries = 0;
	bw_batch_empty(b);
	return true;
}

bool bw_batch_flush(struct bw_batch *b, int fd, uint64_t now)
{
	bool again = false;

	while (b->done < b->count) {
		long n = bw_batch_call(b, fd);

		if (n > 0) {
			b->done += (unsigned int)n;
			b->tries = 0;
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
		b->errors++;
		b->done++;
		b->tries = 0;
		again = false;
	}
	bw_batch_empty(b);
	return true;
}
