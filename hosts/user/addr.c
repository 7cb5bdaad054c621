/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packing and checking of endpoint addresses; the format is in addr.h. */
#include <errno.h>
#include <string.h>

#include "addr.h"
#include "checksum.h"
#include "env.h"
#include "link/link.h"

#define BW_ADDR_LINKS (BW_LINK_LOCAL | BW_LINK_PACKET | BW_LINK_UDP | BW_LINK_KERNEL | BW_LINK_UDP6)

void bw_addr_pack(struct bw_addr_fields *f, struct bw_addr *addr)
{
	f->magic = BW_ADDR_MAGIC;
	f->version = BW_ADDR_VERSION;
	f->crc = bw_checksum(0, f, offsetof(struct bw_addr_fields, crc));
	memcpy(addr->bytes, f, sizeof(*f));
}

int bw_addr_unpack(const struct bw_addr *addr, struct bw_addr_fields *f)
{
	memcpy(f, addr->bytes, sizeof(*f));
	if (f->magic != BW_ADDR_MAGIC ||
	    f->crc != bw_checksum(0, f, offsetof(struct bw_addr_fields, crc)))
		return -EINVAL;
	if (f->version != BW_ADDR_VERSION)
		return -EPROTONOSUPPORT;
	if (!f->node || !f->inc || !f->engine || f->more_macs > BW_ADDR_MACS - 1)
		return -EINVAL;
	if ((f->links & ~BW_ADDR_LINKS) || (f->more_macs && !(f->links & BW_LINK_PACKET)))
		return -EINVAL;
	if ((f->links & BW_LINK_UDP6) && (f->more_macs || (f->links & BW_LINK_UDP)))
		return -EINVAL;
	return 0;
}

void bw_addr_set_udp(struct bw_addr_fields *f, const struct bw_link_addr *udp)
{
	bool four = udp->len == sizeof(f->ip) + sizeof(f->udp_port);
	size_t bytes = four ? sizeof(f->ip) : sizeof(f->ip6);

	f->links |= four ? BW_LINK_UDP : BW_LINK_UDP6;
	memcpy(four ? f->ip : f->ip6, udp->bytes, bytes);
	memcpy(&f->udp_port, udp->bytes + bytes, sizeof(f->udp_port));
}

bool bw_addr_udp(const struct bw_addr_fields *f, unsigned int links, struct bw_link_addr *udp)
{
	bool four = f->links & links & BW_LINK_UDP;
	size_t bytes = four ? sizeof(f->ip) : sizeof(f->ip6);

	if (!four && !(f->links & links & BW_LINK_UDP6))
		return false;
	memset(udp, 0, sizeof(*udp));
	udp->link = BW_LINK_NO_UDP;
	udp->len = (uint8_t)(bytes + sizeof(f->udp_port));
	memcpy(udp->bytes, four ? f->ip : f->ip6, bytes);
	memcpy(udp->bytes + bytes, &f->udp_port, sizeof(f->udp_port));
	return true;
}
