/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rows of frames over the udp link: which frames the kernel is given as one datagram, what becomes
 * of them when it does not take it, and how what it delivers joined is taken apart. The system
 * calls go through this file, which looks at them, makes them fail and makes answers up.
 */
#include "buffer.h"
#include "link/udp/udp.h"
#include "sealing.h"

#include <dlfcn.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define SOON_MS 120000 /* far beyond what anything here takes */
#define ENGINE	40000
#define LO	47100
#define HEAD	((uint32_t)sizeof(struct bw_hdr))
#define JUMBO	8968 /* bytes of a frame, at MTU 9000 */
#define CALLS	64

static struct bw_udp a, b, c;
static struct bw_env env;
static struct bw_iface iface;
static union bw_name name;
static uint8_t payload[BW_BATCH_FRAMES][JUMBO];

/* What the calls of one test were: of each message its frames by the row's length. */
static struct {
	int calls;		/* of sendmmsg() */
	int messages;		/* that the kernel took */
	size_t bytes[CALLS];	/* of each of these */
	uint16_t cut[CALLS];	/* of each the length of its segments; 0: no row */
	int fail;		/* with this errno a call fails whose first message is a row, */
	int spare;		/* but not before so many calls */
	unsigned int at_most;	/* messages that the kernel takes of one call; 0: any number */
	const uint8_t *made_up; /* what the next recvmmsg() brings, and its length */
	uint32_t made_up_len;
} spy;

static long real(long number, const long *v)
{
	static long (*call)(long, ...);

	if (!call)
		call = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return call(number, v[0], v[1], v[2], v[3], v[4], v[5]);
}

static uint16_t cut_of(struct msghdr *m)
{
	struct cmsghdr *told = CMSG_FIRSTHDR(m);
	uint16_t cut = 0;

	if (told) {
		assert_int_equal(told->cmsg_level, IPPROTO_UDP);
		assert_int_equal(told->cmsg_type, UDP_SEGMENT);
		memcpy(&cut, CMSG_DATA(told), sizeof(cut));
	}
	return cut;
}

static long spied_sendmmsg(long *v)
{
	struct mmsghdr *m = (struct mmsghdr *)v[1];
	long n;

	spy.calls++;
	if (spy.fail && spy.calls > spy.spare && cut_of(&m->msg_hdr)) {
		errno = spy.fail;
		spy.fail = 0;
		return -1;
	}
	if (spy.at_most && (unsigned long)v[2] > spy.at_most)
		v[2] = spy.at_most;
	n = real(SYS_sendmmsg, v);
	for (long i = 0; i < n; i++) {
		spy.bytes[spy.messages] = m[i].msg_len;
		spy.cut[spy.messages++] = cut_of(&m[i].msg_hdr);
	}
	return n;
}

/* One datagram. */
static long spied_recvmmsg(long *v)
{
	struct mmsghdr *m = (struct mmsghdr *)v[1];

	if (!spy.made_up)
		return real(SYS_recvmmsg, v);
	assert_true(m->msg_hdr.msg_iov->iov_len >= spy.made_up_len);
	memcpy(m->msg_hdr.msg_iov->iov_base, spy.made_up, spy.made_up_len);
	m->msg_len = spy.made_up_len;
	m->msg_hdr.msg_controllen = 0;
	spy.made_up = NULL;
	return 1;
}

/* In place of the C library's. */
long syscall(long number, ...)
{
	long v[6];
	va_list all;

	va_start(all, number);
	for (int i = 0; i < 6; i++)
		v[i] = va_arg(all, long);
	va_end(all);
	if (number == SYS_sendmmsg)
		return spied_sendmmsg(v);
	return number == SYS_recvmmsg ? spied_recvmmsg(v) : real(number, v);
}

static int setup(void **state)
{
	const char *why;

	memset(&spy, 0, sizeof(spy));
	env = (struct bw_env){.udp_lo = LO, .udp_hi = LO + 99, .udp_offload = true};
	/* 127.x.y.z: of this process alone. */
	iface = (struct bw_iface){.mtu = 9000};
	name.in.sin_family = AF_INET;
	name.in.sin_addr.s_addr = htonl(0x7F800000u | ((uint32_t)getpid() & 0x7FFFFF));
	assert_int_equal(bw_udp_open(&a, &env, &iface, &name, ENGINE, &why), 0);
	assert_int_equal(bw_udp_open(&b, &env, &iface, &name, ENGINE, &why), 0);
	assert_int_equal(bw_udp_open(&c, &env, &iface, &name, ENGINE, &why), 0);
	return 0;
}

static int teardown(void **state)
{
	bw_udp_close(&a);
	bw_udp_close(&b);
	bw_udp_close(&c);
	return 0;
}

/* By which frames are sealed; NULL: they are not. */
static const uint8_t *seal_key;

/* A frame of so many bytes, all of whose payload is its number, from the test's memory. */
static void add(const struct bw_udp *to, uint8_t number, uint32_t len)
{
	const uint32_t head = seal_key ? BW_DATA_HEAD : HEAD, trailer = seal_key ? BW_SEAL_TAG : 0;
	struct bw_hdr hdr = {.magic = BW_MAGIC,
			     .version = BW_VERSION,
			     .dst_engine = ENGINE,
			     .len = (uint16_t)(len - HEAD)};
	struct bw_tx_frame f = {
		.head_len = head, .len = len, .segments = 1, .seal = {seal_key, number}};
	struct bw_buffer buffer = {.data = payload[number]};

	memset(payload[number], number, len - head);
	memset(f.head, number, head);
	memcpy(f.head, &hdr, sizeof(hdr));
	f.segment[0].head_end = head;
	f.segment[0].len = len - head - trailer;
	f.segment[0].buf = bw_buffer_cookie(&buffer);
	bw_name_to_link(&f.to, &to->name);
	assert_true(bw_udp_add(&a, &f));
}

static void flush(void)
{
	assert_true(bw_udp_flush(&a, 1));
	assert_int_equal(a.batch->count, 0);
}

/* The frames `first` to `last` come, in their order, as they were and once. */
static void assert_come(struct bw_udp *u, uint8_t first, uint8_t last, uint32_t len)
{
	struct bw_rx_frame f;

	while (first <= last) {
		struct pollfd fd = {.fd = u->socket[0].fd, .events = POLLIN};

		assert_int_equal(poll(&fd, 1, SOON_MS), 1);
		assert_true(bw_udp_receive(u) > 0);
		/* There was room for all that the kernel tells. */
		assert_int_equal(u->rx[0].msg_hdr.msg_flags & MSG_CTRUNC, 0);
		while (bw_udp_frame(u, &f)) {
			uint8_t *bytes = (uint8_t *)(uintptr_t)f.head;
			struct bw_seal_by by = {seal_key, first};
			uint32_t end = len - (seal_key ? BW_SEAL_TAG : 0);

			assert_int_equal(f.len, len);
			assert_int_equal((uintptr_t)bytes % 8, 0);
			if (seal_key) { /* where it lies, between others */
				assert_int_not_equal(bytes[BW_DATA_HEAD + 1], bytes[BW_DATA_HEAD]);
				assert_int_equal(bw_open_frame(bytes, end, &by), 0);
			}
			for (uint32_t i = HEAD; i < end; i++)
				assert_int_equal(bytes[i], first);
			first++;
		}
	}
	assert_int_equal(first, last + 1);
	assert_int_equal(bw_udp_receive(u), 0);
}

static void assert_message(int i, uint16_t cut, size_t bytes)
{
	assert_int_equal(spy.cut[i], cut);
	assert_int_equal(spy.bytes[i], bytes);
}

/* Frames of 1472 bytes that are one datagram. */
#define ROW (BW_BATCH_ROW_BYTES / 1472)

static void row__is_one_message_both_ways(void **state)
{
	for (uint8_t i = 0; i < ROW; i++) {
		assert_false(i && bw_batch_ripe(a.batch));
		add(&b, i, 1472);
	}
	assert_true(bw_batch_ripe(a.batch)); /* as another one would be a datagram of its own */
	flush();
	assert_int_equal(spy.calls, 1);
	assert_int_equal(spy.messages, 1);
	assert_message(0, 1472, ROW * 1472);
	assert_come(&b, 0, ROW - 1, 1472);
	assert_int_equal(a.batch->rows, 1);
	assert_int_equal(a.batch->row_frames, ROW);
	assert_int_equal(b.rx_rows, 1);
	assert_int_equal(b.count.rx_frames, ROW);
	assert_int_equal(b.count.rx_bytes, ROW * 1472);
}

/* Sealed ones lie in one piece as well, and travel together. */
static void row__of_sealed_frames(void **state)
{
	static const uint8_t key[BW_SEAL_KEY] = "a key that nobody has to guess";

	assert_int_equal(bw_batch_make_room(a.batch, 9000), 0);
	seal_key = key;
	for (uint8_t i = 0; i < ROW; i++)
		add(&b, i, 1472);
	memset(payload, 0xEE, sizeof(payload));
	flush();
	assert_int_equal(spy.calls, 1);
	assert_int_equal(spy.messages, 1);
	assert_message(0, 1472, ROW * 1472);
	assert_int_equal(a.batch->row[0].whole.iov_len, ROW * 1472);
	assert_come(&b, 0, ROW - 1, 1472);
	assert_int_equal(a.batch->row_frames, ROW);
	add(&b, 1, 9000); /* so long a frame is one piece, too, and odd ones lie where they fit */
	add(&b, 2, 9000);
	flush();
	assert_come(&b, 1, 2, 9000);
	seal_key = NULL;
}

/* Of which the kernel tells less than of a row. */
static void row__is_cut_behind_a_single_frame(void **state)
{
	for (int i = 0; i < 3; i++) {
		add(&b, 0, 1472);
		flush();
		assert_come(&b, 0, 0, 1472);
		for (uint8_t k = 1; k < 5; k++)
			add(&b, k, 1472);
		flush();
		assert_come(&b, 1, 4, 1472);
	}
	assert_int_equal(b.rx_rows, 3);
}

/* The pieces of long frames are not copied; what they are of is one run in one message. */
static void row__is_no_longer_than_a_datagram(void **state)
{
	for (uint8_t i = 0; i < 10; i++)
		add(&b, i, JUMBO);
	flush();
	assert_int_equal(spy.messages, 2);
	assert_message(0, JUMBO, 7 * JUMBO);
	assert_message(1, JUMBO, 3 * JUMBO);
	assert_come(&b, 0, 9, JUMBO);
}

static void row__ends_with_a_shorter_frame(void **state)
{
	static const uint32_t len[] = {1400, 1400, 600, 600, 1400, 2400, 2400};

	for (uint8_t i = 0; i < 7; i++)
		add(&b, i, len[i]);
	flush();
	assert_int_equal(spy.messages, 4);
	assert_message(0, 1400, 3400);
	assert_message(1, 0, 600);
	assert_message(2, 0, 1400);
	assert_message(3, 2400, 4800);
	assert_int_equal(a.batch->rows, 2);
	assert_int_equal(a.batch->row_frames, 5);
}

static void row__is_for_one_peer(void **state)
{
	add(&b, 0, 1472);
	add(&c, 0, 1472);
	add(&b, 1, 1472);
	add(&b, 2, 1472);
	add(&c, 1, 1472);
	flush();
	assert_int_equal(spy.messages, 4);
	assert_message(2, 1472, 2 * 1472);
	assert_come(&b, 0, 2, 1472);
	assert_come(&c, 0, 1, 1472);
	/* Another node, same port. */
	a.batch->slot[1].to = a.batch->slot[0].to;
	add(&b, 0, 1472);
	add(&b, 1, 1472);
	a.batch->slot[1].to.in.sin_addr.s_addr ^= htonl(1);
	flush();
	assert_int_equal(spy.messages, 6);
	assert_come(&b, 0, 0, 1472);
}

/* Rows are given up for this batch, or for ever; none of their frames is. */
static void row__that_the_kernel_does_not_take_goes_singly(void **state)
{
	static const int why[] = {EINVAL, EMSGSIZE, EPERM, EIO};

	for (int i = 0; i < 4; i++) {
		bool ever = why[i] == EIO;

		spy.messages = 0;
		spy.fail = why[i];
		for (uint8_t n = 0; n < 20; n++)
			add(&b, n, 2400);
		flush();
		assert_int_equal(spy.fail, 0);
		assert_int_equal(spy.messages, 20);
		assert_come(&b, 0, 19, 2400);
		spy.messages = 0;
		for (uint8_t n = 0; n < 20; n++)
			add(&b, n, 2400);
		flush();
		assert_int_equal(spy.messages, ever ? 20 : 1);
		assert_come(&b, 0, 19, 2400);
	}
	assert_int_equal(a.batch->errors, 0);
	assert_int_equal(a.batch->rows, 3);
}

/* One frame that cannot be sent takes none of its row with it. */
static void row__loses_no_more_than_the_frame_at_fault(void **state)
{
	for (uint8_t n = 0; n < 8; n++)
		add(&b, n, 1472);
	a.batch->piece[7].iov_base = NULL;
	flush();
	assert_int_equal(a.batch->errors, 1);
	assert_come(&b, 0, 6, 1472);
}

/* The kernel takes one message at a time: whole rows are done, none is sent again. */
static void row__is_done_as_a_whole(void **state)
{
	spy.at_most = 1;
	for (uint8_t n = 0; n < 30; n++)
		add(&b, n, n < 20 ? 1480 : 1472);
	flush();
	assert_int_equal(spy.calls, 2);
	assert_int_equal(spy.messages, 2);
	assert_message(0, 1480, 20 * 1480 + 1472);
	assert_message(1, 1472, 9 * 1472);
	assert_int_equal(a.batch->row_frames, 30);
}

/* The memory is the program's again after a flush that found no room; what is left is a row. */
static void row__is_kept_without_room(void **state)
{
	spy.at_most = 1;
	spy.spare = 1;
	spy.fail = EAGAIN;
	for (uint8_t n = 0; n < 20; n++)
		add(&b, n, JUMBO);
	assert_false(bw_udp_flush(&a, 1));
	memset(payload, 0xEE, sizeof(payload));
	assert_int_equal(a.batch->done, 7);
	flush();
	assert_int_equal(spy.messages, 3);
	assert_message(0, JUMBO, 7 * JUMBO);
	assert_message(1, JUMBO, 7 * JUMBO);
	assert_message(2, JUMBO, 6 * JUMBO);
	assert_come(&b, 0, 19, JUMBO);
}

static void offload__can_be_switched_off(void **state)
{
	const char *why;

	bw_udp_close(&a);
	bw_udp_close(&b);
	env.udp_offload = false;
	assert_int_equal(bw_udp_open(&a, &env, &iface, &name, ENGINE, &why), 0);
	env.udp_offload = true;
	assert_int_equal(bw_udp_open(&b, &env, &iface, &name, ENGINE, &why), 0);
	for (uint8_t n = 0; n < 10; n++)
		add(&b, n, 1472);
	flush();
	assert_int_equal(spy.messages, 10);
	assert_come(&b, 0, 9, 1472);
	assert_int_equal(a.batch->rows + b.rx_rows, 0);
	/* And what comes as a row to one that did not ask for them is cut by the kernel. */
	bw_udp_close(&c);
	c = a;
	a = b;
	b = c;
	for (uint8_t n = 0; n < 10; n++)
		add(&b, n, 1472);
	flush();
	assert_int_equal(a.batch->rows, 1);
	assert_come(&b, 0, 9, 1472);
	assert_int_equal(b.rx_rows, 0);
	assert_int_equal(bw_udp_open(&c, &env, &iface, &name, ENGINE, &why), 0);
}

/* A datagram of frames that claim to be `claim` bytes long and are `size` bytes apart, the last one
 * up to its end: how many are found, each where the engine can read it. */
static int frames_of(uint32_t len, uint32_t claim, uint32_t size)
{
	static uint8_t bytes[BW_UDP_ROW];
	struct bw_hdr hdr = {.magic = BW_MAGIC, .len = (uint16_t)(claim - HEAD)};
	struct bw_rx_frame f[4];
	uint32_t at = 0;
	int n = 0, some;

	for (uint32_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	for (uint32_t i = 0; i < len; i += size)
		memcpy(bytes + i, &hdr, bw_min_u64(HEAD, len - i));
	spy.made_up = bytes;
	spy.made_up_len = len;
	assert_int_equal(bw_udp_receive(&b), 1);
	for (; (some = bw_udp_frames(&b, f, 4)); n += some) {
		for (int i = 0; i < some; i++) { /* none lies over another one */
			assert_int_equal((uintptr_t)f[i].head % 8, 0);
			assert_int_equal(f[i].head_len, f[i].len);
			assert_in_range(f[i].len, 0, len - at);
			assert_memory_equal(f[i].head, bytes + at, f[i].len);
			at += f[i].len;
		}
	}
	assert_int_equal(at, len);
	assert_int_equal(bw_udp_frames(&b, f, 4), 0);
	return n;
}

/* A sender may say anything: a frame ends where another one begins, and nowhere else. */
static void datagram__is_cut_where_its_frames_end(void **state)
{
	assert_int_equal(frames_of(0, HEAD, HEAD), 1);
	assert_int_equal(frames_of(HEAD - 1, HEAD, HEAD), 1);
	assert_int_equal(frames_of(2 * HEAD - 1, HEAD, HEAD), 1);
	assert_int_equal(frames_of(5000, 5000, 5000), 1);
	assert_int_equal(frames_of(5000, 1472, 5000), 1); /* padding is no frame */
	assert_int_equal(frames_of(5000, 1472, 1480), 1);
	assert_int_equal(frames_of(5000, HEAD + 65535, 1000), 1);
	assert_int_equal(frames_of(5000, 4969, 4969), 1); /* no room for a header behind it */
	assert_int_equal(b.rx_rows, 0);
	assert_int_equal(frames_of(5000, 4968, 4968), 2);
	assert_int_equal(frames_of(5000, 1472, 1472), 4);
	assert_int_equal(frames_of(5000, 1000, 1000), 5);
	assert_int_equal(frames_of(65507, HEAD, HEAD), (int)(65507 / HEAD));
	assert_int_equal(b.rx_rows, 4);
	/* Lengths that no sender of ours chooses leave no frame where it cannot be read. */
	for (uint32_t size = HEAD; size < HEAD + 17; size++)
		frames_of(3000, size, size);
}

/* A router marks a row before it is cut. */
static void mark__is_that_of_all_frames(void **state)
{
	int tos = 3, marked = 0;
	struct bw_rx_frame f;
	struct pollfd fd = {.fd = b.socket[0].fd, .events = POLLIN};

	assert_int_equal(setsockopt(a.socket[0].fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)), 0);
	for (uint8_t n = 0; n < 5; n++)
		add(&b, n, 1472);
	flush();
	assert_int_equal(poll(&fd, 1, SOON_MS), 1);
	assert_int_equal(bw_udp_receive(&b), 1);
	while (bw_udp_frame(&b, &f))
		marked += f.mark;
	assert_int_equal(marked, 5);
}

static void mtu__keeps_frames_of_rows_aligned(void **state)
{
	static const struct {
		uint32_t mtu, cap, frame;
	} of[] = {{1500, 0, 1472},
		  {9000, 0, JUMBO},
		  {9007, 0, 8976},
		  {9000, 1001, 1000},
		  {9000, 583, 576}};
	const char *why;

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		bw_udp_close(&c);
		iface.mtu = of[i].mtu;
		env.mtu = of[i].cap;
		assert_int_equal(bw_udp_open(&c, &env, &iface, &name, ENGINE, &why), 0);
		assert_int_equal(c.mtu, of[i].frame);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(row__is_one_message_both_ways),
		TEST(row__of_sealed_frames),
		TEST(row__is_cut_behind_a_single_frame),
		TEST(row__is_no_longer_than_a_datagram),
		TEST(row__ends_with_a_shorter_frame),
		TEST(row__is_for_one_peer),
		TEST(row__that_the_kernel_does_not_take_goes_singly),
		TEST(row__loses_no_more_than_the_frame_at_fault),
		TEST(row__is_done_as_a_whole),
		TEST(row__is_kept_without_room),
		TEST(offload__can_be_switched_off),
		TEST(datagram__is_cut_where_its_frames_end),
		TEST(mark__is_that_of_all_frames),
		TEST(mtu__keeps_frames_of_rows_aligned),
	};

	return cmocka_run_group_tests_name("udp_rows", tests, NULL, NULL);
}
