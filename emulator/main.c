/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * beowire-link: an emulated link between two interfaces. The main thread starts it, serves signals
 * and the control socket, looks whether the interfaces are still there, and reports at the end.
 */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "control.h"
#include "link.h"
#include "options.h"

enum em_exit { EM_VALID = 0, EM_FAILED = 1, EM_USAGE = 2, EM_INVALID = 3 };

#define EM_LOOK_MS 200 /* between two looks at the interfaces */

static int em_complain(enum em_exit status, const char *why)
{
	fprintf(stderr, "beowire-link: %s\n", why);
	return status;
}

/* What was printed must have arrived: whoever waits for it would wait for ever. */
static bool em_said(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return true;
	fprintf(stderr,
		"beowire-link: standard output cannot be written: %s; free space or name another "
		"file\n",
		strerror(errno));
	return false;
}

/* Blocked in all threads and read from a descriptor. */
static int em_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Until a signal, a request to stop, or an interface is gone. */
static void em_serve(struct em_link *l, struct em_control *c, int signals)
{
	struct pollfd fds[EM_CLIENTS + 2];
	struct signalfd_siginfo info;
	bool stop = false;

	while (!stop && em_link_whole(l)) {
		int n = em_control_poll(c, fds);

		fds[n] = (struct pollfd){.fd = signals, .events = POLLIN};
		if (poll(fds, (nfds_t)n + 1, EM_LOOK_MS) <= 0)
			continue;
		stop = em_control_serve(c, l);
		if (read(signals, &info, sizeof(info)) == sizeof(info))
			stop = true;
	}
}

static int em_run(struct em_link *l, struct em_control *c, int signals)
{
	bool valid, said;

	em_report_ready(stdout, l);
	if (!em_said())
		return EM_FAILED;
	em_serve(l, c, signals);
	em_link_tell(l);
	valid = em_report_json(stdout, l);
	said = em_said();
	if (!l->json)
		em_report_text(stderr, l);
	if (l->gone[0])
		return em_complain(EM_FAILED, l->gone);
	if (!said)
		return EM_FAILED;
	return valid ? EM_VALID : EM_INVALID;
}

int main(int argc, char **argv)
{
	static struct em_link link;
	static struct em_control control;
	char why[EM_WHY_MAX];
	int signals, status;

	switch (em_options_read(&link, argc, argv, why)) {
	case EM_OPTIONS_DONE:
		return em_said() ? 0 : EM_FAILED;
	case EM_OPTIONS_WRONG:
		return em_complain(EM_USAGE, why);
	case EM_OPTIONS_RUN:
		break;
	}
	/* memory of frames is kept for the next ones */
	mallopt(M_MMAP_THRESHOLD, 64 << 20);
	mallopt(M_TRIM_THRESHOLD, 512 << 20);
	signals = em_signals();
	if (signals < 0)
		return em_complain(EM_FAILED, "no signal descriptor; close some files");
	if (em_control_open(&control, link.control, why))
		return em_complain(EM_FAILED, why);
	if (em_link_open(&link, why)) {
		em_control_close(&control);
		return em_complain(EM_FAILED, why);
	}
	status = em_run(&link, &control, signals);
	em_link_close(&link);
	em_control_close(&control);
	close(signals);
	return status;
}
