// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Domains and what fi_getinfo() tells of their interfaces, in a network namespace of the program's
 * own with the interfaces pair-a and pair-b (9000 bytes), third, and gone (down).
 */
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "inside.h"

enum { NAME = 56, VETH_SPEED_GIGA = 10 };

static struct fi_info *hints;

static int interfaces(void **state)
{
	static const char *const commands[] = {
		"ip link set lo up",
		"ip link add pair-a mtu 9000 type veth peer name pair-b mtu 9000",
		"ip link add third type veth peer name fourth",
		"ip link add gone type veth peer name gone-too",
		"for each in pair-a pair-b third fourth; do ip link set $each up || exit 1; done",
	};

	if (unshare(CLONE_NEWNET))
		return -1;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (system(commands[i]))
			return -1;
	}
	return 0;
}

static int setup(void **state)
{
	hints = pair_hints();
	unsetenv("BEOWIRE_INTERFACES");
	unsetenv("BEOWIRE_DOMAINS");
	setenv("BEOWIRE_LINKS", "packet,local", 1);
	setenv("BEOWIRE_INTERFACE", "pair-a", 1);
	return 0;
}

static int teardown(void **state)
{
	fi_freeinfo(hints);
	return 0;
}

static struct fi_info *listed(void)
{
	struct fi_info *info;

	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
	return info;
}

static void unknown(const char *domain)
{
	struct fi_info *info;

	free(hints->domain_attr->name);
	hints->domain_attr->name = strdup(domain);
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), -FI_ENODATA);
}

static struct fi_info *named(const char *domain)
{
	free(hints->domain_attr->name);
	hints->domain_attr->name = strdup(domain);
	return listed();
}

static void mac_of(const char *interface, uint8_t mac[6])
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq request = {0};

	strcpy(request.ifr_name, interface);
	assert_int_equal(ioctl(fd, SIOCGIFHWADDR, &request), 0);
	memcpy(mac, request.ifr_hwaddr.sa_data, 6);
	close(fd);
}

static void is_nic(const struct fi_info *info, const char *name, const char *first, size_t giga)
{
	const struct fid_nic *nic = info->nic;
	uint8_t mac[6];
	char text[18];

	mac_of(first, mac);
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		 mac[3], mac[4], mac[5]);
	assert_string_equal(info->domain_attr->name, name);
	assert_non_null(nic);
	assert_int_equal(nic->fid.fclass, FI_CLASS_NIC);
	assert_string_equal(nic->device_attr->name, name);
	assert_int_equal(nic->bus_attr->bus_type, FI_BUS_UNKNOWN);
	assert_string_equal(nic->link_attr->address, text);
	assert_string_equal(nic->link_attr->network_type, "Ethernet");
	assert_int_equal(nic->link_attr->state, FI_LINK_UP);
	assert_int_equal(nic->link_attr->mtu, 9000);
	assert_int_equal(nic->link_attr->speed, giga * 1000000000);
}

static void domain__is_named_as_its_interface(void **state)
{
	struct fi_info *info = listed();

	is_nic(info, "pair-a", "pair-a", VETH_SPEED_GIGA);
	assert_string_equal(info->nic->device_attr->driver, "veth");
	assert_null(info->next);
	fi_freeinfo(info);
	setenv("BEOWIRE_LINKS", "local", 1);
	info = listed();
	assert_string_equal(info->domain_attr->name, "beowire");
	assert_null(info->nic);
	fi_freeinfo(info);
}

static void domain__of_several_that_are_used_together(void **state)
{
	struct fi_info *info;

	setenv("BEOWIRE_INTERFACES", "pair-b,pair-a", 1);
	info = listed();
	is_nic(info, "pair-b,pair-a", "pair-b", 2 * VETH_SPEED_GIGA);
	assert_null(info->next);
	fi_freeinfo(info);
}

static void domains__of_each_interface(void **state)
{
	static const char *const all[] = {"pair-a", "pair-b", "third"};
	int found[3] = {0}, n = 0;
	struct fi_info *info, *i;

	setenv("BEOWIRE_DOMAINS", "each", 1);
	info = listed();
	for (i = info; i; i = i->next, n++) {
		assert_non_null(i->nic);
		for (int k = 0; k < 3; k++)
			found[k] += strcmp(i->domain_attr->name, all[k]) == 0;
		assert_string_not_equal(i->domain_attr->name, "lo");
		assert_string_not_equal(i->domain_attr->name, "gone");
	}
	assert_int_equal(found[0] & found[1] & found[2], 1);
	fi_freeinfo(info);
	setenv("BEOWIRE_INTERFACES", "pair-b,pair-a", 1);
	info = listed();
	is_nic(info, "pair-b", "pair-b", VETH_SPEED_GIGA);
	is_nic(info->next, "pair-a", "pair-a", VETH_SPEED_GIGA);
	assert_null(info->next->next);
	fi_freeinfo(info);
	setenv("BEOWIRE_LINKS", "local", 1);
	info = listed();
	assert_string_equal(info->domain_attr->name, "beowire");
	fi_freeinfo(info);
}

/* The interface by which an endpoint of the domain is found: its address is in the endpoint's. */
static bool uses(struct fi_info *info, const char *interface)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	char name[NAME];
	size_t n = sizeof(name);
	uint8_t mac[6];

	mac_of(interface, mac);
	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_domain(fabric, info, &domain, NULL), 0);
	assert_int_equal(fi_endpoint(domain, info, &ep, NULL), 0);
	assert_int_equal(fi_getname(&ep->fid, name, &n), 0);
	assert_int_equal(n, NAME);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	return memmem(name, n, mac, sizeof(mac)) != NULL;
}

static void domain__by_name_is_opened_by_that_interface(void **state)
{
	static const char *const with_a[] = {"pair-a", "beowire"};
	struct fi_info *info;

	for (size_t i = 0; i < 2; i++) {
		info = named(with_a[i]);
		assert_string_equal(info->domain_attr->name, "pair-a");
		assert_null(info->next);
		assert_true(uses(info, "pair-a"));
		assert_false(uses(info, "pair-b"));
		fi_freeinfo(info);
	}
	info = named("pair-b");
	is_nic(info, "pair-b", "pair-b", VETH_SPEED_GIGA);
	assert_null(info->next);
	assert_true(uses(info, "pair-b"));
	assert_false(uses(info, "pair-a"));
	fi_freeinfo(info);
	/* both, and one of both */
	setenv("BEOWIRE_INTERFACES", "pair-a,pair-b", 1);
	info = named("pair-a,pair-b");
	assert_true(uses(info, "pair-a"));
	assert_true(uses(info, "pair-b"));
	fi_freeinfo(info);
	info = named("pair-b");
	assert_true(uses(info, "pair-b"));
	assert_false(uses(info, "pair-a"));
	fi_freeinfo(info);
	unknown("pair-c");
	unknown("gone");
	unknown("lo");
	setenv("BEOWIRE_LINKS", "local", 1);
	unknown("pair-a");
}

static void nic__is_copied_with_its_info(void **state)
{
	struct fi_info *info = listed(), *copy = fi_dupinfo(info);
	char text[2048];

	assert_non_null(copy);
	assert_ptr_not_equal(copy->nic, info->nic);
	fi_freeinfo(info);
	is_nic(copy, "pair-a", "pair-a", VETH_SPEED_GIGA);
	assert_string_equal(copy->nic->device_attr->driver, "veth");
	assert_int_equal(copy->nic->fid.ops->tostr(&copy->nic->fid, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "name: pair-a\n"));
	assert_non_null(strstr(text, "speed: 10000000000\n"));
	assert_int_equal(copy->nic->fid.ops->tostr(&copy->nic->fid, text, 4), 0);
	assert_string_equal(text, "nic");
	fi_freeinfo(copy);
}

static void bus__is_what_drivers_write(void **state)
{
	static const char *const none[] = {
		"", "virtio0", "usb-0000:00:14.0-1", "0000:03:00", "0000:03:00.1x", "0000:03:00.",
	};
	struct fi_bus_attr bus;

	bwf_nic_bus("01ab:c3:1f.7", &bus);
	assert_int_equal(bus.bus_type, FI_BUS_PCI);
	assert_int_equal(bus.attr.pci.domain_id, 0x1ab);
	assert_int_equal(bus.attr.pci.bus_id, 0xc3);
	assert_int_equal(bus.attr.pci.device_id, 0x1f);
	assert_int_equal(bus.attr.pci.function_id, 7);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		bwf_nic_bus(none[i], &bus);
		assert_int_equal(bus.bus_type, FI_BUS_UNKNOWN);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(domain__is_named_as_its_interface),
		TEST(domain__of_several_that_are_used_together),
		TEST(domains__of_each_interface),
		TEST(domain__by_name_is_opened_by_that_interface),
		TEST(nic__is_copied_with_its_info),
		TEST(bus__is_what_drivers_write),
	};

	return cmocka_run_group_tests_name("device", tests, interfaces, NULL);
}
