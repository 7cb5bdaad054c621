/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * beowire-server: a protocol of the engine as a protocol server [A2], the example for others. Each
 * socket of the protocol's number has an instance here; records of the kernel come in, are acted
 * upon, and what follows from them goes out with the next turn.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "instance.h"

#define BUCKETS 1024
#define NUMBER	2 /* unless another is asked for */

static struct {
	struct rings rings;
	const struct bw_protocol *protocol;
	struct instance *all;
	struct instance *bucket[BUCKETS]; /* by the socket's number */
	bool spin;
} server;

static void die(const char *what, int error)
{
	fprintf(stderr, "beowire-server: %s: %s\n", what, strerror(error));
	exit(1);
}

static struct instance **server_find(uint32_t id)
{
	struct instance **at = &server.bucket[id % BUCKETS];

	while (*at && (*at)->id != id)
		at = &(*at)->in_bucket;
	return at;
}

static void server_request(const struct beowire_record *record)
{
	struct instance **at = server_find(record->socket), *in = *at;

	if (record->type == BEOWIRE_OPEN) {
		in = instance_open(&server.rings, server.protocol, record);
		if (!in)
			return;
		in->in_bucket = *at;
		*at = in;
		in->next = server.all;
		server.all = in;
		instance_run(in);
	} else if (record->type == BEOWIRE_SEND && in) {
		instance_send(in, record);
	} else if (record->type == BEOWIRE_CLOSE && in) {
		instance_close(in);
		in->deadline = 0;
	} else if (record->type == BEOWIRE_CLOSE) {
		/* one that could not be opened */
		instance_answer(&server.rings, record->socket, BEOWIRE_CLOSED, 0, 0);
	}
}

static void server_records(void)
{
	const struct beowire_record *record;
	struct instance *in;

	while ((record = rings_next(&server.rings, BEOWIRE_FRAMES_IN))) {
		in = *server_find(record->socket);
		if (in)
			instance_frame(in, record);
		rings_consume(&server.rings, BEOWIRE_FRAMES_IN, record);
	}
	while ((record = rings_next(&server.rings, BEOWIRE_REQUESTS))) {
		server_request(record);
		rings_consume(&server.rings, BEOWIRE_REQUESTS, record);
	}
}

/* What is due by now; when the next instance is. */
static uint64_t server_timers(void)
{
	uint64_t now = bw_clock_now(), next = BW_NEVER;
	struct instance **at = &server.all, *in;

	while ((in = *at)) {
		if (in->deadline <= now)
			instance_run(in);
		if (instance_over(in)) {
			*at = in->next;
			*server_find(in->id) = in->in_bucket;
			instance_end(in);
			continue;
		}
		if (in->closing && in->deadline > in->linger_until)
			in->deadline = in->linger_until;
		next = in->deadline < next ? in->deadline : next;
		at = &in->next;
	}
	return next;
}

/* How long nothing is to be done: 0 while something waits to be handed over. */
static int64_t server_idle(uint64_t next)
{
	uint64_t now;

	if (server.spin)
		return 0;
	if (next == BW_NEVER)
		return -1;
	now = bw_clock_now();
	return next > now ? (int64_t)(next - now) : 0;
}

static void server_turn(void)
{
	uint64_t next;
	int error = 0;

	server_records();
	next = server_timers();
	if (!server.spin || server.rings.touched)
		error = rings_turn(&server.rings, server_idle(next));
	if (error && error != -EINTR)
		die("a turn", -error);
}

static void attach(const char *name)
{
	int fd = socket(AF_BEOWIRE, SOCK_RDM | SOCK_CLOEXEC, 0);
	struct beowire_iface iface = {0};

	if (fd < 0)
		die("a socket of the kernel module", errno);
	snprintf(iface.name, sizeof(iface.name), "%s", name);
	if (ioctl(fd, BEOWIRE_IOC_ATTACH, &iface) && errno != EEXIST)
		die(name, errno);
	close(fd);
}

static int usage(void)
{
	const struct bw_protocol *const *p;

	fprintf(stderr, "usage: beowire-server [-n NUMBER] [-i INTERFACE]... [-s] PROTOCOL\n"
			"Speaks PROTOCOL for sockets of this network namespace:\n"
			"socket(AF_BEOWIRE, SOCK_DGRAM, NUMBER), NUMBER from 2 (default) to 15.\n"
			"  -i INTERFACE  let the kernel module use it\n"
			"  -s            spin instead of sleeping\n"
			"PROTOCOL is one of:");
	for (p = bw_protocols; *p; p++)
		fprintf(stderr, " %s", (*p)->name);
	fprintf(stderr, "\n");
	return 2;
}

static const char *why(int error)
{
	switch (error) {
	case ENOENT:
		return "there is no /dev/beowire; load the kernel module beowire";
	case EPERM:
		return "CAP_NET_ADMIN is needed in this network namespace";
	case EBUSY:
		return "another one speaks the protocol of this number; choose one by -n";
	case ENOMEM:
		return "too little memory, or memory that may be locked (ulimit -l)";
	}
	return strerror(error);
}

int main(int argc, char **argv)
{
	uint32_t number = NUMBER;
	int option, error;

	while ((option = getopt(argc, argv, "n:i:s")) != -1) {
		if (option == 'n')
			number = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'i')
			attach(optarg);
		else if (option == 's')
			server.spin = true;
		else
			return usage();
	}
	server.protocol = optind + 1 == argc ? bw_protocol_find(argv[optind]) : NULL;
	if (!server.protocol || number < 2 || number > 15)
		return usage();
	error = rings_open(&server.rings, number, server.protocol->name);
	if (error) {
		fprintf(stderr, "beowire-server: %s\n", why(-error));
		return 1;
	}
	printf("serving %s as protocol %u\n", server.protocol->name, number);
	fflush(stdout);
	for (;;) /* until a signal ends the process; the kernel tidies up */
		server_turn();
}
