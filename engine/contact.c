/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * First contact, refusal and farewell. A HELLO is repeated on every path until its answer comes;
 * the answer carries the same facts back. Handles exchanged here address all later frames, so that
 * a frame for a dead incarnation or a forgotten peer is recognized and refused, never delivered.
 */
#include "reliable.h"

#define BW_HELLO_BYTES	(sizeof(struct bw_hdr) + sizeof(struct bw_hello))
#define BW_REFUSE_BYTES (sizeof(struct bw_hdr) + sizeof(struct bw_refuse))

void bw_hdr_fill(struct bw_engine *e, const struct bw_peer *p, struct bw_hdr *h, uint8_t type)
{
	memset(h, 0, sizeof(*h));
	h->magic = BW_MAGIC;
	h->version = BW_VERSION;
	h->type = type;
	h->cluster = e->cfg.cluster;
	h->src_engine = e->cfg.engine;
	if (!p)
		return;
	h->dst_engine = p->engine;
	h->dst_inc = p->inc;
	h->conn = p->conn;
}

void bw_head_seal(struct bw_engine *e, void *head, uint32_t head_len, uint32_t frame_len)
{
	struct bw_hdr *h = head;

	h->len = (uint16_t)(frame_len - sizeof(*h));
	h->hcrc = 0;
	h->hcrc = e->ops->crc32c(0, head, head_len);
}

static struct bw_peer *bw_contact_find(struct bw_engine *e, uint64_t node, uint16_t engine,
				       uint32_t inc)
{
	struct bw_list *l;

	for (l = e->peers.next; l != &e->peers; l = l->next) {
		struct bw_peer *p = bw_entry(l, struct bw_peer, all);

		if (p->engine == engine && p->node == node && (p->inc == inc || !p->inc || !inc))
			return p;
	}
	return NULL;
}

/* The path with this address, or NULL. */
static struct bw_path *bw_contact_known_path(struct bw_peer *p, const struct bw_link_addr *to)
{
	uint8_t i;

	for (i = 0; i < p->npaths; i++)
		if (bw_link_same(&p->path[i].to, to))
			return &p->path[i];
	return NULL;
}

/* Has nothing but somebody's HELLO ever spoken for this path? Anybody can send that, in the peer's
 * name. */
static bool bw_contact_hearsay(const struct bw_path *t)
{
	return !t->named && !t->answered && t->state != BW_PATH_UP && t->pn_next == 1 &&
	       !t->rx_any && !t->ev.type;
}

/* A place for another path: a new one, or that of the one which is hearsay and was heard of least
 * recently; NULL. */
static struct bw_path *bw_contact_place(struct bw_peer *p)
{
	struct bw_path *oldest = NULL;
	uint8_t i;

	if (p->npaths < BW_PATHS_MAX)
		return &p->path[p->npaths++];
	for (i = 0; i < p->npaths; i++)
		if (bw_contact_hearsay(&p->path[i]) &&
		    (!oldest || p->path[i].heard < oldest->heard))
			oldest = &p->path[i];
	return oldest;
}

/* The path with this address; a new one while there is a place; NULL. */
static struct bw_path *bw_contact_path(struct bw_engine *e, struct bw_peer *p,
				       const struct bw_link_addr *to)
{
	struct bw_path *t = bw_contact_known_path(p, to);

	if (!t) {
		t = bw_contact_place(p);
		if (!t)
			return NULL;
		bw_path_init(e, t, to);
		t->owner = p;
	}
	t->heard = e->now;
	return t;
}

/* The peer of this engine number (and incarnation, 0: any) that has a path to the address. */
static struct bw_peer *bw_contact_at(struct bw_engine *e, const struct bw_link_addr *addr,
				     uint16_t engine, uint32_t inc)
{
	struct bw_list *l;

	for (l = e->peers.next; l != &e->peers; l = l->next) {
		struct bw_peer *p = bw_entry(l, struct bw_peer, all);

		if (p->engine != engine || (p->inc && inc && p->inc != inc))
			continue;
		if (bw_contact_known_path(p, addr))
			return p;
	}
	return NULL;
}

int bw_contact_connect(struct bw_engine *e, struct bw_op *op)
{
	struct bw_peer *p = NULL;
	struct bw_path *t;
	uint16_t i;

	if (!op->connect.paths || op->connect.paths > BW_PATHS_MAX)
		return -EINVAL;
	for (i = 0; i < op->connect.paths; i++)
		if (e->cfg.link_mtu[op->connect.path[i].link % 8] < BW_FRAME_MIN_MTU)
			return -EINVAL;
	if (op->connect.node)
		p = bw_contact_find(e, op->connect.node, op->connect.engine, op->connect.inc);
	for (i = 0; !op->connect.node && !p && i < op->connect.paths; i++)
		p = bw_contact_at(e, &op->connect.path[i], op->connect.engine, op->connect.inc);
	if (!p) {
		p = bw_peer_new(e);
		if (!p)
			return -EAGAIN;
		p->node = op->connect.node;
		p->engine = op->connect.engine;
		p->inc = op->connect.inc;
	}
	for (i = 0; i < op->connect.paths; i++) {
		t = bw_contact_path(e, p, &op->connect.path[i]);
		if (t)
			t->named = true;
	}
	op->peer = p->handle;
	bw_peer_ready(e, p);
	bw_peer_schedule(e, p);
	return 0;
}

/* On this path; `move`: to the address at which the peer is said to be. */
static void bw_contact_build(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, bool move,
			     struct bw_tx_frame *f)
{
	bool answer = t->hello_answer && !move;
	struct bw_hdr *h = (struct bw_hdr *)f->head;
	struct bw_hello *b = (struct bw_hello *)(h + 1);

	bw_hdr_fill(e, p, h, BW_FRAME_HELLO);
	h->flags = answer ? BW_HDR_ANSWER : 0;
	h->path = (uint8_t)(t - p->path);
	memset(b, 0, sizeof(*b));
	b->node = e->cfg.node;
	b->features = e->cfg.features | BW_FEATURE_ECHO;
	b->inc = e->cfg.incarnation;
	b->conn = p->wire;
	b->version_min = b->version_max = BW_VERSION;
	b->engine = e->cfg.engine;
	b->credit = (uint32_t)(p->rx_limit / BW_CREDIT_UNIT);
	b->charge_min = e->cfg.charge_min;
	b->frame_max = e->cfg.link_mtu[t->to.link % 8];
	b->target_node = p->node;
	b->target_inc = p->inc;
	memcpy(b->name, e->cfg.name, BW_NAME_MAX);
	if (move) { /* no echo: it might be a question of ours that somebody passes on */
		b->nonce = t->move.nonce;
	} else if (answer) {
		b->echo = t->echo;
	} else {
		b->nonce = t->nonce;
	}
	f->to = move ? t->move.to : t->to;
	f->segments = 0;
	f->head_len = f->len = BW_HELLO_BYTES;
	bw_head_seal(e, h, f->head_len, f->len);
	e->last.answer = answer;
	e->last.move = move;
	if (move) {
		t->move.due = false;
		return;
	}
	if (!t->hello_sent)
		t->hello_sent = e->now;
	t->hello_due = t->hello_answer = false;
}

bool bw_contact_frame(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		if (!p->path[i].hello_due && !p->path[i].move.due)
			continue;
		bw_contact_build(e, p, &p->path[i], !p->path[i].hello_due, f);
		return true;
	}
	return false;
}

static struct bw_stray *bw_stray_new(struct bw_engine *e, const struct bw_link_addr *to)
{
	struct bw_stray *s = &e->stray[e->stray_head % BW_STRAYS];

	if (e->stray_head - e->stray_tail == BW_STRAYS)
		return NULL;
	e->stray_head++;
	s->to = *to;
	return s;
}

/* A REFUSE with what `echo` holds: why, and what is refused. */
static void bw_contact_say_refused(struct bw_engine *e, const struct bw_link_addr *to,
				   uint16_t engine, const struct bw_refuse *echo)
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
	b->version_min = b->version_max = BW_VERSION;
	memcpy(b->name, e->cfg.name, BW_NAME_MAX);
	s->len = BW_REFUSE_BYTES;
	bw_head_seal(e, r, s->len, s->len);
	e->count.refusals_tx++;
}

void bw_contact_refuse(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h,
		       enum bw_refusal why)
{
	struct bw_refuse echo = {
		.why = (uint8_t)why,
		.echo_type = h->type,
		.echo_engine = h->dst_engine,
		.echo_inc = h->dst_inc,
		.echo_conn = h->conn,
	};

	if (h->type == BW_FRAME_HELLO)
		echo.echo_conn = ((const struct bw_hello *)(h + 1))->conn;
	bw_contact_say_refused(e, &f->from, h->src_engine, &echo);
}

bool bw_stray_frame(struct bw_engine *e, struct bw_tx_frame *f)
{
	struct bw_stray *s;

	if (e->stray_head == e->stray_tail)
		return false;
	s = &e->stray[e->stray_tail++ % BW_STRAYS];
	f->to = s->to;
	f->segments = 0;
	f->head_len = f->len = s->len;
	memcpy(f->head, s->head, s->len);
	return true;
}

static void bw_contact_name(struct bw_peer *p, const uint8_t *name)
{
	memcpy(p->name, name, BW_NAME_MAX);
	p->name[BW_NAME_MAX] = 0;
}

/* What a HELLO says of its sender becomes the peer's state. */
static void bw_contact_adopt(struct bw_engine *e, struct bw_peer *p, const struct bw_hello *b)
{
	if (p->conn)
		return;
	p->node = b->node;
	p->inc = b->inc;
	p->conn = b->conn;
	p->charge_min = b->charge_min;
	p->checksum = (b->features & e->cfg.features & BW_FEATURE_CHECKSUM) != 0;
	p->stripes = (b->features & e->cfg.features & BW_FEATURE_STRIPE) != 0;
	p->echoes = (b->features & BW_FEATURE_ECHO) != 0;
	p->version_min = b->version_min;
	p->version_max = b->version_max;
	p->tx_limit = (uint64_t)b->credit * BW_CREDIT_UNIT;
	bw_contact_name(p, b->name);
	if (p->state == BW_PEER_HELLO)
		bw_event_push(e, &p->ev_up, BW_EV_PEER_UP);
	p->state = BW_PEER_UP;
}

/* The peer that a HELLO which answers nothing comes from: found, or new. */
static struct bw_peer *bw_contact_caller(struct bw_engine *e, const struct bw_hello *b,
					 const struct bw_link_addr *from)
{
	struct bw_peer *p = bw_contact_find(e, b->node, b->engine, b->inc);

	if (!p) {
		p = bw_contact_at(e, from, b->engine, b->inc);
		if (p && p->node && p->node != b->node)
			p = NULL;
	}
	if (p)
		return p;
	p = bw_peer_new(e);
	if (!p)
		return NULL;
	p->node = b->node;
	p->engine = b->engine;
	return p;
}

/* Another incarnation of the same engine speaks: the old one is asked whether it still lives. An
 * old HELLO that arrives late thus cannot end a living peer. */
static void bw_contact_doubt(struct bw_engine *e, const struct bw_hello *b)
{
	struct bw_list *l;

	for (l = e->peers.next; l != &e->peers; l = l->next) {
		struct bw_peer *p = bw_entry(l, struct bw_peer, all);

		if (p->engine != b->engine || p->node != b->node || p->inc == b->inc)
			continue;
		if (p->state == BW_PEER_UP) {
			p->ping_due = true;
			bw_peer_ready(e, p);
		}
	}
}

static struct bw_peer *bw_contact_answerer(struct bw_engine *e, const struct bw_hdr *h,
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
 * that we know: it refuses if it gave that up, and its new HELLO comes again meanwhile. */
static int bw_contact_rebind(struct bw_engine *e, struct bw_peer *p, bool answer)
{
	uint32_t wire;
	uint8_t i;

	bw_peer_ready(e, p);
	if (p->confirmed) {
		p->ping_due |= !answer;
		return -BW_DROP_EARLY;
	}
	wire = bw_table_add(&e->peer_table, p);
	if (!wire)
		return -BW_DROP_NO_BUFFER;
	if (p->wire != p->handle)
		bw_table_remove(&e->peer_table, p->wire);
	p->wire = wire;
	p->conn = 0;
	for (i = 0; i < p->npaths; i++)
		p->path[i].remote_no = BW_PATH_UNKNOWN;
	return 0;
}

/* The path that the peer numbers so, by the same link but another address of the peer. */
static struct bw_path *bw_contact_numbered(struct bw_peer *p, const struct bw_link_addr *from,
					   uint8_t remote_no)
{
	struct bw_path *t = bw_peer_path(p, remote_no);

	return t && t->to.link == from->link ? t : NULL;
}

/* The peer seems to have another address on this path: a network interface was exchanged, or the
 * frame is somebody else's, or an old one that is sent again. Whoever is there is asked; the path
 * goes there only when that was answered. */
static int bw_contact_moved(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
			    const struct bw_rx_frame *f, const struct bw_hello *b)
{
	bool asked = t->move.nonce && bw_link_same(&t->move.to, &f->from);

	bw_peer_ready(e, p);
	if (asked && b->echo == t->move.nonce) {
		t->to = f->from;
		t->echo = b->nonce ? b->nonce : t->move.echo;
		t->hello_due = t->hello_answer = t->echo != 0;
		memset(&t->move, 0, sizeof(t->move));
		bw_path_answered(e, p, t);
		bw_path_up(e, p, t);
		bw_event_push(e, &t->ev, BW_EV_PATH);
		bw_peer_schedule(e, p);
		return 0;
	}
	if (!asked) {
		t->move.to = f->from;
		t->move.nonce = bw_nonce(e);
	}
	t->move.echo = b->nonce ? b->nonce : t->move.echo;
	t->move.due = true;
	return 0;
}

int bw_contact_hello(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h)
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
	if (b->version_min > BW_VERSION || b->version_max < BW_VERSION) {
		bw_contact_refuse(e, f, h, BW_REFUSAL_VERSION);
		return -BW_DROP_VERSION;
	}
	if (!b->node || !b->inc || !b->conn || b->engine != h->src_engine ||
	    h->path >= BW_PATHS_MAX || b->frame_max < BW_FRAME_MIN_MTU)
		return -BW_DROP_MALFORMED;
	if ((h->dst_inc && h->dst_inc != e->cfg.incarnation) ||
	    (b->target_node && b->target_node != e->cfg.node)) {
		if (!answer)
			bw_contact_refuse(e, f, h, BW_REFUSAL_INCARNATION);
		return -BW_DROP_INCARNATION;
	}
	p = answer ? bw_contact_answerer(e, h, b) : bw_contact_caller(e, b, &f->from);
	if (!p)
		return answer ? -BW_DROP_HANDLE : -BW_DROP_NO_BUFFER;
	if (!answer)
		bw_contact_doubt(e, b);
	t = bw_contact_known_path(p, &f->from);
	if (p->conn && p->conn != b->conn) {
		r = bw_contact_rebind(e, p, answer);
		if (t)
			t->hello_due |= answer && !r; /* what it answered has become void */
		if (r || answer)
			return r ? r : -BW_DROP_EARLY;
	}
	if (!t && bw_contact_numbered(p, &f->from, h->path))
		return bw_contact_moved(e, p, bw_peer_path(p, h->path), f, b);
	t = bw_contact_path(e, p, &f->from);
	if (!t)
		return -BW_DROP_EARLY;
	bw_peer_ready(e, p);
	proof = p->conn ? !p->echoes : !(b->features & BW_FEATURE_ECHO);
	proof = proof ? answer : t->nonce && b->echo == t->nonce;
	if (answer && !proof)
		return -BW_DROP_ECHO;
	if (proof || t->remote_no == BW_PATH_UNKNOWN) {
		t->remote_no = h->path;
		t->frame_max = b->frame_max;
	}
	bw_contact_adopt(e, p, b);
	if (answer && !t->hello_repeated && t->state == BW_PATH_TRYING)
		bw_path_rtt(t, e->now - t->hello_sent);
	p->confirmed |= proof || h->conn == p->wire;
	if (answer)
		bw_path_guess(e, t);
	if (proof) {
		t->nonce = bw_nonce(e);
		bw_path_answered(e, p, t);
	}
	if (proof || (p->confirmed && !p->echoes))
		bw_path_up(e, p, t);
	t->echo = b->nonce;
	t->hello_due = t->hello_answer = !answer;
	bw_peer_ready(e, p);
	bw_peer_schedule(e, p);
	return 0;
}

static struct bw_peer *bw_contact_refused_peer(struct bw_engine *e, const struct bw_refuse *b)
{
	struct bw_peer *p;
	struct bw_list *l;

	if (b->echo_type == BW_FRAME_HELLO) {
		p = bw_peer_get(e, b->echo_conn);
		return p && p->wire == b->echo_conn && p->engine == b->echo_engine &&
				       p->inc == b->echo_inc
			       ? p
			       : NULL;
	}
	for (l = e->peers.next; l != &e->peers; l = l->next) {
		p = bw_entry(l, struct bw_peer, all);
		if (p->state == BW_PEER_UP && p->engine == b->echo_engine &&
		    p->inc == b->echo_inc && p->conn == b->echo_conn)
			return p;
	}
	return NULL;
}

/* A path on which nobody answers for the peer is given up; the peer lives while another may
 * work. */
static bool bw_contact_other_path(struct bw_peer *p, const struct bw_link_addr *from)
{
	bool other = false;
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		if (p->path[i].state == BW_PATH_TRYING && bw_link_same(&p->path[i].to, from))
			p->path[i].state = BW_PATH_NONE;
		other |= p->path[i].state == BW_PATH_TRYING && p->path[i].to.link != from->link;
	}
	return other;
}

int bw_contact_refused(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h)
{
	const struct bw_refuse *b = (const struct bw_refuse *)(h + 1);
	struct bw_peer *p;
	int32_t status = BW_DOWN_REFUSED;

	if (h->len < sizeof(*b) || f->len < BW_REFUSE_BYTES)
		return -BW_DROP_SHORT;
	if (!bw_recv_head_ok(e, f, BW_REFUSE_BYTES))
		return -BW_DROP_HEADER;
	p = bw_contact_refused_peer(e, b);
	if (!p)
		return -BW_DROP_ECHO;
	e->count.refusals_rx++;
	if (b->why == BW_REFUSAL_NO_ENGINE && p->state == BW_PEER_HELLO &&
	    bw_contact_other_path(p, &f->from))
		return 0;
	bw_contact_name(p, b->name);
	p->version_min = b->version_min;
	p->version_max = b->version_max;
	if (b->why == BW_REFUSAL_VERSION)
		status = BW_DOWN_VERSION;
	else if (b->why == BW_REFUSAL_HANDLE)
		status = BW_DOWN_RESET;
	bw_peer_down(e, p, status);
	return 0;
}

int bw_contact_bye(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h)
{
	struct bw_peer *p;

	if (!bw_recv_head_ok(e, f, sizeof(*h) + h->len))
		return -BW_DROP_HEADER;
	p = bw_peer_get(e, h->conn);
	if (h->dst_inc != e->cfg.incarnation)
		return -BW_DROP_INCARNATION;
	if (!p || p->wire != h->conn || p->engine != h->src_engine)
		return -BW_DROP_HANDLE;
	bw_peer_down(e, p, BW_DOWN_CLOSED);
	return 0;
}

static void bw_contact_say_bye(struct bw_engine *e, const struct bw_leave *l,
			       const struct bw_link_addr *to)
{
	struct bw_stray *s = bw_stray_new(e, to);
	struct bw_hdr *h;

	if (!s)
		return;
	h = (struct bw_hdr *)s->head;
	bw_hdr_fill(e, NULL, h, BW_FRAME_BYE);
	h->dst_engine = l->engine;
	h->dst_inc = l->inc;
	h->conn = l->conn;
	s->len = sizeof(*h);
	bw_head_seal(e, s->head, s->len, s->len);
}

/* What was received is acknowledged before the leave, while that leaves room for leaves. */
static void bw_contact_say_ack(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	struct bw_stray *s;

	if (e->stray_head - e->stray_tail >= BW_STRAYS / 2)
		return;
	s = bw_stray_new(e, &t->to);
	s->len = bw_ack_write(e, p, t, s->head);
}

void bw_contact_settle(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i;

	for (i = 0; p->conn && i < p->npaths; i++)
		if (bw_ack_owed(p, &p->path[i]))
			bw_contact_say_ack(e, p, &p->path[i]);
}

void bw_contact_bid_bye(struct bw_engine *e, struct bw_peer *p)
{
	struct bw_leave *l;

	if (!p->conn)
		return;
	l = &e->leave[e->leaves++ % BW_LEAVES];
	l->wire = p->wire;
	l->inc = p->inc;
	l->conn = p->conn;
	l->engine = p->engine;
	bw_contact_say_bye(e, l, &p->path[p->best].to);
}

/* What its next frame would be answered by whoever is here then. */
static void bw_contact_say_gone(struct bw_engine *e, const struct bw_peer *p)
{
	struct bw_refuse echo = {
		.why = BW_REFUSAL_INCARNATION,
		.echo_type = BW_FRAME_DATA,
		.echo_engine = e->cfg.engine,
		.echo_inc = e->cfg.incarnation,
		.echo_conn = p->wire,
	};

	if (p->conn)
		bw_contact_say_refused(e, &p->path[p->best].to, p->engine, &echo);
}

void bw_contact_unknown(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h)
{
	uint32_t i;

	for (i = 0; h->conn && i < BW_LEAVES; i++) {
		if (e->leave[i].wire != h->conn || e->leave[i].engine != h->src_engine)
			continue;
		bw_contact_say_bye(e, &e->leave[i], &f->from);
		return;
	}
	bw_contact_refuse(e, f, h, BW_REFUSAL_HANDLE);
}

bool bw_contact_farewell(struct bw_engine *e, struct bw_tx_frame *f)
{
	struct bw_peer *p;
	uint8_t i;

	while (!bw_list_empty(&e->peers)) {
		p = bw_first(&e->peers, struct bw_peer, all);
		for (i = 0; i < p->npaths; i++) {
			if (!bw_ack_owed(p, &p->path[i]))
				continue;
			bw_ack_build(e, p, &p->path[i], f);
			return true;
		}
		bw_list_del(&p->all);
		if (e->failed)
			bw_contact_say_gone(e, p);
		else
			bw_contact_bid_bye(e, p);
		if (bw_stray_frame(e, f))
			return true;
	}
	return bw_stray_frame(e, f);
}
