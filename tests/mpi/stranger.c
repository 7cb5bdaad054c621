/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stranger on the segment of a running job: stranger VICTIM STRANGER INTERFACE RATE SEED sends
 * frames from the network namespace STRANGER to the interface INTERFACE of the namespace VICTIM,
 * by raw frames and by UDP, up to RATE in a second, until SIGTERM; then it says how many, and how
 * often it was challenged and answered. It listens there for frames to be repeated and changed, and
 * is silent while nobody speaks.
 *
 * It names the handles and tokens that it has seen in half of its frames: they come from another
 * address than the peer's. Left out is what the protocol cannot tell from the peer's own frames
 * without keys: a HELLO with the peer's identity, handle and token moves the conversation to its
 * sender. Nor is any frame sent in the peer's Ethernet address: the switch would learn that the
 * peer is here, and what the victim sends to it would be lost until the peer speaks again,
 * whichever protocol it speaks.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "protocol.h"
#include "seal.h"
#include "segment.h"
#include "wire.h"

#define CALLERS 64	/* whose HELLOs are right, by each link */
#define NAP_NS	1000000 /* while nobody speaks */

/* Frames of one kind that are sent by one call. */
struct burst {
	uint8_t frame[BURST][14 + FRAME_BYTES];
	struct iovec part[BURST];
	struct mmsghdr message[BURST];
	unsigned int n;
	uint64_t sent;
};

static struct ear ear;
static int mouth, udp_mouth, ifindex;
static uint8_t own_mac[6];
static struct burst raw, udp;
static uint64_t cookie[2][CALLERS]; /* by raw frames, by UDP; 0: none was sent to it yet */
static uint64_t challenges, answers;
static volatile sig_atomic_t told_to_end;

static void end_now(int signal)
{
	(void)signal;
	told_to_end = 1;
}

/* ---- what is heard ---- */

/* What is answered. A caller's nonce says who it is. */
static void take_answer(bool by_udp, const uint8_t *bytes, size_t n)
{
	struct bw_challenge c;
	struct bw_hdr h;

	if (n < sizeof(h) + sizeof(c))
		return;
	memcpy(&h, bytes, sizeof(h));
	memcpy(&c, bytes + sizeof(h), sizeof(c));
	answers += h.type == BW_FRAME_HELLO && (h.flags & BW_HDR_ANSWER);
	if (h.type != BW_FRAME_CHALLENGE || h.src_engine != ear.engine || c.nonce - 1 >= CALLERS)
		return;
	cookie[by_udp][c.nonce - 1] = c.cookie;
	challenges++;
}

static void take_answers(void)
{
	static uint8_t frame[FRAME_BYTES];
	ssize_t n;

	for (int i = 0; i < BURST && (n = recv(mouth, frame, sizeof(frame), MSG_DONTWAIT)) > 0; i++)
		if (n > 14)
			take_answer(false, frame + 14, (size_t)n - 14);
	for (int i = 0; i < BURST && (n = recv(udp_mouth, frame, sizeof(frame), MSG_DONTWAIT)) > 0;
	     i++)
		take_answer(true, frame, (size_t)n);
}

/* ---- what is said ---- */

static void prepare(struct burst *b, size_t head, void *to, socklen_t to_len)
{
	for (int i = 0; i < BURST; i++) {
		memcpy(b->frame[i], ear.victim_mac, 6);
		memcpy(b->frame[i] + 6, own_mac, 6);
		b->frame[i][12] = BW_ETHERTYPE >> 8;
		b->frame[i][13] = BW_ETHERTYPE & 0xFF;
		b->part[i].iov_base = b->frame[i] + 14 - head;
		b->message[i].msg_hdr = (struct msghdr){.msg_name = to,
							.msg_namelen = to_len,
							.msg_iov = &b->part[i],
							.msg_iovlen = 1};
	}
}

/* What the kernel has no room for is left out, and what is too long for a datagram. */
static void say(struct burst *b, int fd)
{
	unsigned int from = 0;

	while (from < b->n) {
		int n = sendmmsg(fd, b->message + from, b->n - from, 0);

		if (n < 0 && errno != ENOBUFS && errno != EMSGSIZE && errno != EINTR)
			segment_fail("send");
		from += n > 0 ? (unsigned int)n : 1;
		b->sent += n > 0 ? (unsigned int)n : 0;
	}
	b->n = 0;
}

static void name_fill(uint8_t *name)
{
	static const char evil[] = "\033[2Jstranger\007\r\n";

	memset(name, 'x', BW_NAME_MAX);
	memcpy(name, evil, sizeof(evil) - 1);
}

/* A right HELLO to the victim; half of them have the cookie that was sent to this address. */
static void call(struct bw_hdr *h, struct bw_hello *body, bool by_udp)
{
	uint32_t caller = draw(CALLERS);

	h->src_engine = body->engine = (uint16_t)(0x8000 + caller);
	body->node = 1 + caller / 2;
	body->inc = 1 + caller;
	body->conn = 1 + draw(100);
	body->token = draw(100);
	body->nonce = 1 + caller;
	body->cookie = draw(2) ? cookie[by_udp][caller] : 0;
}

/* HELLO of somebody who does not exist: as if he did, or to an engine number that is hardly in use,
 * or to the victim's with something wrong. */
static uint32_t hello(uint8_t *bytes, bool by_udp)
{
	const struct bw_hdr *seen = (const void *)ear.kept[draw(ear.kept_n)].bytes;
	struct bw_hdr h = {.magic = BW_MAGIC,
			   .version = BW_VERSION,
			   .type = BW_FRAME_HELLO,
			   .cluster = seen->cluster,
			   .dst_engine = seen->dst_engine,
			   .src_engine = (uint16_t)(0x8000 + draw(0x7FFF)),
			   .len = sizeof(struct bw_hello)};
	struct bw_hello body = {.node = 1 + draw(1000),
				.inc = 1 + draw(1000),
				.conn = draw(100),
				.version_min = BW_VERSION,
				.version_max = BW_VERSION,
				.credit = 1000,
				.charge_min = 64,
				.frame_max = 1400,
				.engine = h.src_engine};

	name_fill(body.name);
	switch (draw(8)) {
	case 0: /* an answer to nothing */
		h.flags = BW_HDR_ANSWER;
		h.conn = draw(UINT32_MAX);
		break;
	case 1:
		h.token = seen->token ^ (1 + draw(UINT32_MAX - 1));
		break;
	case 2:
		body.version_min = body.version_max = (uint8_t)(BW_VERSION + 1 + draw(100));
		break;
	case 3:
		body.target_node = 1 + draw(1000);
		break;
	case 4:
		body.inc = 0;
		break;
	case 5:
	case 6:
		call(&h, &body, by_udp);
		break;
	default:
		h.dst_engine = (uint16_t)(0x8000 + draw(0x7FFF));
		if (h.dst_engine == seen->dst_engine)
			h.dst_engine ^= 1;
	}
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), &body, sizeof(body));
	return sizeof(h) + sizeof(body);
}

/* REFUSE or BYE in the peer's name to the right engine, with the right token or another one. */
static uint32_t end(uint8_t *bytes)
{
	struct bw_refuse body = {.why = (uint8_t)(1 + draw(4)),
				 .version_min = (uint8_t)draw(3),
				 .version_max = (uint8_t)draw(3),
				 .echo_type = BW_FRAME_DATA};
	struct bw_hdr h;

	memcpy(&h, ear.kept[draw(ear.kept_n)].bytes, sizeof(h));
	body.echo_engine = h.src_engine;
	body.echo_token = draw(UINT32_MAX);
	body.echo_conn = draw(UINT32_MAX);
	name_fill(body.name);
	h.type = draw(2) ? BW_FRAME_REFUSE : BW_FRAME_BYE;
	h.pn = 0;
	h.flags = 0;
	if (h.type == BW_FRAME_REFUSE)
		h.token = 0;
	else if (draw(2))
		h.token ^= 1 + draw(UINT32_MAX - 1);
	h.len = h.type == BW_FRAME_REFUSE ? sizeof(body) : 0;
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), &body, h.len);
	return (uint32_t)sizeof(h) + h.len;
}

/* A captured frame with some bytes changed, with the right token or another one. */
static uint32_t changed(uint8_t *bytes, const struct kept *k)
{
	struct bw_hdr h;

	memcpy(bytes, k->bytes, k->len);
	for (uint32_t i = draw(8); i; i--)
		bytes[12 + draw(k->len - 12)] ^= (uint8_t)(1 + draw(255));
	memcpy(&h, k->bytes, sizeof(h));
	if (h.type == BW_FRAME_HELLO || draw(2))
		h.token ^= 1 + draw(UINT32_MAX - 1);
	memcpy(bytes + offsetof(struct bw_hdr, token), &h.token, sizeof(h.token));
	return k->len;
}

/* One more frame for the victim. */
static void add_one(void)
{
	struct burst *b = ear.victim_port && draw(2) ? &udp : &raw;
	uint8_t *bytes = b->frame[b->n] + 14;
	const struct kept *k = &ear.kept[draw(ear.kept_n)];
	const struct bw_hdr *h = (const void *)k->bytes;
	uint32_t what = draw(4), n;

	if (what == 0) {
		n = hello(bytes, b == &udp);
	} else if (what == 1) {
		n = end(bytes);
	} else if (h->type != BW_FRAME_DATA && h->type != BW_FRAME_ACK) {
		return;
	} else if (what == 2) {
		n = changed(bytes, k);
	} else {
		memcpy(bytes, k->bytes, k->len); /* once more, as it was */
		n = k->len;
	}
	if (what != 3)
		seal_frame(bytes, n);
	b->part[b->n++].iov_len = b == &raw ? 14 + n : n;
}

static void flood(uint64_t burst_ns)
{
	struct sockaddr_ll raw_to = {
		.sll_family = AF_PACKET, .sll_ifindex = ifindex, .sll_halen = 6};
	struct sockaddr_in udp_to = {.sin_family = AF_INET};
	uint64_t due_ns = 0, now;

	prepare(&raw, 14, &raw_to, sizeof(raw_to));
	prepare(&udp, 0, &udp_to, sizeof(udp_to));
	while (!told_to_end) {
		if (ear_listen(&ear))
			memset(cookie, 0, sizeof(cookie));
		take_answers();
		now = now_ns();
		if (!ear_hears(&ear)) {
			sleep_until(now + NAP_NS);
			continue;
		}
		for (int i = 0; i < BURST; i++)
			add_one();
		udp_to.sin_port = ear.victim_port;
		udp_to.sin_addr.s_addr = ear.victim_ip;
		say(&raw, mouth);
		say(&udp, udp_mouth);
		due_ns = due_ns + burst_ns > now ? due_ns + burst_ns
						 : now; /* nothing is made up for */
		sleep_until(due_ns);
	}
}

int main(int argc, char **argv)
{
	struct sigaction on_end = {.sa_handler = end_now};
	uint64_t rate;

	if (argc != 6)
		return 2;
	rate = strtoull(argv[4], NULL, 10);
	segment_seed = strtoull(argv[5], NULL, 10) * 0x9E3779B97F4A7C15ull | 1;
	if (!rate)
		return 2;
	sigaction(SIGTERM, &on_end, NULL);
	prctl(PR_SET_TIMERSLACK, 1);
	enter(argv[1]);
	ear.fd = packet(argv[3], 0x0003 /* ETH_P_ALL */, ear.victim_mac, &ifindex);
	enter(argv[2]);
	mouth = packet(argv[3], BW_ETHERTYPE, own_mac, &ifindex);
	udp_mouth = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ear_deaf_to(&ear, own_mac);
	flood(BURST * 1000000000ull / rate);
	printf("%llu raw, %llu udp, %llu challenges, %llu answers\n", (unsigned long long)raw.sent,
	       (unsigned long long)udp.sent, (unsigned long long)challenges,
	       (unsigned long long)answers);
	return 0;
}
