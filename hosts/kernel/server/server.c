/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * beowire-server: a protocol of the engine as a protocol server [A2], the example for others. Here
 * is its command line; serve.c has its loop, instance.c what it does for a socket.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "beowire_socket.h"
#include "serve.h"

#define NUMBER 2 /* unless another is asked for */

static void die(const char *what, int error)
{
	fprintf(stderr, "beowire-server: %s: %s\n", what, strerror(error));
	exit(1);
}

static void attach(const char *name)
{
	int fd = socket(AF_BEOWIRE, SOCK_RDM | SOCK_CLOEXEC, 0);
	struct beowire_iface iface = {0};

	if (fd < 0)
		die("a socket of the kernel module", errno);
	snprintf(iface.name, sizeof(iface.name), "%s", name);
	if (ioctl(fd, BEOWIRE_IOC_ATTACH, &iface) && errno != EEXIST)
		die(name, errno);
	close(fd);
}

static int usage(void)
{
	const struct bw_protocol *const *p;

	fprintf(stderr, "usage: beowire-server [-n NUMBER] [-i INTERFACE]... [-s] PROTOCOL\n"
			"Speaks PROTOCOL for sockets of this network namespace:\n"
			"socket(AF_BEOWIRE, SOCK_DGRAM, NUMBER), NUMBER from 2 (default) to 15.\n"
			"  -i INTERFACE  let the kernel module use it\n"
			"  -s            spin instead of sleeping\n"
			"PROTOCOL is one of:");
	for (p = bw_protocols; *p; p++)
		fprintf(stderr, " %s", (*p)->name);
	fprintf(stderr, "\n");
	return 2;
}

static const char *why(int error)
{
	switch (error) {
	case ENOENT:
		return "there is no /dev/beowire; load the kernel module beowire";
	case EPERM:
		return "CAP_NET_ADMIN is needed in this network namespace";
	case EBUSY:
		return "another one speaks the protocol of this number; choose one by -n";
	case EKEYREJECTED:
		return "this node has a key, which is not given to protocol servers, and nothing "
		       "is to be said without it; see /proc/sys/net/beowire/key";
	case ENOMEM:
		return "too little memory, or memory that may be locked (ulimit -l)";
	}
	return strerror(error);
}

int main(int argc, char **argv)
{
	const struct bw_protocol *protocol;
	uint32_t number = NUMBER;
	bool spin = false;
	int option, error;

	while ((option = getopt(argc, argv, "n:i:s")) != -1) {
		if (option == 'n')
			number = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'i')
			attach(optarg);
		else if (option == 's')
			spin = true;
		else
			return usage();
	}
	protocol = optind + 1 == argc ? bw_protocol_find(argv[optind]) : NULL;
	if (!protocol || number < 2 || number > 15)
		return usage();
	error = serve_open(number, protocol, spin);
	if (error) {
		fprintf(stderr, "beowire-server: %s\n", why(-error));
		return 1;
	}
	printf("serving %s as protocol %u\n", protocol->name, number);
	fflush(stdout);
	die("a turn", -serve_loop());
	return 1;
}
