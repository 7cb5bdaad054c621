/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The watch of beowired: frames from the segment of any length and content, for engines that have
 * ended, live, or never were. It refuses in the place of those that have ended and of nobody else,
 * with what the frame said and no more bytes than it had, at most 1000 times in a second; it reads
 * nothing that the kernel has not written.
 */
#include <sanitizer/asan_interface.h>

#include <linux/if_ether.h>
#include <netinet/in.h>

#include "descriptors.h"

#include "checksum.h"
#include "code.h"
#include "keyed.h"
#include "number.h"
#include "refuse.h"

static ssize_t fake_recv(int fd, void *bytes, size_t n, int flags);
static ssize_t fake_send(int fd, const void *bytes, size_t n, int flags);

/* The kernel takes the filter, or not. */
static int load_filter(void)
{
	return fuzz_fails(EPERM) ? -EPERM : fuzz_descriptor(AF_UNIX);
}

#define bs_code_load_filter(code, name) load_filter()
#define recv(fd, bytes, n, flags)	fake_recv(fd, bytes, n, flags)
#define send(fd, bytes, n, flags)	fake_send(fd, bytes, n, flags)

#include "../../service/watch.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1};
static struct fuzz_input *in;
static uint8_t frame[ETH_HLEN + 512]; /* that came last */
static uint32_t whole, taken, told, second, lives, forgotten;

static bool lively(uint16_t engine)
{
	return engine % 3 == 0;
}

int bs_number_hold(uint16_t engine)
{
	if (!lively(engine))
		return fuzz_descriptor(AF_UNIX);
	lives++;
	return -EADDRINUSE;
}

void bs_gate_forget(const struct bs_gate *g, uint16_t engine)
{
	forgotten++;
}

void bs_gate_mark(const struct bs_gate *g, uint16_t engine)
{
}

/* The next frame of the script; what the kernel does not write cannot be read. */
static ssize_t fake_recv(int fd, void *bytes, size_t n, int flags)
{
	uint8_t how = fuzz_u8(in);
	struct bw_hdr h = {.magic = BW_MAGIC, .version = BW_VERSION, .type = BW_FRAME_HELLO};
	uint32_t given;
	const uint8_t *body;

	fuzz_socket_of(fd);
	if (!(flags & MSG_DONTWAIT) || !(flags & MSG_TRUNC) || n > sizeof(frame))
		fuzz_bad("received in another way");
	__asan_unpoison_memory_region(bytes, n);
	if (how == 255 || in->at == in->end) {
		errno = how & 1 ? ENETDOWN : EAGAIN;
		return -1;
	}
	whole = how & 1 ? fuzz_u16(in) % sizeof(frame) : ETH_HLEN + 128;
	given = how & 2 ? fuzz_u8(in) : 0;
	body = fuzz_bytes(in, &given);
	memset(frame, how, sizeof(frame));
	memset(frame, 0xEE, ETH_ALEN); /* to whom */
	h.dst_engine = fuzz_u8(in);
	h.src_engine = taken++ & 0xFFFF;
	h.token = h.cluster = taken;
	h.type = how & 4 ? fuzz_u8(in) % 16 : h.type;
	h.magic = how & 8 ? fuzz_u16(in) : h.magic;
	memcpy(frame + ETH_HLEN, &h, sizeof(h));
	if (how & 2)
		memcpy(frame + ETH_HLEN, body, given);
	memcpy(bytes, frame, whole < n ? whole : n);
	if (whole < n)
		__asan_poison_memory_region((uint8_t *)bytes + whole, n - whole);
	return whole;
}

static ssize_t fake_send(int fd, const void *bytes, size_t n, int flags)
{
	const uint8_t *out = bytes;
	struct bw_refuse_frame r;
	struct bw_hdr h;

	fuzz_socket_of(fd);
	if (n != ETH_HLEN + sizeof(r) || n > whole)
		fuzz_bad("a refusal that is longer than what it refuses");
	memcpy(&r, out + ETH_HLEN, sizeof(r));
	memcpy(&h, frame + ETH_HLEN, sizeof(h));
	if (memcmp(out, frame + 6, 6) || memcmp(out + 6, our_mac, 6))
		fuzz_bad("a refusal to somebody else");
	if (out[12] != BW_ETHERTYPE >> 8 || out[13] != (BW_ETHERTYPE & 0xFF))
		fuzz_bad("a refusal of another protocol");
	if (lively(h.dst_engine) || h.magic != BW_MAGIC || h.type == BW_FRAME_REFUSE ||
	    h.type == BW_FRAME_BYE || h.type == BW_FRAME_CHALLENGE)
		fuzz_bad("a refusal of what must not be refused");
	if (r.hdr.dst_engine != h.src_engine || r.hdr.src_engine != h.dst_engine ||
	    r.hdr.cluster != h.cluster || r.body.echo_token != h.token ||
	    r.body.echo_type != h.type)
		fuzz_bad("a refusal of something else");
	if (++second > BS_A_SECOND)
		fuzz_bad("more refusals than there may be");
	if (fuzz_fails(ENOBUFS))
		return -1;
	told++;
	return (ssize_t)n;
}

static void visits(struct bs_watch *w)
{
	static const uint8_t key[16] = "whose it is";
	struct bs_gate gate = {0};
	uint64_t now = BW_S;

	while (in->at < in->end) {
		uint8_t how = fuzz_u8(in);
		uint32_t before = taken;

		if (how & 1) {
			now += BW_S;
			second = 0;
		}
		if (how & 2)
			bs_watch_bury(w, &gate, fuzz_u16(in));
		lives = forgotten = 0;
		bs_watch_visit(w, &gate, our_mac, BW_ETHERTYPE, how & 4 ? key : NULL, now);
		if (taken - before > BS_FRAMES)
			fuzz_bad("a visit without end");
		if (forgotten != lives)
			fuzz_bad("living engines are not forgotten as dead");
		if (w->told != told)
			fuzz_bad("other refusals are counted than were sent");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input script = {data, data + size};
	struct bs_watch w = {0};
	struct bs_gate gate = {0};

	fuzz_script = in = &script;
	taken = told = second = 0;
	bs_watch_learn_name();
	if (!bs_watch_open(&w, &gate, 3, BW_ETHERTYPE)) {
		visits(&w);
		bs_watch_close(&w);
	}
	if (fuzz_descriptors())
		fuzz_bad("descriptors are left open");
	fuzz_script = NULL;
	fuzz_descriptors_reset();
	return 0;
}
