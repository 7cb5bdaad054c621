/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A killed process cannot refuse anything any more; whoever sees a frame for it does so in its
 * place. The refusal echoes what only a witness of the frame can know.
 */
#include "refuse.h"

bool bw_refuse_build(struct bw_refuse_frame *r, const struct bw_refuser *by, const void *refused,
		     uint32_t len, uint32_t whole)
{
	struct bw_hdr h;
	struct bw_hello hello;

	if (len < sizeof(h) || whole < sizeof(*r))
		return false;
	memcpy(&h, refused, sizeof(h));
	if (h.magic != BW_MAGIC || h.cluster != by->cluster ||
	    (h.type != BW_FRAME_HELLO && h.version != BW_VERSION) || h.type == BW_FRAME_REFUSE ||
	    h.type == BW_FRAME_BYE || h.type == BW_FRAME_CHALLENGE)
		return false;
	memset(r, 0, sizeof(*r));
	r->hdr.magic = BW_MAGIC;
	r->hdr.version = BW_VERSION;
	r->hdr.type = BW_FRAME_REFUSE;
	r->hdr.cluster = by->cluster;
	r->hdr.dst_engine = h.src_engine;
	r->hdr.src_engine = h.dst_engine;
	r->hdr.len = sizeof(r->body);
	r->body.why = BW_REFUSAL_NO_ENGINE;
	r->body.version_min = BW_VERSION_MIN;
	r->body.version_max = BW_VERSION_MAX;
	r->body.echo_type = h.type;
	r->body.echo_engine = h.dst_engine;
	r->body.echo_token = h.token;
	r->body.echo_conn = h.conn;
	if (h.type == BW_FRAME_HELLO) {
		if (len < sizeof(h) + sizeof(hello))
			return false;
		memcpy(&hello, (const uint8_t *)refused + sizeof(h), sizeof(hello));
		r->body.echo_conn = hello.conn;
		r->body.echo_hello = hello.token;
	}
	memcpy(r->body.name, by->name, strnlen(by->name, BW_NAME_MAX));
	if (by->key)
		r->body.auth = bw_key_auth(by->siphash, by->key, &r->hdr, sizeof(*r));
	r->hdr.hcrc = by->crc32c(0, r, sizeof(*r));
	return true;
}
