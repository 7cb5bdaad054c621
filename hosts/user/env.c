/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every variable of libbeowire in one table: name, what is allowed (for the message when a value is
 * wrong), and the function that parses it. An empty value counts as not set. The environment has
 * them, and files of settings (setting.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "env.h"
#include "link/packet/served.h"
#include "ring_shape.h"
#include "service.h"
#include "setting.h"
#include "wire.h"

#define BW_ENV_SEND_COPIES (64u << 20)
#define BW_ENV_STATUS	   "/dev/shm" /* in memory on every Linux */
#define BW_ENV_UDP_LO	   47100
#define BW_ENV_UDP_HI	   47999

uint64_t bw_env_hash(uint64_t hash, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ b[i]) * 0x100000001b3u;
	return hash;
}

/* A number within [lo, hi], nothing behind it. */
static bool bw_env_number(const char *text, int base, uint64_t lo, uint64_t hi, uint64_t *value)
{
	char *end;

	*value = 0;
	if (strchr(text, '-') || strchr(text, '+') || strchr(text, ' '))
		return false;
	errno = 0;
	*value = strtoull(text, &end, base);
	return !errno && end != text && !*end && *value >= lo && *value <= hi;
}

/* Index of text[0..n) in a NULL-terminated list of words, -1 if it is not there. */
static int bw_env_word(const char *text, size_t n, const char *const *words)
{
	for (int i = 0; words[i]; i++) {
		if (strlen(words[i]) == n && !strncmp(text, words[i], n))
			return i;
	}
	return -1;
}

static bool bw_env_interface(struct bw_env *env, const char *text)
{
	env->interface = text;
	return true;
}

static bool bw_env_interfaces(struct bw_env *env, const char *text)
{
	env->interfaces = text;
	return true;
}

static bool bw_env_domains(struct bw_env *env, const char *text)
{
	static const char *const words[] = {"together", "each", NULL};
	int word = bw_env_word(text, strlen(text), words);

	env->each = word == 1;
	return word >= 0;
}

static bool bw_env_stats(struct bw_env *env, const char *text)
{
	env->stats_dir = text;
	return true;
}

static bool bw_env_node(struct bw_env *env, const char *text)
{
	env->node = text;
	return true;
}

static bool bw_env_key(struct bw_env *env, const char *text)
{
	env->key = text;
	return true;
}

/* %h is this node's name: so that all processes of a job can have the same value. */
static bool bw_env_service(struct bw_env *env, const char *text)
{
	char host[65] = "";
	const char *mark = strstr(text, "%h");
	int n;

	env->service = env->service_path;
	gethostname(host, sizeof(host) - 1);
	if (!strcmp(text, "off")) {
		env->service = NULL;
		return true;
	}
	if (mark)
		n = snprintf(env->service_path, sizeof(env->service_path), "%.*s%s%s",
			     (int)(mark - text), text, host, mark + 2);
	else
		n = snprintf(env->service_path, sizeof(env->service_path), "%s", text);
	return *text == '/' && n < (int)sizeof(env->service_path);
}

static bool bw_env_links(struct bw_env *env, const char *text)
{
	static const char *const words[] = {"local", "packet", "udp", "kernel", NULL};

	env->links = 0;
	while (true) {
		size_t n = strcspn(text, ",");
		int word = bw_env_word(text, n, words);

		if (word < 0)
			return false;
		env->links |= 1u << word;
		if (!text[n])
			return true;
		text += n + 1;
	}
}

static bool bw_env_wait(struct bw_env *env, const char *text)
{
	static const char *const words[] = {"spin", "adaptive", "block", NULL};
	int word = bw_env_word(text, strlen(text), words);

	env->wait = (enum bw_env_wait)word;
	return word >= 0;
}

static bool bw_env_log(struct bw_env *env, const char *text)
{
	static const char *const words[] = {"error", "warn", "info", "debug", NULL};
	int word = bw_env_word(text, strlen(text), words);

	env->log = (enum bw_log_level)word;
	return word >= 0;
}

static bool bw_env_switch(const char *text, bool *on)
{
	static const char *const words[] = {"off", "on", NULL};
	int word = bw_env_word(text, strlen(text), words);

	*on = word == 1;
	return word >= 0;
}

static bool bw_env_checksum(struct bw_env *env, const char *text)
{
	return bw_env_switch(text, &env->checksum);
}

/* Also as a number, like that of a feature. */
static bool bw_env_encrypt(struct bw_env *env, const char *text)
{
	const char *word = !strcmp(text, "1") ? "on" : !strcmp(text, "0") ? "off" : text;

	return bw_env_switch(word, &env->encrypt);
}

static bool bw_env_helper(struct bw_env *env, const char *text)
{
	return bw_env_switch(text, &env->helper);
}

static bool bw_env_fanout(struct bw_env *env, const char *text)
{
	return bw_env_switch(text, &env->fanout);
}

static bool bw_env_status(struct bw_env *env, const char *text)
{
	bool on = true;

	if (*text != '/' && !bw_env_switch(text, &on))
		return false;
	env->status_dir = !on ? NULL : *text == '/' ? text : BW_ENV_STATUS;
	return true;
}

static bool bw_env_udp_offload(struct bw_env *env, const char *text)
{
	return bw_env_switch(text, &env->udp_offload);
}

static bool bw_env_ethertype(struct bw_env *env, const char *text)
{
	/* IPv4, ARP, IPv6, VLAN tags: such frames would end up in every host's network stack. */
	static const uint16_t taken[] = {0x0800, 0x0806, 0x86DD, 0x8100, 0x88A8};
	uint64_t value;

	if (!bw_env_number(text, 16, 0x0600, 0xFFFF, &value))
		return false;
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (value == taken[i])
			return false;
	env->ethertype = (uint16_t)value;
	return true;
}

static bool bw_env_cluster(struct bw_env *env, const char *text)
{
	uint64_t value, hash = bw_env_hash(BW_ENV_HASH, text, strlen(text));

	if (bw_env_number(text, 0, 0, UINT32_MAX, &value))
		env->cluster = (uint32_t)value;
	else
		env->cluster = (uint32_t)(hash ^ hash >> 32);
	return true;
}

static bool bw_env_udp_ports(struct bw_env *env, const char *text)
{
	char lo[8];
	const char *dash = strchr(text, '-');
	uint64_t low, high;

	if (!dash || (size_t)(dash - text) >= sizeof(lo))
		return false;
	memcpy(lo, text, (size_t)(dash - text));
	lo[dash - text] = 0;
	if (!bw_env_number(lo, 10, 1, 65535, &low) ||
	    !bw_env_number(dash + 1, 10, low, 65535, &high))
		return false;
	env->udp_lo = (uint16_t)low;
	env->udp_hi = (uint16_t)high;
	return true;
}

static bool bw_env_udp_address(struct bw_env *env, const char *text)
{
	return bw_name_parse(&env->udp_address, text);
}

static bool bw_env_u32(const char *text, uint64_t lo, uint64_t hi, uint32_t *value)
{
	uint64_t wide;
	bool ok = bw_env_number(text, 10, lo, hi, &wide);

	*value = (uint32_t)wide;
	return ok;
}

static bool bw_env_mtu(struct bw_env *env, const char *text)
{
	return bw_env_u32(text, BW_FRAME_MIN_MTU, BW_FRAME_MAX_MTU, &env->mtu);
}

static bool bw_env_eager_max(struct bw_env *env, const char *text)
{
	return bw_env_u32(text, 1, BW_EAGER_LIMIT, &env->eager_max);
}

static bool bw_env_send_copies(struct bw_env *env, const char *text)
{
	return bw_env_u32(text, 0, 1 << 30, &env->send_copies);
}

static bool bw_env_ring(struct bw_env *env, const char *text)
{
	return bw_env_u32(text, 256 << 10, 1 << 30, &env->ring_bytes);
}

static bool bw_env_dead_timeout(struct bw_env *env, const char *text)
{
	uint64_t seconds;
	bool ok = bw_env_number(text, 10, 1, 86400, &seconds);

	env->dead_ns = seconds * BW_S;
	return ok;
}

static bool bw_env_memory(struct bw_env *env, const char *text)
{
	static const char *const words[] = {"default", "bind", "interleave", "preferred", NULL};
	size_t n = strcspn(text, ":");
	int word = bw_env_word(text, n, words);

	env->memory = (enum bw_env_memory)word;
	env->memory_asked = true;
	if (!text[n])
		return word >= 0;
	return word > BW_MEMORY_DEFAULT && bw_nodes_parse(&env->nodes, text + n + 1);
}

/* A power of two, as every size of pages is. */
static bool bw_env_huge_pages(struct bw_env *env, const char *text)
{
	static const char units[] = "KMG";
	size_t n = strlen(text);
	const char *unit = strchr(units, text[n - 1]);
	unsigned int shift = unit ? 10 * (unsigned int)(unit - units + 1) : 0;
	char number[24] = "";

	if (n - !!unit >= sizeof(number))
		return false;
	memcpy(number, text, n - !!unit);
	if (!bw_env_number(number, 10, 0, (64ull << 30) >> shift, &env->huge_bytes))
		return false;
	env->huge_bytes <<= shift;
	return (!unit && env->huge_bytes <= 1) ||
	       (env->huge_bytes >= 64 << 10 && !(env->huge_bytes & (env->huge_bytes - 1)));
}

static const struct {
	const char *name;
	const char *allowed;
	bool (*parse)(struct bw_env *env, const char *text);
} bw_env_table[] = {
	{"BEOWIRE_LOG", "error, warn, info or debug", bw_env_log},
	{"BEOWIRE_INTERFACE",
	 "a comma list of interface names, MAC addresses or IPv4 subnets a.b.c.d/n",
	 bw_env_interface},
	{"BEOWIRE_INTERFACES",
	 "a comma list of interface names, MAC addresses or IPv4 subnets a.b.c.d/n",
	 bw_env_interfaces},
	{"BEOWIRE_DOMAINS", "together or each", bw_env_domains},
	{"BEOWIRE_LINKS", "a comma list of local, packet, udp and kernel", bw_env_links},
	{"BEOWIRE_ETHERTYPE",
	 "a hexadecimal number from 0600 to FFFF, and none of IP's, ARP's or VLANs'",
	 bw_env_ethertype},
	{"BEOWIRE_CLUSTER", "a name, or a number below 2^32", bw_env_cluster},
	{"BEOWIRE_NODE", "a name", bw_env_node},
	{"BEOWIRE_KEY", "a file", bw_env_key},
	{"BEOWIRE_ENCRYPT", "on or off, with BEOWIRE_KEY", bw_env_encrypt},
	{"BEOWIRE_WAIT", "spin, adaptive or block", bw_env_wait},
	{"BEOWIRE_DEAD_TIMEOUT", "a number of seconds from 1 to 86400", bw_env_dead_timeout},
	{"BEOWIRE_EAGER_MAX", "a number of bytes from 1 to 65536", bw_env_eager_max},
	{"BEOWIRE_SEND_COPIES", "a number of bytes from 0 to 1073741824", bw_env_send_copies},
	{"BEOWIRE_UDP_PORTS", "a range of ports lo-hi within 1 to 65535", bw_env_udp_ports},
	{"BEOWIRE_UDP_ADDRESS", "an IPv4 or IPv6 address of this node", bw_env_udp_address},
	{"BEOWIRE_UDP_OFFLOAD", "on or off", bw_env_udp_offload},
	{"BEOWIRE_CHECKSUM", "on or off", bw_env_checksum},
	{"BEOWIRE_HELPER", "on or off", bw_env_helper},
	{"BEOWIRE_FANOUT", "on or off", bw_env_fanout},
	{"BEOWIRE_SERVICE", "off, or the path of beowired's socket, from / on, of up to 107 bytes",
	 bw_env_service},
	{"BEOWIRE_MTU", "a number of bytes from 576 to 65000", bw_env_mtu},
	{"BEOWIRE_RING", "a number of bytes from 262144 to 1073741824", bw_env_ring},
	{"BEOWIRE_MEMORY",
	 "default, or one of bind, interleave and preferred, alone or with nodes: bind:0,2-3",
	 bw_env_memory},
	{"BEOWIRE_HUGE_PAGES",
	 "0, 1, or a power of two from 65536 to 64G (with K, M or G), the size of a page",
	 bw_env_huge_pages},
	{"BEOWIRE_STATS", "a directory", bw_env_stats},
	{"BEOWIRE_STATUS", "on, off or the full name of a directory", bw_env_status},
};

/* What is wrong with files of settings, once in a job. */
static void bw_env_tell_troubles(void)
{
	const struct bw_settings *files = bw_settings_of_files();

	if (!files->troubles || !bw_log_first(BW_LOG_WARN, "settings"))
		return;
	for (unsigned int i = 0; i < files->troubles && i < BW_SETTINGS_TROUBLES; i++)
		bw_log(BW_LOG_WARN, "%s", files->trouble[i]);
	if (files->troubles > BW_SETTINGS_TROUBLES)
		bw_log(BW_LOG_WARN, "settings: %u more lines like these",
		       files->troubles - BW_SETTINGS_TROUBLES);
}

/* A wrong value is an error wherever it stands: what was to protect must not be left out. */
static int bw_env_wrong(const char **why, const char *name, const struct bw_setting *setting,
			const char *allowed)
{
	char where[BW_SETTINGS_PATH + 16] = "";

	if (setting->path)
		snprintf(where, sizeof(where), " (%s:%u)", setting->path, setting->line);
	return bw_fail(why, -EINVAL, "%s=%s%s is not valid%s", name, setting->value, where,
		       allowed);
}

int bw_env_read(struct bw_env *env, const char **why)
{
	struct bw_setting encrypt;

	memset(env, 0, sizeof(*env));
	env->links = BW_LINK_LOCAL | BW_LINK_KERNEL | BW_LINK_PACKET | BW_LINK_UDP;
	env->wait = BW_WAIT_ADAPTIVE;
	env->log = BW_LOG_WARN;
	env->checksum = true;
	env->helper = true;
	env->fanout = true;
	bw_env_service(env, BW_SERVICE_SOCKET);
	env->status_dir = BW_ENV_STATUS;
	env->ethertype = BW_ETHERTYPE;
	env->udp_lo = BW_ENV_UDP_LO;
	env->udp_hi = BW_ENV_UDP_HI;
	env->udp_offload = true;
	env->ring_bytes = BW_RING_DEFAULT;
	env->send_copies = BW_ENV_SEND_COPIES;
	env->dead_ns = 60 * BW_S;
	bw_env_cluster(env, "default");
	for (size_t i = 0; i < sizeof(bw_env_table) / sizeof(bw_env_table[0]); i++) {
		struct bw_setting setting = bw_setting_find(bw_env_table[i].name);
		char allowed[160];

		if (!setting.value || !*setting.value || bw_env_table[i].parse(env, setting.value))
			continue;
		snprintf(allowed, sizeof(allowed), ": it must be %s", bw_env_table[i].allowed);
		return bw_env_wrong(why, bw_env_table[i].name, &setting, allowed);
	}
	encrypt = bw_setting_find("BEOWIRE_ENCRYPT");
	if (env->encrypt && !env->key && !bw_service_there(env))
		return bw_env_wrong(why, "BEOWIRE_ENCRYPT", &encrypt,
				    " without BEOWIRE_KEY, the file with the key");
	bw_log_limit = env->log;
	bw_env_tell_troubles();
	return 0;
}
