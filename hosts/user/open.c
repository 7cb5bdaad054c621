/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening an endpoint: which links are to be had, and what to say of those that are not. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ep.h"
#include "keyed.h"
#include "link/packet/served.h"
#include "number.h"
#include "setting.h"

#define BW_EP_EAGER	 65536 /* bytes; default of BEOWIRE_EAGER_MAX */
#define BW_EP_UDP_CHARGE 1024  /* bytes of socket buffer that the smallest datagram takes */
#define BW_EP_GROUP	 1     /* of links: interfaces carry long messages together */
#define BW_EP_LINE	 1     /* the one that raw frames and udp share */
/* Bytes of socket buffer with which udp may carry long messages where raw frames pass, too. */
#define BW_EP_CARRY_BUDGET (512u << 10)
#define BW_EP_ACK_SOON	   (20 * BW_US) /* in which a program that answers does so (lab book) */
#define BW_EP_SPIN_NS	   (20 * BW_US) /* first guess of how long to spin */

/* Identity of this node: BEOWIRE_NODE, or what the kernel module gave it, so that endpoints on it
 * with and without a port of the module agree, or the kernel's boot and our network namespace. */
static uint64_t bw_ep_node(const struct bw_env *env, const char *host)
{
	uint64_t hash = BW_ENV_HASH;
	char boot[64];
	struct stat ns;
	FILE *f;

	if (env->node) {
		hash = bw_env_hash(hash, env->node, strlen(env->node));
		return hash ? hash : 1;
	}
	if (bw_kernel_node())
		return bw_kernel_node();
	f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (f && fgets(boot, sizeof(boot), f))
		hash = bw_env_hash(hash, boot, strlen(boot));
	else
		hash = bw_env_hash(hash, host, strlen(host));
	if (f)
		fclose(f);
	if (stat("/proc/self/ns/net", &ns) == 0)
		hash = bw_env_hash(hash, &ns.st_ino, sizeof(ns.st_ino));
	return hash ? hash : 1;
}

/* What an error says to people, with its fix where it is a limit of the process. */
static const char *bw_ep_reason(int error)
{
	switch (error) {
	case -EMFILE:
		return "too many open files; fix: a higher limit (ulimit -n)";
	case -ENFILE:
		return "too many open files on this node; fix: a higher fs.file-max";
	case -EAGAIN:
	case -ENOMEM:
		return "out of memory or threads; fix: higher limits (ulimit -v, -u, -l)";
	default:
		return strerror(-error);
	}
}

static bool bw_ep_only(const struct bw_env *env, enum bw_env_link link)
{
	return env->links == (unsigned int)link;
}

/* From here on memory lies where it is to lie; the first interface that is used decides. */
static int bw_ep_settle(struct bw_ep *ep, const char *interface, const char **why)
{
	int error = bw_home_open(&ep->home, &ep->env, interface, why);

	if (!error)
		bw_home_enter(&ep->home, NULL);
	return error;
}

static int bw_ep_keyed(struct bw_ep *ep)
{
	if (!bw_keyed_start())
		return -EOPNOTSUPP;
	ep->keyed = true;
	bw_key_of_refusals(ep->watch.key, ep->key, bw_hmac_sha256);
	return 0;
}

static void bw_ep_tell_keys(const struct bw_ep *ep, const struct bw_packet *p)
{
	char ours[BW_KEY_FINGERPRINT], given[BW_KEY_FINGERPRINT];

	bw_key_fingerprint(ours, ep->key);
	bw_key_fingerprint(given, p->key);
	bw_log_once(BW_LOG_WARN, "two-keys",
		    "the key of BEOWIRE_KEY (%s) is used, not that of beowired (%s), which other "
		    "programs of this node have; fix: no BEOWIRE_KEY, or the same key in both",
		    ours, given);
}

/* The cluster's key, as the service gave it with a socket. The program's own goes first. */
static int bw_ep_take_key(struct bw_ep *ep, struct bw_packet *p)
{
	const char *said = bw_setting("BEOWIRE_ENCRYPT");
	int error = 0;

	if (!p->keyed)
		return 0;
	if (!ep->keyed) {
		memcpy(ep->key, p->key, sizeof(ep->key));
		error = bw_ep_keyed(ep);
		ep->key_given = !error;
	}
	if (!error && !bw_same(ep->key, p->key, sizeof(ep->key)))
		bw_ep_tell_keys(ep, p);
	else if (p->encrypts && !ep->packets && (!said || !*said)) /* the first one decides */
		ep->env.encrypt = true;
	bw_wipe(p->key, sizeof(p->key));
	return error;
}

/* Raw frames by one more interface. */
static int bw_ep_add_packet(struct bw_ep *ep, const struct bw_iface *iface, const char **why)
{
	int n = ep->packets, error;

	bw_home_enter(&ep->home, iface->name);
	error = bw_packet_open(&ep->packet[n], &ep->env, iface, ep->self.engine, ep->claim,
			       (uint8_t)(BW_LINK_NO_PACKET + n), why);
	if (error)
		return error;
	error = bw_ep_take_key(ep, &ep->packet[n]);
	bw_fanout_init(ep, ep->packets++);
	if (n) {
		memcpy(ep->self.more_mac[n - 1], ep->packet[n].mac, 6);
		ep->self.more_macs = (uint8_t)n;
	} else {
		ep->iface = *iface;
		memcpy(ep->self.mac, ep->packet[n].mac, 6);
	}
	return error ? bw_fail(why, error, "libsodium cannot be used here") : 0;
}

/* A namespace without an interface of its own, as of a container, has the service's. */
static int bw_ep_choose(const struct bw_ep *ep, struct bw_iface *iface, const char **why)
{
	int n = bw_iface_choose_all(&ep->env, iface, BW_PACKET_LINKS, why);

	if (n >= 0 || ep->env.interface || ep->env.interfaces || !bw_service_there(&ep->env))
		return n;
	iface[0] = (struct bw_iface){.mtu = BW_FRAME_MAX_MTU};
	return 1;
}

/* Raw frames. Not having them is an error only if nothing else is allowed, or if what was asked for
 * by name does not exist. */
static int bw_ep_open_packet(struct bw_ep *ep, const char **why)
{
	struct bw_iface iface[BW_PACKET_LINKS];
	const char *text = "";
	int error, n;

	if (!(ep->env.links & BW_LINK_PACKET))
		return 0;
	n = bw_ep_choose(ep, iface, &text);
	error = n < 0 ? n : 0;
	if (error &&
	    (ep->env.interface || ep->env.interfaces || bw_ep_only(&ep->env, BW_LINK_PACKET)))
		return bw_fail(why, error, "%s", text);
	if (n > 0) {
		int refused = bw_ep_settle(ep, iface[0].name[0] ? iface[0].name : NULL, why);

		if (refused)
			return refused;
	}
	for (int i = 0; i < n && !error; i++)
		error = bw_ep_add_packet(ep, &iface[i], &text);
	if (error && bw_ep_only(&ep->env, BW_LINK_PACKET))
		return bw_fail(why, error, "%s", text);
	if (error) {
		bw_ep_close_packets(ep);
		bw_log_once(BW_LOG_INFO, "no-packet", "no raw Ethernet frames: %s", text);
		return 0;
	}
	ep->has_packet = true;
	ep->self.links |= BW_LINK_PACKET;
	ep->self.ethertype = ep->env.ethertype;
	ep->self.packet_mtu = bw_addr_mtu(ep->packet[0].mtu);
	return 0;
}

static int bw_ep_open_udp(struct bw_ep *ep, const char **why)
{
	const char *text = "";
	struct bw_iface iface;
	struct bw_link_addr self;
	union bw_name name;
	int error;

	if (!(ep->env.links & BW_LINK_UDP))
		return 0;
	error = bw_iface_choose_ip(&ep->env, ep->has_packet || ep->kernel ? &ep->iface : NULL,
				   &iface, &name, &text);
	if (!error && name.any.sa_family == AF_INET6 && ep->self.more_macs)
		error = bw_fail(&text, -EAFNOSUPPORT,
				"beside several interfaces for raw frames, addresses have no room "
				"for IPv6");
	if (!error) {
		int refused = bw_ep_settle(ep, iface.name, why);

		if (refused)
			return refused;
		error = bw_udp_open(&ep->udp, &ep->env, &iface, &name, ep->self.engine, &text);
	}
	if (error && (bw_ep_only(&ep->env, BW_LINK_UDP) || ep->env.udp_address.any.sa_family ||
		      (error == -EADDRINUSE && !ep->has_packet && !ep->kernel)))
		return bw_fail(why, error, "%s", text);
	if (error) {
		bw_log_once(BW_LOG_INFO, "no-udp", "no udp: %s", text);
		return 0;
	}
	ep->has_udp = true;
	if (ep->home.areas.placed) /* now, while this thread has the policy */
		memset(ep->udp.frames, 0, ep->udp.stride * BW_UDP_FRAMES);
	bw_name_to_link(&self, &ep->udp.name);
	bw_addr_set_udp(&ep->self, &self);
	ep->self.udp_mtu = bw_addr_mtu(ep->udp.mtu);
	return 0;
}

static int bw_ep_open_local(struct bw_ep *ep, int claim, const char **why)
{
	struct bw_local_attr attr = {
		.self =
			{
				.node = ep->self.node,
				.cluster = ep->self.cluster,
				.incarnation = ep->self.inc,
				.engine = ep->self.engine,
				.pid = (uint32_t)getpid(),
			},
		.claim = claim,
		.eager_max = ep->env.eager_max,
		.handlers = &bw_by_local_handlers,
		.arg = ep,
	};
	int error;

	snprintf(attr.self.name, sizeof(attr.self.name), "%.31s", ep->host);
	error = bw_local_open(&ep->local, &attr);
	if (error && bw_ep_only(&ep->env, BW_LINK_LOCAL))
		return bw_fail(why, error, "cannot open the local link: %s", bw_ep_reason(error));
	if (error) {
		bw_log_once(BW_LOG_INFO, "no-local", "no shared memory within this node: %s",
			    bw_ep_reason(error));
		return 0;
	}
	ep->claim = -1; /* the link's now */
	ep->self.links |= BW_LINK_LOCAL;
	return 0;
}

/* A port of the kernel module instead of raw frames. Not having it is an error only if nothing else
 * is allowed between nodes, or if the node's key is another one than ours. */
static int bw_ep_open_kernel(struct bw_ep *ep, const char **why)
{
	const char *text = "";
	int error;

	if (!(ep->env.links & BW_LINK_KERNEL))
		return 0;
	error = bw_kernel_open(&ep->kernel, &ep->env, ep->keyed ? ep->key : NULL, &ep->self,
			       &ep->iface, &text);
	if (error == -EKEYREJECTED || (error && !(ep->env.links & (BW_LINK_PACKET | BW_LINK_UDP))))
		return bw_fail(why, error, "%s", text);
	/* That a module is not loaded is nothing to tell of. */
	if (error && bw_kernel_node())
		bw_log_once(BW_LOG_INFO, "no-kernel", "no kernel link: %s", text);
	return 0;
}

static int bw_ep_open_links(struct bw_ep *ep, const char **why)
{
	int error = ep->kernel ? bw_ep_settle(ep, ep->iface.name, why) : bw_ep_open_packet(ep, why);

	if (!error)
		error = bw_ep_open_udp(ep, why);
	if (!error)
		error = bw_ep_settle(ep, NULL, why);
	if (!error && (ep->env.links & BW_LINK_LOCAL))
		error = bw_ep_open_local(ep, ep->claim, why);
	if (error)
		return error;
	if (ep->env.encrypt && !ep->keyed)
		return bw_fail(why, -EINVAL,
			       "BEOWIRE_ENCRYPT is on, and there is no key: BEOWIRE_KEY names "
			       "none, and beowired gave none; fix: BEOWIRE_KEY, or 'key' in "
			       "beowired.conf");
	if (!ep->self.links)
		return bw_fail(why, -ENODEV,
			       "none of the links that BEOWIRE_LINKS allows can be used here; "
			       "BEOWIRE_LOG=info says why");
	return 0;
}

static int bw_ep_open_engine(struct bw_ep *ep, const char **why)
{
	struct bw_config cfg = {
		.node = ep->self.node,
		.incarnation = ep->self.inc,
		.cluster = ep->self.cluster,
		.engine = ep->self.engine,
		.features = (ep->env.checksum ? BW_FEATURE_CHECKSUM : 0) |
			    (ep->env.encrypt ? BW_FEATURE_ENCRYPT : 0) | BW_FEATURE_LONG,
		.dead_ns = ep->env.dead_ns,
		.ack_soon_ns = BW_EP_ACK_SOON,
		.keyed = ep->keyed,
	};
	int error;

	for (int i = 0; i < 8; i++)
		cfg.link_mtu[i] = BW_FRAME_MIN_MTU;
	if (ep->has_udp) {
		cfg.link_mtu[BW_LINK_NO_UDP] = ep->udp.mtu;
		cfg.rx_budget = ep->udp.rcvbuf / 2;
		cfg.charge_min = BW_EP_UDP_CHARGE;
	}
	if (ep->has_packet) {
		/* One ring's, as all that is under way may come by one interface. */
		cfg.rx_budget = (uint32_t)(ep->packet[0].ring_bytes / 4 * 3);
		cfg.features |= BW_FEATURE_STRIPE;
	}
	for (int i = 0; i < ep->packets; i++) {
		const struct bw_packet *p = &ep->packet[i];

		cfg.link_mtu[p->link] = p->mtu;
		cfg.link_group[p->link] = BW_EP_GROUP;
		cfg.rx_budget = (uint32_t)bw_min_u64(cfg.rx_budget, p->ring_bytes / 4 * 3);
		if (cfg.charge_min < p->slot_bytes)
			cfg.charge_min = p->slot_bytes;
	}
	if (ep->packets == 1 && ep->has_udp && ep->udp.batch->join &&
	    ep->udp.rcvbuf / 2 >= BW_EP_CARRY_BUDGET) {
		/* Pulled data may go as rows over udp: the engine finds out which is faster. */
		cfg.link_group[BW_LINK_NO_UDP] = BW_EP_GROUP;
		cfg.link_line[BW_LINK_NO_UDP] = cfg.link_line[ep->packet[0].link] = BW_EP_LINE;
		cfg.link_rows[BW_LINK_NO_UDP] = true;
		cfg.rx_budget = (uint32_t)bw_min_u64(cfg.rx_budget, ep->udp.rcvbuf / 2);
	}
	memcpy(cfg.name, ep->host, strnlen(ep->host, BW_NAME_MAX));
	memcpy(cfg.key, ep->key, sizeof(cfg.key));
	ep->engine_bytes = (bw_reliable.size(&cfg) + 63) & ~(size_t)63;
	ep->engine = bw_area_get(&ep->home.areas, ep->engine_bytes);
	if (!ep->engine) {
		bw_wipe(cfg.key, sizeof(cfg.key));
		return bw_fail(why, -ENOMEM, "out of memory");
	}
	error = bw_reliable.open(ep->engine, &cfg, &bw_host_ops, ep, ep->now);
	bw_wipe(cfg.key, sizeof(cfg.key));
	bw_wipe(ep->key, sizeof(ep->key));
	if (error)
		return bw_fail(why, error, "cannot start the protocol engine: %s",
			       strerror(-error));
	return 0;
}

static int bw_ep_open_identity(struct bw_ep *ep, const char **why)
{
	struct {
		uint32_t inc, number;
	} random;
	struct bw_number number;
	int error;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return bw_fail(why, -EIO, "cannot get random numbers: %s", strerror(errno));
	gethostname(ep->host, sizeof(ep->host) - 1);
	ep->self.cluster = ep->env.cluster;
	if (ep->kernel) { /* it is who its port is */
		error = bw_number_own(ep->self.engine, ep->self.inc, &number);
	} else {
		ep->self.inc = random.inc ? random.inc : 1;
		ep->self.node = bw_ep_node(&ep->env, ep->host);
		error = bw_number_claim(random.number, ep->self.inc, &ep->self.engine, &number);
	}
	if (error)
		return bw_fail(why, error, "cannot claim an engine number: %s",
			       bw_ep_reason(error));
	ep->claim = number.claim;
	ep->borrowed = number.borrowed;
	if (ep->borrowed)
		bw_log_once(BW_LOG_WARN, "numbers",
			    "processes of another user hold the names of this node's engine "
			    "numbers: other names are used");
	return 0;
}

static int bw_ep_open_waiting(struct bw_ep *ep, const struct bw_ep_attr *attr, const char **why)
{
	int error;

	bw_crowd_init(&ep->crowd, ep->now);
	ep->crowd.spread = attr && attr->spread;
	ep->spin_ns = BW_EP_SPIN_NS;
	ep->idle_since = ep->now;
	ep->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ep->wake_fd < 0)
		return bw_fail(why, -errno, "cannot make an event descriptor: %s",
			       bw_ep_reason(-errno));
	ep->helper.wanted = !attr->no_helper && ep->env.helper;
	if (!ep->helper.wanted)
		return 0;
	error = bw_helper_start(ep);
	if (error)
		return bw_fail(why, error, "cannot start a thread: %s", bw_ep_reason(error));
	return 0;
}

/* The cluster's key, if there is to be one: what cannot be read must not be taken for none. */
static int bw_ep_open_key(struct bw_ep *ep, const char **why)
{
	char text[512];
	int error;

	if (!ep->env.key)
		return 0;
	error = bw_key_load(ep->env.key, ep->key, text, sizeof(text));
	if (error)
		return bw_fail(why, error, "BEOWIRE_KEY: %s", text);
	error = bw_ep_keyed(ep);
	return error ? bw_fail(why, error, "libsodium cannot be used here") : 0;
}

/* Once for a job on this node, what is short of what was asked for louder than what is as asked. */
static void bw_ep_tell_home(const struct bw_ep *ep)
{
	char text[BW_HOME_TEXT];

	if (ep->home.areas.huge && ep->home.areas.pages != BW_AREA_HUGE)
		bw_log_once(BW_LOG_WARN, "huge-pages",
			    "BEOWIRE_HUGE_PAGES=%s: none of %zu KiB are reserved, or not on the "
			    "nodes of BEOWIRE_MEMORY (vm.nr_hugepages); %s",
			    bw_setting("BEOWIRE_HUGE_PAGES"), ep->home.areas.huge >> 10,
			    ep->home.areas.pages == BW_AREA_TRANSPARENT
				    ? "transparent ones are asked for"
				    : "pages are of the common size");
	bw_log(BW_LOG_INFO, "memory: %s", bw_home_tell(&ep->home, text));
}

static int bw_ep_setup(struct bw_ep *ep, const struct bw_ep_attr *attr, const char *interface,
		       const char **why)
{
	int error = bw_env_read(&ep->env, why);

	if (interface) {
		ep->env.interface = interface;
		ep->env.interfaces = NULL;
	}
	if (!error)
		error = bw_ep_open_key(ep, why);
	if (!error)
		error = bw_ep_open_kernel(ep, why);
	if (!error)
		error = bw_ep_open_identity(ep, why);
	if (!error && bw_remote_init(&ep->remotes, &ep->secret))
		error = bw_fail(why, -ENOMEM, "out of memory");
	if (!error)
		error = bw_ep_open_links(ep, why);
	if (!error)
		error = bw_ep_open_engine(ep, why);
	bw_home_leave(&ep->home);
	if (error)
		return error;
	bw_ep_tell_home(ep);
	ep->eager_max = ep->env.eager_max ? ep->env.eager_max : BW_EP_EAGER;
	ep->ahead_max = ep->env.eager_max ? 0 : BW_LONG_LIMIT;
	ep->eager_least = (uint32_t)bw_min_u64(ep->eager_max, BW_EAGER_LEAST);
	ep->chores_at = ep->now;
	return bw_ep_open_waiting(ep, attr, why);
}

int bw_ep_open_by(struct bw_ep **out, const struct bw_ep_attr *attr, const char *interface,
		  const char **why)
{
	struct bw_ep *ep;
	int error;

	bw_fail(why, 0, "no error");
	if (!attr || !attr->handlers || !attr->handlers->message || !attr->handlers->sent ||
	    !attr->handlers->pulled || !attr->handlers->peer_down)
		return bw_fail(why, -EINVAL, "a handler is missing");
	ep = aligned_alloc(64, (sizeof(*ep) + 63) & ~(size_t)63);
	if (!ep)
		return bw_fail(why, -ENOMEM, "out of memory");
	memset(ep, 0, sizeof(*ep));
	ep->handlers = attr->handlers;
	ep->arg = attr->arg;
	ep->now = bw_clock_now();
	ep->deadline = ep->links_at = BW_NEVER;
	ep->board.fd = -1;
	ep->board.at = BW_NEVER;
	ep->claim = ep->number = ep->wake_fd = ep->epoll_fd = ep->helper.fd = -1;
	atomic_store(&ep->poll_fd, -1);
	ep->memory.use = BW_BUFFER_MEMORY;
	ep->buffers.areas = &ep->home.areas;
	bw_watch_init(&ep->watch);
	ep->dead = true;
	bw_lock_take(&ep->lock);
	bw_process_add(ep);
	error = bw_ep_setup(ep, attr, interface, why);
	if (error) {
		bw_ep_free(ep);
		return error;
	}
	ep->serial = bw_process_serial();
	bw_board_open(ep);
	ep->dead = false;
	bw_lock_release(&ep->lock);
	*out = ep;
	return 0;
}

int bw_ep_open(struct bw_ep **out, const struct bw_ep_attr *attr, const char **why)
{
	return bw_ep_open_by(out, attr, NULL, why);
}
