/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The network between the two nodes of port_world.h: frames that leave are kept as bytes; frames
 * that arrive are socket buffers of any shape that a driver, or the kernel, may give.
 */
#include "port_world.h"

#include <stdlib.h>

/* ---- frames that leave ---- */

static struct port_side *side_of(const struct bwk_node *node)
{
	return &world.side[node == &world.side[US].node ? US : THEM];
}

void port_mac(uint8_t mac[ETH_ALEN], uint32_t who)
{
	const uint8_t all[ETH_ALEN] = {2, 0, 0, 0, 0, (uint8_t)who};

	memcpy(mac, all, ETH_ALEN);
}

/* What a HELLO of ours says is known to who it is for. */
static void sniff(const uint8_t *bytes, uint32_t len, uint8_t who)
{
	struct bw_hello b;
	struct bw_hdr h;

	if (len < sizeof(h))
		return;
	memcpy(&h, bytes, sizeof(h));
	if (h.type == BW_FRAME_DATA && who == 0)
		world.sent = h.pn;
	if (h.type != BW_FRAME_HELLO || who >= PORT_STRANGERS || len < sizeof(h) + sizeof(b))
		return;
	memcpy(&b, bytes + sizeof(h), sizeof(b));
	world.conn[who] = b.conn;
	world.token[who] = b.token;
}

static void leave(struct port_side *from, struct sk_buff *skb)
{
	struct port_frame *f = &from->wire[from->frames];
	const struct ethhdr *eth = eth_hdr(skb);
	uint8_t *bytes = malloc(skb->len + 1);

	if (skb->len > FUZZ_MTU || skb_mac_offset(skb) != -ETH_HLEN ||
	    memcmp(eth->h_source, from->mac, ETH_ALEN))
		fuzz_bad("a frame that no interface takes");
	if (skb_copy_bits(skb, 0, bytes, skb->len))
		fuzz_bad("a frame without all of its bytes");
	if (from == &world.side[US])
		sniff(bytes, skb->len, eth->h_dest[5]);
	if (from->frames < PORT_WIRE && (from != &world.side[US] || !world.lose) &&
	    eth->h_dest[5] == (from == &world.side[US] ? 0 : PORT_STRANGERS)) {
		*f = (struct port_frame){skb->len, bytes};
		from->frames++;
	} else {
		free(bytes);
	}
	kfree_skb(skb);
}

struct sk_buff *bwk_leave(const struct bwk_node *node, struct sk_buff *list)
{
	struct port_side *from = side_of(node);
	struct sk_buff *next;

	if (fake_spinning || !fake_bh)
		fuzz_bad("frames leave with a lock held, or with softirqs on");
	for (; list; list = next) {
		bwk_tx_finish(list);
		if (world.full && from == &world.side[US])
			return list;
		next = list->next;
		list->next = NULL;
		leave(from, list);
	}
	return NULL;
}

void port_wire_take(struct port_side *from, struct port_frame *to, uint32_t n)
{
	memcpy(to, from->wire, n * sizeof(*to));
	from->frames -= n;
	memmove(from->wire, from->wire + n, from->frames * sizeof(*to));
}

void port_wire_drop(struct port_side *from)
{
	while (from->frames)
		free(from->wire[--from->frames].bytes);
}

/* ---- frames that arrive ---- */

/* How several come together. */
enum arrival { ARRIVE_LIST, ARRIVE_ROW, ARRIVE_SEGMENTS, ARRIVE_GRO, ARRIVALS };

enum shape { SHAPE_LINEAR, SHAPE_PAGES, SHAPE_LIST, SHAPE_BOTH, SHAPES };

/* So many bytes lie in one piece at the beginning. */
static struct sk_buff *build_head(const uint8_t *bytes, uint32_t n, uint32_t spare)
{
	struct sk_buff *skb = alloc_skb(16 + n + spare, GFP_ATOMIC);

	skb_reserve(skb, 16);
	memcpy(skb_put(skb, n), bytes, n);
	return skb;
}

/* Bytes in pages of at most `each`; what finds no place is left: how many. */
static uint32_t add_pages(struct sk_buff *skb, const uint8_t *bytes, uint32_t n, uint32_t each)
{
	uint32_t done = 0, part, off = each % 13 * 8;

	for (int i = 0; i < MAX_SKB_FRAGS && done < n; i++, done += part) {
		struct page *page;

		part = min(each, n - done);
		page = fake_page(off + part, GFP_ATOMIC);
		memcpy(page->bytes + off, bytes + done, part);
		skb_fill_page_desc(skb, i, page, off, part);
		skb->truesize += PAGE_SIZE;
	}
	skb->len += done;
	skb->data_len += done;
	return n - done;
}

static void add_list(struct sk_buff *skb, const uint8_t *bytes, uint32_t n, uint32_t each)
{
	struct sk_buff **end = &skb_shinfo(skb)->frag_list, *more;
	uint32_t part, head;

	for (; n; n -= part, bytes += part, end = &more->next) {
		part = min(each, n);
		head = each & 8 ? part : part / 2;
		more = build_head(bytes, head, 0);
		if (add_pages(more, bytes + head, part - head, part))
			fuzz_bad("a part that is too long");
		*end = more;
		skb->len += more->len;
		skb->data_len += more->len;
		skb->truesize += more->truesize;
	}
}

static void address(const struct port_side *to, struct sk_buff *skb, uint32_t who)
{
	struct ethhdr *eth;

	skb->dev = (struct net_device *)&to->dev;
	skb->protocol = htons(BW_ETHERTYPE);
	skb->pkt_type = PACKET_HOST;
	skb_reset_network_header(skb);
	skb_set_mac_header(skb, -ETH_HLEN);
	eth = eth_hdr(skb);
	memcpy(eth->h_dest, to->mac, ETH_ALEN);
	port_mac(eth->h_source, who);
	if (to == &world.side[THEM])
		memcpy(eth->h_source, world.side[US].mac, ETH_ALEN);
	eth->h_proto = htons(BW_ETHERTYPE);
}

/* A frame as a driver gives it, its shape told by the script; perhaps with bytes behind its end. */
static struct sk_buff *build(const struct port_side *to, const struct port_frame *f, uint32_t who,
			     bool odd)
{
	uint8_t how = odd ? fuzz_u8(world.in) : 0, cut = how >= SHAPES ? fuzz_u8(world.in) : 0;
	enum shape shape = how % SHAPES;
	uint32_t pad = how & 0x80 ? 1 + cut % 46 : 0, len = f->len + pad, each = 256 + cut * 8u;
	uint32_t head = shape == SHAPE_LINEAR ? len : min(len, cut % 40 * 8u), left = len - head;
	uint8_t *bytes = malloc(len + 1);
	struct sk_buff *skb;

	memcpy(bytes, f->bytes, f->len);
	memset(bytes + f->len, 0xDD, pad);
	skb = build_head(bytes, head, how & 0x20 ? 64 : 0);
	if (shape == SHAPE_PAGES)
		left = add_pages(skb, bytes + head, left, each);
	if (shape == SHAPE_BOTH && left > each)
		left = left - each + add_pages(skb, bytes + head, each, each);
	if (left)
		add_list(skb, bytes + len - left, left, each);
	free(bytes);
	skb->truesize += how & 0x40 ? 8192 : 0;
	address(to, skb, who);
	return skb;
}

static struct bwk_iface *iface_of(struct port_side *to)
{
	return to->node.iface[0];
}

static void hand_over(struct port_side *to, struct sk_buff *skb)
{
	struct bwk_iface *iface = iface_of(to);

	iface->type.func(skb, &to->dev, &iface->type, &to->dev);
}

/* A sender makes super-frames of frames that have no lists of their own. */
static bool joinable(struct sk_buff **skbs, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (skb_has_frag_list(skbs[i]))
			return false;
	return n > 1;
}

/* All as one super-frame, as its sender makes it. */
static struct sk_buff *join(struct sk_buff **skbs, uint32_t n)
{
	struct bwk_row row = {0};
	uint32_t i;

	for (i = 0; i < n; i++)
		bwk_row_add(&row, skbs[i]);
	bwk_row_join(&row);
	return row.first;
}

static void hand_over_list(struct port_side *to, struct sk_buff **skbs, uint32_t n)
{
	struct bwk_iface *iface = iface_of(to);
	struct list_head list;
	uint32_t i;

	INIT_LIST_HEAD(&list);
	for (i = 0; i < n; i++)
		list_add_tail(&skbs[i]->list, &list);
	iface->type.list_func(&list, &iface->type, &to->dev);
}

/* Taken apart for a device that takes single frames. */
static void hand_over_segments(struct port_side *to, struct sk_buff *skb)
{
	struct sk_buff *list, *next;

	list = fake_offload->callbacks.gso_segment(skb, 0);
	if (IS_ERR(list)) {
		kfree_skb(skb);
		return;
	}
	kfree_skb(skb); /* the chain begins with a reference to it */
	for (; list; list = next) {
		next = list->next;
		list->next = list->prev = NULL;
		if (list != skb) /* the others begin at their Ethernet headers */
			__skb_pull(list, ETH_HLEN);
		skb_gso_reset(list);
		hand_over(to, list);
	}
}

/* Out of generic receive offload, when a frame does not wait for others any more. */
static void gro_complete(struct port_side *to, struct sk_buff *skb)
{
	if (NAPI_GRO_CB(skb)->count == 1)
		skb_gso_reset(skb);
	else
		fake_offload->callbacks.gro_complete(skb, 0);
	hand_over(to, skb);
}

static void hand_over_gro(struct port_side *to, struct sk_buff **skbs, uint32_t n)
{
	struct list_head held;
	struct sk_buff *skb, *done;
	uint32_t i;
	bool joined;

	INIT_LIST_HEAD(&held);
	for (i = 0; i < n; i++) {
		skb = skbs[i];
		memset(skb->cb, 0, sizeof(skb->cb));
		NAPI_GRO_CB(skb)->flush = skb_has_frag_list(skb); /* as the kernel says of such */
		list_for_each_entry(done, &held, list)
			NAPI_GRO_CB(done)->same_flow =
				!memcmp(eth_hdr(done), eth_hdr(skb), ETH_HLEN);
		done = fake_offload->callbacks.gro_receive(&held, skb);
		joined = NAPI_GRO_CB(skb)->same_flow; /* then it may go along */
		if (done) {
			list_del(&done->list);
			done->next = NULL;
			gro_complete(to, done);
		}
		if (joined)
			continue;
		NAPI_GRO_CB(skb)->count = 1;
		NAPI_GRO_CB(skb)->last = skb;
		if (NAPI_GRO_CB(skb)->flush) {
			hand_over(to, skb);
			continue;
		}
		skb_shinfo(skb)->gso_size = (u16)skb->len;
		list_add_tail(&skb->list, &held);
	}
	while (!list_empty(&held)) {
		skb = list_first_entry(&held, struct sk_buff, list);
		list_del(&skb->list);
		skb->next = NULL;
		gro_complete(to, skb);
	}
}

/* Somebody else looks at a frame as well, for a while, and is to find it as it was. */
#define TAPS 6
static struct tap {
	struct sk_buff *skb, *list;
	uint8_t *bytes;
	uint32_t len;
} taps[TAPS];
static uint32_t tapped_n;

static void tap_end(struct tap *t)
{
	uint8_t *now = malloc(t->len + 1);

	if (skb_copy_bits(t->skb, 0, now, t->len) || memcmp(now, t->bytes, t->len) ||
	    skb_shinfo(t->skb)->frag_list != t->list)
		fuzz_bad("a frame was changed that others look at");
	free(now);
	free(t->bytes);
	kfree_skb(t->skb);
	*t = (struct tap){NULL};
}

void port_taps_end(void)
{
	for (tapped_n = 0; tapped_n < TAPS; tapped_n++)
		if (taps[tapped_n].skb)
			tap_end(&taps[tapped_n]);
	tapped_n = 0;
}

static void tap(struct sk_buff *skb, uint8_t how)
{
	struct tap *t = &taps[tapped_n % TAPS];

	if (!(how & 3))
		return;
	if (t->skb)
		tap_end(t);
	t->len = skb->len;
	t->bytes = malloc(t->len + 1);
	skb_copy_bits(skb, 0, t->bytes, t->len);
	t->list = skb_shinfo(skb)->frag_list;
	t->skb = (how & 3) == 1 ? skb_clone(skb, GFP_ATOMIC) : skb_get(skb);
	tapped_n++;
}

void port_arrive(struct port_side *to, const struct port_frame *frames, uint32_t n, uint32_t who,
		 bool odd)
{
	struct sk_buff *skbs[FUZZ_ROW];
	struct fake_memory memory = fake_memory;
	uint8_t how = odd && n > 1 ? fuzz_u8(world.in) % ARRIVALS : ARRIVE_LIST;
	uint8_t tapped = odd ? fuzz_u8(world.in) : 0;
	uint32_t i;

	fake_memory.fail = 0; /* the driver has all it needs */
	for (i = 0; i < n; i++)
		skbs[i] = build(to, &frames[i], who, odd);
	if ((how == ARRIVE_ROW || how == ARRIVE_SEGMENTS) && !joinable(skbs, n))
		how = ARRIVE_LIST;
	if (how == ARRIVE_ROW || how == ARRIVE_SEGMENTS)
		skbs[0] = join(skbs, n);
	if (n == 1 || how == ARRIVE_ROW)
		tap(skbs[0], tapped);
	memory.pieces = fake_memory.pieces;
	fake_memory = memory;
	local_bh_disable();
	if (n == 1 && how == ARRIVE_LIST)
		hand_over(to, skbs[0]);
	else if (how == ARRIVE_ROW)
		hand_over(to, skbs[0]);
	else if (how == ARRIVE_SEGMENTS)
		hand_over_segments(to, skbs[0]);
	else if (how == ARRIVE_GRO)
		hand_over_gro(to, skbs, n);
	else
		hand_over_list(to, skbs, n);
	local_bh_enable();
}
