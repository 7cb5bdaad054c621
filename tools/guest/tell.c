/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See tell.h. */
#include "tell.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONSOLE	     "/dev/console"
#define LINE	     512
#define THREADS_MOST 16	 /* of a process */
#define NO_LEVELS    "1" /* nothing of the kernel's between these lines */
#define ALL_LEVELS   "8"
#define ALL_BACK     "5" /* loglevel= of vm/machine.py */

static void write_to(const char *file, const char *what)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, what, strlen(what)) < 0)
		perror(file);
	close(fd);
}

/* The first bytes of a file of a thread's in /proc, 0-ended; how many. */
static size_t read_of(int process, int thread, const char *file, char *bytes, size_t room)
{
	char path[LINE];
	size_t n = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", process, thread, file);
	in = fopen(path, "re");
	if (in) {
		n = fread(bytes, 1, room - 1, in);
		fclose(in);
	}
	bytes[n] = '\0';
	return n;
}

static void tell_thread(FILE *out, int process, int thread)
{
	char status[LINE], call[LINE], stack[8 * LINE];
	const char *state;

	read_of(process, thread, "status", status, sizeof(status));
	read_of(process, thread, "syscall", call, sizeof(call));
	read_of(process, thread, "stack", stack, sizeof(stack));
	state = strstr(status, "State:\t");
	fprintf(out, "  %d: %.1s, system call %.*s\n", thread,
		state ? state + strlen("State:\t") : "?", (int)strcspn(call, "\n"), call);
	for (const char *line = strtok(stack, "\n"); line; line = strtok(NULL, "\n"))
		fprintf(out, "    %s\n", line);
}

/* A thread of the kernel has no command line. */
static void tell_process(FILE *out, int process)
{
	char command[LINE], path[LINE];
	size_t n = read_of(process, process, "cmdline", command, sizeof(command));
	const struct dirent *entry;
	int told = 0;
	DIR *threads;

	if (!n)
		return;
	for (size_t i = 0; i + 1 < n; i++)
		if (command[i] < ' ')
			command[i] = ' ';
	fprintf(out, "process %d: %.200s\n", process, command);
	snprintf(path, sizeof(path), "/proc/%d/task", process);
	threads = opendir(path);
	while (threads && (entry = readdir(threads))) {
		if (entry->d_name[0] == '.')
			continue;
		if (told++ == THREADS_MOST)
			fprintf(out, "  and others\n");
		if (told <= THREADS_MOST)
			tell_thread(out, process, atoi(entry->d_name));
	}
	if (threads)
		closedir(threads);
}

void guest_tell(const char *why)
{
	FILE *out = fopen(CONSOLE, "we");
	const struct dirent *entry;
	DIR *processes = opendir("/proc");

	if (!out || !processes)
		return; /* nobody would hear it */
	setvbuf(out, NULL, _IOLBF, 0);
	fprintf(out, "beowire guest: late: %s\n", why);
	write_to("/proc/sys/kernel/printk", NO_LEVELS);
	while ((entry = readdir(processes)))
		if (strspn(entry->d_name, "0123456789") == strlen(entry->d_name))
			tell_process(out, atoi(entry->d_name));
	closedir(processes);
	/* The kernel's own traces are long, and come last: a reader takes so many lines alone. */
	write_to("/proc/sys/kernel/printk", ALL_LEVELS);
	write_to("/proc/sysrq-trigger", "l"); /* processors */
	write_to("/proc/sysrq-trigger", "w"); /* blocked tasks */
	write_to("/proc/sys/kernel/printk", ALL_BACK);
	fprintf(out, "beowire guest: told\n");
	fclose(out);
}
