/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How another host is reached: the one side prints its address and sends messages back, the other
 * finds it, sends for a while, and looks which of the links passed and which one is used.
 */
#include "info.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ep.h"

#define ECHO	    1		   /* code of a message that is to be sent back */
#define ANSWER	    2		   /* code of the answer */
#define ECHOES	    201		   /* odd: the median is one of them */
#define SETTLE_NS   600000000ull   /* for probing which links and frame sizes pass */
#define STUCK_NS    10000000000ull /* without an answer: unreachable */
#define WAIT_NS	    100000000ull
#define FAREWELL_NS 500000000ull
#define DIAL_MS	    5000

struct caller {
	struct bw_ep *ep;
	uint64_t answers;
	int down;
};

static void on_message(void *arg, const struct bw_message *m)
{
	struct caller *c = arg;

	if (m->code == ANSWER)
		__atomic_fetch_add(&c->answers, 1, __ATOMIC_RELAXED);
	else if (!m->envelope)
		/* Without room it is not sent; then the other side asks again. */
		bw_send(c->ep, m->peer, ANSWER, m->tag, 0, m->data, m->len, BW_SEND_EAGER, c);
	else
		bw_pull(c->ep, m->peer, &m->rndv, NULL, 0, NULL);
}

static void on_sent(void *arg, void *op, int status)
{
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
	((struct caller *)arg)->down = status;
}

static const struct bw_handlers handlers = {
	.message = on_message,
	.sent = on_sent,
	.pulled = on_pulled,
	.peer_down = on_down,
};

static int endpoint_open(struct caller *c)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .arg = c};
	const char *why;

	return bw_ep_open(&c->ep, &attr, &why) < 0 ? info_fail("%s", why) : 0;
}

/* ---- addresses over TCP ---- */

static void address_print(const struct bw_addr *addr, char text[INFO_HEX + 1])
{
	for (size_t i = 0; i < sizeof(addr->bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", addr->bytes[i]);
}

static bool address_scan(const char *text, struct bw_addr *addr)
{
	for (size_t i = 0; i < sizeof(addr->bytes); i++) {
		unsigned int byte;

		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return false;
		addr->bytes[i] = (uint8_t)byte;
	}
	return true;
}

static bool is_address(const char *text)
{
	return strlen(text) == INFO_HEX && strspn(text, "0123456789abcdefABCDEF") == INFO_HEX;
}

static int tcp_listen(const char *port)
{
	struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list;
	const int on = 1;
	int error = getaddrinfo(NULL, port, &hints, &list);
	int fd;

	if (error)
		return info_fail("port %s: %s", port, gai_strerror(error));
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, list->ai_addr, list->ai_addrlen) < 0 || listen(fd, 8) < 0) {
		info_fail("cannot listen on port %s: %s (choose another with --port)", port,
			  strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	return fd;
}

static int tcp_dial(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct timeval patience = {.tv_sec = DIAL_MS / 1000};
	struct addrinfo *list;
	int error = getaddrinfo(host, port, &hints, &list);
	int fd;

	if (error)
		return info_fail("%s: %s", host, gai_strerror(error));
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, list->ai_addr, list->ai_addrlen) < 0) {
		info_fail(
			"cannot connect to %s port %s: %s; fix: run `beowire-info --listen` there",
			host, port, strerror(errno == EINPROGRESS ? ETIMEDOUT : errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	return fd;
}

/* Ask HOST[:PORT] for its address. */
static int address_ask(const char *to, struct bw_addr *addr)
{
	char host[256], line[sizeof(INFO_GREETING) + INFO_HEX + 1] = "";
	const char *port = INFO_PORT, *colon = strrchr(to, ':');
	size_t n = strlen(to), got = 0;
	int fd;

	/* Of several colons none separates a port: an IPv6 address. */
	if (colon && strchr(to, ':') == colon) {
		port = colon + 1;
		n = (size_t)(colon - to);
	}
	if (n >= sizeof(host))
		return info_fail("%s: no such host", to);
	memcpy(host, to, n);
	host[n] = 0;
	fd = tcp_dial(host, port);
	if (fd < 0)
		return -1;
	while (got < sizeof(line) - 1) {
		ssize_t k = recv(fd, line + got, sizeof(line) - 1 - got, 0);

		if (k <= 0)
			break;
		got += (size_t)k;
	}
	close(fd);
	if (strncmp(line, INFO_GREETING, strlen(INFO_GREETING)) != 0 ||
	    !address_scan(line + strlen(INFO_GREETING), addr))
		return info_fail("what listens on %s port %s is not beowire-info", host, port);
	return 0;
}

/* ---- being a peer ---- */

static void address_tell(int listener, const char *text)
{
	char line[sizeof(INFO_GREETING) + INFO_HEX + 1];
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	int n = snprintf(line, sizeof(line), INFO_GREETING "%s\n", text);

	if (fd < 0)
		return;
	/* It fits into the socket's buffer; who does not read it is not interested. */
	if (send(fd, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < n)
		fprintf(stderr, "beowire-info: somebody called and went away\n");
	close(fd);
}

/* Sleep until somebody calls, a message may have come, or a signal asks for the end: false then. */
static bool listen_turn(struct caller *c, int listener, int signals, const char *text)
{
	struct pollfd fd[] = {{.fd = listener, .events = POLLIN},
			      {.fd = signals, .events = POLLIN},
			      {.fd = bw_ep_fd(c->ep), .events = POLLIN}};
	uint64_t timeout;
	struct timespec span;

	if (bw_ep_arm(c->ep, &timeout) < 0)
		timeout = 0; /* there is work already, but who calls is not to wait for its end */
	if (ppoll(fd, 3, bw_clock_span(timeout, &span), NULL) > 0) {
		if (fd[0].revents & POLLIN)
			address_tell(listener, text);
		if (fd[1].revents & POLLIN)
			return false;
	}
	bw_progress(c->ep);
	return true;
}

/*
 * A descriptor that is readable once SIGINT or SIGTERM has come. A handler that sets a flag would
 * miss the one that comes between looking at the flag and going to sleep.
 */
static int signals_open(void)
{
	sigset_t mask;
	int fd;

	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	fd = signalfd(-1, &mask, SFD_CLOEXEC);
	return fd < 0 ? info_fail("cannot listen: %s", strerror(errno)) : fd;
}

static void listen_until_signal(struct caller *c, int listener, int signals, const char *port)
{
	struct bw_addr addr;
	char text[INFO_HEX + 1];

	bw_ep_addr(c->ep, &addr);
	address_print(&addr, text);
	printf("%s\n", text);
	fflush(stdout);
	fprintf(stderr,
		"beowire-info: listening, give `beowire-info --peer` this host's name%s%s or the "
		"line above\n",
		strcmp(port, INFO_PORT) ? ":" : "", strcmp(port, INFO_PORT) ? port : "");
	while (listen_turn(c, listener, signals, text))
		;
}

int info_listen(const char *port)
{
	struct caller c = {0};
	int listener = tcp_listen(port), signals, rc = -1;

	if (listener < 0)
		return -1;
	signals = signals_open();
	if (signals >= 0) {
		if (endpoint_open(&c) == 0) {
			listen_until_signal(&c, listener, signals, port);
			bw_ep_close(c.ep, FAREWELL_NS);
			rc = 0;
		}
		close(signals);
	}
	close(listener);
	return rc;
}

/* ---- looking at a peer ---- */

/* One message there and back; its time in *ns. The lock is held, so that an answer is not handled
 * between the look at `answers` and the sleep. */
static int echo_locked(struct caller *c, bw_peer_no peer, uint64_t *ns)
{
	uint64_t begin = bw_clock_now(), word = begin;
	uint64_t want = __atomic_load_n(&c->answers, __ATOMIC_RELAXED) + 1;
	int sent = -EAGAIN;

	while (__atomic_load_n(&c->answers, __ATOMIC_RELAXED) < want) {
		if (sent == -EAGAIN)
			sent = bw_send(c->ep, peer, ECHO, 0, 0, &word, sizeof(word), BW_SEND_EAGER,
				       c);
		if (sent < 0 && sent != -EAGAIN)
			return info_fail("cannot send to that peer: %s", strerror(-sent));
		if (c->down)
			return info_fail("that peer is down: %s", strerror(-c->down));
		if (bw_clock_now() - begin > STUCK_NS)
			return info_fail(
				"no answer: neither raw frames nor UDP reach that peer (is its "
				"firewall open for the UDP ports of beowire(7)?)");
		bw_wait(c->ep, WAIT_NS);
	}
	*ns = bw_clock_now() - begin;
	return 0;
}

static int echo(struct caller *c, bw_peer_no peer, uint64_t *ns)
{
	int error;

	bw_ep_lock(c->ep);
	error = echo_locked(c, peer, ns);
	bw_ep_unlock(c->ep);
	return error;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Messages for as long as probing takes, then those that are timed. */
static int echoes(struct caller *c, bw_peer_no peer, uint64_t *median_ns)
{
	uint64_t ns[ECHOES], begin = bw_clock_now();

	do {
		if (echo(c, peer, &ns[0]) < 0)
			return -1;
	} while (bw_clock_now() - begin < SETTLE_NS);
	for (int i = 0; i < ECHOES; i++)
		if (echo(c, peer, &ns[i]) < 0)
			return -1;
	qsort(ns, ECHOES, sizeof(ns[0]), by_value);
	*median_ns = ns[ECHOES / 2];
	return 0;
}

static const char *local_why(const struct bw_ep *ep, const struct bw_remote *p)
{
	if (p->local)
		return "it is on this node: shared memory is the shortest way";
	if (p->addr.node != ep->self.node)
		return "it is on another node";
	if (!ep->local)
		return "it is on this node, but this side's BEOWIRE_LINKS forbids it";
	return p->addr.links & BW_LINK_LOCAL
		       ? "it is on this node, but turned shared memory away"
		       : "it is on this node, but its BEOWIRE_LINKS forbids it";
}

static const char *kernel_why(const struct bw_ep *ep, const struct bw_remote *p)
{
	if (bw_remote_by_kernel(p))
		return "by this side's port of the kernel module";
	if (p->local)
		return "not needed on one node";
	return ep->kernel ? "no frame of the kernel module reaches it"
			  : "this side cannot use it: beowire-info says why";
}

/* Of a link through the engine. */
static const char *engine_why(const struct bw_ep *ep, const struct bw_remote *p,
			      const struct info_path *x, enum bw_env_link link)
{
	bool here = link == BW_LINK_PACKET ? ep->has_packet : ep->has_udp;

	if (p->local)
		return "not needed on one node";
	if (ep->kernel && link == BW_LINK_PACKET)
		return "the kernel link stands in for it";
	if (bw_remote_by_kernel(p))
		return "not needed where the kernel link passes";
	if (!here)
		return "this side cannot use it: beowire-info says why";
	if (!(p->addr.links & link))
		return "that side cannot use it: beowire-info says why there";
	if (link == BW_LINK_PACKET && p->addr.node == ep->self.node)
		return "frames to the own node do not come back";
	if (link == BW_LINK_PACKET && p->addr.ethertype != ep->self.ethertype)
		return "the two sides use different EtherTypes: set the same BEOWIRE_ETHERTYPE";
	if (!x->passes)
		return link == BW_LINK_PACKET
			       ? "its frames do not get through: a switch, cloud or router drops "
				 "them"
			       : "its datagrams do not get through: a firewall drops them";
	if (x->used)
		return link == BW_LINK_PACKET ? "its frames pass"
					      : "raw frames cannot be used, datagrams pass";
	return "passes as well, raw frames are shorter";
}

static void paths_find(struct bw_ep *ep, const struct bw_remote *p, struct info_peer *peer)
{
	static const struct {
		const char *name;
		enum bw_env_link link;
		int number; /* towards the engine */
	} links[INFO_LINKS] = {{"local", BW_LINK_LOCAL, -1},
			       {"kernel", BW_LINK_KERNEL, -1},
			       {"packet", BW_LINK_PACKET, BW_LINK_NO_PACKET},
			       {"udp", BW_LINK_UDP, BW_LINK_NO_UDP}};
	const unsigned int packet = (1u << BW_LINK_NO_UDP) - 1;
	uint64_t srtt;
	uint32_t mtu = 0;
	uint8_t number = UINT8_MAX;
	unsigned int bits;

	if (p->handle)
		bw_reliable_path(ep->engine, p->handle, &srtt, &mtu, &number);
	peer->frame_bytes = mtu;
	for (int i = 0; i < INFO_LINKS; i++) {
		struct info_path *x = &peer->path[i];

		x->name = links[i].name;
		if (links[i].link == BW_LINK_KERNEL) {
			x->offered = x->passes = x->used = bw_remote_by_kernel(p);
			x->frame_bytes = x->used ? ep->self.packet_mtu : 0;
			x->why = kernel_why(ep, p);
			continue;
		}
		if (links[i].number < 0) {
			x->offered = x->passes = x->used = p->local != NULL;
			x->why = local_why(ep, p);
			continue;
		}
		bits = links[i].link == BW_LINK_PACKET ? packet : 1u << links[i].number;
		x->offered = p->offered & bits;
		x->used = !p->local && number < BW_LINK_NUMBERS && 1u << number & bits;
		x->passes = x->used || (p->passed & bits);
		x->frame_bytes = x->used ? mtu : p->mtu[links[i].number];
		x->why = engine_why(ep, p, x, links[i].link);
	}
}

static const char *way_state(const struct bw_path_view *v)
{
	if (!v->up)
		return "down";
	if (v->silent)
		return "silent";
	return v->best || v->together ? "used" : "up";
}

static void ways_find(struct bw_ep *ep, const struct bw_remote *p, struct info_peer *peer)
{
	struct bw_path_view v;

	while (p->handle && !p->local && peer->ways < BW_PATHS_MAX &&
	       !bw_reliable_path_view(ep->engine, p->handle, (uint8_t)peer->ways, &v)) {
		struct info_way *w = &peer->way[peer->ways++];
		const uint8_t *b = v.to.bytes;

		w->state = way_state(&v);
		w->round_trip_ns = v.srtt_ns;
		w->rate_bps = v.rate_bps;
		w->frame_bytes = v.mtu;
		if (v.to.link < ep->packets) {
			snprintf(w->from, sizeof(w->from), "%s", ep->packet[v.to.link].name);
			snprintf(w->to, sizeof(w->to), "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1],
				 b[2], b[3], b[4], b[5]);
		} else {
			snprintf(w->from, sizeof(w->from), "udp");
			snprintf(w->to, sizeof(w->to), "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
		}
	}
}

static void peer_describe(struct bw_ep *ep, bw_peer_no number, struct info_peer *peer)
{
	const struct bw_remote *p;

	snprintf(peer->text, sizeof(peer->text), "%s", bw_peer_describe(ep, number));
	bw_ep_lock(ep);
	p = bw_remote_get(&ep->remotes, number);
	snprintf(peer->host, sizeof(peer->host), "%s", p->name[0] ? p->name : ep->host);
	peer->node = p->addr.node;
	peer->engine = p->addr.engine;
	paths_find(ep, p, peer);
	ways_find(ep, p, peer);
	bw_ep_unlock(ep);
}

int info_peer(const char *to, struct info_peer *peer)
{
	struct caller c = {0};
	struct bw_addr addr;
	bw_peer_no number;
	int error;

	if (is_address(to) ? !address_scan(to, &addr) : address_ask(to, &addr) < 0)
		return -1;
	if (endpoint_open(&c) < 0)
		return -1;
	error = bw_peer_find(c.ep, &addr, &number);
	if (error == -EPROTONOSUPPORT)
		info_fail("that peer belongs to another cluster or speaks another version: compare "
			  "BEOWIRE_CLUSTER and the versions of Beowire");
	else if (error == -EHOSTUNREACH)
		info_fail("this side and that peer have no link in common: compare what "
			  "beowire-info says "
			  "on both");
	else if (error < 0)
		info_fail("that is no address of a peer");
	if (error == 0)
		error = echoes(&c, number, &peer->round_trip_ns);
	if (error == 0)
		peer_describe(c.ep, number, peer);
	bw_ep_close(c.ep, FAREWELL_NS);
	return error < 0 ? -1 : 0;
}
