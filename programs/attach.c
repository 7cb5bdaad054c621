/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * beowire-attach: has the kernel module use network interfaces of this network namespace, or no
 * longer. The module uses none by itself, so that nothing changes where it is only loaded.
 */
#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "beowire_socket.h"
#include "link/kernel/told.h"

static const char usage[] = "usage: beowire-attach [-d] INTERFACE...\n"
			    "The kernel module is to use these interfaces of this network "
			    "namespace; with -d, no longer.\n";

static const char *fix(int error)
{
	switch (error) {
	case EPERM:
		return "only an administrator may; fix: as root, or with CAP_NET_ADMIN";
	case ENODEV:
		return "the module does not use it, or there is none of that name; ip link shows "
		       "the names";
	case EEXIST:
		return "the module uses it already";
	case ENOSPC:
		return "8 are in use; fix: detach one, by -d";
	case EINVAL:
		return "it is not Ethernet, or its MTU is less than 576 bytes";
	default:
		return strerror(error);
	}
}

static int attach(int fd, const char *name, bool on)
{
	struct beowire_iface iface = {0};

	if (strlen(name) >= sizeof(iface.name)) {
		fprintf(stderr, "beowire-attach: %s: names of interfaces are shorter\n", name);
		return 1;
	}
	memcpy(iface.name, name, strlen(name));
	if (ioctl(fd, on ? BEOWIRE_IOC_ATTACH : BEOWIRE_IOC_DETACH, &iface) == 0)
		return 0;
	fprintf(stderr, "beowire-attach: %s: %s\n", name, fix(errno));
	return 1;
}

int main(int argc, char **argv)
{
	struct bw_kernel_told told;
	bool on = true;
	int at = 1, fd, status = 0;

	if (at < argc && !strcmp(argv[at], "-d")) {
		on = false;
		at++;
	}
	if (at < argc && !strcmp(argv[at], "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	if (at == argc || argv[at][0] == '-') {
		fputs(usage, stderr);
		return 2;
	}
	if (!bw_kernel_ask(&told, 0)) {
		fprintf(stderr, "beowire-attach: %s\n", bw_kernel_absent());
		return 1;
	}
	fd = socket(told.family, SOCK_RDM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		fprintf(stderr, "beowire-attach: no socket of the kernel module: %s\n",
			errno == EACCES ? "fix: as root" : strerror(errno));
		return 1;
	}
	for (; at < argc; at++)
		status |= attach(fd, argv[at], on);
	return status;
}
