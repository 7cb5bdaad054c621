/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the hosts do: a random mixture of everything that the interface offers, or the steady
 * streams that measurements need. A region is offered by a message that carries its number.
 */
#include "sim.h"

#define SIM_CODE_PLAIN	0
#define SIM_CODE_REGION 1 /* imm: number of a region exposed to the receiver */
#define SIM_CODE_ECHO	2 /* please send a message back */
#define SIM_CODE_PONG	3

static struct sim_peer *sim_work_connect(struct sim_node *n, uint32_t remote)
{
	struct sim *s = n->sim;
	struct bw_op op = {.type = BW_OP_CONNECT};
	struct sim_peer *p;
	uint8_t plane;

	op.connect.engine = s->nodes[remote].cfg.engine;
	if (!sim_chance(&s->rng, 100000) || s->spec.steady)
		op.connect.node = s->nodes[remote].identity;
	if (sim_chance(&s->rng, 200000))
		op.connect.inc = s->nodes[remote].cfg.incarnation;
	for (plane = 0; plane < s->spec.planes; plane++)
		if (!op.connect.node || s->spec.steady || !sim_chance(&s->rng, 200000))
			op.connect.path[op.connect.paths++] =
				sim_node_addr(remote, plane, s->nodes[remote].place[plane]);
	if (!op.connect.paths)
		op.connect.path[op.connect.paths++] =
			sim_node_addr(remote, 0, s->nodes[remote].place[0]);
	if (sim_node_submit(n, &op))
		return NULL;
	p = sim_peer_find(n, op.peer);
	if (!p)
		p = sim_peer_new(n, op.peer, (int32_t)remote);
	p->named = true;
	for (plane = 0; plane < op.connect.paths; plane++)
		p->planes |= (uint8_t)(1u << op.connect.path[plane].link);
	sim_log(s, "node%u: CONNECT node%u is peer %x", n->number, remote, op.peer);
	n->live[remote] = p;
	return p;
}

/* Some peer that is not gone; a new one by CONNECT where there is none. NULL for now. */
static struct sim_peer *sim_work_reach(struct sim_node *n, uint32_t remote)
{
	struct sim_peer *p = n->live[remote];

	if (p && !p->gone)
		return p->leaving ? NULL : p;
	return sim_work_connect(n, remote);
}

static bool sim_work_send(struct sim_node *n, struct sim_peer *p, uint32_t len, uint8_t code,
			  uint64_t imm)
{
	struct sim *s = n->sim;
	struct bw_op op = {.type = BW_OP_SEND, .peer = p->handle};
	uint64_t number, off = sim_below(&s->rng, 16);
	struct sim_op *mine;
	struct sim_msg *m;
	int r;

	number = sim_oracle_message(s, p, len);
	m = &s->msgs[number];
	m->src_ep = (uint8_t)sim_below(&s->rng, SIM_EPS);
	m->dst_ep = (uint8_t)sim_below(&s->rng, SIM_EPS);
	m->code = code;
	m->imm = code == SIM_CODE_REGION ? imm : sim_random(&s->rng);
	op.cookie = sim_op_new(n, p, BW_OP_SEND);
	mine = sim_op_get(n, op.cookie);
	mine->object = number;
	if (len)
		mine->buf = sim_buf_new(n, SIM_BUF_SOURCE, off + len, m->base + SIM_PATTERN - off);
	op.send.buf = mine->buf;
	op.send.buf_off = off;
	op.send.len = len;
	op.send.tag = sim_oracle_tag(s, number);
	op.send.imm = m->imm;
	op.send.code = code;
	op.send.dst_ep = m->dst_ep;
	op.send.src_ep = m->src_ep;
	op.send.quiet = mine->quiet = number % 2;
	op.send.urgent = sim_chance(&s->rng, 300000);
	r = sim_node_submit(n, &op);
	if (!r) {
		m->seq = p->tx_seq[m->src_ep][m->dst_ep]++;
		return true;
	}
	sim_op_end(n, op.cookie);
	s->nmsgs--;
	if (r != -EAGAIN)
		sim_fail(s, "node %u: SEND of %u bytes gives %d", n->number, len, r);
	return false;
}

static bool sim_work_expose(struct sim_node *n, struct sim_peer *p, uint64_t len)
{
	struct sim *s = n->sim;
	struct bw_op op = {.type = BW_OP_EXPOSE, .peer = p->handle};
	uint64_t number = sim_oracle_region(s, p, len), off = sim_below(&s->rng, 16);
	struct sim_region *g = &s->regions[number];
	struct sim_op *mine;

	op.cookie = sim_op_new(n, p, BW_OP_EXPOSE);
	mine = sim_op_get(n, op.cookie);
	mine->object = number;
	mine->buf = sim_buf_new(n, SIM_BUF_SOURCE, off + len, g->base + SIM_PATTERN - off);
	op.expose.buf = mine->buf;
	op.expose.buf_off = off;
	op.expose.len = len;
	g->op = op.cookie;
	if (sim_node_submit(n, &op)) {
		sim_op_end(n, op.cookie);
		s->nregions--;
		return false;
	}
	g->key = op.expose.key;
	if (!g->key)
		sim_fail(s, "node %u: EXPOSE gives key 0", n->number);
	/* Without its message the region stays until it is retracted. */
	return sim_work_send(n, p, (uint32_t)sim_below(&s->rng, 100), SIM_CODE_REGION, number);
}

struct sim_pull {
	uint64_t region, key, off, len, base;
	bool final, host_key, must_fail;
};

static bool sim_work_pull(struct sim_node *n, struct sim_peer *p, const struct sim_pull *w)
{
	struct sim *s = n->sim;
	struct bw_op op = {.type = BW_OP_PULL, .peer = p->handle};
	struct sim_op *mine;
	int r;

	op.cookie = sim_op_new(n, p, BW_OP_PULL);
	mine = sim_op_get(n, op.cookie);
	mine->object = w->region;
	mine->base = w->base;
	mine->len = w->len;
	mine->final = w->final;
	mine->host_key = w->host_key;
	mine->must_fail = w->must_fail;
	mine->buf = sim_buf_new(n, SIM_BUF_TARGET, SIM_TARGET_OFF + w->len, 0);
	sim_buf_get(n, mine->buf)->op = op.cookie;
	op.pull.buf = mine->buf;
	op.pull.buf_off = SIM_TARGET_OFF;
	op.pull.key = w->key;
	op.pull.off = w->off;
	op.pull.len = w->len;
	op.pull.flags = (w->final ? BW_PULL_FINAL : 0) | (w->host_key ? BW_PULL_HOST_KEY : 0);
	if (!w->host_key) {
		s->regions[w->region].pulls++;
		s->regions[w->region].finals += w->final && w->len && !w->must_fail;
	}
	r = sim_node_submit(n, &op);
	mine->pull_id = op.pull.id;
	if (r) {
		sim_op_end(n, op.cookie);
		if (r != -EAGAIN)
			sim_fail(s, "node %u: PULL gives %d", n->number, r);
		return false;
	}
	if (w->final && !w->must_fail)
		s->regions[w->region].final_asked = true;
	return true;
}

/* Part of a region, or nothing of it. */
static struct sim_pull sim_work_part(struct sim *s, uint64_t number, bool final)
{
	const struct sim_region *g = &s->regions[number];
	struct sim_pull w = {.region = number, .key = g->key, .len = g->len, .final = final};

	if (!s->spec.quiet && sim_chance(&s->rng, 300000)) {
		w.off = sim_below(&s->rng, g->len + 1);
		w.len = sim_below(&s->rng, g->len - w.off + 1);
	}
	w.base = g->base + w.off;
	return w;
}

static void sim_work_fetch(struct sim_node *n, struct sim_peer *p, uint64_t number)
{
	struct sim *s = n->sim;
	struct sim_pull w;
	uint64_t dice = s->spec.quiet ? 0 : sim_below(&s->rng, 100);

	if (dice >= 95)
		return; /* not wanted */
	if (dice >= 85) {
		w = sim_work_part(s, number, true);
		w.must_fail = true;
		if (dice >= 90)
			w.key ^= 1ull << sim_below(&s->rng, 64);
		else
			w.off = s->regions[number].len + 1 - sim_below(&s->rng, w.len + 1);
		w.final = dice % 2;
		if (w.off + w.len <= s->regions[number].len && dice < 90)
			return;
		sim_work_pull(n, p, &w);
	}
	for (; dice >= 60 && dice < 85; dice -= 8) {
		w = sim_work_part(s, number, false);
		sim_work_pull(n, p, &w);
	}
	w = sim_work_part(s, number, true);
	sim_work_pull(n, p, &w);
}

void sim_work_answer(struct sim_node *n, struct sim_peer *p, const struct bw_event *e)
{
	struct sim *s = n->sim;

	if (e->code == SIM_CODE_REGION) {
		sim_work_fetch(n, p, e->imm);
	} else if (e->code == SIM_CODE_ECHO && !p->leaving) {
		sim_work_send(n, p, (uint32_t)e->len, SIM_CODE_PONG, 0);
	} else if (e->code == SIM_CODE_PONG && s->spec.work == SIM_WORK_PING) {
		n->pings++;
		n->ping_sum_ns += s->now - n->ping_sent;
		if (s->now - n->ping_sent > n->ping_worst_ns)
			n->ping_worst_ns = s->now - n->ping_sent;
		if (s->working)
			sim_queue_add(&s->queue, s->now + s->spec.gap_ns, SIM_WORK, n, n->work_gen);
	}
}

static uint32_t sim_work_len(struct sim *s)
{
	uint32_t min = s->reliable ? 1 : 8;

	if (s->reliable && sim_chance(&s->rng, 50000))
		return 0;
	if (sim_chance(&s->rng, 20000))
		return s->spec.eager_max;
	return (uint32_t)sim_scale(&s->rng, min, s->spec.eager_max);
}

/* A message, now and then a longer one than everybody takes. */
static void sim_work_message(struct sim_node *n, struct sim_peer *p)
{
	struct sim *s = n->sim;
	uint32_t len = 0;

	if (s->reliable && s->spec.longs && sim_chance(&s->rng, 30000))
		len = (uint32_t)sim_between(&s->rng, BW_EAGER_LIMIT + 1, BW_LONG_LIMIT);
	if (!len || !bw_reliable_takes(n->engine, p->handle, len))
		len = sim_work_len(s);
	sim_work_send(n, p, len, SIM_CODE_PLAIN, 0);
}

static void sim_work_burst(struct sim_node *n, struct sim_peer *p)
{
	uint64_t many = sim_scale(&n->sim->rng, 2, 200);

	while (many-- &&
	       sim_work_send(n, p, (uint32_t)sim_between(&n->sim->rng, 8, 64), SIM_CODE_PLAIN, 0))
		;
}

static void sim_work_host_pull(struct sim_node *n, struct sim_peer *p)
{
	struct sim *s = n->sim;
	const struct sim_node *to = &s->nodes[p->remote];
	struct sim_pull w = {.host_key = true, .key = to->host_key};

	/* Only the peer's word for it counts; an earlier incarnation's key is refused. */
	if (!p->up || p->remote_inc != to->cfg.incarnation || !to->engine)
		return;
	w.len = sim_scale(&s->rng, 1, to->host_len);
	w.off = sim_below(&s->rng, to->host_len - w.len + 1);
	w.base = to->host_base + w.off;
	if (!s->spec.quiet && sim_chance(&s->rng, 50000)) {
		w.must_fail = true;
		w.key++;
	}
	sim_work_pull(n, p, &w);
}

/* A random operation of this type that is under way at n and has not been ended by the host. */
static struct sim_op *sim_work_some(struct sim_node *n, enum bw_op_type type)
{
	uint32_t i, at;

	if (!n->nops)
		return NULL;
	at = (uint32_t)sim_below(&n->sim->rng, n->nops);
	for (i = 0; i < n->nops; i++) {
		struct sim_op *op = &n->ops[(at + i) % n->nops];

		if (op->type == type && !op->canceled)
			return op;
	}
	return NULL;
}

static void sim_work_cancel(struct sim_node *n)
{
	struct sim_op *mine = sim_work_some(n, BW_OP_PULL);
	struct bw_op op = {.type = BW_OP_CANCEL_PULL};
	int r;

	if (!mine)
		return;
	op.pull_id = mine->pull_id;
	r = sim_node_submit(n, &op);
	if (r)
		sim_fail(n->sim, "node %u: CANCEL_PULL of a pull under way gives %d", n->number, r);
	mine->canceled = true;
}

static void sim_work_retract(struct sim_node *n, struct sim_op *mine)
{
	struct sim_region *g;
	struct bw_op op = {.type = BW_OP_RETRACT};
	int r;

	if (!mine)
		return;
	g = &n->sim->regions[mine->object];
	op.expose.key = g->key;
	r = sim_node_submit(n, &op);
	g->retracted = true;
	if (r == -EAGAIN)
		return;
	if (r)
		sim_fail(n->sim, "node %u: RETRACT of a region under way gives %d", n->number, r);
	mine->canceled = true;
}

/* Nothing more is read of what this host's own memory has been asked for; askers may ask anew. */
static void sim_work_forbid(struct sim_node *n)
{
	struct bw_op op = {.type = BW_OP_FORBID, .forbid.key = n->host_key};
	int r = sim_node_submit(n, &op);

	n->forbade = true;
	if (r && r != -EAGAIN)
		sim_fail(n->sim, "node %u: FORBID gives %d", n->number, r);
	else if (!!n->host_reads != bw_reliable_serving(n->engine, n->host_key))
		sim_fail(n->sim, "node %u: what is read of its memory is miscounted", n->number);
}

static void sim_work_leave(struct sim_node *n, struct sim_peer *p)
{
	struct bw_op op = {.type = BW_OP_DISCONNECT, .peer = p->handle, .on = true};

	if (sim_node_submit(n, &op))
		return;
	sim_log(n->sim, "node%u: DISCONNECT peer %x", n->number, p->handle);
	p->leaving = true;
}

void sim_work_enough(struct sim_node *n, struct sim_peer *p)
{
	struct sim *s = n->sim;

	if (s->spec.leave_ppm && s->working && !p->leaving &&
	    sim_chance(&s->rng, s->spec.leave_ppm))
		sim_work_leave(n, p);
}

static void sim_work_switch(struct sim_node *n, struct sim_peer *p, enum bw_op_type type)
{
	struct bw_op op = {.type = type, .peer = p->handle, .on = sim_chance(&n->sim->rng, 500000)};
	int r = sim_node_submit(n, &op);

	if (r && r != -EAGAIN)
		sim_fail(n->sim, "node %u: operation %d gives %d", n->number, type, r);
}

/* One operation of the mixture. */
static void sim_work_mix(struct sim_node *n)
{
	struct sim *s = n->sim;
	uint32_t remote = (uint32_t)sim_below(&s->rng, s->spec.nodes - 1);
	uint64_t dice = sim_below(&s->rng, 1000);
	struct sim_peer *p;

	p = sim_work_reach(n, remote + (remote >= n->number));
	if (!p)
		return;
	if (!s->reliable)
		dice = dice < 995 || s->spec.quiet ? 0 : 995;
	if (s->spec.quiet && dice >= 900)
		dice -= 900;
	if (dice < 500)
		sim_work_message(n, p);
	else if (dice < 560)
		sim_work_send(n, p, sim_work_len(s), SIM_CODE_ECHO, 0);
	else if (dice < 600)
		sim_work_burst(n, p);
	else if (dice < 800)
		sim_work_expose(n, p, sim_scale(&s->rng, 1, s->spec.bulk_max) - 1);
	else if (dice < 900)
		sim_work_host_pull(n, p);
	else if (dice < 940)
		sim_work_cancel(n);
	else if (dice < 967)
		sim_work_retract(n, sim_work_some(n, BW_OP_EXPOSE));
	else if (dice < 970)
		sim_work_forbid(n);
	else if (dice < 990)
		sim_work_switch(n, p, dice % 2 ? BW_OP_WATCH : BW_OP_PRESSURE);
	else if (!s->spec.steady && (dice < 994 || !s->reliable))
		sim_work_leave(n, p);
}

/* Keep `depth` transfers under way. */
static void sim_work_stream(struct sim_node *n)
{
	struct sim *s = n->sim;
	bool incast = s->spec.work == SIM_WORK_INCAST, more = true;
	bool eager = s->spec.work == SIM_WORK_EAGER ||
		     (incast && s->spec.stream_len <= s->spec.eager_max);
	struct sim_peer *p;

	if ((n->number == 0) == incast || (!incast && n->number > 0))
		return;
	p = sim_work_reach(n, incast ? 0 : 1);
	while (p && more && (eager ? p->pending : p->exposed) < s->spec.depth)
		more = eager ? sim_work_send(n, p, s->spec.stream_len, SIM_CODE_PLAIN, 0)
			     : sim_work_expose(n, p, s->spec.stream_len);
}

static void sim_work_ping(struct sim_node *n)
{
	struct sim_peer *p;

	if (n->number != 0)
		return;
	p = sim_work_reach(n, 1);
	n->ping_sent = n->sim->now;
	if (p)
		sim_work_send(n, p, n->sim->spec.stream_len, SIM_CODE_ECHO, 0);
}

/* The end: regions that nobody pulls any more are taken back. */
static void sim_work_drain(struct sim_node *n)
{
	uint32_t i;

	for (i = 0; i < n->nops; i++) {
		struct sim_op *op = &n->ops[i];

		if (op->type == BW_OP_EXPOSE && !op->canceled &&
		    !n->sim->regions[op->object].pulls &&
		    (n->sim->now - op->since > BW_S || sim_chance(&n->sim->rng, 10000)))
			sim_work_retract(n, op);
	}
	if (n->pending)
		sim_queue_add(&n->sim->queue, n->sim->now + 100 * BW_MS, SIM_WORK, n, n->work_gen);
}

void sim_work_ended(struct sim_node *n, struct sim_peer *p)
{
	enum sim_work work = n->sim->spec.work;

	if (n->sim->working && work != SIM_WORK_MIX && work != SIM_WORK_PING && !p->gone)
		sim_work_stream(n);
}

void sim_work_next(struct sim_node *n)
{
	struct sim *s = n->sim;

	if (!n->engine)
		return;
	if (!s->working)
		sim_work_drain(n);
	else if (s->spec.work == SIM_WORK_PING)
		sim_work_ping(n);
	else if (s->spec.work != SIM_WORK_MIX)
		sim_work_stream(n);
	else if (n->pending >= s->spec.pending)
		n->full = true;
	else if (!n->paused)
		sim_work_mix(n);
	if (s->working && s->spec.work != SIM_WORK_PING && !n->full)
		sim_queue_add(&s->queue, s->now + sim_below(&s->rng, 2 * s->spec.gap_ns + 1),
			      SIM_WORK, n, n->work_gen);
	sim_node_run(n);
}
