/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The inside of the kernel link, shared by kernel.c and open.c. */
#ifndef BW_KERNEL_IMPL_H
#define BW_KERNEL_IMPL_H

#include <net/if.h>
#include <sys/socket.h>

#include "beowire_socket.h"
#include "link/kernel/kernel.h"

#define BW_KERNEL_BATCH	  16 /* messages taken by one system call */
#define BW_KERNEL_CALLERS 64 /* peers that are remembered to have called by UDP */

/* Somebody who wants to make contact by UDP. */
struct bw_kernel_caller {
	uint64_t who;	/* hash of its identity */
	uint64_t since; /* when it was first heard */
};

struct bw_kernel {
	int fd;
	int family;
	uint32_t ifindex, mtu;
	char interface[IF_NAMESIZE];
	const uint32_t *bell; /* page that counts what arrives; NULL: the module has none */
	uint32_t heard;	      /* the count before the last look */
	bool more;	      /* not all was taken then */
	uint32_t under_way;
	bool full;		      /* a send found no room: SO_SNDBUF */
	uint64_t short_at;	      /* it found no memory: when to try again; BW_NEVER */
	uint32_t meetings;	      /* peers that meeting is set of */
	uint64_t meet_at, meet_pause; /* next look at them */
	struct bw_kernel_caller caller[BW_KERNEL_CALLERS];
	struct bw_remote **by_number; /* by the module's numbers; `buckets`, a power of two */
	uint32_t buckets, noted;      /* noted: peers in it */
	uint64_t needs_at;	      /* when to look next who is needed no more, */
	uint32_t needs_next;	      /* and at which bucket */
	uint8_t *room;		      /* for a longest eager message each */
	struct mmsghdr in[BW_KERNEL_BATCH];
	struct iovec part[BW_KERNEL_BATCH];
	struct sockaddr_beowire from[BW_KERNEL_BATCH];
	_Alignas(struct cmsghdr)
		uint8_t control[BW_KERNEL_BATCH][CMSG_SPACE(sizeof(struct beowire_info))];
};

/* needs.c: looks whom the program needs no more, some at a time. */
void bw_kernel_needs(struct bw_ep *ep);

/* table.c: peers by the module's numbers. The room of the table is BW_KERNEL_BUCKETS at first. */
int bw_kernel_table_init(struct bw_kernel *k);
struct bw_remote *bw_kernel_find(const struct bw_kernel *k, uint32_t number);
/* It has this number from now on; what is told of the one that it had is not about it. */
void bw_kernel_note(struct bw_kernel *k, uint32_t number, struct bw_remote *p);
/* It has none. */
void bw_kernel_unnote(struct bw_kernel *k, struct bw_remote *p);

/* meet.c: looks at peers that are being met; how many it knows the way to now. */
int bw_kernel_meetings(struct bw_ep *ep);

#endif
