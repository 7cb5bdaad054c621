/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The AF_PACKET socket behind the packet link. The ring has the second format of the kernel's
 * mapped rings, whose slots become visible one by one (the third hands over blocks by time-out,
 * which would add latency), and a filter keeps out everything that is not for this engine.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keyed.h"
#include "link/filter.h"
#include "link/packet/packet.h"
#include "link/packet/served.h"
#include "ring_shape.h"

#define BW_PACKET_SNDBUF (8 << 20) /* bytes of frames the device may hold for us */

int bw_packet_attach(struct bw_packet *p, size_t bytes)
{
	p->ring_bytes = bytes;
	p->ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, p->fd, 0);
	if (p->ring == MAP_FAILED) {
		p->ring = NULL;
		return -errno;
	}
	/* A child of fork() must not see, nor hold, frames of its parent. */
	madvise(p->ring, p->ring_bytes, MADV_DONTFORK);
	p->next = (struct tpacket2_hdr *)p->ring;
	return 0;
}

static int bw_packet_map(struct bw_packet *p, uint32_t bytes)
{
	int version = TPACKET_V2;

	if (setsockopt(p->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)))
		return -errno;
	for (; bytes >= BW_RING_MIN; bytes /= 2) {
		struct tpacket_req shape = bw_ring_shape(p->mtu, bytes);

		if (setsockopt(p->fd, SOL_PACKET, PACKET_RX_RING, &shape, sizeof(shape)))
			continue;
		p->slot_bytes = shape.tp_frame_size;
		p->block_bytes = shape.tp_block_size;
		p->per_block = p->block_bytes / p->slot_bytes;
		p->slots = shape.tp_frame_nr;
		return bw_packet_attach(p, (size_t)shape.tp_block_nr * p->block_bytes);
	}
	return -ENOMEM;
}

static int bw_packet_bind(struct bw_packet *p)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = p->ethertype,
		.sll_ifindex = p->interface,
	};
	int on = 1, bytes = BW_PACKET_SNDBUF;

	if (setsockopt(p->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)))
		return -errno;
	if (setsockopt(p->fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(p->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return bind(p->fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

/* Without the privilege: by the service, if there is one. */
static int bw_packet_served(struct bw_packet *p, const struct bw_env *env, uint16_t engine,
			    const char **why)
{
	if (bw_service_there(env))
		return bw_service_open(p, env, engine, p->claim, why);
	return bw_fail(why, -EACCES,
		       "raw Ethernet frames need the capability CAP_NET_RAW, which this process "
		       "lacks, or the service beowired, which is not there (%s); fix: start it, "
		       "grant the capability, or use BEOWIRE_LINKS=local,udp",
		       env->service ? env->service : "BEOWIRE_SERVICE=off");
}

/* Everything of a link that belongs to its socket. */
static int bw_packet_setup(struct bw_packet *p, const struct bw_env *env, uint16_t engine,
			   const char **why)
{
	int error;

	/* Protocol 0: nothing is received before the filter stands. */
	p->fd = p->service ? -1 : socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0 && (p->service || errno == EPERM || errno == EACCES))
		return bw_packet_served(p, env, engine, why);
	if (p->fd < 0)
		return bw_fail(why, -errno, "cannot open a packet socket: %s", strerror(errno));
	error = bw_filter_own(p->fd, engine);
	if (error)
		return bw_fail(why, error, "cannot attach a packet filter: %s", strerror(-error));
	error = bw_packet_map(p, env->ring_bytes);
	if (error)
		return bw_fail(
			why, error,
			"cannot map a receive ring of %u bytes: %s; fix: a smaller BEOWIRE_RING",
			env->ring_bytes, strerror(-error));
	error = bw_packet_bind(p);
	if (error)
		return bw_fail(why, error, "cannot bind to interface %s: %s", p->name,
			       strerror(-error));
	return 0;
}

int bw_packet_open(struct bw_packet *p, const struct bw_env *env, const struct bw_iface *iface,
		   uint16_t engine, int claim, uint8_t link, const char **why)
{
	memset(p, 0, sizeof(*p));
	p->fd = p->fanout.connection = -1;
	p->claim = claim;
	p->service = !iface->index; /* none of ours */
	p->link = link;
	p->interface = iface->index;
	memcpy(p->name, iface->name, sizeof(p->name));
	p->ethertype = htons(env->ethertype);
	memcpy(p->mac, iface->mac, 6);
	p->mtu = iface->mtu < BW_FRAME_MAX_MTU ? iface->mtu : BW_FRAME_MAX_MTU;
	if (env->mtu && env->mtu < p->mtu)
		p->mtu = env->mtu;
	if (p->mtu < BW_FRAME_MIN_MTU)
		return bw_fail(why, -EINVAL, "interface %s has an MTU of %u; at least %u is needed",
			       iface->name, iface->mtu, BW_FRAME_MIN_MTU);
	int error = bw_packet_setup(p, env, engine, why);

	/* The service is asked again by who still holds the number. */
	p->claim = !error && p->service ? fcntl(claim, F_DUPFD_CLOEXEC, 0) : -1;
	if (!error) {
		p->batch = bw_batch_new(ETH_HLEN, false);
		if (!p->batch ||
		    ((env->encrypt || p->encrypts) && bw_batch_make_room(p->batch, p->mtu)))
			error = bw_fail(why, -ENOMEM, "out of memory");
	}
	if (error)
		bw_packet_close(p);
	return error;
}

void bw_packet_close(struct bw_packet *p)
{
	bw_wipe(p->key, sizeof(p->key));
	if (p->ring)
		munmap(p->ring, p->ring_bytes);
	if (p->fd >= 0)
		close(p->fd);
	/* Who is told of it by this descriptor shall find the socket closed. */
	if (p->fanout.connection >= 0)
		close(p->fanout.connection);
	if (p->claim >= 0)
		close(p->claim);
	bw_batch_free(p->batch);
	p->ring = NULL;
	p->batch = NULL;
	p->fd = p->fanout.connection = p->claim = -1;
}

void bw_packet_bare(const struct bw_packet *p, struct bw_packet *bare)
{
	*bare = *p;
	bare->fd = bare->fanout.connection = bare->claim = -1;
	bare->ring = NULL;
	bare->batch = NULL;
}

int bw_packet_renew(const struct bw_packet *p, const struct bw_env *env, uint16_t engine,
		    struct bw_packet *fresh, const char **why)
{
	int error;

	bw_packet_bare(p, fresh);
	error = bw_packet_setup(fresh, env, engine, why);
	if (error)
		bw_packet_close(fresh);
	return error;
}

int bw_packet_fits(const struct bw_packet *p, const struct bw_packet *fresh, const char **why)
{
	if (fresh->ring_bytes == p->ring_bytes && fresh->slots >= p->slots)
		return 0;
	return bw_fail(why, -EMSGSIZE,
		       "the ring has %u slots in %zu bytes, and had %u in %zu before", fresh->slots,
		       fresh->ring_bytes, p->slots, p->ring_bytes);
}

int bw_packet_replace(struct bw_packet *p, struct bw_packet *fresh, const char **why)
{
	int old = p->fd, error = bw_packet_fits(p, fresh, why);

	if (!error && mremap(fresh->ring, fresh->ring_bytes, fresh->ring_bytes,
			     MREMAP_MAYMOVE | MREMAP_FIXED, p->ring) == MAP_FAILED)
		error = bw_fail(why, -errno, "the ring cannot be moved: %s", strerror(errno));
	if (error) {
		bw_packet_close(fresh);
		return error;
	}
	p->fd = fresh->fd;
	p->slot_bytes = fresh->slot_bytes;
	p->block_bytes = fresh->block_bytes;
	p->per_block = fresh->per_block;
	p->slots = fresh->slots;
	p->index = p->in_block = 0;
	p->next = (struct tpacket2_hdr *)p->ring;
	return old;
}

static struct tpacket2_hdr *bw_packet_slot(const struct bw_packet *p, uint32_t index)
{
	return (struct tpacket2_hdr *)(p->ring + (size_t)(index / p->per_block) * p->block_bytes +
				       (size_t)(index % p->per_block) * p->slot_bytes);
}

/* On to the slot behind this one. */
static void bw_packet_advance(struct bw_packet *p, struct tpacket2_hdr *slot)
{
	if (++p->index == p->slots)
		p->index = p->in_block = 0;
	else
		p->in_block++;
	/* A division for each block, none for each slot. */
	if (p->in_block == p->per_block)
		p->in_block = 0;
	p->next = p->in_block ? (struct tpacket2_hdr *)((uint8_t *)slot + p->slot_bytes)
			      : bw_packet_slot(p, p->index);
	__builtin_prefetch(p->next);
}

void bw_packet_take(struct bw_packet *p, struct bw_rx_frame *f)
{
	struct tpacket2_hdr *slot = p->next;
	const uint8_t *mac;

	/* The status was seen; now what it stands for. */
	atomic_thread_fence(memory_order_acquire);
	mac = (const uint8_t *)slot + slot->tp_mac;
	f->head = mac + ETH_HLEN;
	f->len = slot->tp_snaplen - ETH_HLEN;
	f->head_len = f->len;
	memset(&f->from, 0, sizeof(f->from));
	f->from.link = p->link;
	f->from.len = 6;
	memcpy(f->from.bytes, mac + 6, 6);
	f->cookie = slot;
	p->count.rx_frames++;
	p->count.rx_bytes += f->len;
	bw_packet_advance(p, slot);
}

void bw_packet_release(const struct bw_rx_frame *f)
{
	struct tpacket2_hdr *slot = f->cookie;

	/* All reads of the slot come before the kernel may write to it again. */
	atomic_thread_fence(memory_order_release);
	__atomic_store_n(&slot->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELAXED);
}

bool bw_packet_crowded(const struct bw_packet *p)
{
	uint32_t half = p->index + p->slots / 2;

	if (half >= p->slots)
		half -= p->slots;
	return __atomic_load_n(&bw_packet_slot(p, half)->tp_status, __ATOMIC_RELAXED) &
	       TP_STATUS_USER;
}

bool bw_packet_add(struct bw_packet *p, const struct bw_tx_frame *f)
{
	struct bw_batch_slot *slot = bw_batch_add(p->batch, f);
	uint8_t *ether;

	if (!slot)
		return false;
	ether = bw_batch_header(p->batch, slot);
	memcpy(ether, f->to.bytes, 6);
	memcpy(ether + 6, p->mac, 6);
	memcpy(ether + 12, &p->ethertype, 2);
	p->count.tx_frames++;
	p->count.tx_bytes += f->len;
	p->count.tx_payload += bw_batch_payload_bytes(f);
	return true;
}

void bw_packet_clear_error(struct bw_packet *p)
{
	int error;
	socklen_t len = sizeof(error);

	/* Frames that are lost meanwhile tell of it. */
	getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &len);
}

void bw_packet_overruns(struct bw_packet *p)
{
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);

	if (getsockopt(p->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) == 0)
		p->count.rx_overruns += stats.tp_drops;
}
