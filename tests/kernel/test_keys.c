/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A node's key: who may set it, what is one, what is told of it, and who is heard with one. That
 * the module computes with keys as the standards say is checked by itself when it is loaded: else
 * nothing here would run.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "beowire_server.h"
#include "kframe.h"
#include "kuser.h"

#define FILE_NAME "/proc/sys/net/beowire/key"
#define DIGITS	  "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F"
#define OTHER	  "ff0102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F"
#define PRINT	  "571a469f\n" /* of these digits, as ./beowire key show tells it */

/* 0 or a negative errno; in the node that the thread is in. */
static int set(const char *text)
{
	return kt_set("key", text);
}

static const char *told(void)
{
	static char text[128];
	int fd = open(FILE_NAME, O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	assert_true(fd >= 0 && n >= 0);
	text[n] = 0;
	close(fd);
	return text;
}

static void test_a_key_is_told_by_its_fingerprint(void **state)
{
	char begin[8];
	int fd;

	kt_enter("a");
	assert_string_equal(told(), "none\n");
	assert_int_equal(set(DIGITS "\n"), 0);
	assert_string_equal(told(), PRINT);
	kt_enter("b");
	assert_string_equal(told(), "none\n");
	assert_int_equal(set("1" DIGITS), -EINVAL);
	kt_enter("a");
	fd = open(FILE_NAME,
		  O_RDONLY); /* a short read gets the beginning, and the next one nothing */
	assert_int_equal(read(fd, begin, 3), 3);
	assert_memory_equal(begin, PRINT, 3);
	assert_int_equal(read(fd, begin, sizeof(begin)), 0);
	close(fd);
	assert_int_equal(set("none\n"), 0);
	assert_string_equal(told(), "none\n");
	assert_int_equal(set(DIGITS), 0);
	assert_string_equal(told(), PRINT);
	assert_int_equal(set("none"), 0);
}

/* What is none leaves the one that is there. */
static void test_a_key_is_64_digits(void **state)
{
	static const char *const none[] = {
		"\n",
		"no",
		"none\n\n",
		"0" DIGITS,
		DIGITS "0\n",
		DIGITS "\n\n",
		" " DIGITS,
		"# key\n" DIGITS,
		"0000000000000000000000000000000000000000000000000000000000000000\n",
		"000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1G",
		"000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1",
	};
	int fd;

	kt_enter("a");
	assert_int_equal(set(DIGITS), 0);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_int_equal(set(none[i]), -EINVAL);
		assert_string_equal(told(), PRINT);
	}
	fd = open(FILE_NAME, O_WRONLY); /* in pieces it is none either */
	kt_refused(write(fd, DIGITS, 32), EINVAL);
	assert_int_equal(pwrite(fd, DIGITS, 64, 64), -1);
	close(fd);
	assert_string_equal(told(), PRINT);
	assert_int_equal(set("none"), 0);
}

static int set_as_told(void *arg)
{
	return -set(arg);
}

static int print_is_told(void *arg)
{
	return strcmp(told(), PRINT) != 0;
}

/* Root, but not the network's administrator. */
static int set_without_capability(void *arg)
{
	return kt_set_without_admin("key", arg);
}

/* Administrator of a network of his own. */
static int set_in_own_namespace(void *arg)
{
	FILE *map;

	/* who has put on another uid may not write to his own /proc/self otherwise */
	if (prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return 202;
	map = fopen("/proc/self/uid_map", "w");
	if (!map || fprintf(map, "0 %d 1", KT_ALICE) < 0 || fclose(map))
		return 203;
	if (strcmp(told(), "none\n"))
		return 204;
	return set(DIGITS) || strcmp(told(), PRINT);
}

static void test_a_key_is_its_administrators(void **state)
{
	kt_enter("a");
	assert_int_equal(kt_as(KT_ALICE, set_as_told, DIGITS), EACCES);
	assert_int_equal(kt_as(0, set_without_capability, DIGITS), EPERM);
	assert_string_equal(told(), "none\n");
	assert_int_equal(set(DIGITS), 0);
	assert_int_equal(kt_as(KT_ALICE, print_is_told, NULL), 0);
	assert_int_equal(kt_as(KT_ALICE, set_as_told, "none"), EACCES);
	assert_int_equal(set("none"), 0);
	assert_int_equal(kt_as(KT_ALICE, set_in_own_namespace, NULL), 0);
	assert_string_equal(told(), "none\n");
}

/* Nor does the log have it, or any part of it, whatever was wrong with it. */
static void test_a_key_is_in_no_log(void **state)
{
	kt_enter("a");
	assert_int_equal(set(DIGITS), 0);
	assert_int_equal(set(DIGITS "0"), -EINVAL);
	assert_int_equal(set("none"), 0);
	assert_int_equal(kt_logged("0c0d0e0f", ""), 0);
}

static int set_in_new_namespace(void *arg)
{
	if (unshare(CLONE_NEWNET))
		return 202;
	if (strcmp(told(), "none\n"))
		return 204;
	return set(DIGITS) || strcmp(told(), PRINT);
}

/* Whoever had its memory before. */
static void test_a_new_namespace_has_none(void **state)
{
	for (int i = 0; i < 20; i++)
		assert_int_equal(kt_as(0, set_in_new_namespace, NULL), 0);
}

/* ---- who is heard ---- */

static void keys(const char *of_a, const char *of_b)
{
	kt_enter("a");
	assert_int_equal(set(of_a), 0);
	kt_enter("b");
	assert_int_equal(set(of_b), 0);
}

/* A test that failed has left its keys. */
static int keyless(void **state)
{
	keys("none", "none");
	kt_log_every_line(false);
	return kt_end(state);
}

static void talk(const struct kt_pair *p)
{
	char got[4] = "";

	assert_int_equal(send(p->a, "to b", 4, 0), 4);
	assert_int_equal(recv(p->b, got, 4, 0), 4);
	assert_memory_equal(got, "to b", 4);
	assert_int_equal(send(p->b, "to a", 4, 0), 4);
	assert_int_equal(recv(p->a, got, 4, 0), 4);
	assert_memory_equal(got, "to a", 4);
}

static uint8_t sent[1 << 20], got[1 << 20];

static long send_all(void *arg)
{
	return send(*(const int *)arg, sent, sizeof(sent), 0);
}

/* A long message, which is fetched out of the sender's pages. */
static void talk_long(const struct kt_pair *p)
{
	struct kt_thread t;

	kt_fill(sent, sizeof(sent), 3);
	kt_start(&t, send_all, (void *)&p->a);
	assert_int_equal(recv(p->b, got, sizeof(got), MSG_WAITALL), sizeof(got));
	assert_int_equal(kt_join(&t), sizeof(sent));
	assert_true(kt_filled(got, sizeof(got), 3));
}

static void test_nodes_with_the_same_key_talk(void **state)
{
	static const int types[] = {SOCK_RDM, SOCK_SEQPACKET, SOCK_STREAM};
	int fd;

	keys(DIGITS, DIGITS);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct kt_pair p =
			types[i] == SOCK_RDM ? kt_couple(SOCK_RDM) : kt_connection(types[i]);

		talk(&p);
		talk_long(&p);
		kt_close(&p);
	}
	fd = kt_open("a", SOCK_STREAM);
	struct kt_pair p =
		kt_pair(SOCK_RDM); /* nobody listens at such a port, and then nobody is */
	assert_int_equal(kt_connect(fd, &p.at_b), -ECONNREFUSED);
	kt_close(&p);
	usleep(200000);
	uint64_t begin = kt_now_ns();
	assert_int_equal(kt_connect(fd, &p.at_b),
			 -ECONNREFUSED); /* the node says so, with the key */
	assert_in_range(kt_now_ns() - begin, 0, KT_SOON_NS);
	close(fd);
	keys("none", "none");
}

static void test_other_keys_are_rejected(void **state)
{
	static const char *const of[][2] = {{DIGITS, OTHER}, {DIGITS, "none"}, {"none", DIGITS}};

	for (int i = 0; i < 3; i++) {
		uint64_t begin = kt_now_ns();
		struct kt_pair p;
		int before, fd, listener;
		char of_b[32];

		keys(of[i][0], of[i][1]);
		p = kt_couple(SOCK_RDM);
		snprintf(of_b, sizeof(of_b), "(engine %u of ", p.at_b.sbw_port);
		before = kt_logged_of(&p, "have different keys");
		assert_int_equal(send(p.a, "x", 1, MSG_DONTWAIT), 1);
		while (!(kt_events(p.a, POLLERR) & POLLERR))
			assert_in_range(kt_now_ns() - begin, 0, KT_SOON_NS);
		assert_int_equal(kt_error(p.a), EKEYREJECTED);
		kt_refused(recv(p.b, got, 1, MSG_DONTWAIT), EAGAIN);
		listener = kt_listener(SOCK_STREAM, 1);
		p.at_b = kt_at(listener);
		fd = kt_open("a", SOCK_STREAM);
		assert_int_equal(kt_connect(fd, &p.at_b), -EKEYREJECTED);
		assert_in_range(kt_now_ns() - begin, 0, KT_SOON_NS);
		assert_int_equal(kt_logged_of(&p, "have different keys"), before + 1);
		assert_true(kt_logged(of_b, "; fix: the same key in net.beowire.key of both, or "
					    "none on either"));
		close(fd);
		close(listener);
		kt_close(&p);
	}
	keys("none", "none");
}

static void as_they_are(struct kt_frame *f, long wanted)
{
}

/* Whose turn it is again and again. */
static void test_each_with_another_key_is_told_once(void **state)
{
	struct sockaddr_beowire at[2];
	struct kt_relay r;
	struct kt_pair p;
	int before;

	keys(DIGITS, OTHER);
	kt_log_every_line(true);
	kt_relay_begin(&r, as_they_are);
	r.as_it_is = true;
	p = kt_pair(SOCK_RDM);
	at[0] = p.at_b;
	at[1] = kt_relayed(&p.at_b);
	before = kt_logged_of(&p, "have different keys");
	for (int i = 0; i < 6; i++) {
		int fd = kt_open("a", SOCK_RDM);

		assert_int_equal(kt_connect(fd, &at[i % 2]), 0);
		assert_int_equal(send(fd, "x", 1, MSG_DONTWAIT), 1);
		kt_until(kt_events(fd, POLLERR) & POLLERR);
		assert_int_equal(kt_error(fd), EKEYREJECTED);
		close(fd);
	}
	assert_int_equal(kt_logged_of(&p, "have different keys"), before + 2);
	kt_close(&p);
	kt_relay_end(&r);
	kt_log_every_line(false);
	keys("none", "none");
}

static void test_a_key_is_of_ports_opened_afterwards(void **state)
{
	struct kt_pair old = kt_couple(SOCK_RDM), p;

	talk(&old);
	keys(DIGITS, DIGITS);
	talk(&old);
	p = kt_couple(SOCK_RDM);
	talk(&p);
	keys("none", "none");
	talk(&p);
	talk(&old);
	kt_close(&p);
	kt_close(&old);
}

/* ---- frames that somebody has seen, and makes others of ---- */

#define UNUSED 64 /* packet numbers that b may use until a made-up frame has arrived */

/* Is it from this port to that one? */
static bool between(struct kt_frame *f, const struct sockaddr_beowire *from,
		    const struct sockaddr_beowire *to)
{
	return kt_header(f)->src_engine == from->sbw_port &&
	       kt_header(f)->dst_engine == to->sbw_port;
}

/* The latest DATA from and to a, as seen at b, where ports of earlier tests may still say theirs
 * again. */
static void seen(int raw, const struct kt_pair *p, struct kt_frame *to_a, struct kt_frame *to_b)
{
	struct kt_frame f;
	uint16_t type;
	ssize_t n;

	to_a->len = to_b->len = 0;
	while ((n = recv(raw, f.bytes, sizeof(f.bytes), MSG_DONTWAIT)) > 0) {
		f.len = (uint32_t)n;
		memcpy(&type, f.bytes + 12, 2);
		if (type != htons(BW_ETHERTYPE) || !kt_part(&f, BW_PART_MESSAGE, 0))
			continue;
		if (between(&f, &p->at_b, &p->at_a))
			*to_a = f;
		else if (between(&f, &p->at_a, &p->at_b))
			*to_b = f;
	}
	assert_true(to_a->len && to_b->len);
}

static void cut_to(struct kt_frame *f, uint8_t type, uint16_t len)
{
	kt_header(f)->type = type;
	kt_header(f)->pn = 0;
	kt_header(f)->len = len;
	f->len = (uint32_t)(KT_ETHERNET + sizeof(struct bw_hdr) + len);
}

/* Each makes a frame of what was seen. */

static void make_bye(struct kt_frame *to_a, const struct kt_frame *to_b)
{
	cut_to(to_a, BW_FRAME_BYE, 0);
}

static void make_refusal(struct kt_frame *to_a, const struct kt_frame *to_b)
{
	const struct bw_hdr h = *kt_header((struct kt_frame *)to_b);
	const struct bw_refuse refusal = {
		.why = BW_REFUSAL_HANDLE,
		.version_min = BW_VERSION,
		.version_max = BW_VERSION,
		.echo_type = BW_FRAME_DATA,
		.echo_engine = h.dst_engine,
		.echo_token = h.token,
		.echo_conn = h.conn,
	};

	cut_to(to_a, BW_FRAME_REFUSE, sizeof(refusal));
	memcpy(kt_header(to_a) + 1, &refusal, sizeof(refusal));
}

/* The next message. Its number leaves room for packets that b sends meanwhile, such as the latest
 * message once more, whose acknowledgement was late. */
static void make_data(struct kt_frame *to_a, const struct kt_frame *to_b)
{
	struct bw_part_msg part;
	uint8_t *at = kt_part(to_a, BW_PART_MESSAGE, 0);

	memcpy(&part, at, sizeof(part));
	part.id++;
	memcpy(at, &part, sizeof(part));
	kt_header(to_a)->pn += UNUSED;
}

static uint64_t dropped(int fd)
{
	struct beowire_counters c = kt_counters(fd);

	return c.drop[BW_DROP_HEADER] + c.drop[BW_DROP_KEY];
}

/* Has a ended its conversation with b, or received something of it? */
static bool counts(const struct kt_pair *p)
{
	return recv(p->a, got, 4, MSG_DONTWAIT) >= 0 || kt_counters(p->a).peers == 0;
}

/* Is such a frame, sent from b's address, as good as one of b's? */
static bool believes(void (*make)(struct kt_frame *to_a, const struct kt_frame *to_b))
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	int raw = kt_raw("b", "eth0", ETH_P_ALL);
	struct kt_frame to_a, to_b;
	uint64_t before;
	bool believed;

	talk(&p); /* together with a probe of the frame size, as one super-frame */
	talk(&p);
	seen(raw, &p, &to_a, &to_b);
	make(&to_a, &to_b);
	kt_seal(&to_a);
	before = dropped(p.a);
	kt_inject(raw, &to_a);
	for (int i = 0; i < 3000 && !(believed = counts(&p)) && dropped(p.a) == before; i++)
		usleep(10000);
	if (!believed) {
		assert_int_equal(dropped(p.a), before + 1);
		usleep(100000);
		believed = counts(&p);
	}
	if (!believed)
		talk(&p);
	close(raw);
	kt_close(&p);
	return believed;
}

static void test_made_up_frames_have_no_effect(void **state)
{
	/* Such frames do have one where there is no key: they are well made. */
	assert_true(believes(make_bye));
	assert_true(believes(make_refusal));
	assert_true(believes(make_data));
	keys(DIGITS, DIGITS);
	assert_false(believes(make_bye));
	assert_false(believes(make_refusal));
	assert_false(believes(make_data));
	keys("none", "none");
}

/* ---- what cannot use a key is not spoken beside one ---- */

static void test_nothing_is_said_without_the_key(void **state)
{
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE};
	struct beowire_server_claim claim = {.number = 5, .name = "test"};
	int fd, server;

	keys(DIGITS, "none");
	fd = kt_open("a", SOCK_DGRAM);
	kt_refused(bind(fd, (struct sockaddr *)&any, sizeof(any)), EKEYREJECTED);
	close(fd);
	server = open("/dev/beowire", O_RDWR);
	assert_true(server >= 0);
	kt_refused(ioctl(server, BEOWIRE_SERVER_CLAIM, &claim), EKEYREJECTED);
	close(server);
	kt_enter("b");
	server = open("/dev/beowire", O_RDWR);
	assert_int_equal(ioctl(server, BEOWIRE_SERVER_CLAIM, &claim), 0);
	fd = socket(AF_BEOWIRE, SOCK_DGRAM, 5);
	assert_true(fd >= 0);
	assert_int_equal(set(DIGITS), 0); /* after the server has begun */
	kt_refused(bind(fd, (struct sockaddr *)&any, sizeof(any)), EKEYREJECTED);
	close(fd);
	close(server);
	keys("none", "none");
}

#define keyed_test(f) cmocka_unit_test_teardown(f, keyless)

int main(void)
{
	const struct CMUnitTest tests[] = {
		keyed_test(test_a_key_is_told_by_its_fingerprint),
		keyed_test(test_a_key_is_64_digits),
		keyed_test(test_a_key_is_its_administrators),
		keyed_test(test_a_key_is_in_no_log),
		keyed_test(test_a_new_namespace_has_none),
		keyed_test(test_nodes_with_the_same_key_talk),
		keyed_test(test_other_keys_are_rejected),
		keyed_test(test_each_with_another_key_is_told_once),
		keyed_test(test_a_key_is_of_ports_opened_afterwards),
		keyed_test(test_made_up_frames_have_no_effect),
		keyed_test(test_nothing_is_said_without_the_key),
	};

	return cmocka_run_group_tests(tests, kt_open_to_all, NULL);
}
