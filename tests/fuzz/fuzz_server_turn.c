/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a protocol server asks of the kernel module: any records, also about sockets that are not
 * there, closed, or not yet open, and memory that changes while it is read. What the module then
 * does is within what the server may do, and no lock or reference is kept.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RING_BYTES (128u << 10) /* holds the longest record */
#define PORTS	   6		/* below FAKE_SLOTS */
#define SENDING	   5000
#define FIRST	   100 /* number of the first port */

int bwk_family;
const struct bw_protocol bw_reliable;

static struct fuzz_input input;
static struct bwk_server *server;
static struct bwk_node_counters counters;
static struct bwk_node node = {.count = &counters};
static struct bwk_sock *sock[PORTS];
static uint64_t sink; /* so that reads are not left out */

/* ---- the rest of the module ---- */

static void wake(struct sock *sk)
{
	if (sk->refs < 1)
		fuzz_bad("a socket without a reference is used");
}

/* The server writes meanwhile. */
static void meanwhile(void)
{
	struct bwk_ring *ring = &server->ring[BEOWIRE_ANSWERS + (fuzz_u8(&input) & 1)];
	u32 at = fuzz_u16(&input) % 4096, n = fuzz_u8(&input) % 32;
	const uint8_t *bytes = fuzz_bytes(&input, &n);

	memcpy(ring->data + at, bytes, n);
}

bool fake_user(const void *at, size_t n)
{
	return false;
}

void bwk_sock_uncharged(struct bwk_sock *bs, int before, int now)
{
	if (now < 0)
		fuzz_bad("less than nothing is under way");
}

int bwk_transmit_bytes(struct bwk_node *of, u32 ifindex, const u8 *to, const struct bw_hdr *hdr,
		       const void *bytes, u32 n)
{
	static const int results[] = {0, 0, 0, -EBUSY, -ENODEV, -EMSGSIZE, -ENETDOWN};
	u32 i = hdr->src_engine - FIRST;

	if (of != &node || hdr->magic != BW_MAGIC || i >= PORTS || !server->ports.slot[i])
		fuzz_bad("a frame of nobody's");
	if (n + sizeof(*hdr) > BEOWIRE_SERVER_BYTES)
		fuzz_bad("a frame that is too long");
	meanwhile();
	for (i = 0; i < n; i++)
		sink += ((const u8 *)bytes)[i];
	return results[fuzz_u8(&input) % 7];
}

void bwk_server_sock_deliver(struct bwk_server_port *port, struct sock *sk,
			     const struct sockaddr_beowire *from, const void *bytes, u32 n)
{
	if (sk->refs < 2 || port->closed || n > BEOWIRE_SERVER_BYTES)
		fuzz_bad("a message that cannot be delivered");
	for (u32 i = 0; i < n; i++)
		sink += ((const u8 *)bytes)[i];
	meanwhile();
}

void bwk_server_port_forget(struct bwk_server_port *port)
{
	if (!server->lock.held)
		fuzz_bad("a port is forgotten without the lock");
	if (!port->closed || port->sk)
		fuzz_bad("a port is forgotten that is open");
	list_del_init(&port->closing);
	server->ports.slot[port->id] = NULL;
	free(port);
}

int bwk_server_request(struct bwk_server *s, u16 type, u32 id, const struct sockaddr_beowire *addr,
		       const void *bytes, u32 n)
{
	if (!s->lock.held || type != BEOWIRE_CLOSE || !s->ports.slot[id])
		fuzz_bad("a request that is not due");
	return fuzz_u8(&input) & 1 ? -EAGAIN : 0;
}

void bwk_server_port_tell(struct bwk_server_port *port)
{
	sink += port->pressed;
}

/* ---- the server ---- */

static void port_new(u32 id)
{
	struct bwk_server_port *port = calloc(1, sizeof(*port));
	uint8_t how = fuzz_u8(&input);

	*port = (struct bwk_server_port){.server = server, .id = id, .number = (u16)(FIRST + id)};
	INIT_LIST_HEAD(&port->closing);
	port->status = how & 1 ? BWK_SERVER_OPENING : 0;
	port->closed = how & 2;
	if (how & 2 && how & 4)
		list_add_tail(&port->closing, &server->closing);
	server->ports.slot[id] = port;
	sock[id] = calloc(1, sizeof(*sock[id]));
	sock[id]->sk.refs = 1;
	sock[id]->sk.sk_sndbuf = SENDING;
	sock[id]->sk.sk_state_change = sock[id]->sk.sk_write_space = wake;
	sock[id]->sending.n = how & 8 ? SENDING : 0;
	if (!port->closed)
		port->sk = &sock[id]->sk;
}

static void server_new(void)
{
	server = calloc(1, sizeof(*server));
	server->node = &node;
	INIT_LIST_HEAD(&server->closing);
	for (int i = 0; i < BEOWIRE_RINGS; i++)
		server->ring[i] = (struct bwk_ring){
			.shared = calloc(1, sizeof(struct beowire_ring)),
			.data = i < BEOWIRE_ANSWERS ? NULL : calloc(1, RING_BYTES),
			.size = RING_BYTES,
		};
	for (u32 id = 0; id < PORTS; id++)
		port_new(id);
	server->starved = fuzz_u8(&input) & 1;
	server->untold = fuzz_u8(&input) & 1;
}

static void server_free(void)
{
	for (int i = 0; i < PORTS; i++) {
		free(server->ports.slot[i]);
		free(sock[i]);
	}
	for (int i = 0; i < BEOWIRE_RINGS; i++) {
		free(server->ring[i].shared);
		free(server->ring[i].data);
	}
	free(server);
}

static void write_payload(u8 *to, bool frame, u32 n)
{
	u16 from = (u16)(FIRST + fuzz_u8(&input) % (PORTS + 2));
	struct bw_hdr hdr = {.magic = BW_MAGIC, .src_engine = from};
	u32 some = min_t(u32, n, 64);
	const uint8_t *bytes = fuzz_bytes(&input, &some);

	memcpy(to, bytes, some);
	if (frame && n >= sizeof(hdr))
		memcpy(to, &hdr, sizeof(hdr));
}

/* What a server might mean, and nearly means. */
static void write_record(void)
{
	uint8_t how = fuzz_u8(&input);
	struct bwk_ring *ring = &server->ring[how & 1 ? BEOWIRE_FRAMES_OUT : BEOWIRE_ANSWERS];
	u32 at = ring->shared->head & (RING_BYTES - 1), n = (u32)fuzz_number(&input) & 0x1FFFF;
	struct beowire_record record = {
		.len = (u32)sizeof(record) + ALIGN(n, 16),
		.type = how & 1 && how & 2 ? BEOWIRE_FRAME : fuzz_u8(&input) % 14,
		.socket = fuzz_u8(&input) % (PORTS + 1),
		.bytes = n + (how & 4 ? fuzz_u8(&input) : 0),
	};

	if (record.len > RING_BYTES - at)
		return;
	record.result.status = (s32)fuzz_number(&input);
	record.result.bytes = (u32)fuzz_number(&input);
	record.result.flags = fuzz_u8(&input) & 3;
	memcpy(ring->data + at, &record, sizeof(record));
	write_payload(ring->data + at + sizeof(record), how & 8, n);
	ring->shared->head += record.len + (how & 16 ? fuzz_u8(&input) : 0);
}

/* ---- what must hold ---- */

static void check(int error)
{
	const struct bwk_server_port *port;

	if (error && error != -EPROTO && error != -EBUSY)
		fuzz_bad("an error that a turn does not have");
	if (server->lock.held || server->turn.held || server->ring[BEOWIRE_REQUESTS].lock.held)
		fuzz_bad("a lock is kept");
	for (int i = 0; i < PORTS; i++) {
		port = server->ports.slot[i];
		if (sock[i]->sk.refs != 1)
			fuzz_bad("a reference to a socket is kept");
		if (sock[i]->sending.n < 0 || sock[i]->sending.n > SENDING)
			fuzz_bad("a send is done that was not begun");
		if (sock[i]->sk.sk_err < 0 || sock[i]->sk.sk_err >= ERESTARTSYS)
			fuzz_bad("an error of the kernel's own");
		if (!port)
			continue;
		if (port->limit > BEOWIRE_SERVER_BYTES)
			fuzz_bad("messages that no record holds");
		if (port->status > BWK_SERVER_OPENING || port->status <= -ERESTARTSYS)
			fuzz_bad("a status that no call may return");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input = (struct fuzz_input){data, data + size};
	server_new();
	while (input.at < input.end) {
		for (int n = fuzz_u8(&input) % 8; n >= 0; n--)
			write_record();
		check(bwk_server_turn(server));
	}
	server_free();
	return 0;
}
