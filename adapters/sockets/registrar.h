/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The registrar: of the processes of a user on a node, the one that has the well-known port. It
 * hands each offer to all others that have connected to it, as nobody but they know their
 * connections. When it ends another one takes its place.
 */
#ifndef BWS_REGISTRAR_H
#define BWS_REGISTRAR_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "offer.h"

#define BWS_REGISTRAR_CLIENTS 256
#define BWS_REGISTRAR_FDS     (4 + BWS_REGISTRAR_CLIENTS)

struct bws_registrar {
	int claim;	/* its name, if it is us; -1 */
	int port[2];	/* UDP: IPv4, IPv6 */
	int connection; /* to who it is; -1 */
	int client[BWS_REGISTRAR_CLIENTS];
	int clients;
	uint64_t try_at;
	bool taken; /* another user of the node has the port */
	bool deaf;  /* the name is not looked at: there is no place for a stranger's call */
};

void bws_registrar_init(struct bws_registrar *r);
/* Be one, or find it. */
void bws_registrar_seek(struct bws_registrar *r, uint64_t now);
/* When to seek again; UINT64_MAX: all is there. */
uint64_t bws_registrar_next(const struct bws_registrar *r);
/* When to look whether calls can be taken again; UINT64_MAX: they can. */
uint64_t bws_registrar_due(const struct bws_registrar *r, uint64_t now);
int bws_registrar_fds(struct bws_registrar *r, struct pollfd *fds);
/* What has come: `offer` is called with each. */
void bws_registrar_serve(struct bws_registrar *r, const struct pollfd *fds, int n,
			 void (*offer)(const struct bws_from *from, const uint8_t *bytes,
				       size_t len));
void bws_registrar_close(struct bws_registrar *r);
/* In a child of fork(), whose parent goes on with all of it. */
void bws_registrar_forget(struct bws_registrar *r);

/* A socket for offers of IPv4 (0) or IPv6 (1), at this port; -1: none. */
int bws_offer_socket(int family, uint16_t port);
/* At a port of BEOWIRE_UDP_PORTS, if there is a free one. */
int bws_offer_socket_own(int family);
/* Send to an address of that family, from `here` (NULL: any). */
bool bws_offer_send(const int *sockets, const uint8_t *here, const struct bws_from *to,
		    const uint8_t *bytes);
/* A datagram that has come; its length, -1: none. */
int bws_offer_receive(int fd, struct bws_from *from, uint8_t *bytes, size_t room);
/* Who has refused one: false: nobody. */
bool bws_offer_refused(int fd, struct bws_from *by);
/* The name of a socket as an address of 16 bytes. False: neither IPv4 nor IPv6. */
bool bws_offer_address(const void *name, uint8_t *address, uint16_t *port);
/* Is this address of 16 bytes one of IPv4? */
bool bws_offer_is_v4(const uint8_t *address);

#endif
