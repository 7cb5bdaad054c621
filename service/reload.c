/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A new policy, and the process that reads it; see reload.h. */
#include "reload.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "audit.h"
#include "confine.h"
#include "keyed.h"
#include "notify.h"

/* From that process to ours. */
struct bs_reading {
	int error;
	struct bs_policy policy;
	char why[BS_POLICY_WHY];
};

static void bs_reload_read(int fd, const char *path)
{
	bool gone;
	char ask;

	while (read(fd, &ask, sizeof(ask)) == sizeof(ask)) {
		struct bs_reading r = {0};

		r.error = bs_policy_read(&r.policy, path, r.why);
		gone = send(fd, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r);
		bw_wipe(r.policy.key, sizeof(r.policy.key));
		if (gone)
			return;
	}
}

int bs_reload_start(struct bs_service *s, const char *path)
{
	sigset_t ours, before;
	int pair[2], bytes = sizeof(struct bs_reading);
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	/* One message, whatever the node gives sockets by default. */
	if (setsockopt(pair[1], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	/* Signals for the service, which its whole group may get, do not end this process. */
	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGHUP);
	sigaddset(&ours, SIGUSR1);
	sigprocmask(SIG_BLOCK, &ours, &before);
	pid = fork();
	if (!pid) {
		close(pair[0]);
		signal(SIGPIPE, SIG_IGN);
		if (!bs_confine_no_rights())
			bs_reload_read(pair[1], path);
		_exit(0);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(pair[1]);
	s->reader = pair[0];
	return pid < 0 ? -errno : 0;
}

void bs_reload_ask(struct bs_service *s)
{
	bs_notify("RELOADING=1");
	/* Where the queue is full, what waits there will read this file as well. */
	if (s->reader >= 0 &&
	    (send(s->reader, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 || errno == EAGAIN))
		return;
	bs_audit(BS_ERROR, "the policy stays as it is: nobody reads it; fix: restart the service");
	bs_notify("READY=1");
}

static void bs_reload_apply(struct bs_service *s, struct bs_policy *fresh)
{
	if (fresh->ethertype != s->policy.ethertype || fresh->interfaces != s->policy.interfaces ||
	    memcmp(fresh->interface, s->policy.interface, sizeof(fresh->interface)) != 0)
		bs_audit(BS_WARNING, "other interfaces, or another EtherType, need a restart");
	fresh->ethertype = s->policy.ethertype;
	fresh->interfaces = s->policy.interfaces;
	memcpy(fresh->interface, s->policy.interface, sizeof(fresh->interface));
	s->policy = *fresh;
	bs_audit(BS_NOTICE, "the policy was read anew");
	bs_clients_policy(s);
}

void bs_reload_take(struct bs_service *s)
{
	struct bs_reading r;
	ssize_t n = recv(s->reader, &r, sizeof(r), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n != sizeof(r)) {
		close(s->reader);
		s->reader = -1;
		bs_audit(BS_ERROR, "the process that reads policies has ended");
	} else if (r.error) {
		bs_audit(BS_ERROR, "the policy stays as it is: %s", r.why);
	} else {
		bs_reload_apply(s, &r.policy);
	}
	bw_wipe(r.policy.key, sizeof(r.policy.key));
	bs_notify("READY=1");
}
