/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The client's side of beowired; see served.h, and service.h of common/ for what is said. */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ep.h"
#include "keyed.h"
#include "link/packet/served.h"
#include "ring_shape.h"
#include "service.h"
#include "text.h"

#define BW_SERVICE_SIGN_NS  (100 * BW_MS) /* for the first answer, */
#define BW_SERVICE_LATE_NS  (10 * BW_MS)  /* by which who is woken late was held up */
#define BW_SERVICE_ONLY_NS  (5 * BW_S)	  /* where there is no other link between nodes */
#define BW_SERVICE_MAKE_NS  (5 * BW_S)	  /* for the socket, once the service is at it */
#define BW_SERVICE_SOON	    (50 * BW_MS)  /* after its end: it may be there again */
#define BW_SERVICE_PAUSE    (1 * BW_S)	  /* between two tries to find it, */
#define BW_SERVICE_PAUSES   (10 * BW_S)	  /* at most, when it has refused: doubled each time */
#define BW_SERVICE_AGAIN_NS (60 * BW_S)	  /* for a first answer that nobody waits for */
#define BW_SERVICE_RINGS    (1u << 30)	  /* bytes of a ring that are believed */

bool bw_service_there(const struct bw_env *env)
{
	struct stat told;

	return env->service && !lstat(env->service, &told);
}

/* Who answers must be whoever owns the directory, which nobody else may write to. */
static int bw_service_trust(int fd, const char *path)
{
	char directory[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct ucred who;
	socklen_t n = sizeof(who);
	const char *slash = strrchr(path, '/');
	size_t len = slash && slash != path ? (size_t)(slash - path) : 1;
	struct stat told;

	memcpy(directory, slash ? path : ".", len);
	directory[len] = 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) || stat(directory, &told))
		return -errno;
	if (told.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	return who.uid == 0 || who.uid == told.st_uid ? 0 : -EPERM;
}

static int bw_service_dial(const char *path, const char **why)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd, error;

	if (strlen(path) >= sizeof(name.sun_path))
		return bw_fail(why, -ENAMETOOLONG, "BEOWIRE_SERVICE is longer than %zu bytes",
			       sizeof(name.sun_path) - 1);
	memcpy(name.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return bw_fail(why, -errno, "no socket to call beowired by: %s", strerror(errno));
	error = connect(fd, (struct sockaddr *)&name, sizeof(name)) ? -errno : 0;
	if (!error) {
		error = bw_service_trust(fd, path);
		if (!error)
			return fd;
		close(fd);
		return bw_fail(why, error,
			       "whoever listens at %s is not its directory's owner, or others may "
			       "write there; fix: stop it, start beowired",
			       path);
	}
	close(fd);
	if (error == -ECONNREFUSED || error == -ENOENT)
		return bw_fail(why, error,
			       "beowired does not run, though %s is there; fix: systemctl start "
			       "beowired",
			       path);
	return bw_fail(why, error, "beowired at %s cannot be called: %s", path,
		       error == -EAGAIN ? "too many others wait" : strerror(-error));
}

static int bw_service_ask(int fd, const struct bw_service_request *r, int claim)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = (void *)r, .iov_len = sizeof(*r)};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	control.header = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(int)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	};
	memcpy(CMSG_DATA(&control.header), &claim, sizeof(claim));
	return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*r) ? 0 : -errno;
}

/* The next answer, and the descriptor in it (-1: none). 0, or a negative errno: -EAGAIN, if none
 * has come. */
static int bw_service_hear(int fd, struct bw_service_answer *a, int *descriptor)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {.iov_base = a, .iov_len = sizeof(*a)};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = CMSG_LEN(sizeof(int))};
	const struct cmsghdr *c;
	ssize_t n;

	*descriptor = -1;
	n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	/* Who hangs up before it has read the request may have answered all the same. */
	if (n < 0 && errno == ECONNRESET)
		n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(descriptor, CMSG_DATA(c), sizeof(*descriptor));
	if (n == 0)
		return -ECONNRESET;
	if ((size_t)n < sizeof(a->head) || a->head.magic != BW_SERVICE_MAGIC)
		return -EPROTO;
	if (a->head.version != BW_SERVICE_VERSION)
		return -EPROTONOSUPPORT;
	return n == sizeof(*a) && !(m.msg_flags & MSG_TRUNC) ? 0 : -EPROTO;
}

/* The same, which may still come. */
static int bw_service_listen(int fd, struct bw_service_answer *a, int *descriptor, uint64_t until)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	uint64_t now = bw_clock_now(), patience = until > now ? until - now : 0;
	struct timespec span;
	bool again;
	int n;

	*descriptor = -1;
	do {
		now = bw_clock_now();
		n = ppoll(&wait, 1, bw_clock_span(until > now ? until - now : 0, &span), NULL);
		now = bw_clock_now();
		again = n < 0 && errno == EINTR;
		if (!n && patience && now > until + BW_SERVICE_LATE_NS) {
			until = now + patience;
			patience = 0; /* once */
			again = true;
		}
	} while (again);
	if (n <= 0)
		return n ? -errno : -ETIMEDOUT;
	return bw_service_hear(fd, a, descriptor);
}

static uint64_t bw_service_patience(const struct bw_env *env)
{
	return env->links & BW_LINK_UDP ? BW_SERVICE_SIGN_NS : BW_SERVICE_ONLY_NS;
}

/* What came instead of a socket, for people. */
static int bw_service_failure(const struct bw_service_answer *a, int error, uint64_t patience,
			      const char **why)
{
	char text[BW_SERVICE_TEXT];

	if (error == -ETIMEDOUT)
		return bw_fail(why, error,
			       "beowired does not answer within %llu ms; fix: systemctl restart "
			       "beowired",
			       (unsigned long long)(patience / BW_MS));
	if (error == -EPROTONOSUPPORT)
		return bw_fail(why, error,
			       "beowired speaks version %u, this libbeowire version %u; fix: the "
			       "same release of both",
			       a->head.version, BW_SERVICE_VERSION);
	if (error)
		return bw_fail(why, error, "beowired answers nothing that makes sense: %s",
			       strerror(-error));
	bw_text_printable(text, sizeof(text), a->text, sizeof(a->text));
	error = a->error < 0 && a->error > -4096 ? a->error : -EACCES;
	return bw_fail(why, error, "beowired gives no raw frames: %s", text);
}

static bool bw_service_waits(const struct bw_service_answer *a, int descriptor)
{
	return a->head.kind == BW_SERVICE_WAIT && descriptor < 0;
}

/* Is what came the socket? Else nothing is kept of it. */
static int bw_service_judge(const struct bw_service_answer *a, int error, int *descriptor,
			    uint64_t patience, const char **why)
{
	if (!error && a->head.kind == BW_SERVICE_READY && *descriptor >= 0)
		return 0;
	if (*descriptor >= 0)
		close(*descriptor);
	*descriptor = -1;
	return bw_service_failure(a, error, patience, why);
}

/* The answer that is not "wait". */
static int bw_service_await(int fd, struct bw_service_answer *a, int *descriptor, uint64_t patience,
			    const char **why)
{
	int error = bw_service_listen(fd, a, descriptor, bw_clock_now() + patience);

	if (!error && bw_service_waits(a, *descriptor)) {
		patience = BW_SERVICE_MAKE_NS;
		error = bw_service_listen(fd, a, descriptor, bw_clock_now() + patience);
	}
	return bw_service_judge(a, error, descriptor, patience, why);
}

/* Of numbers that make sense only. */
static bool bw_service_fits(const struct bw_service_answer *a)
{
	uint32_t shift = a->block_bytes ? (uint32_t)__builtin_ctz(a->block_bytes) : 0;

	return a->mtu >= BW_FRAME_MIN_MTU && a->slot_bytes >= bw_ring_slot(a->mtu) &&
	       !(a->slot_bytes % TPACKET_ALIGNMENT) && shift >= 12 && shift <= 20 &&
	       a->block_bytes == 1u << shift && a->slot_bytes <= a->block_bytes && a->blocks &&
	       a->blocks <= BW_SERVICE_RINGS / a->block_bytes &&
	       strnlen(a->interface, sizeof(a->interface)) < sizeof(a->interface);
}

/* A socket whose memory the kernel alone has behind it: nothing that its maker could cut off. */
static bool bw_service_packet(int fd)
{
	socklen_t n = sizeof(int);
	int domain = 0;

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) && domain == AF_PACKET;
}

/* What the answer tells of the socket; its ring is not mapped yet. */
static int bw_service_learn(struct bw_packet *p, const struct bw_env *env,
			    const struct bw_service_answer *a, const char **why)
{
	if (!bw_service_fits(a) || !bw_service_packet(p->fd))
		return bw_fail(why, -EPROTO, "beowired answers nothing that makes sense");
	memcpy(p->mac, a->mac, sizeof(p->mac));
	memcpy(p->name, a->interface, sizeof(p->name));
	p->mtu = a->mtu < BW_FRAME_MAX_MTU ? a->mtu : BW_FRAME_MAX_MTU;
	if (env->mtu && env->mtu < p->mtu)
		p->mtu = env->mtu;
	p->slot_bytes = a->slot_bytes;
	p->block_bytes = a->block_bytes;
	p->per_block = a->block_bytes / a->slot_bytes;
	p->slots = a->blocks * p->per_block;
	p->ring_bytes = (size_t)a->blocks * a->block_bytes;
	return 0;
}

_Static_assert(BW_SERVICE_KEY_BYTES == BW_KEY_BYTES, "the key of an answer");

/* The key that came with a socket for a new endpoint. */
static void bw_service_take_key(struct bw_packet *p, const struct bw_service_answer *a)
{
	p->keyed = a->flags & BW_SERVICE_KEYED;
	p->encrypts = a->flags & BW_SERVICE_ENCRYPTS;
	if (p->keyed)
		memcpy(p->key, a->key, sizeof(p->key));
}

static int bw_service_map(struct bw_packet *p, const char **why)
{
	int error = bw_packet_attach(p, p->ring_bytes);

	return error ? bw_fail(why, error, "the ring that beowired made cannot be mapped: %s",
			       strerror(-error))
		     : 0;
}

/* Call and ask: the connection, by which the answers come, or a negative errno. */
static int bw_service_call(const struct bw_packet *p, const struct bw_env *env, uint16_t engine,
			   int claim, const char **why)
{
	struct bw_service_request r = {
		.head = {BW_SERVICE_MAGIC, BW_SERVICE_VERSION, BW_SERVICE_OPEN},
		.engine = engine,
		.ethertype = env->ethertype,
		.cluster = env->cluster,
		.ring_bytes = env->ring_bytes,
	};
	int fd = bw_service_dial(env->service, why);

	if (fd < 0)
		return fd;
	memcpy(r.interface, p->name, sizeof(r.interface));
	/* A service that refuses at once may have hung up: its answer says why. */
	bw_service_ask(fd, &r, claim);
	return fd;
}

int bw_service_open(struct bw_packet *p, const struct bw_env *env, uint16_t engine, int claim,
		    const char **why)
{
	struct bw_service_answer a = {.head.magic = 0};
	int fd = bw_service_call(p, env, engine, claim, why), error;

	if (fd < 0)
		return fd;
	error = bw_service_await(fd, &a, &p->fd, bw_service_patience(env), why);
	if (!error)
		error = bw_service_learn(p, env, &a, why);
	if (!error)
		error = bw_service_map(p, why);
	if (!error)
		bw_service_take_key(p, &a);
	bw_wipe(a.key, sizeof(a.key));
	if (error) {
		close(fd);
		return error;
	}
	p->service = true;
	p->fanout.connection = fd;
	return 0;
}

/* ---- the service's end, and its return ---- */

/* How far an endpoint has come that asks for another socket (p->asks). Its connection is there
 * already, and try_at is when its patience ends. Nothing waits: a round has other things to do. */
enum bw_service_asks {
	BW_SERVICE_ASKS_NOT,
	BW_SERVICE_ASKED,
	BW_SERVICE_TOLD_TO_WAIT,
};

static void bw_service_hang_up(struct bw_ep *ep, struct bw_packet *p, uint64_t pause)
{
	struct bw_fanout *f = &p->fanout;

	bw_wait_unlisten(ep, f->connection);
	close(f->connection);
	f->connection = -1;
	f->try_at = ep->now + pause;
	p->asks = BW_SERVICE_ASKS_NOT;
}

uint64_t bw_service_pause(uint32_t refusals)
{
	return bw_min_u64(BW_SERVICE_PAUSE << bw_min_u64(refusals, 8), BW_SERVICE_PAUSES);
}

/* It gave nothing of use, and is asked again later and later. */
static void bw_service_refused(struct bw_ep *ep, struct bw_packet *p, const char *why)
{
	uint64_t pause = bw_service_pause(p->refusals);

	p->refusals += pause < BW_SERVICE_PAUSES;
	bw_log(BW_LOG_DEBUG, "no raw frames by the service on %s yet: %s; next try in %llu s",
	       p->name, why, (unsigned long long)(pause / BW_S));
	bw_service_hang_up(ep, p, pause);
}

/* May a socket take the place of p's? Its ring is not mapped yet. */
static int bw_service_suits(const struct bw_packet *p, const struct bw_packet *fresh,
			    const char **why)
{
	/* Its peers would know it by another name. */
	if (memcmp(fresh->mac, p->mac, sizeof(p->mac)) != 0 || fresh->mtu < p->mtu)
		return bw_fail(why, -EADDRNOTAVAIL,
			       "the interface has another address, or a smaller MTU, than before");
	return bw_packet_fits(p, fresh, why);
}

static int bw_service_exchange(struct bw_ep *ep, struct bw_packet *p, struct bw_packet *fresh,
			       const char **why)
{
	int old;

	bw_ep_drain(ep, p);
	old = bw_packet_replace(p, fresh, why);
	if (old < 0)
		return old;
	p->asks = BW_SERVICE_ASKS_NOT;
	p->refusals = 0;
	bw_wait_unlisten(ep, old);
	bw_wait_listen(ep, p->fd);
	bw_wait_rouse(ep);
	bw_fanout_discard(ep, old);
	bw_log(BW_LOG_INFO, "raw frames on %s again, by the service", p->name);
	return 0;
}

/* What has come of what was asked for? */
static void bw_service_look(struct bw_ep *ep, struct bw_packet *p)
{
	uint64_t patience = p->asks == BW_SERVICE_ASKED ? BW_SERVICE_AGAIN_NS : BW_SERVICE_MAKE_NS;
	struct bw_service_answer a = {.head.magic = 0};
	struct bw_packet fresh;
	const char *why = "";
	int error;

	bw_packet_bare(p, &fresh);
	error = bw_service_hear(p->fanout.connection, &a, &fresh.fd);
	if (error == -EAGAIN && ep->now < p->fanout.try_at)
		return;
	if (error == -ECONNRESET) { /* the call was in the queue of one that was ending */
		p->refusals = 0;
		bw_log(BW_LOG_DEBUG, "the service of raw frames on %s ended before it answered",
		       p->name);
		bw_packet_close(&fresh); /* it may have sent a descriptor and no byte */
		bw_service_hang_up(ep, p, BW_SERVICE_PAUSE);
		return;
	}
	if (!error && p->asks == BW_SERVICE_ASKED && bw_service_waits(&a, fresh.fd)) {
		p->asks = BW_SERVICE_TOLD_TO_WAIT;
		p->fanout.try_at = ep->now + BW_SERVICE_MAKE_NS;
		return;
	}
	error = bw_service_judge(&a, error == -EAGAIN ? -ETIMEDOUT : error, &fresh.fd, patience,
				 &why);
	if (!error)
		error = bw_service_learn(&fresh, &ep->env, &a, &why);
	bw_wipe(a.key, sizeof(a.key)); /* an endpoint keeps the one that it began with */
	if (!error)
		error = bw_service_suits(p, &fresh, &why);
	if (!error)
		error = bw_service_map(&fresh, &why);
	if (error)
		bw_packet_close(&fresh);
	else
		error = bw_service_exchange(ep, p, &fresh, &why);
	if (error)
		bw_service_refused(ep, p, why);
}

static void bw_service_renew(struct bw_ep *ep, struct bw_packet *p)
{
	struct bw_fanout *f = &p->fanout;
	const char *why = "";

	f->try_at = ep->now + BW_SERVICE_PAUSE;
	if (!bw_service_there(&ep->env)) {
		p->refusals = 0; /* another one will come */
		return;
	}
	f->connection = bw_service_call(p, &ep->env, ep->self.engine, p->claim, &why);
	if (f->connection < 0) {
		f->connection = -1;
		p->refusals = 0;
		bw_log(BW_LOG_DEBUG, "no raw frames by the service on %s yet: %s", p->name, why);
		return;
	}
	p->asks = BW_SERVICE_ASKED;
	f->try_at = ep->now + BW_SERVICE_AGAIN_NS;
	bw_wait_listen(ep, f->connection);
}

void bw_service_visit(struct bw_ep *ep, struct bw_packet *p)
{
	struct bw_fanout *f = &p->fanout;
	char byte;

	if (p->asks) {
		bw_service_look(ep, p);
		return;
	}
	/* The service says nothing more: whatever comes is the end. */
	if (f->connection >= 0 && (recv(f->connection, &byte, sizeof(byte), MSG_DONTWAIT) >= 0 ||
				   (errno != EAGAIN && errno != EINTR))) {
		bw_service_hang_up(ep, p, BW_SERVICE_SOON);
		bw_log(BW_LOG_INFO, "the service of raw frames on %s has ended", p->name);
	}
	if (f->connection < 0 && ep->now >= f->try_at)
		bw_service_renew(ep, p);
}
