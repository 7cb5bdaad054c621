/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rings of records; see server_ring.h. The counts of the other side and the records that
 * it writes may be anything at any time: each word is read once, then checked.
 */
#include "server_ring.h"

static u32 bwk_ring_free(struct bwk_ring *ring)
{
	u32 used = ring->at - smp_load_acquire(&ring->shared->tail);

	return used <= ring->size ? ring->size - used : 0;
}

struct beowire_record *bwk_ring_reserve(struct bwk_ring *ring, u16 type, u32 id, u32 bytes)
{
	u32 len = sizeof(struct beowire_record) + ALIGN(bytes, 16);
	u32 at = ring->at & (ring->size - 1);
	u32 pad = len > ring->size - at ? ring->size - at : 0;
	struct beowire_record *record = (void *)(ring->data + at);

	if (bytes > BEOWIRE_SERVER_BYTES || len + pad > bwk_ring_free(ring))
		return NULL;
	if (pad) {
		record->len = pad;
		record->type = BEOWIRE_PAD;
		WRITE_ONCE(ring->at, ring->at + pad);
		record = (void *)ring->data;
	}
	memset(record, 0, sizeof(*record));
	record->len = len;
	record->type = type;
	record->socket = id;
	record->bytes = bytes;
	return record;
}

void bwk_ring_commit(struct bwk_ring *ring, u32 bytes)
{
	/* Not by record->len, which the server may have changed. */
	WRITE_ONCE(ring->at, ring->at + (u32)sizeof(struct beowire_record) + ALIGN(bytes, 16));
	smp_store_release(&ring->shared->head, ring->at);
}

bool bwk_ring_roomy(struct bwk_ring *ring)
{
	bool roomy;

	spin_lock_bh(&ring->lock);
	roomy = !ring->shared || bwk_ring_free(ring) >= ring->size / 2;
	spin_unlock_bh(&ring->lock);
	return roomy;
}

bool bwk_ring_waiting(struct bwk_ring *ring)
{
	return READ_ONCE(ring->at) != READ_ONCE(ring->shared->tail);
}

static int bwk_ring_nonsense(struct bwk_ring *ring, u32 head)
{
	ring->at = ALIGN_DOWN(head, 16);
	WRITE_ONCE(ring->shared->tail, ring->at);
	return -EPROTO;
}

int bwk_ring_next(struct bwk_ring *ring, struct beowire_record *record, const u8 **bytes)
{
	u32 head = smp_load_acquire(&ring->shared->head);

	while (head != ring->at) {
		u32 at = ring->at & (ring->size - 1), ready = head - ring->at;
		const u8 *from = ring->data + at;

		if (ready > ring->size || ready % 16)
			return bwk_ring_nonsense(ring, head);
		memcpy(record, from, min_t(u32, sizeof(*record), ring->size - at));
		barrier(); /* what was copied counts, whatever is there now */
		if (!record->len || record->len % 16 || record->len > ready ||
		    record->len > ring->size - at)
			return bwk_ring_nonsense(ring, head);
		if (record->type == BEOWIRE_PAD) {
			bwk_ring_consume(ring, record);
			continue;
		}
		if (record->len < sizeof(*record) || record->bytes > BEOWIRE_SERVER_BYTES ||
		    record->bytes > record->len - sizeof(*record))
			return bwk_ring_nonsense(ring, head);
		*bytes = from + sizeof(*record);
		return 1;
	}
	return 0;
}

void bwk_ring_consume(struct bwk_ring *ring, const struct beowire_record *record)
{
	ring->at += record->len;
	smp_store_release(&ring->shared->tail, ring->at);
}
