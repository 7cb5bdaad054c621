/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures round trips and rows of messages between two network namespaces, for each transport
 * that a kernel offers. In a guest whose clock counts instructions (QEMU's -icount shift=0) the
 * processor's time stamp counter is the number of executed instructions; elsewhere --monotonic
 * takes the kernel's clock. All cases take their turn in each round. Output: one JSON object a
 * line.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "bench.h"

#define CROWD_MAX 4000 /* connections; a user has so many ports */

static const char usage[] =
	"usage: beowire-kernel-bench [--rounds N] [--monotonic] [--symbols] [--crowd CONNECTIONS] "
	"CASE ...\n"
	"A case: transport=tcp|udp|raw|raw-all|rdm|seqpacket|datagram|stream|server|none, "
	"and with commas\n"
	"wait=block|poll|busy|one bytes=N count=N together=on|off mtu=N offloads=on|off\n"
	"checksum=on|off key=on|off encrypt=on|off bulk=N trips=N warmup=N profile=N\n";

static bool monotonic;
static unsigned crowd; /* connections of one listener; 0: round trips and rows are measured */

uint64_t bench_now(void)
{
	struct timespec now;

#ifdef __x86_64__
	if (!monotonic)
		return __rdtsc();
#endif
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bench_fail(const char *format, ...)
{
	int error = errno;
	va_list args;

	fputs("beowire-kernel-bench: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(error));
	_exit(1);
}

/* Where a profiler stops the machine: before and after the round trips that it is to see. */
__attribute__((noipa, externally_visible)) void bench_mark_begin(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((noipa, externally_visible)) void bench_mark_end(void)
{
	__asm__ volatile("" ::: "memory");
}

static void too_long(int signal)
{
	static const char text[] = "beowire-kernel-bench: a message did not come\n";

	(void)signal;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(1);
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sorted, each number once with how often it is there: of counted instructions few differ. */
static void print_numbers(const char *name, uint64_t *numbers, unsigned count)
{
	unsigned first = 0;

	qsort(numbers, count, sizeof(*numbers), compare_numbers);
	printf(", \"%s\": [", name);
	for (unsigned i = 1; i <= count; i++) {
		if (i < count && numbers[i] == numbers[first])
			continue;
		printf("%s[%" PRIu64 ",%u]", first ? "," : "", numbers[first], i - first);
		first = i;
	}
	putchar(']');
}

static void print_counters(const char *name, const struct bench_counters *counters)
{
	printf(", \"%s\": {\"copied_tx\": %" PRIu64 ", \"copied_rx\": %" PRIu64
	       ", \"pinned\": %" PRIu64 ", \"tx_frames\": %" PRIu64 ", \"rx_frames\": %" PRIu64
	       ", \"retransmits\": %" PRIu64 "}",
	       name, counters->copied_tx, counters->copied_rx, counters->pinned,
	       counters->tx_frames, counters->rx_frames, counters->retransmits);
}

static uint64_t *room(unsigned count)
{
	uint64_t *numbers = calloc(count, sizeof(*numbers));

	if (!numbers)
		bench_fail("out of memory");
	return numbers;
}

static void run_case(const struct bench_case *c, const struct bench_net *net, int number, int round)
{
	struct bench_result result;
	uint64_t one, two;

	printf("{\"case\": %d, \"round\": %d", number, round);
	if (c->transport->here && !c->transport->here()) {
		puts(", \"absent\": true}");
		return;
	}
	if (crowd) {
		bench_crowd(c, net, crowd, &one, &two);
		printf(", \"one\": %" PRIu64 ", \"two\": %" PRIu64 "}\n", one, two);
		return;
	}
	result.whole = room(c->trips);
	result.sent = room(c->trips);
	bench_measure(c, net, &result);
	print_numbers("whole", result.whole, c->trips);
	if (c->count)
		print_numbers("sent", result.sent, c->trips);
	if (c->transport->count) {
		print_counters("tx", &result.tx);
		print_counters("rx", &result.rx);
	}
	puts("}");
	free(result.whole);
	free(result.sent);
}

/* Where modules lie in the kernel; the kernel itself lies where its image says. */
static void print_symbols(void)
{
	char line[512], name[256], module[128];
	FILE *in = fopen("/proc/kallsyms", "re");
	unsigned long address;
	char kind;

	if (!in)
		bench_fail("cannot read /proc/kallsyms");
	while (fgets(line, sizeof(line), in))
		if (sscanf(line, "%lx %c %255s [%127[^]]", &address, &kind, name, module) == 4 &&
		    strchr("tTwW", kind))
			printf("{\"symbol\": \"%s\", \"module\": \"%s\", \"address\": %lu}\n", name,
			       module, address);
	fclose(in);
}

static void print_machine(void)
{
	struct utsname name;

	uname(&name);
	printf("{\"kernel\": \"%s\", \"cpus\": %ld, \"unit\": \"%s\"}\n", name.release,
	       sysconf(_SC_NPROCESSORS_ONLN), monotonic ? "ns" : "ticks");
}

static void run_rounds(char **texts, int cases, int rounds)
{
	struct bench_case *c = calloc((size_t)cases, sizeof(*c));
	struct bench_net net;

	if (!c)
		bench_fail("out of memory");
	for (int i = 0; i < cases; i++) {
		const char *wrong = bench_case_parse(&c[i], texts[i]);

		errno = EINVAL;
		if (wrong)
			bench_fail("%s: not understood", wrong);
	}
	bench_net_make(&net);
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < cases; i++)
			run_case(&c[i], &net, i, round);
	free(c);
}

static unsigned crowd_of(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	errno = EINVAL;
	if (!*text || *end || n < 2 || n > CROWD_MAX)
		bench_fail("--crowd %s: not 2 to %d connections", text, CROWD_MAX);
	return (unsigned)n;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"rounds", required_argument, NULL, 'r'},
		{"monotonic", no_argument, NULL, 'm'},
		{"symbols", no_argument, NULL, 's'},
		{"crowd", required_argument, NULL, 'c'},
		{NULL, 0, NULL, 0},
	};
	int rounds = 1;
	bool symbols = false;

	for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (o == 'r')
			rounds = atoi(optarg);
		else if (o == 'm')
			monotonic = true;
		else if (o == 's')
			symbols = true;
		else if (o == 'c')
			crowd = crowd_of(optarg);
		else
			return fputs(usage, stderr), 2;
	}
	if (optind == argc || rounds < 1 || (crowd && !monotonic)) /* a rate is of time */
		return fputs(usage, stderr), 2;
	signal(SIGALRM, too_long);
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	print_machine();
	run_rounds(argv + optind, argc - optind, rounds);
	if (symbols)
		print_symbols();
	return fflush(stdout) ? 1 : 0;
}
