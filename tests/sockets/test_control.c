/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whom the control thread looks at again, where the rest of the library is the test's. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "control.h"
#include "core.h"
#include "endpoint.h"
#include "flow.h"
#include "hosts.h"
#include "offer.h"
#include "owned.h"
#include "real.h"
#include "registrar.h"
#include "rings.h"
#include "tell.h"
#include "wait.h"

#define SOON_NS 20000000000ull /* less than an orphan's time */

struct bws_core bws;

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct bws_conn conn[2];
static struct bws_shared shared;
static void (*while_looking)(void); /* once, while the second one is looked at */
static uint32_t drains;		    /* looks at the first one */
static bool settled;		    /* is the first one */
static uint32_t looks;		    /* at all of them */
static bool rings;		    /* the program has some */
static uint64_t due = UINT64_MAX;   /* when it is to be looked for them again */
static uint32_t ways_back;

void bws_lock(void)
{
	pthread_mutex_lock(&mutex);
}

void bws_unlock(void)
{
	pthread_mutex_unlock(&mutex);
}

/* Opening fails by these errors, the last one first. */
static int refusals[8];
static int refused;
static uint32_t tries;
#define WATCHED 4 /* the try at which it is noted what the first connection is by then */
static const char *why_then;
static uint32_t offers_then;

int bw_ep_open(struct bw_ep **ep, const struct bw_ep_attr *attr, const char **why)
{
	tries++;
	if (tries == WATCHED) {
		bws_lock();
		why_then = conn[0].why;
		offers_then = conn[0].offers;
		bws_unlock();
	}
	*why = "it does not answer";
	if (refused)
		return refusals[--refused];
	*ep = (struct bw_ep *)&bws;
	return 0;
}

static uint32_t roused; /* times that sleepers were told of an endpoint */

void bws_sleepers_rouse(void)
{
	roused++;
}

int bw_ep_fd(struct bw_ep *ep)
{
	return -1;
}

struct bws_conn *bws_conn_next(struct bws_conn *c)
{
	for (c = c ? c + 1 : conn; c < conn + 2; c++) {
		if (c->id)
			return c;
	}
	return NULL;
}

void bws_rx_ready(struct bws_conn *c)
{
	void (*what)(void) = while_looking;

	while_looking = NULL;
	if (what)
		what();
}

void bws_tx_drain(struct bws_conn *c)
{
	drains += c == &conn[0];
}

bool bws_settled(const struct bws_conn *c)
{
	return settled;
}

uint64_t bws_rings_due(void)
{
	return due;
}

bool bws_rings_here(uint64_t now)
{
	due = UINT64_MAX;
	return rings;
}

void bws_return(struct bws_conn *c, bool final)
{
	ways_back += !final;
}

void bws_conn_free(struct bws_conn *c)
{
	c->id = 0;
}

void bws_push_all(void)
{
	looks++;
}

int bws_own_eventfd(unsigned int count, int flags)
{
	return eventfd(count, flags);
}

int bws_own_close(int fd)
{
	return 0;
}

bool bws_conn_alone(struct bws_conn *c)
{
	return true;
}

uint64_t bws_registrar_next(const struct bws_registrar *r)
{
	return UINT64_MAX;
}

int bws_registrar_fds(struct bws_registrar *r, struct pollfd *fds)
{
	return 0;
}

/* The peer's datagrams: one at a time. What comes of offers comes by the registrar. */
static int mail = -1;
static bool offered;
static struct bws_offer came, told[BWS_OFFER_KINDS];
static uint32_t tells[BWS_OFFER_KINDS];
static uint32_t forgotten, returned, closed;
static uint8_t sender[16]; /* whose datagrams they are */
static _Atomic uint32_t heard;
static _Atomic uint32_t handled; /* of the registrar's */

int bws_offer_socket(int family, uint16_t port)
{
	return family ? -1 : mail;
}

int bws_offer_receive(int fd, struct bws_from *from, uint8_t *bytes, size_t room)
{
	uint64_t n;

	memset(from, 0, sizeof(*from));
	memcpy(from->address, sender, sizeof(sender));
	return read(fd, &n, sizeof(n)) == sizeof(n) ? BWS_OFFER_BYTES : -1;
}

static bool malformed;

bool bws_offer_unpack(const uint8_t *bytes, size_t len, struct bws_offer *o)
{
	*o = came;
	heard++;
	return !malformed;
}

void bws_offer_pack(const struct bws_offer *o, uint8_t *bytes)
{
	told[o->kind] = *o;
	tells[o->kind]++;
}

bool bws_name_mirrors(const struct bws_name *one, const struct bws_name *other)
{
	return true;
}

void bws_registrar_serve(struct bws_registrar *r, const struct pollfd *fds, int n,
			 void (*offer)(const struct bws_from *from, const uint8_t *bytes,
				       size_t len))
{
	struct bws_from from = {.port = 1};
	bool now;

	/* The next one may come as soon as this one is handled. */
	bws_lock();
	memcpy(from.address, sender, sizeof(sender));
	now = offered;
	offered = false;
	bws_unlock();
	if (now)
		offer(&from, NULL, 0);
	handled += now;
}

void bws_registrar_close(struct bws_registrar *r)
{
	closed++;
}

void bws_registrar_forget(struct bws_registrar *r)
{
	closed++;
}

uint64_t bws_registrar_due(const struct bws_registrar *r, uint64_t at)
{
	return UINT64_MAX;
}

bool bws_tx_returned(struct bws_conn *c, uint64_t from)
{
	returned++;
	c->tx.way = BWS_TCP;
	return true;
}

int bw_peer_forget(struct bw_ep *ep, const struct bw_addr *addr)
{
	forgotten++;
	return 0;
}

const struct bw_handlers bws_flow_handlers;

/* None of these has anything to do here. */
#define NOTHING(name, ...)                                                                         \
	void name(__VA_ARGS__)                                                                     \
	{                                                                                          \
	}
#define NO(name, ...)                                                                              \
	bool name(__VA_ARGS__)                                                                     \
	{                                                                                          \
		return false;                                                                      \
	}

NOTHING(bws_registrar_init, struct bws_registrar *r)
NOTHING(bws_registrar_seek, struct bws_registrar *r, uint64_t now)
NOTHING(bws_break, struct bws_conn *c, int error, const char *why)
NOTHING(bws_conn_settle, struct bws_conn *c)
NOTHING(bws_hosts_refused, const uint8_t *address, uint64_t now)
NOTHING(bws_push, struct bws_conn *c)
NOTHING(bws_queue_clear, struct bws_queue *q)
NOTHING(bws_wake, struct bws_conn *c, uint32_t what)
NOTHING(bws_watch_changed, struct bws_conn *c)
NOTHING(bws_tell, struct bws_conn *c)
NOTHING(bws_tx_switch, struct bws_conn *c)
NOTHING(bw_ep_addr, struct bw_ep *ep, struct bw_addr *addr)
NO(bws_offer_address, const void *name, uint8_t *address, uint16_t *port)
NO(bws_offer_refused, int fd, struct bws_from *by)
NO(bws_offer_send, const int *sockets, const uint8_t *here, const struct bws_from *to,
   const uint8_t *bytes)
NO(bws_push_waits, void)

uint64_t bws_hosts_plain(const uint8_t *address, uint64_t now)
{
	return 0;
}

#define FOUND 7

int bw_peer_find(struct bw_ep *ep, const struct bw_addr *addr, bw_peer_no *peer)
{
	*peer = FOUND;
	return 0;
}

/* The first one is an orphan that has to wait for its peer; the second one is in order. */
static void begin(void (*what)(void))
{
	bws_lock();
	memset(conn, 0, sizeof(conn));
	conn[0].id = 1;
	conn[0].fd = -1;
	conn[0].orphan = true;
	conn[0].offer_at = bw_clock_now() + BWS_ORPHAN;
	conn[1].id = 2;
	conn[1].fd = -1;
	conn[1].paired = conn[1].rx.open = true;
	conn[1].tx.way = BWS_BW;
	settled = false;
	drains = 0;
	while_looking = what;
	bws_attend();
	bws_unlock();
}

static bool becomes(bool (*what)(void))
{
	uint64_t until = bw_clock_now() + SOON_NS;
	bool so = false;

	while (!so && bw_clock_now() < until) {
		usleep(1000);
		bws_lock();
		so = what();
		bws_unlock();
	}
	return so;
}

static void orphan_settles(void)
{
	settled = true;
	bws_attend();
}

static bool is_gone(void)
{
	return !conn[0].id;
}

/* A message that comes while another connection is looked at changes one that was looked at
 * before. */
static void control__looks_again_at_who_changed_meanwhile(void **state)
{
	begin(orphan_settles);
	assert_true(becomes(is_gone));
}

static void begins_to_drain(void)
{
	drains = 0;
	bws_attend_room();
}

static bool is_looked_at(void)
{
	return !while_looking && drains > 0;
}

static void control__looks_again_at_who_waits_for_room(void **state)
{
	begin(begins_to_drain);
	assert_true(becomes(is_looked_at));
}

static bool expects_a_switch(void)
{
	return atomic_load(&bws.pairing);
}

static bool expects_none(void)
{
	return !atomic_load(&bws.pairing);
}

/* The peer's end never leaves TCP. Waits in epoll_wait() are the kernel's then, after a while. */
static void control__does_not_expect_a_switch_for_ever(void **state)
{
	bws_lock();
	memset(conn, 0, sizeof(conn));
	conn[1].id = 2;
	conn[1].fd = -1;
	conn[1].paired = true;
	bws_attend();
	bws_unlock();
	assert_true(becomes(expects_a_switch));
	assert_true(becomes(expects_none));
}

static bool is_offered(void)
{
	return conn[0].offers > 0;
}

static bool stay_on_tcp(void)
{
	return conn[0].pinned && conn[1].pinned && ways_back == 2 && bws.pinned;
}

/* A connection is to be offered, another one has left TCP. With rings neither is by Beowire. */
static void control__keeps_programs_with_rings_on_tcp(void **state)
{
	for (int i = 0; i < 2; i++) {
		bws_lock();
		memset(conn, 0, sizeof(conn));
		rings = i;
		ways_back = 0;
		for (int k = 0; k < 2; k++) {
			conn[k].id = k + 1;
			conn[k].fd = -1;
			conn[k].named = conn[k].connector = true;
		}
		conn[0].candidate = true;
		conn[1].paired = conn[1].rx.open = true;
		conn[1].tx.way = BWS_BW;
		bws_attend();
		bws_unlock();
		assert_true(becomes(rings ? stay_on_tcp : is_offered));
		assert_int_equal(conn[0].offers > 0, !rings);
		assert_int_equal(conn[1].pinned, rings);
	}
	bws.pinned = NULL;
}

static bool has_gone_back(void)
{
	return conn[1].pinned && ways_back == 1;
}

/* It was offered before it had been looked, and nothing else happens. */
static void control__looks_for_rings_when_it_is_due(void **state)
{
	bws_lock();
	memset(conn, 0, sizeof(conn));
	ways_back = 0;
	conn[1].id = 2;
	conn[1].fd = -1;
	conn[1].paired = conn[1].rx.open = true;
	conn[1].tx.way = BWS_BW;
	rings = true;
	due = bw_clock_now() + 20000000;
	bws_attend();
	bws_unlock();
	assert_true(becomes(has_gone_back));
	rings = false;
	bws.pinned = NULL;
}

/* ---- the comparison with TCP ---- */

void bws_park(struct bws_conn *c, bool parked)
{
	c->parked = parked;
}

/* Twice as fast by TCP; asked each millisecond. */
static void moves(void)
{
	atomic_fetch_add(&shared.rx, conn[1].parked ? 20000 : 10000);
}

static bool is_parked(void)
{
	moves();
	return conn[1].parked;
}

static bool is_not_parked(void)
{
	moves();
	return !conn[1].parked;
}

static bool waits_for_the_result(void)
{
	moves();
	return conn[0].why && !strcmp(conn[0].why, BWS_WHY_PARKED);
}

static bool is_compared_no_more(void)
{
	moves();
	if (conn[1].parked)
		return false;
	bws.compare = BWS_COMPARE_NEVER;
	return true;
}

/* The second one is by Beowire, the first one is to be offered. */
static void compare(bool connector, enum bws_compare when)
{
	bws_lock();
	memset(conn, 0, sizeof(conn));
	for (int i = 0; i < 2; i++) {
		conn[i].id = i + 1;
		conn[i].fd = -1;
		conn[i].shared = &shared;
		conn[i].named = true;
		conn[i].connector = connector;
	}
	conn[1].paired = conn[1].rx.open = true;
	conn[1].rx.way = conn[1].tx.way = BWS_BW;
	settled = true;
	bws.compare = when;
	bws_attend();
	bws_unlock();
}

/* Also for connections that are to be offered, which stay on TCP while it is used. */
static void compare__is_for_all_connections(void **state)
{
	compare(true, BWS_COMPARE_ALWAYS);
	assert_true(becomes(is_parked));
	bws_lock();
	conn[0].candidate = true;
	bws_unlock();
	assert_true(becomes(waits_for_the_result));
	assert_true(becomes(is_not_parked));
	assert_true(becomes(is_parked));
	assert_true(becomes(is_compared_no_more));
}

/* Who accepted does not compare: two that do would measure each other. */
static bool tells_of_it(void)
{
	return conn[1].owed & BWS_OWE_CROWDED && !conn[1].parked;
}

static void compare__is_asked_for_by_who_accepted(void **state)
{
	compare(false, BWS_COMPARE_CROWDED);
	bws_crowded(bw_clock_now() + SOON_NS);
	assert_true(becomes(tells_of_it));
	bws.compare = BWS_COMPARE_NEVER;
}

static bool compares_the_other(void)
{
	atomic_fetch_add(&shared.rx, conn[0].parked ? 20000 : 10000);
	return conn[0].parked;
}

static bool compares_no_more(void)
{
	if (!compares_the_other())
		bws.compare = BWS_COMPARE_NEVER;
	return bws.compare == BWS_COMPARE_NEVER;
}

/* A process that has connected and accepted. */
static void compare__is_not_for_who_accepted(void **state)
{
	compare(false, BWS_COMPARE_ALWAYS);
	bws_lock();
	conn[0].connector = conn[0].paired = conn[0].rx.open = true;
	conn[0].rx.way = conn[0].tx.way = BWS_BW;
	bws_unlock();
	assert_true(becomes(compares_the_other));
	assert_false(conn[1].parked);
	assert_true(becomes(compares_no_more));
}

/* ---- the endpoint ---- */

/* The service is not there, does not answer, and then does. It costs a try now and then. What is
 * meanwhile is noted by the thread that tries: this one may come too late to see it. */
static void endpoint__is_tried_until_it_is_there(void **state)
{
	bws_lock();
	memset(conn, 0, sizeof(conn));
	conn[0].id = 1;
	conn[0].fd = -1;
	conn[0].named = conn[0].connector = conn[0].candidate = true;
	atomic_store(&bws.ep, NULL);
	refused = 4;
	refusals[3] = -EACCES;
	refusals[2] = -ECONNREFUSED;
	refusals[1] = refusals[0] = -ETIMEDOUT;
	tries = roused = 0;
	bws_attend();
	bws_unlock();
	assert_true(becomes(is_offered));
	assert_int_equal(tries, 5);
	assert_int_equal(roused, 1);
	assert_string_equal(why_then, "no endpoint yet");
	assert_int_equal(offers_then, 0);
	assert_true(bws_endpoint_due() == UINT64_MAX);
}

static uint32_t looks_before;

static bool has_looked(void)
{
	return looks > looks_before;
}

/* Nothing of the program could use one: no try, and the thread sleeps. */
static void endpoint__is_not_tried_for_nobody(void **state)
{
	bws_lock();
	memset(conn, 0, sizeof(conn));
	conn[0].id = 1;
	conn[0].fd = -1;
	conn[0].named = conn[0].pinned = conn[0].candidate = true;
	atomic_store(&bws.ep, NULL);
	tries = 0;
	looks_before = looks;
	bws_attend();
	bws_unlock();
	assert_true(becomes(has_looked));
	bws_lock();
	looks_before = looks;
	bws_unlock();
	bws_control_want(&conn[0]);
	assert_true(becomes(has_looked));
	assert_int_equal(tries, 0);
	atomic_store(&bws.ep, (struct bw_ep *)&bws);
}

static bool is_given_up(void)
{
	return bws.ep_failed && closed;
}

/* With these settings there is none, ever. Others of the user have the port then. The thread ends:
 * the last test. */
static void endpoint__is_given_up_if_settings_are_wrong(void **state)
{
	bws_lock();
	memset(conn, 0, sizeof(conn));
	conn[0].id = 1;
	conn[0].fd = -1;
	conn[0].named = conn[0].candidate = true;
	atomic_store(&bws.ep, NULL);
	refused = 1;
	refusals[0] = -EINVAL;
	bws_attend();
	bws_unlock();
	assert_true(becomes(is_given_up));
	assert_true(bws_endpoint_due() == UINT64_MAX);
}

/* ---- loss ---- */

static bool astray; /* what comes by the registrar is no offer, and the other way round */

static void deliver(const struct bws_offer *o)
{
	const uint64_t one = 1;

	bws_lock();
	came = *o;
	if ((came.kind == BWS_OFFER) != astray)
		offered = true;
	else
		assert_int_equal(write(mail, &one, sizeof(one)), sizeof(one));
	bws_attend();
	bws_unlock();
}

static struct bws_offer letter(enum bws_offer_kind kind, uint8_t nonce, uint8_t to_nonce)
{
	struct bws_offer o = {.kind = kind};

	memset(o.nonce, nonce, sizeof(o.nonce));
	memset(o.to_nonce, to_nonce, sizeof(o.to_nonce));
	return o;
}

static void write_to_it(enum bws_offer_kind kind, uint8_t nonce, uint8_t to_nonce)
{
	struct bws_offer o = letter(kind, nonce, to_nonce);

	deliver(&o);
}

static void lose(bool connector, enum bws_way way)
{
	bws_lock();
	memset(conn, 0, sizeof(conn));
	memset(tells, 0, sizeof(tells));
	forgotten = returned = 0;
	conn[1].id = 2;
	conn[1].fd = -1;
	conn[1].named = conn[1].candidate = conn[1].paired = conn[1].proven = true;
	conn[1].connector = connector;
	conn[1].tx.way = way;
	conn[1].peer_at.port = 1;
	conn[1].shared = &shared;
	memset(conn[1].nonce, 1, BWS_NONCE);
	memset(conn[1].peer_nonce, 2, BWS_NONCE);
	bws_lose(&conn[1]);
	bws_unlock();
}

static bool says_what_it_has(void)
{
	return tells[BWS_RESCUE] > 0;
}

static bool knows_what_the_peer_has(void)
{
	return tells[BWS_RESCUED] > 0;
}

static bool is_over(void)
{
	return !conn[1].rescue;
}

static bool is_offered_again(void)
{
	return tells[BWS_OFFER] > 0;
}

/* Of one that is on TCP for good the loss is no news. */
static void lost__leaves_the_reason_for_tcp(void **state)
{
	lose(true, BWS_TCP);
	assert_string_equal(conn[1].why, "Beowire was lost");
	bws_lock();
	conn[1].paired = conn[1].pinned = true;
	conn[1].rescue = false;
	conn[1].why = "a reason";
	bws_lose(&conn[1]);
	assert_string_equal(conn[1].why, "a reason");
	conn[1].pinned = false;
	bws_unlock();
}

static void settle_it(void)
{
	write_to_it(BWS_RESCUE, 2, 1);
	assert_true(becomes(knows_what_the_peer_has));
	assert_false(is_over());
	write_to_it(BWS_RESCUED, 2, 1);
	assert_true(becomes(is_over));
	tells[BWS_RESCUED] = 0;
}

/* Once each knows what the other has taken. That the peer says so once more is acknowledged, and
 * nothing more. */
static void lost__is_offered_again(void **state)
{
	lose(true, BWS_BW);
	assert_true(becomes(says_what_it_has));
	assert_int_equal(tells[BWS_OFFER], 0);
	settle_it();
	assert_int_equal(returned, 1);
	assert_true(becomes(is_offered_again));
	assert_false(told[BWS_OFFER].nonce[0] == 1 && told[BWS_OFFER].nonce[1] == 1);
	bws_lock();
	conn[1].paired = true;
	conn[1].tx.way = BWS_BW;
	bws_unlock();
	write_to_it(BWS_RESCUE, 2, 1);
	assert_true(becomes(knows_what_the_peer_has));
	assert_int_equal(told[BWS_RESCUED].nonce[0], 1);
	assert_int_equal(told[BWS_RESCUED].to_nonce[0], 2);
	assert_int_equal(returned, 1);
	assert_int_equal(conn[1].losses, 1);
	assert_true(conn[1].tx.way == BWS_BW);
}

static uint32_t handled_before;

static bool is_heard(void)
{
	return handled > handled_before;
}

static bool is_answered(void)
{
	return tells[BWS_ACCEPT] > 0;
}

static void lost__answers_no_offer_before_that(void **state)
{
	lose(false, BWS_BW);
	assert_true(becomes(says_what_it_has));
	handled_before = handled;
	write_to_it(BWS_OFFER, 3, 0);
	assert_true(becomes(is_heard));
	assert_int_equal(tells[BWS_ACCEPT], 0);
	settle_it();
	write_to_it(BWS_OFFER, 3, 0);
	assert_true(becomes(is_answered));
	assert_int_equal(forgotten, 1);
	assert_int_equal(told[BWS_ACCEPT].to_nonce[0], 3);
	assert_int_equal(conn[1].old_peer_nonce[0], 2);
}

/* Then nothing else waits for it. */
static void lost__with_nothing_by_beowire_is_not_in_doubt(void **state)
{
	lose(true, BWS_TCP);
	assert_true(conn[1].rescue);
	assert_false(bws_conn_in_doubt(&conn[1]));
	lose(true, BWS_BW);
	assert_true(bws_conn_in_doubt(&conn[1]));
	bws_lock();
	memset(conn, 0, sizeof(conn));
	bws_unlock();
}

/* Each loss costs the program a stall: the next offer comes later and later. */
static void lost__again_and_again_is_offered_rarer(void **state)
{
	uint64_t span = 0, now;

	for (int i = 0; i < 8; i++) {
		bws_lock();
		memset(&conn[0], 0, sizeof(conn[0]));
		conn[0].losses = (uint32_t)i + 1;
		conn[0].rescue = true;
		now = bw_clock_now();
		bws_rescue_over(&conn[0]);
		assert_true(i > 4 || conn[0].offer_at - now > 4 * span);
		span = conn[0].offer_at - now;
		assert_true(span < 5000 * BWS_S);
		bws_unlock();
	}
}

/* ---- who says it ---- */

static uint32_t heard_before;

static bool has_heard(void)
{
	return heard > heard_before;
}

/* Have it handled: how many were refused. */
static uint64_t refusals_of(const struct bws_offer *o)
{
	uint64_t before = atomic_load(&bws.offers_refused);

	heard_before = heard;
	deliver(o);
	assert_true(becomes(has_heard));
	/* Its handling is followed by a look. */
	bws_lock();
	looks_before = looks;
	bws_attend();
	bws_unlock();
	assert_true(becomes(has_looked));
	return atomic_load(&bws.offers_refused) - before;
}

/* The second connection, of which nothing has left TCP; nobody is to offer it for now. */
static void have_one(bool connector)
{
	bws_lock();
	memset(conn, 0, sizeof(conn));
	memset(tells, 0, sizeof(tells));
	memset(sender, 0, sizeof(sender));
	returned = 0;
	conn[1].id = 2;
	conn[1].fd = -1;
	conn[1].named = conn[1].candidate = true;
	conn[1].connector = connector;
	conn[1].offers = 1;
	conn[1].offer_at = bw_clock_now() + BWS_ORPHAN;
	conn[1].shared = &shared;
	conn[1].peer_at.port = 1;
	memset(conn[1].nonce, 1, BWS_NONCE);
	bws_unlock();
}

/* Its name has another address as the peer's, if only in the last byte, or the first one. */
static void letter__from_another_address_is_refused(void **state)
{
	struct bws_offer o = letter(BWS_OFFER, 2, 0);

	for (int i = 0; i < 16; i += 15) {
		have_one(false);
		sender[i] = 1;
		assert_int_equal(refusals_of(&o), 1);
		assert_int_equal(tells[BWS_ACCEPT], 0);
		sender[i] = 0;
		assert_int_equal(refusals_of(&o), 0);
		assert_int_equal(tells[BWS_ACCEPT], 1);
	}
}

static void letter__of_another_form_is_refused(void **state)
{
	struct bws_offer offer = letter(BWS_OFFER, 2, 0), answer = letter(BWS_ACCEPT, 2, 1);

	have_one(false);
	malformed = true;
	assert_int_equal(refusals_of(&offer), 1);
	assert_int_equal(tells[BWS_ACCEPT], 0);
	have_one(true);
	assert_int_equal(refusals_of(&answer), 1);
	assert_false(conn[1].answered);
	malformed = false;
	assert_int_equal(refusals_of(&answer), 0);
	assert_true(conn[1].answered);
}

/* An answer that comes by the registrar, and an offer that does not, which has both nonces. */
static void letter__of_the_wrong_kind_is_refused(void **state)
{
	struct bws_offer answer = letter(BWS_ACCEPT, 2, 1), offer = letter(BWS_OFFER, 2, 1);

	astray = true;
	have_one(true);
	assert_int_equal(refusals_of(&answer), 1);
	assert_int_equal(tells[BWS_ACCEPT], 0);
	have_one(false);
	bws_lock();
	conn[1].paired = conn[1].proven = true;
	conn[1].tx.way = BWS_BW;
	memset(conn[1].peer_nonce, 2, BWS_NONCE);
	bws_unlock();
	assert_int_equal(refusals_of(&offer), 1);
	assert_int_equal(returned, 0);
	assert_false(conn[1].rescue);
	astray = false;
}

static void answer__has_the_nonce_of_the_offer(void **state)
{
	struct bws_offer right = letter(BWS_ACCEPT, 2, 1), o;

	have_one(true);
	for (int i = 0; i < BWS_NONCE; i++) {
		o = right;
		o.to_nonce[i] ^= 1;
		assert_int_equal(refusals_of(&o), 1);
		assert_false(conn[1].answered);
		assert_int_equal(conn[1].owed, 0);
	}
	sender[15] = 1;
	assert_int_equal(refusals_of(&right), 1);
	assert_false(conn[1].answered);
	sender[15] = 0;
	assert_int_equal(refusals_of(&right), 0);
	assert_true(conn[1].answered);
	assert_int_equal(conn[1].peer, FOUND);
	assert_int_equal(conn[1].owed, BWS_OWE_HELLO);
}

/* Each offer may have an answer, which may come when the next one is sent: it is of no use, but no
 * sign of a stranger either. */
static void answer__that_is_late_is_not_counted(void **state)
{
	struct bws_offer late = letter(BWS_ACCEPT, 2, 9), right = letter(BWS_ACCEPT, 2, 1);

	have_one(true);
	bws_lock();
	conn[1].awaited = 3;
	bws_unlock();
	assert_int_equal(refusals_of(&late), 0);
	assert_int_equal(refusals_of(&late), 0);
	assert_false(conn[1].answered);
	assert_int_equal(refusals_of(&late), 1);
	assert_false(conn[1].answered);
	assert_int_equal(refusals_of(&right), 0);
	assert_true(conn[1].answered);
}

/* The program was told that it has failed, and why: an answer that comes once more is not heard. */
static void answer__of_a_broken_one_is_not_heard(void **state)
{
	struct bws_offer right = letter(BWS_ACCEPT, 2, 1);

	have_one(true);
	bws_lock();
	conn[1].error = ECONNRESET;
	conn[1].why = "a reason";
	bws_unlock();
	assert_int_equal(refusals_of(&right), 0);
	assert_false(conn[1].answered);
	assert_int_equal(conn[1].owed, 0);
	assert_string_equal(conn[1].why, "a reason");
}

static void assert_undisturbed(void)
{
	assert_true(conn[1].paired);
	assert_false(conn[1].rescue);
	assert_true(conn[1].tx.way == BWS_BW);
	assert_int_equal(returned, 0);
	assert_int_equal(tells[BWS_RESCUED], 0);
}

/* By one bit of one nonce, by either one instead of both, and by what goes the other way. */
static void say_wrongly(uint8_t nonce, uint8_t to_nonce)
{
	struct bws_offer right = letter(BWS_RESCUE, nonce, to_nonce), o;

	for (int i = 0; i < 2 * BWS_NONCE; i++) {
		o = right;
		*(i < BWS_NONCE ? o.nonce + i : o.to_nonce + i - BWS_NONCE) ^= 1;
		assert_int_equal(refusals_of(&o), 1);
		assert_undisturbed();
	}
	o = letter(BWS_RESCUE, nonce, nonce);
	assert_int_equal(refusals_of(&o), 1);
	o = letter(BWS_RESCUE, to_nonce, to_nonce);
	assert_int_equal(refusals_of(&o), 1);
	o = letter(BWS_RESCUE, to_nonce, nonce);
	assert_int_equal(refusals_of(&o), 1);
	sender[0] = 1;
	assert_int_equal(refusals_of(&right), 1);
	sender[0] = 0;
	assert_undisturbed();
}

static void rescue__needs_both_nonces(void **state)
{
	struct bws_offer old = letter(BWS_RESCUE, 4, 3), now = letter(BWS_RESCUE, 2, 1);

	have_one(true);
	bws_lock();
	conn[1].paired = conn[1].proven = true;
	conn[1].tx.way = BWS_BW;
	memset(conn[1].peer_nonce, 2, BWS_NONCE);
	bws_unlock();
	say_wrongly(2, 1);
	/* No nonces are old ones yet, those of zeroes neither. */
	say_wrongly(4, 3);
	say_wrongly(0, 0);
	bws_lock();
	conn[1].retired = true;
	memset(conn[1].old_nonce, 3, BWS_NONCE);
	memset(conn[1].old_peer_nonce, 4, BWS_NONCE);
	bws_unlock();
	say_wrongly(4, 3);
	say_wrongly(2, 1);
	/* An old one and a new one. */
	say_wrongly(4, 1);
	say_wrongly(2, 3);
	assert_int_equal(refusals_of(&old), 0);
	assert_int_equal(tells[BWS_RESCUED], 1);
	tells[BWS_RESCUED] = 0;
	assert_undisturbed();
	assert_int_equal(refusals_of(&now), 0);
	assert_int_equal(tells[BWS_RESCUED], 1);
	assert_int_equal(returned, 1);
	assert_true(conn[1].rescue);
	bws_lock();
	memset(conn, 0, sizeof(conn));
	bws_unlock();
}

/* The program has closed it, and what it has sent is not all taken. */
static void rescue__is_of_closed_ones_as_well(void **state)
{
	struct bws_offer now = letter(BWS_RESCUE, 2, 1), offer = letter(BWS_OFFER, 3, 0);

	have_one(false);
	settled = false;
	bws_lock();
	conn[1].orphan = conn[1].paired = conn[1].proven = true;
	conn[1].tx.way = BWS_BW;
	memset(conn[1].peer_nonce, 2, BWS_NONCE);
	bws_unlock();
	assert_int_equal(refusals_of(&now), 0);
	assert_int_equal(tells[BWS_RESCUED], 1);
	assert_int_equal(returned, 1);
	write_to_it(BWS_RESCUED, 2, 1);
	assert_true(becomes(is_over));
	/* It is not offered any more. */
	refusals_of(&offer);
	assert_int_equal(tells[BWS_ACCEPT], 0);
	assert_int_equal(conn[1].id, 2);
	bws_lock();
	memset(conn, 0, sizeof(conn));
	bws_unlock();
}

static bool has_begun(void)
{
	return looks == 2;
}

/* It looks when it begins, and as it was called. */
static int all(void **state)
{
	bws.pid = getpid();
	mail = eventfd(0, EFD_NONBLOCK);
	bws_real_load();
	bws_control_want(&conn[1]);
	return becomes(has_begun) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control__looks_again_at_who_changed_meanwhile),
		cmocka_unit_test(control__looks_again_at_who_waits_for_room),
		cmocka_unit_test(control__does_not_expect_a_switch_for_ever),
		cmocka_unit_test(control__keeps_programs_with_rings_on_tcp),
		cmocka_unit_test(control__looks_for_rings_when_it_is_due),
		cmocka_unit_test(compare__is_for_all_connections),
		cmocka_unit_test(compare__is_asked_for_by_who_accepted),
		cmocka_unit_test(compare__is_not_for_who_accepted),
		cmocka_unit_test(lost__is_offered_again),
		cmocka_unit_test(lost__leaves_the_reason_for_tcp),
		cmocka_unit_test(lost__answers_no_offer_before_that),
		cmocka_unit_test(lost__with_nothing_by_beowire_is_not_in_doubt),
		cmocka_unit_test(lost__again_and_again_is_offered_rarer),
		cmocka_unit_test(letter__from_another_address_is_refused),
		cmocka_unit_test(letter__of_another_form_is_refused),
		cmocka_unit_test(letter__of_the_wrong_kind_is_refused),
		cmocka_unit_test(answer__has_the_nonce_of_the_offer),
		cmocka_unit_test(answer__that_is_late_is_not_counted),
		cmocka_unit_test(answer__of_a_broken_one_is_not_heard),
		cmocka_unit_test(rescue__needs_both_nonces),
		cmocka_unit_test(rescue__is_of_closed_ones_as_well),
		cmocka_unit_test(endpoint__is_tried_until_it_is_there),
		cmocka_unit_test(endpoint__is_not_tried_for_nobody),
		cmocka_unit_test(endpoint__is_given_up_if_settings_are_wrong),
	};

	return cmocka_run_group_tests(tests, all, NULL);
}
