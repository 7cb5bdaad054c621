/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs of the two nodes with sockets of the module; see port_world.h. */
#include "port_world.h"

#include <stdlib.h>

/* ---- sockets ---- */

static short type_of(void)
{
	return world.kind == PORT_MESSAGES_OF ? SOCK_RDM
	       : world.kind == PORT_PACKETS   ? SOCK_SEQPACKET
					      : SOCK_STREAM;
}

static bool open_sock(struct port_side *s, struct port_sock *p)
{
	*p = (struct port_sock){.sock.type = type_of()};
	if (!fake_family->create(&s->net, &p->sock, 0, 0))
		return true;
	p->sock.sk = NULL;
	return false;
}

void port_socks_open(struct port_side *s, uint16_t number)
{
	struct port_sock *p = &s->socks[0];
	struct sockaddr_beowire self = {.sbw_family = AF_BEOWIRE, .sbw_port = number};

	if (!open_sock(s, p) ||
	    p->sock.ops->bind(&p->sock, (struct sockaddr_unsized *)&self, sizeof(self)))
		fuzz_bad("no socket");
	s->port = bwk_sk(p->sock.sk)->port;
}

static int connect_to(struct port_side *s, struct port_sock *p, int flags)
{
	struct sockaddr_beowire to = port_other(s)->addr;

	return p->sock.ops->connect(&p->sock, (struct sockaddr_unsized *)&to, sizeof(to), flags);
}

static bool accept_at(struct port_side *s)
{
	struct proto_accept_arg arg = {.flags = O_NONBLOCK};
	struct port_sock *to = NULL;
	int i;

	for (i = 1; i < PORT_SOCKS && !to; i++)
		if (!s->socks[i].sock.sk)
			to = &s->socks[i];
	if (!to)
		return false;
	*to = (struct port_sock){.sock.type = type_of(), .sock.ops = s->socks[0].sock.ops};
	return !s->socks[0].sock.ops->accept(&s->socks[0].sock, &to->sock, &arg);
}

void port_socks_meet(bool swap)
{
	struct port_side *s = &world.side[swap ? THEM : US], *listener = port_other(s);
	struct port_sock *p = &s->socks[0];

	if (world.kind == PORT_MESSAGES_OF) {
		p->known = listener->socks[0].known = true;
		return;
	}
	if (p->sock.ops->listen(&listener->socks[0].sock, 4))
		fuzz_bad("a socket that does not listen");
	if (connect_to(s, p, 0) || !accept_at(listener))
		fuzz_bad("no connection where nothing is amiss");
	p->known = listener->socks[1].known = true;
}

static void close_sock(struct port_sock *p)
{
	const struct proto_ops *ops = p->sock.ops;

	if (p->sock.sk && ops->release(&p->sock))
		fuzz_bad("a socket that cannot be closed");
	p->sock.sk = NULL;
	p->known = false;
}

void port_socks_close(struct port_side *s)
{
	int i;

	for (i = PORT_SOCKS - 1; i >= 0; i--)
		close_sock(&s->socks[i]);
}

/* ---- sending ---- */

/* Whom this one talks with, if both know what they say; NULL. */
static struct port_sock *partner(const struct port_side *s)
{
	struct port_side *other = port_other(s);
	int i;

	for (i = 0; i < PORT_SOCKS; i++)
		if (other->socks[i].known)
			return &other->socks[i];
	return NULL;
}

static void fill(uint8_t *to, uint64_t seed, uint64_t from, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		to[i] = port_byte(seed, from + i);
}

static void send_by(struct port_side *s, struct port_sock *p, uint32_t len, uint8_t how)
{
	bool stream = world.kind == PORT_STREAM, messages = world.kind == PORT_MESSAGES_OF;
	struct beowire_info info = {.tag = p->sent};
	struct {
		struct cmsghdr head;
		struct beowire_info info;
	} control = {{sizeof(control), SOL_BEOWIRE, BEOWIRE_INFO}, info};
	struct sockaddr_beowire to = port_other(s)->addr;
	bool async = messages && how & 4 && p->sent < PORT_PIECES / 2;
	uint32_t piece = async ? (uint32_t)p->sent : PORT_PIECES / 2 + p->sent % (PORT_PIECES / 2);
	uint8_t *at = port_memory + (piece + (s == &world.side[US] ? 0 : PORT_PIECES)) * PORT_PIECE;
	struct msghdr m = {.msg_flags = how & 1 ? MSG_DONTWAIT : 0};
	int got;

	if (!p->sock.sk || (!stream && p->sent >= PORT_MESSAGES))
		return;
	at += how % 4 * 8;
	len = min(len, PORT_PIECE - 24);
	fill(at, stream ? 5 : p->sent, stream ? p->sent : 0, len);
	m.msg_flags |= how & 8 ? MSG_MORE : 0;
	m.msg_iter = (struct iov_iter){at, 0, len};
	control.info.flags = async ? BEOWIRE_SEND_ASYNC : 0;
	control.info.flags |= how & 2 ? BEOWIRE_SEND_LONG : 0;
	control.info.cookie = async ? p->sent + 1 : 0;
	if (messages) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		m.msg_name = &to;
		m.msg_namelen = sizeof(to);
		p->length[p->sent] = len;
	} else if (!stream) {
		p->length[p->sent] = len;
	}
	got = p->sock.ops->sendmsg(&p->sock, &m, len);
	if (got > (int)len)
		fuzz_bad("more was sent than there is");
	if (stream && got > 0)
		p->sent += (uint32_t)got;
	else if (!stream && (got >= 0 || messages))
		p->sent++;
	if (got < 0 && got != -EAGAIN)
		p->unsure = true;
}

/* ---- receiving ---- */

static void check_stream(struct port_sock *p, const struct port_sock *from, const uint8_t *bytes,
			 uint32_t n, bool peek)
{
	uint32_t i;

	if (!from->unsure && p->got + n > from->sent)
		fuzz_bad("more bytes than were sent");
	for (i = 0; i < n; i++)
		if (bytes[i] != port_byte(5, p->got + i))
			fuzz_bad("other bytes than were sent");
	if (!peek)
		p->got += n;
}

/* A message that nobody has got before: its number, told by `tag` where that is known. */
static void check_message(struct port_sock *p, const struct port_sock *from, const uint8_t *bytes,
			  uint32_t n, uint32_t whole, bool peek)
{
	uint64_t at = p->got;
	uint32_t i;

	for (; at < from->sent; at++) {
		for (i = 0; i < n && bytes[i] == port_byte(at, i); i++)
			;
		if (i == n && from->length[at] >= n && (!whole || from->length[at] == whole))
			break;
		if (world.kind == PORT_PACKETS && !from->unsure)
			fuzz_bad("another message than was sent");
	}
	if (at >= from->sent && !from->unsure)
		fuzz_bad("a message that was not sent");
	if (!peek)
		p->got = at + 1;
}

static uint8_t received[PORT_PIECE];

static int recv_by(struct port_side *s, struct port_sock *p, uint32_t len, uint8_t how)
{
	const struct port_sock *from = partner(s);
	struct beowire_info info = {.event = BEOWIRE_MESSAGE};
	struct sockaddr_beowire name;
	struct msghdr m = {.msg_name = &name, .msg_control = &info, .msg_controllen = sizeof(info)};
	int flags = how & 1 ? MSG_DONTWAIT : 0, got;
	bool peek = how & 2;

	if (!p->sock.sk)
		return -EBADF;
	flags |= peek ? MSG_PEEK : 0;
	flags |= how & 4 ? MSG_WAITALL : 0;
	flags |= how & 8 ? MSG_TRUNC : 0;
	m.msg_iter = (struct iov_iter){received, 0, min(len, (uint32_t)sizeof(received))};
	len = (uint32_t)m.msg_iter.count;
	got = p->sock.ops->recvmsg(&p->sock, &m, len, flags);
	if (got < 0 || !world.plain || !p->known || !from || from->unsure)
		return got;
	if (world.kind == PORT_STREAM)
		check_stream(p, from, received, (uint32_t)got, peek);
	else if (bwk_sk(p->sock.sk)->info_wanted)
		from = NULL; /* it is told by events, which are not followed here */
	else if (m.msg_flags & MSG_EOR || p->sock.type == SOCK_RDM)
		check_message(p, from, received, len - (uint32_t)m.msg_iter.count,
			      how & 8 ? (uint32_t)got : 0, peek);
	if (!from)
		p->known = false;
	return got;
}

void port_socks_drain(struct port_side *s)
{
	int i;

	for (i = 0; i < PORT_SOCKS; i++)
		while (s->socks[i].sock.sk && recv_by(s, &s->socks[i], 40000, 1) > 0)
			;
}

/* ---- the rest ---- */

static void set(struct port_sock *p, uint8_t what, uint8_t arg)
{
	struct sock *sk = p->sock.sk;
	struct bwk_sock *bs = bwk_sk(sk);

	switch (what % 8) {
	case 0:
		bs->info_wanted = sk->sk_type == SOCK_RDM && arg & 1;
		break;
	case 1:
		sk->sk_rcvbuf = 2304 + arg * 256;
		break;
	case 2:
		sk->sk_sndbuf = 4608 + arg * 512;
		break;
	case 3:
		bs->eager_max = arg * 256u;
		break;
	case 4:
		bs->copy_max = arg * 256u;
		break;
	case 5:
		sk->linger = arg & 1;
		sk->sk_lingertime = arg >> 1;
		break;
	case 6:
		sk->sk_rcvtimeo = sk->sk_sndtimeo = arg & 1 ? MAX_SCHEDULE_TIMEOUT : arg;
		break;
	default:
		fake_lockable = arg;
	}
}

/* Calls that sockets for messages have alone. */
static void talk(struct port_sock *p, uint8_t what, uint8_t arg)
{
	struct bwk_sock *bs = bwk_sk(p->sock.sk);
	struct beowire_watch watch = {.peer = 1 + (what & 3), .on = arg & 1};
	struct beowire_pull pull = {.key = arg,
				    .buf = (uintptr_t)received,
				    .len = arg * 64u,
				    .cookie = what & 4 ? 77 : 0,
				    .peer = watch.peer,
				    .flags = what & 8 ? BEOWIRE_PULL_MEMORY : 0};

	if (p->sock.type != SOCK_RDM)
		return;
	switch (what >> 4 & 7) {
	case 0:
		bwk_msg_watch(bs, &watch);
		break;
	case 1:
		bwk_msg_need(bs, &watch);
		break;
	case 2:
		bwk_msg_pressure(bs, arg & 1);
		break;
	case 3:
		bwk_msg_cancel(bs, arg);
		break;
	case 4:
		bwk_msg_shutdown(&p->sock, arg % 3);
		break;
	default:
		bwk_msg_pull(bs, &pull);
	}
}

void port_socks_call(struct port_side *s, struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in), arg = fuzz_u8(in), slot = what >> 6;
	struct port_sock *p = &s->socks[slot];

	port_patience(6);
	switch (what % 16) {
	case 0:
	case 1:
		send_by(s, p, arg * 8u, what >> 2);
		break;
	case 2:
	case 3:
	case 4:
		send_by(s, p, arg * 250u, fuzz_u8(in));
		break;
	case 5:
	case 6:
	case 7:
		recv_by(s, p, arg * 200u, fuzz_u8(in));
		break;
	case 8:
		if (world.kind != PORT_MESSAGES_OF)
			accept_at(s);
		break;
	case 9:
		if (p->sock.sk && p->sock.ops->shutdown)
			p->sock.ops->shutdown(&p->sock, arg % 3);
		break;
	case 10:
		if (slot)
			close_sock(p);
		break;
	case 11:
		if (slot && !p->sock.sk && open_sock(s, p) && world.kind == PORT_MESSAGES_OF)
			port_other(s)->socks[0].known = false; /* it hears of two */
		if (p->sock.sk && world.kind != PORT_MESSAGES_OF)
			connect_to(s, p, arg & 1 ? O_NONBLOCK : 0);
		break;
	case 12:
	case 13:
		if (p->sock.sk)
			set(p, what >> 4 ^ arg >> 5, arg);
		break;
	case 14:
		if (p->sock.sk)
			talk(p, fuzz_u8(in), arg);
		break;
	default:
		if (p->sock.sk && p->sock.ops->poll)
			p->sock.ops->poll(NULL, &p->sock, NULL);
		if (arg == 0xFF)
			port_say(s, BW_OP_DISCONNECT, what & 16);
		if (world.kind != PORT_MESSAGES_OF && arg > 0xF0)
			p->sock.ops ? p->sock.ops->listen(&s->socks[0].sock, arg & 3) : 0;
	}
}
