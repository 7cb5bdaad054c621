/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The peers that have sockets of their own: those that most frames of data are sent to. What
 * strangers send plays no part, as the engine answers them without data.
 *
 * Each look is at the socket that brought the last datagram, by one system call; before it now and
 * then at one of the others in turn, the more rarely the longer that one alone has brought any.
 */
#include <poll.h>
#include <string.h>

#include "link/udp/impl.h"

#define BW_UDP_WARM   32   /* frames of data to a peer that make it worth a socket */
#define BW_UDP_COLD   8	   /* frames since the last halving; a peer below gives its socket up */
#define BW_UDP_SENDS  4096 /* frames of data between two halvings */
#define BW_UDP_STREAK 7	   /* looks in a row at the hot socket, at most */

static bool bw_udp_same(const struct bw_link_addr *a, const struct bw_link_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* A majority vote (Boyer and Moore 1981): whoever is sent more than half of what falls in a place
 * keeps it. */
static void bw_udp_seek(struct bw_udp *u, const struct bw_link_addr *who)
{
	uint32_t hash = 2166136261u;
	int at;

	for (int i = 0; i < who->len; i++)
		hash = (hash ^ who->bytes[i]) * 16777619u;
	at = (int)((hash ^ hash >> 16) % BW_UDP_SOUGHT);
	if (bw_udp_same(&u->sought[at].who, who)) {
		if (++u->sought[at].heat == BW_UDP_WARM)
			u->wanted = &u->sought[at].who;
	} else if (u->sought[at].heat) {
		u->sought[at].heat--;
	} else {
		u->sought[at].who = *who;
		u->sought[at].heat = 1;
	}
}

static void bw_udp_halve(struct bw_udp *u)
{
	u->sends = 0;
	for (int i = 1; i < u->sockets; i++)
		u->socket[i].sent /= 2;
	for (int i = 0; i < BW_UDP_SOUGHT; i++)
		u->sought[i].heat /= 2;
}

void bw_udp_active_again(struct bw_udp *u, int i)
{
	if (++u->sends == BW_UDP_SENDS)
		bw_udp_halve(u);
	u->socket[i].sent++;
	u->tx_connected++;
}

int bw_udp_active_for(struct bw_udp *u, const struct bw_tx_frame *f)
{
	bool data = ((const struct bw_hdr *)f->head)->type == BW_FRAME_DATA;
	int i = 1;

	while (i < u->sockets && !bw_udp_same(&u->socket[i].who, &f->to))
		i++;
	if (data && ++u->sends == BW_UDP_SENDS)
		bw_udp_halve(u);
	if (i == u->sockets) {
		if (data)
			bw_udp_seek(u, &f->to);
		return 0;
	}
	u->socket[i].sent += data;
	u->tx_connected++;
	return i;
}

/* The one that least was sent by. */
static int bw_udp_coldest(const struct bw_udp *u)
{
	int least = 1;

	for (int i = 2; i < u->sockets; i++) {
		if (u->socket[i].sent < u->socket[least].sent)
			least = i;
	}
	return least;
}

int bw_udp_active_settle(struct bw_udp *u)
{
	struct bw_link_addr who = *u->wanted;
	int n, victim = bw_udp_coldest(u);

	if (u->sockets == BW_UDP_SOCKETS && u->socket[victim].sent < BW_UDP_COLD) {
		n = bw_udp_look(u, victim);
		if (n)
			return n; /* it is closed when it is empty */
		bw_udp_socket_close(u, victim);
	}
	/* Where it cannot be connected, the open one is used. */
	if (u->sockets < BW_UDP_SOCKETS && !bw_udp_socket_connect(u, &who))
		u->socket[u->sockets - 1].sent = BW_UDP_WARM;
	for (int i = 0; i < BW_UDP_SOUGHT; i++) {
		if (u->wanted == &u->sought[i].who)
			u->sought[i].heat = 0;
	}
	u->wanted = NULL;
	/* What came before, came by the open one. */
	u->hot = 0;
	u->stay = 1;
	return 0;
}

void bw_udp_forget(struct bw_udp *u, const struct bw_link_addr *who)
{
	for (int i = u->sockets - 1; i > 0; i--) {
		if (bw_udp_same(&u->socket[i].who, who))
			bw_udp_socket_close(u, i);
	}
}

int bw_udp_active_next(struct bw_udp *u)
{
	if (u->sockets == 1)
		return 0;
	if (u->stay) {
		u->stay--;
		return u->hot;
	}
	u->stay = 1 + u->streak;
	do
		u->other = (u->other + 1) % u->sockets;
	while (u->other == u->hot);
	return u->other;
}

void bw_udp_active_found(struct bw_udp *u, int i, bool something)
{
	u->socket[i].streams = something;
	if (!something)
		return;
	if (i != u->hot) {
		u->hot = i;
		u->streak = 0;
		u->stay = 0;
	} else if (u->streak < BW_UDP_STREAK) {
		u->streak++;
	}
}

bool bw_udp_seen(struct bw_udp *u, int fd, short events)
{
	for (int i = 0; i < u->sockets; i++) {
		if (u->socket[i].fd != fd)
			continue;
		u->hot = i;
		u->streak = 0;
		u->stay = 1;
		u->batch->refused |= (events & POLLERR) != 0;
		return true;
	}
	return false;
}
