/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The port from which a process offers and answers: one of those that are open between the nodes
 * for Beowire (BEOWIRE_UDP_PORTS). Firewalls know an answer neither by the port that the offer went
 * to, as another process may have that, nor by one of the kernel's choice.
 */
#include <sys/random.h>

#include "env.h"
#include "registrar.h"

#define BWS_PORT_TRIES 16

int bws_offer_socket_own(int family)
{
	struct bw_env env;
	uint32_t at = 0, ports;
	int fd = -1;

	if (!bw_env_read(&env, NULL)) {
		ports = (uint32_t)(env.udp_hi - env.udp_lo) + 1;
		if (getrandom(&at, sizeof(at), 0) != sizeof(at))
			at = 0;
		for (uint32_t i = 0; fd < 0 && i < BWS_PORT_TRIES && i < ports; i++)
			fd = bws_offer_socket(family, (uint16_t)(env.udp_lo + (at + i) % ports));
	}
	/* Where all are taken: as good as it gets. */
	return fd >= 0 ? fd : bws_offer_socket(family, 0);
}
