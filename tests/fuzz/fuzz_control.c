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

/* ---- libbeowire ---- */

/* Whose bytes these are. */
static struct slot *sender_of(const void *data)
{
	for (struct slot *s = slot; s < slot + SLOTS; s++) {
		if (!s->c)
			continue;
		for (struct bws_piece *p = s->c->tx.queue.first; p; p = p->next) {
			if ((const uint8_t *)data >= p->data &&
			    (const uint8_t *)data < p->data + p->len)
				return s;
		}
	}
	fuzz_bad("bytes of no connection");
}

int bw_send(struct bw_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, uint64_t imm,
	    const void *data, uint64_t len, unsigned int flags, void *op)
{
	struct slot *s = code == BWS_DATA ? sender_of(data) : NULL;

	if (!(tag >> 32) || peer < PEER_A || peer > STRANGER)
		fuzz_bad("a message for nobody");
	if (len > BWS_PIECE)
		fuzz_bad("a message that the peer does not take");
	if (s && (s->c->peer != peer || !s->c->paired))
		fuzz_bad("bytes for another peer");
	if (s)
		is_at(s, imm, data, len);
	if (meanwhile) {
		struct fuzz_input *in = meanwhile;

		meanwhile = NULL;
		interrupted++;
		message(in);
	}
	if (down[peer])
		return -ENOTCONN;
	if (answer < 0 || (!answer && held_n == HELD))
		return answer < 0 ? answer : -EAGAIN;
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

/* The first byte of an address is the endpoint's number. */
int bw_peer_find(struct bw_ep *ep, const struct bw_addr *addr, bw_peer_no *peer)
{
	if (addr->bytes[0] < PEER_A || addr->bytes[0] > STRANGER)
		return -EINVAL;
	*peer = addr->bytes[0];
	return 0;
}

int bw_peer_forget(struct bw_ep *ep, const struct bw_addr *addr)
{
	bw_peer_no peer;

	if (!mail.handled || !mail.of || memcmp(addr, &mail.o.addr, sizeof(*addr)))
		fuzz_bad("a peer is forgotten that nobody has named");
	if (bw_peer_find(ep, addr, &peer))
		return -EINVAL;
	if (!down[peer])
		return -EBUSY;
	down[peer] = false;
	return 0;
}

const char *bw_peer_link(struct bw_ep *ep, bw_peer_no peer)
{
	return "packet";
}

void bw_ep_addr(struct bw_ep *ep, struct bw_addr *addr)
{
	memset(addr, 9, sizeof(*addr));
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

void bws_wake(struct bws_conn *c, uint32_t what)
{
}

void bws_watch_changed(struct bws_conn *c)
{
}

void bws_watch_more(struct bws_conn *c)
{
}

void bws_sleepers_rouse(void)
{
}

bool bws_endpoint_open(void)
{
	return true;
}

uint64_t bws_endpoint_due(void)
{
	return UINT64_MAX;
}

uint64_t bws_rings_due(void)
{
	return UINT64_MAX;
}

bool bws_rings_here(uint64_t now)
{
	return rings;
}

/* An orphan ends. */
void bws_tell(struct bws_conn *c)
{
	struct slot *s = slot_of(c);

	if (!c->orphan)
		fuzz_bad("one ends that the program has");
	if (!bws_settled(c) && !c->error && fake_now < c->offer_at)
		fuzz_bad("an orphan ends too early");
	s->c = NULL;
}

int bws_own_close(int fd)
{
	return 0;
}

int bws_own_eventfd(unsigned int count, int flags)
{
	return -1;
}

int bws_own_socket(int domain, int type, int protocol)
{
	return -1;
}

int bws_own_accept4(int fd, struct sockaddr *name, socklen_t *len, int flags)
{
	return -1;
}

int bw_claim_dial(const char *name)
{
	return -1;
}

int bw_claim_name(const char *name)
{
	return -1;
}

int bw_who_may(int fd, struct ucred *who)
{
	return -EPERM;
}

/* ---- TCP ---- */

static int name_of(const uint8_t *address, uint16_t port, struct sockaddr *name, socklen_t *len)
{
	struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	bool v4 = bws_offer_is_v4(address);
	socklen_t n = v4 ? sizeof(in4) : sizeof(in6);

	memcpy(&in4.sin_addr, address + 12, 4);
	memcpy(&in6.sin6_addr, address, 16);
	if (*len < n)
		fuzz_bad("no room for a name");
	memcpy(name, v4 ? (void *)&in4 : (void *)&in6, n);
	*len = n;
	return 0;
}

static int fake_here(int fd, struct sockaddr *name, socklen_t *len)
{
	struct slot *s = slot_of_fd(fd);

	return name_of(s->name.here, s->name.here_port, name, len);
}

static int fake_there(int fd, struct sockaddr *name, socklen_t *len)
{
	struct slot *s = slot_of_fd(fd);

	return name_of(s->name.there, s->name.there_port, name, len);
}

static ssize_t tcp_send(struct slot *s, const uint8_t *data, size_t len)
{
	const struct bws_piece *p = s->c->tx.queue.first;
	uint64_t from = s->said < s->c->tx.switch_at ? s->c->tx.switch_at : s->said;

	if (tcp_room < 0) {
		errno = -tcp_room;
		return -1;
	}
	if (!p || data != p->data + p->done)
		fuzz_bad("TCP gets what is not the first");
	if ((uint64_t)tcp_room < len)
		len = (size_t)tcp_room + 1;
	if (!s->tcp_goes) {
		s->tcp_at = s->c->tx.taken;
		if (s->tcp_at != from && s->tcp_at != s->c->tx.switch_at)
			fuzz_bad("TCP begins elsewhere than the peer says");
	}
	s->tcp_goes = true;
	if (p->off + p->done != s->tcp_at)
		fuzz_bad("TCP goes on elsewhere");
	is_at(s, s->tcp_at, data, len);
	s->tcp_at += len;
	return (ssize_t)len;
}

static ssize_t fake_sendto(int fd, const void *data, size_t len, int flags,
			   const struct sockaddr *to, socklen_t n)
{
	const struct bws_handed *handed = data;

	if (fd < CLIENT)
		return tcp_send(slot_of_fd(fd), data, len);
	if (fd != CLIENT + mail.handed++ || mail.handed > CLIENTS || !mail.handled ||
	    len != sizeof(*handed) || mail.len != BWS_OFFER_BYTES ||
	    memcmp(&handed->from, &mail.from, sizeof(mail.from)) ||
	    memcmp(handed->bytes, mail.bytes, BWS_OFFER_BYTES))
		fuzz_bad("the registrar hands on something else");
	return (ssize_t)len;
}

static int fake_option(int fd, int level, int name, const void *value, socklen_t n)
{
	slot_of_fd(fd);
	return 0;
}

static int fake_shutdown(int fd, int how)
{
	slot_of_fd(fd);
	return 0;
}

static int fake_poll(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
	slot_of_fd(fds->fd);
	return !tcp_lives;
}

/* ---- datagrams ---- */

static ssize_t fake_recvfrom(int fd, void *to, size_t room, int flags, struct sockaddr *name,
			     socklen_t *len)
{
	struct bws_handed handed;

	if (!mail.waits || fd != mail.fd) {
		errno = EAGAIN;
		return -1;
	}
	mail.waits = false;
	mail.handled = true;
	if (fd == REGISTRAR) {
		memset(&handed, 0, sizeof(handed));
		handed.from = mail.from;
		memcpy(handed.bytes, mail.bytes, sizeof(handed.bytes));
		if (room != sizeof(handed))
			fuzz_bad("room for another length");
		if (mail.len != BWS_OFFER_BYTES)
			room = mail.len < room ? mail.len : room - 1;
		memcpy(to, &handed, room);
		return (ssize_t)room;
	}
	name_of(mail.from.address, mail.from.port, name, len);
	memcpy(to, mail.bytes, mail.len < room ? mail.len : room);
	return (ssize_t)mail.len;
}

static ssize_t fake_recvmsg(int fd, struct msghdr *m, int flags)
{
	if (!refusal_waits || !(flags & MSG_ERRQUEUE)) {
		errno = EAGAIN;
		return -1;
	}
	refusal_waits = false;
	name_of(refuser.address, refuser.port, m->msg_name, &m->msg_namelen);
	return 0;
}

static bool same_from(const struct bws_from *one, const struct bws_from *other)
{
	return one->port == other->port && !memcmp(one->address, other->address, 16);
}

static bool is_drawn(const uint8_t *nonce, uint8_t whose)
{
	return nonce[0] == whose || (whose == 2 && nonce[0] == 0xEE);
}

static void tells_offer(struct slot *s, const struct bws_offer *o, const struct bws_from *to)
{
	static const uint8_t none[BWS_NONCE];
	const struct bws_conn *c = s->c;

	if (!c->connector || c->paired || c->rescue || c->error || c->pinned || c->orphan ||
	    !c->candidate || bws.pinned || rings)
		fuzz_bad("an offer of a connection that is not to leave TCP");
	if (memcmp(to->address, s->name.there, 16) || to->port != BWS_OFFER_PORT)
		fuzz_bad("an offer for somebody else");
	if (memcmp(o->to_nonce, none, BWS_NONCE) || !is_drawn(o->nonce, 1))
		fuzz_bad("an offer with other nonces");
	if (s->offered && fake_now - s->offered < 20 * BWS_MS)
		fuzz_bad("offers follow too soon");
	s->offered = fake_now;
}

static void tells_accept(const struct slot *s, const struct bws_offer *o, const struct bws_from *to)
{
	const struct bws_conn *c = s->c;

	if (!mail.handled || !mail.good || mail.o.kind != BWS_OFFER || mail.of != s ||
	    !same_from(to, &mail.from) || mail.fd >= OFFERS)
		fuzz_bad("an answer that nobody has asked for");
	if (c->connector || c->paired || c->rescue || c->error || c->pinned || c->orphan ||
	    bws.held || bws.pinned || rings)
		fuzz_bad("an answer for a connection that is not to leave TCP");
	if (memcmp(o->to_nonce, mail.o.nonce, BWS_NONCE) || !is_drawn(o->nonce, 1))
		fuzz_bad("an answer with other nonces");
}

static void tells_rescue(struct slot *s, const struct bws_offer *o, const struct bws_from *to)
{
	const struct bws_conn *c = s->c;
	uint64_t at;

	memcpy(&at, o->addr.bytes, sizeof(at));
	if (!is_drawn(o->nonce, 1) || !is_drawn(o->to_nonce, 2))
		fuzz_bad("a report without nonces");
	if (c->rescue && at != c->shared->rx - s->since_rescue)
		fuzz_bad("the peer is told another offset than the program's");
	if (o->kind == BWS_RESCUED) {
		if (!mail.handled || !mail.good || !mail.theirs || mail.o.kind != BWS_RESCUE ||
		    mail.of != s || !same_from(to, &mail.from))
			fuzz_bad("a report is acknowledged that nobody has made");
		return;
	}
	if (!c->rescue || mail.handled || !same_from(to, &c->peer_at))
		fuzz_bad("a report for nobody");
	if (s->rescued && fake_now - s->rescued < BWS_CONTROL_RESCUE)
		fuzz_bad("reports follow too soon");
	s->rescued = fake_now;
}

static struct slot *slot_of_name(const struct bws_name *name, bool mirrored)
{
	for (struct slot *s = slot; s < slot + SLOTS; s++) {
		struct bws_name other = {.here_port = s->name.there_port,
					 .there_port = s->name.here_port};

		memcpy(other.here, s->name.there, 16);
		memcpy(other.there, s->name.here, 16);
		if (s->c && !memcmp(mirrored ? &other : &s->name, name, sizeof(*name)))
			return s;
	}
	return NULL;
}

static ssize_t fake_sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct sockaddr_storage name = {0};
	struct bws_from to;
	struct bws_offer o;
	struct slot *s;

	if (m->msg_namelen > sizeof(name))
		fuzz_bad("a name that is too long");
	memcpy(&name, m->msg_name, m->msg_namelen);
	if (m->msg_iovlen != 1 ||
	    !bws_offer_unpack(m->msg_iov->iov_base, m->msg_iov->iov_len, &o) ||
	    !bws_offer_address(&name, to.address, &to.port))
		fuzz_bad("what is sent is no offer");
	if (fd != OFFERS + !bws_offer_is_v4(to.address))
		fuzz_bad("by the other socket");
	s = slot_of_name(&o.name, false);
	if (!s || o.id != s->c->id)
		fuzz_bad("an offer of no connection");
	if (mail.handled && mail.told++)
		fuzz_bad("more than one answer");
	if (o.kind == BWS_OFFER)
		tells_offer(s, &o, &to);
	else if (o.kind == BWS_ACCEPT)
		tells_accept(s, &o, &to);
	else
		tells_rescue(s, &o, &to);
	return tcp_room < 0 ? -1 : BWS_OFFER_BYTES;
}

/* ---- who does not know the nonces changes nothing ---- */

struct frozen {
	bool paired, open, back, rescue, rescued, pinned, peer_parks, overdue;
	int error;
	enum bws_way rx_way, tx_way;
	uint64_t rx_next, taken, switch_at, sent, got;
	uint32_t epoch, peer_id, owed, losses;
	bw_peer_no peer;
};

/* Until it is paired, an offer of anybody who says to be at the peer's address may change these. */
struct asked {
	uint8_t nonce[BWS_NONCE], peer_nonce[BWS_NONCE], old[BWS_NONCE], old_peer[BWS_NONCE];
	struct bw_addr addr;
	struct bws_from at;
	bool answered, proven, retired;
};

static void freeze(const struct bws_conn *c, struct frozen *f, struct asked *a)
{
	memset(f, 0, sizeof(*f));
	memset(a, 0, sizeof(*a));
	f->paired = c->paired;
	f->open = c->rx.open;
	f->back = c->tx.back;
	f->rescue = c->rescue;
	f->rescued = c->rescued;
	f->pinned = c->pinned;
	f->peer_parks = c->peer_parks;
	f->error = c->error;
	f->rx_way = c->rx.way;
	f->tx_way = c->tx.way;
	f->rx_next = c->rx.next;
	f->taken = c->tx.taken;
	f->switch_at = c->tx.switch_at;
	f->sent = c->shared->tx;
	f->got = c->shared->rx;
	f->epoch = c->tx.epoch;
	f->peer_id = c->peer_id;
	f->owed = c->owed;
	f->losses = c->losses;
	f->peer = c->peer;
	memcpy(a->nonce, c->nonce, BWS_NONCE);
	memcpy(a->peer_nonce, c->peer_nonce, BWS_NONCE);
	memcpy(a->old, c->old_nonce, BWS_NONCE);
	memcpy(a->old_peer, c->old_peer_nonce, BWS_NONCE);
	a->addr = c->peer_addr;
	memcpy(a->at.address, c->peer_at.address, 16);
	a->at.port = c->peer_at.port;
	a->answered = c->answered;
	a->proven = c->proven;
	a->retired = c->retired;
}

static struct frozen before[SLOTS];
static struct asked asked[SLOTS];
static uint32_t frozen_at;

static void freeze_all(void)
{
	frozen_at = interrupted;
	for (uint32_t i = 0; i < SLOTS; i++) {
		if (slot[i].c)
			freeze(slot[i].c, &before[i], &asked[i]);
	}
}

/* All but `heard` are as they were; its nonces may be others after an `offer`. */
static void still_frozen(const struct slot *heard, bool offer)
{
	struct frozen f;
	struct asked a;

	if (frozen_at != interrupted) /* somebody else was heard meanwhile */
		return;
	for (uint32_t i = 0; i < SLOTS; i++) {
		const struct bws_conn *c = slot[i].c;

		if (!c || &slot[i] == heard)
			continue;
		freeze(c, &f, &a);
		if (memcmp(&f, &before[i], sizeof(f)))
			fuzz_bad("who does not know the nonces is heard");
		if (offer && mail.of == &slot[i] && !c->connector && !c->paired && !c->rescue)
			continue;
		if (memcmp(&a, &asked[i], sizeof(a)))
			fuzz_bad("nonces change without a reason");
	}
}

/* ---- what peers and strangers say ---- */

/* Plausible, or anything. */
static uint64_t offset(const struct bws_conn *c, struct fuzz_input *in)
{
	uint8_t how = fuzz_u8(in);
	uint64_t some[] = {c->shared->rx, c->rx.next,	   c->rx.from,	  c->rx.epoch,
			   c->tx.taken,	  c->tx.switch_at, c->shared->tx, c->id};

	return how & 8 ? fuzz_number(in) : some[how & 7] + (how & 16 ? fuzz_u8(in) : 0);
}

static struct slot *some_slot(struct fuzz_input *in)
{
	struct slot *s = &slot[fuzz_u8(in) % SLOTS];

	return s->c ? s : NULL;
}

static void hears(struct slot *s, uint64_t at)
{
	if (s->c->tx.way == BWS_BW)
		s->said = at;
}

/* Bytes that were never sent cannot have been taken. */
static void believes(const struct slot *s, uint64_t at, enum bws_way before)
{
	if (s->c && before == BWS_BW && at > s->c->shared->tx && s->c->tx.way != BWS_BW &&
	    at > s->c->tx.switch_at && !s->c->error)
		fuzz_bad("the peer is believed that it has what was never sent");
}

/* Both nonces as they are, or as they were; or those of somebody who does not know them. */
static void prove(const struct slot *s, uint8_t how, uint8_t *theirs, uint8_t *ours)
{
	bool old = (how & 7) == 3 || (how & 7) == 4, wrong = (how & 7) == 7;
	uint8_t junk = how & 8 ? 0 : 0xEE;

	memcpy(theirs, old ? s->then[1] : s->c->peer_nonce, BWS_NONCE);
	memcpy(ours, old ? s->then[0] : s->c->nonce, BWS_NONCE);
	if (wrong || (how & 7) == 5)
		memset(ours, junk, BWS_NONCE);
	if (wrong || (how & 7) == 6)
		memset(theirs, junk, BWS_NONCE);
}

/* Does its sender know what the peer of this connection alone knows, or knew? */
static enum proof proves(const struct slot *s, const struct bws_offer *o)
{
	const struct bws_conn *c = s->c;
	bool now = !memcmp(o->to_nonce, c->nonce, BWS_NONCE);

	if (o->kind == BWS_ACCEPT)
		return now && c->offers ? PROVEN : NONE;
	if (o->kind == BWS_OFFER)
		return NONE;
	if (now && c->peer_at.port && !memcmp(o->nonce, c->peer_nonce, BWS_NONCE))
		return PROVEN;
	return s->has_then && !memcmp(o->to_nonce, s->then[0], BWS_NONCE) &&
			       !memcmp(o->nonce, s->then[1], BWS_NONCE)
		       ? PROVEN_THEN
		       : NONE;
}

/* The bytes of mail.o, changed if so asked, are handled as what has come to a socket. */
static void post(int fd)
{
	struct pollfd fds[3 + BWS_REGISTRAR_FDS + BWS_CONTROL_DRAIN] = {0};
	uint64_t refused = bws.offers_refused;
	struct bws_offer again;
	bool pinned = bws.pinned;
	enum bws_way way = BWS_TCP;
	uint64_t at = 0;
	int n;

	mail.fd = fd;
	mail.good = bws_offer_unpack(mail.bytes, mail.len, &again);
	if (mail.good)
		mail.o = again;
	mail.of = mail.good && !memcmp(mail.from.address, mail.o.name.here, 16)
			  ? slot_of_name(&mail.o.name, true)
			  : NULL;
	mail.theirs = mail.of ? proves(mail.of, &mail.o) : NONE;
	if (mail.theirs == PROVEN && mail.o.kind == BWS_RESCUE) {
		memcpy(&at, mail.o.addr.bytes, sizeof(at));
		way = mail.of->c->tx.way;
		hears(mail.of, at);
	}
	mail.waits = true;
	mail.told = mail.handed = 0;
	freeze_all();
	if (fd >= OFFERS) {
		fds[fd - OFFERS].revents = POLLIN;
		bws_control_receive(fds);
	} else {
		n = bws_registrar_fds(&bws_control.registrar, fds);
		for (int i = 0; i < n; i++)
			fds[i].revents = fds[i].fd == fd ? POLLIN : 0;
		bws_registrar_serve(&bws_control.registrar, fds, n, bws_control_answer);
	}
	if (!mail.waits && fd != REGISTRAR && refused == bws.offers_refused &&
	    atomic_load(&bws.ep) && (!mail.good || memcmp(mail.from.address, mail.o.name.here, 16)))
		fuzz_bad("what is dropped is not counted");
	if (fd >= PORT && fd < REGISTRAR && mail.len == BWS_OFFER_BYTES && mail.handed != CLIENTS)
		fuzz_bad("not all of the registrar's clients are told");
	if (mail.theirs && mail.o.kind == BWS_RESCUE && fd >= OFFERS && atomic_load(&bws.ep) &&
	    !mail.told)
		fuzz_bad("a report of the peer is not acknowledged");
	if (mail.of)
		believes(mail.of, at, way);
	if (!pinned == !bws.pinned)
		still_frozen(mail.theirs == PROVEN ? mail.of : NULL,
			     mail.good && fd < OFFERS && mail.o.kind == BWS_OFFER);
	mail.handled = mail.waits = false;
	mail.of = NULL;
}

/* From the peer of a connection, or one who says so. */
static void compose(const struct slot *s, enum bws_offer_kind kind, uint8_t proof)
{
	struct bws_offer *o = &mail.o;

	memset(o, 0, sizeof(*o));
	o->kind = kind;
	o->id = 0x1234;
	memcpy(o->name.here, s->name.there, 16);
	memcpy(o->name.there, s->name.here, 16);
	o->name.here_port = s->name.there_port;
	o->name.there_port = s->name.here_port;
	prove(s, proof, o->nonce, o->to_nonce);
	if (kind == BWS_OFFER || kind == BWS_ACCEPT) {
		/* Who asks or answers draws one. */
		if (o->nonce[0] != 0xEE)
			draw(o->nonce, 2);
		o->addr.bytes[0] = (uint8_t)peer_of(s);
	}
	memset(&mail.from, 0, sizeof(mail.from));
	memcpy(mail.from.address, s->name.there, 16);
	mail.from.port = BWS_OFFER_PORT;
	mail.len = BWS_OFFER_BYTES;
}

static int socket_for(const struct slot *s, bool offer)
{
	return (offer ? PORT : OFFERS) + (number_of(s) == 2);
}

static void datagram(struct fuzz_input *in)
{
	struct slot *s = some_slot(in);
	uint8_t how = fuzz_u8(in), kind = fuzz_u8(in), where = fuzz_u8(in);
	uint64_t at;

	if (!s)
		return;
	compose(s, kind % (BWS_OFFER_KINDS + 1), kind >> 4);
	if (mail.o.kind >= BWS_RESCUE) {
		at = offset(s->c, in);
		memcpy(mail.o.addr.bytes, &at, sizeof(at));
	}
	if (how & 1) /* any endpoint */
		mail.o.addr.bytes[0] = fuzz_u8(in);
	if (how & 2)
		mail.from.port = fuzz_u16(in) | 1;
	if (how & 4)
		mail.o.id = fuzz_u16(in);
	if (how & 8) { /* from elsewhere */
		mail.from.address[15] ^= fuzz_u8(in);
		if (how & 128)
			memcpy(mail.o.name.here, mail.from.address, 16);
	}
	if (how & 16)
		mail.o.name.here_port = fuzz_u16(in);
	bws_offer_pack(&mail.o, mail.bytes);
	if (how & 32) /* anything */
		mail.bytes[fuzz_u8(in) % BWS_OFFER_BYTES] ^= fuzz_u8(in);
	if (how & 64)
		mail.len = fuzz_u16(in) % sizeof(mail.bytes);
	if (where & 1)
		post(socket_for(s, mail.o.kind == BWS_OFFER));
	else
		post(where & 2 ? REGISTRAR : socket_for(s, where & 4));
}

static void deliver(struct slot *s, struct bw_message *m, bool known)
{
	enum bws_way way = s->c->tx.way;

	if (down[m->peer])
		return;
	if (!s->c->rescue)
		s->since_rescue = s->rescued = 0;
	if (known && m->code == BWS_RETURN)
		hears(s, m->imm);
	if (!known)
		freeze_all();
	bws_flow_handlers.message(NULL, m);
	if (known && m->code == BWS_RETURN)
		believes(s, m->imm, way);
	if (!known)
		still_frozen(NULL, false);
}

static void message(struct fuzz_input *in)
{
	struct slot *s = some_slot(in);
	uint8_t how = fuzz_u8(in), whose = fuzz_u8(in), both[2 * BWS_NONCE];
	uint32_t n = how & 128 ? fuzz_u16(in) : fuzz_u8(in) & 63, len;
	struct bw_message m = {.code = how & 15};
	bool known;
	const uint8_t *bytes;
	uint8_t *copy;

	if (!s)
		return;
	m.peer = whose & 1 ? PEER_A + (whose >> 1) % 3 : (bw_peer_no)peer_of(s);
	known = s->c->peer_id && m.peer == s->c->peer;
	m.envelope = how & 32 && m.code > BWS_CROWDED;
	m.imm = offset(s->c, in);
	m.tag = (uint64_t)(s->c->id + (how & 16 ? fuzz_u8(in) : 0)) << 32 |
		(uint32_t)offset(s->c, in);
	if (m.tag >> 32 != s->c->id)
		return;
	bytes = fuzz_bytes(in, &n);
	len = how & 128 && n < 4 ? (n ? BWS_PIECE : LONGEST) : n;
	copy = calloc(1, len ? len : 1);
	if (!copy)
		return;
	memcpy(copy, bytes, n);
	if (m.code == BWS_DATA) {
		for (uint32_t i = 0; i < len; i++)
			copy[i] = known ? their_byte(s, m.imm + i) : 0xBB;
	}
	if (m.code == BWS_HELLO || m.code == BWS_WELCOME) {
		prove(s, whose >> 4, both, both + BWS_NONCE);
		memcpy(copy, both, len < sizeof(both) ? len : sizeof(both));
		len = how & 16 || len < sizeof(both) ? len : sizeof(both);
		known = len == sizeof(both) && !memcmp(copy, s->c->peer_nonce, BWS_NONCE) &&
			!memcmp(copy + BWS_NONCE, s->c->nonce, BWS_NONCE) &&
			m.peer == s->c->peer_addr.bytes[0] && m.imm && m.imm <= UINT32_MAX;
	}
	m.data = copy;
	m.len = len;
	deliver(s, &m, known);
	free(copy);
}

/* All that brings a connection from TCP to Beowire, as a good peer does. */
static void pairs(struct fuzz_input *in)
{
	struct slot *s = some_slot(in);
	uint8_t both[2 * BWS_NONCE], how = fuzz_u8(in);
	struct bw_message m = {.data = both, .len = sizeof(both)};
	struct pollfd fds[3 + BWS_REGISTRAR_FDS + BWS_CONTROL_DRAIN];
	int n = 3;

	if (!s || s->c->paired)
		return;
	atomic_store(&s->c->candidate, true);
	if (s->c->connector) {
		if (s->c->offer_at > fake_now)
			fake_now = s->c->offer_at;
		bws_control_looks(fds, &n);
		n = 3;
		fake_now += BWS_CONTROL_FIRST;
		bws_control_looks(fds, &n);
		if (!s->c)
			return;
	}
	compose(s, s->c->connector ? BWS_ACCEPT : BWS_OFFER, 0);
	bws_offer_pack(&mail.o, mail.bytes);
	post(socket_for(s, !s->c->connector));
	m.peer = (bw_peer_no)peer_of(s);
	m.code = s->c->connector ? BWS_WELCOME : BWS_HELLO;
	m.imm = 0x77;
	m.tag = (uint64_t)s->c->id << 32;
	memcpy(both, s->c->peer_nonce, BWS_NONCE);
	memcpy(both + BWS_NONCE, s->c->nonce, BWS_NONCE);
	deliver(s, &m, true);
	if (!s->c->paired || !(how & 1))
		return;
	m = (struct bw_message){.peer = s->c->peer, .code = BWS_READY, .imm = 1, .tag = m.tag};
	deliver(s, &m, true);
	if (!s->c->paired || !(how & 2))
		return;
	m.code = BWS_SWITCH;
	m.imm = s->c->rx.epoch;
	m.data = &s->c->shared->rx;
	m.len = 8;
	deliver(s, &m, true);
}

/* ---- the program, the node, time ---- */

static void sends(struct fuzz_input *in)
{
	struct slot *s = some_slot(in);
	uint32_t n = fuzz_u16(in) * 2u;
	struct bws_conn *c = s ? s->c : NULL;
	uint8_t *bytes;
	uint64_t at;

	if (!c || c->orphan || c->tx.shut)
		return;
	if (c->tx.way != BWS_BW || c->error) { /* data.c sends by TCP, or not at all */
		if (c->tx.way == BWS_TCP)
			c->shared->tx += n;
		return;
	}
	bytes = malloc(n ? n : 1);
	if (!bytes)
		return;
	at = c->shared->tx;
	for (uint32_t i = 0; i < n; i++)
		bytes[i] = our_byte(s, at + i);
	if (bws_tx_add(c, bytes, n) > n)
		fuzz_bad("more is taken than there was");
	free(bytes);
}

/* As data.c does. */
static void receives(struct fuzz_input *in)
{
	struct slot *s = some_slot(in);
	uint64_t n = fuzz_u16(in), taken = 0;
	struct bws_conn *c = s ? s->c : NULL;
	struct bws_piece *p;

	if (!c || c->orphan)
		return;
	if (c->rx.way == BWS_TCP || c->rx.way == BWS_UNTIL) {
		if (c->rx.way == BWS_UNTIL && n > c->rx.from - c->shared->rx)
			n = c->rx.from - c->shared->rx;
		s->since_rescue += c->rescue ? n : 0;
		bws_rx_by_tcp(c, n);
		return;
	}
	while (taken < n && (p = c->rx.queue.first)) {
		uint64_t part = p->len - p->done < n - taken ? p->len - p->done : n - taken;

		if (p->off + p->done != c->shared->rx + taken)
			fuzz_bad("the program gets bytes of another offset");
		for (uint64_t i = 0; i < part; i++) {
			if (p->data[p->done + i] != their_byte(s, p->off + p->done + i))
				fuzz_bad("the program gets bytes that the peer has not sent");
		}
		p->done += (uint32_t)part;
		taken += part;
		if (p->done == p->len)
			bws_queue_pop(&c->rx.queue);
	}
	bws_rx_taken(c, taken);
}

static void connects(struct slot *s, bool connector)
{
	static const uint8_t mapped[12] = {[10] = 0xFF, 0xFF};
	uint32_t i = number_of(s);

	memset(s, 0, sizeof(*s));
	if (i < 2) {
		memcpy(s->name.here, mapped, 12);
		memcpy(s->name.there, mapped, 12);
	}
	memcpy(s->name.here + 12, "\x0a\x00\x00\x01", 4);
	memcpy(s->name.there + 12, i < 2 ? "\x0a\x00\x00\x02" : "\x0a\x00\x00\x03", 4);
	s->name.here_port = connector ? (uint16_t)(1000 + ports++) : 80;
	s->name.there_port = connector ? 80 : (uint16_t)(1000 + ports++);
	s->c = bws_conn_new(PROGRAM + (int)i, connector);
	if (!s->c)
		fuzz_bad("no connection");
	atomic_store(&s->c->candidate, true);
}

/* As fds.c does. */
static void closes(struct slot *s)
{
	struct bws_conn *c = s->c;

	if (c->orphan)
		return;
	if (!c->error) {
		bws_return(c, true);
		if (!bws_settled(c)) {
			c->orphan = true;
			c->offer_at = fake_now + BWS_ORPHAN;
			bws_attend();
			return;
		}
	}
	s->c = NULL;
	bws_conn_free(c);
}

static void looks(uint64_t ns)
{
	struct pollfd fds[3 + BWS_REGISTRAR_FDS + BWS_CONTROL_DRAIN];
	int n = 3;
	uint64_t at;

	fake_now += ns;
	at = bws_control_looks(fds, &n);
	for (int i = 3; i < n; i++) {
		if (slot_of_fd(fds[i].fd)->c->tx.way != BWS_DRAIN)
			fuzz_bad("it waits for a socket that nothing waits for");
	}
	for (struct slot *s = slot; s < slot + SLOTS; s++) {
		if (!s->c)
			continue;
		if (s->c->rescue && fake_now >= s->c->rescue_until)
			fuzz_bad("a rescue has no end");
		if (s->c->orphan && fake_now >= s->c->offer_at && !s->c->rescue)
			fuzz_bad("an orphan has no end");
		if (s->c->rescue && !s->c->rescued && at > s->c->rescue_at && !bws_control.roused)
			fuzz_bad("it sleeps while the peer is to be told");
	}
}

static void refuses(struct fuzz_input *in)
{
	struct pollfd fds[2] = {{.revents = POLLIN}, {.revents = 0}};
	struct slot *s = some_slot(in);

	if (!s || number_of(s) == 2)
		return;
	memset(&refuser, 0, sizeof(refuser));
	memcpy(refuser.address, s->name.there, 16);
	refuser.address[15] ^= fuzz_u8(in) & 1;
	refusal_waits = true;
	freeze_all();
	bws_control_receive(fds);
	still_frozen(NULL, false);
	if (memcmp(refuser.address, s->name.there, 16))
		return;
	if (!bws_hosts_plain(s->name.there, fake_now))
		fuzz_bad("a refusal is not remembered");
}

static void sets(struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in);

	answer = what & 4 ? -ENOTCONN : what & 2 ? -EAGAIN : what & 1;
	meanwhile = what & 32 ? in : NULL;
	tcp_room = what & 16 ? -EPIPE : what & 8 ? -EAGAIN : fuzz_u16(in);
	tcp_lives = !(what & 64);
	bws.held = what >> 7;
}

static void lost(struct fuzz_input *in)
{
	uint8_t how = fuzz_u8(in);
	bw_peer_no peer = PEER_A + (how & 1);

	down[peer] = true;
	if (how & 2 && held_n)
		bws_flow_handlers.sent(NULL, held[--held_n], -EIO);
	bws_flow_handlers.peer_down(NULL, peer, -ETIMEDOUT);
}

static void does(struct fuzz_input *in, struct slot *s, uint8_t what)
{
	switch (what & 7) {
	case 0:
		closes(s);
		break;
	case 1:
		bws_return(s->c, false);
		break;
	case 2:
		s->c->pinned = true;
		break;
	case 3:
		bws_park(s->c, fuzz_u8(in) & 1);
		break;
	case 4:
		bws_tx_drain(s->c);
		break;
	case 5:
		bws.compare = what & 8 ? BWS_COMPARE_ALWAYS : BWS_COMPARE_CROWDED;
		break;
	case 6:
		rings = what & 8 && what & 16 && what & 32;
		break;
	default:
		bws_control.registrar.connection = REGISTRAR;
		break;
	}
}

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
	if (c->proven) {
		memcpy(s->now[0], c->nonce, BWS_NONCE);
		memcpy(s->now[1], c->peer_nonce, BWS_NONCE);
		s->has_now = true;
	} else if (s->has_now && memcmp(s->now[0], c->nonce, BWS_NONCE)) {
		memcpy(s->then, s->now, sizeof(s->then));
		s->has_then = true;
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
