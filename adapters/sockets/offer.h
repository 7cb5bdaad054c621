/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Offers: datagrams by which two processes find out that both ends of a TCP connection have this
 * library. Their bytes come from anybody. See docs/sockets.md.
 */
#ifndef BWS_OFFER_H
#define BWS_OFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beowire.h"

#define BWS_OFFER_PORT	  47098 /* UDP, where a node's registrar listens */
#define BWS_OFFER_VERSION 1
#define BWS_NONCE	  16 /* bytes */

/* A connection by its ends: IPv6 addresses (IPv4 ones mapped, RFC 4291, 2.5.5.2), ports in host
 * byte order. */
struct bws_name {
	uint8_t here[16], there[16];
	uint16_t here_port, there_port;
};

enum bws_offer_kind {
	BWS_OFFER = 1,
	BWS_ACCEPT = 2,
	/* Beowire is lost; the first 8 bytes of `addr`: send from this offset on by TCP. */
	BWS_RESCUE = 3,
	BWS_RESCUED = 4, /* done */
	BWS_OFFER_KINDS
};

/* Where a datagram came from. */
struct bws_from {
	uint8_t address[16];
	uint16_t port;
};

struct bws_offer {
	enum bws_offer_kind kind;
	struct bws_name name;	     /* as its sender sees it */
	uint32_t id;		     /* the sender's of the connection */
	uint8_t nonce[BWS_NONCE];    /* the sender's */
	uint8_t to_nonce[BWS_NONCE]; /* ACCEPT: that of the offer, else 0 */
	struct bw_addr addr;	     /* the sender's endpoint */
};

/* Bytes of each kind alike: an answer is no longer than its question. */
#define BWS_OFFER_BYTES (4 + 4 + 36 + 2 * BWS_NONCE + 56)

void bws_offer_pack(const struct bws_offer *o, uint8_t *bytes);
/* False if these are not the bytes of an offer. */
bool bws_offer_unpack(const uint8_t *bytes, size_t n, struct bws_offer *o);

/* The same connection, seen from its other end? */
bool bws_name_mirrors(const struct bws_name *one, const struct bws_name *other);

#endif
