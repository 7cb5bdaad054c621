/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See kframe.h. */
#include "kframe.h"

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "seal.h"

int kt_raw(const char *node, const char *interface, uint16_t type)
{
	struct sockaddr_ll addr = {.sll_family = AF_PACKET, .sll_protocol = htons(type)};
	int fd;

	kt_enter(node);
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	addr.sll_ifindex = (int)if_nametoindex(interface);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

struct bw_hdr *kt_header(struct kt_frame *f)
{
	return (struct bw_hdr *)(f->bytes + KT_ETHERNET);
}

uint8_t *kt_part(struct kt_frame *f, uint8_t kind, uint8_t code)
{
	uint8_t *bytes = f->bytes + KT_ETHERNET;
	uint32_t at = sizeof(struct bw_hdr) + sizeof(struct bw_ackblk);
	uint32_t end = (uint32_t)sizeof(struct bw_hdr) + kt_header(f)->len;
	struct bw_part part;

	if (kt_header(f)->type != BW_FRAME_DATA || end > f->len - KT_ETHERNET)
		return NULL;
	while (at + sizeof(part) <= end) {
		uint32_t head;

		memcpy(&part, bytes + at, sizeof(part));
		head = part.kind == BW_PART_BULK || part.kind == BW_PART_PAD
			       ? sizeof(struct bw_part_bulk)
			       : sizeof(struct bw_part_msg);
		if (at + head <= end && part.kind == kind && (part.code & code) == code)
			return bytes + at;
		at = (at + head + part.plen + 7) & ~7u;
	}
	return NULL;
}

void kt_seal(struct kt_frame *f)
{
	if (f->len > KT_ETHERNET)
		seal_frame(f->bytes + KT_ETHERNET, f->len - KT_ETHERNET);
}

void kt_inject(int raw, const struct kt_frame *f)
{
	assert_int_equal(send(raw, f->bytes, f->len, 0), f->len);
}

int kt_raw_in_pieces(const char *node, const char *interface)
{
	int fd = kt_raw(node, interface, ETH_P_IP), on = 1;

	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)), 0);
	return fd;
}

void kt_send_in_pieces(int raw, const struct kt_frame *f, uint32_t piece)
{
	struct {
		struct virtio_net_hdr head;
		uint8_t bytes[KT_FRAME_MAX];
	} __attribute__((packed))
	whole = {.head = {.hdr_len = (uint16_t)(piece < f->len ? piece : f->len)}};

	memcpy(whole.bytes, f->bytes, f->len);
	if (send(raw, &whole, sizeof(whole.head) + f->len, 0) < 0)
		return; /* lost, as on any wire */
}

/* ---- the relay ---- */

static void relay_one(struct kt_relay *r, int from)
{
	struct sockaddr_ll by;
	socklen_t len = sizeof(by);
	struct kt_frame f;
	ssize_t n = recvfrom(r->raw[from], f.bytes, sizeof(f.bytes), MSG_DONTWAIT,
			     (struct sockaddr *)&by, &len);

	if (n < KT_ETHERNET + (ssize_t)sizeof(struct bw_hdr) || by.sll_pkttype == PACKET_OUTGOING)
		return;
	f.len = (uint32_t)n;
	r->change(&f, r->wanted);
	if (!r->as_it_is)
		kt_seal(&f);
	if (f.len && r->piece)
		kt_send_in_pieces(r->pieces[!from], &f, r->piece);
	else if (f.len && send(r->raw[!from], f.bytes, f.len, 0) < 0)
		return; /* lost, as on any wire */
}

static long relay(void *arg)
{
	struct kt_relay *r = arg;
	struct pollfd poller[2] = {{.fd = r->raw[0], .events = POLLIN},
				   {.fd = r->raw[1], .events = POLLIN}};

	while (!r->over) {
		poll(poller, 2, 20);
		relay_one(r, 0);
		relay_one(r, 1);
	}
	return 0;
}

/* Frames leave one by one: of a super-frame the relay would send on the first frame alone, and of
 * questions that go along with others none would ever arrive. */
static void attach(const char *node)
{
	struct ethtool_value off = {.cmd = ETHTOOL_SGSO};
	struct ifreq request = {.ifr_name = "m0", .ifr_data = (char *)&off};
	struct beowire_iface interface = {.name = "m0"};
	int fd = kt_open(node, SOCK_RDM);

	assert_int_equal(ioctl(fd, SIOCETHTOOL, &request), 0);
	assert_int_equal(ioctl(fd, BEOWIRE_IOC_ATTACH, &interface), 0);
	close(fd);
}

void kt_relay_begin(struct kt_relay *r, void (*change)(struct kt_frame *f, long wanted))
{
	static const char *const nodes[] = {"a", "b"};
	static const char *const inner[] = {"ma", "mb"};

	*r = (struct kt_relay){.change = change};
	kt_shell("ip netns add m");
	for (int i = 0; i < 2; i++) {
		kt_shell("ip link add m0 netns %s type veth peer name %s netns m", nodes[i],
			 inner[i]);
		kt_shell("ip -n %s link set dev m0 mtu 9000 up", nodes[i]);
		kt_shell("ip -n m link set dev %s mtu 9000 up", inner[i]);
		attach(nodes[i]);
		r->raw[i] = kt_raw("m", inner[i], BW_ETHERTYPE);
		r->pieces[i] = kt_raw_in_pieces("m", inner[i]);
	}
	kt_start(&r->thread, relay, r);
}

void kt_relay_end(struct kt_relay *r)
{
	r->over = true;
	kt_join(&r->thread);
	for (int i = 0; i < 2; i++) {
		close(r->raw[i]);
		close(r->pieces[i]);
	}
	kt_shell("ip -n a link del m0"); /* its attachment goes along, and its other end */
	kt_shell("ip -n b link del m0");
	kt_shell("ip netns del m");
}

struct sockaddr_beowire kt_relayed(const struct sockaddr_beowire *at_b)
{
	struct sockaddr_beowire to = *at_b;
	struct ifreq request = {.ifr_name = "m0"};
	int fd = kt_open("b", SOCK_RDM);

	assert_int_equal(ioctl(fd, SIOCGIFHWADDR, &request), 0);
	close(fd);
	memcpy(to.sbw_mac, request.ifr_hwaddr.sa_data, sizeof(to.sbw_mac));
	kt_enter("a");
	to.sbw_ifindex = if_nametoindex("m0");
	return to;
}
