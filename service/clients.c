/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a call to an endpoint and its end. A client is charged to its user from the moment it was
 * accepted until the kernel no longer has its socket, whoever holds it.
 */
#include "clients.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "audit.h"
#include "caller.h"
#include "number.h"
#include "refuse.h"
#include "request.h"

#define BS_ACCEPTS 64 /* calls taken at a time */
#define BS_LEFT	   16 /* one place in so many is left to users who have few: */
#define BS_FEW	   4  /* less than that */

static void bs_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void bs_client_state(struct bs_service *s, struct bs_client *c, enum bs_state state)
{
	s->living += (state != BS_FREE) - (c->state != BS_FREE);
	s->waiting += (state == BS_GREETS || state == BS_LINGERS) -
		      (c->state == BS_GREETS || c->state == BS_LINGERS);
	c->state = state;
}

/* Nothing is left of it. */
static void bs_client_free(struct bs_service *s, struct bs_client *c)
{
	bs_close(&c->fd);
	bs_close(&c->claim);
	bs_user_gives(&s->users, c->user, c->charged);
	bs_client_state(s, c, BS_FREE);
}

static void bs_client_deny(struct bs_service *s, const struct bs_client *c, int error,
			   const char *why)
{
	s->count.refused++;
	bs_audit_refused(s->now, "refused uid=%u pid=%d: %s", c->who.uid, c->who.pid, why);
	bs_request_refuse(c->fd, error, why);
}

static void bs_client_refuse(struct bs_service *s, struct bs_client *c, int error, const char *why)
{
	bs_client_deny(s, c, error, why);
	bs_client_free(s, c);
}

/* No user takes the last places who has some already. */
static bool bs_client_crowds(const struct bs_service *s, const struct bs_user *u)
{
	return u->endpoints >= BS_FEW && s->living >= s->most - s->most / BS_LEFT;
}

/* The account of a caller, with room for one more; NULL with the reason. */
static struct bs_user *bs_client_admit(struct bs_service *s, int fd, const struct ucred *who,
				       char why[BW_SERVICE_TEXT])
{
	struct bs_user *u;

	if (!bs_caller_allowed(&s->policy, fd, who)) {
		snprintf(why, BW_SERVICE_TEXT,
			 "user %u may have no endpoints; fix: 'users' or 'groups' in "
			 "beowired.conf",
			 who->uid);
		return NULL;
	}
	u = bs_users_find(&s->users, bs_caller_account(&s->policy, who), s->now);
	if (!u || s->living == s->most || bs_client_crowds(s, u))
		snprintf(why, BW_SERVICE_TEXT, "beowired has no room for more endpoints");
	else if (!bs_user_attempts(u, &s->policy, s->now))
		snprintf(why, BW_SERVICE_TEXT,
			 "user %u asks more than %u times a second; fix: 'attempts' in "
			 "beowired.conf",
			 u->uid, s->policy.attempts);
	else if (!bs_user_takes(u, &s->policy))
		snprintf(why, BW_SERVICE_TEXT,
			 "user %u has %u endpoints, and may have no more; fix: 'endpoints' in "
			 "beowired.conf",
			 u->uid, u->endpoints);
	else
		return u;
	return NULL;
}

static struct bs_client *bs_client_slot(struct bs_service *s)
{
	for (unsigned int i = 0; i < s->most; i++) {
		if (s->client[i].state == BS_FREE)
			return &s->client[i];
	}
	return NULL;
}

static void bs_client_begin(struct bs_service *s, int fd)
{
	char why[BW_SERVICE_TEXT] = "";
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t n = sizeof(who);
	struct epoll_event event = {.events = EPOLLIN};
	struct bs_client *c = bs_client_slot(s);
	struct bs_user *u;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n)) {
		close(fd);
		return;
	}
	u = bs_client_admit(s, fd, &who, why);
	if (!u || !c) {
		s->count.refused++;
		bs_audit_refused(s->now, "refused uid=%u pid=%d: %s", who.uid, who.pid, why);
		bs_request_refuse(fd, -EACCES, why);
		close(fd);
		return;
	}
	c->fd = fd;
	c->claim = -1;
	c->gone = false;
	c->who = who;
	c->user = u;
	c->charged = 0;
	c->engine = 0;
	c->until = s->now + BS_GREETING;
	bs_client_state(s, c, BS_GREETS);
	event.data.u32 = (uint32_t)(c - s->client);
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event))
		bs_client_free(s, c);
}

void bs_clients_accept(struct bs_service *s)
{
	for (int i = 0; i < BS_ACCEPTS; i++) {
		int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		bs_client_begin(s, fd);
	}
}

static void bs_clients_key(struct bs_service *s)
{
	char text[BW_KEY_FINGERPRINT];

	bw_wipe(s->refusal_key, sizeof(s->refusal_key));
	if (!s->policy.key_file[0])
		return;
	bw_key_of_refusals(s->refusal_key, s->policy.key, bw_hmac_sha256);
	bw_key_fingerprint(text, s->policy.key);
	bs_audit(BS_NOTICE, "endpoints get the key %s of %s%s", text, s->policy.key_file,
		 s->policy.encrypts ? ", and encrypt" : "");
}

void bs_clients_policy(struct bs_service *s)
{
	if (s->policy.subuids.more)
		bs_audit(BS_WARNING,
			 BS_SUBUID_FILE " is too long: each number of its later ranges counts as a "
					"user");
	bs_clients_key(s);
}

/* ---- a request ---- */

/* Does another client have this number on the interface, or anywhere if it is not the same
 * endpoint? That one may ask again before it has closed a socket that has ended. */
static bool bs_client_taken(const struct bs_service *s, const struct bs_client *self)
{
	for (unsigned int i = 0; i < s->most; i++) {
		const struct bs_client *c = &s->client[i];

		bool same = c->claim_inode == self->claim_inode;
		bool ended = c->state == BS_UNMADE || c->state == BS_LINGERS;

		if (c == self || c->state <= BS_GREETS || c->engine != self->engine)
			continue;
		if (!same || (c->device == self->device && !ended))
			return true;
	}
	return false;
}

/* The endpoint of that claim has another interface already, and with it the name. */
static bool bs_client_holds(const struct bs_service *s, const struct bs_client *self)
{
	for (unsigned int i = 0; i < s->most; i++) {
		const struct bs_client *c = &s->client[i];

		if (c != self && c->state == BS_LIVES && c->engine == self->engine &&
		    c->claim_inode == self->claim_inode && c->claim >= 0)
			return true;
	}
	return false;
}

/* From another network namespace names of interfaces mean nothing here. */
static int bs_client_device(const struct bs_service *s, struct bs_client *c,
			    const struct bw_service_request *r, bool here,
			    char why[BW_SERVICE_TEXT])
{
	bool named = here && r->interface[0];

	for (unsigned int i = 0; i < s->policy.interfaces; i++) {
		const struct bs_device *d = &s->device[i];

		if (!d->open || (named ? strcmp(d->name, r->interface) != 0 : !d->up))
			continue;
		c->device = i;
		return 0;
	}
	if (named)
		snprintf(why, BW_SERVICE_TEXT,
			 "beowired does not serve %s; fix: 'interfaces' in beowired.conf, or "
			 "BEOWIRE_INTERFACE=%s",
			 r->interface, s->policy.interface[0]);
	else
		snprintf(why, BW_SERVICE_TEXT, "no interface that beowired serves is up");
	return -ENODEV;
}

/* Whose number it is, and which interface. */
static int bs_client_check(struct bs_service *s, struct bs_client *c,
			   const struct bw_service_request *r, int claim, char why[BW_SERVICE_TEXT])
{
	bool here = false;
	int error = bs_number_proved(claim, r->engine, &here, &c->claim_inode);

	c->engine = r->engine;
	c->cluster = r->cluster;
	c->claim = claim;
	if (error) {
		snprintf(why, BW_SERVICE_TEXT, "engine number %u is not held by this process",
			 r->engine);
		return error;
	}
	error = bs_client_device(s, c, r, here, why);
	if (error)
		return error;
	if (bs_client_taken(s, c)) {
		snprintf(why, BW_SERVICE_TEXT, "engine number %u is taken on this node", r->engine);
		return -EADDRINUSE;
	}
	if (here || bs_client_holds(s, c))
		return 0;
	c->claim = bs_number_hold(r->engine);
	close(claim);
	if (c->claim >= 0)
		return 0;
	snprintf(why, BW_SERVICE_TEXT, "engine number %u is taken on this node", r->engine);
	return c->claim;
}

static int bs_client_charge(struct bs_service *s, struct bs_client *c, uint32_t bytes,
			    char why[BW_SERVICE_TEXT])
{
	if (!bs_users_room(&s->users, &s->policy, bytes)) {
		snprintf(why, BW_SERVICE_TEXT,
			 "rings of all users take %lu MiB, and a further one of %u MiB is too "
			 "much; fix: BEOWIRE_RING, or 'ring-memory-total' in beowired.conf",
			 (unsigned long)(s->users.ring_bytes >> 20), bytes >> 20);
		return -ENOMEM;
	}
	if (bs_user_rings(&s->users, c->user, &s->policy, bytes)) {
		c->charged = bytes;
		return 0;
	}
	snprintf(why, BW_SERVICE_TEXT,
		 "rings of user %u take %lu MiB, and a further one of %u MiB is too much; fix: "
		 "BEOWIRE_RING, or 'ring-memory' in beowired.conf",
		 c->user->uid, (unsigned long)(c->user->ring_bytes >> 20), bytes >> 20);
	return -EDQUOT;
}

static void bs_client_ask(struct bs_service *s, struct bs_client *c)
{
	struct bw_service_answer wait = {
		.head = {BW_SERVICE_MAGIC, BW_SERVICE_VERSION, BW_SERVICE_WAIT},
	};
	char why[BW_SERVICE_TEXT];
	struct bw_service_request r;
	const struct bs_device *d;
	int claim, error;

	error = bs_request_receive(c->fd, &r, &claim, s->policy.ethertype, why);
	if (error == -EAGAIN)
		return;
	if (error && !why[0]) { /* it has gone */
		bs_client_free(s, c);
		return;
	}
	if (!error)
		error = bs_client_check(s, c, &r, claim, why);
	if (!error)
		error = bs_client_charge(s, c, r.ring_bytes, why);
	if (error) {
		bs_client_refuse(s, c, error, why);
		return;
	}
	d = &s->device[c->device];
	bs_request_answer(c->fd, &wait, -1);
	bs_client_state(s, c, BS_MADE);
	c->job = (struct bs_job){
		.number = (unsigned int)(c - s->client),
		.index = d->inner_index,
		.mtu = d->mtu,
		.bytes = r.ring_bytes,
		.engine = c->engine,
		.ethertype = s->policy.ethertype,
	};
	bs_makers_give(&s->makers, &c->job);
}

/* ---- its end ---- */

/* It stays charged until a maker has closed its socket, and the kernel has it no more. */
static void bs_client_unmake(struct bs_service *s, struct bs_client *c)
{
	bs_close(&c->fd);
	bs_close(&c->claim);
	bs_client_state(s, c, BS_UNMADE);
	c->job.close = true;
	bs_makers_give(&s->makers, &c->job);
}

/* The endpoint's rights end now, whoever has the socket. */
static void bs_client_end(struct bs_service *s, struct bs_client *c)
{
	struct bs_device *d = &s->device[c->device];

	bs_gate_expel(&d->gate, c->job.cookie, c->engine);
	s->count.closed++;
	bs_audit(BS_INFO, "closed uid=%u pid=%d interface=%s engine=%u", c->who.uid, c->who.pid,
		 d->name, c->engine);
	bs_watch_bury(&d->watch, &d->gate, c->engine);
	bs_client_unmake(s, c);
}

/* A client has nothing to say any more: whatever comes is the end. */
void bs_clients_event(struct bs_service *s, unsigned int number)
{
	struct bs_client *c = &s->client[number];

	switch (c->state) {
	case BS_GREETS:
		bs_client_ask(s, c);
		break;
	case BS_MADE:
		c->gone = true;
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->fd, NULL);
		break;
	case BS_LIVES:
		bs_client_end(s, c);
		break;
	default:
		break;
	}
}

void bs_clients_leave(struct bs_service *s, unsigned int device)
{
	for (unsigned int i = 0; i < s->most; i++) {
		struct bs_client *c = &s->client[i];

		if (c->device == device && (c->state == BS_MADE || c->state == BS_LIVES))
			bs_clients_event(s, i);
	}
}

/* ---- its socket ---- */

static void bs_client_ready(struct bs_service *s, struct bs_client *c)
{
	const struct bs_device *d = &s->device[c->device];
	struct bw_service_answer a = {
		.head = {BW_SERVICE_MAGIC, BW_SERVICE_VERSION, BW_SERVICE_READY},
		/* The ring is for what it was then. */
		.mtu = (uint32_t)bw_min_u64(c->job.mtu, d->mtu),
		.slot_bytes = c->job.slot_bytes,
		.block_bytes = c->job.block_bytes,
		.blocks = c->job.blocks,
	};

	if (s->policy.key_file[0]) {
		a.flags = BW_SERVICE_KEYED | (s->policy.encrypts ? BW_SERVICE_ENCRYPTS : 0);
		memcpy(a.key, s->policy.key, sizeof(a.key));
	}
	memcpy(a.mac, d->mac, sizeof(a.mac));
	memcpy(a.interface, d->name, sizeof(a.interface));
	bs_client_state(s, c, BS_LIVES);
	s->count.opened++;
	bs_audit(BS_INFO, "opened uid=%u pid=%d interface=%s engine=%u cluster=%08x ring=%u",
		 c->who.uid, c->who.pid, d->name, c->engine, c->cluster, c->job.bytes);
	if (c->gone || bs_request_answer(c->fd, &a, c->job.packet))
		bs_client_end(s, c);
	bw_wipe(a.key, sizeof(a.key));
}

static void bs_client_made(struct bs_service *s, struct bs_client *c)
{
	char why[BW_SERVICE_TEXT];
	int error = c->job.error;

	if (error) {
		snprintf(why, sizeof(why), "%s cannot be had: %s", c->job.step, strerror(-error));
		bs_client_refuse(s, c, error, why);
		return;
	}
	error = bs_gate_admit(&s->device[c->device].gate, c->job.cookie, c->engine, c->cluster);
	if (!error) {
		bs_client_ready(s, c);
		return;
	}
	snprintf(why, sizeof(why), "the gate of %s takes no more endpoints: %s",
		 s->device[c->device].name, strerror(-error));
	bs_client_deny(s, c, error, why);
	bs_client_unmake(s, c);
}

void bs_clients_made(struct bs_service *s)
{
	struct bs_job *j;

	while ((j = bs_makers_take(&s->makers))) {
		struct bs_client *c = &s->client[j->number];

		if (!j->close) {
			bs_client_made(s, c);
			continue;
		}
		bs_client_state(s, c, BS_LINGERS);
		c->missed = false;
		s->look_at = bw_min_u64(s->look_at, s->now + BS_LOOK_SOON);
	}
}

/* ---- time ---- */

/* What the kernel tells is no picture of one moment: a socket may be left out while others come and
 * go. So one is gone only if two looks running do not find it. */
static void bs_clients_look(struct bs_service *s)
{
	static ino_t inode[BS_ENDPOINTS];
	unsigned int n = 0;

	for (unsigned int i = 0; i < s->most; i++) {
		if (s->client[i].state == BS_LINGERS)
			inode[n++] = s->client[i].job.inode;
	}
	if (!n || !bs_makers_look(&s->makers, inode, n))
		return;
	n = 0;
	for (unsigned int i = 0; i < s->most; i++) {
		struct bs_client *c = &s->client[i];
		bool missed;

		if (c->state != BS_LINGERS)
			continue;
		missed = !inode[n++];
		if (missed && c->missed)
			bs_client_free(s, c);
		else if (missed)
			s->look_at = s->now + BS_LOOK_SOON;
		c->missed = missed;
	}
}

void bs_clients_visit(struct bs_service *s)
{
	for (unsigned int i = 0; s->waiting && i < s->most; i++) {
		struct bs_client *c = &s->client[i];

		if (c->state == BS_GREETS && s->now >= c->until)
			bs_client_refuse(s, c, -ETIMEDOUT, "no request came within a second");
	}
	if (s->now < s->look_at)
		return;
	s->look_at = s->now + BS_LOOK;
	bs_clients_look(s);
}
