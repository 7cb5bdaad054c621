/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keeper of a fan-out group and an endpoint's part in it, with the kernel's own groups: packet
 * sockets on the loopback interface of a network namespace of this program, to which frames are
 * sent all the time while members come and go. Each frame has to reach its member.
 */
#include "link/packet/keeper.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "claim.h"
#include "discard.h"
#include "ep.h"
#include "link/filter.h"
#include "wire.h"

#include <cmocka.h>

#define MEMBERS	    7
#define PATIENCE_MS 60000 /* until something has been done, */
#define COMES_MS    10000 /* and for a frame, on a machine that is busy */
#define STRAY	    50	  /* ms in which a frame that must not come would have */

struct member {
	uint16_t engine;
	int fd, connection;
};

static struct bw_keeper *keeper;
static struct member member[MEMBERS];
static int sender = -1, lo;

static struct sockaddr_un name(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};

	memcpy(sun.sun_path + 1, "test-keeper", 11);
	return sun;
}

static int seqpacket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

static void interface(bool up)
{
	struct ifreq request = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	request.ifr_flags = up ? IFF_UP : 0;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
	close(fd);
}

/* A packet socket like an endpoint's. */
static int packet(uint16_t engine)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_protocol = htons(BW_ETHERTYPE), .sll_ifindex = lo};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(bw_filter_own(fd, engine), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static int call(int connection, const void *what, size_t n, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec io = {(void *)what, n};
	struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1};

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	return sendmsg(connection, &message, MSG_NOSIGNAL) == (ssize_t)n ? 0 : -errno;
}

static int dial(void)
{
	struct sockaddr_un sun = name();
	int fd = seqpacket();

	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

static void introduce(const struct member *m, bool watch, int fd)
{
	struct bw_keeper_call what = {
		.magic = BW_KEEPER_MAGIC, .engine = m->engine, .watch = watch};

	assert_int_equal(call(m->connection, &what, sizeof(what), fd), 0);
}

static void begin(int i)
{
	struct member *m = &member[i];

	/* The order of numbers is none of their bytes', nor of joining. */
	m->engine = (uint16_t)(40000 + 251 * ((3 * i) % MEMBERS));
	m->fd = packet(m->engine);
	m->connection = dial();
	introduce(m, false, m->fd);
}

static bool joined(const struct member *m)
{
	int what = 0;
	socklen_t n = sizeof(what);

	return !getsockopt(m->fd, SOL_PACKET, PACKET_FANOUT, &what, &n) && what;
}

static void await_members(int first, int end)
{
	for (int i = first; i < end; i++) {
		for (int ms = 0; !joined(&member[i]); ms++) {
			assert_true(ms < PATIENCE_MS);
			usleep(1000);
		}
	}
}

static void end(int i)
{
	if (member[i].fd >= 0)
		close(member[i].fd);
	if (member[i].connection >= 0)
		close(member[i].connection);
	member[i].fd = member[i].connection = -1;
}

static bool hung_up(int connection)
{
	struct pollfd fd = {.fd = connection, .events = POLLIN};
	char byte;

	return poll(&fd, 1, PATIENCE_MS) == 1 && recv(connection, &byte, 1, MSG_DONTWAIT) <= 0;
}

static void transmit(uint16_t magic, uint16_t engine)
{
	struct {
		struct ethhdr ether;
		struct bw_hdr h;
	} __attribute__((packed))
	frame = {.ether.h_proto = htons(BW_ETHERTYPE), .h = {.magic = magic, .dst_engine = engine}};
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = lo, .sll_halen = 6};

	assert_int_equal(
		sendto(sender, &frame, sizeof(frame), 0, (struct sockaddr *)&to, sizeof(to)),
		sizeof(frame));
}

/* How many frames have come to a socket, within this time if it is none. */
static int taken(int fd, int ms)
{
	struct pollfd in = {.fd = fd, .events = POLLIN};
	char bytes[256];
	int n = 0;

	if (poll(&in, 1, ms) == 1) {
		while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) >= 0)
			n++;
	}
	return n;
}

/* A frame to each of these that is open reaches it, once. */
static void reach(int first, int last)
{
	for (int i = first; i < last; i++) {
		if (member[i].connection < 0)
			continue;
		transmit(BW_MAGIC, member[i].engine);
		assert_int_equal(taken(member[i].fd, COMES_MS), 1);
	}
}

static bool listed(ino_t inode)
{
	FILE *f = fopen("/proc/thread-self/net/packet", "re");
	unsigned long each;
	bool found = false;

	assert_non_null(f);
	while (fscanf(f, "%*[^\n]") >= 0 &&
	       fscanf(f, "%*s %*s %*s %*s %*s %*s %*s %*s %lu", &each) == 1)
		found |= each == inode;
	fclose(f);
	return found;
}

static ino_t inode_of(int fd)
{
	struct stat told;

	assert_int_equal(fstat(fd, &told), 0);
	return told.st_ino;
}

static int setup(void **state)
{
	struct sockaddr_un sun = name();
	int listener = seqpacket();

	assert_int_equal(bind(listener, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(listener, 64), 0);
	for (int i = 0; i < MEMBERS; i++)
		member[i].fd = member[i].connection = -1;
	interface(true);
	keeper = bw_keeper_start(listener, lo, htons(BW_ETHERTYPE));
	assert_non_null(keeper);
	return 0;
}

static int teardown(void **state)
{
	bw_keeper_stop(keeper);
	for (int i = 0; i < MEMBERS; i++)
		end(i);
	return 0;
}

static void each_member_gets_its_own_frames(void **state)
{
	for (int i = 0; i < MEMBERS; i++)
		begin(i);
	await_members(0, MEMBERS);
	reach(0, MEMBERS);
	for (int i = 0; i < MEMBERS; i++)
		assert_int_equal(taken(member[i].fd, 0), 0);
}

static void one_alone_is_no_member__until_a_second_one_comes(void **state)
{
	begin(0);
	usleep(STRAY * 1000);
	assert_false(joined(&member[0]));
	begin(1);
	await_members(0, 2);
	reach(0, 2);
}

/* Wait until the kernel has finished with a socket that it says is joined. It takes the socket
 * from those that receive by themselves a moment before it is found in the group, and a frame
 * between the two reaches nobody. Who asks to join again waits for that, and is refused. */
static void await_linked(const struct member *m)
{
	int what = 0;

	assert_int_equal(setsockopt(m->fd, SOL_PACKET, PACKET_FANOUT, &what, sizeof(what)), -1);
	assert_int_equal(errno, EALREADY);
}

static void no_frame_is_missed__while_others_join(void **state)
{
	begin(0);
	begin(1); /* with it the group begins, and both join */
	await_members(0, 2);
	await_linked(&member[0]);
	await_linked(&member[1]);
	for (int i = 2; i < MEMBERS; i++) {
		begin(i);
		do {
			reach(0, i);
		} while (!joined(&member[i]));
		await_linked(&member[i]);
	}
	reach(0, MEMBERS);
}

/* Its process ends: the kernel closes its socket, and the connection somewhat later or sooner. */
static void leave(int i, bool connection_first)
{
	uint64_t until = bw_clock_now() + PATIENCE_MS * BW_MS;
	ino_t inode = inode_of(member[i].fd);

	if (connection_first) {
		close(member[i].connection);
		member[i].connection = -1;
		for (int k = 0; k < 300; k++)
			reach(0, MEMBERS);
	}
	end(i);
	while (listed(inode)) {
		reach(0, MEMBERS);
		assert_true(bw_clock_now() < until);
	}
	for (int k = 0; k < 100; k++)
		reach(0, MEMBERS);
}

static void no_frame_is_missed__while_others_leave(void **state)
{
	for (int i = 0; i < MEMBERS; i++)
		begin(i);
	await_members(0, MEMBERS);
	leave(2, false); /* from the middle */
	leave(MEMBERS - 1, false);
	leave(0, false); /* by whose socket the program is set */
	begin(2);	 /* one that comes meanwhile */
	await_members(2, 3);
	leave(1, true);
	leave(4, true);
	leave(2, false);
	reach(0, MEMBERS);
}

/* Its socket is held by somebody for a while after its connection has ended. */
static void nothing_changes__before_one_that_leaves_has_left(void **state)
{
	for (int i = 0; i < 5; i++)
		begin(i);
	await_members(0, 5);
	close(member[1].connection);
	member[1].connection = -1;
	begin(5);
	for (int k = 0; k < 1000; k++)
		reach(0, 6);
	assert_false(joined(&member[5]));
	end(1);
	await_members(5, 6);
	reach(0, 6);
}

static void several_leave_at_once(void **state)
{
	ino_t inode[MEMBERS] = {0};

	for (int i = 0; i < MEMBERS; i++)
		begin(i);
	await_members(0, MEMBERS);
	for (int i = 0; i < MEMBERS; i++) {
		if (i % 3 == 1)
			continue;
		inode[i] = inode_of(member[i].fd);
		end(i);
	}
	for (int i = 0; i < MEMBERS; i++) {
		while (inode[i] && listed(inode[i]))
			reach(0, MEMBERS);
	}
	reach(0, MEMBERS);
	begin(0);
	await_members(0, 1);
	reach(0, MEMBERS);
}

static void the_watch_gets_what_is_for_no_member(void **state)
{
	const struct sock_filter all = {BPF_RET | BPF_K, 0, 0, UINT32_MAX};
	const struct sock_fprog program = {1, (struct sock_filter *)&all};

	for (int i = 0; i < 4; i++)
		begin(i);
	await_members(0, 4);
	introduce(&member[2], true, -1);
	assert_int_equal(
		setsockopt(member[2].fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)),
		0);
	for (int ms = 0, n = 0; n == 0; ms += 10) {
		assert_true(ms < PATIENCE_MS);
		transmit(BW_MAGIC, 33333);
		n = taken(member[2].fd, 10);
	}
	transmit(BW_MAGIC ^ 1, member[1].engine); /* foreign */
	assert_int_equal(taken(member[2].fd, COMES_MS), 1);
	/* It moves, and is found, and gets what is for one that died. */
	uint16_t dead = member[1].engine;

	leave(3, false);
	leave(1, false);
	transmit(BW_MAGIC, dead);
	assert_int_equal(taken(member[2].fd, COMES_MS), 1);
	transmit(BW_MAGIC, member[0].engine);
	assert_int_equal(taken(member[2].fd, STRAY), 0);
	assert_int_equal(taken(member[0].fd, COMES_MS), 1);
}

static void an_interface_that_goes_down_ends_the_group(void **state)
{
	for (int i = 0; i < 3; i++)
		begin(i);
	await_members(0, 3);
	interface(false);
	interface(true);
	for (int i = 0; i < 3; i++)
		assert_true(hung_up(member[i].connection));
	while (!bw_keeper_ended(keeper))
		usleep(1000);
}

static void calls_that_are_none_are_hung_up_on(void **state)
{
	struct bw_keeper_call what = {.magic = BW_KEEPER_MAGIC, .engine = 50000}, taken_number;
	struct member m = {.engine = 50000};
	int pipes[2], other;

	for (int i = 0; i < 2; i++)
		begin(i);
	await_members(0, 2);
	assert_int_equal(pipe(pipes), 0);
	other = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_LOOP));
	taken_number = what;
	taken_number.engine = member[1].engine;
	m.fd = packet(m.engine);
	const struct {
		const void *what;
		size_t n;
		int fd;
	} bad[] = {
		{&what, sizeof(what), -1},
		{&what, sizeof(what) - 1, m.fd},
		{"notmagic", 8, m.fd},
		{&what, sizeof(what), pipes[0]},
		{&what, sizeof(what), other},
		{&what, sizeof(what), member[0].fd},
		{&taken_number, sizeof(what), m.fd},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m.connection = dial();
		assert_int_equal(call(m.connection, bad[i].what, bad[i].n, bad[i].fd), 0);
		assert_true(hung_up(m.connection));
		close(m.connection);
	}
	assert_false(joined(&m));
	reach(0, 2);
	close(m.fd);
	close(other);
	close(pipes[0]);
	close(pipes[1]);
}

static void a_second_socket_ends_a_member(void **state)
{
	for (int i = 0; i < 3; i++)
		begin(i);
	await_members(0, 3);
	introduce(&member[1], false, member[1].fd);
	assert_true(hung_up(member[1].connection));
	end(1);
	reach(0, 3);
}

/* ---- the other end: an endpoint's part ---- */

#define ENGINE 41000

/* As much of an endpoint as that looks at: it has one link, and no helper. */
static struct bw_ep *endpoint(uint16_t engine, bool may)
{
	struct bw_ep *ep = calloc(1, sizeof(*ep));

	assert_non_null(ep);
	ep->epoll_fd = ep->wake_fd = -1;
	atomic_store(&ep->poll_fd, -1);
	ep->watch.claim = -1;
	ep->self.engine = engine;
	ep->env.fanout = may;
	ep->now = bw_clock_now();
	ep->packets = 1;
	ep->packet[0].fd = packet(engine);
	ep->packet[0].interface = lo;
	ep->packet[0].ethertype = htons(BW_ETHERTYPE);
	bw_fanout_init(ep, 0);
	return ep;
}

static struct bw_fanout *part(struct bw_ep *ep)
{
	return &ep->packet[0].fanout;
}

static void endpoint_end(struct bw_ep *ep)
{
	bw_fanout_end(ep);
	if (part(ep)->connection >= 0)
		close(part(ep)->connection);
	close(ep->packet[0].fd);
	free(ep);
}

/* The claim of the keeper of an interface, in the hands of the test. */
static int claim_of(int interface)
{
	char text[64];
	int fd;

	snprintf(text, sizeof(text), "beowire/fanout/%04x/%d", BW_ETHERTYPE, interface);
	fd = bw_claim_name(text);
	assert_true(fd >= 0);
	bw_discard_rights(fd, true);
	return fd;
}

static int accepted(int claim)
{
	struct pollfd p = {.fd = claim, .events = POLLIN};

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	return accept4(claim, NULL, NULL, SOCK_CLOEXEC);
}

/* What the endpoint says; the socket that comes with it, -1: none. */
static int hear(int connection, struct bw_keeper_call *told)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec io = {told, sizeof(*told)};
	struct msghdr message = {.msg_iov = &io,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int fd = -1;

	assert_int_equal(recvmsg(connection, &message, MSG_DONTWAIT), sizeof(*told));
	assert_int_equal(told->magic, BW_KEEPER_MAGIC);
	assert_int_equal(told->engine, ENGINE);
	if (message.msg_controllen)
		memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

static void visit(struct bw_ep *ep, uint64_t later)
{
	ep->now += later;
	bw_fanout_visit(ep);
}

static void an_endpoint_hands_over_its_socket(void **state)
{
	int claim = claim_of(lo), connection, fd;
	struct bw_ep *ep = endpoint(ENGINE, true);
	struct bw_keeper_call what;

	visit(ep, 0);
	assert_true(part(ep)->connection >= 0);
	connection = accepted(claim);
	fd = hear(connection, &what);
	assert_true(fd >= 0);
	assert_int_equal(inode_of(fd), inode_of(ep->packet[0].fd));
	assert_false(what.watch);
	close(fd);
	/* That it takes the watch is told, once, without the socket. */
	ep->watch.claim = 0;
	visit(ep, BW_S);
	assert_int_equal(hear(connection, &what), -1);
	assert_true(what.watch);
	visit(ep, BW_S);
	assert_int_equal(recv(connection, &what, sizeof(what), MSG_DONTWAIT), -1);
	close(connection);
	close(claim);
	endpoint_end(ep);
}

/* Whether the keeper hangs up, or says something. It asks anew a second later, and by the same
 * socket, as no group has it. */
static void an_endpoint_notices_the_end_of_the_keeper(void **state)
{
	int claim = claim_of(lo), connection, fd;
	struct bw_ep *ep = endpoint(ENGINE, true);
	struct bw_keeper_call what;

	for (int i = 0; i < 2; i++) {
		visit(ep, 0);
		connection = accepted(claim);
		close(hear(connection, &what));
		if (i)
			assert_int_equal(send(connection, "", 1, MSG_NOSIGNAL), 1);
		else
			close(connection);
		visit(ep, 0);
		assert_int_equal(part(ep)->connection, -1);
		assert_false(part(ep)->handed);
		if (i)
			close(connection);
		visit(ep, BW_S - 1);
		assert_int_equal(part(ep)->connection, -1);
		visit(ep, 1);
		assert_true(part(ep)->connection >= 0);
		connection = accepted(claim);
		fd = hear(connection, &what);
		assert_int_equal(inode_of(fd), inode_of(ep->packet[0].fd));
		close(fd);
		close(connection);
		visit(ep, 0);
		ep->now += BW_S;
	}
	close(claim);
	endpoint_end(ep);
}

/* A group without its keeper is left: the socket that it has is not offered to another keeper. */
static void an_endpoint_leaves_a_group_without_its_keeper(void **state)
{
	int claim = claim_of(lo), connection, fd, group = 7 | PACKET_FANOUT_HASH << 16;
	struct bw_ep *ep = endpoint(ENGINE, true);
	struct bw_keeper_call what;

	visit(ep, 0);
	connection = accepted(claim);
	fd = hear(connection, &what);
	assert_int_equal(bw_fanout_joined(ep), 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group)), 0);
	assert_int_equal(bw_fanout_joined(ep), 1);
	close(fd);
	close(connection);
	visit(ep, 0); /* there is no such interface: it will be tried again */
	assert_int_equal(part(ep)->connection, -1);
	assert_true(part(ep)->handed);
	visit(ep, 2 * BW_S);
	assert_int_equal(part(ep)->connection, -1);
	close(claim);
	endpoint_end(ep);
}

/* Each interface has a keeper of its own. Without one, who has no helper asks once a second. */
static void an_endpoint_asks_the_keeper_of_its_interface(void **state)
{
	int other = claim_of(lo + 1), claim;
	struct bw_ep *ep = endpoint(ENGINE, true);

	visit(ep, 0);
	assert_int_equal(part(ep)->connection, -1);
	claim = claim_of(lo);
	visit(ep, BW_S - 1);
	assert_int_equal(part(ep)->connection, -1);
	visit(ep, 1);
	assert_true(part(ep)->connection >= 0);
	close(other);
	close(claim);
	endpoint_end(ep);
}

static void an_endpoint_that_may_not_joins_nothing(void **state)
{
	int claim = claim_of(lo);
	struct bw_ep *ep = endpoint(ENGINE, false);

	visit(ep, 0);
	visit(ep, 3600 * BW_S);
	assert_int_equal(part(ep)->connection, -1);
	close(claim);
	endpoint_end(ep);
}

/* The first of two that could has the keeper, and both are members. */
static void an_endpoint_has_a_keeper_where_there_is_none(void **state)
{
	struct bw_ep *one = endpoint(ENGINE, true), *two = endpoint(ENGINE + 1, true);

	one->helper.wanted = two->helper.wanted = true;
	visit(one, 0);
	visit(two, 0);
	assert_non_null(part(one)->keeper);
	assert_null(part(two)->keeper);
	for (int ms = 0; !bw_fanout_joined(one) || !bw_fanout_joined(two); ms++) {
		assert_true(ms < PATIENCE_MS);
		usleep(1000);
	}
	endpoint_end(two);
	endpoint_end(one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_member_gets_its_own_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(one_alone_is_no_member__until_a_second_one_comes,
						setup, teardown),
		cmocka_unit_test_setup_teardown(no_frame_is_missed__while_others_join, setup,
						teardown),
		cmocka_unit_test_setup_teardown(no_frame_is_missed__while_others_leave, setup,
						teardown),
		cmocka_unit_test_setup_teardown(nothing_changes__before_one_that_leaves_has_left,
						setup, teardown),
		cmocka_unit_test_setup_teardown(several_leave_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(the_watch_gets_what_is_for_no_member, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_interface_that_goes_down_ends_the_group, setup,
						teardown),
		cmocka_unit_test_setup_teardown(calls_that_are_none_are_hung_up_on, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_second_socket_ends_a_member, setup, teardown),
		cmocka_unit_test(an_endpoint_hands_over_its_socket),
		cmocka_unit_test(an_endpoint_notices_the_end_of_the_keeper),
		cmocka_unit_test(an_endpoint_leaves_a_group_without_its_keeper),
		cmocka_unit_test(an_endpoint_asks_the_keeper_of_its_interface),
		cmocka_unit_test(an_endpoint_that_may_not_joins_nothing),
		cmocka_unit_test(an_endpoint_has_a_keeper_where_there_is_none),
	};

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		print_message("skipped: no network namespace\n");
		return 77;
	}
	lo = (int)if_nametoindex("lo");
	interface(true);
	sender = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (sender < 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
