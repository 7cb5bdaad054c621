/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection on which each byte comes back, and is checked. What the client is to do it reads a
 * line at a time, and each is answered by the same line: so who runs both knows when to pull a
 * cable, or to kill somebody. Both tell their process first, and the server how its connection
 * ended.
 *	traded serve PORT		one client
 *	traded drive ADDRESS PORT
 * To the client:
 *	switched	trade until the bytes of both directions go by Beowire
 *	lost		trade until those of no direction do
 *	trade BYTES
 *	half		no more is sent; the end of what comes is awaited
 *	broken		read until the connection ends, which must be by a reset
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE	   60000 /* bytes traded at once: more than any segment */
#define SMALL	   1000
#define PAUSE_US   10000 /* between two small trades: what is waited for needs the processor */
#define PATIENCE_S 400	 /* for all of it, in a slow guest: a wait without end is a failure */
#define BOTH_WAYS  3

static uint64_t traded; /* bytes that have come back */

__attribute__((noreturn, format(printf, 1, 2))) static void bad(const char *format, ...)
{
	va_list more;

	va_start(more, format);
	fprintf(stderr, "traded: ");
	vfprintf(stderr, format, more);
	fprintf(stderr, "\n");
	va_end(more);
	exit(1);
}

static uint8_t byte_at(uint64_t place)
{
	uint64_t x = place * 0x9E3779B97F4A7C15ull;

	return (uint8_t)(x >> 32 ^ x >> 56);
}

/* 1: bytes come by Beowire, 2: they go by it; 0 without the library. */
static int way_of(int fd)
{
	int (*way)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "beowire_sockets_way");

	return way ? way(fd) : 0;
}

static void give(int fd, const uint8_t *bytes, size_t n)
{
	while (n) {
		ssize_t some = send(fd, bytes, n, MSG_NOSIGNAL);

		if (some <= 0)
			bad("sending: %s", strerror(errno));
		bytes += some;
		n -= (size_t)some;
	}
}

/* There and back. */
static void trade(int fd, size_t n)
{
	uint8_t bytes[PIECE];
	size_t come = 0;

	for (size_t i = 0; i < n; i++)
		bytes[i] = byte_at(traded + i);
	give(fd, bytes, n);
	while (come < n) {
		ssize_t some = recv(fd, bytes, n - come, 0);

		if (some <= 0)
			bad("receiving: %s", some ? strerror(errno) : "the end");
		for (ssize_t i = 0; i < some; i++)
			if (bytes[i] != byte_at(traded + (uint64_t)i))
				bad("byte %llu is wrong", (unsigned long long)traded);
		traded += (uint64_t)some;
		come += (size_t)some;
	}
}

static void trade_all(int fd, uint64_t n)
{
	while (n) {
		size_t some = n < PIECE ? (size_t)n : PIECE;

		trade(fd, some);
		n -= some;
	}
}

static void end(int fd)
{
	uint8_t byte;
	ssize_t some = recv(fd, &byte, 1, 0);

	if (some)
		bad("no end: %s", some < 0 ? strerror(errno) : "a byte");
}

static void broken(int fd)
{
	uint8_t byte;
	ssize_t some;

	while ((some = recv(fd, &byte, 1, 0)) > 0)
		;
	if (!some || errno != ECONNRESET)
		bad("no reset: %s", some ? strerror(errno) : "a good end");
}

static void trade_until(int fd, bool by_beowire)
{
	while (way_of(fd) != (by_beowire ? BOTH_WAYS : 0)) {
		trade(fd, SMALL);
		usleep(PAUSE_US);
	}
}

static void obey(int fd, const char *line)
{
	unsigned long long n;

	if (!strcmp(line, "switched\n")) {
		trade_until(fd, true);
	} else if (!strcmp(line, "lost\n")) {
		trade_until(fd, false);
	} else if (sscanf(line, "trade %llu", &n) == 1) {
		trade_all(fd, n);
	} else if (!strcmp(line, "half\n")) {
		shutdown(fd, SHUT_WR);
		end(fd);
	} else if (!strcmp(line, "broken\n")) {
		broken(fd);
	} else {
		bad("what is %s", line);
	}
	printf("%s", line);
	fflush(stdout);
}

static void drive(const char *address, uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char line[64];

	printf("%d\n", getpid());
	fflush(stdout);
	inet_pton(AF_INET, address, &to.sin_addr);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		bad("no connection: %s", strerror(errno));
	while (fgets(line, sizeof(line), stdin))
		obey(fd, line);
}

static void serve(uint16_t port)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
	const int on = 1;
	uint8_t bytes[PIECE];
	ssize_t some;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, 1))
		bad("port %u: %s", port, strerror(errno));
	printf("%d\n", getpid());
	fflush(stdout);
	fd = accept(listener, NULL, NULL);
	while ((some = recv(fd, bytes, sizeof(bytes), 0)) > 0)
		give(fd, bytes, (size_t)some);
	printf("%s\n", some ? strerrorname_np(errno) : "the end");
}

int main(int argc, char **argv)
{
	alarm(PATIENCE_S);
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve((uint16_t)atoi(argv[2]));
	else if (argc == 4 && !strcmp(argv[1], "drive"))
		drive(argv[2], (uint16_t)atoi(argv[3]));
	else
		bad("usage");
	return 0;
}
