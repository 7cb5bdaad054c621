/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * beowire-pingpong: lines of whoever connects to its server, of which carriers see nothing beyond
 * the bounds, and frames in its ring, of any length and by anybody. What it takes for messages are
 * the bytes of the partner's frames, in order, and it never sends further ahead than these allow.
 */
#include <sanitizer/asan_interface.h>
#include <stdarg.h>
#include <stdlib.h>

#include "../../programs/pingpong/packet.c"
#include "../../programs/pingpong/server.c"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SLOTS	      16u
#define EACH_BLOCK    8u
#define SLOT_BYTES    65536u
#define FRAMES_AHEAD  (AHEAD_BYTES / SLOT_BYTES)
#define FRAMES_CREDIT (FRAMES_AHEAD / 2)
#define MAC_AT	      82u
#define CALLS_MAX     1000

struct pp_options pp_opt;
uint8_t *pp_buffer, *pp_inbox;
char pp_error[PP_TEXT];

static struct fuzz_input *in;
static unsigned int calls;

int pp_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(pp_error, sizeof(pp_error), format, args);
	va_end(args);
	return -1;
}

uint64_t pp_now(void)
{
	return 1;
}

/* ---- lines ---- */

static void *any_open(const struct pp_place *place, struct pp_card *mine)
{
	if (place->wait > PP_ADAPTIVE || place->idle > PP_IDLE_MAX ||
	    place->receive_buffer > PP_BUFFER_MAX)
		fuzz_bad("a place beyond the bounds");
	return &calls;
}

static int any_meet(void *state, const struct pp_card *theirs)
{
	return 0;
}

static int any_send(void *state, const void *buf, size_t n)
{
	if (!n || n > PP_SIZE_MAX)
		fuzz_bad("a message beyond the bounds");
	return ++calls < CALLS_MAX ? 0 : pp_fail("enough");
}

static int any_receive(void *state, void *buf, size_t n)
{
	return any_send(state, buf, n);
}

static int any_flush(void *state)
{
	return 0;
}

static void any_close(void *state)
{
}

const struct pp_carrier pp_beowire = {"beowire",   any_open,  any_meet, any_send,
				      any_receive, any_flush, NULL,	any_close};
const struct pp_carrier pp_tcp = {"tcp",       any_open,  any_meet, any_send,
				  any_receive, any_flush, NULL,	    any_close};

static void lines(const uint8_t *data, size_t size)
{
	struct pp_control c = {.fd = -1};

	if (size == 0)
		return;
	calls = 0;
	c.in = fmemopen((void *)data, size, "r");
	c.out = fopen("/dev/null", "w");
	if (!c.in || !c.out)
		abort();
	serve(&c);
	for (const char *at = pp_error; *at; at++)
		if (*at < ' ' || *at > '~')
			fuzz_bad("an error that is not printable");
	pp_control_close(&c);
}

/* ---- frames ---- */

static uint8_t ring[BLOCK_BYTES * SLOTS / EACH_BLOCK] __attribute__((aligned(4096)));
static struct packet packet;
static uint32_t fill_at;      /* the slot that the next frame comes into */
static uint8_t body[1 << 16]; /* of the partner's frames, one after another */
static uint32_t body_len, body_at;
static uint32_t end[4096]; /* where that of each one ends */
static uint32_t came, taken;
static uint32_t sent, credits, credits_sent;

/* The partner's or somebody else's: the bytes behind its Ethernet header may be too few. */
static void arrives(struct tpacket2_hdr *h)
{
	uint8_t how = fuzz_u8(in), kind = how & 2 ? fuzz_u8(in) : how & 1;
	uint32_t len = fuzz_u8(in), given = len, whole = sizeof(struct head) + len;
	const uint8_t *bytes = fuzz_bytes(in, &given);
	struct head head = {.ether = {.ether_type = htons(ETHERTYPE)}, .kind = kind};

	memcpy(head.ether.ether_shost, packet.head.ether.ether_dhost, ETH_ALEN);
	memcpy(head.ether.ether_dhost, packet.head.ether.ether_shost, ETH_ALEN);
	head.ether.ether_shost[5] ^= how >> 2 & 1;
	head.ether.ether_dhost[5] ^= how >> 3 & 1;
	whole = how & 16 ? sizeof(head) - 1 - (how >> 5 & 1) : whole;
	__asan_unpoison_memory_region(h, MAC_AT + whole);
	memset((uint8_t *)h + MAC_AT, 0, whole);
	memcpy((uint8_t *)h + MAC_AT, &head, whole < sizeof(head) ? whole : sizeof(head));
	h->tp_mac = MAC_AT;
	h->tp_len = h->tp_snaplen = whole;
	if (whole >= sizeof(head))
		memcpy((uint8_t *)h + MAC_AT + sizeof(head), bytes, given);
	h->tp_status = TP_STATUS_USER;
	if (how & (4 | 8 | 16) || kind > CREDIT)
		return;
	credits += kind == CREDIT;
	if (kind == CREDIT || came == 4096)
		return;
	memset(body + body_len, 0, len);
	memcpy(body + body_len, bytes, given);
	body_len += len;
	end[came++] = body_len;
}

/* In place of the kernel: one frame comes, if there is room and the script has more. */
int poll(struct pollfd *fd, nfds_t n, int timeout)
{
	struct tpacket2_hdr *h = slot(&packet, fill_at);

	if (h->tp_status != TP_STATUS_KERNEL || in->at >= in->end || body_len + 256 > sizeof(body))
		return 0;
	__asan_poison_memory_region(h, SLOT_BYTES);
	__asan_unpoison_memory_region(h, sizeof(*h));
	arrives(h);
	fill_at = (fill_at + 1) % SLOTS;
	return 1;
}

int sendmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags)
{
	const struct head *head = m->msg_hdr.msg_iov->iov_base;

	if (head->kind == CREDIT) {
		credits_sent += n;
		if (credits_sent * FRAMES_CREDIT > came)
			fuzz_bad("a credit for nothing");
		return (int)n;
	}
	sent += n;
	if (sent > FRAMES_AHEAD + credits * FRAMES_CREDIT)
		fuzz_bad("more is under way than may be");
	return (int)n;
}

static int receive(void)
{
	uint32_t n = 1 + fuzz_u16(in) % 600, at = 0;
	uint8_t *buf = malloc(n);
	int error = packet_receive(&packet, buf, n);

	while (error == 0 && at < n) {
		uint32_t len = taken < came ? end[taken] - body_at : 0;

		if (taken == came)
			fuzz_bad("a message that did not come");
		len = len < n - at ? len : n - at;
		if (memcmp(buf + at, body + body_at, len))
			fuzz_bad("other bytes");
		at += len;
		body_at = end[taken++];
	}
	free(buf);
	return error;
}

static void frames(void)
{
	static uint8_t message[1 << 16];
	int error = 0;

	__asan_unpoison_memory_region(ring, sizeof(ring));
	packet = (struct packet){.ring = ring,
				 .slot_bytes = SLOT_BYTES,
				 .per_block = EACH_BLOCK,
				 .slots = SLOTS,
				 .chunk = 100,
				 .head.ether = {.ether_dhost = "\2part", .ether_shost = "\2ours"}};
	for (uint32_t i = 0; i < SLOTS; i++)
		slot(&packet, i)->tp_status = TP_STATUS_KERNEL;
	fill_at = body_len = body_at = came = taken = sent = credits = credits_sent = 0;
	while (error == 0 && in->at < in->end) {
		error = fuzz_u8(in) & 1 ? receive() : packet_send(&packet, message, fuzz_u16(in));
		if (packet.ahead > AHEAD_BYTES)
			fuzz_bad("another number under way than was sent");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input script = {data, data + size};

	in = &script;
	if (fuzz_u8(in) & 1)
		frames();
	else
		lines(in->at, (size_t)(in->end - in->at));
	return 0;
}
