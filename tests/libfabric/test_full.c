// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What peers put into a completion queue that its program does not read, by no operation of the
 * program's own for each: writes and atomics with data, and messages into a multi-receive buffer.
 * Here a queue is full with few entries.
 */
#include "inside.h"

#define LONG 20000 /* more than travels with a request */
#define ROOM (20 * LONG)
#define KEY  42
#define FEW  4		/* entries of a full queue */
#define MOST (16 * FEW) /* entries with which nothing more is let in */

static char *tx, *rx;
static struct fid_mr *mr;

static int setup(void **state)
{
	tx = malloc(LONG);
	rx = malloc(ROOM);
	memset(tx, 1, LONG);
	memset(rx, 0, LONG);
	pair_setup(state);
	inside(&b)->rx_cq->most = FEW;
	return fi_mr_reg(pair_domain, rx, LONG, FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL);
}

static int teardown(void **state)
{
	fi_close(&mr->fid);
	pair_teardown(state);
	free(tx);
	free(rx);
	return 0;
}

static void write_with_data(size_t len, uint64_t data)
{
	pair_retry(fi_writedata(a.ep, tx, len, NULL, data, a.peer, 0, KEY, tx));
}

static void add_with_data(uint64_t flags)
{
	struct fi_ioc local = {tx, 1};
	struct fi_rma_ioc remote = {0, 1, KEY};
	struct fi_msg_atomic m = {.msg_iov = &local,
				  .iov_count = 1,
				  .addr = a.peer,
				  .rma_iov = &remote,
				  .rma_iov_count = 1,
				  .datatype = FI_UINT64,
				  .op = FI_SUM,
				  .data = 99};

	pair_retry(fi_atomicmsg(a.ep, &m, flags));
}

static void fill(void)
{
	for (uint64_t i = 0; i < MOST; i++) {
		write_with_data(1, i);
		pair_completion(a.tx);
	}
	rx[0] = 0;
}

/* Refused, and nothing of it has come. */
static void refused(void)
{
	assert_int_equal(pair_error(a.tx).err, FI_ENOBUFS);
	for (int i = 0; i < LONG; i++)
		assert_int_equal(rx[i], 0);
}

static void writes__with_data_are_refused_by_an_overfull_queue(void **state)
{
	fill();
	write_with_data(8, 99);
	refused();
	write_with_data(LONG, 99);
	refused();
	add_with_data(FI_REMOTE_CQ_DATA);
	refused();
	assert_int_equal(fi_cntr_read(b.remote_written), MOST);
}

/* What makes no entry there is carried out, and each entry that is read makes room for one. */
static void writes__without_data_need_no_room(void **state)
{
	fill();
	pair_retry(fi_write(a.ep, tx, 8, NULL, a.peer, 0, KEY, tx));
	pair_completion(a.tx);
	assert_int_equal(rx[7], 1);
	add_with_data(0);
	pair_completion(a.tx);
	assert_int_equal(rx[7], 2);
	memset(rx, 0, 8);
	assert_int_equal(pair_completion(b.rx).data, 0);
	write_with_data(LONG, MOST);
	pair_completion(a.tx);
	memset(rx, 0, LONG);
	write_with_data(1, 99);
	refused();
	for (uint64_t i = 1; i <= MOST; i++)
		assert_int_equal(pair_completion(b.rx).data, i);
	pair_nothing(b.rx);
}

/* A completion of a buffer that it does not fill, by a message of no bytes with this number. */
static void empty(uint64_t number)
{
	struct fi_cq_tagged_entry e = pair_completion(b.rx);

	assert_ptr_equal(e.op_context, rx);
	assert_int_equal(e.len, 0);
	assert_int_equal(e.data, number);
}

/* Messages of no bytes fill no buffer: what nobody reads stops at a full queue, and comes in order
 * once it is read, though nothing else happens; also before what a receive posted later fits. */
static void queue__of_empty_messages_is_bounded(void **state)
{
	enum { FULL = 500, MORE = 500 };
	struct iovec iov = {rx, LONG - 8};
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = rx};
	uint64_t read = 0;

	inside(&b)->rx_cq->most = FULL;
	pair_retry(fi_recvmsg(b.ep, &m, FI_MULTI_RECV));
	for (uint64_t i = 0; i < FULL + MORE; i++)
		pair_retry(fi_injectdata(a.ep, NULL, 0, i, a.peer));
	pair_count(a.sent, FULL + MORE);
	pair_count(b.received, FULL);
	for (int i = 0; i < 2000; i++)
		pair_progress();
	assert_int_equal(fi_cntr_read(b.received), FULL);
	assert_int_equal(fi_recv(b.ep, rx + LONG - 8, 8, NULL, FI_ADDR_UNSPEC, NULL), -FI_EAGAIN);
	while (read < MORE / 2)
		empty(read++);
	/* This one comes after those that the buffer gets. */
	assert_int_equal(fi_recv(b.ep, rx + LONG - 8, 8, NULL, FI_ADDR_UNSPEC, "late"), -FI_EAGAIN);
	pair_count(b.received, FULL + MORE / 2);
	while (read < MORE)
		empty(read++);
	assert_int_equal(fi_recv(b.ep, rx + LONG - 8, 8, NULL, FI_ADDR_UNSPEC, "late"), -FI_EAGAIN);
	empty(read++);
	assert_int_equal(fi_recv(b.ep, rx + LONG - 8, 8, NULL, FI_ADDR_UNSPEC, "late"), 0);
	while (read < FULL + MORE)
		empty(read++);
	pair_nothing(b.rx);
}

/* The same for those that came before the buffer, and long ones that it is still getting count. */
static void queue__is_full_with_what_a_buffer_is_getting(void **state)
{
	enum { FULL = 500, SLOW = 10 };
	struct iovec iov = {rx, (SLOW + 1) * LONG};
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = rx};

	inside(&b)->rx_cq->most = FULL;
	for (int i = 0; i < SLOW; i++)
		pair_retry(fi_send(a.ep, tx, LONG, NULL, a.peer, NULL));
	for (uint64_t i = 0; i < FULL; i++)
		pair_retry(fi_injectdata(a.ep, NULL, 0, i, a.peer));
	pair_count(a.sent, FULL); /* the long ones wait for their receive */
	for (int i = 0; i < 2000; i++)
		pair_progress();
	pair_retry(fi_recvmsg(b.ep, &m, FI_MULTI_RECV));
	pair_count(b.received, FULL);
	for (int i = 0; i < 2000; i++)
		pair_progress();
	assert_int_equal(fi_cntr_read(b.received), FULL);
	for (int i = 0; i < SLOW; i++)
		assert_int_equal(pair_completion(b.rx).len, LONG);
	for (uint64_t i = 0; i < FULL; i++)
		empty(i);
	for (int i = 0; i < SLOW; i++)
		pair_completion(a.tx);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(writes__with_data_are_refused_by_an_overfull_queue),
		TEST(writes__without_data_need_no_room),
		TEST(queue__of_empty_messages_is_bounded),
		TEST(queue__is_full_with_what_a_buffer_is_getting),
	};

	return cmocka_run_group_tests_name("full", tests, NULL, NULL);
}
