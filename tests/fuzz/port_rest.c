/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rest of the module, for the two nodes of port_world.h. */
#include "port_world.h"

#include "../../hosts/kernel/crc.h"
#include "../../hosts/kernel/keyed.h"
#include "../../hosts/kernel/overflow.h"
#include "../../hosts/kernel/registry.h"
#include "../../hosts/kernel/server.h"
#include "../../hosts/kernel/threshold.h"

/* ---- who pays ---- */

static struct port_side *of_user(const struct bwk_user *user)
{
	return container_of(user, struct port_side, user);
}

bool bwk_user_charge(struct bwk_user *user, u64 bytes)
{
	struct port_side *s = of_user(user);

	if (bytes > s->limit || s->held > s->limit - bytes)
		return false;
	s->held += bytes;
	return true;
}

void bwk_user_uncharge(struct bwk_user *user, u64 bytes)
{
	struct port_side *s = of_user(user);

	if (bytes > s->held)
		fuzz_bad("more is given back than was charged");
	s->held -= bytes;
}

u64 bwk_user_room(const struct bwk_user *user)
{
	const struct port_side *s = of_user(user);

	return s->limit > s->held ? s->limit - s->held : 0;
}

bool bwk_user_take_port(struct bwk_user *user)
{
	of_user(user)->numbers++;
	return true;
}

void bwk_user_free_port(struct bwk_user *user)
{
	of_user(user)->numbers--;
}

void bwk_user_limited(void)
{
}

bool bwk_account_raise(struct bwk_account *account, u32 bytes)
{
	return bwk_user_charge(account->user, bytes);
}

void bwk_account_lower(struct bwk_account *account, u32 bytes)
{
	bwk_user_uncharge(account->user, bytes);
}

struct bwk_account *bwk_account_new(const struct net *net)
{
	return bwk_account_hold(&container_of(net, struct port_side, net)->account);
}

struct mem_cgroup *bwk_account_enter(const struct bwk_account *account)
{
	return NULL;
}

void bwk_account_left(struct mem_cgroup *before)
{
}

u32 bwk_crc(u32 crc, const void *p, size_t n)
{
	return bw_crc32c(crc, p, n);
}

/* ---- what is computed with keys ----
 *
 * Where frames are made up, every cookie and tag is FUZZ_TAG, so that they can show it. */

bool bwk_key_get(struct bwk_key *key, u8 bytes[BWK_KEY_BYTES], u32 *times)
{
	memset(bytes, 0, BWK_KEY_BYTES);
	*times = 0;
	return world.seals;
}

u64 bwk_siphash(const u8 key[BWK_KEYED_SIP_KEY], const void *data, size_t len)
{
	u64 crc = bw_crc32c(key[0], data, len);

	return world.plain ? crc * 0x9E3779B97F4A7C15ull | 1 : FUZZ_TAG;
}

void bwk_hmac_sha256(u8 out[BWK_KEYED_HASH], const u8 *key, size_t keylen, const void *data,
		     size_t len)
{
	memset(out, 0, BWK_KEYED_HASH);
}

/* Sealed bytes are others. */
static void turn(u8 *frame, uint32_t end)
{
	for (uint32_t i = BW_DATA_HEAD; i < end; i++)
		frame[i] ^= 0x80;
}

/* Of a frame that is sealed, where all are genuine; else any with an even first byte will do. */
static void tag_of(u8 tag[BW_SEAL_TAG], const u8 *frame, uint32_t end)
{
	u32 crc = bw_crc32c(0, frame, end);

	memset(tag, 0, BW_SEAL_TAG);
	memcpy(tag, &crc, sizeof(crc));
}

void bw_seal_frame(void *frame, uint32_t end, const struct bw_seal_by *by)
{
	turn(frame, end);
	if (world.plain)
		tag_of((u8 *)frame + end, frame, end);
	else
		memset((u8 *)frame + end, 0, BW_SEAL_TAG);
}

int bw_open_frame(void *frame, uint32_t end, const struct bw_seal_by *by)
{
	const u8 *shown = (u8 *)frame + end;
	u8 tag[BW_SEAL_TAG];

	tag_of(tag, frame, end);
	if (world.plain ? memcmp(tag, shown, sizeof(tag)) : shown[0] & 1)
		return -EBADMSG;
	turn(frame, end);
	return 0;
}

/* ---- what nothing comes of ---- */

void bwk_bad_frame(const struct bwk_iface *iface, const struct sk_buff *skb, int reason)
{
	if (!skb_mac_header_was_set(skb) || eth_hdr(skb)->h_proto != htons(BW_ETHERTYPE))
		fuzz_bad("a malformed frame of nobody");
}

void bwk_tell_version(struct bwk_node *node, const struct bwk_peer *peer,
		      const struct bw_event *down)
{
}

void bwk_tell_key(struct bwk_node *node, const struct bwk_peer *peer)
{
}

void bwk_tell_encrypts(struct bwk_node *node, const struct bwk_peer *peer)
{
}

void bwk_tell_still(struct bwk_node *node, const struct bwk_peer *peer, u64 now, u64 late_ns)
{
}

bool bwk_server_frame(const struct bwk_iface *iface, struct sk_buff *skb, u16 number)
{
	return false;
}

void bwk_transmit_refusal(struct bwk_iface *iface, struct sk_buff *refused)
{
	if (skb_shared(refused))
		fuzz_bad("a refused frame that others look at");
}

struct bwk_node *bwk_node_of(const struct net *net)
{
	return &container_of(net, struct port_side, net)->node;
}

int bwk_bad_call(const struct bwk_node *node, enum bwk_bad kind, int error)
{
	return error;
}

bool bwk_sysctl_allows(struct bwk_node *node)
{
	return true;
}

const struct bw_protocol *bwk_registry_get(int number, struct module **owner)
{
	return NULL;
}

struct bwk_server *bwk_server_get(struct bwk_node *node, int number)
{
	return NULL;
}

void bwk_server_put(struct bwk_server *server)
{
}

const struct proto_ops bwk_server_sock_ops;
u32 bwk_threshold = 16384;

/* ---- calls that fuzz_calls.c has ---- */

int bwk_sock_getsockopt(struct socket *sock, int level, int name, char *value, int *len)
{
	return -ENOPROTOOPT;
}

int bwk_sock_setsockopt(struct socket *sock, int level, int name, sockptr_t value, unsigned int len)
{
	return -ENOPROTOOPT;
}

int bwk_sock_ioctl(struct socket *sock, unsigned int command, unsigned long arg)
{
	return -ENOTTY;
}

int bwk_bell_mmap(struct file *file, struct socket *sock, struct vm_area_struct *vma)
{
	return -EINVAL;
}

/* ---- memory of the programs ---- */

uint8_t port_memory[PORT_MEMORY] __attribute__((aligned(4096)));
static struct page pages[PORT_MEMORY / 4096];

int fake_pages(unsigned long at, u32 n, struct page **to)
{
	unsigned long first = (at - (unsigned long)port_memory) / PAGE_SIZE;
	u32 i;

	if (first >= ARRAY_SIZE(pages))
		return -EFAULT;
	for (i = 0; i < n && first + i < ARRAY_SIZE(pages); i++) {
		to[i] = &pages[first + i];
		get_page(to[i]);
	}
	return (int)i;
}

void port_pages_begin(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(pages); i++)
		pages[i] = (struct page){1, port_memory + i * PAGE_SIZE};
}

void port_pages_end(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(pages); i++)
		if (pages[i].refs != 1)
			fuzz_bad("a page of a program is still held");
	if (fake_task.user.locked_vm.n)
		fuzz_bad("a user is charged for pages that are not locked");
}
