/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Peers as the engine tells of them, and what people are told: names are bytes of whoever sent the
 * frame, and of strangers nothing is said.
 */
#include "endpoint.h"
#include "text.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define STRANGERS 10000
#define EVIL	  "\033]0;x\007\033[2J\nbeowire: \x9b\x7f\r\xe4"

static struct bw_ep *ep;
static struct told seen;
static int told;

static int setup(void **state)
{

	ep = endpoint_open("udp", &seen);
	return 0;
}

static int teardown(void **state)
{
	bw_ep_close(ep, 0);
	return 0;
}

/* What is said from now on goes to the test. */
static int listen_up(void)
{
	int both[2], before = dup(STDERR_FILENO);

	assert_int_equal(pipe2(both, O_CLOEXEC | O_NONBLOCK), 0);
	dup2(both[1], STDERR_FILENO);
	close(both[1]);
	told = both[0];
	return before;
}

/* What was said since. */
static const char *said(int before)
{
	static char text[4096];
	ssize_t n = read(told, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = 0;
	dup2(before, STDERR_FILENO);
	close(before);
	close(told);
	return text;
}

/* The n-th stranger makes contact; the engine itself knows nothing of it. */
static struct bw_event up(uint32_t n, const char *name)
{
	struct bw_event ev = {
		.type = BW_EV_PEER_UP, .peer = 1000 + n, .node = 77, .engine = 40000, .inc = 1 + n};

	strncpy(ev.name, name, BW_NAME_MAX);
	ev.from.link = BW_LINK_NO_UDP;
	bw_remote_event(ep, &ev);
	return ev;
}

/* It refuses us. */
static void refuse(struct bw_event ev, int status)
{
	ev.type = BW_EV_PEER_DOWN;
	ev.status = status;
	ev.version_min = ev.version_max = 200;
	bw_remote_event(ep, &ev);
}

static void message_from(const struct bw_event *who)
{
	struct bw_event ev = {.type = BW_EV_MESSAGE, .peer = who->peer};

	bw_message_event(ep, &ev);
}

static void assert_printable(const char *text)
{
	for (; *text; text++)
		assert_true(*text >= ' ' && *text <= '~');
}

static void text__is_made_printable(void **state)
{
	char out[8];

	bw_text_printable(out, sizeof(out), "a\tb\n\x80\xff~and more", 7);
	assert_string_equal(out, "a?b???~");
	bw_text_printable(out, sizeof(out), "longer than room", 16);
	assert_string_equal(out, "longer ");
	bw_text_printable(out, sizeof(out), "ab\0cd", 5);
	assert_string_equal(out, "ab");
	bw_text_printable(out, 1, "ab", 2);
	assert_string_equal(out, "");
	char line[] = "a\033[0m\n\x7f\xc3\xa4";

	bw_text_line(line);
	assert_string_equal(line, "a?[0m??\xc3\xa4");
}

static void name__has_no_control_characters(void **state)
{
	struct bw_event ev = up(0, EVIL);
	struct bw_remote *p = bw_remote_by_handle(&ep->remotes, ev.peer);

	assert_printable(p->name);
	assert_int_equal(strlen(p->name), strlen(EVIL));
	assert_printable(bw_peer_describe(ep, p->number));
	bw_remote_name(p, "not ended by a zero byte, too long", 34);
	assert_int_equal(strlen(p->name), BW_NAME_MAX);
}

/* A line is one line, whatever is in its arguments. */
static void log__writes_one_line(void **state)
{
	int before = listen_up();

	bw_log(BW_LOG_ERROR, "a name: %s", EVIL);
	const char *text = said(before);

	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	assert_null(strchr(text, '\033'));
}

static void stranger__is_nothing_to_tell_of(void **state)
{
	int before = listen_up();

	refuse(up(0, "stranger"), BW_DOWN_VERSION);
	assert_string_equal(said(before), "");
	assert_int_equal(seen.downs, 0);
}

static void stranger__leaves_nothing_behind(void **state)
{
	for (uint32_t i = 0; i < STRANGERS; i++) {
		struct bw_event ev = up(i, "stranger");

		assert_non_null(bw_remote_by_handle(&ep->remotes, ev.peer));
		refuse(ev, BW_DOWN_REFUSED);
		assert_null(bw_remote_find(&ep->remotes, ev.node, ev.engine, ev.inc));
		assert_null(bw_remote_by_handle(&ep->remotes, ev.peer));
	}
	assert_true(ep->remotes.room <= 64);
}

/* Numbers of strangers are given again, those that the program knows are not. */
static void number__of_a_known_peer_stays(void **state)
{
	struct bw_event known[100];
	bw_peer number[100];

	for (uint32_t i = 0; i < 100; i++) {
		refuse(up(1000 + i, "stranger"), BW_DOWN_REFUSED);
		known[i] = up(i, "friend");
		number[i] = bw_remote_by_handle(&ep->remotes, known[i].peer)->number;
		message_from(&known[i]);
		for (uint32_t k = 0; k < i; k++)
			assert_true(number[k] != number[i]);
	}
	assert_int_equal(seen.messages, 100);
	for (uint32_t i = 0; i < 100; i++) {
		refuse(known[i], BW_DOWN_RESET);
		assert_int_equal(seen.downs, i + 1);
		assert_int_equal(seen.peer, number[i]);
		assert_int_equal(bw_peer_status(ep, number[i]), BW_DOWN_RESET);
	}
}

/* Said once for a job, and only of a peer that the program has to do with. */
static void version__of_a_known_peer_is_told_once(void **state)
{
	struct bw_event one = up(0, "one\033[m"), other = up(1, "other");
	int before = listen_up();

	message_from(&one);
	message_from(&other);
	refuse(one, BW_DOWN_VERSION);
	refuse(other, BW_DOWN_VERSION);
	const char *text = said(before);

	assert_non_null(strstr(text, "one?[m engine 40000"));
	assert_non_null(strstr(text, "says that it speaks versions 200 to 200"));
	assert_null(strstr(text, "other"));
	assert_int_equal(seen.downs, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text__is_made_printable),
		TEST(name__has_no_control_characters),
		TEST(log__writes_one_line),
		TEST(stranger__is_nothing_to_tell_of),
		TEST(stranger__leaves_nothing_behind),
		TEST(number__of_a_known_peer_stays),
		TEST(version__of_a_known_peer_is_told_once),
	};
	char job[32];

	/* A job of its own, in which nothing was said yet. */
	snprintf(job, sizeof(job), "test-remote-%d", (int)getpid());
	setenv("PMIX_NAMESPACE", job, 1);
	return cmocka_run_group_tests_name("remote", tests, NULL, NULL);
}
