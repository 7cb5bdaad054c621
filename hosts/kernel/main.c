/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel host as a module. What stands on what: a node has ports (node.c), a port drives an
 * engine (port.c, host.c) over interfaces (iface.c, tx.c), a socket owns a port (sock.c).
 */
#include <linux/module.h>

#include "keyed.h"
#include "port.h"
#include "row.h"
#include "server.h"
#include "sock.h"
#include "threshold.h"

static int __init bwk_init(void)
{
	int error = bwk_keyed_check();

	if (error)
		return error;
	error = bwk_account_init();
	if (error)
		return error;
	error = bwk_port_init();
	if (error)
		goto no_port;
	bwk_threshold_measure();
	error = bwk_node_init();
	if (error)
		goto no_node;
	error = bwk_iface_init();
	if (error)
		goto no_iface;
	error = bwk_sock_init();
	if (error)
		goto no_sock;
	error = bwk_server_init();
	if (error)
		goto no_server;
	bwk_row_init();
	bwk_sock_ready();
	return 0;
no_server:
	bwk_sock_exit();
no_sock:
	bwk_iface_exit();
no_iface:
	bwk_node_exit();
no_node:
	bwk_port_exit();
no_port:
	bwk_account_exit();
	return error;
}

static void __exit bwk_exit(void)
{
	bwk_server_exit();
	bwk_sock_exit();
	bwk_iface_exit();
	bwk_node_exit();
	bwk_port_exit();
	bwk_account_exit();
	bwk_row_exit();
}

module_init(bwk_init);
module_exit(bwk_exit);
MODULE_DESCRIPTION("Beowire: reliable messages over Ethernet frames");
MODULE_LICENSE("Dual BSD/GPL");
