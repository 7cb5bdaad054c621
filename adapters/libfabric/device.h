/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Devices: what fi_getinfo() lists a domain for, each with the name of its interface. Usually one:
 * what an endpoint uses by the settings. With BEOWIRE_DOMAINS=each every interface is one, and any
 * interface that can be used is one for whoever names it.
 */
#ifndef BWF_DEVICE_H
#define BWF_DEVICE_H

#include <rdma/fabric.h>
#include <stdbool.h>

#include "link/iface.h"

#define BWF_DEVICE_IFACES 3 /* that an endpoint uses together, at most */
#define BWF_DEVICE_NAME	  (BWF_DEVICE_IFACES * IFNAMSIZ)

struct bwf_device {
	char name[BWF_DEVICE_NAME]; /* "eth0"; "eth0,eth1"; BWF_NAME if there is no interface */
	int n;			    /* used entries of iface */
	struct bw_iface iface[BWF_DEVICE_IFACES];
};

/* List them: how many there are, `most` at most and one at least. */
int bwf_device_list(struct bwf_device *device, int most);
/* The one of a domain with this name (NULL: any). False if there is none. */
bool bwf_device_find(const char *name, struct bwf_device *device);
/* The interface by which a domain with this name is to be opened; empty: as the settings say. */
void bwf_device_interface(const char *name, char interface[IFNAMSIZ]);

/* nic.c: what is known of it, for fi_info's `nic`; NULL if there is no interface or no memory.
 * Closed by fi_close(). */
struct fid_nic *bwf_nic_new(const struct bwf_device *device);
/* A PCI address as drivers give it, "0000:03:00.1". Anything else is an unknown bus. */
void bwf_nic_bus(const char *text, struct fi_bus_attr *bus);

#endif
