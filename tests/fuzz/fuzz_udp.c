/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What comes by UDP, of any content: datagrams that the kernel has joined, which are cut into
 * frames, and datagrams of ours that met a closed port, of which the host makes refusals. Frames
 * are the datagram, in order and without a byte more or less; a refusal repeats what it refuses,
 * is no longer than that, and ends nothing that ends something itself.
 */
#include <errno.h>
#include <time.h> /* linux/errqueue.h needs it */
#include <linux/errqueue.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "checksum.h"
#include "fuzz.h"
#include "keyed.h"
#include "link/udp/impl.h"
#include "refuse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DATAGRAMS = BW_UDP_FRAMES };

static struct fuzz_input *in;
static uint8_t *came[DATAGRAMS]; /* what the datagrams of this look held */
static uint32_t lens[DATAGRAMS], plain;
static uint8_t met[4096]; /* the datagram of ours that met a closed port */
static uint32_t met_len;

/* Some bytes of the script, often with frames' headers among them that say where they end. */
static uint32_t datagram(uint8_t *to, uint32_t most)
{
	uint32_t frames = fuzz_u8(in) % 8, len = 0, i;

	for (i = 0; i < frames; i++) {
		uint8_t how = fuzz_u8(in);
		uint32_t body = fuzz_u16(in) >> (how & 7), given = body;
		const uint8_t *bytes = fuzz_bytes(in, &given);
		struct bw_hdr h = {.magic = how & 8 ? BW_MAGIC : how, .len = (uint16_t)body};

		if (how & 16)
			h.len = fuzz_u16(in);
		if (len + sizeof(h) + body > most)
			break;
		memcpy(to + len, &h, how & 32 ? how >> 6 : sizeof(h));
		len += how & 32 ? how >> 6 : (uint32_t)sizeof(h);
		memset(to + len, 0, body);
		memcpy(to + len, bytes, given);
		len += body;
	}
	return len;
}

static void arrives(unsigned int i, void *to, size_t room)
{
	came[i] = malloc(BW_UDP_ROW);
	lens[i] = datagram(came[i], (uint32_t)(room < BW_UDP_ROW ? room : BW_UDP_ROW));
	memcpy(to, came[i], lens[i]);
}

/* In place of the kernel: recvmmsg() and recvfrom() give what the script says. */
long syscall(long number, ...)
{
	struct mmsghdr *m;
	unsigned int i, n;
	va_list rest;
	void *bytes;
	size_t room;

	va_start(rest, number);
	(void)va_arg(rest, int);
	if (number == SYS_recvfrom) {
		bytes = va_arg(rest, void *);
		room = va_arg(rest, size_t);
		arrives(0, bytes, room);
		va_end(rest);
		return lens[0];
	}
	if (number != SYS_recvmmsg)
		fuzz_bad("another call than was expected");
	m = va_arg(rest, struct mmsghdr *);
	n = 1 + fuzz_u8(in) % va_arg(rest, unsigned int);
	va_end(rest);
	for (i = 0; i < n; i++) {
		struct cmsghdr *c = m[i].msg_hdr.msg_control;

		arrives(i, m[i].msg_hdr.msg_iov->iov_base, m[i].msg_hdr.msg_iov->iov_len);
		m[i].msg_len = lens[i];
		*c = (struct cmsghdr){CMSG_LEN(1), IPPROTO_IP, IP_TOS};
		*CMSG_DATA(c) = fuzz_u8(in);
		m[i].msg_hdr.msg_controllen = CMSG_SPACE(1);
		((struct sockaddr *)m[i].msg_hdr.msg_name)->sa_family = AF_INET;
	}
	return n;
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	struct sock_extended_err *error;
	struct cmsghdr *c = m->msg_control;
	size_t n = m->msg_iov->iov_len;

	if (!(flags & MSG_ERRQUEUE))
		fuzz_bad("not the error queue");
	if (in->at >= in->end) {
		errno = EAGAIN;
		return -1;
	}
	met_len = datagram(met, sizeof(met));
	n = met_len < n ? met_len : n;
	memcpy(m->msg_iov->iov_base, met, n);
	*c = (struct cmsghdr){CMSG_LEN(sizeof(*error)), IPPROTO_IP, IP_RECVERR};
	error = (struct sock_extended_err *)CMSG_DATA(c);
	memset(error, 0, sizeof(*error));
	error->ee_errno = fuzz_u8(in) & 1 ? ECONNREFUSED : EHOSTUNREACH;
	m->msg_controllen = CMSG_SPACE(sizeof(*error));
	((struct sockaddr *)m->msg_name)->sa_family = AF_INET;
	return (ssize_t)n;
}

int bw_fail(const char **why, int error, const char *format, ...)
{
	return error;
}

/* There is one socket for all, and one for a peer. */
int bw_udp_socket_open(struct bw_udp *u, const struct bw_env *env, uint16_t engine,
		       const char **why)
{
	u->sockets = 2;
	u->joined = true;
	return 0;
}

void bw_udp_socket_cuts(struct bw_udp *u)
{
}

int bw_udp_socket_connect(struct bw_udp *u, const struct bw_link_addr *who)
{
	return -ENOMEM;
}

void bw_udp_socket_close(struct bw_udp *u, int i)
{
	fuzz_bad("a socket is closed");
}

static void expect_frame(const struct bw_rx_frame *f, uint32_t *d, uint32_t *at)
{
	if (*at + f->len > lens[*d] || f->head_len != f->len)
		fuzz_bad("more than the datagram had");
	if (!f->len && lens[*d])
		fuzz_bad("a frame of nothing");
	if ((uintptr_t)f->head % 8)
		fuzz_bad("a frame that lies askew");
	if (memcmp(f->head, came[*d] + *at, f->len))
		fuzz_bad("other bytes");
	*at += f->len;
	if (*at < lens[*d])
		return;
	*at = 0;
	(*d)++;
}

static void look(struct bw_udp *u)
{
	struct bw_rx_frame f[8];
	uint32_t d = 0, at = 0;
	int n = bw_udp_look(u, fuzz_u8(in) & 1), many = 1 + fuzz_u8(in) % 8, got, i;

	if (n < 1)
		fuzz_bad("nothing came");
	while ((got = bw_udp_frames(u, f, many)))
		for (i = 0; i < got; i++)
			expect_frame(&f[i], &d, &at);
	if (d != (uint32_t)n || at)
		fuzz_bad("frames that are not the whole");
	while (n)
		free(came[--n]);
}

/* The refusal of frame `h`, of so many bytes, by whom it may be. */
static void expect_refusal(const struct bw_refuse_frame *r, const uint8_t *frame, uint32_t whole)
{
	struct bw_hdr h;

	memcpy(&h, frame, sizeof(h));
	if (whole < sizeof(*r))
		fuzz_bad("a refusal that is longer than what it refuses");
	if (h.magic != BW_MAGIC || h.cluster != FUZZ_CLUSTER || h.type == BW_FRAME_REFUSE ||
	    h.type == BW_FRAME_BYE || h.type == BW_FRAME_CHALLENGE)
		fuzz_bad("a refusal of what must not be refused");
	if (r->hdr.dst_engine != h.src_engine || r->hdr.src_engine != h.dst_engine ||
	    r->body.echo_token != h.token || r->body.echo_type != h.type)
		fuzz_bad("a refusal of something else");
	if (memcmp(r->body.name, "node", 5) && r->body.name[0])
		fuzz_bad("another name");
}

static void refuse(void)
{
	static const uint8_t key[16] = "whose it is";
	const struct bw_refuser we = {
		.cluster = FUZZ_CLUSTER,
		.name = "node",
		.key = fuzz_u8(in) & 1 ? key : NULL,
		.crc32c = bw_checksum,
		.siphash = bw_siphash,
	};
	uint8_t how = fuzz_u8(in);
	uint32_t whole, len = fuzz_u16(in) % 512, given = len;
	const uint8_t *bytes = fuzz_bytes(in, &given);
	uint8_t *frame = malloc(len + !len);
	struct bw_refuse_frame r;
	struct bw_hdr h;

	memset(frame, 0, len);
	memcpy(frame, bytes, given);
	if (len >= sizeof(h)) {
		memcpy(&h, frame, sizeof(h));
		h.magic = how & 1 ? h.magic : BW_MAGIC;
		h.cluster = how & 2 ? h.cluster : FUZZ_CLUSTER;
		h.version = how & 4 ? h.version : BW_VERSION;
		h.type = how & 8 ? h.type % 16 : BW_FRAME_HELLO;
		memcpy(frame, &h, sizeof(h));
	}
	whole = len + fuzz_u8(in);
	if (bw_refuse_build(&r, &we, frame, len, whole))
		expect_refusal(&r, frame, whole);
	free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct bw_iface iface = {.mtu = 9000};
	static const union bw_name name = {.any.sa_family = AF_INET};
	static const struct bw_env env = {.mtu = 0};
	struct fuzz_input script = {data, data + size};
	static struct bw_udp u;
	struct bw_refuse_frame r;
	struct bw_rx_frame f;
	const char *why;

	in = &script;
	if (!u.frames && bw_udp_open(&u, &env, &iface, &name, 1, &why))
		fuzz_bad("no memory");
	u.socket[1].told = 0;
	while (in->at < in->end) {
		switch (fuzz_u8(in) % 3) {
		case 0:
			look(&u);
			break;
		case 1:
			refuse();
			break;
		default:
			if (bw_udp_refusal(&u, FUZZ_CLUSTER, &r, &f))
				expect_refusal(&r, met, UINT32_MAX);
		}
	}
	return 0;
}
