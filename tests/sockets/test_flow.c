/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections and their queues, where the rest of the library and libbeowire are the test's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "core.h"
#include "flow.h"
#include "real.h"
#include "wait.h"

struct bws_core bws;

static int answer; /* of bw_send() */
static uint32_t told[16], tells;
static uint32_t codes;		/* set of those that were sent */
static uint64_t parks;		/* what the last PARK said */
static uint64_t sent;		/* bytes of the stream, in their order */
static struct bws_conn *breaks; /* while the next message is sent */

int bw_send(struct bw_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, uint64_t imm,
	    const void *data, uint64_t len, unsigned int flags, void *op)
{
	struct bws_conn *c = breaks;

	breaks = NULL;
	if (c)
		bws_break(c, ECONNRESET, "the peer breaks the rules");
	if (answer >= 0 && tells < 16)
		told[tells++] = (uint32_t)(tag >> 32);
	if (answer >= 0)
		codes |= 1u << code;
	if (answer >= 0 && code == BWS_PARK)
		parks = imm;
	if (answer >= 0 && code == BWS_DATA) {
		assert_int_equal(imm, sent);
		assert_int_equal(*(const uint8_t *)data, (uint8_t)sent);
		sent += len;
	}
	return answer;
}

void bws_lock(void)
{
}

void bws_unlock(void)
{
}

int bws_progress(void)
{
	return 0;
}

void bws_pause(void)
{
}

static int offers; /* made anew */

void bws_reoffer(struct bws_conn *c)
{
	offers++;
}

int bw_pull(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *to, uint64_t len,
	    void *op)
{
	return 0;
}

static int finds; /* of bw_peer_find(), and whom it finds */
static bw_peer_no found;

int bw_peer_find(struct bw_ep *ep, const struct bw_addr *addr, bw_peer_no *peer)
{
	*peer = found;
	return finds;
}

static const char *link_now; /* of the peer */

const char *bw_peer_link(struct bw_ep *ep, bw_peer_no peer)
{
	return link_now;
}

void bws_attend_room(void)
{
}

void bws_attend(void)
{
}

static uint64_t crowded; /* until then */

void bws_crowded(uint64_t until)
{
	crowded = until;
}

void bws_lose(struct bws_conn *c)
{
}

void bws_wake(struct bws_conn *c, uint32_t what)
{
}

void bws_watch_changed(struct bws_conn *c)
{
}

void bws_watch_more(struct bws_conn *c)
{
}

static struct bws_conn *paired(uint32_t peer_id)
{
	struct bws_conn *c = bws_conn_new(-1, true);

	assert_non_null(c);
	c->paired = true;
	c->peer_id = peer_id;
	return c;
}

static int begin(void **state)
{
	static char ep;

	bws_real_load();
	memset(told, 0, sizeof(told));
	answer = tells = 0;
	breaks = NULL;
	atomic_store(&bws.ep, (struct bw_ep *)&ep);
	return bws_conn_init() ? 0 : -1;
}

/* libbeowire has no room: all three are to be told of later. The one in the middle ends, and its
 * place is another connection's. */
static void retry__survives_a_place_that_is_used_again(void **state)
{
	struct bws_conn *c[3], *again;

	answer = -EAGAIN;
	for (uint32_t i = 0; i < 3; i++) {
		c[i] = paired(i + 1);
		c[i]->owed = BWS_OWE_CREDIT;
		bws_push(c[i]);
	}
	bws_conn_free(c[1]);
	again = paired(9);
	assert_ptr_equal(again, c[1]);
	again->owed = BWS_OWE_CREDIT;
	bws_push(again);
	answer = 1;
	bws_push_all();
	assert_int_equal(tells, 3);
	assert_int_equal(told[0] + told[1] + told[2], 1 + 3 + 9);
	assert_false(bws_push_waits());
	for (int i = 0; i < 3; i++)
		bws_conn_free(c[i]);
}

/* Handlers run while it sends: one ends the pair. What is left is for nobody. */
static void push__of_one_that_ends_meanwhile(void **state)
{
	static const uint8_t bytes[3 * BWS_PIECE];
	struct bws_conn *c = paired(1);

	answer = -EAGAIN;
	c->tx.way = BWS_BW;
	sent = 0;
	bws_tx_add(c, bytes, sizeof(bytes));
	answer = 1;
	breaks = c;
	bws_push_all();
	assert_int_equal(c->error, ECONNRESET);
	assert_int_equal(tells, 1);
	bws_conn_free(c);
}

/* And what there was no room for is owed to nobody. */
static void push__owes_nothing_to_one_that_ends_meanwhile(void **state)
{
	struct bws_conn *c = paired(1);

	answer = -EAGAIN;
	c->owed = BWS_OWE_RETURN;
	breaks = c;
	bws_push(c);
	assert_int_equal(c->owed, 0);
	bws_conn_free(c);
}

/* An end is no reason to tell anybody anything. */
static void retry__of_an_ended_connection_is_none(void **state)
{
	struct bws_conn *c = paired(1);

	answer = -EAGAIN;
	c->owed = BWS_OWE_CREDIT;
	bws_push(c);
	assert_true(bws_push_waits());
	bws_conn_free(c);
	assert_false(bws_push_waits());
}

/* What a queue takes of the memory, beside its bytes. */
static uint64_t memory_of(const struct bws_queue *q)
{
	uint64_t bytes = 0;

	for (const struct bws_piece *p = q->first; p; p = p->next)
		bytes += sizeof(*p) + p->room;
	return bytes;
}

/* A peer who sends the window byte by byte, and whose program does not read. */
static void pieces__of_a_byte_need_little_memory(void **state)
{
	struct bws_conn *c = paired(1);
	uint64_t i;

	bws_rx_ready(c);
	bws_rx_switch(c, c->rx.epoch, 0);
	for (i = 0; i < BWS_WINDOW; i++)
		bws_rx_data(c, i, &(uint8_t){(uint8_t)(i * i)}, 1);
	assert_int_equal(c->error, 0);
	assert_int_equal(c->rx.next, BWS_WINDOW);
	assert_true(memory_of(&c->rx.queue) < 2 * BWS_WINDOW);
	i = 0;
	for (struct bws_piece *p = c->rx.queue.first; p; p = p->next) {
		assert_int_equal(p->off, i);
		for (uint32_t k = 0; k < p->len; k++, i++)
			assert_int_equal(p->data[k], (uint8_t)(i * i));
	}
	assert_int_equal(i, BWS_WINDOW);
	/* One more is against the rules. */
	bws_rx_data(c, i, "x", 1);
	assert_int_equal(c->error, ECONNRESET);
	bws_conn_free(c);
}

/* A program that sends byte by byte to a peer who takes nothing: each is sent once, and all are
 * kept. */
static void pieces__that_wait_for_the_peer_need_little_memory(void **state)
{
	struct bws_conn *c = paired(1);
	uint64_t i;

	answer = 1;
	c->tx.epoch = 1;
	bws_tx_switch(c);
	sent = 0;
	for (i = 0; i < BWS_WINDOW; i++) {
		/* Now and then there is no room in between. */
		answer = i % 100 == 50 ? -EAGAIN : 1;
		assert_int_equal(bws_tx_add(c, &(uint8_t){(uint8_t)i}, 1), 1);
	}
	assert_int_equal(bws_tx_add(c, "x", 1), 0);
	assert_int_equal(sent, BWS_WINDOW);
	assert_true(memory_of(&c->tx.queue) < 2 * BWS_WINDOW);
	bws_tx_taken(c, BWS_WINDOW / 2);
	assert_int_equal(bws_tx_room(c), BWS_WINDOW / 2);
	assert_true(memory_of(&c->tx.queue) < BWS_WINDOW);
	bws_conn_free(c);
}

/* The peer's process leaves the connection: it may be offered to whoever has it then. Nobody is
 * asked anew for one that the program has closed; it has its minute. */
static void orphan__is_not_offered_anew(void **state)
{
	uint8_t final = 1;

	for (int i = 0; i < 2; i++) {
		struct bws_conn *c = paired(1);
		struct bw_message m = {
			.code = BWS_RETURN, .tag = (uint64_t)c->id << 32, .data = &final, .len = 1};

		answer = 1;
		offers = 0;
		c->orphan = i;
		bws_flow_handlers.message(NULL, &m);
		assert_false(c->paired);
		assert_int_equal(offers, !i);
		bws_conn_free(c);
	}
}

/* ---- who says it ---- */

static void says(struct bws_conn *c, enum bws_code code, uint64_t imm)
{
	struct bw_message m = {
		.peer = c->peer, .code = (uint8_t)code, .tag = (uint64_t)c->id << 32, .imm = imm};

	codes = 0;
	bws_flow_handlers.message(NULL, &m);
}

/* Both directions by Beowire, nothing untaken. */
static struct bws_conn *switched(void)
{
	struct bws_conn *c = paired(1);

	answer = 1;
	bws_rx_ready(c);
	bws_rx_switch(c, c->rx.epoch, 0);
	says(c, BWS_READY, 1);
	assert_int_equal(c->rx.way, BWS_BW);
	assert_int_equal(c->tx.way, BWS_BW);
	return c;
}

/* A connection that the peer FOUND has offered, or whose offer it has answered. */
#define FOUND 5

static struct bws_conn *answered(void)
{
	struct bws_conn *c = bws_conn_new(-1, false);

	assert_non_null(c);
	c->answered = true;
	memset(c->nonce, 1, BWS_NONCE);
	memset(c->peer_nonce, 2, BWS_NONCE);
	finds = 0;
	found = FOUND;
	answer = 1;
	codes = 0;
	return c;
}

static const uint8_t both[2 * BWS_NONCE] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
					    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

static struct bw_message hello(const struct bws_conn *c, const uint8_t *nonces)
{
	return (struct bw_message){.peer = FOUND,
				   .code = BWS_HELLO,
				   .tag = (uint64_t)c->id << 32,
				   .imm = 9,
				   .data = nonces,
				   .len = 2 * BWS_NONCE};
}

static void assert_refused(struct bws_conn *c, const struct bw_message *m)
{
	uint64_t before = atomic_load(&bws.offers_refused);
	struct bw_message other = *m;

	bws_flow_handlers.message(NULL, m);
	other.code = BWS_WELCOME;
	bws_flow_handlers.message(NULL, &other);
	assert_false(c->paired);
	assert_false(c->proven);
	assert_int_equal(c->peer_id, 0);
	assert_int_equal(codes, 0);
	assert_int_equal(atomic_load(&bws.offers_refused), before + 2);
}

static void hello__has_both_nonces(void **state)
{
	struct bws_conn *c = answered();
	struct bw_message m;
	uint8_t bad[2 * BWS_NONCE + 1];

	for (size_t i = 0; i < sizeof(both); i++) {
		memcpy(bad, both, sizeof(both));
		bad[i] ^= 0x80;
		m = hello(c, bad);
		assert_refused(c, &m);
	}
	/* The peer's alone, ours alone, and the other way round. */
	memset(bad, 2, sizeof(bad));
	m = hello(c, bad);
	assert_refused(c, &m);
	memset(bad, 1, sizeof(bad));
	assert_refused(c, &m);
	memset(bad + BWS_NONCE, 2, BWS_NONCE);
	assert_refused(c, &m);
	memcpy(bad, both, sizeof(both));
	bad[2 * BWS_NONCE] = 0;
	for (m.len = 0; m.len <= sizeof(bad); m.len++) {
		if (m.len != sizeof(both))
			assert_refused(c, &m);
	}
	bws_conn_free(c);
}

static void hello__names_the_connection(void **state)
{
	struct bws_conn *c = answered();
	struct bw_message m = hello(c, both);

	m.imm = 0;
	assert_refused(c, &m);
	m.imm = 1ull << 32;
	assert_refused(c, &m);
	bws_conn_free(c);
}

static void hello__is_of_the_endpoint_that_was_named(void **state)
{
	struct bws_conn *c = answered();
	struct bw_message m = hello(c, both);

	m.peer = FOUND + 1;
	assert_refused(c, &m);
	m.peer = FOUND;
	finds = -ENOENT;
	assert_refused(c, &m);
	bws_conn_free(c);
}

/* Nobody is expected: no offer was answered, or all is settled. */
static void hello__is_expected(void **state)
{
	struct bws_conn *c = answered();
	struct bw_message m = hello(c, both);

	c->answered = false;
	bws_flow_handlers.message(NULL, &m);
	assert_false(c->paired);
	c->answered = c->orphan = true;
	bws_flow_handlers.message(NULL, &m);
	assert_false(c->paired);
	c->orphan = false;
	bws_flow_handlers.message(NULL, &m);
	assert_true(c->paired);
	assert_int_equal(c->peer, FOUND);
	assert_int_equal(c->peer_id, 9);
	assert_true(codes & 1u << BWS_WELCOME);
	m.imm = 10;
	c->answered = true;
	bws_flow_handlers.message(NULL, &m);
	assert_int_equal(c->peer_id, 9);
	bws_conn_free(c);
}

/* This end stood still, and has offered anew before it saw that it was welcome. */
static void welcome__may_come_late(void **state)
{
	struct bws_conn *c = answered();
	struct bw_message m = hello(c, both);
	uint8_t bad[2 * BWS_NONCE];

	memcpy(c->old_nonce, c->nonce, BWS_NONCE);
	memcpy(c->old_peer_nonce, c->peer_nonce, BWS_NONCE);
	memset(c->nonce, 3, BWS_NONCE);
	c->answered = false;
	c->retired = c->unwelcomed = true;
	c->tx.epoch = 7;		     /* of a READY before */
	bws_flow_handlers.message(NULL, &m); /* a HELLO would be somebody else's */
	assert_false(c->paired);
	m.code = BWS_WELCOME;
	for (size_t i = 0; i < sizeof(both); i++) {
		memcpy(bad, both, sizeof(both));
		bad[i] ^= 0x80;
		m.data = bad;
		bws_flow_handlers.message(NULL, &m);
		assert_false(c->paired);
	}
	m.data = both;
	bws_flow_handlers.message(NULL, &m);
	assert_true(c->paired && c->proven);
	assert_false(c->retired || c->unwelcomed);
	assert_int_equal(c->tx.epoch, 0);
	assert_int_equal(c->peer_id, 9);
	assert_memory_equal(c->nonce, both + BWS_NONCE, BWS_NONCE);
	assert_memory_equal(c->peer_nonce, both, BWS_NONCE);
	bws_conn_free(c);
}

/* The nonces of a time that is over are no welcome. */
static void welcome__is_of_no_time_that_is_over(void **state)
{
	struct bws_conn *c = answered();
	struct bw_message m = hello(c, both);

	memcpy(c->old_nonce, c->nonce, BWS_NONCE);
	memcpy(c->old_peer_nonce, c->peer_nonce, BWS_NONCE);
	memset(c->nonce, 3, BWS_NONCE);
	c->retired = true;
	m.code = BWS_WELCOME;
	assert_refused(c, &m);
	bws_conn_free(c);
}

/* It was to stay on TCP while its peer was asked. */
static void hello__leaves_the_reason_for_tcp(void **state)
{
	struct bws_conn *c = answered();
	struct bw_message m = hello(c, both);

	c->pinned = true;
	c->why = "a reason";
	bws_flow_handlers.message(NULL, &m);
	assert_true(c->paired);
	assert_string_equal(c->why, "a reason");
	bws_conn_free(c);
}

/* The names of connections are no secret. */
static void paired__hears_its_peer_alone(void **state)
{
	struct bws_conn *c = switched();
	struct bw_message m = {.peer = c->peer + 1,
			       .code = BWS_DATA,
			       .tag = (uint64_t)c->id << 32,
			       .data = "x",
			       .len = 1};

	bws_flow_handlers.message(NULL, &m);
	assert_int_equal(c->rx.next, 0);
	m.code = BWS_RETURN;
	bws_flow_handlers.message(NULL, &m);
	assert_true(c->tx.way == BWS_BW);
	m.code = BWS_DATA;
	m.peer = c->peer;
	bws_flow_handlers.message(NULL, &m);
	assert_int_equal(c->rx.next, 1);
	/* Nor who was its peer until it was lost. */
	c->peer_id = 0;
	m.imm = 1;
	bws_flow_handlers.message(NULL, &m);
	assert_int_equal(c->rx.next, 1);
	bws_conn_free(c);
}

/* ---- the window ---- */

static uint8_t bytes[BWS_PIECE + 1];

/* Receive up to this offset. */
static void take_in(struct bws_conn *c, uint64_t to)
{
	while (c->rx.next < to) {
		uint64_t n = to - c->rx.next < BWS_PIECE ? to - c->rx.next : BWS_PIECE;

		bws_rx_data(c, c->rx.next, bytes, n);
		assert_int_equal(c->error, 0);
	}
}

static void assert_breaks(struct bws_conn *c, uint64_t off, uint64_t len)
{
	uint64_t next = c->rx.next;

	bws_rx_data(c, off, bytes, len);
	assert_int_equal(c->error, ECONNRESET);
	assert_int_equal(c->rx.next, next);
	bws_conn_free(c);
}

static struct bws_conn *receives(uint64_t by_tcp)
{
	struct bws_conn *c = paired(1);

	answer = 1;
	bws_rx_ready(c);
	bws_rx_switch(c, c->rx.epoch, by_tcp);
	assert_true(c->rx.way == (by_tcp ? BWS_UNTIL : BWS_BW));
	return c;
}

static struct bws_conn *has(uint64_t n)
{
	struct bws_conn *c = receives(0);

	take_in(c, n);
	return c;
}

/* All but what comes next, of a length that there is, ends the connection. */
static void data__follows_what_came(void **state)
{
	assert_breaks(has(100), 101, 10);
	assert_breaks(has(100), 99, 10);
	assert_breaks(has(100), 0, 100);
	assert_breaks(has(100), 100 + (1ull << 32), 10);
	assert_breaks(has(100), 100, 0);
	assert_breaks(has(100), 100, BWS_PIECE + 1);
}

static void data__beyond_the_window_ends_it(void **state)
{
	struct bws_conn *c;

	assert_breaks(has(BWS_WINDOW), BWS_WINDOW, 1);
	assert_breaks(has(BWS_WINDOW - 10), BWS_WINDOW - 10, 11);
	assert_breaks(has(BWS_WINDOW - 10), BWS_WINDOW - 10, BWS_PIECE);
	/* What the program has taken makes room, and no more than that. */
	c = has(BWS_WINDOW);
	bws_rx_taken(c, 100);
	take_in(c, BWS_WINDOW + 100);
	assert_breaks(c, BWS_WINDOW + 100, 1);
	c = has(BWS_WINDOW);
	bws_rx_taken(c, 100);
	assert_breaks(c, BWS_WINDOW, 101);
}

/* The window begins with the first byte by Beowire, however much of TCP's is not read yet. */
static void data__behind_tcp_has_a_window_of_its_own(void **state)
{
	const uint64_t by_tcp = 3 * BWS_WINDOW;
	struct bws_conn *c = receives(by_tcp);

	take_in(c, by_tcp + BWS_WINDOW);
	assert_breaks(c, by_tcp + BWS_WINDOW, 1);
	c = receives(by_tcp);
	take_in(c, by_tcp + BWS_WINDOW);
	bws_rx_by_tcp(c, by_tcp);
	bws_rx_taken(c, 10);
	take_in(c, by_tcp + BWS_WINDOW + 10);
	assert_breaks(c, by_tcp + BWS_WINDOW + 10, 1);
}

/* A process and its child, which says what it has to say by a byte, and ends when told. */
struct child {
	pid_t pid;
	int says, told;
};

static void child_says(int fd, uint32_t what)
{
	if (write(fd, &what, sizeof(what)) != sizeof(what))
		_exit(1);
}

static uint32_t child_said(const struct child *c)
{
	uint32_t what;

	assert_int_equal(read(c->says, &what, sizeof(what)), sizeof(what));
	return what;
}

static void child_waits(int fd)
{
	char byte;

	if (read(fd, &byte, 1) < 0)
		_exit(1);
}

static void child_ends(const struct child *c)
{
	int status;

	close(c->told);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_int_equal(status, 0);
	close(c->says);
}

static struct child child_of(void (*run)(struct bws_conn *c, int says, int told),
			     struct bws_conn *conn)
{
	int says[2], told[2];
	struct child c;

	assert_int_equal(pipe(says) | pipe(told), 0);
	if (conn)
		bws_conn_forking(conn);
	c.pid = fork();
	if (!c.pid) {
		close(told[1]);
		bws_conn_in_child();
		if (conn)
			bws_conn_inherit(conn);
		run(conn, says[1], told[0]);
		_exit(0);
	}
	close(says[1]);
	close(told[0]);
	c.says = says[0];
	c.told = told[1];
	return c;
}

static void has_one(struct bws_conn *c, int says, int told)
{
	c = bws_conn_new(-1, true);
	child_waits(told);
	c->shared->tx = 77;
	child_says(says, c->index);
}

/* Servers that fork first, and accept then. */
static void forked__connections_of_a_child_are_its_own(void **state)
{
	struct child child = child_of(has_one, NULL);
	struct bws_conn *c = bws_conn_new(-1, true);

	assert_int_equal(write(child.told, "x", 1), 1);
	assert_int_equal(child_said(&child), c->index);
	assert_int_equal(c->shared->tx, 0);
	child_ends(&child);
	bws_conn_free(c);
}

static void keeps_it(struct bws_conn *c, int says, int told)
{
	c->shared->tx = 1;
	child_says(says, c->index);
	child_waits(told);
}

/* A server that forks for each connection closes its own descriptor of it. */
static void forked__a_place_is_used_again_when_the_child_is_gone(void **state)
{
	struct bws_conn *c = bws_conn_new(-1, false), *other;
	struct bws_shared *shared = c->shared;
	uint32_t index = c->index;
	struct child child = child_of(keeps_it, c);

	assert_int_equal(child_said(&child), index);
	bws_conn_leave(c);
	bws_conn_free(c);
	other = bws_conn_new(-1, false);
	assert_int_not_equal(other->index, index);
	assert_int_equal(shared->tx, 1);
	child_ends(&child);
	c = bws_conn_new(-1, false);
	assert_int_equal(c->index, index);
	assert_int_equal(c->shared->tx, 0);
	bws_conn_free(c);
	bws_conn_free(other);
}

static void uses_it_again(struct bws_conn *c, int says, int told)
{
	struct bws_shared *shared = c->shared;
	uint32_t index = c->index;

	bws_conn_leave(c);
	bws_conn_free(c);
	c = bws_conn_new(-1, false);
	child_says(says, c->index == index && c->shared != shared);
}

static void forked__a_child_uses_what_it_inherited_again(void **state)
{
	struct bws_conn *c = bws_conn_new(-1, false);
	struct child child = child_of(uses_it_again, c);

	assert_int_equal(child_said(&child), 1);
	child_ends(&child);
	assert_true(bws_conn_alone(c));
	bws_conn_free(c);
}

/* Which link carries a connection is what libbeowire says when a direction of it leaves TCP. It
 * stays known once the peer is lost, of whom nothing is said any more. */
static void link__is_the_one_by_which_bytes_left_tcp(void **state)
{
	struct bws_conn *c = paired(1);

	link_now = "udp";
	bws_rx_ready(c);
	assert_null(c->link);
	bws_rx_switch(c, c->rx.epoch, 0);
	assert_string_equal(c->link, "udp");
	link_now = NULL;
	bws_flow_link(c);
	assert_string_equal(c->link, "udp");
	link_now = "kernel";
	c->tx.epoch = 1;
	bws_tx_switch(c);
	assert_string_equal(c->link, "kernel");
	bws_conn_free(c);
}

/* Parked means all the way back, on both sides, and calls that are the kernel's alone. */
static void parked__connections_are_on_tcp_until_further_notice(void **state)
{
	struct bws_conn *c = switched();

	codes = 0;
	bws_park(c, true);
	assert_int_equal(codes, 1u << BWS_RETURN | 1u << BWS_BACK | 1u << BWS_PARK);
	assert_int_equal(parks, 1);
	says(c, BWS_RETURN, 0);
	assert_true(bws_settled(c));
	assert_false(c->slow);
	/* The other side may have said so before it was told. */
	says(c, BWS_READY, 2);
	assert_int_equal(c->tx.way, BWS_TCP);
	says(c, BWS_RETURN, 0);
	bws_rx_ready(c);
	bws_tx_switch(c);
	assert_int_equal(codes, 0);
	assert_true(bws_settled(c));
	assert_false(c->slow);
	codes = 0;
	bws_park(c, false);
	assert_int_equal(codes, 1u << BWS_READY | 1u << BWS_PARK);
	assert_int_equal(parks, 0);
	says(c, BWS_READY, 3);
	assert_int_equal(c->tx.way, BWS_BW);
	bws_conn_free(c);
}

static void parked__by_the_peer_asks_for_nothing(void **state)
{
	struct bws_conn *c = switched();

	says(c, BWS_PARK, 1);
	assert_int_equal(codes, 1u << BWS_RETURN);
	says(c, BWS_RETURN, 0);
	bws_rx_ready(c);
	assert_int_equal(codes, 0);
	assert_true(bws_settled(c));
	assert_false(c->slow);
	says(c, BWS_PARK, 0);
	assert_int_equal(codes, 1u << BWS_READY);
	says(c, BWS_READY, 2);
	assert_int_equal(c->tx.way, BWS_BW);
	bws_conn_free(c);
}

/* There is no room for any of it at first. */
static void parked__is_told_late(void **state)
{
	struct bws_conn *c = switched();

	answer = -EAGAIN;
	bws_park(c, true);
	answer = 1;
	codes = 0;
	bws_push_all();
	assert_int_equal(codes, 1u << BWS_RETURN | 1u << BWS_BACK | 1u << BWS_PARK);
	bws_conn_free(c);
}

/* Bytes that the peer has not taken when it happens go by TCP, ahead of the rest. */
static void parked__bytes_under_way_go_by_tcp(void **state)
{
	struct bws_conn *c;
	char got[8];
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	c = switched();
	c->fd = ends[0];
	sent = 0;
	assert_int_equal(bws_tx_add(c, "\0\1\2\3\4\5\6\7", 8), 8);
	bws_park(c, true);
	assert_int_equal(bws_tx_add(c, "x", 1), 1);
	/* Three of them were taken. */
	says(c, BWS_RETURN, 3);
	assert_true(bws_settled(c));
	assert_int_equal(read(ends[1], got, sizeof(got)), 6);
	assert_memory_equal(got, "\3\4\5\6\7x", 6);
	bws_conn_free(c);
	close(ends[0]);
	close(ends[1]);
}

/* A side that accepted tells the other one, which compares. */
static void crowded__is_what_a_peer_may_say(void **state)
{
	struct bws_conn *c = paired(1);
	uint64_t before = bw_clock_now();

	crowded = 0;
	says(c, BWS_CROWDED, 0);
	assert_in_range(crowded, before + BWS_CROWDED_THERE, bw_clock_now() + BWS_CROWDED_THERE);
	bws_conn_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(parked__connections_are_on_tcp_until_further_notice, begin),
		cmocka_unit_test_setup(parked__by_the_peer_asks_for_nothing, begin),
		cmocka_unit_test_setup(parked__is_told_late, begin),
		cmocka_unit_test_setup(parked__bytes_under_way_go_by_tcp, begin),
		cmocka_unit_test_setup(crowded__is_what_a_peer_may_say, begin),
		cmocka_unit_test_setup(link__is_the_one_by_which_bytes_left_tcp, begin),
		cmocka_unit_test_setup(hello__has_both_nonces, begin),
		cmocka_unit_test_setup(hello__names_the_connection, begin),
		cmocka_unit_test_setup(hello__is_of_the_endpoint_that_was_named, begin),
		cmocka_unit_test_setup(hello__is_expected, begin),
		cmocka_unit_test_setup(hello__leaves_the_reason_for_tcp, begin),
		cmocka_unit_test_setup(welcome__may_come_late, begin),
		cmocka_unit_test_setup(welcome__is_of_no_time_that_is_over, begin),
		cmocka_unit_test_setup(paired__hears_its_peer_alone, begin),
		cmocka_unit_test_setup(data__follows_what_came, begin),
		cmocka_unit_test_setup(data__beyond_the_window_ends_it, begin),
		cmocka_unit_test_setup(data__behind_tcp_has_a_window_of_its_own, begin),
		cmocka_unit_test_setup(retry__survives_a_place_that_is_used_again, begin),
		cmocka_unit_test_setup(pieces__of_a_byte_need_little_memory, begin),
		cmocka_unit_test_setup(pieces__that_wait_for_the_peer_need_little_memory, begin),
		cmocka_unit_test_setup(retry__of_an_ended_connection_is_none, begin),
		cmocka_unit_test_setup(push__of_one_that_ends_meanwhile, begin),
		cmocka_unit_test_setup(push__owes_nothing_to_one_that_ends_meanwhile, begin),
		cmocka_unit_test_setup(orphan__is_not_offered_anew, begin),
		cmocka_unit_test_setup(forked__connections_of_a_child_are_its_own, begin),
		cmocka_unit_test_setup(forked__a_place_is_used_again_when_the_child_is_gone, begin),
		cmocka_unit_test_setup(forked__a_child_uses_what_it_inherited_again, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
