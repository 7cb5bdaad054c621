/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libbeowire through its public header, as any program would use it: messages are counted by the
 * handler, long ones are pulled into the caller's buffer. Handlers may run in the endpoint's helper
 * thread: what they share with us is either atomic or guarded by the endpoint's lock.
 */
#include "beowire.h"
#include "pingpong.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PULLS_MAX    4096 /* envelopes that may wait for their pull */
#define CLOSE_NS     1000000000ull
#define SPINS_A_LOOK 65536    /* between two looks at the clock while spinning */
#define IDLE_RING    "262144" /* bytes of the ring of an endpoint that does nothing: the least */
#define IDLE_SETTLE  300000   /* us until such endpoints have nothing more to do */

struct beowire {
	struct bw_ep *ep;
	bw_peer_no peer; /* the partner; messages of others are none of ours */
	pid_t idle;	 /* process that holds endpoints which do nothing; 0: none */
	bool spin;
	int down;
	bool flooded;			   /* the partner sent more envelopes than may wait */
	uint64_t arrived, taken;	   /* messages that came, and that a receive asked for */
	uint64_t begun, ended;		   /* sends that did not end at once */
	struct bw_rndv waiting[PULLS_MAX]; /* envelopes without a pull, a ring */
	uint64_t wait_first, wait_end;
	uint8_t *buf; /* where the last receive wanted its message */
	size_t room;
};

static void on_message(void *arg, const struct bw_message *m)
{
	struct beowire *b = arg;

	if (m->peer != b->peer) {
		if (m->envelope && b->ep)
			bw_pull(b->ep, m->peer, &m->rndv, NULL, 0, NULL);
		return;
	}
	if (m->envelope && b->wait_end - b->wait_first == PULLS_MAX) {
		b->flooded = true;
		return;
	}
	if (m->envelope) {
		b->waiting[b->wait_end++ % PULLS_MAX] = m->rndv;
		return;
	}
	if (b->buf && m->len <= b->room)
		memcpy(b->buf, m->data, m->len);
	__atomic_fetch_add(&b->arrived, 1, __ATOMIC_RELAXED);
}

static void on_sent(void *arg, void *op, int status)
{
	__atomic_fetch_add(&((struct beowire *)arg)->ended, 1, __ATOMIC_RELAXED);
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
	struct beowire *b = arg;

	__atomic_fetch_add(&b->arrived, 1, __ATOMIC_RELAXED);
	if (status < 0)
		b->down = status;
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
	struct beowire *b = arg;

	if (peer == b->peer)
		b->down = status;
}

static bool on_asked(void *arg, bw_peer_no peer)
{
	return peer == ((struct beowire *)arg)->peer;
}

static const struct bw_handlers handlers = {
	.message = on_message,
	.sent = on_sent,
	.pulled = on_pulled,
	.peer_down = on_down,
	.peer_needed = on_asked,
};

/* Endpoints that do nothing until this process is ended. */
static void idle_run(unsigned long n, int told)
{
	static struct beowire none = {.peer = BW_PEER_NONE};
	struct bw_ep_attr attr = {.handlers = &handlers, .arg = &none};
	struct bw_ep *ep;
	const char *why = "";

	setenv("BEOWIRE_RING", IDLE_RING, 1);
	while (n-- > 0)
		if (bw_ep_open(&ep, &attr, &why) < 0) {
			dprintf(told, "%.200s", why);
			return;
		}
	usleep(IDLE_SETTLE);
	dprintf(told, "\n");
	for (;;)
		pause();
}

/* They live in a process of their own, that ends with this one. */
static int idle_begin(struct beowire *b, unsigned long n)
{
	char said[PP_TEXT] = "no process";
	ssize_t got = -1;
	int told[2];

	if (n == 0)
		return 0;
	if (pipe2(told, O_CLOEXEC) < 0)
		return pp_fail("cannot make a pipe: %s", strerror(errno));
	b->idle = fork();
	if (b->idle == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(told[0]);
		idle_run(n, told[1]);
		_exit(1);
	}
	close(told[1]);
	if (b->idle > 0)
		got = read(told[0], said, sizeof(said) - 1);
	close(told[0]);
	said[got > 0 ? got : 0] = 0;
	return said[0] == '\n' ? 0 : pp_fail("cannot open %lu idle endpoints: %.200s", n, said);
}

static void idle_end(struct beowire *b)
{
	if (b->idle <= 0)
		return;
	kill(b->idle, SIGKILL);
	waitpid(b->idle, NULL, 0);
}

static void beowire_close(void *state)
{
	struct beowire *b = state;

	idle_end(b);
	if (b->ep)
		bw_ep_close(b->ep, CLOSE_NS);
	free(b);
}

static void *beowire_open(const struct pp_place *place, struct pp_card *mine)
{
	static const char *const wait[] = {
		[PP_SPIN] = "spin", [PP_BLOCK] = "block", [PP_ADAPTIVE] = "adaptive"};
	struct beowire *b = calloc(1, sizeof(*b));
	struct bw_ep_attr attr = {.handlers = &handlers, .arg = b};
	struct bw_addr addr;
	const char *why;

	_Static_assert(sizeof(addr) <= sizeof(mine->bytes), "an address fits on a card");
	if (!b) {
		pp_fail("out of memory");
		return NULL;
	}
	if (idle_begin(b, place->idle) < 0) {
		beowire_close(b);
		return NULL;
	}
	b->peer = BW_PEER_NONE;
	setenv("BEOWIRE_WAIT", wait[place->wait], 1);
	b->spin = place->wait == PP_SPIN;
	if (bw_ep_open(&b->ep, &attr, &why) < 0) {
		pp_fail("cannot open an endpoint: %s", why);
		beowire_close(b);
		return NULL;
	}
	bw_ep_addr(b->ep, &addr);
	memcpy(mine->bytes, &addr, sizeof(addr));
	return b;
}

static int beowire_meet(void *state, const struct pp_card *theirs)
{
	struct beowire *b = state;
	struct bw_addr addr;
	int error;

	memcpy(&addr, theirs->bytes, sizeof(addr));
	bw_ep_lock(b->ep);
	error = bw_peer_find(b->ep, &addr, &b->peer);
	bw_ep_unlock(b->ep);
	return error < 0 ? pp_fail("cannot reach the other side: %s", strerror(-error)) : 0;
}

/* Begin the pulls of envelopes that wait for one. */
static int pulls_begin(struct beowire *b)
{
	int error = 0;

	bw_ep_lock(b->ep);
	while (b->buf && b->wait_first != b->wait_end && error == 0) {
		error = bw_pull(b->ep, b->peer, &b->waiting[b->wait_first % PULLS_MAX], b->buf,
				b->room, b);
		b->wait_first += error == 0;
	}
	bw_ep_unlock(b->ep);
	return error < 0 && error != -EAGAIN ? pp_fail("pull: %s", strerror(-error)) : 0;
}

static int turn(struct beowire *b)
{
	if (b->down)
		return pp_fail("the other side is down: %s", strerror(-b->down));
	if (b->flooded)
		return pp_fail("the other side sent more than %d long messages ahead", PULLS_MAX);
	if (b->wait_first != __atomic_load_n(&b->wait_end, __ATOMIC_RELAXED) && pulls_begin(b) < 0)
		return -1;
	if (b->spin)
		bw_progress(b->ep);
	else
		bw_wait(b->ep, PP_STUCK_NS / 10);
	return 0;
}

static int counter_await(struct beowire *b, const uint64_t *counter, uint64_t value)
{
	uint64_t begin = 0, before = 0, now;

	for (uint64_t turns = 1; (now = __atomic_load_n(counter, __ATOMIC_RELAXED)) < value;
	     turns++) {
		if (turn(b) < 0)
			return -1;
		if (b->spin && turns % SPINS_A_LOOK)
			continue;
		begin = begin && now == before ? begin : pp_now();
		before = now;
		if (pp_now() - begin > PP_STUCK_NS)
			return pp_fail("nothing came from the other side");
	}
	return 0;
}

/* Make progress until *counter is `value`. Who sleeps holds the lock from the look at the counter
 * on: bw_wait() gives it away, so that the helper cannot serve in between, unnoticed. */
static int await(struct beowire *b, const uint64_t *counter, uint64_t value)
{
	int error;

	if (b->spin)
		return counter_await(b, counter, value);
	bw_ep_lock(b->ep);
	error = counter_await(b, counter, value);
	bw_ep_unlock(b->ep);
	return error;
}

static int message_send(struct beowire *b, const void *buf, size_t n)
{
	for (;;) {
		int r = bw_send(b->ep, b->peer, 1, 0, 0, buf, n, 0, b);

		b->begun += r == 0;
		if (r >= 0)
			return 0;
		if (r != -EAGAIN)
			return pp_fail("send: %s", strerror(-r));
		if (turn(b) < 0)
			return -1;
	}
}

static int beowire_send(void *state, const void *buf, size_t n)
{
	struct beowire *b = state;
	int error;

	bw_ep_lock(b->ep);
	error = message_send(b, buf, n);
	bw_ep_unlock(b->ep);
	return error;
}

static int beowire_receive(void *state, void *buf, size_t n)
{
	struct beowire *b = state;

	if (b->buf != buf || b->room != n) {
		bw_ep_lock(b->ep);
		b->buf = buf;
		b->room = n;
		bw_ep_unlock(b->ep);
	}
	return await(b, &b->arrived, ++b->taken);
}

static int beowire_flush(void *state)
{
	struct beowire *b = state;

	return await(b, &b->ended, b->begun);
}

static void beowire_describe(void *state, char text[PP_TEXT])
{
	struct beowire *b = state;

	snprintf(text, PP_TEXT, "%s", bw_peer_describe(b->ep, b->peer));
}

const struct pp_carrier pp_beowire = {
	.name = "beowire",
	.open = beowire_open,
	.meet = beowire_meet,
	.send = beowire_send,
	.receive = beowire_receive,
	.flush = beowire_flush,
	.describe = beowire_describe,
	.close = beowire_close,
};
