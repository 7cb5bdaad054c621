/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A run of a packet filter (classic BPF, Linux' networking/filter.rst), for tests of those that
 * this project makes: the instructions that they consist of. */
#ifndef BPF_RUN_H
#define BPF_RUN_H

#include <linux/filter.h>
#include <linux/if_packet.h>
#include <stddef.h>
#include <stdint.h>

#define BPF_BAD (-1) /* the program leaves itself, or has an instruction that is unknown here */

/* The `size` bytes at k as the kernel loads them. False: they are not there. */
static inline int bpf_load(uint32_t *a, const uint8_t *bytes, uint32_t len, uint32_t k,
			   uint32_t size, uint32_t pkttype)
{
	if (k == (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)) {
		*a = pkttype;
		return 1;
	}
	if (k > len || size > len - k)
		return 0;
	*a = size == 1 ? bytes[k] : (uint32_t)bytes[k] << 8 | bytes[k + 1];
	return 1;
}

/* What the program of n instructions says to these bytes; 0 where it looks behind their end. */
static inline int64_t bpf_run(const struct sock_filter *code, unsigned int n, const uint8_t *bytes,
			      uint32_t len, uint32_t pkttype)
{
	uint32_t a = 0;

	for (unsigned int at = 0; at < n; at++) {
		const struct sock_filter *c = &code[at];

		switch (c->code) {
		case BPF_LD | BPF_H | BPF_ABS:
		case BPF_LD | BPF_B | BPF_ABS:
			if (!bpf_load(&a, bytes, len, c->k, BPF_SIZE(c->code) == BPF_B ? 1 : 2,
				      pkttype))
				return 0;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			at += a == c->k ? c->jt : c->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			at += a >= c->k ? c->jt : c->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			at += a & c->k ? c->jt : c->jf;
			break;
		case BPF_JMP | BPF_JA:
			at += c->k;
			break;
		case BPF_RET | BPF_K:
			return c->k;
		default:
			return BPF_BAD;
		}
	}
	return BPF_BAD;
}

#endif
