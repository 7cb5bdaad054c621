/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Being the registrar, and speaking with it. See registrar.h. */
#include "registrar.h"

#include <errno.h>
#include <string.h>

#include "claim.h"
#include "core.h"
#include "discard.h"
#include "who.h"
#include "owned.h"
#include "real.h"

#define BWS_REGISTRAR_NAME  "beowire-sockets"
#define BWS_REGISTRAR_RETRY (200 * BWS_MS)
#define BWS_REGISTRAR_PORTS (1 * BWS_S)
#define BWS_REGISTRAR_BURST 64 /* datagrams handled at a time */

/* What it hands on. */
struct bws_handed {
	struct bws_from from;
	uint8_t bytes[BWS_OFFER_BYTES];
};

void bws_registrar_init(struct bws_registrar *r)
{
	*r = (struct bws_registrar){.claim = -1, .port = {-1, -1}, .connection = -1};
}

static void bws_registrar_shut(int *fd)
{
	if (*fd >= 0)
		bws_own_close(*fd);
	*fd = -1;
}

void bws_registrar_close(struct bws_registrar *r)
{
	if (r->claim >= 0)
		bw_discard_listener(r->claim);
	r->claim = -1;
	bws_registrar_forget(r);
}

void bws_registrar_forget(struct bws_registrar *r)
{
	while (r->clients)
		bws_registrar_shut(&r->client[--r->clients]);
	bws_registrar_shut(&r->claim);
	bws_registrar_shut(&r->port[0]);
	bws_registrar_shut(&r->port[1]);
	bws_registrar_shut(&r->connection);
}

static void bws_registrar_ports(struct bws_registrar *r)
{
	for (int i = 0; i < 2; i++) {
		if (r->port[i] < 0)
			r->port[i] = bws_offer_socket(i, BWS_OFFER_PORT);
	}
	r->taken = r->port[0] < 0 && r->port[1] < 0;
}

void bws_registrar_seek(struct bws_registrar *r, uint64_t now)
{
	int fd;

	if (r->connection >= 0 || now < r->try_at)
		return;
	/* A port may be another user's, or there is no IPv6: that does not end soon. */
	r->try_at = now + (r->claim < 0 ? BWS_REGISTRAR_RETRY : BWS_REGISTRAR_PORTS);
	if (r->claim < 0) {
		fd = bw_claim_dial(BWS_REGISTRAR_NAME);
		if (fd >= 0) {
			r->connection = fd;
			return;
		}
		fd = bw_claim_name(BWS_REGISTRAR_NAME);
		if (fd < 0)
			return;
		r->claim = fd;
	}
	bws_registrar_ports(r);
}

uint64_t bws_registrar_next(const struct bws_registrar *r)
{
	if (r->connection >= 0 || (r->port[0] >= 0 && r->port[1] >= 0))
		return UINT64_MAX;
	return r->try_at;
}

uint64_t bws_registrar_due(const struct bws_registrar *r, uint64_t now)
{
	return r->deaf ? now + BWS_REGISTRAR_RETRY : UINT64_MAX;
}

int bws_registrar_fds(struct bws_registrar *r, struct pollfd *fds)
{
	int n = 0;

	fds[n++] = (struct pollfd){.fd = r->connection, .events = POLLIN};
	fds[n++] = (struct pollfd){.fd = r->port[0], .events = POLLIN};
	fds[n++] = (struct pollfd){.fd = r->port[1], .events = POLLIN};
	r->deaf = r->deaf && !bw_discard_room();
	fds[n++] = (struct pollfd){.fd = r->claim, .events = r->deaf ? 0 : POLLIN};
	for (int i = 0; i < r->clients; i++)
		fds[n++] = (struct pollfd){.fd = r->client[i], .events = POLLIN};
	return n;
}

static void bws_registrar_hand(struct bws_registrar *r, const struct bws_from *from,
			       const uint8_t *bytes)
{
	struct bws_handed handed;

	memset(&handed, 0, sizeof(handed));
	handed.from = *from;
	memcpy(handed.bytes, bytes, sizeof(handed.bytes));
	/* Who does not read loses offers, which come again. */
	for (int i = 0; i < r->clients; i++)
		bws_r()->sendto(r->client[i], &handed, sizeof(handed), MSG_DONTWAIT | MSG_NOSIGNAL,
				NULL, 0);
}

static void bws_registrar_accept(struct bws_registrar *r)
{
	while (bw_discard_reserve()) {
		int fd = bws_own_accept4(r->claim, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0 && bw_who_may(fd, NULL)) {
			bw_discard(fd);
			continue;
		}
		bw_discard_return();
		if (fd < 0)
			return;
		if (r->clients < BWS_REGISTRAR_CLIENTS)
			r->client[r->clients++] = fd;
		else
			bws_own_close(fd);
	}
	r->deaf = true;
}

void bws_registrar_serve(struct bws_registrar *r, const struct pollfd *fds, int n,
			 void (*offer)(const struct bws_from *from, const uint8_t *bytes,
				       size_t len))
{
	uint8_t bytes[BWS_OFFER_BYTES];
	struct bws_handed handed;
	struct bws_from from;
	ssize_t got;

	for (int i = 0; fds[0].revents && r->connection >= 0 && i < BWS_REGISTRAR_BURST; i++) {
		got = bws_r()->recvfrom(r->connection, &handed, sizeof(handed), MSG_DONTWAIT, NULL,
					NULL);
		if (got == sizeof(handed)) {
			offer(&handed.from, handed.bytes, sizeof(handed.bytes));
		} else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
			bws_registrar_shut(&r->connection);
			r->try_at = 0;
		} else {
			break;
		}
	}
	for (int k = 0; k < 2; k++) {
		for (int i = 0; fds[1 + k].revents && i < BWS_REGISTRAR_BURST; i++) {
			int len = bws_offer_receive(r->port[k], &from, bytes, sizeof(bytes));

			if (len < 0)
				break;
			offer(&from, bytes, (size_t)len);
			if (len == BWS_OFFER_BYTES)
				bws_registrar_hand(r, &from, bytes);
		}
	}
	/* Clients say nothing: what is readable is their end. The last one first, as places
	 * move. */
	for (int i = n - 1; i >= 4; i--) {
		if (!fds[i].revents)
			continue;
		bws_registrar_shut(&r->client[i - 4]);
		r->client[i - 4] = r->client[--r->clients];
	}
	if (fds[3].revents && r->claim >= 0)
		bws_registrar_accept(r);
}
