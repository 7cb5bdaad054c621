/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What comes from beowired, or from whoever has its place: answers of any form, with any
 * descriptors, at any time, or none. An endpoint takes a packet socket whose ring is as it was told
 * and nothing else, from whom it may trust; every other descriptor is closed, once; nothing waits
 * for longer than it says.
 */
#include <stdlib.h>
#include <sys/un.h>

#include "bpf.h"
#include "clock.h"
#include "ep.h"
#include "link/packet/served.h"
#include "service.h"

#include "descriptors.h"

static uint64_t now;
static int fake_lstat(const char *path, struct stat *told);
static int fake_stat(const char *path, struct stat *told);
static int fake_connect(int fd, const struct sockaddr *name, socklen_t n);
static ssize_t fake_sendmsg(int fd, const struct msghdr *m, int flags);
static ssize_t fake_recvmsg(int fd, struct msghdr *m, int flags);
static ssize_t fake_recv(int fd, void *bytes, size_t n, int flags);
static int fake_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *span, void *signals);

#define bw_clock_now()		     now
#define lstat(path, told)	     fake_lstat(path, told)
#define stat(path, told)	     fake_stat(path, told)
#define connect(fd, name, n)	     fake_connect(fd, name, n)
#define sendmsg(fd, m, flags)	     fake_sendmsg(fd, m, flags)
#define recvmsg(fd, m, flags)	     fake_recvmsg(fd, m, flags)
#define recv(fd, bytes, n, flags)    fake_recv(fd, bytes, n, flags)
#define ppoll(fds, n, span, signals) fake_ppoll(fds, n, span, signals)

#include "../../hosts/user/link/filter.c"
#include "../../hosts/user/link/packet/packet.c"
#include "../../hosts/user/link/packet/served.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RING	(1u << 18) /* bytes of the rings that the service makes, or twice as many */
#define ENGINE	33000
#define LONGEST 110 /* bytes of a path, at most: two more than fit */

static struct fuzz_input *in;
static struct bw_ep ep;
static struct fuzz_socket *claimed;
static bool there; /* the service's path */
static mode_t mode;
static uid_t owner;

/* The answer that came last, and its first descriptor. */
static struct bw_service_answer last;
static size_t last_len;
static unsigned int last_of;
static struct fuzz_socket *last_socket;
static unsigned int requests, drains, interrupts, waits;
static uint64_t asked_at;

/* ---- in place of the kernel and the service ---- */

static int fake_lstat(const char *path, struct stat *told)
{
	if (path != ep.env.service)
		fuzz_bad("another path than was given");
	return there ? 0 : -1;
}

/* The directory of the path: all but its last part. */
static int fake_stat(const char *path, struct stat *told)
{
	const char *whole = ep.env.service, *slash = strrchr(whole, '/');
	size_t n = strlen(path);

	if (!slash ? strcmp(path, ".") != 0
		   : strncmp(path, whole, n) || n != (slash == whole ? 1 : (size_t)(slash - whole)))
		fuzz_bad("another directory");
	memset(told, 0, sizeof(*told));
	told->st_uid = owner;
	told->st_mode = mode;
	return fuzz_fails(EACCES) ? -1 : 0;
}

static int fake_connect(int fd, const struct sockaddr *name, socklen_t n)
{
	static const int errors[] = {ECONNREFUSED, ENOENT, EAGAIN, EACCES};
	const struct sockaddr_un *un = (const struct sockaddr_un *)name;
	struct fuzz_socket *s = fuzz_socket_of(fd);
	uint8_t how = fuzz_u8(in);

	if (s->domain != AF_UNIX || n < sizeof(*un) || un->sun_path[sizeof(un->sun_path) - 1] ||
	    strcmp(un->sun_path, ep.env.service))
		fuzz_bad("a call of somebody else");
	s->uid = how & 1 ? 1000 : how & 2;
	errno = errors[how & 3];
	return how >= 230 ? -1 : 0;
}

/* One request, whose descriptor holds the engine's number. */
static ssize_t fake_sendmsg(int fd, const struct msghdr *m, int flags)
{
	const struct bw_service_request *r = m->msg_iov->iov_base;
	const struct cmsghdr *c = m->msg_control;
	int claim;

	if (fuzz_socket_of(fd)->domain != AF_UNIX || m->msg_iovlen != 1 ||
	    m->msg_iov->iov_len != sizeof(*r) || c->cmsg_len != CMSG_LEN(sizeof(int)) ||
	    c->cmsg_type != SCM_RIGHTS || !(flags & MSG_NOSIGNAL) || !(flags & MSG_DONTWAIT))
		fuzz_bad("a request of another form");
	memcpy(&claim, CMSG_DATA(c), sizeof(claim));
	requests++;
	asked_at = now;
	if (claim < 0 && ep.packets) { /* there was no descriptor to keep it by */
		errno = EBADF;
		return -1;
	}
	if (fuzz_socket_of(claim) != claimed || r->engine != ENGINE || r->zero)
		fuzz_bad("a request for something else");
	return fuzz_fails(EPIPE) ? -1 : (ssize_t)sizeof(*r);
}

/* A socket for us, or what is none; its ring has so many bytes. */
static struct fuzz_socket *offered(uint8_t how, size_t ring)
{
	int fd = fuzz_descriptor(how & 1 ? AF_UNIX : AF_PACKET);
	struct fuzz_socket *s;

	if (fd < 0)
		return NULL;
	s = fuzz_socket_of(fd);
	s->refs++; /* under way */
	close(fd);
	s->ring_bytes = how & 2 ? RING : ring <= 2 * RING ? ring : RING;
	return s;
}

/* Mostly plausible. */
static void answer(uint8_t how)
{
	static const uint32_t slots[] = {1664, 9152, 4096, 512, 65536, 1601, 0, 128};
	uint8_t odd = how & 32 ? fuzz_odd(in) : 0, shape = fuzz_u8(in);
	uint32_t n = sizeof(last.text);
	const uint8_t *text;

	memset(&last, 0, sizeof(last));
	last.head.magic = odd & 1 ? fuzz_u16(in) : BW_SERVICE_MAGIC;
	last.head.version = odd & 2 ? fuzz_u16(in) : BW_SERVICE_VERSION;
	last.head.kind = odd & 4 ? fuzz_u8(in) : how & 3 ? BW_SERVICE_READY : BW_SERVICE_WAIT;
	last.mtu = odd & 8 ? (uint32_t)fuzz_number(in) : 1500;
	last.slot_bytes = slots[shape & 7];
	last.block_bytes = shape & 8 ? 1u << (10 + (shape >> 4)) : 65536;
	last.blocks = 1;
	if (last.block_bytes <= RING)
		last.blocks = RING / last.block_bytes << (shape >> 7);
	if (odd & 16) {
		last.slot_bytes = (uint32_t)fuzz_number(in);
		last.block_bytes = (uint32_t)fuzz_number(in);
		last.blocks = (uint32_t)fuzz_number(in);
	}
	last.flags = shape >> 2 & 3;
	memcpy(last.mac, "\2serve", 6);
	memcpy(last.interface, "beowired0", 9);
	if (odd & 32) {
		last.error = (int32_t)fuzz_number(in);
		last.mac[5] = fuzz_u8(in);
		last.flags = fuzz_u8(in);
		memset(last.interface, fuzz_u8(in), sizeof(last.interface));
		last.interface[fuzz_u8(in) % 32 % sizeof(last.interface)] = 0;
		text = fuzz_bytes(in, &n);
		memset(last.text, 'x', sizeof(last.text));
		memcpy(last.text, text, n);
	}
	if (odd & 64)
		memset(last.interface, 'y', sizeof(last.interface));
	last_len = sizeof(last);
	if (odd & 128)
		last_len = fuzz_u8(in) & 3 ? last_len + 1 : fuzz_u8(in);
}

/* What the service has sent by now. */
static ssize_t fake_recvmsg(int fd, struct msghdr *m, int flags)
{
	uint8_t how = fuzz_u8(in), extra[256] = {0};
	struct fuzz_socket *of[4] = {NULL};
	unsigned int before, n = 0;
	ssize_t got;

	if (!(flags & MSG_DONTWAIT) || !(flags & MSG_CMSG_CLOEXEC) ||
	    fuzz_socket_of(fd)->domain != AF_UNIX)
		fuzz_bad("received in another way");
	last_len = 0;
	last_socket = NULL;
	last_of = 0;
	if (how >= 224 || in->at == in->end) {
		errno = how & 1 ? ECONNRESET : how & 2 ? EINTR : EAGAIN;
		return -1;
	}
	if (how < 208)
		answer(how);
	memcpy(extra, &last, sizeof(last));
	if (how & 3)
		n = (how & 12) == 12 ? fuzz_u8(in) % 5 : 1;
	for (unsigned int i = 0; i < n; i++) {
		of[i] = offered(how & 16 ? fuzz_u8(in) : 0, (size_t)last.blocks * last.block_bytes);
		if (!of[i])
			n = i;
	}
	before = fuzz_descriptors();
	got = fuzz_message(m, extra, last_len, of, n);
	if (fuzz_descriptors() > before + 1)
		fuzz_bad("more than one descriptor was taken");
	last_of = fuzz_descriptors() - before;
	last_socket = last_of ? of[0] : NULL;
	return got;
}

/* An established connection: nothing should come by it. */
static ssize_t fake_recv(int fd, void *bytes, size_t n, int flags)
{
	uint8_t how = fuzz_u8(in);

	fuzz_socket_of(fd);
	errno = how & 1 ? ECONNRESET : how & 2 ? EINTR : EAGAIN;
	return how < 32 && in->at < in->end ? (ssize_t)(how & 1) : -1;
}

static int fake_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *span, void *signals)
{
	uint8_t how = fuzz_u8(in);
	uint64_t most;

	if (n != 1 || fds->events != POLLIN || !span)
		fuzz_bad("waits for something else, or for ever");
	fuzz_socket_of(fds->fd);
	if (++waits > 2 + interrupts)
		fuzz_bad("waits again and again");
	most = (uint64_t)span->tv_sec * BW_S + (uint64_t)span->tv_nsec;
	if (how >= 240 && in->at < in->end && interrupts++ < 100) {
		now += most / 8;
		errno = how & 1 ? ENOMEM : EINTR;
		return -1;
	}
	if (how >= 220 || in->at == in->end) {
		now += most;
		return 0;
	}
	now += most * how / 256;
	fds->revents = POLLIN;
	return 1;
}

/* ---- the endpoint ---- */

static int listened[2] = {-1, -1};

void bw_wait_listen(struct bw_ep *e, int fd)
{
	bool packet = fuzz_socket_of(fd)->domain == AF_PACKET;

	if (listened[packet] >= 0)
		fuzz_bad("two of a kind are listened to");
	listened[packet] = fd;
}

void bw_wait_unlisten(struct bw_ep *e, int fd)
{
	listened[fuzz_socket_of(fd)->domain == AF_PACKET] = -1;
}

void bw_wait_rouse(struct bw_ep *e)
{
}

void bw_ep_drain(struct bw_ep *e, struct bw_packet *p)
{
	drains++;
	if (fuzz_socket_of(p->fd)->ring != p->ring)
		fuzz_bad("frames are sought in another ring");
}

void bw_fanout_discard(const struct bw_ep *e, int fd)
{
	if (fd == ep.packet[0].fd || !drains)
		fuzz_bad("a socket is discarded that is in use");
	close(fd);
}

/* The ring is that of the socket, and every slot lies in it. */
static void look_at_ring(struct bw_packet *p)
{
	struct fuzz_socket *s = fuzz_socket_of(p->fd);

	if (s->domain != AF_PACKET || s->ring != p->ring || s->ring_bytes != p->ring_bytes)
		fuzz_bad("a ring that is not the socket's");
	if (p->slots > 65536 || !p->slots || p->slot_bytes < bw_ring_slot(p->mtu))
		fuzz_bad("slots that make no sense");
	for (uint32_t i = 0; i < p->slots; i++) {
		const struct tpacket2_hdr *slot = bw_packet_slot(p, i);

		if (slot->tp_status || ((const uint8_t *)slot)[p->slot_bytes - 1])
			fuzz_bad("a slot with something in it");
	}
	if (p->mtu < BW_FRAME_MIN_MTU || p->mtu > BW_FRAME_MAX_MTU ||
	    strnlen(p->name, sizeof(p->name)) == sizeof(p->name))
		fuzz_bad("an interface that makes no sense");
}

/* The answer that was taken was one to be taken. */
static void look_at_answer(const struct bw_packet *p)
{
	const struct fuzz_socket *c = fuzz_socket_of(p->fanout.connection);

	if (last_len != sizeof(last) || !bw_service_is(&last.head) ||
	    last.head.kind != BW_SERVICE_READY || last_of != 1 ||
	    fuzz_socket_of(p->fd) != last_socket)
		fuzz_bad("an answer is taken that is none");
	if ((c->uid && c->uid != owner) || mode & 022)
		fuzz_bad("somebody else is trusted");
	if (p->slot_bytes != last.slot_bytes || p->block_bytes != last.block_bytes ||
	    memcmp(p->mac, last.mac, 6))
		fuzz_bad("something else is believed than was said");
}

static bool open_served(void)
{
	static const struct bw_iface none = {.mtu = 9000};
	struct bw_packet *p = &ep.packet[0];
	unsigned int before = fuzz_descriptors();
	uint64_t begun = now, patience;
	const char *why = NULL;
	int claim = fuzz_descriptor_of(claimed), error;

	patience = bw_service_patience(&ep.env) + BW_SERVICE_MAKE_NS;
	error = bw_packet_open(p, &ep.env, &none, ENGINE, claim, 0, &why);
	close(claim);
	if (now - begun > patience)
		fuzz_bad("waited for too long");
	if (error && (fuzz_descriptors() != before || !why || error > 0))
		fuzz_bad("a failure that leaves something, or says nothing");
	if (error)
		return false;
	if (requests != 1 || p->keyed != !!(last.flags & BW_SERVICE_KEYED) ||
	    (p->keyed && memcmp(p->key, last.key, sizeof(p->key))))
		fuzz_bad("another key, or another number of requests");
	look_at_answer(p);
	ep.packets = 1;
	listened[0] = p->fanout.connection;
	listened[1] = p->fd;
	return true;
}

static void visit(void)
{
	struct bw_packet *p = &ep.packet[0], was = *p;
	const struct bw_fanout *f = &p->fanout;
	unsigned int asked = requests;

	drains = 0;
	bw_service_visit(&ep, p);
	if (p->fd != was.fd) {
		look_at_answer(p);
		look_at_ring(p);
		if (drains != 1 || memcmp(p->mac, was.mac, 6) || p->mtu != was.mtu ||
		    p->slots < was.slots || !was.asks || p->ring != was.ring || p->asks)
			fuzz_bad("a socket that does not take the other's place");
	}
	if (fuzz_descriptors() != 2u + (p->claim >= 0) + (f->connection >= 0))
		fuzz_bad("a descriptor too many, or too few");
	if (listened[1] != p->fd || listened[0] != f->connection)
		fuzz_bad("listens to another descriptor than it has");
	if (f->connection < 0 &&
	    (p->asks || f->try_at <= now || f->try_at > now + BW_SERVICE_PAUSES))
		fuzz_bad("it does not ask again soon");
	if (p->asks && f->connection >= 0 && f->try_at > now + BW_SERVICE_AGAIN_NS)
		fuzz_bad("it waits for too long");
	if (was.asks && p->asks == was.asks && f->try_at != was.fanout.try_at)
		fuzz_bad("it waits for longer than it said");
	if (p->asks && now - asked_at > BW_SERVICE_AGAIN_NS + BW_SERVICE_MAKE_NS)
		fuzz_bad("it waits on and on");
	if (p->asks && f->try_at <= now)
		fuzz_bad("it waits though nothing came in time");
	if (requests > asked + 1)
		fuzz_bad("asked several times");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input script = {data, data + size};
	static char path[LONGEST + 1];
	uint8_t how;
	int claim;

	fuzz_script = in = &script;
	now = BW_S;
	requests = interrupts = waits = 0;
	memset(&ep, 0, sizeof(ep));
	how = fuzz_u8(in);
	memset(path, 'p', sizeof(path) - 1);
	path[LONGEST - (how & 3)] = 0;
	if (how & 28)
		strcpy(path, how & 4 ? "/run/beowire/beowired.sock" : how & 8 ? "/x" : "here");
	owner = how & 32 ? 1000 : 0;
	mode = how & 64 && how & 128 ? 0777 : 0755;
	there = true;
	ep.env.service = path;
	ep.env.links = how & 128 ? BW_LINK_UDP : 0;
	ep.env.mtu = how & 64 ? 1400 : 0;
	ep.env.ethertype = BW_ETHERTYPE;
	ep.now = now;
	ep.self.engine = ENGINE;
	claim = fuzz_descriptor(AF_UNIX);
	claimed = fuzz_socket_of(claim);
	if (open_served()) {
		look_at_ring(&ep.packet[0]);
		while (in->at < in->end) {
			how = fuzz_u8(in);
			now += (how & 3) * BW_S + (how & 4 ? 100 : 1) * BW_MS;
			there = how < 240;
			ep.now = now;
			visit();
		}
		look_at_ring(&ep.packet[0]);
		bw_packet_close(&ep.packet[0]);
	}
	close(claim);
	if (fuzz_descriptors())
		fuzz_bad("descriptors are left open");
	fuzz_script = NULL;
	fuzz_descriptors_reset();
	return 0;
}
