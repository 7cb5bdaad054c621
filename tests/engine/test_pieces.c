/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What only memory bounds is done in pieces: no call looks at more peers, or at more of what a lost
 * one leaves, than a piece has; and in the end all is done.
 */
#include "groups.h"
#include "host.h"
#include "peer.h"
#include "send.h"
#include "starve.h"
#include "sweep.h"
#include "timer.h"

#define PIECE 64
#define SENDS 200
#define PEERS 500
#define HALF  16

/* The next event of a, within a piece; false: there is none, perhaps not yet. */
static bool next_event(struct bw_event *ev)
{
	struct bw_engine *e = engine(A);
	uint64_t before = e->looks;
	bool told = bw_reliable.next_event(e, ev);

	assert_in_range(e->looks - before, 0, PIECE);
	return told;
}

/* Ranges under way, messages, pulls and regions of a peer. */
static void lost__ends_in_pieces(void **state)
{
	struct bw_engine *e;
	struct bw_event ev;
	uint64_t i, before, calls = 0, sent = 0, pulled = 0, done = 0, key;

	world.node[A].cfg.piece = PIECE;
	meet(A, B);
	e = engine(A);
	key = expose(B, A, 9, 100);
	for (i = 0; i < SENDS; i++)
		post(A, B, 1 + i, 8);
	flush(A);
	drop_all();
	assert_true(e->records.in_use > PIECE);
	for (i = 0; i < SENDS; i++) {
		pull(A, B, key, SENDS + i, 0, 100, 0);
		expose(A, B, 2 * SENDS + i, 100);
	}
	world.node[A].ignore_events = true;
	before = e->looks;
	disconnect(A, B);
	assert_int_equal(e->looks, before);
	assert_int_equal(e->regions.in_use, SENDS);
	for (; bw_reliable_untold(e); calls++) {
		assert_false(bw_reliable_tells(e));
		if (!next_event(&ev))
			continue;
		sent += ev.type == BW_EV_SENT;
		pulled += ev.type == BW_EV_PULLED;
		done += ev.type == BW_EV_REGION_DONE;
		assert_int_equal(ev.type == BW_EV_PEER_DOWN, !bw_reliable_untold(e));
		assert_int_equal(ev.status, BW_DOWN_CANCELED);
	}
	assert_int_equal(sent, SENDS);
	assert_int_equal(pulled, SENDS);
	assert_int_equal(done, SENDS);
	assert_true(calls > 3 * SENDS);
	assert_false(bw_reliable.busy(e));
	assert_int_equal(e->records.in_use, 0);
	assert_int_equal(e->txmsgs.in_use, 0);
	assert_int_equal(e->pulls.in_use, 0);
	assert_int_equal(e->regions.in_use, 0);
	assert_int_equal(e->flows.in_use, 0);
	assert_int_equal(e->peers_slab.in_use, 0);
}

/* What it leaves is nobody's meanwhile: neither taken back nor ended again. */
static void lost__cannot_be_taken_back(void **state)
{
	struct bw_event ev;
	uint64_t key, other, id;

	meet(A, B);
	other = expose(B, A, 9, 100);
	key = expose(A, B, 1, 100);
	id = pull(A, B, other, 2, 0, 100, 0);
	world.node[A].ignore_events = true;
	disconnect(A, B);
	assert_int_equal(retract(A, key), -ENOENT);
	assert_int_equal(cancel(A, id), -ENOENT);
	assert_false(bw_reliable_asked(engine(A), key));
	assert_true(next_event(&ev));
	assert_int_equal(ev.type, BW_EV_PULLED);
	assert_int_equal(ev.status, BW_DOWN_CANCELED);
	assert_true(next_event(&ev));
	assert_int_equal(ev.type, BW_EV_REGION_DONE);
	assert_int_equal(ev.status, BW_DOWN_CANCELED);
}

/* Buffers of a lost peer's messages, of which a part had come, are put back by who closes. */
static void lost__before_the_end_of_all(void **state)
{
	meet(A, B);
	post(B, A, 1, 60000);
	flush(B);
	assert_int_equal(deliver(0), 0);
	assert_int_equal(world.node[A].buffers_out, 1);
	world.node[A].ignore_events = true;
	disconnect(A, B);
	assert_int_equal(world.node[A].buffers_out, 1);
	node_close(A);
}

/* The next frame of a, within a piece of timers and one of peers that are ready. */
static bool next_frame(struct bw_tx_frame *f)
{
	struct bw_engine *e = engine(A);
	uint64_t before = e->looks;
	bool found = bw_reliable.next_frame(e, f, world.now);

	assert_in_range(e->looks - before, 0, 3 * PIECE);
	return found;
}

/* All that a says now. */
static uint32_t all_frames(void)
{
	static struct bw_tx_frame f;
	uint32_t n = 0;

	while (bw_reliable.next_deadline(engine(A)) <= world.now)
		n += next_frame(&f);
	return n;
}

/* A's i-th peer. */
static void come(uint32_t i)
{
	struct bw_op op = op_connect(A, B);

	op.connect.node = 1000 + i;
	assert_int_equal(submit(A, &op), 0);
}

static void meet_many(void)
{
	uint32_t i;

	world.node[A].cfg.piece = PIECE;
	node_open(A);
	for (i = 0; i < PEERS; i++)
		come(i);
	assert_int_equal(all_frames(), PEERS);
}

/* Peers that are all due at once. */
static void due__are_asked_in_pieces(void **state)
{
	uint32_t rounds;

	meet_many();
	for (rounds = 0; rounds < 3; rounds++) {
		world.now += BW_S;
		assert_in_range(all_frames(), 1, 4 * PEERS);
	}
}

/* Peers that are ready, and have nothing to say. */
static void ready__are_looked_at_in_pieces(void **state)
{
	struct bw_list *l;

	meet_many();
	for (l = engine(A)->peers.next; l != &engine(A)->peers; l = l->next)
		bw_peer_ready(engine(A), bw_entry(l, struct bw_peer, all));
	assert_int_equal(all_frames(), 0);
}

static void disconnect_peer(const struct bw_list *all)
{
	struct bw_op op = {.type = BW_OP_DISCONNECT};
	struct bw_engine *e = engine(A);
	struct bw_event ev;

	op.peer = bw_entry(all == &e->peers ? e->peers.next : all, struct bw_peer, all)->handle;
	assert_int_equal(submit(A, &op), 0);
	while (bw_reliable_untold(e))
		next_event(&ev);
}

static struct bw_peer *last_peer(void)
{
	return bw_entry(engine(A)->peers.prev, struct bw_peer, all);
}

/* Peers that found no record, when there are some. */
static void starving__have_their_turn_in_pieces(void **state)
{
	static struct bw_tx_frame f;
	struct bw_peer *first;
	struct bw_engine *e;
	struct bw_list *l;
	uint64_t before;

	meet_many();
	e = engine(A);
	for (l = e->peers.next; l != &e->peers; l = l->next) {
		bw_starve_enter(e, bw_entry(l, struct bw_peer, all));
		bw_starve_enter(e, bw_entry(l, struct bw_peer, all));
	}
	assert_int_equal(e->starve.peers, PEERS);
	assert_int_equal(bw_reliable.next_deadline(e), world.now);
	before = e->looks;
	assert_int_equal(all_frames(), 0); /* they have nothing to say any more */
	assert_int_equal(e->looks - before, 2 * PEERS);
	assert_int_equal(e->starve.peers, 0);

	/* one of them is far away: nobody gets a record before it, but what needs none is sent */
	first = bw_entry(e->peers.next, struct bw_peer, all);
	bw_starve_enter(e, last_peer());
	first->path[0]->hello.due = true;
	bw_peer_ready(e, first);
	assert_true(next_frame(&f));
	before = e->looks;
	while (last_peer()->starved) {
		assert_null(bw_record_new(e, first, BW_OWNED_PING, NULL, 0, 0));
		assert_int_equal(bw_reliable.next_deadline(e), world.now);
		assert_false(next_frame(&f));
	}
	assert_in_range(e->looks - before, PEERS - PIECE, PEERS + 2);
	assert_int_equal(e->starve.peers, 1);
	assert_true(first->starved);
	assert_int_equal(all_frames(), 0);
	assert_int_equal(e->starve.peers, 0);

	/* while it is looked for the last of them goes */
	bw_starve_enter(e, last_peer());
	assert_false(next_frame(&f));
	assert_true(e->starve.seeks);
	world.node[A].ignore_events = true;
	disconnect_peer(e->peers.prev);
	assert_false(e->starve.seeks);
}

/* A turn in which something else is sent is not its turn. */
static void starving__has_another_turn_for_what_it_waits_for(void **state)
{
	static struct bw_tx_frame f;
	struct bw_engine *e;
	struct bw_peer *p;

	meet_many();
	e = engine(A);
	p = last_peer();
	bw_starve_enter(e, p);
	p->path[0]->hello.due = true;
	while (!next_frame(&f))
		assert_true(p->starved);
	assert_true(p->starved);
	assert_int_equal(all_frames(), 0);
	assert_false(p->starved);
}

/* Those that go meanwhile, the next one among them. */
static void starving__while_they_go(void **state)
{
	static struct bw_tx_frame f;
	struct bw_engine *e;
	struct bw_list *l;

	meet_many();
	e = engine(A);
	world.node[A].ignore_events = true;
	for (l = e->peers.next; l != &e->peers; l = l->next)
		bw_starve_enter(e, bw_entry(l, struct bw_peer, all));
	assert_false(next_frame(&f));
	assert_int_equal(e->starve.peers, PEERS - 1);
	while (e->count.peers)
		disconnect_peer(e->starve.next);
	assert_int_equal(e->peers_slab.in_use, 0);
	assert_int_equal(all_frames(), 0);
	assert_int_equal(e->starve.peers, 0);
}

/* Peers that are not connected hear nothing of it; they are looked at all the same, and some go
 * meanwhile, the next one among them. */
static void pressure__while_they_go(void **state)
{
	struct bw_engine *e;
	uint64_t before;

	meet_many();
	e = engine(A);
	world.node[A].ignore_events = true;
	before = e->looks;
	pressure(A, true);
	assert_int_equal(e->looks - before, PIECE);
	assert_int_equal(bw_reliable.next_deadline(e), world.now);
	assert_int_equal(all_frames(), 0);
	assert_int_equal(e->looks - before, PEERS);
	pressure(A, false);
	while (e->count.peers)
		disconnect_peer(e->sweep.next);
	assert_int_equal(e->peers_slab.in_use, 0);
	assert_int_equal(all_frames(), 0);
	assert_false(e->sweep.left);
}

/* Those that come while others are told of pressure, and do not take the turn of any of them. */
static void pressure__while_others_come(void **state)
{
	struct bw_engine *e;
	struct bw_list *l;
	uint32_t i;

	meet_many();
	e = engine(A);
	come(PEERS);
	assert_false(e->sweep.left); /* nobody is looked at for its sake */
	assert_int_equal(all_frames(), 1);
	for (l = e->peers.next; l != &e->peers; l = l->next)
		bw_entry(l, struct bw_peer, all)->state = BW_PEER_UP;
	pressure(A, true);
	for (l = e->peers.next; l != &e->peers; l = l->next)
		bw_entry(l, struct bw_peer, all)->path[0]->rx.ack_now = false;
	pressure(A, false);
	assert_int_equal(e->sweep.left, PEERS + 1 - PIECE);
	for (i = 1; i <= 2 * PIECE; i++)
		come(PEERS + i);
	for (i = 0; e->sweep.left && i < PEERS; i++)
		bw_sweep_piece(e);
	assert_false(e->sweep.left);
	for (l = e->peers.next, i = 0; i <= PEERS; l = l->next, i++)
		assert_true(bw_entry(l, struct bw_peer, all)->path[0]->rx.ack_now);
}

/* Peers that are connected, of whom each is to hear of pressure. */
static void pressure__reaches_peers_in_pieces(void **state)
{
	struct bw_engine *e;
	uint64_t before;

	world.node[A].cfg.piece = 1;
	meet(A, B);
	meet(A, C);
	e = engine(A);
	before = e->looks;
	pressure(A, true);
	assert_int_equal(e->looks - before, 1);
	assert_int_equal(path(A, B, 0)->rx.ack_now + path(A, C, 0)->rx.ack_now, 1);
	settle();
	assert_int_equal(frames_with("pressure"), 2);
	assert_true(bw_reliable_pressed(engine(B), world.node[B].peer[A]));
	assert_true(bw_reliable_pressed(engine(C), world.node[C].peer[A]));

	/* it ends, and comes again before all have heard of the end: none of them is left out */
	pressure(A, false);
	assert_int_equal(e->sweep.left, 1);
	pressure(A, true);
	pressure(A, false);
	settle();
	assert_false(bw_reliable_pressed(engine(B), world.node[B].peer[A]));
	assert_false(bw_reliable_pressed(engine(C), world.node[C].peer[A]));
	assert_false(e->sweep.left);
}

/* The n-th caller of B's, who is not heard of any more: a frame of it with half a message. */
static struct frame *half_of_caller(uint32_t n)
{
	struct frame *f;

	world.node[A].cfg.node = 0x10000 + n;
	world.node[A].cfg.incarnation = n + 1;
	world.node[A].place = (uint8_t)n;
	meet(A, B);
	peer(B, A)->rx_limit += 64u << 20;
	post(A, B, 1, HALF);
	flush(A);
	f = take(0);
	((struct bw_part_msg *)frame_part(f, 0))->total = 2 * HALF;
	frame_hdr(f)->pn = 0;
	node_kill(A);
	return f;
}

/* The next frame of such a caller: a half of the message with this number, of one of its flows. */
static void half_comes(struct frame *f, uint32_t flow, uint64_t id, bool second)
{
	struct bw_part_msg *m = (struct bw_part_msg *)frame_part(f, 0);

	m->src_ep = (uint16_t)(flow % 32 + 1);
	m->dst_ep = (uint16_t)(flow / 32 + 1);
	m->id = id;
	m->offset = second ? HALF : 0;
	frame_hdr(f)->pn++;
	frame_seal(f);
	assert_int_equal(receive(frame_copy(f)), 0);
}

/* What it leaves in that many flows: in each fourth one nothing, as its message is complete, though
 * nobody is told; in the first one many messages, in others one or two. Returns their number. */
static uint32_t halves_come(struct frame *f, uint32_t flows)
{
	uint32_t flow, n = 0;

	for (flow = 0; flow < flows; flow++) {
		uint64_t id = 0, ids = flow ? 1 + flow % 2 : 2 * BW_QUEUE_LISTED;

		for (; id < ids; id++, n++)
			half_comes(f, flow, id, false);
		if (flow % 4 == 2)
			half_comes(f, flow, 0, true);
	}
	return n;
}

/* Who closes puts all buffers back: of messages that have come in part, in many flows of a peer and
 * of one that was lost; of complete ones, of which nobody was told, before its end and behind. */
static void close_in_pieces(uint32_t piece)
{
	struct frame *first, *last;
	struct bw_engine *e;
	uint32_t n, least, most, pieces = 0;
	int before;
	bool more;

	world.node[B].cfg.piece = piece;
	first = half_of_caller(1);
	frame_free(half_of_caller(2)); /* it said nothing */
	last = half_of_caller(3);
	world.node[B].ignore_events = true;
	n = halves_come(first, BW_FLOWS_MAX) + halves_come(last, BW_FLOWS_MAX / 4);
	disconnect(B, A);
	half_comes(first, 2, 1, false);
	half_comes(first, 2, 1, true);
	n++;
	frame_free(first);
	frame_free(last);
	assert_int_equal(world.node[B].buffers_out, n);
	assert_true(n > 2000);

	e = engine(B);
	least = (n + BW_FLOWS_MAX + BW_FLOWS_MAX / 4) / piece;
	most = least + 2 + 8 / piece; /* with the flows and the ends of the three */
	bw_reliable_close_begin(e, world.now);
	assert_int_equal(world.node[B].buffers_out, n);
	do {
		before = world.node[B].buffers_out;
		more = bw_reliable_close_piece(e);
		assert_in_range(before - world.node[B].buffers_out, 0, piece);
	} while (++pieces < most && more);
	e->cfg.piece = UINT32_MAX; /* who cleans up behind a failure comes to an end */
	assert_false(more);
	assert_true(pieces >= least);
	assert_int_equal(world.node[B].buffers_out, 0);
	assert_false(bw_reliable_untold(e));
	forget_logs();
	world.node[B].ignore_events = false;
	flush(B);
	assert_int_equal(frames_with("BYE"), 3);
	node_kill(B);
}

static void close__puts_buffers_back_in_pieces(void **state)
{
	close_in_pieces(PIECE);
}

static void close__puts_buffers_back_one_by_one(void **state)
{
	close_in_pieces(1);
}

/* Peers whose deadlines have all moved later. */
static void lagging__are_set_right_in_pieces(void **state)
{
	struct bw_engine *e;
	struct bw_list *l;
	uint64_t before;

	meet_many();
	e = engine(A);
	for (l = e->peers.next; l != &e->peers; l = l->next) {
		struct bw_peer *p = bw_entry(l, struct bw_peer, all);

		bw_timer_set(e, p, p->deadline + BW_S);
	}
	before = e->looks;
	assert_true(bw_reliable.next_deadline(e) < world.now + BW_S);
	assert_in_range(e->looks - before, 1, PIECE);
	world.now = e->heap->heap_key;
	assert_int_equal(all_frames(), 0);
	assert_true(bw_reliable.next_deadline(e) >= world.now + BW_S / 2);
}

int pieces_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lost__ends_in_pieces),
		TEST(lost__cannot_be_taken_back),
		TEST(lost__before_the_end_of_all),
		TEST(due__are_asked_in_pieces),
		TEST(ready__are_looked_at_in_pieces),
		TEST(lagging__are_set_right_in_pieces),
		TEST(starving__have_their_turn_in_pieces),
		TEST(starving__while_they_go),
		TEST(starving__has_another_turn_for_what_it_waits_for),
		TEST(pressure__while_they_go),
		TEST(pressure__while_others_come),
		TEST(pressure__reaches_peers_in_pieces),
		TEST(close__puts_buffers_back_in_pieces),
		TEST(close__puts_buffers_back_one_by_one),
	};

	return cmocka_run_group_tests_name("pieces", tests, NULL, NULL);
}
