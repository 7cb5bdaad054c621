/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * This host: interfaces with what the kernel knows of them, links tried one by one, cores granted,
 * settings.
 */
#include "info.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "checksum.h"
#include "crowd.h"
#include "ep.h"
#include "keyed.h"
#include "setting.h"

extern char **environ;

/* ---- interfaces ---- */

static int ethtool(int fd, const char *name, void *command)
{
	struct ifreq request = {.ifr_data = command};

	memcpy(request.ifr_name, name, sizeof(request.ifr_name));
	return ioctl(fd, SIOCETHTOOL, &request);
}

static void driver_ask(int fd, struct info_interface *x)
{
	struct ethtool_cmd speed = {.cmd = ETHTOOL_GSET};
	struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
	uint32_t mbit;

	x->speed = -1;
	if (ethtool(fd, x->iface.name, &speed) == 0) {
		mbit = ethtool_cmd_speed(&speed);
		if (mbit != 0 && mbit != (uint32_t)SPEED_UNKNOWN && mbit != UINT16_MAX)
			x->speed = mbit;
	}
	if (ethtool(fd, x->iface.name, &driver) == 0)
		memcpy(x->driver, driver.driver, sizeof(x->driver) - 1);
}

static unsigned int prefix_length(const struct sockaddr *mask)
{
	const uint8_t *bytes = (const uint8_t *)&((const struct sockaddr_in *)mask)->sin_addr;
	size_t n = 4;
	unsigned int bits = 0;

	if (mask->sa_family == AF_INET6) {
		bytes = ((const struct sockaddr_in6 *)mask)->sin6_addr.s6_addr;
		n = 16;
	}
	for (size_t i = 0; i < n; i++)
		bits += (unsigned int)__builtin_popcount(bytes[i]);
	return bits;
}

static void address_add(struct info_interface *x, const struct ifaddrs *a)
{
	char text[INET6_ADDRSTRLEN];
	const void *bytes = &((const struct sockaddr_in *)a->ifa_addr)->sin_addr;

	if (a->ifa_addr->sa_family == AF_INET6)
		bytes = &((const struct sockaddr_in6 *)a->ifa_addr)->sin6_addr;
	if (x->addresses == INFO_ADDRESSES || !a->ifa_netmask ||
	    !inet_ntop(a->ifa_addr->sa_family, bytes, text, sizeof(text)))
		return;
	snprintf(x->address[x->addresses++], sizeof(x->address[0]), "%s/%u", text,
		 prefix_length(a->ifa_netmask));
}

static void addresses_find(struct info *info)
{
	struct ifaddrs *list;

	if (getifaddrs(&list) < 0)
		return;
	for (const struct ifaddrs *a = list; a; a = a->ifa_next)
		for (int i = 0; i < info->interfaces; i++)
			if (a->ifa_addr &&
			    (a->ifa_addr->sa_family == AF_INET ||
			     a->ifa_addr->sa_family == AF_INET6) &&
			    strcmp(a->ifa_name, info->interface[i].iface.name) == 0)
				address_add(&info->interface[i], a);
	freeifaddrs(list);
}

static int interfaces_find(struct info *info, const struct bw_env *env)
{
	struct bw_iface list[BW_IFACE_MAX], chosen[BW_PACKET_LINKS];
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const char *why = "";
	int n;

	info->interfaces = bw_iface_list(list);
	if (info->interfaces < 0)
		return info_fail("cannot list the network interfaces: %s",
				 strerror(-info->interfaces));
	n = bw_iface_choose_all(env, chosen, BW_PACKET_LINKS, &why);
	if (n < 0)
		snprintf(info->interface_why, sizeof(info->interface_why), "%s", why);
	for (int i = 0; i < info->interfaces; i++) {
		info->interface[i].iface = list[i];
		for (int k = 0; k < n; k++)
			info->interface[i].chosen |= chosen[k].index == list[i].index;
		if (fd >= 0)
			driver_ask(fd, &info->interface[i]);
	}
	if (fd >= 0)
		close(fd);
	addresses_find(info);
	return 0;
}

/* ---- links ---- */

static void no_message(void *arg, const struct bw_message *m)
{
}

static void no_end(void *arg, void *op, int status)
{
}

static void no_pull(void *arg, void *op, int status, uint64_t len)
{
}

static void no_down(void *arg, bw_peer_no peer, int status)
{
}

static void link_describe(struct info_link *x, const struct bw_ep *ep, enum bw_env_link link)
{
	char ip[BW_NAME_TEXT];

	if (link == BW_LINK_LOCAL) {
		snprintf(x->why, sizeof(x->why), "shared memory between processes of this node");
	} else if (link == BW_LINK_KERNEL) {
		x->frame_bytes = ep->self.packet_mtu;
		snprintf(x->why, sizeof(x->why), "port %u of the kernel module, on %s",
			 ep->self.engine, bw_kernel_interface(ep->kernel));
	} else if (link == BW_LINK_PACKET) {
		x->frame_bytes = ep->packet[0].mtu;
		snprintf(x->why, sizeof(x->why), "frames of EtherType %04X on %s%s",
			 ep->env.ethertype, ep->packet[0].name,
			 ep->packet[0].service ? ", by the service beowired" : "");
	} else {
		x->frame_bytes = ep->udp.mtu;
		snprintf(x->why, sizeof(x->why), "from %s, ports %u to %u",
			 bw_name_print(&ep->udp.name, ip), ep->env.udp_lo, ep->env.udp_hi);
	}
}

static const struct bw_ep_attr attr = {
	.handlers = &(const struct bw_handlers){.message = no_message,
						.sent = no_end,
						.pulled = no_pull,
						.peer_down = no_down},
	.no_helper = true,
};

/* Open an endpoint that may use this link only, and close it. */
static void link_try(struct info_link *x, const struct bw_env *env, enum bw_env_link link)
{
	const char *setting = getenv("BEOWIRE_LINKS"), *allowed = bw_setting("BEOWIRE_LINKS");
	char *before = setting ? strdup(setting) : NULL;
	struct bw_ep *ep;
	const char *why;

	if (!(env->links & (unsigned int)link)) {
		snprintf(x->why, sizeof(x->why), "BEOWIRE_LINKS=%s does not allow it",
			 allowed ? allowed : "");
		free(before);
		return;
	}
	setenv("BEOWIRE_LINKS", x->name, 1);
	if (bw_ep_open(&ep, &attr, &why) < 0) {
		snprintf(x->why, sizeof(x->why), "%s", why);
	} else {
		x->usable = true;
		link_describe(x, ep, link);
		bw_ep_close(ep, 0);
	}
	if (before)
		setenv("BEOWIRE_LINKS", before, 1);
	else
		unsetenv("BEOWIRE_LINKS");
	free(before);
}

int info_check(void)
{
	struct bw_ep *ep;
	const char *why;

	setenv("BEOWIRE_STATS", "", 1);
	if (bw_ep_open(&ep, &attr, &why) < 0)
		return info_fail("%s", why);
	bw_ep_close(ep, 0);
	return 0;
}

static void links_find(struct info *info, const struct bw_env *env)
{
	static const struct {
		const char *name;
		enum bw_env_link link;
	} links[INFO_LINKS] = {{"local", BW_LINK_LOCAL},
			       {"kernel", BW_LINK_KERNEL},
			       {"packet", BW_LINK_PACKET},
			       {"udp", BW_LINK_UDP}};

	char text[BW_HOME_TEXT];
	struct bw_ep *ep;
	const char *why;

	/* A trial is no endpoint whose counters anybody wants. */
	setenv("BEOWIRE_STATS", "", 1);
	for (int i = 0; i < INFO_LINKS; i++) {
		info->link[i].name = links[i].name;
		link_try(&info->link[i], env, links[i].link);
	}
	/* And one as a program would open it. */
	if (bw_ep_open(&ep, &attr, &why) < 0)
		snprintf(info->trouble, sizeof(info->trouble), "%s", why);
	else {
		snprintf(info->memory, sizeof(info->memory), "%s", bw_home_tell(&ep->home, text));
		info->key_given = ep->key_given;
		info->keyed = ep->keyed;
		info->encrypted = ep->env.encrypt;
		bw_ep_close(ep, 0);
	}
}

/* ---- the rest ---- */

static void cores_find(struct info *info)
{
	struct bw_crowd crowd;
	cpu_set_t set;
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	info->cores_online = online > 0 ? (unsigned int)online : 1;
	info->cores_allowed = info->cores_online;
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		info->cores_allowed = (unsigned int)CPU_COUNT(&set);
	bw_crowd_init(&crowd, bw_clock_now());
	info->cores_granted = bw_crowd_cores(&crowd);
}

static void setting_add(struct info *info, const char *name, size_t len,
			const struct bw_setting *from)
{
	struct info_setting *x = &info->setting[info->settings];

	if (info->settings == INFO_VARIABLES || len >= sizeof(x->name))
		return;
	info->settings++;
	memcpy(x->name, name, len);
	snprintf(x->value, sizeof(x->value), "%s", from->value);
	x->path = from->path;
	x->line = from->line;
}

/* What the environment has, and what files have that it does not overrule. */
static void settings_find(struct info *info)
{
	for (char **at = environ; *at; at++) {
		const char *equals = strchr(*at, '=');

		if (strncmp(*at, "BEOWIRE_", 8) == 0 && equals)
			setting_add(info, *at, (size_t)(equals - *at),
				    &(struct bw_setting){.value = equals + 1});
	}
	for (int i = 0; bw_settings_names[i]; i++) {
		struct bw_setting found = bw_setting_find(bw_settings_names[i]);

		if (found.value && found.path)
			setting_add(info, bw_settings_names[i], strlen(bw_settings_names[i]),
				    &found);
	}
}

int info_host(struct info *info)
{
	struct utsname kernel;
	struct bw_env env;
	const char *why = "";

	if (bw_env_read(&env, &why) < 0)
		return info_fail("%s", why);
	gethostname(info->host, sizeof(info->host) - 1);
	if (uname(&kernel) == 0)
		memcpy(info->kernel, kernel.release, sizeof(info->kernel) - 1);
	info->version = INFO_VERSION;
	info->checksum = bw_checksum_name();
	info->sodium = bw_keyed_version();
	info->keyed = env.key;
	info->encrypted = env.encrypt;
	settings_find(info);
	cores_find(info);
	info->cma = bw_local_cma_check(&info->cma_why) == 0;
	if (interfaces_find(info, &env) < 0)
		return -1;
	links_find(info, &env);
	return 0;
}
