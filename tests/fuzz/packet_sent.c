/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the target of raw frames sends; see packet_sent.h. */
#include "packet_sent.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "buffer.h"

enum { HEADER = 14, PAYLOADS = 256 };

struct sent {
	uint8_t bytes[HEADER + BW_FRAME_MAX_MTU];
	uint32_t len;
	bool ours;  /* the script's; else a refusal */
	bool taken; /* by the kernel */
};

/* In the order of the batch. */
static struct sent sent[PACKET_LINKS][BW_BATCH_FRAMES + 1];
static uint64_t taken[PACKET_LINKS]; /* by the kernel, ever */
static void *payload[PACKET_LINKS][PAYLOADS];
static uint32_t payloads[PACKET_LINKS];

static struct fuzz_input *in;
static struct bw_packet *packet; /* of PACKET_LINKS */

void packet_sent_begin(struct fuzz_input *script, struct bw_packet *of)
{
	in = script;
	packet = of;
	memset(taken, 0, sizeof(taken));
}

static void expect_sent(uint32_t i, uint32_t nth, const struct msghdr *m)
{
	static uint8_t bytes[HEADER + BW_FRAME_MAX_MTU];
	struct bw_batch *b = packet[i].batch;
	struct sent *s = &sent[i][b->done + nth];
	uint32_t len = 0;

	for (size_t k = 0; k < m->msg_iovlen; k++) {
		if (m->msg_iov[k].iov_len > sizeof(bytes) - len)
			fuzz_bad("more than the longest frame");
		memcpy(bytes + len, m->msg_iov[k].iov_base, m->msg_iov[k].iov_len);
		len += (uint32_t)m->msg_iov[k].iov_len;
	}
	if (memcmp(bytes + 6, packet[i].mac, 6) || memcmp(bytes + 12, &packet[i].ethertype, 2))
		fuzz_bad("sent with another header");
	if (b->done + nth >= b->count || s->taken)
		fuzz_bad("sent twice, or never given");
	if (!s->ours && i)
		fuzz_bad("a refusal by a link without a watch");
	if (!s->ours)
		packet_refusal(bytes, len);
	else if (len != s->len || memcmp(bytes, s->bytes, len))
		fuzz_bad("sent other bytes");
}

/* In place of the kernel: sendto() and sendmmsg() take as much as the script says. */
long syscall(long number, ...)
{
	static const int errors[] = {EAGAIN, ENOBUFS, EINTR, EMSGSIZE, ENETDOWN};
	uint32_t i, how = fuzz_u8(in);
	struct mmsghdr *m = NULL, single = {0};
	struct iovec one;
	va_list rest;
	long n = 1, at;
	int fd;

	va_start(rest, number);
	fd = va_arg(rest, int);
	i = fd == packet[0].fd ? 0 : 1;
	if (fd != packet[i].fd)
		fuzz_bad("sent by another socket");
	if (number == SYS_sendto) {
		one.iov_base = va_arg(rest, void *);
		one.iov_len = va_arg(rest, size_t);
		single.msg_hdr = (struct msghdr){.msg_iov = &one, .msg_iovlen = 1};
		m = &single;
	} else if (number == SYS_sendmmsg) {
		m = va_arg(rest, struct mmsghdr *);
		n = va_arg(rest, unsigned int);
	} else {
		fuzz_bad("another call than was expected");
	}
	va_end(rest);
	errno = errors[how % 5];
	if (how >= 220 && errno != EMSGSIZE && errno != ENETDOWN)
		return -1;
	if (how >= 190)
		n = how >= 220 ? 1 : 1 + (how & 7) % n;
	for (at = 0; at < n; at++)
		expect_sent(i, (uint32_t)at, &m[at].msg_hdr);
	if (how >= 220)
		return -1; /* this frame cannot be sent */
	for (at = 0; at < n; at++)
		sent[i][packet[i].batch->done + at].taken = true;
	taken[i] += (uint64_t)n;
	return n;
}

bool packet_sent_flush(uint32_t i, uint64_t now)
{
	struct bw_packet *p = &packet[i];
	bool gone = !p->batch->count || bw_batch_flush(p->batch, p->fd, now);

	if (gone != !p->batch->count)
		fuzz_bad("a batch that is empty and is not");
	while (payloads[i])
		free(payload[i][--payloads[i]]);
	if (!gone)
		return false;
	for (uint32_t k = 0; k < BW_BATCH_FRAMES; k++)
		sent[i][k].ours = sent[i][k].taken = false;
	if (p->count.tx_frames != taken[i] + p->batch->errors)
		fuzz_bad("frames that were neither sent nor counted as lost");
	return true;
}

/* A frame of some segments, in the program's memory or of zeroes. */
void packet_sent_add(uint32_t i, struct bw_tx_frame *f)
{
	static struct bw_buffer buffers[PACKET_LINKS][PAYLOADS];
	struct bw_packet *p = &packet[i];
	struct sent *to = &sent[i][p->batch->count];
	uint32_t many = fuzz_u8(in) % (BW_TX_SEGMENTS + 1), n = 0, head = 0, k;
	int fill = (int)p->batch->count + 1;
	bool full;

	f->to = (struct bw_link_addr){.link = (uint8_t)i, .len = 6};
	memset(f->to.bytes, fuzz_u8(in), 6);
	f->head_len = fuzz_u16(in) % 400;
	f->segments = 0;
	f->seal.key = NULL;
	memset(f->head, fill, f->head_len);
	memcpy(to->bytes, f->to.bytes, 6);
	memcpy(to->bytes + 6, p->mac, 6);
	memcpy(to->bytes + 12, &p->ethertype, 2);
	for (k = 0; k < many && payloads[i] < PAYLOADS; k++) {
		uint32_t len = fuzz_u16(in) >> (many > 2 ? 5 : 0), end = head + fuzz_u8(in);
		struct bw_tx_segment *g = &f->segment[k];

		end = end < f->head_len ? end : f->head_len;
		if (n + f->head_len + len > p->mtu)
			break;
		*g = (struct bw_tx_segment){.head_end = end, .len = len};
		memset(to->bytes + HEADER + n + head, fill, end - head);
		n += len;
		head = end;
		memset(to->bytes + HEADER + n - len + head, 0, len);
		f->segments++;
		if (fuzz_u8(in) & 1)
			continue;
		payload[i][payloads[i]] = malloc(len + 1);
		memset(payload[i][payloads[i]], (int)k + 100, len + 1);
		memset(to->bytes + HEADER + n - len + head, (int)k + 100, len);
		buffers[i][payloads[i]] = (struct bw_buffer){.data = payload[i][payloads[i]]};
		g->buf = bw_buffer_cookie(&buffers[i][payloads[i]++]);
		g->off = 1;
	}
	memset(to->bytes + HEADER + n + head, fill, f->head_len - head);
	f->len = f->head_len + n;
	to->len = HEADER + f->len;
	full = bw_batch_full(p->batch);
	if (bw_packet_add(p, f) == full)
		fuzz_bad("collected beyond the batch, or not");
	to->ours = !full;
}
