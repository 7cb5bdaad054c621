/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server of beowire-pingpong: opens carriers and answers messages as its client says, and the
 * loops that both sides run.
 */
#include "pingpong.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

const struct pp_carrier *const pp_carriers[PP_CARRIERS] = {&pp_beowire, &pp_tcp, &pp_packet};
void *pp_state[PP_CARRIERS];

/* `count` exchanges of one message; on the client each one's time, halved, in sample. */
int pp_exchange(int i, bool client, size_t size, unsigned long count, uint64_t *sample)
{
	const struct pp_carrier *c = pp_carriers[i];

	for (unsigned long k = 0; k < count; k++) {
		uint64_t begin = sample ? pp_now() : 0;

		if (client && c->send(pp_state[i], pp_buffer, size) < 0)
			return -1;
		if (c->receive(pp_state[i], pp_inbox, size) < 0)
			return -1;
		if (!client && c->send(pp_state[i], pp_buffer, size) < 0)
			return -1;
		if (c->flush(pp_state[i]) < 0)
			return -1;
		if (sample)
			sample[k] = (pp_now() - begin) / 2;
	}
	return 0;
}

/* Let the answer come without a look at the carrier. */
static void rest(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u),
			     .tv_nsec = (long)(ns % 1000000000u)};
	uint64_t end = pp_now() + ns;

	if (pp_opt.wait != PP_SPIN)
		nanosleep(&t, NULL);
	while (pp_now() < end)
		;
}

/*
 * The client's side of `count` exchanges; in sample the times that its calls take: the sending
 * one, or the receiving one when the message has come long ago, so that nothing is waited for.
 * (Kielmann, Bal and Verstoep, 2000, measure LogP's overheads this way.) The other side runs
 * pp_exchange().
 */
int pp_overhead(int i, enum pp_mode mode, size_t size, unsigned long count, uint64_t *sample)
{
	const struct pp_carrier *c = pp_carriers[i];
	uint64_t longest = 0;

	for (unsigned long k = 0; k < PP_REHEARSALS + count; k++) {
		uint64_t begin = pp_now(), sent, rested;

		if (c->send(pp_state[i], pp_buffer, size) < 0)
			return -1;
		sent = pp_now();
		if (k >= PP_REHEARSALS)
			rest(2 * longest);
		rested = pp_now();
		if (c->receive(pp_state[i], pp_inbox, size) < 0)
			return -1;
		if (k >= PP_REHEARSALS)
			sample[k - PP_REHEARSALS] =
				mode == PP_SEND ? sent - begin : pp_now() - rested;
		else if (pp_now() - begin > longest)
			longest = pp_now() - begin;
		if (c->flush(pp_state[i]) < 0)
			return -1;
	}
	return 0;
}

/* `count` messages in windows; after each window one byte comes back. */
int pp_stream(int i, bool client, size_t size, unsigned long count, unsigned long window)
{
	const struct pp_carrier *c = pp_carriers[i];

	for (unsigned long done = 0; done < count; done += window) {
		for (unsigned long k = 0; k < window; k++)
			if ((client ? c->send(pp_state[i], pp_buffer, size)
				    : c->receive(pp_state[i], pp_inbox, size)) < 0)
				return -1;
		if (c->flush(pp_state[i]) < 0)
			return -1;
		if ((client ? c->receive(pp_state[i], pp_inbox, 1)
			    : c->send(pp_state[i], pp_buffer, 1)) < 0)
			return -1;
		if (c->flush(pp_state[i]) < 0)
			return -1;
	}
	return 0;
}

int pp_carrier_index(const char *name)
{
	for (int i = 0; i < PP_CARRIERS; i++)
		if (strcmp(name, pp_carriers[i]->name) == 0)
			return i;
	return pp_fail("no transport is called \"%.40s\": beowire, tcp or packet", name);
}

void pp_carriers_close(void)
{
	for (int i = 0; i < PP_CARRIERS; i++) {
		if (pp_state[i])
			pp_carriers[i]->close(pp_state[i]);
		pp_state[i] = NULL;
	}
}

static int serve_open(struct pp_control *c, const char *line)
{
	char name[16], card_text[2 * PP_CARD_BYTES + 1];
	struct pp_card mine = {0}, theirs;
	struct pp_place place = {.control = c->fd, .interface = pp_opt.interface};
	int wait, i;

	if (sscanf(line, "open %15s %d %128s %lu %lu", name, &wait, card_text,
		   &place.receive_buffer, &place.idle) < 3 ||
	    place.idle > PP_IDLE_MAX || place.receive_buffer > PP_BUFFER_MAX || wait < 0 ||
	    wait > PP_ADAPTIVE || pp_card_scan(card_text, &theirs) < 0)
		return pp_fail("bad request");
	place.wait = (enum pp_wait)wait;
	i = pp_carrier_index(name);
	if (i < 0)
		return -1;
	if (pp_state[i])
		return pp_fail("%s is open already", name);
	pp_state[i] = pp_carriers[i]->open(&place, &mine);
	if (!pp_state[i])
		return -1;
	pp_card_print(&mine, card_text);
	return pp_say(c, "card %s\n", card_text) < 0 ? -1
						     : pp_carriers[i]->meet(pp_state[i], &theirs);
}

static int serve_run(struct pp_control *c, const char *line)
{
	char name[16];
	unsigned long size, count, window;
	int mode, i;

	if (sscanf(line, "run %15s %d %lu %lu %lu", name, &mode, &size, &count, &window) != 5 ||
	    mode < 0 || mode >= PP_MODES || size == 0 || size > PP_SIZE_MAX || window == 0 ||
	    window > PP_WINDOW_MAX || count > PP_ROUND_MAX + PP_WINDOW_MAX + PP_REHEARSALS)
		return pp_fail("bad request");
	i = pp_carrier_index(name);
	if (i < 0 || !pp_state[i])
		return pp_fail("%.15s is not open", name);
	if (pp_say(c, "ready\n") < 0)
		return -1;
	return mode == PP_BANDWIDTH || mode == PP_RATE ? pp_stream(i, false, size, count, window)
						       : pp_exchange(i, false, size, count, NULL);
}

/* Do what one client says until it leaves. */
static int serve(struct pp_control *c)
{
	char line[PP_LINE];
	int error = 0;

	while (error >= 0 && (error = pp_line(c, line)) > 0) {
		if (strncmp(line, "open ", 5) == 0)
			error = serve_open(c, line);
		else if (strncmp(line, "run ", 4) == 0)
			error = serve_run(c, line);
		else
			error = pp_fail("bad request");
	}
	if (error < 0)
		pp_say(c, "error %s\n", pp_error);
	pp_carriers_close();
	return error;
}

int pp_server(void)
{
	int listener = pp_listen(pp_opt.port);
	int error = 0;

	if (listener < 0)
		return -1;
	fprintf(stderr, "beowire-pingpong: waiting for a client on port %s\n", pp_opt.port);
	do {
		struct pp_control c = {0};
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0) {
			error = pp_fail("accept: %s", strerror(errno));
			break;
		}
		error = pp_control_init(&c, fd);
		if (error == 0)
			error = serve(&c);
		pp_control_close(&c);
		if (error < 0 && !pp_opt.once)
			fprintf(stderr, "beowire-pingpong: %s\n", pp_error);
	} while (!pp_opt.once);
	close(listener);
	return error;
}
