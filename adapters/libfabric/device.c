// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The devices that fi_getinfo() lists: see device.h. */
#include "bwf.h"
#include "device.h"

#include <stdio.h>

/* Whatever is wrong with a setting is told when an endpoint is opened. */
static bool bwf_device_settings(struct bw_env *env)
{
	const char *why;

	return bw_env_read(env, &why) == 0;
}

static void bwf_device_put_name(struct bwf_device *device)
{
	char name[sizeof(device->name)] = BWF_NAME;
	size_t used = 0;

	for (int i = 0; i < device->n; i++)
		used += (size_t)snprintf(name + used, sizeof(name) - used, "%s%s", i ? "," : "",
					 device->iface[i].name);
	memcpy(device->name, name, sizeof(name));
}

/* What an endpoint uses by the settings. */
static void bwf_device_together(const struct bw_env *env, struct bwf_device *device)
{
	union bw_name address;
	const char *why;

	memset(device, 0, sizeof(*device));
	if (env->links & (BW_LINK_PACKET | BW_LINK_KERNEL))
		device->n = bw_iface_choose_all(env, device->iface, BWF_DEVICE_IFACES, &why);
	if (device->n < 0)
		device->n = 0;
	if (!device->n && (env->links & BW_LINK_UDP) &&
	    bw_iface_choose_ip(env, NULL, device->iface, &address, &why) == 0)
		device->n = 1;
	bwf_device_put_name(device);
}

static void bwf_device_of(const struct bw_iface *iface, struct bwf_device *device)
{
	memset(device, 0, sizeof(*device));
	device->iface[0] = *iface;
	device->n = 1;
	bwf_device_put_name(device);
}

static bool bwf_device_usable(const struct bw_iface *iface)
{
	return iface->ethernet && iface->up && iface->carrier && !iface->loopback;
}

/* Each interface by itself: those that BEOWIRE_INTERFACES names, in its order, or all. */
static int bwf_device_each(const struct bw_env *env, struct bwf_device *device, int most)
{
	struct bw_iface iface[BW_IFACE_MAX];
	const char *why;
	int n = env->interfaces ? bw_iface_choose_all(env, iface, BW_IFACE_MAX, &why)
				: bw_iface_list(iface);
	int found = 0;

	for (int i = 0; i < n && found < most; i++) {
		if (bwf_device_usable(&iface[i]))
			bwf_device_of(&iface[i], &device[found++]);
	}
	return found;
}

int bwf_device_list(struct bwf_device *device, int most)
{
	struct bw_env env;
	int n = 0;

	if (!bwf_device_settings(&env)) {
		memset(device, 0, sizeof(*device));
		bwf_device_put_name(device);
		return 1;
	}
	if (env.each && (env.links & ~(unsigned int)BW_LINK_LOCAL))
		n = bwf_device_each(&env, device, most);
	if (n)
		return n;
	bwf_device_together(&env, device);
	return 1;
}

bool bwf_device_find(const char *name, struct bwf_device *device)
{
	struct bw_iface iface[BW_IFACE_MAX];
	struct bw_env env;
	int n;

	if (!bwf_device_settings(&env)) {
		bwf_device_list(device, 1);
		return !name || strcmp(name, BWF_NAME) == 0;
	}
	bwf_device_together(&env, device);
	if (!name || strcmp(name, BWF_NAME) == 0 || strcmp(name, device->name) == 0)
		return true;
	n = env.links & ~(unsigned int)BW_LINK_LOCAL ? bw_iface_list(iface) : 0;
	for (int i = 0; i < n; i++) {
		if (strcmp(name, iface[i].name) == 0 && bwf_device_usable(&iface[i])) {
			bwf_device_of(&iface[i], device);
			return true;
		}
	}
	return false;
}

void bwf_device_interface(const char *name, char interface[IFNAMSIZ])
{
	struct bwf_device device;
	struct bw_env env;

	interface[0] = 0;
	if (!name || strcmp(name, BWF_NAME) == 0 || strlen(name) >= IFNAMSIZ ||
	    !bwf_device_settings(&env))
		return;
	bwf_device_together(&env, &device);
	if (strcmp(name, device.name) != 0)
		strcpy(interface, name);
}
