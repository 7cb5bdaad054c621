/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* eBPF programs without a compiler; see code.h. */
#include "code.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void bs_code_put(struct bs_code *c, uint8_t code, uint8_t to, uint8_t from, int16_t off,
			int32_t imm)
{
	if (c->n < BS_CODE_MAX)
		c->insn[c->n] = (struct bpf_insn){code, to, from, off, imm};
	c->n++;
}

void bs_code_copy(struct bs_code *c, uint8_t to, uint8_t from)
{
	bs_code_put(c, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

void bs_code_set(struct bs_code *c, uint8_t to, int32_t value)
{
	bs_code_put(c, BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value);
}

void bs_code_add(struct bs_code *c, uint8_t to, int32_t value)
{
	bs_code_put(c, BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value);
}

void bs_code_load(struct bs_code *c, uint8_t size, uint8_t to, uint8_t from, int16_t off)
{
	bs_code_put(c, BPF_LDX | BPF_MEM | size, to, from, off, 0);
}

void bs_code_store(struct bs_code *c, uint8_t size, uint8_t to, int16_t off, uint8_t from)
{
	bs_code_put(c, BPF_STX | BPF_MEM | size, to, from, off, 0);
}

void bs_code_count(struct bs_code *c, uint8_t at)
{
	bs_code_set(c, 1, 1);
	bs_code_put(c, BPF_STX | BPF_ATOMIC | BPF_DW, at, 1, 0, BPF_ADD);
}

void bs_code_map(struct bs_code *c, uint8_t to, int map)
{
	bs_code_put(c, BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, map);
	bs_code_put(c, 0, 0, 0, 0, 0);
}

void bs_code_call(struct bs_code *c, int helper)
{
	bs_code_put(c, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

void bs_code_leave(struct bs_code *c)
{
	bs_code_put(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

void bs_code_skip(struct bs_code *c, uint8_t condition, uint8_t reg, int32_t value, int16_t n)
{
	bs_code_put(c, BPF_JMP | condition | BPF_K, reg, 0, n, value);
}

static void bs_code_out(struct bs_code *c, int32_t why)
{
	bs_code_set(c, 9, why);
	if (c->outs < BS_CODE_OUT)
		c->out[c->outs] = c->n;
	c->outs++;
	bs_code_put(c, BPF_JMP | BPF_JA, 0, 0, 0, 0);
}

void bs_code_need(struct bs_code *c, uint8_t condition, uint8_t reg, int32_t value, int32_t why)
{
	bs_code_skip(c, condition, reg, value, 2);
	bs_code_out(c, why);
}

void bs_code_need_same(struct bs_code *c, uint8_t condition, uint8_t reg, uint8_t other,
		       int32_t why)
{
	bs_code_put(c, BPF_JMP | condition | BPF_X, reg, other, 2, 0);
	bs_code_out(c, why);
}

void bs_code_end(struct bs_code *c)
{
	for (unsigned int i = 0; i < c->outs && i < BS_CODE_OUT; i++) {
		if (c->out[i] < BS_CODE_MAX)
			c->insn[c->out[i]].off = (int16_t)(c->n - c->out[i] - 1);
	}
}

static int bs_bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	long result = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return result < 0 ? -errno : (int)result;
}

static int bs_code_give(const struct bs_code *c, enum bpf_prog_type type, const char *name)
{
	union bpf_attr attr;

	if (c->n > BS_CODE_MAX || c->outs > BS_CODE_OUT)
		return -E2BIG;
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = type;
	attr.insns = (uintptr_t)c->insn;
	attr.insn_cnt = c->n;
	attr.license = (uintptr_t) "GPL";
	snprintf(attr.prog_name, sizeof(attr.prog_name), "%s", name);
	return bs_bpf(BPF_PROG_LOAD, &attr);
}

int bs_code_load_program(const struct bs_code *c, const char *name)
{
	return bs_code_give(c, BPF_PROG_TYPE_SCHED_CLS, name);
}

int bs_code_load_filter(const struct bs_code *c, const char *name)
{
	return bs_code_give(c, BPF_PROG_TYPE_SOCKET_FILTER, name);
}

int bs_map_new(enum bpf_map_type type, const char *name, uint32_t key, uint32_t value,
	       uint32_t entries)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = type;
	attr.key_size = key;
	attr.value_size = value;
	attr.max_entries = entries;
	snprintf(attr.map_name, sizeof(attr.map_name), "%s", name);
	return bs_bpf(BPF_MAP_CREATE, &attr);
}

static int bs_map_call(enum bpf_cmd command, int map, const void *key, const void *value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map;
	attr.key = (uintptr_t)key;
	attr.value = (uintptr_t)value;
	return bs_bpf(command, &attr);
}

int bs_map_set(int map, const void *key, const void *value)
{
	return bs_map_call(BPF_MAP_UPDATE_ELEM, map, key, value);
}

int bs_map_remove(int map, const void *key)
{
	return bs_map_call(BPF_MAP_DELETE_ELEM, map, key, NULL);
}

int bs_map_get(int map, const void *key, void *value)
{
	return bs_map_call(BPF_MAP_LOOKUP_ELEM, map, key, value);
}
