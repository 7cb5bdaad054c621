/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * beowire-pingpong: latency, bandwidth and message rate between two programs over libbeowire, and
 * over TCP and bare Ethernet frames as baselines. All carriers are opened first and then measured
 * in turn, round by round, so that whatever disturbs the machine disturbs all of them; each round
 * gives one ratio.
 */
#include "pingpong.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARM_UP 200 /* messages before the first round of a carrier and size */

struct pp_options pp_opt = {
	.port = PP_PORT,
	.chosen = {true, true, false},
	.modes = {true, false, false},
	.size = {8},
	.sizes = 1,
	.rounds = 11,
	.iterations = 1000,
	.window = 64,
};
uint8_t *pp_buffer, *pp_inbox;
char pp_error[PP_TEXT];

int pp_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(pp_error, sizeof(pp_error), format, args);
	va_end(args);
	return -1;
}

uint64_t pp_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- client ---- */

/* Say which carrier the last error is about. */
static int blame(int i)
{
	char text[PP_TEXT];

	memcpy(text, pp_error, sizeof(text));
	return pp_fail("%s: %.200s", pp_carriers[i]->name, text);
}

static int carrier_open(struct pp_control *c, int i)
{
	struct pp_place place = {.wait = pp_opt.wait,
				 .control = c->fd,
				 .interface = pp_opt.interface,
				 .client = true,
				 .receive_buffer = pp_opt.receive_buffer,
				 .idle = pp_opt.idle};
	char line[PP_LINE], text[2 * PP_CARD_BYTES + 1];
	struct pp_card mine = {0}, theirs;

	pp_state[i] = pp_carriers[i]->open(&place, &mine);
	if (!pp_state[i])
		return -1;
	pp_card_print(&mine, text);
	if (pp_say(c, "open %s %d %s %lu %lu\n", pp_carriers[i]->name, (int)pp_opt.wait, text,
		   pp_opt.receive_buffer, pp_opt.idle) < 0 ||
	    pp_hear(c, line) < 0)
		return -1;
	if (strncmp(line, "card ", 5) != 0 || pp_card_scan(line + 5, &theirs) < 0)
		return pp_fail("the other side speaks another language");
	return pp_carriers[i]->meet(pp_state[i], &theirs);
}

static int run_ask(struct pp_control *c, int i, enum pp_mode mode, size_t size, unsigned long count,
		   unsigned long window)
{
	char line[PP_LINE];

	/* What this side rehearses is answered too. */
	count += mode == PP_SEND || mode == PP_RECEIVE ? PP_REHEARSALS : 0;
	if (pp_say(c, "run %s %d %zu %lu %lu\n", pp_carriers[i]->name, (int)mode, size, count,
		   window) < 0)
		return -1;
	return pp_hear(c, line);
}

/* The client's part of `count` messages. */
static int run(int i, enum pp_mode mode, size_t size, unsigned long count, unsigned long window,
	       uint64_t *sample)
{
	if (mode == PP_LATENCY)
		return pp_exchange(i, true, size, count, sample);
	if (pp_timed(mode))
		return pp_overhead(i, mode, size, count, sample);
	return pp_stream(i, true, size, count, window);
}

/* One round of one carrier. */
static int round_run(struct pp_control *c, int i, enum pp_mode mode, size_t size,
		     struct pp_figures *f)
{
	unsigned long count = pp_opt.iterations, window = pp_timed(mode) ? 1 : pp_opt.window;
	uint64_t *sample = pp_timed(mode) ? f->sample + f->samples : NULL;
	uint64_t begin;
	double spent;

	count = (count + window - 1) / window * window;
	if (run_ask(c, i, mode, size, count, window) < 0)
		return -1;
	begin = pp_now();
	if (run(i, mode, size, count, window, sample) < 0)
		return -1;
	spent = (double)(pp_now() - begin) / 1e9;
	if (pp_timed(mode)) {
		uint64_t *copy = malloc(count * sizeof(*copy));

		if (!copy)
			return pp_fail("out of memory");
		memcpy(copy, sample, count * sizeof(*copy));
		f->round[f->rounds++] = (double)pp_median_u64(copy, count);
		f->samples += count;
		free(copy);
	} else {
		f->round[f->rounds++] =
			(double)count * (mode == PP_RATE ? 1 : (double)size) / spent;
	}
	return 0;
}

static int warm_up(struct pp_control *c, int i, enum pp_mode mode, size_t size)
{
	enum pp_mode how = pp_timed(mode) ? PP_LATENCY : mode;
	unsigned long window = pp_timed(mode) ? 1 : pp_opt.window;
	unsigned long most = pp_opt.iterations < WARM_UP ? pp_opt.iterations : WARM_UP;
	unsigned long count = (most + window - 1) / window * window;

	count = size > 65536 ? window : count;
	if (run_ask(c, i, how, size, count, window) < 0)
		return -1;
	return run(i, how, size, count, window, NULL);
}

/* All rounds of all carriers in turn. */
static int measure(struct pp_control *c, enum pp_mode mode, size_t size,
		   struct pp_figures f[PP_CARRIERS])
{
	for (int i = 0; i < PP_CARRIERS; i++)
		if (pp_opt.chosen[i] && warm_up(c, i, mode, size) < 0)
			return blame(i);
	for (unsigned long r = 0; r < pp_opt.rounds; r++)
		for (int i = 0; i < PP_CARRIERS; i++)
			if (pp_opt.chosen[i] && round_run(c, i, mode, size, &f[i]) < 0)
				return blame(i);
	for (int i = 0; i < PP_CARRIERS; i++)
		if (pp_opt.chosen[i])
			pp_figures_sort(&f[i]);
	return 0;
}

static int figures_init(struct pp_figures f[PP_CARRIERS], enum pp_mode mode)
{
	size_t samples = pp_timed(mode) ? pp_opt.iterations * pp_opt.rounds : 0;

	for (int i = 0; i < PP_CARRIERS; i++)
		if (!pp_figures_init(&f[i], samples, pp_opt.rounds))
			return pp_fail("out of memory");
	return 0;
}

static int measure_all(struct pp_control *c, struct pp_report *report)
{
	for (enum pp_mode mode = 0; mode < PP_MODES; mode++)
		for (unsigned int k = 0; pp_opt.modes[mode] && k < pp_opt.sizes; k++) {
			struct pp_figures f[PP_CARRIERS] = {0};
			int error = figures_init(f, mode);

			if (error == 0)
				error = measure(c, mode, pp_opt.size[k], f);
			if (error == 0)
				pp_report_add(report, mode, pp_opt.size[k], f);
			for (int i = 0; i < PP_CARRIERS; i++)
				pp_figures_free(&f[i]);
			if (error < 0)
				return error;
		}
	return 0;
}

static int client(void)
{
	struct pp_control c = {0};
	struct pp_report report;
	int fd = pp_dial(pp_opt.host, pp_opt.port);
	int error = fd < 0 ? -1 : pp_control_init(&c, fd);

	if (error < 0)
		return error;
	for (int i = 0; error == 0 && i < PP_CARRIERS; i++)
		if (pp_opt.chosen[i] && carrier_open(&c, i) < 0)
			error = blame(i);
	if (error == 0)
		error = pp_report_begin(&report);
	if (error == 0) {
		error = measure_all(&c, &report);
		error = pp_report_end(&report) < 0 ? -1 : error;
	}
	pp_carriers_close();
	pp_control_close(&c);
	return error;
}

/* ---- options ---- */

static const char usage[] =
	"Usage: beowire-pingpong [OPTION]...          wait for a client\n"
	"       beowire-pingpong [OPTION]... HOST     measure to the one that waits on HOST\n"
	"\n"
	"  -t, --transport LIST   beowire, tcp, packet: what to measure, in turn [beowire,tcp]\n"
	"  -b, --baseline LIST    the same as --transport beowire,LIST\n"
	"  -m, --mode LIST        latency, bandwidth, rate; send, receive: time in calls "
	"[latency]\n"
	"  -s, --size LIST        bytes of a message, K and M are understood [8]\n"
	"  -w, --wait HOW         spin, block, adaptive (TCP and bare frames block) [spin]\n"
	"  -r, --rounds N         rounds of each transport [11]\n"
	"  -n, --iterations N     messages in a round [1000]\n"
	"  -W, --window N         messages in flight, but for latency [64]\n"
	"  -B, --receive-buffer N bytes of TCP's receive buffers, on both sides [the kernel's]\n"
	"  -I, --idle N           endpoints on both sides that do nothing meanwhile [0]\n"
	"  -i, --interface NAME   for bare frames [that of the connection to HOST]\n"
	"  -p, --port PORT        TCP port of the waiting side [" PP_PORT "]\n"
	"  -j, --json FILE        write the figures there as JSON, - is the standard output\n"
	"  -1, --once             wait for one client only\n"
	"  -h, --help\n"
	"\n"
	"BEOWIRE_LINKS, BEOWIRE_INTERFACE and the other variables of beowire(7) apply to both "
	"sides.\n";

static const struct option long_options[] = {
	{"transport", required_argument, NULL, 't'},
	{"baseline", required_argument, NULL, 'b'},
	{"mode", required_argument, NULL, 'm'},
	{"size", required_argument, NULL, 's'},
	{"wait", required_argument, NULL, 'w'},
	{"rounds", required_argument, NULL, 'r'},
	{"iterations", required_argument, NULL, 'n'},
	{"window", required_argument, NULL, 'W'},
	{"receive-buffer", required_argument, NULL, 'B'},
	{"idle", required_argument, NULL, 'I'},
	{"interface", required_argument, NULL, 'i'},
	{"port", required_argument, NULL, 'p'},
	{"json", required_argument, NULL, 'j'},
	{"once", no_argument, NULL, '1'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int transports_parse(char *list, bool beowire)
{
	memset(pp_opt.chosen, 0, sizeof(pp_opt.chosen));
	pp_opt.chosen[0] = beowire;
	for (char *at = strtok(list, ","); at; at = strtok(NULL, ",")) {
		int i = pp_carrier_index(at);

		if (i < 0)
			return -1;
		pp_opt.chosen[i] = true;
	}
	return 0;
}

static int modes_parse(char *list)
{
	memset(pp_opt.modes, 0, sizeof(pp_opt.modes));
	for (char *at = strtok(list, ","); at; at = strtok(NULL, ",")) {
		int mode = 0;

		while (mode < PP_MODES && strcmp(at, pp_mode_name[mode]) != 0)
			mode++;
		if (mode == PP_MODES)
			return pp_fail("no mode is called \"%.40s\": latency, bandwidth, rate, "
				       "send or receive",
				       at);
		pp_opt.modes[mode] = true;
	}
	return 0;
}

static int wait_parse(const char *text)
{
	for (int i = PP_SPIN; i <= PP_ADAPTIVE; i++)
		if (strcmp(text, pp_wait_name[i]) == 0) {
			pp_opt.wait = (enum pp_wait)i;
			return 0;
		}
	return pp_fail("no way to wait is called \"%.40s\": spin, block or adaptive", text);
}

static int number_parse(const char *text, unsigned long least, unsigned long most,
			unsigned long *number)
{
	char *end;
	unsigned long x = strtoul(text, &end, 10);

	if (*end == 'K' || *end == 'k')
		x <<= 10, end++;
	else if (*end == 'M' || *end == 'm')
		x <<= 20, end++;
	if (*end || end == text || x < least || x > most)
		return pp_fail("\"%.40s\" is not a number from %lu to %lu", text, least, most);
	*number = x;
	return 0;
}

static int sizes_parse(char *list)
{
	pp_opt.sizes = 0;
	for (char *at = strtok(list, ","); at; at = strtok(NULL, ",")) {
		unsigned long size;

		if (pp_opt.sizes == PP_SIZES_MAX)
			return pp_fail("too many sizes");
		if (number_parse(at, 1, PP_SIZE_MAX, &size) < 0)
			return -1;
		pp_opt.size[pp_opt.sizes++] = size;
	}
	return pp_opt.sizes ? 0 : pp_fail("no size given");
}

static int option_parse(int option)
{
	switch (option) {
	case 't':
		return transports_parse(optarg, false);
	case 'b':
		return transports_parse(optarg, true);
	case 'm':
		return modes_parse(optarg);
	case 's':
		return sizes_parse(optarg);
	case 'w':
		return wait_parse(optarg);
	case 'r':
		return number_parse(optarg, 1, 10000, &pp_opt.rounds);
	case 'n':
		return number_parse(optarg, 1, PP_ROUND_MAX, &pp_opt.iterations);
	case 'W':
		return number_parse(optarg, 1, PP_WINDOW_MAX, &pp_opt.window);
	case 'B':
		return number_parse(optarg, 1, PP_BUFFER_MAX, &pp_opt.receive_buffer);
	case 'I':
		return number_parse(optarg, 0, PP_IDLE_MAX, &pp_opt.idle);
	case 'i':
		pp_opt.interface = optarg;
		return 0;
	case 'p':
		pp_opt.port = optarg;
		return 0;
	case 'j':
		pp_opt.json = optarg;
		return 0;
	case '1':
		pp_opt.once = true;
		return 0;
	default:
		return pp_fail("see beowire-pingpong --help");
	}
}

static int options_parse(int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "t:b:m:s:w:r:n:W:B:I:i:p:j:1h", long_options,
				     NULL)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			exit(0);
		}
		if (option_parse(option) < 0)
			return -1;
	}
	if (argc - optind > 1)
		return pp_fail("one HOST only, see beowire-pingpong --help");
	pp_opt.host = argv[optind];
	return 0;
}

int main(int argc, char **argv)
{
	int error;

	signal(SIGPIPE, SIG_IGN);
	pp_buffer = calloc(1, PP_SIZE_MAX);
	pp_inbox = calloc(1, PP_SIZE_MAX);
	if (!pp_buffer || !pp_inbox)
		error = pp_fail("out of memory");
	else
		error = options_parse(argc, argv);
	if (error == 0)
		error = pp_opt.host ? client() : pp_server();
	free(pp_buffer);
	free(pp_inbox);
	if (error == 0)
		return 0;
	fprintf(stderr, "beowire-pingpong: %s\n", pp_error);
	return 1;
}
