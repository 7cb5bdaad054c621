/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Between beowired and the C library, by LD_PRELOAD: what the kernel does rarely.
 *
 * BEOWIRE_HOOK_LOOKS=FILE: every other look at the list of packet sockets finds none; the file gets
 * a byte for each look. BEOWIRE_HOOK_FULL: no map of the gate takes an entry.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static FILE *opened(const char *name, const char *path, const char *mode)
{
	FILE *(*real)(const char *, const char *) = dlsym(RTLD_NEXT, name);
	const char *counted = getenv("BEOWIRE_HOOK_LOOKS");
	static unsigned int looks;
	FILE *f;

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
