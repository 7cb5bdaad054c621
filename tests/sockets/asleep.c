/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who sleeps until an answer comes by Beowire makes no calls beside those for sleeping and for
 * sending: it rings for nobody, and asks the kernel nothing that it knows. And of two threads that
 * sleep each hears what it waits for, whichever of them drives; with `alone` also where no helper
 * thread would. Two processes in a network namespace of their own.
 *	asleep [alone] LIBRARY
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECTIONS 2
#define ROUNDS	    200
#define TURNS	    8
#define PATIENCE_S  280
#define ALONE_S                                                                                    \
	50 /* shorter than the minute after which a connection that stands still is given up */
#define THINKS_US 1000 /* the server, so that who waits for it sleeps */
#define SKIPPED	  77
/* Of the kinds of which an answer needs none: what is looked at by time. */
#define CALLS (ROUNDS * 3 / 4)

static void bad(const char *what, long n)
{
	fprintf(stderr, "asleep: %s: %ld (%s)\n", what, n, strerror(errno));
	exit(1);
}

static struct sockaddr_in name(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* The tracer counts between two of these. */
static void mark(void)
{
	syscall(SYS_getppid);
}

static void epoll_waits(int epoll, int fd)
{
	struct epoll_event e;

	if (epoll_wait(epoll, &e, 1, -1) != 1)
		bad("epoll_wait", 0);
}

static void poll_waits(int epoll, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (poll(&p, 1, -1) != 1)
		bad("poll", 0);
}

static void echoes(int n, int epoll, int fd, void (*waits)(int epoll, int fd))
{
	char one = 1;

	for (int i = 0; i < n; i++) {
		if (write(fd, &one, 1) != 1)
			bad("write", i);
		waits(epoll, fd);
		if (read(fd, &one, 1) != 1)
			bad("read", i);
	}
}

/* Segments with data, both ways, by TCP. */
static uint32_t segments(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		bad("TCP_INFO", fd);
	return info.tcpi_data_segs_in + info.tcpi_data_segs_out;
}

static void leave_tcp(int fd)
{
	uint32_t before;

	do {
		before = segments(fd);
		echoes(2, -1, fd, poll_waits);
	} while (segments(fd) != before);
}

/* One of two threads: its echoes. */
struct talk {
	int fd, rounds;
};

static void *talk(void *arg)
{
	const struct talk *t = arg;

	echoes(t->rounds, -1, t->fd, poll_waits);
	return NULL;
}

/* Two threads at a time, of which one ends first: by turns the one that drives and the other. */
static void talk_by_turns(const int *fds)
{
	pthread_t thread;

	for (int turn = 0; turn < TURNS; turn++) {
		struct talk first = {fds[0], ROUNDS / TURNS * (1 + turn % 2)};
		struct talk second = {fds[1], ROUNDS / TURNS * (2 - turn % 2)};

		if (pthread_create(&thread, NULL, talk, &second))
			bad("a thread", turn);
		talk(&first);
		pthread_join(thread, NULL);
	}
}

static int client(uint16_t port)
{
	struct sockaddr_in to = name(port);
	int epoll = epoll_create1(EPOLL_CLOEXEC), fds[CONNECTIONS];
	struct epoll_event e = {.events = EPOLLIN};

	for (int i = 0; i < CONNECTIONS; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fds[i], (struct sockaddr *)&to, sizeof(to)))
			bad("connect", i);
		leave_tcp(fds[i]);
	}
	epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &e);
	mark();
	echoes(ROUNDS, epoll, fds[0], epoll_waits);
	mark();
	talk_by_turns(fds);
	return 0;
}

static int serve(int listener)
{
	int fds[CONNECTIONS], epoll = epoll_create1(EPOLL_CLOEXEC);
	char one;

	for (int i = 0; i < CONNECTIONS; i++) {
		struct epoll_event e = {.events = EPOLLIN, .data.fd = 0};

		fds[i] = accept(listener, NULL, NULL);
		e.data.fd = fds[i];
		epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &e);
		/* The next one calls when this one has left TCP. */
		while (i + 1 < CONNECTIONS) {
			struct pollfd p[] = {{.fd = fds[i], .events = POLLIN},
					     {.fd = listener, .events = POLLIN}};

			poll(p, 2, -1);
			if (p[1].revents)
				break;
			if (read(fds[i], &one, 1) != 1 || write(fds[i], &one, 1) != 1)
				return 1;
		}
	}
	while (true) {
		struct epoll_event e;

		if (epoll_wait(epoll, &e, 1, -1) != 1)
			continue;
		if (read(e.data.fd, &one, 1) != 1)
			return 0;
		usleep(THINKS_US);
		if (write(e.data.fd, &one, 1) != 1)
			return 0;
	}
}

/* Is this a descriptor by which threads wake others, or an epoll instance? The files by which it is
 * looked how busy the machine is are read the more often the longer all takes. */
static bool is_of_events(pid_t pid, uint64_t fd)
{
	char path[64], target[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/fd/%llu", (int)pid, (unsigned long long)fd);
	return readlink(path, target, sizeof(target) - 1) > 0 &&
	       !strncmp(target, "anon_inode:[event", 17);
}

/* Calls of the main thread between the marks that concern descriptors by which threads wake others,
 * or epoll instances; its exit status. */
static int trace(pid_t pid, long *calls)
{
	struct __ptrace_syscall_info info;
	int status, marks = 0;

	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
		int sig = WSTOPSIG(status);

		if (sig == (SIGTRAP | 0x80)) {
			sig = 0;
			if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
			    info.op == PTRACE_SYSCALL_INFO_ENTRY) {
				marks += info.entry.nr == SYS_getppid;
				*calls +=
					marks == 1 &&
					(info.entry.nr == SYS_read || info.entry.nr == SYS_write ||
					 info.entry.nr == SYS_epoll_pwait) &&
					is_of_events(pid, info.entry.args[0]);
			}
		} else if (sig == SIGSTOP || sig == SIGTRAP) {
			ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD);
			sig = 0;
		}
		ptrace(PTRACE_SYSCALL, pid, 0, sig);
	}
	return marks == 2 ? status : -1;
}

static pid_t start(const char *library, const char *what, int number, bool traced, bool alone)
{
	pid_t pid = fork();
	char text[16];

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(alone ? ALONE_S : PATIENCE_S);
	if (alone)
		setenv("BEOWIRE_HELPER", "off", 1);
	snprintf(text, sizeof(text), "%d", number);
	setenv("LD_PRELOAD", library, 1);
	setenv("BEOWIRE_SOCKETS_AFTER", "0", 1);
	setenv("BEOWIRE_SOCKETS_COMPARE", "off", 1);
	setenv("BEOWIRE_SOCKETS_WITHIN", "on", 1);
	setenv("BEOWIRE_LINKS", "udp", 1);
	setenv("BEOWIRE_UDP_ADDRESS", "127.0.0.1", 1);
	if (traced) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
	}
	execl("/proc/self/exe", "asleep", what, text, (char *)NULL);
	_exit(1);
}

/* Who may not have one cannot try this. */
static void own_network(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		perror("asleep: a network namespace");
		exit(errno == EPERM ? SKIPPED : 1);
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (ioctl(fd, SIOCSIFFLAGS, &lo))
		bad("the loopback interface", 0);
	close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_in any = name(0);
	socklen_t len = sizeof(any);
	bool alone = argc == 3 && !strcmp(argv[1], "alone");
	const char *library = argv[argc - 1];
	long calls = 0;
	int listener, status;
	pid_t server, pid;

	if (argc == 3 && !strcmp(argv[1], "server"))
		return serve(atoi(argv[2]));
	if (argc == 3 && !alone)
		return client((uint16_t)atoi(argv[2]));
	own_network();
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, CONNECTIONS) ||
	    getsockname(listener, (struct sockaddr *)&any, &len))
		bad("sockets", 0);
	server = start(library, "server", listener, false, alone);
	pid = start(library, "client", ntohs(any.sin_port), true, alone);
	status = trace(pid, &calls);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		bad("the client's status", status);
	if (calls > CALLS)
		bad("calls", calls);
	kill(server, SIGKILL);
	waitpid(server, &status, 0);
	return 0;
}
