/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who pays for what peers make the module hold: messages that nobody reads, messages of which a
 * part has come, accepted connections, and engines that grow. It is charged to the socket's user
 * and to his control group, bounded, and given back.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hosts.h"
#include "kframe.h"
#include "kuser.h"

#define KIB	1024u
#define MIB	(1024 * KIB)
#define ARRIVED (4 * MIB) /* of a long message */
#define SOCKET	8192	  /* bytes that one costs: account.h */
#define NODE	"/proc/net/beowire/node"
#define GROUP	"/tmp/groups/tested"

static uint64_t held(int fd)
{
	return kt_parameter("held_bytes");
}

/* What the list of sockets says of one in this namespace: bytes of sends under way, and of unread
 * messages that are charged. */
static uint64_t listed(const char *netns, int fd, bool sends)
{
	uint64_t bytes = 0, sending = 0;
	unsigned long inode;
	char line[256];
	struct stat st;
	FILE *f;

	assert_int_equal(fstat(fd, &st), 0);
	kt_enter(netns);
	f = fopen("/proc/thread-self/net/beowire/sockets", "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %" SCNu64 " %*s %lu %" SCNu64, &sending,
			   &inode, &bytes) == 3 &&
		    inode == st.st_ino)
			break;
	fclose(f);
	return sends ? sending : bytes;
}

static uint64_t charged(int fd)
{
	return listed("b", fd, false);
}

/* Of the port of a socket of b's: what its engine has grown by, and of messages of which a part has
 * come. */
static void port_of(int fd, uint64_t *memory, uint64_t *arriving)
{
	unsigned wanted = kt_at(fd).sbw_port, number;
	char line[256];
	FILE *f;

	kt_enter("b");
	f = fopen("/proc/thread-self/net/beowire/ports", "r");
	assert_non_null(f);
	*memory = *arriving = UINT64_MAX;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%u %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64, &number, memory,
			   arriving) == 3 &&
		    number == wanted)
			break;
	fclose(f);
}

static uint64_t arriving(int fd)
{
	uint64_t memory, bytes;

	port_of(fd, &memory, &bytes);
	return bytes;
}

/* ---- unread messages ---- */

#define UNREAD 300

static int set_pages(const char *text)
{
	int fd = open("/sys/module/beowire/parameters/memory_pages", O_WRONLY), error = 0;

	assert_true(fd >= 0);
	if (write(fd, text, strlen(text)) < 0)
		error = errno;
	close(fd);
	return error;
}

/* One number bounds what is charged, and nothing else is taken for one. */
static void test_pages_of_all_sockets(void **state)
{
	const uint64_t before = kt_parameter("memory_pages");

	assert_int_equal(set_pages("0"), EINVAL);
	assert_int_equal(set_pages("-1"), EINVAL);
	assert_int_equal(set_pages("9,9,9"), EINVAL);
	assert_int_equal(kt_parameter("memory_pages"), before);
	kt_set_parameter("memory_pages", before - 1);
	assert_int_equal(kt_parameter("memory_pages"), before - 1);
	kt_set_parameter("memory_pages", before);
}

static void test_unread_messages(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	uint64_t before = kt_parameter("held_bytes");
	char bytes[16];

	assert_int_equal(charged(p.b), 4096);
	for (int i = 0; i < UNREAD; i++)
		assert_int_equal(send(p.a, bytes, 1, 0), 1);
	/* A frame of one byte takes some 700 bytes of memory. */
	kt_becomes(charged(p.b), UNREAD * 600, UNREAD * 2000);
	assert_in_range(kt_parameter("held_bytes"), before + UNREAD * 600, before + UNREAD * 3000);
	for (int i = 0; i < UNREAD; i++)
		assert_int_equal(recv(p.b, bytes, sizeof(bytes), 0), 1);
	assert_in_range(charged(p.b), 4096, 4096 + 3 * 16384);
	kt_close(&p);
	kt_becomes(held(0), 0, before);
}

#define SOCKETS 100

/* A user's process in a that holds sockets, the last one a listener, until it is told to end. */
struct holder {
	int ready[2], go[2];
	uint64_t held; /* bytes */
	struct sockaddr_beowire at[SOCKETS];
	pid_t pid;
};

static int hold_sockets(void *arg)
{
	struct holder *h = arg;
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE};
	socklen_t len = sizeof(any);
	char byte;

	for (int i = 0; i < SOCKETS; i++) {
		bool last = i == SOCKETS - 1;
		int fd = socket(AF_BEOWIRE, last ? SOCK_SEQPACKET : SOCK_RDM, 0);

		if (bind(fd, (struct sockaddr *)&any, len) ||
		    getsockname(fd, (struct sockaddr *)&h->at[i], &len) ||
		    (last && listen(fd, SOCKETS)))
			return 98;
		h->at[i].sbw_ifindex = 0;
	}
	if (write(h->ready[1], h->at, sizeof(h->at)) != sizeof(h->at))
		return 97;
	return read(h->go[0], &byte, 1) == 1 ? 0 : 96;
}

static void begin_holding(struct holder *h)
{
	uint64_t before = kt_parameter("held_bytes");

	assert_int_equal(pipe(h->ready) | pipe(h->go), 0);
	kt_enter("a");
	h->pid = kt_begin_as(KT_BOB, KT_BOB, KT_BOB, hold_sockets, h);
	close(h->ready[1]); /* if it dies, that is seen */
	assert_int_equal(read(h->ready[0], h->at, sizeof(h->at)), sizeof(h->at));
	h->held = kt_parameter("held_bytes") - before;
}

static void end_holding(const struct holder *h, uint64_t before)
{
	assert_int_equal(write(h->go[1], "", 1), 1);
	assert_int_equal(kt_end_of(h->pid), 0);
	kt_set_parameter("user_memory_max", 0);
	kt_becomes(held(0), 0, before);
}

/* However many sockets somebody has, each with less than SO_RCVBUF unread. */
static void test_unread_messages_of_many_sockets(void **state)
{
	static const char bytes[8000];
	uint64_t before = kt_parameter("held_bytes"), met = kt_parameter("user_limited"), most;
	int from = kt_bound("b", SOCK_RDM, 0);
	struct holder h;

	begin_holding(&h);
	kt_set_parameter("user_memory_max", h.held + 2 * MIB);
	most = kt_parameter("held_bytes") + 2 * MIB + MIB; /* the sender's engine grows, too */
	for (int i = 0; i < SOCKETS - 1; i++) {
		for (int n = 0; n < 10; n++)
			sendto(from, bytes, sizeof(bytes), MSG_DONTWAIT,
			       (struct sockaddr *)&h.at[i], sizeof(h.at[i]));
		usleep(2000);
		assert_in_range(kt_parameter("held_bytes"), 0, most);
	}
	assert_true(kt_parameter("user_limited") > met);
	close(from);
	end_holding(&h, before);
}

/* ---- root of a container ---- */

static int bind_many(void *arg)
{
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE};
	int most = *(int *)arg, n;

	for (n = 0; n < most; n++) {
		int fd = socket(AF_BEOWIRE, SOCK_RDM, 0);

		if (bind(fd, (struct sockaddr *)&any, sizeof(any)))
			return errno == ENOBUFS ? n : 99;
	}
	return n;
}

/* Uid 0 in a network namespace of its own is as bounded as anybody, and each namespace has its own
 * share. */
static void test_root_of_a_container(void **state)
{
	int most = 20, kept = kt_bound("b", SOCK_RDM, 0);

	kt_set_parameter("user_ports_max", 8);
	kt_enter("b");
	assert_int_equal(kt_as(0, bind_many, &most), 7);
	kt_enter("a");
	assert_int_equal(kt_as(0, bind_many, &most), 8);
	kt_set_parameter("user_ports_max", 4096);
	close(kept);
}

/* Root of the machine has put it into a user namespace. */
struct contained {
	int most, ready[2], go[2];
};

static int bind_contained(void *arg)
{
	struct contained *c = arg;
	int n;
	char byte;

	if (unshare(CLONE_NEWUSER))
		return 97;
	n = bind_many(&c->most);
	if (write(c->ready[1], "", 1) != 1 || read(c->go[0], &byte, 1) != 1)
		return 98;
	return n;
}

static pid_t begin_contained(struct contained *c, const char *node, int most)
{
	pid_t pid;
	char byte;

	c->most = most;
	assert_int_equal(pipe(c->ready) | pipe(c->go), 0);
	kt_enter(node);
	pid = kt_begin_as(0, KT_BOB, KT_BOB, bind_contained, c); /* whose group may open */
	close(c->ready[1]);					 /* if it dies, that is seen */
	assert_int_equal(read(c->ready[0], &byte, 1), 1);
	return pid;
}

/* In user namespaces it is the same user in all network namespaces, and bounded. */
static void test_root_in_user_namespaces(void **state)
{
	struct contained first, second;
	pid_t one, other;

	kt_set_parameter("user_ports_max", 8);
	one = begin_contained(&first, "b", 5);
	other = begin_contained(&second, "a", 20);
	kt_set_parameter("user_ports_max", 4096);
	assert_int_equal(write(first.go[1], "", 1) + write(second.go[1], "", 1), 2);
	assert_int_equal(kt_end_of(one), 5);
	assert_int_equal(kt_end_of(other), 3);
}

static void test_root_of_the_machine(void **state)
{
	struct beowire_iface interface = {.name = "m1"};
	int most = 20, fd;

	kt_enter("../../../proc/1/ns/net");
	kt_shell("ip link add m1 type veth peer name m2 && ip link set dev m1 up");
	fd = socket(AF_BEOWIRE, SOCK_RDM, 0);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, BEOWIRE_IOC_ATTACH, &interface), 0);
	kt_set_parameter("user_ports_max", 8);
	assert_int_equal(kt_as(0, bind_many, &most), 20);
	kt_set_parameter("user_ports_max", 4096);
	close(fd);
	kt_shell("ip link del m1");
	kt_enter("a");
}

/* ---- sockets ---- */

static int open_many(void *arg)
{
	const struct rlimit files = {4096, 4096};
	int n = 0;

	if (setrlimit(RLIMIT_NOFILE, &files))
		return 99;
	while (socket(AF_BEOWIRE, SOCK_RDM, 0) >= 0)
		n++;
	return errno == ENOBUFS && n == *(int *)arg ? 0 : 98;
}

static void test_sockets_cost(void **state)
{
	uint64_t before = kt_parameter("held_bytes");
	int most = 128;

	kt_set_parameter("user_memory_max", (uint64_t)most * SOCKET);
	kt_enter("a");
	assert_int_equal(kt_as(KT_BOB, open_many, &most), 0);
	kt_set_parameter("user_memory_max", 0);
	kt_becomes(held(0), 0, before);
}

#define CLIENTS 64

/* Connections, accepted or not, are sockets of the listener's user. */
static void test_accepted_sockets_cost(void **state)
{
	uint64_t before = kt_parameter("held_bytes");
	int fd[CLIENTS], connected = 0;
	struct holder h;

	begin_holding(&h);
	kt_set_parameter("user_memory_max", h.held + 32 * SOCKET);
	for (int i = 0; i < CLIENTS; i++) {
		fd[i] = kt_open("b", SOCK_SEQPACKET);
		kt_option(fd[i], BEOWIRE_DEAD_MS, 2000);
		assert_int_equal(fcntl(fd[i], F_SETFL, O_NONBLOCK), 0);
		kt_connect(fd[i], &h.at[SOCKETS - 1]);
		usleep(5000);
	}
	for (int i = 0; i < CLIENTS; i++) {
		connected += kt_events(fd[i], POLLOUT) == POLLOUT;
	}
	assert_in_range(connected, 16, 32);
	for (int i = 0; i < CLIENTS; i++)
		close(fd[i]);
	end_holding(&h, before);
}

/* ---- messages of which a part has come ---- */

/* What the relay does to frames of data. */
enum {
	HURT_NOTHING,
	HURT_REST,   /* of a message only the first frame arrives */
	HURT_LONGER, /* a message of one frame says that it has 63 bytes more, which never come */
	HURT_PULLED, /* nothing of a long message arrives */
	HURT_BEHIND  /* but what begins within its first 4 MiB */
};

static void hurt(struct kt_frame *f, long wanted)
{
	uint8_t *part = kt_part(f, BW_PART_MESSAGE, 0), *bulk = kt_part(f, BW_PART_BULK, 0);
	struct bw_part_bulk b;
	struct bw_part_msg m;

	if (bulk)
		memcpy(&b, bulk, sizeof(b));
	if (bulk && (wanted == HURT_PULLED || (wanted == HURT_BEHIND && b.offset >= ARRIVED)))
		f->len = 0;
	if (!part)
		return;
	memcpy(&m, part, sizeof(m));
	if (wanted == HURT_REST && m.offset)
		f->len = 0;
	if (wanted == HURT_LONGER && m.part.plen)
		m.total = m.part.plen + 63;
	memcpy(part, &m, sizeof(m));
}

/* A socket of b's that hears of a peer's death, or stillness, after so long, and one of a's that
 * reaches it by the relay. */
static struct kt_pair hurt_pair(struct kt_relay *r, int patience_ms)
{
	struct kt_pair p = {.a = kt_open("a", SOCK_RDM), .b = kt_open("b", SOCK_RDM)};
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE}, to;
	char byte;

	kt_relay_begin(r, hurt);
	kt_option(p.b, BEOWIRE_DEAD_MS, patience_ms);
	kt_option(p.a, BEOWIRE_DEAD_MS, 3000); /* else its port would linger */
	assert_int_equal(bind(p.b, (struct sockaddr *)&any, sizeof(any)), 0);
	p.at_b = kt_at(p.b);
	to = kt_relayed(&p.at_b);
	assert_int_equal(kt_connect(p.a, &to), 0);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	return p;
}

static void end_pair(struct kt_relay *r, struct kt_pair *p)
{
	kt_relay_end(r);
	kt_close(p);
}

/* Its bytes are counted and charged, and given back when its sender, who still answers, lets it
 * stand still. */
static void test_a_message_that_stands_still(void **state)
{
	static const char bytes[16384];
	uint64_t before = kt_parameter("held_bytes"), expired, end;
	struct kt_relay r;
	struct kt_pair p = hurt_pair(&r, 1000);

	expired = kt_number("b", NODE, "arriving-expired");
	assert_int_equal(arriving(p.b), 0);
	r.wanted = HURT_REST;
	end = kt_parameter("held_bytes");
	assert_int_equal(send(p.a, bytes, sizeof(bytes), 0), sizeof(bytes));
	kt_becomes(arriving(p.b), sizeof(bytes), 5 * sizeof(bytes));
	assert_in_range(kt_parameter("held_bytes"), end + sizeof(bytes), end + 8 * MIB);
	kt_becomes(arriving(p.b), 0, 0);
	assert_int_equal(kt_number("b", NODE, "arriving-expired"), expired + 1);
	assert_int_equal(kt_error(p.b), 0); /* it has not spoken to the sender */
	end_pair(&r, &p);
	kt_becomes(held(0), 0, before);
}

/* It is there as soon as its last part is, though that came late; and nothing is left then. */
static void test_a_message_that_goes_on(void **state)
{
	static char sent[16384], got[16384];
	struct kt_relay r;
	struct kt_pair p = hurt_pair(&r, 60000);

	kt_fill(sent, sizeof(sent), 7);
	r.wanted = HURT_REST;
	assert_int_equal(send(p.a, sent, sizeof(sent), 0), sizeof(sent));
	kt_becomes(arriving(p.b), sizeof(sent), 5 * sizeof(sent));
	r.wanted = HURT_NOTHING;
	assert_int_equal(recv(p.b, got, sizeof(got), 0), sizeof(got));
	assert_memory_equal(got, sent, sizeof(got));
	assert_int_equal(arriving(p.b), 0);
	end_pair(&r, &p);
}

#define PARTS 200

/* One byte of a short message takes the room of the message, not that of a frame. */
static void test_short_parts(void **state)
{
	struct kt_relay r;
	struct kt_pair p = hurt_pair(&r, 60000);

	r.wanted = HURT_LONGER;
	for (int i = 0; i < PARTS; i++)
		assert_int_equal(send(p.a, "x", 1, 0), 1);
	kt_becomes(arriving(p.b), PARTS * 64, PARTS * 1200);
	usleep(100000); /* all are there, or lost */
	assert_in_range(arriving(p.b), PARTS * 64, PARTS * 1200);
	end_pair(&r, &p);
}

/* The program speaks to the sender of its next message, who is no stranger then. */
static void answer(const struct kt_pair *p)
{
	struct sockaddr_beowire from;
	socklen_t len = sizeof(from);
	char byte;

	assert_true(recvfrom(p->b, &byte, 1, MSG_PEEK, (struct sockaddr *)&from, &len) >= 0);
	assert_int_equal(kt_send_to(p->b, "y", 1, &from), 1);
	assert_int_equal(recv(p->a, &byte, 1, 0), 1);
}

/* Bytes that come in part, of a stranger or not, until there is no room for more. */
static uint64_t parts_until_refused(bool stranger)
{
	struct kt_relay r;
	struct kt_pair p = hurt_pair(&r, 60000);
	uint64_t refused = kt_number("b", NODE, "arriving-refused"), bytes;
	uint64_t until = kt_now_ns() + kt_patience_s() / 2 * 1000000000ull;

	if (!stranger) {
		assert_int_equal(send(p.a, "x", 1, 0), 1);
		kt_until(kt_events(p.b, POLLIN));
		answer(&p);
	}
	r.wanted = HURT_LONGER;
	do {
		for (int i = 0; i < 20; i++)
			if (send(p.a, "x", 1, MSG_DONTWAIT) < 0)
				usleep(1000);
	} while (kt_number("b", NODE, "arriving-refused") == refused && kt_now_ns() < until);
	bytes = arriving(p.b);
	if (kt_number("b", NODE, "arriving-refused") == refused)
		bytes = 0;
	end_pair(&r, &p);
	return bytes;
}

/* A port holds no more of them than memory_max, and what is beyond that is not acknowledged. Of
 * strangers it holds half. */
static void test_parts_of_a_port(void **state)
{
	kt_settings("memory_max", "1048576");
	assert_in_range(parts_until_refused(true), MIB / 4, MIB * 5 / 8);
	assert_in_range(parts_until_refused(false), MIB * 5 / 8 + 1, MIB * 5 / 4);
	kt_settings("memory_max", "67108864");
}

/* They are a part of what users may leave waiting: a half of that at most, of strangers a third. */
static void test_parts_of_all_ports(void **state)
{
	kt_set_parameter("overflow_max", MIB);
	assert_in_range(parts_until_refused(true), MIB / 4, MIB / 3 + 16384);
	assert_in_range(parts_until_refused(false), MIB / 3 + 16384 + 1, MIB / 2 + 16384);
	kt_set_parameter("overflow_max", 0);
}

/* ---- what is fetched ahead of the program's next call ---- */

#define LONG   (12 * MIB)
#define PLACES (LONG / 4096 * sizeof(void *)) /* what tells which pages there are */
#define COSTS  512			      /* bytes that describe a buffer, at most */
#define FRAME  (3 * 4096)		      /* in whole pages, at most */

static uint8_t announced[LONG], had[LONG];
/* It stays open: what a closed one was charged would stay charged to the account that it shares
 * with the sockets it has accepted, and pages would be taken from that first. -1: there is none. */
static int listener;

/* Sockets of this type that speak by the relay; b's hears of a peer's death, or stillness, after a
 * while in which frames that were lost have come again, in slow guests as well. */
static struct kt_pair announcing_pair(struct kt_relay *r, int type)
{
	int bytes = LONG + 4096, server = kt_open("b", type);
	struct kt_pair p = {.a = kt_open("a", type)};
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE}, to;

	kt_relay_begin(r, hurt);
	kt_option(server, BEOWIRE_DEAD_MS, 4000);
	assert_int_equal(bind(server, (struct sockaddr *)&any, sizeof(any)), 0);
	p.at_b = kt_at(server);
	to = kt_relayed(&p.at_b);
	if (type != SOCK_RDM)
		assert_int_equal(listen(server, 1), 0);
	assert_int_equal(kt_connect(p.a, &to), 0);
	p.b = type == SOCK_RDM ? server : accept(server, NULL, NULL);
	assert_true(p.b >= 0);
	listener = type == SOCK_RDM ? -1 : server;
	assert_int_equal(setsockopt(p.a, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)), 0);
	return p;
}

/* Both take leave of one another while they can: nothing lingers. */
static void end_announcing(struct kt_relay *r, struct kt_pair *p)
{
	if (listener >= 0)
		close(listener);
	kt_close(p);
	kt_becomes(held(0), 0, 0);
	kt_relay_end(r);
}

/* A long message is announced, and nothing of it comes yet. A byte behind it that has been
 * acknowledged says that the announcement has: its sender holds nothing for it any more. */
static struct kt_pair announcement(struct kt_relay *r, int type, uint32_t seed)
{
	struct kt_pair p = announcing_pair(r, type);
	uint64_t sending;

	kt_fill(announced, LONG, seed);
	r->wanted = HURT_PULLED;
	assert_int_equal(send(p.a, announced, LONG, MSG_DONTWAIT), LONG);
	sending = listed("a", p.a, true);
	assert_in_range(sending, LONG, LONG + 1024);
	assert_int_equal(send(p.a, "", 1, MSG_DONTWAIT), 1);
	kt_becomes(listed("a", p.a, true), sending, sending);
	assert_int_equal(kt_events(p.b, POLLIN), POLLIN);
	return p;
}

/* Is so much held, of a message that has come in part? Where a guest is slow the rest may stay away
 * for so long that the fetch is given up: it is begun anew. */
static bool is_held_in_part(int fd, uint64_t least, uint64_t most)
{
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	bool readable = poll(&poller, 1, 0);
	uint64_t now = held(0);

	if (now >= least && now <= most)
		return !readable;
	if (readable)
		kt_refused(recv(fd, had, LONG, MSG_DONTWAIT), EAGAIN);
	return false;
}

/* Who announces many bytes and sends none has no memory held for them; who sends some, for those,
 * until nothing more comes for BEOWIRE_DEAD_MS, though he answers. Nothing is lost by that: the
 * program is told to begin anew. */
static void test_what_is_announced(void **state)
{
	uint64_t base;

	kt_each_type_(type, SOCK_RDM, SOCK_SEQPACKET)
	{
		struct kt_relay r;
		struct kt_pair p = announcement(&r, *type, 3);
		struct pollfd poller = {.fd = p.b, .events = POLLIN};

		base = held(0);
		kt_refused(recv(p.b, had, LONG, MSG_DONTWAIT), EAGAIN);
		assert_in_range(held(0), base + PLACES, base + PLACES + COSTS);
		r.wanted = HURT_BEHIND;
		kt_until(is_held_in_part(p.b, base + PLACES + ARRIVED,
					 base + PLACES + COSTS + ARRIVED + FRAME));
		kt_becomes(held(0), base, base + COSTS);
		assert_int_equal(poll(&poller, 1, KT_SOON_MS), 1);
		kt_refused(recv(p.b, had, LONG, MSG_DONTWAIT), EAGAIN);
		r.wanted = HURT_NOTHING;
		assert_int_equal(poll(&poller, 1, KT_SOON_MS), 1);
		memset(had, 0, LONG);
		assert_int_equal(recv(p.b, had, LONG, MSG_DONTWAIT), LONG);
		assert_true(kt_filled(had, LONG, 3));
		end_announcing(&r, &p);
	}
}

/* Its sender is heard no more: what it had announced is in nobody's way, if the program has not
 * spoken to it, nor is its end told. */
static void test_what_a_stranger_announced(void **state)
{
	for (int stranger = 1; stranger >= 0; stranger--) {
		struct kt_relay r;
		struct kt_pair p = announcement(&r, SOCK_RDM, 6);
		int other = kt_bound("a", SOCK_RDM, 0);
		char byte = 0;

		if (!stranger)
			answer(&p);
		assert_int_equal(kt_send_to(other, "m", 1, &p.at_b), 1);
		kt_relay_end(&r);
		if (!stranger)
			kt_refused(recv(p.b, had, LONG, 0), ETIMEDOUT);
		assert_int_equal(recv(p.b, had, LONG, 0), 1); /* what came behind it */
		assert_int_equal(recv(p.b, &byte, 1, 0), 1);
		assert_int_equal(byte, 'm');
		kt_refused(recv(p.b, &byte, 1, MSG_DONTWAIT), stranger ? EAGAIN : ETIMEDOUT);
		close(other);
		kt_close(&p);
	}
}

static long receive_long(void *arg)
{
	return recv(*(int *)arg, had, LONG, MSG_WAITALL);
}

/* Who waits meanwhile has the message all the same, when it comes. */
static void test_waiting_for_what_was_given_up(void **state)
{
	kt_each_type_(type, SOCK_RDM, SOCK_SEQPACKET)
	{
		struct kt_relay r;
		struct kt_pair p = announcement(&r, *type, 4);
		uint64_t base = held(0);
		struct kt_thread t;

		r.wanted = HURT_BEHIND;
		kt_refused(recv(p.b, had, LONG, MSG_DONTWAIT), EAGAIN);
		kt_until(is_held_in_part(p.b, base + PLACES + ARRIVED,
					 base + PLACES + COSTS + ARRIVED + FRAME));
		kt_start(&t, receive_long, &p.b);
		kt_until(held(0) < base + ARRIVED);
		r.wanted = HURT_NOTHING;
		assert_int_equal(kt_join(&t), LONG);
		assert_true(kt_filled(had, LONG, 4));
		end_announcing(&r, &p);
	}
}

static long send_long(void *arg)
{
	return send(*(int *)arg, announced, LONG / 2, 0);
}

/* Of a stream what was had before stays had. */
static void test_the_rest_of_a_stream_that_was_given_up(void **state)
{
	struct kt_relay r;
	struct kt_pair p = announcing_pair(&r, SOCK_STREAM);
	const size_t part = MIB + 4321, rest = LONG / 2 - part; /* the bytes repeat themselves */
	struct kt_thread t;

	kt_fill(announced, LONG / 2, 5);
	kt_start(&t, send_long, &p.a);
	assert_int_equal(recv(p.b, had, part, MSG_WAITALL), part);
	r.wanted = HURT_PULLED;
	kt_refused(recv(p.b, had + part, part, MSG_DONTWAIT), EAGAIN);
	assert_int_equal(kt_events(p.b, POLLIN), POLLIN);
	kt_refused(recv(p.b, had + part, part, MSG_DONTWAIT), EAGAIN);
	r.wanted = HURT_NOTHING;
	assert_int_equal(recv(p.b, had + part, rest, MSG_WAITALL), rest);
	assert_true(kt_filled(had, LONG / 2, 5));
	assert_int_equal(kt_join(&t), LONG / 2);
	end_announcing(&r, &p);
}

/* ---- control groups ---- */

/* This process is in a control group of its own until it leaves. */
static void enter_group(void)
{
	kt_shell("mkdir -p /tmp/groups && mount -t cgroup2 none /tmp/groups && "
		 "echo +memory >/tmp/groups/cgroup.subtree_control && mkdir " GROUP
		 " && echo %d >" GROUP "/cgroup.procs",
		 getpid());
}

static void leave_group(void)
{
	kt_shell("for i in %d 0; do echo $i >/tmp/groups/cgroup.procs; done; rmdir " GROUP
		 " && umount /tmp/groups",
		 getpid());
}

static uint64_t group(const char *word)
{
	return kt_number(NULL, GROUP "/memory.stat", word);
}

#define PEERS 150 /* for whom an engine has to grow */

/* What peers send is charged to the group of whoever opened the socket, though it comes in softirq;
 * so is what its engine grows by, though a kernel thread does that. */
static void test_control_group(void **state)
{
	uint64_t sock, kernel, memory, bytes;
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE}, to;
	int from[PEERS], fd;

	for (int i = 0; i < PEERS; i++)
		from[i] = kt_bound("a", SOCK_RDM, 0);
	enter_group();
	fd = kt_open("b", SOCK_RDM);
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	to = kt_at(fd);
	to.sbw_ifindex = 0;
	sock = group("sock");
	kernel = group("kernel");
	for (int i = 1; i <= UNREAD; i++) {
		assert_int_equal(kt_send_to(from[i % PEERS], "x", 1, &to), 1);
		if (i % PEERS)
			continue; /* two of a peer might come in one frame */
		kt_becomes(kt_counters(fd).rx_messages, i, i);
		kt_becomes(charged(fd), i * 600, i * 2000);
	}
	assert_true(group("sock") >= sock + UNREAD * 600);
	port_of(fd, &memory, &bytes);
	assert_true(memory > 0);
	assert_true(group("kernel") >= kernel + memory);
	for (int i = 0; i < PEERS; i++)
		close(from[i]);
	close(fd);
	leave_group();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_counting_test(test_pages_of_all_sockets),
		kt_counting_test(test_unread_messages),
		kt_counting_test(test_unread_messages_of_many_sockets),
		kt_counting_test(test_root_of_a_container),
		kt_counting_test(test_root_in_user_namespaces),
		kt_counting_test(test_root_of_the_machine),
		kt_counting_test(test_sockets_cost),
		kt_counting_test(test_accepted_sockets_cost),
		kt_counting_test(test_a_message_that_stands_still),
		kt_counting_test(test_a_message_that_goes_on),
		kt_counting_test(test_short_parts),
		kt_counting_test(test_parts_of_a_port),
		kt_counting_test(test_parts_of_all_ports),
		kt_counting_test(test_what_is_announced),
		kt_counting_test(test_what_a_stranger_announced),
		kt_counting_test(test_waiting_for_what_was_given_up),
		kt_counting_test(test_the_rest_of_a_stream_that_was_given_up),
		kt_counting_test(test_control_group),
	};

	return cmocka_run_group_tests(tests, kt_open_to_all, NULL);
}
