/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rings between the kernel module and a protocol server, from the kernel's side: the server may
 * write any count and any record at any time, also while one of its records is dealt with. What
 * the kernel takes for a record lies in the ring, whole; what it writes lies there as well, and one
 * look at a ring ends.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "server_ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Smaller than any that a server may ask for, so that the end of the data is reached. */
#define RING_BYTES 1024u

static uint64_t sink; /* so that reads are not left out */

static u32 any_u32(struct fuzz_input *in)
{
	u32 low = fuzz_u16(in);

	return low | (u32)fuzz_u16(in) << 16;
}

/* What a server might mean, and nearly means, as the next record that the kernel reads. */
static void write_record(struct fuzz_input *in, struct bwk_ring *ring)
{
	u32 at = (ring->at + 16u * (fuzz_u8(in) % 8)) & (RING_BYTES - 1);
	struct beowire_record *record = (void *)(ring->data + at);
	uint8_t how = fuzz_u8(in), payload = fuzz_u8(in), more = fuzz_u8(in);

	if (RING_BYTES - at < sizeof(*record))
		return;
	record->type = how & 1 ? BEOWIRE_PAD : BEOWIRE_SEND;
	record->bytes = payload + (how & 2 ? more * 1000u : 0);
	record->len = (u32)sizeof(*record) + ALIGN((u32)payload, 16);
	if (how & 4)
		record->len = more * 16u;
	if (how & 8)
		record->len += more;
}

static void write_anything(struct fuzz_input *in, struct bwk_ring *ring)
{
	u32 at = fuzz_u16(in) % RING_BYTES, n = fuzz_u8(in) % 64;
	const uint8_t *bytes;

	n = min_t(u32, n, RING_BYTES - at);
	bytes = fuzz_bytes(in, &n);
	memcpy(ring->data + at, bytes, n);
}

static void write_count(struct fuzz_input *in, u32 *count, u32 near)
{
	uint8_t how = fuzz_u8(in);

	*count = how & 1 ? any_u32(in) : near + 16u * (how >> 1);
}

static void check_inside(const struct bwk_ring *ring, const u8 *bytes, u32 n)
{
	if (bytes < ring->data || bytes + n > ring->data + RING_BYTES)
		fuzz_bad("bytes outside the ring");
}

static void read_next(struct fuzz_input *in, struct bwk_ring *ring)
{
	struct beowire_record record = {0};
	const u8 *bytes = NULL;
	int found = bwk_ring_next(ring, &record, &bytes);

	if (ring->at % 16)
		fuzz_bad("a record would begin anywhere");
	if (found < 0 && ring->shared->tail != ring->at)
		fuzz_bad("nonsense stays");
	if (found <= 0)
		return;
	if (record.type == BEOWIRE_PAD || record.bytes > BEOWIRE_SERVER_BYTES)
		fuzz_bad("a record beyond its limits");
	if (record.len > ring->shared->head - ring->at)
		fuzz_bad("a record that the server has not written yet");
	check_inside(ring, bytes, record.bytes);
	for (u32 i = 0; i < record.bytes; i++)
		sink += bytes[i];
	write_anything(in, ring); /* meanwhile */
	bwk_ring_consume(ring, &record);
	if (ring->shared->tail != ring->at)
		fuzz_bad("the server is told of something else");
}

static void write_next(struct fuzz_input *in, struct bwk_ring *ring)
{
	u32 n = fuzz_u8(in) & 1 ? any_u32(in) : fuzz_u8(in);
	struct beowire_record *record = bwk_ring_reserve(ring, BEOWIRE_SEND, 3, n);

	if (!record)
		return;
	if (n > BEOWIRE_SERVER_BYTES || record->len != sizeof(*record) + ALIGN(n, 16) ||
	    record->bytes != n)
		fuzz_bad("a record that is another than asked for");
	check_inside(ring, (const u8 *)record, record->len);
	memset(record + 1, 0xA5, n);
	write_anything(in, ring);
	bwk_ring_commit(ring, n);
	if (ring->shared->head != ring->at || ring->at % 16)
		fuzz_bad("the server is told of something else");
}

static void step(struct fuzz_input *in, struct bwk_ring *out, struct bwk_ring *ours)
{
	switch (fuzz_u8(in) % 8) {
	case 0:
		write_count(in, &out->shared->head, out->at);
		break;
	case 1:
		write_count(in, &ours->shared->tail, ours->shared->tail);
		break;
	case 2:
		write_anything(in, out);
		break;
	case 3:
	case 4:
		write_record(in, out);
		break;
	case 5:
		write_next(in, ours);
		break;
	case 6:
		sink += bwk_ring_waiting(ours) + (bwk_ring_roomy(ours) ? 2u : 0u);
		if (ours->lock.held)
			fuzz_bad("a lock is kept");
		break;
	default:
		read_next(in, out);
	}
}

static struct bwk_ring ring_new(u32 at)
{
	struct bwk_ring ring = {.size = RING_BYTES, .at = at};

	ring.shared = calloc(1, sizeof(*ring.shared));
	ring.data = calloc(1, RING_BYTES);
	ring.shared->head = ring.shared->tail = at;
	return ring;
}

static void ring_free(struct bwk_ring *ring)
{
	free(ring->shared);
	free(ring->data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	uint32_t begin = fuzz_u8(&in) & 1 ? UINT32_MAX - 15u : 0; /* counts go round */
	struct bwk_ring out = ring_new(begin), ours = ring_new(begin);

	while (in.at < in.end)
		step(&in, &out, &ours);
	ring_free(&out);
	ring_free(&ours);
	return 0;
}
