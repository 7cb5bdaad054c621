/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Opening the kernel link: is the module there, with an interface that the settings mean, may this
 * user have a socket, and what is its port? What is not right is told with its fix.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/iface.h"
#include "link/kernel/impl.h"
#include "link/kernel/told.h"

#define BW_KERNEL_BUFFERS (4 << 20) /* bytes of sends and of messages that wait, each */

uint64_t bw_kernel_node(void)
{
	struct bw_kernel_told t;

	return bw_kernel_ask(&t, 0) ? t.node : 0;
}

/* The interface with this number, or the one that was found before. */
static void bw_kernel_iface(struct bw_iface *iface, uint32_t number)
{
	struct bw_iface list[BW_IFACE_MAX];
	int n = bw_iface_list(list);

	for (int i = 0; i < n; i++)
		if (list[i].index == (int)number)
			*iface = list[i];
}

/* Do the settings allow what the module does? */
static int bw_kernel_check(const struct bw_env *env, struct bw_kernel_told *t, struct bw_iface *out,
			   const char **why)
{
	struct bw_iface iface = {0};
	const char *text = "";

	if (!bw_kernel_ask(t, 0))
		return bw_fail(why, -ENODEV, "%s", bw_kernel_absent());
	if (env->interface && bw_iface_choose(env, &iface, &text))
		return bw_fail(why, -ENODEV, "%s", text);
	bw_kernel_ask(t, (uint32_t)iface.index);
	if (!t->any)
		return bw_fail(why, -ENODEV,
			       "the kernel module is loaded, but uses no interface; fix: "
			       "beowire-attach with the name of one, as root");
	if (!t->ifindex)
		return bw_fail(
			why, -ENODEV,
			"the kernel module does not use %s, which BEOWIRE_INTERFACE=%s names; "
			"fix: beowire-attach %s, as root",
			iface.name, env->interface, iface.name);
	if (env->ethertype != BW_ETHERTYPE)
		return bw_fail(
			why, -EINVAL,
			"the kernel module speaks EtherType %04X, and BEOWIRE_ETHERTYPE asks for "
			"%04X",
			BW_ETHERTYPE, env->ethertype);
	if (env->cluster != t->cluster)
		return bw_fail(why, -EINVAL,
			       "the kernel module belongs to another cluster; fix: sysctl -w "
			       "net.beowire.cluster=%u, as root",
			       env->cluster);
	if (env->node || env->mtu)
		return bw_fail(why, -EINVAL, "the kernel module goes not by %s",
			       env->node ? "BEOWIRE_NODE" : "BEOWIRE_MTU");
	bw_kernel_iface(out, t->ifindex);
	return 0;
}

/* Frames are made with the node's key, not with the program's: is it the same? */
static int bw_kernel_check_key(const uint8_t *key, const char **why)
{
	char ours[BW_KEY_FINGERPRINT], nodes[BW_KEY_FINGERPRINT];

	if (!key)
		return 0;
	bw_key_fingerprint(ours, key);
	bw_kernel_key(nodes);
	if (!strcmp(ours, nodes))
		return 0;
	return bw_fail(why, -EKEYREJECTED,
		       "the key of BEOWIRE_KEY is %s, and that of the kernel module is %s; fix, as "
		       "root: grep -v '^#' FILE >/proc/sys/net/beowire/key; or BEOWIRE_LINKS "
		       "without kernel",
		       ours, nodes);
}

/* Nobody is to think that it protects him. */
static int bw_kernel_check_encrypt(const struct bw_env *env, const char **why)
{
	if (!env->encrypt || bw_kernel_encrypts())
		return 0;
	return bw_fail(why, -EKEYREJECTED,
		       "BEOWIRE_ENCRYPT is on, and the kernel module does not encrypt here; fix, "
		       "as root: sysctl -w net.beowire.encrypt=1; or BEOWIRE_LINKS without kernel");
}

static int bw_kernel_socket(struct bw_kernel *k, const char **why)
{
	k->fd = socket(k->family, SOCK_RDM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (k->fd >= 0)
		return 0;
	if (errno == EACCES)
		return bw_fail(
			why, -EACCES,
			"this user may not open sockets of the kernel module; fix: sysctl -w "
			"net.beowire.group_range=\"FIRST LAST\" with one of its groups, as root");
	return bw_fail(why, -errno, "cannot open a socket of the kernel module: %s",
		       strerror(errno));
}

static bool bw_kernel_set(const struct bw_kernel *k, int name, int value)
{
	return setsockopt(k->fd, SOL_BEOWIRE, name, &value, sizeof(value)) == 0;
}

/* Beyond the system's limits only with privilege. */
static void bw_kernel_room(const struct bw_kernel *k, int forced, int asked)
{
	int bytes = BW_KERNEL_BUFFERS;

	if (setsockopt(k->fd, SOL_SOCKET, forced, &bytes, sizeof(bytes)) < 0)
		setsockopt(k->fd, SOL_SOCKET, asked, &bytes, sizeof(bytes));
}

static int bw_kernel_bind(struct bw_kernel *k, const struct bw_env *env,
			  struct sockaddr_beowire *addr, const char **why)
{
	socklen_t n = sizeof(*addr);
	uint64_t dead_ms = env->dead_ns / 1000000;

	*addr = (struct sockaddr_beowire){.sbw_family = (uint16_t)k->family};
	bw_kernel_room(k, SO_SNDBUFFORCE, SO_SNDBUF);
	bw_kernel_room(k, SO_RCVBUFFORCE, SO_RCVBUF);
	if (!bw_kernel_set(k, BEOWIRE_CHECKSUM, env->checksum) ||
	    !bw_kernel_set(k, BEOWIRE_DEAD_MS, (int)dead_ms) ||
	    !bw_kernel_set(k, BEOWIRE_INFO_WANTED, 1) ||
	    bind(k->fd, (struct sockaddr *)addr, n) < 0 ||
	    getsockname(k->fd, (struct sockaddr *)addr, &n) < 0)
		return bw_fail(why, -errno, "cannot get a port of the kernel module: %s",
			       strerror(errno));
	return 0;
}

static int bw_kernel_begin(struct bw_kernel *k)
{
	void *bell = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, k->fd, 0);

	k->bell = bell == MAP_FAILED ? NULL : bell;
	k->room = malloc((size_t)BW_KERNEL_BATCH * BW_EAGER_LIMIT);
	if (!k->room || bw_kernel_table_init(k))
		return -ENOMEM;
	for (int i = 0; i < BW_KERNEL_BATCH; i++) {
		k->part[i].iov_base = k->room + (size_t)i * BW_EAGER_LIMIT;
		k->part[i].iov_len = BW_EAGER_LIMIT;
		k->in[i].msg_hdr = (struct msghdr){
			.msg_name = &k->from[i],
			.msg_namelen = sizeof(k->from[i]),
			.msg_iov = &k->part[i],
			.msg_iovlen = 1,
			.msg_control = k->control[i],
			.msg_controllen = sizeof(k->control[i]),
		};
	}
	return 0;
}

int bw_kernel_open(struct bw_kernel **out, const struct bw_env *env, const uint8_t *key,
		   struct bw_addr_fields *self, struct bw_iface *iface, const char **why)
{
	struct bw_kernel_told told;
	struct sockaddr_beowire addr;
	struct bw_kernel *k;
	int error = bw_kernel_check(env, &told, iface, why);

	if (!error)
		error = bw_kernel_check_key(key, why);
	if (!error)
		error = bw_kernel_check_encrypt(env, why);
	if (error)
		return error;
	k = calloc(1, sizeof(*k));
	if (!k)
		return bw_fail(why, -ENOMEM, "out of memory");
	k->fd = -1;
	k->short_at = k->meet_at = BW_NEVER;
	k->family = told.family;
	k->ifindex = told.ifindex;
	k->mtu = told.mtu;
	memcpy(k->interface, told.name, sizeof(k->interface));
	error = bw_kernel_socket(k, why);
	if (!error)
		error = bw_kernel_bind(k, env, &addr, why);
	if (!error && bw_kernel_begin(k))
		error = bw_fail(why, -ENOMEM, "out of memory");
	if (error) {
		bw_kernel_close(k);
		return error;
	}
	self->node = addr.sbw_node;
	self->engine = addr.sbw_port;
	self->inc = addr.sbw_inc;
	self->links |= BW_LINK_PACKET;
	self->ethertype = BW_ETHERTYPE;
	self->packet_mtu = bw_addr_mtu(told.mtu);
	memcpy(self->mac, told.mac, sizeof(self->mac));
	*out = k;
	return 0;
}

void bw_kernel_close(struct bw_kernel *k)
{
	if (k->bell)
		munmap((void *)(uintptr_t)k->bell, (size_t)sysconf(_SC_PAGESIZE));
	if (k->fd >= 0)
		close(k->fd);
	free(k->room);
	free(k->by_number);
	free(k);
}

int bw_kernel_fd(const struct bw_kernel *k)
{
	return k->fd;
}

short bw_kernel_awaits(const struct bw_kernel *k)
{
	return k->full ? POLLIN | POLLOUT : POLLIN;
}

uint64_t bw_kernel_due(const struct bw_kernel *k)
{
	return bw_min_u64(k->short_at, k->meetings ? k->meet_at : BW_NEVER);
}

const char *bw_kernel_interface(const struct bw_kernel *k)
{
	return k->interface;
}

uint32_t bw_kernel_under_way(const struct bw_kernel *k)
{
	return k->under_way;
}

void bw_kernel_counters(const struct bw_kernel *k, struct bw_counters *c,
			struct bw_link_counters *link)
{
	struct beowire_counters told = {0};
	socklen_t n = sizeof(told);

	if (getsockopt(k->fd, SOL_BEOWIRE, BEOWIRE_COUNTERS, &told, &n) < 0 ||
	    n < offsetof(struct beowire_counters, evicted)) /* which came later */
		return;
	link->tx_frames = told.tx_frames;
	link->rx_frames = told.rx_frames;
	link->tx_bytes = told.tx_bytes;
	link->rx_bytes = told.rx_bytes;
	link->tx_payload = told.tx_payload;
	link->rx_payload = told.rx_payload;
	c->tx_messages += told.tx_messages;
	c->rx_messages += told.rx_messages;
	c->duplex_payload += told.duplex_payload;
	c->duplex_messages += told.duplex_messages;
	c->retransmits += told.retransmits;
	c->losses += told.losses;
	c->probes += told.probes;
	c->evicted += told.evicted;
	for (int i = 0; i < BW_DROP_REASONS; i++)
		c->drop[i] += told.drop[i];
}
