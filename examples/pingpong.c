/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The point-to-point benchmark: one-way latency, one-directional bandwidth and message rate between
 * rank 0 and the last rank; the ranks between sleep. Rank 0 measures batches of round trips
 * (latency), or windows of messages that a short reply acknowledges (bandwidth and rate), and
 * reports percentiles together with every sample, so that others can do their own statistics.
 */
#include "common.h"
#include "samples.h"

#include <getopt.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char help[] =
	"usage: mpirun -n RANKS pingpong [options]\n"
	"Measures between rank 0 and the last rank.\n"
	"  --mode M       latency (default): one way, half of a polled round trip\n"
	"                 bandwidth: windows of messages to the last rank, each acknowledged\n"
	"                 rate: the same, told as messages per second\n"
	"  --sizes LIST   message sizes in bytes, with commas; k m g allowed (default 8 for rate,\n"
	"                 1m for bandwidth, 0,8,64,512,4k,32k,256k,1m for latency)\n"
	"  --iters N      round trips, or windows, for each size (default: about half a second)\n"
	"  --warmup N     round trips, or windows, before that (default: a tenth of --iters)\n"
	"  --batch N      round trips timed together, latency only (default 10; 1 up from 64 "
	"KiB).\n"
	"                 Percentiles are of batch means; 1 times each round trip alone\n"
	"  --window N     messages in flight, bandwidth and rate (default 64)\n"
	"  --verify       fill and check every byte, by message; disturbs the times\n"
	"  --json FILE    write results and all samples as JSON to FILE, '-' for stdout\n"
	"  --help         print this\n"
	"Exits with 0, with 1 if a message came damaged, with 2 on bad arguments.\n";

enum mode { MODE_LATENCY, MODE_BANDWIDTH, MODE_RATE };

static const char *const mode_names[] = {"latency", "bandwidth", "rate"};

enum tag { TAG_MESSAGE = 1, TAG_REPLY = 2 };

#define SIZES_MAX	   64
#define SIZE_MAX_BYTES	   (1ull << 30)
#define WINDOW_BYTES_MAX   (4ull << 30)
#define BATCH_SINGLE_BYTES (64u << 10) /* from this size on a clock read per message is nothing */

struct options {
	enum mode mode;
	uint64_t sizes[SIZES_MAX];
	size_t size_count;
	uint64_t iters, warmup, batch; /* 0: chosen by size */
	uint64_t window;
	bool warmup_given, verify;
	const char *json; /* NULL: text */
};

/* One side of the pair, with what a run for one message size needs. */
struct pair {
	int rank, peer;
	bool first; /* rank 0, which measures */
	bool verify;
	int bytes;
	int window;
	char *buffer; /* window slots of bytes */
	MPI_Request *requests;
	uint64_t sequence; /* of the next message, names its content */
};

static void sizes_read(struct options *options, const char *list)
{
	options->size_count =
		ex_parse_integers("--sizes", list, 0, SIZE_MAX_BYTES, options->sizes, SIZES_MAX);
}

static enum mode mode_read(const char *text)
{
	for (size_t i = 0; i < sizeof(mode_names) / sizeof(mode_names[0]); i++)
		if (strcmp(text, mode_names[i]) == 0)
			return (enum mode)i;
	ex_quit(EX_EXIT_USAGE, "--mode: '%s' is none of latency, bandwidth, rate", text);
}

static void options_check(struct options *options)
{
	static const char *const sizes_default[] = {"0,8,64,512,4k,32k,256k,1m", "1m", "8"};

	if (options->size_count == 0)
		sizes_read(options, sizes_default[options->mode]);
	if (options->mode == MODE_LATENCY)
		options->window = 1;
	for (size_t i = 0; i < options->size_count; i++)
		if (options->sizes[i] * options->window > WINDOW_BYTES_MAX)
			ex_quit(EX_EXIT_USAGE,
				"a window of %llu messages of %llu bytes is over "
				"4 GiB; choose a smaller --window or --sizes",
				(unsigned long long)options->window,
				(unsigned long long)options->sizes[i]);
}

static struct options options_read(int argc, char **argv)
{
	static const struct option table[] = {
		{"mode", required_argument, NULL, 'm'},	 {"sizes", required_argument, NULL, 's'},
		{"iters", required_argument, NULL, 'i'}, {"warmup", required_argument, NULL, 'w'},
		{"batch", required_argument, NULL, 'b'}, {"window", required_argument, NULL, 'W'},
		{"json", required_argument, NULL, 'j'},	 {"verify", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},	 {0},
	};
	const uint64_t count_max = 1u << 30;
	struct options options = {.window = 64};
	int option;

	while ((option = ex_option(argc, argv, table, help)) != EX_OPTIONS_END) {
		switch (option) {
		case 'm':
			options.mode = mode_read(optarg);
			break;
		case 's':
			sizes_read(&options, optarg);
			break;
		case 'i':
			options.iters = ex_parse_integer("--iters", optarg, 1, count_max);
			break;
		case 'w':
			options.warmup = ex_parse_integer("--warmup", optarg, 0, count_max);
			options.warmup_given = true;
			break;
		case 'b':
			options.batch = ex_parse_integer("--batch", optarg, 1, count_max);
			break;
		case 'W':
			options.window = ex_parse_integer("--window", optarg, 1, 1u << 16);
			break;
		case 'j':
			options.json = optarg;
			break;
		case 'v':
			options.verify = true;
			break;
		}
	}
	options_check(&options);
	return options;
}

static char *pair_slot(const struct pair *pair, int index)
{
	return pair->buffer + (size_t)index * (size_t)pair->bytes;
}

static void pair_fill(struct pair *pair, int index)
{
	if (pair->verify)
		ex_pattern_fill(pair_slot(pair, index), (size_t)pair->bytes, pair->sequence++);
}

static void pair_check(struct pair *pair, int index)
{
	size_t bytes = (size_t)pair->bytes, good;

	if (!pair->verify)
		return;
	good = ex_pattern_check(pair_slot(pair, index), bytes, pair->sequence);
	if (good != bytes)
		ex_abort("message %llu of %zu bytes differs at byte %zu",
			 (unsigned long long)pair->sequence, bytes, good);
	pair->sequence++;
}

static void receive_checked(struct pair *pair)
{
	MPI_Status status;
	int bytes;

	MPI_Recv(pair->buffer, pair->bytes, MPI_BYTE, pair->peer, TAG_MESSAGE, MPI_COMM_WORLD,
		 &status);
	if (!pair->verify)
		return;
	MPI_Get_count(&status, MPI_BYTE, &bytes);
	if (bytes != pair->bytes)
		ex_abort("got %d bytes instead of %d", bytes, pair->bytes);
	pair_check(pair, 0);
}

static void send_filled(struct pair *pair)
{
	pair_fill(pair, 0);
	MPI_Send(pair->buffer, pair->bytes, MPI_BYTE, pair->peer, TAG_MESSAGE, MPI_COMM_WORLD);
}

static void round_trips(struct pair *pair, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		if (pair->first) {
			send_filled(pair);
			receive_checked(pair);
		} else {
			receive_checked(pair);
			send_filled(pair);
		}
	}
}

/* One window: all its messages in flight, then a reply without data once all have come. */
static void window_once(struct pair *pair)
{
	for (int i = 0; i < pair->window; i++) {
		if (pair->first) {
			pair_fill(pair, i);
			MPI_Isend(pair_slot(pair, i), pair->bytes, MPI_BYTE, pair->peer,
				  TAG_MESSAGE, MPI_COMM_WORLD, &pair->requests[i]);
		} else {
			MPI_Irecv(pair_slot(pair, i), pair->bytes, MPI_BYTE, pair->peer,
				  TAG_MESSAGE, MPI_COMM_WORLD, &pair->requests[i]);
		}
	}
	MPI_Waitall(pair->window, pair->requests, MPI_STATUSES_IGNORE);
	if (pair->first) {
		MPI_Recv(NULL, 0, MPI_BYTE, pair->peer, TAG_REPLY, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		return;
	}
	for (int i = 0; i < pair->window; i++)
		pair_check(pair, i);
	MPI_Send(NULL, 0, MPI_BYTE, pair->peer, TAG_REPLY, MPI_COMM_WORLD);
}

static void pair_run(struct pair *pair, enum mode mode, uint64_t count)
{
	if (mode == MODE_LATENCY) {
		round_trips(pair, count);
		return;
	}
	for (uint64_t i = 0; i < count; i++)
		window_once(pair);
}

/* How often to measure: --iters, else about half a second by a guess at 1 us and 1 GB/s. */
static uint64_t iters_for(const struct options *options, uint64_t bytes)
{
	const uint64_t aim_ns = 500000000, least = 20, message_ns = 5000;
	uint64_t iteration_ns;

	if (options->iters)
		return options->iters;
	iteration_ns = (message_ns + bytes) * (options->mode == MODE_LATENCY ? 2 : options->window);
	return aim_ns / iteration_ns > least ? aim_ns / iteration_ns : least;
}

static uint64_t batch_for(const struct options *options, uint64_t bytes, uint64_t iters)
{
	uint64_t batch = options->batch ? options->batch : (bytes < BATCH_SINGLE_BYTES ? 10 : 1);

	if (options->mode != MODE_LATENCY)
		return 1;
	return batch < iters ? batch : iters;
}

/* Measures one size on both ranks of the pair; the samples count at rank 0. */
static struct samples pair_measure(const struct options *options, uint64_t bytes, int peer)
{
	uint64_t iters = iters_for(options, bytes), batch = batch_for(options, bytes, iters);
	uint64_t warmup = options->warmup_given ? options->warmup : iters / 10 + 1;
	struct samples samples = {
		.count = iters / batch,
		.divisor = options->mode == MODE_LATENCY ? 2 * batch : 1,
	};
	struct pair pair = {
		.peer = peer,
		.first = peer != 0,
		.verify = options->verify,
		.bytes = (int)bytes,
		.window = (int)options->window,
		.buffer = ex_alloc(bytes * options->window),
		.requests = ex_alloc(options->window * sizeof(MPI_Request)),
	};
	uint64_t start_ns, end_ns;

	samples.batch_ns = ex_alloc(samples.count * sizeof(*samples.batch_ns));
	pair_run(&pair, options->mode, warmup);
	start_ns = ex_now_ns();
	for (size_t i = 0; i < samples.count; i++) {
		pair_run(&pair, options->mode, batch);
		end_ns = ex_now_ns();
		samples.batch_ns[i] = end_ns - start_ns;
		start_ns = end_ns;
	}
	free(pair.requests);
	free(pair.buffer);
	return samples;
}

/* The price of one clock read, the only thing that a measurement adds to a batch. */
static double clock_read_ns(void)
{
	const int reads = 1000;
	uint64_t start_ns = ex_now_ns();

	for (int i = 1; i < reads; i++)
		ex_now_ns();
	return (double)(ex_now_ns() - start_ns) / reads;
}

static void report_text(const struct options *options, uint64_t bytes,
			const struct samples *samples)
{
	struct summary summary = samples_summarize(samples);
	double messages_per_s = (double)options->window * 1e9 / summary.p50_ns;

	printf("%10llu bytes  ", (unsigned long long)bytes);
	if (options->mode == MODE_LATENCY)
		printf("p50 %.2f us  p90 %.2f  p99 %.2f  min %.2f  mean %.2f  (%zu samples)\n",
		       summary.p50_ns / 1e3, summary.p90_ns / 1e3, summary.p99_ns / 1e3,
		       summary.min_ns / 1e3, summary.mean_ns / 1e3, samples->count);
	else if (options->mode == MODE_BANDWIDTH)
		printf("p50 %.1f MB/s  mean %.1f MB/s  (%zu windows of %llu)\n",
		       messages_per_s * (double)bytes / 1e6,
		       messages_per_s * (double)bytes / 1e6 * summary.p50_ns / summary.mean_ns,
		       samples->count, (unsigned long long)options->window);
	else
		printf("p50 %.0f messages/s  mean %.0f messages/s  (%zu windows of %llu)\n",
		       messages_per_s, messages_per_s * summary.p50_ns / summary.mean_ns,
		       samples->count, (unsigned long long)options->window);
}

/* One member of "results"; times are one-way for latency, of a whole window else. */
static void report_json(FILE *out, const struct options *options, uint64_t bytes,
			const struct samples *samples)
{
	struct summary summary = samples_summarize(samples);

	fprintf(out,
		"{\"size_bytes\": %llu, \"batch\": %llu, \"p50_ns\": %.1f, \"p90_ns\": %.1f, "
		"\"p99_ns\": %.1f, \"min_ns\": %.1f, \"max_ns\": %.1f, \"mean_ns\": %.1f",
		(unsigned long long)bytes,
		(unsigned long long)(options->mode == MODE_LATENCY ? samples->divisor / 2 : 1),
		summary.p50_ns, summary.p90_ns, summary.p99_ns, summary.min_ns, summary.max_ns,
		summary.mean_ns);
	if (options->mode != MODE_LATENCY) {
		double messages_per_s = (double)options->window * 1e9 / summary.p50_ns;

		fprintf(out, ", \"messages_per_s\": %.1f, \"bytes_per_s\": %.1f", messages_per_s,
			messages_per_s * (double)bytes);
	}
	fprintf(out, ", \"samples_ns\": ");
	samples_json(out, samples);
	fputc('}', out);
}

static void report_json_head(FILE *out, const struct options *options, int ranks, const char *peer)
{
	char host[MPI_MAX_PROCESSOR_NAME];
	int length;

	MPI_Get_processor_name(host, &length);
	fprintf(out, "{\"program\": \"pingpong\", \"mode\": \"%s\", \"library\": ",
		mode_names[options->mode]);
	ex_json_string(out, ex_library());
	fprintf(out, ", \"ranks\": %d, \"hosts\": [", ranks);
	ex_json_string(out, host);
	fputs(", ", out);
	ex_json_string(out, peer);
	fprintf(out,
		"], \"window\": %llu, \"verify\": %s, \"clock_read_ns\": %.1f, "
		"\"sample_is\": \"%s\", \"results\": [",
		(unsigned long long)options->window, options->verify ? "true" : "false",
		clock_read_ns(),
		options->mode == MODE_LATENCY ? "mean one-way time of a batch of round trips"
					      : "time of one acknowledged window");
}

/* Rank 0: measures all sizes against @peer and reports them. */
static void measure_first(const struct options *options, FILE *out, int ranks)
{
	char peer[MPI_MAX_PROCESSOR_NAME];

	MPI_Recv(peer, sizeof(peer), MPI_CHAR, ranks - 1, TAG_REPLY, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	if (options->json)
		report_json_head(out, options, ranks, peer);
	for (size_t i = 0; i < options->size_count; i++) {
		struct samples samples = pair_measure(options, options->sizes[i], ranks - 1);

		if (!options->json) {
			report_text(options, options->sizes[i], &samples);
			fflush(out);
		} else {
			fputs(i > 0 ? ",\n" : "\n", out);
			report_json(out, options, options->sizes[i], &samples);
		}
		free(samples.batch_ns);
	}
	if (options->json)
		fputs("]}\n", out);
	ex_report_close(out);
}

/* The last rank: answers. */
static void measure_last(const struct options *options)
{
	char host[MPI_MAX_PROCESSOR_NAME] = {0};
	int length;

	MPI_Get_processor_name(host, &length);
	MPI_Send(host, sizeof(host), MPI_CHAR, 0, TAG_REPLY, MPI_COMM_WORLD);
	for (size_t i = 0; i < options->size_count; i++)
		free(pair_measure(options, options->sizes[i], 0).batch_ns);
}

/* Waits for all ranks asleep, so that ranks without a part take no core from the measurement. */
static void barrier_asleep(void)
{
	const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
	MPI_Request request;
	int done = 0;

	MPI_Ibarrier(MPI_COMM_WORLD, &request);
	for (;;) {
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
		if (done)
			return;
		nanosleep(&pause, NULL);
	}
}

int main(int argc, char **argv)
{
	struct options options;
	int rank, ranks;
	FILE *out;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	options = options_read(argc, argv);
	if (ranks < 2)
		ex_quit(EX_EXIT_USAGE, "needs at least 2 ranks: mpirun -n 2 ...");
	out = ex_report_open(options.json);
	if (rank == 0)
		measure_first(&options, out, ranks);
	else if (rank == ranks - 1)
		measure_last(&options);
	barrier_asleep();
	MPI_Finalize();
	return 0;
}
