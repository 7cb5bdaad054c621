/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * beowire-protocol: any protocol of the engine between two processes over UDP on the loopback
 * device. It sends messages to and fro, compares every byte, and tells what arrived and how fast.
 * Also the smallest host in user space: struct host, the functions named host_* and plain.c are all
 * of it.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "plain.h"
#include "protocol.h"

#define MTU	1400	       /* bytes of the longest frame */
#define WAIT_NS (2000 * BW_MS) /* then a message or its echo counts as lost */
#define END_NS	(5000 * BW_MS) /* in which what is under way at the end must have arrived */

struct host {
	const struct bw_protocol *protocol;
	void *engine;
	int fd;
	uint16_t port; /* network byte order */
	uint32_t peer; /* handle of the other side, 0: none yet */
	bool echo;     /* send back what comes */
	uint64_t frame[65536 / 8];
	uint64_t received, other; /* messages that came: as expected; late, again or changed */
	uint64_t sends;		  /* not yet completed */
	int down;		  /* the other side is lost: why */
	const struct plain_buffer *expected;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- frames ---- */

static struct bw_link_addr host_address(uint16_t port)
{
	struct bw_link_addr a = {.len = sizeof(port)};

	memcpy(a.bytes, &port, sizeof(port));
	return a;
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = port};
}

/* False when the socket's queue is full. */
static bool host_send(struct host *h, const struct bw_tx_frame *f)
{
	struct iovec iov[2 * BW_TX_SEGMENTS + 1];
	struct sockaddr_in to;
	struct msghdr m = {.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = iov};
	static uint8_t zeroes[MTU];
	uint32_t at = 0, i;
	uint16_t port;

	memcpy(&port, f->to.bytes, sizeof(port));
	to = loopback(port);
	for (i = 0; i < f->segments; i++) {
		const struct bw_tx_segment *s = &f->segment[i];

		iov[m.msg_iovlen++] = (struct iovec){(uint8_t *)f->head + at, s->head_end - at};
		iov[m.msg_iovlen++] = (struct iovec){
			s->buf ? plain_buffer_of(s->buf)->bytes + s->off : zeroes, s->len};
		at = s->head_end;
	}
	iov[m.msg_iovlen++] = (struct iovec){(uint8_t *)f->head + at, f->head_len - at};
	return sendmsg(h->fd, &m, 0) >= 0 || (errno != EAGAIN && errno != ENOBUFS);
}

static struct plain_buffer *host_buffer(uint64_t len)
{
	struct plain_buffer *b = plain_buffer_new(len);

	if (!b)
		die("memory for a message");
	return b;
}

static void host_submit_send(struct host *h, struct plain_buffer *b)
{
	struct bw_op op = {.type = BW_OP_SEND, .peer = h->peer, .cookie = (uintptr_t)b};
	int error;

	op.send.buf = b->len ? (uintptr_t)b : 0;
	op.send.len = (uint32_t)b->len;
	op.send.urgent = true;
	error = h->protocol->submit(h->engine, &op, bw_clock_now());
	h->sends += !error;
	if (error) {
		free(b);
		h->other++;
	}
}

static void host_message(struct host *h, const struct bw_event *e)
{
	const uint8_t *bytes =
		e->buf ? plain_buffer_of(e->buf)->bytes : (const uint8_t *)h->frame + e->frame_off;

	h->peer = e->peer;
	if (h->echo) {
		struct plain_buffer *b = host_buffer(e->len);

		memcpy(b->bytes, bytes, e->len);
		host_submit_send(h, b);
	} else if (h->expected && h->expected->len == e->len &&
		   !memcmp(h->expected->bytes, bytes, e->len)) {
		h->received++;
		h->expected = NULL;
	} else {
		h->other++;
	}
	if (e->buf)
		free(plain_buffer_of(e->buf));
}

static void host_events(struct host *h)
{
	struct bw_event e;

	while (memset(&e, 0, sizeof(e)), h->protocol->next_event(h->engine, &e)) {
		if (e.type == BW_EV_MESSAGE) {
			host_message(h, &e);
		} else if (e.type == BW_EV_SENT) {
			free(plain_buffer_of(e.cookie));
			h->sends--;
		} else if (e.type == BW_EV_PEER_DOWN) {
			h->down = e.status;
		}
	}
}

/* All that the engine wants to do now. */
static void host_run(struct host *h)
{
	struct bw_tx_frame f;
	void *more;

	while (h->protocol->next_frame(h->engine, &f, bw_clock_now())) {
		if (host_send(h, &f))
			continue;
		h->protocol->unsent(h->engine, bw_clock_now());
		break;
	}
	host_events(h);
	if (!h->protocol->hungry(h->engine))
		return;
	more = aligned_alloc(64, BW_GROW_BYTES); /* kept until the end of the process */
	h->protocol->grow(h->engine, more);
}

static void host_receive(struct host *h)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	struct bw_rx_frame f = {.head = h->frame};
	ssize_t n;

	while ((n = recvfrom(h->fd, h->frame, sizeof(h->frame), MSG_DONTWAIT,
			     (struct sockaddr *)&from, &len)) >= 0) {
		f.len = f.head_len = (uint32_t)n;
		f.from = host_address(from.sin_port);
		h->protocol->rx(h->engine, &f, bw_clock_now());
		host_events(h); /* while the frame is here */
	}
}

/* Sleep until a frame comes, the engine's deadline, or `until`. */
static void host_wait(struct host *h, uint64_t until)
{
	struct pollfd p = {.fd = h->fd, .events = POLLIN};
	uint64_t now = bw_clock_now(), at = h->protocol->next_deadline(h->engine);
	struct timespec t;

	at = at < until ? at : until;
	ppoll(&p, 1, bw_clock_span(at == BW_NEVER || at > now ? at - now : 0, &t), NULL);
	host_receive(h);
	host_run(h);
}

static void host_open(struct host *h, const struct bw_protocol *protocol, uint16_t engine)
{
	struct bw_config cfg = {.node = engine,
				.cluster = 1,
				.engine = engine,
				.rx_budget = 1 << 20,
				.features = BW_FEATURE_CHECKSUM,
				.dead_ns = 5 * BW_S,
				.link_mtu = {MTU, MTU, MTU, MTU, MTU, MTU, MTU, MTU},
				.name = "here"};
	struct sockaddr_in at = loopback(0);
	socklen_t len = sizeof(at);

	if (getrandom(&cfg.incarnation, sizeof(cfg.incarnation), 0) < 0)
		die("getrandom");
	cfg.incarnation |= 1;
	h->protocol = protocol;
	h->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (h->fd < 0 || bind(h->fd, (struct sockaddr *)&at, len) ||
	    getsockname(h->fd, (struct sockaddr *)&at, &len))
		die("UDP socket on the loopback device");
	h->port = at.sin_port;
	h->engine = aligned_alloc(64, (protocol->size(&cfg) + 63) & ~(size_t)63);
	if (!h->engine || protocol->open(h->engine, &cfg, &plain_host_ops, h, bw_clock_now()))
		die("starting the protocol");
}

static void host_connect(struct host *h, uint16_t engine, uint16_t port)
{
	struct bw_op op = {.type = BW_OP_CONNECT};

	op.connect.node = op.connect.engine = engine;
	op.connect.paths = 1;
	op.connect.path[0] = host_address(port);
	if (h->protocol->submit(h->engine, &op, bw_clock_now()))
		die("connecting");
	h->peer = op.peer;
}

/* ---- the two sides ---- */

static void echo_side(struct host *h)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	h->echo = true;
	for (;;)
		host_wait(h, BW_NEVER);
}

/* Message number i: its length and bytes follow from i. */
static struct plain_buffer *message(uint64_t i, uint32_t longest)
{
	struct plain_buffer *b = host_buffer(8 + i * 131 % (longest - 7));
	uint64_t k;

	for (k = 0; k < b->len; k++)
		b->bytes[k] = (uint8_t)(i * 7 + k * 31);
	return b;
}

static uint64_t asking_side(struct host *h, uint64_t count, uint32_t longest)
{
	uint64_t i, begin, sum_ns = 0;

	for (i = 0; i < count && !h->down; i++) {
		struct plain_buffer *expected = message(i, longest);

		begin = bw_clock_now();
		h->expected = expected;
		host_submit_send(h, message(i, longest));
		host_run(h);
		while (h->expected && !h->down && bw_clock_now() < begin + WAIT_NS)
			host_wait(h, begin + WAIT_NS);
		sum_ns += h->expected ? 0 : bw_clock_now() - begin;
		h->expected = NULL;
		free(expected);
	}
	begin = bw_clock_now();
	while (h->sends && bw_clock_now() < begin + END_NS)
		host_wait(h, begin + END_NS);
	return sum_ns;
}

static int usage(void)
{
	const struct bw_protocol *const *p;

	fprintf(stderr, "usage: beowire-protocol NAME [COUNT]\n"
			"Sends COUNT messages (default 1000) to a second process and back by this "
			"protocol. NAME is one of:");
	for (p = bw_protocols; *p; p++)
		fprintf(stderr, " %s", (*p)->name);
	fprintf(stderr, "\n");
	return 2;
}

int main(int argc, char **argv)
{
	static struct host asking, echoing;
	const struct bw_protocol *protocol = argc > 1 ? bw_protocol_find(argv[1]) : NULL;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000, sum_ns;
	pid_t child;

	if (!protocol || argc > 3 || !count)
		return usage();
	host_open(&asking, protocol, 1);
	host_open(&echoing, protocol, 2);
	child = fork();
	if (child < 0)
		die("fork");
	if (!child)
		echo_side(&echoing);
	host_connect(&asking, 2, echoing.port);
	sum_ns = asking_side(&asking, count, MTU - 100);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	printf("%s: %llu of %llu messages came back, %llu came late or "
	       "changed, %llu sends did not end",
	       protocol->name, (unsigned long long)asking.received, (unsigned long long)count,
	       (unsigned long long)asking.other, (unsigned long long)asking.sends);
	if (asking.received)
		printf("; %.1f us there and back", (double)sum_ns / 1e3 / (double)asking.received);
	printf("\n");
	if (asking.down)
		printf("the other side was lost: %s\n", strerror(-asking.down));
	return asking.received == count && !asking.other && !asking.sends ? 0 : 1;
}
