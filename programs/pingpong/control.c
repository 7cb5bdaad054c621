/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control connection of beowire-pingpong: lines of text over TCP, by which the client tells the
 * server what to do next and both exchange how their carriers are reached.
 */
#include "pingpong.h"
#include "text.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_TRIES	 50
#define CONNECT_PAUSE_NS 100000000

int pp_say(struct pp_control *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(c->out, format, args);
	va_end(args);
	return fflush(c->out) == 0 ? 0 : pp_fail("the other side is gone");
}

/* One line of the other side, whole, without its end, printable: 1. 0 if no more comes. */
int pp_line(struct pp_control *c, char line[PP_LINE])
{
	char *end;

	if (!fgets(line, PP_LINE, c->in))
		return 0;
	end = strchr(line, '\n');
	if (!end)
		return pp_fail("the other side speaks another language");
	*end = 0;
	bw_text_printable(line, PP_LINE, line, PP_LINE);
	return 1;
}

/* The other side's answer. A line "error ..." is a failure. */
int pp_hear(struct pp_control *c, char line[PP_LINE])
{
	int got = pp_line(c, line);

	if (got <= 0)
		return got < 0 ? -1 : pp_fail("the other side closed the connection");
	if (strncmp(line, "error ", 6) == 0)
		return pp_fail("the other side: %.200s", line + 6);
	return 0;
}

void pp_card_print(const struct pp_card *card, char text[2 * PP_CARD_BYTES + 1])
{
	for (int i = 0; i < PP_CARD_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", card->bytes[i]);
}

/* Of a text that is a card and nothing else. */
int pp_card_scan(const char *text, struct pp_card *card)
{
	if (strspn(text, "0123456789abcdef") != 2 * PP_CARD_BYTES || text[2 * PP_CARD_BYTES])
		return pp_fail("the other side speaks another language");
	for (int i = 0; i < PP_CARD_BYTES; i++) {
		const char digits[] = {text[2 * i], text[2 * i + 1], 0};

		card->bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return 0;
}

int pp_control_init(struct pp_control *c, int fd)
{
	const int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->fd = fd;
	c->in = fdopen(fd, "r");
	c->out = fdopen(dup(fd), "w");
	return c->in && c->out ? 0 : pp_fail("out of memory");
}

void pp_control_close(struct pp_control *c)
{
	if (c->in)
		fclose(c->in);
	if (c->out)
		fclose(c->out);
}

int pp_listen(const char *port)
{
	struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list;
	const int on = 1;
	int error = getaddrinfo(NULL, port, &hints, &list);

	if (error)
		return pp_fail("port %s: %s", port, gai_strerror(error));
	int fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, list->ai_addr, list->ai_addrlen) < 0 || listen(fd, 1) < 0) {
		pp_fail("cannot listen on port %s: %s (choose another with --port)", port,
			strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	return fd;
}

/* The pp_server may be a moment late. */
int pp_dial(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct timespec pause = {.tv_nsec = CONNECT_PAUSE_NS};
	struct addrinfo *list;
	int error = getaddrinfo(host, port, &hints, &list);
	int fd = -1;

	if (error)
		return pp_fail("%s: %s", host, gai_strerror(error));
	for (int try = 0; fd < 0 && try < CONNECT_TRIES; try++) {
		fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, list->ai_addr, list->ai_addrlen) < 0) {
			pp_fail("cannot connect to %s port %s: %s (is beowire-pingpong running "
				"there?)",
				host, port, strerror(errno));
			close(fd);
			fd = -1;
			nanosleep(&pause, NULL);
		}
	}
	freeaddrinfo(list);
	return fd;
}
