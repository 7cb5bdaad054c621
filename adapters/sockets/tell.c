/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines and counters. See tell.h. */
#include "tell.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "core.h"
#include "flow.h"
#include "real.h"
#include "registrar.h"

#define BWS_TELL_CONNECTIONS 1024 /* told of one by one; the others are counted */

struct bws_told {
	struct bws_name name;
	uint64_t tx, rx, tx_beowire, rx_beowire;
	const char *why, *link;
	bool connector;
};

static struct {
	uint64_t connections, switched, tx, rx, tx_beowire, rx_beowire, switches, returns, lost;
	struct bws_told one[BWS_TELL_CONNECTIONS];
	uint32_t n;
} bws_told;

const char *bws_tell_why(const struct bws_conn *c)
{
	if (c->error || c->pinned)
		return c->why;
	if (c->lost)
		return "Beowire was lost";
	if (c->parked || c->peer_parks)
		return BWS_WHY_PARKED;
	if (c->tx_beowire || c->rx_beowire)
		return "Beowire";
	return bws.pinned ? bws.pinned : c->why;
}

static void bws_tell_end(const uint8_t *address, uint16_t port, char *text, size_t room)
{
	char name[INET6_ADDRSTRLEN] = "?";
	bool v4 = bws_offer_is_v4(address);

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? address + 12 : address, name, sizeof(name));
	snprintf(text, room, v4 ? "%s:%u" : "[%s]:%u", name, port);
}

/* What a link of libbeowire is for people. */
static const char *bws_tell_link(const char *link)
{
	if (!link)
		return "";
	if (!strcmp(link, "kernel"))
		return " (the kernel module)";
	if (!strcmp(link, "packet"))
		return " (raw frames)";
	return strcmp(link, "udp") ? " (shared memory)" : " (UDP)";
}

static void bws_tell_line(const struct bws_told *t)
{
	char here[80], there[80], line[512];
	int n;

	bws_tell_end(t->name.here, t->name.here_port, here, sizeof(here));
	bws_tell_end(t->name.there, t->name.there_port, there, sizeof(there));
	n = snprintf(line, sizeof(line),
		     "beowire: %s %s %s: sent %llu B, %llu by Beowire; received %llu B, %llu by "
		     "Beowire: %s%s\n",
		     here, t->connector ? "to" : "from", there, (unsigned long long)t->tx,
		     (unsigned long long)t->tx_beowire, (unsigned long long)t->rx,
		     (unsigned long long)t->rx_beowire, t->why, bws_tell_link(t->link));
	bws_r()->write(STDERR_FILENO, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line));
}

void bws_tell(struct bws_conn *c)
{
	struct bws_told t;

	if (c->told)
		return;
	c->told = true;
	if (bws.explain || bws.stats)
		bws_control_name(c);
	t = (struct bws_told){.name = c->name,
			      .tx = c->shared->tx,
			      .rx = c->shared->rx,
			      .tx_beowire = c->tx_beowire,
			      .rx_beowire = c->rx_beowire,
			      .why = bws_tell_why(c),
			      .link = c->link,
			      .connector = c->connector};

	bws_told.connections++;
	bws_told.switched += c->tx_beowire || c->rx_beowire;
	bws_told.tx += t.tx;
	bws_told.rx += t.rx;
	bws_told.tx_beowire += t.tx_beowire;
	bws_told.rx_beowire += t.rx_beowire;
	bws_told.switches += c->tx_switches;
	bws_told.returns += c->tx_returns;
	bws_told.lost += c->error != 0;
	if (bws_told.n < BWS_TELL_CONNECTIONS)
		bws_told.one[bws_told.n++] = t;
	if (bws.explain)
		bws_tell_line(&t);
}

static void bws_tell_json(FILE *f)
{
	char here[80], there[80];

	fprintf(f,
		"{\"connections\":%llu,\"switched\":%llu,\"tx_bytes\":%llu,\"rx_bytes\":%llu,"
		"\"tx_beowire\":%llu,\"rx_beowire\":%llu,\"switches\":%llu,\"returns\":%llu,"
		"\"lost\":%llu,\"offers_refused\":%llu,\"each\":[",
		(unsigned long long)bws_told.connections, (unsigned long long)bws_told.switched,
		(unsigned long long)bws_told.tx, (unsigned long long)bws_told.rx,
		(unsigned long long)bws_told.tx_beowire, (unsigned long long)bws_told.rx_beowire,
		(unsigned long long)bws_told.switches, (unsigned long long)bws_told.returns,
		(unsigned long long)bws_told.lost,
		(unsigned long long)atomic_load(&bws.offers_refused));
	for (uint32_t i = 0; i < bws_told.n; i++) {
		const struct bws_told *t = &bws_told.one[i];

		bws_tell_end(t->name.here, t->name.here_port, here, sizeof(here));
		bws_tell_end(t->name.there, t->name.there_port, there, sizeof(there));
		fprintf(f,
			"%s{\"here\":\"%s\",\"there\":\"%s\",\"connector\":%s,\"tx_bytes\":%llu,"
			"\"rx_bytes\":%llu,\"tx_beowire\":%llu,\"rx_beowire\":%llu,\"link\":\"%s\","
			"\"why\":\"%s\"}",
			i ? "," : "", here, there, t->connector ? "true" : "false",
			(unsigned long long)t->tx, (unsigned long long)t->rx,
			(unsigned long long)t->tx_beowire, (unsigned long long)t->rx_beowire,
			t->link ? t->link : "tcp", t->why);
	}
	fprintf(f, "]}\n");
}

/* Always a new file: no link is followed, and it appears under its name when it is whole. */
static void bws_tell_write(void)
{
	char host[HOST_NAME_MAX + 1] = "", name[PATH_MAX], part[PATH_MAX];
	FILE *f;
	int fd;

	gethostname(host, sizeof(host) - 1);
	for (int i = 0; i < 1000; i++) {
		int n = snprintf(name, sizeof(name), "%s/sockets-%s-%d-%d.json", bws.stats, host,
				 getpid(), i);

		if (n >= (int)sizeof(name) - 6)
			return;
		snprintf(part, sizeof(part), "%.*s.part", n, name);
		fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (fd < 0 && errno == EEXIST)
			continue;
		f = fd < 0 ? NULL : bws_r()->fdopen(fd, "w");
		if (!f)
			return;
		bws_tell_json(f);
		fclose(f);
		if (!link(part, name)) {
			unlink(part);
			return;
		}
		unlink(part);
		if (errno != EEXIST)
			return;
	}
}

static void bws_tell_refused(void)
{
	unsigned long long n = atomic_load(&bws.offers_refused);
	char line[160];
	int len;

	len = snprintf(line, sizeof(line),
		       "beowire: offers and HELLOs that were refused: %llu (malformed, or not from "
		       "who they say)\n",
		       n);
	if (n)
		bws_r()->write(STDERR_FILENO, line, (size_t)len);
}

void bws_tell_all(void)
{
	struct bws_conn *c;

	bws_lock();
	for (c = bws_conn_next(NULL); c; c = bws_conn_next(c))
		bws_tell(c);
	if (bws.explain)
		bws_tell_refused();
	if (bws.stats && bws_told.connections)
		bws_tell_write();
	bws_unlock();
}

void bws_tell_forget(void)
{
	memset(&bws_told, 0, sizeof(bws_told));
	atomic_store(&bws.offers_refused, 0);
}
