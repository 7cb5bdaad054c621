/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An interface that clients may use, and the cable (veth) behind it: one end in the namespace of
 * the interface, where the gate is, the other in the clients' own namespace, under the interface's
 * name and with its Ethernet address.
 */
#ifndef BS_DEVICE_H
#define BS_DEVICE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "gate.h"
#include "watch.h"

struct bs_device {
	char name[IFNAMSIZ];
	char veth[IFNAMSIZ]; /* of our end of the cable */
	int claim;	     /* of the interface, see owner.h */
	int index;	     /* of the interface */
	int veth_index;	     /* of our end of its cable */
	int inner_index;     /* of the clients' end, in their namespace */
	uint8_t mac[6];
	uint32_t mtu;
	bool up;
	bool open;
	struct bs_gate gate;
	struct bs_watch watch;
};

/* The two namespaces, as sockets made in them. */
struct bs_spaces {
	int outer_netlink, outer_socket; /* where the interfaces are */
	int inner_netlink, inner_socket; /* where the clients' ends are */
	int inner;			 /* that namespace itself */
};

/* Look at an interface: 0, -ENODEV, or -EPROTONOSUPPORT if it is none of Ethernet. */
int bs_device_look(struct bs_device *d, const struct bs_spaces *s);

/* Lay the cable and put the gate at it, for so many endpoints. 0, or a negative errno with *step
 * telling what failed. */
int bs_device_open(struct bs_device *d, const struct bs_spaces *s, uint16_t ethertype,
		   uint32_t most, const char **step);
/* The interface may have another address, MTU or state now. 0 or a negative errno: -ENODEV, if it
 * is gone, -ENOLINK, if its cable is. */
int bs_device_follow(struct bs_device *d, const struct bs_spaces *s, uint16_t ethertype);
void bs_device_close(struct bs_device *d, const struct bs_spaces *s, uint16_t ethertype);

#endif
