/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * No memory, at each place where a call asks for some: the first, the second, and so on until the
 * call needs no more. It fails with an error for that or does what it should, and nothing is kept.
 * Under the kernel that looks for defects, which fails an allocation when told to.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "beowire_server.h"
#include "kframe.h"

#define LONG  100000u
#define PAGES 20000u /* of which two do not fit into what a task has at hand for copies */
#define PIECE 2000u  /* longer than what lies within a buffer */
#define MOST  5000   /* allocations of one call */

static uint8_t out[LONG], in[LONG];

static void set_file(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, value, strlen(value)) != (ssize_t)strlen(value))
		fail_msg("%s", path);
	close(fd);
}

static int allow_failures(void **state)
{
	const char *const kinds[] = {"failslab", "fail_page_alloc"};
	char path[96];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-wait", kinds[i]);
		set_file(path, "N");
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/verbose", kinds[i]);
		set_file(path, "0");
	}
	set_file("/sys/kernel/debug/fail_page_alloc/min-order", "0");
	return kt_attach(state);
}

/* Between ARM and DISARM one allocation of this thread fails: number fail_at; 0: none. */
static int fail_fd, fail_at;
static bool failed;

static void arm(void)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", fail_at);

	failed = false;
	if (fail_at)
		assert_int_equal(pwrite(fail_fd, text, (size_t)n, 0), n);
}

static void disarm(void)
{
	char text[16] = "";
	int error = errno;

	if (fail_at) {
		assert_true(pread(fail_fd, text, sizeof(text) - 1, 0) > 0);
		failed = atoi(text) == 0;
		assert_int_equal(pwrite(fail_fd, "0", 1, 0), 1);
	}
	errno = error;
}

/* `call` without one allocation after another, or each `step`-th; it gives 0 or a positive errno.
 * With all of them it must succeed. The number of its allocations. */
static int without_some(int (*call)(void *arg), void *arg, int step)
{
	int error, most = 0;

	fail_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	assert_true(fail_fd >= 0);
	for (fail_at = 1; fail_at < MOST; fail_at += step) {
		error = call(arg);
		if (!failed)
			break;
		most = fail_at;
		if (error && error != ENOMEM && error != ENOBUFS && error != ENFILE)
			fail_msg("without memory: %s", strerror(error));
	}
	assert_int_equal(error, 0);
	assert_in_range(most, 0, MOST - 2);
	fail_at = 0;
	close(fail_fd);
	return most;
}

static int without_each(int (*call)(void *arg), void *arg)
{
	return without_some(call, arg, 1);
}

/* ---- calls ---- */

static int open_and_bind(void *arg)
{
	const struct sockaddr_beowire self = {.sbw_family = AF_BEOWIRE};
	int fd, error = 0;

	arm();
	fd = socket(AF_BEOWIRE, *(const int *)arg, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&self, sizeof(self)))
		error = errno;
	disarm();
	if (fd >= 0)
		close(fd);
	return error;
}

static void test_sockets(void **state)
{
	const int types[] = {SOCK_RDM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};

	kt_enter("a");
	for (int i = 0; i < 4; i++)
		assert_true(without_each(open_and_bind, (void *)&types[i]));
}

struct way {
	struct kt_pair pair;
	size_t bytes;
};

/* Another message each time. */
static void fill(const struct way *w)
{
	static uint32_t seed;

	kt_fill(out, w->bytes, ++seed);
}

static long receive_all(void *arg)
{
	const struct way *w = arg;
	ssize_t n = recv(w->pair.b, in, w->bytes, 0);

	return n < 0 ? -errno : n;
}

/* What was sent arrives, by a thread to which nothing is refused. */
static int send_one(void *arg)
{
	struct way *w = arg;
	struct kt_thread t;
	int error;

	fill(w);
	kt_start(&t, receive_all, w);
	arm();
	error = send(w->pair.a, out, w->bytes, 0) < 0 ? errno : 0;
	disarm();
	if (error) /* something for the thread */
		assert_int_equal(send(w->pair.a, out, w->bytes, 0), w->bytes);
	assert_int_equal(kt_join(&t), w->bytes);
	assert_memory_equal(in, out, w->bytes);
	return error;
}

/* The same, received by the one to which it is refused; what it could not have comes again. */
static int receive_one(void *arg)
{
	struct way *w = arg;
	int error = 0;
	ssize_t n;

	fill(w);
	assert_int_equal(send(w->pair.a, out, w->bytes, MSG_DONTWAIT), w->bytes);
	arm();
	n = recv(w->pair.b, in, w->bytes, 0);
	error = n < 0 ? errno : 0;
	disarm();
	if (error)
		n = recv(w->pair.b, in, w->bytes, 0);
	assert_int_equal(n, w->bytes);
	assert_memory_equal(in, out, w->bytes);
	return error;
}

/* A message of one frame is received without any; all three together need some. */
static void each_length(int (*call)(void *arg), int type)
{
	const size_t lengths[] = {8, PIECE, LONG};
	const struct timeval patience = {.tv_sec = 60};
	struct way w = {.pair = type == SOCK_RDM ? kt_couple(type) : kt_connection(type)};
	const int room = 2 * LONG;
	int most = 0;

	setsockopt(w.pair.a, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	setsockopt(w.pair.b, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	for (int i = 0; i < 3; i++) {
		w.bytes = lengths[i];
		most += without_each(call, &w);
		kt_option(w.pair.a, BEOWIRE_COPY_MAX, 1000);
	}
	assert_true(most);
	kt_close(&w.pair);
	kt_becomes(kt_pinned(), 0, 0);
}

static void test_sends(void **state)
{
	each_length(send_one, SOCK_RDM);
	each_length(send_one, SOCK_SEQPACKET);
}

static void test_receives(void **state)
{
	each_length(receive_one, SOCK_RDM);
	each_length(receive_one, SOCK_SEQPACKET);
}

/* To a peer that is new each time, of whose node the sender knows the name. */
static int send_first(void *arg)
{
	const struct kt_pair *p = arg;
	int error, fd = kt_open("a", SOCK_RDM);

	arm();
	error = sendto(fd, "first", 5, 0, (const struct sockaddr *)&p->at_b, sizeof(p->at_b)) < 0
			? errno
			: 0;
	disarm();
	if (!error)
		assert_int_equal(recv(p->b, in, sizeof(in), 0), 5);
	close(fd);
	return error;
}

static void test_first_contact(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);

	/* What is asked for once alone is there the second time, and moves nothing. */
	for (int i = 0; i < 2; i++)
		assert_true(without_each(send_first, &p));
	kt_close(&p);
}

/* What the task has at hand is taken by another message, which waits for its receiver: pages for
 * several are wanted, and there may be only single ones. */
static int send_beside(void *arg)
{
	static uint8_t kept[PAGES];
	struct kt_pair *other = arg;
	struct way w = {.pair = other[1], .bytes = PAGES};
	int error;

	fill(&w);
	memcpy(kept, out, PAGES);
	assert_int_equal(send(other[0].a, kept, PAGES, MSG_DONTWAIT), PAGES);
	error = send_one(&w);
	assert_int_equal(recv(other[0].b, in, PAGES, 0), PAGES);
	assert_memory_equal(in, kept, PAGES);
	return error;
}

static void test_single_pages(void **state)
{
	struct kt_pair pairs[] = {kt_couple(SOCK_RDM), kt_couple(SOCK_RDM)};

	for (int i = 0; i < 2; i++)
		kt_option(pairs[i].a, BEOWIRE_EAGER_MAX, 1000);
	assert_true(without_each(send_beside, pairs));
	for (int i = 0; i < 2; i++)
		kt_close(&pairs[i]);
}

static int claim(void *arg)
{
	struct beowire_server_claim claim = {.number = 9, .name = "nothing"};
	int fd, error = 0;

	arm();
	fd = open("/dev/beowire", O_RDWR);
	if (fd < 0 || ioctl(fd, BEOWIRE_SERVER_CLAIM, &claim))
		error = errno;
	disarm();
	if (fd >= 0)
		close(fd);
	return error;
}

static void test_protocol_servers(void **state)
{
	kt_enter("a");
	assert_true(without_each(claim, NULL));
}

/* ---- namespaces ---- */

#define STEP 5 /* of hundreds of allocations, of which the module makes more than that in a row */

/* Parts of the kernel have errors of their own for that. */
static int make_namespace(void *arg)
{
	int error;

	arm();
	error = unshare(CLONE_NEWNET) ? errno : 0;
	disarm();
	kt_enter("a");
	return error && failed ? ENOMEM : error;
}

/* One that cannot be set up is taken down again, whatever of it there was; others are not
 * concerned. */
static void test_namespaces(void **state)
{
	struct kt_pair p;
	char byte;

	kt_enter("a");
	assert_true(without_some(make_namespace, NULL, STEP));
	kt_shell("ip netns add e && ip netns exec e cat /proc/net/beowire/node >/dev/null");
	kt_shell("ip netns del e");
	p = kt_couple(SOCK_RDM);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	kt_close(&p);
}

/* ---- frames ---- */

#define NODE	  "/proc/net/beowire/node"
#define SCATTERED 7000 /* bytes of a frame that arrives in pieces */

/* No allocation succeeds that may not wait, of whoever's. */
static void fail_all_at_once(bool on)
{
	set_file("/sys/kernel/debug/failslab/probability", "0");
	set_file("/sys/kernel/debug/failslab/ignore-gfp-wait", on ? "Y" : "N");
	set_file("/sys/kernel/debug/failslab/times", on ? "1000000" : "1");
	set_file("/sys/kernel/debug/failslab/probability", on ? "100" : "0");
}

static void attach_anew(const char *node)
{
	struct beowire_iface interface = {.name = "eth0"};
	int fd = kt_open(node, SOCK_RDM);

	assert_int_equal(ioctl(fd, BEOWIRE_IOC_DETACH, &interface), 0);
	assert_int_equal(ioctl(fd, BEOWIRE_IOC_ATTACH, &interface), 0);
	close(fd);
}

static void lose_frames(const struct kt_frame *f, int raw)
{
	uint64_t before = kt_number("a", NODE, "uncopied");

	fail_all_at_once(true);
	for (int i = 0; i < 3; i++)
		kt_send_in_pieces(raw, f, KT_ETHERNET);
	usleep(100000);
	fail_all_at_once(false);
	kt_becomes(kt_number("a", NODE, "uncopied"), before + 3, before + 3);
}

/* Those whose heads cannot be put together, and those that others look at as well, are lost, and
 * are not taken for malformed ones. */
static void test_frames(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	const struct bw_hdr h = {.magic = BW_MAGIC,
				 .version = BW_VERSION,
				 .type = BW_FRAME_DATA,
				 .cluster = BW_CLUSTER_DEFAULT,
				 .dst_engine = p.at_a.sbw_port,
				 .src_engine = p.at_b.sbw_port,
				 .len = SCATTERED};
	struct kt_frame f = {.len = (uint32_t)(KT_ETHERNET + sizeof(h) + SCATTERED)};
	uint64_t malformed = kt_number("a", NODE, "malformed");
	const uint16_t ethertype = htons(BW_ETHERTYPE);
	int raw = kt_raw_in_pieces("b", "eth0"), other;
	char byte;

	memcpy(f.bytes, p.at_a.sbw_mac, 6);
	memcpy(f.bytes + 6, p.at_b.sbw_mac, 6);
	memcpy(f.bytes + 12, &ethertype, 2);
	memcpy(f.bytes + KT_ETHERNET, &h, sizeof(h));
	kt_seal(&f);
	lose_frames(&f, raw);
	other = kt_raw("a", "eth0", BW_ETHERTYPE);
	attach_anew("a");
	lose_frames(&f, raw);
	assert_int_equal(kt_number("a", NODE, "malformed"), malformed);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	close(other);
	close(raw);
	kt_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_sockets),	     kt_test(test_sends),
		kt_test(test_receives),	     kt_test(test_single_pages),
		kt_test(test_first_contact), kt_test(test_protocol_servers),
		kt_test(test_namespaces),    kt_test(test_frames),
	};

	return cmocka_run_group_tests(tests, allow_failures, NULL);
}
