/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is around the control thread in its tests; see control_stage.h. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "control_stage.h"
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

struct bws_core bws;
struct stage stage = {.due = UINT64_MAX, .mail = -1};

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void bws_lock(void)
{
	pthread_mutex_lock(&mutex);
}

void bws_unlock(void)
{
	pthread_mutex_unlock(&mutex);
}

int bw_ep_open(struct bw_ep **ep, const struct bw_ep_attr *attr, const char **why)
{
	stage.tries++;
	if (stage.tries == WATCHED) {
		bws_lock();
		stage.why_then = stage.conn[0].why;
		stage.offers_then = stage.conn[0].offers;
		bws_unlock();
	}
	*why = "it does not answer";
	if (stage.refused)
		return stage.refusals[--stage.refused];
	*ep = (struct bw_ep *)&bws;
	return 0;
}

void bws_sleepers_rouse(void)
{
	stage.roused++;
}

int bw_ep_fd(struct bw_ep *ep)
{
	return -1;
}

struct bws_conn *bws_conn_next(struct bws_conn *c)
{
	for (c = c ? c + 1 : stage.conn; c < stage.conn + 2; c++) {
		if (c->id)
			return c;
	}
	return NULL;
}

void bws_rx_ready(struct bws_conn *c)
{
	void (*what)(void) = stage.while_looking;

	stage.while_looking = NULL;
	if (what)
		what();
}

void bws_tx_drain(struct bws_conn *c)
{
	stage.drains += c == &stage.conn[0];
}

bool bws_settled(const struct bws_conn *c)
{
	return stage.settled;
}

uint64_t bws_rings_due(void)
{
	return stage.due;
}

bool bws_rings_here(uint64_t now)
{
	stage.due = UINT64_MAX;
	return stage.rings;
}

void bws_return(struct bws_conn *c, bool final)
{
	stage.ways_back += !final;
}

void bws_conn_free(struct bws_conn *c)
{
	c->id = 0;
}

void bws_push_all(void)
{
	stage.looks++;
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

int bws_offer_socket_own(int family)
{
	return family ? -1 : stage.mail;
}

int bws_offer_receive(int fd, struct bws_from *from, uint8_t *bytes, size_t room)
{
	uint64_t n;

	memset(from, 0, sizeof(*from));
	memcpy(from->address, stage.sender, sizeof(stage.sender));
	return read(fd, &n, sizeof(n)) == sizeof(n) ? BWS_OFFER_BYTES : -1;
}

bool bws_offer_unpack(const uint8_t *bytes, size_t len, struct bws_offer *o)
{
	*o = stage.came;
	stage.heard++;
	return !stage.malformed;
}

void bws_offer_pack(const struct bws_offer *o, uint8_t *bytes)
{
	stage.told[o->kind] = *o;
	stage.tells[o->kind]++;
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
	memcpy(from.address, stage.sender, sizeof(stage.sender));
	now = stage.offered;
	stage.offered = false;
	bws_unlock();
	if (now)
		offer(&from, NULL, 0);
	stage.handled += now;
}

void bws_registrar_close(struct bws_registrar *r)
{
	stage.closed++;
}

void bws_registrar_forget(struct bws_registrar *r)
{
	stage.closed++;
}

uint64_t bws_registrar_due(const struct bws_registrar *r, uint64_t at)
{
	return UINT64_MAX;
}

bool bws_tx_returned(struct bws_conn *c, uint64_t from)
{
	stage.returned++;
	c->tx.way = BWS_TCP;
	return true;
}

int bw_peer_forget(struct bw_ep *ep, const struct bw_addr *addr)
{
	stage.forgotten++;
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

int bw_peer_find(struct bw_ep *ep, const struct bw_addr *addr, bw_peer_no *peer)
{
	*peer = FOUND;
	return 0;
}
void bws_park(struct bws_conn *c, bool parked)
{
	c->parked = parked;
}

bool becomes(bool (*what)(void))
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
bool has_looked(void)
{
	return stage.looks > stage.looks_before;
}

static bool has_begun(void)
{
	return stage.looks == 2;
}

/* It looks when it begins, and as it was called. */
int stage_begin(void **state)
{
	bws.pid = getpid();
	stage.mail = eventfd(0, EFD_NONBLOCK);
	bws_real_load();
	bws_control_want(&stage.conn[1]);
	return becomes(has_begun) ? 0 : -1;
}
