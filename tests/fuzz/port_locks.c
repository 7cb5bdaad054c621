/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions that are called with a port's lock held, or without it, from other files than their
 * own: the linker puts these in their place (meson.build).
 */
#include "port_world.h"

#include "../../hosts/kernel/conn.h"

#define HELD(result, name, port, parameters, arguments)                                            \
	result __real_##name parameters;                                                           \
	result __wrap_##name parameters;                                                           \
	result __wrap_##name parameters                                                            \
	{                                                                                          \
		if (!(port)->lock.held)                                                            \
			fuzz_bad(#name ": the port's lock is not held");                           \
		return __real_##name arguments;                                                    \
	}

#define FREE(result, name, port, parameters, arguments)                                            \
	result __real_##name parameters;                                                           \
	result __wrap_##name parameters;                                                           \
	result __wrap_##name parameters                                                            \
	{                                                                                          \
		if ((port)->lock.held)                                                             \
			fuzz_bad(#name ": the port's lock is held");                               \
		return __real_##name arguments;                                                    \
	}

HELD(int, bwk_port_submit, port, (struct bwk_port * port, struct bw_op *op), (port, op))
HELD(void, bwk_port_run, port, (struct bwk_port * port), (port))
HELD(bool, bwk_port_hear, port, (struct bwk_port * port), (port))
HELD(void, bwk_port_join, port, (struct bwk_port * port), (port))
HELD(u64, bwk_arrive_begin, port, (struct bwk_port * port, u32 handle, u64 n, bool next),
     (port, handle, n, next))
HELD(bool, bwk_arrive_chain, port,
     (struct bwk_port * port, struct bwk_buf *b, u64 off, struct sk_buff *skb, u32 at, u32 n),
     (port, b, off, skb, at, n))
HELD(void, bwk_arrive_end, port, (struct bwk_port * port, struct bwk_buf *b), (port, b))
HELD(int, bwk_region_find, port,
     (struct bwk_port * port, u32 handle, u64 key, u64 off, u64 n, u64 *buf),
     (port, handle, key, off, n, buf))
HELD(void, bwk_region_leave, port, (struct bwk_port * port, const struct bwk_peer *peer),
     (port, peer))
HELD(struct bwk_peer *, bwk_peer_find, port,
     (struct bwk_port * port, const struct sockaddr_beowire *addr), (port, addr))
HELD(struct bwk_peer *, bwk_peer_by_handle, port, (struct bwk_port * port, u32 handle),
     (port, handle))
HELD(void, bwk_peer_leave, port, (struct bwk_port * port, const struct bwk_peer *peer),
     (port, peer))
HELD(void, bwk_peer_event, port, (struct bwk_port * port, const struct bw_event *ev), (port, ev))
HELD(void, bwk_transmit, port, (struct bwk_port * port, struct bw_tx_frame *f), (port, f))
HELD(bool, bwk_buf_over, port, (struct bwk_buf * b, struct bwk_port *port), (b, port))
HELD(bool, bwk_queue_message, peer->port,
     (struct bwk_sock * bs, struct bwk_peer *peer, const struct bw_event *ev, struct sk_buff *skb,
      u32 off, bool whole),
     (bs, peer, ev, skb, off, whole))
HELD(void, bwk_queue_press, bs->port, (struct bwk_sock * bs, bool on), (bs, on))
HELD(void, bwk_sock_done, bs->port, (struct bwk_sock * bs, struct bwk_buf *b), (bs, b))
HELD(int, bwk_conn_say, port,
     (struct bwk_port * port, const struct bwk_peer *peer, u8 code, u64 tag, struct bwk_buf *b),
     (port, peer, code, tag, b))
HELD(void, bwk_conn_fail, bs->port, (struct bwk_sock * bs, int error), (bs, error))
HELD(void, bwk_conn_part, port, (struct bwk_port * port, const struct bwk_peer *peer), (port, peer))

void __real_bwk_arrive_close(struct bwk_port *port);
void __wrap_bwk_arrive_close(struct bwk_port *port);
void __wrap_bwk_arrive_close(struct bwk_port *port)
{
	if (port->arriving_bytes)
		fuzz_bad("messages that are not there are still paid for");
	__real_bwk_arrive_close(port);
}

FREE(int, bwk_port_feed, port, (struct bwk_port * port), (port))
FREE(void, bwk_port_back, port, (struct bwk_port * port, struct bwk_buf *b), (port, b))
FREE(void, bwk_queue_relieve, bs->port, (struct bwk_sock * bs), (bs))
FREE(void, bwk_port_receive, port,
     (struct bwk_port * port, struct sk_buff *skb, const struct bwk_iface *iface),
     (port, skb, iface))
