/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the ring to the model. A frame arrived when the kernel stamped it, not when this thread got
 * around to it: so lateness here costs the link no rate, and what is left of it is seen when the
 * frame leaves.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "direction.h"
#include "headers.h"

#define EM_STAMP_SLACK 1000000u /* ns that a frame may be stamped before it is seen in the ring */
#define EM_VNET_BYTES  sizeof(struct virtio_net_hdr)

/*
 * The stamp is of the clock that people set. Where that jumped, the stamp says nothing: a frame
 * cannot have come before the ring was last empty, nor after now.
 */
static uint64_t em_take_arrival(const struct em_direction *d, const struct tpacket2_hdr *slot,
				uint64_t now)
{
	uint64_t stamp = (uint64_t)slot->tp_sec * 1000000000u + slot->tp_nsec - d->apart;

	if (stamp > now)
		stamp = now;
	if (stamp + EM_STAMP_SLACK < d->looked)
		stamp = d->looked;
	return stamp;
}

/* Bytes of a frame that did not fit into its slot: they wait in the socket, in order. */
static bool em_take_long(struct em_direction *d, struct em_buffer *b, uint8_t *at)
{
	struct iovec iov[2] = {{&b->vnet, EM_VNET_BYTES}, {at, b->len}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t n = recvmsg(d->in->rx, &m, MSG_DONTWAIT | MSG_TRUNC);

	return n == (ssize_t)(EM_VNET_BYTES + b->len);
}

/* Throw away what a slot refers to in the socket. */
static void em_take_nothing(struct em_direction *d, const struct tpacket2_hdr *slot)
{
	if (slot->tp_status & TP_STATUS_COPY)
		recv(d->in->rx, NULL, 0, MSG_DONTWAIT | MSG_TRUNC);
}

/* The device took the VLAN tag off; on the wire it was there. `b` has room for it. */
static void em_take_tag(struct em_buffer *b, const struct tpacket2_hdr *slot)
{
	uint16_t type =
		slot->tp_status & TP_STATUS_VLAN_TPID_VALID ? slot->tp_vlan_tpid : EM_TYPE_VLAN;

	/* the frame was put behind the room for the tag: its addresses move to the front */
	memmove(b->bytes, b->bytes + EM_VLAN_BYTES, 12);
	em_put16(b->bytes + 12, type);
	em_put16(b->bytes + 14, slot->tp_vlan_tci);
	b->len += EM_VLAN_BYTES;
	b->vnet.hdr_len = (uint16_t)(b->vnet.hdr_len + EM_VLAN_BYTES);
	b->vnet.csum_start = (uint16_t)(b->vnet.csum_start + EM_VLAN_BYTES);
}

/* The frame of a slot, NULL if it cannot be had. */
static struct em_buffer *em_take_buffer(struct em_direction *d, const struct tpacket2_hdr *slot)
{
	const uint8_t *mac = (const uint8_t *)slot + slot->tp_mac;
	uint32_t room = slot->tp_status & TP_STATUS_VLAN_VALID ? EM_VLAN_BYTES : 0;
	struct em_buffer *b = em_buffer_get(&d->pool, slot->tp_len + room);
	bool whole;

	if (!b) {
		d->tally.no_memory++;
		em_take_nothing(d, slot);
		return NULL;
	}
	b->len = slot->tp_len;
	if (slot->tp_status & TP_STATUS_COPY) {
		whole = em_take_long(d, b, b->bytes + room);
	} else {
		whole = slot->tp_snaplen == slot->tp_len;
		memcpy(b->bytes + room, mac, slot->tp_snaplen);
		memcpy(&b->vnet, mac - EM_VNET_BYTES, EM_VNET_BYTES);
	}
	if (!whole || b->len < 14) {
		d->tally.missed++;
		em_buffer_put(&d->pool, b);
		return NULL;
	}
	if (room)
		em_take_tag(b, slot);
	return b;
}

/* A segment on its own with one bit wrong: the checksum is made first, or it would be right. */
static struct em_buffer *em_take_corrupt(struct em_direction *d, const struct em_buffer *from,
					 uint32_t index, const struct em_fate *fate)
{
	const struct em_super *s = &from->super;
	struct em_buffer *b = em_buffer_get(&d->pool, em_super_bytes(s, from->len, index));
	uint32_t piece;

	if (!b)
		return NULL;
	b->vnet = from->vnet;
	if (s->count == 1) {
		memcpy(b->bytes, from->bytes, b->len);
	} else {
		uint8_t head[EM_HEAD_MAX];

		piece = em_super_piece(s, from->len, index, 1);
		em_super_head(s, from->bytes, from->len, index, 1, head, &b->vnet);
		memcpy(b->bytes, head, s->payload);
		memcpy(b->bytes + s->payload, from->bytes + s->payload + (size_t)index * s->size,
		       piece);
	}
	if (b->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		em_checksum_finish(b->bytes, b->len, b->vnet.csum_start, b->vnet.csum_offset);
	memset(&b->vnet, 0, sizeof(b->vnet));
	em_super_read(&b->super, b->bytes, b->len, &b->vnet);
	if (fate->mark)
		em_ecn_mark(b->bytes, b->len);
	em_corrupt(b->bytes, b->len, fate->flip);
	return b;
}

static void em_take_hold(struct em_direction *d, struct em_buffer *b, uint32_t index,
			 const struct em_fate *fate)
{
	struct em_parcel p = {.buffer = b, .fate = *fate, .segment = index};

	if (fate->corrupt) {
		p.buffer = em_take_corrupt(d, b, index, fate);
		p.segment = 0;
		p.fate.mark = false;
	} else {
		b->refs++;
	}
	if (!p.buffer || !em_hold_add(&d->hold, &p)) {
		d->tally.no_memory++;
		if (p.buffer)
			em_buffer_put(&d->pool, p.buffer);
	}
}

static void em_take_frame(struct em_direction *d, struct em_buffer *b, uint64_t arrival)
{
	struct em_fate fate[EM_FATES];
	struct em_headers h;
	struct em_frame f = {.arrival = arrival};
	uint32_t i;
	int n, k;

	d->tally.odd += !em_super_read(&b->super, b->bytes, b->len, &b->vnet);
	em_headers_read(b->bytes, b->len, &h);
	f.spared = h.type == EM_TYPE_ARP;
	f.capable = em_ecn_capable(b->bytes, b->len);
	for (i = 0; i < b->super.count; i++) {
		f.bytes = em_super_bytes(&b->super, b->len, i);
		f.packet = f.bytes - h.network;
		n = em_model_offer(&d->model, &f, fate);
		for (k = 0; k < n; k++)
			em_take_hold(d, b, i, &fate[k]);
	}
	em_buffer_put(&d->pool, b);
}

static void em_take_clock(struct em_direction *d)
{
	struct timespec real;
	uint64_t now = em_now();

	clock_gettime(CLOCK_REALTIME, &real);
	d->apart = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec - now;
}

bool em_take(struct em_direction *d)
{
	uint64_t now = em_now();
	uint32_t n;

	for (n = 0; n < EM_TAKE && em_port_filled(d->in); n++) {
		struct tpacket2_hdr *slot = em_port_slot(d->in);
		struct em_buffer *b;

		if (!n)
			em_take_clock(d);
		/* The status was seen; now what it stands for. */
		atomic_thread_fence(memory_order_acquire);
		now = em_now();
		b = em_take_buffer(d, slot);
		if (b)
			em_take_frame(d, b, em_take_arrival(d, slot, now));
		/* All reads of the slot come before the kernel may write to it again. */
		atomic_thread_fence(memory_order_release);
		*(volatile uint32_t *)&slot->tp_status = TP_STATUS_KERNEL;
		d->in->next = d->in->next + 1 == d->in->slots ? 0 : d->in->next + 1;
	}
	if (n)
		d->active = now;
	if (n < EM_TAKE)
		d->looked = now;
	return n == EM_TAKE;
}
