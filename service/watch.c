/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Refusing for the dead; see watch.h. Peers that have a cluster key believe refusals of those who
 * have it only: what is said with another key, or none, after a silence.
 */
#include "watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "checksum.h"
#include "code.h"
#include "keyed.h"
#include "number.h"
#include "refuse.h"

#define BS_CUT	    (ETH_HLEN + (int)sizeof(struct bw_hdr) + (int)sizeof(struct bw_hello))
#define BS_FRAMES   64	 /* taken at a time */
#define BS_A_SECOND 1000 /* refusals; whoever is not refused asks again */
#define BS_KEY	    (-8) /* places on the program's stack */
#define BS_HEAD	    (-48)

/* Frames for engines that have ended, if the sender waits for an answer. */
static int bs_watch_filter(const struct bs_gate *g)
{
	struct bs_code c = {.n = 0};

	bs_code_copy(&c, 6, 1);
	bs_code_load(&c, BPF_W, 1, 6, offsetof(struct __sk_buff, pkt_type));
	bs_code_need(&c, BPF_JEQ, 1, PACKET_HOST, 0);
	bs_code_copy(&c, 1, 6);
	bs_code_set(&c, 2, ETH_HLEN);
	bs_code_copy(&c, 3, 10);
	bs_code_add(&c, 3, BS_HEAD);
	bs_code_set(&c, 4, sizeof(struct bw_hdr));
	bs_code_call(&c, BPF_FUNC_skb_load_bytes);
	bs_code_need(&c, BPF_JEQ, 0, 0, 0);
	bs_code_load(&c, BPF_H, 1, 10, BS_HEAD + (int)offsetof(struct bw_hdr, dst_engine));
	bs_code_store(&c, BPF_W, 10, BS_KEY, 1);
	bs_code_map(&c, 1, g->engines);
	bs_code_copy(&c, 2, 10);
	bs_code_add(&c, 2, BS_KEY);
	bs_code_call(&c, BPF_FUNC_map_lookup_elem);
	bs_code_need(&c, BPF_JNE, 0, 0, 0);
	bs_code_load(&c, BPF_W, 1, 0, 0);
	bs_code_need(&c, BPF_JEQ, 1, BS_ENGINE_ENDED, 0);
	bs_code_load(&c, BPF_B, 1, 10, BS_HEAD + (int)offsetof(struct bw_hdr, type));
	bs_code_skip(&c, BPF_JEQ, 1, BW_FRAME_HELLO, 4);
	bs_code_load(&c, BPF_B, 1, 10, BS_HEAD + (int)offsetof(struct bw_hdr, flags));
	bs_code_need(&c, BPF_JSET, 1, BW_HDR_ACK_NOW, 0);
	bs_code_set(&c, 0, BS_CUT);
	bs_code_leave(&c);
	bs_code_end(&c);
	bs_code_set(&c, 0, 0);
	bs_code_leave(&c);
	return bs_code_load_filter(&c, "beowired_watch");
}

int bs_watch_open(struct bs_watch *w, const struct bs_gate *g, uint32_t interface,
		  uint16_t ethertype)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ethertype),
		.sll_ifindex = (int)interface,
	};
	int filter = bs_watch_filter(g), error = 0;

	w->fd = -1;
	if (filter < 0)
		return filter;
	w->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->fd < 0 || setsockopt(w->fd, SOL_SOCKET, SO_ATTACH_BPF, &filter, sizeof(filter)) ||
	    bind(w->fd, (struct sockaddr *)&address, sizeof(address)))
		error = -errno;
	close(filter);
	if (error)
		bs_watch_close(w);
	return error;
}

void bs_watch_close(struct bs_watch *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

void bs_watch_bury(struct bs_watch *w, const struct bs_gate *g, uint16_t engine)
{
	uint16_t *grave = &w->ended[w->graves % BS_GRAVES];

	if (w->fd < 0)
		return;
	/* The map has room for so many. */
	if (w->graves >= BS_GRAVES)
		bs_gate_forget(g, *grave);
	*grave = engine;
	w->graves++;
	bs_gate_mark(g, engine);
}

/* Of the node, as refusals carry it. */
static char bs_watch_host[BW_NAME_MAX + 1];

void bs_watch_learn_name(void)
{
	/* Of a longer name it says so, and copies what fits. */
	gethostname(bs_watch_host, sizeof(bs_watch_host) - 1);
}

static void bs_watch_refuse(struct bs_watch *w, const uint8_t *frame, uint32_t len, uint32_t whole,
			    const uint8_t mac[6], uint16_t ethertype, const uint8_t *key)
{
	struct {
		struct ethhdr ether;
		struct bw_refuse_frame refusal;
	} __attribute__((packed)) out;
	struct bw_refuse_frame refusal;
	struct bw_hdr h;
	struct bw_refuser by = {
		.name = bs_watch_host, .key = key, .crc32c = bw_checksum, .siphash = bw_siphash};

	memcpy(&h, frame + ETH_HLEN, sizeof(h));
	by.cluster = h.cluster;
	if (!bw_refuse_build(&refusal, &by, frame + ETH_HLEN, len - ETH_HLEN, whole - ETH_HLEN))
		return;
	memcpy(out.ether.h_dest, frame + ETH_ALEN, ETH_ALEN);
	memcpy(out.ether.h_source, mac, ETH_ALEN);
	out.ether.h_proto = htons(ethertype);
	out.refusal = refusal;
	w->told += send(w->fd, &out, sizeof(out), MSG_DONTWAIT) == sizeof(out);
}

/* Somebody else has the number now, in the interface's namespace. */
static bool bs_watch_lives(uint16_t engine)
{
	int fd = bs_number_hold(engine);

	if (fd < 0)
		return true;
	close(fd);
	return false;
}

void bs_watch_visit(struct bs_watch *w, const struct bs_gate *g, const uint8_t mac[6],
		    uint16_t ethertype, const uint8_t *key, uint64_t now)
{
	uint8_t frame[BS_CUT];
	struct bw_hdr h;

	for (int i = 0; i < BS_FRAMES; i++) {
		ssize_t whole = recv(w->fd, frame, sizeof(frame), MSG_DONTWAIT | MSG_TRUNC);
		uint32_t len = whole < BS_CUT ? (uint32_t)whole : BS_CUT;

		if (whole < 0)
			return;
		if (now - w->since >= BW_S) {
			w->since = now;
			w->refused = 0;
		}
		if (len < ETH_HLEN + sizeof(h) || ++w->refused > BS_A_SECOND)
			continue;
		memcpy(&h, frame + ETH_HLEN, sizeof(h));
		if (bs_watch_lives(h.dst_engine))
			bs_gate_forget(g, h.dst_engine);
		else
			bs_watch_refuse(w, frame, len, (uint32_t)whole, mac, ethertype, key);
	}
}
