/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What programs give to the kernel module's sockets: options, ioctls, addresses and control
 * messages, at addresses that are theirs in part or not at all. Nothing is read or written beyond
 * what was said, and what is taken is within its limits.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "sock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define USER_BYTES 640 /* of the program's memory: more than any structure takes */

int bwk_family = AF_BEOWIRE;
const struct bw_protocol bw_reliable;

static struct fuzz_input input;
static uint8_t *user;
static struct net net;
static struct bwk_node node;
static bool may; /* CAP_NET_ADMIN */
static struct net_device device = {.ifindex = 3, .mtu = 1500};
static struct bwk_peer peer = {.number = 1, .name = "a-name-of-thirty-two-bytes-......"};

static bool any_bool(void)
{
	return fuzz_u8(&input) & 1;
}

static int any_result(void)
{
	return -(fuzz_u8(&input) % 64);
}

/* ---- the rest of the module ---- */

bool fake_user(const void *at, size_t n)
{
	uintptr_t from = (uintptr_t)at - (uintptr_t)user;

	return from <= USER_BYTES && n <= USER_BYTES - from;
}

struct bwk_node *bwk_node_of(const struct net *of)
{
	return &node;
}

int bwk_bad_call(const struct bwk_node *of, enum bwk_bad kind, int error)
{
	if (error >= 0 || kind >= BWK_BAD_KINDS)
		fuzz_bad("a malformed call that is none");
	return error;
}

bool ns_capable(struct user_namespace *ns, int capability)
{
	return may;
}

struct net_device *__dev_get_by_name(struct net *of, const char *name)
{
	if (strnlen(name, 16) == 16)
		fuzz_bad("a name without an end");
	return any_bool() ? &device : NULL;
}

int bwk_iface_attach(struct bwk_node *of, struct net_device *dev)
{
	if (!may)
		fuzz_bad("anybody attaches");
	return any_result();
}

int bwk_iface_detach(struct bwk_node *of, const struct net_device *dev)
{
	return bwk_iface_attach(of, (struct net_device *)dev);
}

static void check_locked(const struct bwk_port *port)
{
	if (!port->lock.held)
		fuzz_bad("the port's lock is not held");
}

struct bwk_peer *bwk_peer_find(struct bwk_port *port, const struct sockaddr_beowire *addr)
{
	check_locked(port);
	if (addr->sbw_family != AF_BEOWIRE || !addr->sbw_port ||
	    !is_valid_ether_addr(addr->sbw_mac))
		fuzz_bad("a peer at an address of nobody");
	return any_bool() ? &peer : ERR_PTR(any_bool() ? -EAGAIN : -EHOSTUNREACH);
}

int bwk_port_feed(struct bwk_port *port)
{
	if (port->lock.held)
		fuzz_bad("memory is asked for with the port's lock held");
	return any_bool() ? 0 : -ENOBUFS;
}

void bwk_shards_visit(struct bwk_port *port, void (*each)(struct bwk_port *port, void *sum),
		      void *sum)
{
	each(port, sum);
}

struct bwk_peer *bwk_peer_by_number(struct bwk_port *port, u32 number)
{
	check_locked(port);
	return number & 1 ? &peer : NULL;
}

bool bwk_peer_is_up(struct bwk_port *port, const struct sockaddr_beowire *who)
{
	check_locked(port);
	return any_bool();
}

void bwk_out_send_bh(struct bwk_port *port)
{
	spin_unlock_bh(&port->lock); /* there is never a frame */
}

void bwk_port_run(struct bwk_port *port)
{
	check_locked(port);
}

void bwk_sock_uncharged(struct bwk_sock *bs, int before, int now)
{
}

void bwk_msg_pressure(struct bwk_sock *bs, bool on)
{
	bs->hold = on;
}

/* Only messages without connections have what these calls ask for. */
static int of_messages(const struct bwk_sock *bs)
{
	if (bs->sk.sk_type != SOCK_RDM)
		fuzz_bad("a call that this type does not have");
	return any_result();
}

int bwk_msg_pull(struct bwk_sock *bs, const struct beowire_pull *pull)
{
	return of_messages(bs);
}

int bwk_msg_cancel(struct bwk_sock *bs, u64 cookie)
{
	return of_messages(bs);
}

int bwk_msg_watch(struct bwk_sock *bs, const struct beowire_watch *watch)
{
	return of_messages(bs);
}

int bwk_msg_need(struct bwk_sock *bs, const struct beowire_watch *need)
{
	return of_messages(bs);
}

int bwk_region_answer(struct bwk_sock *bs, const struct beowire_region *answer)
{
	return of_messages(bs);
}

int bwk_region_serving(struct bwk_sock *bs, const struct beowire_region *what)
{
	return of_messages(bs) & 1;
}

static const struct bw_counters *counters(void *engine)
{
	static const struct bw_counters all;

	return &all;
}

/* ---- calls ---- */

static void fill_user(void)
{
	u32 at = fuzz_u8(&input), n = fuzz_u8(&input);
	const uint8_t *bytes = fuzz_bytes(&input, &n);

	memcpy(user + at, bytes, n);
}

/* Mostly the program's. */
static void *any_pointer(void)
{
	uint8_t how = fuzz_u8(&input);

	if (how == 255)
		return NULL;
	return user + (how & 1 ? 8u * (how >> 4) : USER_BYTES - how);
}

static int any_option(void)
{
	return fuzz_u8(&input) % (BEOWIRE_WAIT + 3);
}

static int any_level(void)
{
	return fuzz_u8(&input) & 7 ? SOL_BEOWIRE : 1;
}

static void set_option(struct socket *sock)
{
	int level = any_level(), name = any_option();
	const sockptr_t value = {any_pointer()};

	bwk_sock_setsockopt(sock, level, name, value, fuzz_u8(&input));
}

/* What lies behind the room that was told stays. */
static void get_option(struct socket *sock)
{
	static uint8_t before[USER_BYTES];
	int level = any_level(), name = any_option(), room = fuzz_u16(&input) % USER_BYTES, told;
	uint8_t *value = user + 64, *len = any_bool() ? user : any_pointer();

	if (any_bool())
		room = -room;
	memcpy(user, &room, sizeof(room));
	memcpy(before, user, USER_BYTES);
	if (bwk_sock_getsockopt(sock, level, name, (char *)value, (int *)len) || len != user)
		return;
	memcpy(&told, user, sizeof(told));
	if (told < 0 || told > room)
		fuzz_bad("more than there was room for");
	if (memcmp(value + told, before + 64 + told, (size_t)(USER_BYTES - 64 - told)))
		fuzz_bad("written beyond what was told");
}

static void control(struct socket *sock)
{
	unsigned int command = SIOCPROTOPRIVATE + fuzz_u8(&input) % 9;

	bwk_sock_ioctl(sock, command, (unsigned long)any_pointer());
}

static void address(struct socket *sock)
{
	int len = fuzz_u8(&input) % 64 - 8;
	uint8_t *given = malloc(len > 0 ? (size_t)len : 1); /* its end is seen */
	struct sockaddr_beowire out = {0};

	if (len > 0)
		memcpy(given, user + 16, (size_t)len);
	if (!bwk_given_target(sock->sk, given, len, &out) &&
	    (out.sbw_family != AF_BEOWIRE || !out.sbw_port || !is_valid_ether_addr(out.sbw_mac) ||
	     out.sbw_zero[0]))
		fuzz_bad("an address that nothing can be sent to");
	free(given);
}

static void control_messages(struct socket *sock)
{
	const u16 ways = BEOWIRE_SEND_EAGER | BEOWIRE_SEND_SHORT | BEOWIRE_SEND_LONG;
	struct beowire_info info = {0};
	u32 n = fuzz_u8(&input), whole = n;
	uint8_t *given = calloc(1, whole + 8);
	struct msghdr m = {given, whole};

	memcpy(given, fuzz_bytes(&input, &n), n);
	m.msg_control = realloc(given, whole + !whole);
	if (!bwk_given_info(sock->sk, &m, &info)) {
		if (sock->type != SOCK_RDM && (info.flags || info.peer))
			fuzz_bad("an info for a socket that has none");
		if (hweight16(info.flags & ways) > 1 || info.flags & ~0x1F || info.code > 127)
			fuzz_bad("an info that is not valid");
	}
	free(m.msg_control);
}

static void step(struct socket *sock)
{
	switch (fuzz_u8(&input) % 6) {
	case 0:
		fill_user();
		break;
	case 1:
		set_option(sock);
		break;
	case 2:
		get_option(sock);
		break;
	case 3:
		control(sock);
		break;
	case 4:
		address(sock);
		break;
	default:
		control_messages(sock);
	}
}

static void check(const struct bwk_sock *bs)
{
	if (bs->lock.held || (bs->port && bs->port->lock.held))
		fuzz_bad("a lock is kept");
	if (bs->busy_us > 1000000 || bs->eager_max > BW_EAGER_LIMIT || !bs->dead_ms ||
	    bs->copy_max > INT_MAX || bs->dead_ms > INT_MAX)
		fuzz_bad("an option beyond its limits");
	if (bs->sk.sk_type != SOCK_RDM && (bs->info_wanted || bs->hold))
		fuzz_bad("an option that this type does not have");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct bw_protocol protocol = {.counters = counters};
	struct bwk_port port = {.protocol = &protocol};
	struct bwk_sock bs = {.dead_ms = 1};
	struct socket sock = {.sk = &bs.sk};
	uint8_t how;

	input = (struct fuzz_input){data, data + size};
	how = fuzz_u8(&input);
	may = how & 1;
	sock.type = how & 2 ? SOCK_RDM : SOCK_DGRAM;
	bs.sk.sk_type = sock.type;
	bs.sk.net = &net;
	bs.port = how & 4 ? &port : NULL;
	user = calloc(1, USER_BYTES);
	while (input.at < input.end) {
		step(&sock);
		check(&bs);
	}
	free(user);
	return 0;
}
