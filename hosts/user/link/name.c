/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of UDP sockets in their forms. */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "link/link.h"
#include "link/name.h"

void bw_name_set_port(union bw_name *n, uint16_t port)
{
	if (n->any.sa_family == AF_INET)
		n->in.sin_port = htons(port);
	else
		n->in6.sin6_port = htons(port);
}

bool bw_name_parse(union bw_name *n, const char *text)
{
	char address[BW_NAME_TEXT];
	const char *interface = strchr(text, '%');
	size_t len = interface ? (size_t)(interface - text) : strlen(text);

	memset(n, 0, sizeof(*n));
	if (inet_pton(AF_INET, text, &n->in.sin_addr) == 1) {
		n->in.sin_family = AF_INET;
		return true;
	}
	if (len >= sizeof(address))
		return false;
	memcpy(address, text, len);
	address[len] = 0;
	n->in6.sin6_family = AF_INET6;
	if (interface)
		n->in6.sin6_scope_id = if_nametoindex(interface + 1);
	return inet_pton(AF_INET6, address, &n->in6.sin6_addr) == 1 &&
	       (!interface || n->in6.sin6_scope_id);
}

const char *bw_name_print(const union bw_name *n, char text[BW_NAME_TEXT])
{
	char interface[IF_NAMESIZE];
	size_t used;

	if (n->any.sa_family == AF_INET)
		return inet_ntop(AF_INET, &n->in.sin_addr, text, BW_NAME_TEXT);
	inet_ntop(AF_INET6, &n->in6.sin6_addr, text, BW_NAME_TEXT);
	used = strlen(text);
	if (n->in6.sin6_scope_id && if_indextoname(n->in6.sin6_scope_id, interface))
		snprintf(text + used, BW_NAME_TEXT - used, "%%%s", interface);
	return text;
}

bool bw_name_same_address(const union bw_name *a, const union bw_name *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr));
}

void bw_name_to_link(struct bw_link_addr *a, const union bw_name *n)
{
	bool four = n->any.sa_family == AF_INET;
	uint16_t port = ntohs(four ? n->in.sin_port : n->in6.sin6_port);
	uint8_t bytes = four ? sizeof(n->in.sin_addr) : sizeof(n->in6.sin6_addr);

	memset(a, 0, sizeof(*a));
	a->link = BW_LINK_NO_UDP;
	a->len = (uint8_t)(bytes + sizeof(port));
	if (four)
		memcpy(a->bytes, &n->in.sin_addr, sizeof(n->in.sin_addr));
	else
		memcpy(a->bytes, &n->in6.sin6_addr, sizeof(n->in6.sin6_addr));
	memcpy(a->bytes + bytes, &port, sizeof(port));
}

void bw_name_from_link(union bw_name *n, const struct bw_link_addr *a, uint32_t interface)
{
	bool four = a->len == sizeof(n->in.sin_addr) + sizeof(uint16_t);
	uint16_t port;

	memset(n, 0, sizeof(*n));
	memcpy(&port, a->bytes + (four ? sizeof(n->in.sin_addr) : sizeof(n->in6.sin6_addr)),
	       sizeof(port));
	if (four) {
		n->in.sin_family = AF_INET;
		memcpy(&n->in.sin_addr, a->bytes, sizeof(n->in.sin_addr));
	} else {
		n->in6.sin6_family = AF_INET6;
		memcpy(&n->in6.sin6_addr, a->bytes, sizeof(n->in6.sin6_addr));
		if (IN6_IS_ADDR_LINKLOCAL(&n->in6.sin6_addr))
			n->in6.sin6_scope_id = interface;
	}
	bw_name_set_port(n, port);
}
