// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is known of a device's interface, as `struct fid_nic` tells it: collective libraries choose
 * the interface next to a GPU by the PCI address, and divide their work by the speed. The driver is
 * asked, by ethtool's calls, as /sys may show another network namespace.
 */
#include "bwf.h"
#include "device.h"

#include <dirent.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define BWF_NIC_DEPTH 4 /* interfaces upon interfaces */
#define BWF_NIC_MEGA  1000000ULL

static char *bwf_nic_text(const char *text)
{
	return text && *text ? strdup(text) : NULL;
}

static int bwf_nic_close(struct fid *fid)
{
	struct fid_nic *nic = (struct fid_nic *)fid;

	if (nic->device_attr) {
		free(nic->device_attr->name);
		free(nic->device_attr->device_id);
		free(nic->device_attr->vendor_id);
		free(nic->device_attr->driver);
		free(nic->device_attr->firmware);
	}
	if (nic->link_attr) {
		free(nic->link_attr->address);
		free(nic->link_attr->network_type);
	}
	free(nic->device_attr);
	free(nic->bus_attr);
	free(nic->link_attr);
	free(nic);
	return 0;
}

static struct fid_nic *bwf_nic_dup(const struct fid_nic *nic);

static int bwf_nic_control(struct fid *fid, int command, void *arg)
{
	struct fid_nic **copy = arg;

	if (command != FI_DUP)
		return -FI_ENOSYS;
	*copy = bwf_nic_dup((struct fid_nic *)fid);
	return *copy ? 0 : -FI_ENOMEM;
}

static const char *bwf_nic_told(const char *text)
{
	return text ? text : "";
}

static int bwf_nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	const struct fid_nic *nic = (const struct fid_nic *)fid;
	const struct fi_device_attr *d = nic->device_attr;
	const struct fi_link_attr *l = nic->link_attr;
	const struct fi_pci_attr *p = &nic->bus_attr->attr.pci;
	char bus[32] = "unknown";

	if (nic->bus_attr->bus_type == FI_BUS_PCI)
		snprintf(bus, sizeof(bus), "%04x:%02x:%02x.%x", p->domain_id, p->bus_id,
			 p->device_id, p->function_id);
	snprintf(buf, len,
		 "nic:\n    fi_device_attr:\n        name: %s\n        device_id: %s\n"
		 "        vendor_id: %s\n        driver: %s\n        firmware: %s\n"
		 "    fi_bus_attr:\n        pci: %s\n    fi_link_attr:\n        address: %s\n"
		 "        mtu: %zu\n        speed: %zu\n        state: %s\n"
		 "        network_type: %s\n",
		 bwf_nic_told(d->name), bwf_nic_told(d->device_id), bwf_nic_told(d->vendor_id),
		 bwf_nic_told(d->driver), bwf_nic_told(d->firmware), bus, bwf_nic_told(l->address),
		 l->mtu, l->speed, l->state == FI_LINK_UP ? "up" : "down",
		 bwf_nic_told(l->network_type));
	return 0;
}

static struct fi_ops bwf_nic_ops = {
	.size = sizeof(struct fi_ops),
	.close = bwf_nic_close,
	.bind = bwf_no_bind,
	.control = bwf_nic_control,
	.ops_open = bwf_no_ops_open,
	.tostr = bwf_nic_tostr,
	.ops_set = bwf_no_ops_set,
};

static struct fid_nic *bwf_nic_empty(void)
{
	struct fid_nic *nic = calloc(1, sizeof(*nic));

	if (!nic)
		return NULL;
	nic->fid.fclass = FI_CLASS_NIC;
	nic->fid.ops = &bwf_nic_ops;
	nic->device_attr = calloc(1, sizeof(*nic->device_attr));
	nic->bus_attr = calloc(1, sizeof(*nic->bus_attr));
	nic->link_attr = calloc(1, sizeof(*nic->link_attr));
	if (nic->device_attr && nic->bus_attr && nic->link_attr)
		return nic;
	bwf_nic_close(&nic->fid);
	return NULL;
}

static struct fid_nic *bwf_nic_dup(const struct fid_nic *nic)
{
	const struct fi_device_attr *d = nic->device_attr;
	struct fid_nic *copy = bwf_nic_empty();

	if (!copy)
		return NULL;
	copy->fid.context = nic->fid.context;
	copy->device_attr->name = bwf_nic_text(d->name);
	copy->device_attr->device_id = bwf_nic_text(d->device_id);
	copy->device_attr->vendor_id = bwf_nic_text(d->vendor_id);
	copy->device_attr->driver = bwf_nic_text(d->driver);
	copy->device_attr->firmware = bwf_nic_text(d->firmware);
	*copy->bus_attr = *nic->bus_attr;
	*copy->link_attr = *nic->link_attr;
	copy->link_attr->address = bwf_nic_text(nic->link_attr->address);
	copy->link_attr->network_type = bwf_nic_text(nic->link_attr->network_type);
	return copy;
}

void bwf_nic_bus(const char *text, struct fi_bus_attr *bus)
{
	unsigned int domain, number, device, function;
	char end;

	memset(bus, 0, sizeof(*bus));
	bus->bus_type = FI_BUS_UNKNOWN;
	if (sscanf(text, "%4x:%2x:%2x.%1x%c", &domain, &number, &device, &function, &end) != 4)
		return;
	bus->bus_type = FI_BUS_PCI;
	bus->attr.pci = (struct fi_pci_attr){
		.domain_id = (uint16_t)domain,
		.bus_id = (uint8_t)number,
		.device_id = (uint8_t)device,
		.function_id = (uint8_t)function,
	};
}

/* One of ethtool's questions to a driver. */
static bool bwf_nic_ask(const char *interface, void *question)
{
	struct ifreq request = {.ifr_data = question};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool answered;

	if (fd < 0)
		return false;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	answered = ioctl(fd, SIOCETHTOOL, &request) == 0;
	close(fd);
	return answered;
}

/* Bits per second; 0: not known. */
static uint64_t bwf_nic_speed(const char *interface)
{
	struct ethtool_cmd command = {.cmd = ETHTOOL_GSET};
	uint32_t mega;

	if (!bwf_nic_ask(interface, &command))
		return 0;
	mega = (uint32_t)command.speed_hi << 16 | command.speed;
	return mega == (uint32_t)SPEED_UNKNOWN ? 0 : mega * BWF_NIC_MEGA;
}

/* The driver of an interface; where it is not on a bus itself, as one for VLANs, of the first one
 * with a bus that it is made of, but for the name of the driver. */
static void bwf_nic_driver(const char *interface, struct ethtool_drvinfo *driver,
			   struct fi_bus_attr *bus, int depth)
{
	static const char lower[] = "lower_";
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	*driver = (struct ethtool_drvinfo){.cmd = ETHTOOL_GDRVINFO};
	bus->bus_type = FI_BUS_UNKNOWN;
	if (bwf_nic_ask(interface, driver))
		bwf_nic_bus(driver->bus_info, bus);
	if (bus->bus_type != FI_BUS_UNKNOWN || depth == BWF_NIC_DEPTH)
		return;
	snprintf(path, sizeof(path), "/sys/class/net/%s", interface);
	dir = opendir(path);
	while (dir && bus->bus_type == FI_BUS_UNKNOWN && (entry = readdir(dir))) {
		struct ethtool_drvinfo below;

		if (strncmp(entry->d_name, lower, strlen(lower)) == 0)
			bwf_nic_driver(entry->d_name + strlen(lower), &below, bus, depth + 1);
	}
	if (dir)
		closedir(dir);
}

/* A number that the PCI device tells of itself, "0x8086". */
static char *bwf_nic_pci_word(const struct fi_pci_attr *pci, const char *what)
{
	char path[PATH_MAX], word[16] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%04x:%02x:%02x.%x/%s", pci->domain_id,
		 pci->bus_id, pci->device_id, pci->function_id, what);
	f = fopen(path, "re");
	if (f && fscanf(f, "%15s", word) != 1)
		word[0] = 0;
	if (f)
		fclose(f);
	return bwf_nic_text(word);
}

static void bwf_nic_fill_link(struct fi_link_attr *link, const struct bwf_device *device)
{
	const struct bw_iface *iface = device->iface;
	char mac[18];

	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", iface->mac[0], iface->mac[1],
		 iface->mac[2], iface->mac[3], iface->mac[4], iface->mac[5]);
	link->address = strdup(mac);
	link->mtu = iface->mtu;
	for (int i = 0; i < device->n; i++)
		link->speed += bwf_nic_speed(iface[i].name);
	link->state = iface->up && iface->carrier ? FI_LINK_UP : FI_LINK_DOWN;
	link->network_type = strdup("Ethernet");
}

struct fid_nic *bwf_nic_new(const struct bwf_device *device)
{
	struct ethtool_drvinfo driver;
	struct fid_nic *nic;

	if (!device->n)
		return NULL;
	nic = bwf_nic_empty();
	if (!nic)
		return NULL;
	bwf_nic_driver(device->iface[0].name, &driver, nic->bus_attr, 0);
	nic->device_attr->name = strdup(device->name);
	nic->device_attr->driver = bwf_nic_text(driver.driver);
	nic->device_attr->firmware = bwf_nic_text(driver.fw_version);
	if (nic->bus_attr->bus_type == FI_BUS_PCI) {
		const struct fi_pci_attr *pci = &nic->bus_attr->attr.pci;

		nic->device_attr->device_id = bwf_nic_pci_word(pci, "device");
		nic->device_attr->vendor_id = bwf_nic_pci_word(pci, "vendor");
	}
	bwf_nic_fill_link(nic->link_attr, device);
	return nic;
}
