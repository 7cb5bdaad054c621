/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two guests on a wire talk by sockets of all types, both ways at once, and each checks every byte
 * that it gets: what the wire loses, doubles, damages and overtakes must not show.
 *
 *	exchange MESSAGES NAME [at-once]
 *		in both of two guests; MESSAGES: of each type and way; NAME: of points where they
 *		meet, another one each time; at-once: as datagrams only, without a pause between
 *		them; all must leave, for which nothing else may use the interface
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "beowire_socket.h"

#define LONGEST	   200000
#define DGRAM_ROOM 1000

static uint32_t messages;
static uint32_t guest;
static const char *name;
static int at_once;

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "guest %u: %s: %s\n", guest, what, strerror(errno));
	exit(1);
}

/* All guests come to this point; see tools/guest/meet. */
static void meet(const char *point)
{
	char command[64];

	snprintf(command, sizeof(command), "meet %s.%s", name, point);
	must(system(command) == 0, command);
}

static struct sockaddr_beowire at(uint32_t of, uint16_t port)
{
	return (struct sockaddr_beowire){.sbw_family = AF_BEOWIRE,
					 .sbw_port = port,
					 .sbw_mac = {0x52, 0x54, 0, 0, 0, (uint8_t)of}};
}

static uint32_t length(uint32_t seed, uint32_t i)
{
	return 4 + (seed * 77 + i) * 2654435761u % (i % 8 ? 4000 : LONGEST - 4);
}

static uint8_t byte(uint32_t seed, uint32_t i, uint32_t at)
{
	return (uint8_t)((seed * 31 + i * 2654435761u + at * 40503u) >> 9);
}

struct way {
	int fd, type;
	uint32_t seed; /* of the sender's bytes */
};

static uint32_t bytes_of(const struct way *w, uint32_t i)
{
	uint32_t n = length(w->seed, i);

	return w->type == SOCK_DGRAM ? 4 + n % (DGRAM_ROOM - 4) : n;
}

static void *send_all(void *arg)
{
	const struct way *w = arg;
	uint8_t *bytes = malloc(LONGEST);

	for (uint32_t i = 0; i < messages; i++) {
		uint32_t n = bytes_of(w, i);

		for (uint32_t k = 0; k < n; k++)
			bytes[k] = byte(w->seed, i, k);
		if (w->type == SOCK_DGRAM)
			memcpy(bytes, &i, 4);
		must(send(w->fd, bytes, n, 0) == n, "send");
		if (w->type == SOCK_DGRAM && !at_once)
			usleep(1000);
	}
	free(bytes);
	return NULL;
}

static void check(const struct way *w, uint32_t i, const uint8_t *bytes, uint32_t n)
{
	errno = 0;
	must(n == bytes_of(w, i), "the length of a message");
	for (uint32_t k = w->type == SOCK_DGRAM ? 4 : 0; k < n; k++)
		must(bytes[k] == byte(w->seed, i, k), "a byte of a message");
}

static void receive_all(const struct way *w)
{
	uint8_t *bytes = malloc(LONGEST);

	for (uint32_t i = 0; i < messages; i++) {
		size_t room = w->type == SOCK_STREAM ? bytes_of(w, i) : LONGEST;
		ssize_t n = recv(w->fd, bytes, room, MSG_WAITALL);

		must(n > 0, "recv");
		check(w, i, bytes, (uint32_t)n);
	}
	free(bytes);
}

/* Datagrams may be lost on a bad wire, but not all of them. */
static void receive_some(const struct way *w)
{
	const struct timeval patience = {.tv_sec = 60}, quiet = {.tv_sec = 5};
	uint8_t bytes[DGRAM_ROOM];
	uint32_t came = 0, i;
	ssize_t n;

	setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	while ((n = recv(w->fd, bytes, sizeof(bytes), 0)) > 0) {
		memcpy(&i, bytes, 4);
		must(i < messages, "the number of a datagram");
		check(w, i, bytes, (uint32_t)n);
		if (!came++)
			setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &quiet, sizeof(quiet));
	}
	must(errno == EAGAIN, "recv");
	must(came > (at_once ? 0 : messages / 2), "too many datagrams are lost");
}

static void both_ways(int fd, int type)
{
	struct way out = {fd, type, guest}, in = {fd, type, 3 - guest};
	pthread_t thread;

	must(pthread_create(&thread, NULL, send_all, &out) == 0, "pthread_create");
	type == SOCK_DGRAM ? receive_some(&in) : receive_all(&in);
	pthread_join(thread, NULL);
}

static int bound(int type, uint16_t port)
{
	struct sockaddr_beowire self = {.sbw_family = AF_BEOWIRE, .sbw_port = port};
	int fd = socket(AF_BEOWIRE, type, 0);

	must(fd >= 0, "socket");
	must(bind(fd, (struct sockaddr *)&self, sizeof(self)) == 0, "bind");
	return fd;
}

/* Frames that the interface has sent. */
static unsigned long sent(void)
{
	FILE *file = fopen("/sys/class/net/eth0/statistics/tx_packets", "r");
	unsigned long n = 0;

	must(file && fscanf(file, "%lu", &n) == 1, "tx_packets");
	fclose(file);
	return n;
}

/* How often a frame had to wait for room in the queue of the interface. */
static unsigned long long waited(int fd)
{
	struct beowire_counters counters;
	socklen_t len = sizeof(counters);

	must(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_COUNTERS, &counters, &len) == 0, "getsockopt");
	return counters.tx_busy;
}

static void without_connection(int type, uint16_t port)
{
	struct sockaddr_beowire other = at(3 - guest, port);
	int fd = bound(type, port);
	unsigned long before;

	must(connect(fd, (struct sockaddr *)&other, sizeof(other)) == 0, "connect");
	meet(type == SOCK_RDM ? "messages" : "datagrams");
	before = sent();
	both_ways(fd, type);
	must(!at_once || sent() - before == messages, "every datagram leaves, once");
	printf("%llu frames had to wait for a full queue\n", waited(fd));
	close(fd);
}

static void with_connection(int type, uint16_t port)
{
	struct sockaddr_beowire other = at(2, port);
	const char *point = type == SOCK_STREAM ? "stream" : "records";
	int fd, listener;
	char end;

	if (guest == 2) {
		listener = bound(type, port);
		must(listen(listener, 1) == 0, "listen");
		meet(point);
		fd = accept(listener, NULL, NULL);
		must(fd >= 0, "accept");
		close(listener);
	} else {
		meet(point);
		fd = socket(AF_BEOWIRE, type, 0);
		must(connect(fd, (struct sockaddr *)&other, sizeof(other)) == 0, "connect");
	}
	both_ways(fd, type);
	must(shutdown(fd, SHUT_WR) == 0, "shutdown");
	must(recv(fd, &end, 1, 0) == 0, "the end");
	close(fd);
}

int main(int count, char **words)
{
	struct beowire_iface iface = {.name = "eth0"};
	const char *number = getenv("BEOWIRE_GUEST");
	int fd = socket(AF_BEOWIRE, SOCK_RDM, 0);

	must(count >= 3 && number, "exchange MESSAGES NAME, in a guest on a wire");
	name = words[2];
	at_once = count > 3;
	must(!at_once || system("sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1") == 0, "sysctl");
	messages = (uint32_t)strtoul(words[1], NULL, 10);
	guest = (uint32_t)strtoul(number, NULL, 10);
	must(ioctl(fd, BEOWIRE_IOC_ATTACH, &iface) == 0 || errno == EEXIST, "attaching eth0");
	close(fd);
	without_connection(SOCK_DGRAM, 101);
	if (!at_once) {
		without_connection(SOCK_RDM, 100);
		with_connection(SOCK_SEQPACKET, 102);
		with_connection(SOCK_STREAM, 103);
	}
	meet("end");
	printf("%u messages each way, of %s\n", messages, at_once ? "one type" : "four types");
	return 0;
}
