/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The libfabric that knows Beowire alone (adapters/libfabric/alone), which the loader finds here in
 * the place of the system's: which provider it lends itself to, copies of what is offered, words
 * for errors.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "pair.h"

#define OLD FI_VERSION(1, 9)
#define NEW FI_VERSION(2, 2)

static int offered(uint32_t version, const struct fi_info *hints)
{
	struct fi_info *info;
	int ret = fi_getinfo(version, NULL, NULL, 0, hints, &info);

	if (ret == 0) {
		assert_string_equal(info->fabric_attr->prov_name, "beowire");
		assert_int_equal(info->fabric_attr->api_version, version);
		assert_null(info->next);
		fi_freeinfo(info);
	} else {
		assert_null(info);
	}
	return ret;
}

static void setting(const char *providers)
{
	setenv("FI_PROVIDER", providers, 1);
}

static void library__is_this_one_and_no_device_s(void **state)
{
	static const char *const devices[] = {"psm", "infinipath", "ibverbs", "efa", "rdmacm"};
	char line[4096];
	bool found = false;
	FILE *maps;

	assert_int_equal(offered(NEW, NULL), 0);
	maps = fopen("/proc/self/maps", "r");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		/* Not the addresses before it: some hold "efa". */
		const char *path = strchr(line, '/');

		found = found || (path && strstr(path, "/alone/libfabric.so.1"));
		for (size_t i = 0; path && i < sizeof(devices) / sizeof(devices[0]); i++)
			assert_null(strstr(path, devices[i]));
	}
	fclose(maps);
	assert_true(found);
}

static void getinfo__is_told_which_provider(void **state)
{
	static const char *const with[] = {"", "beowire", "BeoWire", "tcp,beowire", "^tcp", "^"};
	static const char *const without[] = {"tcp", "^beowire", "^tcp,beowire", "beowire2", "beo"};
	struct fi_info *hints = pair_hints();

	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = NULL;
	for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++) {
		setting(with[i]);
		assert_int_equal(offered(OLD, hints), 0);
	}
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
		setting(without[i]);
		assert_int_equal(offered(OLD, hints), -FI_ENODATA);
	}
	setting("beowire");
	hints->fabric_attr->prov_name = strdup("tcp");
	assert_int_equal(offered(OLD, hints), -FI_ENODATA);
	fi_freeinfo(hints);
}

static void getinfo__refuses_what_the_provider_refuses(void **state)
{
	struct fi_info *hints = pair_hints();

	hints->caps = FI_TAGGED | FI_MULTICAST;
	assert_int_equal(offered(OLD, hints), -FI_ENODATA);
	assert_int_equal(offered(FI_VERSION(99, 0), NULL), -FI_ENOSYS);
	fi_freeinfo(hints);
}

static void dupinfo__copies_everything_inside(void **state)
{
	struct fi_info *info, *copy;

	assert_int_equal(fi_getinfo(OLD, NULL, NULL, 0, NULL, &info), 0);
	info->dest_addr = malloc(info->src_addrlen);
	assert_non_null(info->dest_addr);
	memset(info->dest_addr, 7, info->src_addrlen);
	info->dest_addrlen = info->src_addrlen;
	info->ep_attr->auth_key = (uint8_t *)strdup("key");
	info->ep_attr->auth_key_size = 4;
	copy = fi_dupinfo(info);
	assert_non_null(copy);
	assert_ptr_not_equal(copy->domain_attr, info->domain_attr);
	assert_ptr_not_equal(copy->ep_attr->auth_key, info->ep_attr->auth_key);
	assert_memory_equal(copy->tx_attr, info->tx_attr, sizeof(*info->tx_attr));
	assert_memory_equal(copy->rx_attr, info->rx_attr, sizeof(*info->rx_attr));
	assert_memory_equal(copy->src_addr, info->src_addr, info->src_addrlen);
	assert_int_equal(copy->domain_attr->mr_cnt, info->domain_attr->mr_cnt);
	assert_int_equal(copy->ep_attr->max_msg_size, info->ep_attr->max_msg_size);
	fi_freeinfo(info); /* the copy lives on */
	assert_string_equal(copy->fabric_attr->prov_name, "beowire");
	assert_string_equal(copy->fabric_attr->name, "beowire");
	assert_string_equal(copy->domain_attr->name, "beowire");
	assert_string_equal((char *)copy->ep_attr->auth_key, "key");
	assert_int_equal(((uint8_t *)copy->dest_addr)[copy->dest_addrlen - 1], 7);
	fi_freeinfo(copy);
}

static struct fid_nic *nic_original;
static int nic_closed;

static int nic_close(struct fid *fid)
{
	nic_closed++;
	return 0;
}

static int nic_control(struct fid *fid, int command, void *arg)
{
	static struct fid_nic copy;

	assert_int_equal(command, FI_DUP);
	assert_ptr_equal(fid, &nic_original->fid);
	copy = *nic_original;
	*(struct fid_nic **)arg = &copy;
	return 0;
}

/* What describes the device knows how it is copied; each copy is closed once. */
static void dupinfo__lets_the_device_copy_itself(void **state)
{
	struct fi_ops ops = {.size = sizeof(ops), .close = nic_close, .control = nic_control};
	struct fid_nic nic = {.fid = {.fclass = FI_CLASS_NIC, .ops = &ops}};
	struct fi_info *info = fi_allocinfo(), *copy;

	nic_original = info->nic = &nic;
	copy = fi_dupinfo(info);
	assert_non_null(copy);
	assert_non_null(copy->nic);
	assert_ptr_not_equal(copy->nic, &nic);
	fi_freeinfo(info);
	assert_int_equal(nic_closed, 1);
	fi_freeinfo(copy);
	assert_int_equal(nic_closed, 2);
}

static void dupinfo__of_nothing_is_empty_hints(void **state)
{
	struct fi_info *hints = fi_allocinfo();

	assert_non_null(hints);
	assert_non_null(hints->tx_attr);
	assert_non_null(hints->rx_attr);
	assert_non_null(hints->ep_attr);
	assert_non_null(hints->domain_attr);
	assert_non_null(hints->fabric_attr);
	assert_null(hints->fabric_attr->prov_name);
	assert_int_equal(hints->caps, 0);
	fi_freeinfo(hints);
}

static void fabric__of_another_provider_is_none(void **state)
{
	struct fid_fabric *fabric;
	struct fi_info *info;

	assert_int_equal(fi_getinfo(OLD, NULL, NULL, 0, NULL, &info), 0);
	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = strdup("tcp");
	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), -FI_ENODEV);
	fi_freeinfo(info);
}

static void strerror__has_words_for_all_errors(void **state)
{
	assert_string_equal(fi_strerror(FI_ENOENT), strerror(ENOENT));
	for (int i = FI_ERRNO_OFFSET; i < FI_ERRNO_MAX; i++)
		assert_true(strlen(fi_strerror(i)) > 5);
	assert_string_equal(fi_strerror(FI_ERRNO_MAX + 5), fi_strerror(FI_EOTHER));
}

/* Programs that were built with one of these releases ask for the functions by these names. */
static void versions__of_all_releases_since_1_9(void **state)
{
	static const char *const versions[] = {"FABRIC_1.3", "FABRIC_1.7", "FABRIC_1.8",
					       "FABRIC_1.9"};
	static const char *const functions[] = {"fi_getinfo", "fi_dupinfo", "fi_freeinfo"};

	for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++) {
		for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++)
			assert_non_null(dlvsym(RTLD_DEFAULT, functions[f], versions[v]));
	}
	assert_non_null(dlvsym(RTLD_DEFAULT, "fi_fabric", "FABRIC_1.1"));
	assert_non_null(dlvsym(RTLD_DEFAULT, "fi_open", "FABRIC_1.5"));
	assert_non_null(dlvsym(RTLD_DEFAULT, "fi_version", "FABRIC_1.0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(library__is_this_one_and_no_device_s),
		cmocka_unit_test(getinfo__is_told_which_provider),
		cmocka_unit_test(getinfo__refuses_what_the_provider_refuses),
		cmocka_unit_test(dupinfo__copies_everything_inside),
		cmocka_unit_test(dupinfo__lets_the_device_copy_itself),
		cmocka_unit_test(dupinfo__of_nothing_is_empty_hints),
		cmocka_unit_test(fabric__of_another_provider_is_none),
		cmocka_unit_test(strerror__has_words_for_all_errors),
		cmocka_unit_test(versions__of_all_releases_since_1_9),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
