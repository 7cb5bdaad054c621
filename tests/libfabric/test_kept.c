// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls of libbeowire that found no room and are kept: what waits for them, and in which order what
 * came meanwhile is told. Here bw_pull() has no room while the test says so.
 */
#include <pthread.h>
#include <unistd.h>

#include "inside.h"

#define LONG   (1 << 20)
#define KEY    42
#define ROUNDS 200 /* waits after which nothing will come of waiting */

static char *tx, *rx;
static atomic_bool full;      /* bw_pull() has no room, nor b's bw_send() */
static atomic_size_t blocked; /* a pull of so many bytes has none */
static struct bwf_done *held; /* of a pull that ends as the test says, if `hold` */
static bool hold;
static bool copies;  /* bw_send() keeps copies of long messages */
static int waits;    /* rounds of bw_wait() while it has none */
static int room_in;  /* rounds after which there is room */
static bool in_vain; /* more rounds than that were needed */

static int pull(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
		uint64_t len, void *op)
{
	if (full || (len && len == blocked))
		return -EAGAIN;
	if (hold) {
		held = op;
		op = NULL;
		len = 0;
	}
	return __real_bw_pull(ep, peer, rndv, buf, len, op);
}

static int no_send(struct bw_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, uint64_t imm,
		   const void *buf, uint64_t len, unsigned flags, void *op)
{
	if (full && ep == inside(&b)->bw)
		return -EAGAIN;
	return __real_bw_send(ep, peer, code, tag, imm, buf, len, flags, op);
}

static bool send_copies(struct bw_ep *ep, bw_peer_no peer, uint64_t len)
{
	return copies && len > 1000;
}

/* Who waits in vain is set free, so that the test can say so. */
static int wait_rounds(struct bw_ep *ep, uint64_t timeout_ns)
{
	int n = __real_bw_wait(ep, timeout_ns);

	if (++waits >= room_in)
		full = false;
	if (waits > ROUNDS) {
		in_vain = true;
		bwf_todo_retry(inside(&b));
	}
	return n;
}

static int setup(void **state)
{
	tx = malloc(2 * LONG);
	rx = malloc(2 * LONG);
	full = copies = in_vain = hold = false;
	blocked = 0;
	waits = 0;
	room_in = ROUNDS / 2;
	inside_calls = (struct inside_calls){.pull = pull, .send_copies = send_copies};
	return pair_setup(state);
}

static int teardown(void **state)
{
	inside_calls.wait = NULL;
	full = false;
	pair_teardown(state);
	free(tx);
	free(rx);
	return 0;
}

/* There is room at last. */
static void *make_room(void *arg)
{
	usleep(100000);
	full = false;
	return NULL;
}

/* Until b keeps so many calls. */
static void kept(size_t count)
{
	while (atomic_load(&inside(&b)->todo_count) < count)
		pair_progress();
	assert_int_equal(atomic_load(&inside(&b)->todo_count), count);
}

/* A long write found no room when its data were to be fetched; then the program closes the memory,
 * and does nothing else meanwhile. */
static void region__closing_repeats_what_it_waits_for(void **state)
{
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(pair_domain, rx, LONG, FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL),
			 0);
	pair_fill(tx, LONG, 1);
	full = true;
	pair_retry(fi_write(a.ep, tx, LONG, NULL, a.peer, 0, KEY, tx));
	kept(1);
	inside_calls.wait = wait_rounds;
	assert_int_equal(fi_close(&mr->fid), 0);
	inside_calls.wait = NULL;
	assert_false(in_vain);
	assert_true(waits >= room_in);
	assert_true(pair_filled(rx, LONG, 1));
	pair_completion(a.tx);
}

/* What finds no room is sent before the endpoint closes: its answer is owed to the other one. */
static void close__lets_what_is_kept_leave(void **state)
{
	struct fid_mr *mr;
	pthread_t thread;

	pair_close();
	inside_calls.send = no_send;
	pair_setup(state);
	assert_int_equal(fi_mr_reg(pair_domain, rx, LONG, FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL),
			 0);
	full = true;
	pair_retry(fi_write(a.ep, tx, 8, NULL, a.peer, 0, KEY, tx));
	kept(1);
	assert_int_equal(pthread_create(&thread, NULL, make_room, NULL), 0);
	assert_int_equal(fi_close(&b.ep->fid), 0);
	pthread_join(thread, NULL);
	assert_ptr_equal(pair_completion(a.tx).op_context, tx);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_endpoint(pair_domain, pair_info, &b.ep, NULL), 0); /* to be closed */
}

/* A message whose data are still to be fetched, then a short one. */
static void send_two(void)
{
	pair_fill(tx, LONG, 4);
	pair_retry(fi_trecv(b.ep, rx, LONG, NULL, b.peer, 1, 0, NULL));
	pair_retry(fi_trecv(b.ep, rx + LONG, 8, NULL, b.peer, 2, 0, NULL));
	full = true;
	pair_retry(fi_tsend(a.ep, tx, LONG, NULL, a.peer, 1, NULL));
	pair_retry(fi_tinject(a.ep, "all done", 8, a.peer, 2));
	kept(1);
}

static void order__what_was_called_done_is_not_overtaken(void **state)
{
	copies = true;
	for (int i = 0; i < 3; i++) {
		memset(rx, 0, LONG);
		send_two();
		pair_nothing(b.rx);
		full = false;
		assert_int_equal(pair_completion(b.rx).tag, 1);
		assert_true(pair_filled(rx, LONG, 4));
		assert_int_equal(pair_completion(b.rx).tag, 2);
		pair_completion(a.tx);
	}
}

/* A sender that waits for its long message is in nobody's way. */
static void order__what_is_not_done_holds_nothing(void **state)
{
	for (int i = 0; i < 3; i++) {
		send_two();
		assert_int_equal(pair_completion(b.rx).tag, 2);
		pair_nothing(b.rx);
		full = false;
		assert_int_equal(pair_completion(b.rx).tag, 1);
		pair_completion(a.tx);
	}
}

/* Two long messages and a short one, in this order. The first was called done, the second one if
 * `both`. Then there is room for the first alone, which ends. */
static void send_three(bool both)
{
	pair_retry(fi_trecv(b.ep, rx, LONG, NULL, b.peer, 1, 0, NULL));
	pair_retry(fi_trecv(b.ep, rx + LONG, LONG / 2, NULL, b.peer, 2, 0, NULL));
	pair_retry(fi_trecv(b.ep, rx + LONG + LONG / 2, 8, NULL, b.peer, 3, 0, NULL));
	full = copies = true;
	pair_retry(fi_tsend(a.ep, tx, LONG, NULL, a.peer, 1, NULL));
	copies = both;
	pair_retry(fi_tsend(a.ep, tx, LONG / 2, NULL, a.peer, 2, NULL));
	pair_retry(fi_tinject(a.ep, "short", 6, a.peer, 3));
	kept(2);
	pair_nothing(b.rx);
	blocked = LONG / 2;
	full = false;
	assert_int_equal(pair_completion(b.rx).tag, 1);
}

/* Whoever waits in a row waits for what holds it only, not for another one that waits. */
static void order__who_waits_holds_nobody(void **state)
{
	send_three(false);
	assert_int_equal(pair_completion(b.rx).tag, 3);
	pair_nothing(b.rx);
	blocked = 0;
	assert_int_equal(pair_completion(b.rx).tag, 2);
	for (int i = 0; i < 2; i++)
		pair_completion(a.tx);
}

/* The end of the first that holds a row is not the end of the second. */
static void order__each_that_holds_is_waited_for(void **state)
{
	send_three(true);
	pair_nothing(b.rx);
	blocked = 0;
	assert_int_equal(pair_completion(b.rx).tag, 2);
	assert_int_equal(pair_completion(b.rx).tag, 3);
	for (int i = 0; i < 2; i++)
		pair_completion(a.tx);
}

static uint32_t eager_max(void)
{
	return bw_eager_max(inside(&a)->bw, inside(&a)->peer_of[a.peer]);
}

/* An injected message is done at once, also where pressure makes an envelope of it. Later there is
 * room, and that is told. */
static void order__what_was_injected_is_not_overtaken(void **state)
{
	enum { BYTES = 16000 };
	uint32_t before;

	pair_close();
	setenv("BEOWIRE_UNEXPECTED_MAX", "4000", 1);
	pair_setup(state);
	unsetenv("BEOWIRE_UNEXPECTED_MAX");
	pair_retry(fi_tinject(a.ep, tx, 1, a.peer, 3));
	before = eager_max();
	assert_true(before > 64);
	pair_retry(fi_tinject(a.ep, tx, BYTES, a.peer, 3));
	for (int i = 0; i < 20; i++)
		pair_retry(fi_tinject(a.ep, tx, 1000, a.peer, 3));
	while (eager_max() == before)
		pair_progress();
	pair_fill(tx, BYTES, 4);
	pair_retry(fi_trecv(b.ep, rx, BYTES, NULL, b.peer, 1, 0, NULL));
	pair_retry(fi_trecv(b.ep, rx + LONG, 8, NULL, b.peer, 2, 0, NULL));
	full = true;
	pair_retry(fi_tinject(a.ep, tx, BYTES, a.peer, 1));
	pair_retry(fi_tinject(a.ep, "all done", 8, a.peer, 2));
	kept(1);
	pair_nothing(b.rx);
	full = false;
	assert_int_equal(pair_completion(b.rx).tag, 1);
	assert_true(pair_filled(rx, BYTES, 4));
	assert_int_equal(pair_completion(b.rx).tag, 2);
	for (int i = 0; i < 22; i++) {
		pair_retry(fi_trecv(b.ep, rx, BYTES, NULL, b.peer, 3, 0, NULL));
		pair_completion(b.rx);
	}
	while (eager_max() != before)
		pair_progress();
}

/* The data of a long write are not there yet: a fence after it is closed. */
static void fence__is_closed_until_data_are_there(void **state)
{
	struct iovec local = {tx + LONG, 8};
	struct fi_rma_iov remote = {0, 8, KEY};
	struct fi_msg_rma m = {.msg_iov = &local,
			       .iov_count = 1,
			       .addr = a.peer,
			       .rma_iov = &remote,
			       .rma_iov_count = 1};
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(pair_domain, rx, LONG, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, KEY,
				   0, &mr, NULL),
			 0);
	full = true;
	pair_retry(fi_write(a.ep, tx, LONG, NULL, a.peer, 0, KEY, "first"));
	kept(1);
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(fi_readmsg(a.ep, &m, FI_FENCE | FI_COMPLETION), -FI_EAGAIN);
		pair_progress();
	}
	full = false;
	pair_retry(fi_readmsg(a.ep, &m, FI_FENCE | FI_COMPLETION));
	assert_string_equal(pair_completion(a.tx).op_context, "first");
	assert_int_equal(pair_completion(a.tx).flags, FI_RMA | FI_READ);
	assert_int_equal(fi_close(&mr->fid), 0);
}

/* A sender may have less than its envelope says. */
static void fetch__less_than_said_is_an_error(void **state)
{
	hold = true;
	pair_retry(fi_trecv(b.ep, rx, LONG, NULL, b.peer, 1, 0, NULL));
	pair_retry(fi_tsend(a.ep, tx, LONG, NULL, a.peer, 1, NULL));
	pair_completion(a.tx);
	bw_ep_lock(inside(&b)->bw);
	held->call(inside(&b), held, 0, LONG - 1);
	bw_ep_unlock(inside(&b)->bw);
	assert_int_equal(pair_error(b.rx).err, FI_EIO);
}

static uint64_t answer; /* the last one that the stranger got: its error */
static int answers;

static void on_message(void *arg, const struct bw_message *m)
{
	answer = m->imm;
	answers++;
}

static void on_sent(void *arg, void *op, int status)
{
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
}

/* Send whatever it is, however long there is no room. */
static void say(struct bw_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, const void *data,
		size_t len, unsigned flags)
{
	while (bw_send(ep, peer, code, tag, 0, data, len, flags, &answer) == -EAGAIN)
		pair_progress();
}

/* Requests of a stranger: while the data of a long write are fetched its token is in use. */
static void token__is_used_once_while_data_come(void **state)
{
	static const struct bw_handlers handlers = {
		.message = on_message, .sent = on_sent, .pulled = on_pulled, .peer_down = on_down};
	struct bw_ep_attr attr = {.handlers = &handlers, .no_helper = true};
	struct bwf_write_request req = {.token = 5, .len = LONG, .segments = 1};
	struct bwf_segment seg = {.len = LONG, .key = KEY};
	char request[sizeof(req) + sizeof(seg)];
	struct bw_addr addr;
	size_t n = sizeof(addr);
	struct bw_ep *bad;
	bw_peer_no peer;

	answers = 0;
	memcpy(request, &req, sizeof(req));
	memcpy(request + sizeof(req), &seg, sizeof(seg));
	assert_int_equal(bw_ep_open(&bad, &attr, NULL), 0);
	assert_int_equal(fi_getname(&b.ep->fid, &addr, &n), 0);
	assert_int_equal(bw_peer_find(bad, &addr, &peer), 0);
	full = true;
	say(bad, peer, BWF_CODE_WRITE_LONG, 0, request, sizeof(request), BW_SEND_EAGER);
	say(bad, peer, BWF_CODE_WRITE_DATA, 5, tx, LONG, BW_SEND_SYNC);
	kept(1);
	say(bad, peer, BWF_CODE_WRITE_LONG, 0, request, sizeof(request), BW_SEND_EAGER);
	for (int i = 0; i < 20000 && !answers; i++) {
		pair_progress();
		bw_progress(bad);
	}
	assert_int_equal(answers, 1);
	assert_int_equal(answer, FI_EALREADY);
	full = false;
	bw_ep_close(bad, 0);
}

/* Every kept call has its turn, in whatever order room comes, and none is made twice. */
static void kept__all_are_made_once(void **state)
{
	enum { MANY = 40, BYTES = 40000 };

	for (uint32_t i = 0; i < MANY; i++) {
		pair_fill(tx + i * BYTES / 2, BYTES / 2, i);
		pair_retry(fi_trecv(b.ep, rx + i * BYTES / 2, BYTES / 2, NULL, b.peer, i, 0, NULL));
	}
	full = true;
	for (uint32_t i = 0; i < MANY; i++)
		pair_retry(fi_tsend(a.ep, tx + i * BYTES / 2, BYTES / 2, NULL, a.peer, i, NULL));
	kept(MANY);
	full = false;
	for (int i = 0; i < MANY; i++) {
		pair_completion(b.rx);
		pair_completion(a.tx);
	}
	kept(0);
	pair_nothing(b.rx);
	for (uint32_t i = 0; i < MANY; i++)
		assert_true(pair_filled(rx + i * BYTES / 2, BYTES / 2, i));
}

/* A buffer whose last message has come is not given back before the first one's data are there. */
static void multi_recv__waits_for_all_its_messages(void **state)
{
	struct iovec iov = {rx, LONG + 8};
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = rx};
	struct fi_cq_tagged_entry e;

	pair_fill(tx, LONG, 1);
	full = true;
	pair_retry(fi_recvmsg(b.ep, &m, FI_MULTI_RECV));
	pair_retry(fi_send(a.ep, tx, LONG, NULL, a.peer, NULL));
	kept(1);
	pair_retry(fi_inject(a.ep, "last of", 8, a.peer));
	while (inside(&b)->msg.posted_head)
		pair_progress();
	pair_nothing(b.rx);
	full = false;
	e = pair_completion(b.rx);
	assert_int_equal(e.len, LONG);
	assert_int_equal(e.flags & FI_MULTI_RECV, 0);
	assert_true(pair_filled(rx, LONG, 1));
	e = pair_completion(b.rx);
	assert_int_equal(e.len, 8);
	assert_int_equal(e.flags & FI_MULTI_RECV, FI_MULTI_RECV);
	pair_completion(a.tx);
	pair_nothing(b.rx);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(region__closing_repeats_what_it_waits_for),
		TEST(close__lets_what_is_kept_leave),
		TEST(order__what_was_called_done_is_not_overtaken),
		TEST(order__what_is_not_done_holds_nothing),
		TEST(order__who_waits_holds_nobody),
		TEST(order__each_that_holds_is_waited_for),
		TEST(order__what_was_injected_is_not_overtaken),
		TEST(fence__is_closed_until_data_are_there),
		TEST(fetch__less_than_said_is_an_error),
		TEST(token__is_used_once_while_data_come),
		TEST(kept__all_are_made_once),
		TEST(multi_recv__waits_for_all_its_messages),
	};

	return cmocka_run_group_tests_name("kept calls", tests, NULL, NULL);
}
