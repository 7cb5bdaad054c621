/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a peer, or anybody on the segment, sends to a port of the kernel module: two of its ports on
 * the real engine, between whose frames the script mixes its own. Frames arrive as socket buffers
 * of all shapes, alone and in rows; meanwhile both programs send, expose, pull and read, and memory
 * runs out. The first byte of an input chooses whether only the two speak, so that all that arrives
 * has to be what was sent, and whether they encrypt.
 */
#include "port_world.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum step {
	STEP_GENUINE, /* frames of the other side */
	STEP_CALL,
	STEP_CALL_THEIRS,
	STEP_TIME,
	STEP_STATE, /* what goes wrong from now on, or no longer */
	STEP_READ,
	STEP_ANSWER,
	STEP_PLAIN = STEP_ANSWER, /* the last one that makes no frame up */
	STEP_CHANGED,
	STEP_PARTS,
	STEP_ACK,
	STEP_HELLO,
	STEP_RAW,
	STEP_SEALED,
	STEP_ADDRESSED,
	STEP_NUMBERED,
	STEPS,
};

#define ROUNDS 3000 /* in which everything comes to rest */

void port_settle(void)
{
	struct port_side *us = &world.side[US], *them = &world.side[THEM];
	struct port_frame f;
	uint32_t rounds = 0;
	bool any;

	do {
		any = false;
		while (fake_timers())
			if (++rounds > ROUNDS)
				fuzz_bad("timers without end");
		if (!world.lazy)
			any = fake_work();
		while (us->frames) {
			port_wire_take(us, &f, 1);
			port_arrive(them, &f, 1, 0, false);
			free(f.bytes);
			any = true;
		}
		if (++rounds > ROUNDS)
			fuzz_bad("there is no end");
	} while (any || fake_timer_next() <= fake_time);
}

static uint32_t patience;

void port_patience(uint32_t times)
{
	patience = times;
	fake_task.signal = false;
}

void port_wait(void)
{
	struct port_side *them = &world.side[THEM];
	struct port_frame f;
	uint32_t i;

	fake_time += FAKE_WAIT * BW_MS;
	port_settle();
	for (i = 0; i < 8 && them->frames; i++) {
		port_wire_take(them, &f, 1);
		port_arrive(&world.side[US], &f, 1, 0, false);
		free(f.bytes);
		port_settle();
	}
	if (!patience || !--patience)
		fake_task.signal = true;
}

/* The next frames of the other side, perhaps twice, damaged, or in another order. */
static void genuine(struct fuzz_input *in, bool change)
{
	struct port_side *them = &world.side[THEM], *us = &world.side[US];
	struct port_frame f[FUZZ_ROW], swap;
	uint8_t how = fuzz_u8(in);
	uint32_t n = 1 + (how & 7), i, at = 0;

	n = min(n, them->frames);
	if (!n)
		return;
	port_wire_take(them, f, n);
	if (how & 8 && n > 1) {
		swap = f[0];
		f[0] = f[n - 1];
		f[n - 1] = swap;
	}
	world.amiss |= how & 16;
	if (how & 16)
		f[0].bytes[fuzz_u16(in) % f[0].len] ^= fuzz_odd(in);
	if (change && f[n - 1].len)
		port_make_changed(in, f[n - 1].bytes, f[n - 1].len);
	if (how & 32)
		at = 1; /* the first one is lost */
	if (at < n)
		port_arrive(us, f + at, n - at, 0, true);
	if (how & 64)
		port_arrive(us, f, 1, 0, true);
	for (i = 0; i < n; i++) {
		struct bw_hdr h;

		memcpy(&h, f[i].bytes, sizeof(h));
		if (h.type == BW_FRAME_DATA)
			world.pn[0] = h.pn;
		free(f[i].bytes);
	}
}

static void call(struct port_side *s, struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in), arg = fuzz_u8(in);
	uint32_t n;

	switch (what % 10) {
	case 0:
		port_send(s, arg * 8u, what >> 4);
		break;
	case 1:
		port_send(s, arg * 250u, what >> 4);
		break;
	case 2:
		port_expose(s, arg * 200u);
		break;
	case 3:
		port_pull(s, what >> 5, arg * 200u, what >> 4, false);
		break;
	case 4:
		port_pull(s, what >> 5, arg * 200u, what >> 4, true);
		break;
	case 5:
		port_retract(s, arg);
		break;
	case 6:
		port_cancel(s, arg);
		break;
	case 7:
		port_say(s, BW_OP_PRESSURE, arg & 1);
		break;
	case 8:
		port_say(s, BW_OP_WATCH, arg & 1);
		break;
	default:
		if (arg == 0xFF)
			port_say(s, BW_OP_DISCONNECT, what & 16);
		else
			for (n = arg == 0xFE ? PORT_MESSAGES : 1; n;
			     n--) /* more memory is wanted */
				port_send(s, arg & 63, what >> 4);
	}
}

static void state(struct fuzz_input *in)
{
	struct port_side *us = &world.side[US];
	uint8_t what = fuzz_u8(in), arg = fuzz_u8(in);

	world.amiss |= what % 7 >= 4;
	switch (what % 7) {
	case 0:
		world.lose = arg & 1;
		break;
	case 1:
		world.full = arg & 1;
		break;
	case 2:
		world.lazy = arg & 1;
		break;
	case 3:
		world.ignores = arg & 1;
		break;
	case 4:
		fake_memory.pass = arg & 63;
		fake_memory.fail = 1 + (what >> 3) * (arg >> 6);
		break;
	case 5: /* what may be charged beyond what is */
		us->limit = arg == 255 ? UINT64_MAX : us->held + arg * 1024u;
		break;
	default:
		us->node.set.memory_max = 1u << (12 + arg % 10);
	}
}

static void one_step(struct fuzz_input *in)
{
	enum step step = fuzz_u8(in) % (world.plain ? STEP_PLAIN + 1 : STEPS);
	struct port_side *us = &world.side[US];
	uint8_t arg;

	switch (step) {
	case STEP_GENUINE:
	case STEP_CHANGED:
		genuine(in, step == STEP_CHANGED);
		break;
	case STEP_CALL:
	case STEP_CALL_THEIRS:
		if (world.kind == PORT_RECORDS)
			call(step == STEP_CALL ? us : &world.side[THEM], in);
		else
			port_socks_call(step == STEP_CALL ? us : &world.side[THEM], in);
		break;
	case STEP_TIME:
		fake_time += 1ull << fuzz_u8(in) % 36;
		break;
	case STEP_STATE:
		state(in);
		break;
	case STEP_READ:
		port_read(us, 1 + fuzz_u8(in) % 8);
		break;
	case STEP_ANSWER:
		arg = fuzz_u8(in);
		if (world.kind == PORT_RECORDS)
			port_answer(arg & 0x80 ? &world.side[THEM] : us, arg & 0x7F);
		else
			port_socks_drain(arg & 0x80 ? &world.side[THEM] : us);
		break;
	case STEP_PARTS:
		port_make_parts(in);
		break;
	case STEP_ACK:
		port_make_ack(in);
		break;
	case STEP_HELLO:
		port_make_hello(in);
		break;
	default:
		port_make_bytes(in, (enum port_made)(step - STEP_RAW));
	}
	port_check();
	port_settle();
	port_check();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	uint32_t steps = 0;

	port_begin(&in);
	while (in.at < in.end && steps++ < 100)
		one_step(&in);
	port_end();
	return 0;
}
