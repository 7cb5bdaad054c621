/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The variables at the edges of what they allow, and what holds where they are not set. */
#include "env.h"
#include "clock.h"
#include "service.h"
#include "setting.h"
#include "wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct bw_env env;

/* With this variable only: is it taken? */
static bool taken(const char *name, const char *value)
{
	const char *why = NULL;
	int error;

	clearenv();
	setenv(name, value, 1);
	error = bw_env_read(&env, &why);
	assert_true(error == 0 || (error == -EINVAL && strstr(why, name) && strstr(why, value)));
	return error == 0;
}

static void env__without_any_has_the_defaults(void **state)
{
	clearenv();
	assert_int_equal(bw_env_read(&env, NULL), 0);
	assert_int_equal(env.links, BW_LINK_LOCAL | BW_LINK_PACKET | BW_LINK_UDP | BW_LINK_KERNEL);
	assert_int_equal(env.wait, BW_WAIT_ADAPTIVE);
	assert_int_equal(env.log, BW_LOG_WARN);
	assert_true(env.checksum && env.helper);
	assert_int_equal(env.ethertype, BW_ETHERTYPE);
	assert_int_equal(env.udp_lo, 47100);
	assert_int_equal(env.udp_hi, 47999);
	assert_int_equal(env.dead_ns, 60 * BW_S);
	assert_int_equal(env.mtu + env.eager_max, 0);
	assert_null(env.stats_dir);
	assert_null(env.key);
	assert_string_equal(env.service, BW_SERVICE_SOCKET);
}

/* A path from / on with the node's name in it, which fits into an address; or none. */
static void service__is_a_path_or_off(void **state)
{
	char host[65] = "", text[256], wanted[256];

	gethostname(host, sizeof(host) - 1);
	assert_true(taken("BEOWIRE_SERVICE", "off"));
	assert_null(env.service);
	assert_true(taken("BEOWIRE_SERVICE", "/a/b"));
	assert_string_equal(env.service, "/a/b");
	assert_true(taken("BEOWIRE_SERVICE", "/a/%h/b"));
	snprintf(wanted, sizeof(wanted), "/a/%s/b", host);
	assert_string_equal(env.service, wanted);
	assert_false(taken("BEOWIRE_SERVICE", "a/b"));
	assert_false(taken("BEOWIRE_SERVICE", "on"));
	memset(text, 'a', sizeof(text));
	text[0] = '/';
	text[107] = 0;
	assert_true(taken("BEOWIRE_SERVICE", text));
	text[107] = 'a';
	text[108] = 0;
	assert_false(taken("BEOWIRE_SERVICE", text));
}

/* Each bound is allowed, the number beyond it is not, and what is allowed is what is had. */
static void number__is_within_its_bounds(void **state)
{
	static const struct {
		const char *name, *below, *least, *most, *above;
	} number[] = {
		{"BEOWIRE_DEAD_TIMEOUT", "0", "1", "86400", "86401"},
		{"BEOWIRE_EAGER_MAX", "0", "1", "65536", "65537"},
		{"BEOWIRE_SEND_COPIES", "-1", "0", "1073741824", "1073741825"},
		{"BEOWIRE_MTU", "575", "576", "65000", "65001"},
		{"BEOWIRE_RING", "262143", "262144", "1073741824", "1073741825"},
		{"BEOWIRE_ETHERTYPE", "05FF", "0600", "FFFF", "10000"},
	};

	for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++) {
		assert_false(taken(number[i].name, number[i].below));
		assert_false(taken(number[i].name, number[i].above));
		assert_false(taken(number[i].name, "18446744073709551617"));
		for (int most = 0; most < 2; most++) {
			const char *text = most ? number[i].most : number[i].least;
			bool hex = !strcmp(number[i].name, "BEOWIRE_ETHERTYPE");
			uint64_t had, value = strtoull(text, NULL, hex ? 16 : 10);

			assert_true(taken(number[i].name, text));
			had = i == 0   ? env.dead_ns / BW_S
			      : i == 1 ? env.eager_max
			      : i == 2 ? env.send_copies
			      : i == 3 ? env.mtu
			      : i == 4 ? env.ring_bytes
				       : env.ethertype;
			assert_int_equal(had, value);
		}
	}
}

static void number__has_nothing_around_it(void **state)
{
	static const char *const wrong[] = {" 600", "600 ", "+600", "600.0", "0x600", "6e3", "x"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(taken("BEOWIRE_MTU", wrong[i]));
	assert_true(taken("BEOWIRE_ETHERTYPE", "0x88b6"));
	assert_int_equal(env.ethertype, 0x88B6);
}

static void ethertype__of_another_protocol_is_refused(void **state)
{
	static const char *const others[] = {"0800", "0806", "86DD", "8100", "88A8"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(taken("BEOWIRE_ETHERTYPE", others[i]));
}

/* Those that are named, and no others. */
static void links__are_those_that_are_named(void **state)
{
	assert_true(taken("BEOWIRE_LINKS", "udp"));
	assert_int_equal(env.links, BW_LINK_UDP);
	assert_true(taken("BEOWIRE_LINKS", "kernel,local"));
	assert_int_equal(env.links, BW_LINK_KERNEL | BW_LINK_LOCAL);
	assert_true(taken("BEOWIRE_LINKS", "packet,packet"));
	assert_int_equal(env.links, BW_LINK_PACKET);
	assert_false(taken("BEOWIRE_LINKS", "udp,"));
	assert_false(taken("BEOWIRE_LINKS", "ud"));
	assert_false(taken("BEOWIRE_LINKS", "udpx"));
	assert_false(taken("BEOWIRE_LINKS", ","));
}

static void ports__are_a_range(void **state)
{
	assert_true(taken("BEOWIRE_UDP_PORTS", "1-65535"));
	assert_int_equal(env.udp_lo, 1);
	assert_int_equal(env.udp_hi, 65535);
	assert_true(taken("BEOWIRE_UDP_PORTS", "50000-50000"));
	assert_false(taken("BEOWIRE_UDP_PORTS", "50001-50000"));
	assert_false(taken("BEOWIRE_UDP_PORTS", "0-10"));
	assert_false(taken("BEOWIRE_UDP_PORTS", "1-65536"));
	assert_false(taken("BEOWIRE_UDP_PORTS", "00000001-10"));
	assert_false(taken("BEOWIRE_UDP_PORTS", "1-"));
}

/* A number is the cluster itself, a name stands for one; no two of these are alike. */
static void cluster__is_a_number_or_a_name(void **state)
{
	static const char *const names[] = {"", "4294967295", "4294967296", "a", "b", "ab"};
	uint32_t seen[sizeof(names) / sizeof(names[0])];

	assert_true(taken("BEOWIRE_CLUSTER", "4294967295"));
	assert_int_equal(env.cluster, UINT32_MAX);
	assert_true(taken("BEOWIRE_CLUSTER", "0x10"));
	assert_int_equal(env.cluster, 16);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_true(taken("BEOWIRE_CLUSTER", names[i]));
		seen[i] = env.cluster;
		for (size_t k = 0; k < i; k++)
			assert_true(seen[k] != seen[i]);
	}
	clearenv();
	assert_int_equal(bw_env_read(&env, NULL), 0);
	assert_int_equal(env.cluster, seen[0]); /* an empty one counts as none */
}

static void words__are_whole_and_known(void **state)
{
	static const struct {
		const char *name, *word;
	} right[] = {
		{"BEOWIRE_WAIT", "spin"},    {"BEOWIRE_WAIT", "adaptive"},
		{"BEOWIRE_WAIT", "block"},   {"BEOWIRE_LOG", "error"},
		{"BEOWIRE_LOG", "warn"},     {"BEOWIRE_LOG", "info"},
		{"BEOWIRE_LOG", "debug"},    {"BEOWIRE_CHECKSUM", "on"},
		{"BEOWIRE_HELPER", "on"},    {"BEOWIRE_CHECKSUM", "off"},
		{"BEOWIRE_HELPER", "off"},   {"BEOWIRE_UDP_OFFLOAD", "off"},
		{"BEOWIRE_DOMAINS", "each"}, {"BEOWIRE_DOMAINS", "together"},
	};

	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		char longer[16] = "", shorter[16] = "";

		strcat(strcpy(longer, right[i].word), "s");
		strcpy(shorter, right[i].word)[strlen(right[i].word) - 1] = 0;
		assert_true(taken(right[i].name, right[i].word));
		assert_false(taken(right[i].name, longer));
		if (*shorter && strcmp(shorter, "o"))
			assert_false(taken(right[i].name, shorter));
	}
	assert_true(taken("BEOWIRE_CHECKSUM", "off") && !env.checksum && env.helper);
	assert_true(taken("BEOWIRE_HELPER", "off") && env.checksum && !env.helper);
	assert_true(env.udp_offload);
	assert_true(taken("BEOWIRE_UDP_OFFLOAD", "off") && !env.udp_offload && env.checksum);
	assert_true(taken("BEOWIRE_DOMAINS", "each") && env.each);
	assert_true(taken("BEOWIRE_DOMAINS", "together") && !env.each);
	assert_true(taken("BEOWIRE_WAIT", "block"));
	assert_int_equal(env.wait, BW_WAIT_BLOCK);
	assert_true(taken("BEOWIRE_LOG", "debug"));
	assert_int_equal(bw_log_limit, BW_LOG_DEBUG);
}

/* Encryption is on or off, by a word or a number, and not on without a key. */
static void encryption__needs_a_key(void **state)
{
	static const char *const words[] = {"off", "0", "on", "1"};
	const char *why;

	assert_true(taken("BEOWIRE_KEY", "/some/file"));
	assert_string_equal(env.key, "/some/file");
	assert_false(env.encrypt);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(taken("BEOWIRE_ENCRYPT", words[i]), i < 2);
		setenv("BEOWIRE_KEY", "/some/file", 1);
		assert_int_equal(bw_env_read(&env, &why), 0);
		assert_int_equal(env.encrypt, i >= 2);
	}
	assert_false(taken("BEOWIRE_ENCRYPT", "2"));
	assert_false(taken("BEOWIRE_ENCRYPT", "yes"));
}

/* A policy alone or with nodes, and sizes that pages can have. */
static void memory__has_a_policy_and_pages(void **state)
{
	static const char *const wrong[] = {"default:0", "bind:",   "bind:x",	 "local",
					    "bind:0,",	 "bind:1-", "bind:1024", "bin"};
	static const char *const sizes[] = {"0", "1", "65536", "64K", "2M", "1G", "64G"};
	static const uint64_t bytes[] = {0, 1, 65536, 65536, 2 << 20, 1 << 30, 64ull << 30};
	static const char *const none[] = {"2",	 "3M", "32K", "65537", "128G", "M",   "-1",
					   "1K", "0M", "2 M", "2MM",   "2m",   "1.5M"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(taken("BEOWIRE_MEMORY", wrong[i]));
	assert_true(taken("BEOWIRE_MEMORY", "interleave"));
	assert_int_equal(env.memory, BW_MEMORY_INTERLEAVE);
	assert_int_equal(bw_nodes_count(&env.nodes), 0);
	assert_true(taken("BEOWIRE_MEMORY", "preferred:0,2-3"));
	assert_int_equal(env.memory, BW_MEMORY_PREFERRED);
	assert_int_equal(bw_nodes_count(&env.nodes), 3);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_true(taken("BEOWIRE_HUGE_PAGES", sizes[i]));
		assert_int_equal(env.huge_bytes, bytes[i]);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(taken("BEOWIRE_HUGE_PAGES", none[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(env__without_any_has_the_defaults),
		cmocka_unit_test(service__is_a_path_or_off),
		cmocka_unit_test(number__is_within_its_bounds),
		cmocka_unit_test(number__has_nothing_around_it),
		cmocka_unit_test(ethertype__of_another_protocol_is_refused),
		cmocka_unit_test(links__are_those_that_are_named),
		cmocka_unit_test(ports__are_a_range),
		cmocka_unit_test(cluster__is_a_number_or_a_name),
		cmocka_unit_test(encryption__needs_a_key),
		cmocka_unit_test(words__are_whole_and_known),
		cmocka_unit_test(memory__has_a_policy_and_pages),
	};

	/* This node's files have nothing to say here: they are read at the first question. */
	setenv("BEOWIRE_CONFIG", "off", 1);
	bw_setting("BEOWIRE_LOG");
	return cmocka_run_group_tests_name("env", tests, NULL, NULL);
}
