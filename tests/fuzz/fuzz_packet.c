/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Raw frames: whatever is on the segment comes through the filter that an endpoint has asked for
 * into the ring of its socket, at any time, of any length. Every frame that passes reaches the
 * engine or the watch, in order, byte for byte, and nothing around it; its slot is the kernel's
 * afterwards, and it is counted. What is sent leaves as it was given, once. Filters and steering
 * programs say what they are to say of any frame.
 */
#include <sanitizer/asan_interface.h>

#include "bpf.h"
#include "checksum.h"
#include "clock.h"
#include "ep.h"
#include "link/packet/steer.h"
#include "packet_sent.h"
#include "refuse.h"

#include "descriptors.h"

static uint64_t now;
static bool loaded; /* the kernel module */

#define bw_clock_now()	   now
#define access(path, what) (loaded ? 0 : -1)

#include "../../hosts/user/ep.c"
#include "../../hosts/user/link/filter.c"
#include "../../hosts/user/link/packet/packet.c"
#include "../../hosts/user/link/packet/steer.c"
#include "../../hosts/user/link/watch.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SELF = 33000, LINKS = PACKET_LINKS, FRAMES = 4096, HEADER = 14 };

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1};
static struct fuzz_input *in;
static struct bw_ep ep;

/* ---- what comes ---- */

/* A frame that passed the filter: these bytes, then its number again and again. */
struct came {
	uint8_t head[HEADER + sizeof(struct bw_hdr)];
	uint8_t number;
	uint32_t len; /* bytes of it in the slot */
	bool ours;
};

struct line {
	struct came f[FRAMES];
	uint32_t n, at;	 /* frames that came, and were seen or passed over */
	uint32_t looked; /* of these, whose slots were looked at afterwards */
	uint32_t base;	 /* the first of them in this ring */
	uint64_t bytes, drops;
	uint16_t alive[BW_FILTER_ALIVE]; /* what the watch's filter has */
	unsigned int alives, attached;
	bool watch;
};

static struct line line[LINKS];
static uint32_t last_len, refused_at, arrivals;
static bool quiet; /* nothing comes by itself */

static void frame_bytes(uint8_t *to, const struct came *f)
{
	memset(to, f->number, f->len);
	memcpy(to, f->head, f->len < sizeof(f->head) ? f->len : sizeof(f->head));
}

static struct tpacket2_hdr *kernel_slot(const struct fuzz_socket *s, uint32_t i)
{
	uint32_t each = s->shape.tp_block_size / s->shape.tp_frame_size;

	return (struct tpacket2_hdr *)(s->ring + (size_t)(i / each) * s->shape.tp_block_size +
				       (size_t)(i % each) * s->shape.tp_frame_size);
}

/* How much of a frame the filter is to keep. */
static uint32_t wanted(const struct line *l, const uint8_t *bytes, uint32_t len, uint32_t pkttype)
{
	const uint32_t cut = HEADER + BW_FILTER_CUT;
	bool host = pkttype == PACKET_HOST;
	struct bw_hdr h = {0};
	unsigned int i;

	memcpy(&h, bytes + HEADER, len - HEADER < sizeof(h) ? len - HEADER : sizeof(h));
	if (len < HEADER + 2)
		return 0;
	if (h.magic != BW_MAGIC)
		return l->watch ? cut : 0;
	if (len < HEADER + offsetof(struct bw_hdr, src_engine))
		return 0;
	if (h.dst_engine == SELF)
		return host ? UINT32_MAX : 0;
	for (i = 0; i < l->alives; i++)
		if (l->alive[i] == h.dst_engine)
			return 0;
	if (!l->watch || !host)
		return 0;
	if (h.type == BW_FRAME_HELLO)
		return cut;
	return len > HEADER + offsetof(struct bw_hdr, flags) && h.flags & BW_HDR_ACK_NOW ? cut : 0;
}

/* The frame that the script says, of `len` bytes: how it came to us. */
static uint32_t script_frame(struct came *f, uint32_t *len)
{
	uint8_t how = fuzz_u8(in);
	struct bw_hdr h = {.magic = BW_MAGIC,
			   .version = BW_VERSION,
			   .type = how & 64 ? BW_FRAME_HELLO : how & 15,
			   .dst_engine = SELF,
			   .src_engine = 7,
			   .cluster = FUZZ_CLUSTER};

	*len = last_len;
	if ((how & 3) == 1)
		*len = HEADER + fuzz_u8(in);
	if ((how & 3) == 2)
		*len = HEADER + fuzz_u16(in) % 10000;
	if ((how & 3) == 3)
		*len = HEADER + 1100;
	last_len = *len;
	if ((how & 12) == 12)
		h.magic = fuzz_u16(in);
	if (how & 16) {
		uint8_t which = fuzz_u8(in);

		h.dst_engine += which < 128 ? which % 8 : arrivals % 251;
		h.dst_engine = how & 4 ? fuzz_u16(in) : h.dst_engine;
	}
	if (how & 128) {
		h.flags = fuzz_u8(in);
		h.cluster += fuzz_u8(in) & 1;
		h.token = fuzz_u16(in);
		h.len = fuzz_u16(in);
	}
	*f = (struct came){.number = (uint8_t)arrivals++};
	memcpy(f->head, our_mac, 6);
	memset(f->head + 6, how, 6);
	memcpy(f->head + HEADER, &h, sizeof(h));
	return how & 32 ? fuzz_u8(in) % 5 : PACKET_HOST;
}

static void into_slot(struct fuzz_socket *s, struct line *l, struct came *f, uint32_t len)
{
	struct tpacket2_hdr *slot = kernel_slot(s, s->turn);
	uint32_t mac_at = arrivals & 1 ? 66 : 82, room = s->shape.tp_frame_size - mac_at;

	if (slot->tp_status != TP_STATUS_KERNEL || l->n == FRAMES) {
		s->drops++;
		l->drops++;
		return;
	}
	s->turn = (s->turn + 1) % s->shape.tp_frame_nr;
	f->len = f->len < room ? f->len : room;
	__asan_poison_memory_region(slot, s->shape.tp_frame_size);
	__asan_unpoison_memory_region(slot, sizeof(*slot));
	__asan_unpoison_memory_region((uint8_t *)slot + mac_at, f->len);
	frame_bytes((uint8_t *)slot + mac_at, f);
	slot->tp_len = len;
	slot->tp_snaplen = f->len;
	slot->tp_mac = (uint16_t)mac_at;
	slot->tp_net = (uint16_t)(mac_at + HEADER);
	slot->tp_status = TP_STATUS_USER | (f->len < len ? TP_STATUS_COPY : 0);
	l->bytes += f->len - HEADER;
	l->f[l->n++] = *f;
}

/* Does the kernel give it to this link? Then into its ring, if there is room. */
static void arrives(uint32_t i)
{
	static uint8_t bytes[HEADER + 10000];
	struct fuzz_socket *s = fuzz_socket_of(ep.packet[i].fd);
	uint32_t len, pkttype;
	struct came f;
	int64_t keep;
	struct bw_hdr h;

	pkttype = script_frame(&f, &len);
	f.len = len;
	frame_bytes(bytes, &f);
	keep = s->filters ? bpf_run(s->filter, s->filters, bytes, len, pkttype) : UINT32_MAX;
	if (keep != wanted(&line[i], bytes, len, pkttype))
		fuzz_bad("a filter that says something else");
	if (!keep)
		return;
	f.len = keep < len ? (uint32_t)keep : len;
	memcpy(&h, f.head + HEADER, sizeof(h));
	f.ours = f.len >= HEADER + sizeof(h) && h.magic == BW_MAGIC && h.dst_engine == SELF;
	into_slot(s, &line[i], &f, len);
}

/* The next frame of ours that came by this link is this one, which is still in its slot. */
static void expect_frame(const struct bw_rx_frame *f)
{
	static uint8_t bytes[HEADER + 10000];
	struct line *l = &line[f->from.link];
	const struct tpacket2_hdr *slot = f->cookie;
	struct came *c;

	while (l->at < l->n && !l->f[l->at].ours)
		l->at++;
	if (l->at == l->n)
		fuzz_bad("a frame that did not come");
	c = &l->f[l->at++];
	if (f->len != c->len - HEADER || f->head_len != f->len)
		fuzz_bad("a frame of another length");
	frame_bytes(bytes, c);
	if (memcmp(f->head, bytes + HEADER, f->len))
		fuzz_bad("other bytes");
	if (f->from.len != 6 || memcmp(f->from.bytes, bytes + 6, 6))
		fuzz_bad("from somebody else");
	if ((uintptr_t)f->head % 8)
		fuzz_bad("a frame that lies askew");
	if (!(slot->tp_status & TP_STATUS_USER))
		fuzz_bad("a slot that was given back too early");
}

/* The kernel does not wait for us. */
static void meanwhile(void)
{
	uint32_t n = quiet ? 0 : fuzz_u8(in);

	for (n = n > 250 ? n - 250 : 0; n; n--)
		arrives(0);
}

void bw_host_receive(struct bw_ep *e, const struct bw_rx_frame *f)
{
	expect_frame(f);
	meanwhile();
}

void bw_host_receive_row(struct bw_ep *e, const struct bw_rx_frame *f, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		expect_frame(&f[i]);
	for (i = 1; i + 1 < n; i++)
		if (f[i].len != f[0].len)
			fuzz_bad("a row of frames that are unlike");
	meanwhile();
}

/* ---- refusals ---- */

/* Engines that are ours to refuse for: of the others some process has the number. */
bool bw_number_held(uint16_t engine)
{
	return engine % 3 == 0;
}

/* A refusal is of a frame that came after those that were refused before. */
void packet_refusal(const uint8_t *bytes, uint32_t len)
{
	struct bw_refuse_frame r;
	struct bw_hdr h;

	if (len != HEADER + sizeof(r))
		fuzz_bad("a refusal of another length");
	memcpy(&r, bytes + HEADER, sizeof(r));
	for (; refused_at < line[0].n; refused_at++) {
		const struct came *f = &line[0].f[refused_at];

		memcpy(&h, f->head + HEADER, sizeof(h));
		if (!f->ours && f->len >= len && !memcmp(f->head + 6, bytes, 6) &&
		    h.magic == BW_MAGIC && h.cluster == FUZZ_CLUSTER && h.dst_engine % 3 &&
		    h.dst_engine == r.hdr.src_engine && h.src_engine == r.hdr.dst_engine &&
		    h.token == r.body.echo_token && h.type == r.body.echo_type)
			break;
	}
	if (refused_at++ >= line[0].n)
		fuzz_bad("a refusal of nothing that came");
}

/* ---- the endpoint ---- */

/* The slots of frames that were taken are the kernel's, and not to be read; the others are not. */
static void look_at_slots(uint32_t i)
{
	struct fuzz_socket *s = fuzz_socket_of(ep.packet[i].fd);
	struct line *l = &line[i];
	uint32_t slots = s->shape.tp_frame_nr, k = l->looked;

	/* The others have another frame already. */
	k = l->n > slots && l->n - slots > k ? l->n - slots : k;
	for (; k < l->n; k++) {
		struct tpacket2_hdr *slot = kernel_slot(s, (k - l->base) % slots);

		if ((slot->tp_status == TP_STATUS_KERNEL) != (k < ep.packet[i].count.rx_frames))
			fuzz_bad("slots that were given back never, or twice");
		if (k < ep.packet[i].count.rx_frames)
			__asan_poison_memory_region(slot + 1,
						    s->shape.tp_frame_size - sizeof(*slot));
	}
	l->looked = (uint32_t)ep.packet[i].count.rx_frames;
}

static void note_filter(uint32_t i)
{
	const struct fuzz_socket *s = fuzz_socket_of(ep.packet[i].fd);

	if (s->attached == line[i].attached)
		return;
	line[i].attached = s->attached;
	line[i].watch = true;
	line[i].alives = ep.watch.n;
	memcpy(line[i].alive, ep.watch.alive, sizeof(line[i].alive));
}

/* All that came is seen. */
static void rounds(void)
{
	uint32_t i;
	bool more = true;

	while (more) {
		more = false;
		bw_ep_round(&ep);
		for (i = 0; i < (uint32_t)ep.packets; i++) {
			note_filter(i);
			look_at_slots(i);
			more |= bw_packet_ready(&ep.packet[i]);
		}
	}
	for (i = 0; i < (uint32_t)ep.packets; i++) {
		struct line *l = &line[i];

		for (; l->at < l->n; l->at++)
			if (l->f[l->at].ours)
				fuzz_bad("a frame that was not handed on");
		if (ep.packet[i].count.rx_bytes != l->bytes)
			fuzz_bad("other bytes are counted than came");
	}
}

static const struct bw_iface interface[LINKS] = {
	{.name = "one", .index = 1, .mtu = 9000, .mac = {2, 0, 0, 0, 0, 1}},
	{.name = "two", .index = 2, .mtu = 1500, .mac = {2, 0, 0, 0, 0, 1}},
};

static void open_link(uint32_t i)
{
	unsigned int before = fuzz_descriptors();
	struct bw_packet *p = &ep.packet[i];
	const char *why;

	line[i].n = line[i].at = line[i].alives = line[i].looked = line[i].base = 0;
	line[i].bytes = line[i].drops = 0;
	line[i].watch = false;
	if (bw_packet_open(p, &ep.env, &interface[i], SELF, -1, (uint8_t)i, &why)) {
		if (fuzz_descriptors() != before)
			fuzz_bad("a descriptor is left of what failed");
		return;
	}
	line[i].attached = fuzz_socket_of(p->fd)->attached;
	if (fuzz_socket_of(p->fd)->protocol != p->ethertype)
		fuzz_bad("bound to another protocol");
	ep.packets++;
}

/* As a group is left whose keeper is gone. */
static void renew(uint32_t i)
{
	struct bw_packet *p = &ep.packet[i], fresh;
	unsigned int before;
	const char *why;
	int old = -1;

	rounds();
	before = fuzz_descriptors();
	if (!bw_packet_renew(p, &ep.env, SELF, &fresh, &why)) {
		quiet = true;
		bw_ep_drain(&ep, p);
		quiet = false;
		old = bw_packet_replace(p, &fresh, &why);
	}
	if (old >= 0) {
		line[i].drops -= fuzz_socket_of(old)->drops;
		line[i].watch = false;
		line[i].alives = 0;
		line[i].base = line[i].looked = line[i].n;
		line[i].attached = fuzz_socket_of(p->fd)->attached;
		close(old);
		ep.watch.changed |= ep.watch.claim >= 0;
	}
	if (fuzz_descriptors() != before)
		fuzz_bad("a descriptor too many, or too few");
}

static void overruns(uint32_t i)
{
	struct bw_packet *p = &ep.packet[i];

	bw_packet_overruns(p);
	if (p->count.rx_overruns + fuzz_socket_of(p->fd)->drops != line[i].drops)
		fuzz_bad("other overruns are counted than there were");
}

/* Each engine's frames go to its member, and all others elsewhere. */
static void steer(void)
{
	static struct sock_filter code[BW_STEER_CODE];
	struct bw_steer of[BW_STEER_MOST];
	uint32_t most = fuzz_u8(in) % (BW_STEER_MOST + 1), otherwise = fuzz_u8(in), step, n, i;
	uint16_t engine = fuzz_u16(in);

	step = fuzz_u16(in) % 300 + 1;
	for (i = 0; i < most; i++)
		of[i] = (struct bw_steer){(uint16_t)(engine + step * i), i};
	n = bw_steer_program(code, of, most, otherwise);
	if (n > BW_STEER_CODE)
		fuzz_bad("a program beyond its longest");
	for (i = 0; i < 16; i++) {
		uint8_t how = fuzz_u8(in);
		struct bw_hdr h = {.magic = how & 1 ? how : BW_MAGIC,
				   .dst_engine = (uint16_t)(engine + step * (how >> 1))};
		uint32_t len = i ? sizeof(h) : fuzz_u8(in) % (uint32_t)sizeof(h);
		int64_t to = bpf_run(code, n, (uint8_t *)&h, len, PACKET_HOST);
		uint32_t want = otherwise;

		h.dst_engine += i & 8 ? fuzz_u8(in) : 0;
		to = bpf_run(code, n, (uint8_t *)&h, len, PACKET_HOST);
		for (uint32_t k = 0; k < most && h.magic == BW_MAGIC; k++)
			if (of[k].engine == h.dst_engine)
				want = of[k].to;
		if (to < 0 || (len == sizeof(h) && to != want))
			fuzz_bad("a frame is steered to another member");
	}
}

static void flush(uint32_t i)
{
	ep.stuck = !packet_sent_flush(i, now);
}

static void act(void)
{
	uint8_t what = fuzz_u8(in);
	uint32_t i = what >> 7 & (uint32_t)(ep.packets - 1);

	switch (what % 8) {
	case 0:
	case 1:
		for (uint32_t n = 1 + (what >> 3) % 8; n; n--)
			arrives(i);
		break;
	case 2:
		rounds();
		break;
	case 3:
		packet_sent_add(i, &ep.tx);
		break;
	case 4:
		flush(i);
		break;
	case 5:
		now += fuzz_u8(in) * 10 * BW_MS;
		loaded = what & 64;
		ep.chores_at = what & 32 ? now : BW_NEVER;
		ep.now = now;
		break;
	case 6:
		renew(i);
		break;
	default:
		if (what & 64)
			steer();
		else
			overruns(i);
	}
}

int bw_claim_name(const char *name)
{
	int fd = fuzz_fails(EADDRINUSE) ? -EADDRINUSE : fuzz_descriptor(AF_UNIX);

	return fd >= 0 && fuzz_u8(in) & 1 ? (close(fd), -EACCES) : fd;
}

void bw_claim_drain(int fd)
{
	fuzz_socket_of(fd);
}

/* Refusals were collected. */
void bw_host_transmit(struct bw_ep *e)
{
	e->given = false;
	e->stuck = !packet_sent_flush(0, now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input script = {data, data + size};
	uint8_t how;

	fuzz_script = in = &script;
	now = BW_S;
	last_len = 60;
	refused_at = arrivals = 0;
	packet_sent_begin(in, ep.packet);
	memset(&ep, 0, sizeof(ep));
	how = fuzz_u8(in);
	ep.env.ring_bytes = BW_RING_MIN << (how & 1);
	ep.env.ethertype = BW_ETHERTYPE;
	ep.env.mtu = how & 2 ? 9000 : 1500 + fuzz_u8(in);
	ep.self.engine = SELF;
	ep.self.cluster = FUZZ_CLUSTER;
	ep.now = now;
	ep.deadline = ep.board.at = ep.chores_at = BW_NEVER;
	ep.has_packet = true;
	bw_watch_init(&ep.watch);
	for (uint32_t i = 0; i < 1 + (how >> 7) && ep.packets == (int)i; i++)
		open_link(i);
	while (ep.packets && in->at < in->end)
		act();
	fuzz_script = NULL;
	if (ep.packets)
		rounds();
	while (ep.packets) {
		flush((uint32_t)ep.packets - 1);
		overruns((uint32_t)ep.packets - 1);
		bw_packet_close(&ep.packet[--ep.packets]);
	}
	bw_watch_close(&ep.watch, false);
	if (fuzz_descriptors())
		fuzz_bad("descriptors are left open");
	fuzz_descriptors_reset();
	return 0;
}
