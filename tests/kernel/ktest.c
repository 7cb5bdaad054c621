/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See ktest.h. */
#include "ktest.h"
#include "kuser.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Of the program's tests only those that KT_ONLY names. */
__attribute__((constructor)) static void kt_choose(void)
{
	const char *only = getenv("KT_ONLY");

	if (only)
		cmocka_set_test_filter(only);
}

int kt_attach(void **state)
{
	const char *const nodes[] = {"a", "b"};

	for (int i = 0; i < 2; i++) {
		struct beowire_iface iface = {.name = "eth0"};
		int fd;

		kt_enter(nodes[i]);
		fd = socket(AF_BEOWIRE, SOCK_RDM, 0);
		if (ioctl(fd, BEOWIRE_IOC_ATTACH, &iface) != 0 && errno != EEXIST) {
			fprintf(stderr, "eth0 of %s: %s\n", nodes[i], strerror(errno));
			return -1;
		}
		close(fd);
	}
	return 0;
}

static void kt_interrupt_no_more(void);

unsigned kt_patience_s(void)
{
	const char *left = getenv("GUEST_LEFT_S");

	return left ? (unsigned)strtoul(left, NULL, 10) / 2 : 100;
}

int kt_end(void **state)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/fd");

	kt_interrupt_no_more();
	kt_release_workers();
	/* A test that failed has left its sockets open, and its processes. */
	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (fd > 2 && fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
	/* and its relay (kframe.h), */
	if (!access("/run/netns/m", F_OK) &&
	    system("ip -n a link del m0; ip -n b link del m0; ip netns del m"))
		return -1;
	kt_end_begun();
	kt_restore_parameters();
	return 0;
}

void kt_enter(const char *node)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/var/run/netns/%s", node);
	fd = open(path, O_RDONLY);
	if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) {
		fprintf(stderr, "namespace %s: %s; the programs run by guest.sh\n", node,
			strerror(errno));
		abort();
	}
	close(fd);
}

void kt_driver(char *path, size_t n, const char *program, const char *name)
{
	const char *end = strrchr(program, '/');
	struct utsname self;

	uname(&self);
	snprintf(path, n, "%.*s/drivers/%s/%s.ko", (int)(end ? end - program : 0), program,
		 self.release, name);
}

void kt_shell(const char *format, ...)
{
	char command[512];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (system(command) != 0) {
		(void)!system("dmesg | tail -n 20 >&2"); /* a program may have crashed */
		fail_msg("%s", command);
	}
}

int kt_open(const char *node, int type)
{
	int fd;

	kt_enter(node);
	fd = socket(AF_BEOWIRE, type, 0);
	assert_true(fd >= 0);
	return fd;
}

int kt_bound(const char *node, int type, uint16_t port)
{
	struct sockaddr_beowire addr = {.sbw_family = AF_BEOWIRE, .sbw_port = port};
	int fd = kt_open(node, type);

	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

struct sockaddr_beowire kt_at(int fd)
{
	struct sockaddr_beowire addr;
	socklen_t len = sizeof(addr);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	addr.sbw_ifindex = 0;
	return addr;
}

struct sockaddr_beowire kt_nobody(int i)
{
	struct sockaddr_beowire to = {.sbw_family = AF_BEOWIRE, .sbw_port = 5};

	memcpy(to.sbw_mac, (uint8_t[]){2, 0, 0, 1, (uint8_t)(i >> 8), (uint8_t)i}, 6);
	return to;
}

struct kt_pair kt_pair(int type)
{
	struct kt_pair pair = {.a = kt_bound("a", type, 0), .b = kt_bound("b", type, 0)};

	pair.at_a = kt_at(pair.a);
	pair.at_b = kt_at(pair.b);
	return pair;
}

struct kt_pair kt_couple(int type)
{
	struct kt_pair pair = kt_pair(type);

	assert_int_equal(connect(pair.a, (struct sockaddr *)&pair.at_b, sizeof(pair.at_b)), 0);
	assert_int_equal(connect(pair.b, (struct sockaddr *)&pair.at_a, sizeof(pair.at_a)), 0);
	return pair;
}

int kt_connect(int fd, const struct sockaddr_beowire *to)
{
	return connect(fd, (const struct sockaddr *)to, sizeof(*to)) ? -errno : 0;
}

int kt_listener(int type, int backlog)
{
	int fd = kt_bound("b", type, 0);

	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

struct kt_pair kt_connection(int type)
{
	int listener = kt_listener(type, 1);
	struct kt_pair pair = {.at_b = kt_at(listener), .a = kt_open("a", type)};

	assert_int_equal(kt_connect(pair.a, &pair.at_b), 0);
	pair.b = accept(listener, NULL, NULL);
	assert_true(pair.b >= 0);
	pair.at_a = kt_at(pair.a);
	close(listener);
	return pair;
}

int kt_error(int fd)
{
	socklen_t len = sizeof(int);
	int error = -1;

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	return error;
}

int kt_events(int fd, short asked)
{
	struct pollfd poller = {.fd = fd, .events = asked};

	assert_in_range(poll(&poller, 1, KT_SOON_MS), 0, 1);
	return poller.revents;
}

void kt_link_of_b(const char *how)
{
	struct ifreq request = {.ifr_name = "eth0"};
	int here = open("/proc/thread-self/ns/net", O_RDONLY), fd;

	kt_enter("b");
	fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &request), 0);
	request.ifr_flags = (short)(!strcmp(how, "up") ? request.ifr_flags | IFF_UP
						       : request.ifr_flags & ~IFF_UP);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
	assert_int_equal(setns(here, CLONE_NEWNET), 0);
	close(fd);
	close(here);
}

void kt_close(struct kt_pair *pair)
{
	close(pair->a);
	close(pair->b);
}

void kt_option(int fd, int name, int value)
{
	assert_int_equal(setsockopt(fd, SOL_BEOWIRE, name, &value, sizeof(value)), 0);
}

ssize_t kt_send_to(int fd, const void *p, size_t n, const struct sockaddr_beowire *to)
{
	return sendto(fd, p, n, 0, (const struct sockaddr *)to, sizeof(*to));
}

int kt_send_info(int fd, const void *p, size_t n, const struct sockaddr_beowire *to,
		 const struct beowire_info *info, int flags)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(*info))];
	} control = {
		.head = {CMSG_LEN(sizeof(*info)), SOL_BEOWIRE, BEOWIRE_INFO},
	};
	struct iovec part = {.iov_base = (void *)p, .iov_len = n};
	struct msghdr m = {
		.msg_name = (void *)to,
		.msg_namelen = to ? sizeof(*to) : 0,
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.head), info, sizeof(*info));
	return sendmsg(fd, &m, flags) < 0 ? -errno : 0;
}

int kt_recv_info(int fd, void *p, size_t n, struct beowire_info *info, int flags)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(*info))];
	} control;
	struct iovec part = {.iov_base = p, .iov_len = n};
	struct msghdr m = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;

	memset(info, 0, sizeof(*info));
	if (recvmsg(fd, &m, flags) < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_level != SOL_BEOWIRE || c->cmsg_type != BEOWIRE_INFO)
		return -ENOMSG;
	memcpy(info, CMSG_DATA(c), sizeof(*info));
	return 0;
}

struct beowire_counters kt_counters(int fd)
{
	struct beowire_counters c;
	socklen_t len = sizeof(c);

	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_COUNTERS, &c, &len), 0);
	assert_int_equal(len, sizeof(c));
	return c;
}

int kt_watching(const char *node)
{
	int fd = kt_bound(node, SOCK_RDM, 0);

	kt_option(fd, BEOWIRE_INFO_WANTED, 1);
	return fd;
}

void kt_want(int fd, const struct sockaddr_beowire *at, uint64_t len, int times)
{
	static _Alignas(4096) uint8_t bytes[1 << 20];
	union {
		struct sockaddr_beowire addr;
		int number;
	} who = {.addr = *at};
	socklen_t size = sizeof(who);
	struct beowire_pull pull = {
		.flags = BEOWIRE_PULL_MEMORY, .len = len, .buf = (uintptr_t)bytes};

	assert_in_range(len, 0, sizeof(bytes));
	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &who, &size), 0);
	pull.peer = (uint32_t)who.number;
	for (int i = 0; i < times; i++) {
		pull.cookie = (uint64_t)i + 1;
		pull.off = len * (uint64_t)i;
		assert_int_equal(ioctl(fd, BEOWIRE_IOC_PULL, &pull), 0);
	}
}

static uint8_t kt_byte(uint32_t seed, size_t i)
{
	return (uint8_t)((seed * 2654435761u + i * 40503u) >> 11);
}

void kt_fill(void *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)p)[i] = kt_byte(seed, i);
}

bool kt_filled(const void *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		if (((const uint8_t *)p)[i] != kt_byte(seed, i))
			return false;
	return true;
}

/* Vigna's splitmix64. */
uint64_t kt_random(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

uint64_t kt_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool kt_goes_on(struct kt_wait *wait, uint64_t seen)
{
	const uint64_t patience_ns = kt_patience_s() / 2 * 1000000000ull;

	if (!wait->looks++)
		wait->begun = kt_now_ns();
	wait->seen = seen;
	if (seen >= wait->least && seen <= wait->most)
		return false;
	wait->late = kt_now_ns() > wait->begun + patience_ns;
	usleep(wait->looks < 10 ? 1000 : 10000);
	return !wait->late;
}

void kt_fail_late(const struct kt_wait *wait, const char *what, const char *file, int line)
{
	print_error("%s is %" PRIu64 ", not from %" PRIu64 " to %" PRIu64 ", after %" PRIu64
		    " ms and %" PRIu64 " looks\n",
		    what, wait->seen, wait->least, wait->most,
		    (kt_now_ns() - wait->begun) / 1000000, wait->looks);
	_fail(file, line);
}

uint64_t kt_number(const char *node, const char *file, const char *word)
{
	char line[256];
	size_t n = strlen(word);
	uint64_t found = UINT64_MAX;
	FILE *f;

	if (node)
		kt_enter(node);
	f = fopen(file, "r");
	assert_non_null(f);
	while (found == UINT64_MAX && fgets(line, sizeof(line), f))
		if (!strncmp(line, word, n) && strchr(" :\t", line[n]))
			found = strtoull(line + n + 1, NULL, 10);
	fclose(f);
	if (found == UINT64_MAX)
		fail_msg("no %s in %s", word, file);
	return found;
}

bool kt_port_is_there(const char *node, uint16_t number)
{
	char line[256];
	bool found = false;
	unsigned port;
	FILE *f;

	kt_enter(node);
	f = fopen("/proc/thread-self/net/beowire/ports", "r");
	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%u ", &port) == 1 && port == number;
	fclose(f);
	return found;
}

static uint64_t pinned_by_the_kernel(void)
{
	FILE *f = fopen("/proc/sys/vm/stat_refresh", "w"); /* each processor counts for itself */

	assert_non_null(f);
	fputs("1\n", f);
	fclose(f);
	return kt_number(NULL, "/proc/vmstat", "nr_foll_pin_acquired") -
	       kt_number(NULL, "/proc/vmstat", "nr_foll_pin_released");
}

/* The kernel counts only those that are written to, the module all. */
uint64_t kt_pinned(void)
{
	FILE *f = fopen("/sys/module/beowire/parameters/pinned_pages", "r");
	uint64_t pages, least = pinned_by_the_kernel();

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%" SCNu64, &pages), 1);
	fclose(f);
	return pages > least ? pages : least;
}

volatile int kt_signals;

static void kt_on_signal(int number)
{
	kt_signals++;
}

void kt_count_signal(int number, int flags)
{
	const struct sigaction action = {.sa_handler = kt_on_signal, .sa_flags = flags};

	kt_signals = 0;
	assert_int_equal(sigaction(number, &action, NULL), 0);
}

static timer_t kt_timer;
static bool kt_timer_there;

/* A signal that comes before the call it is to interrupt comes again, much later. */
void kt_interrupt_in_ms(int ms, int flags)
{
	struct itimerspec when = {.it_value = {.tv_nsec = ms * 1000000L}, .it_interval = {20, 0}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};

	kt_count_signal(SIGUSR1, flags);
	if (!kt_timer_there)
		assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &kt_timer), 0);
	kt_timer_there = true;
	assert_int_equal(timer_settime(kt_timer, 0, &when, NULL), 0);
}

static void kt_interrupt_no_more(void)
{
	const struct itimerspec never = {0};

	if (kt_timer_there)
		timer_settime(kt_timer, 0, &never, NULL);
}

static void *kt_thread_run(void *arg)
{
	struct kt_thread *t = arg;

	t->number = gettid();
	t->result = t->run(t->arg);
	return NULL;
}

int kt_logged(const char *one, const char *other)
{
	static char log[1 << 20];
	int n = klogctl(3 /* SYSLOG_ACTION_READ_ALL */, log, sizeof(log) - 1), lines = 0;

	assert_true(n > 0);
	log[n] = 0;
	for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n"))
		lines += strstr(line, one) && strstr(line, other);
	return lines;
}

int kt_logged_of(const struct kt_pair *pair, const char *what)
{
	char words[200], other[32], host[64 + 1];

	assert_int_equal(gethostname(host, sizeof(host)), 0);
	snprintf(words, sizeof(words), "this node %016" PRIx64 " of %s %s",
		 (uint64_t)pair->at_a.sbw_node, host, what);
	snprintf(other, sizeof(other), "node %016" PRIx64 " at", (uint64_t)pair->at_b.sbw_node);
	return kt_logged(words, other);
}

/* The setting is in the first namespace only. */
void kt_log_every_line(bool on)
{
	int first = open("/proc/1/ns/net", O_RDONLY);

	assert_true(first >= 0);
	assert_int_equal(setns(first, CLONE_NEWNET), 0);
	close(first);
	kt_shell("echo %d >/proc/sys/net/core/message_cost", on ? 0 : 5);
	kt_enter("a");
}

void kt_start(struct kt_thread *t, long (*run)(void *arg), void *arg)
{
	t->run = run;
	t->arg = arg;
	t->number = 0;
	assert_int_equal(pthread_create(&t->id, NULL, kt_thread_run, t), 0);
}

static bool sleeps_in(int thread, long call)
{
	char path[64];
	long found;
	bool sleeps;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", thread);
	f = fopen(path, "r");
	sleeps = f && fscanf(f, "%ld", &found) == 1 && found == call; /* else it is "running" */
	if (f)
		fclose(f);
	return sleeps;
}

void kt_await_sleep(const struct kt_thread *t, long call)
{
	kt_until(t->number && sleeps_in(t->number, call));
}

long kt_join(struct kt_thread *t)
{
	pthread_join(t->id, NULL);
	return t->result;
}

/* ---- workers that have no processor ---- */

#define WORKERS	 "/sys/devices/virtual/workqueue/cpumask"
#define NO_LIMIT "/proc/sys/kernel/sched_rt_runtime_us"

/* Leaves its processor to nobody, until it is told to end. */
static struct kt_hog {
	struct kt_thread thread;
	cpu_set_t before; /* where the caller may run */
	bool begun;
	volatile bool has_it, over;
} kt_hog;

static void kt_move_to(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)processor, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static long kt_occupy(void *arg)
{
	const struct sched_param first = {.sched_priority = 50};
	struct kt_hog *hog = arg;

	kt_move_to(1);
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		return -errno;
	hog->has_it = true;
	while (!hog->over)
		;
	return 0;
}

void kt_hold_workers(void)
{
	kt_hog = (struct kt_hog){.begun = true};
	assert_int_equal(sched_getaffinity(0, sizeof(kt_hog.before), &kt_hog.before), 0);
	kt_shell("echo 2 >" WORKERS " && echo -1 >" NO_LIMIT);
	kt_move_to(0);
	kt_start(&kt_hog.thread, kt_occupy, &kt_hog);
	kt_until(kt_hog.has_it);
}

void kt_release_workers(void)
{
	if (!kt_hog.begun)
		return;
	kt_hog.over = true;
	kt_join(&kt_hog.thread);
	kt_hog.begun = false;
	sched_setaffinity(0, sizeof(kt_hog.before), &kt_hog.before);
	kt_shell("echo 3 >" WORKERS " && echo 950000 >" NO_LIMIT);
}
