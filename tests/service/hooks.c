/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Between beowired and the C library, by LD_PRELOAD: what the kernel does rarely.
 *
 * BEOWIRE_HOOK_LOOKS=FILE: every other look at the list of packet sockets finds none; the file gets
 * a byte for each look. BEOWIRE_HOOK_FULL: no map of the gate takes an entry.
 * BEOWIRE_HOOK_LISTEN=FILE: between bind() and listen() at an abstract name the file is made, and
 * the service waits until it is gone; once it listens it makes FILE.heard. BEOWIRE_HOOK_PAUSE=FILE:
 * at its first pause the service removes the file, and waits until FILE.heard is there; when it has
 * an abstract name itself it makes FILE.own.
 * BEOWIRE_HOOK_BIND=FILE: before a packet socket joins a group, FILE.there is made, and the service
 * waits until FILE is gone. BEOWIRE_HOOK_SUBUIDS=FILE: it is read instead of /etc/subuid.
 * BEOWIRE_HOOK_NAMES=NAME: a user of this name is known by what lists directories, as plug-ins of
 * nsswitch.conf do; he has the number 65533.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static FILE *opened(const char *name, const char *path, const char *mode)
{
	FILE *(*real)(const char *, const char *) = dlsym(RTLD_NEXT, name);
	const char *counted = getenv("BEOWIRE_HOOK_LOOKS");
	const char *subuids = getenv("BEOWIRE_HOOK_SUBUIDS");
	static unsigned int looks;
	FILE *f;

	if (subuids && !strcmp(path, "/etc/subuid"))
		return real(subuids, mode);
	if (!counted || !strstr(path, "/net/packet"))
		return real(path, mode);
	f = real(counted, "ae");
	fputc('.', f);
	fclose(f);
	return real(looks++ % 2 ? path : "/dev/null", mode);
}

FILE *fopen(const char *path, const char *mode)
{
	return opened("fopen", path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	return opened("fopen64", path, mode);
}

struct passwd *getpwnam(const char *name)
{
	struct passwd *(*real)(const char *) = dlsym(RTLD_NEXT, "getpwnam");
	const char *known = getenv("BEOWIRE_HOOK_NAMES");
	static struct passwd found = {.pw_uid = 65533};
	int listed;
	DIR *d;

	if (!known || strcmp(known, name) != 0)
		return real(name);
	d = opendir("/");
	listed = d && readdir(d);
	if (d)
		closedir(d);
	return listed ? &found : NULL;
}

long syscall(long number, ...)
{
	long (*real)(long, ...) = dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_bpf && a[0] == BPF_MAP_UPDATE_ELEM && getenv("BEOWIRE_HOOK_FULL")) {
		errno = E2BIG;
		return -1;
	}
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Make the file of this name and ending. */
static void mark(const char *path, const char *ending)
{
	char name[256];

	snprintf(name, sizeof(name), "%s%s", path, ending);
	close(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

/* Until this file is there, or is not. */
static void await_file(const char *path, int there)
{
	int (*real)(useconds_t) = dlsym(RTLD_NEXT, "usleep");

	while ((access(path, F_OK) == 0) != there)
		real(1000);
}

int listen(int fd, int backlog)
{
	int (*real)(int, int) = dlsym(RTLD_NEXT, "listen");
	const char *path = getenv("BEOWIRE_HOOK_LISTEN"), *pause = getenv("BEOWIRE_HOOK_PAUSE");
	struct sockaddr_un name = {.sun_family = AF_UNSPEC};
	socklen_t len = sizeof(name);
	int result;

	if (getsockname(fd, (struct sockaddr *)&name, &len) || name.sun_family != AF_UNIX ||
	    name.sun_path[0])
		return real(fd, backlog);
	if (pause)
		mark(pause, ".own");
	if (path) {
		mark(path, "");
		await_file(path, 0);
	}
	result = real(fd, backlog);
	if (path)
		mark(path, ".heard");
	return result;
}

/* Calls that ask whether there is a file are none that the service has left itself. */
int setsockopt(int fd, int level, int number, const void *value, socklen_t len)
{
	int (*real)(int, int, int, const void *, socklen_t) = dlsym(RTLD_NEXT, "setsockopt");
	int (*pause)(useconds_t) = dlsym(RTLD_NEXT, "usleep");
	const char *path = getenv("BEOWIRE_HOOK_BIND");
	int there;

	if (path && level == SOL_PACKET && number == PACKET_FANOUT) {
		mark(path, ".there");
		while ((there = open(path, O_RDONLY | O_CLOEXEC)) >= 0) {
			close(there);
			pause(1000);
		}
	}
	return real(fd, level, number, value, len);
}

int usleep(useconds_t us)
{
	int (*real)(useconds_t) = dlsym(RTLD_NEXT, "usleep");
	const char *path = getenv("BEOWIRE_HOOK_PAUSE");
	char heard[256];

	if (path && !unlink(path)) {
		snprintf(heard, sizeof(heard), "%s.heard", path);
		await_file(heard, 1);
	}
	return real(us);
}
