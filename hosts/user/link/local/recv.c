/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Taking records out of the ring from a peer. The peer may write anything at any time: each word of
 * a record's head is read once into a local variable, checked, and only then used.
 */
#include "link/local/impl.h"

#define PUBLISH_SHARE 16 /* the producer is told of room after each 1/16 of the ring */

static struct bw_local_record *next_record(const struct bw_local_rx *rx)
{
	return (struct bw_local_record *)(rx->base + (rx->pos & (rx->bytes - 1)));
}

struct bw_local_sight bw_local_rx_sight(const struct bw_local_rx *rx)
{
	return (struct bw_local_sight){.record = &next_record(rx)->commit,
				       .come = rx->key + rx->pos};
}

bool bw_local_rx_ready(const struct bw_local_peer *p)
{
	const struct bw_local_rx *rx = &p->rx;

	return __atomic_load_n(&next_record(rx)->commit, __ATOMIC_ACQUIRE) == rx->key + rx->pos;
}

/* Tell the producer how far we are, without a barrier. */
void bw_local_publish(struct bw_local_peer *p)
{
	struct bw_local_rx *rx = &p->rx;

	if (rx->published == rx->pos)
		return;
	rx->published = rx->pos;
	__atomic_store_n(&rx->control->head, rx->pos, __ATOMIC_RELEASE);
}

/* After a barrier that follows bw_local_publish(): if the producer sleeps for want of room, wake it
 * once that is worth it. */
void bw_local_wake_producer(struct bw_local_peer *p)
{
	struct bw_local_rx *rx = &p->rx;
	uint32_t want = __atomic_load_n(&rx->control->want_room, __ATOMIC_RELAXED);

	if (BW_LIKELY(want == rx->want_served) || p->self)
		return;
	if (rx->pos - rx->rung_pos >= rx->bytes / 2 || !bw_local_rx_ready(p)) {
		rx->want_served = want;
		rx->rung_pos = rx->pos;
		bw_local_ring(p);
	}
}

static void take_message(struct bw_local_peer *p, const struct bw_local_record *head,
			 const uint8_t *data)
{
	struct bw_local *l = p->link;
	uint32_t slot = BW_LOCAL_SLOT(head->what);
	struct bw_local_message m = {
		.code = BW_LOCAL_CODE(head->what),
		.tag = head->a,
		.imm = head->b,
		.len = head->len,
		.data = data,
	};

	l->counters.rx_messages++;
	l->counters.rx_payload += head->len;
	l->handlers->message(l->arg, p->ctx, &m);
	if (slot != BW_LOCAL_NO_SLOT)
		bw_local_release(p, slot, head->len);
}

static void take_envelope(struct bw_local_peer *p, const struct bw_local_record *head,
			  const uint8_t *data)
{
	struct bw_local *l = p->link;
	struct bw_local_message m = {
		.code = BW_LOCAL_CODE(head->what),
		.is_envelope = true,
		.tag = head->a,
		.imm = head->b,
		.envelope.slot = BW_LOCAL_SLOT(head->what),
	};
	uint64_t where[2];

	memcpy(where, data, sizeof(where));
	m.len = where[1];
	m.envelope.addr = where[0];
	m.envelope.len = where[1];
	l->counters.rx_messages++;
	l->handlers->message(l->arg, p->ctx, &m);
}

static void take_read(struct bw_local_peer *p, const struct bw_local_record *head,
		      const uint8_t *data)
{
	uint64_t span[2];

	memcpy(span, data, sizeof(span));
	bw_local_serve_read(p, head->a, span[0], span[1], head->b, BW_LOCAL_CODE(head->what) == 1);
}

/* Bytes of data that a record of this kind has; UINT32_MAX: any number. */
static uint32_t data_bytes(uint32_t kind)
{
	switch (kind) {
	case BW_LOCAL_MESSAGE:
	case BW_LOCAL_DATA:
		return UINT32_MAX;
	case BW_LOCAL_ENVELOPE:
	case BW_LOCAL_READ:
		return 2 * sizeof(uint64_t);
	default:
		return 0;
	}
}

/* `head` is our own copy; `data` lies in shared memory. */
static void take_record(struct bw_local_peer *p, const struct bw_local_record *head,
			const uint8_t *data)
{
	uint32_t kind = BW_LOCAL_KIND(head->what), slot = BW_LOCAL_SLOT(head->what);
	uint32_t expected = data_bytes(kind);

	if (expected != UINT32_MAX && head->len != expected) {
		bw_local_peer_fail(p, -EPROTO);
		return;
	}
	switch (kind) {
	case BW_LOCAL_MESSAGE:
		take_message(p, head, data);
		break;
	case BW_LOCAL_ENVELOPE:
		take_envelope(p, head, data);
		break;
	case BW_LOCAL_RELEASE:
		bw_local_released(p, slot, head->a);
		break;
	case BW_LOCAL_PULL:
		bw_local_serve_pull(p, slot, head->a, head->b);
		break;
	case BW_LOCAL_READ:
		take_read(p, head, data);
		break;
	case BW_LOCAL_GRANT:
		bw_local_granted(p, head->b, head->a);
		break;
	case BW_LOCAL_REFUSED:
		bw_local_refused(p, head->b, (int64_t)head->a);
		break;
	case BW_LOCAL_DATA:
		bw_local_data(p, head->b, head->a, data, head->len);
		break;
	default:
		bw_local_peer_fail(p, -EPROTO);
	}
}

/* Take up to `budget` records. Returns how many. */
int bw_local_take(struct bw_local_peer *p, uint32_t budget)
{
	struct bw_local_rx *rx = &p->rx;
	struct bw_local_counters *c = &p->link->counters;
	uint32_t n = 0;

	while (n < budget && !p->down && bw_local_rx_ready(p)) {
		struct bw_local_record *r = next_record(rx);
		struct bw_local_record head = {
			.len = __atomic_load_n(&r->len, __ATOMIC_RELAXED),
			.what = __atomic_load_n(&r->what, __ATOMIC_RELAXED),
			.a = __atomic_load_n(&r->a, __ATOMIC_RELAXED),
			.b = __atomic_load_n(&r->b, __ATOMIC_RELAXED),
		};

		if (head.len > bw_local_record_limit(rx->bytes)) {
			bw_local_peer_fail(p, -EPROTO);
			break;
		}
		take_record(p, &head, r->data);
		rx->pos += bw_local_record_bytes(head.len);
		c->rx_frames++;
		c->rx_bytes += bw_local_record_bytes(head.len);
		n++;
		/* Seldom, since the barrier costs as much as a short message: the producer sees
		 * its head, or we see that it wants room, as in bw_local_commit(). The rest is told
		 * when we sleep; it is less than the producer needs to go on. */
		if (rx->pos - rx->published >= rx->bytes / PUBLISH_SHARE) {
			bw_local_publish(p);
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			bw_local_wake_producer(p);
		}
	}
	return (int)n;
}
