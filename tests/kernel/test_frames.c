/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of any content, as another machine could send them: what is malformed is counted and does
 * nothing else, and whatever comes, the node serves others afterwards. They go out of b's interface
 * by a packet socket.
 *
 *	test_frames [SECONDS SEED]	how long to invent frames, and the first random number
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kframe.h"

#define NODE	   "/proc/net/beowire/node"
#define COUNTERS   "/proc/thread-self/net/beowire/counters"
#define CORPUS_MAX 256
#define ELSEWHERE  "elsewhere"

static unsigned long seconds;
static uint64_t seed = 1;

/* A frame of b's to a's port, well-formed but for what the tests make of it. */
static struct kt_frame frame_to(const struct kt_pair *p, uint8_t type, uint16_t len)
{
	struct kt_frame f = {.len = (uint32_t)(KT_ETHERNET + sizeof(struct bw_hdr) + len)};
	struct bw_hdr h = {.magic = BW_MAGIC,
			   .version = BW_VERSION,
			   .type = type,
			   .cluster = BW_CLUSTER_DEFAULT,
			   .dst_engine = p->at_a.sbw_port,
			   .src_engine = p->at_b.sbw_port,
			   .len = len};
	const uint16_t ethertype = htons(BW_ETHERTYPE);

	memcpy(f.bytes, p->at_a.sbw_mac, 6);
	memcpy(f.bytes + 6, p->at_b.sbw_mac, 6);
	memcpy(f.bytes + 12, &ethertype, 2);
	memcpy(f.bytes + KT_ETHERNET, &h, sizeof(h));
	return f;
}

/* The first HELLO of an engine of b's; `cookie` 0: it has none. */
static struct kt_frame hello_to(const struct kt_pair *p, uint64_t cookie)
{
	struct kt_frame f = frame_to(p, BW_FRAME_HELLO, sizeof(struct bw_hello));
	const struct bw_hello hello = {
		.node = 1,
		.inc = 1,
		.conn = 1,
		.token = 1,
		.nonce = 1,
		.version_min = BW_VERSION,
		.version_max = BW_VERSION,
		.engine = p->at_b.sbw_port,
		.frame_max = BW_FRAME_MIN_MTU,
		.cookie = cookie,
	};

	memcpy(kt_header(&f) + 1, &hello, sizeof(hello));
	kt_seal(&f);
	return f;
}

/* ---- counters ---- */

static void count_in_node(const char *word, const struct kt_frame *f, int times)
{
	int raw = kt_raw("b", "eth0", ETH_P_ALL);
	uint64_t before = kt_number("a", NODE, word);

	for (int i = 0; i < times; i++)
		kt_inject(raw, f);
	kt_becomes(kt_number("a", NODE, word), before + times, UINT64_MAX);
	assert_int_equal(kt_number("a", NODE, word), before + times);
	close(raw);
}

/* These frames change nothing in this counter; one that comes behind them has been counted. */
static void not_counted(const char *word, const struct kt_frame *f, const struct kt_pair *p)
{
	int raw = kt_raw("b", "eth0", ETH_P_ALL);
	uint64_t before = kt_number("a", NODE, word);
	struct kt_frame last = *f;

	for (int i = 0; i < 3; i++)
		kt_inject(raw, f);
	close(raw);
	memcpy(last.bytes, p->at_a.sbw_mac, 6);
	kt_header(&last)->magic ^= 1;
	count_in_node("foreign", &last, 1);
	assert_int_equal(kt_number("a", NODE, word), before);
}

static void test_counted_by_the_node(void **state)
{
	const struct bw_part_msg part = {.part.kind = BW_PART_MESSAGE};
	struct kt_pair p = kt_pair(SOCK_RDM);
	struct kt_frame f = frame_to(&p, BW_FRAME_ACK, 0);

	f.len -= 1; /* shorter than any header */
	count_in_node("malformed", &f, 3);
	f.len = KT_ETHERNET;
	count_in_node("malformed", &f, 2);
	f = frame_to(&p, BW_FRAME_ACK, 0);
	kt_header(&f)->magic ^= 1;
	count_in_node("foreign", &f, 4);
	f = frame_to(&p, BW_FRAME_DATA, sizeof(struct bw_ackblk) + sizeof(part));
	memcpy(kt_header(&f) + 1, &(struct bw_ackblk){0}, sizeof(struct bw_ackblk));
	memcpy((uint8_t *)(kt_header(&f) + 1) + sizeof(struct bw_ackblk), &part, sizeof(part));
	f.len -= sizeof(part) - sizeof(part.part); /* of the part's own head the beginning */
	count_in_node("malformed", &f, 3);
	f = frame_to(&p, BW_FRAME_DATA, sizeof(struct bw_refuse));
	kt_header(&f)->dst_engine = 3; /* nobody's */
	count_in_node("unclaimed", &f, 5);
	count_in_node("refused", &f, 5);
	f = frame_to(&p, BW_FRAME_DATA, sizeof(struct bw_refuse) - 1);
	kt_header(&f)->dst_engine = 3;
	not_counted("refused", &f, &p); /* shorter than its refusal */
	f = frame_to(&p, BW_FRAME_REFUSE, sizeof(struct bw_refuse));
	kt_header(&f)->dst_engine = 3;
	not_counted("refused", &f, &p); /* refusals are not refused */
	kt_close(&p);
}

static void count_in_port(int fd, enum bw_drop why, const struct kt_frame *f)
{
	int raw = kt_raw("b", "eth0", ETH_P_ALL);
	uint64_t before = kt_counters(fd).drop[why];

	kt_inject(raw, f);
	kt_becomes(kt_counters(fd).drop[why], before + 1, before + 1);
	close(raw);
}

static void test_counted_by_the_port(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct kt_frame f;

	f = frame_to(&p, BW_FRAME_ACK, 32);
	count_in_port(p.a, BW_DROP_HEADER, &f); /* no checksum */
	kt_header(&f)->version = 9;
	kt_seal(&f);
	count_in_port(p.a, BW_DROP_VERSION, &f);
	f = frame_to(&p, BW_FRAME_ACK, 32);
	kt_header(&f)->cluster++;
	kt_seal(&f);
	count_in_port(p.a, BW_DROP_CLUSTER, &f);
	f = frame_to(&p, 99, 0);
	kt_seal(&f);
	count_in_port(p.a, BW_DROP_TYPE, &f);
	f = frame_to(&p, BW_FRAME_ACK, 32);
	f.len -= 20; /* cut */
	count_in_port(p.a, BW_DROP_SHORT, &f);
	f = frame_to(&p, BW_FRAME_ACK, 32);
	kt_header(&f)->conn = 77;
	kt_seal(&f);
	count_in_port(p.a, BW_DROP_HANDLE, &f);
	f = hello_to(&p, 0);
	kt_header(&f)->token = p.at_a.sbw_inc + 1;
	kt_seal(&f);
	count_in_port(p.a, BW_DROP_INCARNATION, &f);
	kt_close(&p);
}

/* Has the port of this number gone? */
static bool is_free(const char *node, uint16_t number)
{
	struct sockaddr_beowire addr = {.sbw_family = AF_BEOWIRE, .sbw_port = number};
	int fd = kt_open(node, SOCK_RDM);
	bool is = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;

	close(fd);
	return is;
}

/* Such frames to a port of a's, which then ends: what is told of both nodes' ports after each. */
static void dropped_by_one(uint64_t before, uint64_t at_b)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct kt_frame f = frame_to(&p, BW_FRAME_ACK, 32); /* no checksum */

	for (int i = 0; i < 3; i++)
		count_in_port(p.a, BW_DROP_HEADER, &f);
	assert_int_equal(kt_number("a", COUNTERS, "drops.header"), before + 3);
	kt_close(&p);
	kt_until(is_free("a", p.at_a.sbw_port));
	assert_int_equal(kt_number("a", COUNTERS, "drops.header"), before + 3);
	assert_int_equal(kt_number("b", COUNTERS, "drops.header"), at_b);
}

/* The administrator sees what all ports of the node have counted, those that have ended
 * included. */
static void test_counted_for_all_ports(void **state)
{
	uint64_t before = kt_number("a", COUNTERS, "drops.header");
	uint64_t at_b = kt_number("b", COUNTERS, "drops.header");

	dropped_by_one(before, at_b);
	dropped_by_one(before + 3, at_b);
}

/* Frames for engines of user space, to others, and of other protocols are none of the module's. */
static void test_not_ours(void **state)
{
	struct kt_pair p = kt_pair(SOCK_RDM);
	struct kt_frame f = frame_to(&p, BW_FRAME_DATA, 100);

	kt_header(&f)->dst_engine = BEOWIRE_PORTS + 1;
	not_counted("unclaimed", &f, &p);
	not_counted("refused", &f, &p);
	f = frame_to(&p, BW_FRAME_DATA, 100);
	kt_header(&f)->dst_engine = 3;
	memset(f.bytes, 0xff, 6);
	not_counted("unclaimed", &f, &p);
	kt_close(&p);
}

/* ---- callers ---- */

/* This frame is said. How many come back to its engine number; the first one takes its place. */
static int answers_to(int raw, struct kt_frame *f)
{
	struct pollfd poller = {.fd = raw, .events = POLLIN};
	const uint16_t caller = kt_header(f)->src_engine;
	struct kt_frame answer;
	int n = 0;

	kt_inject(raw, f);
	while (poll(&poller, 1, n ? 100 : KT_SOON_MS) == 1) {
		answer.len = (uint32_t)recv(raw, answer.bytes, sizeof(answer.bytes), 0);
		if (kt_header(&answer)->dst_engine == caller && n++ == 0)
			*f = answer;
	}
	return n;
}

/* Of who says HELLO nothing is kept before he shows the cookie that was sent to his address. */
static void test_a_caller_shows_a_cookie(void **state)
{
	struct kt_pair p = {.a = kt_bound("a", SOCK_RDM, 0), .at_b.sbw_port = BEOWIRE_PORTS + 2};
	int raw = kt_raw("b", "eth0", BW_ETHERTYPE);
	uint64_t asked = kt_number("a", COUNTERS, "challenges_tx");
	struct bw_challenge c;
	struct kt_frame f;

	p.at_a = kt_at(p.a);
	memcpy(p.at_b.sbw_mac, "\x02\0\0\0\0\x07", 6);
	f = hello_to(&p, 0);
	assert_int_equal(answers_to(raw, &f), 1);
	assert_int_equal(kt_header(&f)->type, BW_FRAME_CHALLENGE);
	assert_int_equal(f.len, KT_ETHERNET + 56);
	assert_memory_equal(f.bytes, p.at_b.sbw_mac, 6);
	memcpy(&c, kt_header(&f) + 1, sizeof(c));
	assert_int_equal(kt_counters(p.a).peers, 0);

	p.at_b.sbw_mac[5]++;
	f = hello_to(&p, c.cookie); /* another address's */
	assert_int_equal(answers_to(raw, &f), 1);
	assert_int_equal(kt_header(&f)->type, BW_FRAME_CHALLENGE);
	assert_int_equal(kt_counters(p.a).peers, 0);

	p.at_b.sbw_mac[5]--;
	f = hello_to(&p, c.cookie);
	assert_true(answers_to(raw, &f) > 0); /* it asks on its own, too */
	assert_int_equal(kt_header(&f)->type, BW_FRAME_HELLO);
	assert_int_equal(kt_header(&f)->flags, BW_HDR_ANSWER);
	assert_int_equal(kt_counters(p.a).peers, 1);
	assert_int_equal(kt_number("a", COUNTERS, "challenges_tx"), asked + 2);
	close(raw);
	close(p.a);
}

/* ---- invented frames ---- */

static struct kt_frame corpus[CORPUS_MAX];
static int recorded;
static struct bw_hdr believed; /* of a frame to a */

/* What two ports say to one another. */
static void record(struct kt_pair *p)
{
	static uint8_t bytes[60000];
	const uint32_t sizes[] = {0, 1, 100, 3000, 20000};
	int raw = kt_raw("b", "eth0", ETH_P_ALL);

	recorded = 0;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(send(p->b, bytes, sizes[i], MSG_DONTWAIT), sizes[i]);
		assert_int_equal(recv(p->a, bytes, sizeof(bytes), 0), sizes[i]);
		assert_int_equal(send(p->a, bytes, sizes[i], MSG_DONTWAIT), sizes[i]);
		assert_int_equal(recv(p->b, bytes, sizeof(bytes), 0), sizes[i]);
	}
	while (recorded < CORPUS_MAX) {
		struct kt_frame *f = &corpus[recorded];
		ssize_t n = recv(raw, f->bytes, sizeof(f->bytes), MSG_DONTWAIT);
		uint16_t type;

		if (n < 0)
			break;
		memcpy(&type, f->bytes + 12, 2);
		f->len = (uint32_t)n;
		if (type == htons(BW_ETHERTYPE) && kt_header(f)->type == BW_FRAME_DATA &&
		    kt_header(f)->dst_engine == p->at_a.sbw_port)
			believed = *kt_header(f);
		/* A super-frame, which fills the room, is none that another machine sends. */
		recorded += type == htons(BW_ETHERTYPE) && n < (ssize_t)sizeof(f->bytes);
	}
	close(raw);
	assert_true(recorded > 10);
}

/* Damage one of the recorded frames; it goes to a, mostly with a right checksum. */
static void invent(struct kt_frame *f, uint64_t *random, const struct kt_pair *p)
{
	uint32_t changes = (uint32_t)kt_random(random) % 4;

	*f = corpus[kt_random(random) % (uint64_t)recorded];
	for (uint32_t i = 0; i < changes; i++) {
		uint64_t r = kt_random(random);
		uint32_t span = r & 1 ? f->len : (f->len < 140 ? f->len : 140);
		uint32_t at = KT_ETHERNET + (uint32_t)(r >> 8) % (span - KT_ETHERNET);

		switch ((r >> 1) % 5) {
		case 0:
			f->bytes[at] ^= (uint8_t)(1 << (r >> 40) % 8);
			break;
		case 1:
			f->bytes[at] = (uint8_t)(r >> 40);
			break;
		case 2: /* a whole field, all ones or small */
			memset(f->bytes + (at & ~3u) + 2, r & 0x10000000000 ? 0xff : 0, 4);
			break;
		case 3:
			f->len = at + 1;
			break;
		case 4: /* the middle of another one */
			memcpy(f->bytes + at, corpus[(r >> 40) % (uint64_t)recorded].bytes + at,
			       f->len - at);
			break;
		}
	}
	memcpy(f->bytes, p->at_a.sbw_mac, 6);
	if (kt_random(random) % 8)
		memcpy(f->bytes + 6, p->at_b.sbw_mac, 6);
	if (kt_random(random) % 4)
		kt_header(f)->dst_engine = p->at_a.sbw_port;
	if (kt_random(random) % 4) {
		kt_header(f)->token = believed.token;
		kt_header(f)->conn = believed.conn;
	}
	if (kt_random(random) % 8)
		kt_seal(f);
}

static void exchange(void)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	char byte = 0;

	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	assert_int_equal(byte, 'x');
	kt_close(&p);
}

/* Take what there is, and begin to fetch some of the long messages. */
static void take_all(int fd, uint64_t *random)
{
	static uint8_t bytes[60000];
	struct beowire_info info;

	while (kt_recv_info(fd, bytes, sizeof(bytes) / 2, &info, MSG_DONTWAIT) == 0) {
		struct beowire_pull pull = {
			.key = info.key,
			.peer = info.peer,
			.buf = (uintptr_t)bytes,
			.len = kt_random(random) % sizeof(bytes),
			.cookie = 1,
		};

		if (info.event == BEOWIRE_ENVELOPE)
			ioctl(fd, BEOWIRE_IOC_PULL, &pull);
	}
}

/* The same of a connection. */
static void take_records(int fd)
{
	static uint8_t bytes[60000];

	for (int i = 0; i < 100; i++)
		if (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0)
			break;
}

/* Invented frames meet two ports that talk meanwhile; some of them are believed and end that. */
static void meet_invented_frames(uint64_t *random, int type, int frames)
{
	struct kt_pair p = type == SOCK_RDM ? kt_couple(type) : kt_connection(type);
	static uint8_t bytes[60000];
	struct kt_frame f;
	int raw;

	record(&p);
	if (type == SOCK_RDM)
		kt_option(p.a, BEOWIRE_INFO_WANTED, 1);
	raw = kt_raw("b", "eth0", ETH_P_IP); /* hears nothing of this */
	for (int i = 0; i < frames; i++) {
		invent(&f, random, &p);
		if (f.len >= KT_ETHERNET)
			kt_inject(raw, &f);
		if (i % 16 == 0) {
			const int how = MSG_DONTWAIT | MSG_NOSIGNAL;

			send(p.a, bytes, kt_random(random) % sizeof(bytes), how);
			send(p.b, bytes, kt_random(random) % sizeof(bytes), how);
			if (type == SOCK_RDM)
				take_all(p.a, random);
			else
				take_records(p.a);
		}
	}
	close(raw);
	kt_close(&p);
}

static void test_invented_frames(void **state)
{
	uint64_t random = seed, end = kt_now_ns() + seconds * 1000000000u;

	fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < 8 || kt_now_ns() < end; i++)
		meet_invented_frames(&random, i % 2 ? SOCK_RDM : SOCK_SEQPACKET, 500);
	exchange();
}

/* The module's handler comes before those of the sockets that are open now. */
static void attach_anew(const char *node)
{
	struct beowire_iface iface = {.name = "eth0"};
	int fd = kt_open(node, SOCK_RDM);

	assert_int_equal(ioctl(fd, BEOWIRE_IOC_DETACH, &iface), 0);
	assert_int_equal(ioctl(fd, BEOWIRE_IOC_ATTACH, &iface), 0);
	close(fd);
}

/* How often this frame has come to a raw socket as it is. */
static int seen(int raw, const struct kt_frame *f)
{
	uint8_t bytes[KT_FRAME_MAX];
	ssize_t len;
	int times = 0;

	while ((len = recv(raw, bytes, sizeof(bytes), MSG_DONTWAIT)) >= 0)
		times += len == (ssize_t)f->len && !memcmp(bytes, f->bytes, f->len);
	return times;
}

/* From a host of another name, as a container has one. */
static long attach_elsewhere(void *arg)
{
	if (unshare(CLONE_NEWUTS) || sethostname(ELSEWHERE, strlen(ELSEWHERE)))
		return -errno;
	attach_anew("a");
	return 0;
}

/* Who refuses for a number that nobody has says which host it is: as it was called where the
 * interface was attached. */
static void test_refusals_name_the_host(void **state)
{
	struct kt_pair p = {.a = kt_bound("a", SOCK_RDM, 0), .at_b.sbw_port = BEOWIRE_PORTS + 3};
	int raw = kt_raw("b", "eth0", BW_ETHERTYPE);
	char name[BW_NAME_MAX] = ELSEWHERE;
	struct kt_thread thread;
	struct bw_refuse said;
	struct kt_frame f;

	kt_start(&thread, attach_elsewhere, NULL);
	assert_int_equal(kt_join(&thread), 0);
	p.at_a = kt_at(p.a);
	memcpy(p.at_b.sbw_mac, "\x02\0\0\0\0\x08", 6);
	f = frame_to(&p, BW_FRAME_DATA, sizeof(said));
	kt_header(&f)->dst_engine = 3;
	kt_seal(&f);
	assert_int_equal(answers_to(raw, &f), 1);
	assert_int_equal(kt_header(&f)->type, BW_FRAME_REFUSE);
	memcpy(&said, kt_header(&f) + 1, sizeof(said));
	assert_memory_equal(said.name, name, sizeof(name));
	attach_anew("a");
	close(raw);
	close(p.a);
}

/* A frame in pieces, that others look at as well: it must be put together in a copy. */
static void test_scattered_and_shared(void **state)
{
	int other = kt_raw("a", "eth0", BW_ETHERTYPE), third = kt_raw("a", "eth0", BW_ETHERTYPE);
	int raw = kt_raw_in_pieces("b", "eth0");
	struct kt_pair p;
	struct kt_frame f;
	uint64_t before;

	attach_anew("a");
	p = kt_couple(SOCK_RDM);
	f = frame_to(&p, BW_FRAME_DATA, 7000);
	kt_seal(&f);
	before = kt_counters(p.a).drop[BW_DROP_MALFORMED]; /* not cut short */
	for (int i = 0; i < 10; i++)
		kt_send_in_pieces(raw, &f, KT_ETHERNET);
	kt_becomes(kt_counters(p.a).drop[BW_DROP_MALFORMED], before + 10, before + 10);
	exchange();
	assert_int_equal(seen(other, &f), 10);
	assert_int_equal(seen(third, &f), 10);
	close(other);
	close(third);
	close(raw);
	kt_close(&p);
}

/* ---- frames in pieces ---- */

#define LONG  100000
#define WHOLE 6000 /* in one frame, which arrives in pieces */

/* Frames of a page and more that begin with a short message, so that the head of another one lies
 * behind it. */
static volatile int several;

static void look_for_several(struct kt_frame *f, long wanted)
{
	const uint8_t *part = kt_part(f, BW_PART_MESSAGE, 0);
	struct bw_part first;

	if (!part || f->len < 4096)
		return;
	memcpy(&first, part, sizeof(first));
	several += first.plen < WHOLE;
}

static void receive(int fd, uint32_t seed, size_t n)
{
	static uint8_t bytes[LONG];

	assert_int_equal(kt_events(fd, POLLIN), POLLIN);
	assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), n);
	assert_true(kt_filled(bytes, n, seed));
}

static void send_two(int fd, uint8_t *bytes)
{
	struct iovec part[] = {{bytes, 5}, {bytes, WHOLE}};
	struct mmsghdr two[] = {{.msg_hdr = {.msg_iov = &part[0], .msg_iovlen = 1}},
				{.msg_hdr = {.msg_iov = &part[1], .msg_iovlen = 1}}};

	assert_int_equal(sendmmsg(fd, two, 2, 0), 2);
}

/* However little of a frame lies in its first piece, the heads of all its parts are put together:
 * of a message, of bytes that are fetched, and of several parts in a frame. */
static void test_pieces_of_any_length(void **state)
{
	const uint32_t fixed = KT_ETHERNET + sizeof(struct bw_hdr) + sizeof(struct bw_ackblk);
	const uint32_t lengths[] = {KT_ETHERNET,
				    KT_ETHERNET + sizeof(struct bw_hdr),
				    fixed,
				    fixed + sizeof(struct bw_part),
				    fixed + sizeof(struct bw_part_msg),
				    fixed + 2 * sizeof(struct bw_part_msg)};
	static uint8_t bytes[LONG];
	struct sockaddr_beowire to;
	struct kt_relay r;
	struct kt_pair p;

	kt_relay_begin(&r, look_for_several);
	p = kt_pair(SOCK_RDM); /* now: ports know of no longer frames by an interface that comes */
	to = kt_relayed(&p.at_b);
	assert_int_equal(kt_connect(p.a, &to), 0);
	for (uint32_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		r.piece = lengths[i];
		several = 0;
		kt_fill(bytes, LONG, i);
		/* until frames may be that long, and both messages go together */
		for (int tries = 0; !several && tries < 1000; tries++) {
			send_two(p.a, bytes);
			receive(p.b, i, 5);
			receive(p.b, i, WHOLE);
		}
		assert_true(several > 0);
		assert_int_equal(send(p.a, bytes, WHOLE, 0), WHOLE);
		receive(p.b, i, WHOLE);
		assert_int_equal(send(p.a, bytes, LONG, MSG_DONTWAIT), LONG);
		receive(p.b, i, LONG);
		/* Else it was sent again, in frames so short that they lie in one piece. */
		assert_int_equal(kt_counters(p.b).drop[BW_DROP_MALFORMED], 0);
		assert_int_equal(kt_counters(p.b).drop[BW_DROP_SHORT], 0);
	}
	kt_relay_end(&r);
	kt_close(&p);
}

int main(int count, char **words)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_counted_by_the_node),     kt_test(test_counted_by_the_port),
		kt_test(test_counted_for_all_ports),   kt_test(test_not_ours),
		kt_test(test_a_caller_shows_a_cookie), kt_test(test_refusals_name_the_host),
		kt_test(test_scattered_and_shared),    kt_test(test_pieces_of_any_length),
		kt_test(test_invented_frames),
	};

	seconds = count > 1 ? strtoul(words[1], NULL, 10) : 0;
	seed = count > 2 ? strtoull(words[2], NULL, 10) : 1;
	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
