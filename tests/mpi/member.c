/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hostile engine on the segment of a running job, whose ranks have the same cluster key, if any:
 * member VICTIM OWN INTERFACE RATE SEED raw|udp [key=FILE] [encrypt] [told=FILE]. From the network
 * namespace OWN it makes contact with the engine that is heard of at the interface INTERFACE of the
 * namespace VICTIM and sends it messages of random bytes, or of those that were captured, with
 * codes of the provider, asks for memory, and says each of its frames as it is, once more, and
 * changed, with the checksums, tags and seals that a receiver wants to see; up to RATE in a second,
 * until SIGTERM. Then it says how many, how many of these were changed, and how often it was made a
 * peer.
 *
 * With `told` it tells the victim's program its address by this file, to be named by it. Then it
 * has a habit for a second each: its engines do all of the above, or they send messages alone, or
 * requests of the right form to write memory, whose frames are repeated and not changed, so that
 * they are understood. They do not hear that their victim wants less.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../common/key.h"
#include "addr.h"
#include "codes.h"
#include "env.h"
#include "keyed.h"
#include "peer.h"
#include "plain.h"
#include "segment.h"

#define MTU	   1400
#define PAST	   64	     /* frames of the conversation to be repeated and changed */
#define AHEAD	   256	     /* packet numbers */
#define NAP_NS	   1000000   /* while nobody speaks */
#define LIFE_NS	   300000000 /* of an engine */
#define HABIT_NS   1000000000
#define MESSAGE	   65536
#define SENDS	   32 /* under way at a time */
#define GROWN	   256
#define SEGMENTS   4 /* of a request */
#define ETHER_HEAD 14

static const struct bw_protocol *const protocol = &bw_reliable;
static struct ear ear;
static struct bw_config cfg;
static struct bw_host_ops ops;
static void *engine, *grown[GROWN];
static uint32_t grown_n, peer, sends;
static bool down, making; /* `making`: the engine makes a frame */
static uint8_t tag_key[BW_KEYED_SIP_KEY];
static struct plain_buffer *message;
static int mouth, ifindex;
static bool by_udp;
static uint8_t own_mac[6];
/* Not sealed, and as they were sent. */
static struct past {
	_Alignas(8) uint8_t plain[FRAME_BYTES], whole[FRAME_BYTES];
	uint32_t len;
	struct bw_seal_by by;
	uint8_t seal_key[BW_SEAL_KEY];
} past[PAST];
static uint32_t past_n, past_next;
static uint32_t top; /* packet number, changed ones too */
static uint64_t sent, changed, made_peer;
static enum habit { ANYTHING, MESSAGES, REQUESTS, HABITS } habit;
static const char *told; /* the file with its address; or NULL */
static struct bw_addr_fields told_addr;
static volatile sig_atomic_t told_to_end;

static void end_now(int signal)
{
	(void)signal;
	told_to_end = 1;
}

/* ---- a frame ---- */

/* The key of the frame's tag. */
static uint64_t tag(const uint8_t key[BW_KEYED_SIP_KEY], const void *p, size_t n)
{
	if (making)
		memcpy(tag_key, key, sizeof(tag_key));
	return bw_siphash(key, p, n);
}

static int unseal(void *host, const struct bw_rx_frame *f, uint32_t end,
		  const struct bw_seal_by *by)
{
	(void)host;
	return bw_open_frame((void *)(uintptr_t)f->head, end, by);
}

/* What checksum and tag cover, as a receiver will see it. Returns its length. */
static uint32_t covered(uint8_t *out, const uint8_t *frame, uint32_t len, bool sealed)
{
	uint32_t from = 0, n = 0, at = BW_DATA_HEAD;
	bool data = frame[offsetof(struct bw_hdr, type)] == BW_FRAME_DATA;

	while (data && !sealed && at + sizeof(struct bw_part) <= len) {
		struct bw_part part;
		uint32_t pay;

		memcpy(&part, frame + at, sizeof(part));
		pay = at + (uint32_t)(part.kind == BW_PART_BULK || part.kind == BW_PART_PAD
					      ? sizeof(struct bw_part_bulk)
					      : sizeof(struct bw_part_msg));
		if (pay + part.plen > len)
			break;
		memcpy(out + n, frame + from, pay - from);
		n += pay - from;
		from = pay + part.plen;
		at = (from + 7) & ~7u;
	}
	if (sealed && len > BW_DATA_HEAD)
		len = BW_DATA_HEAD;
	if (from < len) {
		memcpy(out + n, frame + from, len - from);
		n += len - from;
	}
	return n;
}

/* The checks of a frame of the conversation; its packet number has so many bits only. */
static void close_frame(uint8_t *frame, uint32_t len, const struct bw_seal_by *by)
{
	static _Alignas(8) uint8_t cover[FRAME_BYTES];
	struct bw_seal_by now = *by;
	struct bw_hdr h;
	uint32_t n;

	memcpy(&h, frame, sizeof(h));
	h.hcrc = 0;
	if (cfg.keyed)
		h.token = 0; /* the upper half of the packet number */
	memcpy(frame, &h, sizeof(h));
	n = covered(cover, frame, len, by->key);
	if (cfg.keyed) {
		uint64_t all = bw_siphash(tag_key, cover, n);

		h.token = (uint32_t)(all >> 32);
		h.hcrc = (uint32_t)all;
	} else {
		h.hcrc = bw_crc32c(0, cover, n);
	}
	memcpy(frame, &h, sizeof(h));
	now.pn = h.pn;
	if (by->key && len > BW_DATA_HEAD + BW_SEAL_TAG)
		bw_seal_frame(frame, len - BW_SEAL_TAG, &now);
}

static void say(const uint8_t *frame, uint32_t len)
{
	static uint8_t whole[ETHER_HEAD + FRAME_BYTES];
	struct sockaddr_ll raw_to = {
		.sll_family = AF_PACKET, .sll_ifindex = ifindex, .sll_halen = 6};
	struct sockaddr_in udp_to = {.sin_family = AF_INET,
				     .sin_port = ear.victim_port,
				     .sin_addr.s_addr = ear.victim_ip};
	ssize_t n;

	memcpy(whole, ear.victim_mac, 6);
	memcpy(whole + 6, own_mac, 6);
	whole[12] = BW_ETHERTYPE >> 8;
	whole[13] = BW_ETHERTYPE & 0xFF;
	memcpy(whole + ETHER_HEAD, frame, len);
	n = by_udp ? sendto(mouth, frame, len, 0, (struct sockaddr *)&udp_to, sizeof(udp_to))
		   : sendto(mouth, whole, ETHER_HEAD + len, 0, (struct sockaddr *)&raw_to,
			    sizeof(raw_to));
	if (n < 0 && errno != ENOBUFS && errno != EMSGSIZE && errno != EINTR && errno != EAGAIN)
		segment_fail("send");
	sent += n > 0;
}

/* A frame of the engine's in one piece, not sealed yet. */
static uint32_t whole_frame(uint8_t *out, const struct bw_tx_frame *f)
{
	uint32_t at = 0, n = 0;

	for (uint32_t i = 0; i < f->segments; i++) {
		const struct bw_tx_segment *s = &f->segment[i];

		memcpy(out + n, (const uint8_t *)f->head + at, s->head_end - at);
		n += s->head_end - at;
		if (s->buf)
			memcpy(out + n, message->bytes + s->off, s->len);
		else
			memset(out + n, 0, s->len);
		n += s->len;
		at = s->head_end;
	}
	memcpy(out + n, (const uint8_t *)f->head + at, f->head_len - at);
	n += f->head_len - at;
	if (f->seal.key)
		n += BW_SEAL_TAG;
	return n;
}

/* Its first part is of a message or pull that comes soon, or another piece of it. */
static void another_message(uint8_t *frame, uint32_t len)
{
	struct bw_part_msg m;

	if (len < BW_DATA_HEAD + sizeof(m))
		return;
	memcpy(&m, frame + BW_DATA_HEAD, sizeof(m));
	m.id += draw(64);
	if (draw(4) == 0)
		m.offset += draw(1 << draw(17));
	if (draw(4) == 0)
		m.total += draw(1 << draw(17));
	if (draw(8) == 0)
		m.status = (int32_t)draw(4) - 2;
	memcpy(frame + BW_DATA_HEAD, &m, sizeof(m));
}

/* A frame of before with another packet number and some bytes changed, right for its receiver. The
 * handle stays, or it would be nobody's. */
static void say_changed(const struct past *p)
{
	static _Alignas(8) uint8_t frame[FRAME_BYTES];
	uint32_t span = p->len - sizeof(struct bw_hdr), near = span < 128 ? span : 128;
	struct bw_hdr h;

	memcpy(frame, p->plain, p->len);
	if (draw(2))
		another_message(frame, p->len);
	for (uint32_t i = span ? draw(5) : 0; i; i--) {
		uint8_t *at = frame + sizeof(h) + draw(draw(4) ? near : span);

		*at = draw(2) ? (uint8_t)draw(256) : (uint8_t)(*at ^ 1u << draw(8));
	}
	if (draw(512)) /* else it soon says that all that comes is old */
		memcpy(frame + sizeof(h), p->plain + sizeof(h),
		       span < sizeof(struct bw_ackblk) ? span : sizeof(struct bw_ackblk));
	memcpy(&h, frame, sizeof(h));
	if (h.type == BW_FRAME_DATA)
		h.pn = draw(8) ? (top += draw(64) ? 1 : 2) : h.pn + draw(AHEAD);
	if (draw(8) == 0 && span >= sizeof(struct bw_ackblk)) /* gaps are forgotten */
		memcpy(frame + sizeof(h) + offsetof(struct bw_ackblk, floor), &top, sizeof(top));
	if (draw(64) == 0)
		h.path = (uint8_t)draw(256);
	if (draw(64) == 0)
		h.flags = (uint8_t)draw(256);
	if (draw(256) == 0)
		h.type = (uint8_t)draw(16);
	memcpy(frame, &h, sizeof(h));
	close_frame(frame, p->len, &p->by);
	say(frame, p->len);
	changed++;
}

/* A frame that the engine says now. */
static void say_own(const struct bw_tx_frame *f)
{
	struct past *p = &past[past_next % PAST];
	const struct bw_hdr *h = (const void *)f->head;
	uint8_t type = h->type;

	p->len = whole_frame(p->plain, f);
	p->by = f->seal;
	memcpy(p->whole, p->plain, p->len);
	if (f->seal.key) {
		bw_seal_frame(p->whole, p->len - BW_SEAL_TAG, &f->seal);
		memcpy(p->seal_key, f->seal.key, sizeof(p->seal_key));
		p->by.key = p->seal_key;
	}
	if (draw(16))
		say(p->whole, p->len);
	if (type != BW_FRAME_DATA && type != BW_FRAME_ACK)
		return;
	top = h->pn > top ? h->pn : top;
	past_next++;
	past_n = past_next < PAST ? past_next : PAST;
}

/* What the engine has to say, and what can be made of what it has said. */
static void speak(void)
{
	struct bw_tx_frame f;
	uint64_t until = sent + BURST;
	bool more = true;

	while (sent < until && more) {
		making = true;
		more = protocol->next_frame(engine, &f, now_ns());
		making = false;
		if (more)
			say_own(&f);
	}
	for (uint32_t i = past_n ? (habit == ANYTHING ? BURST : draw(2)) : 0; i; i--) {
		const struct past *p = &past[draw(past_n)];

		if (habit == ANYTHING && draw(8))
			say_changed(p);
		else
			say(p->whole, p->len);
	}
}

/* ---- the engine ---- */

/* Its victim's operation that this asks for ends, well or not. */
static void answer(const struct bw_event *e)
{
	static const uint8_t ends[] = {0, 0, EACCES, EAGAIN, EIO, ENOBUFS, 200};
	struct bw_op op = {.type = BW_OP_SEND, .peer = peer};

	if (e->len < sizeof(op.send.tag))
		return;
	memcpy(&op.send.tag, plain_buffer_of(e->buf)->bytes, sizeof(op.send.tag));
	op.send.code = BWF_CODE_WRITE_DONE;
	op.send.imm = ends[draw(sizeof(ends))];
	sends += !protocol->submit(engine, &op, now_ns());
}

static void take_event(const struct bw_event *e)
{
	uint8_t code = e->code & BWF_CODE_MASK;

	if (e->type == BW_EV_PEER_UP) {
		made_peer++;
	} else if (e->type == BW_EV_PEER_DOWN) {
		down = true;
	} else if (e->type == BW_EV_SENT || e->type == BW_EV_PULLED) {
		sends--;
	} else if (e->type == BW_EV_MESSAGE && e->buf) {
		if (told && (code == BWF_CODE_WRITE || code == BWF_CODE_WRITE_LONG))
			answer(e);
		free(plain_buffer_of(e->buf));
	}
}

static void hear(void)
{
	static _Alignas(8) uint8_t room[2 + ETHER_HEAD + FRAME_BYTES];
	uint32_t head = by_udp ? 0 : ETHER_HEAD;
	uint8_t *at = room + (by_udp ? 0 : 2); /* the frame lies at a multiple of 8 */
	ssize_t n;

	for (int i = 0; i < BURST; i++) {
		struct bw_rx_frame f = {.head = at + head, .from = {.len = 6}};
		struct bw_event e;

		n = recv(mouth, at, ETHER_HEAD + FRAME_BYTES, MSG_DONTWAIT);
		if (n < 0)
			return;
		if (n < (ssize_t)head)
			continue;
		memcpy(f.from.bytes, ear.victim_mac, 6); /* it speaks with nobody else */
		f.len = f.head_len = (uint32_t)n - head;
		protocol->rx(engine, &f, now_ns());
		if (told && peer && bw_peer_get(engine, peer))
			bw_peer_get(engine, peer)->pressed = false;
		while (memset(&e, 0, sizeof(e)), protocol->next_event(engine, &e))
			take_event(&e);
	}
}

/* What it began is not waited for any more. */
static void leave(void)
{
	struct bw_tx_frame f;

	protocol->close(engine, now_ns());
	while (protocol->next_frame(engine, &f, now_ns()))
		say_own(&f);
}

/* Its victim reads the address whole, or that of before. */
static void tell_address(void)
{
	char next[4096];
	struct bw_addr addr;
	FILE *f;

	told_addr.cluster = cfg.cluster;
	told_addr.node = cfg.node;
	told_addr.inc = cfg.incarnation;
	told_addr.engine = cfg.engine;
	bw_addr_pack(&told_addr, &addr);
	snprintf(next, sizeof(next), "%s.next", told);
	f = fopen(next, "w");
	if (!f || fwrite(&addr, sizeof(addr), 1, f) != 1 || fclose(f) || rename(next, told))
		segment_fail(told);
}

/* An engine that nobody has heard of yet, and its first words to the victim. */
static void engine_begin(void)
{
	struct bw_op op = {.type = BW_OP_CONNECT, .connect = {.paths = 1}};
	const struct bw_hdr *heard = (const void *)ear.kept[draw(ear.kept_n)].bytes;

	if (told && engine)
		leave();
	free(engine);
	while (grown_n)
		free(grown[--grown_n]);
	cfg.cluster = heard->cluster;
	cfg.incarnation = 1 + draw(UINT32_MAX - 1);
	cfg.engine = (uint16_t)(0x8000 + draw(0x7FFF));
	engine = aligned_alloc(64, (protocol->size(&cfg) + 63) & ~(size_t)63);
	if (!engine || protocol->open(engine, &cfg, &ops, NULL, now_ns()))
		segment_fail("engine");
	if (told)
		tell_address();
	op.connect.engine = ear.engine;
	op.connect.path[0].len = 6;
	memcpy(op.connect.path[0].bytes, ear.victim_mac, 6);
	peer = protocol->submit(engine, &op, now_ns()) ? 0 : op.peer;
	sends = past_n = past_next = top = 0;
	down = false;
}

static void message_fill(void)
{
	const struct kept *k = &ear.kept[draw(ear.kept_n)];
	uint32_t at = draw(MESSAGE - FRAME_BYTES), skip = BW_DATA_HEAD + draw(2) * 56;

	if (draw(2) && k->len > skip)
		memcpy(message->bytes + at, k->bytes + skip, k->len - skip);
	else
		for (uint32_t i = 0; i < 256; i++)
			message->bytes[at + i] = (uint8_t)(draw(2) ? draw(256) : 0);
}

/* A request to write memory, mostly of the right form, and perhaps its data. Its length. */
static uint32_t request_fill(uint8_t *to, uint8_t code)
{
	struct bwf_write_request r = {.token = draw(1 << draw(16)),
				      .data = draw(UINT32_MAX),
				      .flags = draw(4),
				      .segments = 1 + draw(draw(8) ? SEGMENTS : 2 * SEGMENTS)};
	uint32_t n = sizeof(r);

	for (uint32_t i = 0; i < r.segments; i++) {
		struct bwf_segment s = {.addr = (uint64_t)draw(UINT32_MAX) << draw(33),
					.len = draw(4) ? draw(1 << draw(13)) : 0,
					.key = (uint64_t)draw(UINT32_MAX) << draw(33) | draw(16)};

		r.len += s.len;
		memcpy(to + n, &s, sizeof(s));
		n += sizeof(s);
	}
	memcpy(to, &r, sizeof(r));
	n += code == BWF_CODE_WRITE ? (uint32_t)r.len : 0;
	return draw(8) ? n : draw(n);
}

/* What a provider's message is made of, by habit. */
static void send_fill(struct bw_op *op)
{
	static const uint8_t requests[] = {BWF_CODE_WRITE, BWF_CODE_WRITE_LONG, BWF_CODE_WRITE_LONG,
					   BWF_CODE_WRITE_DATA};

	op->send.len = draw(2) ? draw(200) : draw(8) ? draw(8000) : draw(MESSAGE);
	op->send.buf_off = draw(MESSAGE - op->send.len);
	op->send.code = (uint8_t)(draw(4) ? 1 + draw(8) : draw(256));
	op->send.tag = (uint64_t)draw(UINT32_MAX) << draw(33);
	if (habit == MESSAGES) {
		op->send.code = (uint8_t)(1 + draw(2));
	} else if (habit == REQUESTS) {
		op->send.code = requests[draw(sizeof(requests))];
		op->send.tag = draw(1 << draw(16));
		if (op->send.code != BWF_CODE_WRITE_DATA) {
			op->send.buf_off = draw(MESSAGE / 4);
			op->send.len =
				request_fill(message->bytes + op->send.buf_off, op->send.code);
		}
	}
	op->send.buf = op->send.len ? (uintptr_t)message : 0;
}

/* Something to be sent; what the engine does not take is left out. */
static void submit_one(void)
{
	struct bw_op op = {.type = BW_OP_SEND, .peer = peer};

	message_fill();
	if (habit == MESSAGES || draw(8)) {
		send_fill(&op);
		op.send.imm = (uint64_t)draw(UINT32_MAX) << draw(33);
		op.send.dst_ep = (uint16_t)(draw(8) ? 0 : draw(65535));
		op.send.src_ep = (uint16_t)(draw(8) ? 0 : draw(65535));
		op.send.urgent = draw(2);
	} else {
		struct plain_buffer *to = message;

		op.type = BW_OP_PULL;
		op.pull.key = (uint64_t)draw(UINT32_MAX) << draw(33) | draw(16);
		op.pull.off = (uint64_t)draw(UINT32_MAX) << draw(33);
		op.pull.len = draw(MESSAGE);
		op.pull.buf = (uintptr_t)to;
		op.pull.flags = draw(4);
	}
	sends += !protocol->submit(engine, &op, now_ns());
}

static void grow(void)
{
	if (!protocol->hungry(engine))
		return;
	if (grown_n == GROWN) {
		protocol->grow(engine, NULL);
		return;
	}
	grown[grown_n] = aligned_alloc(64, BW_GROW_BYTES);
	if (!grown[grown_n])
		segment_fail("memory");
	protocol->grow(engine, grown[grown_n++]);
}

static void flood(uint64_t frame_ns)
{
	uint32_t most = told ? 8 * SENDS : SENDS;
	int each = told ? 16 : 4;
	uint64_t due = 0, end = 0, habit_end = 0;

	while (!told_to_end) {
		uint64_t before = sent, now = now_ns();
		bool other = ear_listen(&ear);

		if (!ear_hears(&ear) || (by_udp && !ear.victim_port)) {
			sleep_until(now + NAP_NS);
			continue;
		}
		if (told && now > habit_end) {
			habit = (habit + 1) % HABITS;
			habit_end = end = now + HABIT_NS;
			engine_begin();
		} else if (other || down || now > end || !engine) {
			engine_begin();
			end = now + (told ? HABIT_NS : LIFE_NS);
		}
		for (int i = 0; peer && i < each && sends < most; i++)
			submit_one();
		speak();
		grow();
		hear();
		due += frame_ns * (sent - before);
		due = due > now ? due : now; /* nothing is made up for */
		sleep_until(sent > before ? due : now + NAP_NS / 10);
	}
}

/* The words that need not be there. */
static void options(char **word)
{
	char why[200];

	for (; *word; word++) {
		if (!strncmp(*word, "key=", 4)) {
			cfg.keyed = true;
			if (bw_key_load(*word + 4, cfg.key, why, sizeof(why)))
				segment_fail(why);
		} else if (!strncmp(*word, "told=", 5)) {
			told = *word + 5;
		} else if (!strcmp(*word, "encrypt")) {
			cfg.features |= BW_FEATURE_ENCRYPT;
		} else {
			segment_fail(*word);
		}
	}
}

/* Where it is to be found: by `mouth`. */
static void own_address(const char *interface)
{
	struct ifreq ifr = {0};
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);

	told_addr.links = by_udp ? BW_LINK_UDP : BW_LINK_PACKET;
	told_addr.packet_mtu = told_addr.udp_mtu = MTU;
	if (!by_udp) {
		told_addr.ethertype = BW_ETHERTYPE;
		memcpy(told_addr.mac, own_mac, sizeof(told_addr.mac));
		return;
	}
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", interface);
	if (ioctl(mouth, SIOCGIFADDR, &ifr))
		segment_fail(interface);
	memcpy(&at.sin_addr, &((struct sockaddr_in *)&ifr.ifr_addr)->sin_addr, sizeof(at.sin_addr));
	if (bind(mouth, (struct sockaddr *)&at, sizeof(at)) ||
	    getsockname(mouth, (struct sockaddr *)&at, &len))
		segment_fail("address");
	memcpy(told_addr.ip, &at.sin_addr, sizeof(told_addr.ip));
	told_addr.udp_port = ntohs(at.sin_port);
}

int main(int argc, char **argv)
{
	struct sigaction on_end = {.sa_handler = end_now};
	uint64_t rate;

	if (argc < 7)
		return 2;
	rate = strtoull(argv[4], NULL, 10);
	segment_seed = strtoull(argv[5], NULL, 10) * 0x9E3779B97F4A7C15ull | 1;
	by_udp = !strcmp(argv[6], "udp");
	if (!rate || !bw_keyed_start())
		return 2;
	cfg = (struct bw_config){.node = 1 + draw(UINT32_MAX - 1),
				 .rx_budget = 1 << 20,
				 .features = BW_FEATURE_CHECKSUM,
				 .dead_ns = 5000000000,
				 .name = "member"};
	for (int i = 0; i < 8; i++)
		cfg.link_mtu[i] = MTU;
	options(argv + 7);
	ops = plain_host_ops;
	ops.siphash = tag;
	ops.unseal = unseal;
	message = plain_buffer_new(MESSAGE);
	if (!message)
		return 1;
	memset(message->bytes, 0, MESSAGE);
	sigaction(SIGTERM, &on_end, NULL);
	prctl(PR_SET_TIMERSLACK, 1);
	enter(argv[1]);
	ear.fd = packet(argv[3], 0x0003 /* ETH_P_ALL */, ear.victim_mac, &ifindex);
	enter(argv[2]);
	mouth = packet(argv[3], BW_ETHERTYPE, own_mac, &ifindex);
	ear_deaf_to(&ear, own_mac);
	if (by_udp) {
		close(mouth);
		mouth = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	}
	own_address(argv[3]);
	flood(1000000000ull / rate);
	printf("%llu sent, %llu changed, %llu contacts\n", (unsigned long long)sent,
	       (unsigned long long)changed, (unsigned long long)made_peer);
	return 0;
}
