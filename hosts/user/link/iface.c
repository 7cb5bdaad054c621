/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The choice of the interface. Without BEOWIRE_INTERFACE every node must come to the same answer
 * by itself: a cluster's own network (a private subnet) first, then the way to the default gateway.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <net/if_arp.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "link/iface.h"
#include "service.h"

/* The driver's carrier (linux/if.h, which does not go with net/if.h). IFF_RUNNING follows up to a
 * second later: interfaces that came up shortly before are in use already (Linux,
 * Documentation/networking/operstates.rst). */
#define BW_IFF_LOWER_UP (1u << 16)

/* What an interface is chosen for. */
enum bw_iface_need { BW_IFACE_ETHERNET, BW_IFACE_IPV4, BW_IFACE_IPV6 };

static struct bw_iface *bw_iface_named(struct bw_iface *iface, int *n, const char *name)
{
	for (int i = 0; i < *n; i++) {
		if (!strcmp(iface[i].name, name))
			return &iface[i];
	}
	/* beowired's own are nobody else's. */
	if (*n == BW_IFACE_MAX || !strncmp(name, BW_SERVICE_DEVICE, strlen(BW_SERVICE_DEVICE)))
		return NULL;
	struct bw_iface *new = &iface[(*n)++];

	memset(new, 0, sizeof(*new));
	snprintf(new->name, sizeof(new->name), "%s", name);
	return new;
}

static void bw_iface_fill(struct bw_iface *iface, const struct ifaddrs *a)
{
	const struct sockaddr_ll *ll = (const struct sockaddr_ll *)a->ifa_addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)a->ifa_addr;

	iface->up = a->ifa_flags & IFF_UP;
	iface->carrier = a->ifa_flags & BW_IFF_LOWER_UP;
	iface->loopback = a->ifa_flags & IFF_LOOPBACK;
	if (a->ifa_addr && a->ifa_addr->sa_family == AF_PACKET) {
		iface->index = ll->sll_ifindex;
		iface->ethernet = ll->sll_hatype == ARPHRD_ETHER && ll->sll_halen == 6;
		memcpy(iface->mac, ll->sll_addr, 6);
	}
	if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET &&
	    iface->address.s_addr == INADDR_ANY) {
		iface->address = in->sin_addr;
		if (a->ifa_netmask)
			iface->mask = ((const struct sockaddr_in *)a->ifa_netmask)->sin_addr;
	}
}

static void bw_iface_mtus(struct bw_iface *iface, int n)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (int i = 0; i < n && fd >= 0; i++) {
		struct ifreq request = {0};

		memcpy(request.ifr_name, iface[i].name, sizeof(request.ifr_name));
		if (ioctl(fd, SIOCGIFMTU, &request) == 0)
			iface[i].mtu = (uint32_t)request.ifr_mtu;
	}
	if (fd >= 0)
		close(fd);
}

/* The default route: destination and mask 0 in the kernel's table. */
static void bw_iface_gateway(struct bw_iface *iface, int n)
{
	FILE *f = fopen("/proc/self/net/route", "re");
	char line[256], name[32];
	unsigned int destination, mask;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%31s %x %*x %*x %*d %*d %*d %x", name, &destination, &mask) !=
			    3 ||
		    destination || mask)
			continue;
		for (int i = 0; i < n; i++)
			iface[i].gateway |= !strcmp(iface[i].name, name);
	}
	if (f)
		fclose(f);
}

/* The next line of the kernel's table of IPv6 addresses. */
static bool bw_iface_six_line(FILE *f, struct in6_addr *address, int *index, unsigned int *scope,
			      unsigned int *flags)
{
	char line[128], hex[33];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%32[0-9a-f] %x %*x %x %x", hex, (unsigned int *)index, scope,
			   flags) != 4 ||
		    strlen(hex) != 32)
			continue;
		for (int i = 0; i < 16; i++)
			sscanf(hex + 2 * i, "%2hhx", &address->s6_addr[i]);
		return true;
	}
	return false;
}

/* How good an address is: one that is to last, better than a temporary one (RFC 8981) or one that
 * is to go. 0: not to be used, being of one link or node only, or not known to be unique. */
static int bw_iface_six_rank(unsigned int scope, unsigned int flags)
{
	if (scope || (flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)))
		return 0;
	return flags & IFA_F_DEPRECATED ? 1 : flags & IFA_F_TEMPORARY ? 2 : 3;
}

static void bw_iface_sixes(struct bw_iface *iface, int n)
{
	FILE *f = fopen("/proc/self/net/if_inet6", "re");
	int best[BW_IFACE_MAX] = {0}, index, rank;
	struct in6_addr address;
	unsigned int scope, flags;

	while (bw_iface_six_line(f, &address, &index, &scope, &flags)) {
		rank = bw_iface_six_rank(scope, flags);
		for (int i = 0; i < n; i++) {
			if (iface[i].index != index || rank <= best[i])
				continue;
			best[i] = rank;
			iface[i].address6 = address;
		}
	}
	if (f)
		fclose(f);
}

/* The number of the interface that has this address, 0 if none has. */
static int bw_iface_of_six(const union bw_name *name)
{
	FILE *f = fopen("/proc/self/net/if_inet6", "re");
	int index, found = 0, scoped = (int)name->in6.sin6_scope_id;
	struct in6_addr address;
	unsigned int scope, flags;

	while (!found && bw_iface_six_line(f, &address, &index, &scope, &flags)) {
		if (IN6_ARE_ADDR_EQUAL(&address, &name->in6.sin6_addr) &&
		    (!scoped || scoped == index))
			found = index;
	}
	if (f)
		fclose(f);
	return found;
}

int bw_iface_list(struct bw_iface iface[BW_IFACE_MAX])
{
	struct ifaddrs *all, *a;
	int n = 0;

	if (getifaddrs(&all))
		return -errno;
	for (a = all; a; a = a->ifa_next) {
		struct bw_iface *i = bw_iface_named(iface, &n, a->ifa_name);

		if (i)
			bw_iface_fill(i, a);
	}
	freeifaddrs(all);
	bw_iface_mtus(iface, n);
	bw_iface_gateway(iface, n);
	bw_iface_sixes(iface, n);
	return n;
}

static bool bw_iface_in_subnet(struct in_addr address, const char *subnet, size_t n)
{
	char text[32];
	struct in_addr network;
	unsigned int bits;
	char *slash;

	if (n >= sizeof(text) || address.s_addr == INADDR_ANY)
		return false;
	memcpy(text, subnet, n);
	text[n] = 0;
	slash = strchr(text, '/');
	if (!slash || sscanf(slash + 1, "%u", &bits) != 1 || bits > 32)
		return false;
	*slash = 0;
	if (inet_pton(AF_INET, text, &network) != 1)
		return false;
	uint32_t mask = bits ? htonl(UINT32_MAX << (32 - bits)) : 0;

	return (address.s_addr & mask) == (network.s_addr & mask);
}

static bool bw_iface_has_mac(const struct bw_iface *iface, const char *text, size_t n)
{
	char mac[18];

	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", iface->mac[0], iface->mac[1],
		 iface->mac[2], iface->mac[3], iface->mac[4], iface->mac[5]);
	return n == 17 && !strncasecmp(text, mac, n);
}

/* Does one entry of BEOWIRE_INTERFACE mean this interface? */
static bool bw_iface_meant(const struct bw_iface *iface, const char *entry, size_t n)
{
	return (strlen(iface->name) == n && !strncmp(iface->name, entry, n)) ||
	       bw_iface_has_mac(iface, entry, n) || bw_iface_in_subnet(iface->address, entry, n);
}

/* The first interface that the comma list names, in the list's order; NULL if none. */
static const struct bw_iface *bw_iface_listed(const struct bw_iface *iface, int n, const char *list)
{
	while (*list) {
		size_t len = strcspn(list, ",");

		for (int i = 0; i < n; i++) {
			if (bw_iface_meant(&iface[i], list, len))
				return &iface[i];
		}
		list += len + (list[len] == ',');
	}
	return NULL;
}

static bool bw_iface_private(struct in_addr address)
{
	return bw_iface_in_subnet(address, "10.0.0.0/8", 10) ||
	       bw_iface_in_subnet(address, "172.16.0.0/12", 13) ||
	       bw_iface_in_subnet(address, "192.168.0.0/16", 14);
}

static int bw_iface_score(const struct bw_iface *iface)
{
	return 1 + 8 * bw_iface_private(iface->address) + 4 * iface->gateway +
	       2 * (iface->address.s_addr != INADDR_ANY);
}

static bool bw_iface_fits(const struct bw_iface *iface, enum bw_iface_need need)
{
	if (need == BW_IFACE_IPV4)
		return iface->address.s_addr != INADDR_ANY;
	return need == BW_IFACE_IPV6 ? !IN6_IS_ADDR_UNSPECIFIED(&iface->address6) : iface->ethernet;
}

static const struct bw_iface *bw_iface_best(const struct bw_iface *iface, int n,
					    enum bw_iface_need need)
{
	const struct bw_iface *best = NULL;

	for (int i = 0; i < n; i++) {
		const struct bw_iface *c = &iface[i];

		if (!c->up || !c->carrier || c->loopback || !bw_iface_fits(c, need))
			continue;
		if (!best || bw_iface_score(c) > bw_iface_score(best) ||
		    (bw_iface_score(c) == bw_iface_score(best) && c->index < best->index))
			best = c;
	}
	return best;
}

/* "eth0 (02:..., 10.0.0.1, up), lo (...)": what a person can choose from. */
static const char *bw_iface_catalogue(const struct bw_iface *iface, int n)
{
	static _Thread_local char text[768];
	size_t used = 0;

	text[0] = 0;
	for (int i = 0; i < n && used < sizeof(text); i++) {
		char ip[INET6_ADDRSTRLEN] = "no IP";
		const uint8_t *m = iface[i].mac;

		if (iface[i].address.s_addr != INADDR_ANY)
			inet_ntop(AF_INET, &iface[i].address, ip, sizeof(ip));
		else if (bw_iface_fits(&iface[i], BW_IFACE_IPV6))
			inet_ntop(AF_INET6, &iface[i].address6, ip, sizeof(ip));
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s%s (%02x:%02x:%02x:%02x:%02x:%02x, %s, %s)",
					 i ? ", " : "", iface[i].name, m[0], m[1], m[2], m[3], m[4],
					 m[5], ip,
					 !iface[i].ethernet  ? "not Ethernet"
					 : !iface[i].up	     ? "down"
					 : !iface[i].carrier ? "no carrier"
							     : "up");
	}
	return n ? text : "none";
}

int bw_iface_choose(const struct bw_env *env, struct bw_iface *chosen, const char **why)
{
	struct bw_iface iface[BW_IFACE_MAX];
	int n = bw_iface_list(iface);
	const struct bw_iface *found;

	if (n < 0)
		return bw_fail(why, n, "cannot list the network interfaces: %s", strerror(-n));
	if (!env->interface) {
		found = bw_iface_best(iface, n, BW_IFACE_ETHERNET);
		if (!found)
			return bw_fail(why, -ENODEV,
				       "no Ethernet interface is up with a carrier; there are: %s",
				       bw_iface_catalogue(iface, n));
		*chosen = *found;
		return 0;
	}
	found = bw_iface_listed(iface, n, env->interface);
	if (!found)
		return bw_fail(why, -ENODEV,
			       "BEOWIRE_INTERFACE=%s: no such interface; there are: %s",
			       env->interface, bw_iface_catalogue(iface, n));
	if (!found->ethernet)
		return bw_fail(
			why, -ENODEV,
			"BEOWIRE_INTERFACE=%s: %s is not an Ethernet interface; there are: %s",
			env->interface, found->name, bw_iface_catalogue(iface, n));
	if (!found->up)
		return bw_fail(why, -ENODEV,
			       "BEOWIRE_INTERFACE=%s: %s is down; fix: ip link set %s up",
			       env->interface, found->name, found->name);
	*chosen = *found;
	return 0;
}

/* Is it one of these already? */
static bool bw_iface_taken(const struct bw_iface *chosen, int n, const struct bw_iface *iface)
{
	for (int i = 0; i < n; i++) {
		if (chosen[i].index == iface->index)
			return true;
	}
	return false;
}

int bw_iface_choose_all(const struct bw_env *env, struct bw_iface *chosen, int most,
			const char **why)
{
	struct bw_iface iface[BW_IFACE_MAX];
	const char *list = env->interfaces;
	int n, found = 0, error;

	if (!list) {
		error = bw_iface_choose(env, chosen, why);
		return error ? error : 1;
	}
	n = bw_iface_list(iface);
	if (n < 0)
		return bw_fail(why, n, "cannot list the network interfaces: %s", strerror(-n));
	while (*list && found < most) {
		size_t len = strcspn(list, ",");

		for (int i = 0; i < n && found < most; i++) {
			if (bw_iface_meant(&iface[i], list, len) && iface[i].ethernet &&
			    iface[i].up && !bw_iface_taken(chosen, found, &iface[i]))
				chosen[found++] = iface[i];
		}
		list += len + (list[len] == ',');
	}
	if (found)
		return found;
	return bw_fail(why, -ENODEV,
		       "BEOWIRE_INTERFACES=%s: none of these is an Ethernet interface that is up; "
		       "there are: %s",
		       env->interfaces, bw_iface_catalogue(iface, n));
}

/* The interface that has the address of BEOWIRE_UDP_ADDRESS, NULL if none has. Every address of a
 * loopback network is the node's own. */
static const struct bw_iface *bw_iface_of(const struct bw_iface *iface, int n,
					  const union bw_name *name)
{
	int index = name->any.sa_family == AF_INET6 ? bw_iface_of_six(name) : 0;

	for (int i = 0; i < n; i++) {
		uint32_t mask = iface[i].mask.s_addr, is = iface[i].address.s_addr;
		uint32_t wanted = name->in.sin_addr.s_addr;

		if (name->any.sa_family == AF_INET6
			    ? iface[i].index == index
			    : is == wanted ||
				      (iface[i].loopback && mask && (is & mask) == (wanted & mask)))
			return &iface[i];
	}
	return NULL;
}

/* The first choice of an interface with an address of this kind, NULL if it or all have none. */
static const struct bw_iface *bw_iface_with(const struct bw_env *env,
					    const struct bw_iface *preferred,
					    const struct bw_iface *iface, int n,
					    enum bw_iface_need need)
{
	const struct bw_iface *found;

	if (preferred && bw_iface_fits(preferred, need))
		return preferred;
	if (!env->interface)
		return bw_iface_best(iface, n, need);
	found = bw_iface_listed(iface, n, env->interface);
	return found && bw_iface_fits(found, need) ? found : NULL;
}

/* One whose address is not asked for by name. */
static const struct bw_iface *bw_iface_with_ip(const struct bw_env *env,
					       const struct bw_iface *preferred,
					       const struct bw_iface *iface, int n,
					       union bw_name *name)
{
	const struct bw_iface *found = bw_iface_with(env, preferred, iface, n, BW_IFACE_IPV4);

	memset(name, 0, sizeof(*name));
	if (found) {
		name->in.sin_family = AF_INET;
		name->in.sin_addr = found->address;
		return found;
	}
	found = bw_iface_with(env, preferred, iface, n, BW_IFACE_IPV6);
	if (found) {
		name->in6.sin6_family = AF_INET6;
		name->in6.sin6_addr = found->address6;
	}
	return found;
}

int bw_iface_choose_ip(const struct bw_env *env, const struct bw_iface *preferred,
		       struct bw_iface *chosen, union bw_name *name, const char **why)
{
	struct bw_iface iface[BW_IFACE_MAX];
	const struct bw_iface *found;
	int n = bw_iface_list(iface);
	char text[BW_NAME_TEXT];

	if (n < 0)
		return bw_fail(why, n, "cannot list the network interfaces: %s", strerror(-n));
	if (env->udp_address.any.sa_family) {
		*name = env->udp_address;
		found = bw_iface_of(iface, n, name);
		if (!found)
			return bw_fail(
				why, -ENODEV,
				"BEOWIRE_UDP_ADDRESS=%s is no address of this node; there are: %s",
				bw_name_print(name, text), bw_iface_catalogue(iface, n));
	} else {
		found = bw_iface_with_ip(env, preferred, iface, n, name);
		if (!found)
			return bw_fail(why, -ENODEV,
				       "%s%s an address of IPv4, or of IPv6 beyond its link; there "
				       "are: %s",
				       env->interface ? env->interface : "no interface",
				       env->interface ? " has not" : " has",
				       bw_iface_catalogue(iface, n));
	}
	*chosen = *found;
	return 0;
}
