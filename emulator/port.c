/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring has the second of the kernel's formats, whose slots become visible one by one (the third
 * hands over blocks after milliseconds). A slot holds a frame of the interface's MTU; a longer one,
 * a super-frame, is left in the socket's queue and its slot says so (PACKET_COPY_THRESH). See
 * Documentation/networking/packet_mmap.rst of the kernel.
 */
#include "port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define EM_RING_BYTES	 (32u << 20)
#define EM_RING_LEAST	 (1u << 20)
#define EM_RING_BLOCK	 (64u << 10)
#define EM_RING_OVERHEAD 160	    /* bytes of a slot beside the packet: headers, padding */
#define EM_SOCKET_BYTES	 (64 << 20) /* of super-frames that wait, and of frames being sent */

static int em_fail(char *why, int error, const char *what, const char *name)
{
	snprintf(why, EM_WHY_MAX, "%.40s: %s: %s", name, what, strerror(-error));
	return error;
}

static int em_port_map(struct em_port *p)
{
	uint32_t bytes;

	p->slot_bytes = (p->mtu + ETH_HLEN + EM_RING_OVERHEAD + 63) & ~63u;
	p->block_bytes = EM_RING_BLOCK;
	while (p->block_bytes < p->slot_bytes)
		p->block_bytes *= 2;
	p->per_block = p->block_bytes / p->slot_bytes;
	for (bytes = EM_RING_BYTES; bytes >= EM_RING_LEAST; bytes /= 2) {
		struct tpacket_req request = {
			.tp_block_size = p->block_bytes,
			.tp_block_nr = bytes / p->block_bytes,
			.tp_frame_size = p->slot_bytes,
			.tp_frame_nr = bytes / p->block_bytes * p->per_block,
		};

		if (setsockopt(p->rx, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)))
			continue;
		p->slots = request.tp_frame_nr;
		p->ring_bytes = (size_t)request.tp_block_nr * p->block_bytes;
		p->ring = mmap(NULL, p->ring_bytes, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_POPULATE, p->rx, 0);
		if (p->ring != MAP_FAILED)
			return 0;
		p->ring = NULL;
		return -errno;
	}
	return -ENOMEM;
}

static int em_port_bind(const struct em_port *p, int fd, uint16_t protocol)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = p->index,
	};

	return bind(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

static int em_option(int fd, int option, int value)
{
	return setsockopt(fd, SOL_PACKET, option, &value, sizeof(value)) ? -errno : 0;
}

/* The larger buffer needs CAP_NET_ADMIN; without it the system's limit holds. */
static void em_port_buffer(int fd, int forced, int plain)
{
	int bytes = EM_SOCKET_BYTES;

	if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof(bytes));
}

static int em_port_receive(struct em_port *p, char *why)
{
	struct packet_mreq all = {.mr_ifindex = p->index, .mr_type = PACKET_MR_PROMISC};
	int error;

	em_port_buffer(p->rx, SO_RCVBUFFORCE, SO_RCVBUF);
	error = em_option(p->rx, PACKET_VERSION, TPACKET_V2);
	if (!error)
		error = em_option(p->rx, PACKET_VNET_HDR, 1);
	if (!error)
		error = em_option(p->rx, PACKET_COPY_THRESH, 1);
	if (error)
		return em_fail(why, error,
			       "this kernel's packet sockets lack an option; use "
			       "Linux 5.4 or newer",
			       p->name);
	/* Older kernels show our own frames to taps only if they pass the queueing discipline. */
	em_option(p->rx, PACKET_IGNORE_OUTGOING, 1);
	error = em_port_map(p);
	if (error)
		return em_fail(why, error, "no receive ring could be mapped; free memory", p->name);
	error = em_port_bind(p, p->rx, ETH_P_ALL);
	if (!error && setsockopt(p->rx, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)))
		error = -errno;
	return error ? em_fail(why, error, "cannot listen on it; is it up? (ip link set IFACE up)",
			       p->name)
		     : 0;
}

static int em_port_send(struct em_port *p, char *why)
{
	int error;

	em_port_buffer(p->tx, SO_SNDBUFFORCE, SO_SNDBUF);
	error = em_option(p->tx, PACKET_VNET_HDR, 1);
	if (!error)
		error = em_option(p->tx, PACKET_QDISC_BYPASS, 1);
	if (!error)
		error = em_port_bind(p, p->tx, 0);
	return error ? em_fail(why, error, "cannot send on it; is it up? (ip link set IFACE up)",
			       p->name)
		     : 0;
}

static int em_port_look(struct em_port *p, char *why)
{
	struct ifreq request = {0};

	memcpy(request.ifr_name, p->name, IFNAMSIZ);
	if (ioctl(p->tx, SIOCGIFHWADDR, &request))
		return em_fail(why, -errno, "cannot be asked for its type", p->name);
	if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
		snprintf(why, EM_WHY_MAX,
			 "%s is not an Ethernet interface; name one (ip -br link lists them)",
			 p->name);
		return -EINVAL;
	}
	if (ioctl(p->tx, SIOCGIFMTU, &request))
		return em_fail(why, -errno, "cannot be asked for its MTU", p->name);
	p->mtu = (uint32_t)request.ifr_mtu;
	if (!em_port_runs(p)) {
		/* a cable without a far end is no error: it may come */
		if (ioctl(p->tx, SIOCGIFFLAGS, &request) || !(request.ifr_flags & IFF_UP)) {
			snprintf(why, EM_WHY_MAX, "%s is down; bring it up: ip link set %s up",
				 p->name, p->name);
			return -ENETDOWN;
		}
	}
	return 0;
}

static int em_port_sockets(struct em_port *p, char *why)
{
	int type = SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK;

	p->rx = socket(AF_PACKET, type, 0);
	p->tx = p->rx < 0 ? -1 : socket(AF_PACKET, type, 0);
	if (p->tx >= 0)
		return 0;
	if (errno != EPERM && errno != EACCES)
		return em_fail(why, -errno, "no packet socket", p->name);
	snprintf(why, EM_WHY_MAX,
		 "packet sockets need the capability CAP_NET_RAW; run as root, or: setcap "
		 "cap_net_raw,cap_net_admin+ep beowire-link");
	return -EPERM;
}

int em_port_open(struct em_port *p, const char *name, char why[EM_WHY_MAX])
{
	int error;

	memset(p, 0, sizeof(*p));
	p->rx = p->tx = -1;
	if (strlen(name) >= IFNAMSIZ || !(p->index = (int)if_nametoindex(name))) {
		snprintf(why, EM_WHY_MAX,
			 "%.40s: no such interface in this network namespace; ip -br link lists "
			 "them",
			 name);
		return -ENODEV;
	}
	strcpy(p->name, name);
	error = em_port_sockets(p, why);
	if (!error)
		error = em_port_look(p, why);
	if (!error)
		error = em_port_send(p, why);
	if (!error)
		error = em_port_receive(p, why);
	if (error)
		em_port_close(p);
	else
		em_port_dropped(p);
	return error;
}

void em_port_close(struct em_port *p)
{
	if (p->ring)
		munmap(p->ring, p->ring_bytes);
	if (p->rx >= 0)
		close(p->rx);
	if (p->tx >= 0)
		close(p->tx);
	p->ring = NULL;
	p->rx = p->tx = -1;
}

uint32_t em_port_overruns(struct em_port *p)
{
	struct tpacket_stats stats;
	socklen_t bytes = sizeof(stats);

	/* reading clears them */
	return getsockopt(p->rx, SOL_PACKET, PACKET_STATISTICS, &stats, &bytes) ? 0
										: stats.tp_drops;
}

uint32_t em_port_dropped(struct em_port *p)
{
	struct ifaddrs *all, *each;
	uint32_t before = p->dropped;
	char name[IFNAMSIZ];

	if (!if_indextoname((unsigned int)p->index, name) || getifaddrs(&all))
		return 0;
	for (each = all; each; each = each->ifa_next) {
		if (each->ifa_addr && each->ifa_addr->sa_family == AF_PACKET && each->ifa_data &&
		    !strcmp(each->ifa_name, name))
			p->dropped = ((const struct rtnl_link_stats *)each->ifa_data)->tx_dropped;
	}
	freeifaddrs(all);
	return p->dropped - before;
}

bool em_port_exists(const struct em_port *p)
{
	char name[IFNAMSIZ];

	return if_indextoname((unsigned int)p->index, name) != NULL;
}

bool em_port_runs(const struct em_port *p)
{
	struct ifreq request = {0};

	if (!if_indextoname((unsigned int)p->index, request.ifr_name))
		return false;
	if (ioctl(p->tx, SIOCGIFFLAGS, &request))
		return false;
	return (request.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}
