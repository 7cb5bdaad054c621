/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Looks without the lock, in place of rounds that would find nothing. The endpoint's packet link
 * has a ring of the test's own, so that no privilege is needed.
 */
#include "endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SLOT	1664 /* bytes */
#define SLOTS	64
#define ETHER	14
#define MAC_AT	82  /* bytes from a slot's beginning to the frame in it */
#define ROW	256 /* empty calls, after which the program gives its core away */
#define LOOKERS 3
#define FRAMES	20000

static struct bw_ep *ep;
static struct told told;
static int theirs;

static void open_ring(struct bw_packet *p)
{
	int both[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, both), 0);
	theirs = both[1];
	*p = (struct bw_packet){
		.fd = both[0],
		.slots = SLOTS,
		.per_block = SLOTS,
		.slot_bytes = SLOT,
		.block_bytes = SLOTS * SLOT,
		.ring_bytes = (size_t)SLOTS * SLOT,
		.link = BW_LINK_NO_PACKET,
		.batch = bw_batch_new(ETHER, false),
	};
	p->ring = mmap(NULL, p->ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	assert_true(p->ring != MAP_FAILED);
	/* As bw_packet_open() does. */
	assert_int_equal(madvise(p->ring, p->ring_bytes, MADV_DONTFORK), 0);
	p->next = (struct tpacket2_hdr *)p->ring;
}

/* A frame of nothing in the slot of this index, which endpoints pass over. */
static void arrive(const struct bw_packet *p, uint32_t index)
{
	struct tpacket2_hdr *slot = (struct tpacket2_hdr *)(p->ring + (size_t)index * SLOT);

	slot->tp_mac = MAC_AT;
	slot->tp_snaplen = ETHER;
	__atomic_store_n(&slot->tp_status, TP_STATUS_USER, __ATOMIC_RELEASE);
}

static uint32_t turns(void)
{
	return bw_lock_turn(&ep->lock);
}

/* Rounds until looks are allowed. */
static void rest(void)
{
	for (int i = 0; i < 3 * (BW_LOOKS + 1); i++)
		bw_progress(ep);
	for (uint32_t before = turns(); turns() == before;)
		assert_int_equal(bw_progress(ep), 0);
}

static int setup_patient(void **state)
{
	ep = endpoint_open("udp", &told);
	open_ring(&ep->packet[0]);
	ep->packets = 1;
	ep->has_packet = true;
	rest();
	return 0;
}

/* Without pauses for others. */
static int setup(void **state)
{
	setenv("BEOWIRE_WAIT", "spin", 1);
	setup_patient(state);
	unsetenv("BEOWIRE_WAIT");
	return 0;
}

static int teardown(void **state)
{
	bw_ep_close(ep, 0);
	close(theirs);
	return 0;
}

/* Calls of bw_progress() before one takes the lock. */
static uint32_t looks(void)
{
	uint32_t before = turns(), n = 0;

	for (; n < 2 * BW_LOOKS; n++) {
		bw_progress(ep);
		if (turns() != before)
			break;
	}
	return n;
}

static void look__takes_no_lock(void **state)
{
	uint64_t rounds = ep->rounds;

	for (int i = 0; i < 100; i++)
		assert_int_equal(looks(), BW_LOOKS);
	assert_int_equal(ep->rounds, rounds + 100);
}

static void look__sees_a_frame(void **state)
{
	for (uint32_t i = 0; i < 2 * SLOTS; i++) {
		for (uint32_t n = 0; n < i % (BW_LOOKS + 2); n++)
			assert_int_equal(bw_progress(ep), 0);
		arrive(&ep->packet[0], i % SLOTS);
		assert_int_equal(bw_progress(ep), 1);
		assert_int_equal(bw_progress(ep), 0);
	}
	assert_int_equal(ep->packet[0].count.rx_frames, 2 * SLOTS);
}

/* By each of the interfaces. */
static void look__sees_a_frame_on_the_second_link(void **state)
{
	struct bw_packet *p = &ep->packet[1];
	int first = theirs;

	bw_ep_lock(ep);
	open_ring(p);
	p->link = BW_LINK_NO_PACKET + 1;
	ep->packets = 2;
	bw_ep_unlock(ep);
	rest();
	assert_int_equal(looks(), BW_LOOKS);
	arrive(p, 0);
	assert_int_equal(bw_progress(ep), 1);
	close(first);
}

/* Whoever has had the lock may have left something to do. */
static void look__is_not_made_after_a_call(void **state)
{
	bw_ep_lock(ep);
	assert_int_equal(bw_progress(ep), 0);
	assert_int_equal(ep->look.made, 0);
	bw_ep_unlock(ep);
	assert_int_equal(looks(), 0);
	assert_int_equal(looks(), BW_LOOKS);
	bw_progress(ep);
	bw_ep_pressure(ep, true);
	assert_int_equal(looks(), 0);
}

/* What only a round does, or finds. */
static void look__is_not_made_while_a_round_has_work(void **state)
{
	bool *const flags[] = {&ep->stuck, &ep->udp.batch->refused};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		bw_ep_lock(ep);
		*flags[i] = true;
		ep->retry_at = BW_NEVER;
		bw_ep_unlock(ep);
		bw_progress(ep);
		/* The error queue is empty, which that round has seen. */
		assert_int_equal(looks(), flags[i] == &ep->stuck ? 0 : BW_LOOKS);
		bw_ep_lock(ep);
		*flags[i] = false;
		bw_ep_unlock(ep);
		rest();
	}
	bw_ep_lock(ep);
	ep->udp_hot = 4;
	bw_ep_unlock(ep);
	for (int i = 0; i < 4; i++)
		assert_int_equal(looks(), 0);
	assert_int_equal(looks(), BW_LOOKS);
}

/* As long as each round looks at udp, no look that finds nothing says that the next is to be late:
 * only then does each double the pause. */
static void look__at_udp_becomes_rare_step_by_step(void **state)
{
	uint64_t pause = 0;

	bw_ep_lock(ep);
	ep->udp_hot = 100;
	ep->udp_pause = BW_UDP_PAUSE_NS;
	while (ep->udp_hot) {
		assert_int_equal(ep->udp_pause, BW_UDP_PAUSE_NS);
		bw_progress(ep);
	}
	for (pause = ep->udp_pause; pause < BW_UDP_PAUSE_MAX_NS; pause = ep->udp_pause) {
		while (ep->udp_pause == pause)
			bw_progress(ep);
		assert_int_equal(ep->udp_pause, bw_min_u64(2 * pause, BW_UDP_PAUSE_MAX_NS));
	}
	bw_ep_unlock(ep);
}

/* The calls that follow one another with no more than a look, after which a round is due: at once,
 * or when something has come. */
static int looks_until_round(void)
{
	uint32_t turn = bw_lock_turn(&ep->lock);
	int n = 0;

	for (;; n++) {
		bw_progress(ep);
		if (bw_lock_turn(&ep->lock) != turn)
			return n;
	}
}

/* Looks follow a round; once in a while the helper has the lock between. */
static void await_looks(void)
{
	int n = 0;

	for (int tries = 0; n < BW_LOOKS && tries < 1000; tries++) {
		looks_until_round();
		n = looks_until_round();
	}
	assert_int_equal(n, BW_LOOKS);
}

/* A record of a peer in shared memory ends looks at once; so does its death, now and then. */
static void look__sees_a_record_of_a_local_peer(void **state)
{
	struct told other_told;
	struct bw_ep *alone = ep, *other;
	bw_peer_no peer, back;

	ep = endpoint_open("local", &told);
	other = endpoint_open("local", &other_told);
	peer = endpoint_find(ep, other);
	back = endpoint_find(other, ep);
	assert_int_equal(bw_send(ep, peer, 1, 1, 1, "word", 4, 0, NULL), 1);
	endpoint_await(ep, other, &other_told.messages, 1);
	for (int i = 0; i < 20; i++) {
		await_looks();
		assert_int_equal(bw_send(other, back, 1, 1, 1, "word", 4, 0, NULL), 1);
		assert_int_equal(bw_progress(ep), 1);
	}
	/* Looks at the memory that it leaves find nothing. */
	await_looks();
	assert_int_equal(ep->look.peers, 1);
	bw_ep_close(other, 0);
	endpoint_await(ep, ep, &told.downs, 1);
	assert_int_equal(__atomic_load_n(ep->look.record[0], __ATOMIC_RELAXED), 0);
	bw_ep_close(ep, 0);
	ep = alone;
}

/* Looks at the udp socket are rare, and looks take the place of rounds, while messages come from
 * the own node; when none have come for a while udp is looked at by each round. */
static void look__leaves_udp_out_beside_a_local_peer(void **state)
{
	struct told other_told;
	struct bw_ep *alone = ep, *other;
	int n = 0;

	ep = endpoint_open("local,udp", &told);
	other = endpoint_open("local,udp", &other_told);
	assert_int_equal(bw_send(other, endpoint_find(other, ep), 1, 1, 1, "word", 4, 0, NULL), 1);
	endpoint_await(ep, other, &told.messages, 1);
	await_looks();
	for (int i = 0; i < 100 * BW_UDP_HOT && ep->local_hot; i++)
		looks_until_round();
	assert_int_equal(ep->local_hot, 0);
	for (int i = 0; i < 100; i++)
		n += looks_until_round();
	assert_int_equal(n, 0);
	bw_ep_close(other, 0);
	bw_ep_close(ep, 0);
	ep = alone;
}

/* A program that finds a message each time must not make time stand still: deadlines and other
 * links wait for it. */
static void look__and_busy_rounds_read_the_clock(void **state)
{
	struct told other_told;
	struct bw_ep *alone = ep, *other;
	bw_peer_no back;
	uint64_t since;

	ep = endpoint_open("local", &told);
	other = endpoint_open("local", &other_told);
	back = endpoint_find(other, ep);
	since = ep->now;
	for (int i = 0; i < 10 * 64; i++) {
		assert_int_equal(bw_send(other, back, 1, 1, 1, "word", 4, 0, NULL), 1);
		endpoint_await(ep, ep, &told.messages, (unsigned int)i + 1);
		if (i == 0)
			since = ep->now;
	}
	assert_true(ep->now > since);
	bw_ep_close(other, 0);
	bw_ep_close(ep, 0);
	ep = alone;
}

/* What a look cannot see: a peer that has no room, and more peers than it looks at. */
static void look__is_not_made_while_a_local_peer_has_no_room(void **state)
{
	static uint8_t much[16384];
	struct told other_told;
	struct bw_ep *alone = ep, *other;
	bw_peer_no peer;

	ep = endpoint_open("local", &told);
	other = endpoint_open("local", &other_told);
	peer = endpoint_find(ep, other);
	assert_int_equal(bw_send(ep, peer, 1, 1, 1, "word", 4, 0, NULL), 1);
	endpoint_await(ep, other, &other_told.messages, 1);
	await_looks();
	bw_ep_lock(other); /* its helper takes nothing meanwhile */
	while (bw_send(ep, peer, 1, 1, 1, much, sizeof(much), 0, NULL) == 1)
		;
	for (int i = 0; i < 20; i++)
		assert_int_equal(looks_until_round(), 0);
	bw_ep_unlock(other);
	bw_ep_close(other, 0);
	bw_ep_close(ep, 0);
	ep = alone;
}

/* The clock, and with it deadlines, go on as without looks: it is read once in so many calls. */
static void look__does_not_stop_the_clock(void **state)
{
	uint64_t seen = ep->now;
	int changes = 0;

	for (int i = 0; i < 10 * (BW_LOOKS + 1); i++) {
		bw_progress(ep);
		changes += ep->now != seen;
		seen = ep->now;
	}
	assert_int_equal(changes, 10);
	bw_ep_lock(ep);
	ep->deadline = bw_clock_now();
	bw_ep_unlock(ep);
	for (int i = 0; i < 2 * (BW_LOOKS + 1); i++)
		bw_progress(ep);
	assert_true(ep->deadline > ep->now);
}

/* Looks count as empty calls, after ROW of which others get the core, once. */
static void look__counts_in_a_row(void **state)
{
	uint64_t since, given;
	int calls = 0;

	for (since = ep->idle_since; ep->idle_since == since;)
		bw_progress(ep);
	given = ep->yields + ep->naps;
	for (since = ep->idle_since; ep->idle_since == since; calls++)
		bw_progress(ep);
	assert_in_range(calls, ROW, ROW + BW_LOOKS);
	assert_int_equal(ep->yields + ep->naps, given + 1);
}

/* A child has no rings. */
static void look__is_not_made_by_a_child(void **state)
{
	int status;
	pid_t pid;

	assert_int_equal(looks(), BW_LOOKS);
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 1000; i++)
			bw_progress(ep);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static struct bw_look look;
static struct bw_lock lock;
static struct bw_packet ring;
static uint32_t taken; /* frames; guarded by the lock */
static _Atomic uint32_t all;

static void *looker(void *arg)
{
	struct bw_rx_frame f;
	uint32_t empty = 0;

	while (atomic_load(&all) < FRAMES) {
		/* Where cores are short who fills the ring waits for this one. */
		if (bw_look_empty(&look, &lock, 1)) {
			if (++empty % ROW == 0)
				sched_yield();
			continue;
		}
		bw_lock_take(&lock);
		bw_look_made(&look);
		if (bw_packet_ready(&ring)) {
			/* ThreadSanitizer does not know what a fence after a load says. */
			__atomic_load_n(&ring.next->tp_status, __ATOMIC_ACQUIRE);
			bw_packet_take(&ring, &f);
			bw_packet_release(&f);
			atomic_store(&all, ++taken);
		} else {
			bw_look_allow(&look, &lock, &ring, 1, NULL, 0);
		}
		bw_lock_release(&lock);
	}
	return NULL;
}

/* The ring moves on under their eyes. */
static void look__by_several_threads_misses_nothing(void **state)
{
	pthread_t thread[LOOKERS];

	open_ring(&ring);
	bw_lock_take(&lock); /* as while an endpoint is opened: its first turn */
	bw_lock_release(&lock);
	for (int i = 0; i < LOOKERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, looker, NULL), 0);
	for (uint32_t i = 0; i < FRAMES; i++) {
		while (i - atomic_load(&all) >= SLOTS / 2)
			sched_yield();
		arrive(&ring, i % SLOTS);
	}
	for (int i = 0; i < LOOKERS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(taken, FRAMES);
	bw_packet_close(&ring);
	close(theirs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(look__takes_no_lock, setup, teardown),
		cmocka_unit_test_setup_teardown(look__sees_a_frame, setup, teardown),
		cmocka_unit_test_setup_teardown(look__sees_a_frame_on_the_second_link, setup,
						teardown),
		cmocka_unit_test_setup_teardown(look__is_not_made_after_a_call, setup, teardown),
		cmocka_unit_test_setup_teardown(look__at_udp_becomes_rare_step_by_step, setup,
						teardown),
		cmocka_unit_test_setup_teardown(look__is_not_made_while_a_round_has_work, setup,
						teardown),
		cmocka_unit_test_setup_teardown(look__sees_a_record_of_a_local_peer, setup,
						teardown),
		cmocka_unit_test_setup_teardown(look__leaves_udp_out_beside_a_local_peer, setup,
						teardown),
		cmocka_unit_test_setup_teardown(look__and_busy_rounds_read_the_clock, setup,
						teardown),
		cmocka_unit_test_setup_teardown(look__is_not_made_while_a_local_peer_has_no_room,
						setup, teardown),
		cmocka_unit_test_setup_teardown(look__does_not_stop_the_clock, setup, teardown),
		cmocka_unit_test_setup_teardown(look__counts_in_a_row, setup_patient, teardown),
		cmocka_unit_test_setup_teardown(look__is_not_made_by_a_child, setup, teardown),
		cmocka_unit_test(look__by_several_threads_misses_nothing),
	};

	return cmocka_run_group_tests_name("look", tests, NULL, NULL);
}
