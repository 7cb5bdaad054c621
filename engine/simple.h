/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Building blocks for simple protocols, whose frames have one fixed part: begin, seal and check the
 * common header, so that foreign, damaged and misdirected frames are told apart alike everywhere.
 */
#ifndef BW_SIMPLE_H
#define BW_SIMPLE_H

#include "protocol.h"

/* First member of a simple protocol's instance: what it was opened with, and its counters. */
struct bw_simple {
	struct bw_config cfg;
	const struct bw_host_ops *ops;
	void *host;
	struct bw_counters count;
};

/* Clear the `bytes` of the instance. 0 or -EINVAL. */
static inline int bw_simple_open(struct bw_simple *s, size_t bytes, const struct bw_config *cfg,
				 const struct bw_host_ops *ops, void *host)
{
	memset(s, 0, bytes);
	s->cfg = *cfg;
	s->ops = ops;
	s->host = host;
	return cfg->node && cfg->incarnation ? 0 : -EINVAL;
}

static inline const struct bw_counters *bw_simple_counters(void *p)
{
	return &((struct bw_simple *)p)->count;
}

/* Count why a frame is dropped; the result is rx()'s. */
static inline int bw_simple_drop(struct bw_simple *s, enum bw_drop why)
{
	s->count.drop[why]++;
	return -(int)why;
}

static inline void bw_simple_begin(const struct bw_simple *s, struct bw_hdr *h, uint8_t type,
				   uint16_t dst_engine)
{
	memset(h, 0, sizeof(*h));
	h->magic = BW_MAGIC;
	h->version = BW_VERSION;
	h->type = type;
	h->cluster = s->cfg.cluster;
	h->dst_engine = dst_engine;
	h->src_engine = s->cfg.engine;
}

/* Last step: the length of the whole frame, and the check of its bytes before the payload. */
static inline void bw_simple_seal(const struct bw_simple *s, struct bw_hdr *h, uint32_t fixed,
				  uint32_t frame_len)
{
	h->len = (uint16_t)(frame_len - sizeof(*h));
	h->hcrc = 0;
	h->hcrc = s->ops->crc32c(0, h, fixed);
}

/* Is it a frame of this type for us, with its `fixed` bytes and all that its header states? */
static inline enum bw_drop bw_simple_check(const struct bw_simple *s, const struct bw_rx_frame *f,
					   uint8_t type, uint32_t fixed)
{
	struct bw_hdr h;
	uint32_t crc;

	if (f->len < sizeof(h))
		return BW_DROP_SHORT;
	memcpy(&h, f->head, sizeof(h));
	if (h.magic != BW_MAGIC)
		return BW_DROP_FOREIGN;
	if (h.version != BW_VERSION)
		return BW_DROP_VERSION;
	if (h.cluster != s->cfg.cluster)
		return BW_DROP_CLUSTER;
	if (h.dst_engine != s->cfg.engine)
		return BW_DROP_ENGINE;
	if (h.type != type)
		return BW_DROP_TYPE;
	if (sizeof(h) + h.len < fixed || sizeof(h) + h.len > f->len)
		return BW_DROP_SHORT;
	crc = h.hcrc;
	h.hcrc = 0;
	h.hcrc = s->ops->crc32c(0, &h, sizeof(h));
	h.hcrc = s->ops->crc32c(h.hcrc, (const struct bw_hdr *)f->head + 1, fixed - sizeof(h));
	return h.hcrc == crc ? BW_DROP_NONE : BW_DROP_HEADER;
}

/* A frame for this address of `head_len` fixed bytes and the payload of a SEND. */
static inline void bw_simple_frame(struct bw_tx_frame *f, const struct bw_link_addr *to,
				   uint32_t head_len, const struct bw_op *op)
{
	f->to = *to;
	f->head_len = head_len;
	f->len = head_len + op->send.len;
	f->seal.key = NULL;
	f->segments = op->send.len != 0;
	f->segment[0].head_end = head_len;
	f->segment[0].len = op->send.len;
	f->segment[0].buf = op->send.buf;
	f->segment[0].off = op->send.buf_off;
}

/* The payload's checksum, 0 where checksums are not asked for. */
static inline uint32_t bw_simple_crc(const struct bw_simple *s, const struct bw_op *op)
{
	if (!op->send.len || !(s->cfg.features & BW_FEATURE_CHECKSUM))
		return 0;
	return s->ops->payload_crc(s->host, op->send.buf, op->send.buf_off, op->send.len);
}

/* For protocols whose memory is all in size(). */
static inline void bw_simple_grow(void *p, void *mem)
{
}

static inline bool bw_simple_hungry(void *p)
{
	return false;
}

#endif
