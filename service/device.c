/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Interfaces and the cables behind them; see device.h. */
#include "device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "owner.h"
#include "netlink.h"
#include "service.h"
#include "wire.h"

#define BS_FILTER_PRIORITY 0xBE0Au /* of our filter among those of an interface */

static int bs_device_ioctl(int fd, unsigned long what, struct ifreq *r, const char *name)
{
	snprintf(r->ifr_name, sizeof(r->ifr_name), "%s", name);
	return ioctl(fd, what, r) ? -errno : 0;
}

int bs_device_look(struct bs_device *d, const struct bs_spaces *s)
{
	struct ifreq r = {0};
	int fd = s->outer_socket, error;

	error = bs_device_ioctl(fd, SIOCGIFINDEX, &r, d->name);
	if (error)
		return error;
	d->index = r.ifr_ifindex;
	error = bs_device_ioctl(fd, SIOCGIFHWADDR, &r, d->name);
	if (!error && r.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		return -EPROTONOSUPPORT;
	memcpy(d->mac, r.ifr_hwaddr.sa_data, sizeof(d->mac));
	if (!error)
		error = bs_device_ioctl(fd, SIOCGIFMTU, &r, d->name);
	d->mtu = error ? 0 : (uint32_t)r.ifr_mtu;
	if (!error)
		error = bs_device_ioctl(fd, SIOCGIFFLAGS, &r, d->name);
	d->up = !error && (r.ifr_flags & IFF_UP);
	return error;
}

static void bs_device_put_no_address(struct bs_netlink *r)
{
	uint32_t family, six;
	uint8_t none = IN6_ADDR_GEN_MODE_NONE;

	family = bs_netlink_nest(r, IFLA_AF_SPEC);
	six = bs_netlink_nest(r, AF_INET6);
	bs_netlink_put(r, IFLA_INET6_ADDR_GEN_MODE, &none, sizeof(none));
	bs_netlink_unnest(r, six);
	bs_netlink_unnest(r, family);
}

static int bs_device_lay_cable(struct bs_device *d, const struct bs_spaces *s)
{
	struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
	struct bs_netlink r;
	uint32_t info, data, peer;

	bs_netlink_begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &link, sizeof(link));
	bs_netlink_put_text(&r, IFLA_IFNAME, d->veth);
	bs_netlink_put_u32(&r, IFLA_MTU, d->mtu);
	info = bs_netlink_nest(&r, IFLA_LINKINFO);
	bs_netlink_put_text(&r, IFLA_INFO_KIND, "veth");
	data = bs_netlink_nest(&r, IFLA_INFO_DATA);
	peer = bs_netlink_nest(&r, VETH_INFO_PEER);
	bs_netlink_raw(&r, &link, sizeof(link));
	bs_netlink_put_text(&r, IFLA_IFNAME, d->name);
	bs_netlink_put_u32(&r, IFLA_MTU, d->mtu);
	bs_netlink_put(&r, IFLA_ADDRESS, d->mac, sizeof(d->mac));
	bs_netlink_put_u32(&r, IFLA_NET_NS_FD, (uint32_t)s->inner);
	bs_netlink_unnest(&r, peer);
	bs_netlink_unnest(&r, data);
	bs_netlink_unnest(&r, info);
	return bs_netlink_ask(s->outer_netlink, &r);
}

/* A cable of this name, which another service left. */
static void bs_device_cut_left(const struct bs_device *d, const struct bs_spaces *s)
{
	struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
	struct bs_netlink r;

	bs_netlink_begin(&r, RTM_DELLINK, 0, &link, sizeof(link));
	bs_netlink_put_text(&r, IFLA_IFNAME, d->veth);
	bs_netlink_ask(s->outer_netlink, &r);
}

/* Our cable: whatever others do to its outer end, both ends go with the clients' one. */
static void bs_device_cut_cable(struct bs_device *d, const struct bs_spaces *s)
{
	struct ifinfomsg link = {.ifi_family = AF_UNSPEC, .ifi_index = d->inner_index};
	struct bs_netlink r;

	if (d->inner_index) {
		bs_netlink_begin(&r, RTM_DELLINK, 0, &link, sizeof(link));
		bs_netlink_ask(s->inner_netlink, &r);
	}
	d->inner_index = d->veth_index = 0;
}

/* Without addresses and neighbours, whoever makes some for new interfaces. */
static int bs_device_start(int netlink, int index)
{
	struct ifinfomsg link = {.ifi_index = index};
	struct bs_netlink r;
	int error;

	bs_netlink_begin(&r, RTM_NEWLINK, 0, &link, sizeof(link));
	bs_device_put_no_address(&r);
	error = bs_netlink_ask(netlink, &r);
	if (error && error != -EAFNOSUPPORT && error != -EOPNOTSUPP && error != -EINVAL)
		return error; /* else there is no IPv6 here */
	link.ifi_flags = IFF_UP | IFF_NOARP;
	link.ifi_change = IFF_UP | IFF_NOARP;
	bs_netlink_begin(&r, RTM_NEWLINK, 0, &link, sizeof(link));
	return bs_netlink_ask(netlink, &r);
}

/* What a client leaves to the device is done before its frames get to the gate: nothing may change
 * them behind it. */
static int bs_device_no_offloads(const struct bs_device *d, const struct bs_spaces *s)
{
	static const uint32_t set[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SSG, ETHTOOL_STXCSUM};
	static const uint32_t get[] = {ETHTOOL_GTSO, ETHTOOL_GGSO, ETHTOOL_GSG, ETHTOOL_GTXCSUM};

	for (unsigned int i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
		struct ethtool_value value = {.cmd = set[i]};
		struct ifreq r = {.ifr_data = (void *)&value};

		bs_device_ioctl(s->inner_socket, SIOCETHTOOL, &r, d->name);
		value = (struct ethtool_value){.cmd = get[i]};
		if (bs_device_ioctl(s->inner_socket, SIOCETHTOOL, &r, d->name) || value.data)
			return -EOPNOTSUPP;
	}
	return 0;
}

static void bs_device_filter(struct bs_netlink *r, uint16_t type, uint16_t flags, int index,
			     uint16_t protocol)
{
	struct tcmsg tc = {
		.tcm_family = AF_UNSPEC,
		.tcm_ifindex = index,
		.tcm_handle = 1,
		.tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS),
		.tcm_info = TC_H_MAKE(BS_FILTER_PRIORITY << 16, htons(protocol)),
	};

	bs_netlink_begin(r, type, flags, &tc, sizeof(tc));
	bs_netlink_put_text(r, TCA_KIND, "bpf");
}

/* Run a program for what comes by a device; the place for it may be there already. */
static int bs_device_attach(const struct bs_spaces *s, int index, uint16_t protocol, int program)
{
	struct tcmsg tc = {
		.tcm_family = AF_UNSPEC,
		.tcm_ifindex = index,
		.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0),
		.tcm_parent = TC_H_CLSACT,
	};
	struct bs_netlink r;
	uint32_t options;
	int error;

	bs_netlink_begin(&r, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, &tc, sizeof(tc));
	bs_netlink_put_text(&r, TCA_KIND, "clsact");
	error = bs_netlink_ask(s->outer_netlink, &r);
	if (error && error != -EEXIST)
		return error;
	bs_device_filter(&r, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_REPLACE, index, protocol);
	options = bs_netlink_nest(&r, TCA_OPTIONS);
	bs_netlink_put_u32(&r, TCA_BPF_FD, (uint32_t)program);
	bs_netlink_put_text(&r, TCA_BPF_NAME, "beowired");
	bs_netlink_put_u32(&r, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
	bs_netlink_unnest(&r, options);
	return bs_netlink_ask(s->outer_netlink, &r);
}

static void bs_device_detach(const struct bs_device *d, const struct bs_spaces *s,
			     uint16_t ethertype)
{
	struct bs_netlink r;

	bs_device_filter(&r, RTM_DELTFILTER, 0, d->index, ethertype);
	bs_netlink_ask(s->outer_netlink, &r);
}

static int bs_device_index(int fd, const char *name, int *index)
{
	struct ifreq r = {0};
	int error = bs_device_ioctl(fd, SIOCGIFINDEX, &r, name);

	*index = error ? 0 : r.ifr_ifindex;
	return error;
}

/* Is our end of the cable where we laid it, whatever its name is now? */
static bool bs_device_wired(const struct bs_device *d, const struct bs_spaces *s)
{
	struct ifreq r = {.ifr_ifindex = d->veth_index};

	return !ioctl(s->outer_socket, SIOCGIFNAME, &r);
}

static int bs_device_make(struct bs_device *d, const struct bs_spaces *s, uint16_t ethertype,
			  uint32_t most, const char **step)
{
	int error;

	*step = "a cable (veth) behind it";
	bs_device_cut_left(d, s);
	error = bs_device_lay_cable(d, s);
	if (!error)
		error = bs_device_index(s->inner_socket, d->name, &d->inner_index);
	if (!error)
		error = bs_device_index(s->outer_socket, d->veth, &d->veth_index);
	if (error)
		return error;
	*step = "switching offloads off at the cable";
	error = bs_device_no_offloads(d, s);
	if (error)
		return error;
	*step = "the programs of the gate (bpf)";
	error = bs_gate_open(&d->gate, most, ethertype, (uint32_t)d->index, d->mac,
			     (uint32_t)d->veth_index);
	if (error)
		return error;
	d->open = true;
	d->watch.fd = -1;
	*step = "the gate at the cable (clsact, cls_bpf)";
	error = bs_device_attach(s, d->veth_index, ETH_P_ALL, d->gate.out);
	if (!error)
		error = bs_device_attach(s, d->index, ethertype, d->gate.in);
	if (error)
		return error;
	*step = "the watch";
	error = bs_watch_open(&d->watch, &d->gate, (uint32_t)d->index, ethertype);
	if (error)
		return error;
	*step = "starting the cable"; /* no frame passes before the gate stands */
	error = bs_device_start(s->outer_netlink, d->veth_index);
	return error ? error : bs_device_start(s->inner_netlink, d->inner_index);
}

int bs_device_open(struct bs_device *d, const struct bs_spaces *s, uint16_t ethertype,
		   uint32_t most, const char **step)
{
	int error;

	*step = "claiming it, which another beowired may have done";
	error = bs_owner_claim(d->index, &d->claim);
	if (error)
		return error;
	snprintf(d->veth, sizeof(d->veth), BW_SERVICE_DEVICE "%d", d->index);
	error = bs_device_make(d, s, ethertype, most, step);
	if (error)
		bs_device_close(d, s, ethertype);
	return error;
}

static int bs_device_set(int netlink, int index, const struct bs_device *d, bool address)
{
	struct ifinfomsg link = {.ifi_index = index};
	struct bs_netlink r;

	bs_netlink_begin(&r, RTM_NEWLINK, 0, &link, sizeof(link));
	bs_netlink_put_u32(&r, IFLA_MTU, d->mtu);
	if (address)
		bs_netlink_put(&r, IFLA_ADDRESS, d->mac, sizeof(d->mac));
	return bs_netlink_ask(netlink, &r);
}

int bs_device_follow(struct bs_device *d, const struct bs_spaces *s, uint16_t ethertype)
{
	struct bs_device now = *d;
	int error = bs_device_look(&now, s);
	bool moved = memcmp(now.mac, d->mac, sizeof(d->mac)) != 0;

	if (error || now.index != d->index) {
		d->up = false;
		return error ? error : -ENODEV;
	}
	if (!bs_device_wired(d, s))
		return -ENOLINK;
	if (!moved && now.mtu == d->mtu) {
		d->up = now.up;
		return 0;
	}
	*d = now;
	error = bs_device_set(s->outer_netlink, d->veth_index, d, false);
	if (!error)
		error = bs_device_set(s->inner_netlink, d->inner_index, d, true);
	if (error || !moved)
		return error;
	error = bs_gate_again(&d->gate, ethertype, (uint32_t)d->index, d->mac,
			      (uint32_t)d->veth_index);
	if (!error)
		error = bs_device_attach(s, d->veth_index, ETH_P_ALL, d->gate.out);
	return error ? error : bs_device_attach(s, d->index, ethertype, d->gate.in);
}

void bs_device_close(struct bs_device *d, const struct bs_spaces *s, uint16_t ethertype)
{
	bs_device_detach(d, s, ethertype);
	bs_device_cut_cable(d, s);
	if (d->open) {
		bs_watch_close(&d->watch);
		bs_gate_close(&d->gate);
	}
	if (d->claim >= 0)
		close(d->claim);
	d->claim = -1;
	d->open = false;
}
