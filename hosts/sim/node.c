/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A host: it drives its engine exactly as protocol.h says, under one virtual CPU that takes time
 * per received frame, with a finite receive ring, a clock of its own and memory that may be short.
 */
#include "sim.h"

#include <stdlib.h>

#include "sealing.h"
#include "slab.h"

#define SIM_CHECK_RUNS	512	     /* runs of a node between full checks of its engine */
#define SIM_SHRINK_RUNS 16	     /* runs between steps of looks at free memory */
#define SIM_SHRINK_STEP 32	     /* free objects of a step */
#define SIM_IDLE_RUNS	200	     /* wake-ups in a row that may have been for nothing */
#define SIM_LIVELOCK	300000	     /* frames of all nodes without any progress */
#define SIM_ROW		16	     /* frames of the ring that are offered as a row */
#define SIM_BATCH	8	     /* frames received before the engine is asked for frames */
#define SIM_RETRY_NS	(10 * BW_US) /* after a frame that the wire did not refuse was not sent */

struct bw_link_addr sim_node_addr(uint32_t number, uint8_t plane, uint8_t place)
{
	struct bw_link_addr a = {.link = plane, .len = 6};

	a.bytes[0] = 2;
	a.bytes[1] = place;
	a.bytes[3] = plane;
	a.bytes[4] = (uint8_t)(number >> 8);
	a.bytes[5] = (uint8_t)number;
	return a;
}

static struct bw_link_addr sim_frame_from(const struct sim_frame *f)
{
	return sim_node_addr(f->src, f->plane, f->place);
}

/* Number of the node with this address. */
static uint32_t sim_addr_node(const struct bw_link_addr *a)
{
	return (uint32_t)a->bytes[4] << 8 | a->bytes[5];
}

uint64_t sim_node_clock(const struct sim_node *n)
{
	uint64_t now = n->sim->now + n->clock_offset, step = n->sim->spec.clock_ns;

	return step ? now - now % step : now;
}

/* The simulator's time at which the host's clock shows `at` or more. */
static uint64_t sim_node_when(const struct sim_node *n, uint64_t at)
{
	uint64_t step = n->sim->spec.clock_ns;

	if (step)
		at = at + step - 1 < at ? at : (at + step - 1) / step * step;
	return at < n->clock_offset ? 0 : at - n->clock_offset;
}

static void sim_node_configure(struct sim_node *n)
{
	const struct sim_spec *spec = &n->sim->spec;
	uint32_t i;

	n->chance.state = sim_random(&n->sim->rng);
	n->cfg = (struct bw_config){
		.node = n->identity,
		.incarnation = (uint32_t)sim_random(&n->sim->rng) | 1,
		.cluster = 77,
		.engine = (uint16_t)(1 + n->number % 3),
		.rx_budget = spec->rx_budget,
		.charge_min = spec->charge_min,
		.features = spec->no_checksum ? 0 : BW_FEATURE_CHECKSUM,
		.dead_ns = spec->dead_ns,
		.ack_delay_ns = spec->ack_delay_ns,
		.ack_soon_ns = spec->ack_soon_ns,
		.piece = spec->piece,
	};
	for (i = 0; i < 8; i++) {
		n->cfg.link_mtu[i] = spec->wire[i < spec->planes ? i : 0].mtu;
		n->cfg.link_group[i] = spec->stripe;
		n->cfg.link_line[i] = spec->line;
		n->cfg.link_rows[i] = spec->line && i % 2;
	}
	if (spec->stripe)
		n->cfg.features |= BW_FEATURE_STRIPE;
	if (spec->longs)
		n->cfg.features |= BW_FEATURE_LONG;
	if (spec->encrypted)
		n->cfg.features |= BW_FEATURE_ENCRYPT;
	snprintf(n->cfg.name, sizeof(n->cfg.name), "node%u", n->number);
	n->cfg.keyed = spec->keyed;
	memset(n->cfg.key, 0x5A, sizeof(n->cfg.key));
}

void sim_node_start(struct sim_node *n)
{
	struct sim *s = n->sim;
	size_t bytes;

	sim_node_configure(n);
	bytes = (s->protocol->size(&n->cfg) + 63) & ~(size_t)63;
	n->engine = aligned_alloc(64, bytes);
	if (!n->engine)
		abort();
	memset(n->engine, 0xA5, bytes);
	if (s->protocol->open(n->engine, &n->cfg,
			      s->spec.direct ? &sim_host_ops_direct : &sim_host_ops, n,
			      sim_node_clock(n)))
		sim_fail(s, "node %u: open failed", n->number);
	n->blocked_until = 0;
	n->no_memory_until = 0;
	n->idle_runs = 0;
	n->wake_at = n->alarm_at = BW_NEVER;
	n->host_key = sim_random(&s->rng);
	n->host_reads = 0; /* those of an engine that was killed are over */
	n->host_base = sim_below(&s->rng, SIM_PATTERN);
	n->host_len = s->spec.bulk_max;
	n->host_buf = sim_buf_new(n, SIM_BUF_HOST, n->host_len, n->host_base);
	sim_audit_reset(n);
	sim_log(s, "node%u starts, incarnation %08x", n->number, n->cfg.incarnation);
	sim_queue_add(&s->queue, s->now, SIM_WORK, n, ++n->work_gen);
	sim_node_run(n);
}

static void sim_node_check(struct sim_node *n)
{
	const char *bad = n->sim->reliable ? bw_reliable_check(n->engine) : NULL;

	n->sim->checks++;
	if (bad)
		sim_fail(n->sim, "node %u: %s", n->number, bad);
}

/* One flat frame from the pieces that the engine names. */
static struct sim_frame *sim_node_flatten(struct sim_node *n, const struct bw_tx_frame *f)
{
	struct sim_frame *flat = sim_frame_new(n->sim, f->len);
	uint8_t *at = (uint8_t *)flat->data;
	const uint8_t *head = (const uint8_t *)f->head;
	uint32_t i, from = 0;

	for (i = 0; i < f->segments; i++) {
		const struct bw_tx_segment *g = &f->segment[i];
		struct sim_buf *b;

		memcpy(at, head + from, g->head_end - from);
		at += g->head_end - from;
		from = g->head_end;
		if (!g->buf) {
			memset(at, 0, g->len);
			at += g->len;
			continue;
		}
		b = sim_buf_get(n, g->buf);
		if (!b || b->mem || g->off > b->len || g->len > b->len - g->off) {
			sim_fail(n->sim, "node %u sends from a buffer that it does not have",
				 n->number);
			memset(at, 0, g->len);
		} else {
			memcpy(at, sim_content(n->sim, b->base, g->off), g->len);
		}
		at += g->len;
	}
	memcpy(at, head + from, f->head_len - from);
	at += f->head_len - from;
	if (f->seal.key) {
		memset(at, 0, BW_SEAL_TAG); /* until it is sealed */
		at += BW_SEAL_TAG;
	}
	if ((uint32_t)(at - (uint8_t *)flat->data) != f->len)
		sim_fail(n->sim, "node %u: pieces of a frame do not add up", n->number);
	return flat;
}

static void sim_node_send(struct sim_node *n, const struct bw_tx_frame *f)
{
	struct sim *s = n->sim;
	struct sim_frame *flat;
	uint32_t dst = sim_addr_node(&f->to);

	if (f->to.link >= s->spec.planes || dst >= s->spec.nodes ||
	    (f->to.bytes[1] && !s->spec.move_every_ns && !s->spec.replay_every_ns)) {
		sim_fail(s, "node %u sends to an address that does not exist", n->number);
		return;
	}
	flat = sim_node_flatten(n, f);
	flat->src = (uint16_t)n->number;
	flat->dst = (uint16_t)dst;
	flat->plane = f->to.link;
	flat->place = n->place[flat->plane];
	flat->astray = f->to.bytes[1] != s->nodes[dst].place[flat->plane];
	flat->serial = s->frames;
	/* At first contact nobody can tell; later every address must have answered. */
	if (s->spec.steady && f->to.bytes[1] >= SIM_FORGED &&
	    ((struct bw_hdr *)flat->data)->type == BW_FRAME_DATA)
		sim_fail(s, "node %u sends data to an address that never answered", n->number);
	sim_audit_frame(n, f, flat); /* which reads what it says */
	if (s->trace) {
		char text[600];

		sim_text_frame(text, sizeof(text), flat->data,
			       flat->len - (f->seal.key ? BW_SEAL_TAG : 0));
		sim_log(s, "node%u>node%u.%u #%llu %s", n->number, dst, flat->plane,
			(unsigned long long)flat->serial, text);
	}
	n->frames_out++;
	if (f->seal.key)
		bw_seal_frame(flat->data, flat->len - BW_SEAL_TAG, &f->seal);
	sim_wire_send(s, flat);
}

/* again: *f is as the call before left it. */
static bool sim_node_next(struct sim_node *n, struct bw_tx_frame *f, bool again)
{
	const struct bw_protocol *protocol = n->sim->protocol;

	if (again && protocol->next_alike && !n->sim->spec.singly &&
	    protocol->next_alike(n->engine, f))
		return true;
	return protocol->next_frame(n->engine, f, sim_node_clock(n));
}

/* Frames until there are none, or the link is full; true if there was one. */
static bool sim_node_transmit(struct sim_node *n)
{
	struct sim *s = n->sim;
	struct bw_tx_frame f;
	bool any = false;

	while (n->blocked_until <= s->now && sim_node_next(n, &f, any)) {
		any = true;
		if (sim_wire_ready(s, n, f.to.link % SIM_PLANES) &&
		    !sim_chance(&s->rng, s->spec.unsent_ppm)) {
			sim_node_send(n, &f);
			continue;
		}
		s->protocol->unsent(n->engine, sim_node_clock(n));
		sim_log(s, "node%u cannot send", n->number);
		n->blocked_until = s->now + SIM_RETRY_NS;
		if (!sim_wire_ready(s, n, f.to.link % SIM_PLANES))
			n->blocked_until = (s->now + n->out[f.to.link].busy_until) / 2 + 1;
	}
	return any;
}

/* Of a lost peer a call may have told nothing yet. */
static bool sim_node_untold(const struct sim_node *n)
{
	return n->sim->reliable && bw_reliable_untold(n->engine);
}

static bool sim_node_event(struct sim_node *n, struct bw_event *e)
{
	bool found;

	do {
		found = n->sim->protocol->next_event(n->engine, e);
	} while (!found && sim_node_untold(n));
	return found;
}

/* All of them: messages may lie in the frame that was received. */
static bool sim_node_events(struct sim_node *n)
{
	struct bw_event *e = &n->sim->event; /* all zero, but while one is taken */
	bool any = n->nquiet != 0;
	uint32_t i;

	for (i = 0; i < n->nquiet; i++)
		sim_event_quiet(n, n->quiet[i]);
	n->nquiet = 0;
	while (!n->sim->failed && sim_node_event(n, e)) {
		sim_event_take(n, e);
		any = true;
		memset(e, 0, sizeof(*e));
	}
	return any;
}

/* In the order of addresses. */
static void *sim_node_chunk(struct sim_node *n)
{
	struct bw_grown *chunk = aligned_alloc(64, sizeof(*chunk) + BW_GROW_BYTES);
	uint32_t i = n->nchunks++;

	if (!chunk)
		abort();
	memset(chunk, 0, sizeof(*chunk));
	memset(chunk + 1, 0x5A, BW_GROW_BYTES);
	for (; i && (uintptr_t)n->chunks[i - 1] > (uintptr_t)chunk; i--)
		n->chunks[i] = n->chunks[i - 1];
	n->chunks[i] = chunk;
	return chunk + 1;
}

static void sim_node_feed(struct sim_node *n)
{
	struct sim *s = n->sim;

	if (!s->protocol->hungry(n->engine))
		return;
	if (s->now >= n->no_memory_until && s->spec.no_memory_ns && sim_chance(&s->rng, 300000))
		n->no_memory_until = s->now + sim_below(&s->rng, s->spec.no_memory_ns);
	if (s->now < n->no_memory_until) {
		s->protocol->grow(n->engine, NULL);
		return;
	}
	n->chunks = realloc(n->chunks, (n->nchunks + 1) * sizeof(*n->chunks));
	if (!n->chunks)
		abort();
	s->protocol->grow(n->engine, sim_node_chunk(n));
}

/* What the engine needs no more goes, step by step, and nobody may look at it then. */
static void sim_node_shrink(struct sim_node *n)
{
	uint32_t left = SIM_SHRINK_STEP, i;
	struct bw_grown *gone;

	if (n->sim->protocol != &bw_reliable)
		return;
	while ((gone = bw_reliable_shrink(n->engine, n->chunks, n->nchunks, &left))) {
		for (i = 0; n->chunks[i] != gone; i++)
			;
		n->nchunks--;
		memmove(&n->chunks[i], &n->chunks[i + 1], (n->nchunks - i) * sizeof(*n->chunks));
		free(gone);
	}
}

/* Deadlines mostly move later: an event that comes too early is only put off when it comes. */
static void sim_node_alarm(struct sim_node *n)
{
	if (n->wake_at >= n->alarm_at)
		return;
	n->alarm_at = n->wake_at;
	sim_queue_add(&n->sim->queue, n->alarm_at, SIM_WAKE, n, ++n->wake_gen);
}

static void sim_node_plan(struct sim_node *n)
{
	struct sim *s = n->sim;
	uint64_t deadline = s->protocol->next_deadline(n->engine), at;

	if (deadline == BW_NEVER && !s->protocol->hungry(n->engine)) {
		n->wake_at = BW_NEVER;
		return;
	}
	at = deadline == BW_NEVER ? n->no_memory_until : sim_node_when(n, deadline);
	at = at > n->blocked_until ? at : n->blocked_until;
	if (s->protocol->hungry(n->engine) && n->no_memory_until > s->now &&
	    n->no_memory_until < at)
		at = n->no_memory_until;
	n->wake_at = at > s->now ? at : s->now + 1;
	sim_node_alarm(n);
}

bool sim_node_run(struct sim_node *n)
{
	struct sim *s = n->sim;
	bool any = false, more;

	if (!n->engine || n->paused)
		return false;
	do {
		more = sim_node_transmit(n);
		more |= sim_node_events(n);
		sim_node_feed(n);
		any |= more;
	} while (more && !s->failed && n->blocked_until <= s->now);
	if (s->frames - s->progress_frames > SIM_LIVELOCK)
		sim_fail(s, "%u frames without any progress", SIM_LIVELOCK);
	if (++n->runs % SIM_CHECK_RUNS == 0)
		sim_node_check(n);
	if (n->runs % SIM_SHRINK_RUNS == 0)
		sim_node_shrink(n);
	sim_node_plan(n);
	return any;
}

void sim_node_wake(struct sim_node *n)
{
	bool blocked = n->blocked_until > n->sim->now;

	n->alarm_at = BW_NEVER;
	if (n->wake_at > n->sim->now) {
		sim_node_alarm(n);
		return;
	}
	n->wake_at = BW_NEVER;
	n->idle_runs = sim_node_run(n) || blocked ? 0 : n->idle_runs + 1;
	if (n->idle_runs > SIM_IDLE_RUNS)
		sim_fail(n->sim, "node %u: %u wake-ups in a row for nothing", n->number,
			 SIM_IDLE_RUNS);
}

static struct bw_rx_frame sim_node_frame(struct sim_frame *f)
{
	return (struct bw_rx_frame){.head = f->data,
				    .head_len = f->len,
				    .len = f->len,
				    .from = sim_frame_from(f),
				    .mark = f->mark,
				    .cookie = f};
}

/* The engine has used the frame, or dropped it for this reason. */
static void sim_node_taken(struct sim_node *n, const struct sim_frame *f, int r)
{
	struct sim *s = n->sim;

	sim_audit_received(n, f, r);
	if (s->trace)
		sim_log(s, "      node%u takes #%llu%s%s%s", n->number,
			(unsigned long long)f->serial, f->mark ? " marked" : "", r ? ": " : "",
			r ? bw_drop_name((enum bw_drop)(-r)) : "");
	if (r > 0 || r <= -BW_DROP_REASONS)
		sim_fail(s, "node %u: rx() returned %d", n->number, r);
}

static void sim_node_rx(struct sim_node *n, struct sim_frame *f)
{
	struct sim *s = n->sim;
	struct bw_rx_frame rx = sim_node_frame(f);

	if (s->spec.scatter && f->len > BW_HEAD_MAX) {
		memcpy(n->head_copy, f->data, BW_HEAD_MAX);
		rx.head = n->head_copy;
		rx.head_len = BW_HEAD_MAX;
	}
	n->current = f;
	n->shown = 1;
	n->idle_runs = 0;
	sim_node_taken(n, f, s->protocol->rx(n->engine, &rx, sim_node_clock(n)));
	sim_node_events(n);
	n->current = NULL;
	sim_frame_free(s, f);
}

static struct sim_frame *sim_node_unring(struct sim_node *n)
{
	struct sim_frame *f = n->ring_first;

	n->ring_first = f->next;
	n->ring_used--;
	return f;
}

/* The first frame of the ring, and what carries it on: their number. */
static uint32_t sim_node_rx_row(struct sim_node *n)
{
	struct sim *s = n->sim;
	struct bw_rx_frame row[SIM_ROW];
	struct sim_frame *f, *first;
	uint32_t count = 0, taken, i;
	int r;

	for (f = n->ring_first; f && count < SIM_ROW; f = f->next)
		row[count++] = sim_node_frame(f);
	n->idle_runs = 0;
	n->current = n->ring_first;
	n->shown = count;
	r = s->protocol->rx_row(n->engine, row, count, &taken, sim_node_clock(n));
	first = sim_node_unring(n);
	sim_node_taken(n, first, r);
	if (taken < 1 || taken > count)
		sim_fail(s, "node %u: rx_row() took %u of %u frames", n->number, taken, count);
	for (i = 1; i < taken && n->ring_first; i++) {
		f = sim_node_unring(n);
		sim_node_taken(n, f, 0);
		sim_frame_free(s, f);
	}
	sim_node_events(n);
	n->current = NULL;
	sim_frame_free(s, first);
	return taken;
}

void sim_node_receive(struct sim_node *n, struct sim_frame *f)
{
	struct sim *s = n->sim;

	if (f->kind != SIM_FRAME_ENGINE) {
		sim_tcp_receive(s, f);
		return;
	}
	if (!n->engine) {
		sim_frame_free(s, f);
		return;
	}
	if (!n->paused && !s->spec.rx_cost_ns) {
		sim_node_rx(n, f);
		sim_node_run(n);
		return;
	}
	if (n->ring_used == s->spec.ring) {
		s->fate[SIM_FATE_RING]++;
		n->ring_drops++;
		sim_log(s, "      #%llu node%u's ring is full", (unsigned long long)f->serial,
			n->number);
		sim_frame_free(s, f);
		return;
	}
	if (n->ring_used > s->spec.ring / 2)
		f->mark = true;
	f->next = NULL;
	if (n->ring_first)
		n->ring_last->next = f;
	else
		n->ring_first = f;
	n->ring_last = f;
	n->ring_used++;
	if (!n->serving && !n->paused) {
		n->serving = true;
		sim_queue_add(&s->queue, s->now + s->spec.rx_cost_ns, SIM_SERVE, n, 0);
	}
}

void sim_node_serve(struct sim_node *n)
{
	struct sim *s = n->sim;
	bool rows = s->protocol->rx_row && !s->spec.scatter && !s->spec.singly;
	uint32_t taken = 1;

	n->serving = false;
	if (!n->ring_first || n->paused || !n->engine)
		return;
	if (rows)
		taken = sim_node_rx_row(n);
	else
		sim_node_rx(n, sim_node_unring(n));
	if (n->ring_first) {
		n->serving = true;
		sim_queue_add(&s->queue, s->now + taken * s->spec.rx_cost_ns, SIM_SERVE, n, 0);
	}
	if (!n->ring_first || ++n->batch % SIM_BATCH == 0)
		sim_node_run(n);
}

/* A process may be killed between rx() and next_event(): what was not taken is close()'s to put
 * back. */
static void sim_node_untaken(struct sim_node *n)
{
	struct sim_frame *f = n->ring_first;
	struct bw_rx_frame rx;

	if (!f)
		return;
	rx = sim_node_frame(f);
	n->current = f;
	n->shown = 1;
	sim_audit_received(n, f, n->sim->protocol->rx(n->engine, &rx, sim_node_clock(n)));
	n->current = NULL;
}

void sim_node_tally(const struct sim_node *n, struct bw_counters *sum)
{
	const struct bw_counters *c = n->sim->protocol->counters(n->engine);
	uint32_t i;

	sum->retransmits += c->retransmits;
	sum->spurious += c->spurious;
	for (i = 0; i < BW_DROP_REASONS; i++)
		sum->drop[i] += c->drop[i];
}

/* What a closed engine says, at once and in the time to come: its frames leave now, each with a
 * fate of its own. */
static void sim_node_farewell(struct sim_node *n, bool heard)
{
	struct sim *s = n->sim;
	uint64_t now, at = sim_node_clock(n);
	struct bw_tx_frame f;

	do {
		now = at;
		while (s->protocol->next_frame(n->engine, &f, now) && !s->failed)
			if (heard)
				sim_node_send(n, &f);
		at = s->protocol->next_deadline(n->engine);
	} while (at > now && at != BW_NEVER && !s->failed);
}

void sim_node_stop(struct sim_node *n, bool farewell)
{
	struct sim *s = n->sim;
	struct sim_frame *next;

	sim_log(s, "node%u %s", n->number, farewell ? "closes" : "dies");
	sim_node_untaken(n);
	s->protocol->close(n->engine, sim_node_clock(n));
	sim_node_farewell(n, farewell);
	sim_node_tally(n, &s->ended);
	if (n->engine_bufs)
		sim_fail(s, "node %u: %u buffers not put back by close()", n->number,
			 n->engine_bufs);
	for (; n->ring_first; n->ring_first = next) {
		next = n->ring_first->next;
		sim_frame_free(s, n->ring_first);
	}
	n->ring_used = 0;
	n->paused = false;
	sim_buf_end(n, n->host_buf);
	sim_op_forget_all(n);
	n->nquiet = 0;
	while (n->nchunks)
		free(n->chunks[--n->nchunks]);
	free(n->engine);
	n->engine = NULL;
	n->wake_gen++;
	n->wake_at = n->alarm_at = BW_NEVER;
	n->work_gen++;
}

int sim_node_submit(struct sim_node *n, struct bw_op *op)
{
	struct sim_peer *p;
	int r;

	n->idle_runs = 0;
	r = n->sim->protocol->submit(n->engine, op, sim_node_clock(n));
	if (r != -ENOTCONN)
		return r;
	/* The peer is lost, and the event that says so waits behind the one being taken. */
	p = sim_peer_find(n, op->peer);
	if (p)
		p->lost = true;
	return -EAGAIN;
}
