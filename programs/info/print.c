/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How beowire-info tells what it found: for people, and as one JSON object for machines. */
#include "info.h"
#include "setting.h"
#include "text.h"

#include <string.h>

static void mac_print(FILE *f, const struct info_interface *x)
{
	for (int i = 0; i < 6; i++)
		fprintf(f, "%s%02x", i ? ":" : "", x->iface.mac[i]);
}

static void interface_print(const struct info_interface *x)
{
	printf("  %c %-12s ", x->chosen ? '*' : ' ', x->iface.name);
	if (x->iface.ethernet)
		mac_print(stdout, x);
	else
		printf("%-17s", x->iface.loopback ? "loopback" : "not Ethernet");
	printf("  MTU %-5u  %-10s", x->iface.mtu,
	       !x->iface.up ? "down" : (x->iface.carrier ? "up" : "no carrier"));
	if (x->speed > 0)
		printf("  %lld Mbit/s", (long long)x->speed);
	if (x->driver[0])
		printf("  %s", x->driver);
	for (unsigned int i = 0; i < x->addresses; i++)
		printf("%s%s", i ? ", " : "  ", x->address[i]);
	printf("\n");
}

static void link_print(const struct info_link *x)
{
	printf("  %-7s %-4s %s", x->name, x->usable ? "yes" : "no", x->why);
	if (x->frame_bytes)
		printf(", up to %u bytes", x->frame_bytes);
	printf("\n");
}

/* What is open to others on the network. */
static const char *openness(const struct info *info)
{
	if (info->encrypted)
		return "nobody without the key can read, change or forge frames; who speaks with "
		       "whom, when and how much, can be seen";
	if (info->keyed)
		return "nobody without the key can forge frames, but whoever sees them can read "
		       "payloads, and change them on their way (BEOWIRE_ENCRYPT is off)";
	return "whoever sees frames can read payloads, change them, and forge others (no "
	       "BEOWIRE_KEY, and none by beowired)";
}

/* Whose the cluster's key is; "": there is none. */
static const char *key_source(const struct info *info)
{
	if (!info->keyed)
		return "";
	return info->key_given ? "beowired" : "BEOWIRE_KEY";
}

/* What files say, as text and nothing else. */
static void line_print(const char *before, const char *text)
{
	char line[BW_SETTINGS_PATH + 128];

	snprintf(line, sizeof(line), "%s", text);
	bw_text_line(line);
	printf("%s%s\n", before, line);
}

static void setting_print(const struct info_setting *x)
{
	char line[BW_SETTINGS_PATH + 128];

	if (x->path)
		snprintf(line, sizeof(line), "%s=%s  (%s:%u)", x->name, x->value, x->path, x->line);
	else
		snprintf(line, sizeof(line), "%s=%s  (environment)", x->name, x->value);
	line_print("  ", line);
}

void info_print(const struct info *info)
{
	const struct bw_settings *files = bw_settings_of_files();

	printf("Beowire %s on %s, Linux %s\n\nInterfaces (* carries raw frames)\n", info->version,
	       info->host, info->kernel);
	for (int i = 0; i < info->interfaces; i++)
		interface_print(&info->interface[i]);
	if (info->interface_why[0])
		printf("  none carries raw frames: %s\n", info->interface_why);
	printf("\nLinks, the best first\n");
	for (int i = 0; i < INFO_LINKS; i++)
		link_print(&info->link[i]);
	printf("\nLong messages within the node: %s\n",
	       info->cma ? "one copy, by cross-memory attach" : "copied through shared memory");
	if (!info->cma)
		printf("  since %s\n", info->cma_why);
	printf("Checksum (CRC32C): %s\n", info->checksum);
	printf("Computing with keys: libsodium %s\n", info->sodium);
	printf("Between nodes: %s\n", openness(info));
	if (info->keyed)
		printf("Cluster key: by %s\n", key_source(info));
	printf("Cores: %.4g granted, %u allowed, %u online\n", info->cores_granted,
	       info->cores_allowed, info->cores_online);
	if (info->memory[0])
		printf("Memory: %s\n", info->memory);
	printf("Settings:%s\n", info->settings ? "" : " none, all as by default");
	for (unsigned int i = 0; i < info->settings; i++)
		setting_print(&info->setting[i]);
	for (unsigned int i = 0; i < files->troubles && i < BW_SETTINGS_TROUBLES; i++)
		line_print("  not in force: ", files->trouble[i]);
}

void info_print_peer(const struct info_peer *peer)
{
	printf("%s, node %016llx, engine %u\n", peer->host, (unsigned long long)peer->node,
	       peer->engine);
	for (int i = 0; i < INFO_LINKS; i++) {
		const struct info_path *x = &peer->path[i];

		printf("  %-7s %-4s %s", x->name, x->used ? "used" : (x->passes ? "yes" : "no"),
		       x->why);
		if (x->passes && x->frame_bytes)
			printf(", frames up to %u bytes", x->frame_bytes);
		printf("\n");
	}
	for (unsigned int i = 0; i < peer->ways; i++) {
		const struct info_way *w = &peer->way[i];

		printf("  path %u  %-6s %s to %s, frames of %u bytes, round trip %.1f us", i,
		       w->state, w->from, w->to, w->frame_bytes, (double)w->round_trip_ns / 1e3);
		if (w->rate_bps)
			printf(", %.0f Mbit/s lately", (double)w->rate_bps / 1e6);
		printf("\n");
	}
	printf("Round trip of 8 bytes: %.1f us\n", (double)peer->round_trip_ns / 1e3);
}

/* ---- JSON ---- */

static void quoted(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text >= ' ')
			putchar(*text);
	}
	putchar('"');
}

static const char *truth(bool x)
{
	return x ? "true" : "false";
}

static void json_interface(const struct info_interface *x)
{
	printf("{\"name\": ");
	quoted(x->iface.name);
	printf(", \"mac\": \"");
	mac_print(stdout, x);
	printf("\", \"mtu\": %u, \"speed_mbit\": ", x->iface.mtu);
	if (x->speed > 0)
		printf("%lld", (long long)x->speed);
	else
		printf("null");
	printf(", \"driver\": ");
	quoted(x->driver);
	printf(", \"up\": %s, \"carrier\": %s, \"ethernet\": %s, \"loopback\": %s, \"chosen\": %s, "
	       "\"addresses\": [",
	       truth(x->iface.up), truth(x->iface.carrier), truth(x->iface.ethernet),
	       truth(x->iface.loopback), truth(x->chosen));
	for (unsigned int i = 0; i < x->addresses; i++) {
		printf("%s", i ? ", " : "");
		quoted(x->address[i]);
	}
	printf("]}");
}

static void json_links(const struct info *info)
{
	for (int i = 0; i < INFO_LINKS; i++) {
		const struct info_link *x = &info->link[i];

		printf("%s\n  \"%s\": {\"usable\": %s, \"why\": ", i ? "," : "", x->name,
		       truth(x->usable));
		quoted(x->why);
		printf(", \"frame_bytes\": %u}", x->frame_bytes);
	}
}

static void json_environment(const struct info *info)
{
	const char *between = "";

	for (unsigned int i = 0; i < info->settings; i++) {
		if (info->setting[i].path)
			continue;
		printf("%s", between);
		quoted(info->setting[i].name);
		printf(": ");
		quoted(info->setting[i].value);
		between = ", ";
	}
}

/* Who has set what is set, and what of files is not in force. */
static void json_settings(const struct info *info)
{
	const struct bw_settings *files = bw_settings_of_files();

	printf("},\n \"settings\": {");
	for (unsigned int i = 0; i < info->settings; i++) {
		const struct info_setting *x = &info->setting[i];

		printf("%s\n  ", i ? "," : "");
		quoted(x->name);
		printf(": {\"value\": ");
		quoted(x->value);
		printf(", \"from\": ");
		quoted(x->path ? x->path : "environment");
		printf(", \"line\": %u}", x->line);
	}
	printf("},\n \"settings_not_in_force\": [");
	for (unsigned int i = 0; i < files->troubles && i < BW_SETTINGS_TROUBLES; i++) {
		printf("%s", i ? ", " : "");
		quoted(files->trouble[i]);
	}
	printf("]");
}

static void json_peer(const struct info_peer *peer)
{
	printf(",\n \"peer\": {\"host\": ");
	quoted(peer->host);
	printf(", \"node\": \"%016llx\", \"engine\": %u, \"link\": ",
	       (unsigned long long)peer->node, peer->engine);
	for (int i = 0; i < INFO_LINKS; i++)
		if (peer->path[i].used)
			quoted(peer->path[i].name);
	printf(", \"frame_bytes\": %u, \"round_trip_ns\": %llu, \"text\": ", peer->frame_bytes,
	       (unsigned long long)peer->round_trip_ns);
	quoted(peer->text);
	printf(", \"links\": {");
	for (int i = 0; i < INFO_LINKS; i++) {
		const struct info_path *x = &peer->path[i];

		printf("%s\n  \"%s\": {\"used\": %s, \"passes\": %s, \"frame_bytes\": %u, "
		       "\"why\": ",
		       i ? "," : "", x->name, truth(x->used), truth(x->passes), x->frame_bytes);
		quoted(x->why);
		printf("}");
	}
	printf("}, \"paths\": [");
	for (unsigned int i = 0; i < peer->ways; i++) {
		const struct info_way *w = &peer->way[i];

		printf("%s\n  {\"from\": ", i ? "," : "");
		quoted(w->from);
		printf(", \"to\": \"%s\", \"state\": \"%s\", \"frame_bytes\": %u, "
		       "\"round_trip_ns\": %llu, \"rate_bps\": %llu}",
		       w->to, w->state, w->frame_bytes, (unsigned long long)w->round_trip_ns,
		       (unsigned long long)w->rate_bps);
	}
	printf("]}");
}

void info_print_json(const struct info *info, const struct info_peer *peer)
{
	printf("{\"version\": \"%s\", \"host\": ", info->version);
	quoted(info->host);
	printf(", \"kernel\": ");
	quoted(info->kernel);
	printf(",\n \"interfaces\": [");
	for (int i = 0; i < info->interfaces; i++) {
		printf("%s\n  ", i ? "," : "");
		json_interface(&info->interface[i]);
	}
	printf("],\n \"links\": {");
	json_links(info);
	printf("},\n \"cma\": {\"usable\": %s, \"why\": ", truth(info->cma));
	quoted(info->cma_why);
	printf("},\n \"checksum\": \"%s\",\n \"libsodium\": \"%s\",\n \"keyed\": %s,\n "
	       "\"key_source\": \"%s\",\n \"encrypted\": %s,\n \"cores\": {\"granted\": %.4g, "
	       "\"allowed\": %u, \"online\": "
	       "%u},\n \"memory\": ",
	       info->checksum, info->sodium, truth(info->keyed), key_source(info),
	       truth(info->encrypted), info->cores_granted, info->cores_allowed,
	       info->cores_online);
	quoted(info->memory);
	printf(",\n \"environment\": {");
	json_environment(info);
	json_settings(info);
	if (peer)
		json_peer(peer);
	printf("}\n");
}
