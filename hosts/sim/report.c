/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measurements of the reliable protocol on virtual links, where everything but the protocol is
 * ideal: what a loss costs, whether many senders share a port fairly, and whether a bulk transfer
 * leaves TCP its part.
 */
#include "report.h"

#include <stdarg.h>

void report_row(struct report *r, const char *format, ...)
{
	char text[300], *word, *save = NULL;
	va_list args;
	bool first = true;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!r->json) {
		printf("%s\n", text);
		fflush(stdout);
		return;
	}
	printf("%s\n  {", r->rows++ ? "," : "");
	for (word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');

		if (!value)
			continue;
		*value++ = 0;
		printf(*value >= 'a' ? "%s\"%s\": \"%s\"" : "%s\"%s\": %s", first ? "" : ", ", word,
		       value);
		first = false;
	}
	printf("}");
}

struct sim_spec report_spec(uint32_t nodes, uint64_t rate, uint32_t mtu)
{
	struct sim_spec spec = {.name = "report",
				.nodes = nodes,
				.steady = true,
				.quiet = true,
				.work = SIM_WORK_STREAM,
				.depth = 4,
				.stream_len = 1u << 20,
				.rx_cost_ns = 500,
				.ring = 1024,
				.charge_min = 2048,
				.rx_budget = 1024 * 2048,
				.work_frames = UINT64_MAX,
				.wire = {{.rate_bps = rate,
					  .delay_ns = 10 * BW_US,
					  /* hosts are never as regular as a model: without some
					   * noise one flow may lock another out of a full queue */
					  .jitter_ns = 20 * BW_US,
					  .queue_bytes = 512 * 1024,
					  .mtu = mtu}}};

	sim_scenario_defaults(&spec);
	return spec;
}

uint64_t report_bytes(const struct sim *s, uint32_t node)
{
	return s->protocol->counters(s->nodes[node].engine)->rx_payload;
}

/* What part of the wire's bits was payload for this node, since it had `before` bytes. */
static double report_goodput(const struct sim *s, uint32_t node, uint64_t before, uint64_t ns)
{
	return (double)(report_bytes(s, node) - before) * 8e9 / (double)ns /
	       (double)s->spec.wire[0].rate_bps;
}

static double report_stream(const struct sim_spec *spec, uint64_t ns)
{
	double sum = 0;
	uint64_t seed;

	for (seed = 1; seed <= REPORT_SEEDS; seed++) {
		struct sim *s = sim_new(spec, &bw_reliable, seed);
		uint64_t before;

		sim_begin(s);
		sim_run_until(s, REPORT_WARM);
		before = report_bytes(s, 1);
		sim_run_until(s, REPORT_WARM + ns);
		sum += report_goodput(s, 1, before, ns);
		sim_free(s);
	}
	return sum / REPORT_SEEDS;
}

static void report_loss(struct report *r)
{
	static const uint32_t mtus[] = {1500, 9000}, depths[] = {1, 4, 16};
	uint32_t m, d, eager;

	for (m = 0; m < 2; m++) {
		for (d = 0; d < 3; d++) {
			for (eager = 0; eager < 2; eager++) {
				struct sim_spec spec = report_spec(2, GBIT, mtus[m]);
				double clean, lossy;

				spec.depth = depths[d];
				if (eager) {
					spec.work = SIM_WORK_EAGER;
					spec.stream_len = BW_EAGER_LIMIT;
				}
				clean = report_stream(&spec, 2 * BW_S);
				spec.wire[0].loss_ppm = 10000;
				lossy = report_stream(&spec, 2 * BW_S);
				report_row(r,
					   "what=loss mtu=%u bytes=%u in_flight=%u clean=%.3f "
					   "lossy=%.3f share=%.3f",
					   mtus[m], spec.stream_len, depths[d], clean, lossy,
					   lossy / clean);
			}
		}
	}
}

static void report_incast_one(struct report *r, uint64_t rate, uint32_t mtu, uint32_t len)
{
	struct sim_spec spec = report_spec(17, rate, mtu);
	uint64_t before[17] = {0}, ns = 2 * BW_S, i;
	double sum = 0, squares = 0, least = 1e9, total;
	struct sim *s;

	spec.work = SIM_WORK_INCAST;
	spec.stream_len = len;
	spec.depth = 8;
	spec.rx_cost_ns = 300;
	s = sim_new(&spec, &bw_reliable, 1);
	sim_begin(s);
	sim_run_until(s, REPORT_WARM);
	before[0] = report_bytes(s, 0);
	for (i = 1; i < 17; i++)
		before[i] = s->nodes[i].gave_bytes;
	sim_run_until(s, REPORT_WARM + ns);
	total = report_goodput(s, 0, before[0], ns);
	for (i = 1; i < 17; i++) {
		double x = (double)(s->nodes[i].gave_bytes - before[i]);

		sum += x;
		squares += x * x;
		least = x < least ? x : least;
	}
	report_row(r,
		   "what=incast gbit=%llu mtu=%u bytes=%u goodput=%.3f jain=%.3f least=%.3f "
		   "queue_drops=%llu ring_drops=%llu frames=%llu",
		   (unsigned long long)(rate / GBIT), mtu, len, total,
		   squares > 0 ? sum * sum / (16 * squares) : 0, sum > 0 ? 16 * least / sum : 0,
		   (unsigned long long)s->fate[SIM_FATE_QUEUE],
		   (unsigned long long)s->fate[SIM_FATE_RING], (unsigned long long)s->frames);
	sim_free(s);
}

static void report_incast(struct report *r)
{
	report_incast_one(r, GBIT, 1500, 20000);
	report_incast_one(r, GBIT, 9000, 20000);
	report_incast_one(r, GBIT, 1500, 256u << 10);
	report_incast_one(r, GBIT, 9000, 256u << 10);
	report_incast_one(r, GBIT, 1500, 1u << 20);
	report_incast_one(r, GBIT, 9000, 1u << 20);
	report_incast_one(r, 10 * GBIT, 9000, 20000);
	report_incast_one(r, 10 * GBIT, 9000, 1u << 20);
}

/* Node 0 streams to node 1 beside a TCP flow from node 2 to node 1; one begins earlier. */
static void report_tcp_one(struct report *r, uint32_t mtu, uint32_t queue, const char *first)
{
	struct sim_spec spec = report_spec(3, GBIT, mtu);
	bool tcp_first = !strcmp(first, "tcp");
	uint64_t ours, theirs, from = 2 * BW_S, ns = 8 * BW_S;
	struct sim_tcp *t;
	struct sim *s;
	double a, b;

	spec.wire[0].queue_bytes = queue;
	s = sim_new(&spec, &bw_reliable, 1);
	/* Only the switch's port to node 1 is narrow. Senders whose own links are as slow would be
	 * spaced so evenly by these that whoever fills the queue first never loses a frame. */
	s->nodes[0].out[0].wire.rate_bps = s->nodes[2].out[0].wire.rate_bps = 10 * GBIT;
	t = sim_tcp_new(s, 2, 1, mtu - 52, tcp_first ? 0 : 500 * BW_MS);
	s->working = !tcp_first;
	sim_begin(s);
	sim_run_until(s, 500 * BW_MS);
	if (tcp_first) {
		s->working = true;
		sim_queue_add(&s->queue, s->now, SIM_WORK, &s->nodes[0], s->nodes[0].work_gen);
	}
	sim_run_until(s, from);
	ours = report_bytes(s, 1);
	theirs = sim_tcp_bytes(t);
	sim_run_until(s, from + ns);
	a = report_goodput(s, 1, ours, ns);
	b = (double)(sim_tcp_bytes(t) - theirs) * 8e9 / (double)ns / (double)GBIT;
	report_row(r, "what=tcp mtu=%u queue=%u first=%s beowire=%.3f tcp=%.3f share=%.3f", mtu,
		   queue, first, a, b, a + b > 0 ? a / (a + b) : 0);
	sim_free(s);
}

static void report_tcp(struct report *r)
{
	static const uint32_t queues[] = {65536, 262144, 1048576};
	uint32_t q, mtu;

	for (mtu = 1500; mtu <= 9000; mtu += 7500) {
		for (q = 0; q < 3; q++) {
			report_tcp_one(r, mtu, queues[q], "tcp");
			report_tcp_one(r, mtu, queues[q], "beowire");
		}
	}
}

static void report_ping(struct report *r, uint32_t loss_ppm)
{
	struct sim_spec spec = report_spec(2, GBIT, 1500);
	struct sim *s;

	spec.work = SIM_WORK_PING;
	spec.stream_len = 8;
	spec.gap_ns = 0;
	spec.wire[0].loss_ppm = loss_ppm;
	s = sim_new(&spec, &bw_reliable, 1);
	s->spec.gap_ns = 10 * BW_US;
	sim_begin(s);
	sim_run_until(s, 5 * BW_S);
	report_row(r, "what=ping loss=%.3f round_trips=%llu mean_us=%.2f worst_us=%.1f",
		   loss_ppm / 1e6, (unsigned long long)s->nodes[0].pings,
		   (double)s->nodes[0].ping_sum_ns / 1e3 /
			   (double)(s->nodes[0].pings ? s->nodes[0].pings : 1),
		   (double)s->nodes[0].ping_worst_ns / 1e3);
	sim_free(s);
}

bool sim_report_known(const char *only)
{
	return !strcmp(only, "loss") || !strcmp(only, "incast") || !strcmp(only, "tcp") ||
	       !strcmp(only, "ping") || !strcmp(only, "stripe") || !strcmp(only, "distance");
}

static bool report_wanted(const char *only, const char *what)
{
	return !only || !strcmp(only, what);
}

int sim_report(const char *only, bool json, uint64_t first, uint64_t last)
{
	struct report r = {.json = json, .first = first, .last = last};

	if (json)
		printf("[");
	if (report_wanted(only, "loss"))
		report_loss(&r);
	if (report_wanted(only, "incast"))
		report_incast(&r);
	if (report_wanted(only, "tcp"))
		report_tcp(&r);
	if (report_wanted(only, "ping")) {
		report_ping(&r, 0);
		report_ping(&r, 10000);
	}
	if (report_wanted(only, "stripe"))
		report_stripe(&r);
	if (report_wanted(only, "distance"))
		report_distance(&r);
	if (json)
		printf("\n]\n");
	return 0;
}
