/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * beowire-server as it is, with its loop, behind a kernel of this file's: sockets that open, send
 * anywhere, close and are pressed by whatever programs do; frames that are their own, changed, or
 * invented; time. All that the server writes the kernel understands, and what it says of sockets
 * is true.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "clock.h"
#include "fuzz.h"
#include "server_ring.h"

/* ---- the calls that the server makes, in place of the system's ---- */

static uint64_t fake_now;

static uint64_t fake_clock(void)
{
	return fake_now += BW_US;
}

static ssize_t fake_random(void *to, size_t n, unsigned int flags)
{
	memset(to, 7, n);
	return (ssize_t)n;
}

static int fake_open(const char *path, int flags)
{
	return 3;
}

static void *fake_map(void *at, size_t n, int protection, int flags, int fd, off_t off);
static int fake_control(int fd, unsigned long command, void *arg);

#define bw_clock_now fake_clock
#define getrandom    fake_random
#include "server/instance.c"
#include "server/memory.c"
#include "server/peers.c"
#include "server/serve.c"
#define open  fake_open
#define ioctl fake_control
#define mmap  fake_map
#include "server/rings.c"
#undef open
#undef ioctl
#undef mmap

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the kernel ---- */

#define RING_BYTES (512u << 10)
#define AREA_BYTES (4096u + BEOWIRE_RINGS * RING_BYTES)
#define SOCKETS	   6
#define KEPT	   16 /* frames under way */
#define MTU	   2000u
#define COST	   512u /* bytes that a send is charged beyond its own */

struct fake_socket {
	uint32_t id; /* 0: none */
	uint16_t port;
	uint32_t inc, limit, sending;
	bool opening, closed, spoken; /* it has sent something */
};

struct kept_frame {
	uint32_t len;
	uint8_t bytes[MTU];
};

static const uint8_t own_mac[6] = {2, 0, 0, 0, 0, 1};

static struct {
	_Alignas(64) uint8_t area[AREA_BYTES];
	struct bwk_ring ring[BEOWIRE_RINGS];
	struct fake_socket socket[SOCKETS];
	uint32_t ids;
	struct kept_frame kept[KEPT];
	uint32_t kept_n;
	struct fuzz_input in;
} kernel;

static uint32_t ring_at(int i)
{
	return (uint32_t)(i * sizeof(struct beowire_ring));
}

static uint32_t data_at(int i)
{
	return 4096u + (uint32_t)i * RING_BYTES;
}

static void *fake_map(void *at, size_t n, int protection, int flags, int fd, off_t off)
{
	if (n != AREA_BYTES)
		fuzz_bad("another size is mapped than was told");
	return kernel.area;
}

static void claim(struct beowire_server_claim *c)
{
	c->ring_bytes = RING_BYTES;
	c->node = 1;
	c->cluster = FUZZ_CLUSTER;
	c->area = AREA_BYTES;
	for (int i = 0; i < BEOWIRE_RINGS; i++) {
		c->at[i].ring = ring_at(i);
		c->at[i].data = data_at(i);
		kernel.ring[i] = (struct bwk_ring){
			.shared = (void *)(kernel.area + ring_at(i)),
			.data = kernel.area + data_at(i),
			.size = RING_BYTES,
		};
		memset(kernel.ring[i].shared, 0, sizeof(struct beowire_ring));
	}
}

static struct fake_socket *by_id(uint32_t id)
{
	for (int i = 0; i < SOCKETS; i++)
		if (kernel.socket[i].id == id)
			return &kernel.socket[i];
	return NULL;
}

static void take_answer(const struct beowire_record *record)
{
	struct fake_socket *s = record->socket ? by_id(record->socket) : NULL;
	int status = record->result.status;

	if (!s)
		fuzz_bad("an answer to nobody");
	if (record->type == BEOWIRE_OPENED) {
		if (!s->opening || status > 0 || record->result.bytes > BEOWIRE_SERVER_BYTES)
			fuzz_bad("a wrong answer to OPEN");
		s->opening = false;
		s->limit = record->result.bytes;
	} else if (record->type == BEOWIRE_ARRIVED) {
		if (s->opening || record->addr.sbw_zero[0])
			fuzz_bad("a message for a socket that is not open");
	} else if (record->type == BEOWIRE_DONE) {
		if (record->result.bytes + COST > s->sending)
			fuzz_bad("more is done than was sent");
		s->sending -= record->result.bytes + COST;
	} else if (record->type == BEOWIRE_FAILED) {
		if (status >= 0 || status <= -512)
			fuzz_bad("an error that is none");
		if (!s->spoken)
			fuzz_bad("the end of one that the program has not sent to");
	} else if (record->type == BEOWIRE_CLOSED) {
		if (!s->closed)
			fuzz_bad("the end of a socket that is open");
		s->id = 0;
	} else {
		fuzz_bad("an answer of no known type");
	}
}

static void take_frame(const struct beowire_record *record, const uint8_t *bytes)
{
	const struct fake_socket *s = record->socket ? by_id(record->socket) : NULL;
	const struct bw_hdr *h = (const void *)bytes;
	struct kept_frame *k = &kernel.kept[kernel.kept_n++ % KEPT];

	if (!s || record->type != BEOWIRE_FRAME || record->bytes < sizeof(*h) ||
	    record->bytes > MTU || h->magic != BW_MAGIC || h->src_engine != s->port)
		fuzz_bad("a frame that the kernel does not take");
	k->len = record->bytes;
	memcpy(k->bytes, bytes, k->len);
}

static void take_ring(enum beowire_ring_number number)
{
	struct beowire_record record;
	const uint8_t *bytes;
	int found;

	while ((found = bwk_ring_next(&kernel.ring[number], &record, &bytes))) {
		if (found < 0 || record.reserved)
			fuzz_bad("the kernel makes no sense of it");
		if (number == BEOWIRE_ANSWERS)
			take_answer(&record);
		else
			take_frame(&record, bytes);
		bwk_ring_consume(&kernel.ring[number], &record);
	}
}

static void tell(enum beowire_ring_number ring, uint16_t type, uint32_t id,
		 const struct beowire_record *more, const void *bytes, uint32_t n)
{
	struct beowire_record *record = bwk_ring_reserve(&kernel.ring[ring], type, id, n);

	if (!record)
		return;
	record->addr = more->addr;
	if (n)
		memcpy(record + 1, bytes, n);
	bwk_ring_commit(&kernel.ring[ring], n);
}

/* ---- what programs and other nodes do ---- */

static struct fake_socket *any_socket(struct fuzz_input *in)
{
	return &kernel.socket[fuzz_u8(in) % SOCKETS];
}

static struct sockaddr_beowire any_address(struct fuzz_input *in)
{
	struct sockaddr_beowire a = {.sbw_family = AF_BEOWIRE};
	const struct fake_socket *s = any_socket(in);
	uint8_t how = fuzz_u8(in);

	a.sbw_port = how & 1 ? fuzz_u16(in) : s->port;
	a.sbw_inc = how & 2 ? fuzz_u16(in) : s->inc;
	a.sbw_node = how & 4 ? fuzz_number(in) : 1;
	a.sbw_ifindex = how & 8 ? fuzz_u16(in) : !!(how & 16);
	memcpy(a.sbw_mac, own_mac, 6);
	if (how & 32)
		a.sbw_mac[5] = fuzz_u8(in);
	return a;
}

static void open_socket(struct fuzz_input *in)
{
	struct fake_socket *s = any_socket(in);
	struct beowire_record more = {0};

	if (s->id)
		return;
	*s = (struct fake_socket){
		.id = ++kernel.ids,
		.port = (uint16_t)(1 + (s - kernel.socket)),
		.inc = fuzz_u8(in) | 1u,
		.opening = true,
	};
	more.addr = (struct sockaddr_beowire){.sbw_port = s->port, .sbw_inc = s->inc};
	tell(BEOWIRE_REQUESTS, BEOWIRE_OPEN, s->id, &more, NULL, 0);
}

static void send_message(struct fuzz_input *in)
{
	static uint8_t bytes[BEOWIRE_SERVER_BYTES];
	struct fake_socket *s = any_socket(in);
	struct beowire_record more = {.addr = any_address(in)};
	uint32_t n = (uint32_t)(fuzz_number(in) % (s->limit + 1));

	if (!s->id || s->opening || s->closed || s->sending > 200000)
		return;
	s->sending += n + COST;
	s->spoken = true;
	tell(BEOWIRE_REQUESTS, BEOWIRE_SEND, s->id, &more, bytes, n);
}

static void press(struct fuzz_input *in)
{
	const struct fake_socket *s = any_socket(in);
	const struct beowire_record more = {.result = {.status = fuzz_u8(in) & 1}};

	if (s->id && !s->closed)
		tell(BEOWIRE_REQUESTS, BEOWIRE_PRESSED, s->id, &more, NULL, 0);
}

static void close_socket(struct fuzz_input *in)
{
	const struct beowire_record more = {0};
	struct fake_socket *s = any_socket(in);

	if (!s->id || s->closed)
		return;
	s->closed = true;
	tell(BEOWIRE_REQUESTS, BEOWIRE_CLOSE, s->id, &more, NULL, 0);
}

/* `changed`: a byte of it, and it has the right checksum again. */
static void frame_comes(struct fuzz_input *in, bool changed)
{
	static struct kept_frame f;
	const struct kept_frame *kept = &kernel.kept[fuzz_u8(in) % KEPT];
	struct beowire_record more = {0};
	const struct fake_socket *s = NULL;
	struct bw_hdr h;

	f.len = kept->len;
	memcpy(f.bytes, kept->bytes, f.len);
	if (changed && f.len) {
		f.bytes[fuzz_u16(in) % f.len] = fuzz_u8(in);
		fuzz_seal(f.bytes, f.len, false);
	}
	if (f.len < sizeof(h))
		return;
	memcpy(&h, f.bytes, sizeof(h));
	for (int i = 0; i < SOCKETS; i++)
		if (kernel.socket[i].id && kernel.socket[i].port == h.dst_engine)
			s = &kernel.socket[i];
	if (!s)
		return;
	more.frame.ifindex = 1;
	memcpy(more.frame.mac, own_mac, 6);
	tell(BEOWIRE_FRAMES_IN, BEOWIRE_FRAME, s->id, &more, f.bytes, f.len);
}

static void invented_frame(struct fuzz_input *in)
{
	const struct fake_socket *s = any_socket(in);
	struct beowire_record more = {.frame = {.ifindex = fuzz_u8(in) & 3}};
	uint8_t bytes[256 + sizeof(struct bw_hdr)] = {0};
	uint32_t n = fuzz_u8(in);
	struct bw_hdr h = {
		.magic = BW_MAGIC,
		.version = BW_VERSION,
		.type = fuzz_u8(in) % 8,
		.dst_engine = s->port,
		.cluster = FUZZ_CLUSTER,
	};
	const uint8_t *rest = fuzz_bytes(in, &n);

	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), rest, n);
	fuzz_seal(bytes, (uint32_t)sizeof(h) + n, true);
	memcpy(more.frame.mac, own_mac, 6);
	if (s->id)
		tell(BEOWIRE_FRAMES_IN, BEOWIRE_FRAME, s->id, &more, bytes,
		     (uint32_t)sizeof(h) + n);
}

/* False: the server's turn ends here. */
static bool step(struct fuzz_input *in)
{
	switch (fuzz_u8(in) % 10) {
	case 0:
		open_socket(in);
		break;
	case 1:
	case 2:
		send_message(in);
		break;
	case 3:
		press(in);
		break;
	case 4:
		close_socket(in);
		break;
	case 5:
		invented_frame(in);
		break;
	case 6:
		frame_comes(in, true);
		break;
	case 7:
		fake_now += fuzz_u16(in) * BW_MS;
		break;
	case 8:
		frame_comes(in, false);
		break;
	default:
		return false;
	}
	return true;
}

/* What is counted is there, and no more than may be. */
static void check_memory(const struct instance *in)
{
	uint64_t arriving = 0, grown = 0;

	for (uint32_t i = 0; i < in->peers.buckets; i++)
		for (const struct peer *p = in->peers.bucket[i]; p; p = p->next)
			arriving += p->arriving;
	for (const void *at = in->grown; at; at = *(void *const *)at)
		grown += BW_GROW_BYTES;
	if (arriving > in->arriving || grown != in->grown_bytes || grown > MEMORY_GROWN_MAX ||
	    in->arriving > MEMORY_ARRIVING_MAX + MEMORY_ARRIVING_NEXT)
		fuzz_bad("memory for peers is not counted");
}

static void check_engines(void)
{
	const char *bad;

	for (const struct instance *in = server.all; in; in = in->next) {
		bad = in->protocol == &bw_reliable ? bw_reliable_check(in->engine) : NULL;
		if (bad)
			fuzz_bad(bad);
		check_memory(in);
	}
}

static int turn(void)
{
	take_ring(BEOWIRE_ANSWERS);
	take_ring(BEOWIRE_FRAMES_OUT);
	check_engines();
	errno = ENODEV;
	if (kernel.in.at == kernel.in.end)
		return -1;
	while (kernel.in.at < kernel.in.end && step(&kernel.in))
		;
	return 0;
}

static int fake_control(int fd, unsigned long command, void *arg)
{
	struct beowire_server_iface *list = arg;

	switch (command) {
	case BEOWIRE_SERVER_CLAIM:
		claim(arg);
		return 0;
	case BEOWIRE_SERVER_LINKS:
		memset(list, 0, BEOWIRE_SERVER_IFACES * sizeof(*list));
		list[0] = (struct beowire_server_iface){.ifindex = 1, .mtu = MTU};
		memcpy(list[0].mac, own_mac, 6);
		return 0;
	case BEOWIRE_SERVER_TURN:
		return turn();
	}
	fuzz_bad("an unknown command");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct instance *in;

	kernel.in = (struct fuzz_input){data, data + size};
	kernel.ids = kernel.kept_n = 0;
	memset(kernel.socket, 0, sizeof(kernel.socket));
	memset(kernel.kept, 0, sizeof(kernel.kept));
	fake_now = BW_S;
	memset(&server, 0, sizeof(server));
	if (serve_open(2, fuzz_u8(&kernel.in) & 1 ? &bw_reliable : &bw_datagram, false))
		fuzz_bad("the server does not begin");
	if (serve_loop() != -ENODEV)
		fuzz_bad("the server ends by itself");
	for (int i = 0; i < SOCKETS; i++)
		kernel.socket[i].closed = true;
	while ((in = server.all)) {
		server.all = in->next;
		instance_end(in);
	}
	return 0;
}
