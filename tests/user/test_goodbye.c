/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a peer said before it ended counts, although its end is heard of first. */
#include "endpoint.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "checksum.h"
#include "peer.h"
#include "refuse.h"
#include "reliable.h"

#define MANY 150 /* messages, each of which is answered: several rounds' worth of frames */

static struct told here, there;
static struct bw_ep *a, *b;
static bw_peer_no other;
static int op;

/* Two that have met. */
static int meet(void **state)
{
	a = endpoint_open("udp", &here);
	b = endpoint_open("udp", &there);
	other = endpoint_find(a, b);
	assert_int_equal(bw_send(a, other, 1, 1, 0, "word", 4, BW_SEND_ACKED, &op), 0);
	endpoint_await(a, b, &here.sents, 1);
	return 0;
}

static int part(void **state)
{
	bw_ep_close(a, 0);
	return 0;
}

static void say(void)
{
	assert_int_equal(bw_send(a, other, 1, 1, 0, "word", 4, BW_SEND_ACKED, &op), 0);
}

/* The peer has taken a message, said so and ended; then we send to its closed port, and the kernel
 * tells of that before it gives us what the peer has said. */
static void refused__after_the_peers_last_words(void **state)
{
	say();
	while (there.messages < 2)
		bw_progress(b);
	bw_ep_close(b, 0);
	say();
	endpoint_await(a, a, &here.downs, 1);
	assert_int_equal(here.status, -ESHUTDOWN);
	assert_int_equal(here.sents, 3);
	assert_int_equal(here.failed, 1);
}

/* The peer takes messages, and acknowledges each by a frame of its own: more than a round takes. */
static void take_many(void)
{
	const struct bw_counters *c = bw_reliable.counters(b->engine);
	uint64_t before = c->tx_frames;

	for (uint64_t i = 1; i <= MANY; i++) {
		say();
		while (there.messages < 1 + i)
			bw_progress(b);
		bw_progress(b);
	}
	assert_in_range(c->tx_frames - before, MANY / 2 + 1, MANY * 2);
}

/* The same with more frames than one round takes. */
static void refused__after_many_words(void **state)
{
	take_many();
	bw_ep_close(b, 0);
	say();
	endpoint_await(a, a, &here.downs, 1);
	assert_int_equal(here.status, -ESHUTDOWN);
	assert_int_equal(here.sents, 2 + MANY);
	assert_int_equal(here.failed, 1);
}

/* Somebody says that the peer is not there, who has seen a frame to it. */
static void refuse(void)
{
	const struct bw_engine *e = a->engine;
	const struct bw_peer *p =
		bw_peer_get((struct bw_engine *)e, bw_remote_get(&a->remotes, other)->handle);
	const struct bw_refuser we = {
		.cluster = a->self.cluster, .name = "somebody", .crc32c = bw_checksum};
	const struct bw_hdr refused = {
		.magic = BW_MAGIC,
		.version = BW_VERSION,
		.type = BW_FRAME_DATA,
		.cluster = a->self.cluster,
		.dst_engine = b->self.engine,
		.src_engine = a->self.engine,
		.token = p->conn_token,
		.conn = p->conn,
	};
	struct bw_refuse_frame no;
	struct bw_rx_frame f = {
		.head = &no, .head_len = sizeof(no), .len = sizeof(no), .from = p->path[0]->to};

	assert_true(bw_refuse_build(&no, &we, &refused, sizeof(refused), UINT32_MAX));
	assert_int_equal(e->parting, 0);
	a->now = bw_clock_now();
	bw_host_receive(a, &f);
	assert_int_equal(e->parting, 1);
	bw_host_transmit(a);
}

/* Many words of the peer, and then its end; and we have had no processor since somebody said that
 * it is gone. */
static void miss_all(void)
{
	take_many();
	refuse();
	bw_ep_close(b, 0);
	usleep(10 * BW_BYE_GRACE / BW_US);
}

static void told_of_all(void)
{
	endpoint_await(a, a, &here.downs, 1);
	assert_int_equal(here.status, -ESHUTDOWN);
	assert_int_equal(here.failed, 0);
}

/* Where raw frames pass, a round does not always look at the udp socket. */
static void gone__after_a_look_at_every_link(void **state)
{
	miss_all();
	a->has_packet = true;
	a->udp_hot = 0;
	a->now = a->udp_seen = bw_clock_now();
	bw_ep_round(a);
	a->has_packet = false;
	told_of_all();
}

/* To send is not to look: that is left to the next round. */
static void gone__not_by_a_send(void **state)
{
	miss_all();
	a->given = false;
	bw_ep_pressure(a, false); /* as good as a send to somebody else */
	assert_true(a->given);
	assert_int_equal(here.downs, 0);
	told_of_all();
}

/* Two that know of each other, and nothing more; then one of them ends. */
static int part_unmet(void **state)
{
	here = (struct told){0};
	a = endpoint_open("local", &here);
	b = endpoint_open("local", &there);
	other = endpoint_find(a, b);
	bw_ep_close(b, 0);
	return 0;
}

/* The call itself tells no handler, and nobody who waits sleeps beyond it. */
static void buried_by_the_next_round(void)
{
	bw_ep_lock(a);
	assert_int_equal(here.downs, 0);
	assert_int_equal(bw_wait_limit(a, bw_clock_now()), 0);
	bw_ep_unlock(a);
	bw_progress(a);
	assert_int_equal(here.downs, 1);
	assert_int_equal(here.status, -ECONNREFUSED);
	assert_int_equal(bw_peer_status(a, other), -ECONNREFUSED);
	bw_progress(a);
	assert_int_equal(here.downs, 1);
}

static void gone_before_contact__told_who_sends(void **state)
{
	assert_int_equal(bw_send(a, other, 1, 1, 0, "word", 4, 0, NULL), -ECONNREFUSED);
	assert_int_equal(bw_send(a, other, 1, 1, 0, "word", 4, 0, NULL), -ECONNREFUSED);
	buried_by_the_next_round();
	assert_int_equal(bw_send(a, other, 1, 1, 0, "word", 4, 0, NULL), -ECONNREFUSED);
}

static void gone_before_contact__told_who_watches(void **state)
{
	bw_peer_watch(a, other, true);
	buried_by_the_next_round();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(refused__after_the_peers_last_words, meet, part),
		cmocka_unit_test_setup_teardown(refused__after_many_words, meet, part),
		cmocka_unit_test_setup_teardown(gone__after_a_look_at_every_link, meet, part),
		cmocka_unit_test_setup_teardown(gone__not_by_a_send, meet, part),
		cmocka_unit_test_setup_teardown(gone_before_contact__told_who_sends, part_unmet,
						part),
		cmocka_unit_test_setup_teardown(gone_before_contact__told_who_watches, part_unmet,
						part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
