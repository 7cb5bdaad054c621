/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* eBPF programs under construction (RFC 9669), and bpf(2). */
#ifndef BS_CODE_H
#define BS_CODE_H

#include <linux/bpf.h>
#include <stdint.h>

#define BS_CODE_MAX 128 /* instructions of a program */
#define BS_CODE_OUT 32	/* jumps to its other end */

struct bs_code {
	struct bpf_insn insn[BS_CODE_MAX];
	unsigned int n;
	unsigned int out[BS_CODE_OUT]; /* jumps whose distance bs_code_end() fills in */
	unsigned int outs;
};

/* Registers by number: 0 results, 1 to 5 arguments, 6 to 9 kept over calls, 10 the stack. */
void bs_code_copy(struct bs_code *c, uint8_t to, uint8_t from);
void bs_code_set(struct bs_code *c, uint8_t to, int32_t value);
void bs_code_add(struct bs_code *c, uint8_t to, int32_t value);
/* BPF_B, BPF_H, BPF_W or BPF_DW at [from + off]. */
void bs_code_load(struct bs_code *c, uint8_t size, uint8_t to, uint8_t from, int16_t off);
void bs_code_store(struct bs_code *c, uint8_t size, uint8_t to, int16_t off, uint8_t from);
void bs_code_count(struct bs_code *c, uint8_t at); /* *at += 1, atomically, 64 bits */
void bs_code_map(struct bs_code *c, uint8_t to, int map);
void bs_code_call(struct bs_code *c, int helper);
void bs_code_leave(struct bs_code *c);
void bs_code_skip(struct bs_code *c, uint8_t condition, uint8_t reg, int32_t value, int16_t n);

/* Go on only if `reg` compares so (BPF_JEQ, ...) to the value, else to the other end with `why` in
 * register 9. */
void bs_code_need(struct bs_code *c, uint8_t condition, uint8_t reg, int32_t value, int32_t why);
void bs_code_need_same(struct bs_code *c, uint8_t condition, uint8_t reg, uint8_t other,
		       int32_t why);
/* The other end begins here. */
void bs_code_end(struct bs_code *c);

/* For a device (cls_bpf), or for a socket. A descriptor or a negative errno. */
int bs_code_load_program(const struct bs_code *c, const char *name);
int bs_code_load_filter(const struct bs_code *c, const char *name);
int bs_map_new(enum bpf_map_type type, const char *name, uint32_t key, uint32_t value,
	       uint32_t entries);
/* 0 or a negative errno. */
int bs_map_set(int map, const void *key, const void *value);
int bs_map_remove(int map, const void *key);
int bs_map_get(int map, const void *key, void *value);

#endif
