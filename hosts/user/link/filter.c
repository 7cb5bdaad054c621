/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packet filters. The first comparisons are those of a frame for us, so that watching over others
 * costs our own frames nothing. The filters are not locked: an endpoint owns its socket alone.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stddef.h>
#include <sys/socket.h>

#include "link/filter.h"
#include "wire.h"

_Static_assert(BW_FILTER_CUT >= sizeof(struct bw_hdr) + sizeof(struct bw_hello),
	       "refusals echo it");

#define BW_FILTER_UDP_BYTES 8 /* of a header of UDP, which a filter there sees first */

#define BW_FILTER_MAX (2 * BW_FILTER_ALIVE + 24)

struct bw_filter {
	struct sock_filter code[BW_FILTER_MAX];
	unsigned short n;
	size_t before; /* bytes of the outer header that the filter sees before the inner one */
};

static void bw_filter_add(struct bw_filter *f, uint16_t what, uint8_t yes, uint8_t no, uint32_t k)
{
	f->code[f->n++] = (struct sock_filter){what, yes, no, k};
}

static void bw_filter_load(struct bw_filter *f, uint16_t size, size_t field)
{
	bw_filter_add(f, BPF_LD | BPF_ABS | size, 0, 0, (uint32_t)(f->before + field));
}

/* Go on if equal, else return `otherwise` bytes. */
static void bw_filter_need(struct bw_filter *f, uint32_t value, uint32_t otherwise)
{
	bw_filter_add(f, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, value);
	bw_filter_add(f, BPF_RET | BPF_K, 0, 0, otherwise);
}

static void bw_filter_need_own_address(struct bw_filter *f)
{
	bw_filter_add(f, BPF_LD | BPF_H | BPF_ABS, 0, 0, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE));
	bw_filter_need(f, PACKET_HOST, 0);
}

static int bw_filter_attach(int fd, struct bw_filter *f)
{
	struct sock_fprog program = {f->n, f->code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

static void bw_filter_need_engine(struct bw_filter *f, uint16_t engine)
{
	bw_filter_load(f, BPF_H, offsetof(struct bw_hdr, dst_engine));
	bw_filter_need(f, bw_filter_swap(engine), 0);
	bw_filter_load(f, BPF_H, offsetof(struct bw_hdr, magic));
	bw_filter_need(f, bw_filter_swap(BW_MAGIC), 0);
}

int bw_filter_udp(int fd, uint16_t engine)
{
	struct bw_filter f = {.before = BW_FILTER_UDP_BYTES};

	bw_filter_need_engine(&f, engine);
	bw_filter_add(&f, BPF_RET | BPF_K, 0, 0, UINT32_MAX);
	return bw_filter_attach(fd, &f);
}

int bw_filter_own(int fd, uint16_t engine)
{
	struct bw_filter f = {.before = ETH_HLEN};

	bw_filter_need_engine(&f, engine);
	bw_filter_need_own_address(&f);
	bw_filter_add(&f, BPF_RET | BPF_K, 0, 0, UINT32_MAX);
	return bw_filter_attach(fd, &f);
}

int bw_filter_watch(int fd, uint16_t engine, const uint16_t *alive, unsigned int n)
{
	const uint32_t cut = ETH_HLEN + BW_FILTER_CUT;
	struct bw_filter f = {.before = ETH_HLEN};

	bw_filter_load(&f, BPF_H, offsetof(struct bw_hdr, magic));
	bw_filter_need(&f, bw_filter_swap(BW_MAGIC), cut);
	bw_filter_load(&f, BPF_H, offsetof(struct bw_hdr, dst_engine));
	bw_filter_add(&f, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, bw_filter_swap(engine));
	bw_filter_need_own_address(&f);
	bw_filter_add(&f, BPF_RET | BPF_K, 0, 0, UINT32_MAX);
	/* For somebody else; the accumulator still holds the number of the engine. */
	for (unsigned int i = 0; i < n && i < BW_FILTER_ALIVE; i++) {
		bw_filter_add(&f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, bw_filter_swap(alive[i]));
		bw_filter_add(&f, BPF_RET | BPF_K, 0, 0, 0);
	}
	bw_filter_need_own_address(&f);
	bw_filter_load(&f, BPF_B, offsetof(struct bw_hdr, type));
	bw_filter_add(&f, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, BW_FRAME_HELLO);
	bw_filter_load(&f, BPF_B, offsetof(struct bw_hdr, flags));
	bw_filter_add(&f, BPF_JMP | BPF_JSET | BPF_K, 0, 1, BW_HDR_ACK_NOW);
	bw_filter_add(&f, BPF_RET | BPF_K, 0, 0, cut);
	bw_filter_add(&f, BPF_RET | BPF_K, 0, 0, 0);
	return bw_filter_attach(fd, &f);
}
