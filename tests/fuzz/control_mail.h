/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of fuzz_control.c: datagrams that come and go, and what none of them may change. */
#ifndef BW_FUZZ_CONTROL_MAIL_H
#define BW_FUZZ_CONTROL_MAIL_H

/* ---- datagrams ---- */

static ssize_t fake_recvfrom(int fd, void *to, size_t room, int flags, struct sockaddr *name,
			     socklen_t *len)
{
	struct bws_handed handed;

	if (!mail.waits || fd != mail.fd) {
		errno = EAGAIN;
		return -1;
	}
	mail.waits = false;
	mail.handled = true;
	if (fd == REGISTRAR) {
		memset(&handed, 0, sizeof(handed));
		handed.from = mail.from;
		memcpy(handed.bytes, mail.bytes, sizeof(handed.bytes));
		if (room != sizeof(handed))
			fuzz_bad("room for another length");
		if (mail.len != BWS_OFFER_BYTES)
			room = mail.len < room ? mail.len : room - 1;
		memcpy(to, &handed, room);
		return (ssize_t)room;
	}
	name_of(mail.from.address, mail.from.port, name, len);
	memcpy(to, mail.bytes, mail.len < room ? mail.len : room);
	return (ssize_t)mail.len;
}

static ssize_t fake_recvmsg(int fd, struct msghdr *m, int flags)
{
	if (!refusal_waits || !(flags & MSG_ERRQUEUE)) {
		errno = EAGAIN;
		return -1;
	}
	refusal_waits = false;
	name_of(refuser.address, refuser.port, m->msg_name, &m->msg_namelen);
	return 0;
}

static bool same_from(const struct bws_from *one, const struct bws_from *other)
{
	return one->port == other->port && !memcmp(one->address, other->address, 16);
}

static bool is_drawn(const uint8_t *nonce, uint8_t whose)
{
	return nonce[0] == whose || (whose == 2 && nonce[0] == 0xEE);
}

static void tells_offer(struct slot *s, const struct bws_offer *o, const struct bws_from *to)
{
	static const uint8_t none[BWS_NONCE];
	const struct bws_conn *c = s->c;

	if (!c->connector || c->paired || c->rescue || c->error || c->pinned || c->orphan ||
	    !c->candidate || bws.pinned || rings)
		fuzz_bad("an offer of a connection that is not to leave TCP");
	if (memcmp(to->address, s->name.there, 16) || to->port != BWS_OFFER_PORT)
		fuzz_bad("an offer for somebody else");
	if (memcmp(o->to_nonce, none, BWS_NONCE) || !is_drawn(o->nonce, 1))
		fuzz_bad("an offer with other nonces");
	if (s->offered && fake_now - s->offered < 20 * BWS_MS)
		fuzz_bad("offers follow too soon");
	s->offered = fake_now;
}

static void tells_accept(const struct slot *s, const struct bws_offer *o, const struct bws_from *to)
{
	const struct bws_conn *c = s->c;

	if (!mail.handled || !mail.good || mail.o.kind != BWS_OFFER || mail.of != s ||
	    !same_from(to, &mail.from) || mail.fd >= OFFERS)
		fuzz_bad("an answer that nobody has asked for");
	if (c->connector || c->paired || c->rescue || c->error || c->pinned || c->orphan ||
	    bws.held || bws.pinned || rings)
		fuzz_bad("an answer for a connection that is not to leave TCP");
	if (memcmp(o->to_nonce, mail.o.nonce, BWS_NONCE) || !is_drawn(o->nonce, 1))
		fuzz_bad("an answer with other nonces");
}

static void tells_rescue(struct slot *s, const struct bws_offer *o, const struct bws_from *to)
{
	const struct bws_conn *c = s->c;
	uint64_t at;

	memcpy(&at, o->addr.bytes, sizeof(at));
	if (!is_drawn(o->nonce, 1) || !is_drawn(o->to_nonce, 2))
		fuzz_bad("a report without nonces");
	if (c->rescue && at != c->shared->rx - s->since_rescue)
		fuzz_bad("the peer is told another offset than the program's");
	if (o->kind == BWS_RESCUED) {
		if (!mail.handled || !mail.good || !mail.theirs || mail.o.kind != BWS_RESCUE ||
		    mail.of != s || !same_from(to, &mail.from))
			fuzz_bad("a report is acknowledged that nobody has made");
		return;
	}
	if (!c->rescue || mail.handled || !same_from(to, &c->peer_at))
		fuzz_bad("a report for nobody");
	if (s->rescued && fake_now - s->rescued < BWS_CONTROL_RESCUE)
		fuzz_bad("reports follow too soon");
	s->rescued = fake_now;
}

static struct slot *slot_of_name(const struct bws_name *name, bool mirrored)
{
	for (struct slot *s = slot; s < slot + SLOTS; s++) {
		struct bws_name other = {.here_port = s->name.there_port,
					 .there_port = s->name.here_port};

		memcpy(other.here, s->name.there, 16);
		memcpy(other.there, s->name.here, 16);
		if (s->c && !memcmp(mirrored ? &other : &s->name, name, sizeof(*name)))
			return s;
	}
	return NULL;
}

static ssize_t fake_sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct sockaddr_storage name = {0};
	struct bws_from to;
	struct bws_offer o;
	struct slot *s;

	if (m->msg_namelen > sizeof(name))
		fuzz_bad("a name that is too long");
	memcpy(&name, m->msg_name, m->msg_namelen);
	if (m->msg_iovlen != 1 ||
	    !bws_offer_unpack(m->msg_iov->iov_base, m->msg_iov->iov_len, &o) ||
	    !bws_offer_address(&name, to.address, &to.port))
		fuzz_bad("what is sent is no offer");
	if (fd != OFFERS + !bws_offer_is_v4(to.address))
		fuzz_bad("by the other socket");
	s = slot_of_name(&o.name, false);
	if (!s || o.id != s->c->id)
		fuzz_bad("an offer of no connection");
	if (mail.handled && mail.told++)
		fuzz_bad("more than one answer");
	if (o.kind == BWS_OFFER)
		tells_offer(s, &o, &to);
	else if (o.kind == BWS_ACCEPT)
		tells_accept(s, &o, &to);
	else
		tells_rescue(s, &o, &to);
	return tcp_room < 0 ? -1 : BWS_OFFER_BYTES;
}

/* ---- who does not know the nonces changes nothing ---- */

struct frozen {
	bool paired, open, back, rescue, rescued, pinned, peer_parks, overdue;
	int error;
	enum bws_way rx_way, tx_way;
	uint64_t rx_next, taken, switch_at, sent, got;
	uint32_t epoch, peer_id, owed, losses;
	bw_peer_no peer;
};

/* Until it is paired, an offer of anybody who says to be at the peer's address may change these. */
struct asked {
	uint8_t nonce[BWS_NONCE], peer_nonce[BWS_NONCE], old[BWS_NONCE], old_peer[BWS_NONCE];
	struct bw_addr addr;
	struct bws_from at;
	bool answered, proven, retired;
};

static void freeze(const struct bws_conn *c, struct frozen *f, struct asked *a)
{
	memset(f, 0, sizeof(*f));
	memset(a, 0, sizeof(*a));
	f->paired = c->paired;
	f->open = c->rx.open;
	f->back = c->tx.back;
	f->rescue = c->rescue;
	f->rescued = c->rescued;
	f->pinned = c->pinned;
	f->peer_parks = c->peer_parks;
	f->error = c->error;
	f->rx_way = c->rx.way;
	f->tx_way = c->tx.way;
	f->rx_next = c->rx.next;
	f->taken = c->tx.taken;
	f->switch_at = c->tx.switch_at;
	f->sent = c->shared->tx;
	f->got = c->shared->rx;
	f->epoch = c->tx.epoch;
	f->peer_id = c->peer_id;
	f->owed = c->owed;
	f->losses = c->losses;
	f->peer = c->peer;
	memcpy(a->nonce, c->nonce, BWS_NONCE);
	memcpy(a->peer_nonce, c->peer_nonce, BWS_NONCE);
	memcpy(a->old, c->old_nonce, BWS_NONCE);
	memcpy(a->old_peer, c->old_peer_nonce, BWS_NONCE);
	a->addr = c->peer_addr;
	memcpy(a->at.address, c->peer_at.address, 16);
	a->at.port = c->peer_at.port;
	a->answered = c->answered;
	a->proven = c->proven;
	a->retired = c->retired;
}

static struct frozen before[SLOTS];
static struct asked asked[SLOTS];
static uint32_t frozen_at;

static void freeze_all(void)
{
	frozen_at = interrupted;
	for (uint32_t i = 0; i < SLOTS; i++) {
		if (slot[i].c)
			freeze(slot[i].c, &before[i], &asked[i]);
	}
}

/* All but `heard` are as they were; its nonces may be others after an `offer`. */
static void still_frozen(const struct slot *heard, bool offer)
{
	struct frozen f;
	struct asked a;

	if (frozen_at != interrupted) /* somebody else was heard meanwhile */
		return;
	for (uint32_t i = 0; i < SLOTS; i++) {
		const struct bws_conn *c = slot[i].c;

		if (!c || &slot[i] == heard)
			continue;
		freeze(c, &f, &a);
		if (memcmp(&f, &before[i], sizeof(f)))
			fuzz_bad("who does not know the nonces is heard");
		if (offer && mail.of == &slot[i] && !c->connector && !c->paired && !c->rescue)
			continue;
		if (memcmp(&a, &asked[i], sizeof(a)))
			fuzz_bad("nonces change without a reason");
	}
}

#endif
