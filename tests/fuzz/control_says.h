/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of fuzz_control.c: what peers and strangers say, by datagrams and by messages. */
#ifndef BW_FUZZ_CONTROL_SAYS_H
#define BW_FUZZ_CONTROL_SAYS_H

/* ---- what peers and strangers say ---- */

/* Plausible, or anything. */
static uint64_t offset(const struct bws_conn *c, struct fuzz_input *in)
{
	uint8_t how = fuzz_u8(in);
	uint64_t some[] = {c->shared->rx, c->rx.next,	   c->rx.from,	  c->rx.epoch,
			   c->tx.taken,	  c->tx.switch_at, c->shared->tx, c->id};

	return how & 8 ? fuzz_number(in) : some[how & 7] + (how & 16 ? fuzz_u8(in) : 0);
}

static struct slot *some_slot(struct fuzz_input *in)
{
	struct slot *s = &slot[fuzz_u8(in) % SLOTS];

	return s->c ? s : NULL;
}

static void hears(struct slot *s, uint64_t at)
{
	if (s->c->tx.way == BWS_BW)
		s->said = at;
}

/* Bytes that were never sent cannot have been taken. */
static void believes(const struct slot *s, uint64_t at, enum bws_way before)
{
	if (s->c && before == BWS_BW && at > s->c->shared->tx && s->c->tx.way != BWS_BW &&
	    at > s->c->tx.switch_at && !s->c->error)
		fuzz_bad("the peer is believed that it has what was never sent");
}

/* Both nonces as they are, or as they were; or those of somebody who does not know them. */
static void prove(const struct slot *s, uint8_t how, uint8_t *theirs, uint8_t *ours)
{
	bool old = (how & 7) == 3 || (how & 7) == 4, wrong = (how & 7) == 7;
	uint8_t junk = how & 8 ? 0 : 0xEE;

	memcpy(theirs, old ? s->then[1] : s->c->peer_nonce, BWS_NONCE);
	memcpy(ours, old ? s->then[0] : s->c->nonce, BWS_NONCE);
	if (wrong || (how & 7) == 5)
		memset(ours, junk, BWS_NONCE);
	if (wrong || (how & 7) == 6)
		memset(theirs, junk, BWS_NONCE);
}

/* Does its sender know what the peer of this connection alone knows, or knew? */
static enum proof proves(const struct slot *s, const struct bws_offer *o)
{
	const struct bws_conn *c = s->c;
	bool now = !memcmp(o->to_nonce, c->nonce, BWS_NONCE);

	if (o->kind == BWS_ACCEPT)
		return now && c->offers ? PROVEN : NONE;
	if (o->kind == BWS_OFFER)
		return NONE;
	if (now && c->peer_at.port && !memcmp(o->nonce, c->peer_nonce, BWS_NONCE))
		return PROVEN;
	return s->has_then && !memcmp(o->to_nonce, s->then[0], BWS_NONCE) &&
			       !memcmp(o->nonce, s->then[1], BWS_NONCE)
		       ? PROVEN_THEN
		       : NONE;
}

/* The bytes of mail.o, changed if so asked, are handled as what has come to a socket. */
static void post(int fd)
{
	struct pollfd fds[3 + BWS_REGISTRAR_FDS + BWS_CONTROL_DRAIN] = {0};
	uint64_t refused = bws.offers_refused;
	struct bws_offer again;
	bool pinned = bws.pinned;
	enum bws_way way = BWS_TCP;
	uint64_t at = 0;
	int n;

	mail.fd = fd;
	mail.good = bws_offer_unpack(mail.bytes, mail.len, &again);
	if (mail.good)
		mail.o = again;
	mail.of = mail.good && !memcmp(mail.from.address, mail.o.name.here, 16)
			  ? slot_of_name(&mail.o.name, true)
			  : NULL;
	mail.theirs = mail.of ? proves(mail.of, &mail.o) : NONE;
	if (mail.theirs == PROVEN && mail.o.kind == BWS_RESCUE) {
		memcpy(&at, mail.o.addr.bytes, sizeof(at));
		way = mail.of->c->tx.way;
		hears(mail.of, at);
	}
	mail.waits = true;
	mail.told = mail.handed = 0;
	freeze_all();
	if (fd >= OFFERS) {
		fds[fd - OFFERS].revents = POLLIN;
		bws_control_receive(fds);
	} else {
		n = bws_registrar_fds(&bws_control.registrar, fds);
		for (int i = 0; i < n; i++)
			fds[i].revents = fds[i].fd == fd ? POLLIN : 0;
		bws_registrar_serve(&bws_control.registrar, fds, n, bws_control_answer);
	}
	if (!mail.waits && fd != REGISTRAR && refused == bws.offers_refused &&
	    atomic_load(&bws.ep) && (!mail.good || memcmp(mail.from.address, mail.o.name.here, 16)))
		fuzz_bad("what is dropped is not counted");
	if (fd >= PORT && fd < REGISTRAR && mail.len == BWS_OFFER_BYTES && mail.handed != CLIENTS)
		fuzz_bad("not all of the registrar's clients are told");
	if (mail.theirs && mail.o.kind == BWS_RESCUE && fd >= OFFERS && atomic_load(&bws.ep) &&
	    !mail.told)
		fuzz_bad("a report of the peer is not acknowledged");
	if (mail.of)
		believes(mail.of, at, way);
	if (!pinned == !bws.pinned)
		still_frozen(mail.theirs == PROVEN ? mail.of : NULL,
			     mail.good && fd < OFFERS && mail.o.kind == BWS_OFFER);
	mail.handled = mail.waits = false;
	mail.of = NULL;
}

/* From the peer of a connection, or one who says so. */
static void compose(const struct slot *s, enum bws_offer_kind kind, uint8_t proof)
{
	struct bws_offer *o = &mail.o;

	memset(o, 0, sizeof(*o));
	o->kind = kind;
	o->id = 0x1234;
	memcpy(o->name.here, s->name.there, 16);
	memcpy(o->name.there, s->name.here, 16);
	o->name.here_port = s->name.there_port;
	o->name.there_port = s->name.here_port;
	prove(s, proof, o->nonce, o->to_nonce);
	if (kind == BWS_OFFER || kind == BWS_ACCEPT) {
		/* Who asks or answers draws one. */
		if (o->nonce[0] != 0xEE)
			draw(o->nonce, 2);
		o->addr.bytes[0] = (uint8_t)peer_of(s);
	}
	memset(&mail.from, 0, sizeof(mail.from));
	memcpy(mail.from.address, s->name.there, 16);
	mail.from.port = BWS_OFFER_PORT;
	mail.len = BWS_OFFER_BYTES;
}

static int socket_for(const struct slot *s, bool offer)
{
	return (offer ? PORT : OFFERS) + (number_of(s) == 2);
}

static void datagram(struct fuzz_input *in)
{
	struct slot *s = some_slot(in);
	uint8_t how = fuzz_u8(in), kind = fuzz_u8(in), where = fuzz_u8(in);
	uint64_t at;

	if (!s)
		return;
	compose(s, kind % (BWS_OFFER_KINDS + 1), kind >> 4);
	if (mail.o.kind >= BWS_RESCUE) {
		at = offset(s->c, in);
		memcpy(mail.o.addr.bytes, &at, sizeof(at));
	}
	if (how & 1) /* any endpoint */
		mail.o.addr.bytes[0] = fuzz_u8(in);
	if (how & 2)
		mail.from.port = fuzz_u16(in) | 1;
	if (how & 4)
		mail.o.id = fuzz_u16(in);
	if (how & 8) { /* from elsewhere */
		mail.from.address[15] ^= fuzz_u8(in);
		if (how & 128)
			memcpy(mail.o.name.here, mail.from.address, 16);
	}
	if (how & 16)
		mail.o.name.here_port = fuzz_u16(in);
	bws_offer_pack(&mail.o, mail.bytes);
	if (how & 32) /* anything */
		mail.bytes[fuzz_u8(in) % BWS_OFFER_BYTES] ^= fuzz_u8(in);
	if (how & 64)
		mail.len = fuzz_u16(in) % sizeof(mail.bytes);
	if (where & 1)
		post(socket_for(s, mail.o.kind == BWS_OFFER));
	else
		post(where & 2 ? REGISTRAR : socket_for(s, where & 4));
}

static void deliver(struct slot *s, struct bw_message *m, bool known)
{
	enum bws_way way = s->c->tx.way;

	if (down[m->peer])
		return;
	if (!s->c->rescue)
		s->since_rescue = s->rescued = 0;
	if (known && m->code == BWS_RETURN)
		hears(s, m->imm);
	if (!known)
		freeze_all();
	bws_flow_handlers.message(NULL, m);
	if (known && m->code == BWS_RETURN)
		believes(s, m->imm, way);
	if (!known)
		still_frozen(NULL, false);
}

static void message(struct fuzz_input *in)
{
	struct slot *s = some_slot(in);
	uint8_t how = fuzz_u8(in), whose = fuzz_u8(in), both[2 * BWS_NONCE];
	uint32_t n = how & 128 ? fuzz_u16(in) : fuzz_u8(in) & 63, len;
	struct bw_message m = {.code = how & 15};
	bool known;
	const uint8_t *bytes;
	uint8_t *copy;

	if (!s)
		return;
	m.peer = whose & 1 ? PEER_A + (whose >> 1) % 3 : (bw_peer_no)peer_of(s);
	known = s->c->peer_id && m.peer == s->c->peer;
	m.envelope = how & 32 && m.code > BWS_CROWDED;
	m.imm = offset(s->c, in);
	m.tag = (uint64_t)(s->c->id + (how & 16 ? fuzz_u8(in) : 0)) << 32 |
		(uint32_t)offset(s->c, in);
	if (m.tag >> 32 != s->c->id)
		return;
	bytes = fuzz_bytes(in, &n);
	len = how & 128 && n < 4 ? (n ? BWS_PIECE : LONGEST) : n;
	copy = calloc(1, len ? len : 1);
	if (!copy)
		return;
	memcpy(copy, bytes, n);
	if (m.code == BWS_DATA) {
		for (uint32_t i = 0; i < len; i++)
			copy[i] = known ? their_byte(s, m.imm + i) : 0xBB;
	}
	if (m.code == BWS_HELLO || m.code == BWS_WELCOME) {
		prove(s, whose >> 4, both, both + BWS_NONCE);
		memcpy(copy, both, len < sizeof(both) ? len : sizeof(both));
		len = how & 16 || len < sizeof(both) ? len : sizeof(both);
		known = len == sizeof(both) && !memcmp(copy, s->c->peer_nonce, BWS_NONCE) &&
			!memcmp(copy + BWS_NONCE, s->c->nonce, BWS_NONCE) &&
			m.peer == s->c->peer_addr.bytes[0] && m.imm && m.imm <= UINT32_MAX;
	}
	m.data = copy;
	m.len = len;
	deliver(s, &m, known);
	free(copy);
}

/* All that brings a connection from TCP to Beowire, as a good peer does. */
static void pairs(struct fuzz_input *in)
{
	struct slot *s = some_slot(in);
	uint8_t both[2 * BWS_NONCE], how = fuzz_u8(in);
	struct bw_message m = {.data = both, .len = sizeof(both)};
	struct pollfd fds[3 + BWS_REGISTRAR_FDS + BWS_CONTROL_DRAIN];
	int n = 3;

	if (!s || s->c->paired)
		return;
	atomic_store(&s->c->candidate, true);
	if (s->c->connector) {
		if (s->c->offer_at > fake_now)
			fake_now = s->c->offer_at;
		bws_control_looks(fds, &n);
		n = 3;
		fake_now += BWS_CONTROL_FIRST;
		bws_control_looks(fds, &n);
		if (!s->c)
			return;
	}
	compose(s, s->c->connector ? BWS_ACCEPT : BWS_OFFER, 0);
	bws_offer_pack(&mail.o, mail.bytes);
	post(socket_for(s, !s->c->connector));
	m.peer = (bw_peer_no)peer_of(s);
	m.code = s->c->connector ? BWS_WELCOME : BWS_HELLO;
	m.imm = 0x77;
	m.tag = (uint64_t)s->c->id << 32;
	memcpy(both, s->c->peer_nonce, BWS_NONCE);
	memcpy(both + BWS_NONCE, s->c->nonce, BWS_NONCE);
	deliver(s, &m, true);
	if (!s->c->paired || !(how & 1))
		return;
	m = (struct bw_message){.peer = s->c->peer, .code = BWS_READY, .imm = 1, .tag = m.tag};
	deliver(s, &m, true);
	if (!s->c->paired || !(how & 2))
		return;
	m.code = BWS_SWITCH;
	m.imm = s->c->rx.epoch;
	m.data = &s->c->shared->rx;
	m.len = 8;
	deliver(s, &m, true);
}

#endif
