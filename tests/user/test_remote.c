/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Peers as the engine tells of them, and what people are told: names are bytes of whoever sent the
 * frame, and of strangers nothing is said.
 */
#include "endpoint.h"
#include "checksum.h"
#include "claim.h"
#include "text.h"

#include <errno.h>
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

/* A job of its own from now on, in which nothing was said yet. */
static void said_nothing_yet(void)
{
	static int jobs;
	char job[48];

	snprintf(job, sizeof(job), "test-remote-%d-%d", (int)getpid(), ++jobs);
	setenv("PMIX_NAMESPACE", job, 1);
}

/* The n-th stranger makes contact; the engine itself knows nothing of it. */
static struct bw_event up(uint32_t n, const char *name)
{
	struct bw_event ev = {
		.type = BW_EV_PEER_UP, .peer = 1000 + n, .node = 77, .engine = 40000, .inc = 1 + n};

	strncpy(ev.name, name, BW_NAME_MAX);
	ev.from.link = BW_LINK_NO_UDP;
	ev.from.len = 6;
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

#define CALLS 5000 /* more than a listener keeps that takes none */

/* However often there is something to say, who holds the claim is asked once: it never answers. */
static void log__asks_once_who_speaks(void **state)
{
	uint64_t strangers = bw_claim_strangers();
	char name[108];
	int other;

	said_nothing_yet();
	assert_true(bw_log_first(BW_LOG_ERROR, "often"));
	for (int i = 0; i < CALLS; i++)
		assert_false(bw_log_first(BW_LOG_ERROR, "often"));
	assert_int_equal(bw_claim_strangers(), strangers);
	snprintf(name, sizeof(name), "beowire/said/%s/other", getenv("PMIX_NAMESPACE"));
	other = bw_claim_name(name);
	assert_true(other >= 0);
	assert_false(bw_log_first(BW_LOG_ERROR, "other"));
	close(other);
	assert_false(bw_log_first(BW_LOG_ERROR, "other"));
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
	bw_peer_no number[100];

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

/* Given up is given up: not even its own HELLO brings it back. */
static void peer__that_was_given_up_is_not_taken_back(void **state)
{
	struct bw_event ev = up(0, "friend");
	struct bw_remote *p = bw_remote_by_handle(&ep->remotes, ev.peer);

	message_from(&ev);
	refuse(ev, -ETIMEDOUT);
	assert_int_equal(seen.downs, 1);
	ev.type = BW_EV_PEER_UP;
	ev.peer = 5000;
	ev.inc = p->addr.inc;
	bw_remote_event(ep, &ev);
	assert_null(bw_remote_by_handle(&ep->remotes, 5000));
	assert_int_equal(p->handle, 0);
	assert_int_equal(bw_peer_status(ep, p->number), -ETIMEDOUT);
	message_from(&ev);
	assert_int_equal(seen.messages, 1);
}

/* Unless the program has done with it, and nothing that is still to be told refers to it. */
static void peer__that_is_forgotten_may_come_again(void **state)
{
	struct bw_event ev = up(0, "friend");
	struct bw_remote *p = bw_remote_by_handle(&ep->remotes, ev.peer);
	struct bw_buffer sent;
	struct bw_addr addr;

	message_from(&ev);
	assert_int_equal(bw_peer_addr(ep, p->number, &addr), 0);
	assert_int_equal(bw_peer_forget(ep, &addr), -EBUSY);
	p->handle = 0; /* as if the engine had none */
	assert_int_equal(bw_peer_forget(ep, &addr), -EBUSY);
	p->handle = ev.peer;
	refuse(ev, -ETIMEDOUT);
	p->sent = &sent;
	assert_int_equal(bw_peer_forget(ep, &addr), -EBUSY);
	p->sent = NULL;
	assert_int_equal(ep->remotes.ghosts, 1);
	assert_int_equal(bw_peer_forget(ep, &addr), 0);
	assert_int_equal(ep->remotes.ghosts, 0);
	assert_int_equal(bw_peer_forget(ep, &addr), -ENOENT);
	up(0, "friend");
	message_from(&ev);
	assert_int_equal(seen.messages, 2);
	assert_int_equal(seen.downs, 1);
}

/* A peer that the program does not need makes room: its number is void, and it may come again. */
static void peer__that_is_not_needed_makes_room(void **state)
{
	struct bw_event ev = up(0, "guest");
	struct bw_remote *p = bw_remote_by_handle(&ep->remotes, ev.peer);
	bw_peer_no number = p->number;
	struct bw_buffer sent;

	message_from(&ev);
	assert_true(bw_host_ops.needed(ep, ev.peer));
	seen.needs_nobody = true;
	assert_false(bw_host_ops.needed(ep, ev.peer));
	assert_int_equal(seen.peer, number);
	assert_true(bw_host_ops.needed(ep, ev.peer + 1)); /* nobody */
	p->complete = true;
	assert_true(bw_host_ops.needed(ep, ev.peer));
	p->complete = false;
	p->sent = &sent;
	assert_true(bw_host_ops.needed(ep, ev.peer));
	p->sent = NULL;
	refuse(ev, BW_DOWN_EVICTED);
	assert_int_equal(seen.downs, 1);
	assert_int_equal(seen.status, BW_DOWN_EVICTED);
	assert_null(bw_remote_find(&ep->remotes, ev.node, ev.engine, ev.inc));
	assert_int_equal(ep->remotes.ghosts, 0);
	message_from(&ev);
	assert_int_equal(seen.messages, 1);
	up(0, "guest");
	message_from(&ev);
	assert_int_equal(seen.messages, 2);
}

/* Two endpoints in shared memory, which could speak by udp as well. */
struct pair {
	struct bw_ep *a, *b;
	struct told at_a, at_b;
	bw_peer_no to_b;
	struct bw_remote *p; /* a, as b knows it */
	uint64_t sent;
};

static void pair_sends(struct pair *t)
{
	assert_int_equal(bw_send(t->a, t->to_b, 1, 0, 0, "hello", 5, 0, NULL), 1);
	endpoint_await(t->a, t->b, &t->at_b.messages, ++t->sent);
	assert_int_equal(
		bw_send(t->b, t->p ? t->p->number : t->at_b.peer, 1, 0, 0, "hello", 5, 0, NULL), 1);
	endpoint_await(t->a, t->b, &t->at_a.messages, t->sent);
}

static void pair_open(struct pair *t)
{
	*t = (struct pair){.sent = 0};
	t->a = endpoint_open("local,udp", &t->at_a);
	t->b = endpoint_open("local,udp", &t->at_b);
	t->to_b = endpoint_find(t->a, t->b);
	pair_sends(t);
	t->p = bw_remote_get(&t->b->remotes, t->at_b.peer);
	assert_non_null(t->p->local);
}

static void pair_close(struct pair *t)
{
	assert_int_equal(t->at_b.downs, 0);
	bw_ep_close(t->a, 0);
	bw_ep_close(t->b, 0);
}

/* Somebody calls b as a, from this address, says something and goes. Is he heard? */
static bool calls_as_a(struct pair *t, uint32_t handle, const struct bw_link_addr *from)
{
	struct bw_event ev = {.type = BW_EV_PEER_UP,
			      .peer = handle,
			      .node = t->a->self.node,
			      .engine = t->a->self.engine,
			      .inc = t->a->self.inc,
			      .from = *from};
	uint64_t before = t->at_b.messages;
	bool heard;

	bw_remote_event(t->b, &ev);
	ev.type = BW_EV_MESSAGE;
	ev.len = 0;
	bw_message_event(t->b, &ev);
	heard = t->at_b.messages != before;
	t->at_b.messages = before;
	ev.type = BW_EV_PEER_DOWN;
	ev.status = BW_DOWN_RESET;
	bw_remote_event(t->b, &ev);
	assert_null(bw_remote_by_handle(&t->b->remotes, handle));
	return heard;
}

/* The kernel has told who is at the other end of shared memory: a caller of that name from
 * elsewhere is somebody else, and ends nothing. */
static void shared__peer_has_no_impostor(void **state)
{
	struct bw_link_addr from = {.link = BW_LINK_NO_UDP, .len = 6, .bytes = {10, 0, 0, 9, 1, 1}};
	struct pair t;

	pair_open(&t);
	assert_false(calls_as_a(&t, 5000, &from));
	pair_sends(&t);
	endpoint_find(t.b, t.a);
	assert_false(calls_as_a(&t, 5000, &from));
	from.link = BW_LINK_NO_PACKET;
	assert_false(calls_as_a(&t, 5000, &from));
	pair_sends(&t);
	pair_close(&t);
}

/* What was under way by other links when they attached to each other is heard, and its end is not
 * the peer's. */
static void shared__peer_may_speak_by_udp_as_well(void **state)
{
	struct bw_link_addr from = {.link = BW_LINK_NO_UDP, .len = 6, .bytes = {10, 0, 0, 9, 1, 1}};
	struct pair t;

	pair_open(&t);
	bw_remote_set_handle(&t.b->remotes, t.p, 5000); /* we called */
	assert_true(calls_as_a(&t, 5000, &from));
	pair_sends(&t);
	endpoint_find(t.b, t.a);
	t.p->offered = 1;
	assert_true(bw_addr_udp(&t.a->self, t.a->self.links, &from));
	assert_true(calls_as_a(&t, 5001, &from));
	pair_sends(&t);
	t.b->keyed = true;
	from.bytes[0]++;
	assert_true(calls_as_a(&t, 5002, &from));
	t.b->keyed = false;
	pair_sends(&t);
	pair_close(&t);
}

/* An endpoint with raw frames, without an interface. */
static void with_packet(void)
{
	ep->has_packet = true;
	ep->packets = 1;
	ep->packet[0].link = BW_LINK_NO_PACKET;
	ep->self.ethertype = 0x88B5;
	memcpy(ep->self.mac, "\2\0\0\0\0\1", 6);
}

/* Raw frames pass between nodes that use the same EtherType: one to the own node, or to the own
 * address, never comes back. */
static void way__is_one_that_both_have(void **state)
{
	const struct bw_addr_fields theirs = {.links = BW_LINK_PACKET,
					      .node = ep->self.node + 1,
					      .ethertype = 0x88B5,
					      .mac = {2, 0, 0, 0, 0, 2}};
	struct bw_addr_fields a = theirs;

	with_packet();
	assert_true(bw_remote_engine_reaches(ep, &a));
	a.node = ep->self.node;
	assert_false(bw_remote_engine_reaches(ep, &a));
	a.links |= BW_LINK_UDP;
	assert_true(bw_remote_engine_reaches(ep, &a));
	a = theirs;
	memcpy(a.mac, ep->self.mac, 6);
	assert_false(bw_remote_engine_reaches(ep, &a));
	a = theirs;
	a.ethertype++;
	assert_false(bw_remote_engine_reaches(ep, &a));
	a = theirs;
	a.links = BW_LINK_LOCAL;
	assert_false(bw_remote_engine_reaches(ep, &a));
	ep->has_packet = false;
	ep->packets = 0;
	assert_false(bw_remote_engine_reaches(ep, &theirs));
}

/* Whatever an endpoint may have is in its address, and comes out of it again. */
static void address__holds_all_links(void **state)
{
	struct bw_link_addr udp4 = {.len = 6, .bytes = {10, 0, 0, 1, 0x39, 0x30}};
	struct bw_link_addr udp6 = {.len = 18, .bytes = {0xFD, [15] = 1, [16] = 0x39, 0x30}};
	struct bw_addr_fields f = {.links = BW_LINK_LOCAL | BW_LINK_PACKET | BW_LINK_KERNEL,
				   .cluster = 0x01020304,
				   .node = 0x1112131415161718,
				   .inc = 0x21222324,
				   .engine = 0x3132,
				   .ethertype = 0x88B5,
				   .mac = {2, 4, 6, 8, 10, 12},
				   .packet_mtu = bw_addr_mtu(9000),
				   .udp_mtu = bw_addr_mtu(65536)};
	struct bw_addr_fields six = f, again;
	struct bw_link_addr found;
	struct bw_addr addr;

	assert_int_equal(sizeof(addr), 56);
	assert_int_equal(f.udp_mtu, 65535);
	f.more_macs = 2;
	memset(f.more_mac, 0x5A, sizeof(f.more_mac));
	bw_addr_set_udp(&f, &udp4);
	bw_addr_pack(&f, &addr);
	assert_int_equal(bw_addr_unpack(&addr, &again), 0);
	assert_memory_equal(&f, &again, sizeof(f));
	assert_true(bw_addr_udp(&again, BW_LINK_UDP, &found));
	assert_memory_equal(found.bytes, udp4.bytes, udp4.len);
	bw_addr_set_udp(&six, &udp6);
	bw_addr_pack(&six, &addr);
	assert_int_equal(bw_addr_unpack(&addr, &again), 0);
	assert_true(bw_addr_udp(&again, BW_LINK_UDP6, &found));
	assert_memory_equal(found.bytes, udp6.bytes, udp6.len);
}

static int packed(struct bw_addr_fields f)
{
	struct bw_addr_fields again;
	struct bw_addr addr;

	bw_addr_pack(&f, &addr);
	return bw_addr_unpack(&addr, &again);
}

/* One bit that is wrong, a version of another, parts that contradict each other. */
static void address__is_checked(void **state)
{
	struct bw_addr_fields f = ep->self;
	struct bw_addr addr;

	bw_addr_pack(&f, &addr);
	for (size_t bit = 0; bit < 8 * sizeof(addr); bit++) {
		struct bw_addr wrong = addr;

		wrong.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(bw_addr_unpack(&wrong, &f), -EINVAL);
	}
	f = ep->self;
	f.magic = BW_ADDR_MAGIC;
	f.version = BW_ADDR_VERSION + 1;
	f.crc = bw_checksum(0, &f, offsetof(struct bw_addr_fields, crc));
	memcpy(addr.bytes, &f, sizeof(f));
	assert_int_equal(bw_addr_unpack(&addr, &f), -EPROTONOSUPPORT);
	f = ep->self;
	f.links = BW_LINK_PACKET;
	f.more_macs = BW_ADDR_MACS - 1;
	assert_int_equal(packed(f), 0);
	f.more_macs = BW_ADDR_MACS;
	assert_int_equal(packed(f), -EINVAL);
	f.more_macs = 1;
	f.links = BW_LINK_UDP;
	assert_int_equal(packed(f), -EINVAL);
	f.links = BW_LINK_PACKET | BW_LINK_UDP6;
	assert_int_equal(packed(f), -EINVAL);
	f.more_macs = 0;
	assert_int_equal(packed(f), 0);
	f.links = BW_LINK_UDP | BW_LINK_UDP6;
	assert_int_equal(packed(f), -EINVAL);
	f.links = 2 * BW_LINK_UDP6;
	assert_int_equal(packed(f), -EINVAL);
}

static void address__of_another_cluster_is_refused(void **state)
{
	struct bw_addr_fields a = ep->self;
	struct bw_addr addr;
	bw_peer_no peer;

	a.inc++;
	a.cluster++;
	bw_addr_pack(&a, &addr);
	assert_int_equal(bw_peer_find(ep, &addr, &peer), -EPROTONOSUPPORT);
	a.cluster--;
	bw_addr_pack(&a, &addr);
	assert_int_equal(bw_peer_find(ep, &addr, &peer), 0);
}

/* Of each link the largest frame that passed is kept, and only of links that are usable. */
static void path__is_remembered_at_its_best(void **state)
{
	struct bw_event ev = up(0, "friend");
	struct bw_remote *p = bw_remote_by_handle(&ep->remotes, ev.peer);
	static const uint32_t mtus[] = {1500, 9000, 4000};

	ev.type = BW_EV_PATH;
	ev.from.link = BW_LINK_NO_PACKET;
	ev.usable = false;
	ev.mtu = 1000;
	bw_remote_event(ep, &ev);
	assert_int_equal(p->passed, 0);
	assert_int_equal(p->mtu[BW_LINK_NO_PACKET], 0);
	ev.usable = true;
	for (int i = 0; i < 3; i++) {
		ev.mtu = mtus[i];
		bw_remote_event(ep, &ev);
	}
	assert_int_equal(p->passed, 1u << BW_LINK_NO_PACKET);
	assert_int_equal(p->mtu[BW_LINK_NO_PACKET], 9000);
	ev.from.link = BW_LINK_NUMBERS;
	bw_remote_event(ep, &ev);
	assert_int_equal(p->passed, 1u << BW_LINK_NO_PACKET);
}

/* Said once for a job, and only of a peer that the program has to do with. */
static void version__of_a_known_peer_is_told_once(void **state)
{
	struct bw_event one = up(0, "one\033[m"), other = up(1, "second");
	int before = listen_up();

	message_from(&one);
	message_from(&other);
	refuse(one, BW_DOWN_VERSION);
	refuse(other, BW_DOWN_VERSION);
	const char *text = said(before);

	assert_non_null(strstr(text, "one?[m"));
	assert_non_null(strstr(text, ep->host));
	assert_non_null(strstr(text, "versions 200 to 200"));
	assert_null(strstr(text, "second"));
	assert_int_equal(seen.downs, 2);
}

/* Both sides say the same line: whichever name is ours, the first one in their order is first, with
 * its versions. */
static void version__none_in_common_is_told_by_one_line(void **state)
{
	struct bw_event first = up(0, "!first"), last = up(1, "~last");
	char expected[300];
	const char *text;
	int before;

	message_from(&first);
	message_from(&last);
	said_nothing_yet();
	before = listen_up();
	refuse(first, BW_DOWN_VERSION);
	text = said(before);
	snprintf(expected, sizeof(expected),
		 "beowire: error: !first speaks versions 200 to 200 of the wire protocol and %s "
		 "versions %u to %u, so they do not talk to each other; fix: install the same "
		 "Beowire on both\n",
		 ep->host, BW_VERSION_MIN, BW_VERSION_MAX);
	assert_string_equal(text, expected);
	said_nothing_yet();
	before = listen_up();
	refuse(last, BW_DOWN_VERSION);
	text = said(before);
	snprintf(expected, sizeof(expected),
		 "beowire: error: %s speaks versions %u to %u of the wire protocol and ~last "
		 "versions 200 to 200, so they do not talk to each other; fix: install the same "
		 "Beowire on both\n",
		 ep->host, BW_VERSION_MIN, BW_VERSION_MAX);
	assert_string_equal(text, expected);
}

/* Our name and another one as both sides say them. */
static const char *names_in_order(const char *other)
{
	static char text[200];
	bool we = strcmp(ep->host, other) < 0;

	snprintf(text, sizeof(text), "%s and %s do not", we ? ep->host : other,
		 we ? other : ep->host);
	return text;
}

static void key__that_differs_is_told_once(void **state)
{
	struct bw_event one = up(0, "one\033[m"), other = up(1, "second");
	int before = listen_up();

	message_from(&one);
	message_from(&other);
	refuse(one, BW_DOWN_KEY);
	refuse(other, BW_DOWN_KEY);
	const char *text = said(before);

	assert_non_null(strstr(text, names_in_order("one?[m")));
	assert_non_null(strstr(text, "do not have the same cluster key, so they do not talk"));
	assert_non_null(strstr(text, "BEOWIRE_KEY"));
	assert_null(strstr(text, "second"));
	assert_int_equal(seen.downs, 2);
}

static void encryption__that_differs_is_told_once(void **state)
{
	struct bw_event one = up(0, "one"), other = up(1, "second");
	char expected[200];
	int before = listen_up();

	message_from(&one);
	message_from(&other);
	refuse(one, BW_DOWN_ENCRYPT);
	refuse(other, BW_DOWN_ENCRYPT);
	const char *text = said(before);

	snprintf(expected, sizeof(expected), "one encrypts, and %s does not, so they do not talk",
		 ep->host);
	assert_non_null(strstr(text, expected));
	assert_non_null(strstr(text, "BEOWIRE_ENCRYPT=1 on both"));
	assert_null(strstr(text, "second"));
	assert_int_equal(seen.downs, 2);
}

/* Both sides say the same line: whichever name is ours, the first one in their order is first. */
static void key__that_differs_is_told_by_one_line(void **state)
{
	struct bw_event first = up(0, "!first"), last = up(1, "~last");
	char expected[200];
	const char *text;
	int before;

	message_from(&first);
	message_from(&last);
	for (int i = 0; i < 2; i++) {
		said_nothing_yet();
		before = listen_up();
		refuse(i ? last : first, BW_DOWN_KEY);
		text = said(before);
		snprintf(expected, sizeof(expected),
			 "beowire: error: %s and %s do not have the same", i ? ep->host : "!first",
			 i ? "~last" : ep->host);
		assert_ptr_equal(strstr(text, expected), text);
		assert_null(strstr(text, "engine"));
	}
}

/* The process was told of a jump while it waited for this peer, and says so, with its own name. */
static void assert_tells_jump(uint32_t peer, const char *whom)
{
	char expected[300], host[65] = "";
	int before = listen_up();
	const char *text;

	said_nothing_yet();
	ep->helper.wanted = false;
	bw_host_ops.excused(ep, peer, 19 * BW_S);
	ep->helper.wanted = true;
	bw_host_ops.excused(ep, peer, 20 * BW_S);
	bw_host_ops.excused(ep, peer, 21 * BW_S);
	ep->helper.wanted = false;
	text = said(before);
	gethostname(host, sizeof(host) - 1);
	snprintf(expected, sizeof(expected),
		 "beowire: %s: warning: this process stood still, or the clock jumped, by 20000 ms "
		 "at least%s; no peer is given up for that\n",
		 host, whom);
	assert_string_equal(text, expected);
}

/* The peer that was waited for is named, if it is known. */
static void clock__that_jumped_is_told_once(void **state)
{
	struct bw_event one = up(0, "one\033[m"), nameless = up(1, "");

	assert_tells_jump(one.peer, " while it waited for one?[m");
	assert_tells_jump(nameless.peer, " while it waited for a peer");
	assert_tells_jump(nameless.peer + 1, "");
}

#define CHAIN 4096

/* A stranger chooses node, engine number and incarnation. With the hash that had no key he found
 * such as have one bucket, here by their sums; with each key they have others. */
static void identities__that_a_stranger_chooses_are_spread(void **state)
{
	struct bw_secret secret = {.left = 0};
	struct bw_remotes r, other;
	uint32_t steps = 0, same = 0;

	assert_int_equal(bw_remote_init(&r, &secret), 0);
	assert_int_equal(bw_remote_init(&other, &secret), 0);
	for (uint32_t i = 1; i <= CHAIN; i++) { /* node ^ inc << 16 ^ engine is the same for all */
		struct bw_remote *p = bw_remote_make(&r, 77 ^ (uint64_t)i << 16, 40000, i);
		struct bw_remote *q = bw_remote_make(&other, 77 ^ (uint64_t)i << 16, 40000, i);

		assert_non_null(p);
		assert_non_null(q);
	}
	assert_int_equal(r.buckets, CHAIN);
	for (uint32_t b = 0; b < r.buckets; b++) {
		uint32_t length = 0;

		for (const struct bw_remote *p = r.by_id[b]; p; p = p->next_id)
			length++;
		if (length > steps)
			steps = length;
		if (r.by_id[b] && other.by_id[b] &&
		    r.by_id[b]->addr.inc == other.by_id[b]->addr.inc)
			same++;
	}
	assert_in_range(steps, 2, 16);	      /* 4096 in as many buckets: 7, by chance */
	assert_in_range(same, 0, CHAIN / 64); /* that two keys put into one bucket: 1 or 2 */
	bw_remote_free_all(&r);
	bw_remote_free_all(&other);
}

/* What was given is nowhere to be found any more, and no number is given again. */
static void secret__is_forgotten_once_given(void **state)
{
	struct bw_secret secret = {.left = 0};
	uint64_t word[2 * BW_SECRET_WORDS];

	for (int i = 0; i < 2 * BW_SECRET_WORDS; i++) {
		word[i] = bw_secret_draw(&secret);
		assert_int_equal(secret.word[secret.left], 0);
		for (int before = 0; before < i; before++)
			assert_true(word[i] != word[before]);
	}
	assert_int_equal(secret.left, 0);
}

static const char *described(bw_peer_no peer)
{
	const char *text = bw_peer_describe(ep, peer);

	assert_printable(text);
	return text;
}

static bool ends_with(const char *text, const char *end)
{
	return strlen(text) >= strlen(end) && !strcmp(text + strlen(text) - strlen(end), end);
}

/* By the name that it gave, its node and engine, and the link by which it is sent to. */
static void peer__is_described(void **state)
{
	struct told at_other;
	struct bw_ep *other = endpoint_open("udp", &at_other);
	bw_peer_no peer = endpoint_find(ep, other);
	struct bw_event ev = up(3, "far away");
	struct bw_remote *far = bw_remote_by_handle(&ep->remotes, ev.peer);
	char text[160];

	assert_string_equal(described(123456), "no such peer");
	assert_null(bw_peer_link(ep, 123456));
	/* Nothing was sent: its host is known by the node alone. */
	assert_null(bw_peer_link(ep, peer));
	snprintf(text, sizeof(text), "%s (node %016llx) engine %u, not connected", ep->host,
		 (unsigned long long)ep->self.node, other->self.engine);
	assert_string_equal(described(peer), text);
	assert_int_equal(bw_send(ep, peer, 1, 0, 0, "hello", 5, 0, NULL), 1);
	endpoint_await(ep, other, &at_other.messages, 1);
	assert_string_equal(bw_peer_link(ep, peer), "udp");
	assert_true(ends_with(described(peer), ", udp"));
	assert_string_equal(bw_peer_link(other, at_other.peer), "udp");
	assert_true(
		strstr(described(far->number), "far away (node 000000000000004d) engine 40000"));
	/* Of one that is lost no link is told. */
	far->known = true;
	refuse(ev, BW_DOWN_TIMEOUT);
	assert_true(far->status);
	assert_null(bw_peer_link(ep, far->number));
	assert_string_equal(described(far->number),
			    "far away (node 000000000000004d) engine 40000");
	bw_ep_close(other, 0);
}

static void peer__of_an_unknown_node_has_no_host(void **state)
{
	struct bw_event ev = up(4, "");
	struct bw_remote *p = bw_remote_by_handle(&ep->remotes, ev.peer);

	assert_string_equal(described(p->number),
			    "unknown host (node 000000000000004d) engine 40000, not connected");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text__is_made_printable),
		TEST(name__has_no_control_characters),
		TEST(log__writes_one_line),
		TEST(log__asks_once_who_speaks),
		TEST(stranger__is_nothing_to_tell_of),
		TEST(stranger__leaves_nothing_behind),
		TEST(number__of_a_known_peer_stays),
		TEST(peer__that_was_given_up_is_not_taken_back),
		TEST(peer__that_is_forgotten_may_come_again),
		TEST(peer__that_is_not_needed_makes_room),
		TEST(shared__peer_has_no_impostor),
		TEST(shared__peer_may_speak_by_udp_as_well),
		TEST(way__is_one_that_both_have),
		TEST(address__holds_all_links),
		TEST(address__is_checked),
		TEST(address__of_another_cluster_is_refused),
		TEST(path__is_remembered_at_its_best),
		TEST(version__of_a_known_peer_is_told_once),
		TEST(version__none_in_common_is_told_by_one_line),
		TEST(key__that_differs_is_told_once),
		TEST(key__that_differs_is_told_by_one_line),
		TEST(encryption__that_differs_is_told_once),
		TEST(clock__that_jumped_is_told_once),
		TEST(identities__that_a_stranger_chooses_are_spread),
		TEST(peer__is_described),
		TEST(peer__of_an_unknown_node_has_no_host),
		cmocka_unit_test(secret__is_forgotten_once_given),
	};

	said_nothing_yet();
	return cmocka_run_group_tests_name("remote", tests, NULL, NULL);
}
