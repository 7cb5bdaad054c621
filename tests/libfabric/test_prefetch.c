// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Long messages of a peer that no address vector has: none takes a receive before all of it is
 * there. Side b's fetches are in the test's hands, but for those of honest__*.
 */
#include <stdio.h>

#include "codes.h"
#include "inside.h"

#define LONG	  (1 << 20)
#define SHORT	  8
#define FETCH_MAX 64
#define AT_ONCE	  8 /* fetches of one peer's under way (prefetch.c) */

static char *tx, *rx;
static bool honest; /* fetches go their way */

/* Fetches that b has begun, in their order. */
static struct {
	bw_peer_no peer;
	struct bw_rndv rndv;
	struct bwf_done *done; /* NULL: it has ended */
	void *to;
	uint64_t len;
} fetch[FETCH_MAX];
static atomic_uint fetches;
static atomic_uint released; /* messages of which b wants nothing any more */

/* Who is in no vector. */
static struct bw_ep *guest;
static struct bw_addr guest_addr;
static bw_peer_no to_b, there; /* how it names b, and b it */

static int pull(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
		uint64_t len, void *op)
{
	if (honest || ep != inside(&b)->bw)
		return __real_bw_pull(ep, peer, rndv, buf, len, op);
	if (!buf) {
		released++;
		return __real_bw_pull(ep, peer, rndv, buf, len, op);
	}
	assert_true(fetches < FETCH_MAX);
	fetch[fetches].peer = peer;
	fetch[fetches].rndv = *rndv;
	fetch[fetches].done = op;
	fetch[fetches].to = buf;
	fetch[fetches].len = len;
	fetches++;
	return 0;
}

static void on_message(void *arg, const struct bw_message *m)
{
}

static void on_end(void *arg, void *op, int status)
{
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
}

static const struct bw_handlers handlers = {
	.message = on_message, .sent = on_end, .pulled = on_pulled, .peer_down = on_down};

static int setup(void **state)
{
	tx = malloc(4 * LONG);
	rx = malloc(4 * LONG);
	for (uint32_t i = 0; i < 4; i++)
		pair_fill(tx + i * LONG, LONG, i);
	memset(rx, 0, 4 * LONG);
	fetches = released = 0;
	honest = false;
	inside_calls = (struct inside_calls){.pull = pull};
	pair_setup(state);
	guest = inside_stranger(&handlers, &guest_addr, &to_b, &there);
	return 0;
}

static int teardown(void **state)
{
	bw_ep_close(guest, 0);
	pair_teardown(state);
	free(tx);
	free(rx);
	return 0;
}

static int setup_udp(void **state)
{
	setenv("BEOWIRE_LINKS", "udp", 1);
	return setup(state);
}

static int teardown_udp(void **state)
{
	int ret = teardown(state);

	setenv("BEOWIRE_LINKS", "local", 1);
	return ret;
}

static void progress(void)
{
	pair_progress();
	bw_progress(guest);
}

/* A message of the guest's; a long one that is to be fetched. */
static void say(uint8_t code, uint64_t tag, const void *buf, size_t len)
{
	unsigned flags = len == LONG ? BW_SEND_SYNC : BW_SEND_EAGER;

	while (bw_send(guest, to_b, code, tag, 0, buf, len, flags, tx) == -EAGAIN)
		progress();
}

static void until_fetches(unsigned n)
{
	while (fetches < n)
		progress();
	assert_int_equal(fetches, n);
}

static void until_unread(size_t n)
{
	while (inside(&b)->peer[there].unexpected < n)
		progress();
	assert_int_equal(inside(&b)->peer[there].unexpected, n);
}

/* The i-th fetch ends, and brings all, or all but `missing` bytes, or an error. */
static void fetched(size_t i, int status, uint64_t missing)
{
	struct bwf_ep *in = inside(&b);
	struct bwf_done *done = fetch[i].done;

	assert_non_null(done);
	bw_ep_lock(in->bw);
	fetch[i].done = NULL;
	if (!status)
		memcpy(fetch[i].to, tx + i % 4 * LONG, fetch[i].len - missing);
	bwf_handlers.pulled(in, done, status, status ? 0 : fetch[i].len - missing);
	bw_ep_unlock(in->bw);
}

/* The guest dies: all that is under way with it ends. */
static void dies(void)
{
	struct bwf_ep *in = inside(&b);

	bw_ep_lock(in->bw);
	for (size_t i = 0; i < fetches; i++) {
		if (fetch[i].done)
			fetched(i, -ECONNREFUSED, 0);
	}
	bwf_peer_down(in, there, -ECONNREFUSED);
	bw_ep_unlock(in->bw);
}

/* Nothing of the guest's is left with b. */
static void nothing_left(void)
{
	struct bwf_ep *in = inside(&b);

	assert_int_equal(in->peer[there].unexpected, 0);
	assert_int_equal(in->peer[there].unread, 0);
	assert_int_equal(in->unexpected.strangers, 0);
	assert_int_equal(in->unexpected.bytes, 0);
	assert_null(in->peer[there].waiting);
	assert_null(in->peer[there].unasked);
	assert_int_equal(in->peer[there].prefetches, 0);
}

static void receive(uint64_t tag, char *to, fi_addr_t from)
{
	pair_retry(fi_trecv(b.ep, to, LONG, NULL, from, tag, 0, to));
}

static void received(const char *to, size_t len, uint32_t seed)
{
	struct fi_cq_tagged_entry e = pair_completion(b.rx);

	assert_ptr_equal(e.op_context, to);
	assert_int_equal(e.len, len);
	assert_true(pair_filled(to, len, seed));
}

/* What is announced and never sent takes nothing of a buffer that others use. */
static void buffer__is_not_taken_by_what_does_not_come(void **state)
{
	struct iovec iov = {rx, 1000};
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = rx};

	pair_retry(fi_recvmsg(b.ep, &m, FI_MULTI_RECV));
	for (unsigned i = 1; i <= 3; i++) {
		say(BWF_CODE_MSG, 0, tx, LONG);
		until_fetches(i);
		assert_int_equal(inside(&b)->msg.posted_count, 1);
	}
	for (int i = 0; i < 20; i++) {
		struct fi_cq_tagged_entry e;

		pair_retry(fi_inject(a.ep, "12345678", 8, a.peer));
		e = pair_completion(b.rx);
		assert_ptr_equal(e.buf, rx + 8 * i);
		assert_int_equal(e.flags & FI_MULTI_RECV, 0);
	}
	dies();
	pair_nothing(b.rx);
	assert_int_equal(inside(&b)->msg.posted_count, 1);
	assert_true(inside_counted("\"unread_dropped\":3,"));
	nothing_left();
}

/* Nor a receive from anybody: it can be cancelled, gets others' messages, and hears of no end. */
static void receive__is_not_taken_by_what_does_not_come(void **state)
{
	receive(5, rx, FI_ADDR_UNSPEC);
	receive(5, rx + LONG, FI_ADDR_UNSPEC);
	say(BWF_CODE_TAGGED, 5, tx, LONG);
	until_fetches(1);
	assert_int_equal(fi_cancel(&b.ep->fid, rx), 0);
	assert_int_equal(pair_error(b.rx).err, FI_ECANCELED);
	dies();
	pair_nothing(b.rx);
	pair_retry(fi_tinject(a.ep, tx + LONG, SHORT, a.peer, 5));
	received(rx + LONG, SHORT, 1);
	assert_true(inside_counted("\"unread_dropped\":1,"));
	assert_true(inside_counted("\"peers_given_up\":0,"));
	nothing_left();
}

/* A message of several frames that begins to come takes none either. */
static void receive__is_not_placed_for_a_stranger(void **state)
{
	struct bwf_ep *in = inside(&b);
	struct bw_message m = {.peer = there, .code = BWF_CODE_TAGGED, .tag = 5, .len = LONG};
	struct bwf_done *done;
	fi_addr_t src;
	void *op = NULL, *to;

	receive(5, rx, FI_ADDR_UNSPEC);
	bw_ep_lock(in->bw);
	to = bwf_handlers.place(in, &m, &op);
	bw_ep_unlock(in->bw);
	assert_null(to);
	assert_int_equal(in->tagged.posted_count, 1);
	assert_int_equal(fi_av_insert(b.av, &guest_addr, 1, &src, 0, NULL), 1);
	bw_ep_lock(in->bw);
	to = bwf_handlers.place(in, &m, &op); /* within libbeowire nobody can be looked up */
	bw_ep_unlock(in->bw);
	assert_null(to);
	progress();
	assert_int_equal(in->peer[there].addr, src);
	bw_ep_lock(in->bw);
	to = bwf_handlers.place(in, &m, &op);
	done = op;
	if (to)
		done->call(in, done, 0, LONG);
	bw_ep_unlock(in->bw);
	assert_ptr_equal(to, rx);
	assert_ptr_equal(pair_completion(b.rx).op_context, rx);
}

/* In the order in which they were sent, whatever is there first; others go ahead of them. */
static void order__of_one_peer_is_kept(void **state)
{
	for (int i = 0; i < 4; i++)
		receive(5, rx + i * LONG, FI_ADDR_UNSPEC);
	say(BWF_CODE_TAGGED, 5, tx, LONG);
	say(BWF_CODE_TAGGED, 5, tx + 3 * LONG, SHORT);
	say(BWF_CODE_TAGGED, 5, tx + LONG, LONG);
	until_fetches(2);
	until_unread(3);
	pair_retry(fi_tinject(a.ep, tx + 2 * LONG, SHORT, a.peer, 5));
	received(rx, SHORT, 2);
	fetched(1, 0, 0);
	pair_nothing(b.rx);
	fetched(0, 0, 0);
	received(rx + LONG, LONG, 0);
	received(rx + 2 * LONG, SHORT, 3);
	received(rx + 3 * LONG, LONG, 1);
	nothing_left();
}

/* Without a receive they wait as others do, and each receive takes the first that fits. */
static void order__holds_for_receives_that_come_late(void **state)
{
	struct bwf_ep *in = inside(&b);

	say(BWF_CODE_TAGGED, 5, tx, LONG);
	say(BWF_CODE_TAGGED, 6, tx + 3 * LONG, SHORT);
	until_fetches(1);
	until_unread(2);
	assert_int_equal(in->tagged.arrived_count, 0);
	receive(6, rx, FI_ADDR_UNSPEC);
	pair_nothing(b.rx);
	fetched(0, 0, 0);
	received(rx, SHORT, 3);
	assert_int_equal(in->tagged.arrived_count, 1);
	assert_true(in->unexpected.strangers >= LONG);
	assert_true(in->unexpected.bytes < LONG); /* peers' pressure is no remedy for it */
	receive(5, rx, FI_ADDR_UNSPEC);
	received(rx, LONG, 0);
	nothing_left();
	assert_int_equal(released, 0);
	assert_null(in->prefetches);
}

/* It keeps what is there and what is on its way; what it sends from then on is fetched for its
 * receive, and waits its turn. */
static void named__meanwhile_it_goes_on(void **state)
{
	struct bwf_ep *in = inside(&b);
	fi_addr_t src;

	say(BWF_CODE_TAGGED, 5, tx, LONG);
	say(BWF_CODE_TAGGED, 5, tx + LONG, LONG);
	until_fetches(2);
	assert_int_equal(fi_av_insert(b.av, &guest_addr, 1, &src, 0, NULL), 1);
	for (int i = 0; i < 4; i++)
		receive(5, rx + i * LONG, src);
	assert_int_equal(in->unexpected.strangers, 0);
	say(BWF_CODE_TAGGED, 5, tx + 2 * LONG, LONG);
	say(BWF_CODE_TAGGED, 5, tx + 3 * LONG, SHORT);
	until_unread(4);
	fetched(1, 0, 0);
	pair_nothing(b.rx);
	assert_int_equal(fetches, 2);
	fetched(0, 0, 0);
	received(rx, LONG, 0);
	received(rx + LONG, LONG, 1);
	until_fetches(3);
	assert_ptr_equal(fetch[2].to, rx + 2 * LONG);
	received(rx + 3 * LONG, SHORT, 3);
	fetched(2, 0, 0);
	received(rx + 2 * LONG, LONG, 2);
	nothing_left();
}

/* What its program waits for ends as with any other; what it announced has never been there. */
static void named__meanwhile_and_dead_it_leaves_nothing(void **state)
{
	fi_addr_t src;

	say(BWF_CODE_TAGGED, 5, tx, LONG);
	say(BWF_CODE_TAGGED, 5, tx, SHORT);
	until_fetches(1);
	until_unread(2);
	assert_int_equal(fi_av_insert(b.av, &guest_addr, 1, &src, 0, NULL), 1);
	receive(5, rx, src);
	dies();
	assert_int_equal(pair_error(b.rx).err, FI_ECONNREFUSED);
	pair_nothing(b.rx);
	nothing_left();
	assert_true(inside_counted("\"unread_dropped\":2,"));
	assert_true(inside_counted("\"peers_given_up\":0,"));
}

/* Who sends less than he announced is given up, and nothing that he sent later comes instead. */
static void failed__fetch_is_the_end_of_its_sender(void **state)
{
	for (int missing = 0; missing < 2; missing++) {
		receive(5, rx, FI_ADDR_UNSPEC);
		say(BWF_CODE_TAGGED, 5, tx, LONG);
		say(BWF_CODE_TAGGED, 5, tx, SHORT);
		say(BWF_CODE_TAGGED, 5, tx, LONG);
		until_fetches(2);
		fetched(0, missing ? 0 : -EPROTO, (uint64_t)missing);
		while (!inside(&b)->peer[there].refused)
			progress();
		pair_nothing(b.rx);
		nothing_left();
		assert_non_null(inside(&b)->prefetches); /* until its fetch has ended */
		fetched(1, -ECANCELED, 0);
		assert_null(inside(&b)->prefetches);
		assert_true(inside_counted("\"unread_dropped\":3,"));
		assert_true(inside_counted("\"peers_given_up\":1,"));
		if (missing)
			break;
		teardown(state);
		setup(state);
	}
}

/* He may take back what he has sent, and go on. */
static void failed__fetch_of_what_was_taken_back_is_no_fault(void **state)
{
	static const int why[] = {-ECANCELED, -ENOENT};

	for (unsigned i = 0; i < 2; i++) {
		receive(5, rx, FI_ADDR_UNSPEC);
		say(BWF_CODE_TAGGED, 5, tx, LONG);
		say(BWF_CODE_TAGGED, 5, tx + LONG, SHORT);
		until_fetches(i + 1);
		until_unread(2);
		fetched(i, why[i], 0);
		received(rx, SHORT, 1);
		assert_false(inside(&b)->peer[there].refused);
		nothing_left();
	}
	assert_true(inside_counted("\"unread_dropped\":2,"));
}

/* One that takes more than all strangers' messages may is never fetched. */
static void bound__of_strangers_is_for_what_is_announced(void **state)
{
	struct bwf_ep *in = inside(&b);

	in->unexpected.strangers_max = LONG + 1000;
	say(BWF_CODE_TAGGED, 5, tx, LONG);
	until_fetches(1);
	assert_in_range(in->unexpected.strangers, LONG, LONG + 1000);
	fetched(0, 0, 0);
	receive(5, rx, FI_ADDR_UNSPEC);
	received(rx, LONG, 0);
	in->unexpected.strangers_max = LONG;
	say(BWF_CODE_TAGGED, 5, tx, LONG);
	while (!in->peer[there].refused)
		progress();
	assert_int_equal(fetches, 1);
	assert_true(inside_counted("\"messages_lost\":1,"));
	nothing_left();
}

/* All of them together: who has announced most is given up, and what he announced is forgotten. */
static void bound__of_strangers_is_for_all_together(void **state)
{
	struct bwf_ep *in = inside(&b);

	in->unexpected.strangers_max = 2 * LONG + 2000;
	for (unsigned i = 1; i <= 3; i++)
		say(BWF_CODE_TAGGED, 5, tx, LONG);
	while (!in->peer[there].refused)
		progress();
	nothing_left();
	for (unsigned i = 0; i < fetches; i++)
		fetched(i, -ECANCELED, 0);
	assert_null(in->prefetches);
	assert_true(inside_counted("\"unread_dropped\":3,"));
}

/* Without memory for it as well. */
static void bound__of_memory_is_no_loss_unnoticed(void **state)
{
	inside_malloc_max = LONG - 1;
	say(BWF_CODE_TAGGED, 5, tx, LONG);
	while (!inside(&b)->peer[there].refused)
		progress();
	inside_malloc_max = SIZE_MAX;
	nothing_left();
	assert_int_equal(fetches, 0);
}

/* Few at a time, the oldest first. */
static void fetches__of_one_peer_are_few(void **state)
{
	for (unsigned i = 0; i < AT_ONCE + 4; i++)
		say(BWF_CODE_TAGGED, 5, tx + i % 4 * LONG, LONG);
	until_unread(AT_ONCE + 4);
	for (int i = 0; i < 100; i++)
		progress();
	assert_int_equal(fetches, AT_ONCE);
	for (unsigned i = 0; i < AT_ONCE + 4; i++) {
		until_fetches(AT_ONCE + (i < 4 ? i : 4));
		fetched(i, 0, 0);
	}
	for (uint32_t i = 0; i < AT_ONCE + 4; i++) {
		receive(5, rx, FI_ADDR_UNSPEC);
		received(rx, LONG, i % 4);
	}
	nothing_left();
}

/* Of a message that is not read yet nothing is left when the endpoint is closed. */
static void close__leaves_nothing(void **state)
{
	say(BWF_CODE_TAGGED, 5, tx, LONG);
	say(BWF_CODE_TAGGED, 5, tx, 5000);
	say(BWF_CODE_TAGGED, 5, tx, SHORT);
	until_fetches(1);
	until_unread(3);
}

/* Long and short ones in turn, by libbeowire's own fetches, with receives before and after them. */
static void honest__stranger_is_heard_in_order(void **state)
{
	enum { ROUNDS = 20 };

	honest = true;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		if (i % 3)
			receive(5, rx, FI_ADDR_UNSPEC);
		say(BWF_CODE_TAGGED, 5, tx + i % 4 * LONG, LONG);
		say(BWF_CODE_TAGGED, 5, tx + (i + 1) % 4 * LONG, SHORT);
		if (i % 3 == 0)
			receive(5, rx, FI_ADDR_UNSPEC);
		receive(5, rx + LONG, FI_ADDR_UNSPEC);
		while (inside(&b)->tagged.posted_count)
			progress();
		received(rx, LONG, i % 4);
		received(rx + LONG, SHORT, (i + 1) % 4);
	}
	nothing_left();
	assert_null(inside(&b)->prefetches);
}

/* Those of libbeowire's own fetches that are given up end as well. */
static void honest__stranger_that_is_given_up_leaves_nothing(void **state)
{
	struct bwf_ep *in = inside(&b);

	honest = true;
	in->unexpected.strangers_max = 9 * LONG / 2;
	for (uint32_t i = 0; i < 5; i++)
		say(BWF_CODE_TAGGED, 5, tx, LONG);
	while (!in->peer[there].refused || in->prefetches)
		progress();
	nothing_left();
	assert_true(inside_counted("\"unread_dropped\":5,"));
}

int main(void)
{
#define TEST(f)                                                                                    \
	{                                                                                          \
		.name = #f, .test_func = f, .setup_func = setup, .teardown_func = teardown         \
	}
#define UDP(f)                                                                                     \
	{                                                                                          \
		.name = #f " udp", .test_func = f, .setup_func = setup_udp,                        \
		.teardown_func = teardown_udp                                                      \
	}
	const struct CMUnitTest tests[] = {
		TEST(buffer__is_not_taken_by_what_does_not_come),
		TEST(receive__is_not_taken_by_what_does_not_come),
		TEST(receive__is_not_placed_for_a_stranger),
		TEST(order__of_one_peer_is_kept),
		TEST(order__holds_for_receives_that_come_late),
		TEST(named__meanwhile_it_goes_on),
		TEST(named__meanwhile_and_dead_it_leaves_nothing),
		TEST(failed__fetch_is_the_end_of_its_sender),
		TEST(failed__fetch_of_what_was_taken_back_is_no_fault),
		TEST(bound__of_strangers_is_for_what_is_announced),
		TEST(bound__of_strangers_is_for_all_together),
		TEST(bound__of_memory_is_no_loss_unnoticed),
		TEST(fetches__of_one_peer_are_few),
		TEST(close__leaves_nothing),
		TEST(honest__stranger_is_heard_in_order),
		UDP(honest__stranger_is_heard_in_order),
		TEST(honest__stranger_that_is_given_up_leaves_nothing),
		UDP(honest__stranger_that_is_given_up_leaves_nothing),
	};

	return cmocka_run_group_tests_name("prefetch", tests, NULL, NULL);
}
