/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints of libbeowire that talk to each other, by frames that go through the script's hands.
 * The first byte says whether there is an honest line, which loses, doubles and reorders, or a
 * hostile peer, who changes frames and makes some up, with all checks right. Beside it the script
 * calls all that programs call.
 *
 * On an honest line every message comes once, whole and in order, every operation ends once, and
 * all does within the time in which a silent peer is given up, once nothing is lost any more. What
 * a hostile peer does costs others nothing but that: no operation ends twice or never, and memory
 * is bounded.
 */
#include "endpoint_ops.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX 80
#define TURNS_MAX 60000 /* at the end */

enum step {
	STEP_TURNS, /* all go on for a while */
	STEP_ARRIVE,
	STEP_LOSE,
	STEP_DOUBLE,
	STEP_REORDER,
	STEP_CHANGE, /* a hostile peer's, and the next one; else frames arrive */
	STEP_INVENT,
	STEP_SEND,
	STEP_SENDS, /* the same one many times */
	STEP_PULL,
	STEP_READ,
	STEP_CANCEL,
	STEP_TIME,
	STEP_MISC,
	STEP_CLOSE,
	STEP_NO_ROOM,
	STEP_CUT,
	STEP_STRANGERS,
	STEPS,
};

static void turns(uint32_t n, uint64_t until)
{
	while (n--)
		world_turn(-1, until);
}

/* One frame of the line; false: there is none. */
static bool choose(struct fuzz_input *in, uint32_t *i)
{
	if (!world.frames)
		return false;
	*i = fuzz_u8(in) % (uint32_t)bw_min_u64(world.frames, 32);
	return true;
}

static void step_lose(struct fuzz_input *in)
{
	uint32_t i, n = 1 + fuzz_u8(in) % 8;

	while (n-- && choose(in, &i)) {
		world.lossy = true;
		world_lose(i);
	}
}

static void step_double(struct fuzz_input *in)
{
	uint32_t i;

	if (choose(in, &i))
		world_add(world.line[i].from, world.line[i].bytes, world.line[i].len);
}

/* A frame becomes the last, or the first one. */
static void step_reorder(struct fuzz_input *in)
{
	struct world_frame f;
	uint32_t i;

	if (!choose(in, &i))
		return;
	f = world.line[i];
	if (fuzz_u8(in) & 1) {
		memmove(world.line + 1, world.line, i * sizeof(f));
		world.line[0] = f;
	} else {
		memmove(world.line + i, world.line + i + 1, (world.frames - 1 - i) * sizeof(f));
		world.line[world.frames - 1] = f;
	}
}

/* The changed frame stands beside the genuine one, or in its place. */
static void step_change(struct fuzz_input *in)
{
	static uint8_t bytes[WORLD_ETHER + WORLD_MTU + 8];
	uint32_t i, len;
	struct world_frame f;

	if (ops_honest || !choose(in, &i))
		return;
	f = world.line[i];
	memcpy(bytes, f.bytes, f.len);
	len = frame_change(in, bytes + WORLD_ETHER, f.len - WORLD_ETHER, world.mtu);
	world_add(f.from, bytes, len + WORLD_ETHER);
	f = world.line[world.frames - 1];
	world.line[world.frames - 1] = world.line[i];
	world.line[i] = f;
	if (fuzz_u8(in) & 3)
		world_lose(world.frames - 1);
}

static void step_invent(struct fuzz_input *in, int s)
{
	static uint8_t bytes[WORLD_ETHER + WORLD_MTU + 8];
	uint8_t again = fuzz_u8(in);
	uint32_t len;

	for (again = again < 240 ? 1 : again - 239; again--;) {
		const struct world_frame *last = &world.last[s];

		if (ops_honest || !last->len)
			return;
		memcpy(bytes, last->bytes, last->len);
		len = frame_invent(in, s, bytes + WORLD_ETHER, world.mtu);
		world_add(s, bytes, len + WORLD_ETHER);
	}
}

static void open_side(int s)
{
	world_open(s, &ops_handlers);
	ops_opened(s);
}

static void step_close(struct fuzz_input *in, int s)
{
	uint8_t how = fuzz_u8(in);

	if (!world.side[s].ep) {
		world.no_memory = 0;
		open_side(s);
		return;
	}
	world_close(s, how & 1 ? how * BW_MS : 0);
	ops_closed(s);
}

static void one_step(struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in), who = fuzz_u8(in);
	int s = who % world.sides, t = s ? 0 : 1 + (who >> 4) % (world.sides - 1);
	bool open = world.side[s].ep;
	struct fuzz_input again;
	uint32_t n;

	switch (what % STEPS) {
	case STEP_TURNS:
		turns(1 + (who & 31), world.now + BW_MS);
		break;
	case STEP_ARRIVE:
		world_deliver(1 + (who & 7));
		world_round(who >> 4 & 1);
		break;
	case STEP_LOSE:
		step_lose(in);
		break;
	case STEP_DOUBLE:
		step_double(in);
		break;
	case STEP_REORDER:
		step_reorder(in);
		break;
	case STEP_CHANGE:
		step_change(in);
		break;
	case STEP_INVENT:
		step_invent(in, s);
		break;
	case STEP_SEND:
		if (open)
			ops_send(in, s, t);
		break;
	case STEP_SENDS:
		again = *in;
		for (n = 2u << (who >> 5); open && n--;) {
			*in = again;
			ops_send(in, s, t);
		}
		break;
	case STEP_PULL:
		if (open)
			ops_pull(in, s);
		break;
	case STEP_READ:
		if (open)
			ops_read(in, s, t);
		break;
	case STEP_CANCEL:
		if (open)
			ops_cancel(in, s);
		break;
	case STEP_TIME:
		world.now += 1ull << who % 34;
		world.lossy |= who % 34 > 26;
		break;
	case STEP_MISC:
		if (open)
			ops_misc(in, s, t);
		break;
	case STEP_CLOSE:
		step_close(in, s);
		break;
	case STEP_NO_ROOM:
		world.side[s].no_room = who >> 2 & 31;
		world.no_memory = who & 128 ? who & 7 : world.no_memory;
		world.lossy = true;
		break;
	case STEP_CUT:
		world.side[s].cut = !world.side[s].cut;
		break;
	case STEP_STRANGERS:
		if (open)
			ops_strangers(in, s, t);
	}
}

static void check(void)
{
	for (int i = 0; i < world.sides; i++)
		if (world.side[i].ep)
			check_endpoint(world.side[i].ep);
	ops_check();
}

static void begin(uint8_t how, struct fuzz_input *in)
{
	static const uint64_t frame_ns[] = {0, BW_US, 20 * BW_US, 300 * BW_US};

	world_begin();
	frame_forget();
	ops_begin();
	ops_honest = how & 1;
	world.sides = how & 2 ? 3 : 2;
	world.mtu = how & 4 ? WORLD_MTU : 1500;
	world.frame_ns = frame_ns[how >> 3 & 3];
	world.encrypts = how >= 0xE0;
	world.keyed = how >= 0xC0;
	world.budget = how & 32;
	ops_habits = fuzz_u8(in);
	world.crowded = ops_habits & 64;
	world.come = world.crowded ? WORLD_COME : 0;
	/* What waits for no other message has some room of its own. */
	if (world.crowded && ops_habits & 32)
		world.come += BW_ARRIVING_NEXT;
	for (int i = 0; i < world.sides; i++)
		open_side(i);
	if (ops_habits & 128)
		return;
	/* They have met. */
	for (int i = 0; i < world.sides; i++)
		ops_send(&(struct fuzz_input){0}, i, i ? 0 : 1);
	turns(40, world.now + BW_MS);
}

static bool busy(const struct world_side *s)
{
	const struct bw_ep *ep = s->ep;

	return ep && (s->used || ep->pending || ep->pulling || ep->placing ||
		      (ops_honest && ep->arriving != world.come) || bw_reliable.busy(ep->engine));
}

static bool any_busy(void)
{
	bool any = ops_pending() || world.frames;

	for (int i = 0; i < world.sides; i++)
		any |= busy(&world.side[i]);
	return any;
}

/* Whoever waits for a peer to fetch something keeps an eye on it. */
static void watch_all(struct bw_ep *ep)
{
	for (bw_peer_no peer = 0; peer < ep->remotes.count; peer++)
		bw_peer_watch(ep, peer, true);
}

/* The line is whole again, or nothing passes any more: all that is under way ends in time. */
static void settle(void)
{
	uint64_t until = world.now + 3 * WORLD_DEAD_NS + 30 * BW_S;
	uint32_t n = 0;

	world.no_memory = 0;
	for (int i = 0; i < world.sides; i++) {
		world.side[i].no_room = 0;
		world.side[i].cut = !ops_honest;
		if (world.side[i].ep)
			watch_all(world.side[i].ep);
		world.side[i].due = world.now;
	}
	while (any_busy()) {
		for (int i = 0; i < world.sides; i++)
			while (world.side[i].ep && n % 8 == 0 &&
			       ops_pull(&(struct fuzz_input){0}, i))
				world.side[i].due = world.now;
		turns(1, until);
		if (world.now >= until && any_busy())
			fuzz_bad("what is under way does not end");
		if (n++ > TURNS_MAX)
			fuzz_bad("frames without end");
	}
	/* What ended last is told. */
	for (int i = 0; i < world.sides; i++)
		world_round(i);
	check();
	for (int i = 0; i < world.sides; i++)
		if (world.side[i].ep)
			check_quiet(world.side[i].ep);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	uint32_t steps = 0;

	begin(fuzz_u8(&in), &in);
	while (in.at < in.end && steps++ < STEPS_MAX) {
		one_step(&in);
		for (int i = 0; i < world.sides; i++)
			world.side[i].due = world.now;
		check();
	}
	settle();
	for (int i = 0; i < world.sides; i++) {
		world_close(i, 0);
		ops_closed(i);
	}
	ops_end();
	world_end();
	return 0;
}
