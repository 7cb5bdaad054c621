/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The host of the fuzz targets; see fuzz.h. */
#include "fuzz.h"

#include <stdlib.h>

#include "seal.h"

/* A cookie is an address within fuzz_host.memory, or a buffer from buf_get(). */
static uint32_t fuzz_payload_crc(void *host, uint64_t buf, uint64_t off, uint32_t n)
{
	return bw_crc32c(0, (const uint8_t *)(uintptr_t)buf + off, n);
}

/* The whole frame that a scattered head belongs to. */
static int fuzz_place(void *host, uint64_t buf, uint64_t off, const struct bw_rx_frame *f,
		      uint32_t at, uint32_t n, bool check, uint32_t crc)
{
	const uint8_t *from = (const uint8_t *)f->cookie + at;

	if (at > f->len || n > f->len - at)
		fuzz_bad("payload outside of its frame");
	if (buf)
		memcpy((uint8_t *)(uintptr_t)buf + off, from, n);
	/* a checksum of 0xC4C4C4C4 is taken for right: inputs cannot compute one */
	return check && crc != 0xC4C4C4C4 && bw_crc32c(0, from, n) != crc ? -EBADMSG : 0;
}

static uint64_t fuzz_buf_get(void *host, uint32_t peer, uint64_t n, bool next)
{
	struct fuzz_host *h = host;

	if (h->buffers_n == FUZZ_BUFFERS)
		return 0;
	h->buffers[h->buffers_n] = malloc(n);
	return (uint64_t)(uintptr_t)h->buffers[h->buffers_n++];
}

/* Some messages have a place that their receiver chose. */
static uint64_t fuzz_buf_for(void *host, const struct bw_event *ev)
{
	return ev->tag % 2 ? fuzz_buf_get(host, ev->peer, ev->len, true) : 0;
}

static void fuzz_buf_put(void *host, uint64_t buf)
{
	struct fuzz_host *h = host;
	uint32_t i;

	for (i = 0; i < h->buffers_n; i++)
		if (h->buffers[i] == (void *)(uintptr_t)buf) {
			free(h->buffers[i]);
			h->buffers[i] = h->buffers[--h->buffers_n];
			return;
		}
	fuzz_bad("a buffer put back that was never given");
}

static int fuzz_region_find(void *host, uint32_t peer, uint64_t key, uint64_t off, uint64_t n,
			    uint64_t *buf, uint64_t *buf_off)
{
	struct fuzz_host *h = host;

	if (off > FUZZ_MEMORY || n > FUZZ_MEMORY - off)
		return -EFAULT;
	*buf = (uint64_t)(uintptr_t)h->memory;
	*buf_off = off;
	return 0;
}

static uint64_t fuzz_random(void *host)
{
	struct fuzz_host *h = host;

	return ++h->drawn * 0x9E3779B97F4A7C15ull >> 7;
}

/* Every engine's cookie is 1, so that made-up frames can show it. */
static uint64_t siphash(const uint8_t key[16], const void *p, size_t n)
{
	return FUZZ_TAG;
}

static void hmac_sha256(uint8_t out[32], const uint8_t *key, size_t keylen, const void *data,
			size_t len)
{
	memset(out, 0, 32);
}

static int fuzz_unseal(void *host, const struct bw_rx_frame *f, uint32_t end,
		       const struct bw_seal_by *by)
{
	if (end < BW_DATA_HEAD || end > f->len || f->len - end < BW_SEAL_TAG)
		fuzz_bad("a seal outside of its frame");
	return ((const uint8_t *)f->cookie)[end] & 1 ? -EBADMSG : 0;
}

static const struct bw_host_ops fuzz_ops = {
	.crc32c = bw_crc32c,
	.payload_crc = fuzz_payload_crc,
	.place = fuzz_place,
	.buf_get = fuzz_buf_get,
	.buf_put = fuzz_buf_put,
	.buf_for = fuzz_buf_for,
	.region_find = fuzz_region_find,
	.random = fuzz_random,
	.siphash = siphash,
	.hmac_sha256 = hmac_sha256,
	.unseal = fuzz_unseal,
};

void fuzz_open(struct fuzz_host *h, const struct bw_protocol *protocol, uint8_t number)
{
	bool seals = h->seals;
	uint32_t i;

	memset(h, 0, sizeof(*h));
	h->seals = h->cfg.keyed = seals;
	h->protocol = protocol;
	h->now = BW_S;
	h->cfg.node = number;
	h->cfg.incarnation = number;
	h->cfg.engine = number;
	h->cfg.cluster = FUZZ_CLUSTER;
	h->cfg.rx_budget = 1u << 20;
	h->cfg.features = BW_FEATURE_CHECKSUM | (seals ? BW_FEATURE_ENCRYPT : 0);
	h->cfg.dead_ns = 60 * BW_S;
	for (i = 0; i < 8; i++)
		h->cfg.link_mtu[i] = FUZZ_MTU;
	h->memory = calloc(1, FUZZ_MEMORY);
	h->mem = aligned_alloc(64, (protocol->size(&h->cfg) + 63) & ~(size_t)63);
	if (protocol->open(h->mem, &h->cfg, &fuzz_ops, h, h->now))
		fuzz_bad("open failed");
}

static void fuzz_forget_held(struct fuzz_host *h)
{
	while (h->held) {
		free(h->row[--h->held].cookie);
		free((void *)(uintptr_t)h->row[h->held].head);
	}
}

void fuzz_close(struct fuzz_host *h)
{
	static uint8_t flat[BW_FRAME_MAX_MTU];

	fuzz_forget_held(h);
	h->protocol->close(h->mem, h->now);
	while (fuzz_next_frame(h, flat))
		;
	if (h->buffers_n)
		fuzz_bad("buffers not put back at close");
	free(h->mem);
	while (h->grown_n)
		free(h->grown[--h->grown_n]);
	free(h->memory);
}

void fuzz_events(struct fuzz_host *h, void (*seen)(const struct bw_event *e))
{
	struct bw_event e;

	while (h->protocol->next_event(h->mem, &e)) {
		if (e.type == BW_EV_MESSAGE && e.buf)
			fuzz_buf_put(h, e.buf);
		if (seen)
			seen(&e);
	}
}

uint32_t fuzz_next_frame(struct fuzz_host *h, uint8_t *flat)
{
	static struct bw_tx_frame f;
	uint32_t head = 0, at = 0, i;

	if (!h->protocol->next_frame(h->mem, &f, h->now))
		return 0;
	if (f.head_len > sizeof(f.head) || f.segments > BW_TX_SEGMENTS || f.len > FUZZ_MTU ||
	    f.to.link >= 8)
		fuzz_bad("a frame beyond its limits");
	for (i = 0; i < f.segments; i++) {
		const struct bw_tx_segment *s = &f.segment[i];

		if (s->head_end < head || s->head_end > f.head_len)
			fuzz_bad("segments out of order");
		memcpy(flat + at, (const uint8_t *)f.head + head, s->head_end - head);
		at += s->head_end - head;
		head = s->head_end;
		if (at + s->len > f.len)
			fuzz_bad("a frame longer than it says");
		if (s->buf)
			memcpy(flat + at, (const uint8_t *)(uintptr_t)s->buf + s->off, s->len);
		else
			memset(flat + at, 0, s->len);
		at += s->len;
	}
	memcpy(flat + at, (const uint8_t *)f.head + head, f.head_len - head);
	if (f.seal.key) {
		memset(flat + at + f.head_len - head, 0, BW_SEAL_TAG);
		at += BW_SEAL_TAG;
	}
	if (at + f.head_len - head != f.len)
		fuzz_bad("a frame of another length than it says");
	return f.len;
}

/* All that is held arrives: what became of the last frame. */
static int fuzz_receive_held(struct fuzz_host *h)
{
	uint32_t at, taken = 1;
	int r = 0;

	h->hold = 0;
	for (at = 0; at < h->held; at += taken) {
		if (h->protocol->rx_row)
			r = h->protocol->rx_row(h->mem, h->row + at, h->held - at, &taken, h->now);
		else
			r = h->protocol->rx(h->mem, h->row + at, h->now);
		if (taken < 1 || taken > h->held - at)
			fuzz_bad("frames were taken that are not there");
		fuzz_events(h, h->seen);
	}
	fuzz_forget_held(h);
	return r;
}

int fuzz_receive(struct fuzz_host *h, const uint8_t *bytes, uint32_t len, bool scatter, bool mark)
{
	uint32_t head_len = scatter && len > BW_HEAD_MAX ? BW_HEAD_MAX : len;
	uint8_t *whole = malloc(len + !len), *head = malloc(head_len + !head_len);

	memcpy(whole, bytes, len);
	memcpy(head, bytes, head_len);
	h->row[h->held++] = (struct bw_rx_frame){.head = head,
						 .head_len = head_len,
						 .len = len,
						 .from = {.link = 0, .len = 1, .bytes = {9}},
						 .mark = mark,
						 .cookie = whole};
	if (h->hold && h->held < FUZZ_ROW) {
		h->hold--;
		return 0;
	}
	return fuzz_receive_held(h);
}

void fuzz_after(struct fuzz_host *h)
{
	const char *bad = NULL;

	while (h->grown_n < FUZZ_GROWN && h->protocol->hungry(h->mem)) {
		h->grown[h->grown_n] = aligned_alloc(64, BW_GROW_BYTES);
		h->protocol->grow(h->mem, h->grown[h->grown_n++]);
	}
	if (h->protocol->hungry(h->mem))
		h->protocol->grow(h->mem, NULL);
	if (h->protocol == &bw_reliable)
		bad = bw_reliable_check(h->mem);
	if (bad)
		fuzz_bad(bad);
}

void fuzz_seal(uint8_t *bytes, uint32_t size, bool len)
{
	uint16_t body = (uint16_t)(size - sizeof(struct bw_hdr));

	if (len && size >= sizeof(struct bw_hdr))
		memcpy(bytes + offsetof(struct bw_hdr, len), &body, sizeof(body));
	seal_frame(bytes, size);
}
