/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * beowired: packet sockets for users without CAP_NET_RAW; see beowired(8). The main thread stays in
 * the namespace of the interfaces and serves clients, signals and changes of interfaces; makers
 * live in the clients' namespace, which nobody else can enter.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "audit.h"
#include "clients.h"
#include "confine.h"
#include "discard.h"
#include "listener.h"
#include "netlink.h"
#include "notify.h"
#include "owner.h"
#include "reload.h"
#include "service.h"

/* The last is EX_CONFIG of sysexits.h: nobody fixes a policy by starting the service anew. A name
 * that nobody knows is not of these: what tells names may not be there yet. */
enum bs_exit { BS_GOOD = 0, BS_FAILED = 1, BS_USAGE = 2, BS_UNFIT = 78 };

/* What is waited for besides clients, which are numbers below. The last two are those of the first
 * interface; those of the others follow each. */
enum bs_event {
	BS_CALL = BS_ENDPOINTS,
	BS_SIGNAL,
	BS_DONE,
	BS_CHANGE,
	BS_POLICY,
	BS_WATCH,
	BS_CLAIM = BS_WATCH + BS_DEVICES,
};

#define BS_EVENTS  64
#define BS_FDS_OF  4  /* descriptors of a client: connection, claim, socket, and one to spare */
#define BS_FDS_OWN 64 /* of ours */
#define BS_TOLD	   (10 * BW_S) /* between two looks at what the gates dropped */

struct bs_options {
	const char *policy, *socket;
	bool check;
};

static const char bs_usage[] =
	"usage: beowired [OPTIONS]\n"
	"Gives processes of allowed users endpoints for raw Ethernet frames; see beowired(8).\n\n"
	"  --policy FILE   who, how many, on which interfaces (default " BS_POLICY_FILE ")\n"
	"  --socket PATH   where clients call (default " BW_SERVICE_SOCKET ")\n"
	"  --check         read the policy, say whether it is good, and end\n"
	"  --help, --version\n";

static int bs_fail(const char *why)
{
	bs_audit(BS_ERROR, "%s", why);
	return BS_FAILED;
}

/* ---- setting up ---- */

static int bs_space_here(void)
{
	return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

/* A namespace for the clients' ends, with makers in it. */
static int bs_spaces_open(struct bs_service *s, char why[BS_POLICY_WHY])
{
	struct bs_spaces *p = &s->spaces;
	int outer = bs_space_here(), error = 0;

	p->outer_netlink = bs_netlink_open();
	p->outer_socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (outer < 0 || p->outer_netlink < 0 || p->outer_socket < 0 || unshare(CLONE_NEWNET)) {
		snprintf(why, BS_POLICY_WHY,
			 "no network namespace for clients: %s; fix: start it as root, or with "
			 "CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF",
			 strerror(errno));
		return -1;
	}
	p->inner = bs_space_here();
	p->inner_netlink = bs_netlink_open();
	p->inner_socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (p->inner < 0 || p->inner_netlink < 0 || p->inner_socket < 0)
		error = -errno;
	if (!error)
		error = bs_makers_start(&s->makers);
	if (setns(outer, CLONE_NEWNET) && !error)
		error = -errno;
	close(outer);
	if (error)
		snprintf(why, BS_POLICY_WHY, "no threads in the clients' namespace: %s",
			 strerror(-error));
	return error;
}

static int bs_devices_open(struct bs_service *s, char why[BS_POLICY_WHY])
{
	const char *step = "looking at it";

	for (unsigned int i = 0; i < s->policy.interfaces; i++) {
		struct bs_device *d = &s->device[i];
		int error;

		memcpy(d->name, s->policy.interface[i], sizeof(d->name));
		error = bs_device_look(d, &s->spaces);
		if (!error)
			error = bs_device_open(d, &s->spaces, s->policy.ethertype, s->most, &step);
		if (!error) {
			bs_makers_spare(&s->makers, d->mtu);
			continue;
		}
		snprintf(why, BS_POLICY_WHY, "interface %s: %s: %s", d->name, step,
			 error == -EPROTONOSUPPORT ? "it is none of Ethernet" : strerror(-error));
		return error;
	}
	return 0;
}

static void bs_devices_close(struct bs_service *s)
{
	for (unsigned int i = 0; i < s->policy.interfaces; i++) {
		if (s->device[i].open)
			bs_device_close(&s->device[i], &s->spaces, s->policy.ethertype);
	}
}

/* So many clients as descriptors allow. */
static void bs_clients_limit(struct bs_service *s)
{
	struct rlimit limit;

	s->most = BS_ENDPOINTS;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max < BS_ENDPOINTS * BS_FDS_OF + BS_FDS_OWN
				 ? limit.rlim_max
				 : BS_ENDPOINTS * BS_FDS_OF + BS_FDS_OWN;
	if (setrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur <= BS_FDS_OWN)
		return;
	if ((limit.rlim_cur - BS_FDS_OWN) / BS_FDS_OF < s->most)
		s->most = (unsigned int)((limit.rlim_cur - BS_FDS_OWN) / BS_FDS_OF);
}

static int bs_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Changes of interfaces are told by this socket. */
static int bs_changes(void)
{
	int fd = bs_netlink_open(), group = RTNLGRP_LINK;

	if (fd >= 0) {
		setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group));
		fcntl(fd, F_SETFL, O_NONBLOCK);
	}
	return fd;
}

static void bs_listen(struct bs_service *s, int fd, uint32_t number)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};

	epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void bs_listen_device(struct bs_service *s, unsigned int i)
{
	bs_listen(s, s->device[i].watch.fd, BS_WATCH + i);
	if (s->device[i].claim >= 0)
		bs_listen(s, s->device[i].claim, BS_CLAIM + i);
}

/* ---- running ---- */

/* What clients tried and the gates did not let pass. */
static void bs_tell_drops(struct bs_service *s, bool always)
{
	static uint64_t told[BS_DEVICES];

	for (unsigned int i = 0; i < s->policy.interfaces; i++) {
		char text[256] = "";
		uint64_t sum = 0;

		for (int why = 0; why < BS_DROP_REASONS && s->device[i].open; why++) {
			uint64_t n = bs_gate_drops(&s->device[i].gate, why);

			sum += n;
			snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s=%lu",
				 bs_gate_reason(why), (unsigned long)n);
		}
		if (!always && sum == told[i])
			continue;
		told[i] = sum;
		bs_audit(BS_WARNING, "dropped interface=%s%s", s->device[i].name, text);
	}
}

static void bs_tell(struct bs_service *s)
{
	unsigned long told = 0;

	for (unsigned int i = 0; i < s->policy.interfaces; i++)
		told += s->device[i].watch.told;
	bs_audit(BS_NOTICE, "counts living=%u opened=%lu refused=%lu closed=%lu told=%lu",
		 s->living, (unsigned long)s->count.opened, (unsigned long)s->count.refused,
		 (unsigned long)s->count.closed, told);
	bs_tell_drops(s, true);
}

/* False: end. */
static bool bs_signal(struct bs_service *s, int signals)
{
	struct signalfd_siginfo info;

	while (read(signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			bs_reload_ask(s);
		else if (info.ssi_signo == SIGUSR1)
			bs_tell(s);
		else
			return false;
	}
	return true;
}

static void bs_device_return(struct bs_service *s, unsigned int i)
{
	struct bs_device *d = &s->device[i];
	const char *step = "looking at it";
	int error = bs_device_look(d, &s->spaces);

	if (error)
		return;
	error = bs_device_open(d, &s->spaces, s->policy.ethertype, s->most, &step);
	if (error) {
		bs_audit_refused(s->now, "interface %s: %s: %s", d->name, step, strerror(-error));
		return;
	}
	bs_listen_device(s, i);
	bs_audit(BS_NOTICE, "interface %s is there again", d->name);
}

/* What is there under its name may be another interface, and its cable may be gone. */
static void bs_device_change(struct bs_service *s, unsigned int i)
{
	struct bs_device *d = &s->device[i];
	int error = bs_device_follow(d, &s->spaces, s->policy.ethertype);

	if (error == -ENODEV || error == -ENOLINK) {
		bs_audit(BS_WARNING, "%s%s is gone",
			 error == -ENODEV ? "interface " : "the cable of ", d->name);
		bs_clients_leave(s, i);
		bs_device_close(d, &s->spaces, s->policy.ethertype);
		bs_device_return(s, i);
	} else if (error) {
		bs_audit_refused(s->now, "interface %s cannot be followed: %s", d->name,
				 strerror(-error));
	}
}

static void bs_change(struct bs_service *s, int fd)
{
	uint8_t bytes[4096];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	for (unsigned int i = 0; i < s->policy.interfaces; i++) {
		if (s->device[i].open)
			bs_device_change(s, i);
		else
			bs_device_return(s, i);
	}
}

static void bs_watch(struct bs_service *s, unsigned int device)
{
	struct bs_device *d = &s->device[device];

	bs_watch_visit(&d->watch, &d->gate, d->mac, s->policy.ethertype,
		       s->policy.key_file[0] ? s->refusal_key : NULL, s->now);
}

/* Until something is due. */
static int bs_patience_ms(const struct bs_service *s)
{
	uint64_t now = bw_clock_now();

	if (!s->waiting)
		return (int)(BS_TOLD / BW_MS);
	return s->look_at > now ? (int)((s->look_at - now) / BW_MS) + 1 : 0;
}

static void bs_run(struct bs_service *s, int signals, int changes)
{
	struct epoll_event event[BS_EVENTS];
	uint64_t told_at = bw_clock_now() + BS_TOLD;
	bool go = true;

	while (go) {
		int n = epoll_wait(s->epoll, event, BS_EVENTS, bs_patience_ms(s));

		s->now = bw_clock_now();
		for (int i = 0; i < n && go; i++) {
			if (event[i].data.u32 < BS_ENDPOINTS)
				bs_clients_event(s, event[i].data.u32);
			else if (event[i].data.u32 == BS_CALL)
				bs_clients_accept(s);
			else if (event[i].data.u32 == BS_DONE)
				bs_clients_made(s);
			else if (event[i].data.u32 == BS_CHANGE)
				bs_change(s, changes);
			else if (event[i].data.u32 == BS_POLICY)
				bs_reload_take(s);
			else if (event[i].data.u32 >= BS_CLAIM)
				bs_owner_answer(s->device[event[i].data.u32 - BS_CLAIM].claim);
			else if (event[i].data.u32 >= BS_WATCH)
				bs_watch(s, event[i].data.u32 - BS_WATCH);
			else
				go = bs_signal(s, signals);
		}
		bs_clients_visit(s);
		if (s->now >= told_at) {
			told_at = s->now + BS_TOLD;
			bs_tell_drops(s, false);
		}
	}
}

static int bs_confine(void)
{
	int error = bs_confine_rights();

	bs_watch_learn_name();
#ifndef __SANITIZE_ADDRESS__
	if (!error)
		error = bs_confine_calls();
#endif
	return error;
}

static int bs_serve(struct bs_service *s, const struct bs_options *o)
{
	char why[BS_POLICY_WHY] = "";
	int signals = bs_signals(), changes;

	changes = bs_changes();
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	bs_clients_limit(s);
	if (signals < 0 || changes < 0 || s->epoll < 0)
		return bs_fail("no descriptors; fix: a higher limit (ulimit -n)");
	s->listener = bs_listener_open(o->socket, why);
	if (s->listener < 0)
		return bs_fail(why);
	if (bs_spaces_open(s, why) || bs_devices_open(s, why)) {
		bs_devices_close(s);
		bs_listener_close(s->listener, o->socket);
		return bs_fail(why);
	}
	if (bs_confine()) {
		bs_devices_close(s);
		bs_listener_close(s->listener, o->socket);
		return bs_fail("the rights that are not needed cannot be given up");
	}
	bs_listen(s, s->listener, BS_CALL);
	bs_listen(s, signals, BS_SIGNAL);
	bs_listen(s, s->makers.bell, BS_DONE);
	bs_listen(s, changes, BS_CHANGE);
	bs_listen(s, s->reader, BS_POLICY);
	for (unsigned int i = 0; i < s->policy.interfaces; i++)
		bs_listen_device(s, i);
	bs_clients_policy(s);
	bs_audit(BS_NOTICE, "ready at %s, for up to %u endpoints", o->socket, s->most);
	bs_notify("READY=1");
	bs_run(s, signals, changes);
	bs_notify("STOPPING=1");
	bs_tell(s);
	/* First, as clients ask anew as soon as their interface is gone. */
	bs_listener_close(s->listener, o->socket);
	bs_devices_close(s);
	bw_wipe(s->policy.key, sizeof(s->policy.key));
	bw_wipe(s->refusal_key, sizeof(s->refusal_key));
	return BS_GOOD;
}

/* BS_GOOD with o->policy NULL: all is said. */
static int bs_options(struct bs_options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{"policy", required_argument, NULL, 'p'}, {"socket", required_argument, NULL, 's'},
		{"check", no_argument, NULL, 'c'},	  {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},	  {NULL, 0, NULL, 0}};
	int c;

	*o = (struct bs_options){.policy = BS_POLICY_FILE, .socket = BW_SERVICE_SOCKET};
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			o->policy = optarg;
			break;
		case 's':
			o->socket = optarg;
			break;
		case 'c':
			o->check = true;
			break;
		case 'h':
		case 'v':
			fputs(c == 'h' ? bs_usage : "beowired " BS_VERSION "\n", stdout);
			o->policy = NULL;
			return BS_GOOD;
		default:
			return BS_USAGE;
		}
	}
	if (optind == argc)
		return BS_GOOD;
	fputs("beowired: no operands are taken; --help shows the options\n", stderr);
	return BS_USAGE;
}

int main(int argc, char **argv)
{
	static struct bs_service service;
	char why[BS_POLICY_WHY];
	struct bs_options o;
	int status = bs_options(&o, argc, argv);

	if (status || !o.policy)
		return status;
	setvbuf(stderr, NULL, _IOLBF, 0);
	bw_discard_at_once();	   /* system calls for threads are given up */
	prctl(PR_SET_DUMPABLE, 0); /* no core dump has the key */
	if (!bw_keyed_start())
		return bs_fail("libsodium cannot be used here");
	if (!o.check && bs_reload_start(&service, o.policy))
		return bs_fail("there can be no process that reads policies");
	if (bs_policy_read(&service.policy, o.policy, why)) {
		bs_fail(why);
		return service.policy.unknown ? BS_FAILED : BS_UNFIT;
	}
	if (o.check) {
		bw_wipe(service.policy.key, sizeof(service.policy.key));
		puts("the policy is good");
		return BS_GOOD;
	}
	return bs_serve(&service, &o);
}
