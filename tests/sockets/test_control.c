/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whom the control thread looks at again, where the rest of the library is the test's. */
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

bool bws_core_open(void)
{
	return true;
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

int bws_offer_socket(int family, uint16_t port)
{
	return -1;
}

int bws_offer_receive(int fd, struct bws_from *from, uint8_t *bytes, size_t room)
{
	return -1;
}

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
NOTHING(bws_registrar_close, struct bws_registrar *r)
NOTHING(bws_registrar_serve, struct bws_registrar *r, const struct pollfd *fds, int n,
	void (*offer)(const struct bws_from *from, const uint8_t *bytes, size_t len))
NOTHING(bws_break, struct bws_conn *c, int error, const char *why)
NOTHING(bws_conn_settle, struct bws_conn *c)
NOTHING(bws_hosts_refused, const uint8_t *address, uint64_t now)
NOTHING(bws_lose, struct bws_conn *c)
NOTHING(bws_offer_pack, const struct bws_offer *o, uint8_t *bytes)
NOTHING(bws_push, struct bws_conn *c)
NOTHING(bws_tell, struct bws_conn *c)
NOTHING(bws_tx_switch, struct bws_conn *c)
NOTHING(bw_ep_addr, struct bw_ep *ep, struct bw_addr *addr)
NO(bws_name_mirrors, const struct bws_name *one, const struct bws_name *other)
NO(bws_offer_address, const void *name, uint8_t *address, uint16_t *port)
NO(bws_offer_refused, int fd, struct bws_from *by)
NO(bws_offer_send, const int *sockets, const uint8_t *here, const struct bws_from *to,
   const uint8_t *bytes)
NO(bws_offer_unpack, const uint8_t *bytes, size_t len, struct bws_offer *o)
NO(bws_push_waits, void)
NO(bws_tx_returned, struct bws_conn *c, uint64_t from)

uint64_t bws_hosts_plain(const uint8_t *address, uint64_t now)
{
	return 0;
}

int bw_peer_find(struct bw_ep *ep, const struct bw_addr *addr, bw_peer_no *peer)
{
	return -1;
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
	bws.pinned = NULL;
}

static bool has_begun(void)
{
	return looks == 2;
}

/* It looks when it begins, and as it was called. */
static int all(void **state)
{
	bws.pid = getpid();
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
	};

	return cmocka_run_group_tests(tests, all, NULL);
}
