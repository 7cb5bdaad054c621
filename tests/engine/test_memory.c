/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory: an empty pool is a typed "again", never a failure; what was used comes back; an idle peer
 * is small. And of time: an idle engine has no deadline.
 */
#include "groups.h"
#include "peer.h"

#include <stdio.h>

static void peer__idle_is_small(void **state)
{
	uint32_t before;
	uint32_t i;

	assert_true(bw_reliable_peer_bytes(2) <= 4096);
	assert_true(bw_reliable_peer_bytes(1) >= sizeof(struct bw_peer) + sizeof(struct bw_path));
	node_open(A);
	before = engine(A)->paths.in_use;
	for (i = 0; i < 3; i++) { /* what it says is what they take */
		struct bw_op op = op_connect(A, B);

		op.connect.node = 1000 + i;
		op.connect.paths = 2;
		op.connect.path[1] = address(B, 1);
		assert_int_equal(submit(A, &op), 0);
	}
	assert_int_equal(engine(A)->peers_slab.in_use, 3);
	assert_int_equal(engine(A)->paths.in_use, before + 6);
}

static void open__refuses_what_cannot_work(void **state)
{
	struct node *node = &world.node[A];
	void *mem = malloc(bw_reliable.size(&node->cfg));
	struct bw_config cfg;

	cfg = node->cfg;
	cfg.node = 0;
	assert_int_equal(bw_reliable.open(mem, &cfg, NULL, NULL, 0), -EINVAL);
	cfg = node->cfg;
	cfg.incarnation = 0;
	assert_int_equal(bw_reliable.open(mem, &cfg, NULL, NULL, 0), -EINVAL);
	cfg = node->cfg;
	cfg.dead_ns = 0;
	assert_int_equal(bw_reliable.open(mem, &cfg, NULL, NULL, 0), -EINVAL);
	free(mem);
}

static void submit__again_when_the_pool_is_empty(void **state)
{
	struct bw_op op;
	unsigned int sent = 0;
	int r;

	world.node[A].grow_max = 0;
	meet(A, B);
	for (;;) {
		op = op_send(A, B, sent, 8);
		r = submit(A, &op);
		if (r)
			break;
		sent++;
	}
	assert_int_equal(r, -EAGAIN);
	assert_true(sent > 10);
	assert_true(bw_reliable.hungry(engine(A)));
	op = (struct bw_op){.type = BW_OP_EXPOSE, .peer = world.node[A].peer[B]};
	/* other pools may have room or not, but nothing breaks */
	r = submit(A, &op);
	assert_true(r == 0 || r == -EAGAIN);
	run(100 * BW_MS); /* records are missing too: it goes slower, or waits for memory */
	world.node[A].grow_max = 64;
	op = op_connect(A, B);
	assert_int_equal(submit(A, &op), 0); /* after each call the host offers what is wanted */
	run(100 * BW_MS);
	assert_int_equal(events_with("B MESSAGE"), sent);
	assert_int_equal(events_with("A SENT"), sent);
	op = op_send(A, B, 5000, 8);
	assert_int_equal(submit(A, &op), 0);
	run(BW_MS);
	assert_int_equal(events_with("A SENT 5000"), 1);
}

static void grow__wakes_what_waited_for_memory(void **state)
{
	world.node[A].grow_max = 0;
	meet(A, B);
	post(A, B, 1, 8);
	while (bw_slab_alloc(&engine(A)->records)) /* somebody else took it all */
		;
	settle();
	assert_int_equal(frames_with("A>B DATA"), 0);
	assert_int_equal(deadline(), BW_NEVER); /* no timer helps */
	world.node[A].grow_max = 64;
	assert_int_equal(retract(A, 1), -ENOENT); /* after any call the host offers memory */
	run(BW_MS);
	assert_int_equal(events_with("B MESSAGE 1"), 1);
	assert_int_equal(events_with("A SENT 1"), 1);
}

/* Somebody else took all records of A's but so many, and with them all its memory. */
static void leave_records(unsigned int n)
{
	struct bw_slab *records = &engine(A)->records;
	void *left[8];
	unsigned int i;

	assert_in_range(n, 0, 8);
	for (i = 0; i < n; i++)
		left[i] = bw_slab_alloc(records);
	while (bw_slab_alloc(records))
		;
	while (i)
		bw_slab_free(records, left[--i]);
}

/* A, whose host gives no memory, has got all records under way to B, and none for C. */
static void hold_records(unsigned int n)
{
	unsigned int i;

	world.node[A].grow_max = 0;
	meet(A, B);
	meet(A, C);
	post(A, B, 1, 8);
	post(B, A, 2, 8);
	run(BW_S);
	for (i = 0; i < n; i++)
		post(A, B, 10 + i, 1100);
	post(A, C, 30, 8);
	leave_records(n);
	forget_logs();
	assert_false(bw_reliable_starved(engine(A)));
	flush(A);
	assert_int_equal(frames_with("A>B DATA"), n);
	assert_int_equal(frames_with("A>C"), 0);
	assert_true(bw_reliable_starved(engine(A)));
	assert_true(bw_reliable.next_deadline(engine(A)) > world.now);
	deliver_all();
}

/* What B has said lets the message to C leave, without anything else. */
static void expect_woken(unsigned int sent)
{
	deliver_all();
	assert_int_equal(events_with("A SENT"), sent);
	assert_true(bw_reliable.next_deadline(engine(A)) <= world.now);
	assert_true(bw_reliable_soonest(engine(A)) <= world.now);
	assert_false(bw_reliable_starved(engine(A)));
	flush(A);
	assert_int_equal(frames_with("A>C DATA"), 1);
	assert_false(bw_reliable_starved(engine(A)));
	run(BW_MS);
	assert_int_equal(events_with("C MESSAGE 30"), 1);
	assert_int_equal(events_with("A SENT 30"), 1);
	assert_int_equal(deadline(), BW_NEVER);
}

static void records__that_come_back_wake_who_found_none(void **state)
{
	hold_records(8);
	path(B, A, 0)->rx.ack_now = true;
	bw_peer_ready(engine(B), peer(B, A));
	flush(B);
	expect_woken(8);
}

/* The same by a message that takes the acknowledgement along. */
static void records__that_come_back_with_a_message(void **state)
{
	hold_records(1);
	post(B, A, 40, 8);
	flush(B);
	assert_int_equal(frames_with("B>A ACK"), 0);
	expect_woken(1);
	assert_int_equal(events_with("A MESSAGE 40"), 1);
}

/* With one record in all, and a stream to B without an end: what goes to C has each second turn. */
static void records__of_a_stream_without_an_end(void **state)
{
	unsigned int i;

	world.node[A].grow_max = 0;
	meet(A, B);
	meet(A, C);
	for (i = 0; i < 40; i++)
		post(A, B, 100 + i, 1100);
	for (i = 0; i < 8; i++)
		post(A, C, 200 + i, 1100);
	leave_records(1);
	forget_logs();
	run(BW_S);
	assert_int_equal(events_with("A SENT 1"), 40);
	assert_int_equal(events_with("A SENT 2"), 8);
	*strstr(world.events, "A SENT 207") = '\0';
	assert_in_range(events_with("A SENT 1"), 7, 9);
	assert_false(engine(A)->count.retransmits);
}

static void connect__again_when_the_pool_is_empty(void **state)
{
	struct bw_op op;
	unsigned int n = 0;
	int r;

	world.node[A].grow_max = 0;
	node_open(A);
	for (;;) {
		op = op_connect(A, B);
		op.connect.node = 1000 + n;
		r = submit(A, &op);
		if (r)
			break;
		n++;
	}
	assert_int_equal(r, -EAGAIN);
	assert_true(n > 3);
	assert_int_equal(count(A)->peers, n);
}

/* Memory for the peer, but not for its second path: the same call again adds that one. */
static void connect__again_finds_what_there_was_room_for(void **state)
{
	struct bw_op op;
	struct bw_path *taken, *last = NULL;
	uint32_t handle;

	world.node[A].grow_max = 0;
	node_open(A);
	op = op_connect(A, B);
	op.connect.paths = 1;
	assert_int_equal(submit(A, &op), 0);
	handle = op.peer;
	while ((taken = bw_slab_alloc(&engine(A)->paths))) /* somebody else took it all */
		last = taken;
	op.connect.paths = 2;
	op.connect.path[1] = address(B, 1);
	assert_int_equal(submit(A, &op), -EAGAIN);
	assert_int_equal(count(A)->peers, 1);
	assert_int_equal(bw_peer_get(engine(A), handle)->npaths, 1);
	bw_slab_free(&engine(A)->paths, last);
	assert_int_equal(submit(A, &op), 0);
	assert_int_equal(op.peer, handle);
	assert_int_equal(bw_peer_get(engine(A), handle)->npaths, 2);
}

static void receiver__without_memory_drops_and_recovers(void **state)
{
	unsigned int i;

	world.node[B].grow_max = 0;
	world.node[B].cfg.rx_budget = 64u << 20;
	meet(A, B);
	path(A, B, 0)->cc.cwnd = 4u << 20;
	while (bw_slab_alloc(&engine(B)->rxmsgs)) /* somebody else took it all */
		;
	for (i = 0; i < 20; i++)
		post(A, B, i, 100);
	run(BW_MS);
	assert_true(count(B)->drop[BW_DROP_NO_BUFFER] > 0);
	assert_int_equal(events_with("B MESSAGE"), 0);
	world.node[B].grow_max = 64;
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE"), 20);
	assert_int_equal(events_with("A SENT"), 20);
}

static void objects__all_come_back(void **state)
{
	struct bw_engine *e;
	int round, i;

	meet(A, B);
	for (round = 0; round < 5; round++) {
		uint64_t key = expose(A, B, 1, 30000);

		pull(B, A, key, 2, 0, 30000, BW_PULL_FINAL);
		for (i = 0; i < 20; i++) {
			post(A, B, 100 + (uint64_t)i, 3000);
			post(B, A, 200 + (uint64_t)i, 30);
		}
		flush(A);
		flush(B);
		while (world.wire_n > 3) {
			drop(2);
			give(take(0));
			deliver(0);
		}
		run(BW_S);
		for (i = A; i <= B; i++) {
			e = engine(i);
			assert_int_equal(e->records.in_use, 0);
			assert_int_equal(e->txmsgs.in_use, 0);
			assert_int_equal(e->rxmsgs.in_use, 0);
			assert_int_equal(e->pulls.in_use, 0);
			assert_int_equal(e->regions.in_use, 0);
			assert_int_equal(e->serves.in_use, 0);
			assert_int_equal(e->peers_slab.in_use, 1);
			assert_int_equal(e->paths.in_use, peer(i, B - i)->npaths);
			assert_int_equal(e->flows.in_use, 0);
			assert_int_equal(e->indexes.in_use, 0);
			assert_false(bw_reliable.busy(e));
		}
		assert_int_equal(deadline(), BW_NEVER);
		assert_int_equal(world.node[A].buffers_out + world.node[B].buffers_out, 0);
	}
}

static void payload__counted_once(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 10000);
	pull(B, A, key, 2, 0, 10000, BW_PULL_FINAL);
	post(A, B, 3, 5000);
	flush(B);
	deliver(0);
	flush(A);
	drop(4);
	drop(1);
	run(BW_S);
	assert_true(count(A)->retransmits >= 2);
	assert_int_equal(count(A)->tx_payload, 15000);
	assert_int_equal(count(B)->rx_payload, 15000);
	assert_int_equal(count(A)->tx_messages, 1);
	assert_int_equal(count(B)->rx_messages, 1);
}

static void frames__counted(void **state)
{
	meet(A, B);
	post(A, B, 1, 5000);
	post(B, A, 2, 8);
	run(BW_S);
	assert_int_equal(count(A)->tx_frames, count(B)->rx_frames);
	assert_int_equal(count(B)->tx_frames, count(A)->rx_frames);
	assert_int_equal(count(A)->acks_tx, count(B)->acks_rx);
	assert_int_equal(count(B)->acks_tx, count(A)->acks_rx);
	assert_int_equal(frames_with("A>B ACK"), count(A)->acks_tx);
}

static void turn__a_busy_peer_does_not_starve_another(void **state)
{
	int i;

	meet(A, B);
	meet(A, C);
	for (i = 0; i < 45; i++)
		post(A, B, (uint64_t)i, 1100);
	post(A, C, 100, 8);
	flush(A);
	for (i = 0; (unsigned int)i < world.wire_n && world.wire[i]->to != C; i++)
		;
	assert_in_range(i, 1, BW_QUANTUM);
	settle();
}

/* Strangers who prove their addresses fill the engine; then each new one takes the oldest's place,
 * but not that of a peer who is of use. */
static void callers__of_no_use_make_room(void **state)
{
	struct frame *hello;
	uint32_t n = 0, full, i;

	world.node[B].grow_max = 2;
	world.quiet = true;
	meet(A, B);
	post(A, B, 1, 8);
	run(BW_S);
	hello = hello_of_the_dead();
	while (!stranger_call(hello, n)) {
		assert_int_equal(count(B)->evicted, 0);
		n++;
	}
	full = (uint32_t)count(B)->peers + 1; /* the oldest has made room already */
	assert_true(full > 20 && full == n + 1);
	assert_int_equal(count(B)->evicted, 1);
	for (i = 0; i < 3 * full; i++)
		stranger_call(hello, ++n);
	assert_true(count(B)->evicted >= full);
	assert_true(count(B)->peers >= full - 1);
	assert_int_equal(events_with("B PEER_DOWN A"), 0);
	node_open(C);
	connect_to(C, B);
	run(10 * BW_MS);
	assert_int_equal(events_with("C PEER_UP B"), 1);
	post(A, B, 2, 8);
	post(C, B, 3, 8);
	run(10 * BW_MS);
	assert_int_equal(events_with("B MESSAGE 2 len 8"), 1);
	assert_int_equal(events_with("B MESSAGE 3 len 8"), 1);
	frame_free(hello);
	run(61 * BW_S); /* and nothing of strangers stays */
	assert_int_equal(count(B)->peers, 2);
}

/* Whom the host itself names finds room as well, at its second try. */
static void callers__make_room_for_whom_the_host_means(void **state)
{
	struct frame *hello;
	struct bw_op op;
	uint32_t n = 0;
	uint64_t gone;

	world.node[B].grow_max = 2;
	world.quiet = true;
	node_open(B);
	hello = hello_of_the_dead();
	while (!stranger_call(hello, n))
		n++;
	while (stranger_call(hello, n)) /* who calls again has the place */
		;
	gone = count(B)->evicted;
	node_open(A);
	op = op_connect(B, A);
	assert_int_equal(submit(B, &op), -EAGAIN);
	assert_int_equal(count(B)->evicted, gone + 1);
	op = op_connect(B, A);
	assert_int_equal(submit(B, &op), 0);
	frame_free(hello);
}

/* As long as the host gives memory nobody has to go. */
static void callers__stay_while_there_is_memory(void **state)
{
	struct frame *hello;
	uint32_t n;

	world.quiet = true;
	node_open(B);
	hello = hello_of_the_dead();
	for (n = 0; n < 300; n++)
		stranger_call(hello, n);
	assert_int_equal(count(B)->evicted, 0);
	assert_true(count(B)->peers > 250);
	frame_free(hello);
}

/* Nor while it may still give some. Who finds no room now calls again. */
static void callers__stay_until_the_host_has_no_memory(void **state)
{
	struct frame *hello;
	uint32_t n = 0, full, i;
	uint64_t gone;

	world.quiet = true;
	node_open(B);
	world.node[B].slow = true;
	hello = hello_of_the_dead();
	while (!stranger_call(hello, n))
		n++;
	full = n;
	for (i = 0; i < 2 * full; i++)
		assert_true(stranger_call(hello, ++n));
	assert_int_equal(count(B)->peers, full);
	assert_int_equal(count(B)->evicted, 0);
	world.node[B].slow = false; /* it gives some */
	stranger_call(hello, ++n);
	assert_false(stranger_call(hello, ++n));
	world.node[B].slow = true;
	while (!stranger_call(hello, ++n))
		;
	assert_int_equal(count(B)->evicted, 0);
	world.node[B].slow = false; /* it has none */
	world.node[B].grow_max = 0;
	stranger_call(hello, ++n);
	stranger_call(hello, ++n);
	gone = count(B)->evicted;
	assert_true(gone > 0);
	world.node[B].grow_max = 64; /* and then it has some again */
	stranger_call(hello, ++n);
	world.node[B].slow = true;
	while (!stranger_call(hello, ++n))
		;
	assert_int_equal(count(B)->evicted, gone);
	frame_free(hello);
}

/* A guest of B's from an address of his own says something, and is not heard of any more. Did it
 * come? */
static bool speak(uint32_t n)
{
	char text[40];

	world.node[C].cfg.node = 0x10000 + n;
	world.node[C].cfg.incarnation = n + 1;
	world.node[C].place = (uint8_t)(n % 200 + 1);
	node_open(C);
	connect_to(C, B);
	post(C, B, 100 + n, 8);
	run(100 * BW_MS);
	node_kill(C);
	snprintf(text, sizeof(text), "B MESSAGE %u len 8", 100 + n);
	return events_with(text) == 1;
}

/* B is full of guests who have said something; how many spoke. A, which B needs, is one. */
static uint32_t full_of_guests(void)
{
	uint32_t n = 0;

	world.node[B].grow_max = 2;
	world.quiet = true;
	meet(A, B);
	post(A, B, 1, 8);
	run(BW_S);
	world.node[B].needs = world.node[B].peer[A];
	while (n < 1000 && speak(n))
		n++;
	assert_in_range(n, 20, 999);
	assert_int_equal(count(B)->peers, n + 1);
	assert_int_equal(count(B)->evicted, 0);
	world.node[B].needs_nobody = true;
	return n;
}

static void guests__make_room_when_they_are_idle(void **state)
{
	uint32_t n = full_of_guests(), full = n, i;

	for (i = 0; i < 3 * full; i++) {
		pass(BW_S / 2);
		assert_true(speak(++n));
	}
	assert_in_range(count(B)->evicted, 3 * full, 3 * full + 8);
	assert_true(count(B)->peers >= full - 1);
	assert_int_equal(events_with("B PEER_DOWN A"), 0);
	post(A, B, 2, 8);
	run(10 * BW_MS);
	assert_int_equal(events_with("B MESSAGE 2 len 8"), 1);
}

/* The idlest of those that are looked at goes, and nobody who spoke a moment ago. */
static void guests__go_by_the_time_for_which_they_are_idle(void **state)
{
	uint32_t n = full_of_guests(), i;
	struct bw_list *l;

	for (l = engine(B)->peers.next; l != &engine(B)->peers; l = l->next) {
		struct bw_peer *p = bw_entry(l, struct bw_peer, all);

		for (i = 0; i < p->npaths; i++)
			p->path[i]->rx.max_ns = p->path[i]->hello.heard = world.now;
	}
	assert_false(speak(++n));
	assert_int_equal(count(B)->evicted, 0);
	pass(BW_S);
	l = engine(B)->guests.next->next->next;
	if (bw_entry(l, struct bw_peer, caller)->handle == world.node[B].needs)
		l = l->next;
	bw_entry(l, struct bw_peer, caller)->path[0]->rx.max_ns--;
	bw_entry(l, struct bw_peer, caller)->path[0]->hello.heard--;
	world.node[B].peer[A] = bw_entry(l, struct bw_peer, caller)->handle;
	assert_true(speak(++n));
	assert_int_equal(count(B)->evicted, 1);
	assert_int_equal(events_with("B PEER_DOWN A ENOBUFS"), 1); /* so it is called here */
}

static void guests__that_are_needed_stay(void **state)
{
	uint32_t n = full_of_guests(), how;

	for (how = 0; how < 3; how++) {
		struct bw_list *l;

		world.node[B].needs_nobody = how != 0;
		for (l = engine(B)->peers.next; l != &engine(B)->peers; l = l->next) {
			struct bw_peer *p = bw_entry(l, struct bw_peer, all);

			p->path[0]->hello.named = how == 1;
			p->rx_used += how == 2 ? 64 : 0; /* a message that was not taken */
		}
		pass(2 * BW_S);
		assert_false(speak(++n));
		assert_int_equal(count(B)->evicted, 0);
	}
}

static uint32_t members(const struct bw_list *list)
{
	const struct bw_list *l;
	uint32_t n = 0;

	for (l = list->next; l != list; l = l->next)
		n++;
	return n;
}

/* Those who have said something are set apart in pieces; behind them is one of no use. */
static void guests__are_set_apart_in_pieces(void **state)
{
	const uint32_t piece = 8, spoke = 2 * piece + 4;
	struct bw_engine *e;
	struct frame *hello;
	uint32_t n, callers;

	world.node[B].grow_max = 2;
	world.node[B].cfg.piece = piece;
	world.quiet = true;
	node_open(B);
	hello = hello_of_the_dead();
	e = engine(B);
	for (n = 0; n < spoke; n++)
		assert_true(speak(n));
	assert_int_equal(members(&e->callers), spoke);
	while (!stranger_call(hello, n++)) /* the last one finds no room */
		assert_true(bw_list_empty(&e->guests));
	callers = (uint32_t)count(B)->peers;
	assert_int_equal(members(&e->guests), piece);
	assert_int_equal(members(&e->callers), callers - piece);
	assert_int_equal(count(B)->evicted, 0);
	assert_true(stranger_call(hello, n++));
	assert_int_equal(members(&e->guests), 2 * piece);
	assert_int_equal(count(B)->evicted, 0);
	assert_true(stranger_call(hello, n++));
	assert_int_equal(members(&e->guests), spoke);
	assert_int_equal(members(&e->callers), callers - spoke - 1);
	assert_int_equal(count(B)->evicted, 1);
	assert_false(stranger_call(hello, n++));
	assert_int_equal(members(&e->callers), callers - spoke);
	frame_free(hello);
}

/* A frame of A's with a message of so many bytes, which crafted() makes others of. */
static struct frame *to_be_crafted(uint32_t len)
{
	struct frame *f;

	world.quiet = true;
	meet(A, B);
	peer(B, A)->rx_limit += 64u << 20; /* and A has used it already */
	peer(A, B)->tx_limit += 64u << 20;
	peer(A, B)->tx_used += 64u << 20;
	post(A, B, 1, len);
	flush(A);
	f = take(0);
	frame_hdr(f)->pn = 0;
	return f;
}

/* The same in the next packet, as a part of the message with this number. */
static int crafted(struct frame *f, uint64_t id)
{
	struct bw_part_msg *m = (struct bw_part_msg *)frame_part(f, 0);

	m->id = id;
	if (!m->part.plen)
		m->tag = id;
	frame_hdr(f)->pn++;
	frame_seal(f);
	return receive(frame_copy(f));
}

/* Of all that a guest said nothing was taken, but it did speak: it is no caller of no use. */
static void guests__that_spoke_in_vain_stay(void **state)
{
	struct frame *f, *hello;
	uint32_t n, eps;

	world.node[B].grow_max = 2;
	f = to_be_crafted(8);
	for (eps = 1; eps <= 2 * BW_FLOWS_LISTED; eps++) {
		((struct bw_part_msg *)frame_part(f, 0))->dst_ep = (uint16_t)eps;
		assert_int_equal(crafted(f, BW_FLOW_WINDOW), -BW_DROP_WINDOW);
	}
	assert_int_equal(peer(B, A)->flows, 2 * BW_FLOWS_LISTED);
	assert_int_equal(peer(B, A)->app.rx_next, 0);
	assert_ptr_equal(engine(B)->callers.next, &peer(B, A)->caller);
	frame_free(f);
	node_kill(A);
	hello = hello_of_the_dead();
	for (n = 0; count(B)->evicted < 3; n++)
		stranger_call(hello, n);
	assert_int_equal(events_with("B PEER_DOWN A"), 0);
	assert_non_null(peer(B, A));
	assert_ptr_equal(engine(B)->guests.next, &peer(B, A)->caller);
	frame_free(hello);
}

/* All numbers of a window but the first, out of order. */
#define WAITING		(BW_FLOW_WINDOW - 1)
#define WAITING_ID(i)	(1 + (uint64_t)(i)*1009 % WAITING)
#define STEPS_OF_A_PART (BW_QUEUE_BLOCK + BW_QUEUE_BLOCKS)

/* A peer leaves thousands of messages half sent, and goes on with any of them. */
static void waiting__are_found_in_few_steps(void **state)
{
	struct frame *f = to_be_crafted(16);
	struct bw_engine *e = engine(B);
	uint64_t before, i;

	((struct bw_part_msg *)frame_part(f, 0))->total = 32;
	for (i = 0; i < WAITING; i++) {
		before = e->steps;
		assert_int_equal(crafted(f, WAITING_ID(i)), 0);
		assert_in_range(e->steps - before, 0, STEPS_OF_A_PART);
	}
	assert_int_equal(peer(B, A)->arriving, WAITING);
	assert_int_equal(peer(B, A)->app.waiting, WAITING);
	assert_int_equal(e->indexes.in_use, 1);
	before = e->steps;
	assert_int_equal(crafted(f, WAITING), 0); /* the last one, and the first */
	assert_int_equal(crafted(f, 1), 0);
	assert_int_equal(e->steps, before);
	for (i = 2; i < 1000; i++) {
		before = e->steps;
		assert_int_equal(crafted(f, i), 0);
		assert_in_range(e->steps - before, 0, BW_QUEUE_BLOCK);
	}
	frame_free(f);
	disconnect(B, A);
	assert_int_equal(e->indexes.in_use, 0);
	assert_int_equal(e->rxmsgs.in_use, 0);
	node_kill(A);
}

static void waiting__are_delivered_in_their_order(void **state)
{
	struct frame *f = to_be_crafted(0);
	char line[64], *at;
	uint64_t round, i;

	for (round = 0; round < 3; round++) {
		/* Windows that begin anywhere in a block. */
		uint64_t first = peer(B, A)->app.rx_next += 20 * round;

		for (i = 0; i < WAITING; i++)
			if (WAITING_ID(i) != WAITING / 2)
				assert_int_equal(crafted(f, first + WAITING_ID(i)), 0);
		assert_int_equal(events_with("MESSAGE"), 0);
		assert_int_equal(crafted(f, first), 0);
		assert_int_equal(events_with("MESSAGE"), WAITING / 2);
		assert_int_equal(crafted(f, first + WAITING / 2), 0);
		for (at = world.events, i = 0; i <= WAITING; i++) {
			snprintf(line, sizeof(line), "B MESSAGE %llu len 0\n",
				 (unsigned long long)(first + i));
			assert_memory_equal(at, line, strlen(line));
			at += strlen(line);
		}
		assert_int_equal(*at, 0);
		assert_int_equal(engine(B)->indexes.in_use, 0);
		forget_logs();
	}
	frame_free(f);
	node_kill(A);
}

/* Without memory for the index more may not wait, but those that others wait for go on. */
static void waiting__that_cannot_be_found_do_not_wait(void **state)
{
	struct frame *f = to_be_crafted(16);
	struct bw_part_msg *m = (struct bw_part_msg *)frame_part(f, 0);
	struct bw_engine *e = engine(B);
	void *had[2 * BW_QUEUE_LISTED];
	uint64_t i;

	m->total = 32;
	for (i = 0; i < 2 * BW_QUEUE_LISTED; i++)
		had[i] = bw_slab_alloc(&e->rxmsgs);
	while (i)
		bw_slab_free(&e->rxmsgs, had[--i]);
	while (bw_slab_alloc(&e->indexes)) /* somebody else took it all */
		world.node[B].grow_max = 0;
	for (i = 0; i < 2 * BW_QUEUE_LISTED; i++)
		assert_int_equal(crafted(f, 2 + i), i < BW_QUEUE_LISTED ? 0 : -BW_DROP_NO_BUFFER);
	assert_int_equal(crafted(f, 0), 0);
	assert_int_equal(crafted(f, 1), -BW_DROP_NO_BUFFER);
	assert_int_equal(peer(B, A)->app.waiting, BW_QUEUE_LISTED + 1);
	frame_free(f);
	node_kill(A);
}

/* B sends to A between endpoints of its own. */
static void send_between(uint16_t eps, uint64_t tag, uint32_t len)
{
	struct bw_op op = op_send(B, A, tag, len);

	op.send.src_ep = op.send.dst_ep = eps;
	assert_int_equal(submit(B, &op), 0);
}

/* A peer makes as many flows as it may: a program that sends by others does not walk over them, nor
 * over those by which it has sent before. */
static void flows__are_no_burden_for_who_sends(void **state)
{
	uint64_t before;
	struct bw_op op;
	uint16_t i;

	world.node[A].cfg.rx_budget = world.node[B].cfg.rx_budget = 64u << 20;
	world.quiet = true;
	meet(A, B);
	for (i = 0; i < BW_FLOWS_MAX; i++) {
		op = op_send(A, B, i, 0);
		op.send.src_ep = i % 32 + 1;
		op.send.dst_ep = i / 32 + 1;
		assert_int_equal(submit(A, &op), 0);
	}
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE"), BW_FLOWS_MAX);
	before = engine(B)->steps;
	for (i = 0; i < 20; i++) {
		send_between(100 + i % 2, i, i % 3 ? 1000 : 8);
		if (i > 10)
			run(BW_MS);
	}
	run(BW_S);
	assert_int_equal(events_with("A MESSAGE"), 20);
	assert_in_range(engine(B)->steps - before, 1, 600);
	for (i = 0; i < 300; i++)
		send_between(100 + i, i, 8);
	run(BW_S);
	assert_int_equal(events_with("A MESSAGE"), 320);
	before = engine(B)->steps;
	for (i = 0; i < 20; i++) {
		send_between(399, i, 8);
		run(BW_MS);
	}
	assert_int_equal(events_with("A MESSAGE"), 340);
	assert_in_range(engine(B)->steps - before, 1, 1000);
}

/* A peer opens as many flows as it may, and uses one after another. */
static void flows__are_found_in_few_steps(void **state)
{
	uint64_t before;
	unsigned int i, round;

	world.node[A].cfg.rx_budget = world.node[B].cfg.rx_budget = 64u << 20;
	world.quiet = true;
	meet(A, B);
	for (round = 0; round < 2; round++) {
		before = engine(B)->steps;
		for (i = 0; i < BW_FLOWS_MAX; i++) {
			struct bw_op op = op_send(A, B, i, 0);

			op.send.src_ep = (uint16_t)(i % 32 + 1);
			op.send.dst_ep = (uint16_t)(i / 32 + 1);
			assert_int_equal(submit(A, &op), 0);
		}
		run(BW_S);
		assert_int_equal(events_with("B MESSAGE"), BW_FLOWS_MAX);
		assert_in_range(engine(B)->steps - before, 1, 8 * BW_FLOWS_MAX);
		forget_logs();
	}
	for (i = 0; i < 101; i++) { /* the same one again and again */
		struct bw_op op = op_send(A, B, i, 0);

		op.send.src_ep = op.send.dst_ep = 32;
		assert_int_equal(submit(A, &op), 0);
		run(BW_MS);
		if (!i)
			before = engine(B)->steps;
	}
	assert_int_equal(events_with("B MESSAGE"), 101);
	assert_int_equal(engine(B)->steps, before);
	for (i = 0; i < 6; i++) { /* answers, some of them together, look at none of these flows */
		post(B, A, i, 100);
		if (i > 3)
			run(BW_MS);
	}
	run(BW_S);
	assert_int_equal(events_with("A MESSAGE"), 6);
	assert_int_equal(engine(B)->steps, before);
	assert_int_equal(engine(B)->flow_tables.in_use, 1);
	disconnect(B, A);
	settle();
	assert_int_equal(engine(B)->flow_tables.in_use, 0);
	assert_int_equal(engine(A)->flow_tables.in_use, 0);
	assert_int_equal(engine(B)->flows.in_use, 0);
}

int memory_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(peer__idle_is_small),
		TEST(open__refuses_what_cannot_work),
		TEST(submit__again_when_the_pool_is_empty),
		TEST(grow__wakes_what_waited_for_memory),
		TEST(records__that_come_back_wake_who_found_none),
		TEST(records__that_come_back_with_a_message),
		TEST(records__of_a_stream_without_an_end),
		TEST(connect__again_when_the_pool_is_empty),
		TEST(connect__again_finds_what_there_was_room_for),
		TEST(receiver__without_memory_drops_and_recovers),
		TEST(objects__all_come_back),
		TEST(payload__counted_once),
		TEST(frames__counted),
		TEST(turn__a_busy_peer_does_not_starve_another),
		TEST(callers__of_no_use_make_room),
		TEST(callers__make_room_for_whom_the_host_means),
		TEST(callers__stay_while_there_is_memory),
		TEST(callers__stay_until_the_host_has_no_memory),
		TEST(guests__make_room_when_they_are_idle),
		TEST(guests__go_by_the_time_for_which_they_are_idle),
		TEST(guests__that_are_needed_stay),
		TEST(guests__are_set_apart_in_pieces),
		TEST(guests__that_spoke_in_vain_stay),
		TEST(waiting__are_found_in_few_steps),
		TEST(waiting__are_delivered_in_their_order),
		TEST(waiting__that_cannot_be_found_do_not_wait),
		TEST(flows__are_found_in_few_steps),
		TEST(flows__are_no_burden_for_who_sends),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
