/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Anybody can say HELLO from a made-up address. So nothing is kept of a caller, and nothing longer
 * than his HELLO is sent to him, before he has shown a cookie that was sent to that address: as
 * HelloRetryRequest of TLS 1.3 and DTLS (RFC 8446 4.2.2, RFC 9147 5.1) and Retry of QUIC (RFC 9000
 * 8.1.2) do. The cookie is a keyed hash of who calls from where, and of the time; we keep the key
 * alone.
 */
#include "contact.h"
#include "cookie.h"
#include "farewell.h"
#include "peer.h"
#include "recv.h"
#include "refuse.h"
#include "reliable.h"

#define BW_CHALLENGE_BYTES (sizeof(struct bw_hdr) + sizeof(struct bw_challenge))
/* A cookie holds in the period in which it was made, of 2^35 ns (about 34 s), and the next one. */
#define BW_COOKIE_SHIFT 35

static uint64_t bw_cookie(const struct bw_engine *e, const struct bw_link_addr *from,
			  const struct bw_hello *b, uint64_t period)
{
	struct {
		uint64_t period, node;
		struct bw_link_addr from;
		uint32_t inc, engine;
	} caller = {
		.period = period,
		.node = b->node,
		.from = *from,
		.inc = b->inc,
		.engine = b->engine,
	};
	uint64_t cookie;

	_Static_assert(sizeof(caller) == 2 * 8 + sizeof(*from) + 2 * 4, "no padding is hashed");
	cookie = bw_ops(e)->siphash(e->secret, &caller, sizeof(caller));
	return cookie ? cookie : 1;
}

bool bw_cookie_shown(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hello *b)
{
	uint64_t period = e->now >> BW_COOKIE_SHIFT;

	return b->cookie && (b->cookie == bw_cookie(e, &f->from, b, period) ||
			     (period && b->cookie == bw_cookie(e, &f->from, b, period - 1)));
}

int bw_cookie_challenge(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hello *b)
{
	struct bw_stray *s = bw_stray_new(e, &f->from);
	struct bw_challenge *c;
	struct bw_hdr *h;

	if (!s)
		return -BW_DROP_NO_BUFFER;
	h = (struct bw_hdr *)s->head;
	bw_hdr_fill(e, NULL, h, BW_FRAME_CHALLENGE);
	h->version = bw_contact_version(b->version_max);
	h->dst_engine = b->engine;
	h->token = b->token;
	h->conn = b->conn;
	c = (struct bw_challenge *)(h + 1);
	c->cookie = bw_cookie(e, &f->from, b, e->now >> BW_COOKIE_SHIFT);
	c->nonce = b->nonce;
	c->reserved0 = 0;
	c->auth = 0;
	s->len = BW_CHALLENGE_BYTES;
	if (BW_UNLIKELY(e->cfg.keyed)) {
		h->len = sizeof(*c);
		c->auth = bw_key_auth(bw_ops(e)->siphash, e->key.challenge, h, BW_CHALLENGE_BYTES);
	}
	bw_head_seal(e, NULL, 0, h, s->len, s->len);
	e->count.challenges_tx++;
	return 0;
}

/* May this CHALLENGE count for the path? With a key only those that were made with it; but before
 * the first of them others do, so that who has another key comes to refuse ours. */
static bool bw_cookie_believed(struct bw_engine *e, struct bw_path *t, const struct bw_hdr *h)
{
	const struct bw_challenge *c = (const struct bw_challenge *)(h + 1);
	struct bw_cookies *known = &t->hello.cookies;

	if (BW_LIKELY(!e->cfg.keyed))
		return true;
	if (c->auth != bw_key_auth(bw_ops(e)->siphash, e->key.challenge, h, BW_CHALLENGE_BYTES))
		return !known->genuine;
	if (!known->genuine)
		memset(known, 0, sizeof(*known));
	known->genuine = true;
	return true;
}

/* The HELLO is said again: at once, but with each cookie only once before it is repeated anyway.
 * Two that never agree about an address would else talk without end. The right CHALLENGE may be
 * anywhere among forged ones, or among those of HELLOs that somebody has sent from elsewhere. */
int bw_cookie_challenged(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h)
{
	const struct bw_challenge *c = (const struct bw_challenge *)(h + 1);
	struct bw_path *t;
	struct bw_peer *p;

	if (h->len < sizeof(*c) || f->len < BW_CHALLENGE_BYTES)
		return -BW_DROP_SHORT;
	if (!bw_recv_head_ok(e, f, BW_CHALLENGE_BYTES))
		return -BW_DROP_HEADER;
	p = bw_peer_get(e, h->conn);
	if (!bw_contact_shows(p, h))
		return -BW_DROP_HANDLE;
	t = bw_contact_known_path(p, &f->from);
	if (!t)
		return -BW_DROP_ADDRESS;
	if (!c->nonce || c->nonce != t->hello.nonce)
		return -BW_DROP_ECHO;
	if (!bw_cookie_believed(e, t, h))
		return -BW_DROP_KEY;
	e->count.challenges_rx++;
	if (!bw_cookies_add(&t->hello.cookies, c->cookie) || t->state == BW_PATH_NONE)
		return 0;
	t->hello.due = true;
	t->hello.repeated |= t->hello.cookies.at_once > 1;
	if (!t->hello.repeated)
		t->hello.sent = 0; /* the round trip is that of the second one */
	bw_peer_ready(e, p);
	return 0;
}
