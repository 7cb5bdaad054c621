/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * steps BYTES COUNT IDLE: two endpoints of libbeowire in one process exchange COUNT messages to and
 * fro, driven in turns, and then make at least IDLE rounds in which nothing happens. With the clock
 * of this file, which goes on by the same amount whenever it is read, a run takes the same
 * instructions each time, but for rounds that wait for the kernel: their number is printed, so that
 * they can be taken out. The clock stands still in them, or a kernel that delivers late would make
 * timers fire.
 *
 * The environment says how: BEOWIRE_LINKS; STEPS_INTERFACE_A and _B, if the endpoints are to use an
 * interface each and be nodes of their own.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "beowire.h"

#define TICK_NS	   5 /* of the clock, each time it is read */
#define BEGIN_NS   1000000000u
#define STILL_MAX  20000      /* rounds without anything in a row, after which the clock goes on */
#define ROUNDS_MAX 100000000u /* without a message: far beyond what waiting takes */
#define NS_PER_S   1000000000u

struct end {
	struct bw_ep *ep;
	bw_peer_no peer;
	uint8_t *in, *out;
	uint64_t bytes;
	uint64_t arrived;
	const char *failed;
};

static uint64_t idle; /* rounds of either end in which nothing happened */
static uint64_t now = BEGIN_NS;

/* In place of the C library's, for libbeowire too: hence visible. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
	(void)clock;
	now += TICK_NS;
	t->tv_sec = (time_t)(now / NS_PER_S);
	t->tv_nsec = (long)(now % NS_PER_S);
	return 0;
}

/* Who sleeps finds that the time has come. By the machine's clock it always has, and by this one it
 * would only after as many calls as it has ticks until then: most of what a run took. */
__attribute__((visibility("default"))) int
clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
	uint64_t at = (uint64_t)until->tv_sec * NS_PER_S + (uint64_t)until->tv_nsec;

	(void)clock, (void)flags, (void)left;
	if (at > now)
		now = at;
	return 0;
}

static void on_message(void *arg, const struct bw_message *m)
{
	struct end *end = arg;

	if (m->len != end->bytes) {
		end->failed = "a message of another length";
	} else if (m->envelope) {
		if (bw_pull(end->ep, m->peer, &m->rndv, end->in, end->bytes, end))
			end->failed = "a message cannot be fetched";
	} else {
		memcpy(end->in, m->data, end->bytes);
		end->arrived++;
	}
}

static void on_sent(void *arg, void *op, int status)
{
	struct end *end = arg;

	(void)op;
	if (status)
		end->failed = "a send failed";
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
	struct end *end = arg;

	(void)op;
	end->arrived++;
	if (status || len != end->bytes)
		end->failed = "a fetch failed";
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
	struct end *end = arg;

	(void)peer;
	(void)status;
	end->failed = "the peer is gone";
}

static const struct bw_handlers handlers = {on_message, on_sent, on_pulled, on_down, NULL};

static void open_end(struct end *end, const char *side, uint64_t bytes)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .arg = end, .no_helper = true};
	const char *why, *interface;
	char name[32];

	snprintf(name, sizeof(name), "STEPS_INTERFACE_%s", side);
	interface = getenv(name);
	if (interface) {
		setenv("BEOWIRE_INTERFACE", interface, 1);
		setenv("BEOWIRE_NODE", side, 1);
	}
	*end = (struct end){.bytes = bytes};
	end->in = calloc(1, bytes);
	end->out = malloc(bytes);
	if (!end->in || !end->out)
		exit(2);
	memset(end->out, *side, bytes);
	if (bw_ep_open(&end->ep, &attr, &why)) {
		fprintf(stderr, "steps: %s\n", why);
		exit(2);
	}
}

static void find(struct end *end, struct end *other)
{
	struct bw_addr addr;

	bw_ep_addr(other->ep, &addr);
	if (bw_peer_find(end->ep, &addr, &end->peer))
		end->failed = "the peer is not found";
}

static void round_of(struct end *end)
{
	static unsigned int row;
	uint64_t before = now;

	if (bw_progress(end->ep)) {
		row = 0;
		return;
	}
	idle++;
	if (++row <= STILL_MAX)
		now = before;
	sched_yield();
}

/* One message from one to the other, which has it in the end. */
static void carry(struct end *from, struct end *to)
{
	uint64_t before = to->arrived;
	int sent = -11; /* -EAGAIN */

	for (unsigned int i = 0; i < ROUNDS_MAX && to->arrived == before; i++) {
		if (sent < 0)
			sent = bw_send(from->ep, from->peer, 1, 0, 0, from->out, from->bytes, 0,
				       from);
		round_of(to);
		round_of(from);
		if (from->failed || to->failed)
			break;
	}
	if (from->failed || to->failed || to->arrived != before + 1 ||
	    memcmp(from->out, to->in, to->bytes) != 0) {
		fprintf(stderr, "steps: %s\n",
			from->failed ? from->failed
			: to->failed ? to->failed
				     : "a message is wrong");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	uint64_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t more = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	struct end a, b;

	if (argc != 4 || !bytes || !count) {
		fprintf(stderr, "usage: steps BYTES COUNT IDLE\n");
		return 2;
	}
	open_end(&a, "A", bytes);
	open_end(&b, "B", bytes);
	find(&a, &b);
	find(&b, &a);
	for (uint64_t i = 0; i < count; i++) {
		carry(&a, &b);
		carry(&b, &a);
	}
	for (more += idle; idle < more;) {
		round_of(&a);
		round_of(&b);
	}
	printf("%llu\n", (unsigned long long)idle);
	bw_ep_close(a.ep, NS_PER_S);
	bw_ep_close(b.ep, NS_PER_S);
	return 0;
}
