/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of fuzz_control.c: what programs do with their connections, the node, and time. */
#ifndef BW_FUZZ_CONTROL_PROGRAM_H
#define BW_FUZZ_CONTROL_PROGRAM_H

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

#endif
