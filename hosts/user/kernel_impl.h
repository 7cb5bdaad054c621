/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The inside of the kernel link, shared by kernel.c and kernel_open.c. */
#ifndef BW_KERNEL_IMPL_H
#define BW_KERNEL_IMPL_H

#include <net/if.h>
#include <sys/socket.h>

#include "beowire_socket.h"
#include "kernel.h"

#define BW_KERNEL_BATCH 16 /* messages taken by one system call */

struct bw_kernel {
	int fd;
	int family;
	uint32_t ifindex, mtu;
	char interface[IF_NAMESIZE];
	uint32_t under_way;
	uint32_t peers;
	struct bw_remote **peer; /* by the module's numbers */
	uint8_t *room;		 /* for a longest eager message each */
	struct mmsghdr in[BW_KERNEL_BATCH];
	struct iovec part[BW_KERNEL_BATCH];
	struct sockaddr_beowire from[BW_KERNEL_BATCH];
	_Alignas(struct cmsghdr)
		uint8_t control[BW_KERNEL_BATCH][CMSG_SPACE(sizeof(struct beowire_info))];
};

#endif
