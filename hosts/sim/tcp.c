/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A model of one bulk TCP flow with CUBIC (RFC 9438) and selective acknowledgements, so that an
 * engine can share a queue with it. It moves lengths only, no bytes: segment numbers and what a
 * real stack would know.
 */
#include "sim.h"

#include <stdlib.h>

#define TCP_WINDOW     16384u /* segments that may be under way; a power of two */
#define TCP_HEADERS    40     /* bytes of IP and TCP before the payload */
#define TCP_ACK_BYTES  52
#define TCP_BETA       0.7 /* RFC 9438 4.6 */
#define TCP_C	       0.4 /* RFC 9438 5.1, segments per second cubed */
#define TCP_DUPTHRESH  3
#define TCP_RTO_MIN    (200 * BW_MS) /* of Linux */
#define TCP_BURST      65536u	     /* bytes handed over at once, as segmentation offload does */
#define TCP_BURST_PART 3 /* but no more than this part of the window: tcp_tso_win_divisor there */

enum tcp_segment { TCP_FREE, TCP_SENT, TCP_LOST, TCP_ARRIVED };

/* Inside a frame, in place of the bytes. */
struct tcp_frame {
	struct sim_tcp *flow;
	uint64_t number; /* segment, or the one that caused this ACK */
	uint64_t below;	 /* ACK: all below have arrived */
	uint64_t sent_ns;
};

struct sim_tcp {
	struct sim_tcp *next;
	struct sim *sim;
	uint32_t from, to, mss, timer_gen;
	/* sender, in segments */
	uint64_t acked, to_send,
		high;	     /* all below acked; next new one; highest known to have come */
	uint64_t recover;    /* losses below belong to an answered event */
	uint64_t lost_below; /* all that are known to be lost */
	uint32_t flying;
	uint8_t state[TCP_WINDOW];
	uint64_t sent_at[TCP_WINDOW];
	uint64_t order[TCP_WINDOW], sends; /* in which order copies were sent */
	double cwnd, ssthresh, w_max, w_est, k;
	bool limited;	/* by the window, else it does not grow (RFC 7661) */
	bool timed_out; /* and not yet recovered: the window grows nevertheless */
	uint64_t epoch; /* when the current cubic began; 0: not begun */
	uint64_t srtt, rttvar;
	uint64_t high_order; /* order number of the latest copy known to have come */
	/* receiver */
	uint64_t expected;
	bool here[TCP_WINDOW];
};

struct sim_tcp *sim_tcp_new(struct sim *s, uint32_t from, uint32_t to, uint32_t mss, uint64_t start)
{
	struct sim_tcp *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->sim = s;
	t->from = from;
	t->to = to;
	t->mss = mss;
	t->cwnd = 10;
	t->ssthresh = 1e9;
	t->next = s->tcps;
	s->tcps = t;
	sim_queue_add(&s->queue, start, SIM_TCP_TIMER, t, t->timer_gen);
	return t;
}

void sim_tcp_free(struct sim *s)
{
	struct sim_tcp *t;

	while ((t = s->tcps)) {
		s->tcps = t->next;
		free(t);
	}
}

uint64_t sim_tcp_bytes(const struct sim_tcp *t)
{
	return t->expected * t->mss;
}

static void tcp_emit(struct sim_tcp *t, bool ack, uint64_t number, uint64_t sent_ns)
{
	struct sim_frame *f = sim_frame_new(t->sim, sizeof(struct tcp_frame));
	struct tcp_frame *w = (struct tcp_frame *)f->data;

	f->kind = ack ? SIM_FRAME_TCP_ACK : SIM_FRAME_TCP_DATA;
	f->len = ack ? TCP_ACK_BYTES : t->mss + TCP_HEADERS;
	f->src = (uint16_t)(ack ? t->to : t->from);
	f->dst = (uint16_t)(ack ? t->from : t->to);
	f->plane = 0;
	f->serial = t->sim->frames;
	*w = (struct tcp_frame){
		.flow = t, .number = number, .below = t->expected, .sent_ns = sent_ns};
	sim_wire_send(t->sim, f);
}

static void tcp_timer_set(struct sim_tcp *t)
{
	uint64_t rto = t->srtt ? t->srtt + 4 * t->rttvar : BW_S;

	if (rto < TCP_RTO_MIN)
		rto = TCP_RTO_MIN;
	sim_queue_add(&t->sim->queue, t->sim->now + rto, SIM_TCP_TIMER, t, ++t->timer_gen);
}

static void tcp_send_segment(struct sim_tcp *t, uint64_t number)
{
	uint32_t i = number % TCP_WINDOW;

	t->state[i] = TCP_SENT;
	t->sent_at[i] = t->sim->now;
	t->order[i] = ++t->sends;
	t->flying++;
	tcp_emit(t, false, number, t->sim->now);
}

/* The lowest segment known to be lost, or the next new one. */
static uint64_t tcp_next(const struct sim_tcp *t)
{
	uint64_t n;

	for (n = t->acked; n < t->lost_below; n++)
		if (t->state[n % TCP_WINDOW] == TCP_LOST)
			return n;
	return t->to_send;
}

/* New data leaves in bursts, as a stack with segmentation offload sends it. A model without them
 * fits each segment exactly into the place in the queue that the one before it made free, and never
 * loses one: the "phase effect" of Floyd and Jacobson (1991). */
static bool tcp_burst_waits(const struct sim_tcp *t)
{
	uint32_t burst = TCP_BURST / t->mss, part = (uint32_t)t->cwnd / TCP_BURST_PART;

	if (burst > part)
		burst = part;
	return t->flying && t->flying + burst > (uint32_t)t->cwnd && tcp_next(t) == t->to_send;
}

static void tcp_push(struct sim_tcp *t)
{
	t->limited = true;
	if (tcp_burst_waits(t))
		return;
	while (t->flying < (uint32_t)t->cwnd) {
		uint64_t n = tcp_next(t);

		if (t->to_send - t->acked >= TCP_WINDOW - 1 ||
		    !sim_wire_ready(t->sim, &t->sim->nodes[t->from], 0)) {
			t->limited = false;
			return;
		}

		tcp_send_segment(t, n);
		if (n == t->to_send)
			t->to_send++;
	}
}

/* Cube root by Newton's method; here x is a number of segments, so that 40 steps are plenty. */
static double tcp_cube_root(double x)
{
	double y = x > 1 ? x : 1;
	int i;

	for (i = 0; i < 40; i++)
		y -= (y * y * y - x) / (3 * y * y);
	return y;
}

static void tcp_grow(struct sim_tcp *t, uint32_t segments)
{
	double seconds, target;

	if (t->cwnd < t->ssthresh) {
		t->cwnd += segments;
		return;
	}
	if (!t->epoch) {
		t->epoch = t->sim->now;
		t->k = t->w_max > t->cwnd ? tcp_cube_root((t->w_max - t->cwnd) / TCP_C) : 0;
		if (t->w_max < t->cwnd)
			t->w_max = t->cwnd;
		t->w_est = t->cwnd;
	}
	seconds = (double)(t->sim->now - t->epoch + t->srtt) / 1e9 - t->k;
	target = TCP_C * seconds * seconds * seconds + t->w_max;
	/* RFC 9438 4.3: as fast as Reno would */
	t->w_est += 3 * (1 - TCP_BETA) / (1 + TCP_BETA) * segments / t->cwnd;
	if (target < t->w_est)
		target = t->w_est;
	if (target > 1.5 * t->cwnd)
		target = 1.5 * t->cwnd;
	if (target > t->cwnd)
		t->cwnd += (target - t->cwnd) / t->cwnd * segments;
}

static void tcp_shrink(struct sim_tcp *t)
{
	/* RFC 9438 4.7: give way to newcomers */
	t->w_max = t->cwnd < t->w_max ? t->cwnd * (1 + TCP_BETA) / 2 : t->cwnd;
	t->cwnd = t->cwnd * TCP_BETA > 2 ? t->cwnd * TCP_BETA : 2;
	t->ssthresh = t->cwnd;
	t->epoch = 0;
	t->recover = t->to_send;
}

/* Segments sent well before one that has come are lost. */
static void tcp_detect(struct sim_tcp *t)
{
	bool lost = false;
	uint64_t n;

	for (n = t->acked; n < t->high; n++) {
		uint32_t i = n % TCP_WINDOW;

		if (t->state[i] != TCP_SENT || t->order[i] + TCP_DUPTHRESH > t->high_order)
			continue;
		t->state[i] = TCP_LOST;
		t->lost_below = n + 1 > t->lost_below ? n + 1 : t->lost_below;
		t->flying--;
		lost |= n >= t->recover;
	}
	if (lost)
		tcp_shrink(t);
}

static void tcp_sample(struct sim_tcp *t, uint64_t sample)
{
	uint64_t diff = sample > t->srtt ? sample - t->srtt : t->srtt - sample;

	if (!t->srtt) {
		t->srtt = sample;
		t->rttvar = sample / 2;
		return;
	}
	t->rttvar = t->rttvar - t->rttvar / 4 + diff / 4;
	t->srtt = t->srtt - t->srtt / 8 + sample / 8;
}

static uint32_t tcp_arrived(struct sim_tcp *t, uint64_t number)
{
	uint32_t i = number % TCP_WINDOW;

	if (number < t->acked || number >= t->to_send || t->state[i] == TCP_ARRIVED)
		return 0;
	if (t->state[i] == TCP_SENT)
		t->flying--;
	t->state[i] = TCP_ARRIVED;
	if (t->order[i] > t->high_order)
		t->high_order = t->order[i];
	if (number + 1 > t->high)
		t->high = number + 1;
	return 1;
}

static void tcp_ack(struct sim_tcp *t, const struct tcp_frame *w)
{
	uint32_t fresh = tcp_arrived(t, w->number);

	tcp_sample(t, t->sim->now - w->sent_ns);
	for (; t->acked < w->below; t->acked++) {
		fresh += tcp_arrived(t, t->acked);
		t->state[t->acked % TCP_WINDOW] = TCP_FREE;
	}
	tcp_detect(t);
	t->timed_out = t->timed_out && t->acked < t->recover;
	if (fresh && t->limited && (t->acked >= t->recover || t->timed_out))
		tcp_grow(t, fresh);
	if (fresh)
		tcp_timer_set(t);
	tcp_push(t);
}

static void tcp_data(struct sim_tcp *t, const struct tcp_frame *w)
{
	if (w->number >= t->expected)
		t->here[w->number % TCP_WINDOW] = true;
	while (t->here[t->expected % TCP_WINDOW]) {
		t->here[t->expected % TCP_WINDOW] = false;
		t->expected++;
	}
	tcp_emit(t, true, w->number, w->sent_ns);
}

void sim_tcp_receive(struct sim *s, struct sim_frame *f)
{
	struct tcp_frame w = *(struct tcp_frame *)f->data;

	if (f->kind == SIM_FRAME_TCP_ACK)
		tcp_ack(w.flow, &w);
	else
		tcp_data(w.flow, &w);
	sim_frame_free(s, f);
}

void sim_tcp_timer(struct sim_tcp *t, uint32_t generation)
{
	uint64_t n;

	if (generation != t->timer_gen)
		return;
	if (t->flying) { /* nothing came for a whole timeout */
		for (n = t->acked; n < t->to_send; n++)
			if (t->state[n % TCP_WINDOW] == TCP_SENT)
				t->state[n % TCP_WINDOW] = TCP_LOST;
		t->flying = 0;
		t->lost_below = t->to_send;
		tcp_shrink(t);
		t->cwnd = 1;
		t->timed_out = true;
	}
	tcp_push(t);
	tcp_timer_set(t);
}
