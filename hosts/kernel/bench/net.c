/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two network namespaces joined by a veth, made without any other program, as a guest that measures
 * holds nothing but this one. What the network would do at times of its own (neighbour probes,
 * IPv6) is switched off, so that nothing but the messages is measured.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <arpa/inet.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bench.h"

#define NETWORK 0x0a4d0000u /* 10.77.0.0 */

struct request {
	struct nlmsghdr header;
	struct ifinfomsg info;
	char attributes[256];
};

/* In network order. */
uint32_t bench_net_address(int side)
{
	return htonl(NETWORK + 1 + (uint32_t)side);
}

void bench_net_enter(const struct bench_net *net, int side)
{
	if (setns(net->ns[side], CLONE_NEWNET))
		bench_fail("cannot enter a network namespace");
}

static struct rtattr *attribute(struct request *r, unsigned short type, const void *data,
				unsigned short bytes)
{
	struct rtattr *a = (struct rtattr *)((char *)r + NLMSG_ALIGN(r->header.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(bytes);
	if (bytes)
		memcpy(RTA_DATA(a), data, bytes);
	r->header.nlmsg_len = NLMSG_ALIGN(r->header.nlmsg_len) + RTA_ALIGN(a->rta_len);
	return a;
}

static void attribute_end(struct request *r, struct rtattr *a)
{
	a->rta_len = (unsigned short)((char *)r + r->header.nlmsg_len - (char *)a);
}

static void name_attribute(struct request *r, const char *name)
{
	attribute(r, IFLA_IFNAME, name, (unsigned short)(strlen(name) + 1));
}

static void ask(struct request *r)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[256];
	} reply;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0 || send(fd, r, r->header.nlmsg_len, 0) < 0 ||
	    recv(fd, &reply, sizeof(reply), 0) < (ssize_t)sizeof(reply.header))
		bench_fail("cannot talk to the kernel's network configuration");
	errno = -reply.error.error;
	if (errno)
		bench_fail("cannot make a veth (is its module loaded?)");
	close(fd);
}

/* Side 0's interface here, side 1's in its namespace. */
static void make_veth(const struct bench_net *net)
{
	struct ifinfomsg none = {0};
	struct request r = {
		.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.info)),
			   .nlmsg_type = RTM_NEWLINK,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL},
	};
	struct rtattr *link, *data, *peer;

	name_attribute(&r, net->ifname[0]);
	link = attribute(&r, IFLA_LINKINFO, NULL, 0);
	attribute(&r, IFLA_INFO_KIND, "veth", 4);
	data = attribute(&r, IFLA_INFO_DATA, NULL, 0);
	peer = attribute(&r, VETH_INFO_PEER, &none, sizeof(none));
	name_attribute(&r, net->ifname[1]);
	attribute(&r, IFLA_NET_NS_FD, &net->ns[1], sizeof(net->ns[1]));
	attribute_end(&r, peer);
	attribute_end(&r, data);
	attribute_end(&r, link);
	ask(&r);
}

static void write_setting(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		bench_fail("cannot write %s", path);
	close(fd);
}

static struct ifreq request_for(const char *name)
{
	struct ifreq r = {0};

	strncpy(r.ifr_name, name, sizeof(r.ifr_name) - 1);
	return r;
}

static void control(int fd, unsigned long what, void *argument, const char *name)
{
	if (ioctl(fd, what, argument))
		bench_fail("cannot configure %s (ioctl 0x%lx)", name, what);
}

static struct sockaddr inet(uint32_t address)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = address};
	struct sockaddr result;

	memcpy(&result, &in, sizeof(result));
	return result;
}

static int open_control(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		bench_fail("cannot open a socket");
	return fd;
}

static void read_identity(struct bench_net *net, int side)
{
	struct ifreq r = request_for(net->ifname[side]);
	int fd = open_control();

	control(fd, SIOCGIFINDEX, &r, r.ifr_name);
	net->ifindex[side] = r.ifr_ifindex;
	control(fd, SIOCGIFHWADDR, &r, r.ifr_name);
	memcpy(net->mac[side], r.ifr_hwaddr.sa_data, 6);
	close(fd);
}

static void set_up(const struct bench_net *net, int side)
{
	struct ifreq r = request_for(net->ifname[side]);
	struct arpreq neighbour = {.arp_flags = ATF_PERM | ATF_COM};
	int fd = open_control();

	r.ifr_addr = inet(bench_net_address(side));
	control(fd, SIOCSIFADDR, &r, r.ifr_name);
	r.ifr_netmask = inet(htonl(0xffffff00u));
	control(fd, SIOCSIFNETMASK, &r, r.ifr_name);
	r.ifr_flags = IFF_UP | IFF_RUNNING;
	control(fd, SIOCSIFFLAGS, &r, r.ifr_name);
	neighbour.arp_pa = inet(bench_net_address(1 - side));
	neighbour.arp_ha.sa_family = ARPHRD_ETHER;
	memcpy(neighbour.arp_ha.sa_data, net->mac[1 - side], 6);
	strncpy(neighbour.arp_dev, net->ifname[side], sizeof(neighbour.arp_dev) - 1);
	control(fd, SIOCSARP, &neighbour, net->ifname[side]);
	close(fd);
}

static int make_namespace(void)
{
	int fd = -1;

	if (!unshare(CLONE_NEWNET))
		fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		bench_fail("cannot make a network namespace (root is needed)");
	write_setting("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	write_setting("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	return fd;
}

void bench_net_make(struct bench_net *net)
{
	strcpy(net->ifname[0], "bench0");
	strcpy(net->ifname[1], "bench1");
	net->ns[1] = make_namespace();
	net->ns[0] = make_namespace();
	make_veth(net);
	for (int side = 0; side < 2; side++) {
		bench_net_enter(net, side);
		read_identity(net, side);
	}
	for (int side = 0; side < 2; side++) {
		bench_net_enter(net, side);
		set_up(net, side);
	}
}

/* Of this namespace. A key that nobody else has needs no secrecy. */
static void set_secrets(const struct bench_case *c)
{
	char key[65] = "";

	if (access("/proc/sys/net/beowire/key", F_OK)) {
		if (c->key)
			bench_fail("cannot set a key (is the module loaded?)");
		return;
	}
	if (c->key)
		memset(key, '5', sizeof(key) - 1);
	write_setting("/proc/sys/net/beowire/encrypt", "0");
	write_setting("/proc/sys/net/beowire/key", c->key ? key : "none");
	if (c->encrypt)
		write_setting("/proc/sys/net/beowire/encrypt", "1");
}

void bench_net_set(const struct bench_net *net, const struct bench_case *c)
{
	static const uint32_t segmentation[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO};

	for (int side = 0; side < 2; side++) {
		struct ifreq r = request_for(net->ifname[side]);
		int fd;

		bench_net_enter(net, side);
		fd = open_control();
		r.ifr_mtu = (int)c->mtu;
		control(fd, SIOCSIFMTU, &r, r.ifr_name);
		for (size_t i = 0; i < sizeof(segmentation) / sizeof(*segmentation); i++) {
			struct ethtool_value value = {.cmd = segmentation[i], .data = c->offloads};

			r.ifr_data = (void *)&value;
			control(fd, SIOCETHTOOL, &r, r.ifr_name);
		}
		close(fd);
		set_secrets(c);
	}
}
