/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections, as conn.c, conn_call.c and conn_data.c share them. */
#ifndef BWK_CONN_H
#define BWK_CONN_H

#include "sock.h"

extern const struct bwk_port_ops bwk_conn_port_ops;

/* sk_state, for who does not hold the lock: what was written before it is seen as well. */
static inline int bwk_conn_state(const struct sock *sk)
{
	return smp_load_acquire(&sk->sk_state);
}

/* Lock held. */
static inline void bwk_conn_set_state(struct sock *sk, int state)
{
	smp_store_release(&sk->sk_state, state);
}

/* What REQUEST and ACCEPT say of the type of socket. */
u64 bwk_conn_kind(const struct sock *sk);
/* A word about the connection, without bytes. `b`: its acknowledgement is wanted. Lock held. 0,
 * -ENOTCONN, or as bwk_port_submit(). */
int bwk_conn_say(struct bwk_port *port, const struct bwk_peer *peer, u8 code, u64 tag,
		 struct bwk_buf *b);
/* There is no connection for who asks; as it is told once, one that asks again is left. Lock
 * held. */
void bwk_conn_refuse(struct bwk_port *port, struct bwk_peer *peer);

/* The connection, or the attempt, is no more, and programs are told this error, unless they were
 * told one before. Lock held. */
void bwk_conn_fail(struct bwk_sock *bs, int error);
/* Forget a peer that no socket speaks with any more, once both sides have all they are to have.
 * Lock held. */
void bwk_conn_part(struct bwk_port *port, const struct bwk_peer *peer);

/* conn_data.c */
bool bwk_conn_readable(const struct sock *sk);
int bwk_conn_sendmsg(struct socket *sock, struct msghdr *m, size_t len);
int bwk_conn_recvmsg(struct socket *sock, struct msghdr *m, size_t len, int flags);

#endif
