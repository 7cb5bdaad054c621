/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Super-frames of TCP and UDP, over IPv4 and IPv6: the segments carry the bytes of the whole, each
 * with headers as a sender would have made them, also where several are joined again.
 */
#include "groups.h"
#include "headers.h"
#include "segment.h"

#define SIZE  1000u
#define BYTES 3500u /* of payload: three segments and a half */

static uint8_t frame[20000], out[20000];
static struct virtio_net_hdr vnet;
static struct em_super s;

struct kind {
	const char *name;
	uint8_t type;
	uint32_t network, transport, payload;
	bool tcp, ipv6;
};

static const struct kind kinds[] = {
	{"tcp4", VIRTIO_NET_HDR_GSO_TCPV4, 14, 34, 66, true, false},
	{"tcp6", VIRTIO_NET_HDR_GSO_TCPV6, 14, 54, 74, true, true},
	{"udp4", VIRTIO_NET_HDR_GSO_UDP_L4, 18, 38, 46, false, false},
	{"udp6", VIRTIO_NET_HDR_GSO_UDP_L4, 14, 54, 62, false, true},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static uint32_t make(const struct kind *k)
{
	uint8_t *ip = frame + k->network, *l4 = frame + k->transport;
	uint32_t len = k->payload + BYTES, i;

	for (i = 0; i < len; i++)
		frame[i] = (uint8_t)(i * 31 + i / 256);
	if (k->network == 18)
		em_put16(frame + 12, EM_TYPE_VLAN);
	em_put16(frame + k->network - 2, k->ipv6 ? EM_TYPE_IPV6 : EM_TYPE_IPV4);
	if (k->ipv6) {
		ip[0] = 0x60;
		em_put16(ip + 4, len - k->transport);
		ip[6] = k->tcp ? 6 : 17;
	} else {
		ip[0] = 0x45;
		em_put16(ip + 2, len - k->network);
		em_put16(ip + 4, 0xFFFE); /* the identification wraps */
		ip[9] = k->tcp ? 6 : 17;
	}
	if (k->tcp) {
		em_put32(l4 + 4, 0xFFFFFF00); /* and so does the sequence number */
		l4[12] = (uint8_t)((k->payload - k->transport) / 4 << 4);
		l4[13] = 0x80 | 0x10 | 0x08 | 0x01; /* CWR ACK PSH FIN */
	} else {
		em_put16(l4 + 4, len - k->transport);
	}
	vnet = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
				       .gso_type = k->type,
				       .gso_size = SIZE,
				       .csum_start = (uint16_t)k->transport,
				       .csum_offset = k->tcp ? 16 : 6};
	return len;
}

/* Headers and payload of a run of segments as a frame with finished checksums; its length. */
static uint32_t cut(const struct kind *k, uint32_t len, uint32_t first, uint32_t n)
{
	struct virtio_net_hdr v;
	uint32_t piece = em_super_piece(&s, len, first, n);

	em_super_head(&s, frame, len, first, n, out, &v);
	memcpy(out + s.payload, frame + s.payload + first * SIZE, piece);
	assert_int_equal(v.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	assert_int_equal(v.gso_size, n == 1 ? 0 : SIZE);
	assert_int_equal(v.gso_type & 0x7F, n == 1 ? 0 : k->type);
	assert_true(em_checksum_finish(out, s.payload + piece, v.csum_start, v.csum_offset));
	return s.payload + piece;
}

static void assert_right(const struct kind *k, uint32_t bytes)
{
	const uint8_t *ip = out + k->network, *l4 = out + k->transport;
	uint32_t length = bytes - k->transport, sum = (k->tcp ? 6 : 17) + length;

	if (k->ipv6) {
		assert_int_equal(em_get16(ip + 4), length);
		sum = em_checksum_sum(ip + 8, 32, sum);
	} else {
		assert_int_equal(em_get16(ip + 2), bytes - k->network);
		assert_int_equal(em_checksum_sum(ip, 20, 0), 0xFFFF);
		sum = em_checksum_sum(ip + 12, 8, sum);
	}
	if (!k->tcp)
		assert_int_equal(em_get16(l4 + 4), length);
	/* the transport's checksum over pseudo header and all */
	assert_int_equal(em_checksum_sum(l4, length, sum), 0xFFFF);
}

static void head__every_run_of_segments(void **state)
{
	uint32_t i, first, n;

	for (i = 0; i < KINDS; i++) {
		const struct kind *k = &kinds[i];
		uint32_t len = make(k);

		assert_true(em_super_read(&s, frame, len, &vnet));
		assert_int_equal(s.count, 4);
		assert_int_equal(s.payload, k->payload);
		for (first = 0; first < 4; first++)
			for (n = 1; first + n <= 4; n++) {
				uint32_t bytes = cut(k, len, first, n);
				const uint8_t *ip = out + k->network, *l4 = out + k->transport;

				assert_right(k, bytes);
				assert_memory_equal(out + k->payload,
						    frame + k->payload + first * SIZE,
						    bytes - k->payload);
				if (!k->ipv6)
					assert_int_equal(em_get16(ip + 4),
							 (0xFFFE + first) & 0xFFFF);
				if (!k->tcp)
					continue;
				assert_int_equal(em_get32(l4 + 4),
						 (uint32_t)(0xFFFFFF00 + first * SIZE));
				assert_int_equal(l4[13], 0x10 | (first ? 0 : 0x80) |
								 (first + n == 4 ? 0x09 : 0));
			}
	}
}

static void bytes__of_each_segment(void **state)
{
	uint32_t len = make(&kinds[0]);

	assert_true(em_super_read(&s, frame, len, &vnet));
	assert_int_equal(em_super_bytes(&s, len, 0), 66 + 1000);
	assert_int_equal(em_super_bytes(&s, len, 3), 66 + 500);
	assert_int_equal(em_super_piece(&s, len, 1, 3), 2500);
}

static void read__ordinary_frames_stay_whole(void **state)
{
	uint32_t len = make(&kinds[0]);

	vnet.gso_type = VIRTIO_NET_HDR_GSO_NONE;
	assert_true(em_super_read(&s, frame, len, &vnet));
	assert_int_equal(s.count, 1);
	assert_int_equal(em_super_bytes(&s, len, 0), len);
}

static void assert_odd(uint32_t len)
{
	assert_false(em_super_read(&s, frame, len, &vnet));
	assert_int_equal(s.count, 1);
	assert_int_equal(em_super_bytes(&s, len, 0), len);
}

static void read__what_is_not_understood_stays_whole(void **state)
{
	uint32_t i, len, n;

	for (i = 0; i < KINDS; i++) {
		make(&kinds[i]);
		for (n = 0; n <= kinds[i].payload; n++)
			assert_odd(n);
		len = make(&kinds[i]);
		vnet.gso_size = 0;
		assert_odd(len);
		len = make(&kinds[i]);
		vnet.gso_type = VIRTIO_NET_HDR_GSO_UDP; /* fragments, which nobody sends any more */
		assert_odd(len);
		len = make(&kinds[i]);
		frame[kinds[i].network] = 0x50;
		assert_odd(len);
		len = make(&kinds[i]);
		em_put16(frame + kinds[i].network - 2, EM_TYPE_ARP);
		assert_odd(len);
	}
	len = make(&kinds[0]);
	frame[kinds[0].transport + 12] = 0x40; /* TCP's header shorter than it can be */
	assert_odd(len);
	len = make(&kinds[0]);
	frame[14] = 0x44; /* IPv4's as well */
	assert_odd(len);
	len = make(&kinds[0]);
	vnet.gso_type = VIRTIO_NET_HDR_GSO_TCPV6;
	assert_odd(len);
	len = make(&kinds[1]);
	vnet.csum_start = 60000; /* headers that end behind the frame */
	assert_odd(len);
}

/* The kernel says where IPv6's extension headers end. */
static void read__extension_headers(void **state)
{
	struct kind k = kinds[1];
	uint32_t len, bytes;

	k.transport += 8;
	k.payload += 8;
	len = make(&k);
	assert_true(em_super_read(&s, frame, len, &vnet));
	assert_int_equal(s.transport, 62);
	bytes = cut(&k, len, 3, 1);
	assert_int_equal(bytes, k.payload + 500);
	assert_int_equal(em_get16(out + 14 + 4), 8 + 20 + 500);
}

int segment_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head__every_run_of_segments),
		cmocka_unit_test(bytes__of_each_segment),
		cmocka_unit_test(read__ordinary_frames_stay_whole),
		cmocka_unit_test(read__what_is_not_understood_stays_whole),
		cmocka_unit_test(read__extension_headers),
	};

	return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
