/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random system calls on sockets of all types and on protocol servers' device, by processes that
 * are killed in the midst of them, each with two threads, on two processors, that share its
 * descriptors. They close what the other thread is at, pass descriptors to processes of the other
 * node and of other users, fork, and become other programs with all that is open; where the kernel
 * can, it has no memory for them now and then, nor for frames that arrive. By turns their nodes
 * have a key, and encrypt. Some of what node a sends to b goes by a relay, which now and then keeps
 * what was announced, or a part of it. Whatever they do, the kernel complains of nothing, nothing
 * stays pinned, and others are served.
 *
 *	test_random [SECONDS SEED]
 */
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "beowire_server.h"
#include "kheld.h"
#include "kuser.h"

#define PROCESSES   6
#define POOL	    24
#define PORTS	    12 /* few, so that processes meet */
#define MEMORY	    (1u << 18)
#define LONG_ENOUGH 600 /* seconds in which each thing was done, on any machine */
#define STORM	    16	/* new processes until memory begins to fail everywhere, or no more */

static unsigned long seconds = 4;
static uint64_t seed = 1;

static uint8_t mac[2][6];		     /* of the nodes a and b */
static struct sockaddr_beowire by_relay;     /* node b, for node a; without a port */
static volatile unsigned long relayed, kept; /* frames of the relay, and those it kept */
static _Alignas(4096) uint8_t memory[MEMORY + 4096];

/* Calls of all processes that did what they are for. What none has done says nothing. */
enum done { SENT, SENT_LONG, RECEIVED, RECEIVED_LONG, CONNECTED, ACCEPTED, PULLED, CALLED, KINDS };
static const char *const done_names[KINDS] = {"sent",	   "sent long", "received", "received long",
					      "connected", "accepted",	"pulled",   "calls"};
static _Atomic unsigned long nobodys[KINDS], *done = nobodys; /* shared by processes */

static int fds[POOL]; /* of a process */
static int post[2];   /* by which descriptors go from process to process */

/* One thread. */
static __thread struct {
	uint64_t random;
	int node;		  /* where new sockets are opened */
	struct beowire_info info; /* the last one received */
	int fail;		  /* its fail-nth; -1 if it has none */
} self;

static uint32_t below(uint32_t n)
{
	return (uint32_t)(kt_random(&self.random) >> 16) % n;
}

static bool rarely(void)
{
	return below(16) == 0;
}

/* Bytes of a message, which is announced if it is long; or a row's messages. */
static void note(enum done kind, ssize_t result)
{
	if (result > 0)
		atomic_fetch_add(&done[kind], 1);
	if (result > 16384)
		atomic_fetch_add(&done[kind + 1], 1);
}

/* Often one of a few, which the other thread is then at as well. */
static int *any(void)
{
	int *fd = &fds[below(below(4) ? POOL : 2)];

	for (int tries = 2; *fd < 0 && tries; tries--)
		fd = &fds[below(POOL)];
	return fd;
}

/* One of which there is something to take, if there is one; now and then any. */
static int *readable(void)
{
	struct pollfd poller[POOL];
	uint32_t first = below(POOL);

	for (int i = 0; i < POOL; i++)
		poller[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	if (below(4) == 0 || poll(poller, POOL, 0) <= 0)
		return any();
	for (uint32_t i = 0; i < POOL; i++)
		if (poller[(first + i) % POOL].revents & POLLIN)
			return &fds[(first + i) % POOL];
	return any();
}

/* A value of interest, or any. */
static uint64_t value(void)
{
	static const uint64_t known[] = {0,	1,	  2,	      0xff,	 4096,	    16384,
					 65536, 1u << 30, UINT32_MAX, INT64_MAX, UINT64_MAX};

	return below(2) ? known[below(11)] : kt_random(&self.random) >> below(64);
}

static size_t length(void)
{
	static const uint32_t known[] = {0, 1, 16, 17, 1024, 1025, 8000, 16384, 16385, MEMORY};

	return below(2) ? known[below(10)] : below(1u << (1 + below(18)));
}

static void *pointer(void)
{
	return rarely() ? (void *)(uintptr_t)value() : memory + below(2) * below(4096);
}

/* Most sockets of a port are of one type, so that those who meet speak the same. */
static int type_of(uint16_t port)
{
	static const int types[] = {SOCK_RDM, SOCK_RDM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};

	return types[port % 5];
}

static uint16_t port_for(int fd)
{
	uint16_t port = (uint16_t)(1 + below(PORTS));
	int type = -1;
	socklen_t n = sizeof(type);

	if (rarely() || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n))
		return port;
	while (type_of(port) != type && type >= SOCK_STREAM && type <= SOCK_SEQPACKET)
		port = (uint16_t)(1 + below(PORTS));
	return port;
}

/* Where this socket may find another one, or may be bound. */
static struct sockaddr_beowire address(int fd)
{
	struct sockaddr_beowire a = {.sbw_family = AF_BEOWIRE, .sbw_port = port_for(fd)};

	if (self.node == 0 && below(3) == 0) {
		memcpy(a.sbw_mac, by_relay.sbw_mac, 6);
		a.sbw_ifindex = by_relay.sbw_ifindex;
	} else {
		memcpy(a.sbw_mac, mac[below(8) ? !self.node : self.node], 6);
	}
	if (rarely())
		((uint8_t *)&a)[below(sizeof(a))] ^= (uint8_t)(1u << below(8));
	return a;
}

static socklen_t address_length(void)
{
	return rarely() ? below(64) : sizeof(struct sockaddr_beowire);
}

/* ---- calls ---- */

static void do_socket(void)
{
	struct sockaddr_beowire a = {.sbw_family = AF_BEOWIRE,
				     .sbw_port = (uint16_t)(1 + below(PORTS))};
	int type = type_of(rarely() ? (uint16_t)below(5) : a.sbw_port), *fd = any();
	const int patience_ms = 2000;

	close(*fd);
	if (rarely() && getuid() == 0) {
		int there = open(self.node ? "/run/netns/a" : "/run/netns/b", O_RDONLY);

		if (setns(there, CLONE_NEWNET) == 0) /* the other thread may have closed it */
			self.node = !self.node;
		close(there);
	}
	*fd = socket(AF_BEOWIRE, type | (rarely() ? 0 : SOCK_NONBLOCK),
		     rarely() ? (int)below(20) : 0);
	if (rarely())
		return;
	/* A number is a lingering port's until its peer has answered, or for that long: nobody else
	 * meets there meanwhile. */
	if (!rarely())
		setsockopt(*fd, SOL_BEOWIRE, BEOWIRE_DEAD_MS, &patience_ms, sizeof(patience_ms));
	bind(*fd, (struct sockaddr *)&a, sizeof(a));
	if (below(2))
		listen(*fd, (int)below(4));
}

static void do_name(void)
{
	int fd = *any();
	struct sockaddr_beowire a = address(fd);
	socklen_t n = address_length();

	switch (below(5)) {
	case 0:
		memset(a.sbw_mac, 0, 6);
		bind(fd, (struct sockaddr *)&a, n);
		break;
	case 1:
	case 2:
		note(CONNECTED, connect(fd, (struct sockaddr *)&a, n) == 0);
		break;
	case 3:
		getsockname(fd, (struct sockaddr *)&a, &n);
		break;
	case 4:
		getpeername(fd, (struct sockaddr *)&a, &n);
		break;
	}
}

static void do_connections(void)
{
	int *fd = any(), accepted;

	switch (below(4)) {
	case 0:
		listen(*any(), (int)below(4));
		break;
	case 1:
	case 2:
		accepted = accept4(*readable(), NULL, NULL, SOCK_NONBLOCK);
		if (accepted < 0)
			break;
		note(ACCEPTED, 1);
		close(*fd);
		*fd = accepted;
		break;
	case 3:
		if (below(4) == 0)
			shutdown(*any(), (int)below(4));
		break;
	}
}

static int flags(void)
{
	static const int known[] = {MSG_PEEK,	 MSG_TRUNC, MSG_MORE,
				    MSG_WAITALL, MSG_OOB,   MSG_ERRQUEUE};
	int f = (rarely() ? 0 : MSG_DONTWAIT) | MSG_NOSIGNAL; /* a timer ends what waits */

	for (uint32_t i = below(4) ? 0 : 1 + below(2); i; i--)
		f |= known[below(6)];
	return f;
}

static void do_send(void)
{
	int fd = *any();
	struct sockaddr_beowire to = address(fd);
	struct beowire_info info = {.cookie = below(2),
				    .peer = below(4),
				    .flags = (uint16_t)below(4),
				    .code = (uint8_t)below(130)};
	struct iovec parts[4];
	struct mmsghdr row[4];

	switch (below(6)) {
	case 0:
		note(SENT, send(fd, pointer(), length(), flags()));
		break;
	case 1:
		note(SENT, sendto(fd, pointer(), length(), flags(), (struct sockaddr *)&to,
				  address_length()));
		break;
	case 2:
		kt_send_info(fd, pointer(), length(), below(2) ? &to : NULL, &info, flags());
		break;
	case 3:
		note(SENT, write(fd, pointer(), length()));
		break;
	default:
		memset(row, 0, sizeof(row));
		for (int i = 0; i < 4; i++) {
			parts[i] = (struct iovec){pointer(), length() / 2};
			row[i].msg_hdr.msg_iov = &parts[below(4)];
			row[i].msg_hdr.msg_iovlen = rarely() ? value() : 1;
			row[i].msg_hdr.msg_name = below(2) ? &to : NULL;
			row[i].msg_hdr.msg_namelen = below(2) ? sizeof(to) : 0;
		}
		sendmmsg(fd, row, 4, (unsigned)flags());
	}
}

/* All of what is first there, though it may have to be fetched. */
static void receive_patiently(void)
{
	struct pollfd poller = {.fd = *readable(), .events = POLLIN};

	for (int tries = 0; tries < 5; tries++) {
		ssize_t n = recv(poller.fd, memory, MEMORY, MSG_DONTWAIT);

		note(RECEIVED, n);
		if (n >= 0 || errno != EAGAIN)
			break;
		poll(&poller, 1, 5);
	}
}

static void do_receive(void)
{
	struct sockaddr_beowire from;
	socklen_t n = sizeof(from);
	struct iovec parts[4] = {{pointer(), length() / 2}, {pointer(), length() / 2}};
	struct mmsghdr row[4];

	switch (below(6)) {
	case 0:
		note(RECEIVED, recv(*readable(), pointer(), length(), flags()));
		break;
	case 1:
		note(RECEIVED, recvfrom(*readable(), pointer(), length(), flags(),
					(struct sockaddr *)&from, &n));
		break;
	case 2:
		if (kt_recv_info(*readable(), pointer(), length(), &self.info, flags()) == 0)
			note(RECEIVED, (ssize_t)self.info.len);
		break;
	case 3:
		note(RECEIVED, readv(*readable(), parts, 2));
		break;
	case 4:
		memset(row, 0, sizeof(row));
		for (int i = 0; i < 4; i++) {
			parts[i] = (struct iovec){pointer(), length() / 2};
			row[i].msg_hdr.msg_iov = &parts[i];
			row[i].msg_hdr.msg_iovlen = 1;
		}
		note(RECEIVED,
		     recvmmsg(*readable(), row, 4, (unsigned)flags() | MSG_DONTWAIT, NULL));
		break;
	case 5:
		receive_patiently();
		break;
	}
}

/* Bytes that never are in the program's memory. */
static void do_files(void)
{
	int file = memfd_create("file", 0), pipes[2];

	if (ftruncate(file, (off_t)length()) || pipe(pipes)) {
		close(file);
		return;
	}
	sendfile(*any(), file, NULL, length());
	(void)!write(pipes[1], memory, 1 + below(4096));
	splice(pipes[0], NULL, *any(), NULL, 4096, SPLICE_F_NONBLOCK);
	splice(*any(), NULL, pipes[1], NULL, 4096, SPLICE_F_NONBLOCK);
	close(file);
	close(pipes[0]);
	close(pipes[1]);
}

static void do_option(void)
{
	const struct linger linger = {.l_onoff = (int)below(2), .l_linger = (int)below(2)};
	const struct timeval patience = {.tv_usec = below(20000)};
	int number = (int)value();
	socklen_t n = rarely() ? below(300) : sizeof(number);
	struct sockaddr_beowire a = address(*any());
	uint8_t room[300];

	memcpy(room, &number, sizeof(number));
	switch (below(6)) {
	case 0:
	case 1:
		setsockopt(*any(), SOL_BEOWIRE, (int)below(12),
			   below(2) ? (void *)&(int){(int)below(2)} : room, sizeof(int));
		break;
	case 2:
		n = below(2) ? sizeof(room) : n;
		if (below(2))
			memcpy(room, &a, sizeof(a));
		getsockopt(*any(), SOL_BEOWIRE, (int)below(12), room, &n);
		break;
	case 3:
		number &= 0xfffff;
		setsockopt(*any(), SOL_SOCKET, below(2) ? SO_SNDBUF : SO_RCVBUF, &number,
			   sizeof(number));
		break;
	case 4:
		setsockopt(*any(), SOL_SOCKET, below(2) ? SO_SNDTIMEO : SO_RCVTIMEO, &patience,
			   sizeof(patience));
		break;
	case 5:
		setsockopt(*any(), SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		break;
	}
}

static void do_interface(void)
{
	struct beowire_iface iface = {.name = "eth0"};

	if (rarely())
		ioctl(*any(), below(8) ? BEOWIRE_IOC_ATTACH : BEOWIRE_IOC_DETACH, &iface);
}

static void do_ioctl(void)
{
	struct beowire_pull pull = {.key = self.info.key,
				    .buf = (uintptr_t)pointer(),
				    .len = length(),
				    .cookie = below(2),
				    .peer = below(4) ? self.info.peer : below(4),
				    .flags = below(8) == 0};
	struct beowire_region region = {.id = self.info.event == BEOWIRE_REGION ? self.info.cookie
										: below(4),
					.buf = (uintptr_t)pointer(),
					.len = below(2) ? self.info.len : length()};
	struct beowire_watch watch = {.peer = below(4), .on = below(3)};
	uint64_t cookie = below(3);

	if (rarely())
		((uint8_t *)&pull)[below(sizeof(pull))] = (uint8_t)value();
	switch (below(8)) {
	case 0:
		ioctl(*any(), BEOWIRE_IOC_CANCEL, &cookie);
		break;
	case 1:
		ioctl(*any(), below(2) ? BEOWIRE_IOC_WATCH : BEOWIRE_IOC_NEED, &watch);
		break;
	case 2:
		ioctl(*any(), BEOWIRE_IOC_REGION, &region);
		break;
	case 3:
		ioctl(*any(), BEOWIRE_IOC_SERVING, &region);
		break;
	case 4:
		do_interface();
		break;
	case 5:
		ioctl(*any(), rarely() ? (unsigned long)value() : BEOWIRE_IOC_ATTACH + below(12),
		      pointer());
		break;
	default:
		note(PULLED, ioctl(*any(), BEOWIRE_IOC_PULL, &pull) == 0);
	}
}

/* Protocol servers: they claim, write anything into the rings, and take turns. */
static void do_server(void)
{
	struct beowire_server_claim claim = {.number = 2 + below(4),
					     .ring_bytes = rarely() ? (uint32_t)value() : 0,
					     .name = "r"};
	struct beowire_server_turn turn = {.timeout_ns = below(1000000)};
	struct beowire_server_iface links[BEOWIRE_SERVER_IFACES];
	int fd = open("/dev/beowire", O_RDWR);
	uint8_t *area;

	if (fd >= 0 && ioctl(fd, BEOWIRE_SERVER_CLAIM, &claim) == 0) {
		area = mmap(NULL, claim.area, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		for (int i = below(8); area != MAP_FAILED && i; i--) {
			struct beowire_ring *ring =
				(struct beowire_ring *)(area + claim.at[below(BEOWIRE_RINGS)].ring);
			struct beowire_record r = {.len = 48 + below(4) * 16,
						   .type = (uint16_t)below(14),
						   .socket = below(4),
						   .bytes = below(64),
						   .addr = address(fd)};

			if (rarely())
				((uint8_t *)&r)[below(sizeof(r))] = (uint8_t)value();
			memcpy(area + claim.at[2 + below(2)].data, &r, sizeof(r));
			ring->head = rarely() ? (uint32_t)value() : ring->head + r.len;
			ioctl(fd, BEOWIRE_SERVER_TURN, &turn);
			ioctl(fd, BEOWIRE_SERVER_LINKS, links);
			poll(&(struct pollfd){fd, POLLIN, 0}, 1, 0);
			close(socket(AF_BEOWIRE, SOCK_DGRAM, (int)claim.number));
		}
		if (area != MAP_FAILED)
			munmap(area, claim.area);
	}
	close(*any());
	*any() = fd; /* it may live on, as a socket that others take it for */
}

/* Descriptors that others are using: one goes to any process, or one of another comes. */
static void do_pass(void)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} rights = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
			     .cmsg_level = SOL_SOCKET,
			     .cmsg_type = SCM_RIGHTS}};
	char byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &rights,
			   .msg_controllen = sizeof(rights)};
	int *fd = any();

	if (below(2)) {
		memcpy(CMSG_DATA(&rights.head), any(), sizeof(int));
		sendmsg(post[0], &m, MSG_DONTWAIT);
		return;
	}
	if (recvmsg(post[1], &m, MSG_DONTWAIT) != 1 || m.msg_controllen < sizeof(rights))
		return;
	close(*fd);
	memcpy(fd, CMSG_DATA(&rights.head), sizeof(int));
}

static void do_calls(uint32_t times);

/* A child with all that is open, as it is or as another program, for a moment. */
static void do_child(void)
{
	char *const words[] = {"test_random", "child", rarely() ? "1" : "2", NULL};
	bool other = below(2);

	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, SIG_DFL);
	alarm(1);
	self.random ^= (uint64_t)getpid() << 32;
	if (other)
		execv("/proc/self/exe", words);
	do_calls(50);
	_exit(0);
}

/* A socket bound to any port of this node. */
static int opened_in(const char *node)
{
	struct sockaddr_beowire a = {.sbw_family = AF_BEOWIRE};
	int there = open(node, O_RDONLY), fd = -1;

	if (setns(there, CLONE_NEWNET) == 0)
		fd = socket(AF_BEOWIRE, SOCK_RDM, 0);
	close(there);
	bind(fd, (struct sockaddr *)&a, sizeof(a));
	return fd;
}

/* What other calls do by chance, and seldom on a slow machine: a long message to one that waits for
 * it, until a signal ends the wait. Both stay open. */
static void do_exchange(void)
{
	static const char *const nodes[] = {"/run/netns/a", "/run/netns/b"};
	int *from = any(), *to = any();
	struct sockaddr_beowire at;
	socklen_t n = sizeof(at);

	if (getuid() || from == to)
		return;
	close(*from);
	close(*to);
	*to = opened_in(nodes[!self.node]);
	*from = opened_in(nodes[self.node]);
	if (getsockname(*to, (struct sockaddr *)&at, &n))
		return;
	at.sbw_ifindex = 0;
	note(SENT, sendto(*from, memory, length(), MSG_DONTWAIT, (struct sockaddr *)&at, n));
	note(RECEIVED, recv(*to, memory, sizeof(memory), 0));
}

static void do_other(void)
{
	struct pollfd poller = {.fd = *any(), .events = (short)value()};
	struct epoll_event event = {.events = (uint32_t)value() & ~(uint32_t)EPOLLWAKEUP};
	int *fd = any(), set;

	switch (below(7)) {
	case 0:
		poll(&poller, 1, (int)below(3));
		break;
	case 1:
		if (below(4))
			break;
		close(*fd);
		*fd = dup(*any());
		break;
	case 2:
		if (below(4))
			break;
		close(*fd);
		*fd = -1;
		break;
	case 3:
		set = epoll_create1(0);
		for (int i = 0; i < 4; i++)
			epoll_ctl(set, EPOLL_CTL_ADD, *any(), &event);
		epoll_wait(set, &event, 1, (int)below(3));
		close(set);
		break;
	case 4:
		fcntl(*any(), F_SETFL, rarely() ? 0 : O_NONBLOCK);
		break;
	case 5:
		if (rarely())
			do_child();
		break;
	case 6: /* in the place of one that is in use */
		if (below(4) == 0)
			dup2(*any(), *any());
		break;
	}
}

/* The next allocations of this thread, but for so many, fail; 0: none does. */
static void fail_at(uint32_t number)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", number);

	if (self.fail >= 0)
		(void)!pwrite(self.fail, text, (size_t)n, 0);
}

static void do_calls(uint32_t times)
{
	static void (*const calls[])(void) = {
		do_socket, do_name,  do_name,	 do_connections, do_connections, do_send,
		do_send,   do_send,  do_receive, do_receive,	 do_receive,	 do_option,
		do_ioctl,  do_ioctl, do_other,	 do_other,	 do_pass,	 do_exchange};

	while (times--) {
		void (*call)(void) = calls[below(sizeof(calls) / sizeof(calls[0]))];
		bool fails = rarely();

		if (fails)
			fail_at(1 + below(20));
		note(CALLED, 1);
		call();
		if (fails)
			fail_at(0);
		if (rarely() && rarely())
			below(2) ? do_server() : do_files();
	}
}

/* Until a signal ends the process. */
static void *misbehave(void *random)
{
	self.random = *(uint64_t *)random;
	self.node = self.random & 1;
	self.fail = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	for (;;)
		do_calls(1000);
	return NULL;
}

/* What do_child() becomes: it knows of its descriptors only that they are open. */
static int child(void)
{
	self.random = kt_now_ns();
	self.fail = -1;
	for (int i = 0; i < POOL; i++)
		fds[i] = 3 + i;
	post[0] = post[1] = -1;
	alarm(1);
	do_calls(50);
	return 0;
}

/* Any allocation may fail, and nothing is said of it. */
static void let_memory_fail(void)
{
	kt_shell("mount -t debugfs none /sys/kernel/debug 2>/dev/null; cd /sys/kernel/debug && "
		 "for kind in failslab fail_page_alloc; do if [ -d $kind ]; then "
		 "echo N >$kind/ignore-gfp-wait; echo 0 >$kind/verbose; fi; done; "
		 "if [ -d fail_page_alloc ]; then echo 0 >fail_page_alloc/min-order; fi");
}

/* A file of one of the two kinds of failures; what was in it, or -1: this kernel has none. */
static int setting(const char *kind, const char *name, const char *word)
{
	char path[96], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", kind, name);
	fd = open(path, O_RDWR);
	if (fd < 0 && errno == ENOENT)
		return -1;
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	if (word)
		assert_int_equal(write(fd, word, strlen(word)), strlen(word));
	close(fd);
	return atoi(text);
}

#define TIMES "1000000000" /* that memory may fail; each time it does one is taken away */

/* One of fifty allocations fails that may not wait, whoever asks, in softirq too; or those of calls
 * that have been told to. */
static void storm(bool on)
{
	const char *const kinds[] = {"failslab", "fail_page_alloc"};

	/* Never both "N" and more than 0: then memory fails whoever asks, this process too. */
	for (int i = 0; i < 2; i++) {
		setting(kinds[i], "probability", "0");
		setting(kinds[i], "ignore-gfp-wait", on ? "Y" : "N");
		setting(kinds[i], "probability", on ? "2" : "0");
	}
}

static void storms_begin(void)
{
	setting("failslab", "times", TIMES);
	setting("fail_page_alloc", "times", TIMES);
}

static void storms_end(void)
{
	int slab = setting("failslab", "times", "1"),
	    page = setting("fail_page_alloc", "times", "1");

	storm(false);
	if (slab < 0)
		return;
	fprintf(stderr, "memory failed %d and %d times\n", atoi(TIMES) - slab, atoi(TIMES) - page);
	assert_in_range(slab, 0, atoi(TIMES) - 1);
}

#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/* What ports that are opened from now on say is enciphered, or has tags alone, or neither; only the
 * latter are of types that know no key. Those that are open stay as they are. */
static void protect(uint64_t turn)
{
	bool encrypts = turn % 4 == 1 || turn % 4 == 2;

	kt_settings("key", turn % 4 ? KEY : "none");
	kt_settings("encrypt", encrypts ? "1" : "0");
}

static void nothing(int number)
{
}

static void begin_process(uint64_t random)
{
	/* What waits is interrupted, so that the next call comes: not by all so soon that a slow
	 * machine never fetches a long message to its end. */
	const suseconds_t wait_us = random & 256 ? 20000 : 320000;
	const struct itimerval often = {{.tv_usec = wait_us}, {.tv_usec = wait_us}};
	const struct sigaction action = {.sa_handler = nothing};
	const struct rlimit limit = {8 * MEMORY, 8 * MEMORY};
	uint64_t other = random + 4;
	pthread_t thread;

	memset(fds, -1, sizeof(fds));
	setrlimit(RLIMIT_MEMLOCK, &limit);
	signal(SIGCHLD, SIG_IGN);
	kt_enter(random & 1 ? "b" : "a");
	if (random & 2 && (setgid(1001) || setuid(1001))) /* whose locked memory is limited */
		_exit(1);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	pthread_create(&thread, NULL, misbehave, &other);
	misbehave(&random);
}

/* Of kt_relay_begin(). */
static void hurt(struct kt_frame *f, long wanted)
{
	kt_hurt(f, wanted);
	relayed++;
	if (f->len == 0)
		kept++;
}

/* The relay, which no process knows but as a way to b. */
static void begin_relay(struct kt_relay *r)
{
	kt_relay_begin(r, hurt);
	for (int i = 0; i < 2; i++) {
		fcntl(r->raw[i], F_SETFD, FD_CLOEXEC);
		fcntl(r->pieces[i], F_SETFD, FD_CLOEXEC);
	}
	by_relay = kt_relayed(&(struct sockaddr_beowire){.sbw_family = AF_BEOWIRE});
}

static void attached_macs(void)
{
	const char *const nodes[] = {"a", "b"};

	for (int i = 0; i < 2; i++) {
		int fd = kt_bound(nodes[i], SOCK_RDM, 0);
		struct sockaddr_beowire at = kt_at(fd);

		memcpy(mac[i], at.sbw_mac, 6);
		close(fd);
	}
}

static long receive_long(void *arg)
{
	return recv(*(const int *)arg, memory + MEMORY / 2, MEMORY / 2, 0);
}

/* Afterwards new sockets do as ever: a connection, and a long message. */
static void meets(int type)
{
	struct kt_pair p = type == SOCK_RDM ? kt_couple(type) : kt_connection(type);
	struct kt_thread t;

	kt_start(&t, receive_long, &p.b);
	assert_int_equal(send(p.a, memory, MEMORY / 2, 0), MEMORY / 2);
	assert_int_equal(kt_join(&t), MEMORY / 2);
	kt_close(&p);
}

static void test_random_calls(void **state)
{
	uint64_t random = seed, end = kt_now_ns() + seconds * 1000000000u, round = 0;
	static const long keeps[] = {HURT_NOTHING, HURT_PULLED, HURT_PULLED, HURT_REST,
				     HURT_LONGER};
	struct kt_relay relay;
	struct kt_pair p;
	char byte = 0;
	pid_t pid[PROCESSES] = {0};

	fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
	done = mmap(NULL, sizeof(nobodys), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		    0);
	assert_ptr_not_equal(done, MAP_FAILED);
	attached_macs();
	begin_relay(&relay);
	assert_true(sysconf(_SC_NPROCESSORS_ONLN) >= 2);
	let_memory_fail();
	storms_begin();
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, post), 0);
	for (int i = 0; i < 2; i++)
		kt_shell("ip netns exec %s sh -c 'echo 0 2000 >/proc/sys/net/beowire/group_range'",
			 i ? "b" : "a");
	/* A kernel that looks for defects takes several times the memory. */
	kt_shell("echo 16777216 >/sys/module/beowire/parameters/overflow_max");
	memset(memory, 1, sizeof(memory));
	while (kt_now_ns() < end) {
		int i = (int)(kt_random(&random) >> 8) % PROCESSES;
		uint64_t its = kt_random(&random);

		if (round % STORM == 0) {
			storm(false); /* not for those that set what follows */
			protect(round / STORM);
			relay.as_it_is = round / STORM % 4 != 0; /* it has no key */
			storm(round / STORM % 2 == 0);
		}
		relay.wanted = keeps[(its >> 32) % 5];
		round++;
		i = i < 0 ? -i : i;
		if (pid[i]) {
			kill(pid[i], SIGKILL);
			waitpid(pid[i], NULL, 0);
		}
		pid[i] = fork();
		if (pid[i] == 0)
			begin_process(its);
		if (pid[i] < 0) /* there was no memory */
			pid[i] = 0;
		usleep(400000);
	}
	storms_end();
	for (int i = 0; i < PROCESSES; i++) {
		if (!pid[i])
			continue;
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	close(post[0]); /* and what has been sent and not been received */
	close(post[1]);
	sleep(2); /* until the last child's alarm */
	protect(0);
	kt_relay_end(&relay);
	for (int i = 0; i < KINDS; i++) {
		fprintf(stderr, "%s: %lu\n", done_names[i], done[i]);
		assert_true(done[i] || seconds < LONG_ENOUGH);
	}
	fprintf(stderr, "the relay kept %lu of %lu frames\n", kept, relayed);
	assert_true(kept || seconds < LONG_ENOUGH);
	assert_int_equal(kt_attach(NULL), 0);
	p = kt_couple(SOCK_RDM);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	kt_close(&p);
	meets(SOCK_RDM);
	meets(SOCK_SEQPACKET);
	kt_becomes(kt_pinned(), 0, 0);
}

int main(int count, char **words)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_random_calls),
	};

	if (count > 1 && !strcmp(words[1], "child"))
		return child();
	if (count > 1)
		seconds = strtoul(words[1], NULL, 10);
	if (count > 2)
		seed = strtoull(words[2], NULL, 10);
	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
