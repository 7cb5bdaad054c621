/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeping a fan-out group.
 *
 * The kernel finds the member of a group by its index. A socket that joins gets the next one, and
 * when one leaves the last one moves to its place. Nobody can ask for an index, so it must be
 * known from what happened, in which order. Therefore only the keeper changes the group:
 *
 * - It makes members of others' sockets, which they send it, one at a time.
 * - It holds each member's socket as well, so that one whose process dies stays in its place until
 *   the keeper closes it.
 * - Before it does it sets a program that finds the socket that will move both where it is and
 *   where it will be (bw_steer_moving()), and it changes nothing else until the kernel no longer
 *   lists the one that left.
 *
 * Nothing else moves members but an interface that goes down and up again. A socket of the
 * keeper's own, the sentinel, gets an error then, and the group is given up: all connections are
 * closed, upon which each member takes a socket of its own. The same happens when the keeper's
 * process ends.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "discard.h"
#include "ep.h"
#include "link/packet/keeper.h"
#include "link/packet/steer.h"
#include "thread.h"
#include "who.h"

#define BW_KEEPER_FD_SHARE 4		 /* of the process's descriptors one in so many */
#define BW_KEEPER_LEAVE	   (10 * BW_S)	 /* for so long a socket may take to be gone */
#define BW_KEEPER_LOOK	   (2 * BW_MS)	 /* between two looks whether it is, at first */
#define BW_KEEPER_LOOK_MAX (100 * BW_MS) /* and at last */
#define BW_KEEPER_PAUSE_MS 1000		 /* without new connections, for want of descriptors */

struct bw_keeper_member {
	int connection;	 /* to its endpoint */
	int packet;	 /* its packet socket, held here as well; -1: not sent yet */
	uint16_t engine; /* its endpoint's number */
	bool watch;	 /* its endpoint keeps the watch */
	bool gone;	 /* the connection has ended, or is to end */
	ino_t inode;	 /* of the packet socket */
};

struct bw_keeper {
	pthread_t thread;
	pthread_mutex_t mutex; /* held while descriptors come and go */
	_Atomic bool stop;     /* the endpoint closes */
	_Atomic bool ended;    /* the thread has closed everything */
	int listener;
	int sentinel; /* packet socket that nothing comes to, for the interface's end */
	int interface;
	uint16_t ethertype;  /* network byte order */
	bool full;	     /* no descriptors, or no place: no connections are taken for a while */
	bool changed;	     /* the program is to be set anew */
	unsigned int most;   /* members and those who want to be, at most */
	unsigned int linked; /* members: the first ones, in the order that the kernel has */
	unsigned int count;  /* and those who want to be */
	struct bw_keeper_member member[BW_STEER_MOST];
};

static void bw_keeper_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void bw_keeper_close_all(struct bw_keeper *k)
{
	for (unsigned int i = 0; i < k->count; i++) {
		bw_keeper_close_fd(&k->member[i].connection);
		bw_keeper_close_fd(&k->member[i].packet);
	}
	k->count = k->linked = 0;
	if (k->listener >= 0)
		bw_discard_listener(k->listener);
	k->listener = -1;
	bw_keeper_close_fd(&k->sentinel);
}

/* Bound to an EtherType that only tests of cables use: that of Ethernet's loopback protocol. */
static int bw_keeper_sentinel(int interface)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_LOOP),
		.sll_ifindex = interface,
	};
	struct sock_filter nothing = {BPF_RET | BPF_K, 0, 0, 0};
	struct sock_fprog program = {1, &nothing};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) &&
	    !bind(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	bw_keeper_close_fd(&fd);
	return -1;
}

/* Does the kernel list a packet socket of this inode in our network namespace? `unknown`, if that
 * cannot be found out, as when there are no descriptors. */
static bool bw_keeper_listed(ino_t inode, bool unknown)
{
	FILE *f = fopen("/proc/thread-self/net/packet", "re");
	unsigned long each;
	char line[256];
	bool found = false;

	if (!f)
		return unknown;
	/* sk, RefCnt, Type, Proto, Iface, R, Rmem, User, Inode */
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %*s %lu", &each) == 1 &&
			each == inode;
	if (!found && ferror(f))
		found = unknown;
	fclose(f);
	return found;
}

/* The interface has not been down since the keeper began. */
static bool bw_keeper_stands(const struct bw_keeper *k)
{
	struct pollfd fd = {.fd = k->sentinel};

	return !k->stop && poll(&fd, 1, 0) == 0;
}

/* ---- who calls ---- */

/* Is it a packet socket that can be made a member, and one that we can see leave? */
static bool bw_keeper_fits(const struct bw_keeper *k, const struct bw_keeper_member *m)
{
	struct sockaddr_ll address = {0};
	socklen_t n = sizeof(address), size = sizeof(int);
	int domain = 0;

	if (getsockopt(m->packet, SOL_SOCKET, SO_DOMAIN, &domain, &size) || domain != AF_PACKET ||
	    getsockname(m->packet, (struct sockaddr *)&address, &n) ||
	    address.sll_protocol != k->ethertype || address.sll_ifindex != k->interface)
		return false;
	for (unsigned int i = 0; i < k->count; i++) {
		const struct bw_keeper_member *other = &k->member[i];

		if (other != m && other->packet >= 0 &&
		    (other->inode == m->inode || other->engine == m->engine))
			return false;
	}
	return bw_keeper_listed(m->inode, false);
}

/* The first call brings the socket. False: it is none of an endpoint. */
static bool bw_keeper_take(struct bw_keeper *k, struct bw_keeper_member *m,
			   const struct bw_keeper_call *call, int fd)
{
	struct stat told;

	if (m->packet >= 0 || fd < 0) {
		bool again = m->packet >= 0 && fd < 0 && call->engine == m->engine;

		bw_keeper_close_fd(&fd);
		return again;
	}
	m->packet = fd;
	m->engine = call->engine;
	if (fstat(fd, &told))
		return false;
	m->inode = told.st_ino;
	return bw_keeper_fits(k, m);
}

/* Read what has come by a connection. */
static void bw_keeper_hear(struct bw_keeper *k, struct bw_keeper_member *m)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct bw_keeper_call call = {0};
	struct iovec io = {&call, sizeof(call)};
	struct msghdr message = {.msg_iov = &io,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 /* without the padding, which has room for a second one */
				 .msg_controllen = CMSG_LEN(sizeof(int))};
	ssize_t n = recvmsg(m->connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
	int fd = -1;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	if (n != sizeof(call) || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
	    call.magic != BW_KEEPER_MAGIC) {
		bw_keeper_close_fd(&fd);
		m->gone = true;
		return;
	}
	m->gone = !bw_keeper_take(k, m, &call, fd);
	m->watch = call.watch;
	k->changed = true;
}

/* Only endpoints of the same user: the keeper is trusted with their sockets, and they with its
 * time. */
static bool bw_keeper_admits(int fd)
{
	return bw_who_may(fd, NULL) == 0;
}

static void bw_keeper_accept(struct bw_keeper *k)
{
	int fd;

	k->full = !bw_discard_reserve();
	if (k->full)
		return;
	fd = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	k->full = fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
	if (fd >= 0 && !bw_keeper_admits(fd)) {
		bw_discard(fd);
		return;
	}
	bw_discard_return();
	if (fd < 0)
		return;
	k->member[k->count++] = (struct bw_keeper_member){.connection = fd, .packet = -1};
}

/* ---- the group ---- */

/* Set the program for all members and all who are about to be, when member `leaving` leaves (-1:
 * none does). False: the kernel does not take it. */
static bool bw_keeper_steer(struct bw_keeper *k, int leaving)
{
	struct sock_filter code[BW_STEER_CODE];
	struct sock_fprog program = {.filter = code};
	struct bw_steer of[BW_STEER_MOST];
	unsigned int n = 0, last = k->linked - 1;
	uint32_t otherwise = 0;

	for (unsigned int i = 0; i < k->count; i++) {
		uint32_t to = i;

		if ((int)i == leaving || k->member[i].packet < 0)
			continue;
		if (leaving >= 0 && i >= last)
			to = i == last ? bw_steer_moving(k->linked, (uint32_t)leaving) : 0;
		of[n++] = (struct bw_steer){k->member[i].engine, to};
		if (k->member[i].watch)
			otherwise = to;
	}
	program.len = (unsigned short)bw_steer_program(code, of, n, otherwise);
	return setsockopt(k->member[leaving == 0].packet, SOL_PACKET, PACKET_FANOUT_DATA, &program,
			  sizeof(program)) == 0;
}

/* Make a socket a member: of a new group if there is none. */
static bool bw_keeper_link(struct bw_keeper *k, const struct bw_keeper_member *m)
{
	int what = (PACKET_FANOUT_CBPF | PACKET_FANOUT_FLAG_UNIQUEID) << 16;
	socklen_t n = sizeof(what);

	if (k->linked) {
		if (getsockopt(k->member[0].packet, SOL_PACKET, PACKET_FANOUT, &what, &n))
			return false;
		what = (what & 0xFFFF) | PACKET_FANOUT_CBPF << 16;
	}
	return setsockopt(m->packet, SOL_PACKET, PACKET_FANOUT, &what, sizeof(what)) == 0;
}

static void bw_keeper_forget(struct bw_keeper *k, unsigned int i)
{
	pthread_mutex_lock(&k->mutex);
	bw_keeper_close_fd(&k->member[i].connection);
	bw_keeper_close_fd(&k->member[i].packet);
	k->member[i] = k->member[--k->count];
	pthread_mutex_unlock(&k->mutex);
}

/* Those who want to be members and have sent their sockets come before those who have not. */
static unsigned int bw_keeper_sort(struct bw_keeper *k)
{
	unsigned int ready = k->linked;

	for (unsigned int i = k->linked; i < k->count; i++) {
		struct bw_keeper_member m = k->member[i];

		if (m.packet < 0)
			continue;
		k->member[i] = k->member[ready];
		k->member[ready++] = m;
	}
	return ready;
}

/* Make the next one a member. What follows one that cannot be would not be where it is sought: then
 * the program is to be set anew. */
static void bw_keeper_join_next(struct bw_keeper *k)
{
	if (bw_keeper_link(k, &k->member[k->linked])) {
		k->linked++;
		return;
	}
	bw_keeper_forget(k, k->linked);
	k->changed = true;
}

/* Take in those who wait. The kernel knows where to find them before it has them: meanwhile they
 * receive by themselves. One socket alone is no worse off without a group. */
static bool bw_keeper_join(struct bw_keeper *k)
{
	unsigned int ready = bw_keeper_sort(k);

	bool due = k->changed && ready > 1;

	k->changed = false;
	if (!due)
		return true;
	if (!k->linked)
		bw_keeper_join_next(k);
	if (!k->changed && !bw_keeper_steer(k, -1))
		return false;
	while (!k->changed && k->linked < ready)
		bw_keeper_join_next(k);
	return true;
}

/* The kernel no longer has the socket, which others may hold for a moment. */
static bool bw_keeper_await(struct bw_keeper *k, ino_t inode)
{
	uint64_t until = bw_clock_now() + BW_KEEPER_LEAVE, pause = BW_KEEPER_LOOK;

	while (bw_keeper_listed(inode, true)) {
		if (!bw_keeper_stands(k) || bw_clock_now() > until)
			return false;
		bw_clock_sleep(bw_clock_now() + pause);
		pause = bw_min_u64(2 * pause, BW_KEEPER_LOOK_MAX);
	}
	return true;
}

/* A member's process ended, or closed its endpoint. */
static bool bw_keeper_leave(struct bw_keeper *k, unsigned int i)
{
	struct bw_keeper_member *m = &k->member[i];

	if (k->linked > 1 && !bw_keeper_steer(k, (int)i))
		return false;
	pthread_mutex_lock(&k->mutex);
	bw_keeper_close_fd(&m->connection);
	bw_keeper_close_fd(&m->packet);
	pthread_mutex_unlock(&k->mutex);
	if (!bw_keeper_await(k, m->inode))
		return false;
	pthread_mutex_lock(&k->mutex);
	*m = k->member[--k->linked];
	k->member[k->linked] = k->member[--k->count];
	pthread_mutex_unlock(&k->mutex);
	return true;
}

/* Let go who is gone: members one by one, from the last, since nobody has to move for it. */
static bool bw_keeper_part(struct bw_keeper *k)
{
	for (unsigned int i = k->count; i-- > 0;) {
		if (!k->member[i].gone)
			continue;
		if (i >= k->linked)
			bw_keeper_forget(k, i);
		else if (!bw_keeper_leave(k, i))
			return false;
	}
	return true;
}

/* ---- the thread ---- */

/* Wait until something happens and take note of it. False: the interface went down, or the endpoint
 * closes. */
static bool bw_keeper_listen(struct bw_keeper *k)
{
	struct pollfd fds[BW_STEER_MOST + 2] = {{.fd = k->sentinel}};
	unsigned int n = k->count;
	bool room = n < k->most && !k->full;
	int patience = k->changed ? 0 : k->full ? BW_KEEPER_PAUSE_MS : -1;

	for (unsigned int i = 0; i < n; i++)
		fds[i + 1] = (struct pollfd){.fd = k->member[i].connection, .events = POLLIN};
	fds[n + 1] = (struct pollfd){.fd = k->listener, .events = room ? POLLIN : 0};
	if (poll(fds, n + 2, patience) < 0)
		return errno == EINTR;
	k->full = false;
	if (k->stop || fds[0].revents || (fds[n + 1].revents & ~POLLIN))
		return false;
	pthread_mutex_lock(&k->mutex);
	for (unsigned int i = 0; i < n; i++) {
		if (fds[i + 1].revents)
			bw_keeper_hear(k, &k->member[i]);
	}
	if (fds[n + 1].revents)
		bw_keeper_accept(k);
	pthread_mutex_unlock(&k->mutex);
	return true;
}

static void *bw_keeper_main(void *arg)
{
	struct bw_keeper *k = arg;

	while (bw_keeper_listen(k) && bw_keeper_part(k) && bw_keeper_join(k) && bw_keeper_stands(k))
		;
	pthread_mutex_lock(&k->mutex);
	bw_keeper_close_all(k);
	pthread_mutex_unlock(&k->mutex);
	atomic_store(&k->ended, true);
	return NULL;
}

static unsigned int bw_keeper_most(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	/* A connection and a socket each. */
	return (unsigned int)bw_min_u64(limit.rlim_cur / BW_KEEPER_FD_SHARE / 2, BW_STEER_MOST);
}

struct bw_keeper *bw_keeper_start(int listener, int interface, uint16_t ethertype)
{
	struct bw_keeper *k = calloc(1, sizeof(*k));

	if (!k) {
		bw_discard_listener(listener);
		return NULL;
	}
	k->listener = listener;
	k->interface = interface;
	k->ethertype = ethertype;
	k->most = bw_keeper_most();
	k->sentinel = bw_keeper_sentinel(interface);
	pthread_mutex_init(&k->mutex, NULL);
	if (k->sentinel < 0 || bw_thread_create(&k->thread, true, bw_keeper_main, k)) {
		bw_keeper_close_all(k);
		free(k);
		return NULL;
	}
	pthread_setname_np(k->thread, "beowire-fanout");
	return k;
}

bool bw_keeper_ended(const struct bw_keeper *k)
{
	return atomic_load(&k->ended);
}

void bw_keeper_stop(struct bw_keeper *k)
{
	atomic_store(&k->stop, true);
	pthread_mutex_lock(&k->mutex);
	if (k->listener >= 0)
		shutdown(k->listener, SHUT_RDWR);
	pthread_mutex_unlock(&k->mutex);
	pthread_join(k->thread, NULL);
	pthread_mutex_destroy(&k->mutex);
	free(k);
}

void bw_keeper_hold(struct bw_keeper *k)
{
	pthread_mutex_lock(&k->mutex);
}

void bw_keeper_release(struct bw_keeper *k)
{
	pthread_mutex_unlock(&k->mutex);
}

void bw_keeper_abandon(struct bw_keeper *k)
{
	/* The parent goes on with it. */
	bw_keeper_close_fd(&k->listener);
	bw_keeper_close_all(k);
	free(k);
}
