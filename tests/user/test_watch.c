/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Refusals for the dead and own traffic share the batch of raw frames. The endpoint's packet link
 * is one end of a pair of sockets here, so that no privilege is needed, and the test hands frames
 * to the watch itself.
 */
#include "claim.h"
#include "number.h"
#include "refuse.h"
#include "endpoint.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define BURST	     1000  /* HELLOs in one round */
#define FIRST_ENGINE 33000 /* nobody has these, but for a few that other programs may have */
#define ETHER	     14
#define SLOT	     1664 /* bytes of a ring's slot */
#define MAC_AT	     82	  /* bytes from a slot's beginning to the frame in it */

static struct bw_ep *ep;
static struct told seen;
static int theirs;

static int setup(void **state)
{
	int both[2];

	ep = endpoint_open("udp", &seen);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, both), 0);
	theirs = both[1];
	ep->packet[0].fd = both[0];
	ep->packet[0].link = BW_LINK_NO_PACKET;
	ep->packet[0].batch = bw_batch_new(ETHER, false);
	assert_non_null(ep->packet[0].batch);
	ep->packets = 1;
	ep->has_packet = true;
	return 0;
}

static int teardown(void **state)
{
	bw_ep_close(ep, 0);
	close(theirs);
	return 0;
}

struct hello {
	struct bw_hdr hdr;
	struct bw_hello body;
};

static void fill_hello(struct hello *hello, uint16_t engine)
{
	*hello = (struct hello){0};
	hello->hdr.magic = BW_MAGIC;
	hello->hdr.version = BW_VERSION;
	hello->hdr.type = BW_FRAME_HELLO;
	hello->hdr.cluster = ep->self.cluster;
	hello->hdr.src_engine = 7;
	hello->hdr.dst_engine = engine;
}

/* A HELLO for an engine. */
static void hello_for(uint16_t engine)
{
	struct hello hello;
	struct bw_rx_frame f = {.head = &hello, .len = sizeof(hello), .head_len = sizeof(hello)};

	fill_hello(&hello, engine);
	f.from.link = BW_LINK_NO_PACKET;
	f.from.len = 6;
	bw_watch_frame(ep, &f);
}

/* HELLOs for engines that nobody has, all in one round. */
static void burst(void)
{
	for (uint16_t i = 0; i < BURST; i++)
		hello_for((uint16_t)(FIRST_ENGINE + i));
}

/* A message to a peer that only raw frames reach: its first frame is a HELLO. */
static void send_one(void)
{
	struct bw_addr_fields fields = ep->self;
	struct bw_addr addr;
	bw_peer_no peer;

	fields.links = BW_LINK_PACKET;
	fields.ethertype = ep->self.ethertype;
	fields.node++;
	fields.mac[5]++;
	fields.packet_mtu = BW_FRAME_MIN_MTU;
	bw_addr_pack(&fields, &addr);
	assert_int_equal(bw_peer_find(ep, &addr, &peer), 0);
	assert_int_equal(bw_send(ep, peer, 1, 2, 3, "word", 4, 0, NULL), 1);
}

/* How many frames of a type have left since the last call. */
static int left(uint8_t type)
{
	uint8_t frame[2048];
	int n = 0;

	while (recv(theirs, frame, sizeof(frame), 0) > 0)
		n += frame[ETHER + offsetof(struct bw_hdr, type)] == type;
	return n;
}

static void watch__leaves_room_for_own_frames(void **state)
{
	burst();
	assert_int_equal(ep->packet[0].batch->count, BW_BATCH_FRAMES / 2);
	assert_int_equal(ep->watch.refused, BW_BATCH_FRAMES / 2);
	send_one();
	assert_int_equal(left(BW_FRAME_HELLO), 1);
	assert_false(ep->stuck);
}

/* The number of an engine that nobody on this machine has. */
static uint16_t free_engine(void)
{
	struct bw_number number;
	uint16_t engine;

	assert_int_equal(bw_number_claim(FIRST_ENGINE, 1, &engine, &number), 0);
	close(number.claim);
	return engine;
}

/* The same by a ring: one round takes the HELLO and sends the refusal. */
static void watch__refuses_in_the_round_of_the_frame(void **state)
{
	struct bw_packet *p = &ep->packet[0];

	p->slots = p->per_block = 2;
	p->slot_bytes = SLOT;
	p->block_bytes = 2 * SLOT;
	p->ring_bytes = (size_t)p->block_bytes;
	p->ring = mmap(NULL, p->ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	assert_true(p->ring != MAP_FAILED);
	p->next = (struct tpacket2_hdr *)p->ring;
	p->next->tp_mac = MAC_AT;
	p->next->tp_snaplen = ETHER + sizeof(struct hello);
	fill_hello((struct hello *)(p->ring + MAC_AT + ETHER), free_engine());
	p->next->tp_status = TP_STATUS_USER;
	assert_int_equal(bw_progress(ep), 1);
	assert_int_equal(left(BW_FRAME_REFUSE), 1);
}

static void watch__refuses_again_in_the_next_round(void **state)
{
	for (int round = 0; round < 4; round++) {
		burst();
		bw_host_transmit(ep);
		assert_int_equal(left(BW_FRAME_REFUSE), BW_BATCH_FRAMES / 2);
	}
}

/* As the name of the claim has it, a number of this process alone. */
static int own_interface(void)
{
	return 1000000 + (int)getpid();
}

/* An engine that lives is left alone, and asked for again later: it may have died. */
static void watch__asks_again_who_lives(void **state)
{
	uint16_t engine;
	struct bw_number number;
	int fd = bw_number_claim(FIRST_ENGINE, 1, &engine, &number);

	assert_int_equal(fd, 0);
	ep->iface.index = own_interface();
	bw_watch_visit(ep);
	assert_true(ep->watch.claim >= 0);
	hello_for(engine);
	assert_int_equal(ep->watch.n, 1);
	assert_int_equal(ep->watch.alive[0], engine);
	close(number.claim);
	hello_for(engine);
	assert_int_equal(ep->watch.refused, 0);
	ep->now = ep->watch.forget_at - 1;
	bw_watch_visit(ep);
	assert_int_equal(ep->watch.n, 1);
	ep->now++;
	bw_watch_visit(ep);
	assert_int_equal(ep->watch.n, 0);
	hello_for(engine);
	assert_int_equal(ep->watch.refused, 1);
}

/* Whoever keeps the watch may end: then somebody else does. */
static void watch__is_taken_over(void **state)
{
	char name[64];
	int other;

	ep->iface.index = own_interface();
	snprintf(name, sizeof(name), "beowire/watch/%04x/%d", ep->env.ethertype, ep->iface.index);
	other = bw_claim_name(name);
	assert_true(other >= 0);
	bw_watch_visit(ep);
	assert_true(ep->watch.claim < 0);
	close(other);
	assert_in_range(ep->watch.claim_at, ep->now + 1, ep->now + 10 * BW_S);
	ep->now = ep->watch.claim_at - 1;
	bw_watch_visit(ep);
	assert_true(ep->watch.claim < 0);
	ep->now++;
	bw_watch_visit(ep);
	assert_true(ep->watch.claim >= 0);
	assert_int_equal(ep->watch.claim_at, BW_NEVER);
	assert_int_equal(bw_claim_name(name), -EADDRINUSE);
}

/* Who keeps it and has nothing to do looks who asks for it before there is no room to ask, at one
 * call a second of each endpoint. */
static void watch__is_emptied_while_idle(void **state)
{
	int fd[64];
	char name[64];

	ep->iface.index = own_interface();
	snprintf(name, sizeof(name), "beowire/watch/%04x/%d", ep->env.ethertype, ep->iface.index);
	bw_watch_visit(ep);
	assert_true(ep->watch.claim >= 0);
	ep->deadline = BW_NEVER;
	assert_in_range(bw_wait_limit(ep, ep->now), BW_S, 2 * BW_S);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 64; i++) {
			fd[i] = bw_claim_dial(name);
			assert_true(fd[i] >= 0);
		}
		ep->now += bw_wait_limit(ep, ep->now);
		assert_int_equal(bw_wait_limit(ep, ep->now), 0);
		bw_watch_visit(ep);
		assert_in_range(bw_wait_limit(ep, ep->now), BW_S, 2 * BW_S);
		for (int i = 0; i < 64; i++) {
			char byte;

			assert_int_equal(recv(fd[i], &byte, 1, MSG_DONTWAIT), 0);
			close(fd[i]);
		}
	}
}

/* What is not ours is counted, and answered by nobody. */
static void watch__counts_what_is_foreign(void **state)
{
	uint64_t bytes[20] = {0};
	struct bw_rx_frame f = {.head = bytes, .len = sizeof(bytes), .head_len = sizeof(bytes)};
	struct bw_hdr *h = (struct bw_hdr *)bytes;

	f.from.link = BW_LINK_NO_PACKET;
	h->version = BW_VERSION;
	h->type = BW_FRAME_HELLO;
	h->dst_engine = FIRST_ENGINE;
	for (int i = 0; i < 3; i++)
		bw_watch_frame(ep, &f);
	h->magic = BW_MAGIC;
	f.len = f.head_len = sizeof(*h) - 1;
	bw_watch_frame(ep, &f);
	assert_int_equal(ep->watch.foreign, 4);
	assert_int_equal(ep->watch.refused, 0);
	assert_int_equal(ep->packet[0].batch->count, 0);
}

/* Whoever says things in another's name gets no more sent there than he has sent. */
static void watch__refuses_nothing_that_is_shorter_than_a_refusal(void **state)
{
	uint64_t bytes[sizeof(struct bw_refuse_frame) / 8] = {0};
	struct bw_hdr *h = (struct bw_hdr *)bytes;
	struct bw_rx_frame f = {.head = bytes};

	assert_int_equal(sizeof(bytes), 96);
	h->magic = BW_MAGIC;
	h->version = BW_VERSION;
	h->type = BW_FRAME_DATA;
	h->flags = BW_HDR_ACK_NOW;
	h->cluster = ep->self.cluster;
	h->src_engine = 7;
	h->dst_engine = free_engine();
	f.from.link = BW_LINK_NO_PACKET;
	f.from.len = 6;
	f.len = f.head_len = sizeof(bytes) - 1;
	bw_watch_frame(ep, &f);
	assert_int_equal(ep->watch.refused, 0);
	f.len = f.head_len = sizeof(bytes);
	bw_watch_frame(ep, &f);
	assert_int_equal(ep->watch.refused, 1);
}

/* However a batch came to be full: it is sent before the next frame is collected. */
static void transmit__empties_a_full_batch_first(void **state)
{
	struct bw_tx_frame other = {.head_len = 40, .len = 40};

	while (bw_packet_add(&ep->packet[0], &other))
		;
	assert_true(bw_batch_full(ep->packet[0].batch));
	send_one();
	assert_int_equal(left(BW_FRAME_HELLO), 1);
	assert_int_equal(ep->packet[0].batch->count, 0);
}

/* Neither room in the batch nor in the kernel: the frame is sent when there is. */
static void transmit__repeats_what_found_no_room(void **state)
{
	struct bw_tx_frame other = {.head_len = 40, .len = 40};
	uint8_t filling[1000] = {0};

	while (send(ep->packet[0].fd, filling, sizeof(filling), 0) > 0)
		;
	while (bw_packet_add(&ep->packet[0], &other))
		;
	send_one();
	assert_true(ep->stuck);
	assert_true(bw_batch_full(ep->packet[0].batch));
	burst();
	assert_true(bw_batch_full(ep->packet[0].batch));
	left(BW_FRAME_HELLO);
	for (int hellos = 0; !hellos; hellos = left(BW_FRAME_HELLO)) {
		ep->now = bw_clock_now();
		bw_host_transmit(ep);
	}
	assert_false(ep->stuck);
}

/* An interface that takes nothing for ever: its peer is given up all the same. In virtual time. */
static void transmit__in_vain_ends_with_the_peer(void **state)
{
	uint8_t filling[1000] = {0};
	uint64_t until;

	while (send(ep->packet[0].fd, filling, sizeof(filling), 0) > 0)
		;
	send_one();
	assert_true(ep->stuck);
	for (until = ep->now + 2 * ep->env.dead_ns; !seen.downs && ep->now < until;) {
		ep->now += 10 * BW_MS;
		bw_host_transmit(ep);
		bw_host_events(ep);
	}
	assert_int_equal(seen.downs, 1);
	assert_int_equal(seen.status, -ETIMEDOUT);
	assert_true(ep->packet[0].batch->errors > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(watch__leaves_room_for_own_frames),
		TEST(watch__refuses_in_the_round_of_the_frame),
		TEST(watch__refuses_again_in_the_next_round),
		TEST(watch__asks_again_who_lives),
		TEST(watch__is_taken_over),
		TEST(watch__is_emptied_while_idle),
		TEST(watch__counts_what_is_foreign),
		TEST(watch__refuses_nothing_that_is_shorter_than_a_refusal),
		TEST(transmit__empties_a_full_batch_first),
		TEST(transmit__repeats_what_found_no_room),
		TEST(transmit__in_vain_ends_with_the_peer),
	};

	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
