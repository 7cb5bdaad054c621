/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoints of one process and what they take for the kernel; see endpoint_world.h. */
#include "endpoint_world.h"

#include <errno.h>
#include <fcntl.h>
#include <net/ethernet.h>
#include <poll.h>
#include <sanitizer/asan_interface.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "number.h"

#define FD	   1000000 /* of side 0's packet socket: no descriptor that there is */
#define FRAME_AT   66	   /* bytes of a slot before the Ethernet header */
#define TURN_NS	   (2 * BW_US)
#define NAP_MAX_NS (200 * BW_US)

struct world world;

static _Alignas(4096) uint8_t rings[WORLD_SIDES][WORLD_RING];

static const uint8_t node_of[WORLD_SIDES] = {0, 1, 1};

static struct tpacket2_hdr *slot_of(int i, uint32_t slot)
{
	return (struct tpacket2_hdr *)(rings[i] + slot / WORLD_PER_BLOCK * WORLD_BLOCK +
				       slot % WORLD_PER_BLOCK * WORLD_SLOT);
}

/* Whoever reads what lies there reads beyond a frame, or too late. */
static void slot_close(int i, uint32_t slot)
{
	__asan_poison_memory_region((uint8_t *)slot_of(i, slot) + FRAME_AT - 2,
				    WORLD_SLOT - FRAME_AT + 2);
}

void world_begin(void)
{
	for (int i = 0; i < WORLD_SIDES; i++)
		for (uint32_t n = 0; n < WORLD_SLOTS; n++) {
			slot_of(i, n)->tp_status = TP_STATUS_KERNEL;
			slot_close(i, n);
		}
	memset(&world, 0, sizeof(world));
	world.now = 1000 * BW_S;
	world.mtu = WORLD_MTU;
	world.inside = true;
}

/* Which side has this socket? */
static int side_of(int fd)
{
	return fd >= FD && fd < FD + WORLD_SIDES ? fd - FD : -1;
}

void world_add(int from, const uint8_t *bytes, uint32_t len)
{
	struct world_frame *f = &world.line[world.frames], *last = &world.last[from];
	const uint8_t *type = bytes + WORLD_ETHER + offsetof(struct bw_hdr, type);

	if (len < WORLD_ETHER || len > WORLD_ETHER + WORLD_MTU)
		fuzz_bad("a frame of a length that no interface carries");
	if (world.frames == WORLD_LINE) {
		world.lossy = true;
		return;
	}
	*f = (struct world_frame){malloc(len), len, (uint8_t)from};
	memcpy(f->bytes, bytes, len);
	world.frames++;
	frame_see(from, f->bytes + WORLD_ETHER, len - WORLD_ETHER);
	if (len >= WORLD_ETHER + BW_DATA_HEAD && *type == BW_FRAME_DATA) {
		free(last->bytes);
		*last = (struct world_frame){malloc(len), len, (uint8_t)from};
		memcpy(last->bytes, bytes, len);
	}
}

void world_lose(uint32_t i)
{
	free(world.line[i].bytes);
	memmove(world.line + i, world.line + i + 1, (--world.frames - i) * sizeof(*world.line));
}

/* What the filter of side i leaves of this frame; 0: nothing. */
static uint32_t filtered(const struct world_side *s, const uint8_t *bytes, uint32_t len)
{
	const uint32_t looked_at = offsetof(struct bw_hdr, src_engine);
	struct bw_hdr h = {0};

	if (len < looked_at)
		return 0;
	memcpy(&h, bytes, looked_at);
	if (h.magic == BW_MAGIC && h.dst_engine == s->engine)
		return len;
	if (s->ep->watch.claim < 0)
		return 0;
	for (unsigned int i = 0; h.magic == BW_MAGIC && i < s->alives; i++)
		if (s->alive[i] == h.dst_engine)
			return 0;
	return len < BW_FILTER_CUT ? len : BW_FILTER_CUT;
}

/* The kernel puts a frame into the ring of side i. */
static void arrive(int i, const uint8_t *bytes, uint32_t len)
{
	struct world_side *s = &world.side[i];
	struct tpacket2_hdr *slot = slot_of(i, s->head);
	uint8_t *to = (uint8_t *)slot + FRAME_AT;
	uint32_t n = filtered(s, bytes + WORLD_ETHER, len - WORLD_ETHER);

	if (!n)
		return;
	if (slot->tp_status != TP_STATUS_KERNEL) {
		world.lossy = true;
		return;
	}
	n += WORLD_ETHER;
	__asan_unpoison_memory_region(to - 2, n + 2);
	memcpy(to, bytes, n);
	slot->tp_mac = FRAME_AT;
	slot->tp_snaplen = n;
	slot->tp_len = len;
	slot->tp_status = TP_STATUS_USER;
	s->head = (s->head + 1) % WORLD_SLOTS;
	s->used++;
}

void world_deliver(uint32_t n)
{
	for (; n && world.frames; n--) {
		struct world_frame f = world.line[0];

		world.now += world.frame_ns;
		world.lossy |= world.side[f.from].cut;
		for (int i = 0; i < WORLD_SIDES && !world.side[f.from].cut; i++)
			if (world.side[i].ep && i != f.from && f.bytes[5] == node_of[i])
				arrive(i, f.bytes, f.len);
		world_lose(0);
	}
}

void world_round(int i)
{
	struct world_side *s = &world.side[i];
	uint64_t wait = 0;

	if (!s->ep)
		return;
	bw_ep_arm(s->ep, &wait);
	bw_progress(s->ep);
	bw_ep_arm(s->ep, &wait);
	s->due = wait > BW_NEVER - world.now ? BW_NEVER : world.now + wait;
	for (uint32_t n = s->used; n; n--) {
		uint32_t at = (s->head + WORLD_SLOTS - n) % WORLD_SLOTS;

		if (slot_of(i, at)->tp_status != TP_STATUS_KERNEL)
			break;
		slot_close(i, at);
		s->used--;
	}
}

void world_turn(int not, uint64_t until)
{
	uint64_t at = BW_NEVER;
	bool idle = !world.frames;

	world.now += TURN_NS;
	world_deliver(WORLD_SLOTS / 2);
	for (int i = 0; i < world.sides; i++) {
		if (i != not &&(world.side[i].used || world.side[i].due <= world.now))
			world_round(i);
		idle &= !world.side[i].used;
		if (i != not &&world.side[i].ep)
			at = bw_min_u64(at, world.side[i].due);
	}
	if (idle && !world.frames && bw_min_u64(at, until) > world.now)
		world.now = bw_min_u64(at, until);
}

void world_open(int i, const struct bw_handlers *handlers)
{
	struct world_side *s = &world.side[i];
	struct bw_ep_attr attr = {
		.handlers = handlers, .arg = (void *)(intptr_t)i, .no_helper = true};
	const char *why;

	s->engine = (uint16_t)(0x8000 + i);
	s->head = s->used = s->alives = 0;
	s->opens++;
	world.opening = i;
	for (uint32_t n = 0; n < WORLD_SLOTS; n++) {
		slot_of(i, n)->tp_status = TP_STATUS_KERNEL;
		slot_close(i, n);
	}
	if (bw_ep_open(&s->ep, &attr, &why))
		fuzz_bad(why);
	s->ep->arriving = world.come;
	s->ep->copied = world.crowded ? WORLD_COPIED : 0;
	bw_ep_addr(s->ep, &s->addr);
	s->inc = s->ep->self.inc;
	s->due = world.now;
}

void world_close(int i, uint64_t timeout_ns)
{
	struct bw_ep *ep = world.side[i].ep;

	/* ep is there while it is closed: what it waits for is done by the others. */
	if (ep)
		bw_ep_close(ep, timeout_ns);
	world.side[i].ep = NULL;
	world.side[i].used = 0;
}

void world_end(void)
{
	while (world.frames)
		world_lose(world.frames - 1);
	for (int i = 0; i < WORLD_SIDES; i++)
		free(world.last[i].bytes);
	world.inside = false;
}

/*
 * In the place of what asks the kernel and the environment.
 */

/* What is linked in the place of the functions named so. */
#define IN_PLACE_OF(result, name, ...)                                                             \
	result __wrap_##name(__VA_ARGS__);                                                         \
	result __real_##name(__VA_ARGS__);                                                         \
	result __wrap_##name(__VA_ARGS__)

IN_PLACE_OF(int, clock_gettime, clockid_t clock, struct timespec *t)
{
	if (!world.inside || clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, t);
	t->tv_sec = (time_t)(world.now / BW_S);
	t->tv_nsec = (long)(world.now % BW_S);
	return 0;
}

IN_PLACE_OF(int, clock_nanosleep, clockid_t clock, int flags, const struct timespec *t,
	    struct timespec *left)
{
	if (!world.inside)
		return __real_clock_nanosleep(clock, flags, t, left);
	world.now = bw_max_u64(world.now, (uint64_t)t->tv_sec * BW_S + (uint64_t)t->tv_nsec);
	return 0;
}

/* Whoever sleeps lets the others go on, and wakes soon. */
IN_PLACE_OF(int, ppoll, struct pollfd *fds, nfds_t n, const struct timespec *t,
	    const sigset_t *mask)
{
	uint64_t nap = NAP_MAX_NS, until;
	int me = -1;

	if (!world.inside)
		return __real_ppoll(fds, n, t, mask);
	if (t)
		nap = bw_min_u64(nap, (uint64_t)t->tv_sec * BW_S + (uint64_t)t->tv_nsec);
	until = world.now + nap;
	for (nfds_t i = 0; i < n; i++) {
		fds[i].revents = 0;
		me = side_of(fds[i].fd) >= 0 ? side_of(fds[i].fd) : me;
	}
	world_turn(me, until);
	world.now = bw_max_u64(world.now, until);
	return 0;
}

IN_PLACE_OF(ssize_t, getrandom, void *to, size_t n, unsigned int flags)
{
	uint8_t *at = to;

	if (!world.inside)
		return __real_getrandom(to, n, flags);
	for (size_t i = 0; i < n; i++)
		at[i] = (uint8_t)(++world.drawn * 0x9E3779B97F4A7C15ull >> 40);
	return (ssize_t)n;
}

/* Does the kernel have room for what this side sends? */
static bool has_room(int i)
{
	struct world_side *s = &world.side[i];

	if (!s->no_room)
		return true;
	s->no_room--;
	errno = s->no_room & 1 ? ENOBUFS : EAGAIN;
	return false;
}

static void sent(int i, const struct iovec *iov, size_t pieces)
{
	static uint8_t flat[WORLD_ETHER + WORLD_MTU];
	struct bw_hdr h;
	size_t len = 0;

	for (size_t k = 0; k < pieces; k++) {
		if (iov[k].iov_len > sizeof(flat) - len)
			fuzz_bad("a frame beyond what the interface carries");
		memcpy(flat + len, iov[k].iov_base, iov[k].iov_len);
		len += iov[k].iov_len;
	}
	memcpy(&h, flat + WORLD_ETHER, sizeof(h));
	if (len != WORLD_ETHER + sizeof(h) + h.len)
		fuzz_bad("a frame is sent that is not whole");
	world_add(i, flat, (uint32_t)len);
}

long __wrap_syscall(long number, ...);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	struct mmsghdr *m;
	struct iovec one;
	long a[6];
	va_list rest;
	int i;

	va_start(rest, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(rest, long);
	va_end(rest);
	i = side_of((int)a[0]);
	if (i < 0 || (number != SYS_sendto && number != SYS_sendmmsg))
		return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (!has_room(i))
		return -1;
	if (number == SYS_sendto) {
		one = (struct iovec){(void *)a[1], (size_t)a[2]};
		sent(i, &one, 1);
		return a[2];
	}
	m = (struct mmsghdr *)a[1];
	for (long k = 0; k < a[2]; k++) {
		if (k && !has_room(i))
			return k;
		sent(i, m[k].msg_hdr.msg_iov, m[k].msg_hdr.msg_iovlen);
	}
	return a[2];
}

IN_PLACE_OF(int, bw_env_read, struct bw_env *env, const char **why)
{
	static const char *const name[] = {"a", "b"};

	memset(env, 0, sizeof(*env));
	env->links = BW_LINK_PACKET;
	env->wait = BW_WAIT_BLOCK;
	env->checksum = true;
	env->ethertype = BW_ETHERTYPE;
	env->cluster = FUZZ_CLUSTER;
	env->node = name[node_of[world.opening]];
	env->send_copies = 1u << 20;
	env->dead_ns = WORLD_DEAD_NS;
	env->key = world.keyed ? "key" : NULL;
	env->encrypt = world.encrypts;
	return 0;
}

IN_PLACE_OF(int, bw_key_load, const char *path, uint8_t key[BW_KEY_BYTES], char *why, size_t n)
{
	memset(key, 7, BW_KEY_BYTES);
	return 0;
}

IN_PLACE_OF(int, bw_home_open, struct bw_home *home, const struct bw_env *env, const char *name,
	    const char **why)
{
	return 0;
}

IN_PLACE_OF(int, bw_iface_choose_all, const struct bw_env *env, struct bw_iface *chosen, int most,
	    const char **why)
{
	*chosen = (struct bw_iface){.name = "wire0", .mtu = world.mtu};
	chosen->index = 1 + node_of[world.opening];
	chosen->mac[0] = 2;
	chosen->mac[5] = node_of[world.opening];
	return 1;
}

IN_PLACE_OF(int, bw_packet_open, struct bw_packet *p, const struct bw_env *env,
	    const struct bw_iface *iface, uint16_t engine, int claim, uint8_t link,
	    const char **why)
{
	memset(p, 0, sizeof(*p));
	p->fd = FD + world.opening;
	p->fanout.connection = p->claim = -1;
	p->link = link;
	p->interface = iface->index;
	memcpy(p->name, iface->name, sizeof(p->name));
	p->ethertype = BW_ETHERTYPE;
	memcpy(p->mac, iface->mac, 6);
	p->mtu = iface->mtu;
	p->ring = rings[world.opening];
	p->next = slot_of(world.opening, 0);
	p->slot_bytes = WORLD_SLOT;
	p->block_bytes = WORLD_BLOCK;
	p->per_block = WORLD_PER_BLOCK;
	p->slots = WORLD_SLOTS;
	p->ring_bytes = world.budget ? 1u << 30 : WORLD_RING;
	p->batch = bw_batch_new(WORLD_ETHER, false);
	return p->batch && (!world.encrypts || !bw_batch_make_room(p->batch, p->mtu)) ? 0 : -ENOMEM;
}

IN_PLACE_OF(void, bw_packet_close, struct bw_packet *p)
{
	p->ring = NULL;
	p->fd = -1;
	__real_bw_packet_close(p);
}

IN_PLACE_OF(int, bw_number_claim, uint32_t random, uint32_t inc, uint16_t *engine,
	    struct bw_number *number)
{
	*engine = world.side[world.opening].engine;
	*number = (struct bw_number){.claim = -1};
	return 0;
}

IN_PLACE_OF(bool, bw_number_held, uint16_t engine)
{
	for (int i = 0; i < WORLD_SIDES; i++)
		if (world.side[i].ep && world.side[i].engine == engine)
			return true;
	return false;
}

/* The watch: of the two of one node one has it at a time. */
IN_PLACE_OF(int, bw_claim_name, const char *name)
{
	const struct bw_ep *a = world.side[1].ep, *b = world.side[2].ep;
	bool held = name[strlen(name) - 1] == '2' &&
		    ((a && a->watch.claim >= 0) || (b && b->watch.claim >= 0));

	return held ? -EADDRINUSE : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

IN_PLACE_OF(void, bw_claim_drain, int fd)
{
}

IN_PLACE_OF(int, bw_filter_watch, int fd, uint16_t engine, const uint16_t *alive, unsigned int n)
{
	struct world_side *s = &world.side[side_of(fd)];

	if (n > BW_FILTER_ALIVE)
		fuzz_bad("more engines than a filter holds");
	memcpy(s->alive, alive, n * sizeof(*alive));
	s->alives = n;
	return 0;
}

IN_PLACE_OF(void, bw_crowd_init, struct bw_crowd *c, uint64_t now)
{
}

IN_PLACE_OF(void, bw_crowd_sample, struct bw_crowd *c, uint64_t now)
{
}

static bool has_memory(void)
{
	if (!world.no_memory)
		return true;
	world.no_memory--;
	return false;
}

IN_PLACE_OF(void *, bw_area_get, struct bw_areas *areas, size_t bytes)
{
	return has_memory() ? __real_bw_area_get(areas, bytes) : NULL;
}

IN_PLACE_OF(void *, bw_area_get_alone, struct bw_areas *areas, size_t bytes)
{
	return has_memory() ? __real_bw_area_get_alone(areas, bytes) : NULL;
}
