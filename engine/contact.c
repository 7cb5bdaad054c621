/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who is where: peers by the identities that connecting and HELLO name, their paths by address, and
 * the header that every frame begins with. The handles in it, exchanged by HELLO, address all later
 * frames, so that a frame for a dead incarnation or a forgotten peer is recognized and refused,
 * never delivered.
 */
#include "contact.h"
#include "guest.h"
#include "keys.h"
#include "named.h"
#include "path.h"
#include "peer.h"
#include "reliable.h"

void bw_hdr_fill(struct bw_engine *e, const struct bw_peer *p, struct bw_hdr *h, uint8_t type)
{
	memset(h, 0, sizeof(*h));
	h->magic = BW_MAGIC;
	h->version = BW_VERSION_MIN;
	h->type = type;
	h->cluster = e->cfg.cluster;
	h->src_engine = e->cfg.engine;
	if (!p)
		return;
	if (BW_VERSION_MAX > BW_VERSION_MIN && p->version)
		h->version = p->version;
	h->dst_engine = p->engine;
	h->token = p->conn_token;
	h->conn = p->conn;
}

void bw_head_seal(struct bw_engine *e, const uint8_t *key, uint64_t over, void *head,
		  uint32_t head_len, uint32_t frame_len)
{
	struct bw_hdr *h = head;
	uint64_t tag;

	h->len = (uint16_t)(frame_len - sizeof(*h));
	if (BW_UNLIKELY(key)) {
		tag = bw_key_tag(e, key, h, head_len, over);
		h->token = (uint32_t)(tag >> 32);
		h->hcrc = (uint32_t)tag;
		return;
	}
	h->hcrc = 0;
	h->hcrc = bw_ops(e)->crc32c(0, head, head_len);
}

void bw_contact_open(struct bw_engine *e)
{
	uint64_t half;
	uint32_t i;

	for (i = 0; i < sizeof(e->secret); i += sizeof(half)) {
		half = bw_ops(e)->random(e->host);
		memcpy(e->secret + i, &half, sizeof(half));
	}
	for (i = 0; i < BW_BUCKETS; i++) {
		bw_list_init(&e->names[i]);
		bw_list_init(&e->given[i]);
	}
	for (i = 0; i < BW_ROWS; i++)
		bw_list_init(&e->paths_at[i]);
}

/* Peers choose what they are found by: only a keyed hash keeps them from sharing one bucket. */
static uint32_t bw_contact_bucket(struct bw_engine *e, uint64_t a, uint64_t b)
{
	uint64_t key[2] = {a, b};

	return (uint32_t)bw_ops(e)->siphash(e->secret, key, sizeof(key)) % BW_BUCKETS;
}

struct bw_list *bw_contact_namesakes(struct bw_engine *e, uint64_t node, uint16_t engine)
{
	return &e->names[bw_contact_bucket(e, node, engine)];
}

static struct bw_list *bw_contact_givers(struct bw_engine *e, uint16_t engine, uint32_t conn,
					 uint32_t token)
{
	/* What is refused shows no token where there is a key. */
	return &e->given[bw_contact_bucket(e, engine,
					   (uint64_t)conn << 32 | (e->cfg.keyed ? 0 : token))];
}

void bw_contact_given(struct bw_engine *e, struct bw_peer *p, uint32_t conn, uint32_t token)
{
	p->conn = conn;
	p->conn_token = token;
	bw_list_del(&p->given);
	if (conn)
		bw_list_add_before(bw_contact_givers(e, p->engine, conn, token), &p->given);
}

struct bw_peer *bw_contact_giver(struct bw_engine *e, uint16_t engine, uint32_t conn,
				 uint32_t token)
{
	struct bw_list *givers = bw_contact_givers(e, engine, conn, token), *l;

	for (l = givers->next; l != givers; l = l->next) {
		struct bw_peer *p = bw_entry(l, struct bw_peer, given);

		if (p->engine == engine && p->conn == conn &&
		    (p->conn_token == token || e->cfg.keyed))
			return p;
	}
	return NULL;
}

struct bw_peer *bw_contact_find(struct bw_engine *e, uint64_t node, uint16_t engine, uint32_t inc,
				const struct bw_link_addr *at)
{
	struct bw_list *names = bw_contact_namesakes(e, node, engine), *l;
	struct bw_peer *first = NULL;

	for (l = names->next; l != names; l = l->next) {
		struct bw_peer *p = bw_entry(l, struct bw_peer, namesake);

		if (p->engine != engine || p->node != node)
			continue;
		e->steps++;
		if (p->inc != inc && p->inc && inc)
			continue;
		if (bw_contact_known_path(p, at))
			return p;
		first = first ? first : p;
	}
	return first;
}

struct bw_path *bw_contact_known_path(struct bw_peer *p, const struct bw_link_addr *to)
{
	uint8_t i;

	for (i = 0; i < p->npaths; i++)
		if (bw_link_same(&p->path[i]->to, to))
			return p->path[i];
	return NULL;
}

/* Where paths to this address of peers of this engine number are found. */
static struct bw_list *bw_contact_row(struct bw_engine *e, const struct bw_link_addr *to,
				      uint16_t engine)
{
	uint64_t key[4] = {engine};

	memcpy(key + 1, to, to->len <= 6 ? 8 : sizeof(*to)); /* what bw_link_same() compares */
	return &e->paths_at[bw_ops(e)->siphash(e->secret, key, sizeof(key)) % BW_ROWS];
}

/* One address can claim to be many engines of one number, each of another node. Whoever is known by
 * an address alone is before them all, so that no caller takes longer to be compared with those. */
static void bw_contact_place(struct bw_engine *e, struct bw_path *t)
{
	struct bw_list *row = bw_contact_row(e, &t->to, t->owner->engine);

	bw_list_del(&t->at);
	bw_list_add_before(t->owner->node ? row : row->next, &t->at);
}

void bw_contact_register(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i;

	bw_list_del(&p->namesake);
	bw_list_add_before(bw_contact_namesakes(e, p->node, p->engine), &p->namesake);
	for (i = 0; i < p->npaths; i++)
		bw_contact_place(e, p->path[i]);
}

void bw_contact_move(struct bw_engine *e, struct bw_path *t, const struct bw_link_addr *to)
{
	t->to = *to;
	bw_contact_place(e, t);
}

void bw_contact_leave(const struct bw_peer *p)
{
	uint8_t i;

	for (i = 0; i < p->npaths; i++)
		bw_list_del(&p->path[i]->at);
}

/* Has nothing but somebody's HELLO ever spoken for this path? Anybody can send that, in the peer's
 * name. */
static bool bw_contact_hearsay(const struct bw_path *t)
{
	return !t->hello.named && !t->answered && t->state != BW_PATH_UP && t->pn_next == 1 &&
	       !t->rx.any && !t->ev.type;
}

/* A place for another path: a new one, or that of the one which is hearsay and was heard of least
 * recently; NULL, also for want of memory. */
static struct bw_path *bw_contact_room(struct bw_engine *e, struct bw_peer *p)
{
	struct bw_path *oldest = NULL;
	uint8_t i;

	if (p->npaths < BW_PATHS_MAX) {
		if (!p->path[p->npaths])
			p->path[p->npaths] = bw_path_new(e, p, p->npaths);
		return p->path[p->npaths] ? p->path[p->npaths++] : NULL;
	}
	for (i = 0; i < p->npaths; i++)
		if (bw_contact_hearsay(p->path[i]) &&
		    (!oldest || p->path[i]->hello.heard < oldest->hello.heard))
			oldest = p->path[i];
	if (oldest)
		bw_list_del(&oldest->at);
	return oldest;
}

struct bw_path *bw_contact_path(struct bw_engine *e, struct bw_peer *p,
				const struct bw_link_addr *to)
{
	struct bw_path *t = bw_contact_known_path(p, to);

	if (!t) {
		t = bw_contact_room(e, p);
		if (!t)
			return NULL;
		bw_path_init(e, t, to);
		bw_contact_place(e, t);
	}
	t->hello.heard = e->now;
	return t;
}

struct bw_peer *bw_contact_at(struct bw_engine *e, const struct bw_link_addr *addr, uint16_t engine,
			      uint32_t inc, bool nameless)
{
	struct bw_list *row = bw_contact_row(e, addr, engine), *l;

	for (l = row->next; l != row; l = l->next) {
		struct bw_path *t = bw_entry(l, struct bw_path, at);
		struct bw_peer *p = t->owner;

		e->steps++;
		if (nameless && p->node)
			break;
		if (p->engine == engine && (!p->inc || !inc || p->inc == inc) &&
		    bw_link_same(&t->to, addr))
			return p;
	}
	return NULL;
}

int bw_contact_connect(struct bw_engine *e, struct bw_op *op)
{
	struct bw_peer *p = NULL;
	struct bw_path *t;
	bool short_of_memory = false, doubt;
	uint16_t i;

	if (!op->connect.paths || op->connect.paths > BW_PATHS_MAX)
		return -EINVAL;
	for (i = 0; i < op->connect.paths; i++)
		if (e->cfg.link_mtu[op->connect.path[i].link % 8] < BW_FRAME_MIN_MTU)
			return -EINVAL;
	if (op->connect.node)
		p = bw_contact_find(e, op->connect.node, op->connect.engine, op->connect.inc,
				    &op->connect.path[0]);
	for (i = 0; !op->connect.node && !p && i < op->connect.paths; i++)
		p = bw_contact_at(e, &op->connect.path[i], op->connect.engine, op->connect.inc,
				  false);
	if (!p) {
		p = bw_peer_new(e);
		if (!p) {
			bw_guest_make_room(e); /* whom the host means comes before callers */
			return -EAGAIN;
		}
		p->node = op->connect.node;
		p->engine = op->connect.engine;
		p->inc = op->connect.inc;
		if (p->node)
			bw_contact_register(e, p);
	}
	doubt = bw_named_elsewhere(e, p, op);
	for (i = 0; i < op->connect.paths; i++) {
		t = bw_contact_path(e, p, &op->connect.path[i]);
		if (t)
			t->hello.named = true;
		else if (p->npaths < BW_PATHS_MAX)
			short_of_memory = true;
	}
	op->peer = p->handle;
	if (bw_named_begin(e, p, op, doubt))
		return -EAGAIN;
	bw_peer_ready(e, p);
	bw_peer_schedule(e, p);
	return short_of_memory ? -EAGAIN : 0; /* the same again finds the peer, and adds the rest */
}

void bw_contact_name(struct bw_peer *p, const uint8_t *name)
{
	memcpy(p->name, name, BW_NAME_MAX);
	p->name[BW_NAME_MAX] = 0;
}
