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
#define DATA	     0
#define CREDIT	     1
#define COUNTED	     2	   /* a credit that was counted while messages before it wait */
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
	uint64_t looks; /* while spinning */
	uint64_t since; /* when waiting for the partner began; 0: it did not */
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
	if (theirs->bytes[0] & 1)
		return pp_fail("the other side has no address of its own");
	memcpy(((struct packet *)state)->head.ether.ether_dhost, theirs->bytes, ETH_ALEN);
	return 0;
}

static struct tpacket2_hdr *slot(struct packet *p, uint32_t at)
{
	return (struct tpacket2_hdr *)(p->ring + (size_t)(at / p->per_block) * BLOCK_BYTES +
				       (size_t)(at % p->per_block) * p->slot_bytes);
}

static bool arrived(struct packet *p, uint32_t at)
{
	return __atomic_load_n(&slot(p, at)->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER;
}

/* The frame in a slot. NULL: it is none that the partner sent to us, or has nothing more to say;
 * anybody on the segment may send frames of this EtherType, of any length. */
static struct head *frame_in(struct packet *p, uint32_t at)
{
	const struct ether_header *ours = &p->head.ether;
	struct tpacket2_hdr *h = slot(p, at);
	struct head *head = (struct head *)((uint8_t *)h + h->tp_mac);

	if (h->tp_snaplen < sizeof(*head) ||
	    memcmp(head->ether.ether_shost, ours->ether_dhost, ETH_ALEN) != 0 ||
	    memcmp(head->ether.ether_dhost, ours->ether_shost, ETH_ALEN) != 0)
		return NULL;
	return head->kind == DATA || head->kind == CREDIT ? head : NULL;
}

/* The kernel may have the next slot again. */
static void slot_free(struct packet *p)
{
	__atomic_store_n(&slot(p, p->next)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	p->next = (p->next + 1) % p->slots;
}

/* Whether nothing came from the partner for too long: nobody sends a lost frame again, and those
 * of others do not count. */
static bool stuck(struct packet *p)
{
	if (p->spin && ++p->looks % SPINS_A_LOOK)
		return false;
	p->since = p->since ? p->since : pp_now();
	return pp_now() - p->since > PP_STUCK_NS;
}

static int lost(struct packet *p)
{
	return pp_fail("a bare frame was lost on %s", p->name);
}

/* Wait for a frame in this slot, whoever sent it. */
static int await_frame(struct packet *p, uint32_t at)
{
	struct pollfd fd = {.fd = p->fd, .events = POLLIN};

	while (!arrived(p, at)) {
		if (!p->spin && poll(&fd, 1, (int)(PP_STUCK_NS / 1000000)) == 0)
			return lost(p);
		if (!arrived(p, at) && stuck(p))
			return lost(p);
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

/* The partner's ring has room again, for half of what may be under way. */
static int credit_count(struct packet *p, struct head *head)
{
	if (p->ahead < AHEAD_BYTES / 2)
		return pp_fail("the other side took more than was sent: is its MTU another one?");
	p->ahead -= AHEAD_BYTES / 2;
	p->since = 0;
	head->kind = COUNTED;
	return 0;
}

/* Take one frame: its message bytes go to buf (at most n). Their number, 0 for a credit or a frame
 * of somebody else, -1. */
static int64_t frame_take(struct packet *p, uint8_t *buf, size_t n)
{
	struct head *head = frame_in(p, p->next);
	size_t len = 0;

	if (!head && stuck(p))
		return lost(p);
	if (head && head->kind == CREDIT) {
		if (credit_count(p, head) < 0)
			return -1;
	} else if (head) {
		len = slot(p, p->next)->tp_snaplen - sizeof(*head);
		len = len < n ? len : n; /* Ethernet pads short frames */
		memcpy(buf, head + 1, len);
		p->owed += p->slot_bytes;
		p->since = 0;
	}
	slot_free(p);
	if (p->owed >= AHEAD_BYTES / 2 && credit_send(p) < 0)
		return -1;
	return (int64_t)len;
}

/*
 * Wait until `frames` more may be sent. Messages that come meanwhile stay in the ring until they
 * are wanted; a credit behind them is counted where it lies.
 */
static int ahead_check(struct packet *p, unsigned int frames)
{
	const uint64_t wanted = (uint64_t)frames * p->slot_bytes;
	uint32_t at = p->next;

	p->since = 0;
	while (p->ahead + wanted > AHEAD_BYTES) {
		struct head *head;
		bool message;

		if (await_frame(p, at) < 0)
			return -1;
		head = frame_in(p, at);
		message = head && head->kind == DATA;
		if (!head && stuck(p))
			return lost(p);
		if (head && !message && credit_count(p, head) < 0)
			return -1;
		if (at == p->next && !message)
			slot_free(p);
		else if ((at + 1) % p->slots == p->next)
			return pp_fail("the other side sends where it should receive");
		at = (at + 1) % p->slots;
	}
	p->ahead += wanted;
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

	p->since = 0;
	while (n > 0) {
		int64_t len = await_frame(p, p->next) < 0 ? -1 : frame_take(p, to, n);

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
