/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Nodes, wire and clock of the test world; see world.h. */
#include "host.h"
#include "keys.h"
#include "peer.h"
#include "timer.h"

#include <stdio.h>
#include <stdlib.h>

#define STEPS_MAX 200000 /* frames and deadlines of one test; more is an endless exchange */

struct world world;
bool world_keyed;
bool world_encrypted;

static void step(void)
{
	if (++world.steps > STEPS_MAX)
		fail_msg("endless exchange of frames, or deadlines without end");
}

/* Credit of the direction from node n to node m: what was told never exceeds what was granted, and
 * what was taken never exceeds what was charged. */
static void check_credit(int n, int m)
{
	struct bw_peer *p = peer(n, m), *q;

	if (!p || p->state != BW_PEER_UP || !world.node[m].mem ||
	    p->inc != world.node[m].cfg.incarnation)
		return;
	q = bw_peer_get(engine(m), p->conn);
	if (!q || q->state != BW_PEER_UP || q->conn != p->wire)
		return;
	if (p->tx_limit > q->rx_limit)
		fail_msg("%c knows of more credit than %c granted", 'A' + n, 'A' + m);
	if (q->rx_taken > p->tx_used)
		fail_msg("%c gives back more credit than %c was charged", 'A' + m, 'A' + n);
}

static void check(int n)
{
	const char *bad;
	int m;

	if (!world.node[n].mem || !world_reliable(n))
		return;
	bad = bw_reliable_check(world.node[n].mem);
	if (bad)
		fail_msg("%c: %s", 'A' + n, bad);
	for (m = 0; m < NODES; m++) {
		check_credit(n, m);
		check_credit(m, n);
	}
}

static void *grown_more(struct node *node)
{
	struct bw_grown *piece = aligned_alloc(64, sizeof(*piece) + BW_GROW_BYTES);
	unsigned int i = node->grown_n++;

	memset(piece, 0, sizeof(*piece));
	for (; i && (uintptr_t)node->grown[i - 1] > (uintptr_t)piece; i--)
		node->grown[i] = node->grown[i - 1];
	node->grown[i] = piece;
	return piece + 1;
}

/* What every host does after calling its engine. */
static void after(int n)
{
	struct node *node = &world.node[n];

	take_events(n);
	while (!node->slow && node->protocol->hungry(node->mem) && node->grown_n < node->grow_max) {
		node->protocol->grow(node->mem, grown_more(node));
	}
	if (!node->slow && node->protocol->hungry(node->mem))
		node->protocol->grow(node->mem, NULL);
	check(n);
}

unsigned int shrink_step(int n, uint32_t left, bool *ended)
{
	struct node *node = &world.node[n];
	unsigned int i, gone = 0;
	struct bw_grown *piece;

	while ((piece = bw_reliable_shrink(node->mem, node->grown, node->grown_n, &left))) {
		for (i = 0; node->grown[i] != piece; i++)
			assert_in_range(i, 0, node->grown_n - 2);
		memmove(&node->grown[i], &node->grown[i + 1],
			(--node->grown_n - i) * sizeof(piece));
		memset(piece, 0xEE, sizeof(*piece) + BW_GROW_BYTES);
		free(piece);
		gone++;
	}
	*ended = left;
	for (i = 0; i < node->grown_n; i++)
		assert_in_range(node->grown[i]->free, 0, BW_GROW_BYTES);
	check(n);
	return gone;
}

unsigned int shrink(int n)
{
	bool ended;

	return shrink_step(n, UINT32_MAX, &ended);
}

/* HOST_COOKIE is right at every engine. */
static void introduce(struct frame *f)
{
	struct bw_hello *b = frame_body(f);

	if (world.strangers || f->len != sizeof(struct bw_hdr) + sizeof(*b) ||
	    frame_type(f) != BW_FRAME_HELLO || frame_hdr(f)->flags & BW_HDR_ANSWER)
		return;
	b->cookie = HOST_COOKIE;
	frame_seal(f);
}

/* again: *t is as the call before left it. */
static bool next(struct node *node, struct bw_tx_frame *t, bool again)
{
	if (again && node->protocol->next_alike && node->protocol->next_alike(node->mem, t)) {
		world.alike++;
		return true;
	}
	return node->protocol->next_frame(node->mem, t, world.now);
}

static void flush_once(int n)
{
	struct node *node = &world.node[n];
	struct bw_tx_frame t;
	char text[4096];
	bool again = false;

	while (node->mem && next(node, &t, again)) {
		struct frame *f = frame_new(&t, buffer_read);
		enum fate fate;

		again = true;
		step();
		f->from = n;
		f->to = t.to.bytes[0] - 1;
		f->place = node->place;
		introduce(f);
		assert_true(f->to >= 0 && f->to < NODES && f->link < 4);
		frame_describe(f, &world.view[f->to][n][f->link], text, sizeof(text));
		if (world.secret)
			frame_encipher(f);
		fate = world.fate ? world.fate(f) : PASS;
		if (t.to.bytes[2] != world.node[f->to].place)
			fate = LOSE;
		f->mark = fate == MARK;
		if (!world.quiet)
			log_line(world.frames, f->link ? "%c>%c/%u %s%s" : "%c>%c%.0u %s%s",
				 'A' + n, 'A' + f->to, f->link, text, fate == LOSE ? " lost" : "");
		if (fate == LOSE)
			frame_free(f);
		else
			give(f);
		check(n);
	}
}

int world_setup(void **state)
{
	int n;

	memset(&world, 0, sizeof(world));
	world.now = BW_S;
	world.keyed = world_keyed;
	world.encrypted = world_encrypted;
	for (n = 0; n < NODES; n++) {
		struct node *node = &world.node[n];
		struct bw_config *cfg = &node->cfg;
		unsigned int i;

		node->protocol = &bw_reliable;
		node->grow_max = 64;
		cfg->node = 0xA0 + (uint64_t)n;
		cfg->incarnation = 0x10000u * (uint32_t)(n + 1);
		cfg->cluster = CLUSTER;
		cfg->engine = (uint16_t)(n + 1);
		cfg->rx_budget = BW_SHARE_MIN;
		cfg->features = BW_FEATURE_CHECKSUM;
		cfg->dead_ns = 60 * BW_S;
		for (i = 0; i < 8; i++)
			cfg->link_mtu[i] = BW_MTU_BASE;
		cfg->name[0] = (char)('A' + n);
	}
	return 0;
}

static void node_forget(int n)
{
	struct node *node = &world.node[n];
	struct buffer *b, *next;

	frame_free(node->last_rx);
	node->last_rx = NULL;
	while (node->grown_n)
		free(node->grown[--node->grown_n]);
	free(node->mem);
	node->mem = NULL;
	node->buffers_out = 0;
	memset(node->peer, 0, sizeof(node->peer));
	for (b = world.buffers; b; b = next) {
		next = b->next;
		if (b->node == n)
			buffer_free(b);
	}
}

int world_teardown(void **state)
{
	int n;

	world.fate = NULL;
	for (n = 0; n < NODES; n++)
		if (world.node[n].mem)
			node_close(n);
	drop_all();
	return 0;
}

void node_open(int n)
{
	struct node *node = &world.node[n];

	if (world.keyed && !node->cfg.keyed) {
		node->cfg.keyed = true;
		memset(node->cfg.key, 0x5A, sizeof(node->cfg.key));
	}
	if (world.encrypted)
		node->cfg.features |= BW_FEATURE_ENCRYPT;
	node->mem = aligned_alloc(64, (node->protocol->size(&node->cfg) + 63) & ~(size_t)63);
	assert_int_equal(node->protocol->open(node->mem, &node->cfg, &host_ops, node, world.now),
			 0);
	after(n);
}

void node_kill(int n)
{
	node_forget(n);
}

void node_restart(int n)
{
	node_kill(n);
	world.node[n].cfg.incarnation++;
	node_open(n);
}

void node_close(int n)
{
	struct node *node = &world.node[n];

	take_events(n);
	node->protocol->close(node->mem, world.now);
	flush_once(n);
	assert_int_equal(node->buffers_out, 0);
	node_forget(n);
}

struct bw_peer *peer(int n, int of)
{
	return world.node[n].mem ? bw_peer_get(engine(n), world.node[n].peer[of]) : NULL;
}

struct bw_path *path(int n, int of, unsigned int no)
{
	struct bw_peer *p = peer(n, of);

	assert_non_null(p);
	assert_true(no < p->npaths);
	return p->path[no];
}

const struct bw_counters *count(int n)
{
	return world.node[n].protocol->counters(world.node[n].mem);
}

struct bw_link_addr address(int n, uint8_t link)
{
	struct bw_link_addr a = {
		.link = link, .len = 3, .bytes = {(uint8_t)(n + 1), link, world.node[n].place}};

	return a;
}

int submit(int n, struct bw_op *op)
{
	struct node *node = &world.node[n];
	int r = node->protocol->submit(node->mem, op, world.now);

	after(n);
	return r;
}

/* Of a host that leaves its events alone: what comes next beside them. */
static uint64_t node_deadline(const struct node *node)
{
	struct bw_engine *e = node->mem;

	if (node->ignore_events && world_reliable((int)(node - world.node)) &&
	    bw_list_empty(&e->ready))
		return bw_timer_next(e);
	return node->protocol->next_deadline(node->mem);
}

/* Whatever the node has to send now, until it waits for something. */
void flush(int n)
{
	struct node *node = &world.node[n];
	int rounds = 0;

	do {
		if (!node->mem)
			return;
		flush_once(n);
		take_events(n); /* what the host takes may leave something to tell */
		if (++rounds > 4)
			fail_msg("%c: a deadline that is over, but nothing to send", 'A' + n);
	} while (node_deadline(node) <= world.now);
}

void give(struct frame *f)
{
	assert_true(world.wire_n < WIRE_MAX);
	world.wire[world.wire_n++] = f;
}

struct frame *take(unsigned int i)
{
	struct frame *f;

	assert_true(i < world.wire_n);
	f = world.wire[i];
	world.wire_n--;
	memmove(&world.wire[i], &world.wire[i + 1], (world.wire_n - i) * sizeof(f));
	return f;
}

/* With a key, what a test has changed and sealed gets the tag that its sender would give it. */
static void tag_again(struct frame *f)
{
	struct bw_peer *p = world.keyed ? peer(f->from, f->to) : NULL;
	struct bw_hdr *h = frame_hdr(f);
	uint64_t fixed[BW_FRAME_MAX_MTU / 8], tag;
	uint32_t check, n;

	if (!world.keyed || !world.node[f->from].mem || f->len < sizeof(*h) ||
	    sizeof(*h) + h->len > f->len)
		return;
	check = h->hcrc;
	if (h->type == BW_FRAME_HELLO && h->len == sizeof(struct bw_hello)) {
		frame_seal(f);
		if (check != h->hcrc) {
			h->hcrc = check;
			return;
		}
		h->hcrc = 0;
		memset(((struct bw_hello *)(h + 1))->auth, 0, 16);
		bw_key_sign_hello(engine(f->from), h);
		frame_seal(f);
		return;
	}
	if (!p || !p->keyed ||
	    (h->type != BW_FRAME_DATA && h->type != BW_FRAME_ACK && h->type != BW_FRAME_BYE))
		return;
	frame_seal(f);
	if (check != h->hcrc) {
		h->hcrc = check;
		return;
	}
	n = frame_fixed(f, (uint8_t *)fixed);
	tag = bw_key_tag(engine(f->from), p->keys->tx.tag, (struct bw_hdr *)fixed, n, 0);
	h->token = (uint32_t)(tag >> 32);
	h->hcrc = (uint32_t)tag;
}

struct frame *refuse_frame(int from, int to, uint8_t version, const struct bw_refuse *body)
{
	struct frame *f = calloc(1, sizeof(*f));

	f->from = from;
	f->to = to;
	f->len = BW_REFUSE_BYTES;
	f->bytes = calloc(1, f->len);
	*frame_hdr(f) = (struct bw_hdr){.magic = BW_MAGIC,
					.version = version,
					.type = BW_FRAME_REFUSE,
					.cluster = CLUSTER,
					.dst_engine = world.node[to].cfg.engine,
					.src_engine = world.node[from].cfg.engine,
					.len = sizeof(*body)};
	memcpy(frame_body(f), body, sizeof(*body));
	frame_seal(f);
	return f;
}

/* The frame as its receiver sees it. */
static struct bw_rx_frame seen(struct frame *f)
{
	struct bw_rx_frame rx = {.head = f->bytes,
				 .head_len = f->len,
				 .len = f->len,
				 .from = address(f->from, f->link),
				 .mark = f->mark};

	rx.from.bytes[2] = f->place;
	tag_again(f);
	frame_encipher(f);
	return rx;
}

int deliver_row(unsigned int n, uint32_t *taken)
{
	struct node *node = &world.node[world.wire[0]->to];
	struct bw_rx_frame rx[WIRE_MAX];
	unsigned int i;
	int r, to = world.wire[0]->to;

	step();
	for (i = 0; i < n; i++)
		rx[i] = seen(world.wire[i]);
	take_events(to);
	r = node->protocol->rx_row(node->mem, rx, n, taken, world.now);
	assert_in_range(*taken, 1, n);
	frame_free(node->last_rx);
	node->last_rx = take(0);
	for (i = 1; i < *taken; i++)
		frame_free(take(0));
	after(to);
	return r;
}

int receive(struct frame *f)
{
	struct node *node = &world.node[f->to];
	struct bw_rx_frame rx;
	int r;

	step();
	if (!node->mem) {
		frame_free(f);
		return 0;
	}
	rx = seen(f);
	take_events(f->to);
	frame_free(node->last_rx);
	node->last_rx = f;
	r = node->protocol->rx(node->mem, &rx, world.now);
	after(f->to);
	return r;
}

int deliver(unsigned int i)
{
	return receive(take(i));
}

void deliver_all(void)
{
	unsigned int n = world.wire_n;

	world.now += HOP_NS;
	while (n--)
		deliver(0);
}

void drop(unsigned int i)
{
	frame_free(take(i));
}

void drop_all(void)
{
	while (world.wire_n)
		drop(0);
}

void reverse(void)
{
	unsigned int i;

	for (i = 0; i < world.wire_n / 2; i++) {
		struct frame *f = world.wire[i];

		world.wire[i] = world.wire[world.wire_n - 1 - i];
		world.wire[world.wire_n - 1 - i] = f;
	}
}

void pass(uint64_t ns)
{
	world.now += ns;
}

void settle(void)
{
	int n;

	for (;;) {
		for (n = 0; n < NODES; n++)
			flush(n);
		if (!world.wire_n)
			return;
		deliver_all();
	}
}

uint64_t deadline(void)
{
	uint64_t at = BW_NEVER;
	int n;

	for (n = 0; n < NODES; n++)
		if (world.node[n].mem)
			at = bw_min_u64(at, node_deadline(&world.node[n]));
	return at;
}

void run(uint64_t ns)
{
	uint64_t end = world.now + ns;

	for (;;) {
		uint64_t next;

		settle();
		next = deadline();
		if (next > end)
			break;
		if (next <= world.now)
			fail_msg("a deadline that is over, though nobody has anything to send");
		world.now = next;
		step();
	}
	world.now = bw_max_u64(world.now, end);
}
