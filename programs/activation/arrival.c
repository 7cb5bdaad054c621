/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line of beowire-arrival: messages from one node, and who waits on another. */
#include "arrival.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] = "usage: beowire-arrival receive tcp PORT COUNT WARM\n"
			    "       beowire-arrival receive beowire COUNT WARM\n"
			    "       beowire-arrival send tcp HOST PORT COUNT INTERVAL_US\n"
			    "       beowire-arrival send beowire ADDRESS COUNT INTERVAL_US\n";

const uint8_t arrival_token[ARRIVAL_TOKEN] = {0xbe, 0x0a, 0x71, 0xf2, 0x5c, 0x38, 0x9d, 0x04,
					      0xe6, 0x5b, 0xc1, 0x7a, 0x13, 0x2f, 0x88, 0xd9};

static void __attribute__((noreturn)) refuse(void)
{
	fputs(usage, stderr);
	exit(2);
}

static uint32_t number(const char *text, uint32_t least, uint32_t most)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || end == text || *end || n < least || n > most)
		act_fail("%s? Between %u and %u", text, least, most);
	return (uint32_t)n;
}

static uint64_t real_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The kernel's stamps are of the clock that may be set: the two are read side by side. */
void arrival_came(struct arrival *arrival, const struct arrival_message *message)
{
	uint64_t woke = bw_clock_now(), behind = real_now() - woke, stamp;

	if (memcmp(message->token, arrival_token, ARRIVAL_TOKEN) ||
	    message->number != arrival->seen + 1)
		act_fail("message %u is another one", arrival->seen + 1);
	stamp = arrival_stamp(arrival, message->number);
	if (++arrival->seen <= arrival->warm)
		return;
	act_samples_add(&arrival->one_way, message->sent, woke);
	/* The observer may have lost a frame; a frame cannot come before it is sent. */
	if (!stamp || stamp - behind < message->sent || stamp - behind > woke)
		arrival->unstamped++;
	else
		act_samples_add(&arrival->arrived, stamp - behind, woke);
}

bool arrival_ended(const struct arrival *arrival)
{
	return arrival->seen == arrival->warm + arrival->count;
}

static void receive(int argc, char **argv)
{
	bool tcp = !strcmp(argv[2], "tcp");
	struct arrival arrival = {0};

	if (argc != (tcp ? 6 : 5))
		refuse();
	arrival.count = number(argv[argc - 2], 1, ARRIVAL_COUNT_MAX);
	arrival.warm = number(argv[argc - 1], 0, ARRIVAL_COUNT_MAX);
	arrival_observe(&arrival);
	act_samples_make(&arrival.arrived, "arrived_ns", arrival.count);
	act_samples_make(&arrival.one_way, "one_way_ns", arrival.count);
	if (tcp)
		arrival_tcp_receive(&arrival, argv[3]);
	else
		arrival_beowire_receive(&arrival);
	printf("{\"unstamped\": %u, ", arrival.unstamped);
	act_clock_print();
	act_samples_print(&arrival.arrived);
	act_samples_print(&arrival.one_way);
	printf("}\n");
}

static void send_all(int argc, char **argv)
{
	bool tcp = !strcmp(argv[2], "tcp");
	uint32_t count;
	uint64_t interval;

	if (argc != (tcp ? 7 : 6))
		refuse();
	count = number(argv[argc - 2], 1, 2 * ARRIVAL_COUNT_MAX);
	interval = 1000ull * number(argv[argc - 1], 1, 10000000);
	if (tcp)
		arrival_tcp_send(argv[3], argv[4], count, interval);
	else
		arrival_beowire_send(argv[3], count, interval);
}

int main(int argc, char **argv)
{
	if (argc < 3 || (strcmp(argv[2], "tcp") && strcmp(argv[2], "beowire")))
		refuse();
	if (!strcmp(argv[1], "receive"))
		receive(argc, argv);
	else if (!strcmp(argv[1], "send"))
		send_all(argc, argv);
	else
		refuse();
	return 0;
}
