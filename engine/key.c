/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cluster's key. Whoever has it can take part; who has not can end no conversation and say
 * nothing in one. As with an external pre-shared key of TLS 1.3 (RFC 8446 4.2.9, psk_ke; RFC 9258),
 * fresh numbers of both sides and the key give the keys of a conversation, one for each direction,
 * by HKDF (RFC 5869). There is no Diffie-Hellman: whoever learns the key later can read what he has
 * recorded.
 */
#include "hkdf.h"
#include "keys.h"
#include "refuse.h"
#include "reliable.h"

static const char bw_key_salt[] = "beowire 2";

/* One side of a conversation, as HELLO tells it. */
struct bw_key_side {
	uint64_t node, random;
	uint32_t inc, conn, token, engine;
};

_Static_assert(sizeof(struct bw_key_side) == 2 * 8 + 4 * 4, "no padding goes into keys");

static void bw_key_expand(struct bw_engine *e, uint8_t *out, size_t len, const void *info,
			  size_t info_len)
{
	bw_hkdf_expand(out, len, e->cfg.key, info, info_len, bw_ops(e)->hmac_sha256);
}

void bw_key_open(struct bw_engine *e)
{
	static const char hello[] = "hello", challenge[] = "challenge";

	if (!e->cfg.keyed)
		return;
	bw_key_of_refusals(e->key.refuse, e->cfg.key, bw_ops(e)->hmac_sha256);
	/* The cluster's key itself is not needed any more. */
	bw_hkdf_extract(e->cfg.key, bw_key_salt, sizeof(bw_key_salt) - 1, e->cfg.key,
			sizeof(e->cfg.key), bw_ops(e)->hmac_sha256);
	bw_key_expand(e, e->key.hello, sizeof(e->key.hello), hello, sizeof(hello) - 1);
	bw_key_expand(e, e->key.challenge, sizeof(e->key.challenge), challenge,
		      sizeof(challenge) - 1);
}

static void bw_key_direction(struct bw_engine *e, struct bw_key_pair *k,
			     const struct bw_key_side *from, const struct bw_key_side *to)
{
	struct {
		char label[8];
		struct bw_key_side from, to;
	} info = {.label = {'f', 'r', 'a', 'm', 'e', 's'}, .from = *from, .to = *to};

	bw_key_expand(e, (uint8_t *)k, sizeof(*k), &info, sizeof(info));
}

void bw_key_session(struct bw_engine *e, struct bw_peer *p, uint64_t random)
{
	struct bw_key_side we, it;

	if (!p->keys)
		return;
	we = (struct bw_key_side){
		.node = e->cfg.node,
		.random = p->keys->random,
		.inc = e->cfg.incarnation,
		.conn = p->wire,
		.token = p->wire_token,
		.engine = e->cfg.engine,
	};
	it = (struct bw_key_side){
		.node = p->node,
		.random = random,
		.inc = p->inc,
		.conn = p->conn,
		.token = p->conn_token,
		.engine = p->engine,
	};
	bw_key_direction(e, &p->keys->tx, &we, &it);
	bw_key_direction(e, &p->keys->rx, &it, &we);
	p->keyed = true;
}

/* Of a HELLO whose `auth` and header check are 0. */
static void bw_key_hello(struct bw_engine *e, const void *frame, uint8_t mac[BW_HKDF_HASH])
{
	bw_ops(e)->hmac_sha256(mac, e->key.hello, sizeof(e->key.hello), frame,
			       sizeof(struct bw_hdr) + sizeof(struct bw_hello));
}

void bw_key_sign_hello(struct bw_engine *e, struct bw_hdr *h)
{
	struct bw_hello *b = (struct bw_hello *)(h + 1);
	uint8_t mac[BW_HKDF_HASH];

	if (!e->cfg.keyed)
		return;
	h->len = sizeof(*b);
	bw_key_hello(e, h, mac);
	memcpy(b->auth, mac, sizeof(b->auth));
}

bool bw_key_hello_genuine(struct bw_engine *e, const struct bw_hdr *h)
{
	struct {
		struct bw_hdr h;
		struct bw_hello b;
	} f;
	uint8_t mac[BW_HKDF_HASH], differs = 0;
	uint32_t i;

	memcpy(&f, h, sizeof(f));
	memset(f.b.auth, 0, sizeof(f.b.auth));
	f.h.hcrc = 0;
	if (e->cfg.keyed)
		bw_key_hello(e, &f, mac);
	else
		memset(mac, 0, sizeof(mac));   /* whoever has no key shows none */
	for (i = 0; i < sizeof(f.b.auth); i++) /* in a time that tells nothing */
		differs |= mac[i] ^ ((const struct bw_hello *)(h + 1))->auth[i];
	return !differs;
}

uint64_t bw_key_auth(uint64_t (*siphash)(const uint8_t key[16], const void *p, size_t n),
		     const uint8_t key[16], const struct bw_hdr *h, uint32_t len)
{
	struct {
		struct bw_hdr h;
		uint64_t body[sizeof(struct bw_refuse) / 8]; /* the longer one */
	} f;

	memcpy(&f, h, len);
	f.h.hcrc = 0;
	f.body[(len - sizeof(f.h)) / 8 - 1] = 0;
	return siphash(key, &f, len);
}

uint64_t bw_key_tag(struct bw_engine *e, const uint8_t key[16], struct bw_hdr *head,
		    uint32_t head_len, uint64_t over)
{
	head->token = (uint32_t)(over >> 32);
	head->hcrc = (uint32_t)over;
	return bw_ops(e)->siphash(key, head, head_len);
}

uint64_t bw_key_over_ack(uint64_t ack, uint64_t floor, uint64_t credit)
{
	return credit >> 32 << 32 | (ack >> 32 & 0xffff) << 16 | (floor >> 32 & 0xffff);
}

void bw_key_of_refusals(uint8_t out[16], const uint8_t key[BW_CLUSTER_KEY],
			void (*hmac_sha256)(uint8_t out[32], const uint8_t *key, size_t keylen,
					    const void *data, size_t len))
{
	static const char refuse[] = "refuse";
	uint8_t prk[BW_HKDF_HASH];

	bw_hkdf_extract(prk, bw_key_salt, sizeof(bw_key_salt) - 1, key, BW_CLUSTER_KEY,
			hmac_sha256);
	bw_hkdf_expand(out, 16, prk, refuse, sizeof(refuse) - 1, hmac_sha256);
	bw_hkdf_forget(prk, sizeof(prk));
}
