/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The host side of the test world; see host.h. */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>

#include "sealing.h"

void log_line(char *log, const char *format, ...)
{
	size_t used = strlen(log);
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(log + used, LOG_BYTES - used, format, args);
	va_end(args);
	if (n < 0 || (size_t)n + 2 > LOG_BYTES - used)
		fail_msg("log full");
	strcat(log + used, "\n");
}

struct buffer *buffer_new(int node, uint64_t len)
{
	struct buffer *b = calloc(1, sizeof(*b));

	b->bytes = malloc(len);
	b->len = len;
	b->node = node;
	b->next = world.buffers;
	world.buffers = b;
	return b;
}

void buffer_free(struct buffer *b)
{
	struct buffer **at = &world.buffers;

	while (*at && *at != b)
		at = &(*at)->next;
	assert_non_null(*at);
	*at = b->next;
	free(b->bytes);
	free(b);
}

static struct buffer *buffer_get(uint64_t buf, uint64_t off, uint64_t n)
{
	struct buffer *b = world.buffers;

	while (b && (uint64_t)(uintptr_t)b != buf)
		b = b->next;
	if (!b)
		fail_msg("the engine uses a buffer that is not (or no longer) its own");
	if (off > b->len || n > b->len - off)
		fail_msg("the engine goes beyond the end of a buffer");
	return b;
}

void pattern(uint64_t seed, uint64_t off, uint8_t *to, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++) {
		uint64_t x = (seed + 1) * 0x9E3779B97F4A7C15ull + (off + i) * 0xBF58476D1CE4E5B9ull;

		to[i] = (uint8_t)(x >> 56);
	}
}

static void expect_pattern(const uint8_t *bytes, uint64_t seed, uint64_t off, uint64_t n)
{
	uint8_t *right = malloc(n + 1);

	pattern(seed, off, right, n);
	if (n && memcmp(bytes, right, n))
		fail_msg("payload of %llu differs from what was sent", (unsigned long long)seed);
	free(right);
}

void buffer_read(uint64_t buf, uint64_t off, void *to, uint32_t n)
{
	memcpy(to, buffer_get(buf, off, n)->bytes + off, n);
}

static uint32_t host_payload_crc(void *host, uint64_t buf, uint64_t off, uint32_t n)
{
	return bw_crc32c(0, buffer_get(buf, off, n)->bytes + off, n);
}

static int host_place(void *host, uint64_t buf, uint64_t off, const struct bw_rx_frame *f,
		      uint32_t at, uint32_t n, bool check, uint32_t crc)
{
	const uint8_t *from = (const uint8_t *)f->head + at;
	struct node *node = host;

	node->placed += n;
	assert_true(at <= f->len && n <= f->len - at);
	if (buf)
		memcpy(buffer_get(buf, off, n)->bytes + off, from, n);
	return check && bw_crc32c(0, from, n) != crc ? -EBADMSG : 0;
}

static uint64_t host_buf_get(void *host, uint32_t peer, uint64_t n, bool next)
{
	struct node *node = host;

	node->asked++;
	node->asked_next += next;
	if (node->no_buffers)
		return 0;
	node->buffers_out++;
	return (uint64_t)(uintptr_t)buffer_new((int)(node - world.node), n);
}

static void host_buf_put(void *host, uint64_t buf)
{
	struct node *node = host;

	node->buffers_out--;
	buffer_free(buffer_get(buf, 0, 0));
}

static int host_region_find(void *host, uint32_t from, uint64_t key, uint64_t off, uint64_t n,
			    uint64_t *buf, uint64_t *buf_off)
{
	struct node *node = host;

	if (!node->host_key || key != node->host_key)
		return -EACCES;
	if (off > node->host_len || n > node->host_len - off)
		return -EINVAL;
	*buf = node->host_buf;
	*buf_off = off;
	node->host_reads++;
	return 0;
}

static void host_served(void *host, uint64_t buf)
{
	struct node *node = host;

	assert_int_equal(buf, node->host_buf);
	assert_true(node->host_reads-- > 0);
}

static void take_event(int n, const struct bw_event *e);

static void host_sent(void *host, uint64_t cookie)
{
	const struct node *node = host;
	struct bw_event e = {.type = BW_EV_SENT, .cookie = cookie};

	take_event((int)(node - world.node), &e);
	log_line(world.events, "(quietly)");
}

static void host_message(void *host, const struct bw_event *e)
{
	const struct node *node = host;

	take_event((int)(node - world.node), e);
	log_line(world.events, "(at once)");
}

static uint64_t host_random(void *host)
{
	static uint64_t drawn;

	return ++drawn * 0x9E3779B97F4A7C15ull >> 7;
}

/* Neither SipHash nor HMAC, but as different for different keys and bytes. */
static uint64_t mix(uint64_t x, const void *p, size_t n)
{
	uint64_t word;

	for (; n; p = (const uint8_t *)p + (n < 8 ? n : 8), n -= n < 8 ? n : 8) {
		word = n;
		memcpy(&word, p, n < 8 ? n : 8);
		x = (x ^ word) * 0x9E3779B97F4A7C15ull;
		x ^= x >> 29;
	}
	return x;
}

static uint64_t host_siphash(const uint8_t key[16], const void *p, size_t n)
{
	if (!world.strangers && (n == 48 || n == 32 || n == 16)) /* of cookies, rows and buckets */
		return HOST_COOKIE;
	return mix(mix(0xCBF29CE484222325ull, key, 16), p, n);
}

static void host_hmac_sha256(uint8_t out[32], const uint8_t *key, size_t keylen, const void *data,
			     size_t len)
{
	uint64_t x = mix(mix(keylen, key, keylen), data, len);
	int i;

	for (i = 0; i < 4; i++, x = x * 0x9E3779B97F4A7C15ull + 1)
		memcpy(out + 8 * i, &x, 8);
}

static int host_unseal(void *host, const struct bw_rx_frame *f, uint32_t end,
		       const struct bw_seal_by *by)
{
	assert_true(end >= BW_DATA_HEAD && end + BW_SEAL_TAG <= f->len);
	world.opened++;
	return bw_open_frame((void *)(uintptr_t)f->head, end, by);
}

static bool host_needed(void *host, uint32_t peer)
{
	const struct node *node = host;

	return !node->needs_nobody || peer == node->needs;
}

static void host_excused(void *host, uint32_t peer, uint64_t late_ns)
{
	struct node *node = host;

	node->excused++;
	node->excused_ns = late_ns;
	node->excused_peer = peer;
}

#define HOST_OPS                                                                                   \
	.crc32c = bw_crc32c, .payload_crc = host_payload_crc, .place = host_place,                 \
	.buf_get = host_buf_get, .buf_put = host_buf_put, .region_find = host_region_find,         \
	.served = host_served, .random = host_random, .siphash = host_siphash,                     \
	.hmac_sha256 = host_hmac_sha256, .sent = host_sent, .unseal = host_unseal,                 \
	.needed = host_needed, .excused = host_excused

static uint64_t host_buf_for(void *host, const struct bw_event *e)
{
	struct node *node = host;

	log_line(world.events, "(a place for %llu)", (unsigned long long)e->tag);
	if (node->no_places)
		return 0;
	node->buffers_out++;
	return (uint64_t)(uintptr_t)buffer_new((int)(node - world.node), e->len);
}

const struct bw_host_ops host_ops = {HOST_OPS};
const struct bw_host_ops host_ops_direct = {HOST_OPS, .message = host_message,
					    .buf_for = host_buf_for};

static char name_of(int n, uint32_t handle)
{
	int i;

	for (i = 0; i < NODES; i++)
		if (handle && world.node[n].peer[i] == handle)
			return (char)('A' + i);
	return '?';
}

static const char *status_name(int32_t status)
{
	return status ? strerrorname_np(-status) : "";
}

static void take_message(int n, const struct bw_event *e)
{
	struct node *node = &world.node[n];
	const uint8_t *bytes = node->last_rx ? node->last_rx->bytes + e->frame_off : NULL;
	uint64_t tag = world_reliable(n) ? e->tag : 0; /* others carry none */
	char ep[24] = "", code[16] = "";

	if (e->buf) {
		node->buffers_out--;
		bytes = buffer_get(e->buf, 0, e->len)->bytes;
	} else if (e->len) {
		assert_non_null(node->last_rx);
		assert_true(e->frame_off + e->len <= node->last_rx->len);
	}
	expect_pattern(bytes, tag, 0, e->len);
	if (e->src_ep || e->dst_ep)
		snprintf(ep, sizeof(ep), " ep %u>%u", e->src_ep, e->dst_ep);
	if (e->code)
		snprintf(code, sizeof(code), " code %u", e->code);
	log_line(world.events, "%c MESSAGE %llu len %llu%s%s", 'A' + n, (unsigned long long)tag,
		 (unsigned long long)e->len, ep, code);
	if (e->buf)
		buffer_free(buffer_get(e->buf, 0, 0));
}

/* An operation with this cookie has ended: its buffer is the host's again. */
static void take_completion(int n, const struct bw_event *e, enum bw_op_type use, const char *name)
{
	unsigned long long cookie = e->cookie, len = e->len;
	struct buffer *b = world.buffers;

	while (b && (b->use != use || b->node != n || b->cookie != e->cookie))
		b = b->next;
	if (!b)
		fail_msg("%c: %s for %llu, which is not under way", 'A' + n, name, cookie);
	if (use == BW_OP_PULL && !e->status) {
		assert_int_equal(e->len, b->len);
		expect_pattern(b->bytes, b->seed, b->seed_off, b->len);
		log_line(world.events, "%c %s %llu len %llu", 'A' + n, name, cookie, len);
	} else {
		log_line(world.events, "%c %s %llu%s%s", 'A' + n, name, cookie,
			 e->status ? " " : "", status_name(e->status));
	}
	buffer_free(b);
}

static void take_peer_up(int n, const struct bw_event *e)
{
	int from = e->from.bytes[0] - 1;

	assert_true(from >= 0 && from < NODES);
	world.node[n].peer[from] = e->peer;
	if (world_reliable(n))
		assert_string_equal(e->name, world.node[from].cfg.name);
	log_line(world.events, "%c PEER_UP %c", 'A' + n, 'A' + from);
}

static void take_peer_down(int n, const struct bw_event *e)
{
	char who = name_of(n, e->peer), versions[24] = "";

	if (e->status == BW_DOWN_VERSION)
		snprintf(versions, sizeof(versions), " %u..%u", e->version_min, e->version_max);
	log_line(world.events, "%c PEER_DOWN %c %s%s", 'A' + n, who, status_name(e->status),
		 versions);
	if (who != '?')
		world.node[n].peer[who - 'A'] = 0;
}

static void take_event(int n, const struct bw_event *e)
{
	switch (e->type) {
	case BW_EV_MESSAGE:
		take_message(n, e);
		break;
	case BW_EV_SENT:
		take_completion(n, e, BW_OP_SEND, "SENT");
		break;
	case BW_EV_PULLED:
		take_completion(n, e, BW_OP_PULL, "PULLED");
		break;
	case BW_EV_REGION_DONE:
		take_completion(n, e, BW_OP_EXPOSE, "REGION_DONE");
		break;
	case BW_EV_PEER_UP:
		take_peer_up(n, e);
		break;
	case BW_EV_PEER_DOWN:
		take_peer_down(n, e);
		break;
	case BW_EV_PATH:
		if (e->usable)
			log_line(world.events, "%c PATH %c link %u mtu %u", 'A' + n,
				 name_of(n, e->peer), e->from.link, e->mtu);
		else
			log_line(world.events, "%c PATH %c link %u lost", 'A' + n,
				 name_of(n, e->peer), e->from.link);
	}
}

void take_events(int n)
{
	struct node *node = &world.node[n];
	struct bw_event e;

	while (node->mem && !node->ignore_events) {
		memset(&e, 0x5A, sizeof(e)); /* fields that do not belong to a type hold anything */
		if (!node->protocol->next_event(node->mem, &e))
			return;
		take_event(n, &e);
	}
}
