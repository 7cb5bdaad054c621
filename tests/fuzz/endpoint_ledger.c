/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What programs remember; see endpoint_ledger.h. */
#include "endpoint_ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool ops_honest;
uint8_t ops_habits;
struct op op_all[OPS];
uint32_t op_count, op_volume;
uint8_t op_pattern[1u << 20];
struct program program[WORLD_SIDES];

struct op *op_new(enum kind kind, int s, int t, uint64_t len)
{
	/* What is sent is fetched and placed as well. */
	uint32_t most = kind == SEND || kind == READ ? OPS / 3 : OPS;
	struct op *op = op_count < most ? &op_all[op_count] : NULL;

	if (!op)
		return NULL;
	*op = (struct op){.kind = kind, .side = s, .to = t, .len = len};
	op->pattern = op_count * 7919 % (sizeof(op_pattern) - LONGEST);
	op->breaks = t < 0 ? 0 : program[s].with[t].breaks;
	op->buf = malloc(len + !len);
	op_count++;
	op_volume += len;
	return op;
}

void op_end(struct op *op, enum state state)
{
	free(op->buf);
	op->buf = NULL;
	op->state = state;
}

void op_undo(struct op *op)
{
	op_end(op, FREE);
	op_count--;
}

void program_break_up(int s, int t)
{
	program[s].with[t].breaks++;
	program[t].with[s].breaks++;
}

void ops_begin(void)
{
	if (!op_pattern[1])
		for (uint32_t i = 0, x = 1; i < sizeof(op_pattern);
		     i++, x = x * 1664525 + 1013904223)
			op_pattern[i] = (uint8_t)(x >> 24);
	op_count = op_volume = 0;
	memset(program, 0, sizeof(program));
}

void ops_opened(int i)
{
	program[i].region = malloc(REGION);
	memcpy(program[i].region, op_pattern + i, REGION);
	program[i].forbids = false;
	for (int t = 0; t < WORLD_SIDES; t++) {
		program[t].with[i].conv++;
		program[t].with[i].seq = program[i].with[t].seq = 0;
		program[i].with[t].conv++;
		if (world.side[i].opens > 1 && t != i)
			program_break_up(i, t);
	}
}

void ops_closed(int i)
{
	for (uint32_t k = 0; k < op_count; k++)
		if (op_all[k].side == i && op_all[k].state == PENDING)
			op_end(&op_all[k], DEAD);
	free(program[i].region);
	program[i].region = NULL;
	program[i].n_kept = 0;
	for (int t = 0; t < WORLD_SIDES; t++)
		if (t != i)
			program_break_up(i, t);
}

void ops_end(void)
{
	for (uint32_t k = 0; k < op_count; k++)
		free(op_all[k].buf);
}

uint32_t ops_pending(void)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < op_count; k++)
		n += op_all[k].state == PENDING;
	for (int s = 0; s < WORLD_SIDES; s++)
		n += program[s].n_kept;
	return n;
}

static bool may_fail(const struct op *op)
{
	if (op->may_fail || op->to < 0 || op->breaks != program[op->side].with[op->to].breaks)
		return true;
	if (op->canceled || (op->of && op->of->canceled))
		return true;
	return op->kind == PULL && op->of && op->of->state != PENDING;
}

void ops_check(void)
{
	for (uint32_t k = 0; ops_honest && k < op_count; k++)
		if (op_all[k].state == ENDED && op_all[k].status && !may_fail(&op_all[k]))
			fuzz_bad("an operation has failed that nothing kept from success");
}

void program_unkeep(int s, uint32_t k)
{
	uint32_t n = --program[s].n_kept;

	memmove(&program[s].kept[k], &program[s].kept[k + 1], (n - k) * sizeof(program[s].kept[0]));
}

int program_fetch(int s, uint32_t k, uint64_t len, bool early)
{
	struct bw_ep *ep = world.side[s].ep;
	struct op *op, *of = program[s].kept[k].of;
	const struct bw_rndv rndv = program[s].kept[k].rndv;
	bw_peer_no peer = program[s].kept[k].peer;
	int error;

	op = op_new(PULL, s, program[s].kept[k].from, len);
	if (!op)
		return -EAGAIN;
	op->of = of;
	op->pattern = of ? of->pattern : 0;
	op->state = PENDING;
	error = early ? bw_pull_early(ep, peer, &rndv, op->buf, len, op)
		      : bw_pull(ep, peer, &rndv, op->buf, len, op);
	if (error)
		op_undo(op);
	if (!error && !early && of)
		of->taken = true;
	if (!early && error != -EAGAIN)
		program_unkeep(s, k);
	return error;
}
