/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of any content from the peer of a socket program's connection, in any order with what
 * the program does: what is sent has the program's bytes at their offsets, what is received is in
 * order, and neither direction keeps more than its window.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../adapters/sockets/core.h"
#include "../../adapters/sockets/flow.h"
#include "../../adapters/sockets/real.h"
#include "../../adapters/sockets/wait.h"

#include "fuzz.h"
#include "queue.h"

#define PEER	 5	/* whom the connection's address belongs to */
#define STRANGER 6	/* another peer */
#define HELD	 64	/* pieces that libbeowire has and has not told of, at most */
#define LONGEST	 100000 /* bytes of a message or a send: more than a piece */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bws_core bws;

static struct bws_conn *conn;
static int answer;   /* of bw_send() */
static int tcp_room; /* bytes that TCP takes at a time; negative: an errno */
static void *held[HELD];
static uint32_t held_n;
static struct fuzz_input *meanwhile; /* a message of it arrives during the next bw_send() */
static bool tcp_goes;		     /* what waits for TCP is on its way: */
static uint64_t tcp_at;		     /* from here on */

static void message(struct fuzz_input *in);

static uint8_t byte_at(uint64_t off)
{
	return (uint8_t)(off * 7 ^ off >> 8);
}

static void is_at(uint64_t off, const uint8_t *data, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++) {
		if (data[i] != byte_at(off + i))
			fuzz_bad("other bytes are sent than the program's");
	}
}

/* ---- libbeowire ---- */

int bw_send(struct bw_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, uint64_t imm,
	    const void *data, uint64_t len, unsigned int flags, void *op)
{
	if (peer != PEER || !(tag >> 32))
		fuzz_bad("a message for nobody");
	if (len > BWS_PIECE)
		fuzz_bad("a message that the peer does not take");
	if (meanwhile) {
		struct fuzz_input *in = meanwhile;

		meanwhile = NULL;
		message(in);
	}
	if (answer < 0 || (!answer && held_n == HELD))
		return answer < 0 ? answer : -EAGAIN;
	if (code == BWS_DATA)
		is_at(imm, data, len);
	if (!answer)
		held[held_n++] = op;
	return answer;
}

int bw_pull(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *to, uint64_t len,
	    void *op)
{
	if (to || len)
		fuzz_bad("something is fetched");
	return 0;
}

int bw_peer_find(struct bw_ep *ep, const struct bw_addr *addr, bw_peer_no *peer)
{
	*peer = PEER;
	return 0;
}

const char *bw_peer_link(struct bw_ep *ep, bw_peer_no peer)
{
	return "packet";
}

/* ---- the rest of the library ---- */

void bws_lock(void)
{
}

void bws_unlock(void)
{
}

int bws_progress(void)
{
	return 0;
}

void bws_pause(void)
{
}

void bws_attend_room(void)
{
}

void bws_attend(void)
{
}

void bws_crowded(uint64_t until)
{
}

void bws_reoffer(struct bws_conn *c)
{
	c->answered = false;
}

void bws_lose(struct bws_conn *c)
{
	bws_break(c, ECONNRESET, "lost");
}

void bws_wake(struct bws_conn *c, uint32_t what)
{
}

void bws_watch_changed(struct bws_conn *c)
{
}

void bws_watch_more(struct bws_conn *c)
{
}

/* ---- TCP ---- */

static ssize_t tcp_send(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
			socklen_t n)
{
	const struct bws_piece *p = conn->tx.queue.first;

	if (tcp_room < 0) {
		errno = -tcp_room;
		return -1;
	}
	if (!p || data != p->data + p->done)
		fuzz_bad("TCP gets what is not the first");
	if ((uint64_t)tcp_room < len)
		len = (size_t)tcp_room + 1;
	if (!tcp_goes)
		tcp_at = conn->tx.taken;
	tcp_goes = true;
	if (p->off + p->done != tcp_at)
		fuzz_bad("TCP goes on elsewhere");
	is_at(tcp_at, data, len);
	tcp_at += len;
	return (ssize_t)len;
}

static int tcp_option(int fd, int level, int name, const void *value, socklen_t n)
{
	return 0;
}

static int tcp_shutdown(int fd, int how)
{
	return 0;
}

/* ---- the peer ---- */

/* Plausible, or anything. */
static uint64_t offset(struct fuzz_input *in)
{
	uint8_t how = fuzz_u8(in);
	uint64_t some[] = {conn->shared->rx, conn->rx.next,	 conn->rx.from,	   conn->rx.epoch,
			   conn->tx.taken,   conn->tx.switch_at, conn->shared->tx, conn->id};

	return how & 8 ? fuzz_number(in) : some[how & 7] + (how & 16 ? fuzz_u8(in) : 0);
}

/* It changes nothing. */
static void from_a_stranger(const struct bw_message *m)
{
	uint64_t before[] = {conn->rx.next, conn->tx.taken, conn->rx.way, conn->tx.way,
			     conn->paired,  conn->peer_id,  conn->owed,	  conn->peer_parks};

	bws_flow_handlers.message(NULL, m);
	if (before[0] != conn->rx.next || before[1] != conn->tx.taken ||
	    before[2] != conn->rx.way || before[3] != conn->tx.way || before[4] != conn->paired ||
	    before[5] != conn->peer_id || before[6] != conn->owed || before[7] != conn->peer_parks)
		fuzz_bad("a stranger is heard");
}

static void message(struct fuzz_input *in)
{
	struct bw_message m = {.peer = PEER};
	uint8_t how = fuzz_u8(in);
	uint32_t n = how & 128 ? fuzz_u16(in) : fuzz_u8(in) & 63;
	const uint8_t *bytes;
	uint8_t *copy;
	uint32_t len;

	m.code = how & 15;
	if (how & 64)
		m.peer = STRANGER;
	m.envelope = how & 32 && m.code > BWS_CROWDED;
	m.imm = offset(in);
	m.tag = (uint64_t)(conn->id + (how & 16 ? fuzz_u8(in) : 0)) << 32 | (uint32_t)offset(in);
	bytes = fuzz_bytes(in, &n);
	len = how & 128 && n < 4 ? (n ? BWS_PIECE : LONGEST) : n;
	copy = calloc(1, len ? len : 1);
	if (!copy)
		return;
	memcpy(copy, bytes, n);
	if (m.code <= BWS_WELCOME && len >= 2 * BWS_NONCE) { /* who knows both nonces */
		memcpy(copy, conn->peer_nonce, BWS_NONCE);
		memcpy(copy + BWS_NONCE, conn->nonce, BWS_NONCE);
		len = how & 16 ? len : 2 * BWS_NONCE;
	}
	m.data = copy;
	m.len = len;
	if (m.peer == STRANGER)
		from_a_stranger(&m);
	else
		bws_flow_handlers.message(NULL, &m);
	free(copy);
}

/* ---- the program ---- */

static void sends(struct fuzz_input *in)
{
	uint32_t n = fuzz_u16(in) * 2u;
	uint8_t *bytes;
	uint64_t at = conn->shared->tx;

	if (conn->tx.way != BWS_BW || conn->error) { /* data.c sends by TCP, or not at all */
		if (conn->tx.way == BWS_TCP)
			conn->shared->tx += n;
		return;
	}
	bytes = malloc(n ? n : 1);
	if (!bytes)
		return;
	for (uint32_t i = 0; i < n; i++)
		bytes[i] = byte_at(at + i);
	if (bws_tx_add(conn, bytes, n) > n)
		fuzz_bad("more is taken than there was");
	free(bytes);
}

/* As data.c does. */
static void receives(struct fuzz_input *in)
{
	uint64_t n = fuzz_u16(in), taken = 0;
	struct bws_piece *p;

	if (conn->rx.way == BWS_TCP || conn->rx.way == BWS_UNTIL) {
		if (conn->rx.way == BWS_UNTIL && n > conn->rx.from - conn->shared->rx)
			n = conn->rx.from - conn->shared->rx;
		bws_rx_by_tcp(conn, n);
		return;
	}
	while (taken < n && (p = conn->rx.queue.first)) {
		uint64_t part = p->len - p->done < n - taken ? p->len - p->done : n - taken;

		p->done += (uint32_t)part;
		taken += part;
		if (p->done == p->len)
			bws_queue_pop(&conn->rx.queue);
	}
	bws_rx_taken(conn, taken);
}

static void does(struct fuzz_input *in, uint8_t what)
{
	switch (what) {
	case 0:
		sends(in);
		break;
	case 1:
		receives(in);
		break;
	case 2:
		if (held_n)
			bws_flow_handlers.sent(NULL, held[--held_n], fuzz_u8(in) & 1 ? -EIO : 0);
		break;
	case 3:
		what = fuzz_u8(in);
		answer = what & 4 ? -ENOTCONN : what & 2 ? -EAGAIN : what & 1;
		meanwhile = what & 32 ? in : NULL;
		tcp_room = what & 16 ? -EPIPE : what & 8 ? -EAGAIN : fuzz_u16(in);
		break;
	case 4:
		bws_push_all();
		bws_tx_drain(conn);
		break;
	case 5:
		bws_return(conn, fuzz_u8(in) & 1);
		break;
	case 6:
		bws_park(conn, fuzz_u8(in) & 1);
		break;
	default:
		conn->answered = !conn->paired;
		if (fuzz_u8(in) & 1)
			bws_flow_handlers.peer_down(NULL, PEER, -ETIMEDOUT);
		break;
	}
}

/* ---- what holds ---- */

static void holds(void)
{
	if (conn->tx.way != BWS_DRAIN)
		tcp_goes = false;
	if (conn->tx_beowire > conn->shared->tx)
		fuzz_bad("more was sent than there was");
	if (fuzz_bytes_of(&conn->rx.queue) > BWS_WINDOW ||
	    fuzz_bytes_of(&conn->tx.queue) > BWS_WINDOW + BWS_PIECE)
		fuzz_bad("more is kept than the window");
	if (conn->tx.way != BWS_TCP && conn->tx.taken > conn->shared->tx)
		fuzz_bad("more is taken than was sent");
	if (conn->rx.queue.first &&
	    (conn->rx.way == BWS_TCP ||
	     conn->rx.queue.last->off + conn->rx.queue.last->len != conn->rx.next))
		fuzz_bad("bytes that are not the next");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char ep;
	struct fuzz_input in = {data, data + size};

	if (!conn) {
		if (!bws_conn_init())
			fuzz_bad("no connections");
		bws_real.loaded = true;
		bws_real.sendto = tcp_send;
		bws_real.setsockopt = tcp_option;
		bws_real.shutdown = tcp_shutdown;
		atomic_store(&bws.ep, (struct bw_ep *)&ep);
	}
	answer = 1;
	tcp_room = LONGEST;
	held_n = 0;
	meanwhile = NULL;
	conn = bws_conn_new(-1, fuzz_u8(&in) & 1);
	if (!conn)
		fuzz_bad("no connection");
	memset(conn->nonce, 1, BWS_NONCE);
	memset(conn->peer_nonce, 2, BWS_NONCE);
	conn->answered = true;
	while (in.at < in.end) {
		uint8_t what = fuzz_u8(&in);

		if (what & 1)
			message(&in);
		else
			does(&in, what >> 1 & 7);
		holds();
	}
	meanwhile = NULL;
	bws_conn_free(conn);
	while (held_n)
		bws_flow_handlers.sent(NULL, held[--held_n], 0);
	return 0;
}
