/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random system calls on sockets of all types, by processes that are killed in the midst of them:
 * whatever they do, the kernel complains of nothing, nothing stays pinned, and others are served.
 *
 *	test_random [SECONDS SEED]
 */
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktest.h"

#define PROCESSES 6
#define POOL	  24
#define PORTS	  12 /* few, so that processes meet */
#define MEMORY	  (1u << 18)

static unsigned long seconds = 4;
static uint64_t seed = 1;

static uint8_t mac[2][6]; /* of the nodes a and b */
static _Alignas(4096) uint8_t memory[MEMORY + 4096];

/* One process: its sockets and its random numbers. */
static struct {
	uint64_t random;
	int fd[POOL];
	int node;		  /* where new sockets are opened */
	struct beowire_info info; /* the last one received */
} self;

static uint32_t below(uint32_t n)
{
	return (uint32_t)(kt_random(&self.random) >> 16) % n;
}

static bool rarely(void)
{
	return below(16) == 0;
}

static int *any(void)
{
	return &self.fd[below(POOL)];
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

static struct sockaddr_beowire address(void)
{
	struct sockaddr_beowire a = {.sbw_family = AF_BEOWIRE,
				     .sbw_port = (uint16_t)(1 + below(PORTS))};

	memcpy(a.sbw_mac, mac[below(8) ? !self.node : self.node], 6);
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
	static const int types[] = {SOCK_RDM, SOCK_RDM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};
	int *fd = any();

	close(*fd);
	if (rarely()) {
		self.node = !self.node;
		kt_enter(self.node ? "b" : "a");
	}
	*fd = socket(AF_BEOWIRE, types[below(5)] | SOCK_NONBLOCK, rarely() ? (int)below(20) : 0);
}

static void do_name(void)
{
	struct sockaddr_beowire a = address();
	socklen_t n = address_length();

	switch (below(5)) {
	case 0:
		memset(a.sbw_mac, 0, 6);
		bind(*any(), (struct sockaddr *)&a, n);
		break;
	case 1:
	case 2:
		connect(*any(), (struct sockaddr *)&a, n);
		break;
	case 3:
		getsockname(*any(), (struct sockaddr *)&a, &n);
		break;
	case 4:
		getpeername(*any(), (struct sockaddr *)&a, &n);
		break;
	}
}

static void do_connections(void)
{
	int *fd = any();

	switch (below(4)) {
	case 0:
		listen(*any(), (int)below(4));
		break;
	case 1:
	case 2:
		close(*fd);
		*fd = accept4(*any(), NULL, NULL, SOCK_NONBLOCK);
		break;
	case 3:
		shutdown(*any(), (int)below(4));
		break;
	}
}

static int flags(void)
{
	static const int known[] = {MSG_PEEK,	 MSG_TRUNC, MSG_MORE,
				    MSG_WAITALL, MSG_OOB,   MSG_ERRQUEUE};
	int f = MSG_DONTWAIT | MSG_NOSIGNAL;

	for (uint32_t i = below(3); i; i--)
		f |= known[below(6)];
	return f;
}

static void do_send(void)
{
	struct sockaddr_beowire to = address();
	struct beowire_info info = {.cookie = below(2),
				    .peer = below(4),
				    .flags = (uint16_t)below(4),
				    .code = (uint8_t)below(130)};
	struct iovec parts[4];
	struct mmsghdr row[4];

	switch (below(6)) {
	case 0:
		send(*any(), pointer(), length(), flags());
		break;
	case 1:
		sendto(*any(), pointer(), length(), flags(), (struct sockaddr *)&to,
		       address_length());
		break;
	case 2:
		kt_send_info(*any(), pointer(), length(), below(2) ? &to : NULL, &info, flags());
		break;
	case 3:
		(void)!write(*any(), pointer(), length());
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
		sendmmsg(*any(), row, 4, (unsigned)flags());
	}
}

static void do_receive(void)
{
	struct sockaddr_beowire from;
	socklen_t n = sizeof(from);
	struct iovec parts[2] = {{pointer(), length() / 2}, {pointer(), length() / 2}};

	switch (below(4)) {
	case 0:
		recv(*any(), pointer(), length(), flags());
		break;
	case 1:
		recvfrom(*any(), pointer(), length(), flags(), (struct sockaddr *)&from, &n);
		break;
	case 2:
		kt_recv_info(*any(), pointer(), length(), &self.info, flags());
		break;
	case 3:
		(void)!readv(*any(), parts, 2);
		break;
	}
}

static void do_option(void)
{
	int number = (int)value();
	socklen_t n = rarely() ? below(300) : sizeof(number);
	uint8_t room[300];

	memcpy(room, &number, sizeof(number));
	switch (below(4)) {
	case 0:
	case 1:
		setsockopt(*any(), SOL_BEOWIRE, (int)below(10),
			   below(2) ? (void *)&(int){(int)below(2)} : room, sizeof(int));
		break;
	case 2:
		getsockopt(*any(), SOL_BEOWIRE, (int)below(10), room, &n);
		break;
	case 3:
		number &= 0xfffff;
		setsockopt(*any(), SOL_SOCKET, below(2) ? SO_SNDBUF : SO_RCVBUF, &number,
			   sizeof(number));
		break;
	}
}

static void do_ioctl(void)
{
	struct beowire_pull pull = {.key = self.info.key,
				    .buf = (uintptr_t)pointer(),
				    .len = length(),
				    .cookie = below(2),
				    .peer = self.info.peer};
	struct beowire_iface iface = {.name = "eth0"};

	if (rarely())
		((uint8_t *)&pull)[below(sizeof(pull))] = (uint8_t)value();
	if (rarely() && rarely())
		ioctl(*any(), below(8) ? BEOWIRE_IOC_ATTACH : BEOWIRE_IOC_DETACH, &iface);
	else
		ioctl(*any(), BEOWIRE_IOC_PULL, &pull);
}

static void do_other(void)
{
	struct pollfd poller = {.fd = *any(), .events = (short)value()};
	int *fd = any();

	switch (below(3)) {
	case 0:
		poll(&poller, 1, (int)below(3));
		break;
	case 1:
		close(*fd);
		*fd = dup(*any());
		break;
	case 2:
		close(*fd);
		*fd = -1;
		break;
	}
}

/* Until a signal ends it. */
static void misbehave(uint64_t random)
{
	static void (*const calls[])(void) = {
		do_socket,  do_socket,	do_name,    do_connections, do_send,  do_send, do_send,
		do_receive, do_receive, do_receive, do_option,	    do_ioctl, do_other};
	const struct rlimit limit = {8 * MEMORY, 8 * MEMORY};

	self.random = random;
	memset(self.fd, -1, sizeof(self.fd));
	setrlimit(RLIMIT_MEMLOCK, &limit);
	kt_enter("a");
	for (;;)
		calls[below(sizeof(calls) / sizeof(calls[0]))]();
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

static void test_random_calls(void **state)
{
	uint64_t random = seed, end = kt_now_ns() + seconds * 1000000000u;
	struct kt_pair p;
	char byte = 0;
	pid_t pid[PROCESSES] = {0};

	alarm(KT_PATIENCE_S + (unsigned)seconds);
	attached_macs();
	memset(memory, 1, sizeof(memory));
	while (kt_now_ns() < end) {
		int i = (int)(kt_random(&random) >> 8) % PROCESSES;
		uint64_t its = kt_random(&random);

		i = i < 0 ? -i : i;
		if (pid[i]) {
			kill(pid[i], SIGKILL);
			waitpid(pid[i], NULL, 0);
		}
		pid[i] = fork();
		if (pid[i] == 0)
			misbehave(its);
		usleep(200000);
	}
	for (int i = 0; i < PROCESSES; i++) {
		if (!pid[i])
			continue;
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	assert_int_equal(kt_attach(NULL), 0);
	p = kt_couple(SOCK_RDM);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	kt_close(&p);
	assert_true(kt_pinned_becomes(0));
}

int main(int count, char **words)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_random_calls),
	};

	if (count > 1)
		seconds = strtoul(words[1], NULL, 10);
	if (count > 2)
		seed = strtoull(words[2], NULL, 10);
	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
