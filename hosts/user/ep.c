/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints: opening (which links are to be had, and what to say of those that are not), one round
 * of progress, and closing. An empty round costs one look at the ring and one at the local link;
 * the clock is read every few rounds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "claim.h"
#include "ep.h"

#define BW_EP_BATCH	 64    /* frames taken from one link per round */
#define BW_EP_CROWDED	 8     /* frames per look at how full the ring is */
#define BW_EP_CLOCK	 8     /* empty rounds per reading of the clock */
#define BW_EP_EAGER	 65536 /* bytes; default of BEOWIRE_EAGER_MAX */
#define BW_EP_UDP_CHARGE 1024  /* bytes of socket buffer that the smallest datagram takes */
#define BW_EP_CHORES_NS	 (5 * BW_MS)
#define BW_EP_GROUP	 1 /* of links: interfaces carry long messages together */
#define BW_EP_LINE	 1 /* the one that raw frames and udp share */
/* Bytes of socket buffer with which udp may carry long messages where raw frames pass, too. */
#define BW_EP_CARRY_BUDGET (512u << 10)
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

/* What an error says to people, with its mend where it is a limit of the process. */
static const char *bw_ep_reason(int error)
{
	switch (error) {
	case -EMFILE:
		return "too many open files; mend: a higher limit (ulimit -n)";
	case -ENFILE:
		return "too many open files on this node; mend: a higher fs.file-max";
	case -EAGAIN:
	case -ENOMEM:
		return "out of memory or threads; mend: higher limits (ulimit -v, -u, -l)";
	default:
		return strerror(-error);
	}
}

static bool bw_ep_only(const struct bw_env *env, enum bw_env_link link)
{
	return env->links == (unsigned int)link;
}

static void bw_ep_close_packets(struct bw_ep *ep)
{
	while (ep->packets)
		bw_packet_close(&ep->packet[--ep->packets]);
	ep->has_packet = false;
}

/* Raw frames by one more interface. */
static int bw_ep_add_packet(struct bw_ep *ep, const struct bw_iface *iface, const char **why)
{
	int n = ep->packets, error;

	error = bw_packet_open(&ep->packet[n], &ep->env, iface, ep->self.engine,
			       (uint8_t)(BW_LINK_NO_PACKET + n), why);
	if (error)
		return error;
	ep->packets++;
	if (n) {
		memcpy(ep->self.more_mac[n - 1], iface->mac, 6);
		ep->self.more_macs = (uint8_t)n;
	} else {
		ep->iface = *iface;
		memcpy(ep->self.mac, iface->mac, 6);
	}
	return 0;
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
	n = bw_iface_choose_all(&ep->env, iface, BW_PACKET_LINKS, &text);
	error = n < 0 ? n : 0;
	if (error &&
	    (ep->env.interface || ep->env.interfaces || bw_ep_only(&ep->env, BW_LINK_PACKET)))
		return bw_fail(why, error, "%s", text);
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
	ep->self.packet_mtu = ep->packet[0].mtu;
	return 0;
}

static int bw_ep_open_udp(struct bw_ep *ep, const char **why)
{
	const char *text = "";
	struct bw_iface iface;
	int error;

	if (!(ep->env.links & BW_LINK_UDP))
		return 0;
	error = bw_iface_choose_ip(&ep->env, ep->has_packet || ep->kernel ? &ep->iface : NULL,
				   &iface, &text);
	if (!error)
		error = bw_udp_open(&ep->udp, &ep->env, &iface, ep->self.engine, &text);
	if (error &&
	    (bw_ep_only(&ep->env, BW_LINK_UDP) || ep->env.udp_address.s_addr != INADDR_ANY ||
	     (error == -EADDRINUSE && !ep->has_packet && !ep->kernel)))
		return bw_fail(why, error, "%s", text);
	if (error) {
		bw_log_once(BW_LOG_INFO, "no-udp", "no udp: %s", text);
		return 0;
	}
	ep->has_udp = true;
	ep->self.links |= BW_LINK_UDP;
	ep->self.udp_port = ep->udp.port;
	ep->self.udp_mtu = ep->udp.mtu;
	memcpy(ep->self.ip, &ep->udp.address, 4);
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
		.handlers = &bw_message_local_handlers,
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
 * is allowed between nodes. */
static int bw_ep_open_kernel(struct bw_ep *ep, const char **why)
{
	const char *text = "";
	int error;

	if (!(ep->env.links & BW_LINK_KERNEL))
		return 0;
	error = bw_kernel_open(&ep->kernel, &ep->env, &ep->self, &ep->iface, &text);
	if (error && !(ep->env.links & (BW_LINK_PACKET | BW_LINK_UDP)))
		return bw_fail(why, error, "%s", text);
	/* That a module is not loaded is nothing to tell of. */
	if (error && bw_kernel_node())
		bw_log_once(BW_LOG_INFO, "no-kernel", "no kernel link: %s", text);
	return 0;
}

static int bw_ep_open_links(struct bw_ep *ep, const char **why)
{
	int error = ep->kernel ? 0 : bw_ep_open_packet(ep, why);

	if (!error)
		error = bw_ep_open_udp(ep, why);
	if (!error && (ep->env.links & BW_LINK_LOCAL))
		error = bw_ep_open_local(ep, ep->claim, why);
	if (error)
		return error;
	if (!ep->self.links)
		return bw_fail(why, -ENODEV,
			       "none of the links that BEOWIRE_LINKS allows can be used here; "
			       "BEOWIRE_LOG=info says why");
	return 0;
}

static int bw_ep_open_engine(struct bw_ep *ep, uint64_t secret, const char **why)
{
	struct bw_config cfg = {
		.node = ep->self.node,
		.secret = secret,
		.incarnation = ep->self.inc,
		.cluster = ep->self.cluster,
		.engine = ep->self.engine,
		.features = ep->env.checksum ? BW_FEATURE_CHECKSUM : 0,
		.dead_ns = ep->env.dead_ns,
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
	ep->engine = aligned_alloc(64, (bw_reliable.size(&cfg) + 63) & ~(size_t)63);
	if (!ep->engine)
		return bw_fail(why, -ENOMEM, "out of memory");
	error = bw_reliable.open(ep->engine, &cfg, &bw_host_ops, ep, ep->now);
	if (error)
		return bw_fail(why, error, "cannot start the protocol engine: %s",
			       strerror(-error));
	return 0;
}

static int bw_ep_open_identity(struct bw_ep *ep, uint64_t *secret, const char **why)
{
	struct {
		uint64_t secret;
		uint32_t inc, number;
	} random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return bw_fail(why, -EIO, "cannot get random numbers: %s", strerror(errno));
	gethostname(ep->host, sizeof(ep->host) - 1);
	*secret = random.secret;
	ep->self.cluster = ep->env.cluster;
	if (ep->kernel) { /* it is who its port is */
		ep->claim = bw_local_claim(ep->self.engine);
	} else {
		ep->self.inc = random.inc ? random.inc : 1;
		ep->self.node = bw_ep_node(&ep->env, ep->host);
		ep->claim = bw_claim_engine(random.number, &ep->self.engine);
	}
	if (ep->claim == -EADDRINUSE)
		return bw_fail(why, -EADDRINUSE, "all 32768 engine numbers of this node are taken");
	if (ep->claim < 0)
		return bw_fail(why, ep->claim, "cannot claim an engine number: %s",
			       bw_ep_reason(ep->claim));
	return 0;
}

static int bw_ep_open_waiting(struct bw_ep *ep, const struct bw_ep_attr *attr, const char **why)
{
	int error;

	bw_crowd_init(&ep->crowd, ep->now);
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

static void bw_ep_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* All descriptors but those of the packet, the local and the kernel link. */
static void bw_ep_close_fds(struct bw_ep *ep)
{
	int poll_fd = atomic_exchange(&ep->poll_fd, -1);

	if (ep->has_udp)
		bw_udp_close(&ep->udp);
	ep->has_udp = false;
	bw_watch_close(&ep->watch);
	bw_ep_close_fd(&ep->claim);
	bw_ep_close_fd(&ep->wake_fd);
	bw_ep_close_fd(&poll_fd);
	bw_ep_close_fd(&ep->epoll_fd);
	bw_ep_close_fd(&ep->helper.fd);
}

/* Give up the packet sockets, and the memory. Lock held. */
static void bw_ep_end(struct bw_ep *ep)
{
	bw_ep_close_packets(ep);
	/* fork() gets the lock between, and finds nothing to close. */
	bw_lock_release(&ep->lock);
	bw_process_remove(ep);
	free(ep->engine);
	while (ep->grown) {
		void *next = *(void **)ep->grown;

		free(ep->grown);
		ep->grown = next;
	}
	bw_copies_free_all(ep);
	bw_buffer_free_all(&ep->buffers);
	bw_remote_free_all(&ep->remotes);
	free(ep);
}

static void *bw_ep_end_later(void *arg)
{
	struct bw_ep *ep = arg;

	bw_lock_take(&ep->lock);
	bw_ep_end(ep);
	return NULL;
}

/* Give up everything but the engine's farewell. Lock held; it is dead, and nobody waits in it. The
 * kernel closes a packet socket in two RCU grace periods, 15 to 30 ms, for which no program has to
 * wait: a thread does. fork() waits for that thread, as for any that holds the lock. */
static void bw_ep_free(struct bw_ep *ep)
{
	if (ep->local)
		bw_local_close(ep->local);
	ep->local = NULL;
	if (ep->kernel)
		bw_kernel_close(ep->kernel);
	ep->kernel = NULL;
	bw_ep_close_fds(ep);
	if (!ep->packets || !ep->helper.wanted) {
		bw_ep_end(ep);
		return;
	}
	bw_lock_release(&ep->lock);
	if (bw_helper_spawn(bw_ep_end_later, ep))
		bw_ep_end_later(ep);
}

static int bw_ep_setup(struct bw_ep *ep, const struct bw_ep_attr *attr, const char **why)
{
	uint64_t secret = 0;
	int error = bw_env_read(&ep->env, why);

	if (!error)
		error = bw_ep_open_kernel(ep, why);
	if (!error)
		error = bw_ep_open_identity(ep, &secret, why);
	if (!error && bw_remote_init(&ep->remotes))
		error = bw_fail(why, -ENOMEM, "out of memory");
	if (!error)
		error = bw_ep_open_links(ep, why);
	if (!error)
		error = bw_ep_open_engine(ep, secret, why);
	if (error)
		return error;
	ep->eager_max = ep->env.eager_max ? ep->env.eager_max : BW_EP_EAGER;
	ep->eager_least = (uint32_t)bw_min_u64(ep->eager_max, BW_EAGER_LEAST);
	ep->chores_at = ep->has_packet ? ep->now : BW_NEVER;
	return bw_ep_open_waiting(ep, attr, why);
}

int bw_ep_open(struct bw_ep **out, const struct bw_ep_attr *attr, const char **why)
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
	ep->claim = ep->wake_fd = ep->poll_fd = ep->epoll_fd = ep->helper.fd = -1;
	ep->memory.use = BW_BUFFER_MEMORY;
	bw_watch_init(&ep->watch);
	ep->dead = true;
	bw_lock_take(&ep->lock);
	bw_process_add(ep);
	error = bw_ep_setup(ep, attr, why);
	if (error) {
		bw_ep_free(ep);
		return error;
	}
	ep->serial = bw_process_serial();
	ep->dead = false;
	bw_lock_release(&ep->lock);
	*out = ep;
	return 0;
}

static bool bw_ep_busy(struct bw_ep *ep)
{
	return ep->stuck || bw_reliable.busy(ep->engine) ||
	       (ep->local && bw_local_busy(ep->local)) ||
	       (ep->kernel && bw_kernel_under_way(ep->kernel));
}

/* What the kernel has no room for now is not worth waiting for; what the engine says again is, as
 * it comes within a millisecond. */
void bw_ep_farewell(struct bw_ep *ep)
{
	uint64_t at;

	ep->now = bw_clock_now();
	ep->dead = true;
	bw_reliable.close(ep->engine, ep->now);
	bw_host_transmit(ep);
	while (!ep->stuck && (at = bw_reliable.next_deadline(ep->engine)) != BW_NEVER) {
		bw_clock_sleep(at);
		ep->now = bw_clock_now();
		bw_host_transmit(ep);
	}
}

void bw_ep_close(struct bw_ep *ep, uint64_t timeout_ns)
{
	uint64_t began = bw_clock_now(), now = began;

	bw_lock_take(&ep->lock);
	while (!ep->dead && bw_ep_busy(ep) && now - began < timeout_ns) {
		bw_wait(ep, timeout_ns - (now - began));
		now = bw_clock_now();
	}
	bw_lock_release(&ep->lock);
	bw_helper_stop(ep);
	bw_lock_take(&ep->lock);
	if (!ep->dead) {
		bw_ep_farewell(ep);
		bw_stats_write(ep); /* the farewell counts too */
	}
	bw_wait_end_all(ep);
	bw_ep_free(ep);
}

void bw_ep_abandon(struct bw_ep *ep)
{
	memset(&ep->lock, 0, sizeof(ep->lock));
	ep->dead = ep->inherited = true;
	ep->helper.running = false;
	bw_ep_close_packets(ep);
	bw_ep_close_fds(ep);
	if (ep->local)
		bw_local_abandon(ep->local);
	if (ep->kernel)
		bw_kernel_close(ep->kernel);
	ep->local = NULL;
	ep->kernel = NULL;
}

/* A child of fork() tries to use its parent's endpoint. */
static void bw_ep_complain(const struct bw_ep *ep)
{
	bw_log_once(BW_LOG_ERROR, "inherited",
		    "process %d uses an endpoint that it inherited by fork(); only the process "
		    "that opened it can: mend: open one after fork(), or start the child by exec",
		    (int)getpid());
}

void bw_ep_addr(struct bw_ep *ep, struct bw_addr *addr)
{
	struct bw_addr_fields self = ep->self;

	bw_addr_pack(&self, addr);
}

void bw_ep_lock(struct bw_ep *ep)
{
	bw_lock_take(&ep->lock);
}

void bw_ep_unlock(struct bw_ep *ep)
{
	bw_lock_release(&ep->lock);
}

/* The filter passes other frames only to the endpoint that keeps the watch. */
static bool bw_ep_ours(const struct bw_ep *ep, const struct bw_rx_frame *f)
{
	const struct bw_hdr *h = f->head;

	return f->len >= sizeof(*h) && h->dst_engine == ep->self.engine && h->magic == BW_MAGIC;
}

static void bw_ep_receive_packet(struct bw_ep *ep, struct bw_packet *p)
{
	struct bw_rx_frame f;
	int n = 0;

	bw_packet_prefetch(p);
	ep->now = bw_clock_now();
	f.mark = false;
	do {
		/* A look far ahead in the ring misses every cache: only after some frames. */
		if (n % BW_EP_CROWDED == BW_EP_CROWDED - 1)
			f.mark = bw_packet_crowded(p);
		bw_packet_frame(p, &f);
		if (BW_LIKELY(bw_ep_ours(ep, &f)))
			bw_host_receive(ep, &f);
		else
			bw_watch_frame(ep, &f);
		bw_packet_release(p);
	} while (++n < BW_EP_BATCH && bw_packet_ready(p));
	ep->handled += (unsigned int)n;
}

static void bw_ep_receive_refusals(struct bw_ep *ep)
{
	struct bw_refuse_frame refusal;
	struct bw_rx_frame f;

	while (bw_udp_refusal(&ep->udp, ep->self.cluster, &refusal, &f)) {
		bw_host_receive(ep, &f);
		ep->handled++;
	}
}

static void bw_ep_receive_udp(struct bw_ep *ep)
{
	struct bw_rx_frame f;
	int n, all = 0;

	do {
		n = bw_udp_receive(&ep->udp);
		if (n)
			ep->now = bw_clock_now();
		if (n < 0)
			bw_ep_receive_refusals(ep);
		while (bw_udp_frame(&ep->udp, &f)) {
			if (!ep->kernel || bw_kernel_admits(ep, &f))
				bw_host_receive(ep, &f);
			ep->handled++;
			ep->udp_hot = BW_UDP_HOT;
			all++;
		}
	} while (n == BW_UDP_FRAMES && all < BW_EP_BATCH);
}

/* Looking at the udp socket costs a system call: often only while datagrams come. */
static bool bw_ep_udp_due(struct bw_ep *ep)
{
	if (ep->udp_hot || ep->udp.batch->refused) {
		ep->udp_hot -= ep->udp_hot != 0;
		return true;
	}
	if (ep->now - ep->udp_seen < BW_UDP_PAUSE_NS && (ep->has_packet || ep->kernel))
		return false;
	ep->udp_seen = ep->now;
	return true;
}

/* What is not urgent: the watch, interfaces that went down, and links that should pass but do not.
 */
static void bw_ep_chores(struct bw_ep *ep)
{
	ep->chores_at = ep->now + BW_EP_CHORES_NS;
	for (int i = 0; i < ep->packets; i++)
		bw_packet_clear_error(&ep->packet[i]);
	bw_watch_visit(ep);
	bw_remote_check_links(ep);
}

/* Events that came of no frame. Once they are taken the engine may want something else. */
static void bw_ep_events(struct bw_ep *ep)
{
	bw_host_events(ep);
	ep->given = true;
}

int bw_ep_round(struct bw_ep *ep)
{
	uint64_t before = ep->handled;

	if (BW_UNLIKELY(ep->helper.asleep))
		bw_helper_rouse(ep);
	for (int i = 0; i < ep->packets; i++) {
		if (bw_packet_ready(&ep->packet[i]))
			bw_ep_receive_packet(ep, &ep->packet[i]);
	}
	if (ep->has_udp && bw_ep_udp_due(ep))
		bw_ep_receive_udp(ep);
	if (ep->kernel)
		ep->handled += (unsigned int)bw_kernel_poll(ep);
	if (ep->local)
		ep->handled += (unsigned int)bw_local_poll(ep->local, ep->now, false);
	if (ep->handled != before) {
		ep->idle = ep->idle_timed = 0;
	} else if (++ep->idle - ep->idle_timed >= BW_EP_CLOCK) {
		ep->idle_timed = ep->idle;
		ep->now = bw_clock_now();
	}
	if (ep->given || ep->now >= ep->deadline)
		bw_host_transmit(ep);
	if (ep->now >= ep->chores_at)
		bw_ep_chores(ep);
	if (ep->dirty)
		bw_ep_events(ep);
	return (int)(ep->handled - before);
}

/* Would a round that follows this turn of the lock, which ends now, do nothing unless a frame comes
 * by a ring? */
static bool bw_ep_rests(struct bw_ep *ep, uint32_t turn)
{
	return ep->packets && bw_lock_turn(&ep->lock) == turn && ep->lock.depth == 1 &&
	       !ep->kernel && !ep->stuck && !ep->given && !ep->dirty &&
	       !(ep->has_udp && (ep->udp_hot || ep->udp.batch->refused)) &&
	       !(ep->local && bw_local_peers(ep->local));
}

int bw_progress(struct bw_ep *ep)
{
	uint32_t turn;
	int n = 0;

	if (bw_look_empty(&ep->look, &ep->lock, ep->packets))
		return 0;
	bw_lock_take(&ep->lock);
	turn = bw_lock_turn(&ep->lock);
	if (!ep->dead && !ep->dispatching) {
		ep->rounds++;
		ep->armed = false;
		ep->idle += bw_look_made(&ep->look);
		n = bw_ep_round(ep);
		if (!n && bw_wait_yield(ep))
			n = bw_ep_round(ep);
		if (!n && bw_ep_rests(ep, turn))
			bw_look_allow(&ep->look, &ep->lock, ep->packet, ep->packets);
		if (n && atomic_load_explicit(&ep->sleepers, memory_order_relaxed))
			bw_ep_wake(ep);
	} else if (ep->inherited) {
		bw_ep_complain(ep);
	}
	bw_lock_release(&ep->lock);
	return n;
}
