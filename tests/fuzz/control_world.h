/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of fuzz_control.c: libbeowire, the rest of the library and TCP, as its files find them. */
#ifndef BW_FUZZ_CONTROL_WORLD_H
#define BW_FUZZ_CONTROL_WORLD_H

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

bool bw_discard_reserve(void)
{
	fuzz_bad("somebody calls");
	return false;
}

bool bw_discard_room(void)
{
	return true;
}

void bw_discard_return(void)
{
}

void bw_discard(int fd)
{
}

void bw_discard_listener(int fd)
{
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

#endif
