/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The minimal datagram protocol [A12] in the kernel: engine/datagram.c as it is, and this. */
#include "beowire_protocol.h"

static int __init datagram_init(void)
{
	return beowire_register_protocol(&bw_datagram, BEOWIRE_PROTOCOL_DATAGRAM, THIS_MODULE);
}

static void __exit datagram_exit(void)
{
	beowire_unregister_protocol(&bw_datagram);
}

module_init(datagram_init);
module_exit(datagram_exit);
MODULE_DESCRIPTION("Beowire: minimal datagram protocol");
MODULE_LICENSE("Dual BSD/GPL");
