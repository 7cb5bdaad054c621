/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections to a node without the library cost next to nothing: few wake-ups of the library's
 * thread, and no system calls beside the program's own; its descriptors are out of the way.
 * In a network namespace of its own, where nobody answers offers.
 *	quiet LIBRARY
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
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
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 3
#define ROUNDS	    200
#define OFFER_PORT  47098
#define PATIENCE_S  280
/* Offers are far apart by then: 0.1 s after the first refusal, and twice as long each time. */
#define SETTLED_US  1500000
#define PATIENCE_MS 60000 /* until an endpoint is open, on a busy machine */
#define WATCHED_US  2000000
#define WAKE_UPS    60	/* in that time; one look in 2 ms are a thousand */
#define FEW	    100 /* system calls beside three in each round: what is done once */
#define SKIPPED	    77
#define HIGH	    400 /* from half of the limit on, if that is less than 8192 */

static void bad(const char *what, long n)
{
	fprintf(stderr, "quiet: %s: %ld (%s)\n", what, n, strerror(errno));
	exit(1);
}

static struct sockaddr_in name(const char *address, uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, address, &to.sin_addr);
	return to;
}

static long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

/* How often the thread of this process with this name has slept. */
static long slept(const char *thread)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *each;
	long n = -1;

	while (n < 0 && (each = readdir(tasks))) {
		char path[300], line[200];
		bool ours = false;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", each->d_name);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f)) {
			ours |= !strncmp(line, "Name:\t", 6) && !strncmp(line + 6, thread, 15);
			if (ours)
				sscanf(line, "voluntary_ctxt_switches: %ld", &n);
		}
		if (f)
			fclose(f);
	}
	closedir(tasks);
	return n;
}

/* The tracer counts between two of these. */
static void mark(void)
{
	syscall(SYS_getppid);
}

static void echo(int epoll, int fd)
{
	struct epoll_event e;
	char one = 1;

	if (write(fd, &one, 1) != 1 || epoll_wait(epoll, &e, 1, -1) != 1 || read(fd, &one, 1) != 1)
		bad("an echo", 0);
}

/* Is this the board of an endpoint, the file that the endpoint opens last? */
static bool is_board(DIR *fds, const char *fd)
{
	static const char boards[] = "/dev/shm/beowire-";
	char target[64] = "";

	(void)!readlinkat(dirfd(fds), fd, target, sizeof(target) - 1);
	return !strncmp(target, boards, sizeof(boards) - 1);
}

/* Descriptors of the library; 0: it does not have all that it wants yet; -1: one of them has a low
 * number. */
static int descriptors(int epoll, const int *program)
{
	bool low = false, board = false;
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *each;
	int n = 0;

	while ((each = readdir(fds))) {
		int fd = atoi(each->d_name);
		bool own = fd > STDERR_FILENO && fd != dirfd(fds) && fd != epoll;

		for (int i = 0; i < CONNECTIONS; i++)
			own = own && fd != program[i];
		if (each->d_name[0] == '.' || !own)
			continue;
		n++;
		board = board || is_board(fds, each->d_name);
		low = low || fd < HIGH;
		if (fd >= HIGH && (!close(fd) || errno != EBADF))
			bad("a descriptor of the library's is closed", fd);
	}
	closedir(fds);
	if (!board)
		return 0;
	return low ? -1 : n;
}

/* They have high numbers, and the program cannot close them. One has a low number for the moment in
 * which it is made. */
static void own_descriptors(int epoll, const int *program)
{
	int n = 0;

	for (int i = 0; i < PATIENCE_MS && (n = descriptors(epoll, program)) <= 0; i += 10)
		usleep(10000);
	if (n <= 0)
		bad(n < 0 ? "a low number of the library's" : "descriptors of the library", n);
}

static int client(uint16_t port)
{
	struct sockaddr_in to = name("127.0.0.1", port);
	int epoll = epoll_create1(EPOLL_CLOEXEC), fds[CONNECTIONS];
	struct epoll_event e = {.events = EPOLLIN};
	long before, after, began, most;

	for (int i = 0; i < CONNECTIONS; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fds[i], (struct sockaddr *)&to, sizeof(to)))
			bad("connect", i);
		epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &e);
	}
	for (int i = 0; i < CONNECTIONS; i++)
		echo(epoll, fds[i]);
	own_descriptors(epoll, fds);
	usleep(SETTLED_US);
	mark();
	for (int i = 0; i < ROUNDS; i++)
		echo(epoll, fds[i % CONNECTIONS]);
	mark();
	began = now_us();
	before = slept("beowire-sockets");
	usleep(WATCHED_US);
	after = slept("beowire-sockets");
	/* On a busy machine it is watched for longer. */
	most = WAKE_UPS * (now_us() - began) / WATCHED_US;
	if (before < 0 || after < before || after - before > most)
		bad("wake-ups of the library's thread", before < 0 ? before : after - before);
	return 0;
}

static void serve(int listener)
{
	int fds[CONNECTIONS];
	char one;

	for (int i = 0; i < CONNECTIONS; i++)
		fds[i] = accept(listener, NULL, NULL);
	for (int i = 0; i < CONNECTIONS; i++) {
		if (read(fds[i], &one, 1) == 1)
			(void)!write(fds[i], &one, 1);
	}
	for (int i = 0; read(fds[i % CONNECTIONS], &one, 1) == 1; i++)
		(void)!write(fds[i % CONNECTIONS], &one, 1);
}

/* System calls of the main thread between the marks; its exit status. */
static int trace(pid_t pid, long *calls)
{
	struct __ptrace_syscall_info info;
	int status, marks = 0;
	long sum = 0;

	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
		int sig = WSTOPSIG(status);

		if (sig == (SIGTRAP | 0x80)) {
			sig = 0;
			if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
			    info.op == PTRACE_SYSCALL_INFO_ENTRY) {
				marks += info.entry.nr == SYS_getppid;
				sum += marks == 1;
			}
		} else if (sig == SIGSTOP || sig == SIGTRAP) {
			ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD);
			sig = 0;
		}
		ptrace(PTRACE_SYSCALL, pid, 0, sig);
	}
	*calls = marks == 2 ? sum : -1;
	return status;
}

static void child_of_ours(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(PATIENCE_S);
}

static pid_t start_client(const char *library, uint16_t port)
{
	pid_t pid = fork();
	char text[8];

	if (pid)
		return pid;
	child_of_ours();
	snprintf(text, sizeof(text), "%u", port);
	setenv("LD_PRELOAD", library, 1);
	setenv("BEOWIRE_SOCKETS_AFTER", "0", 1);
	setenv("BEOWIRE_SOCKETS_COMPARE", "off", 1);
	setenv("BEOWIRE_SOCKETS_WITHIN", "on", 1);
	setenv("BEOWIRE_LINKS", "local,udp", 1);
	setenv("BEOWIRE_UDP_ADDRESS", "127.0.0.1", 1);
	close_range(STDERR_FILENO + 1, ~0u, 0);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	execl("/proc/self/exe", "quiet", "client", text, (char *)NULL);
	_exit(1);
}

/* Who may not have one cannot try this. */
static void own_network(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		perror("quiet: a network namespace");
		exit(errno == EPERM ? SKIPPED : 1);
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (ioctl(fd, SIOCSIFFLAGS, &lo))
		bad("the loopback interface", 0);
	close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_in any = name("127.0.0.1", 0), other = name("127.0.0.2", OFFER_PORT);
	socklen_t len = sizeof(any);
	int listener, holder, status;
	pid_t server, pid;
	long calls;

	if (argc == 3)
		return client((uint16_t)atoi(argv[2]));
	own_network();
	/* Nobody has the port at 127.0.0.1, nor can the client have it. */
	holder = socket(AF_INET, SOCK_DGRAM, 0);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(holder, (struct sockaddr *)&other, sizeof(other)) ||
	    bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, CONNECTIONS) ||
	    getsockname(listener, (struct sockaddr *)&any, &len))
		bad("sockets", 0);
	server = fork();
	if (!server) {
		child_of_ours();
		serve(listener);
		_exit(0);
	}
	close(listener);
	pid = start_client(argv[1], ntohs(any.sin_port));
	status = trace(pid, &calls);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		bad("the client's status", status);
	if (calls < 3 * ROUNDS || calls > 3 * ROUNDS + FEW)
		bad("system calls", calls);
	waitpid(server, &status, 0);
	return 0;
}
