/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See socket.h. */
#include "kernel.h"

unsigned long fake_lockable;

static void quiet(struct sock *sk)
{
	if (sk->refs <= 0)
		fuzz_bad("a socket is told something that has gone");
}

struct sock *sk_alloc(struct net *net, int family, gfp_t gfp, struct proto *proto, int kern)
{
	struct sock *sk = fake_alloc(proto->obj_size, gfp, true);

	if (!sk)
		return NULL;
	sk->net = net;
	sk->refs = 1;
	sk->sk_prot = proto;
	sk->sk_family = family;
	return sk;
}

void sock_init_data(struct socket *sock, struct sock *sk)
{
	skb_queue_head_init(&sk->sk_receive_queue);
	sk->sk_state = TCP_CLOSE;
	sk->sk_rcvbuf = sk->sk_sndbuf = 212992;
	sk->sk_rcvtimeo = sk->sk_sndtimeo = MAX_SCHEDULE_TIMEOUT;
	sk->sk_state_change = sk->sk_write_space = sk->sk_data_ready = quiet;
	if (sock) {
		sk->sk_type = sock->type;
		sock->sk = sk;
	}
}

void fake_sock_end(struct sock *sk)
{
	if (sk->sk_destruct)
		sk->sk_destruct(sk);
	if (sk->sk_rmem_alloc.n)
		fuzz_bad("a socket is charged for what is not there");
	fake_free(sk);
}

int skb_copy_datagram_msg(const struct sk_buff *skb, u32 off, struct msghdr *m, u32 n)
{
	u8 *bytes = malloc(n + 1);
	int error = skb_copy_bits(skb, off, bytes, n);

	if (!error && copy_to_iter(bytes, n, &m->msg_iter) != n)
		error = -EFAULT;
	free(bytes);
	return error;
}

void fake_pages_put(struct page **pages, u32 n, bool dirty)
{
	if (dirty)
		fake_sleeps();
	for (u32 i = 0; i < n; i++)
		put_page(pages[i]);
}
