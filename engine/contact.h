/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who is where (contact.c), and the heads of all frames. */
#ifndef BW_CONTACT_H
#define BW_CONTACT_H

#include "reliable.h"

int bw_contact_connect(struct bw_engine *e, struct bw_op *op);
void bw_contact_open(struct bw_engine *e);
/* The bucket in which all peers of this node and engine number are, and perhaps others. */
struct bw_list *bw_contact_namesakes(struct bw_engine *e, uint64_t node, uint16_t engine);
/* The peer's node is known now. */
void bw_contact_register(struct bw_engine *e, struct bw_peer *p);
/* The peer has given us a handle and a token, or they are void (conn 0). */
void bw_contact_given(struct bw_engine *e, struct bw_peer *p, uint32_t conn, uint32_t token);
/* The peer that gave us these, or NULL. */
struct bw_peer *bw_contact_giver(struct bw_engine *e, uint16_t engine, uint32_t conn,
				 uint32_t token);
/* The peer of this identity (incarnation 0: any), or NULL. Of several the one that has a path to
 * this address comes first. */
struct bw_peer *bw_contact_find(struct bw_engine *e, uint64_t node, uint16_t engine, uint32_t inc,
				const struct bw_link_addr *at);
/* The peer of this engine number (and incarnation, 0: any) that has a path to the address; with
 * `nameless` one of which no node is known. NULL: there is none. */
struct bw_peer *bw_contact_at(struct bw_engine *e, const struct bw_link_addr *addr, uint16_t engine,
			      uint32_t inc, bool nameless);
/* The path with this address, or NULL. */
struct bw_path *bw_contact_known_path(struct bw_peer *p, const struct bw_link_addr *to);
/* The path with this address; a new one while there is a place; NULL. */
struct bw_path *bw_contact_path(struct bw_engine *e, struct bw_peer *p,
				const struct bw_link_addr *to);
/* The peer has another address on this path from now on. */
void bw_contact_move(struct bw_engine *e, struct bw_path *t, const struct bw_link_addr *to);
/* The peer is not found by its addresses any more. */
void bw_contact_leave(const struct bw_peer *p);
/* Does a frame whose handle is that of p (or of nobody: NULL) show the token, too, which is p's
 * alone, and drawn anew with each handle? Handles can be guessed. With a key the frame's tag says
 * more, see bw_recv_verify_tag(). */
static inline bool bw_contact_shows(const struct bw_peer *p, const struct bw_hdr *h)
{
	return p && (p->wire_token == h->token || p->keyed) && p->engine == h->src_engine;
}

/* What the peer's node is called. */
void bw_contact_name(struct bw_peer *p, const uint8_t *name);
/* The version in which we speak to who speaks up to this one. */
static inline uint8_t bw_contact_version(uint8_t version_max)
{
	return version_max < BW_VERSION_MAX ? version_max : BW_VERSION_MAX;
}

void bw_hdr_fill(struct bw_engine *e, const struct bw_peer *p, struct bw_hdr *h, uint8_t type);
/* Last step before a frame leaves: length, and header checksum or with a key (NULL: without) its
 * tag, for which `over` is as in bw_key_tag(). */
void bw_head_seal(struct bw_engine *e, const uint8_t *key, uint64_t over, void *head,
		  uint32_t head_len, uint32_t frame_len);
/* The key of what we send to a peer. */
static inline const uint8_t *bw_peer_tag_key(const struct bw_peer *p)
{
	return BW_UNLIKELY(p->keyed) ? p->keys->tx.tag : NULL;
}

#endif
