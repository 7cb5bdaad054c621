/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bare Ethernet frames: what AF_PACKET with a mapped receive ring gives before any protocol is
 * added. No acknowledgement, no checksum, no retransmission; only so much is sent ahead that the
 * other side's ring holds it. A lost frame ends the run.
 */
#include "pingpong.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define ETHERTYPE   0x88B6 /* IEEE 802 local experimental EtherType 2 */
#define RING_BYTES  (16u << 20)
#define BLOCK_BYTES (1u << 20)
#define AHEAD_BYTES                                                                                \
	(4u << 20)	/* of ring that may be under way; a credit is sent for each half of it */
#define BATCH	     32 /* frames per system call */
#define CREDIT	     1
#define DATA	     0
#define SPINS_A_LOOK 65536 /* between two looks at the clock while spinning */

struct head {
	struct ether_header ether;
	uint8_t kind; /* DATA or CREDIT */
	uint8_t pad;
} __attribute__((packed));

struct packet {
	int fd;
	bool spin;
	uint8_t *ring;
	uint32_t slot_bytes, per_block, slots, next;
	uint32_t chunk; /* message bytes in a frame */
	struct head head;
	char name[IFNAMSIZ];
	uint64_t ahead; /* ring bytes sent and not yet credited */
	uint64_t owed;	/* ring bytes received and not yet credited */
};

static void packet_close(void *state)
{
	struct packet *p = state;

	if (p->ring)
		munmap(p->ring, RING_BYTES);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

/* The interface that has the local address of the control connection. */
static int interface_find(struct packet *p, const struct pp_place *place)
{
	struct sockaddr_storage here;
	socklen_t len = sizeof(here);
	struct ifaddrs *list = NULL;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&here;

	if (place->interface) {
		snprintf(p->name, sizeof(p->name), "%s", place->interface);
		return 0;
	}
	if (getsockname(place->control, (struct sockaddr *)&here, &len) < 0 ||
	    here.ss_family != AF_INET || getifaddrs(&list) < 0)
		return pp_fail("cannot tell the interface: name it with --interface");
	for (struct ifaddrs *a = list; a; a = a->ifa_next)
		if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET &&
		    ((struct sockaddr_in *)a->ifa_addr)->sin_addr.s_addr == in->sin_addr.s_addr)
			snprintf(p->name, sizeof(p->name), "%s", a->ifa_name);
	freeifaddrs(list);
	return p->name[0] ? 0 : pp_fail("cannot tell the interface: name it with --interface");
}

static int ring_map(struct packet *p, uint32_t mtu)
{
	int version = TPACKET_V2, on = 1;
	struct tpacket_req request = {.tp_block_size = BLOCK_BYTES,
				      .tp_block_nr = RING_BYTES / BLOCK_BYTES};

	p->slot_bytes = (mtu + TPACKET2_HDRLEN + 2 * ETH_HLEN + 255) & ~255u;
	p->per_block = BLOCK_BYTES / p->slot_bytes;
	p->slots = p->per_block * request.tp_block_nr;
	p->chunk = mtu - 2;
	request.tp_frame_size = p->slot_bytes;
	request.tp_frame_nr = p->slots;
	if (setsockopt(p->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) < 0 ||
	    setsockopt(p->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)) < 0)
		return pp_fail("cannot make a receive ring: %s", strerror(errno));
	setsockopt(p->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on));
	p->ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
	if (p->ring == MAP_FAILED) {
		p->ring = NULL;
		return pp_fail("cannot map the receive ring: %s", strerror(errno));
	}
	return 0;
}

static int socket_open(struct packet *p)
{
	struct ifreq request = {0};
	struct sockaddr_ll here = {.sll_family = AF_PACKET, .sll_protocol = htons(ETHERTYPE)};
	uint32_t mtu;

	p->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		return pp_fail("no raw frames: %s%s", strerror(errno),
			       errno == EPERM ? " (run as root or with CAP_NET_RAW)" : "");
	memcpy(request.ifr_name, p->name, sizeof(p->name));
	if (ioctl(p->fd, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_LOOPBACK))
		return pp_fail("bare frames need an Ethernet interface, %s is none", p->name);
	if (ioctl(p->fd, SIOCGIFMTU, &request) < 0)
		return pp_fail("interface %s: %s", p->name, strerror(errno));
	mtu = (uint32_t)request.ifr_mtu < 65000 ? (uint32_t)request.ifr_mtu : 65000;
	if (ioctl(p->fd, SIOCGIFHWADDR, &request) < 0)
		return pp_fail("interface %s: %s", p->name, strerror(errno));
	memcpy(p->head.ether.ether_shost, request.ifr_hwaddr.sa_data, ETH_ALEN);
	here.sll_ifindex = (int)if_nametoindex(p->name);
	if (ring_map(p, mtu) < 0)
		return -1;
	if (bind(p->fd, (struct sockaddr *)&here, sizeof(here)) < 0)
		return pp_fail("cannot bind to %s: %s", p->name, strerror(errno));
	return 0;
}

static void *packet_open(const struct pp_place *place, struct pp_card *mine)
{
	struct packet *p = calloc(1, sizeof(*p));

	if (!p) {
		pp_fail("out of memory");
		return NULL;
	}
	p->fd = -1;
	p->spin = place->wait == PP_SPIN;
	p->head.ether.ether_type = htons(ETHERTYPE);
	if (interface_find(p, place) < 0 || socket_open(p) < 0) {
		packet_close(p);
		return NULL;
	}
	memcpy(mine->bytes, p->head.ether.ether_shost, ETH_ALEN);
	return p;
}

static int packet_meet(void *state, const struct pp_card *theirs)
{
	memcpy(((struct packet *)state)->head.ether.ether_dhost, theirs->bytes, ETH_ALEN);
	return 0;
}

static struct tpacket2_hdr *slot(struct packet *p)
{
	return (struct tpacket2_hdr *)(p->ring + (size_t)(p->next / p->per_block) * BLOCK_BYTES +
				       (size_t)(p->next % p->per_block) * p->slot_bytes);
}

static bool arrived(struct packet *p)
{
	return __atomic_load_n(&slot(p)->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER;
}

/* Wait for a frame, with a bound: nobody sends a lost one again. */
static int await_frame(struct packet *p)
{
	struct pollfd fd = {.fd = p->fd, .events = POLLIN};
	uint64_t begin = 0;

	for (uint64_t spins = 0; !arrived(p); spins++) {
		if (!p->spin && poll(&fd, 1, (int)(PP_STUCK_NS / 1000000)) == 0)
			return pp_fail("a bare frame was lost on %s", p->name);
		if (spins % SPINS_A_LOOK != SPINS_A_LOOK - 1)
			continue;
		begin = begin ? begin : pp_now();
		if (pp_now() - begin > PP_STUCK_NS)
			return pp_fail("a bare frame was lost on %s", p->name);
	}
	return 0;
}

static int frames_send(struct packet *p, struct mmsghdr *m, unsigned int n)
{
	for (unsigned int done = 0; done < n;) {
		int sent = sendmmsg(p->fd, m + done, n - done, 0);

		if (sent < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
			return pp_fail("cannot send a frame on %s: %s", p->name, strerror(errno));
		done += sent > 0 ? (unsigned int)sent : 0;
	}
	return 0;
}

static int credit_send(struct packet *p)
{
	struct head head = p->head;
	struct iovec part = {.iov_base = &head, .iov_len = sizeof(head)};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};

	head.kind = CREDIT;
	p->owed -= AHEAD_BYTES / 2;
	return frames_send(p, &m, 1);
}

/* Take one frame: its message bytes go to buf (at most n). Their number, 0 for a credit, -1. */
static int64_t frame_take(struct packet *p, uint8_t *buf, size_t n)
{
	struct tpacket2_hdr *h = slot(p);
	const struct head *head = (const void *)((uint8_t *)h + h->tp_mac);
	size_t len = 0;

	if (head->kind == CREDIT) {
		p->ahead -= AHEAD_BYTES / 2;
	} else {
		len = h->tp_snaplen - sizeof(*head);
		len = len < n ? len : n; /* Ethernet pads short frames */
		memcpy(buf, head + 1, len);
		p->owed += p->slot_bytes;
	}
	__atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	p->next = (p->next + 1) % p->slots;
	if (p->owed >= AHEAD_BYTES / 2 && credit_send(p) < 0)
		return -1;
	return (int64_t)len;
}

/* Wait until `frames` more may be sent. While we do so only credits can arrive. */
static int ahead_check(struct packet *p, unsigned int frames)
{
	while (p->ahead + (uint64_t)frames * p->slot_bytes > AHEAD_BYTES)
		if (await_frame(p) < 0 || frame_take(p, NULL, 0) < 0)
			return -1;
	p->ahead += (uint64_t)frames * p->slot_bytes;
	return 0;
}

static int packet_send(void *state, const void *buf, size_t n)
{
	struct packet *p = state;
	struct iovec part[BATCH][2];
	struct mmsghdr m[BATCH] = {0};
	const uint8_t *from = buf;

	while (n > 0) {
		unsigned int k = 0;

		for (; k < BATCH && n > 0; k++) {
			size_t len = n < p->chunk ? n : p->chunk;

			part[k][0] =
				(struct iovec){.iov_base = &p->head, .iov_len = sizeof(p->head)};
			part[k][1] = (struct iovec){.iov_base = (void *)from, .iov_len = len};
			m[k].msg_hdr.msg_iov = part[k];
			m[k].msg_hdr.msg_iovlen = 2;
			from += len;
			n -= len;
		}
		if (ahead_check(p, k) < 0 || frames_send(p, m, k) < 0)
			return -1;
	}
	return 0;
}

static int packet_receive(void *state, void *buf, size_t n)
{
	struct packet *p = state;
	uint8_t *to = buf;

	while (n > 0) {
		int64_t len = await_frame(p) < 0 ? -1 : frame_take(p, to, n);

		if (len < 0)
			return -1;
		to += len;
		n -= (size_t)len;
	}
	return 0;
}

static int packet_flush(void *state)
{
	return 0;
}

static void packet_describe(void *state, char text[PP_TEXT])
{
	const struct packet *p = state;

	snprintf(text, PP_TEXT, "%s, mapped ring, up to %u bytes in a frame", p->name, p->chunk);
}

const struct pp_carrier pp_packet = {
	.name = "packet",
	.open = packet_open,
	.meet = packet_meet,
	.send = packet_send,
	.receive = packet_receive,
	.flush = packet_flush,
	.describe = packet_describe,
	.close = packet_close,
};
