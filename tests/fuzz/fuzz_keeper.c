/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keeper of a fan-out group, and processes of its user that call it: with messages of any form,
 * any descriptors, the same socket twice, and an end at any time. Whatever they do, the keeper
 * holds the descriptors that it lists and no others, it knows the order of the kernel's group, and
 * frames for each of its members go to that member, also while others come and go.
 */
#include <pthread.h>
#include <sys/resource.h>

#include "bpf.h"
#include "clock.h"
#include "ep.h"
#include "link/packet/steer.h"
#include "who.h"

#include "descriptors.h"

static uint64_t now;
static int fake_poll(struct pollfd *fds, nfds_t n, int patience);
static int fake_accept4(int fd);
static ssize_t fake_recvmsg(int fd, struct msghdr *m, int flags);
static void fake_sleep(uint64_t until);
static FILE *fake_proc(const char *path);
static rlim_t descriptors;

#define bw_clock_now()			 now
#define bw_clock_sleep(until)		 fake_sleep(until)
#define poll(fds, n, patience)		 fake_poll(fds, n, patience)
#define accept4(fd, name, len, flags)	 fake_accept4(fd)
#define recvmsg(fd, m, flags)		 fake_recvmsg(fd, m, flags)
#define fopen(path, mode)		 fake_proc(path)
#define getrlimit(what, limit)		 ((limit)->rlim_cur = descriptors, 0)
#define shutdown(fd, how)		 fuzz_socket_of(fd)
#define pthread_join(thread, result)	 ((void)(thread))
#define pthread_setname_np(thread, name) ((void)(thread))

#include "../../hosts/user/link/packet/keeper.c"
#include "../../hosts/user/link/packet/steer.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INTERFACE = 3, ETHERTYPE = 0x1234, CALLERS = 512 };

/* A process that calls: it holds its packet socket until it ends. */
struct caller {
	struct fuzz_socket *connection, *packet;
	uint16_t engine;
	bool hung_up; /* but goes on for a while */
	bool ended;
	bool babbles; /* it sent what is no call */
};

static struct fuzz_input *in;
static struct bw_keeper *k;
static struct caller caller[CALLERS];
static unsigned int callers;
static uint64_t slept;
static bool down;	      /* the interface was */
static unsigned int failures; /* there were so many when the keeper last waited */

/* ---- the group ---- */

/* Who gets a frame for this engine, as an index. */
static unsigned int steered(uint16_t engine)
{
	struct bw_hdr h = {.magic = BW_MAGIC, .dst_engine = engine};
	int64_t to = fuzz_group.codes ? bpf_run(fuzz_group.code, fuzz_group.codes, (uint8_t *)&h,
						sizeof(h), PACKET_HOST)
				      : 0;

	if (to < 0)
		fuzz_bad("a program that has no end");
	return (unsigned int)((uint64_t)to % fuzz_group.n);
}

/* Frames for those who are members and have not ended reach them: at any time. */
static void look_at_group(void)
{
	for (unsigned int i = 0; i < k->linked; i++) {
		const struct bw_keeper_member *m = &k->member[i];
		const struct fuzz_socket *s = m->gone ? NULL : fuzz_socket_of(m->packet);

		if (s && s->member && fuzz_group.member[steered(m->engine)] != s)
			fuzz_bad("frames of a member go to another one");
	}
}

/* Somebody has joined, or left. Who gives up the group need not care. */
static void changed(void)
{
	if (!down && !k->stop && failures == fuzz_failures && slept < BW_KEEPER_LEAVE)
		look_at_group();
}

static struct caller *whose(const struct fuzz_socket *connection)
{
	for (unsigned int i = 0; i < callers; i++)
		if (caller[i].connection == connection)
			return &caller[i];
	fuzz_bad("a connection that nobody made");
}

/* Nothing is under way: what the keeper believes is so. */
static void look_at_keeper(bool settled)
{
	unsigned int open = 2, watches = 0, ready = 0;
	uint16_t nobody = 0;
	bool right = false;

	if (k->count > k->most || k->linked > k->count || fuzz_group.n != k->linked)
		fuzz_bad("another number of members than the kernel has");
	for (unsigned int i = 0; i < k->count; i++) {
		const struct bw_keeper_member *m = &k->member[i];

		open += 1 + (m->packet >= 0);
		ready += m->packet >= 0;
		if (whose(fuzz_socket_of(m->connection))->babbles)
			fuzz_bad("a caller is kept that sends what is no call");
		if (fuzz_socket_of(m->connection)->domain != AF_UNIX)
			fuzz_bad("a connection that is none");
		if (i < k->linked && fuzz_group.member[i] != fuzz_socket_of(m->packet))
			fuzz_bad("another order than the kernel has");
		for (unsigned int other = 0; other < i && m->packet >= 0; other++)
			if (k->member[other].packet >= 0 && k->member[other].engine == m->engine)
				fuzz_bad("two have one number");
		nobody += nobody == m->engine;
	}
	if (fuzz_descriptors() != open)
		fuzz_bad("a descriptor too many, or too few");
	look_at_group();
	if (settled && ready > 1 && k->linked != ready)
		fuzz_bad("somebody is no member");
	if (!settled || k->linked < 2)
		return;
	for (unsigned int i = 0; i < k->count; i++)
		nobody += nobody == k->member[i].engine;
	for (unsigned int i = 0; i < k->linked; i++) {
		watches += k->member[i].watch;
		right |= k->member[i].watch && steered(65535) == i;
	}
	if (watches && !right)
		fuzz_bad("frames of nobody do not go to the watch");
}

/* ---- in place of the kernel and the callers ---- */

/* Its process ends: the kernel closes what it had. */
static void end(struct caller *c)
{
	if (!c->ended && c->packet)
		fuzz_unref(c->packet);
	c->ended = true;
}

/* A packet socket of the caller's own: the one that it has, or a new one. */
static struct fuzz_socket *own_socket(struct caller *c, uint8_t how)
{
	int fd;

	if (c->packet)
		return c->packet;
	fd = fuzz_descriptor(how & 1 ? AF_UNIX : AF_PACKET);
	if (fd < 0)
		return NULL;
	c->packet = fuzz_socket_of(fd);
	c->packet->refs++; /* the process has it, as long as it runs */
	close(fd);
	c->packet->protocol = how & 2 ? 1 : ETHERTYPE;
	c->packet->interface = how & 4 ? 1 : INTERFACE;
	c->packet->turn = how & 8; /* of another network namespace: not listed in ours */
	return c->packet;
}

static ssize_t fake_recvmsg(int fd, struct msghdr *m, int flags)
{
	struct caller *c = whose(fuzz_socket_of(fd));
	uint8_t how = fuzz_u8(in), odd = how & 64 ? fuzz_odd(in) : 0, bytes[64] = {0};
	struct bw_keeper_call call = {.magic = BW_KEEPER_MAGIC};
	struct fuzz_socket *of[4] = {NULL};
	unsigned int before = fuzz_descriptors(), n = 0;
	size_t len = sizeof(call);
	ssize_t got;

	if (!(flags & MSG_DONTWAIT) || !(flags & MSG_CMSG_CLOEXEC))
		fuzz_bad("received in another way");
	if (c->ended || c->hung_up || how < 24) {
		if (how & 2)
			c->hung_up = true;
		else
			end(c);
		errno = ECONNRESET;
		return how & 1 ? -1 : fuzz_message(m, bytes, 0, of, 0);
	}
	if (how < 32) {
		errno = how & 1 ? EAGAIN : EINTR;
		return -1;
	}
	call.engine = (uint16_t)(33000 + (odd & 1 ? fuzz_u8(in) : (unsigned int)(c - caller)));
	call.watch = how & 1 ? fuzz_u8(in) : 0;
	call.magic ^= odd & 2;
	memcpy(bytes, &call, sizeof(call));
	if (odd & 4)
		len = fuzz_u8(in) % sizeof(bytes);
	if (odd & 8 || !c->packet)
		n = odd & 16 ? fuzz_u8(in) % 5 : 1;
	for (unsigned int i = 0; i < n; i++) {
		uint8_t which = odd & 32 ? fuzz_u8(in) : 0;

		of[i] = which & 128 ? caller[which % callers].packet : own_socket(c, which);
		if (!of[i] || !of[i]->refs)
			n = i;
	}
	c->babbles |= len != sizeof(call) || call.magic != BW_KEEPER_MAGIC || n > 1;
	got = fuzz_message(m, bytes, len, of, n);
	if (fuzz_descriptors() > before + 1)
		fuzz_bad("more than one descriptor was taken");
	return got;
}

static int fake_accept4(int fd)
{
	int connection;

	fuzz_socket_of(fd);
	if (callers == CALLERS || fuzz_fails(fuzz_u8(in) & 1 ? EMFILE : ECONNABORTED))
		return -1;
	connection = fuzz_descriptor(AF_UNIX);
	if (connection >= 0)
		caller[callers++] = (struct caller){.connection = fuzz_socket_of(connection)};
	return connection;
}

int bw_who_may(int fd, struct ucred *who)
{
	fuzz_socket_of(fd);
	return fuzz_fails(EACCES) ? -EACCES : 0;
}

/* As /proc/net/packet. */
static FILE *fake_proc(const char *path)
{
	static char text[1 << 17];
	size_t at = 0;

	if (strcmp(path, "/proc/thread-self/net/packet"))
		fuzz_bad("another file than was expected");
	if (fuzz_fails(EMFILE))
		return NULL;
	at += (size_t)sprintf(text, "sk       RefCnt Type Proto  Iface R Rmem   User   Inode\n");
	for (unsigned int i = 0; fuzz_socket_at(i) && at < sizeof(text) - 128; i++) {
		const struct fuzz_socket *s = fuzz_socket_at(i);

		if (s->domain == AF_PACKET && s->refs && !s->turn)
			at += (size_t)sprintf(text + at,
					      "%016x %-6d %-4d %04x   %-5d %1d %-6u %-6u %-6lu\n",
					      0, s->refs, SOCK_RAW, s->protocol, s->interface, 1, 0,
					      0, (unsigned long)s->inode);
	}
	return fmemopen(text, at, "r");
}

static void fake_sleep(uint64_t until)
{
	if (until < now || until > now + BW_KEEPER_LOOK_MAX)
		fuzz_bad("sleeps for too long");
	slept += until - now;
	if (slept > (BW_KEEPER_LEAVE + BW_KEEPER_LOOK_MAX) * BW_STEER_MOST)
		fuzz_bad("waits for a socket for too long");
	now = until;
	if (callers)
		end(&caller[fuzz_u8(in) % callers]);
}

static int fake_poll(struct pollfd *fds, nfds_t n, int patience)
{
	uint8_t which = fuzz_u8(in);

	if (fds->fd != k->sentinel)
		fuzz_bad("the sentinel is not looked at");
	if (n == 1) {
		down |= in->at < in->end && which == 255;
		fds->revents = down ? POLLERR : 0;
		return down;
	}
	look_at_keeper(patience != 0);
	slept = 0;
	failures = fuzz_failures;
	if (in->at >= in->end) {
		k->stop = true;
		fds[n - 1].revents = POLLHUP;
		return 1;
	}
	if (which >= 250) {
		errno = which == 255 ? ENOMEM : EINTR;
		failures -= which == 255;
		return -1;
	}
	fds[n - 1].revents = which & 1 ? fds[n - 1].events : 0;
	for (unsigned int i = 1; i < n - 1; i++) {
		bool ends = which >= 240 && fuzz_u8(in) & 1;

		if (ends)
			end(whose(fuzz_socket_of(fds[i].fd)));
		fds[i].revents = ends || which & 2 || which >> 2 == i - 1 ? POLLIN : 0;
	}
	return 1;
}

/* The thread is run by the target. */
int bw_thread_create(pthread_t *thread, bool joined, void *(*main)(void *), void *arg)
{
	k = arg;
	return fuzz_fails(EAGAIN) ? -EAGAIN : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input script = {data, data + size};
	int listener;

	fuzz_script = in = &script;
	now = BW_S;
	callers = 0;
	down = false;
	descriptors = 8 * fuzz_u8(in);
	listener = fuzz_descriptor(AF_UNIX);
	if (bw_keeper_start(listener, INTERFACE, ETHERTYPE)) {
		fuzz_group.changed = changed;
		bw_keeper_main(k);
		fuzz_group.changed = NULL;
		if (!bw_keeper_ended(k))
			fuzz_bad("an end that is not told");
		bw_keeper_stop(k);
	}
	if (fuzz_descriptors())
		fuzz_bad("descriptors are left open");
	fuzz_script = NULL;
	fuzz_descriptors_reset();
	return 0;
}
