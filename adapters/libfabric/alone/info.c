// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * fi_dupinfo() and fi_freeinfo(): descriptions of what a provider offers, with all that belongs to
 * them. Each part is allocated on its own, also by the provider, and freed here.
 */
#include "alone.h"

#include <rdma/fi_domain.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Room for what any version has at the end of a structure; the largest one of libfabric 2.x has
 * about 250 bytes. */
#define BWA_ROOM 1024

/* What all versions of struct fi_domain_attr have. Of what later ones added Beowire offers nothing,
 * and a caller of an earlier one does not have it. */
#define BWA_DOMAIN_BYTES (offsetof(struct fi_domain_attr, tclass) + sizeof(uint32_t))

/* A copy of so many bytes, nothing if there are none; *failed is set for want of memory. */
static void *bwa_copy(const void *from, size_t bytes, size_t room, bool *failed)
{
	void *to;

	if (!from)
		return NULL;
	to = calloc(1, room);
	if (to)
		memcpy(to, from, bytes);
	else
		*failed = true;
	return to;
}
#define BWA_COPY(part, failed) bwa_copy(part, sizeof(*(part)), BWA_ROOM, failed)

static char *bwa_copy_text(const char *from, bool *failed)
{
	return bwa_copy(from, from ? strlen(from) + 1 : 0, from ? strlen(from) + 1 : 0, failed);
}

static void bwa_free_one(struct fi_info *info)
{
	if (info->ep_attr)
		free(info->ep_attr->auth_key);
	if (info->domain_attr) {
		free(info->domain_attr->auth_key);
		free(info->domain_attr->name);
	}
	if (info->fabric_attr) {
		free(info->fabric_attr->name);
		free(info->fabric_attr->prov_name);
	}
	free(info->src_addr);
	free(info->dest_addr);
	free(info->tx_attr);
	free(info->rx_attr);
	free(info->ep_attr);
	free(info->domain_attr);
	free(info->fabric_attr);
	if (info->nic)
		fi_close(&info->nic->fid);
	free(info);
}

void bwa_freeinfo(struct fi_info *info)
{
	while (info) {
		struct fi_info *next = info->next;

		bwa_free_one(info);
		info = next;
	}
}

/* An empty one with all parts, to be filled with hints. */
static struct fi_info *bwa_new(void)
{
	struct fi_info *info = calloc(1, BWA_ROOM);

	if (!info)
		return NULL;
	info->tx_attr = calloc(1, BWA_ROOM);
	info->rx_attr = calloc(1, BWA_ROOM);
	info->ep_attr = calloc(1, BWA_ROOM);
	info->domain_attr = calloc(1, BWA_ROOM);
	info->fabric_attr = calloc(1, BWA_ROOM);
	if (info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr &&
	    info->fabric_attr)
		return info;
	bwa_free_one(info);
	return NULL;
}

/* Copies what the parts of a copy point to. */
static void bwa_copy_inside(struct fi_info *copy, bool *failed)
{
	struct fi_ep_attr *ep = copy->ep_attr;
	struct fi_domain_attr *domain = copy->domain_attr;
	struct fi_fabric_attr *fabric = copy->fabric_attr;

	if (ep)
		ep->auth_key = bwa_copy(ep->auth_key, ep->auth_key_size, ep->auth_key_size, failed);
	if (domain) {
		domain->name = bwa_copy_text(domain->name, failed);
		domain->auth_key = bwa_copy(domain->auth_key, domain->auth_key_size,
					    domain->auth_key_size, failed);
	}
	if (fabric) {
		fabric->name = bwa_copy_text(fabric->name, failed);
		fabric->prov_name = bwa_copy_text(fabric->prov_name, failed);
	}
}

/* A description of the device copies itself. */
static struct fid_nic *bwa_copy_nic(struct fid_nic *nic, bool *failed)
{
	struct fid_nic *copy = NULL;

	if (nic && fi_control(&nic->fid, FI_DUP, &copy))
		*failed = true;
	return copy;
}

struct fi_info *bwa_dupinfo(const struct fi_info *info)
{
	bool failed = false;
	struct fi_info *copy;

	if (!info)
		return bwa_new();
	copy = BWA_COPY(info, &failed);
	if (!copy)
		return NULL;
	copy->next = NULL;
	copy->nic = bwa_copy_nic(info->nic, &failed);
	copy->src_addr = bwa_copy(info->src_addr, info->src_addrlen, info->src_addrlen, &failed);
	copy->dest_addr =
		bwa_copy(info->dest_addr, info->dest_addrlen, info->dest_addrlen, &failed);
	copy->tx_attr = BWA_COPY(info->tx_attr, &failed);
	copy->rx_attr = BWA_COPY(info->rx_attr, &failed);
	copy->ep_attr = BWA_COPY(info->ep_attr, &failed);
	copy->domain_attr = bwa_copy(info->domain_attr, BWA_DOMAIN_BYTES, BWA_ROOM, &failed);
	copy->fabric_attr = BWA_COPY(info->fabric_attr, &failed);
	bwa_copy_inside(copy, &failed);
	if (!failed)
		return copy;
	bwa_freeinfo(copy);
	return NULL;
}

BWA_ALL_VERSIONS(bwa_freeinfo, "fi_freeinfo");
BWA_ALL_VERSIONS(bwa_dupinfo, "fi_dupinfo");
