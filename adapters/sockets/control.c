/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The control thread. See control.h. */
#include "control.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "choice.h"
#include "clock.h"
#include "endpoint.h"
#include "flow.h"
#include "hosts.h"
#include "owned.h"
#include "real.h"
#include "registrar.h"
#include "rings.h"
#include "tell.h"
#include "wait.h"

#define BWS_CONTROL_BUSY    (2 * BWS_MS)   /* between two looks while something waits for room */
#define BWS_CONTROL_IDLE    (100 * BWS_MS) /* else, while nobody tells us of a change */
#define BWS_CONTROL_SLOW    (1 * BWS_S)	   /* the same, of one that has not left TCP for long */
#define BWS_CONTROL_NEVER   UINT64_MAX
#define BWS_CONTROL_LATE    BWS_S /* who wakes up so late stood still, and the peer perhaps too */
#define BWS_CONTROL_PAIRING (5 * BWS_S)	  /* it is expected to leave TCP */
#define BWS_CONTROL_FIRST   (5 * BWS_MS)  /* before the first offer */
#define BWS_CONTROL_RESCUE  (50 * BWS_MS) /* between two tries to tell the peer */
#define BWS_CONTROL_STACK   (256u << 10)
#define BWS_CONTROL_DRAIN   64 /* connections whose sockets are waited for at a time */

static struct {
	_Atomic bool started;
	int wake;
	int offers[2]; /* UDP: IPv4, IPv6 */
	struct bws_registrar registrar;
	bool roused;  /* and has not begun to look since */
	bool looking; /* this thread, with the lock */
	bool wanting; /* some connection could leave TCP if there were an endpoint */
	bool room;    /* while it looked, another one than was looked at began to wait for room */
	struct bws_choice choice;
	uint64_t moved;		    /* bytes that connections have moved which are compared */
	_Atomic uint64_t crowded;   /* clock, ns: until then cores are taken to be short */
	_Atomic bool crowded_rouse; /* this thread wants to be roused when they are */
} bws_control = {.wake = -1, .offers = {-1, -1}};

/* When an offer goes without an answer: the next one after this. */
static uint64_t bws_control_pause(uint32_t offers)
{
	static const uint32_t ms[] = {20, 50, 100, 300, 1000, 5000, 30000};
	uint32_t last = sizeof(ms) / sizeof(ms[0]) - 1;

	return ms[offers < last ? offers : last] * BWS_MS;
}

void bws_reoffer(struct bws_conn *c)
{
	c->offers = 1;
	c->offer_at = bw_clock_now() + bws_control_pause(c->offers);
	bws_attend();
}

bool bws_control_name(struct bws_conn *c)
{
	struct sockaddr_storage here, there;
	socklen_t here_len = sizeof(here), there_len = sizeof(there);

	if (c->named)
		return true;
	if (getsockname(c->fd, (struct sockaddr *)&here, &here_len) ||
	    getpeername(c->fd, (struct sockaddr *)&there, &there_len) ||
	    !bws_offer_address(&here, c->name.here, &c->name.here_port) ||
	    !bws_offer_address(&there, c->name.there, &c->name.there_port))
		return false;
	c->named = true;
	if (!bws.within && !memcmp(c->name.here, c->name.there, sizeof(c->name.here))) {
		c->pinned = true;
		c->why = "within the node";
	}
	/* An address of one link only names another interface on each node. */
	if (c->name.there[0] == 0xFE && (c->name.there[1] & 0xC0) == 0x80) {
		c->pinned = true;
		c->why = "an address of one link only";
	}
	return true;
}

/* `old`: by the nonces of a time that is over. */
static void bws_control_tell(struct bws_conn *c, enum bws_offer_kind kind, bool old,
			     const struct bws_from *to)
{
	struct bws_offer o = {.kind = kind, .name = c->name, .id = c->id};
	uint64_t taken = c->rescue_from;
	uint8_t bytes[BWS_OFFER_BYTES];

	memcpy(o.nonce, old ? c->old_nonce : c->nonce, sizeof(o.nonce));
	if (kind != BWS_OFFER)
		memcpy(o.to_nonce, old ? c->old_peer_nonce : c->peer_nonce, sizeof(o.to_nonce));
	if (kind <= BWS_ACCEPT)
		bw_ep_addr(atomic_load(&bws.ep), &o.addr);
	else
		memcpy(o.addr.bytes, &taken, sizeof(taken));
	bws_offer_pack(&o, bytes);
	bws_offer_send(bws_control.offers, c->name.here, to, bytes);
}

static bool bws_control_draw(uint8_t *nonce)
{
	return getrandom(nonce, BWS_NONCE, 0) == BWS_NONCE;
}

/* New nonces are about to take the place of those that both know. */
static void bws_control_retire(struct bws_conn *c)
{
	if (!c->proven)
		return;
	c->proven = false;
	c->retired = true;
	c->unwelcomed = c->connector && c->answered;
	memcpy(c->old_nonce, c->nonce, sizeof(c->old_nonce));
	memcpy(c->old_peer_nonce, c->peer_nonce, sizeof(c->old_peer_nonce));
}

static void bws_control_offer(struct bws_conn *c, uint64_t now)
{
	struct bws_from to = {.port = BWS_OFFER_PORT};
	uint64_t plain;

	memcpy(to.address, c->name.there, sizeof(to.address));
	plain = bws_hosts_plain(to.address, now);
	if (plain) {
		c->why = "the peer's node has no such library";
		c->offer_at = plain;
		return;
	}
	bws_control_retire(c);
	if (!bws_control_draw(c->nonce))
		return;
	c->answered = false;
	c->why = "the peer has not answered";
	c->offer_at = now + bws_control_pause(c->offers++);
	c->awaited++;
	bws_control_tell(c, BWS_OFFER, false, &to);
}

/* May connections of this process leave TCP? Else those that have go back. Lock held. */
static bool bws_control_may(uint64_t now)
{
	if (bws.pinned)
		return false;
	if (!bws_rings_here(now))
		return true;
	bws.pinned = "the program uses io_uring (BEOWIRE_SOCKETS_IO_URING=files: for files alone)";
	for (struct bws_conn *c = bws_conn_next(NULL); c; c = bws_conn_next(c)) {
		if (!c->pinned)
			c->why = bws.pinned;
		c->pinned = true;
		bws_return(c, false);
	}
	return false;
}

static struct bws_conn *bws_control_find(const struct bws_offer *o, const struct bws_from *from)
{
	if (memcmp(from->address, o->name.here, sizeof(from->address))) {
		bws_offer_refuse();
		return NULL;
	}
	for (struct bws_conn *c = bws_conn_next(NULL); c; c = bws_conn_next(c)) {
		/* What a closed one has sent may still depend on what the peer has taken. */
		if (bws_control_name(c) && bws_name_mirrors(&c->name, &o->name) &&
		    (o->kind > BWS_ACCEPT ||
		     (!c->orphan && c->connector == (o->kind == BWS_ACCEPT))))
			return c;
	}
	return NULL;
}

/* An offer has come, by the registrar. */
static void bws_control_answer(const struct bws_from *from, const uint8_t *bytes, size_t len)
{
	struct bws_offer o;
	struct bws_conn *c;

	if (!bws_offer_unpack(bytes, len, &o) || o.kind != BWS_OFFER) {
		bws_offer_refuse();
		return;
	}
	/* Without an endpoint there is no answer; it is offered again. */
	if (!atomic_load(&bws.ep))
		return;
	bws_lock();
	c = bws_control_find(&o, from);
	if (c && !c->paired && !c->rescue && !c->pinned && !c->error && !bws.held &&
	    bws_conn_alone(c) && bws_control_may(bw_clock_now())) {
		bws_control_retire(c);
		/* Who offers anew after it was lost makes contact anew. */
		bw_peer_forget(atomic_load(&bws.ep), &o.addr);
		/* The same one again has the same answer. */
		if (!c->answered || memcmp(c->peer_nonce, o.nonce, sizeof(o.nonce)))
			c->answered = bws_control_draw(c->nonce);
		memcpy(c->peer_nonce, o.nonce, sizeof(o.nonce));
		c->peer_addr = o.addr;
		c->peer_at = *from;
		if (c->answered)
			bws_control_tell(c, BWS_ACCEPT, false, from);
	}
	bws_unlock();
}

/* Do both nonces of the connection show that this is of its peer? */
static bool bws_control_proven(const struct bws_conn *c, const struct bws_offer *o)
{
	return !memcmp(c->nonce, o->to_nonce, sizeof(o->to_nonce)) &&
	       !memcmp(c->peer_nonce, o->nonce, sizeof(o->nonce)) && c->peer_at.port;
}

/* Those of the time that is over? */
static bool bws_control_proven_old(const struct bws_conn *c, const struct bws_offer *o)
{
	return c->retired && !memcmp(c->old_nonce, o->to_nonce, sizeof(o->to_nonce)) &&
	       !memcmp(c->old_peer_nonce, o->nonce, sizeof(o->nonce)) && c->peer_at.port;
}

/* The peer has left before we saw that it was there: its WELCOME may still come, and counts no
 * more. */
static void bws_control_unmeet(struct bws_conn *c)
{
	c->answered = c->unwelcomed = false;
	c->owed &= ~(uint32_t)BWS_OWE_HELLO;
}

/* Beowire is lost for this one, as the peer tells. */
static void bws_control_rescued(const struct bws_from *from, const struct bws_offer *o)
{
	struct bws_conn *c;
	uint64_t at;

	memcpy(&at, o->addr.bytes, sizeof(at));
	bws_lock();
	c = bws_control_find(o, from);
	if (c && bws_control_proven_old(c, o)) {
		/* We know that already, else there were no new nonces; or we were never paired by
		 * them, and are not to be any more. */
		if (o->kind == BWS_RESCUE) {
			c->unwelcomed = false;
			bws_control_tell(c, BWS_RESCUED, true, from);
		}
	} else if (c && bws_control_proven(c, o)) {
		if (o->kind == BWS_RESCUED) {
			c->rescued = c->rescued || c->rescue;
		} else {
			if (c->paired)
				bws_lose(c);
			else
				bws_control_unmeet(c);
			if (c->tx.way == BWS_BW && !bws_tx_returned(c, at))
				bws_break(c, ECONNRESET, "the peer breaks the rules");
			bws_control_tell(c, BWS_RESCUED, false, from);
		}
		bws_attend();
	} else if (c) {
		bws_offer_refuse();
	}
	bws_unlock();
}

/* The peer at an address. It may be down for us since the time before: then both begin anew. */
static bool bws_control_meet(const struct bw_addr *addr, bw_peer_no *peer)
{
	bw_peer_forget(atomic_load(&bws.ep), addr);
	return !bw_peer_find(atomic_load(&bws.ep), addr, peer);
}

/* Our offer is answered: from now on the two speak by Beowire. */
static void bws_control_accepted(const struct bws_from *from, const uint8_t *bytes, size_t len)
{
	struct bws_offer o;
	struct bws_conn *c;
	bw_peer_no peer;

	/* Offers come by the registrar alone. */
	if (!bws_offer_unpack(bytes, len, &o) || o.kind == BWS_OFFER) {
		bws_offer_refuse();
		return;
	}
	if (!atomic_load(&bws.ep))
		return;
	if (o.kind != BWS_ACCEPT) {
		bws_control_rescued(from, &o);
		return;
	}
	bws_lock();
	c = bws_control_find(&o, from);
	if (!c || c->paired || c->answered || c->rescue || c->pinned || c->error || !c->offers) {
		/* Nothing is asked. */
	} else if (memcmp(c->nonce, o.to_nonce, sizeof(o.to_nonce))) {
		/* It may answer an offer before the last one: who is busy answers late. */
		if (c->awaited > 1)
			c->awaited--;
		else
			bws_offer_refuse();
	} else if (bws_control_meet(&o.addr, &peer)) {
		memcpy(c->peer_nonce, o.nonce, sizeof(o.nonce));
		c->peer_addr = o.addr;
		c->peer = peer;
		c->peer_at = *from;
		c->peer_id = o.id;
		c->answered = c->proven = true;
		c->unwelcomed = false;
		c->awaited = 0;
		c->offer_at = bw_clock_now() + 5 * BWS_S;
		c->why = "no answer by Beowire";
		c->owed |= BWS_OWE_HELLO;
		bws_push(c);
	}
	bws_unlock();
}

static void bws_control_orphan(struct bws_conn *c, uint64_t now)
{
	bool late = now >= c->offer_at, settled = bws_settled(c);
	/* A good end leaves by itself: the program's time for it is that of its own close(), and
	 * here all others would wait as well. */
	const struct linger linger = {.l_onoff = !settled};

	if (!settled && !c->error && !late)
		return;
	if (settled ? !c->error && bws_conn_alone(c) : late)
		bws_r()->setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	bws_own_close(c->fd);
	bws_tell(c);
	bws_conn_free(c);
}

/* When it is to be looked at again. */
static uint64_t bws_control_rescue(struct bws_conn *c, uint64_t now)
{
	if (c->rescued && c->tx.way != BWS_BW) {
		bws_rescue_over(c);
		return BWS_CONTROL_NEVER;
	}
	if (now >= c->rescue_until) {
		bws_rescue_over(c);
		bws_break(c, ECONNRESET, "the peer's endpoint is gone");
		return BWS_CONTROL_NEVER;
	}
	if (now >= c->rescue_at) {
		c->rescue_at = now + BWS_CONTROL_RESCUE;
		bws_control_tell(c, BWS_RESCUE, false, &c->peer_at);
	}
	return c->rescue_at;
}

/* It needs no help any more: all by Beowire, or ended, or by TCP for good or until told. */
static bool bws_control_steady(const struct bws_conn *c)
{
	return c->pinned || c->error || c->parked || c->peer_parks ||
	       (c->rx.open && (c->tx.way == BWS_BW || c->tx.shut));
}

/* It may leave TCP soon. An end that never does is no reason to expect that for ever. */
static bool bws_control_pairs(struct bws_conn *c, uint64_t now)
{
	if (!c->answered && (!c->paired || bws_control_steady(c)))
		c->pairing_until = 0;
	else if (!c->pairing_until)
		c->pairing_until = now + BWS_CONTROL_PAIRING;
	return now < c->pairing_until;
}

/* One that both ends know. Handlers do what messages bring about; what else holds up a switch, a
 * fork() or other processes that have the connection, ends without a word. */
static uint64_t bws_control_paired(struct bws_conn *c, uint64_t now)
{
	if (c->connector && c->parked != bws_control.choice.by_tcp)
		bws_park(c, bws_control.choice.by_tcp);
	bws_rx_ready(c);
	if (c->tx.epoch && c->tx.way == BWS_TCP)
		bws_tx_switch(c);
	if (bws_control_steady(c))
		return BWS_CONTROL_NEVER;
	return now + (bws_control_pairs(c, now) ? BWS_CONTROL_IDLE : BWS_CONTROL_SLOW);
}

static uint64_t bws_control_sooner(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

/* What there is to do for one, and when it is to be looked at again if nobody asks for that
 * before: who changes something asks by bws_attend(). */
static uint64_t bws_control_look(struct bws_conn *c, uint64_t now)
{
	bool room = bws_control.room;

	bws_tx_drain(c);
	bws_control.room = room; /* its own socket is waited for */
	if (c->rescue) {
		uint64_t at = bws_control_rescue(c, now);

		if (c->rescue)
			return at;
	}
	if (c->orphan) {
		uint64_t end = c->offer_at;

		bws_control_orphan(c, now);
		return c->id ? bws_control_sooner(end, now + BWS_CONTROL_LATE) : BWS_CONTROL_NEVER;
	}
	if (c->paired)
		return bws_control_paired(c, now);
	if (!c->candidate || c->pinned || c->error)
		return BWS_CONTROL_NEVER;
	/* It may not be connected yet. */
	if (!bws_control_name(c))
		return now + BWS_CONTROL_IDLE;
	if (c->pinned)
		return BWS_CONTROL_NEVER;
	if (!atomic_load(&bws.ep)) {
		c->why = "no endpoint yet";
		bws_control.wanting = true;
		return BWS_CONTROL_NEVER;
	}
	if (!c->connector)
		return BWS_CONTROL_NEVER;
	/* The other end has moved as many bytes, but may not have looked yet. */
	if (!c->offer_at)
		c->offer_at = now + BWS_CONTROL_FIRST;
	if (now >= c->offer_at && bws_conn_alone(c)) {
		if (!bws_control_may(now))
			return BWS_CONTROL_NEVER;
		if (bws_control.choice.by_tcp) {
			c->why = BWS_WHY_PARKED;
			return bws_control.choice.next;
		}
		bws_control_offer(c, now);
	}
	return c->offer_at > now ? c->offer_at : now + BWS_CONTROL_IDLE;
}

/* Of the connections that this process has made. Lock held. */
static struct bws_choice_seen bws_control_seen(void)
{
	bool by_tcp = bws_control.choice.by_tcp, changed = true;

	for (struct bws_conn *c = bws_conn_next(NULL); c; c = bws_conn_next(c)) {
		uint64_t bytes = c->shared->tx + c->shared->rx;

		if (!c->connector || !c->paired)
			continue;
		bws_control.moved += bytes - c->compared;
		c->compared = bytes;
		if (by_tcp ? !bws_settled(c) : c->tx.way != BWS_BW || c->rx.way == BWS_TCP)
			changed = false;
	}
	return (struct bws_choice_seen){.bytes = bws_control.moved, .changed = changed};
}

/* Who connected compares; others can tell that cores are short. */
static void bws_control_tell_crowded(void)
{
	for (struct bws_conn *c = bws_conn_next(NULL); c; c = bws_conn_next(c)) {
		if (c->connector || !c->paired || c->peer_parks)
			continue;
		c->owed |= BWS_OWE_CROWDED;
		bws_push(c);
	}
}

/* Compares with TCP, while cores are short. When to look again. Lock held. */
static uint64_t bws_control_choose(uint64_t now)
{
	struct bws_choice *choice = &bws_control.choice;
	bool always = bws.compare == BWS_COMPARE_ALWAYS, begins = !choice->window;
	bool crowded = always || now < atomic_load(&bws_control.crowded);
	struct bws_choice_seen seen;
	uint64_t at;

	if (bws.compare == BWS_COMPARE_NEVER)
		return BWS_CONTROL_NEVER;
	if (always && begins)
		choice->next = now;
	if (bws_choice_due(choice, now, crowded)) {
		seen = bws_control_seen();
		bws_choice_look(choice, now, &seen);
		if (begins && !choice->by_tcp)
			bws_control_tell_crowded();
	}
	at = bws_choice_next(choice, now);
	atomic_store(&bws_control.crowded_rouse, at == BWS_CHOICE_NEVER);
	return at;
}

/* When to look again; fds: sockets that are drained. */
static uint64_t bws_control_looks(struct pollfd *fds, int *n)
{
	uint64_t now = bw_clock_now(), at;
	int most = *n + BWS_CONTROL_DRAIN;
	struct bws_conn *c, *next;
	bool candidates = false, pairing = false;

	bws_lock();
	/* Handlers run meanwhile: what they ask for may be of one that was looked at before. */
	bws_control.roused = false;
	bws_control.looking = true;
	bws_control.room = false;
	bws_control.wanting = false;
	bws_push_all();
	if (now >= bws_rings_due())
		bws_control_may(now);
	at = bws_control_choose(now);
	for (c = bws_conn_next(NULL); c; c = next) {
		candidates |= c->candidate;
		at = bws_control_sooner(at, bws_control_look(c, now));
		next = bws_conn_next(c);
		if (c->id && bws_control_pairs(c, now)) {
			pairing = true;
			at = bws_control_sooner(at, c->pairing_until);
		}
		if (!c->id || c->tx.way != BWS_DRAIN)
			continue;
		if (*n < most)
			fds[(*n)++] = (struct pollfd){.fd = c->fd, .events = POLLOUT};
		else
			at = bws_control_sooner(at, now + BWS_CONTROL_BUSY);
	}
	if (bws_control.room || bws_push_waits())
		at = bws_control_sooner(at, now + BWS_CONTROL_BUSY);
	at = bws_control_sooner(at, bws_rings_due());
	at = bws_control_sooner(at, bws_registrar_due(&bws_control.registrar, now));
	if (bws_control.wanting)
		at = bws_control_sooner(at, bws_endpoint_due());
	bws_control.looking = false;
	atomic_store(&bws.pairing, pairing);
	bws_unlock();
	return candidates ? bws_control_sooner(at, bws_registrar_next(&bws_control.registrar)) : at;
}

static void bws_control_receive(const struct pollfd *fds)
{
	uint8_t bytes[BWS_OFFER_BYTES];
	struct bws_from from;
	int len;

	for (int i = 0; i < 2; i++) {
		if (!fds[i].revents)
			continue;
		while (bws_offer_refused(bws_control.offers[i], &from))
			bws_hosts_refused(from.address, bw_clock_now());
		while ((len = bws_offer_receive(bws_control.offers[i], &from, bytes,
						sizeof(bytes))) >= 0)
			bws_control_accepted(&from, bytes, (size_t)len);
	}
}

/* This process woke up so late: nobody's time is over by that. */
static void bws_control_stood(uint64_t late)
{
	bws_lock();
	for (struct bws_conn *c = bws_conn_next(NULL); c; c = bws_conn_next(c)) {
		if (c->orphan)
			c->offer_at += late;
		if (c->rescue)
			c->rescue_until += late;
	}
	bws_unlock();
}

static void *bws_control_main(void *arg)
{
	struct pollfd fds[3 + BWS_REGISTRAR_FDS + BWS_CONTROL_DRAIN];
	struct timespec t;
	uint64_t count, at, now;
	int n, mine;

	bws_registrar_init(&bws_control.registrar);
	for (int i = 0; i < 2; i++)
		bws_control.offers[i] = bws_offer_socket_own(i);
	/* The port first: peers may ask already, and an endpoint takes its time. */
	bws_registrar_seek(&bws_control.registrar, bw_clock_now());
	bws_control.wanting = true;
	for (;;) {
		/* Whoever has the port serves it for others also without an endpoint. */
		if (bws_control.wanting && !atomic_load(&bws.ep)) {
			if (bws_endpoint_open())
				bws_sleepers_rouse();
			else if (bws.ep_failed)
				break;
		}
		bws_registrar_seek(&bws_control.registrar, bw_clock_now());
		fds[0] = (struct pollfd){.fd = bws_control.wake, .events = POLLIN};
		fds[1] = (struct pollfd){.fd = bws_control.offers[0], .events = POLLIN};
		fds[2] = (struct pollfd){.fd = bws_control.offers[1], .events = POLLIN};
		mine = bws_registrar_fds(&bws_control.registrar, fds + 3);
		n = 3 + mine;
		at = bws_control_looks(fds, &n);
		now = bw_clock_now();
		if (at != BWS_CONTROL_NEVER)
			at = at > now ? at - now : 0;
		bws_r()->ppoll(fds, (nfds_t)n, bw_clock_span(at, &t), NULL);
		now = bw_clock_now() - now;
		if (at != BWS_CONTROL_NEVER && now > at + BWS_CONTROL_LATE)
			bws_control_stood(now - at);
		if (fds[0].revents)
			bws_r()->read(bws_control.wake, &count, sizeof(count));
		bws_control_receive(fds + 1);
		bws_registrar_serve(&bws_control.registrar, fds + 3, mine, bws_control_answer);
	}
	/* The port is for another process, which has an endpoint. */
	bws_registrar_close(&bws_control.registrar);
	return NULL;
}

static void bws_control_start(void)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;

	bws_control.wake = bws_own_eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, BWS_CONTROL_STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (bws_control.wake < 0 || pthread_create(&thread, &attr, bws_control_main, NULL))
		bws.ep_failed = true;
	else
		pthread_setname_np(thread, "beowire-sockets");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
}

static void bws_control_rouse(void)
{
	const uint64_t one = 1;

	if (bws_control.wake >= 0)
		bws_r()->write(bws_control.wake, &one, sizeof(one));
}

void bws_control_want(struct bws_conn *c)
{
	if (bws.pinned || bws.ep_failed || bws.pid != getpid())
		return;
	if (!atomic_exchange(&bws_control.started, true))
		bws_control_start();
	bws_control_rouse();
}

void bws_attend(void)
{
	if (!bws_control.roused)
		bws_control_rouse();
	bws_control.roused = true;
}

void bws_crowded(uint64_t until)
{
	if (until > atomic_load(&bws_control.crowded))
		atomic_store(&bws_control.crowded, until);
	if (atomic_load(&bws_control.crowded_rouse) &&
	    atomic_exchange(&bws_control.crowded_rouse, false))
		bws_control_rouse();
}

void bws_attend_room(void)
{
	/* It looks again soon, or when there is room in the socket: not at once. */
	if (bws_control.looking)
		bws_control.room = true;
	else
		bws_attend();
}

void bws_control_forget(void)
{
	for (int i = 0; i < 2; i++) {
		if (bws_control.offers[i] >= 0)
			bws_own_close(bws_control.offers[i]);
		bws_control.offers[i] = -1;
	}
	if (bws_control.started)
		bws_registrar_forget(&bws_control.registrar);
	if (bws_control.wake >= 0)
		bws_own_close(bws_control.wake);
	bws_control.wake = -1;
	bws_control.choice = (struct bws_choice){0};
	atomic_store(&bws_control.crowded, 0);
	atomic_store(&bws_control.crowded_rouse, false);
	atomic_store(&bws_control.started, false);
}
