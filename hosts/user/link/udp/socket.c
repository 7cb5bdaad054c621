/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets of the udp link: one port of a fixed range, so that a firewall rule can name it, and the
 * same port again for each peer that has a socket of its own. The kernel gives a datagram to the
 * connected socket whose peer sent it and to the open one otherwise: it counts what matches, and a
 * peer's address and port count most (compute_score() of its net/ipv4/udp.c).
 *
 * Two sockets get one port only if both allow it (SO_REUSEPORT, of one user). They do so while a
 * further one is bound and connected, and at no other time: no other process gets the port.
 */
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/filter.h"
#include "link/udp/impl.h"

#define BW_UDP_BUFFER (4 << 20) /* bytes asked of the kernel for each direction */
#define BW_UDP_ECT0   0x02	/* able to read congestion marks, RFC 3168 5 */

static uint32_t bw_udp_buffers(int fd)
{
	int bytes = BW_UDP_BUFFER, got = 0;
	socklen_t len = sizeof(got);

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &len);
	return (uint32_t)got;
}

static int bw_udp_set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

static int bw_udp_options(int fd, bool four)
{
	static const struct {
		int four, six, value;
	} options[] = {
		{IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, IP_PMTUDISC_PROBE},
		{IP_TOS, IPV6_TCLASS, BW_UDP_ECT0},
		{IP_RECVTOS, IPV6_RECVTCLASS, 1},
		{IP_RECVERR, IPV6_RECVERR, 1},
	};
	int error = four ? 0 : bw_udp_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);

	_Static_assert((int)IP_PMTUDISC_PROBE == (int)IPV6_PMTUDISC_PROBE, "one value for both");
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]) && !error; i++)
		error = four ? bw_udp_set(fd, IPPROTO_IP, options[i].four, options[i].value)
			     : bw_udp_set(fd, IPPROTO_IPV6, options[i].six, options[i].value);
	return error;
}

static int bw_udp_socket_make(const struct bw_udp *u)
{
	int fd = socket(u->name.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

static int bw_udp_bind(struct bw_udp *u, const struct bw_env *env, const char **why)
{
	uint32_t ports = (uint32_t)(env->udp_hi - env->udp_lo) + 1;
	uint32_t first = (uint32_t)getpid() % ports;
	char text[BW_NAME_TEXT];

	for (uint32_t i = 0; i < ports; i++) {
		u->port = (uint16_t)(env->udp_lo + (first + i) % ports);
		bw_name_set_port(&u->name, u->port);
		if (bind(u->socket[0].fd, &u->name.any, bw_name_bytes(&u->name)) == 0)
			return 0;
		if (errno != EADDRINUSE)
			return bw_fail(why, -errno, "cannot bind UDP port %u of %s: %s", u->port,
				       bw_name_print(&u->name, text), strerror(errno));
	}
	return bw_fail(why, -EADDRINUSE,
		       "all UDP ports %u-%u of %s are in use; fix: a wider BEOWIRE_UDP_PORTS",
		       env->udp_lo, env->udp_hi, bw_name_print(&u->name, text));
}

/* Rows, both ways, if the kernel has them. Length 0 leaves the socket as it was: a kernel that does
 * not know the option would pass over a row's control message and send one long datagram. */
static void bw_udp_rows(struct bw_udp *u)
{
	int fd = u->socket[0].fd;

	if (bw_udp_set(fd, IPPROTO_UDP, UDP_SEGMENT, 0))
		return;
	u->batch->join = true;
	u->joined = !bw_udp_set(fd, IPPROTO_UDP, UDP_GRO, 1);
}

int bw_udp_socket_open(struct bw_udp *u, const struct bw_env *env, uint16_t engine,
		       const char **why)
{
	struct bw_udp_socket *s = &u->socket[0];
	int error;

	s->fd = bw_udp_socket_make(u);
	if (s->fd < 0)
		return bw_fail(why, s->fd, "cannot open a UDP socket: %s", strerror(-s->fd));
	s->cut = BW_BATCH_WHOLE;
	u->sockets = 1;
	u->rcvbuf = bw_udp_buffers(s->fd);
	error = bw_udp_options(s->fd, u->name.any.sa_family == AF_INET);
	if (!error)
		error = bw_filter_udp(s->fd, engine);
	if (error)
		return bw_fail(why, error, "cannot set up a UDP socket: %s", strerror(-error));
	if (env->udp_offload)
		bw_udp_rows(u);
	return bw_udp_bind(u, env, why);
}

/* May others of this user have the port? */
static void bw_udp_share(struct bw_udp *u, int more, int on)
{
	for (int i = 0; i < u->sockets; i++)
		bw_udp_set(u->socket[i].fd, SOL_SOCKET, SO_REUSEPORT, on);
	bw_udp_set(more, SOL_SOCKET, SO_REUSEPORT, on);
}

/* All options come before the address, since from then on datagrams do. */
static int bw_udp_socket_join(struct bw_udp *u, int fd, const union bw_name *peer)
{
	int error = bw_udp_options(fd, u->name.any.sa_family == AF_INET);

	if (!error && u->joined)
		error = bw_udp_set(fd, IPPROTO_UDP, UDP_GRO, 1);
	bw_udp_buffers(fd);
	if (error)
		return error;
	bw_udp_share(u, fd, 1);
	if (bind(fd, &u->name.any, bw_name_bytes(&u->name)) ||
	    connect(fd, &peer->any, bw_name_bytes(peer)))
		error = -errno;
	bw_udp_share(u, fd, 0);
	return error;
}

int bw_udp_socket_connect(struct bw_udp *u, const struct bw_link_addr *who)
{
	struct bw_udp_socket *s = &u->socket[u->sockets];
	union bw_name peer;
	int error, fd = bw_udp_socket_make(u);

	if (fd < 0)
		return fd;
	bw_name_from_link(&peer, who, u->interface);
	error = bw_udp_socket_join(u, fd, &peer);
	if (error) {
		close(fd);
		return error;
	}
	memset(s, 0, sizeof(*s));
	s->fd = fd;
	s->cut = BW_BATCH_WHOLE;
	s->who = *who;
	/* Until it was connected, datagrams of others came, too: their names are needed. */
	s->told = BW_UDP_TOLD;
	u->sockets++;
	u->connects++;
	return 0;
}

static void bw_udp_socket_drops(struct bw_udp *u, struct bw_udp_socket *s)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t len = sizeof(info);
	uint32_t fresh;

	if (getsockopt(s->fd, SOL_SOCKET, SO_MEMINFO, info, &len))
		return;
	fresh = info[SK_MEMINFO_DROPS] - s->drops;
	s->drops = info[SK_MEMINFO_DROPS];
	u->count.rx_overruns += fresh;
}

void bw_udp_overruns(struct bw_udp *u)
{
	for (int i = 0; i < u->sockets; i++)
		bw_udp_socket_drops(u, &u->socket[i]);
}

void bw_udp_socket_close(struct bw_udp *u, int i)
{
	struct bw_udp_socket *s = &u->socket[i];

	bw_udp_socket_drops(u, s);
	bw_batch_disown(u->batch, s->fd);
	close(s->fd);
	*s = u->socket[--u->sockets];
	u->hot = u->other = u->due = u->way = 0;
	u->stay = u->streak = 0;
}

static void bw_udp_socket_cut(struct bw_udp_socket *s, uint32_t bytes)
{
	int value = bytes == BW_BATCH_WHOLE ? 0 : (int)bytes;

	if (s->cut != bytes && !bw_udp_set(s->fd, IPPROTO_UDP, UDP_SEGMENT, value))
		s->cut = bytes;
}

void bw_udp_socket_cuts(struct bw_udp *u)
{
	if (u->batch->uncut) {
		u->whole = true;
		u->batch->uncut = false;
		for (int i = 1; i < u->sockets; i++)
			bw_udp_socket_cut(&u->socket[i], BW_BATCH_WHOLE);
	} else {
		bw_udp_socket_cut(&u->socket[u->due], u->socket[u->due].row);
	}
	u->due = 0;
}
