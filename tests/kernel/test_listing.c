/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the module tells of itself: its sockets and ports in /proc/net/beowire, malformed calls and
 * frames in counters and in the kernel's log, arrivals to a mapped page, frames to taps.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktest.h"
#include "wire.h"

#define NODE  "/proc/net/beowire/node"
#define ALICE 1001

/* ---- sockets ---- */

struct row {
	char type[16], state[16], to_mac[18];
	unsigned port, to, uid;
	long waiting, sending;
};

/* The row of a socket, which is known by its inode, as this node lists it. */
static bool listed(const char *node, int fd, struct row *row)
{
	unsigned long inode;
	char line[256];
	bool found = false;
	struct stat st;
	FILE *f;

	assert_int_equal(fstat(fd, &st), 0);
	kt_enter(node);
	f = fopen("/proc/thread-self/net/beowire/sockets", "r");
	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%15s %15s %u %17s %u %ld %ld %u %lu", row->type, row->state,
			       &row->port, row->to_mac, &row->to, &row->waiting, &row->sending,
			       &row->uid, &inode) == 9 &&
			inode == st.st_ino;
	fclose(f);
	return found;
}

static void expect_row(const char *node, int fd, const char *type, const char *state, unsigned port)
{
	struct row row;

	assert_true(listed(node, fd, &row));
	assert_string_equal(row.type, type);
	assert_string_equal(row.state, state);
	assert_int_equal(row.port, port);
	assert_int_equal(row.uid, geteuid());
}

static void test_types_and_states(void **state)
{
	static const char *const names[] = {"rdm", "dgram", "seqpacket", "stream"};
	const int types[] = {SOCK_RDM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};

	for (int i = 0; i < 4; i++) {
		int fd = kt_open("a", types[i]), bound = kt_bound("a", types[i], 0);

		expect_row("a", fd, names[i], "new", 0);
		expect_row("a", bound, names[i], "bound", kt_at(bound).sbw_port);
		close(fd);
		close(bound);
	}
}

static void test_where_messages_go(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	char mac[18];
	struct row row;

	expect_row("a", p.a, "rdm", "connected", p.at_a.sbw_port);
	assert_true(listed("a", p.a, &row));
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", p.at_b.sbw_mac[0],
		 p.at_b.sbw_mac[1], p.at_b.sbw_mac[2], p.at_b.sbw_mac[3], p.at_b.sbw_mac[4],
		 p.at_b.sbw_mac[5]);
	assert_string_equal(row.to_mac, mac);
	assert_int_equal(row.to, p.at_b.sbw_port);
	kt_close(&p);
}

static void test_connections(void **state)
{
	const int types[] = {SOCK_SEQPACKET, SOCK_STREAM};

	for (int i = 0; i < 2; i++) {
		const char *name = i ? "stream" : "seqpacket";
		int listener = kt_listener(types[i], 4);
		struct kt_pair p = kt_connection(types[i]);

		expect_row("b", listener, name, "listening", kt_at(listener).sbw_port);
		expect_row("a", p.a, name, "connected", kt_at(p.a).sbw_port);
		expect_row("b", p.b, name, "connected", p.at_b.sbw_port);
		close(p.b);
		kt_events(p.a, POLLRDHUP);
		close(p.a);
		close(listener);
	}
}

static void test_what_waits(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct row row;

	assert_int_equal(send(p.a, "12345678", 8, 0), 8);
	kt_events(p.b, POLLIN);
	assert_true(listed("b", p.b, &row));
	assert_true(row.waiting >= 8);
	assert_int_equal(recv(p.b, &row, 8, 0), 8);
	assert_true(listed("b", p.b, &row));
	assert_int_equal(row.waiting, 0);
	kt_close(&p);
}

static unsigned rows(const char *node)
{
	unsigned n = 0;
	char line[256];
	FILE *f;

	kt_enter(node);
	f = fopen("/proc/thread-self/net/beowire/sockets", "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n++;
	fclose(f);
	return n - 1;
}

static void test_until_they_are_closed(void **state)
{
	unsigned before = rows("a"), other = rows("b");
	int fds[20];

	for (int i = 0; i < 20; i++)
		fds[i] = kt_bound("a", SOCK_RDM, 0);
	assert_int_equal(rows("a"), before + 20);
	assert_int_equal(rows("b"), other); /* a namespace lists its own */
	for (int i = 0; i < 20; i++)
		close(fds[i]);
	assert_int_equal(rows("a"), before);
}

/* Like ss(8): another user sees whose a socket is and where, and may do nothing with it. */
static void test_another_user_sees_that_there_are_some(void **state)
{
	int fd = kt_bound("a", SOCK_RDM, 0), status;
	char pattern[128];
	pid_t pid;

	snprintf(pattern, sizeof(pattern),
		 "grep -Eq '^rdm +bound +%u ' /proc/thread-self/net/beowire/sockets",
		 kt_at(fd).sbw_port);
	kt_enter("a");
	pid = fork();
	if (pid == 0)
		_exit(setgid(ALICE) || setuid(ALICE) || system(pattern));
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	close(fd);
}

static void test_ports(void **state)
{
	int fd = kt_bound("a", SOCK_RDM, 0);
	unsigned port = kt_at(fd).sbw_port, number, uid;
	char line[256], protocol[32], how[16];
	bool found = false;
	FILE *f = fopen("/proc/thread-self/net/beowire/ports", "r");

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%u %31s %u %15s", &number, protocol, &uid, how) == 4 &&
			number == port;
	fclose(f);
	assert_true(found);
	assert_string_equal(protocol, "reliable");
	assert_int_equal(uid, geteuid());
	assert_string_equal(how, "open");
	close(fd);
}

/* ---- complaints ---- */

/* The kernel's log from now on. */
static int log_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);

	assert_true(fd >= 0);
	lseek(fd, 0, SEEK_END);
	return fd;
}

/* How many of its new lines have this in them; the log is closed. */
static unsigned log_count(int log, const char *what)
{
	char line[8192];
	unsigned n = 0;
	ssize_t got;

	while ((got = read(log, line, sizeof(line) - 1)) > 0 || (got < 0 && errno == EPIPE)) {
		line[got > 0 ? got : 0] = '\0';
		n += strstr(line, what) != NULL;
	}
	close(log);
	return n;
}

static void test_malformed_calls(void **state)
{
	struct sockaddr_beowire wrong = {.sbw_family = AF_INET};
	int fd = kt_open("a", SOCK_RDM), log;
	uint64_t addresses = kt_number("a", NODE, "bad-addresses");
	uint64_t options = kt_number("a", NODE, "bad-options");
	uint64_t ioctls = kt_number("a", NODE, "bad-ioctls");

	kt_log_every_line(true);
	log = log_open();
	kt_refused(bind(fd, (struct sockaddr *)&wrong, 4), EINVAL);
	kt_refused(bind(fd, (struct sockaddr *)&wrong, sizeof(wrong)), EAFNOSUPPORT);
	wrong.sbw_family = AF_BEOWIRE;
	kt_refused(connect(fd, (struct sockaddr *)&wrong, sizeof(wrong)), EADDRNOTAVAIL);
	kt_refused(setsockopt(fd, SOL_BEOWIRE, 999, &fd, sizeof(fd)), ENOPROTOOPT);
	kt_refused(setsockopt(fd, SOL_BEOWIRE, BEOWIRE_BUSY_US, &fd, 1), EINVAL);
	kt_refused(ioctl(fd, BEOWIRE_IOC_PULL, NULL), EFAULT);
	assert_int_equal(kt_number("a", NODE, "bad-addresses"), addresses + 3);
	assert_int_equal(kt_number("a", NODE, "bad-options"), options + 2);
	assert_int_equal(kt_number("a", NODE, "bad-ioctls"), ioctls + 1);
	assert_int_equal(log_count(log, "malformed address"), 3);
	kt_log_every_line(false);
	close(fd);
}

static void test_complaints_have_a_rate(void **state)
{
	int fd = kt_open("a", SOCK_RDM), log = log_open();
	uint64_t before = kt_number("a", NODE, "bad-options");

	for (int i = 0; i < 5000; i++)
		kt_refused(setsockopt(fd, SOL_BEOWIRE, 999, &i, sizeof(i)), ENOPROTOOPT);
	assert_int_equal(kt_number("a", NODE, "bad-options"), before + 5000);
	assert_in_range(log_count(log, "malformed option"), 0, 1000);
	close(fd);
}

static int raw_open(const char *node, uint16_t type)
{
	struct sockaddr_ll addr = {.sll_family = AF_PACKET, .sll_protocol = htons(type)};
	int fd;

	kt_enter(node);
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	addr.sll_ifindex = (int)if_nametoindex("eth0");
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void test_malformed_frames(void **state)
{
	struct kt_pair p = kt_pair(SOCK_RDM);
	int raw = raw_open("b", ETH_P_ALL), log;
	const uint16_t type = htons(BW_ETHERTYPE);
	uint8_t frame[20] = {0}; /* shorter than any header */
	uint64_t before = kt_number("a", NODE, "malformed");

	memcpy(frame, p.at_a.sbw_mac, 6);
	memcpy(frame + 6, p.at_b.sbw_mac, 6);
	memcpy(frame + 12, &type, 2);
	kt_log_every_line(true);
	log = log_open();
	assert_int_equal(send(raw, frame, sizeof(frame), 0), sizeof(frame));
	kt_becomes(kt_number("a", NODE, "malformed"), before + 1, before + 1);
	assert_int_equal(log_count(log, "malformed frame"), 1);
	kt_log_every_line(false);
	close(raw);
	kt_close(&p);
}

/* ---- the bell ---- */

static void test_a_word_counts_what_comes(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct kt_pair p = kt_couple(SOCK_RDM);
	const volatile uint32_t *word = mmap(NULL, page, PROT_READ, MAP_SHARED, p.b, 0);
	uint32_t before;
	char bytes[8];

	assert_ptr_not_equal(word, MAP_FAILED);
	before = *word;
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(send(p.a, "12345678", 8, 0), 8);
		kt_events(p.b, POLLIN);
		assert_true(*word != before);
		before = *word;
		assert_int_equal(recv(p.b, bytes, 8, MSG_DONTWAIT), 8);
		kt_refused(recv(p.b, bytes, 8, MSG_DONTWAIT), EAGAIN);
		assert_int_equal(*word, before);
	}
	/* It is the last reference to what the mapping shows. */
	kt_close(&p);
	assert_int_equal(*word, before);
	munmap((void *)word, page);
}

static void refuse_mapping(int fd, size_t bytes, off_t off, int code)
{
	errno = 0;
	assert_ptr_equal(mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, off), MAP_FAILED);
	assert_int_equal(errno, code);
}

static void test_other_mappings(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int others[] = {SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};
	int fd = kt_open("a", SOCK_RDM);

	refuse_mapping(fd, 2 * page, 0, EINVAL);
	refuse_mapping(fd, page, (off_t)page, EINVAL);
	close(fd);
	for (int i = 0; i < 3; i++) {
		fd = kt_open("a", others[i]);
		refuse_mapping(fd, page, 0, ENODEV);
		close(fd);
	}
}

/* ---- taps ---- */

/* Frames of a's that a tap on a's own interface sees, of one message. */
static unsigned tapped(int setting)
{
	struct kt_pair p = kt_couple(SOCK_DGRAM);
	uint8_t frame[2000];
	unsigned seen = 0;
	int tap;

	kt_shell("ip netns exec a sh -c 'echo %d >/proc/sys/net/beowire/taps'", setting);
	tap = raw_open("a", ETH_P_ALL);
	assert_int_equal(send(p.a, "12345678", 8, 0), 8);
	assert_int_equal(recv(p.b, frame, sizeof(frame), 0), 8);
	while (recv(tap, frame, sizeof(frame), MSG_DONTWAIT) > 0)
		seen += frame[12] == (BW_ETHERTYPE >> 8) && frame[13] == (BW_ETHERTYPE & 0xff) &&
			memcmp(frame + 6, p.at_a.sbw_mac, 6) == 0;
	kt_shell("ip netns exec a sh -c 'echo 1 >/proc/sys/net/beowire/taps'");
	close(tap);
	kt_close(&p);
	return seen;
}

static void test_taps(void **state)
{
	assert_int_equal(tapped(1), 1);
	assert_int_equal(tapped(0), 0);
	assert_int_equal(tapped(1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_types_and_states),
		kt_test(test_where_messages_go),
		kt_test(test_connections),
		kt_test(test_what_waits),
		kt_test(test_until_they_are_closed),
		kt_test(test_another_user_sees_that_there_are_some),
		kt_test(test_ports),
		kt_test(test_malformed_calls),
		kt_test(test_complaints_have_a_rate),
		kt_test(test_malformed_frames),
		kt_test(test_a_word_counts_what_comes),
		kt_test(test_other_mappings),
		kt_test(test_taps),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
