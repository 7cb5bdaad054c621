/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nonsense in the handshake, and too many who call without saying anything. Seeded; the argument is
 * the number of rounds.
 */
#include "hostile.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t rounds = 300;

static int dial(void)
{
	struct sockaddr_un sun;
	socklen_t len = bw_local_name(victim.engine, &sun);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&sun, len), 0);
	return fd;
}

static void post(int sock, const void *data, size_t n, const int *fd, size_t fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = (void *)data, .iov_len = n};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	if (fds > 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(fds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fds * sizeof(int));
		memcpy(CMSG_DATA(c), fd, fds * sizeof(int));
	}
	assert_int_equal(sendmsg(sock, &m, 0), n);
}

static struct bw_local_hello good_hello(void)
{
	struct bw_local_hello h = {
		.magic = BW_LOCAL_MAGIC,
		.version = BW_LOCAL_VERSION,
		.node = NODE_NUMBER,
		.cluster = CLUSTER_NUMBER,
		.incarnation = 4711,
		.engine = 99,
		.dst_engine = victim.engine,
		.dst_incarnation = victim.incarnation,
		.ring_bytes = SMALL_RING,
		.key = {1, 2},
	};

	memset(h.name, 'x', sizeof(h.name)); /* no zero at its end */
	return h;
}

#define SEGMENT_BYTES (BW_LOCAL_PAGE + 2 * (off_t)BW_LOCAL_SLOTS + 2 * (off_t)SMALL_RING)

static int memory_of(off_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0 && ftruncate(fd, bytes) == 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* Post this hello and these descriptors; the status of the answer, or 1 if there is none.
 * Everything that was opened for it is closed again on both sides. */
static int answer_to(const void *data, size_t n, const int *fd, size_t fds)
{
	int sock = dial();
	struct bw_local_hello answer;
	int status = 1;

	post(sock, data, n, fd, fds);
	for (int i = 0; i < 3; i++)
		node_poll(&victim);
	if (recv(sock, &answer, sizeof(answer), MSG_DONTWAIT) == sizeof(answer)) {
		assert_int_equal(answer.answer, 1);
		status = answer.status;
	}
	close(sock);
	for (int i = 0; i < 3; i++)
		node_poll(&victim);
	return status;
}

static int answer_to_fds(int segment, int status)
{
	struct bw_local_hello h = good_hello();
	int fd[2] = {segment, status};
	int answer = answer_to(&h, sizeof(h), fd, 2);

	close(segment);
	close(status);
	return answer;
}

static void hostile__handshakes(void **state)
{
	struct bw_local_hello h;
	int page, fds;
	int status = 0;

	setup_seed(1);
	fds = entries("/proc/self/fd");
	page = memory_of(BW_LOCAL_PAGE, F_SEAL_SHRINK);
	assert_int_equal(answer_to_fds(memory_of(SEGMENT_BYTES, F_SEAL_SHRINK), dup(page)), 0);
	/* It can be cut short under our feet. */
	assert_int_equal(answer_to_fds(memory_of(SEGMENT_BYTES, 0), dup(page)), -EPROTO);
	assert_int_equal(answer_to_fds(memory_of(SEGMENT_BYTES, F_SEAL_SHRINK),
				       memory_of(BW_LOCAL_PAGE, F_SEAL_GROW)),
			 -EPROTO);
	assert_int_equal(answer_to_fds(memory_of(SEGMENT_BYTES - 1, F_SEAL_SHRINK), dup(page)),
			 -EPROTO);
	assert_int_equal(answer_to_fds(open("/dev/zero", O_RDWR), dup(page)), -EPROTO);
	assert_int_equal(
		answer_to_fds(memory_of(SEGMENT_BYTES, F_SEAL_SHRINK), open("/dev/null", O_RDWR)),
		-EPROTO);

	int many[8] = {page, page, page, page, page, page, page, page};

	h = good_hello();
	assert_int_equal(answer_to(&h, sizeof(h), NULL, 0), -EPROTO);
	assert_int_equal(answer_to(&h, sizeof(h), many, 1), -EPROTO);
	assert_int_equal(answer_to(&h, sizeof(h), many, 8), -EPROTO);
	assert_int_equal(answer_to(&h, sizeof(h) - 1, many, 2), -EPROTO);
	assert_int_equal(answer_to("x", 1, many, 2), -EPROTO);
	h.version++;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -EPROTONOSUPPORT);
	h = good_hello();
	h.answer = 1;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -EPROTO);
	h = good_hello();
	h.engine = victim.engine;
	h.incarnation = victim.incarnation;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -EPROTO);
	h = good_hello();
	h.incarnation = 0;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -EPROTO);
	h = good_hello();
	h.node++;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -ECONNREFUSED);
	h = good_hello();
	h.ring_bytes = 3 * BW_LOCAL_PAGE;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -EPROTO);
	h.ring_bytes = UINT32_MAX;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -EPROTO);
	/* Somebody who already is a peer. */
	h = good_hello();
	h.engine = friend.engine;
	h.incarnation = friend.incarnation;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -ECONNREFUSED);
	for (uint64_t i = 0; i < 1000; i++) {
		uint8_t junk[sizeof(h)];

		for (size_t k = 0; k < sizeof(junk); k++)
			junk[k] = (uint8_t)draw(256);
		if (draw(2))
			memcpy(junk, &h, 4 + draw(30));
		status = answer_to(junk, draw(sizeof(junk)) + 1, many, draw(9));
		assert_true(status < 0);
	}
	close(page);
	assert_int_equal(entries("/proc/self/fd"), fds);
	aftermath();
}

static void hostile__connections_that_say_nothing(void **state)
{
	struct pollfd call;
	int fd[200];

	setup_seed(2);
	call = (struct pollfd){.fd = bw_local_fd(victim.link), .events = POLLIN};
	for (int i = 0; i < 200; i++)
		fd[i] = dial();
	/* Only so many are taken at a time, and make room when they go on saying nothing. */
	for (uint64_t gone = 0; gone < 192; gone += 64) {
		for (int i = 0; i < 5; i++)
			node_poll(&victim);
		assert_int_equal(bw_local_counters(victim.link)->turned_away, gone);
		assert_int_equal(victim.link->greetings, 64);
		assert_int_equal(poll(&call, 1, 0), 0);
		for (struct bw_local_conn *c = victim.link->greeting; c; c = c->next)
			c->called_at -= 1000000000;
	}
	for (int i = 0; i < 5; i++)
		node_poll(&victim);
	assert_int_equal(victim.link->greetings, 200 - 192);
	for (int i = 0; i < 200; i++)
		close(fd[i]);
	aftermath();
}

/* The lowest free descriptor. */
static int next_fd(void)
{
	int fd = dup(STDIN_FILENO);

	close(fd);
	return fd;
}

/* Calls that cannot be accepted must not keep the victim awake; who called is told an end. */
static void hostile__calls_when_there_are_no_descriptors(void **state)
{
	struct rlimit normal, none;
	struct pollfd fd;
	struct node caller;
	int call[3];

	setup_seed(6);
	node_open(&caller, 0, 0);
	assert_int_equal(bw_local_connect(caller.link, victim.engine, victim.incarnation, NULL,
					  &caller.peer),
			 0);
	fd = (struct pollfd){.fd = bw_local_fd(victim.link), .events = POLLIN};
	for (int i = 0; i < 3; i++)
		call[i] = dial();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &normal), 0);
	none = (struct rlimit){.rlim_cur = (rlim_t)next_fd(), .rlim_max = normal.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(poll(&fd, 1, 0), 1);
	node_poll(&victim);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(bw_local_counters(victim.link)->turned_away, 4);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &normal), 0);
	for (int i = 0; i < 3; i++)
		node_poll(&caller);
	assert_string_equal(node_story(&caller), "down ECONNREFUSED | ");
	node_close(&caller);
	for (int i = 0; i < 3; i++)
		close(call[i]);
	aftermath();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile__handshakes),
		cmocka_unit_test(hostile__connections_that_say_nothing),
		cmocka_unit_test(hostile__calls_when_there_are_no_descriptors),
	};

	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests_name("hostile handshakes", tests, NULL, NULL);
}
