/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What only modules of the tests' own bring about or see (drivers/): that the machine stands still,
 * and what is done with a port's lock held.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "ktest.h"

static char still[512];	 /* the file of the module kt_still */
static char called[512]; /* the same of kt_called */

/* ---- a machine that stands still ---- */

#define DEAD_MS	 8000 /* a quarter is far more than what a busy machine takes from its guest */
#define STILL_MS 2400

/* A message is under way to b, whose interface is down, while all processors stand still. */
static void stand_still_with(const struct kt_pair *p, int pairs)
{
	int ms = open("/sys/module/kt_still/parameters/ms", O_WRONLY);
	char text[16];

	assert_true(ms >= 0);
	snprintf(text, sizeof(text), "%d", STILL_MS);
	kt_link_of_b("down");
	for (int i = 0; i < pairs; i++)
		assert_int_equal(send(p[i].a, "x", 1, MSG_DONTWAIT), 1);
	assert_int_equal(write(ms, text, strlen(text)), strlen(text));
	kt_link_of_b("up");
	close(ms);
}

/* The log says so once for all ports of the node, with the peer that one of them waited for, and
 * the connections live. */
static void test_standing_still_is_told(void **state)
{
	char name[128], byte;
	struct kt_pair p[2];
	struct utsname self;
	int told, named = 0;

	uname(&self);
	kt_log_every_line(true);
	kt_shell("insmod %s", still);
	for (int i = 0; i < 2; i++) {
		p[i] = (struct kt_pair){.a = kt_open("a", SOCK_RDM)};
		p[i].b = kt_bound("b", SOCK_RDM, 0);
		kt_option(p[i].a, BEOWIRE_DEAD_MS, DEAD_MS);
		p[i].at_b = kt_at(p[i].b);
		assert_int_equal(kt_connect(p[i].a, &p[i].at_b), 0);
		assert_int_equal(send(p[i].a, "x", 1, 0), 1);
		assert_int_equal(recv(p[i].b, &byte, 1, 0), 1);
		p[i].at_a = kt_at(p[i].a);
		p[i].at_b = kt_at(p[i].b);
	}
	told = kt_logged_of(&p[0], "stood still, or its clock jumped");
	stand_still_with(p, 2);
	kt_until(kt_logged_of(&p[0], "stood still, or its clock jumped") > told);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(recv(p[i].b, &byte, 1, 0), 1);
		assert_int_equal(send(p[i].a, "x", 1, 0), 1);
		assert_int_equal(recv(p[i].b, &byte, 1, 0), 1);
		assert_int_equal(kt_error(p[i].a), 0);
		snprintf(name, sizeof(name), "(engine %u of %s) was waited for", p[i].at_b.sbw_port,
			 self.nodename);
		named += kt_logged(name, "no peer is given up for that");
		kt_close(&p[i]);
	}
	assert_int_equal(kt_logged_of(&p[0], "stood still, or its clock jumped"), told + 1);
	assert_int_equal(named, 1);
	kt_shell("rmmod kt_still");
	kt_log_every_line(false);
}

/* ---- what is done with a port's lock held ---- */

#define LONG  (1u << 20)
#define TIMES 4

static _Alignas(4096) char out[LONG], in[LONG];

static long receive_all(void *arg)
{
	int fd = *(int *)arg;

	for (int i = 0; i < TIMES; i++) {
		memset(in, 0, LONG);
		if (recv(fd, in, LONG, 0) != LONG || !kt_filled(in, LONG, 7))
			return i + 1;
	}
	return 0;
}

/* How often what kt_called watches is called while long messages go from pages of one program to
 * those of another, with checksums or without. */
static void count_calls(bool checked, int calls[2])
{
	struct kt_pair p = {.a = kt_open("a", SOCK_RDM), .b = kt_open("b", SOCK_RDM)};
	struct kt_thread receiver;
	FILE *f;

	kt_option(p.a, BEOWIRE_CHECKSUM, checked);
	kt_option(p.a, BEOWIRE_COPY_MAX, 4096);
	kt_option(p.b, BEOWIRE_COPY_MAX, 4096);
	assert_int_equal(
		bind(p.b, (struct sockaddr *)&(struct sockaddr_beowire){.sbw_family = AF_BEOWIRE},
		     sizeof(p.at_b)),
		0);
	p.at_b = kt_at(p.b);
	assert_int_equal(kt_connect(p.a, &p.at_b), 0);
	kt_fill(out, LONG, 7);
	kt_shell("insmod %s one=bwk_buf_crc_pages two=bwk_tx_finish_long", called);
	kt_start(&receiver, receive_all, &p.b);
	for (int i = 0; i < TIMES; i++)
		assert_int_equal(send(p.a, out, LONG, 0), LONG);
	assert_int_equal(kt_join(&receiver), 0);
	f = fopen("/sys/module/kt_called/parameters/calls", "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d %d", &calls[0], &calls[1]), 2);
	fclose(f);
	kt_shell("rmmod kt_called");
	kt_close(&p);
}

/* Who sends a frame makes the checksum of a long payload, and the copy of a program's pages, and
 * both without the port's lock: none of it is made where the engine makes the frame. */
static void test_long_payloads_are_done_without_the_lock(void **state)
{
	int calls[2];

	count_calls(true, calls);
	assert_int_equal(calls[0], 0);
	assert_true(calls[1] > TIMES);
	count_calls(false, calls); /* then it is for the copies alone */
	assert_int_equal(calls[0], 0);
	assert_true(calls[1] > TIMES);
}

int main(int count, char **words)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_standing_still_is_told),
		kt_test(test_long_payloads_are_done_without_the_lock),
	};

	kt_driver(still, sizeof(still), words[0], "kt_still");
	kt_driver(called, sizeof(called), words[0], "kt_called");
	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
