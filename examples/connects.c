/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A plain program of TCP sockets, to measure connections with: `closing` closes whoever connects,
 * `serve` echoes what comes; `short` connects again and again; `many` has many connections at once
 * and uses all of them; `pingpong` and `spinning` have one. What was measured is printed as one
 * line of JSON.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LISTEN	   4096
#define MESSAGE	   1024	  /* bytes of each message of `many` */
#define ROUNDS	   40	  /* of `many` at least: all connections have moved 80 KiB */
#define LAST	   10	  /* rounds at the end that are timed */
#define PATIENCE_S 60	  /* until connections go by Beowire, if its library is there */
#define PINGS_WARM 2000	  /* round trips of `pingpong` before those that are timed */
#define PINGS_MAX  100000 /* that are timed */

/* Of the preload library of socket programs: 3 if this one goes by Beowire both ways. */
extern int beowire_sockets_way(int fd) __attribute__((weak));

static void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("connects: ", stderr);
	vfprintf(stderr, format, args);
	fputs("\n", stderr);
	va_end(args);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct addrinfo *resolve(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				 .ai_family = AF_INET,
				 .ai_flags = host ? 0 : AI_PASSIVE},
			*found;
	int rc = getaddrinfo(host, port, &hints, &found);

	if (rc)
		fail("%s: %s", host ? host : port, gai_strerror(rc));
	return found;
}

static int dial(const struct addrinfo *to)
{
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen))
		fail("connect: %s", strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void put(int fd, const void *data, size_t n)
{
	for (const char *from = data; n;) {
		ssize_t some = send(fd, from, n, MSG_NOSIGNAL);

		if (some < 0 && errno != EAGAIN && errno != EINTR)
			fail("send: %s", strerror(errno));
		if (some > 0) {
			from += some;
			n -= (size_t)some;
		}
	}
}

static void get(int fd, void *data, size_t n)
{
	for (char *to = data; n;) {
		ssize_t some = recv(fd, to, n, 0);

		if (!some || (some < 0 && errno != EAGAIN && errno != EINTR))
			fail("recv: %s", some ? strerror(errno) : "the connection has ended");
		if (some > 0) {
			to += some;
			n -= (size_t)some;
		}
	}
}

/* What comes goes back; more than there is room for in the socket's buffers is never under way. */
static void echo(int epoll, int fd)
{
	char data[16384];
	ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		put(fd, data, (size_t)n);
		return;
	}
	epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
	close(fd);
}

static void serve(const char *port, bool closes)
{
	struct addrinfo *at = resolve(NULL, port);
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	int epoll = epoll_create1(EPOLL_CLOEXEC), n;
	struct epoll_event event = {.events = EPOLLIN}, events[256];

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, LISTEN))
		fail("port %s: %s", port, strerror(errno));
	event.data.fd = fd;
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	while ((n = epoll_wait(epoll, events, 256, -1)) >= 0 || errno == EINTR) {
		for (int i = 0; i < n; i++) {
			int conn = events[i].data.fd;

			if (conn != fd) {
				echo(epoll, conn);
				continue;
			}
			conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
			if (conn < 0 || closes) {
				close(conn);
				continue;
			}
			setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
			event.data.fd = conn;
			epoll_ctl(epoll, EPOLL_CTL_ADD, conn, &event);
		}
	}
	fail("epoll_wait: %s", strerror(errno));
}

/* Until the server has closed: its end is the one that waits for late segments. */
static void short_ones(const struct addrinfo *to, long count)
{
	uint64_t began = now_ns();
	char byte;

	for (long i = 0; i < count; i++) {
		int fd = dial(to);

		if (recv(fd, &byte, 1, 0) != 0)
			fail("the server did not close");
		close(fd);
	}
	printf("{\"connections\": %ld, \"ns_each\": %llu}\n", count,
	       (unsigned long long)((now_ns() - began) / (uint64_t)count));
}

/* Memory of this process, in bytes. */
static uint64_t memory(void)
{
	unsigned long long pages = 0, held = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%llu %llu", &pages, &held) != 2)
		fail("/proc/self/statm: no memory told");
	fclose(f);
	return held * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void fill(uint8_t *data, long conn, int round)
{
	for (size_t i = 0; i < MESSAGE; i++)
		data[i] = (uint8_t)(conn * 7 + round * 31 + (long)i);
}

/* Do too few of these go by Beowire to measure that? Never without the library. */
static bool too_early(const int *fd, long count, uint64_t began)
{
	const char *how = getenv("BEOWIRE_SOCKETS");
	long n = 0;

	if (!beowire_sockets_way || (how && !strcmp(how, "off")))
		return false;
	for (long i = 0; i < count; i++)
		n += beowire_sockets_way(fd[i]) == 3;
	return 2 * n < count && now_ns() - began < PATIENCE_S * 1000000000ULL;
}

/* All connections have a message under way, then all are read. */
static void exchange(const int *fd, long count, int round)
{
	uint8_t out[MESSAGE], in[MESSAGE];

	for (long i = 0; i < count; i++) {
		fill(out, i, round);
		put(fd[i], out, MESSAGE);
	}
	for (long i = 0; i < count; i++) {
		fill(out, i, round);
		get(fd[i], in, MESSAGE);
		if (memcmp(in, out, MESSAGE))
			fail("connection %ld: other bytes than were sent", i);
	}
}

static void many(const struct addrinfo *to, long count)
{
	int *fd = calloc((size_t)count, sizeof(*fd));
	uint64_t before, began = now_ns();
	int round = 0;

	if (!fd)
		fail("no memory");
	before = memory();
	for (long i = 0; i < count; i++)
		fd[i] = dial(to);
	while (round < ROUNDS - LAST || too_early(fd, count, began))
		exchange(fd, count, round++);
	began = now_ns();
	for (int i = 0; i < LAST; i++)
		exchange(fd, count, round++);
	printf("{\"connections\": %ld, \"bytes_each\": %llu, \"ns_each\": %llu}\n", count,
	       (unsigned long long)((memory() - before) / (uint64_t)count),
	       (unsigned long long)((now_ns() - began) / (uint64_t)count / LAST));
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Half of the median round trip. `spins`: never sleeps in a call. */
static void pingpong(const struct addrinfo *to, long bytes, bool spins)
{
	uint64_t *took = calloc(PINGS_MAX, sizeof(*took)), began, first = now_ns(), until;
	char *data = calloc(1, (size_t)bytes);
	int fd = dial(to);
	size_t n = 0;

	if (!took || !data)
		fail("no memory");
	if (spins && fcntl(fd, F_SETFL, O_NONBLOCK))
		fail("O_NONBLOCK: %s", strerror(errno));
	for (long i = 0; i < PINGS_WARM || too_early(&fd, 1, first); i++) {
		put(fd, data, (size_t)bytes);
		get(fd, data, (size_t)bytes);
	}
	until = now_ns() + 1000000000;
	while (n < PINGS_MAX && (!n || now_ns() < until)) {
		began = now_ns();
		put(fd, data, (size_t)bytes);
		get(fd, data, (size_t)bytes);
		took[n++] = now_ns() - began;
	}
	qsort(took, n, sizeof(*took), by_time);
	printf("{\"round_trips\": %zu, \"ns_one_way\": %llu}\n", n,
	       (unsigned long long)(took[n / 2] / 2));
}

static void more_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long count = argc > 4 ? strtol(argv[4], NULL, 10) : 0;

	more_descriptors();
	if (argc == 3 && !strcmp(what, "serve"))
		serve(argv[2], false);
	if (argc == 3 && !strcmp(what, "closing"))
		serve(argv[2], true);
	if (argc != 5 || count < 1)
		fail("serve|closing PORT, or short|many HOST PORT CONNECTIONS, or "
		     "pingpong|spinning HOST PORT BYTES");
	if (!strcmp(what, "short"))
		short_ones(resolve(argv[2], argv[3]), count);
	else if (!strcmp(what, "many"))
		many(resolve(argv[2], argv[3]), count);
	else if (!strcmp(what, "pingpong") || !strcmp(what, "spinning"))
		pingpong(resolve(argv[2], argv[3]), count, *what == 's');
	else
		fail("what is %s?", what);
	return 0;
}
