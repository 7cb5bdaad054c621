/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What differs between the segments of a super-frame: the lengths, IPv4's identification [RFC 791],
 * TCP's sequence number, and that FIN and PSH belong to the last segment and CWR to the first [RFC
 * 9293, RFC 3168]. The sum of the pseudo header is put where the device expects it.
 */
#include "segment.h"

#include <string.h>

#include "headers.h"
#include "ethernet.h"

#define EM_IPV4_BYTES 20u
#define EM_IPV6_BYTES 40u
#define EM_TCP_BYTES  20u
#define EM_UDP_BYTES  8u
#define EM_PROTO_TCP  6u
#define EM_PROTO_UDP  17u
#define EM_TCP_CHECK  16u /* offsets within the header */
#define EM_UDP_CHECK  6u
#define EM_TCP_FLAGS  13u
#define EM_TCP_FIN    0x01u
#define EM_TCP_PSH    0x08u
#define EM_TCP_CWR    0x80u

/* Where the transport header begins; 0 if this is no IP packet that is understood. */
static uint32_t em_super_transport(const struct em_super *s, const uint8_t *frame, uint32_t len,
				   const struct virtio_net_hdr *vnet)
{
	const uint8_t *packet = frame + s->network;
	uint32_t left = len - s->network, bytes;

	if (s->ipv6) {
		/* extension headers: only the kernel knows where they end, and says so */
		if (left < EM_IPV6_BYTES || packet[0] >> 4 != 6)
			return 0;
		if (vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM &&
		    vnet->csum_start >= s->network + EM_IPV6_BYTES)
			return vnet->csum_start;
		return s->network + EM_IPV6_BYTES;
	}
	if (left < EM_IPV4_BYTES || packet[0] >> 4 != 4)
		return 0;
	bytes = (packet[0] & 15u) * 4;
	return bytes >= EM_IPV4_BYTES && bytes <= left ? s->network + bytes : 0;
}

static bool em_super_parse(struct em_super *s, const uint8_t *frame, uint32_t len,
			   const struct virtio_net_hdr *vnet)
{
	uint8_t type = vnet->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	struct em_headers h;
	uint32_t bytes;

	em_headers_read(frame, len, &h);
	s->network = h.network;
	s->tcp = type == VIRTIO_NET_HDR_GSO_TCPV4 || type == VIRTIO_NET_HDR_GSO_TCPV6;
	s->ipv6 = h.type == EM_TYPE_IPV6;
	if ((h.type != EM_TYPE_IPV4 && !s->ipv6) || !vnet->gso_size)
		return false;
	if (!s->tcp && type != VIRTIO_NET_HDR_GSO_UDP_L4)
		return false;
	if (s->tcp && s->ipv6 != (type == VIRTIO_NET_HDR_GSO_TCPV6))
		return false;
	s->transport = em_super_transport(s, frame, len, vnet);
	bytes = s->tcp ? EM_TCP_BYTES : EM_UDP_BYTES;
	if (!s->transport || s->transport > len || len - s->transport < bytes)
		return false;
	if (s->tcp)
		bytes = (frame[s->transport + 12] >> 4) * 4u;
	s->payload = s->transport + bytes;
	if ((s->tcp && bytes < EM_TCP_BYTES) || s->payload >= len || s->payload > EM_HEAD_MAX)
		return false;
	s->size = vnet->gso_size;
	s->count = (len - s->payload + s->size - 1) / s->size;
	return true;
}

bool em_super_read(struct em_super *s, const uint8_t *frame, uint32_t len,
		   const struct virtio_net_hdr *vnet)
{
	memset(s, 0, sizeof(*s));
	s->count = 1;
	if (vnet->gso_type == VIRTIO_NET_HDR_GSO_NONE)
		return true;
	if (em_super_parse(s, frame, len, vnet))
		return true;
	memset(s, 0, sizeof(*s));
	s->count = 1;
	return false;
}

uint32_t em_super_piece(const struct em_super *s, uint32_t len, uint32_t first, uint32_t n)
{
	uint64_t from = s->payload + (uint64_t)first * s->size, to = from + (uint64_t)n * s->size;

	return (uint32_t)((to < len ? to : len) - from);
}

uint32_t em_super_bytes(const struct em_super *s, uint32_t len, uint32_t index)
{
	return s->count == 1 ? len : s->payload + em_super_piece(s, len, index, 1);
}

/* The pseudo header's sum: both addresses, the protocol, the length [RFC 9293, RFC 8200]. */
static uint16_t em_super_pseudo(const struct em_super *s, const uint8_t *packet, uint32_t bytes)
{
	uint32_t protocol = s->tcp ? EM_PROTO_TCP : EM_PROTO_UDP;

	if (s->ipv6)
		return em_checksum_sum(packet + 8, 32, protocol + bytes);
	return em_checksum_sum(packet + 12, 8, protocol + bytes);
}

static void em_super_ip(const struct em_super *s, uint8_t *head, uint32_t bytes, uint32_t first)
{
	uint8_t *packet = head + s->network;

	if (s->ipv6) {
		em_put16(packet + 4, bytes + s->transport - s->network - EM_IPV6_BYTES);
		return;
	}
	em_put16(packet + 2, bytes + s->transport - s->network);
	em_put16(packet + 4, em_get16(packet + 4) + first);
	em_put16(packet + 10, 0);
	em_put16(packet + 10, (uint16_t)~em_checksum_sum(packet, s->transport - s->network, 0));
}

static void em_super_tcp(const struct em_super *s, uint8_t *segment, uint32_t first, uint32_t n)
{
	em_put32(segment + 4, em_get32(segment + 4) + first * s->size);
	if (first + n < s->count)
		segment[EM_TCP_FLAGS] &= (uint8_t) ~(EM_TCP_FIN | EM_TCP_PSH);
	if (first)
		segment[EM_TCP_FLAGS] &= (uint8_t)~EM_TCP_CWR;
}

void em_super_head(const struct em_super *s, const uint8_t *frame, uint32_t len, uint32_t first,
		   uint32_t n, uint8_t head[EM_HEAD_MAX], struct virtio_net_hdr *vnet)
{
	uint32_t piece = em_super_piece(s, len, first, n);
	uint32_t bytes = s->payload - s->transport + piece;
	uint8_t *segment = head + s->transport;

	memcpy(head, frame, s->payload);
	em_super_ip(s, head, bytes, first);
	if (s->tcp)
		em_super_tcp(s, segment, first, n);
	else
		em_put16(segment + 4, bytes);
	memset(vnet, 0, sizeof(*vnet));
	vnet->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	vnet->csum_start = (uint16_t)s->transport;
	vnet->csum_offset = s->tcp ? EM_TCP_CHECK : EM_UDP_CHECK;
	vnet->hdr_len = (uint16_t)s->payload;
	em_put16(segment + vnet->csum_offset, em_super_pseudo(s, head + s->network, bytes));
	if (n == 1)
		return;
	vnet->gso_size = (uint16_t)s->size;
	vnet->gso_type = !s->tcp   ? VIRTIO_NET_HDR_GSO_UDP_L4
			 : s->ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6
				   : VIRTIO_NET_HDR_GSO_TCPV4;
	if (s->tcp && segment[EM_TCP_FLAGS] & EM_TCP_CWR)
		vnet->gso_type |= VIRTIO_NET_HDR_GSO_ECN;
}
