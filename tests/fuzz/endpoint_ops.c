/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What programs ask of their endpoints; see endpoint_ops.h. */
#include "endpoint_ledger.h"

#include <stdlib.h>
#include <string.h>

static bool find(int s, int t, bw_peer_no *peer)
{
	return !bw_peer_find(world.side[s].ep, &world.side[t].addr, peer);
}

static uint64_t some_length(struct fuzz_input *in)
{
	uint8_t how = fuzz_u8(in);
	uint64_t len = fuzz_u8(in);

	if (op_volume > VOLUME || how < 80)
		return len;
	if (how < 128)
		return len << 4;
	if (how < 192)
		return len * 257;
	if (how < 224)
		return len * 1285;
	return (how & 1 ? BW_EAGER_LIMIT : BW_LONG_LIMIT) + (len & 15) - 8;
}

void ops_send(struct fuzz_input *in, int s, int t)
{
	static const unsigned int flags[] = {
		0,
		BW_SEND_ACKED,
		BW_SEND_HANDED,
		BW_SEND_SYNC,
		BW_SEND_EAGER,
		BW_SEND_EAGER | BW_SEND_ACKED,
		BW_SEND_SYNC | BW_SEND_HANDED,
		0,
	};
	uint8_t how = fuzz_u8(in);
	uint64_t len = some_length(in);
	bw_peer_no peer;
	struct op *op;
	int r;

	op = find(s, t, &peer) ? op_new(SEND, s, t, len) : NULL;
	if (!op)
		return;
	op->flags = flags[how % 8];
	op->code = how & BW_CODE_MAX;
	op->imm = op->pattern ^ len << 20;
	op->inc = world.side[s].inc;
	op->conv = program[s].with[t].conv;
	op->seq = program[s].with[t].seq;
	op->state = PENDING;
	memcpy(op->buf, op_pattern + op->pattern, len);
	/* It may be delivered, and answered, before this returns. */
	program[s].with[t].seq++;
	r = bw_send(world.side[s].ep, peer, op->code, (uint64_t)(op - op_all), op->imm, op->buf,
		    len, op->flags, op);
	if (r > 1)
		fuzz_bad("a result of bw_send() that there is not");
	if (r < 0)
		program[s].with[t].seq -= program[s].with[t].seq > 0;
	if (r < 0)
		op_undo(op);
	else if (r)
		op_end(op, ENDED);
	if (r == 1 && op->flags & (BW_SEND_ACKED | BW_SEND_HANDED | BW_SEND_SYNC))
		fuzz_bad("a send is done at once that waits for its peer");
}

void ops_strangers(struct fuzz_input *in, int s, int t)
{
	uint8_t how = fuzz_u8(in);
	struct bw_addr_fields a;
	struct bw_addr addr;
	bw_peer_no peer;
	struct op *op;

	if (bw_addr_unpack(&world.side[t].addr, &a))
		fuzz_bad("an address that is none");
	for (uint32_t n = how & 63; n--;) {
		a.inc = 1 + n;
		bw_addr_pack(&a, &addr);
		if (how & 64)
			bw_peer_forget(world.side[s].ep, &addr);
		if (bw_peer_find(world.side[s].ep, &addr, &peer))
			continue;
		op = how & 128 ? op_new(SEND, s, -1, n) : NULL;
		if (!op)
			continue;
		op->flags = BW_SEND_ACKED;
		op->state = PENDING;
		memcpy(op->buf, op_pattern, n);
		if (bw_send(world.side[s].ep, peer, 0, 0, 0, op->buf, n, op->flags, op))
			op_undo(op);
	}
}

void ops_read(struct fuzz_input *in, int s, int t)
{
	uint8_t how = fuzz_u8(in);
	uint64_t len = some_length(in), off = fuzz_u16(in);
	bw_peer_no peer;
	struct op *op;

	op = find(s, t, &peer) ? op_new(READ, s, t, len) : NULL;
	if (!op)
		return;
	op->pattern = (uint32_t)(off + (uint32_t)t);
	op->off = off;
	op->may_fail = how & 1 || off + len > REGION || program[t].forbids;
	op->state = PENDING;
	if (bw_read(world.side[s].ep, peer, KEY_BASE + (uint64_t)t + (how & 1), off, op->buf, len,
		    op))
		op_undo(op);
}

bool ops_pull(struct fuzz_input *in, int s)
{
	uint8_t how = fuzz_u8(in);
	uint32_t k = how >> 4;
	uint64_t len;

	if (!program[s].n_kept)
		return false;
	k %= program[s].n_kept;
	len = bw_min_u64(program[s].kept[k].len, LONGEST);
	if ((how & 3) == 3)
		len /= 2;
	else if ((how & 3) == 1 && !(how & 8))
		len = 0;
	return program_fetch(s, k, len, how & 4) != -EAGAIN;
}

void ops_cancel(struct fuzz_input *in, int s)
{
	uint8_t which = fuzz_u8(in);
	struct op *op = NULL;
	bw_peer_no peer;
	int error;

	for (uint32_t k = op_count; k-- && !op;)
		if (op_all[k].state == PENDING && op_all[k].side == s && op_all[k].kind != PLACE &&
		    !op_all[k].canceled && !which--)
			op = &op_all[k];
	if (!op)
		return;
	if (op->kind == SEND) {
		error = bw_send_cancel(world.side[s].ep, op);
		op->canceled = !error;
		return;
	}
	if (op->to < 0 || !find(s, op->to, &peer))
		return;
	error = bw_pull_cancel(world.side[s].ep, peer, op);
	if (error || op->state != PENDING)
		return;
	op->canceled = true;
	free(op->buf); /* from now on nothing is written there */
	op->buf = NULL;
}

/* Memory that peers may read goes away when nobody reads it any more. */
static void revoke(int s)
{
	if (!program[s].forbids) {
		program[s].forbids = true;
		for (uint32_t k = 0; k < op_count; k++)
			if (op_all[k].state == PENDING && op_all[k].kind == READ &&
			    op_all[k].to == s)
				op_all[k].may_fail = true;
	} else if (bw_ep_serving(world.side[s].ep, KEY_BASE + (uint64_t)s, program[s].region,
				 REGION)) {
		bw_ep_forbid(world.side[s].ep, KEY_BASE + (uint64_t)s);
	} else {
		free(program[s].region);
		program[s].region = malloc(REGION);
		memcpy(program[s].region, op_pattern + s, REGION);
		program[s].forbids = false;
	}
}

void ops_misc(struct fuzz_input *in, int s, int t)
{
	struct bw_ep *ep = world.side[s].ep;
	uint8_t how = fuzz_u8(in);
	struct bw_addr addr;
	bw_peer_no peer;

	switch (how % 8) {
	case 0:
		bw_ep_pressure(ep, how & 8);
		break;
	case 1:
		if (find(s, t, &peer))
			bw_peer_watch(ep, peer, how & 8);
		break;
	case 2:
	case 3:
		bw_peer_forget(ep, &world.side[t].addr);
		break;
	case 4:
		revoke(s);
		break;
	case 5:
		free(bw_ep_stats(ep));
		break;
	case 6:
		for (peer = 0; peer < ep->remotes.count + 1; peer++) {
			bw_peer_addr(ep, peer, &addr);
			bw_peer_describe(ep, peer);
			bw_peer_link(ep, peer);
			bw_peer_status(ep, peer);
			bw_eager_max(ep, peer);
			bw_send_copies(ep, peer, 100000);
		}
		break;
	default:
		ops_habits = how >> 3;
	}
}
