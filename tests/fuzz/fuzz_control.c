/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control thread of socket programs as it is, with the registrar and the sockets of offers:
 * datagrams and messages of any content, in any order with what three connections' programs do and
 * with time. Who knows both nonces may end or move its own connection, and no other one; whoever
 * does not know them is answered at most, once and with no more bytes. Whatever is said, bytes go
 * by TCP from where the peer says, and come in order.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "clock.h"
#include "fuzz.h"
#include "queue.h"

static uint64_t fake_now;

static uint64_t fake_clock(void)
{
	return fake_now;
}

static ssize_t fake_random(void *to, size_t n, unsigned int flags);
static int fake_here(int fd, struct sockaddr *name, socklen_t *len);
static int fake_there(int fd, struct sockaddr *name, socklen_t *len);

#define bw_clock_now fake_clock
#define getrandom    fake_random
#define getsockname  fake_here
#define getpeername  fake_there
#include "../../adapters/sockets/control.c"
#include "../../adapters/sockets/flow.c"
#include "../../adapters/sockets/handler.c"
#include "../../adapters/sockets/hosts.c"
#include "../../adapters/sockets/registrar.c"
#include "../../adapters/sockets/rescue.c"
#include "../../adapters/sockets/tx.c"

/* Settings do not matter. */
int bws_offer_socket_own(int family)
{
	return bws_offer_socket(family, 0);
}
#undef getrandom
#undef getsockname
#undef getpeername

#define SLOTS	  3  /* connections: two with one node, by IPv4; one with another, by IPv6 */
#define PEER_A	  5  /* the first two belong to this endpoint */
#define PEER_B	  6  /* the third one */
#define STRANGER  7  /* an endpoint without a connection */
#define HELD	  64 /* pieces that libbeowire has and has not told of, at most */
#define LONGEST	  100000
#define PROGRAM	  100 /* descriptors: of connections, */
#define CLIENT	  200 /* the registrar's clients, */
#define CLIENTS	  2
#define PORT	  300 /* its ports, IPv4 and IPv6, */
#define REGISTRAR 302 /* its connection to another one, */
#define OFFERS	  310 /* the sockets of answers */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bws_core bws;

struct slot {
	struct bws_conn *c; /* NULL: it has ended */
	struct bws_name name;
	bool tcp_goes;	       /* what waits for TCP is on its way: */
	uint64_t tcp_at;       /* from here on */
	uint64_t said;	       /* where the peer wants it from */
	uint64_t since_rescue; /* bytes that came by TCP since Beowire was lost */
	uint64_t offered;      /* when it was last; 0: never */
	uint64_t rescued;      /* when the peer was last told that Beowire is lost; 0: never */
	/* Ours and the peer's nonces: which both know, lately, and which they knew before. */
	uint8_t now[2][BWS_NONCE], then[2][BWS_NONCE];
	bool has_now, has_then;
};

static struct slot slot[SLOTS];
static int answer;     /* of bw_send() */
static int tcp_room;   /* bytes that TCP takes at a time; negative: an errno */
static bool tcp_lives; /* TCP of all connections */
static bool rings;     /* the program uses io_uring */
static void *held[HELD];
static uint32_t held_n;
static struct fuzz_input *meanwhile; /* a message of it arrives during the next bw_send() */
static uint32_t interrupted;	     /* by so many of these */
static bool down[STRANGER + 1];	     /* libbeowire has told that it is lost */
static uint16_t drawn;		     /* nonces of ours, and of peers */
static uint16_t ports;		     /* that connections have had */

/* Who sends a datagram knows both nonces of a connection, or those of a time that is over. */
enum proof { NONE, PROVEN, PROVEN_THEN };

/* The datagram that is handled. */
static struct {
	bool waits;	   /* it is there to be read */
	int fd;		   /* of whom */
	bool handled;	   /* it was read, and its time is not over */
	bool good;	   /* what it says is an offer's bytes */
	enum proof theirs; /* of who sent it */
	struct slot *of;   /* whose connection it names; NULL: nobody's */
	struct bws_from from;
	struct bws_offer o;
	uint8_t bytes[2 * BWS_OFFER_BYTES];
	size_t len;
	int told;   /* datagrams that were sent meanwhile */
	int handed; /* to the registrar's clients */
} mail;

static bool refusal_waits;
static struct bws_from refuser;

static void message(struct fuzz_input *in);

static uint32_t number_of(const struct slot *s)
{
	return (uint32_t)(s - slot);
}

static int peer_of(const struct slot *s)
{
	return number_of(s) < 2 ? PEER_A : PEER_B;
}

static struct slot *slot_of(const struct bws_conn *c)
{
	for (struct slot *s = slot; s < slot + SLOTS; s++) {
		if (s->c == c)
			return s;
	}
	fuzz_bad("a connection of nobody");
}

static struct slot *slot_of_fd(int fd)
{
	if (fd < PROGRAM || fd >= PROGRAM + SLOTS || !slot[fd - PROGRAM].c)
		fuzz_bad("a descriptor of nobody");
	return &slot[fd - PROGRAM];
}

/* What the program sends on a connection, and what its peer does. */
static uint8_t our_byte(const struct slot *s, uint64_t off)
{
	return (uint8_t)(off * 7 ^ off >> 8 ^ number_of(s));
}

static uint8_t their_byte(const struct slot *s, uint64_t off)
{
	return (uint8_t)~our_byte(s, off * 3);
}

static void is_at(const struct slot *s, uint64_t off, const uint8_t *data, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++) {
		if (data[i] != our_byte(s, off + i))
			fuzz_bad("other bytes are sent than the program's");
	}
}

/* No two alike, and none that a stranger says. */
static void draw(uint8_t *nonce, uint8_t whose)
{
	memset(nonce, whose, BWS_NONCE);
	nonce[1] = (uint8_t)++drawn;
	nonce[2] = (uint8_t)(drawn >> 8);
}

static ssize_t fake_random(void *to, size_t n, unsigned int flags)
{
	if (n != BWS_NONCE)
		fuzz_bad("a nonce of another length");
	draw(to, 1);
	return (ssize_t)n;
}

/* Each stands on those before. */
#include "control_world.h"

#include "control_mail.h"

#include "control_says.h"

#include "control_program.h"

static void step(struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in);
	struct slot *s;

	switch (what & 15) {
	case 0:
	case 1:
		message(in);
		break;
	case 2:
	case 3:
	case 4:
		datagram(in);
		break;
	case 5:
		pairs(in);
		break;
	case 6:
		sends(in);
		break;
	case 7:
		receives(in);
		break;
	case 8:
		if (held_n)
			bws_flow_handlers.sent(NULL, held[--held_n], fuzz_u8(in) & 1 ? -EIO : 0);
		break;
	case 9:
		sets(in);
		break;
	case 10:
		looks((uint64_t)fuzz_u16(in) << (what >> 4) << 8);
		break;
	case 11:
		lost(in);
		break;
	case 12:
		refuses(in);
		break;
	case 13:
		bws_push_all();
		break;
	case 14:
		s = &slot[fuzz_u8(in) % SLOTS];
		if (!s->c)
			connects(s, what & 16);
		break;
	default:
		s = some_slot(in);
		if (s)
			does(in, s, fuzz_u8(in));
		break;
	}
}

/* ---- what holds ---- */

static void holds(struct slot *s)
{
	const struct bws_conn *c = s->c;

	if (c->tx.way != BWS_DRAIN)
		s->tcp_goes = false;
	/* One step may replace what both know by what both know next. */
	if (s->has_now && memcmp(s->now[0], c->nonce, BWS_NONCE)) {
		memcpy(s->then, s->now, sizeof(s->then));
		s->has_then = true;
	}
	if (c->proven) {
		memcpy(s->now[0], c->nonce, BWS_NONCE);
		memcpy(s->now[1], c->peer_nonce, BWS_NONCE);
		s->has_now = true;
	}
	if (!c->rescue)
		s->since_rescue = s->rescued = 0;
	if (c->rescue && (c->paired || c->answered || c->peer_id || c->rx.way != BWS_TCP))
		fuzz_bad("a connection that is lost goes on");
	if (c->paired && (c->answered || !c->peer_id))
		fuzz_bad("half of a pair");
	if (c->error && c->paired)
		fuzz_bad("a broken connection goes on");
	if (c->tx.way != BWS_TCP && c->tx.taken > c->shared->tx)
		fuzz_bad("more is taken than was sent");
	if (c->rx.way == BWS_TCP && c->rx.queue.first)
		fuzz_bad("bytes are kept that come again by TCP");
	if (fuzz_bytes_of(&c->rx.queue) > BWS_WINDOW ||
	    fuzz_bytes_of(&c->tx.queue) > BWS_WINDOW + BWS_PIECE)
		fuzz_bad("more is kept than the window");
}

static void begin(bool with_endpoint)
{
	static char ep;

	answer = 1;
	tcp_room = LONGEST;
	tcp_lives = true;
	rings = false;
	held_n = 0;
	meanwhile = NULL;
	memset(down, 0, sizeof(down));
	memset(&mail, 0, sizeof(mail));
	refusal_waits = false;
	interrupted = 0;
	drawn = 0;
	ports = 0;
	fake_now = 1000 * BWS_S;
	memset(bws_hosts, 0, sizeof(bws_hosts));
	memset(&bws, 0, sizeof(bws));
	bws.pid = getpid();
	atomic_store(&bws.ep, with_endpoint ? (struct bw_ep *)&ep : NULL);
	bws_registrar_init(&bws_control.registrar);
	for (int i = 0; i < CLIENTS; i++)
		bws_control.registrar.client[bws_control.registrar.clients++] = CLIENT + i;
	for (int i = 0; i < 2; i++) {
		bws_control.registrar.port[i] = PORT + i;
		bws_control.offers[i] = OFFERS + i;
	}
	bws_control.choice = (struct bws_choice){0};
	bws_control.moved = 0;
	bws_control.room = bws_control.wanting = bws_control.roused = false;
	atomic_store(&bws_control.crowded, 0);
	atomic_store(&bws_control.crowded_rouse, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	uint8_t how = fuzz_u8(&in);

	if (!bws_real.loaded) {
		if (!bws_conn_init())
			fuzz_bad("no connections");
		bws_real.loaded = true;
		bws_real.sendto = fake_sendto;
		bws_real.setsockopt = fake_option;
		bws_real.shutdown = fake_shutdown;
		bws_real.ppoll = fake_poll;
		bws_real.recvfrom = fake_recvfrom;
		bws_real.recvmsg = fake_recvmsg;
		bws_real.sendmsg = fake_sendmsg;
	}
	begin(how & 8 ? false : true);
	for (uint32_t i = 0; i < SLOTS; i++)
		connects(&slot[i], how >> i & 1);
	while (in.at < in.end) {
		step(&in);
		for (struct slot *s = slot; s < slot + SLOTS; s++) {
			if (s->c)
				holds(s);
		}
	}
	meanwhile = NULL;
	for (uint32_t i = SLOTS; i--;) {
		if (slot[i].c)
			bws_conn_free(slot[i].c);
		slot[i].c = NULL;
	}
	while (held_n)
		bws_flow_handlers.sent(NULL, held[--held_n], 0);
	return 0;
}
