/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packing and checking of endpoint addresses; the format is in addr.h. */
#include <errno.h>
#include <string.h>

#include "addr.h"
#include "checksum.h"

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
	return 0;
}
