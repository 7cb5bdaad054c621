/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Network interfaces of this node, and the choice of the one that Beowire uses. */
#ifndef BW_IFACE_H
#define BW_IFACE_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "env.h"

#define BW_IFACE_MAX 64 /* interfaces looked at */

struct bw_iface {
	char name[IFNAMSIZ];
	int index;
	uint8_t mac[6];
	bool ethernet; /* carries Ethernet frames */
	bool up;
	bool carrier;
	bool loopback;
	bool gateway;		/* the default route leads through it */
	uint32_t mtu;		/* bytes */
	struct in_addr address; /* its first IPv4 address, INADDR_ANY: none */
	struct in_addr mask;
	struct in6_addr address6; /* its best IPv6 address, not of one link only; :: none */
};

/* All interfaces of this network namespace: their number, or a negative errno. */
int bw_iface_list(struct bw_iface iface[BW_IFACE_MAX]);

/* Choose the interface for raw frames by env->interface, or else the best one. 0, or -ENODEV with
 * *why listing what there is. */
int bw_iface_choose(const struct bw_env *env, struct bw_iface *chosen, const char **why);

/* Choose those that raw frames travel by, at most `most`: all that env->interfaces names and that
 * are up, in its order, or the one of bw_iface_choose(). Their number, or -ENODEV with *why. */
int bw_iface_choose_all(const struct bw_env *env, struct bw_iface *chosen, int most,
			const char **why);

/* Choose the address that the udp link binds, and the interface that has it: env->udp_address if
 * given, else one of IPv4, or if there is none, of IPv6: that of `preferred` (may be NULL) or else
 * of the best interface. 0 or -ENODEV with *why. */
int bw_iface_choose_ip(const struct bw_env *env, const struct bw_iface *preferred,
		       struct bw_iface *chosen, union bw_name *name, const char **why);

#endif
