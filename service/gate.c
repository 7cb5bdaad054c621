/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs of the gate; see gate.h. Both run at the ingress of a device, where every frame
 * comes by whatever way its sender chose: PACKET_QDISC_BYPASS passes the egress of the sender's
 * device only.
 */
#include "gate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "code.h"
#include "wire.h"

#define BS_INNER    ETH_HLEN /* offset of the inner header */
#define BS_CHECKED  (ETH_HLEN + (int)sizeof(struct bw_hdr))
#define BS_STACK_8  (-8) /* offsets from the stack's end */
#define BS_STACK_16 (-16)
#define BS_STACK_32 (-32)

static const char *const bs_reasons[BS_DROP_REASONS] = {
	[BS_DROP_SHORT] = "short",
	[BS_DROP_OFFLOAD] = "offload",
	[BS_DROP_ETHERTYPE] = "ethertype",
	[BS_DROP_GROUP] = "group",
	[BS_DROP_MAC] = "mac",
	[BS_DROP_MAGIC] = "magic",
	[BS_DROP_SOCKET] = "socket",
	[BS_DROP_ENGINE] = "engine",
	[BS_DROP_CLUSTER] = "cluster",
};

const char *bs_gate_reason(enum bs_gate_drop why)
{
	return bs_reasons[why];
}

/* What the three 16-bit words of an address look like to the program. */
static int32_t bs_mac_word(const uint8_t mac[6], int i)
{
	uint16_t word;

	memcpy(&word, mac + 2 * i, sizeof(word));
	return word;
}

/* The frame's Ethernet header and inner header: whole, in memory that nobody else writes to (the
 * rest may lie in a ring that the sender still has), and register 7 at them. */
static void bs_gate_fetch(struct bs_code *c)
{
	bs_code_load(c, BPF_W, 1, 6, offsetof(struct __sk_buff, gso_size));
	bs_code_need(c, BPF_JEQ, 1, 0, BS_DROP_OFFLOAD);
	bs_code_load(c, BPF_W, 1, 6, offsetof(struct __sk_buff, vlan_present));
	bs_code_need(c, BPF_JEQ, 1, 0, BS_DROP_ETHERTYPE);
	bs_code_copy(c, 1, 6);
	bs_code_set(c, 2, BS_CHECKED);
	bs_code_call(c, BPF_FUNC_skb_pull_data);
	bs_code_need(c, BPF_JEQ, 0, 0, BS_DROP_SHORT);
	bs_code_load(c, BPF_W, 7, 6, offsetof(struct __sk_buff, data));
	bs_code_load(c, BPF_W, 3, 6, offsetof(struct __sk_buff, data_end));
	bs_code_copy(c, 2, 7);
	bs_code_add(c, 2, BS_CHECKED);
	bs_code_need_same(c, BPF_JLE, 2, 3, BS_DROP_SHORT);
}

/* What is the same for all clients. Leaves the engine number in register 7, the cluster in 8. */
static void bs_gate_check_all(struct bs_code *c, uint16_t ethertype, const uint8_t mac[6])
{
	bs_code_load(c, BPF_H, 1, 7, offsetof(struct ethhdr, h_proto));
	bs_code_need(c, BPF_JEQ, 1, htons(ethertype), BS_DROP_ETHERTYPE);
	bs_code_load(c, BPF_B, 1, 7, 0);
	bs_code_skip(c, BPF_JSET, 1, 1, 1);
	bs_code_set(c, 1, 0);
	bs_code_need(c, BPF_JEQ, 1, 0, BS_DROP_GROUP);
	for (int i = 0; i < 3; i++) {
		bs_code_load(c, BPF_H, 1, 7, (int16_t)(offsetof(struct ethhdr, h_source) + 2 * i));
		bs_code_need(c, BPF_JEQ, 1, bs_mac_word(mac, i), BS_DROP_MAC);
	}
	bs_code_load(c, BPF_H, 1, 7, BS_INNER + offsetof(struct bw_hdr, magic));
	bs_code_need(c, BPF_JEQ, 1, BW_MAGIC, BS_DROP_MAGIC);
	bs_code_load(c, BPF_W, 8, 7, BS_INNER + offsetof(struct bw_hdr, cluster));
	bs_code_load(c, BPF_H, 7, 7, BS_INNER + offsetof(struct bw_hdr, src_engine));
}

/* The key at this place of the stack: register 0 at its value. */
static void bs_gate_find(struct bs_code *c, int map, int32_t key)
{
	bs_code_map(c, 1, map);
	bs_code_copy(c, 2, 10);
	bs_code_add(c, 2, key);
	bs_code_call(c, BPF_FUNC_map_lookup_elem);
}

/* What this socket may say. */
static void bs_gate_check_socket(struct bs_code *c, int senders)
{
	bs_code_copy(c, 1, 6);
	bs_code_call(c, BPF_FUNC_get_socket_cookie);
	bs_code_store(c, BPF_DW, 10, BS_STACK_8, 0);
	bs_gate_find(c, senders, BS_STACK_8);
	bs_code_need(c, BPF_JNE, 0, 0, BS_DROP_SOCKET);
	bs_code_load(c, BPF_H, 1, 0, offsetof(struct bs_gate_sender, engine));
	bs_code_need_same(c, BPF_JEQ, 7, 1, BS_DROP_ENGINE);
	bs_code_load(c, BPF_W, 1, 0, offsetof(struct bs_gate_sender, cluster));
	bs_code_need_same(c, BPF_JEQ, 8, 1, BS_DROP_CLUSTER);
}

static void bs_gate_redirect(struct bs_code *c, uint32_t to, int helper)
{
	bs_code_set(c, 1, (int32_t)to);
	bs_code_set(c, 2, 0);
	bs_code_call(c, helper);
	bs_code_leave(c);
}

/* From clients to the interface. */
static int bs_gate_load_out(struct bs_gate *g, uint16_t ethertype, uint32_t interface,
			    const uint8_t mac[6])
{
	struct bs_code c = {.n = 0};

	bs_code_copy(&c, 6, 1);
	bs_gate_fetch(&c);
	bs_gate_check_all(&c, ethertype, mac);
	bs_gate_check_socket(&c, g->senders);
	bs_gate_redirect(&c, interface, BPF_FUNC_redirect);
	bs_code_end(&c);
	bs_code_store(&c, BPF_W, 10, BS_STACK_8, 9);
	bs_gate_find(&c, g->drops, BS_STACK_8);
	bs_code_skip(&c, BPF_JEQ, 0, 0, 2);
	bs_code_count(&c, 0);
	bs_code_set(&c, 0, TC_ACT_SHOT);
	bs_code_leave(&c);
	return bs_code_load_program(&c, "beowired_out");
}

/* From the interface to clients: frames for its own address and for their engines. The others go on
 * to whoever else wants them. */
static int bs_gate_load_in(struct bs_gate *g, uint16_t ethertype, uint32_t veth)
{
	struct bs_code c = {.n = 0};

	bs_code_copy(&c, 6, 1);
	bs_code_load(&c, BPF_W, 1, 6, offsetof(struct __sk_buff, protocol));
	bs_code_need(&c, BPF_JEQ, 1, htons(ethertype), 0);
	bs_code_load(&c, BPF_W, 1, 6, offsetof(struct __sk_buff, vlan_present));
	bs_code_need(&c, BPF_JEQ, 1, 0, 0);
	bs_code_load(&c, BPF_W, 1, 6, offsetof(struct __sk_buff, pkt_type));
	bs_code_need(&c, BPF_JEQ, 1, PACKET_HOST, 0);
	bs_code_copy(&c, 1, 6);
	bs_code_set(&c, 2, BS_INNER);
	bs_code_copy(&c, 3, 10);
	bs_code_add(&c, 3, BS_STACK_32);
	bs_code_set(&c, 4, 16);
	bs_code_call(&c, BPF_FUNC_skb_load_bytes);
	bs_code_need(&c, BPF_JEQ, 0, 0, 0);
	bs_code_load(&c, BPF_H, 1, 10, BS_STACK_32 + (int)offsetof(struct bw_hdr, magic));
	bs_code_need(&c, BPF_JEQ, 1, BW_MAGIC, 0);
	bs_code_load(&c, BPF_H, 1, 10, BS_STACK_32 + (int)offsetof(struct bw_hdr, dst_engine));
	bs_code_store(&c, BPF_W, 10, BS_STACK_16, 1);
	bs_gate_find(&c, g->engines, BS_STACK_16);
	bs_code_need(&c, BPF_JNE, 0, 0, 0);
	bs_code_load(&c, BPF_W, 1, 0, 0);
	bs_code_need(&c, BPF_JEQ, 1, BS_ENGINE_LIVES, 0);
	bs_gate_redirect(&c, veth, BPF_FUNC_redirect_peer);
	bs_code_end(&c);
	bs_code_set(&c, 0, TC_ACT_UNSPEC);
	bs_code_leave(&c);
	return bs_code_load_program(&c, "beowired_in");
}

static void bs_gate_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int bs_gate_again(struct bs_gate *g, uint16_t ethertype, uint32_t interface, const uint8_t mac[6],
		  uint32_t veth)
{
	int out = bs_gate_load_out(g, ethertype, interface, mac);
	int in = out < 0 ? out : bs_gate_load_in(g, ethertype, veth);

	if (in < 0) {
		bs_gate_close_fd(&out);
		return in;
	}
	bs_gate_close_fd(&g->out);
	bs_gate_close_fd(&g->in);
	g->out = out;
	g->in = in;
	return 0;
}

int bs_gate_open(struct bs_gate *g, uint32_t most, uint16_t ethertype, uint32_t interface,
		 const uint8_t mac[6], uint32_t veth)
{
	int error = 0;

	*g = (struct bs_gate){.out = -1, .in = -1};
	g->senders = bs_map_new(BPF_MAP_TYPE_HASH, "bw_senders", sizeof(uint64_t),
				sizeof(struct bs_gate_sender), most);
	g->engines = bs_map_new(BPF_MAP_TYPE_HASH, "bw_engines", sizeof(uint32_t), sizeof(uint32_t),
				most + BS_GRAVES);
	g->drops = bs_map_new(BPF_MAP_TYPE_ARRAY, "bw_drops", sizeof(uint32_t), sizeof(uint64_t),
			      BS_DROP_REASONS);
	if (g->senders < 0 || g->engines < 0 || g->drops < 0)
		error = g->senders < 0 ? g->senders : g->engines < 0 ? g->engines : g->drops;
	if (!error)
		error = bs_gate_again(g, ethertype, interface, mac, veth);
	if (error)
		bs_gate_close(g);
	return error;
}

void bs_gate_close(struct bs_gate *g)
{
	bs_gate_close_fd(&g->senders);
	bs_gate_close_fd(&g->engines);
	bs_gate_close_fd(&g->drops);
	bs_gate_close_fd(&g->out);
	bs_gate_close_fd(&g->in);
}

int bs_gate_admit(struct bs_gate *g, uint64_t cookie, uint16_t engine, uint32_t cluster)
{
	struct bs_gate_sender sender = {.engine = engine, .cluster = cluster};
	uint32_t key = engine, lives = BS_ENGINE_LIVES;
	int error = bs_map_set(g->senders, &cookie, &sender);

	if (!error)
		error = bs_map_set(g->engines, &key, &lives);
	if (error)
		bs_map_remove(g->senders, &cookie);
	return error;
}

void bs_gate_expel(struct bs_gate *g, uint64_t cookie, uint16_t engine)
{
	uint32_t key = engine;

	bs_map_remove(g->engines, &key);
	bs_map_remove(g->senders, &cookie);
}

void bs_gate_mark(const struct bs_gate *g, uint16_t engine)
{
	uint32_t key = engine, ended = BS_ENGINE_ENDED;

	bs_map_set(g->engines, &key, &ended);
}

void bs_gate_forget(const struct bs_gate *g, uint16_t engine)
{
	uint32_t key = engine, is = 0;

	if (!bs_map_get(g->engines, &key, &is) && is == BS_ENGINE_ENDED)
		bs_map_remove(g->engines, &key);
}

uint64_t bs_gate_drops(const struct bs_gate *g, enum bs_gate_drop why)
{
	uint32_t key = why;
	uint64_t count = 0;

	bs_map_get(g->drops, &key, &count);
	return count;
}
