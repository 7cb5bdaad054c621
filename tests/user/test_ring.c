/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which frames of a ring the engine is given together. The test is the kernel, which fills the
 * ring, and stands between the endpoint and its engine.
 */
#include "endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define ETHER	  14
#define MAC_AT	  82   /* bytes from a slot's beginning to the frame in it */
#define SLOT	  2048 /* bytes */
#define PER_BLOCK 32
#define LONG	  1400 /* bytes of a frame that is one of several, mostly */
#define SHORT	  100
#define ALL	  512 /* slots */
#define MOST	  64  /* frames that a round takes */

static struct bw_ep *ep;
static struct told seen;
static struct bw_packet *p;
static uint32_t filled; /* frames, ever: each has its number as its packet number */
static uint32_t others; /* of these for other engines */

/* What the engine was given. */
static struct {
	uint32_t frames, calls;
	uint32_t together[2 * ALL]; /* frames, by call */
	uint32_t held;		    /* slots that were ours while it had their frames */
	uint32_t marked;
	bool disorder, in_pieces;
} given;

static struct tpacket2_hdr *slot_of(uint32_t number)
{
	return (void *)(p->ring + (size_t)(number % p->slots) * SLOT);
}

static void note(const struct bw_rx_frame *f, uint32_t n)
{
	given.together[given.calls++] = n;
	for (uint32_t i = 0; i < n; i++) {
		const struct bw_hdr *h = f[i].head;
		const struct tpacket2_hdr *slot = slot_of(h->pn);

		given.disorder |= i && h->pn <= ((const struct bw_hdr *)f[i - 1].head)->pn;
		given.in_pieces |= f[i].head != (const uint8_t *)slot + MAC_AT + ETHER;
		given.held += slot->tp_status == TP_STATUS_USER;
		given.marked += f[i].mark;
	}
	given.frames += n;
}

void __wrap_bw_host_receive(struct bw_ep *to, const struct bw_rx_frame *f);
void __wrap_bw_host_receive(struct bw_ep *to, const struct bw_rx_frame *f)
{
	assert_ptr_equal(to, ep);
	note(f, 1);
}

void __wrap_bw_host_receive_row(struct bw_ep *to, const struct bw_rx_frame *f, uint32_t n);
void __wrap_bw_host_receive_row(struct bw_ep *to, const struct bw_rx_frame *f, uint32_t n)
{
	assert_ptr_equal(to, ep);
	note(f, n);
}

static void ring_of(uint32_t slots)
{
	p->slots = slots;
	p->per_block = slots < PER_BLOCK ? slots : PER_BLOCK;
	p->slot_bytes = SLOT;
	p->block_bytes = p->per_block * SLOT;
	p->ring_bytes = (size_t)slots * SLOT;
	p->ring = mmap(NULL, p->ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	assert_true(p->ring != MAP_FAILED);
	p->next = (struct tpacket2_hdr *)p->ring;
	p->index = p->in_block = 0;
}

static int setup(void **state)
{
	ep = endpoint_open("udp", &seen);
	p = &ep->packet[0];
	p->fd = p->claim = p->fanout.connection = -1;
	p->link = BW_LINK_NO_PACKET;
	p->batch = bw_batch_new(ETHER, false);
	assert_non_null(p->batch);
	ep->packets = 1;
	ring_of(ALL);
	filled = others = 0;
	memset(&given, 0, sizeof(given));
	return 0;
}

static int teardown(void **state)
{
	bw_ep_close(ep, 0);
	return 0;
}

/* The kernel receives a frame for the engine of this number. */
static void fill_for(uint16_t engine, uint32_t len)
{
	struct tpacket2_hdr *slot = slot_of(filled);
	struct bw_hdr *h = (void *)((uint8_t *)slot + MAC_AT + ETHER);

	assert_int_equal(slot->tp_status, TP_STATUS_KERNEL);
	slot->tp_mac = MAC_AT;
	slot->tp_snaplen = ETHER + len;
	*h = (struct bw_hdr){.magic = BW_MAGIC,
			     .version = BW_VERSION,
			     .type = BW_FRAME_DATA,
			     .dst_engine = engine,
			     .pn = filled++};
	slot->tp_status = TP_STATUS_USER;
	others += engine != ep->self.engine;
}

static void fill(uint32_t n, uint32_t len)
{
	for (uint32_t i = 0; i < n; i++)
		fill_for(ep->self.engine, len);
}

static uint32_t waiting(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->slots; i++)
		n += slot_of(i)->tp_status == TP_STATUS_USER;
	return n;
}

/* A round: the engine is given frames in calls, each of which has this many; ended by 0. Then the
 * kernel has their slots again. */
static void takes(const uint32_t *together)
{
	uint32_t calls = 0, frames = 0, before = waiting();

	given.calls = given.frames = given.held = given.marked = 0;
	for (; together[calls]; calls++)
		frames += together[calls];
	bw_progress(ep);
	assert_int_equal(given.calls, calls);
	assert_memory_equal(given.together, together, calls * sizeof(*together));
	assert_int_equal(given.frames, frames);
	assert_int_equal(given.held, frames); /* while the engine has them */
	assert_false(given.disorder || given.in_pieces);
	assert_int_equal(waiting(), before - frames - others);
	others = 0;
}
#define TAKES(...) takes((const uint32_t[]){__VA_ARGS__, 0})

static void frames__that_are_long_are_given_together(void **state)
{
	fill(1, LONG);
	TAKES(1);
	assert_int_equal(p->rx_rows, 0);
	fill(2, LONG);
	TAKES(2);
	fill(MOST, LONG);
	TAKES(MOST);
	assert_int_equal(p->rx_rows, 2);
}

static void frames__that_are_short_are_given_singly(void **state)
{
	fill(3, SHORT);
	TAKES(1, 1, 1);
	assert_int_equal(p->rx_rows, 0);
}

/* One of another length is the last one of a row: what comes behind it begins anew. */
static void row__ends_with_another_length(void **state)
{
	fill(3, LONG);
	fill(2, LONG - 1);
	fill(2, SHORT);
	fill(2, LONG);
	TAKES(4, 2, 1, 2);
	fill(2, LONG);
	fill(1, LONG + 1);
	fill(2, LONG);
	TAKES(3, 2);
}

/* Over the end of a block, and of the ring. */
static void row__goes_on_where_the_ring_begins(void **state)
{
	for (uint32_t round = 0; round < 3 * ALL / 50; round++) {
		fill(50, LONG);
		TAKES(50);
	}
	assert_true(filled > 2 * p->slots);
}

/* Most of a small ring stays the kernel's, and a full one is not taken twice. */
static void row__holds_a_quarter_of_the_ring(void **state)
{
	munmap(p->ring, p->ring_bytes);
	ring_of(28);
	fill(28, LONG);
	TAKES(7, 7, 7, 7);
	fill(20, LONG);
	TAKES(7, 7, 6);
	munmap(p->ring, p->ring_bytes);
	ring_of(2);
	filled = 0;
	fill(2, LONG);
	TAKES(1, 1);
}

/* Those for the dead are the watch's: a row goes on behind them. */
static void row__is_of_own_frames(void **state)
{
	uint16_t other = ep->self.engine + 1;

	fill(2, LONG);
	fill_for(other, LONG);
	fill(2, LONG);
	TAKES(4);
	fill_for(other, LONG);
	fill(2, LONG);
	TAKES(2);
	assert_int_equal(p->rx_rows, 2);
	assert_int_equal(p->rx_row_frames, 6);
	fill(1, LONG);
	fill_for(other, LONG);
	TAKES(1);
	assert_int_equal(p->rx_rows, 2);
	assert_int_equal(p->rx_row_frames, 6);
}

/* Every eighth frame it is looked how full the ring is behind it. */
static void row__is_marked_while_the_ring_is_crowded(void **state)
{
	fill(ALL / 2, LONG);
	TAKES(MOST);
	assert_int_equal(given.marked, 0);
	TAKES(MOST);
	TAKES(MOST);
	TAKES(MOST);
	fill(ALL / 2 + MOST / 2, LONG);
	TAKES(MOST);
	assert_int_equal(given.marked, MOST / 2 - 8);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(frames__that_are_long_are_given_together),
		TEST(frames__that_are_short_are_given_singly),
		TEST(row__ends_with_another_length),
		TEST(row__goes_on_where_the_ring_begins),
		TEST(row__holds_a_quarter_of_the_ring),
		TEST(row__is_of_own_frames),
		TEST(row__is_marked_while_the_ring_is_crowded),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
