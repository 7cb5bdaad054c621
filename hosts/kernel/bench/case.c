/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cases as text: "transport=tcp,wait=block,bytes=1". What is not named has the value that most
 * figures want.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const struct bench_transport *const transports[] = {
	&bench_tcp, &bench_udp,	      &bench_raw,      &bench_raw_all, &bench_none,
	&bench_rdm, &bench_seqpacket, &bench_datagram, &bench_stream,  &bench_server,
};

static const char *const waits[] = {
	[BENCH_BLOCK] = "block",
	[BENCH_POLL] = "poll",
	[BENCH_BUSY] = "busy",
	[BENCH_ONE] = "one",
};

static bool parse_number(const char *text, unsigned long max, unsigned long *value)
{
	char *end;

	*value = strtoul(text, &end, 10);
	return *text && !*end && *value <= max;
}

static bool parse_transport(struct bench_case *c, const char *text)
{
	for (size_t i = 0; i < sizeof(transports) / sizeof(*transports); i++)
		if (!strcmp(text, transports[i]->name))
			c->transport = transports[i];
	return c->transport;
}

static bool parse_wait(struct bench_case *c, const char *text)
{
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		if (strcmp(text, waits[i]))
			continue;
		c->wait = (enum bench_wait)i;
		return true;
	}
	return false;
}

static bool parse_numbered(struct bench_case *c, const char *name, const char *text)
{
	unsigned long n;

	if (!strcmp(name, "bytes") && parse_number(text, BENCH_BYTES_MAX, &n) && n)
		c->bytes = n;
	else if (!strcmp(name, "bulk") && parse_number(text, BENCH_BYTES_MAX, &n))
		c->bulk = n;
	else if (!strcmp(name, "count") && parse_number(text, BENCH_COUNT_MAX, &n))
		c->count = (unsigned)n;
	else if (!strcmp(name, "mtu") && parse_number(text, 65535, &n) && n >= 256)
		c->mtu = (unsigned)n;
	else if (!strcmp(name, "trips") && parse_number(text, 1000000, &n) && n)
		c->trips = (unsigned)n;
	else if (!strcmp(name, "warmup") && parse_number(text, 1000000, &n))
		c->warmup = (unsigned)n;
	else if (!strcmp(name, "profile") && parse_number(text, 1000000, &n))
		c->profile = (unsigned)n;
	else
		return false;
	return true;
}

static bool parse_switch(struct bench_case *c, const char *name, const char *text)
{
	bool on = !strcmp(text, "on");

	if (!on && strcmp(text, "off"))
		return false;
	if (!strcmp(name, "together"))
		c->together = on;
	else if (!strcmp(name, "offloads"))
		c->offloads = on;
	else if (!strcmp(name, "checksum"))
		c->checksum = on;
	else if (!strcmp(name, "key"))
		c->key = on;
	else if (!strcmp(name, "encrypt"))
		c->encrypt = on;
	else
		return false;
	return true;
}

static bool parse_value(struct bench_case *c, const char *name, const char *value)
{
	if (!strcmp(name, "transport"))
		return parse_transport(c, value);
	if (!strcmp(name, "wait"))
		return parse_wait(c, value);
	return parse_numbered(c, name, value) || parse_switch(c, name, value);
}

/* The word is whole again afterwards. */
static bool parse_word(struct bench_case *c, char *word)
{
	char *equals = strchr(word, '=');
	bool good;

	if (!equals)
		return false;
	*equals = '\0';
	good = parse_value(c, word, equals + 1);
	*equals = '=';
	return good;
}

/* NULL, or what is wrong. The text is changed. */
const char *bench_case_parse(struct bench_case *c, char *text)
{
	unsigned long messages;

	*c = (struct bench_case){
		.bytes = 1,
		.mtu = 9000,
		.offloads = true,
		.checksum = true,
		.trips = 400,
		.warmup = 100,
	};
	for (char *word = strtok(text, ","); word; word = strtok(NULL, ","))
		if (!parse_word(c, word))
			return word;
	if (!c->transport)
		return "no transport";
	messages = c->count ? c->count : 1;
	if (c->bytes > BENCH_BYTES_MAX / messages)
		return "a row that large";
	if (c->bulk && c->wait != BENCH_ONE)
		return "bulk without wait=one";
	if (c->encrypt && !c->key)
		return "encrypt without key";
	return NULL;
}
