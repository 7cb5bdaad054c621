/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steering program: a binary search over engine numbers. The kernel runs it once for each frame
 * of a group, whatever the number of members, and before the frame has its Ethernet header again:
 * the inner header is at offset 0 (packet_rcv_fanout() in net/packet/af_packet.c).
 */
#include <stddef.h>
#include <stdlib.h>

#include "link/filter.h"
#include "link/packet/steer.h"
#include "wire.h"

static int bw_steer_order(const void *one, const void *other)
{
	const struct bw_steer *a = one, *b = other;

	return (int)bw_filter_swap(a->engine) - (int)bw_filter_swap(b->engine);
}

static unsigned int bw_steer_add(struct sock_filter *code, unsigned int at, uint16_t what,
				 uint8_t yes, uint8_t no, uint32_t k)
{
	code[at] = (struct sock_filter){what, yes, no, k};
	return at + 1;
}

/* Search among entries lo to hi - 1, at least one. */
static unsigned int bw_steer_search(struct sock_filter *code, unsigned int at,
				    const struct bw_steer *of, unsigned int lo, unsigned int hi,
				    uint32_t otherwise)
{
	unsigned int middle = (lo + hi) / 2, upper;

	if (hi - lo == 1) {
		at = bw_steer_add(code, at, BPF_JMP | BPF_JEQ | BPF_K, 0, 1,
				  bw_filter_swap(of[lo].engine));
		at = bw_steer_add(code, at, BPF_RET | BPF_K, 0, 0, of[lo].to);
		return bw_steer_add(code, at, BPF_RET | BPF_K, 0, 0, otherwise);
	}
	at = bw_steer_add(code, at, BPF_JMP | BPF_JGE | BPF_K, 0, 1,
			  bw_filter_swap(of[middle].engine));
	/* A jump of its own, as those of a comparison reach 255 instructions only. */
	upper = at++;
	at = bw_steer_search(code, at, of, lo, middle, otherwise);
	bw_steer_add(code, upper, BPF_JMP | BPF_JA, 0, 0, at - upper - 1);
	return bw_steer_search(code, at, of, middle, hi, otherwise);
}

unsigned int bw_steer_program(struct sock_filter *code, struct bw_steer *of, unsigned int n,
			      uint32_t otherwise)
{
	unsigned int at = 0;

	qsort(of, n, sizeof(*of), bw_steer_order);
	at = bw_steer_add(code, at, BPF_LD | BPF_H | BPF_ABS, 0, 0, offsetof(struct bw_hdr, magic));
	at = bw_steer_add(code, at, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, bw_filter_swap(BW_MAGIC));
	at = bw_steer_add(code, at, BPF_RET | BPF_K, 0, 0, otherwise);
	at = bw_steer_add(code, at, BPF_LD | BPF_H | BPF_ABS, 0, 0,
			  offsetof(struct bw_hdr, dst_engine));
	if (!n)
		return bw_steer_add(code, at, BPF_RET | BPF_K, 0, 0, otherwise);
	return bw_steer_search(code, at, of, 0, n, otherwise);
}

uint32_t bw_steer_moving(uint32_t n, uint32_t leaving)
{
	return n - 1 + n * leaving;
}
