/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HELLO, first contact. It is repeated on every path until its answer comes; the answer carries the
 * same facts back, and the handles that both are to use from then on.
 */
#include "contact.h"
#include "cookie.h"
#include "event.h"
#include "farewell.h"
#include "guest.h"
#include "hello.h"
#include "keys.h"
#include "loss.h"
#include "named.h"
#include "path.h"
#include "peer.h"
#include "pull.h"
#include "recv.h"
#include "reliable.h"

#define BW_HELLO_BYTES (sizeof(struct bw_hdr) + sizeof(struct bw_hello))

/* On this path; `move`: to the address at which the peer is said to be. */
static void bw_hello_build(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, bool move,
			   struct bw_tx_frame *f)
{
	bool answer = t->hello.answer && !move;
	struct bw_hdr *h = (struct bw_hdr *)f->head;
	struct bw_hello *b = (struct bw_hello *)(h + 1);

	bw_hdr_fill(e, p, h, BW_FRAME_HELLO);
	h->token = p->inc;
	h->flags = answer ? BW_HDR_ANSWER : 0;
	h->path = t->no;
	memset(b, 0, sizeof(*b));
	b->node = e->cfg.node;
	b->features = e->cfg.features;
	b->inc = e->cfg.incarnation;
	b->conn = p->wire;
	b->token = p->wire_token;
	b->random = p->keys ? p->keys->random : 0;
	b->version_min = BW_VERSION_MIN;
	b->version_max = BW_VERSION_MAX;
	b->engine = e->cfg.engine;
	b->credit = (uint32_t)(p->rx_limit / BW_CREDIT_UNIT);
	b->charge_min = e->cfg.charge_min;
	b->frame_max = e->cfg.link_mtu[t->to.link % 8];
	b->target_node = p->node;
	b->target_inc = p->inc;
	b->cookie = answer || move ? 0 : bw_cookies_next(&t->hello.cookies);
	memcpy(b->name, e->cfg.name, BW_NAME_MAX);
	if (move) { /* no echo: it might be a question of ours that somebody passes on */
		b->nonce = t->hello.move.nonce;
	} else if (answer) {
		b->echo = t->hello.echo;
	} else {
		b->nonce = t->hello.nonce;
	}
	f->to = move ? t->hello.move.to : t->to;
	f->segments = 0;
	f->head_len = f->len = BW_HELLO_BYTES;
	bw_key_sign_hello(e, h);
	bw_head_seal(e, NULL, 0, h, f->head_len, f->len);
	e->last.answer = answer;
	e->last.move = move;
	if (move) {
		t->hello.move.due = false;
		return;
	}
	if (!t->hello.sent)
		t->hello.sent = e->now;
	t->hello.answer = false;
	t->hello.due = t->hello.cookies.waiting != 0;
}

bool bw_hello_frame(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		if (!p->path[i]->hello.due && !p->path[i]->hello.move.due)
			continue;
		bw_hello_build(e, p, p->path[i], !p->path[i]->hello.due, f);
		return true;
	}
	return false;
}

/* One that was known by an address only turns out to be one that has called by itself, from another
 * address. It answers one of the two: who was not answered yet never will be. */
static void bw_hello_recognize(struct bw_engine *e, const struct bw_peer *p)
{
	struct bw_list *names = bw_contact_namesakes(e, p->node, p->engine), *l, *next;

	for (l = names->next; l != names; l = next) {
		struct bw_peer *o = bw_entry(l, struct bw_peer, namesake);

		next = l->next;
		if (o != p && o->node == p->node && o->engine == p->engine && o->inc == p->inc &&
		    o->state != BW_PEER_DOWN && !o->confirmed)
			bw_peer_down(e, o, BW_DOWN_RESET);
	}
}

/* What a HELLO says of its sender becomes the peer's state. */
static void bw_hello_adopt(struct bw_engine *e, struct bw_peer *p, const struct bw_hello *b)
{
	bool unknown = !p->node;

	if (p->conn)
		return;
	p->node = b->node;
	p->inc = b->inc;
	bw_contact_register(e, p);
	bw_contact_given(e, p, b->conn, b->token);
	bw_key_session(e, p, b->random);
	p->charge_min = b->charge_min;
	p->trailer = e->cfg.features & BW_FEATURE_ENCRYPT ? BW_SEAL_TAG : 0;
	p->checksum = !p->trailer && (b->features & e->cfg.features & BW_FEATURE_CHECKSUM);
	p->stripes = (b->features & e->cfg.features & BW_FEATURE_STRIPE) != 0;
	p->longs = (b->features & BW_FEATURE_LONG) != 0;
	p->version_min = b->version_min;
	p->version_max = b->version_max;
	p->version = bw_contact_version(b->version_max);
	p->tx_limit = (uint64_t)b->credit * BW_CREDIT_UNIT;
	bw_contact_name(p, b->name);
	if (p->state == BW_PEER_HELLO)
		bw_event_push(e, &p->ev_up, BW_EV_PEER_UP);
	p->state = BW_PEER_UP;
	if (unknown)
		bw_hello_recognize(e, p);
}

/* The peer that a HELLO which answers nothing comes from; NULL: it is not known. */
static struct bw_peer *bw_hello_caller(struct bw_engine *e, const struct bw_hello *b,
				       const struct bw_link_addr *from)
{
	struct bw_peer *p = bw_contact_find(e, b->node, b->engine, b->inc, from);

	return p ? p : bw_contact_at(e, from, b->engine, b->inc, true);
}

/* Do we speak to that address anyway? Our host named it, or it has answered. But what the host has
 * not said of a peer, its node or incarnation, no frame says that anybody may have sent. */
static bool bw_hello_expected(struct bw_peer *p, const struct bw_link_addr *from)
{
	const struct bw_path *t = p ? bw_contact_known_path(p, from) : NULL;

	if (p && !p->conn && (!p->node || !p->inc))
		return false;
	return t && (t->hello.named || t->answered);
}

/* Of one engine only the latest incarnation lives: of many, old ones have to go. Is there room for
 * another? */
static bool bw_hello_thin_out(struct bw_engine *e, const struct bw_hello *b)
{
	struct bw_list *names = bw_contact_namesakes(e, b->node, b->engine), *l, *before;
	struct bw_peer *idlest = NULL;
	uint32_t n = 1;

	for (l = names->prev; l != names; l = before) {
		struct bw_peer *p = bw_entry(l, struct bw_peer, namesake);

		before = l->prev;
		if (p->node != b->node || p->engine != b->engine)
			continue;
		e->steps++;
		if (++n > BW_NAMESAKES && bw_guest_gives_way(e, p))
			n--;
		else
			idlest = bw_guest_idler(e, p, idlest);
	}
	if (n > BW_NAMESAKES_MOST && idlest)
		bw_guest_dismiss(e, idlest);
	return n <= BW_NAMESAKES_MOST || idlest;
}

static struct bw_peer *bw_hello_new_peer(struct bw_engine *e, const struct bw_hello *b)
{
	struct bw_peer *p = bw_hello_thin_out(e, b) ? bw_guest_new(e) : NULL;

	if (!p)
		return NULL;
	p->node = b->node;
	p->engine = b->engine;
	bw_contact_register(e, p);
	return p;
}

/* Another incarnation of the same engine speaks: the old one is asked whether it still lives. An
 * old HELLO that arrives late thus cannot end a living peer. Of many the latest are. */
static void bw_hello_doubt(struct bw_engine *e, const struct bw_hello *b)
{
	struct bw_list *names = bw_contact_namesakes(e, b->node, b->engine), *l;
	uint32_t n = 0;

	for (l = names->prev; l != names && n < BW_NAMESAKES; l = l->prev) {
		struct bw_peer *p = bw_entry(l, struct bw_peer, namesake);

		if (p->engine != b->engine || p->node != b->node || p->inc == b->inc)
			continue;
		e->steps++;
		n++;
		if (p->state == BW_PEER_UP) {
			p->ping_due = true;
			bw_peer_ready(e, p);
		}
	}
}

static struct bw_peer *bw_hello_answerer(struct bw_engine *e, const struct bw_hdr *h,
					 const struct bw_hello *b)
{
	struct bw_peer *p = bw_peer_get(e, h->conn);

	if (!p || p->wire != h->conn || p->engine != b->engine || (p->inc && p->inc != b->inc) ||
	    (p->node && p->node != b->node))
		return NULL;
	return p;
}

/* The same incarnation speaks by another handle than before: it gave us up and starts again, or one
 * of its HELLOs is an old one. While nothing but HELLOs was exchanged, the latest counts; but
 * frames of the two must never meet in one peer, so it is to use a new handle of ours. Thus each of
 * our handles belongs to one of its handles for ever; and as both sides begin with HELLOs, which
 * name both, whoever uses ours in another frame means the same. Later, it is asked by the handle
 * that we know: it refuses if it gave that up, and its new HELLO comes again meanwhile. `fresh`:
 * the path by which this is answered to what was asked there just now; NULL: it is not. */
static int bw_hello_rebind(struct bw_engine *e, struct bw_peer *p, bool answer,
			   const struct bw_path *fresh)
{
	uint32_t wire;
	uint8_t i;

	bw_peer_ready(e, p);
	/* its own word, and no old one; or that of who is where the peer should be and never was */
	if (p->confirmed && fresh && (e->cfg.keyed || (fresh->hello.named && !fresh->answered))) {
		bw_peer_down(e, p, BW_DOWN_RESET);
		return -BW_DROP_EARLY;
	}
	if (p->doubted && fresh && fresh->hello.named)
		return bw_named_contradicted(e, p);
	if (p->confirmed || p->doubted) {
		p->ping_due |= !answer;
		return -BW_DROP_EARLY;
	}
	wire = bw_table_add(&e->peer_table, p, bw_nonce(e));
	if (!wire)
		return -BW_DROP_NO_BUFFER;
	if (p->wire != p->handle)
		bw_table_remove(&e->peer_table, p->wire);
	p->wire = wire;
	bw_peer_draw(e, p);
	p->keyed = false;
	bw_contact_given(e, p, 0, 0);
	for (i = 0; i < p->npaths; i++)
		p->path[i]->remote_no = BW_PATH_UNKNOWN;
	return 0;
}

/* The path that the peer numbers so, by the same link but another address of the peer. */
static struct bw_path *bw_hello_numbered(struct bw_peer *p, const struct bw_link_addr *from,
					 uint8_t remote_no)
{
	struct bw_path *t = bw_peer_path(p, remote_no);

	return t && t->to.link == from->link ? t : NULL;
}

/* The peer numbers this path so, as its answer proves. No two paths have one number, or its
 * acknowledgements would be taken for those of the wrong one: what had it leads nowhere now. */
static void bw_hello_renumber(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
			      uint8_t remote_no)
{
	struct bw_path *old = bw_peer_path(p, remote_no);

	if (old && old != t) {
		old->remote_no = BW_PATH_UNKNOWN;
		if (old->state == BW_PATH_UP)
			bw_loss_leave_path(e, p, old);
	}
	t->remote_no = remote_no;
}

/* The peer seems to have another address on this path: a network interface was exchanged, or the
 * frame is somebody else's, or an old one that is sent again. Whoever is there is asked; the path
 * goes there only when that was answered. */
static int bw_hello_moved(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
			  const struct bw_rx_frame *f, const struct bw_hello *b, bool answer)
{
	struct bw_hello_move *m = &t->hello.move;
	bool asked = m->nonce && bw_link_same(&m->to, &f->from);

	if (answer && !asked)
		return -BW_DROP_ADDRESS;
	bw_peer_ready(e, p);
	if (asked && b->echo == m->nonce) {
		bw_contact_move(e, t, &f->from);
		t->hello.echo = b->nonce ? b->nonce : m->echo;
		t->hello.due = t->hello.answer = t->hello.echo != 0;
		memset(m, 0, sizeof(*m));
		bw_path_answered(e, p, t);
		bw_path_up(e, p, t);
		bw_event_push(e, &t->ev, BW_EV_PATH);
		bw_peer_schedule(e, p);
		return 0;
	}
	if (!asked) {
		m->to = f->from;
		m->nonce = bw_nonce(e);
		m->pause = BW_HELLO_FIRST;
		m->next = e->now;
	}
	m->echo = b->nonce ? b->nonce : m->echo;
	if (e->now < m->next) /* two that have both moved would ask one another without end */
		return 0;
	m->next = e->now + m->pause;
	m->pause = (uint32_t)bw_min_u64(2ull * m->pause, BW_HELLO_LAST);
	m->due = true;
	return 0;
}

/* Do both encrypt, or neither? Nobody is talked into less: what HELLO offers is under `auth`. */
static bool bw_hello_sealed_alike(const struct bw_engine *e, const struct bw_hello *b)
{
	return !((b->features ^ e->cfg.features) & BW_FEATURE_ENCRYPT);
}

int bw_hello_received(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h)
{
	const struct bw_hello *b = (const struct bw_hello *)(h + 1);
	bool answer = h->flags & BW_HDR_ANSWER, proof;
	struct bw_peer *p;
	struct bw_path *t;
	int r;

	if (h->len < sizeof(*b) || f->len < BW_HELLO_BYTES)
		return -BW_DROP_SHORT;
	if (!bw_recv_head_ok(e, f, BW_HELLO_BYTES))
		return -BW_DROP_HEADER;
	if (b->version_min > BW_VERSION_MAX || b->version_max < BW_VERSION_MIN) {
		bw_farewell_refuse(e, f, h, BW_REFUSAL_VERSION);
		return -BW_DROP_VERSION;
	}
	if (!b->node || !b->inc || !b->conn || b->engine != h->src_engine ||
	    h->path >= BW_PATHS_MAX || b->frame_max < BW_FRAME_MIN_MTU)
		return -BW_DROP_MALFORMED;
	if ((h->token && h->token != e->cfg.incarnation) ||
	    (b->target_node && b->target_node != e->cfg.node)) {
		if (!answer)
			bw_farewell_refuse(e, f, h, BW_REFUSAL_INCARNATION);
		return -BW_DROP_INCARNATION;
	}
	p = answer ? bw_hello_answerer(e, h, b) : bw_hello_caller(e, b, &f->from);
	if (!p && answer)
		return -BW_DROP_HANDLE;
	if (!answer && !bw_hello_expected(p, &f->from) && !bw_cookie_shown(e, f, b))
		return bw_cookie_challenge(e, f, b);
	if (!bw_key_hello_genuine(e, h)) {
		if (!answer)
			bw_farewell_refuse(e, f, h, BW_REFUSAL_KEY);
		return -BW_DROP_KEY;
	}
	if (!answer && !bw_hello_sealed_alike(e, b)) {
		bw_farewell_refuse(e, f, h, BW_REFUSAL_ENCRYPT);
		return -BW_DROP_SEAL;
	}
	if (!answer) {
		if (p && bw_named_awaited(e, p, &f->from))
			return -BW_DROP_EARLY;
		p = p ? p : bw_hello_new_peer(e, b);
		if (!p)
			return -BW_DROP_NO_BUFFER;
		bw_hello_doubt(e, b);
	}
	t = bw_contact_known_path(p, &f->from);
	if (p->conn && (p->conn != b->conn || p->conn_token != b->token)) {
		proof = t && answer && b->echo == t->hello.nonce;
		r = bw_hello_rebind(e, p, answer, proof ? t : NULL);
		if (t)
			t->hello.due |= answer && !r; /* what it answered has become void */
		if (r || answer)
			return r ? r : -BW_DROP_EARLY;
	}
	if (!t && p->doubted) /* to whom would it add another address? */
		return -BW_DROP_EARLY;
	if (!t && bw_hello_numbered(p, &f->from, h->path))
		return bw_hello_moved(e, p, bw_peer_path(p, h->path), f, b, answer);
	if (!t && answer)
		return -BW_DROP_ADDRESS; /* we asked somewhere else */
	t = bw_contact_path(e, p, &f->from);
	if (!t)
		return p->npaths < BW_PATHS_MAX ? -BW_DROP_NO_BUFFER : -BW_DROP_EARLY;
	bw_peer_ready(e, p);
	proof = t->hello.nonce && b->echo == t->hello.nonce;
	if (answer && !proof)
		return -BW_DROP_ECHO;
	if (answer && !bw_hello_sealed_alike(e, b)) { /* of who does not know the refusal */
		if (bw_named_only_guest(p, &f->from))
			return bw_named_contradicted(e, p);
		bw_peer_down(e, p, BW_DOWN_ENCRYPT);
		return -BW_DROP_SEAL;
	}
	if (proof || (t->remote_no == BW_PATH_UNKNOWN && !bw_peer_path(p, h->path))) {
		bw_hello_renumber(e, p, t, h->path);
		t->pmtu.most = b->frame_max;
	}
	bw_hello_adopt(e, p, b);
	if (answer && !t->hello.repeated && t->state == BW_PATH_TRYING)
		bw_rtt_sample(&t->rtt, e->now - t->hello.sent);
	if (proof && bw_named_confirms(p, t)) { /* not our handle in it: that can be guessed */
		p->confirmed = true;
		p->inc = b->inc;
	}
	if (answer)
		bw_path_guess(e, t);
	if (proof) {
		t->hello.nonce = bw_nonce(e);
		t->hello.cookies.waiting = 0;
		bw_path_answered(e, p, t);
		bw_path_up(e, p, t);
	}
	t->hello.echo = b->nonce;
	t->hello.due = t->hello.answer = !answer;
	bw_peer_ready(e, p);
	bw_peer_schedule(e, p);
	return 0;
}
