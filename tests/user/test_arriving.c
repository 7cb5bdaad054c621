/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What peers that nobody asked for may take: memory of messages that they begin and never end,
 * memory of the engine, numbers of the program's.
 */
#include "arriving.h"
#include "endpoint.h"
#include "reliable.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define EACH	BW_LONG_LIMIT		 /* bytes of a message */
#define ROOM	(BW_ARRIVING_MAX / EACH) /* messages */
#define RESERVE (BW_ARRIVING_NEXT / EACH)
#define FIRST	1000 /* handle of the first peer */

static struct bw_ep *ep;
static struct told seen;
static uint64_t held[ROOM + 1];

static int setup(void **state)
{
	ep = endpoint_open("udp", &seen);
	return 0;
}

static int teardown(void **state)
{
	bw_ep_close(ep, 0);
	return 0;
}

static struct bw_event event(uint8_t type, uint32_t n)
{
	struct bw_event ev = {
		.type = type, .peer = FIRST + n, .node = 77, .engine = 40000, .inc = 1 + n};

	ev.from.link = BW_LINK_NO_UDP;
	ev.from.len = 6;
	return ev;
}

static void up(uint32_t n)
{
	struct bw_event ev = event(BW_EV_PEER_UP, n);

	bw_remote_event(ep, &ev);
}

/* The engine wants a buffer for a frame of the n-th peer. */
static uint64_t begin(uint32_t n)
{
	return bw_host_ops.buf_get(ep, FIRST + n, EACH, false);
}

/* The same for the next message of a flow of its. */
static uint64_t begin_next(uint32_t n)
{
	return bw_host_ops.buf_get(ep, FIRST + n, EACH, true);
}

static void end(uint64_t buf)
{
	bw_host_ops.buf_put(ep, buf);
}

static void begin_all(void)
{
	for (uint32_t i = 0; i < ROOM; i++) {
		up(i);
		held[i] = begin(i);
		assert_int_not_equal(held[i], 0);
	}
}

/* What is said meanwhile. */
static const char *look(void)
{
	static char text[8192];
	int before = dup(STDERR_FILENO);
	FILE *said = tmpfile();

	assert_non_null(said);
	dup2(fileno(said), STDERR_FILENO);
	bw_host_events(ep);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(said);
	text[fread(text, 1, sizeof(text) - 1, said)] = 0;
	fclose(said);
	return text;
}

static void arriving__is_charged_to_its_peer(void **state)
{
	struct bw_remote *p;
	uint64_t one, two;

	up(1);
	p = bw_remote_by_handle(&ep->remotes, FIRST + 1);
	one = begin(1);
	two = begin(1);
	assert_int_equal(p->arriving, 2 * EACH);
	assert_int_equal(ep->arriving, 2 * EACH);
	end(one);
	assert_int_equal(p->arriving, EACH);
	end(two);
	assert_int_equal(p->arriving, 0);
	assert_int_equal(ep->arriving, 0);
}

static void arriving__is_bounded_for_all_together(void **state)
{
	begin_all();
	assert_int_equal(begin(0), 0);
	end(held[0]);
	held[0] = begin(1);
	assert_int_not_equal(held[0], 0);
	assert_true(ep->buffers.bytes < 3 * BW_ARRIVING_MAX / 2);
	for (uint32_t i = 0; i < ROOM; i++)
		end(held[i]);
	assert_int_equal(ep->arriving, 0);
}

/* Of those who take the room those go whose messages stand still, and at no other time. */
static void arriving__is_taken_from_who_stands_still(void **state)
{
	const char *text;

	begin_all();
	ep->now += BW_ARRIVING_STALE;
	look();
	assert_int_equal(ep->stale_peers, 0);
	end(held[7]);
	held[7] = begin(7);
	assert_int_equal(begin(7), 0);
	bw_remote_by_handle(&ep->remotes, FIRST + 3)->complete = true; /* the program named it */
	text = look();
	assert_int_equal(ep->stale_peers, ROOM - 1);
	assert_non_null(strstr(text, "is given up"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* nothing of the others */
	assert_int_equal(begin(7), 0);
	look(); /* not so soon again */
	assert_int_equal(ep->stale_peers, ROOM - 1);
	for (uint32_t i = 0; i < ROOM; i++)
		end(held[i]);
}

/* Who is refused costs no walk over all peers: of messages that wait to be told nobody looks. */
static void arriving__refused_is_no_reason_to_look_at_all(void **state)
{
	struct bw_buffer *b = bw_buffer_get(&ep->buffers, 1);
	struct bw_remote *p;

	assert_non_null(b);
	begin_all();
	b->use = BW_BUFFER_ENDED;
	b->notify = true;
	b->status = 0;
	b->len = 1;
	b->next = NULL;
	p = bw_remote_by_handle(&ep->remotes, FIRST);
	p->sent = p->sent_last = b;
	p->held = 1;
	ep->copied = p->eager = 1 << 10;
	assert_int_equal(begin(1), 0);
	look();
	assert_int_equal(seen.sents, 0);
	ep->after = BW_AFTER_TELL;
	look();
	assert_int_equal(seen.sents, 1);
	assert_null(p->sent);
	ep->copied = p->eager = 0;
	for (uint32_t i = 0; i < ROOM; i++)
		end(held[i]);
}

/* What others wait for has room of its own, and that is bounded, too. */
static void arriving__has_room_for_who_is_next(void **state)
{
	uint64_t next[RESERVE];

	begin_all();
	for (uint32_t i = 0; i < RESERVE; i++) {
		assert_int_equal(begin(0), 0);
		next[i] = begin_next(i % 2);
		assert_int_not_equal(next[i], 0);
	}
	assert_int_equal(begin_next(0), 0);
	for (uint32_t i = 0; i < RESERVE; i++)
		end(next[i]);
	for (uint32_t i = 0; i < ROOM; i++)
		end(held[i]);
	assert_int_equal(ep->arriving, 0);
}

/* Peer 0 lacks room for what its messages wait for, peer 1 for no such message, and peer 2 has
 * begun one that it could end. */
static void arriving__is_left_to_whom_we_hold_up(void **state)
{
	uint64_t next[RESERVE];

	begin_all();
	for (uint32_t i = 0; i < RESERVE; i++)
		next[i] = begin_next(2);
	ep->now += BW_ARRIVING_STALE;
	assert_int_equal(begin_next(0), 0);
	assert_int_equal(begin(1), 0);
	assert_int_equal(begin_next(2), 0);
	look();
	assert_int_equal(ep->stale_peers, ROOM - 1);
	/* Peer 0 gets room and is held up no more, peer 1 has moved. */
	end(next[0]);
	next[0] = begin_next(0);
	assert_int_not_equal(next[0], 0);
	end(next[0]);
	ep->now += BW_ARRIVING_STALE;
	next[0] = begin_next(1);
	assert_int_equal(begin(1), 0);
	look();
	assert_int_equal(ep->stale_peers, 2 * (ROOM - 1));
	for (uint32_t i = 0; i < RESERVE; i++)
		end(next[i]);
	for (uint32_t i = 0; i < ROOM; i++)
		end(held[i]);
}

/* Who was refused and does not come again keeps nothing for ever. */
static void arriving__is_left_to_whom_we_hold_up_while_he_asks(void **state)
{
	uint64_t next[RESERVE], given_up, refused;

	begin_all();
	for (uint32_t i = 0; i < RESERVE; i++)
		next[i] = begin_next(2);
	ep->now += BW_ARRIVING_STALE;
	assert_int_equal(begin_next(0), 0);
	ep->now += BW_ARRIVING_STALE / 2;
	assert_int_equal(begin_next(0), 0);
	refused = ep->now;
	for (int late = 0; late < 2; late++) {
		ep->now = refused + BW_ARRIVING_STALE - !late;
		ep->relief_at = 0;
		given_up = ep->stale_peers;
		assert_int_equal(begin(1), 0);
		look();
		assert_int_equal(ep->stale_peers - given_up, late ? ROOM : ROOM - 1);
	}
	for (uint32_t i = 0; i < RESERVE; i++)
		end(next[i]);
	for (uint32_t i = 0; i < ROOM; i++)
		end(held[i]);
}

/* For what strangers send the engine gets so much, for named peers more. */
static void engine__grows_for_others_to_a_limit(void **state)
{
	const struct bw_engine *engine = ep->engine;
	uint64_t before;

	assert_true(bw_host_feed(ep));
	before = ep->grown_bytes;
	assert_false(engine->crowded);
	ep->grown_bytes = 256ull << 20;
	assert_false(bw_host_feed(ep));
	assert_true(engine->crowded); /* it was told, and callers make room */
	ep->remotes.named = 1;
	assert_true(bw_host_feed(ep));
	assert_false(engine->crowded);
	ep->remotes.named = 0;
	ep->grown_bytes = before + BW_GROW_BYTES;
}

/* A peer that the engine has, for a caller. */
static uint32_t engine_peer(uint32_t n)
{
	struct bw_op op = {.type = BW_OP_CONNECT};

	op.connect.node = 77;
	op.connect.engine = 40000;
	op.connect.inc = 1 + n;
	op.connect.paths = 1;
	op.connect.path[0] = event(BW_EV_PEER_UP, n).from;
	assert_int_equal(bw_host_submit(ep, &op), 0);
	return op.peer;
}

static int expose(uint32_t peer)
{
	struct bw_op op = {.type = BW_OP_EXPOSE, .peer = peer};

	op.expose.buf = 1;
	op.expose.len = 1;
	return bw_host_submit(ep, &op);
}

/* No memory makes a table longer than it can be. */
static void engine__grows_for_no_table_that_is_full(void **state)
{
	struct bw_engine *engine = ep->engine;
	struct bw_table *t = &engine->region_table, before;
	uint64_t grown;
	uint32_t peer;

	bw_ep_lock(ep);
	peer = engine_peer(0);
	assert_int_equal(expose(peer), 0);
	before = *t;
	t->slots = BW_TABLE_PAGE * BW_TABLE_PAGES;
	t->free = 0;
	grown = ep->grown_bytes;
	for (int i = 0; i < 100; i++)
		assert_int_equal(expose(peer), -EAGAIN);
	assert_in_range(ep->grown_bytes - grown, 0, BW_GROW_BYTES);
	*t = before;
	/* But as long as it can be made longer it is. */
	for (int i = 0; i < 3000; i++)
		assert_int_equal(expose(peer), 0);
	assert_in_range(ep->grown_bytes - grown, 2 * BW_GROW_BYTES, 20 * BW_GROW_BYTES);
	bw_ep_unlock(ep);
}

/* The engine knows so many peers at once, and then none of them. */
static void meet_and_part(uint32_t n)
{
	uint32_t *handle = calloc(n, sizeof(*handle));

	assert_non_null(handle);
	for (uint32_t i = 0; i < n; i++) {
		struct bw_op op = {.type = BW_OP_CONNECT};

		op.connect.node = 1000 + i;
		op.connect.engine = 40000;
		op.connect.paths = 1;
		op.connect.path[0] = event(BW_EV_PEER_UP, i).from;
		assert_int_equal(bw_host_submit(ep, &op), 0);
		handle[i] = op.peer;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct bw_op op = {.type = BW_OP_DISCONNECT, .peer = handle[i]};

		assert_int_equal(bw_host_submit(ep, &op), 0);
	}
	bw_host_events(ep);
	free(handle);
}

/* The engine's host looks at what is free until it has seen all of it; no step looks at more than
 * 96 objects. How many steps. */
static uint32_t shrink(void)
{
	const struct bw_engine *engine = ep->engine;
	uint32_t steps = 0;

	do {
		uint64_t before = engine->looks, grown = ep->grown_bytes, gone;

		bw_host_shrink(ep);
		gone = (grown - ep->grown_bytes) / BW_GROW_BYTES;
		assert_in_range(engine->looks - before, 0, 96);
		assert_in_range(gone, 0, 3);
		steps++;
	} while (ep->shrinking);
	return steps;
}

/* Memory that was taken for peers that are gone is the system's again, but for what tables need;
 * little of it, and that of areas of our own, stays. */
static void engine__gives_back_what_it_needs_no_more(void **state)
{
	uint64_t before, most;

	bw_ep_lock(ep);
	meet_and_part(100);
	before = ep->grown_bytes;
	bw_host_shrink(ep);
	assert_int_equal(ep->grown_bytes, before);
	for (int turn = 0; turn < 3; turn++) {
		meet_and_part(8000);
		most = ep->grown_bytes;
		assert_true(most > 16 << 20);
		ep->home.areas.own = true;
		assert_int_equal(shrink(), 1);
		ep->home.areas.own = false;
		ep->dispatching = true;
		bw_host_shrink(ep);
		ep->dispatching = false;
		assert_int_equal(ep->grown_bytes, most);
		assert_in_range(shrink(), 8000 * 2 / 96, 8000 * 6 / 96);
		assert_in_range(ep->grown_bytes, 1, most / 4);
		before = ep->grown_bytes;
		assert_int_equal(shrink(), 1);
		assert_int_equal(ep->grown_bytes, before);
	}
	bw_ep_unlock(ep);
}

/* A step is made with the endpoint's chores, and who sleeps meanwhile sleeps until the next. */
static void engine__gives_back_with_the_chores(void **state)
{
	uint32_t steps = 0;
	uint64_t most;

	bw_ep_lock(ep);
	meet_and_part(8000);
	most = ep->grown_bytes;
	do {
		uint64_t before = ep->grown_bytes;

		ep->chores_at = 0;
		bw_ep_round(ep);
		assert_true(ep->chores_at);
		assert_true(ep->grown_bytes + 3 * BW_GROW_BYTES >= before);
		if (ep->shrinking)
			assert_int_equal(bw_wait_limit(ep, ep->chores_at), 0);
		steps++;
	} while (ep->shrinking);
	assert_in_range(steps, 8000 * 2 / 96, 8000 * 6 / 96);
	assert_in_range(ep->grown_bytes, 1, most / 4);
	bw_ep_unlock(ep);
}

/* One that the program knows comes and goes. */
static void come_and_go(uint32_t i)
{
	struct bw_event ev = event(BW_EV_PEER_DOWN, i);

	up(i);
	bw_remote_by_handle(&ep->remotes, ev.peer)->known = true;
	ev.status = BW_DOWN_REFUSED;
	bw_remote_event(ep, &ev);
}

static bool is_there(uint32_t i)
{
	return bw_remote_find(&ep->remotes, 77, 40000, 1 + i) != NULL;
}

/* The program does not need them: the oldest make room for honest callers. */
static void ghosts__make_room_when_they_are_not_needed(void **state)
{
	uint64_t downs;
	char *text;

	seen.needs_nobody = true;
	for (uint32_t i = 0; i < BW_REMOTE_GHOSTS; i++)
		come_and_go(i);
	assert_true(is_there(0));
	downs = seen.downs;
	come_and_go(BW_REMOTE_GHOSTS);
	assert_int_equal(seen.downs, downs + 2);
	assert_false(is_there(0));
	assert_true(is_there(1));
	assert_true(is_there(BW_REMOTE_GHOSTS));
	up(BW_REMOTE_GHOSTS + 1);
	assert_int_equal(seen.status, BW_DOWN_EVICTED);
	assert_int_equal(seen.peer, 1);
	assert_false(is_there(1));
	assert_int_equal(ep->remotes.ghosts, BW_REMOTE_GHOSTS - 1);
	assert_int_equal(bw_peer_status(ep, 1), 0); /* the number is the caller's now */
	text = bw_ep_stats(ep);
	assert_non_null(strstr(text, "\"ghosts_gone\":2,"));
	free(text);
}

/* Does the engine still speak with it? */
static bool engine_has(uint32_t peer)
{
	struct bw_op op = {.type = BW_OP_SEND, .peer = peer};

	return bw_host_submit(ep, &op) != -ENOTCONN;
}

/* The program was told of them and needs them, so that they stay. */
static void ghosts__are_no_more_than_so_many(void **state)
{
	struct bw_event caller = event(BW_EV_PEER_UP, BW_REMOTE_GHOSTS + 10);
	struct bw_addr_fields a = ep->self;
	struct bw_addr addr;
	bw_peer_no number;
	char *text;

	for (uint32_t i = 0; i < BW_REMOTE_GHOSTS + 10; i++) {
		struct bw_event ev = event(BW_EV_PEER_DOWN, i);
		struct bw_remote *p;

		up(i);
		p = bw_remote_by_handle(&ep->remotes, ev.peer);
		assert_true(i < BW_REMOTE_GHOSTS ? p != NULL : p == NULL);
		if (p)
			p->known = true;
		ev.status = BW_DOWN_REFUSED;
		bw_remote_event(ep, &ev);
	}
	assert_int_equal(ep->remotes.count - ep->remotes.vacant, BW_REMOTE_GHOSTS);
	text = bw_ep_stats(ep);
	assert_non_null(strstr(text, "\"callers_refused\":10,"));
	free(text);
	/* the engine forgets who is refused, */
	caller.peer = engine_peer(BW_REMOTE_GHOSTS + 10);
	assert_true(engine_has(caller.peer));
	bw_remote_event(ep, &caller);
	assert_false(engine_has(caller.peer));
	/* whom the program names is taken, */
	a.inc++;
	bw_addr_pack(&a, &addr);
	assert_int_equal(bw_peer_find(ep, &addr, &number), 0);
	/* and counts no more */
	a.node = 77;
	a.engine = 40000;
	a.inc = 1;
	bw_addr_pack(&a, &addr);
	assert_int_equal(bw_peer_find(ep, &addr, &number), 0);
	assert_int_equal(ep->remotes.ghosts, BW_REMOTE_GHOSTS - 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(arriving__is_charged_to_its_peer),
		TEST(arriving__is_bounded_for_all_together),
		TEST(arriving__is_taken_from_who_stands_still),
		TEST(arriving__refused_is_no_reason_to_look_at_all),
		TEST(arriving__has_room_for_who_is_next),
		TEST(arriving__is_left_to_whom_we_hold_up),
		TEST(arriving__is_left_to_whom_we_hold_up_while_he_asks),
		TEST(engine__grows_for_others_to_a_limit),
		TEST(engine__grows_for_no_table_that_is_full),
		TEST(engine__gives_back_what_it_needs_no_more),
		TEST(engine__gives_back_with_the_chores),
		TEST(ghosts__are_no_more_than_so_many),
		TEST(ghosts__make_room_when_they_are_not_needed),
	};

	return cmocka_run_group_tests_name("arriving", tests, NULL, NULL);
}
