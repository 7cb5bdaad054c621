/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Putting records into the ring to a peer. Messages may be told to try again when it is full; notes
 * (requests, answers) and releases must not get lost, so they wait and some room is kept for them.
 */
#include "link/local/impl.h"

#include <stdlib.h>

#define SPARE_SHARE 16 /* 1/16 of a ring is kept for notes */
#define SLOTS_FIRST 16
#define NOTES_FIRST 16
#define OWED_FIRST  4

/* Room in the ring, after a look at what the consumer has taken out. */
static uint64_t fresh_room(struct bw_local_peer *p)
{
	struct bw_local_tx *tx = &p->tx;
	uint64_t head = __atomic_load_n(&tx->control->head, __ATOMIC_ACQUIRE);

	/* Between what we last saw and what we put in, or the peer lies. */
	if (head - tx->head_seen > tx->pos - tx->head_seen) {
		bw_local_peer_fail(p, -EPROTO);
		return 0;
	}
	tx->head_seen = head;
	return tx->bytes - (tx->pos - head);
}

/* A record for len bytes that leaves `spare` bytes free, or NULL (then it is stalled or failed). */
struct bw_local_record *bw_local_reserve(struct bw_local_peer *p, uint64_t len, uint32_t spare)
{
	struct bw_local_tx *tx = &p->tx;
	uint64_t need = bw_local_record_bytes(len) + spare;

	if (tx->bytes - (tx->pos - tx->head_seen) < need && fresh_room(p) < need) {
		p->stalled = true;
		p->link->counters.ring_full++;
		return NULL;
	}
	return (struct bw_local_record *)(tx->base + (tx->pos & (tx->bytes - 1)));
}

/* Was a stalled ring emptied enough to go on? Half of it, so that it is worth waking up. */
bool bw_local_has_room(struct bw_local_peer *p)
{
	return fresh_room(p) >= p->tx.bytes / 2;
}

/* The record is filled in: hand it over, and ring if the peer sleeps. */
void bw_local_commit(struct bw_local_peer *p, struct bw_local_record *r, uint64_t len)
{
	struct bw_local_tx *tx = &p->tx;
	struct bw_local_counters *c = &p->link->counters;

	__atomic_store_n(&r->commit, tx->key + tx->pos, __ATOMIC_RELEASE);
	tx->pos += bw_local_record_bytes(len);
	c->tx_frames++;
	c->tx_bytes += bw_local_record_bytes(len);
	if (p->self)
		return;
	/* The record must be visible before the peer's word is read: either it sees the record when
	 * it looks a last time, or we see that it sleeps. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (p->status) {
		uint32_t sleeping = __atomic_load_n(&p->status->sleeping, __ATOMIC_RELAXED);

		if (BW_LIKELY(!(sleeping & 1) || sleeping == p->rung))
			return;
		p->rung = sleeping;
	}
	bw_local_ring(p);
}

static bool note_write(struct bw_local_peer *p, const struct bw_local_note *n)
{
	uint64_t len = n->wide ? 2 * sizeof(uint64_t) : 0;
	struct bw_local_record *r = bw_local_reserve(p, len, 0);

	if (!r)
		return false;
	r->len = (uint32_t)len;
	r->what = n->what;
	r->a = n->a;
	r->b = n->b;
	if (n->wide) {
		memcpy(r->data, &n->c, sizeof(n->c));
		memcpy(r->data + sizeof(n->c), &n->d, sizeof(n->d));
	}
	bw_local_commit(p, r, len);
	return true;
}

static bool notes_grow(struct bw_local_peer *p)
{
	uint32_t room = p->notes_room ? 2 * p->notes_room : NOTES_FIRST;
	struct bw_local_note *note = malloc(room * sizeof(*note));

	if (!note)
		return false;
	for (uint32_t i = 0; i < p->notes; i++)
		note[i] = p->note[(p->note_first + i) % p->notes_room];
	free(p->note);
	p->note = note;
	p->notes_room = room;
	p->note_first = 0;
	return true;
}

/* Send a note now or as soon as there is room. A peer that does not read them, but goes on asking
 * for more than an honest one can, is given up, as one is without memory to remember it. */
int bw_local_note(struct bw_local_peer *p, const struct bw_local_note *n)
{
	if (p->down)
		return p->down;
	if (p->notes == 0 && note_write(p, n))
		return 0;
	if (p->notes == BW_LOCAL_NOTES_MAX) {
		bw_local_peer_fail(p, -EPROTO);
		return -EPROTO;
	}
	if (p->notes == p->notes_room && !notes_grow(p)) {
		bw_local_peer_fail(p, -ENOMEM);
		return -ENOMEM;
	}
	p->note[(p->note_first + p->notes++) % p->notes_room] = *n;
	p->work = true;
	return 0;
}

static bool release_write(struct bw_local_peer *p, uint32_t slot, uint64_t fetched)
{
	struct bw_local_note n = {.what = BW_LOCAL_WHAT(BW_LOCAL_RELEASE, 0, slot), .a = fetched};

	return note_write(p, &n);
}

static bool owed_grow(struct bw_local_owed *o, uint32_t slot)
{
	uint32_t words = o->words ? o->words : OWED_FIRST;
	uint64_t *bits;

	while (words <= slot / BW_LOCAL_OWED_EACH)
		words *= 2;
	if (words == o->words)
		return true;
	bits = realloc(o->bits, words * sizeof(*bits));
	if (!bits)
		return false;
	memset(bits + o->words, 0, (words - o->words) * sizeof(*bits));
	o->bits = bits;
	o->words = words;
	return true;
}

/* 0, or why the peer cannot be told later. */
static int owe(struct bw_local_peer *p, uint32_t slot, uint64_t fetched)
{
	struct bw_local_owed *o = &p->owed;
	uint32_t shift = slot % BW_LOCAL_OWED_EACH * 2;
	uint64_t *word;

	if (slot >= BW_LOCAL_SLOTS_USED) /* an honest peer has no such one */
		return -EPROTO;
	if (!owed_grow(o, slot))
		return -ENOMEM;
	word = &o->bits[slot / BW_LOCAL_OWED_EACH];
	if (*word >> shift & 1)
		return -EPROTO;
	*word |= (fetched ? 3ull : 1ull) << shift;
	o->count++;
	p->work = true;
	return 0;
}

/* Of what waits it is not known how much was fetched: all of it, or nothing. */
static bool owed_flush(struct bw_local_peer *p)
{
	struct bw_local_owed *o = &p->owed;

	while (o->count) {
		uint64_t *word = &o->bits[o->at];
		uint32_t shift;

		if (!*word) {
			o->at = (o->at + 1) % o->words;
			continue;
		}
		shift = (uint32_t)__builtin_ctzll(*word);
		if (!release_write(p, o->at * BW_LOCAL_OWED_EACH + shift / 2,
				   *word >> shift & 2 ? UINT64_MAX : 0))
			return false;
		*word &= ~(3ull << shift);
		o->count--;
	}
	return true;
}

/* Tell the owner of an envelope (or of a message that wants it) that we are done with it. */
void bw_local_release(struct bw_local_peer *p, uint32_t slot, uint64_t fetched)
{
	int error;

	if (p->down || (!p->notes && !p->owed.count && release_write(p, slot, fetched)))
		return;
	error = owe(p, slot, fetched);
	if (error)
		bw_local_peer_fail(p, error);
}

/* True when nothing is left to be said. */
bool bw_local_notes_flush(struct bw_local_peer *p)
{
	while (p->notes > 0) {
		if (!note_write(p, &p->note[p->note_first]))
			return false;
		p->note_first = (p->note_first + 1) % p->notes_room;
		p->notes--;
	}
	return owed_flush(p);
}

static bool slots_grow(struct bw_local_peer *p)
{
	uint32_t room = p->slots ? 2 * p->slots : SLOTS_FIRST;
	struct bw_local_slot *slot = realloc(p->slot, room * sizeof(*slot));

	if (!slot)
		return false;
	for (uint32_t i = p->slots; i < room; i++)
		slot[i] = (struct bw_local_slot){.next_free =
							 i + 1 < room ? i + 1 : BW_LOCAL_NO_SLOT};
	p->slot_free = p->slots;
	p->slot = slot;
	p->slots = room;
	return true;
}

/* 0 and a slot, -EAGAIN while the peer has too many of them, or -ENOMEM. */
static int slot_get(struct bw_local_peer *p, void *op, uint32_t *slot)
{
	if (p->slots_live == BW_LOCAL_SLOTS_USED)
		return -EAGAIN;
	if (p->slot_free == BW_LOCAL_NO_SLOT && !slots_grow(p))
		return -ENOMEM;
	uint32_t i = p->slot_free;

	p->slot_free = p->slot[i].next_free;
	p->slot[i] = (struct bw_local_slot){.op = op, .live = true};
	p->slots_live++;
	*slot = i;
	return 0;
}

static void slot_put(struct bw_local_peer *p, uint32_t i)
{
	p->slot[i] = (struct bw_local_slot){.next_free = p->slot_free};
	p->slot_free = i;
	p->slots_live--;
}

uint32_t bw_local_send_limit(const struct bw_local_peer *p)
{
	return bw_local_record_limit(p->tx.bytes);
}

uint32_t bw_local_eager_max(const struct bw_local_peer *p)
{
	uint32_t limit = bw_local_send_limit(p);
	const struct bw_local_status *status = p->self ? p->link->status : p->status;

	if (status && __atomic_load_n(&status->pressure, __ATOMIC_RELAXED))
		return 0;
	return limit < p->link->eager_max ? limit : p->link->eager_max;
}

static struct bw_local_record *message_reserve(struct bw_local_peer *p, uint64_t len)
{
	if ((p->notes > 0 || p->owed.count > 0) && !bw_local_notes_flush(p))
		return NULL;
	return bw_local_reserve(p, len, p->tx.bytes / SPARE_SHARE);
}

int bw_local_send(struct bw_local_peer *p, uint8_t code, uint64_t tag, uint64_t imm,
		  const void *buf, uint64_t len, void *ack_op)
{
	if (p->down)
		return p->down;
	if (len > bw_local_send_limit(p))
		return -EMSGSIZE;
	struct bw_local_record *r = message_reserve(p, len);
	uint32_t slot = BW_LOCAL_NO_SLOT;

	if (!r)
		return p->down ? p->down : -EAGAIN;
	if (ack_op) {
		int error = slot_get(p, ack_op, &slot);

		if (error)
			return error;
	}
	r->len = (uint32_t)len;
	r->what = BW_LOCAL_WHAT(BW_LOCAL_MESSAGE, code, slot);
	r->a = tag;
	r->b = imm;
	if (len > 0)
		memcpy(r->data, buf, len);
	bw_local_commit(p, r, len);
	p->link->counters.tx_messages++;
	p->link->counters.tx_payload += len;
	return 0;
}

int bw_local_offer(struct bw_local_peer *p, uint8_t code, uint64_t tag, uint64_t imm,
		   const void *buf, uint64_t len, void *op)
{
	const uint64_t where[2] = {(uintptr_t)buf, len};

	if (p->down)
		return p->down;
	struct bw_local_record *r = message_reserve(p, sizeof(where));

	if (!r)
		return p->down ? p->down : -EAGAIN;
	uint32_t slot;
	int error = slot_get(p, op, &slot);

	if (error)
		return error;
	p->slot[slot].envelope = true;
	p->slot[slot].buf = buf;
	p->slot[slot].len = len;
	__atomic_store_n(&p->tx.states[slot], BW_LOCAL_OFFERED, __ATOMIC_RELAXED);
	r->len = sizeof(where);
	r->what = BW_LOCAL_WHAT(BW_LOCAL_ENVELOPE, code, slot);
	r->a = tag;
	r->b = imm;
	memcpy(r->data, where, sizeof(where));
	bw_local_commit(p, r, sizeof(where));
	p->link->counters.tx_messages++;
	return 0;
}

/* Take the envelope back unless the peer has begun to pull it. */
static bool slot_retract(struct bw_local_peer *p, uint32_t i)
{
	uint8_t expected = BW_LOCAL_OFFERED;

	return __atomic_compare_exchange_n(&p->tx.states[i], &expected, BW_LOCAL_RETRACTED, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

int bw_local_retract(struct bw_local_peer *p, void *op)
{
	for (uint32_t i = 0; i < p->slots; i++) {
		struct bw_local_slot *slot = &p->slot[i];

		if (!slot->live || slot->op != op)
			continue;
		if (!slot->envelope)
			return -ENOENT;
		int error = bw_local_end_later(p, op, -ECANCELED, false);

		if (error < 0)
			return error;
		if (!slot_retract(p, i)) {
			p->link->endeds--;
			return -ENOENT;
		}
		/* The slot itself is free when the peer, finding it retracted, releases it. */
		slot->op = NULL;
		return 0;
	}
	return -ENOENT;
}

/* The peer is done with a slot of ours. */
void bw_local_released(struct bw_local_peer *p, uint32_t slot, uint64_t fetched)
{
	if (slot >= p->slots || !p->slot[slot].live) {
		bw_local_peer_fail(p, -EPROTO);
		return;
	}
	struct bw_local_slot was = p->slot[slot];

	slot_put(p, slot);
	if (was.envelope)
		p->link->counters.tx_payload += fetched < was.len ? fetched : was.len;
	if (was.op)
		p->link->handlers->sent(p->link->arg, p->ctx, was.op, 0);
}

/* The peer is down: nothing of ours may be read any more, all operations end. */
void bw_local_slots_end(struct bw_local_peer *p, int status)
{
	for (uint32_t i = 0; i < p->slots; i++) {
		if (p->slot[i].live && p->slot[i].envelope)
			__atomic_store_n(&p->tx.states[i], BW_LOCAL_RETRACTED, __ATOMIC_RELAXED);
	}
	/* Pairs with that of verdict(): a peer that reads what the program puts into a buffer of
	 * its own from here on finds that it was retracted. No store orders what comes after it. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (uint32_t i = 0; i < p->slots; i++) {
		void *op = p->slot[i].op;

		if (!p->slot[i].live)
			continue;
		slot_put(p, i);
		if (op)
			p->link->handlers->sent(p->link->arg, p->ctx, op, status);
	}
}
