/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A run: set up, the loop over events, and the end, where everything must have been finished or
 * reported, both ends must agree, and idle engines must be quiet.
 */
#include "sim.h"

#include <stdarg.h>
#include <stdlib.h>

#define SIM_SETTLE_NS (10 * BW_S) /* steps in which the end waits for the last acknowledgements */
#define SIM_IDLE_NS   (20 * BW_S) /* in which idle engines are watched */

void sim_fail(struct sim *s, const char *format, ...)
{
	va_list args;

	if (s->failed)
		return;
	s->failed = true;
	va_start(args, format);
	vsnprintf(s->why, sizeof(s->why), format, args);
	va_end(args);
	sim_log(s, "BROKEN: %s", s->why);
}

void sim_log(struct sim *s, const char *format, ...)
{
	va_list args;

	if (!s->trace)
		return;
	fprintf(s->trace, "%12llu.%03u ", (unsigned long long)(s->now / 1000),
		(unsigned int)(s->now % 1000));
	va_start(args, format);
	vfprintf(s->trace, format, args);
	va_end(args);
	fputc('\n', s->trace);
}

static void sim_pattern_make(struct sim *s)
{
	uint32_t i, slot;
	uint64_t word;

	s->pattern = malloc(SIM_PATTERN + BW_FRAME_MAX_MTU + 8);
	if (!s->pattern)
		abort();
	for (i = 0; i < SIM_PATTERN; i += 8) {
		word = sim_random(&s->rng);
		memcpy(s->pattern + i, &word, 8);
	}
	memcpy(s->pattern + SIM_PATTERN, s->pattern, BW_FRAME_MAX_MTU + 8);
	if (s->reliable)
		return;
	s->index = calloc(SIM_INDEX, sizeof(*s->index));
	if (!s->index)
		abort();
	for (i = 0; i < SIM_PATTERN; i++) {
		memcpy(&word, s->pattern + i, 8);
		slot = (uint32_t)(sim_mix(word) % SIM_INDEX);
		while (s->index[slot])
			slot = (slot + 1) % SIM_INDEX;
		s->index[slot] = i + 1;
	}
}

/* A quantity of one port, where ports are uneven: between half and twice. */
static uint64_t sim_vary(struct sim *s, uint64_t x)
{
	return s->spec.uneven && x ? sim_between(&s->rng, x / 2 + 1, 2 * x) : x;
}

static void sim_ports_make(struct sim *s, struct sim_node *n)
{
	uint32_t plane;

	for (plane = 0; plane < s->spec.planes; plane++) {
		const struct sim_wire *w = &s->spec.wire[plane];

		n->out[plane].wire = n->in[plane].wire = *w;
		n->out[plane].wire.rate_bps = sim_vary(s, w->rate_bps);
		n->in[plane].wire.rate_bps = sim_vary(s, w->rate_bps);
		n->out[plane].wire.delay_ns = sim_vary(s, w->delay_ns);
		n->out[plane].wire.loss_ppm = (uint32_t)sim_vary(s, w->loss_ppm);
	}
}

struct sim *sim_new(const struct sim_spec *spec, const struct bw_protocol *protocol, uint64_t seed)
{
	struct sim *s = calloc(1, sizeof(*s));
	uint32_t i;

	if (!s)
		abort();
	s->seed = seed;
	s->spec = *spec;
	s->protocol = protocol;
	s->reliable = protocol == &bw_reliable;
	s->rng.state = sim_mix(seed + 1);
	s->working = true;
	sim_pattern_make(s);
	s->nodes = calloc(spec->nodes, sizeof(*s->nodes));
	if (!s->nodes)
		abort();
	s->fault = sim_fault_new(s);
	for (i = 0; i < spec->nodes; i++) {
		struct sim_node *n = &s->nodes[i];

		n->sim = s;
		n->number = i;
		n->identity = sim_random(&s->rng) | 1;
		n->head_copy = malloc(BW_HEAD_MAX);
		n->clock_offset = sim_chance(&s->rng, 500000) ? 0 : sim_below(&s->rng, 1ull << 44);
		sim_ports_make(s, n);
	}
	return s;
}

static void sim_dispatch(struct sim *s, const struct sim_event *e)
{
	struct sim_frame *f = e->what;
	struct sim_node *n = e->what;

	switch ((enum sim_event_kind)e->kind) {
	case SIM_AT_SWITCH:
		sim_wire_switch(s, f);
		break;
	case SIM_AT_NODE:
		sim_node_receive(&s->nodes[f->dst], f);
		break;
	case SIM_SERVE:
		sim_node_serve(n);
		break;
	case SIM_WAKE:
		if (e->arg == n->wake_gen)
			sim_node_wake(n);
		break;
	case SIM_WORK:
		if (e->arg == n->work_gen)
			sim_work_next(n);
		break;
	case SIM_TROUBLE:
		sim_trouble_begin(s, (enum sim_trouble)e->arg);
		break;
	case SIM_HEAL:
		sim_trouble_end(s, n, (enum sim_trouble)e->arg);
		break;
	case SIM_TCP_TIMER:
		sim_tcp_timer(e->what, e->arg);
		break;
	case SIM_OVERDUE:
		sim_prompt_check(s);
		break;
	}
}

/* One event; false when none is left before `until`. */
static bool sim_step(struct sim *s, uint64_t until)
{
	struct sim_event e;

	if (s->failed || !s->queue.used || s->queue.heap[0].at > until)
		return false;
	sim_queue_take(&s->queue, &e);
	s->now = e.at;
	sim_dispatch(s, &e);
	return true;
}

void sim_run_until(struct sim *s, uint64_t at)
{
	while (sim_step(s, at))
		;
	if (!s->failed)
		s->now = at;
}

void sim_begin(struct sim *s)
{
	uint32_t i;

	/* All addresses are known before the first one speaks. */
	for (i = 0; i < s->spec.nodes; i++)
		s->nodes[i].cfg.engine = (uint16_t)(1 + i % 3);
	for (i = 0; i < s->spec.nodes; i++)
		sim_node_start(&s->nodes[i]);
	sim_trouble_plan(s);
	sim_prompt_begin(s);
}

/* No new operations, and nothing goes wrong any more but what the wires always do. */
static void sim_calm(struct sim *s)
{
	uint32_t i, what;

	sim_log(s, "--- nothing new from now on");
	s->working = false;
	s->ended_ns = s->now;
	for (i = 0; i < s->spec.nodes; i++) {
		for (what = 0; what < SIM_TROUBLES; what++)
			sim_trouble_end(s, &s->nodes[i], (enum sim_trouble)what);
		sim_queue_add(&s->queue, s->now, SIM_WORK, &s->nodes[i], ++s->nodes[i].work_gen);
	}
}

static void sim_fail_pending(struct sim *s)
{
	static const char *const names[] = {
		[BW_OP_SEND] = "SEND", [BW_OP_PULL] = "PULL", [BW_OP_EXPOSE] = "EXPOSE"};
	uint32_t i, k;

	for (i = 0; i < s->spec.nodes; i++)
		for (k = 0; k < s->nodes[i].nops; k++) {
			const struct sim_op *op = &s->nodes[i].ops[k];

			if (op->type)
				sim_fail(s,
					 "node %u: %s to node %d, begun at %llu us, has neither "
					 "ended nor failed (%llu such)",
					 i, names[op->type], op->peer->remote,
					 (unsigned long long)(op->since / 1000),
					 (unsigned long long)s->pending);
		}
}

static bool sim_busy(const struct sim *s)
{
	uint32_t i;

	for (i = 0; i < s->spec.nodes; i++)
		if (s->nodes[i].engine && s->protocol->busy(s->nodes[i].engine))
			return true;
	return false;
}

/* Engines that have nothing to do hardly send. */
static void sim_check_idle(struct sim *s)
{
	uint64_t frames = s->frames, most;
	uint64_t pairs = (uint64_t)s->spec.nodes * s->spec.nodes * s->spec.planes;

	sim_run_until(s, s->now + SIM_IDLE_NS);
	/* Pings of watched peers, four in dead_ns, each answered; HELLOs on paths that are down. */
	most = pairs * (20 + 3 * 4 * SIM_IDLE_NS / s->spec.dead_ns);
	if (s->frames - frames > most)
		sim_fail(s, "%llu frames from idle engines in %llu s",
			 (unsigned long long)(s->frames - frames),
			 (unsigned long long)(SIM_IDLE_NS / BW_S));
}

static void sim_check_engines(struct sim *s)
{
	uint32_t i;

	for (i = 0; s->reliable && i < s->spec.nodes; i++) {
		const char *bad = s->nodes[i].engine ? bw_reliable_check(s->nodes[i].engine) : NULL;

		if (bad)
			sim_fail(s, "node %u: %s", i, bad);
		if (s->spec.clean && s->protocol->counters(s->nodes[i].engine)->retransmits)
			sim_fail(s, "node %u sent something twice without need", i);
	}
}

static void sim_end(struct sim *s)
{
	uint64_t bound = s->now + 2 * s->spec.dead_ns + 120 * BW_S;
	uint32_t i;

	while (s->pending && s->now < bound && sim_step(s, bound))
		;
	if (s->pending && !s->failed)
		sim_fail_pending(s);
	for (i = 0; i < 8 && !s->failed && (i == 0 || sim_busy(s)); i++)
		sim_run_until(s, s->now + SIM_SETTLE_NS);
	if (sim_busy(s))
		sim_fail(s, "an engine is busy although nothing is under way");
	sim_check_engines(s);
	if (s->reliable && !s->failed)
		sim_conserve_check(s);
	if (!s->failed)
		sim_check_idle(s);
	if (!s->failed)
		sim_oracle_final(s);
	for (i = 0; i < s->spec.nodes && !s->failed; i++)
		if (s->nodes[i].engine)
			sim_node_stop(&s->nodes[i], true);
	while (sim_step(s, UINT64_MAX))
		;
}

bool sim_run(struct sim *s)
{
	sim_begin(s);
	while (s->now < s->spec.work_ns && s->frames < s->spec.work_frames &&
	       sim_step(s, s->spec.work_ns))
		;
	if (!s->failed)
		sim_calm(s);
	sim_end(s);
	return !s->failed;
}

static void sim_node_free(struct sim_node *n)
{
	struct sim_peer *p, *next;
	uint32_t i;

	for (p = n->peers; p; p = next) {
		next = p->next;
		free(p);
	}
	for (i = 0; i < n->nbufs; i++)
		free(n->bufs[i].mem);
	for (i = 0; i < n->nchunks; i++)
		free(n->chunks[i]);
	while (n->ring_first) {
		struct sim_frame *f = n->ring_first;

		n->ring_first = f->next;
		free(f);
	}
	sim_audit_end(n);
	free(n->chunks);
	free(n->engine);
	free(n->bufs);
	free(n->ops);
	free(n->head_copy);
	free(n->quiet);
}

void sim_free(struct sim *s)
{
	struct sim_event e;
	struct sim_frame *f;
	uint32_t i;

	while (sim_queue_take(&s->queue, &e))
		if (e.kind == SIM_AT_SWITCH || e.kind == SIM_AT_NODE)
			free(e.what);
	sim_queue_free(&s->queue);
	for (i = 0; i < s->spec.nodes; i++)
		sim_node_free(&s->nodes[i]);
	for (i = 0; i < 4; i++) {
		while ((f = s->spare[i])) {
			s->spare[i] = f->next;
			free(f);
		}
	}
	sim_tcp_free(s);
	sim_fault_free(s);
	free(s->prompt);
	free(s->nodes);
	free(s->msgs);
	free(s->regions);
	free(s->pattern);
	free(s->index);
	free(s);
}
