/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Instructions of a round trip of 14 bytes by TCP sockets, in calls that wait, between two network
 * namespaces of a guest whose clock counts instructions (docs/sockets.md has the command):
 *	counted LIBRARY MTU LINK ...
 * LINK: `tcp`, without the library, or what BEOWIRE_LINKS is to be. Both ends, the kernel and
 * whatever else runs are in the count.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "../../../hosts/kernel/bench/bench.h"
#include "beowire_socket.h"

#define PORT	7400
#define BYTES	14
#define TRIPS	2000
#define WARM_UP 200 /* once it goes as it is to go */

/* The guest's clock, which counts instructions. */
static uint64_t ticks(void)
{
#ifdef __x86_64__
	return __rdtsc();
#else
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

_Noreturn void bench_fail(const char *format, ...)
{
	int error = errno;
	va_list more;

	va_start(more, format);
	vprintf(format, more);
	va_end(more);
	printf(": %s\n", strerror(error));
	exit(1);
}

static void whole(int fd, bool out)
{
	char bytes[BYTES] = "fourteen bytes";

	for (size_t n = 0; n < BYTES;) {
		ssize_t some = out ? send(fd, bytes + n, BYTES - n, MSG_NOSIGNAL)
				   : recv(fd, bytes + n, BYTES - n, 0);

		if (some <= 0)
			exit(out ? 1 : 0);
		n += (size_t)some;
	}
}

static int plain_socket(struct sockaddr_in *name, int side)
{
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*name = (struct sockaddr_in){.sin_family = AF_INET,
				     .sin_port = htons(PORT),
				     .sin_addr.s_addr = bench_net_address(side)};
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		bench_fail("no socket");
	return fd;
}

static void serve(void)
{
	struct sockaddr_in name;
	int listener = plain_socket(&name, 1), fd;

	if (bind(listener, (struct sockaddr *)&name, sizeof(name)) || listen(listener, 1))
		bench_fail("no listener");
	for (fd = accept(listener, NULL, NULL);;) {
		whole(fd, false);
		whole(fd, true);
	}
}

static int in_order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void drive(const char *link)
{
	int (*way)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "beowire_sockets_way");
	static uint64_t took[TRIPS];
	struct sockaddr_in name;
	int fd = plain_socket(&name, 1);

	while (connect(fd, (struct sockaddr *)&name, sizeof(name)))
		usleep(1000);
	for (int warm = 0; warm < WARM_UP;) {
		whole(fd, true);
		whole(fd, false);
		warm = !way || way(fd) == 3 ? warm + 1 : 0;
	}
	for (int i = 0; i < TRIPS; i++) {
		uint64_t began = ticks();

		whole(fd, true);
		whole(fd, false);
		took[i] = ticks() - began;
	}
	qsort(took, TRIPS, sizeof(*took), in_order);
	printf("%s: median %llu, quartiles %llu and %llu\n", link,
	       (unsigned long long)took[TRIPS / 2], (unsigned long long)took[TRIPS / 4],
	       (unsigned long long)took[3 * TRIPS / 4]);
	exit(0);
}

static void attach(const char *interface)
{
	struct beowire_iface iface = {0};
	int fd = socket(AF_BEOWIRE, SOCK_RDM, 0);

	strncpy(iface.name, interface, sizeof(iface.name) - 1);
	if (fd < 0 || ioctl(fd, BEOWIRE_IOC_ATTACH, &iface))
		bench_fail("%s is not attached", interface);
	close(fd);
}

static pid_t begin(const struct bench_net *net, int side, const char *library, const char *link)
{
	pid_t child = fork();

	if (child)
		return child;
	bench_net_enter(net, side);
	if (strcmp(link, "tcp")) {
		setenv("LD_PRELOAD", library, 1);
		setenv("BEOWIRE_LINKS", link, 1);
		setenv("BEOWIRE_SOCKETS_AFTER", "0", 1);
		setenv("BEOWIRE_SOCKETS_COMPARE", "off", 1);
		setenv("BEOWIRE_STATUS", "off", 1);
	}
	execl("/proc/self/exe", "counted", side ? "serve" : "drive", link, NULL);
	bench_fail("exec");
}

int main(int argc, char **argv)
{
	struct bench_case set = {.offloads = true};
	struct bench_net net;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve();
	if (argc == 3 && !strcmp(argv[1], "drive"))
		drive(argv[2]);
	if (argc < 4)
		return 2;
	bench_net_make(&net);
	set.mtu = (unsigned int)atoi(argv[2]);
	bench_net_set(&net, &set);
	for (int side = 0; side < 2; side++) {
		bench_net_enter(&net, side);
		attach(net.ifname[side]);
	}
	for (int i = 3; i < argc; i++) {
		pid_t server = begin(&net, 1, argv[1], argv[i]);
		int status[2];

		waitpid(begin(&net, 0, argv[1], argv[i]), &status[0], 0);
		waitpid(server, &status[1], 0);
		if (status[0] || status[1])
			printf("%s: ended with %x, %x\n", argv[i], status[0], status[1]);
	}
	return 0;
}
