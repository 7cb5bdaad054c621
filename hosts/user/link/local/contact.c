/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * First contact. The side that connects sends hello with the segment it made; it may write records
 * into it at once. The other side maps it and answers, or turns it away with a reason. Who the
 * other process is says the kernel (SO_PEERCRED), who it claims to be says hello.
 */
#include "discard.h"
#include "link/local/impl.h"
#include "who.h"

#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define HELLO_FDS 2

/* What a hello or an answer brought; descriptors are -1 or ours. */
struct letter {
	struct bw_local_hello hello;
	int fd[HELLO_FDS];
};

static void hello_fill(const struct bw_local *l, struct bw_local_hello *h)
{
	*h = (struct bw_local_hello){
		.magic = BW_LOCAL_MAGIC,
		.version = BW_LOCAL_VERSION,
		.node = l->self.node,
		.cluster = l->self.cluster,
		.incarnation = l->self.incarnation,
		.engine = l->self.engine,
		.probe_addr = (uintptr_t)&l->probe_value,
		.probe_value = l->probe_value,
	};
	memcpy(h->name, l->self.name, sizeof(h->name));
}

static int letter_send(int sock, const struct bw_local_hello *h, const int *fd, size_t fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(HELLO_FDS * sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = (void *)h, .iov_len = sizeof(*h)};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	if (fds > 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(fds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fds * sizeof(int));
		memcpy(CMSG_DATA(c), fd, fds * sizeof(int));
	}
	return sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void letter_close(struct letter *t)
{
	for (int i = 0; i < HELLO_FDS; i++) {
		if (t->fd[i] >= 0)
			close(t->fd[i]);
		t->fd[i] = -1;
	}
}

static void fds_take(struct letter *t, struct msghdr *m)
{
	int taken = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (taken < HELLO_FDS)
				t->fd[taken++] = fd;
			else
				close(fd);
		}
	}
}

/* 0, -EAGAIN when nothing is there, -ECONNREFUSED at the end, -EPROTO for nonsense (the descriptors
 * of which are closed), -EPROTONOSUPPORT for another version. */
static int letter_read(int sock, struct letter *t)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(HELLO_FDS * sizeof(int))];
	} control;
	struct iovec part = {.iov_base = &t->hello, .iov_len = sizeof(t->hello)};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int error = 0;

	/* Who closes with our letter unread resets us. What he has said before comes after that. */
	if (n < 0 && errno == ECONNRESET)
		n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	t->fd[0] = t->fd[1] = -1;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -ECONNREFUSED;
	if (n == 0)
		return -ECONNREFUSED;
	fds_take(t, &m);
	if (n != sizeof(t->hello) || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
	    t->hello.magic != BW_LOCAL_MAGIC)
		error = -EPROTO;
	else if (t->hello.version != BW_LOCAL_VERSION)
		error = -EPROTONOSUPPORT;
	if (error)
		letter_close(t);
	return error;
}

/* Tell somebody that we do not want to hear from it; the caller closes the socket. */
void bw_local_turn_away(struct bw_local *l, int fd, int status)
{
	struct bw_local_hello h;

	hello_fill(l, &h);
	h.answer = 1;
	h.status = status;
	h.probe_addr = 0;
	h.probe_value = 0;
	letter_send(fd, &h, NULL, 0);
	l->counters.turned_away++;
}

static void id_fill(struct bw_local_id *id, const struct bw_local_hello *h, uint32_t pid)
{
	id->node = h->node;
	id->cluster = h->cluster;
	id->incarnation = h->incarnation;
	id->engine = h->engine;
	id->pid = pid;
	memcpy(id->name, h->name, sizeof(id->name));
	id->name[sizeof(id->name) - 1] = 0;
}

/* What the other side told about itself that both hello and answer have. */
static void learn(struct bw_local_peer *p, const struct bw_local_hello *h, uint32_t pid)
{
	id_fill(&p->id, h, pid);
	p->probe_addr = h->probe_addr;
	p->probe_value = h->probe_value;
}

/* Is this hello meant for us, by somebody we can talk to? 0 or the negative errno to answer. */
static int hello_check(const struct bw_local *l, const struct bw_local_hello *h)
{
	if (h->answer || h->incarnation == 0 || h->engine == l->self.engine)
		return -EPROTO;
	if (h->cluster != l->self.cluster)
		return -EPROTONOSUPPORT;
	if (h->node != l->self.node || h->dst_engine != l->self.engine ||
	    h->dst_incarnation != l->self.incarnation)
		return -ECONNREFUSED;
	return 0;
}

/* Only one process can hold an engine number: an older incarnation of it is dead. */
static void bury_older(struct bw_local *l, const struct bw_local_hello *h)
{
	for (uint32_t i = 0; i < l->peers; i++) {
		struct bw_local_peer *p = l->peer[i];

		if (p->id.engine == h->engine && p->id.incarnation != h->incarnation)
			bw_local_peer_lost(p, -ECONNRESET);
	}
}

/* Attach a new connection and its segment to p, which may be new or one that we connect to right
 * now. */
static int attach(struct bw_local_peer *p, struct bw_local_conn *c, struct letter *t,
		  const struct ucred *who)
{
	const struct bw_local_status *status = NULL;
	int error = bw_local_status_map(&status, t->fd[1]);

	if (error < 0)
		return error;
	error = bw_local_segment_map(p->link, &p->segment[1], t->hello.ring_bytes, t->hello.key,
				     t->fd[0]);
	if (error < 0) {
		bw_local_status_unmap(status);
		return error;
	}
	if (p->status)
		bw_local_status_unmap(status);
	else
		p->status = status;
	learn(p, &t->hello, (uint32_t)who->pid);
	c->peer = p;
	c->answered = true;
	p->conn[1] = c;
	bw_local_peer_rx(p, &p->segment[1], 0);
	if (!p->tx.base)
		bw_local_peer_tx(p, &p->segment[1], 1);
	return 0;
}

/* A hello from somebody new: make a peer for it if the host wants it. */
static int welcome(struct bw_local *l, struct bw_local_conn *c, struct letter *t,
		   const struct ucred *who)
{
	struct bw_local_id id;
	struct bw_local_peer *p;
	int error;

	id_fill(&id, &t->hello, (uint32_t)who->pid);
	p = bw_local_peer_make(l, &id, NULL);
	if (!p)
		return -ENOMEM;
	error = attach(p, c, t, who);
	if (error == 0)
		error = l->handlers->peer_new(l->arg, p, &p->id, &p->ctx);
	if (error < 0) {
		c->peer = NULL;
		p->conn[1] = NULL;
		bw_local_peer_free(p);
	}
	return error;
}

static int hello_take(struct bw_local *l, struct bw_local_conn *c, struct letter *t)
{
	struct bw_local_peer *p;
	struct ucred who;
	int error = bw_who_may(c->fd, &who);

	if (error == 0)
		error = hello_check(l, &t->hello);
	if (error < 0)
		return error;
	bury_older(l, &t->hello);
	p = bw_local_peer_of(l, t->hello.engine, t->hello.incarnation);
	if (!p)
		return welcome(l, c, t, &who);
	/* Both sides connected at the same time: this is its half of the pair. */
	if (p->conn[1] || p->lost || p->down)
		return -ECONNREFUSED;
	return attach(p, c, t, &who);
}

/* What a peer's end is told with: some mean something else there, to try again, and that the peer's
 * number is void. */
static int end_status(int error)
{
	return error == -EAGAIN || error == -ENOBUFS ? -ECONNREFUSED : error;
}

/* An accepted connection became readable: 0 if it belongs to a peer now, -EAGAIN if it said nothing
 * yet, else why it is to be turned away. */
int bw_local_hello_read(struct bw_local *l, struct bw_local_conn *c)
{
	struct letter t;
	int error = letter_read(c->fd, &t);

	if (error == 0)
		error = end_status(hello_take(l, c, &t));
	letter_close(&t);
	return error;
}

/* Tell the peer of c that its hello was welcome. */
void bw_local_answer(struct bw_local *l, struct bw_local_conn *c)
{
	struct bw_local_hello h;

	hello_fill(l, &h);
	h.answer = 1;
	if (letter_send(c->fd, &h, &l->status_fd, 1) < 0)
		bw_local_peer_lost(c->peer, -ECONNREFUSED);
}

/* The answer to our hello. */
static int answer_take(struct bw_local_peer *p, struct letter *t, uint32_t pid)
{
	const struct bw_local_hello *h = &t->hello;
	int error = 0;

	if (!h->answer)
		return -EPROTO;
	if (h->status != 0)
		return h->status < 0 && h->status > -4096 ? h->status : -EPROTO;
	if (h->engine != p->id.engine || h->incarnation != p->id.incarnation)
		return -EPROTO;
	if (!p->status)
		error = bw_local_status_map(&p->status, t->fd[0]);
	if (error == 0)
		learn(p, h, pid);
	return error;
}

void bw_local_answer_read(struct bw_local *l, struct bw_local_conn *c)
{
	struct bw_local_peer *p = c->peer;
	struct ucred who = {0};
	struct letter t;
	int error = letter_read(c->fd, &t);

	if (error == -EAGAIN)
		return;
	if (error == 0)
		error = bw_who_may(c->fd, &who);
	if (error == 0)
		error = end_status(answer_take(p, &t, (uint32_t)who.pid));
	letter_close(&t);
	if (error == -ECONNREFUSED)
		bw_local_peer_lost(p, error);
	else if (error < 0)
		bw_local_peer_fail(p, error);
	c->answered = true;
}

static int dial_name(const struct sockaddr_un *sun, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error;

	if (fd < 0)
		return -errno;
	if (!bw_discard_reserve()) {
		close(fd);
		return -EAGAIN;
	}
	bw_discard_rights(fd, false);
	error = connect(fd, (const struct sockaddr *)sun, len) < 0 ? -errno : bw_who_may(fd, NULL);
	if (error == -EACCES) {
		bw_discard(fd);
		return error;
	}
	bw_discard_return();
	if (error < 0) {
		close(fd);
		return error;
	}
	/* The answer brings one. */
	bw_discard_rights(fd, true);
	return fd;
}

/* Who is not under its number's name may have another, if others have that one. */
static int dial(const struct bw_local_id *id)
{
	struct sockaddr_un sun;
	socklen_t len = bw_local_name(id->engine, &sun);
	int fd = dial_name(&sun, len), other;

	if (fd != -ECONNREFUSED && fd != -EACCES)
		return fd;
	len = bw_local_name_as(id->engine, id->incarnation, &sun);
	other = dial_name(&sun, len);
	return other >= 0 ? other : fd;
}

/* Make our segment and send hello over fd. */
static int hello_send(struct bw_local_peer *p, int fd)
{
	struct bw_local *l = p->link;
	struct bw_local_hello h;
	int fds[HELLO_FDS] = {-1, l->status_fd};
	int error;

	hello_fill(l, &h);
	h.dst_engine = p->id.engine;
	h.dst_incarnation = p->id.incarnation;
	h.ring_bytes = l->ring_bytes;
	if (getrandom(h.key, sizeof(h.key), 0) != sizeof(h.key))
		return -EIO;
	error = bw_local_segment_make(l, &p->segment[0], h.key, &fds[0]);
	if (error < 0)
		return error;
	error = letter_send(fd, &h, fds, HELLO_FDS);
	close(fds[0]);
	return error == -EPIPE || error == -ECONNRESET ? -ECONNREFUSED : error;
}

/* A peer that is ourselves: one ring, both ends of which are ours. */
static int loop(struct bw_local_peer *p)
{
	struct bw_local *l = p->link;
	uint64_t key[2];
	int fd, error;

	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		return -EIO;
	error = bw_local_segment_make(l, &p->segment[0], key, &fd);
	if (error < 0)
		return error;
	close(fd);
	p->self = true;
	p->id = l->self;
	bw_local_peer_tx(p, &p->segment[0], 0);
	bw_local_peer_rx(p, &p->segment[0], 0);
	return 0;
}

static int reach(struct bw_local_peer *p)
{
	int fd = dial(&p->id);
	int error;

	if (fd < 0)
		return fd;
	error = hello_send(p, fd);
	if (error == 0) {
		p->conn[0] = bw_local_conn_make(p->link, fd, p);
		error = p->conn[0] ? 0 : -ENOMEM;
	}
	if (error < 0) {
		close(fd);
		return error;
	}
	bw_local_peer_tx(p, &p->segment[0], 0);
	bw_local_peer_rx(p, &p->segment[0], 1);
	return 0;
}

int bw_local_connect(struct bw_local *l, uint16_t engine, uint32_t incarnation, void *ctx,
		     struct bw_local_peer **p)
{
	const struct bw_local_id id = {.engine = engine, .incarnation = incarnation};
	bool self = engine == l->self.engine;
	int error;

	*p = bw_local_peer_of(l, engine, incarnation);
	if (*p)
		return -EEXIST;
	if (self && incarnation != l->self.incarnation)
		return -ECONNREFUSED;
	*p = bw_local_peer_make(l, &id, ctx);
	if (!*p)
		return -ENOMEM;
	error = self ? loop(*p) : reach(*p);
	if (error < 0) {
		bw_local_peer_free(*p);
		*p = NULL;
	}
	return error;
}
