/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a server wants: its answers to sockets, and its frames. See server.h. */
#include <linux/etherdevice.h>

#include "port.h"
#include "server.h"

#define BWK_TURN_MOST 64 /* ports that are looked at before others get the server's lock */

/* The server's port of this number, with a reference to its socket in *sk, if that is still there.
 * Only bwk_server_turn() may call it: nobody else removes ports of a server that lives. */
static struct bwk_server_port *bwk_turn_port(struct bwk_server *server, u32 id, struct sock **sk)
{
	struct bwk_server_port *port;

	spin_lock_bh(&server->lock);
	port = xa_load(&server->ports, id);
	*sk = port ? port->sk : NULL;
	if (*sk)
		sock_hold(*sk);
	spin_unlock_bh(&server->lock);
	return port;
}

/* The kernel's own errors begin there: calls that return them go on, or are restarted. */
static bool bwk_turn_is_error(int status)
{
	return status < 0 && status > -ERESTARTSYS;
}

static int bwk_turn_opened(struct bwk_server_port *port, struct sock *sk,
			   const struct beowire_record *record)
{
	int status = record->result.status;

	if (!sk || port->status != BWK_SERVER_OPENING || (status && !bwk_turn_is_error(status)) ||
	    (record->result.flags & ~BEOWIRE_OPENED_KEEP))
		return -EINVAL;
	port->keep = record->result.flags & BEOWIRE_OPENED_KEEP;
	port->limit = min_t(u32, record->result.bytes, BEOWIRE_SERVER_BYTES);
	smp_store_release(&port->status, status);
	sk->sk_state_change(sk);
	return 0;
}

bool bwk_server_untell(struct bwk_sock *bs, u32 charge)
{
	int told = atomic_read(&bs->told);

	do {
		if ((u32)told < charge)
			return false;
	} while (!atomic_try_cmpxchg(&bs->told, &told, told - (int)charge));
	return true;
}

static int bwk_turn_done(struct sock *sk, u32 bytes)
{
	u32 charge = min_t(u32, bytes, BEOWIRE_SERVER_BYTES) + BWK_SEND_COST;

	if (!sk || !bwk_server_untell(bwk_sk(sk), charge))
		return -EINVAL;
	bwk_sock_uncharge(bwk_sk(sk), charge);
	return 0;
}

static int bwk_turn_failed(struct sock *sk, int status)
{
	if (!sk || !bwk_turn_is_error(status))
		return -EINVAL;
	WRITE_ONCE(sk->sk_err, -status);
	sk_error_report(sk);
	return 0;
}

static int bwk_turn_closed(struct bwk_server *server, struct bwk_server_port *port)
{
	int error = -EINVAL;

	spin_lock_bh(&server->lock);
	if (port->closed && list_empty(&port->closing)) {
		bwk_server_port_forget(port);
		error = 0;
	}
	spin_unlock_bh(&server->lock);
	return error;
}

static int bwk_turn_answer(struct bwk_server *server, const struct beowire_record *record,
			   const u8 *bytes)
{
	struct sock *sk;
	struct bwk_server_port *port = bwk_turn_port(server, record->socket, &sk);
	int error = -EINVAL;

	if (!port)
		return -EINVAL;
	switch (record->type) {
	case BEOWIRE_OPENED:
		error = bwk_turn_opened(port, sk, record);
		break;
	case BEOWIRE_ARRIVED:
		if (sk)
			bwk_server_sock_deliver(port, sk, &record->addr, bytes, record->bytes);
		error = sk ? 0 : -EINVAL;
		break;
	case BEOWIRE_DONE:
		error = bwk_turn_done(sk, record->result.bytes);
		break;
	case BEOWIRE_FAILED:
		error = bwk_turn_failed(sk, record->result.status);
		break;
	case BEOWIRE_CLOSED:
		error = bwk_turn_closed(server, port);
		break;
	}
	if (sk)
		sock_put(sk);
	return error;
}

/* A frame leaves under the number of one of the server's own ports, or not at all. */
static int bwk_turn_frame(struct bwk_server *server, const struct beowire_record *record,
			  const u8 *bytes)
{
	struct bwk_server_port *port;
	struct bw_hdr hdr;
	struct sock *sk;

	if (record->type != BEOWIRE_FRAME || record->bytes < sizeof(hdr))
		return -EINVAL;
	port = bwk_turn_port(server, record->socket, &sk);
	if (sk)
		sock_put(sk);
	memcpy(&hdr, bytes, sizeof(hdr));
	barrier(); /* what was copied is checked, and sent */
	if (!port || hdr.magic != BW_MAGIC || hdr.src_engine != port->number)
		return -EINVAL;
	return bwk_transmit_bytes(server->node, record->frame.ifindex, record->frame.mac, &hdr,
				  bytes + sizeof(hdr), record->bytes - sizeof(hdr));
}

/* One ring out, until it is empty, but not what the server adds meanwhile without end. */
static int bwk_turn_ring(struct bwk_server *server, struct bwk_ring *ring,
			 int (*act)(struct bwk_server *server, const struct beowire_record *record,
				    const u8 *bytes))
{
	struct beowire_record record = {0};
	u32 begin = ring->at;
	const u8 *bytes;
	int found, error;

	while (ring->at - begin < ring->size && (found = bwk_ring_next(ring, &record, &bytes))) {
		if (found < 0)
			return found;
		error = act(server, &record, bytes);
		if (error == -EBUSY)
			return error;
		if (act == bwk_turn_frame)
			WRITE_ONCE(server->frames_out, server->frames_out + !error);
		WRITE_ONCE(server->refused, server->refused + (error != 0));
		bwk_ring_consume(ring, &record);
		cond_resched();
	}
	return 0;
}

/* One more port was looked at: now and then others get the server's lock, and the processor. */
static void bwk_turn_breathe(struct bwk_server *server, u32 *done) __must_hold(&server->lock)
{
	if (++*done % BWK_TURN_MOST)
		return;
	this_cpu_inc(server->node->count->squeezed);
	spin_unlock_bh(&server->lock);
	cond_resched();
	spin_lock_bh(&server->lock);
}

/* Requests that found no room: the ends of ports, words of pressure, and whoever waits with a
 * send. Ports that come while the lock is given away may be passed over: what they want meanwhile
 * is for the next turn. */
static void bwk_turn_relief(struct bwk_server *server)
{
	struct bwk_server_port *port;
	unsigned long id;
	u32 done = 0;

	spin_lock_bh(&server->lock);
	while ((port = list_first_entry_or_null(&server->closing, struct bwk_server_port,
						closing)) &&
	       !bwk_server_request(server, BEOWIRE_CLOSE, port->id, NULL, NULL, 0)) {
		list_del_init(&port->closing);
		bwk_turn_breathe(server, &done);
	}
	if (server->untold) {
		WRITE_ONCE(server->untold, false);
		xa_for_each(&server->ports, id, port) {
			bwk_server_port_tell(port);
			bwk_turn_breathe(server, &done);
		}
	}
	if (READ_ONCE(server->starved) && bwk_ring_roomy(&server->ring[BEOWIRE_REQUESTS])) {
		WRITE_ONCE(server->starved, false);
		xa_for_each(&server->ports, id, port) {
			if (port->sk)
				port->sk->sk_write_space(port->sk);
			bwk_turn_breathe(server, &done);
		}
	}
	spin_unlock_bh(&server->lock);
}

int bwk_server_turn(struct bwk_server *server)
{
	int error, busy;

	if (mutex_lock_interruptible(&server->turn))
		return -EINTR;
	error = bwk_turn_ring(server, &server->ring[BEOWIRE_ANSWERS], bwk_turn_answer);
	busy = bwk_turn_ring(server, &server->ring[BEOWIRE_FRAMES_OUT], bwk_turn_frame);
	if (READ_ONCE(server->starved) || READ_ONCE(server->untold) ||
	    !list_empty(&server->closing))
		bwk_turn_relief(server);
	mutex_unlock(&server->turn);
	return error ? error : busy;
}
