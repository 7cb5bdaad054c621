/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many peers of one port: each is found, none is forgotten, and what is to be said to all of them
 * at once is said in several visits, between which others have the processor and the port's lock.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kframe.h"

#define NODE	    "/proc/net/beowire/node"
#define CROWD	    300
#define PATIENCE_MS 3600000 /* of callers: however slow all is, none gives up who is not answered */
#define VISIT	    256	    /* frames at most: host.c */
#define END	    64	    /* the same of a port that ends: port.c */
#define UNMET	    (5 * END)
#define OPENS	    40
#define OPENS_AT    777

/* A socket of a's, and as many of b's that have met it. */
struct crowd {
	int one, fd[CROWD];
	struct sockaddr_beowire at, from[CROWD];
	uint32_t number[CROWD]; /* as a's socket calls them */
};

static void gather(struct crowd *c)
{
	const struct rlimit files = {4096, 4096};
	struct beowire_info info;
	uint16_t i;

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	c->one = kt_bound("a", SOCK_RDM, 0);
	kt_option(c->one, BEOWIRE_INFO_WANTED, 1);
	c->at = kt_at(c->one);
	c->at.sbw_ifindex = 0;
	for (i = 0; i < CROWD; i++) {
		c->fd[i] = kt_bound("b", SOCK_RDM, 0);
		kt_option(c->fd[i], BEOWIRE_INFO_WANTED, 1);
		c->from[i] = kt_at(c->fd[i]);
		c->from[i].sbw_ifindex = 0;
		assert_int_equal(kt_send_to(c->fd[i], &i, sizeof(i), &c->at), sizeof(i));
	}
	for (int n = 0; n < CROWD; n++) {
		assert_int_equal(kt_recv_info(c->one, &i, sizeof(i), &info, 0), 0);
		assert_int_equal(info.event, BEOWIRE_MESSAGE);
		assert_in_range(i, 0, CROWD - 1);
		c->number[i] = info.peer;
	}
}

static void disperse(struct crowd *c)
{
	for (int i = 0; i < CROWD; i++)
		close(c->fd[i]);
	close(c->one);
}

static int asked(int fd, int name, const struct sockaddr_beowire *who)
{
	union {
		struct sockaddr_beowire addr;
		int answer;
	} u = {.addr = *who};
	socklen_t len = sizeof(u);

	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, name, &u, &len), 0);
	return u.answer;
}

/* By its address and by its identity. */
static void test_each_is_found(void **state)
{
	static struct crowd c;
	struct sockaddr_beowire other;

	gather(&c);
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(asked(c.one, BEOWIRE_PEER_NUMBER, &c.from[i]), c.number[i]);
		assert_int_equal(asked(c.one, BEOWIRE_PEER_UP, &c.from[i]), 1);
		other = c.from[i];
		other.sbw_inc ^= 2;
		assert_int_equal(asked(c.one, BEOWIRE_PEER_UP, &other), 0);
	}
	close(c.fd[0]);
	kt_becomes(asked(c.one, BEOWIRE_PEER_UP, &c.from[0]), 0, 0);
	c.fd[0] = kt_open("b", SOCK_RDM);
	disperse(&c);
}

/* A port that ends says so to all, and forgets them, in pieces. */
static void test_each_hears_the_end(void **state)
{
	static struct crowd c;
	struct beowire_info info;
	uint64_t before;
	char name[64];

	gather(&c);
	before = kt_number("a", NODE, "squeezed");
	close(c.one);
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(kt_recv_info(c.fd[i], name, sizeof(name), &info, 0), 0);
		assert_int_equal(info.event, BEOWIRE_DOWN);
		assert_int_equal(info.status, -ESHUTDOWN);
	}
	/* What it says to them, thrice, and what it forgets of each, which is several things. */
	assert_true(kt_number("a", NODE, "squeezed") >= before + 5 * (CROWD / END));
	c.one = kt_open("a", SOCK_RDM);
	disperse(&c);
}

/* Peers that have never answered are said nothing to: they are forgotten in pieces all the same. */
static void test_each_is_forgotten(void **state)
{
	int fd = kt_bound("a", SOCK_RDM, 0);
	uint64_t before;

	for (int i = 0; i < UNMET; i++) {
		struct sockaddr_beowire to = kt_nobody(i);

		assert_true(asked(fd, BEOWIRE_PEER_NUMBER, &to) > 0);
	}
	before = kt_number("a", NODE, "squeezed");
	close(fd);
	assert_true(kt_number("a", NODE, "squeezed") >= before + UNMET / END);
}

/* What one call makes the port say to all of them leaves in several visits. */
static void test_each_is_spoken_to(void **state)
{
	static struct crowd c;
	struct beowire_info info;
	uint64_t before;
	char byte;

	gather(&c);
	before = kt_number("a", NODE, "squeezed");
	kt_option(c.one, BEOWIRE_PRESSURE, 1);
	kt_becomes(kt_number("a", NODE, "squeezed"), before + 1, UINT64_MAX);
	kt_option(c.one, BEOWIRE_PRESSURE, 0);
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(kt_send_to(c.one, "x", 1, &c.from[i]), 1);
		assert_int_equal(kt_recv_info(c.fd[i], &byte, 1, &info, 0), 0);
		assert_int_equal(info.event, BEOWIRE_MESSAGE);
	}
	disperse(&c);
}

/* Who asks for envelopes before he has a port has asked: peers announce short messages, too. */
static void test_pressure_from_the_beginning(void **state)
{
	int fd = kt_open("a", SOCK_RDM), other = kt_bound("b", SOCK_RDM, 0);
	const struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE};
	struct beowire_info info;
	struct sockaddr_beowire at;
	char bytes[100] = {0}; /* longer than an envelope */
	ssize_t n;

	kt_option(fd, BEOWIRE_INFO_WANTED, 1);
	kt_option(fd, BEOWIRE_PRESSURE, 1);
	assert_int_equal(bind(fd, (const struct sockaddr *)&any, sizeof(any)), 0);
	at = kt_at(fd);
	do { /* until the peer has heard of it; who waits would wait until it is fetched */
		n = sendto(other, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&at,
			   sizeof(at));
		assert_int_equal(n, sizeof(bytes));
		assert_int_equal(kt_recv_info(fd, bytes, sizeof(bytes), &info, 0), 0);
	} while (info.event == BEOWIRE_MESSAGE);
	assert_int_equal(info.event, BEOWIRE_ENVELOPE);
	close(fd);
	close(other);
}

/* Frames that b's interface has received. */
static uint64_t heard_by_b(void)
{
	unsigned long long bytes, frames = 0;
	char line[512];
	FILE *f;

	kt_enter("b");
	f = fopen("/proc/net/dev", "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " eth0: %llu %llu", &bytes, &frames) == 2)
			break;
	fclose(f);
	return frames;
}

/* Nothing else makes the port look again: what one visit leaves is done by the next one. */
static void test_the_rest_follows_at_once(void **state)
{
	static struct crowd c;
	uint64_t before, now;

	gather(&c);
	do { /* until all has been said */
		before = heard_by_b();
		usleep(500000);
		now = heard_by_b();
	} while (now != before);
	kt_option(c.one, BEOWIRE_PRESSURE, 1);
	kt_becomes(heard_by_b(), before + CROWD, UINT64_MAX);
	disperse(&c);
}

/* ---- memory that comes late ---- */

/* Callers for whom there is no memory yet wait for it, and nobody has to go for them: all that they
 * sent arrives. */
static void test_none_goes_while_memory_comes_late(void **state)
{
	const struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE};
	static struct crowd c;
	bool came[CROWD] = {0};
	uint16_t i;

	c.one = kt_bound("a", SOCK_RDM, 0);
	c.at = kt_at(c.one);
	for (i = 0; i < CROWD; i++) {
		c.fd[i] = kt_open("b", SOCK_RDM);
		kt_option(c.fd[i], BEOWIRE_DEAD_MS, PATIENCE_MS);
		assert_int_equal(bind(c.fd[i], (const struct sockaddr *)&any, sizeof(any)), 0);
	}
	kt_hold_workers(); /* who give engines memory for what peers send */
	for (i = 0; i < CROWD; i++)
		assert_int_equal(kt_send_to(c.fd[i], &i, sizeof(i), &c.at), sizeof(i));
	/* All have called, and shown that they are where they say. */
	kt_becomes(kt_counters(c.one).rx_frames, 2 * CROWD, UINT64_MAX);
	kt_release_workers();
	for (int n = 0; n < CROWD; n++) {
		kt_until(recv(c.one, &i, sizeof(i), MSG_DONTWAIT) == sizeof(i));
		assert_in_range(i, 0, CROWD - 1);
		assert_false(came[i]);
		came[i] = true;
	}
	assert_int_equal(kt_counters(c.one).evicted, 0);
	disperse(&c);
}

/* Of the peers of a socket for datagrams the idlest is forgotten, whoever speaks first. */
static void test_strangers(void **state)
{
	struct kt_pair p = kt_pair(SOCK_DGRAM);
	char byte;

	for (int i = 0; i < 1500; i++) {
		struct sockaddr_beowire to = kt_nobody(i);

		assert_int_equal(kt_send_to(p.a, "x", 1, &to), 1);
	}
	assert_int_equal(kt_send_to(p.b, "y", 1, &p.at_a), 1);
	assert_int_equal(recv(p.a, &byte, 1, 0), 1);
	assert_int_equal(byte, 'y');
	assert_int_equal(kt_counters(p.a).peers, 1024);
	assert_int_equal(kt_error(p.a), 0);
	kt_close(&p);
}

struct caller {
	struct sockaddr_beowire to;
	bool over;
};

/* Sends to a port whether it is there or not, until told to end. */
static long call_again_and_again(void *arg)
{
	struct caller *c = arg;
	int fd = kt_bound("a", SOCK_RDM, 0);
	long heard = 0;

	while (!__atomic_load_n(&c->over, __ATOMIC_RELAXED))
		heard += sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&c->to,
				sizeof(c->to)) == 1;
	close(fd);
	return heard;
}

/* Frames and messages come from the moment on at which a port is there. */
static void test_called_while_it_opens(void **state)
{
	struct sockaddr_beowire self = {.sbw_family = AF_BEOWIRE, .sbw_port = OPENS_AT};
	const struct timeval soon = {.tv_sec = KT_SOON_MS / 1000};
	struct caller c = {.over = false};
	struct kt_thread thread;
	char byte;
	int fd;

	fd = kt_bound("b", SOCK_RDM, 0);
	c.to = kt_at(fd);
	close(fd);
	c.to.sbw_port = OPENS_AT;
	c.to.sbw_inc = 0;
	kt_start(&thread, call_again_and_again, &c);
	for (int i = 0; i < OPENS; i++) {
		fd = kt_open("b", SOCK_RDM);
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)), 0);
		/* The one before lingers until its peer knows. */
		kt_until(bind(fd, (struct sockaddr *)&self, sizeof(self)) == 0);
		assert_int_equal(recv(fd, &byte, 1, 0), 1);
		close(fd);
	}
	__atomic_store_n(&c.over, true, __ATOMIC_RELAXED);
	assert_true(kt_join(&thread) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_each_is_found),
		kt_test(test_each_hears_the_end),
		kt_test(test_each_is_forgotten),
		kt_test(test_each_is_spoken_to),
		kt_test(test_pressure_from_the_beginning),
		kt_test(test_the_rest_follows_at_once),
		kt_test(test_none_goes_while_memory_comes_late),
		kt_test(test_strangers),
		kt_test(test_called_while_it_opens),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
