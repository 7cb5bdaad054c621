/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The loop of a protocol server [A2]. Each socket of the protocol's number has an instance here;
 * records of the kernel come in, are acted upon, and what follows from them goes out with the next
 * turn.
 */
#include "serve.h"

#include <errno.h>

#include "clock.h"
#include "instance.h"

#define BUCKETS 1024
#define RECORDS 256 /* of a ring in one turn: more may come as fast as they are read */

static struct {
	struct rings rings;
	const struct bw_protocol *protocol;
	struct instance *all;
	struct instance *bucket[BUCKETS]; /* by the socket's number */
	bool spin;
} server;

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
	} else if (record->type == BEOWIRE_PRESSED && in) {
		instance_press(in, record->result.status);
	} else if (record->type == BEOWIRE_CLOSE && in) {
		instance_close(in);
		in->deadline = 0;
	} else if (record->type == BEOWIRE_CLOSE) {
		/* one that could not be opened */
		instance_answer(&server.rings, record->socket, BEOWIRE_CLOSED, 0, 0);
	}
}

static void server_frame(const struct beowire_record *record)
{
	struct instance *in = *server_find(record->socket);

	if (in)
		instance_frame(in, record);
}

/* True: there may be more. */
static bool server_ring(enum beowire_ring_number number,
			void (*act)(const struct beowire_record *record))
{
	const struct beowire_record *record;
	int n = 0;

	while (n < RECORDS && (record = rings_next(&server.rings, number))) {
		act(record);
		rings_consume(&server.rings, number, record);
		n++;
	}
	return n == RECORDS;
}

/* True: there may be more. */
static bool server_records(void)
{
	bool more = server_ring(BEOWIRE_FRAMES_IN, server_frame);

	return server_ring(BEOWIRE_REQUESTS, server_request) || more;
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

static int server_turn(void)
{
	uint64_t next;
	int error = 0;
	bool more;

	more = server_records();
	next = server_timers();
	if (!server.spin || server.rings.touched)
		error = rings_turn(&server.rings, more ? 0 : server_idle(next));
	return error == -EINTR ? 0 : error;
}

int serve_open(uint32_t number, const struct bw_protocol *protocol, bool spin)
{
	server.protocol = protocol;
	server.spin = spin;
	return rings_open(&server.rings, number, protocol->name);
}

int serve_loop(void)
{
	int error;

	do {
		error = server_turn();
	} while (!error);
	return error;
}
