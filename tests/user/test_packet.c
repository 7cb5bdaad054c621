/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring that raw frames are received from, the header that they are sent with, and the pauses
 * between questions for such a ring. The test is the kernel: it fills a ring of few slots in blocks
 * that the slots do not fill, so that no privilege is needed.
 */
#include "link/packet/packet.h"
#include "link/packet/served.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SLOT	  1664 /* bytes */
#define BLOCK	  4096 /* bytes */
#define PER_BLOCK 2
#define BLOCKS	  3
#define SLOTS	  (PER_BLOCK * BLOCKS)
#define MAC_AT	  82 /* bytes from a slot's beginning to the frame in it */
#define ETHER	  14

static struct bw_packet p;
static const uint8_t mine[6] = {2, 0, 0, 0, 0, 1}, others[6] = {2, 0, 0, 0, 0, 2};
static int theirs;

static int setup(void **state)
{
	int both[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, both), 0);
	theirs = both[1];
	p = (struct bw_packet){
		.fd = both[0],
		.ring = aligned_alloc(64, BLOCKS * BLOCK),
		.slots = SLOTS,
		.per_block = PER_BLOCK,
		.slot_bytes = SLOT,
		.block_bytes = BLOCK,
		.link = BW_LINK_NO_PACKET + 1,
		.ethertype = htons(0x88B5),
		.batch = bw_batch_new(ETHER, false),
	};
	assert_non_null(p.ring);
	assert_non_null(p.batch);
	memset(p.ring, 0, BLOCKS * BLOCK);
	memcpy(p.mac, mine, 6);
	p.next = (struct tpacket2_hdr *)p.ring;
	return 0;
}

static int teardown(void **state)
{
	bw_batch_free(p.batch);
	free(p.ring);
	close(p.fd);
	close(theirs);
	return 0;
}

static struct tpacket2_hdr *slot_of(uint32_t number)
{
	uint32_t i = number % SLOTS;

	return (void *)(p.ring + (size_t)(i / PER_BLOCK) * BLOCK + (size_t)(i % PER_BLOCK) * SLOT);
}

/* The kernel receives frame `number`, of which it keeps the first `kept` bytes of `len`. */
static void fill(uint32_t number, uint32_t len, uint32_t kept)
{
	struct tpacket2_hdr *slot = slot_of(number);
	uint8_t *frame = (uint8_t *)slot + MAC_AT;

	assert_int_equal(slot->tp_status, TP_STATUS_KERNEL);
	slot->tp_mac = MAC_AT;
	slot->tp_len = ETHER + len;
	slot->tp_snaplen = ETHER + kept;
	memcpy(frame, mine, 6);
	memcpy(frame + 6, others, 6);
	memset(frame + ETHER, (int)number, kept);
	slot->tp_status = TP_STATUS_USER;
}

/* Take frame `number`, of so many bytes. */
static void take(uint32_t number, uint32_t kept)
{
	struct bw_rx_frame f = {.mark = false};
	const uint8_t *byte;

	assert_true(bw_packet_ready(&p));
	bw_packet_take(&p, &f);
	assert_int_equal(f.len, kept);
	assert_int_equal(f.head_len, kept);
	byte = f.head;
	for (uint32_t i = 0; i < kept; i++)
		assert_int_equal(byte[i], (uint8_t)number);
	assert_int_equal(f.from.link, BW_LINK_NO_PACKET + 1);
	assert_int_equal(f.from.len, 6);
	assert_memory_equal(f.from.bytes, others, 6);
	bw_packet_release(&f);
	assert_int_equal(slot_of(number)->tp_status, TP_STATUS_KERNEL);
}

static void ring__is_read_in_order_round_after_round(void **state)
{
	uint32_t in = 0, out = 0;
	uint64_t bytes = 0;

	assert_false(bw_packet_ready(&p));
	for (uint32_t n = 1; n <= SLOTS; n++) {
		for (int round = 0; round < 5; round++) {
			for (uint32_t i = 0; i < n; i++, in++)
				fill(in, 100 + in % 1000, 100 + in % 1000);
			for (uint32_t i = 0; i < n; i++, out++) {
				take(out, 100 + out % 1000);
				bytes += 100 + out % 1000;
			}
			assert_false(bw_packet_ready(&p));
		}
	}
	assert_int_equal(p.count.rx_frames, out);
	assert_int_equal(p.count.rx_bytes, bytes);
}

/* Several at a time, as long as one likes; the kernel gets each slot back by itself. */
static void frames__are_held_until_each_is_released(void **state)
{
	struct bw_rx_frame f[SLOTS];
	uint32_t in = 0;

	for (uint32_t begin = 0; begin < 2 * SLOTS; begin++) {
		uint32_t n = 1 + begin % SLOTS, first = in;

		for (uint32_t i = 0; i < n; i++)
			fill(in++, 60, 60);
		for (uint32_t i = 0; i < n; i++) {
			assert_true(bw_packet_ready(&p));
			bw_packet_take(&p, &f[i]);
		}
		for (uint32_t i = n; i-- > 0;) {
			assert_int_equal(*(const uint8_t *)f[i].head, (uint8_t)(first + i));
			assert_int_equal(slot_of(first + i)->tp_status, TP_STATUS_USER);
			bw_packet_release(&f[i]);
			assert_int_equal(slot_of(first + i)->tp_status, TP_STATUS_KERNEL);
		}
		assert_false(bw_packet_ready(&p));
	}
}

/* The filter of the watch keeps the first bytes only: behind them lies another frame's rest. */
static void frame__is_as_long_as_what_was_kept(void **state)
{
	fill(0, 1500, 160);
	take(0, 160);
}

static void ring__is_crowded_when_more_than_half_waits(void **state)
{
	uint32_t in = 0, out = 0;

	for (uint32_t begin = 0; begin < 2 * SLOTS; begin++) {
		for (uint32_t waiting = 1; waiting <= SLOTS; waiting++) {
			fill(in++, 60, 60);
			assert_int_equal(bw_packet_crowded(&p), waiting > SLOTS / 2);
		}
		while (out < in)
			take(out++, 60);
		assert_false(bw_packet_crowded(&p));
		/* From the next slot on. */
		fill(in++, 60, 60);
		take(out++, 60);
	}
}

static void frame__is_sent_with_its_header(void **state)
{
	static const uint8_t header[] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xB5};
	struct bw_tx_frame f = {.head_len = 40, .len = 40};
	uint8_t frame[100];

	memcpy(f.to.bytes, others, 6);
	memset(f.head, 7, 40);
	assert_true(bw_packet_add(&p, &f));
	assert_true(bw_batch_flush(p.batch, p.fd, 1));
	assert_int_equal(recv(theirs, frame, sizeof(frame), 0), ETHER + 40);
	assert_memory_equal(frame, header, ETHER);
	for (int i = 0; i < 40; i++)
		assert_int_equal(frame[ETHER + i], 7);
	assert_int_equal(p.count.tx_frames, 1);
	assert_int_equal(p.count.tx_bytes, 40);
	assert_int_equal(p.count.tx_payload, 0);
}

/* What finds no room is not counted as sent. */
static void frame__without_room_is_not_counted(void **state)
{
	struct bw_tx_frame f = {.head_len = 40, .len = 40};

	for (int i = 0; i < BW_BATCH_FRAMES; i++)
		assert_true(bw_packet_add(&p, &f));
	assert_false(bw_packet_add(&p, &f));
	assert_int_equal(p.count.tx_frames, BW_BATCH_FRAMES);
}

/* A service that gives nothing of use is asked again after 1, 2, 4, 8 and then 10 s each. */
static void pause__is_doubled_up_to_ten_seconds(void **state)
{
	static const uint64_t seconds[] = {1, 2, 4, 8, 10, 10};

	for (uint32_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
		assert_int_equal(bw_service_pause(i), seconds[i] * BW_S);
	assert_int_equal(bw_service_pause(UINT8_MAX), 10 * BW_S);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ring__is_read_in_order_round_after_round),
		TEST(frames__are_held_until_each_is_released),
		TEST(frame__is_as_long_as_what_was_kept),
		TEST(ring__is_crowded_when_more_than_half_waits),
		TEST(frame__is_sent_with_its_header),
		TEST(frame__without_room_is_not_counted),
		cmocka_unit_test(pause__is_doubled_up_to_ten_seconds),
	};

	return cmocka_run_group_tests_name("packet", tests, NULL, NULL);
}
