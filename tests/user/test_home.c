/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where memory lies, as far as a machine with one NUMA node can tell: policies, and pages. */
#include "endpoint.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/local/impl.h"

#define MB (1u << 20)

static int forget(void **state)
{
	unsetenv("BEOWIRE_MEMORY");
	unsetenv("BEOWIRE_HUGE_PAGES");
	return 0;
}

/* The policy that the kernel has for this address. */
static struct bw_policy policy_at(const void *at)
{
	struct bw_policy policy = {0};

	assert_int_equal(syscall(SYS_get_mempolicy, &policy.mode, policy.nodes.bits,
				 BW_NUMA_NODES + 1ul, at, MPOL_F_ADDR),
			 0);
	return policy;
}

static int own_mode(void)
{
	struct bw_policy policy;

	assert_int_equal(bw_policy_get(&policy), 0);
	return policy.mode;
}

static void assert_on_node_0(const void *at, int mode)
{
	struct bw_policy policy = policy_at(at);

	assert_int_equal(policy.mode, mode);
	assert_int_equal(bw_nodes_count(&policy.nodes), 1);
	assert_true(bw_nodes_has(&policy.nodes, 0));
}

static void nodes__are_lists_as_the_kernel_writes_them(void **state)
{
	static const char *const wrong[] = {"",	   ",",	   "0,",   ",0",	 "-1", "1-",
					    "3-1", "0-",   "1024", "0 ",	 "a",  "0-1024",
					    "0x1", "0--1", "+1",   "99999999999"};
	struct bw_nodes nodes;
	char text[BW_NUMA_TEXT];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(bw_nodes_parse(&nodes, wrong[i]));
	assert_true(bw_nodes_parse(&nodes, "0-2,5,1023"));
	assert_int_equal(bw_nodes_count(&nodes), 5);
	assert_true(bw_nodes_has(&nodes, 1023) && !bw_nodes_has(&nodes, 3));
	assert_string_equal(bw_nodes_print(&nodes, text), "0-2,5,1023");
	assert_int_equal(bw_nodes_first(&nodes), 0);
	assert_false(bw_nodes_has(&nodes, 1024) || bw_nodes_has(&nodes, -1));
}

static void nodes__that_do_not_fit_are_told_of_by_dots(void **state)
{
	struct bw_nodes nodes = {0};
	char text[BW_NUMA_TEXT];

	for (int node = 0; node < BW_NUMA_NODES; node += 2)
		bw_nodes_add(&nodes, node);
	bw_nodes_print(&nodes, text);
	assert_string_equal(text + strlen(text) - 3, "...");
}

static void nodes__are_within_others(void **state)
{
	struct bw_nodes some, all;

	assert_true(bw_nodes_parse(&some, "1,64") && bw_nodes_parse(&all, "0-64"));
	assert_true(bw_nodes_within(&some, &all));
	assert_false(bw_nodes_within(&all, &some));
}

static void interface__without_a_device_is_at_no_node(void **state)
{
	assert_int_equal(bw_numa_of_interface("lo"), -1);
	assert_int_equal(bw_numa_of_interface("../net/lo"), -1);
	assert_int_equal(bw_numa_of_interface(""), -1);
}

static void endpoint__without_a_policy_takes_plain_memory(void **state)
{
	struct bw_nodes online;
	struct told told = {0};
	struct bw_ep *ep = endpoint_open("local", &told);

	bw_numa_online(&online);
	if (bw_nodes_count(&online) == 1)
		assert_false(ep->home.areas.own);
	assert_int_equal(policy_at(ep->engine).mode, MPOL_DEFAULT);
	bw_ep_close(ep, 0);
}

/* Each policy, the engine's memory, a pool's, and that shared with a peer; the thread's is as
 * before. */
static void endpoint__lies_where_its_policy_says(void **state)
{
	static const struct {
		const char *text;
		int mode;
	} policy[] = {{"bind:0", MPOL_BIND},
		      {"interleave:0", MPOL_INTERLEAVE},
		      {"preferred:0", MPOL_PREFERRED},
		      {"bind", MPOL_BIND}};

	for (size_t i = 0; i < sizeof(policy) / sizeof(policy[0]); i++) {
		struct told told = {0}, other_told = {0};

		setenv("BEOWIRE_MEMORY", policy[i].text, 1);
		struct bw_ep *ep = endpoint_open("local", &told);
		struct bw_ep *other = endpoint_open("local", &other_told);
		bw_peer_no peer = endpoint_find(ep, other);

		assert_on_node_0(ep->engine, policy[i].mode);
		assert_on_node_0(bw_buffer_get(&ep->buffers, 60000), policy[i].mode);
		assert_int_equal(bw_send(ep, peer, 1, 2, 3, "x", 1, 0, &told), 1);
		endpoint_await(ep, other, &other_told.messages, 1);
		const struct bw_local_segment *s = &ep->local->peer[0]->segment[0];

		assert_on_node_0(s->control, policy[i].mode);
		assert_on_node_0(s->ring[0], policy[i].mode);
		assert_on_node_0(s->ring[1], policy[i].mode);
		assert_int_equal(own_mode(), MPOL_DEFAULT);
		bw_ep_close(other, 0);
		bw_ep_close(ep, 0);
	}
}

/* One that somebody else has set for the process is nobody's but theirs. */
static void endpoint__leaves_a_policy_of_the_process_alone(void **state)
{
	struct bw_policy policy = {.mode = MPOL_INTERLEAVE}, none = {0};
	struct told told = {0};

	bw_nodes_add(&policy.nodes, 0);
	assert_int_equal(bw_policy_set(&policy), 0);
	struct bw_ep *ep = endpoint_open("local", &told);

	assert_false(ep->home.areas.placed);
	assert_string_equal(ep->home.text, "as the policy of this process has it");
	assert_int_equal(own_mode(), MPOL_INTERLEAVE);
	bw_ep_close(ep, 0);
	setenv("BEOWIRE_MEMORY", "bind:0", 1);
	ep = endpoint_open("local", &told);
	assert_on_node_0(ep->engine, MPOL_BIND);
	assert_int_equal(own_mode(), MPOL_INTERLEAVE);
	bw_ep_close(ep, 0);
	assert_int_equal(bw_policy_set(&none), 0);
}

static void node__that_is_not_there_is_refused_by_name(void **state)
{
	static const char *const links[] = {"local", "udp"};

	for (int i = 0; i < 2; i++) {
		struct bw_env env;
		struct bw_home home = {0};
		const char *why = NULL;

		setenv("BEOWIRE_LINKS", links[i], 1);
		setenv("BEOWIRE_MEMORY", "bind:0,1000", 1);
		assert_int_equal(bw_env_read(&env, &why), 0);
		assert_int_equal(bw_home_open(&home, &env, NULL, &why), -EINVAL);
		assert_non_null(strstr(why, "bind:0,1000"));
		assert_non_null(strstr(why, "node 0"));
		assert_int_equal(own_mode(), MPOL_DEFAULT);
	}
}

/* What /proc says of the mapping of an address. */
static bool mapping_has(const void *at, const char *flag)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[512];
	unsigned long lo, hi;
	bool inside = false, found = false;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &lo, &hi) == 2)
			inside = (unsigned long)at >= lo && (unsigned long)at < hi;
		else if (inside && !strncmp(line, "VmFlags:", 8))
			found = strstr(line, flag);
	}
	fclose(f);
	return found;
}

static void pools__take_transparent_pages_where_none_are_reserved(void **state)
{
	struct told told = {0};
	char text[BW_HOME_TEXT];

	setenv("BEOWIRE_HUGE_PAGES", "256M", 1); /* a size that this processor has not */
	struct bw_ep *ep = endpoint_open("local", &told);

	assert_int_equal(ep->home.areas.pages, BW_AREA_TRANSPARENT);
	assert_int_equal((uintptr_t)ep->home.areas.list % (256u * MB), 0);
	assert_true(mapping_has(ep->engine, " hg"));
	assert_non_null(strstr(bw_home_tell(&ep->home, text), "262144 KiB: transparent"));
	/* One area has room for many chunks. */
	for (int i = 0; i < 100; i++)
		assert_non_null(bw_buffer_get(&ep->buffers, 0));
	assert_ptr_equal((void *)((uintptr_t)ep->engine & ~(uintptr_t)(256u * MB - 1)),
			 ep->home.areas.list);
	bw_ep_close(ep, 0);
}

static void areas__are_given_back_whole(void **state)
{
	struct bw_areas areas = {.own = true};
	unsigned char in_core;
	uint8_t *first, *second;

	first = bw_area_get(&areas, 3000);
	second = bw_area_get(&areas, 3000); /* beyond the page: another area */
	assert_int_equal((uintptr_t)first % 64 + (uintptr_t)second % 64, 0);
	memset(first, 1, 3000);
	memset(second, 2, 3000);
	assert_int_equal(first[2999], 1);
	void *page = (void *)((uintptr_t)first & ~(uintptr_t)4095);

	bw_area_put(&areas, first);
	assert_int_equal(mincore(page, 1, &in_core), 0);
	bw_area_end(&areas);
	assert_int_equal(mincore(page, 1, &in_core), -1);
	assert_int_equal(errno, ENOMEM);
	assert_null(areas.list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes__are_lists_as_the_kernel_writes_them),
		cmocka_unit_test(nodes__that_do_not_fit_are_told_of_by_dots),
		cmocka_unit_test(nodes__are_within_others),
		cmocka_unit_test(interface__without_a_device_is_at_no_node),
		cmocka_unit_test_teardown(endpoint__without_a_policy_takes_plain_memory, forget),
		cmocka_unit_test_teardown(endpoint__lies_where_its_policy_says, forget),
		cmocka_unit_test_teardown(endpoint__leaves_a_policy_of_the_process_alone, forget),
		cmocka_unit_test_teardown(node__that_is_not_there_is_refused_by_name, forget),
		cmocka_unit_test_teardown(pools__take_transparent_pages_where_none_are_reserved,
					  forget),
		cmocka_unit_test(areas__are_given_back_whole),
	};

	return cmocka_run_group_tests_name("home", tests, NULL, NULL);
}
