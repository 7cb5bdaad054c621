/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What engines ask of a plain host. See plain.h. */
#include "plain.h"

#include <stdlib.h>

#include "checksum.h"
#include "keyed.h"
#include "secret.h"

struct plain_buffer *plain_buffer_new(uint64_t len)
{
	struct plain_buffer *b = malloc(sizeof(*b) + len);

	if (b)
		b->len = len;
	return b;
}

static uint32_t plain_payload_crc(void *host, uint64_t buf, uint64_t off, uint32_t n)
{
	return bw_checksum(0, plain_buffer_of(buf)->bytes + off, n);
}

static int plain_place(void *host, uint64_t buf, uint64_t off, const struct bw_rx_frame *f,
		       uint32_t at, uint32_t n, bool check, uint32_t crc)
{
	const uint8_t *from = (const uint8_t *)f->head + at;

	if (check && bw_checksum(0, from, n) != crc)
		return -EBADMSG;
	if (buf)
		memcpy(plain_buffer_of(buf)->bytes + off, from, n);
	return 0;
}

static uint64_t plain_buf_get(void *host, uint32_t peer, uint64_t n, bool next)
{
	return (uintptr_t)plain_buffer_new(n);
}

static void plain_buf_put(void *host, uint64_t buf)
{
	free(plain_buffer_of(buf));
}

static int plain_region_find(void *host, uint32_t peer, uint64_t key, uint64_t off, uint64_t n,
			     uint64_t *buf, uint64_t *buf_off)
{
	return -ENOENT;
}

static uint64_t plain_random(void *host)
{
	static _Thread_local struct bw_secret secret;

	return bw_secret_draw(&secret);
}

const struct bw_host_ops plain_host_ops = {
	.crc32c = bw_checksum,
	.payload_crc = plain_payload_crc,
	.place = plain_place,
	.buf_get = plain_buf_get,
	.buf_put = plain_buf_put,
	.region_find = plain_region_find,
	.random = plain_random,
	.siphash = bw_siphash,
	.hmac_sha256 = bw_hmac_sha256,
};
