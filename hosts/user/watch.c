/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeping the watch. The socket's filter passes, cut short: frames without our magic, and of ours
 * for other engines those whose sender waits for an answer (HELLO, and data that asks for an
 * acknowledgement). Whether an engine lives is asked of its claim.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "claim.h"
#include "ep.h"
#include "refuse.h"

#define BW_WATCH_PAUSE_NS (5 * BW_MS) /* until the next visit after one that found something */
#define BW_WATCH_CLAIM_NS (1 * BW_S)  /* between two tries for the claim */
#define BW_WATCH_FRAMES	  32	      /* looked at per visit */
#define BW_WATCH_RCVBUF	  (64 << 10)  /* bytes; what does not fit is not missed */
#define BW_WATCH_CUT	  (ETH_HLEN + sizeof(struct bw_hdr) + sizeof(struct bw_hello))
#define BW_WATCH_FOREIGN  100 /* foreign frames that are worth a warning */

void bw_watch_init(struct bw_watch *w)
{
	memset(w, 0, sizeof(*w));
	w->claim = -1;
	w->fd = -1;
}

void bw_watch_close(struct bw_watch *w)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->claim >= 0)
		close(w->claim);
	w->fd = -1;
	w->claim = -1;
}

static int bw_watch_filter(int fd, uint16_t engine)
{
	const uint32_t magic = (BW_MAGIC & 0xFF) << 8 | BW_MAGIC >> 8;
	const uint32_t number = (uint32_t)(engine & 0xFF) << 8 | (uint32_t)engine >> 8;
	const uint32_t at_magic = ETH_HLEN + offsetof(struct bw_hdr, magic);
	const uint32_t at_engine = ETH_HLEN + offsetof(struct bw_hdr, dst_engine);
	const uint32_t at_type = ETH_HLEN + offsetof(struct bw_hdr, type);
	const uint32_t at_flags = ETH_HLEN + offsetof(struct bw_hdr, flags);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, at_magic),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, magic, 0, 8),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, at_engine),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 7, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_HOST, 0, 5),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, at_type),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BW_FRAME_HELLO, 2, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, at_flags),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, BW_HDR_ACK_NOW, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, BW_WATCH_CUT),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

static int bw_watch_socket(struct bw_ep *ep)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = ep->packet.ethertype,
		.sll_ifindex = ep->iface.index,
	};
	int bytes = BW_WATCH_RCVBUF;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (bw_watch_filter(fd, ep->self.engine) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return -EIO;
	}
	return fd;
}

static void bw_watch_try(struct bw_ep *ep)
{
	struct bw_watch *w = &ep->watch;
	char name[64];

	w->claim_at = ep->now + BW_WATCH_CLAIM_NS;
	snprintf(name, sizeof(name), "beowire/watch/%04x/%d", ep->env.ethertype, ep->iface.index);
	w->claim = bw_claim_name(name);
	if (w->claim < 0)
		return;
	w->fd = bw_watch_socket(ep);
	if (w->fd < 0) {
		close(w->claim);
		w->claim = -1;
		return;
	}
	w->claim_at = BW_NEVER;
}

static void bw_watch_foreign(struct bw_ep *ep)
{
	if (++ep->watch.foreign != BW_WATCH_FOREIGN)
		return;
	bw_log_once(
		BW_LOG_WARN, "foreign",
		"frames that are not Beowire's use its EtherType 0x%04X on %s: they are ignored, "
		"but cost time; mend: another BEOWIRE_ETHERTYPE, the same on all nodes",
		ep->env.ethertype, ep->iface.name);
}

static void bw_watch_frame(struct bw_ep *ep, const uint8_t *frame, uint32_t len)
{
	struct bw_refuse_frame refusal;
	struct bw_tx_frame *f = &ep->tx;
	struct bw_hdr h;

	if (len >= ETH_HLEN + 2) {
		memcpy(&h, frame + ETH_HLEN, 2);
		if (h.magic != BW_MAGIC) {
			bw_watch_foreign(ep);
			return;
		}
	}
	if (len < ETH_HLEN + sizeof(h))
		return;
	memcpy(&h, frame + ETH_HLEN, sizeof(h));
	if (h.dst_engine == ep->self.engine || bw_claim_engine_held(h.dst_engine) ||
	    !bw_refuse_build(&refusal, frame + ETH_HLEN, len - ETH_HLEN, ep->self.cluster,
			     ep->host))
		return;
	memset(&f->to, 0, sizeof(f->to));
	f->to.link = BW_LINK_NO_PACKET;
	f->to.len = 6;
	memcpy(f->to.bytes, frame + 6, 6);
	f->segments = 0;
	f->head_len = sizeof(refusal);
	f->len = sizeof(refusal);
	memcpy(f->head, &refusal, sizeof(refusal));
	bw_packet_add(&ep->packet, f);
	ep->watch.refused++;
}

void bw_watch_visit(struct bw_ep *ep)
{
	struct bw_watch *w = &ep->watch;
	uint8_t frame[BW_WATCH_CUT];

	if (ep->now < w->visit_at || ep->stuck)
		return;
	if (w->claim < 0 && ep->now >= w->claim_at)
		bw_watch_try(ep);
	for (int i = 0; i < BW_WATCH_FRAMES && w->fd >= 0 && !bw_batch_full(ep->packet.batch);
	     i++) {
		ssize_t n = recv(w->fd, frame, sizeof(frame), MSG_DONTWAIT);

		if (n < 0)
			break;
		/* However many come, they are looked at a few at a time. */
		w->visit_at = ep->now + BW_WATCH_PAUSE_NS;
		bw_watch_frame(ep, frame, (uint32_t)n);
	}
	if (ep->packet.batch->count)
		bw_host_transmit(ep);
}
