/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Farewell: frames that end a conversation, or that belong to none. REFUSE answers what nobody here
 * is meant by, BYE takes leave; neither is repeated by itself nor acknowledged.
 */
#include "ack.h"
#include "contact.h"
#include "farewell.h"
#include "keys.h"
#include "named.h"
#include "peer.h"
#include "recv.h"
#include "refuse.h"
#include "reliable.h"

struct bw_stray *bw_stray_new(struct bw_engine *e, const struct bw_link_addr *to)
{
	struct bw_stray *s = &e->stray[e->stray_head % BW_STRAYS];

	if (e->stray_head - e->stray_tail == BW_STRAYS)
		return NULL;
	e->stray_head++;
	s->to = *to;
	return s;
}

bool bw_stray_frame(struct bw_engine *e, struct bw_tx_frame *f)
{
	struct bw_stray *s;

	if (e->stray_head == e->stray_tail)
		return false;
	s = &e->stray[e->stray_tail++ % BW_STRAYS];
	e->last.stray = true;
	f->to = s->to;
	f->segments = 0;
	f->head_len = f->len = s->len;
	memcpy(f->head, s->head, s->len);
	return true;
}

/* A REFUSE with what `echo` holds: why, and what is refused. key: of the conversation that it ends;
 * NULL: that of all refusals. */
static void bw_farewell_say_refused(struct bw_engine *e, const struct bw_link_addr *to,
				    uint16_t engine, const struct bw_refuse *echo,
				    const uint8_t *key)
{
	struct bw_stray *s = bw_stray_new(e, to);
	struct bw_hdr *r;
	struct bw_refuse *b;

	if (!s)
		return;
	r = (struct bw_hdr *)s->head;
	b = (struct bw_refuse *)(r + 1);
	bw_hdr_fill(e, NULL, r, BW_FRAME_REFUSE);
	r->dst_engine = engine;
	*b = *echo;
	b->version_min = BW_VERSION_MIN;
	b->version_max = BW_VERSION_MAX;
	b->inc = e->cfg.incarnation;
	memcpy(b->name, e->cfg.name, BW_NAME_MAX);
	s->len = BW_REFUSE_BYTES;
	if (BW_UNLIKELY(e->cfg.keyed)) {
		r->len = sizeof(*b);
		b->auth = bw_key_auth(bw_ops(e)->siphash, key ? key : e->key.refuse, r,
				      BW_REFUSE_BYTES);
	}
	bw_head_seal(e, NULL, 0, r, s->len, s->len);
	e->count.refusals_tx++;
}

void bw_farewell_refuse(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h,
			enum bw_refusal why)
{
	struct bw_refuse echo = {
		.why = (uint8_t)why,
		.echo_type = h->type,
		.echo_engine = h->dst_engine,
		.echo_token = h->token,
		.echo_conn = h->conn,
	};

	if (f->len < BW_REFUSE_BYTES)
		return; /* no answer is longer than what it answers */
	if (h->type == BW_FRAME_HELLO) {
		const struct bw_hello *b = (const struct bw_hello *)(h + 1);

		echo.echo_conn = b->conn;
		echo.echo_hello = b->token;
	}
	bw_farewell_say_refused(e, &f->from, h->src_engine, &echo, NULL);
}

/* Does it refuse for its version, and speak none of ours? */
static bool bw_farewell_other_version(const struct bw_refuse *b)
{
	return b->why == BW_REFUSAL_VERSION &&
	       (b->version_min > BW_VERSION_MAX || b->version_max < BW_VERSION_MIN);
}

/* Does it echo the token of our HELLO, or come from who speaks no version in which that is done? */
static bool bw_farewell_echoes(const struct bw_peer *p, const struct bw_refuse *b)
{
	return b->echo_hello == p->wire_token ||
	       (!b->echo_hello && b->version_max < BW_VERSION_ECHOES &&
		bw_farewell_other_version(b));
}

static struct bw_peer *bw_farewell_refused_peer(struct bw_engine *e, const struct bw_refuse *b)
{
	struct bw_peer *p;

	if (b->echo_type == BW_FRAME_HELLO) {
		p = bw_peer_get(e, b->echo_conn);
		return p && p->wire == b->echo_conn && bw_farewell_echoes(p, b) &&
				       p->engine == b->echo_engine && p->inc == b->echo_token
			       ? p
			       : NULL;
	}
	p = bw_contact_giver(e, b->echo_engine, b->echo_conn, b->echo_token);
	return p && p->state == BW_PEER_UP ? p : NULL;
}

/* A path on which nobody answers for the peer is given up; the peer lives while another may
 * work. */
static bool bw_farewell_other_path(struct bw_peer *p, const struct bw_link_addr *from)
{
	bool other = false;
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		if (p->path[i]->state == BW_PATH_TRYING && bw_link_same(&p->path[i]->to, from))
			p->path[i]->state = BW_PATH_NONE;
		other |= p->path[i]->state == BW_PATH_TRYING && p->path[i]->to.link != from->link;
	}
	return other;
}

/* Is it about this very conversation, and with a key, said by who has it? What refuses a HELLO
 * echoes the token in it; with a key other frames show nothing that could not be an old
 * conversation's. */
static bool bw_farewell_believed(struct bw_engine *e, const struct bw_peer *p,
				 const struct bw_hdr *h)
{
	const struct bw_refuse *b = (const struct bw_refuse *)(h + 1);
	bool hello = b->echo_type == BW_FRAME_HELLO;
	const uint8_t *key;

	if (hello && b->echo_hello != p->wire_token)
		return false;
	if (BW_LIKELY(!e->cfg.keyed))
		return true;
	key = hello ? e->key.refuse : p->keyed ? p->keys->rx.tag : NULL;
	return key && b->auth == bw_key_auth(bw_ops(e)->siphash, key, h, BW_REFUSE_BYTES);
}

/* Is it still doubted that the peer lives? */
static bool bw_farewell_doubted(const struct bw_engine *e, const struct bw_peer *p)
{
	return p->keys->doubted && p->proven < p->keys->doubted &&
	       e->now < p->keys->said + BW_DOUBT_FORGET;
}

/* By HELLO, on all paths: whatever waits for it is sent again meanwhile, too. */
static void bw_farewell_ask(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i;

	if (e->now < p->keys->ask_at)
		return;
	p->keys->ask_at = e->now + BW_DOUBT_PAUSE;
	for (i = 0; i < p->npaths; i++)
		p->path[i]->hello.due |= p->path[i]->state != BW_PATH_NONE;
	bw_peer_ready(e, p);
}

/* Its host says that nobody is there any more, or somebody in its name. Who lives answers what it
 * is asked; if for a while nothing comes but more of this, it is true. */
static bool bw_farewell_dead(struct bw_engine *e, struct bw_peer *p,
			     const struct bw_link_addr *from)
{
	struct bw_keys *k = p->keys;

	if (!bw_farewell_doubted(e, p)) {
		k->doubted = e->now ? e->now : 1;
		k->ask_at = 0;
	}
	k->said = e->now;
	if (e->now < k->doubted + bw_min_u64(BW_DOUBT, e->cfg.dead_ns / 4)) {
		bw_farewell_ask(e, p);
		return false;
	}
	return p->state != BW_PEER_HELLO || !bw_farewell_other_path(p, from);
}

/* What the peer said before it ended is still unread, perhaps: its BYE above all. */
static void bw_farewell_refused_as(struct bw_engine *e, struct bw_peer *p, int32_t status)
{
	bool ended = status == BW_DOWN_REFUSED || status == BW_DOWN_RESET;

	if (!ended || p->state != BW_PEER_UP || !p->confirmed)
		bw_peer_down(e, p, status);
	else if (!p->gone_at)
		bw_peer_part(e, p, status);
}

/* A refusal that anybody may have made up, or kept: the peer is asked by HELLO, whose refusal would
 * be believed. Who refuses our key or version may be right; the peer has some time to answer. */
static int bw_farewell_hearsay(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
			       const struct bw_refuse *b)
{
	if ((b->why == BW_REFUSAL_KEY || bw_farewell_other_version(b)) && !p->confirmed &&
	    !p->doubted && !p->denied_as) {
		p->patience = e->now + BW_KEY_PATIENCE;
		p->denied_as = b->why;
		p->version_min = b->version_min;
		p->version_max = b->version_max;
		bw_contact_name(p, b->name);
		bw_peer_sooner(e, p, e->now + BW_KEY_PATIENCE);
	}
	if (b->why == BW_REFUSAL_NO_ENGINE && bw_farewell_dead(e, p, &t->to)) {
		bw_farewell_refused_as(e, p, BW_DOWN_REFUSED);
		return 0;
	}
	if (b->echo_type != BW_FRAME_HELLO && e->now >= t->hello.asked + BW_PING_MIN) {
		t->hello.asked = e->now;
		t->hello.due = true;
		bw_peer_ready(e, p);
	}
	return e->cfg.keyed ? -BW_DROP_KEY : -BW_DROP_ECHO;
}

int bw_farewell_refused(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h)
{
	const struct bw_refuse *b = (const struct bw_refuse *)(h + 1);
	struct bw_peer *p;
	int32_t status = BW_DOWN_REFUSED;

	if (h->len < sizeof(*b) || f->len < BW_REFUSE_BYTES)
		return -BW_DROP_SHORT;
	if (!bw_recv_head_ok(e, f, BW_REFUSE_BYTES))
		return -BW_DROP_HEADER;
	p = bw_farewell_refused_peer(e, b);
	if (!p)
		return -BW_DROP_ECHO;
	if (!bw_contact_known_path(p, &f->from))
		return -BW_DROP_ADDRESS;
	if (!bw_farewell_believed(e, p, h))
		return bw_farewell_hearsay(e, p, bw_contact_known_path(p, &f->from), b);
	e->count.refusals_rx++;
	if (p->doubted) /* the guest's, as BYE */
		return bw_named_contradicted(e, p);
	if (b->why == BW_REFUSAL_NO_ENGINE && p->state == BW_PEER_HELLO &&
	    bw_farewell_other_path(p, &f->from))
		return 0;
	bw_contact_name(p, b->name);
	p->version_min = b->version_min;
	p->version_max = b->version_max;
	if (b->why == BW_REFUSAL_VERSION)
		status = BW_DOWN_VERSION;
	else if (b->why == BW_REFUSAL_KEY)
		status = BW_DOWN_KEY;
	else if (b->why == BW_REFUSAL_ENCRYPT)
		status = BW_DOWN_ENCRYPT;
	else if (b->why == BW_REFUSAL_HANDLE && b->inc == p->inc)
		status = BW_DOWN_RESET;
	bw_farewell_refused_as(e, p, status);
	return 0;
}

static uint32_t bw_leave_bytes(const struct bw_leave *l)
{
	uint32_t acknowledges = sizeof(struct bw_ackblk) + sizeof(struct bw_ack);

	return sizeof(struct bw_hdr) + (l->acknowledges ? acknowledges : 0);
}

/* Was the peer there? */
static bool bw_leave_at(const struct bw_leave *l, const struct bw_link_addr *from)
{
	uint8_t i;

	for (i = 0; i < l->paths; i++)
		if (bw_link_same(&l->at[i], from))
			return true;
	return false;
}

/* A BYE that was said before. */
static void bw_farewell_repeat_bye(struct bw_engine *e, const struct bw_leave *l,
				   const struct bw_link_addr *to)
{
	struct bw_stray *s = bw_stray_new(e, to);
	struct bw_ackblk *b;
	struct bw_hdr *h;

	if (!s)
		return;
	h = (struct bw_hdr *)s->head;
	bw_hdr_fill(e, NULL, h, BW_FRAME_BYE);
	h->version = l->version;
	h->dst_engine = l->engine;
	h->token = l->conn_token;
	h->conn = l->conn;
	s->len = bw_leave_bytes(l);
	if (l->acknowledges) {
		h->path = l->path;
		b = (struct bw_ackblk *)(h + 1);
		*b = l->ackblk;
		memcpy(b + 1, &l->ack, sizeof(l->ack));
	}
	bw_head_seal(e, l->keyed ? l->tag : NULL, l->acknowledges ? l->over : 0, s->head, s->len,
		     s->len);
}

/* What was received is acknowledged before the leave, while that leaves room for leaves. */
static void bw_farewell_say_ack(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	struct bw_stray *s;

	if (e->stray_head - e->stray_tail >= BW_STRAYS / 2)
		return;
	s = bw_stray_new(e, &t->to);
	s->len = bw_ack_write(e, p, t, BW_FRAME_ACK, s->head);
}

void bw_farewell_settle(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i;

	for (i = 0; p->conn && i < p->npaths; i++)
		if (bw_ack_owed(p, p->path[i]))
			bw_farewell_say_ack(e, p, p->path[i]);
}

/* A BYE says what was received, too: the acknowledgement before it may be lost, and is the last. */
static void bw_farewell_say_bye(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	struct bw_stray *s = bw_stray_new(e, &t->to);

	if (s)
		s->len = bw_ack_write(e, p, t, BW_FRAME_BYE, s->head);
}

/* The path by which the peer's last packet came: what acknowledges that one leaves by it just
 * before BYE, and BYE by another path may be read sooner. */
static struct bw_path *bw_farewell_path(const struct bw_peer *p)
{
	struct bw_path *t = p->path[p->best];
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		struct bw_path *o = p->path[i];

		if (o->state == BW_PATH_UP && o->rx.any &&
		    (!t->rx.any || o->rx.max_ns > t->rx.max_ns))
			t = o;
	}
	return t;
}

void bw_farewell_bid_bye(struct bw_engine *e, struct bw_peer *p, bool acknowledge)
{
	struct bw_path *t = bw_farewell_path(p);
	struct bw_leave *l;

	if (!p->conn)
		return;
	l = &e->leave[e->leaves++ % BW_LEAVES];
	l->wire = p->wire;
	l->wire_token = p->wire_token;
	l->conn = p->conn;
	l->conn_token = p->conn_token;
	l->engine = p->engine;
	l->version = p->version;
	l->keyed = p->keyed;
	if (p->keyed)
		memcpy(l->tag, p->keys->tx.tag, sizeof(l->tag));
	for (l->paths = 0; l->paths < p->npaths; l->paths++)
		l->at[l->paths] = p->path[l->paths]->to;
	l->path = t->no;
	l->acknowledges = acknowledge && p->confirmed && t->rx.any;
	if (l->acknowledges) {
		bw_ack_whole(e, p, t, &l->ackblk, &l->ack);
		l->over = bw_ack_over(p, t);
		bw_farewell_say_bye(e, p, t);
	} else {
		bw_farewell_repeat_bye(e, l, &t->to);
	}
}

/* What the peer that leaves has received of us. */
static int bw_farewell_last_ack(struct bw_engine *e, const struct bw_rx_frame *f,
				const struct bw_hdr *h, struct bw_peer *p)
{
	struct bw_path *t = bw_peer_path(p, h->path);
	int r = bw_recv_ack_body(e, f, h);

	if (!r && p->conn && t)
		bw_recv_ack_taken(e, p, t, h);
	return r;
}

/* Is something under way on another path than this one of the peer's? What acknowledges it left
 * before BYE, but may be read later. */
static bool bw_farewell_unanswered(const struct bw_peer *p, uint8_t remote_no)
{
	bool any = false;
	uint8_t i;

	for (i = 0; i < p->npaths; i++)
		any |= p->path[i]->remote_no != remote_no && !bw_list_empty(&p->path[i]->flight);
	return any;
}

int bw_farewell_bye(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h)
{
	struct bw_peer *p;
	int r;

	p = bw_peer_get(e, h->conn);
	r = bw_recv_peers_head(e, f, p, sizeof(*h) + h->len);
	if (r)
		return r;
	if (!bw_contact_shows(p, h))
		return -BW_DROP_HANDLE;
	if (e->cfg.keyed && !p->keyed) /* nobody could have made a tag yet; HELLO shows the token */
		return -BW_DROP_EARLY;
	if (!bw_contact_known_path(p, &f->from))
		return -BW_DROP_ADDRESS;
	r = h->len ? bw_farewell_last_ack(e, f, h, p) : 0;
	/* The guest's, whatever address it bears: who is at a named one is asked all the same. */
	if (!r && p->state != BW_PEER_DOWN && p->doubted)
		return bw_named_contradicted(e, p);
	if (r || p->state == BW_PEER_DOWN || (p->gone_at && p->gone_as == BW_DOWN_CLOSED))
		return r;
	if (!h->len || !bw_farewell_unanswered(p, h->path)) {
		bw_peer_down(e, p, BW_DOWN_CLOSED);
		return 0;
	}
	bw_peer_part(e, p, BW_DOWN_CLOSED);
	return 0;
}

/* What its next frame would be answered by whoever is here then. */
static void bw_farewell_say_gone(struct bw_engine *e, const struct bw_peer *p)
{
	struct bw_refuse echo = {
		.why = BW_REFUSAL_INCARNATION,
		.echo_type = BW_FRAME_DATA,
		.echo_engine = e->cfg.engine,
		.echo_token = p->wire_token,
		.echo_conn = p->wire,
	};

	if (p->conn)
		bw_farewell_say_refused(e, &p->path[p->best]->to, p->engine, &echo,
					bw_peer_tag_key(p));
}

/* With a key nobody here can check the frame any more: its sender may be anybody, and its address
 * made up. So BYE goes to where the peer was, and is no longer than what it answers. */
void bw_farewell_unknown(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h)
{
	const struct bw_leave *l;

	for (l = e->leave; h->conn && l < e->leave + BW_LEAVES; l++) {
		if (l->wire != h->conn || (l->wire_token != h->token && !l->keyed) ||
		    l->engine != h->src_engine || !bw_leave_at(l, &f->from))
			continue;
		if (f->len >= bw_leave_bytes(l))
			bw_farewell_repeat_bye(e, l, &f->from);
		return;
	}
	bw_farewell_refuse(e, f, h, BW_REFUSAL_HANDLE);
}

/* All of them are told again what was received, and BYE. */
static void bw_farewell_again(struct bw_engine *e)
{
	uint8_t i;

	e->byes++;
	while (!bw_list_empty(&e->left)) {
		struct bw_peer *p = bw_first(&e->left, struct bw_peer, all);

		bw_list_del(&p->all);
		bw_list_add_before(&e->peers, &p->all);
		for (i = 0; i < p->npaths; i++)
			p->path[i]->rx.ack_now = p->path[i]->rx.any;
	}
}

/* All that is said to a peer may be lost, and nobody is here any more who would answer when it
 * asks: what it sent would end with an error although it was received, and a BYE that never came
 * makes a crash of a close. */
static void bw_farewell_leave(struct bw_engine *e, struct bw_peer *p)
{
	bw_list_del(&p->all);
	if (e->failed) {
		bw_farewell_say_gone(e, p);
		return;
	}
	bw_farewell_bid_bye(e, p, true);
	if (e->byes + 1 < BW_BYES && p->conn && p->confirmed) {
		bw_list_add_before(&e->left, &p->all);
		e->bye_at = e->now + BW_BYE_PAUSE;
	}
}

uint64_t bw_farewell_deadline(const struct bw_engine *e)
{
	if (!bw_list_empty(&e->peers) || e->stray_head != e->stray_tail)
		return e->now;
	return bw_list_empty(&e->left) ? BW_NEVER : e->bye_at;
}

bool bw_farewell_frame(struct bw_engine *e, struct bw_tx_frame *f)
{
	struct bw_peer *p;
	uint8_t i;

	if (bw_list_empty(&e->peers) && !bw_list_empty(&e->left) && e->now >= e->bye_at)
		bw_farewell_again(e);
	while (!bw_list_empty(&e->peers)) {
		p = bw_first(&e->peers, struct bw_peer, all);
		for (i = 0; i < p->npaths; i++) {
			if (!bw_ack_owed(p, p->path[i]))
				continue;
			e->last.peer = p->handle;
			bw_ack_build(e, p, p->path[i], f);
			return true;
		}
		bw_farewell_leave(e, p);
		if (bw_stray_frame(e, f))
			return true;
	}
	return bw_stray_frame(e, f);
}
