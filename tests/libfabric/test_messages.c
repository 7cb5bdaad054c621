// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Messages through libfabric: what MPI libraries rely on, told by two endpoints of one process.
 */
#include <stdio.h>
#include <sys/resource.h>

#include "pair.h"

#define LONG (1 << 20) /* bytes: goes as an envelope and is fetched */

static const size_t sizes[] = {0, 1, 8, 100, 4096, 16384, 16385, 70000, LONG};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static char *tx, *rx;

static int setup(void **state)
{
	tx = malloc(2 * LONG);
	rx = malloc(2 * LONG);
	return pair_setup(state);
}

static int teardown(void **state)
{
	free(tx);
	free(rx);
	return pair_teardown(state);
}

static void tagged__every_size_expected_and_unexpected(void **state)
{
	for (size_t i = 0; i < SIZES; i++) {
		for (int early = 0; early < 2; early++) {
			struct fi_cq_tagged_entry e;

			pair_fill(tx, sizes[i], (uint32_t)i);
			memset(rx, 0xEE, sizes[i] + 1);
			if (early)
				pair_retry(fi_trecv(b.ep, rx, sizes[i], NULL, b.peer, i, 0, rx));
			pair_retry(fi_tsend(a.ep, tx, sizes[i], NULL, a.peer, i, tx));
			if (!early) {
				for (int k = 0; k < 50; k++)
					pair_progress();
				pair_retry(fi_trecv(b.ep, rx, sizes[i], NULL, b.peer, i, 0, rx));
			}
			e = pair_completion(b.rx);
			assert_ptr_equal(e.op_context, rx);
			assert_int_equal(e.len, sizes[i]);
			assert_int_equal(e.tag, i);
			assert_int_equal(e.flags, FI_RECV | FI_TAGGED);
			assert_true(pair_filled(rx, sizes[i], (uint32_t)i));
			assert_int_equal((uint8_t)rx[sizes[i]], 0xEE);
			e = pair_completion(a.tx);
			assert_ptr_equal(e.op_context, tx);
			assert_int_equal(e.flags, FI_SEND | FI_TAGGED);
		}
	}
	pair_count(a.sent, 2 * SIZES);
	pair_count(b.received, 2 * SIZES);
}

static void tagged__to_oneself(void **state)
{
	for (size_t i = 0; i < SIZES; i++) {
		pair_fill(tx, sizes[i], (uint32_t)i);
		pair_retry(fi_trecv(a.ep, rx, sizes[i], NULL, a.self, 1, 0, rx));
		pair_retry(fi_tsend(a.ep, tx, sizes[i], NULL, a.self, 1, tx));
		assert_int_equal(pair_completion(a.rx).len, sizes[i]);
		pair_completion(a.tx);
		assert_true(pair_filled(rx, sizes[i], (uint32_t)i));
	}
}

static void tagged__truncation_tells_how_much_is_missing(void **state)
{
	for (size_t i = 1; i < SIZES; i++) {
		size_t room = sizes[i] / 3;
		struct fi_cq_err_entry error;

		pair_fill(tx, sizes[i], 5);
		memset(rx, 0xEE, sizes[i]);
		pair_retry(fi_trecv(b.ep, rx, room, NULL, b.peer, 9, 0, rx));
		pair_retry(fi_tsend(a.ep, tx, sizes[i], NULL, a.peer, 9, tx));
		error = pair_error(b.rx);
		assert_int_equal(error.err, FI_ETRUNC);
		assert_int_equal(error.len, room);
		assert_int_equal(error.olen, sizes[i] - room);
		assert_int_equal(error.tag, 9);
		assert_ptr_equal(error.op_context, rx);
		assert_true(pair_filled(rx, room, 5));
		assert_int_equal((uint8_t)rx[room], 0xEE);
		pair_completion(a.tx);
	}
}

static void tagged__segments_on_both_sides(void **state)
{
	for (size_t i = 0; i < SIZES; i++) {
		size_t third = sizes[i] / 3, rest = sizes[i] - third;
		struct iovec out[2] = {{tx, third}, {tx + LONG, rest}};
		struct iovec in[2] = {{rx, rest}, {rx + LONG, third}};
		char *flat = malloc(sizes[i] + 1);

		pair_fill(flat, sizes[i], 3);
		memcpy(tx, flat, third);
		memcpy(tx + LONG, flat + third, rest);
		pair_retry(fi_trecvv(b.ep, in, NULL, 2, FI_ADDR_UNSPEC, 4, 0, rx));
		pair_retry(fi_tsendv(a.ep, out, NULL, 2, a.peer, 4, tx));
		assert_int_equal(pair_completion(b.rx).len, sizes[i]);
		pair_completion(a.tx);
		assert_memory_equal(rx, flat, rest);
		assert_memory_equal(rx + LONG, flat + rest, third);
		free(flat);
	}
}

static void tagged__source_wildcards_and_masks(void **state)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t src;

	/* only from itself: must not take the message of the peer */
	pair_retry(fi_trecv(b.ep, rx, 8, NULL, b.self, 0x11, 0, "self"));
	pair_retry(fi_trecv(b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, 0x10, 0x0F, "masked"));
	pair_retry(fi_tinject(a.ep, "12345678", 8, a.peer, 0x11));
	while (fi_cq_readfrom(b.rx, &e, 1, &src) == -FI_EAGAIN)
		pair_progress();
	assert_string_equal(e.op_context, "masked");
	assert_int_equal(e.tag, 0x11);
	assert_int_equal(src, b.peer);
	pair_retry(fi_tinject(b.ep, "12345678", 8, b.self, 0x11));
	while (fi_cq_readfrom(b.rx, &e, 1, &src) == -FI_EAGAIN)
		pair_progress();
	assert_string_equal(e.op_context, "self");
	assert_int_equal(src, b.self);
}

static void tagged__remote_data(void **state)
{
	struct fi_cq_tagged_entry e;

	for (size_t i = 0; i < SIZES; i++) {
		pair_retry(fi_trecv(b.ep, rx, sizes[i], NULL, b.peer, 1, 0, rx));
		pair_retry(
			fi_tsenddata(a.ep, tx, sizes[i], NULL, 0xFEDCBA9876543210, a.peer, 1, tx));
		e = pair_completion(b.rx);
		assert_int_equal(e.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
		assert_int_equal(e.data, 0xFEDCBA9876543210);
		pair_completion(a.tx);
	}
	pair_retry(fi_trecv(b.ep, rx, 8, NULL, b.peer, 6, 0, rx));
	pair_retry(fi_tinjectdata(a.ep, tx, 8, 76, a.peer, 6));
	e = pair_completion(b.rx);
	assert_int_equal(e.tag, 6);
	assert_int_equal(e.data, 76);
	pair_retry(fi_recv(b.ep, rx, 8, NULL, b.peer, rx));
	pair_retry(fi_injectdata(a.ep, tx, 8, 77, a.peer));
	e = pair_completion(b.rx);
	assert_int_equal(e.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
	assert_int_equal(e.data, 77);
}

/* Untagged and tagged messages are matched apart. */
static void msg__is_another_queue_than_tagged(void **state)
{
	pair_retry(fi_recv(b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, "msg"));
	pair_retry(fi_trecv(b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, 0, ~0ULL, "tagged"));
	pair_retry(fi_tinject(a.ep, "x", 1, a.peer, 0));
	assert_string_equal(pair_completion(b.rx).op_context, "tagged");
	pair_retry(fi_inject(a.ep, "x", 1, a.peer));
	assert_string_equal(pair_completion(b.rx).op_context, "msg");
}

static struct fi_msg_tagged search(uint64_t tag, void *context)
{
	static struct iovec iov;

	iov = (struct iovec){rx, LONG};
	return (struct fi_msg_tagged){
		.msg_iov = &iov, .iov_count = 1, .addr = b.peer, .tag = tag, .context = context};
}

static void peek__tells_claims_and_discards(void **state)
{
	for (size_t i = 0; i < SIZES; i++) {
		struct fi_msg_tagged m = search(5, "look");
		struct fi_msg_tagged mine = search(5, "claim");
		struct fi_cq_tagged_entry e;

		pair_retry(fi_trecvmsg(b.ep, &m, FI_PEEK | FI_COMPLETION));
		assert_int_equal(pair_error(b.rx).err, FI_ENOMSG);
		pair_fill(tx, sizes[i], 1);
		pair_retry(fi_tsend(a.ep, tx, sizes[i], NULL, a.peer, 5, "first"));
		pair_retry(fi_tsend(a.ep, tx, sizes[i], NULL, a.peer, 5, "second"));
		pair_retry(fi_tsend(a.ep, tx, sizes[i], NULL, a.peer, 6, "third"));
		m = search(6, "look"); /* order: the first two are there when the third is */
		while (fi_trecvmsg(b.ep, &m, FI_PEEK) == 0 && fi_cq_read(b.rx, &e, 1) == -FI_EAVAIL)
			pair_error(b.rx);
		assert_int_equal(e.len, sizes[i]);
		assert_int_equal(e.tag, 6);

		pair_retry(fi_trecvmsg(b.ep, &mine, FI_PEEK | FI_CLAIM));
		assert_int_equal(pair_completion(b.rx).len, sizes[i]);
		/* the claimed one is out of reach for others */
		m = search(5, "look");
		pair_retry(fi_trecvmsg(b.ep, &m, FI_PEEK | FI_DISCARD));
		assert_int_equal(pair_completion(b.rx).len, sizes[i]);
		pair_retry(fi_trecvmsg(b.ep, &m, FI_PEEK));
		assert_int_equal(pair_error(b.rx).err, FI_ENOMSG);
		mine.addr = 0; /* a claim matches by its context alone */
		mine.tag = 0;
		pair_retry(fi_trecvmsg(b.ep, &mine, FI_CLAIM));
		e = pair_completion(b.rx);
		assert_string_equal(e.op_context, "claim");
		assert_true(pair_filled(rx, sizes[i], 1));
		pair_retry(fi_trecv(b.ep, rx, LONG, NULL, b.peer, 6, 0, NULL));
		pair_completion(b.rx);
		/* also the sender of the discarded one is released */
		for (int k = 0; k < 3; k++)
			pair_completion(a.tx);
	}
}

/* Without a helper thread, and nobody else makes progress. Unless its way is slow a message is seen
 * soon. */
static void peek__makes_progress(void **state)
{
	struct fi_msg_tagged m = search(5, "look");
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry e;

	pair_close();
	setenv("BEOWIRE_HELPER", "off", 1);
	pair_open(&(struct pair_options){0});
	unsetenv("BEOWIRE_HELPER");
	pair_retry(fi_tinject(a.ep, tx, 8, a.peer, 4));
	pair_retry(fi_trecv(b.ep, rx, 8, NULL, b.peer, 4, 0, NULL));
	pair_completion(b.rx);
	m.addr = b.peer;
	pair_retry(fi_tinject(a.ep, tx, 8, a.peer, 5));
	for (int i = 0; i < 100000; i++) {
		assert_int_equal(fi_trecvmsg(b.ep, &m, FI_PEEK), 0);
		if (fi_cq_read(b.rx, &e, 1) == 1)
			return;
		assert_int_equal(fi_cq_readerr(b.rx, &error, 0), 1);
	}
	fail_msg("the message was not seen");
}

/* A claimed message that is discarded completes, and its sender is released; the next stays. */
static void claim__can_be_discarded(void **state)
{
	for (size_t i = 0; i < SIZES; i++) {
		struct fi_msg_tagged mine = search(5, "claim");
		struct fi_cq_tagged_entry e;
		struct fi_cq_err_entry error;

		pair_retry(fi_tsend(a.ep, tx, sizes[i], NULL, a.peer, 5, "first"));
		pair_retry(fi_tsend(a.ep, tx, sizes[i], NULL, a.peer, 5, "second"));
		for (;;) {
			pair_retry(fi_trecvmsg(b.ep, &mine, FI_PEEK | FI_CLAIM));
			if (fi_cq_read(b.rx, &e, 1) == 1)
				break;
			assert_int_equal(fi_cq_readerr(b.rx, &error, 0), 1);
			assert_int_equal(error.err, FI_ENOMSG);
			pair_progress();
		}
		pair_retry(fi_trecvmsg(b.ep, &mine, FI_CLAIM | FI_DISCARD));
		e = pair_completion(b.rx);
		assert_string_equal(e.op_context, "claim");
		assert_int_equal(e.len, sizes[i]);
		assert_int_equal(fi_trecvmsg(b.ep, &mine, FI_CLAIM), -FI_EINVAL);
		pair_retry(fi_trecv(b.ep, rx, LONG, NULL, b.peer, 5, 0, "other"));
		assert_string_equal(pair_completion(b.rx).op_context, "other");
		pair_completion(a.tx);
		pair_completion(a.tx);
		pair_nothing(b.rx);
	}
}

/* A buffer is given back when less than the least is left, not when just that much is: whether its
 * messages come before it or after. */
static void multi_recv__exactly_the_least_is_enough(void **state)
{
	enum { BUFFER = 1000, LEAST = 400 };
	struct iovec iov = {rx, BUFFER};
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = rx};
	size_t least = LEAST;

	assert_int_equal(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
				   sizeof(least)),
			 0);
	for (int early = 0; early < 2; early++) {
		struct fi_cq_tagged_entry e;

		if (!early)
			pair_retry(fi_recvmsg(b.ep, &m, FI_MULTI_RECV));
		pair_retry(fi_inject(a.ep, tx, BUFFER - LEAST, a.peer));
		pair_retry(fi_inject(a.ep, tx, LEAST, a.peer));
		if (early) {
			for (int i = 0; i < 200; i++)
				pair_progress();
			pair_retry(fi_recvmsg(b.ep, &m, FI_MULTI_RECV));
		}
		e = pair_completion(b.rx);
		assert_int_equal(e.len, BUFFER - LEAST);
		assert_int_equal(e.flags & FI_MULTI_RECV, 0);
		e = pair_completion(b.rx);
		assert_int_equal(e.len, LEAST);
		assert_int_equal(e.flags & FI_MULTI_RECV, FI_MULTI_RECV);
		assert_ptr_equal(e.buf, rx + BUFFER - LEAST);
	}
}

static void multi_recv__the_last_completion_carries_the_flag(void **state)
{
	static const size_t lengths[] = {100, 70000, 0, 3000, 200000, 16384, 50};
	struct iovec iov = {rx, 300000};
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = rx};
	size_t least = 20000, at = 0, n = sizeof(lengths) / sizeof(lengths[0]), done = 0;
	bool released = false;

	assert_int_equal(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
				   sizeof(least)),
			 0);
	pair_retry(fi_recvmsg(b.ep, &m, FI_MULTI_RECV));
	for (size_t i = 0; i < n; i++) {
		pair_fill(tx + at, lengths[i], (uint32_t)i);
		pair_retry(fi_send(a.ep, tx + at, lengths[i], NULL, a.peer, NULL));
		at += lengths[i];
	}
	/* 290,000 bytes are taken after the sixth message: less than 20,000 are left */
	while (!released) {
		struct fi_cq_tagged_entry e = pair_completion(b.rx);
		size_t i = 0, offset = (size_t)((char *)e.buf - rx), start = 0;

		while (i < n && (start != offset || lengths[i] != e.len))
			start += lengths[i++];
		assert_true(i < n - 1);
		assert_ptr_equal(e.op_context, rx);
		assert_true(pair_filled(e.buf, e.len, (uint32_t)i));
		released = e.flags & FI_MULTI_RECV;
		done++;
	}
	assert_int_equal(done, n - 1);
	/* the seventh waits for another buffer */
	pair_retry(fi_recv(b.ep, rx, 50, NULL, FI_ADDR_UNSPEC, "other"));
	assert_string_equal(pair_completion(b.rx).op_context, "other");
	for (size_t i = 0; i < n; i++)
		pair_completion(a.tx);
}

/* Short messages and others that are fetched, by turns, over several buffers: none overtakes. */
static void multi_recv__completes_in_the_order_of_sending(void **state)
{
	enum { MANY = 60, BUFFER = 3000, LEAST = 500 };
	struct iovec iov = {.iov_len = BUFFER};
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
	struct fi_msg out = {.iov_count = 1, .addr = a.peer};
	size_t least = LEAST, buffers = 0;
	char *released = NULL;

	assert_int_equal(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
				   sizeof(least)),
			 0);
	for (size_t i = 0; i < 10; i++) {
		iov.iov_base = m.context = rx + i * BUFFER;
		pair_retry(fi_recvmsg(b.ep, &m, FI_MULTI_RECV));
	}
	for (uint32_t i = 0; i < MANY; i++) {
		struct iovec piece = {tx + i * LEAST, i % 3 ? LEAST : LEAST / 10};

		pair_fill(piece.iov_base, piece.iov_len, i);
		out.msg_iov = &piece;
		pair_retry(fi_sendmsg(a.ep, &out, i % 3 ? FI_DELIVERY_COMPLETE : 0));
	}
	for (uint32_t i = 0; i < MANY; i++) {
		struct fi_cq_tagged_entry e = pair_completion(b.rx);

		assert_int_equal(e.len, i % 3 ? LEAST : LEAST / 10);
		assert_true(pair_filled(e.buf, e.len, i));
		assert_true((char *)e.op_context > released);
		if (e.flags & FI_MULTI_RECV) {
			released = e.op_context;
			buffers++;
		}
	}
	assert_int_equal(buffers, 8);
	for (int i = 0; i < MANY; i++)
		pair_completion(a.tx);
}

static void cancel__ends_a_receive_once(void **state)
{
	struct fi_cq_err_entry error;

	pair_retry(fi_trecv(b.ep, rx, 8, NULL, b.peer, 3, 0, "one"));
	pair_retry(fi_trecv(b.ep, rx, 8, NULL, b.peer, 3, 0, "two"));
	assert_int_equal(fi_cancel(&b.ep->fid, "unknown"), -FI_ENOENT);
	assert_int_equal(fi_cancel(&b.ep->fid, "one"), 0);
	error = pair_error(b.rx);
	assert_int_equal(error.err, FI_ECANCELED);
	assert_string_equal(error.op_context, "one");
	assert_int_equal(fi_cancel(&b.ep->fid, "one"), -FI_ENOENT);
	pair_retry(fi_tinject(a.ep, "x", 1, a.peer, 3));
	assert_string_equal(pair_completion(b.rx).op_context, "two");
}

static void cancel__ends_one_at_a_time(void **state)
{
	for (int i = 0; i < 3; i++)
		pair_retry(fi_trecv(b.ep, rx, 8, NULL, b.peer, 3, 0, "same"));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fi_cancel(&b.ep->fid, "same"), 0);
		assert_int_equal(pair_error(b.rx).err, FI_ECANCELED);
		pair_nothing(b.rx);
	}
	assert_int_equal(fi_cancel(&b.ep->fid, "same"), -FI_ENOENT);
}

static void inject__counts_but_does_not_complete(void **state)
{
	char word[16];

	for (int i = 0; i < 100; i++) {
		snprintf(word, sizeof(word), "%d", i);
		pair_retry(fi_tinject(a.ep, word, sizeof(word), a.peer, 2));
		memset(word, 0xFF, sizeof(word));
	}
	pair_count(a.sent, 100);
	for (int i = 0; i < 100; i++) {
		pair_retry(fi_trecv(b.ep, rx, 100, NULL, b.peer, 2, 0, NULL));
		assert_int_equal(pair_completion(b.rx).len, sizeof(word));
		assert_int_equal(atoi(rx), i);
	}
	pair_nothing(a.tx);
	assert_int_equal(fi_tinject(a.ep, tx, pair_info->tx_attr->inject_size + 1, a.peer, 2),
			 -FI_EMSGSIZE);
}

/* As much as is offered can be injected, by each of the calls. */
static void inject__up_to_the_limit(void **state)
{
	size_t n = pair_info->tx_attr->inject_size;
	struct iovec iov = {tx, n};
	struct fi_msg_tagged m = {.msg_iov = &iov, .iov_count = 1, .addr = a.peer, .tag = 2};

	pair_fill(tx, n, 6);
	pair_retry(fi_tinject(a.ep, tx, n, a.peer, 2));
	pair_retry(fi_tsendmsg(a.ep, &m, FI_INJECT));
	memset(tx, 0, n);
	for (int i = 0; i < 2; i++) {
		pair_retry(fi_trecv(b.ep, rx, n, NULL, b.peer, 2, 0, NULL));
		assert_int_equal(pair_completion(b.rx).len, n);
		assert_true(pair_filled(rx, n, 6));
	}
	iov.iov_len = n + 1;
	assert_int_equal(fi_tsendmsg(a.ep, &m, FI_INJECT), -FI_EMSGSIZE);
	assert_int_equal(fi_inject(a.ep, tx, n + 1, a.peer), -FI_EMSGSIZE);
}

static void selective__only_what_asks_for_it_completes(void **state)
{
	struct iovec iov = {tx, 8};
	struct fi_msg_tagged m = {.msg_iov = &iov, .iov_count = 1, .tag = 1};

	pair_close();
	pair_open(&(struct pair_options){.tx_bind = FI_SELECTIVE_COMPLETION});
	m.addr = a.peer;
	pair_retry(fi_trecv(b.ep, rx, 8, NULL, b.peer, 1, 0, "one"));
	pair_retry(fi_trecv(b.ep, rx, 8, NULL, b.peer, 1, 0, "two"));
	m.context = "quiet";
	pair_retry(fi_tsendmsg(a.ep, &m, 0));
	m.context = "loud";
	pair_retry(fi_tsendmsg(a.ep, &m, FI_COMPLETION));
	assert_string_equal(pair_completion(a.tx).op_context, "loud");
	pair_nothing(a.tx);
	pair_count(a.sent, 2);
	assert_string_equal(pair_completion(b.rx).op_context, "one");
	assert_string_equal(pair_completion(b.rx).op_context, "two");
}

/* The module fetches what is sent with delivery: its end is told when the peer's module has it; the
 * peer's program finds it in its buffer after its next call. */
static bool by_module(void)
{
	const char *links = getenv("BEOWIRE_LINKS");

	return links && strstr(links, "kernel");
}

/* Send so many bytes of this pattern with a completion of this level. */
static void send_at(uint64_t level, size_t len, uint32_t seed)
{
	struct iovec iov = {tx, len};
	struct fi_msg_tagged m = {
		.msg_iov = &iov, .iov_count = 1, .addr = a.peer, .tag = 1, .context = tx};

	pair_fill(tx, len, seed);
	pair_retry(fi_tsendmsg(a.ep, &m, FI_COMPLETION | level));
}

static void sent(void)
{
	assert_ptr_equal(pair_completion(a.tx).op_context, tx);
}

static void receive(size_t len)
{
	memset(rx, 0, len);
	pair_retry(fi_trecv(b.ep, rx, len, NULL, b.peer, 1, 0, rx));
}

static void received(size_t len, uint32_t seed)
{
	pair_completion(b.rx);
	assert_true(pair_filled(rx, len, seed));
}

/* "Delivered" is said only after the data are in the receiver's buffer, if it was ready. */
static void delivery_complete__fills_the_buffer(void **state)
{
	for (size_t i = 0; i < SIZES; i++) {
		receive(sizes[i]);
		send_at(FI_DELIVERY_COMPLETE, sizes[i], 7);
		sent();
		if (!by_module())
			assert_true(pair_filled(rx, sizes[i], 7));
		received(sizes[i], 7);
	}
}

/* It does not wait for a receive, unless the message is so long that it has to be fetched. */
static void delivery_complete__needs_no_receive(void **state)
{
	send_at(FI_DELIVERY_COMPLETE, 4096, 9);
	if (by_module()) {
		pair_nothing(a.tx);
		receive(4096);
		sent();
	} else {
		sent();
		receive(4096);
	}
	received(4096, 9);
}

/* "Matched" is said only after a receive has the data. */
static void match_complete__waits_for_the_receive(void **state)
{
	for (size_t i = 0; i < SIZES; i++) {
		send_at(FI_MATCH_COMPLETE, sizes[i], 8);
		pair_nothing(a.tx);
		receive(sizes[i]);
		sent();
		received(sizes[i], 8);
	}
}

/* "Transmitted" is said only when the data do not depend on the sender any more: of a long message
 * once its receiver has fetched them, also where copies are kept. */
static void transmit_complete__waits_for_who_fetches(void **state)
{
	for (int i = 0; i < 4; i++) { /* over a slow line this is learned by then */
		receive(LONG);
		send_at(0, LONG, 6);
		received(LONG, 6);
		sent();
	}
	send_at(FI_TRANSMIT_COMPLETE, LONG, 5);
	pair_nothing(a.tx);
	receive(LONG);
	sent();
	received(LONG, 5);
}

static void receive_long_before_short(size_t bytes)
{
	assert_int_equal(pair_completion(b.rx).tag, 1);
	assert_true(pair_filled(rx, bytes, 4));
	assert_int_equal(pair_completion(b.rx).tag, 2);
}

/* A send is done: its receiver has the message before anything that is sent later, also where the
 * data are still to be fetched out of a copy. One-sided MPI relies on it (Open MPI's osc pt2pt). */
static void order__what_is_done_is_not_overtaken(void **state)
{
	pair_fill(tx, LONG, 4);
	for (int i = 0; i < 8; i++) {
		memset(rx, 0, LONG);
		pair_retry(fi_trecv(b.ep, rx, LONG, NULL, b.peer, 1, 0, NULL));
		pair_retry(fi_trecv(b.ep, rx + LONG, 8, NULL, b.peer, 2, 0, NULL));
		pair_retry(fi_tsend(a.ep, tx, LONG, NULL, a.peer, 1, NULL));
		pair_completion(a.tx);
		pair_retry(fi_tinject(a.ep, "all done", 8, a.peer, 2));
		receive_long_before_short(LONG);
	}
}

/* An injected message is done when the call returns, although it has to be fetched where unexpected
 * messages fill the receiver's memory. */
static void order__what_is_injected_is_not_overtaken(void **state)
{
	enum { BYTES = 16000, FILL = 50, ROUNDS = 50 };

	pair_close();
	setenv("BEOWIRE_UNEXPECTED_MAX", "4000", 1);
	pair_open(&(struct pair_options){0});
	unsetenv("BEOWIRE_UNEXPECTED_MAX");
	pair_fill(tx, BYTES, 4);
	for (int i = 0; i < FILL; i++)
		pair_retry(fi_tinject(a.ep, tx, 1000, a.peer, 3));
	for (int i = 0; i < ROUNDS; i++) {
		memset(rx, 0, BYTES);
		pair_retry(fi_trecv(b.ep, rx, BYTES, NULL, b.peer, 1, 0, NULL));
		pair_retry(fi_trecv(b.ep, rx + LONG, 8, NULL, b.peer, 2, 0, NULL));
		pair_retry(fi_tinject(a.ep, tx, BYTES, a.peer, 1));
		pair_retry(fi_tinject(a.ep, "all done", 8, a.peer, 2));
		receive_long_before_short(BYTES);
	}
}

/* Far more messages than the queue was opened for, then far more than a ring of any link holds. */
static void queue__is_never_overrun(void **state)
{
	enum { MANY = 5000 };

	pair_close();
	pair_open(&(struct pair_options){.cq_size = 1});
	for (int i = 0; i < MANY; i++)
		pair_retry(fi_trecv(b.ep, rx, 8, NULL, b.peer, (uint64_t)i, 0, &rx[i]));
	for (int i = 0; i < MANY; i++)
		pair_retry(fi_tsend(a.ep, tx, 8, NULL, a.peer, (uint64_t)(MANY - 1 - i), &tx[i]));
	pair_count(b.received, MANY);
	for (int i = 0; i < MANY; i++) {
		assert_ptr_equal(pair_completion(b.rx).op_context, &rx[MANY - 1 - i]);
		assert_ptr_equal(pair_completion(a.tx).op_context, &tx[i]);
	}
}

/* It also grows while the oldest entry is in its middle. */
static void queue__grows_in_its_middle(void **state)
{
	enum { MANY = 1000, READ = 100 };
	int read = 0;

	for (int i = 0; i < MANY; i++)
		pair_retry(fi_trecv(b.ep, rx, 8, NULL, b.peer, 1, 0, &rx[i]));
	for (int i = 0; i < MANY; i++) {
		pair_retry(fi_tinject(a.ep, tx, 8, a.peer, 1));
		if (i < READ)
			assert_ptr_equal(pair_completion(b.rx).op_context, &rx[read++]);
	}
	pair_count(b.received, MANY);
	while (read < MANY)
		assert_ptr_equal(pair_completion(b.rx).op_context, &rx[read++]);
}

/* One tag floods, another is received first; the memory that the flood takes has its limit. */
static void unexpected__flood_of_another_tag_in_bounded_memory(void **state)
{
	enum { MANY = 20000, BYTES = 8000 };
	struct rusage before, after;
	int received = 0;

	pair_close();
	setenv("BEOWIRE_UNEXPECTED_MAX", "4000000", 1);
	pair_open(&(struct pair_options){0});
	unsetenv("BEOWIRE_UNEXPECTED_MAX");
	getrusage(RUSAGE_SELF, &before);
	/* the flood needs no copy at the sender: its buffers are read where they are */
	pair_fill(tx, BYTES, 1);
	for (int i = 0; i < MANY; i++)
		pair_retry(fi_tsend(a.ep, tx, BYTES, NULL, a.peer, 1, NULL));
	pair_retry(fi_tsend(a.ep, "last", 5, NULL, a.peer, 2, NULL));
	pair_retry(fi_trecv(b.ep, rx, LONG, NULL, b.peer, 2, 0, rx));
	assert_int_equal(pair_completion(b.rx).len, 5);
	assert_string_equal(rx, "last");
	getrusage(RUSAGE_SELF, &after);
	/* 160 MB of messages: 4 MB are kept here, some are on their way, of the rest there are
	 * envelopes */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they keep what is freed */
	assert_true(after.ru_maxrss - before.ru_maxrss < 60000);
#endif
	while (received < MANY) {
		memset(rx, 0, BYTES);
		pair_retry(fi_trecv(b.ep, rx, LONG, NULL, b.peer, 1, 0, rx));
		assert_int_equal(pair_completion(b.rx).len, BYTES);
		assert_true(pair_filled(rx, BYTES, 1));
		received++;
	}
	for (int i = 0; i < MANY + 1; i++)
		pair_completion(a.tx);
}

/* An alias sends with flags of its own. */
static void alias__has_its_own_flags(void **state)
{
	struct fid_ep *alias = NULL;

	assert_int_equal(fi_ep_alias(a.ep, &alias, FI_TRANSMIT | FI_MATCH_COMPLETE), 0);
	pair_retry(fi_tsend(alias, tx, 8, NULL, a.peer, 1, tx));
	pair_nothing(a.tx);
	pair_retry(fi_trecv(b.ep, rx, 8, NULL, b.peer, 1, 0, rx));
	pair_completion(a.tx);
	pair_completion(b.rx);
	assert_int_equal(fi_close(&a.ep->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&alias->fid), 0);
}

/* Who has counters alone has nowhere to be told what there is. */
static void peek__without_a_queue_is_refused(void **state)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_msg_tagged m = {.addr = FI_ADDR_UNSPEC};
	struct fid_cntr *cntr;
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(pair_domain, pair_info, &ep, NULL), 0);
	assert_int_equal(fi_cntr_open(pair_domain, &attr, &cntr, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &a.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &cntr->fid, FI_RECV | FI_SEND), 0);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_trecvmsg(ep, &m, FI_PEEK), -FI_EOPBADSTATE);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(tagged__every_size_expected_and_unexpected),
		TEST(tagged__to_oneself),
		TEST(tagged__truncation_tells_how_much_is_missing),
		TEST(tagged__segments_on_both_sides),
		TEST(tagged__source_wildcards_and_masks),
		TEST(tagged__remote_data),
		TEST(msg__is_another_queue_than_tagged),
		TEST(peek__tells_claims_and_discards),
		TEST(peek__makes_progress),
		TEST(peek__without_a_queue_is_refused),
		TEST(claim__can_be_discarded),
		TEST(multi_recv__exactly_the_least_is_enough),
		TEST(multi_recv__the_last_completion_carries_the_flag),
		TEST(multi_recv__completes_in_the_order_of_sending),
		TEST(cancel__ends_a_receive_once),
		TEST(cancel__ends_one_at_a_time),
		TEST(inject__counts_but_does_not_complete),
		TEST(inject__up_to_the_limit),
		TEST(selective__only_what_asks_for_it_completes),
		TEST(delivery_complete__fills_the_buffer),
		TEST(delivery_complete__needs_no_receive),
		TEST(match_complete__waits_for_the_receive),
		TEST(transmit_complete__waits_for_who_fetches),
		TEST(order__what_is_done_is_not_overtaken),
		TEST(order__what_is_injected_is_not_overtaken),
		TEST(queue__is_never_overrun),
		TEST(queue__grows_in_its_middle),
		TEST(unexpected__flood_of_another_tag_in_bounded_memory),
		TEST(alias__has_its_own_flags),
	};

	return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
