/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of UDP sockets: an address of IPv4 or IPv6 and a port, as the kernel takes them, as the
 * engine keeps them, and as text. An address of one link only (fe80::) is one of the interface that
 * the endpoint uses, whose number stands in the kernel's form alone.
 */
#ifndef BW_NAME_H
#define BW_NAME_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "protocol.h"

#define BW_NAME_TEXT 64 /* bytes of an address as text, the interface's name included */

union bw_name {
	struct sockaddr any; /* sa_family: AF_INET, AF_INET6, or 0: no name */
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* Bytes of it that the kernel is given. */
static inline socklen_t bw_name_bytes(const union bw_name *n)
{
	return n->any.sa_family == AF_INET ? sizeof(n->in) : sizeof(n->in6);
}

/* Host byte order. */
void bw_name_set_port(union bw_name *n, uint16_t port);

/* A numeric address: a.b.c.d, or one of IPv6, which may name an interface behind %. */
bool bw_name_parse(union bw_name *n, const char *text);
/* The address without the port, in `text`, which is returned. */
const char *bw_name_print(const union bw_name *n, char text[BW_NAME_TEXT]);
/* The same address, whatever the ports. */
bool bw_name_same_address(const union bw_name *a, const union bw_name *b);

/* The engine's form: the bytes of the address and, in host byte order, the port. */
void bw_name_to_link(struct bw_link_addr *a, const union bw_name *n);
/* And back; `interface` is the number of the one that addresses of one link belong to. */
void bw_name_from_link(union bw_name *n, const struct bw_link_addr *a, uint32_t interface);

#endif
