/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls of every kind on two connections to one server: one that the preload library may switch,
 * and one that stays on TCP, the reference. All that calls return must be the same.
 *	differ serve PORT		one client, then the end; 0: a port that is told
 *	differ drive ADDRESS PORT SEED STEPS
 *	differ both SEED STEPS LIBRARY	here, with this library in both
 */
#include "differ.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_S 280 /* a run takes some 5 s on a busy machine, with sanitizers ten times that */

int streams[2], control;

void bad(const char *format, ...)
{
	va_list more;

	va_start(more, format);
	fprintf(stderr, "differ: ");
	vfprintf(stderr, format, more);
	fprintf(stderr, "\n");
	va_end(more);
	exit(1);
}

uint8_t byte_at(uint64_t place)
{
	uint64_t x = place * 0x9E3779B97F4A7C15ull;

	return (uint8_t)(x >> 32 ^ x >> 56);
}

void fill(uint8_t *to, uint64_t place, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = byte_at(place + i);
}

/* Where in the stream are these? */
static const char *found(const uint8_t *bytes, size_t n, uint64_t place)
{
	static char text[64];

	for (int64_t shift = -1000000; shift < 1000000; shift++) {
		size_t i = 0;

		while (i < n && i < 16 && bytes[i] == byte_at(place + (uint64_t)shift + i))
			i++;
		if (i < n && i < 16)
			continue;
		snprintf(text, sizeof(text), ": it is %lld further", (long long)shift);
		return text;
	}
	return "";
}

void check(const uint8_t *bytes, uint64_t place, size_t n, const char *what)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] != byte_at(place + i))
			bad("%s: byte %llu is wrong, at %zu of %zu%s", what,
			    (unsigned long long)(place + i), i, n,
			    found(bytes + i, n - i, place + i));
	}
}

void whole(int fd, void *bytes, size_t n, bool in)
{
	uint8_t *at = bytes;

	while (n) {
		ssize_t some = in ? recv(fd, at, n, 0) : send(fd, at, n, MSG_NOSIGNAL);

		if (some <= 0)
			bad("control connection: %s", some ? strerror(errno) : "ended");
		at += some;
		n -= (size_t)some;
	}
}

static uint64_t served[2], serving[2]; /* bytes received and sent by the server */

static void serve_write(int k, size_t n)
{
	uint8_t *bytes = malloc(n);

	fill(bytes, serving[k], n);
	for (size_t done = 0; done < n;) {
		ssize_t some = write(streams[k], bytes + done, n - done);

		if (some < 0)
			bad("server's write: %s", strerror(errno));
		done += (size_t)some;
	}
	serving[k] += n;
	free(bytes);
}

static void serve_read(int k, size_t n)
{
	uint8_t bytes[30000];

	while (n) {
		ssize_t some = read(streams[k], bytes, n < sizeof(bytes) ? n : sizeof(bytes));

		if (some <= 0)
			bad("server's read: %s", some ? strerror(errno) : "ended");
		check(bytes, served[k], (size_t)some, "server");
		served[k] += (uint64_t)some;
		n -= (size_t)some;
	}
}

static int64_t serve_one(const struct order *o)
{
	pid_t child;

	switch (o->what) {
	case WRITE:
		for (int k = 0; k < 2; k++)
			serve_write(k, (size_t)o->n[k]);
		return 0;
	case READ:
		for (int k = 0; k < 2; k++)
			serve_read(k, (size_t)o->n[k]);
		return 0;
	case SHUT:
		return shutdown(streams[0], SHUT_WR) | shutdown(streams[1], SHUT_WR);
	case CLOSE:
		return close(streams[0]) | close(streams[1]);
	case FORK:
		child = fork();
		if (!child)
			_exit(0);
		return waitpid(child, NULL, 0) == child ? 0 : -1;
	case WAY:
		return way_of(streams[0]);
	}
	return -1;
}

static int listening(uint16_t port)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 8))
		bad("port %u: %s", port, strerror(errno));
	return fd;
}

static void serve(uint16_t port)
{
	int fd = listening(port);
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	struct order o;
	int64_t answer;

	if (getsockname(fd, (struct sockaddr *)&name, &len))
		bad("no name: %s", strerror(errno));
	printf("listening at %u\n", ntohs(name.sin_port));
	fflush(stdout);
	control = accept(fd, NULL, NULL);
	stay_on_tcp(control);
	for (int k = 0; k < 2; k++)
		streams[k] = accept(fd, NULL, NULL);
	stay_on_tcp(streams[1]);
	close(fd);
	while (recv(control, &o, sizeof(o), MSG_WAITALL) == sizeof(o)) {
		answer = serve_one(&o);
		whole(control, &answer, sizeof(answer), false);
	}
}

/* One side, in a process of its own, with the library. */
static pid_t begin(const char *library, int output, char **words)
{
	pid_t child = fork();

	if (child)
		return child;
	/* It ends with us, and at any rate: a wait without end is a failure. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(PATIENCE_S);
	setenv("LD_PRELOAD", library, 1);
	setenv("BEOWIRE_SOCKETS_AFTER", "0", 1);
	/* unless the test is of that */
	setenv("BEOWIRE_SOCKETS_COMPARE", "off", 0);
	setenv("BEOWIRE_SOCKETS_WITHIN", "on", 1);
	/* of an address sanitizer, that it comes behind the library */
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0:abort_on_error=1", 1);
	dup2(output, STDOUT_FILENO);
	execv("/proc/self/exe", words);
	bad("exec: %s", strerror(errno));
}

static void both(char *seed, char *steps, const char *library)
{
	char port[8];
	int out[2], status[2], told;
	FILE *f;

	if (access(library, R_OK) || pipe(out))
		bad("%s: %s", library, strerror(errno));
	begin(library, out[1], (char *[]){"differ", "serve", "0", NULL});
	close(out[1]);
	f = fdopen(out[0], "r");
	if (fscanf(f, "listening at %d", &told) != 1)
		bad("the server does not listen");
	snprintf(port, sizeof(port), "%d", told);
	begin(library, STDOUT_FILENO,
	      (char *[]){"differ", "drive", "127.0.0.1", port, seed, steps, NULL});
	/* If one fails the other one's connections end. */
	for (int i = 0; i < 2; i++)
		wait(&status[i]);
	if (status[0] || status[1])
		bad("ended with %x, %x", status[0], status[1]);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve((uint16_t)atoi(argv[2]));
	else if (argc == 6 && !strcmp(argv[1], "drive"))
		drive(argv[2], (uint16_t)atoi(argv[3]), strtoull(argv[4], NULL, 10), atoi(argv[5]));
	else if (argc == 5 && !strcmp(argv[1], "both"))
		both(argv[2], argv[3], argv[4]);
	else
		bad("usage");
	return 0;
}
