/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * beowire-info: what Beowire can use on this host, why it cannot use the rest, and how it reaches
 * another one. Links are tried, not guessed: each is opened by itself as a program would open it.
 */
#include "info.h"

#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"Usage: beowire-info [--json]               what can be used on this host, and why not the "
	"rest\n"
	"       beowire-info [--json] --peer PEER   and how PEER is reached\n"
	"       beowire-info --listen [--port PORT] be a PEER, until interrupted\n"
	"       beowire-info --check                say nothing if programs can use Beowire here\n"
	"\n"
	"PEER is a host on which beowire-info --listen runs, HOST or HOST:PORT [" INFO_PORT "],\n"
	"or the address that it prints. The variables of beowire(7) apply.\n";

char info_error[INFO_WHY];

int info_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(info_error, sizeof(info_error), format, args);
	va_end(args);
	return -1;
}

static int show(bool json, const char *to)
{
	static struct info info;
	struct info_peer peer = {0};
	int error = 0;

	/* The peer's part alone needs no look at the whole host. */
	if (!to || json)
		error = info_host(&info);
	if (error == 0 && to)
		error = info_peer(to, &peer);
	if (error < 0)
		return error;
	if (json)
		info_print_json(&info, to ? &peer : NULL);
	else if (to)
		info_print_peer(&peer);
	else
		info_print(&info);
	if (fflush(stdout) != 0)
		return info_fail("cannot write to the standard output");
	return to || !info.trouble[0] ? 0 : info_fail("%s", info.trouble);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"peer", required_argument, NULL, 'p'},
		{"listen", no_argument, NULL, 'l'},
		{"port", required_argument, NULL, 'P'},
		{"check", no_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *to = NULL, *port = INFO_PORT;
	bool json = false, listen = false, check = false;
	int option;

	while ((option = getopt_long(argc, argv, "jp:lP:ch", options, NULL)) != -1) {
		switch (option) {
		case 'j':
			json = true;
			break;
		case 'p':
			to = optarg;
			break;
		case 'l':
			listen = true;
			break;
		case 'P':
			port = optarg;
			break;
		case 'c':
			check = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind < argc || ((listen || check) && (to || json)) || (listen && check)) {
		fputs(usage, stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if ((listen ? info_listen(port) : check ? info_check() : show(json, to)) == 0)
		return 0;
	fprintf(stderr, "beowire-info: %s\n", info_error);
	return 1;
}
