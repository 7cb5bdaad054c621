/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The driver of the differential test: it draws calls, makes each on both connections, and
 * compares. See differ.c. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "differ.h"
#include "rng.h"

#define MOST	 200000 /* bytes of a call */
#define KEPT	 50000	/* bytes that wait to be read */
#define SWITCHES 20	/* ways back after which it is waited for the next switch */

extern int beowire_sockets_way(int fd) __attribute__((weak));

struct sim_rng rng;
uint64_t waiting;
int epolls[2];
static uint64_t got[2], sent[2]; /* bytes */
static int copies[2] = {-1, -1};
static uint8_t bytes[2][MOST], pattern[MOST];

void stay_on_tcp(int fd)
{
	const int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)))
		bad("SO_OOBINLINE: %s", strerror(errno));
}

bool preloaded(void)
{
	return beowire_sockets_way;
}

int way_of(int fd)
{
	return preloaded() ? beowire_sockets_way(fd) : 0;
}

int64_t order(enum what what, uint64_t first, uint64_t second)
{
	struct order o = {.what = what, .n = {(int64_t)first, (int64_t)second}};
	int64_t answer;

	whole(control, &o, sizeof(o), false);
	whole(control, &answer, sizeof(answer), true);
	return answer;
}

uint64_t size(void)
{
	return sim_scale(&rng, 1, MOST / 4);
}

/* Until both have this many bytes to be read. */
static void await_bytes(uint64_t n)
{
	uint64_t until = bw_clock_now() + SOON_NS;
	int here[2] = {0};

	do {
		for (int k = 0; k < 2; k++) {
			if (ioctl(streams[k], FIONREAD, &here[k]))
				bad("FIONREAD: %s", strerror(errno));
		}
		if ((uint64_t)here[0] == n && (uint64_t)here[1] == n)
			return;
		usleep(200);
	} while (bw_clock_now() < until);
	bad("%llu bytes are to come: %d, %d have", (unsigned long long)n, here[0], here[1]);
}

void drain(void)
{
	while (waiting) {
		size_t n = waiting < MOST ? waiting : MOST;

		for (int k = 0; k < 2; k++) {
			if (recv(streams[k], bytes[k], n, MSG_WAITALL) != (ssize_t)n)
				bad("the rest");
			check(bytes[k], got[k], n, "the rest");
			got[k] += n;
		}
		waiting -= n;
	}
}

void come(uint64_t n)
{
	if (n > KEPT / 2)
		n = KEPT / 2;
	if (waiting + n > KEPT)
		drain();
	order(WRITE, n, n);
	waiting += n;
	await_bytes(waiting);
}

struct result {
	long rc;
	int error;
	size_t control;	 /* bytes told beside the stream */
	socklen_t named; /* bytes of the sender's name */
};

static void same(struct result one, struct result other, const char *what)
{
	if (one.rc != other.rc || (one.rc < 0 && one.error != other.error))
		bad("%s: %ld (%s), but TCP says %ld (%s)", what, one.rc,
		    one.rc < 0 ? strerror(one.error) : "", other.rc,
		    other.rc < 0 ? strerror(other.error) : "");
	if (one.control != other.control || one.named != other.named)
		bad("%s: %zu bytes of control messages, %u of a name, but TCP says %zu and %u",
		    what, one.control, one.named, other.control, other.named);
}

static struct result receive_one(int how, int fd, uint8_t *to, size_t n, int flags)
{
	struct iovec iov[3] = {{to, n / 3}, {to + n / 3, 0}, {to + n / 3, n - n / 3}};
	uint8_t control[100];
	struct sockaddr_in from;
	struct msghdr m = {.msg_name = &from,
			   .msg_namelen = sizeof(from),
			   .msg_iov = iov,
			   .msg_iovlen = 3,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct mmsghdr mm = {.msg_hdr = m};
	socklen_t len = 0;
	long rc = -1;

	errno = 0;
	switch (how) {
	case 0:
		rc = recv(fd, to, n, flags);
		break;
	case 1:
		rc = recvmsg(fd, &m, flags);
		break;
	case 2:
		rc = recvfrom(fd, to, n, flags, NULL, &len);
		break;
	case 3:
		rc = recvmmsg(fd, &mm, 1, flags, NULL);
		if (rc == 1)
			rc = mm.msg_len;
		m = mm.msg_hdr;
		break;
	case 4:
		rc = read(fd, to, n);
		break;
	case 5:
		rc = readv(fd, iov, 3);
		break;
	}
	return (struct result){rc, errno, m.msg_controllen, m.msg_namelen};
}

static void receive(void)
{
	static const int flags[] = {0,	       MSG_PEEK,    MSG_DONTWAIT,
				    MSG_TRUNC, MSG_WAITALL, MSG_PEEK | MSG_DONTWAIT};
	int how = (int)sim_below(&rng, 6), with = flags[sim_below(&rng, 6)];
	size_t n = size();
	struct result result[2];

	if (!waiting && !(how < 4 && with & MSG_DONTWAIT))
		come(size());
	/* It would wait for more. */
	if (with & MSG_WAITALL && n > waiting)
		n = waiting;
	for (int k = 0; k < 2; k++)
		result[k] = receive_one(how, streams[k], bytes[k], n, with);
	same(result[0], result[1], how < 4 ? "recv" : "read");
	if (result[0].rc <= 0)
		return;
	if (how >= 4 || !(with & MSG_TRUNC)) {
		for (int k = 0; k < 2; k++)
			check(bytes[k], got[k], (size_t)result[k].rc, k ? "TCP" : "switched");
	}
	if (how < 4 && with & MSG_PEEK)
		return;
	for (int k = 0; k < 2; k++)
		got[k] += (uint64_t)result[k].rc;
	waiting -= (uint64_t)result[0].rc;
}

static struct result send_one(int how, int fd, const uint8_t *from, size_t n, int file)
{
	struct iovec iov[2] = {{(void *)from, n / 2}, {(void *)(from + n / 2), n - n / 2}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
	struct mmsghdr mm = {.msg_hdr = m};
	off_t at = 0;
	long rc = -1;

	switch (how) {
	case 0:
		rc = send(fd, from, n, MSG_NOSIGNAL);
		break;
	case 1:
		rc = sendmsg(fd, &m, MSG_MORE);
		break;
	case 2:
		rc = write(fd, from, n);
		break;
	case 3:
		rc = writev(fd, iov, 2);
		break;
	case 4:
		rc = sendmmsg(fd, &mm, 1, 0);
		if (rc == 1)
			rc = mm.msg_len;
		break;
	case 5:
		rc = sendfile(fd, file, &at, n);
		break;
	}
	return (struct result){rc, errno, 0, 0};
}

static void transmit(void)
{
	int how = (int)sim_below(&rng, 6), file = -1;
	struct result result[2];
	size_t n = size();

	fill(pattern, sent[0], n);
	if (how == 5) {
		file = fileno(tmpfile());
		if (pwrite(file, pattern, n, 0) != (ssize_t)n)
			bad("a file: %s", strerror(errno));
	}
	for (int k = 0; k < 2; k++)
		result[k] = send_one(how, streams[k], pattern, n, file);
	if (file >= 0)
		close(file);
	same(result[0], result[1], "send");
	for (int k = 0; k < 2; k++)
		sent[k] += (uint64_t)result[k].rc;
	order(READ, (uint64_t)result[0].rc, (uint64_t)result[1].rc);
}

/* As many bytes on one connection as on the other. */
static void even_out(void)
{
	int less = sent[1] < sent[0];
	uint64_t missing = sent[!less] - sent[less];

	while (missing) {
		size_t n = missing < MOST ? missing : MOST;

		fill(pattern, sent[less], n);
		if (send(streams[less], pattern, n, 0) != (ssize_t)n)
			bad("a blocking send: %s", strerror(errno));
		order(READ, less ? 0 : n, less ? n : 0);
		sent[less] += n;
		missing -= n;
	}
}

/* Until neither takes more; then all of it is read. How much they take is their own affair. */
static void fill_up(void)
{
	uint64_t began[2] = {sent[0], sent[1]};
	struct pollfd p;

	for (int k = 0; k < 2; k++) {
		ssize_t n;

		do {
			fill(pattern, sent[k], 50000);
			n = send(streams[k], pattern, 50000, MSG_DONTWAIT);
			if (n > 0)
				sent[k] += (uint64_t)n;
		} while (n > 0 && sent[k] - began[k] < 64u << 20);
		if (n >= 0 || errno != EAGAIN)
			bad("a full connection: %zd, %s", n, strerror(errno));
	}
	order(READ, sent[0] - began[0], sent[1] - began[1]);
	even_out();
	for (int k = 0; k < 2; k++) {
		p = (struct pollfd){.fd = streams[k], .events = POLLOUT};
		if (poll(&p, 1, SOON_MS) != 1 || p.revents != POLLOUT)
			bad("not writable again: %x", p.revents);
	}
}

static void look_by_poll(void)
{
	struct pollfd p[2];
	fd_set r, w;
	struct timeval now = {0};

	for (int k = 0; k < 2; k++)
		p[k] = (struct pollfd){.fd = streams[k], .events = POLLIN | POLLOUT};
	poll(p, 2, 0);
	if (p[0].revents != p[1].revents)
		bad("poll: %x, but TCP says %x", p[0].revents, p[1].revents);
	FD_ZERO(&r);
	FD_ZERO(&w);
	for (int k = 0; k < 2; k++) {
		FD_SET(streams[k], &r);
		FD_SET(streams[k], &w);
	}
	select((streams[0] > streams[1] ? streams[0] : streams[1]) + 1, &r, &w, NULL, &now);
	if (!FD_ISSET(streams[0], &r) != !FD_ISSET(streams[1], &r) ||
	    !FD_ISSET(streams[0], &w) != !FD_ISSET(streams[1], &w))
		bad("select");
}

static void time_out(void)
{
	struct timeval soon = {.tv_usec = 20000}, never = {0};
	struct result result[2];

	drain();
	for (int k = 0; k < 2; k++) {
		setsockopt(streams[k], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
		result[k] = receive_one(0, streams[k], bytes[k], 10, 0);
		setsockopt(streams[k], SOL_SOCKET, SO_RCVTIMEO, &never, sizeof(never));
	}
	same(result[0], result[1], "SO_RCVTIMEO");
}

/* The same connections under other numbers. */
static void copy(void)
{
	for (int k = 0; k < 2; k++) {
		int was = streams[k];

		if (copies[k] >= 0)
			close(copies[k]);
		copies[k] = -1;
		streams[k] = sim_below(&rng, 2) ? dup(was) : fcntl(was, F_DUPFD_CLOEXEC, 50);
		if (sim_below(&rng, 2))
			copies[k] = was;
		else
			close(was);
	}
}

/* A child that has them too, and reads what came. */
static void fork_reader(void)
{
	pid_t child;
	int status;

	if (!waiting)
		come(size());
	child = fork();
	if (!child) {
		for (int k = 0; k < 2; k++) {
			if (recv(streams[k], bytes[k], 1, MSG_WAITALL) != 1)
				bad("the child's recv: %s", strerror(errno));
			if (bytes[k][0] != byte_at(got[k]))
				_exit(3);
		}
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		bad("the child: %x", status);
	for (int k = 0; k < 2; k++)
		got[k]++;
	waiting--;
	await_bytes(waiting);
}

static void run_true(void)
{
	if (system("true"))
		bad("system()");
}

static void ends(void)
{
	struct result result[2];
	uint64_t until = bw_clock_now() + SOON_NS;

	struct pollfd p;

	drain();
	await_peer(); /* else TCP alone would tell the end */
	order(SHUT, 0, 0);
	for (int k = 0; k < 2; k++) {
		p = (struct pollfd){.fd = streams[k], .events = POLLIN};
		if (poll(&p, 1, SOON_MS) != 1 || p.revents != POLLIN)
			bad("no end is told: %x", p.revents);
	}
	for (int k = 0; k < 2; k++)
		result[k] = receive_one(0, streams[k], bytes[k], 10, 0);
	same(result[0], result[1], "the end");
	if (result[0].rc)
		bad("no end");
	look_by_poll();
	transmit();
	order(CLOSE, 0, 0);
	/* The first bytes are answered by a reset, and then there is nobody to send to. */
	for (int k = 0; k < 2; k++) {
		do {
			result[k].rc = send(streams[k], "x", 1, MSG_NOSIGNAL);
			result[k].error = errno;
			usleep(1000);
		} while (result[k].rc > 0 && bw_clock_now() < until);
		if (result[k].error != EPIPE && result[k].error != ECONNRESET)
			bad("sending to nobody: %s", strerror(result[k].error));
	}
}

static int dial(const char *address, uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, address, &to.sin_addr);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		bad("connect: %s", strerror(errno));
	return fd;
}

/* Both ways by Beowire, at both ends. */
static void await_switch(void)
{
	uint64_t until = bw_clock_now() + SOON_NS;

	while (preloaded() && (way_of(streams[0]) != 3 || order(WAY, 0, 0) != 3)) {
		if (bw_clock_now() > until)
			bad("not switched: %d", way_of(streams[0]));
		transmit();
		come(1);
		receive();
		usleep(1000);
	}
}

static void step(int *returns)
{
	/* After a way back what was not read comes again, when it comes. */
	await_bytes(waiting);
	switch (sim_below(&rng, 45)) {
	case 0:
		fill_up();
		return;
	case 1:
		copy();
		return;
	case 2:
		fork_reader();
		break;
	case 3:
		run_true();
		return;
	case 4:
		order(FORK, 0, 0);
		break;
	case 40:
	case 41:
		back_by_epoll();
		break;
	case 42:
		edge_of_both_ways();
		break;
	case 43:
		once_of_both_ways();
		break;
	case 44:
		copy_epolls();
		return;
	case 5:
	case 6:
		time_out();
		return;
	case 7 ... 10:
		look_by_poll();
		return;
	case 11 ... 14:
		look_by_epoll();
		return;
	case 15 ... 27:
		receive();
		return;
	default:
		transmit();
		return;
	}
	if ((*returns)++ < SWITCHES)
		await_switch();
}

void drive(const char *address, uint16_t port, uint64_t seed, int steps)
{
	int returns = 0;

	rng.state = seed;
	control = dial(address, port);
	stay_on_tcp(control);
	for (int k = 0; k < 2; k++)
		streams[k] = dial(address, port);
	open_epolls();
	stay_on_tcp(streams[1]);
	await_switch();
	for (int i = 0; i < steps; i++)
		step(&returns);
	ends();
	printf("%llu bytes received, %llu sent, %d ways back\n", (unsigned long long)got[0],
	       (unsigned long long)sent[0], returns);
}
