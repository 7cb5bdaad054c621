// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * fi_getinfo(): what is offered, cut down to what the hints ask for, or refused. libfabric frees
 * the result and its own versions differ in the size of these structures, so each is allocated with
 * room to spare.
 */
#include "bwf.h"
#include "device.h"
#include "name.h"

#include <stdlib.h>

#define BWF_DEVICES_MAX 16   /* domains listed */
#define BWF_INFO_BYTES	1024 /* per structure; the largest one in libfabric 2.x has about 250 */

#define BWF_PRIMARY_CAPS (FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_DIRECTED_RECV)
#define BWF_TX_CAPS                                                                                \
	(FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE | FI_FENCE)
#define BWF_RX_CAPS                                                                                \
	(FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_DIRECTED_RECV | FI_RECV | FI_REMOTE_READ |   \
	 FI_REMOTE_WRITE | FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT)
#define BWF_DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define BWF_NEW_CAPS                                                                               \
	(BWF_FI_TAGGED_DIRECTED_RECV | BWF_FI_TAGGED_MULTI_RECV | BWF_FI_EXACT_DIRECTED_RECV)
#define BWF_MESSAGE_CAPS (FI_MSG | FI_TAGGED)
#define BWF_MEMORY_CAPS	 (FI_RMA | FI_ATOMIC)
#define BWF_SEND_CAPS	 (FI_SEND | FI_RECV)
#define BWF_ACCESS_CAPS	 (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* Messages keep their order, and so do atomics and short writes (up to max_order_waw_size), which
 * are messages to the target's provider. */
#define BWF_ORDER                                                                                  \
	(FI_ORDER_SAS | FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR |                    \
	 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
#define BWF_TX_OP_FLAGS                                                                            \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |                   \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_FENCE | FI_MORE | FI_REMOTE_CQ_DATA)
#define BWF_RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV | FI_MORE)

/* Capabilities of the version that the application was written for. */
static uint64_t bwf_info_all_caps(uint32_t version)
{
	uint64_t caps = BWF_TX_CAPS | BWF_RX_CAPS | BWF_DOMAIN_CAPS;

	return FI_VERSION_GE(version, FI_VERSION(2, 0)) ? caps | BWF_NEW_CAPS : caps;
}

/* What an endpoint with the capabilities asked for has: those, what they imply, and what is free.
 */
static uint64_t bwf_info_caps(uint32_t version, const struct fi_info *hints)
{
	uint64_t caps;

	if (!hints || !hints->caps)
		return bwf_info_all_caps(version);
	caps = hints->caps | BWF_DOMAIN_CAPS;
	if ((caps & BWF_MESSAGE_CAPS) && !(caps & BWF_SEND_CAPS))
		caps |= BWF_SEND_CAPS;
	if ((caps & BWF_MEMORY_CAPS) && !(caps & BWF_ACCESS_CAPS))
		caps |= BWF_ACCESS_CAPS;
	return caps;
}

static bool bwf_info_subset(uint64_t asked, uint64_t offered)
{
	return (asked & ~offered) == 0;
}

static bool bwf_info_fits_tx(const struct fi_tx_attr *h, uint64_t caps)
{
	return bwf_info_subset(h->caps, caps) && bwf_info_subset(h->op_flags, BWF_TX_OP_FLAGS) &&
	       bwf_info_subset(h->msg_order, BWF_ORDER) && !h->comp_order &&
	       h->inject_size <= BWF_INJECT_MAX && h->iov_limit <= BWF_IOV_MAX &&
	       h->rma_iov_limit <= BWF_IOV_MAX;
}

static bool bwf_info_fits_rx(const struct fi_rx_attr *h, uint64_t caps)
{
	return bwf_info_subset(h->caps, caps) && bwf_info_subset(h->op_flags, BWF_RX_OP_FLAGS) &&
	       bwf_info_subset(h->msg_order, BWF_ORDER) && !h->comp_order &&
	       h->iov_limit <= BWF_IOV_MAX;
}

static bool bwf_info_fits_ep(const struct fi_ep_attr *h)
{
	return (h->type == FI_EP_UNSPEC || h->type == FI_EP_RDM) &&
	       (h->protocol == FI_PROTO_UNSPEC || h->protocol == BWF_PROTOCOL) &&
	       h->protocol_version <= 1 && h->max_msg_size <= BWF_MESSAGE_MAX &&
	       !h->msg_prefix_size && h->max_order_raw_size <= BWF_ATOMIC_MAX &&
	       h->max_order_war_size <= BWF_ATOMIC_MAX && h->max_order_waw_size <= BWF_ATOMIC_MAX &&
	       h->tx_ctx_cnt <= 1 && h->rx_ctx_cnt <= 1 && !h->auth_key_size;
}

/* The memory registration mode for what the application can cope with; negative: none. Keys are
 * chosen here, at random, if it can take them. */
static int bwf_info_mr_mode(uint32_t version, int asked)
{
	if (asked == BWF_MR_BASIC || asked == BWF_MR_SCALABLE)
		return asked;
	if (FI_VERSION_GE(version, FI_VERSION(1, 5)))
		return asked & FI_MR_PROV_KEY;
	return asked == BWF_MR_UNSPEC ? BWF_MR_SCALABLE : -1;
}

static bool bwf_info_fits_domain(const struct fi_domain_attr *h, uint32_t version)
{
	return h->threading <= FI_THREAD_ENDPOINT && h->av_type <= FI_AV_TABLE &&
	       bwf_info_mr_mode(version, h->mr_mode) >= 0 && h->mr_key_size <= sizeof(uint64_t) &&
	       h->cq_data_size <= sizeof(uint64_t) && h->cq_cnt <= BWF_OBJECT_MAX &&
	       h->ep_cnt <= BWF_OBJECT_MAX && h->max_ep_tx_ctx <= 1 && h->max_ep_rx_ctx <= 1 &&
	       !h->max_ep_stx_ctx && !h->max_ep_srx_ctx && h->cntr_cnt <= BWF_OBJECT_MAX &&
	       h->mr_iov_limit <= 1 && bwf_info_subset(h->caps, BWF_DOMAIN_CAPS) &&
	       !h->auth_key_size && h->mr_cnt <= BWF_OBJECT_MAX;
}

static bool bwf_info_fits(const struct fi_info *h, uint32_t version)
{
	uint64_t caps = bwf_info_all_caps(version);

	if (!bwf_info_subset(h->caps, caps))
		return false;
	if (h->caps)
		caps = bwf_info_caps(version, h);
	if (h->addr_format != FI_FORMAT_UNSPEC && h->addr_format != BWF_ADDR_FORMAT)
		return false;
	if ((h->src_addr && h->src_addrlen != sizeof(struct bw_addr)) ||
	    (h->dest_addr && h->dest_addrlen != sizeof(struct bw_addr)))
		return false;
	return (!h->tx_attr || bwf_info_fits_tx(h->tx_attr, caps)) &&
	       (!h->rx_attr || bwf_info_fits_rx(h->rx_attr, caps)) &&
	       (!h->ep_attr || bwf_info_fits_ep(h->ep_attr)) &&
	       (!h->domain_attr || bwf_info_fits_domain(h->domain_attr, version)) &&
	       (!h->fabric_attr || !h->fabric_attr->name ||
		strcmp(h->fabric_attr->name, BWF_NAME) == 0);
}

static void bwf_info_free(struct fi_info *info)
{
	if (info->domain_attr)
		free(info->domain_attr->name);
	if (info->fabric_attr)
		free(info->fabric_attr->name);
	if (info->nic)
		info->nic->fid.ops->close(&info->nic->fid);
	free(info->src_addr);
	free(info->dest_addr);
	free(info->tx_attr);
	free(info->rx_attr);
	free(info->ep_attr);
	free(info->domain_attr);
	free(info->fabric_attr);
	free(info);
}

static struct fi_info *bwf_info_new(const char *domain)
{
	struct fi_info *info = calloc(1, BWF_INFO_BYTES);

	if (!info)
		return NULL;
	info->tx_attr = calloc(1, BWF_INFO_BYTES);
	info->rx_attr = calloc(1, BWF_INFO_BYTES);
	info->ep_attr = calloc(1, BWF_INFO_BYTES);
	info->domain_attr = calloc(1, BWF_INFO_BYTES);
	info->fabric_attr = calloc(1, BWF_INFO_BYTES);
	info->src_addr = calloc(1, sizeof(struct bw_addr));
	if (info->domain_attr)
		info->domain_attr->name = strdup(domain);
	if (info->fabric_attr)
		info->fabric_attr->name = strdup(BWF_NAME);
	if (info->tx_attr && info->rx_attr && info->ep_attr && info->src_addr &&
	    info->domain_attr && info->domain_attr->name && info->fabric_attr &&
	    info->fabric_attr->name)
		return info;
	bwf_info_free(info);
	return NULL;
}

static void bwf_info_fill_queues(struct fi_info *info, const struct fi_info *hints)
{
	*info->tx_attr = (struct fi_tx_attr){
		.caps = info->caps & BWF_TX_CAPS,
		.msg_order = BWF_ORDER,
		.inject_size = BWF_INJECT_MAX,
		.size = BWF_CTX_SIZE,
		.iov_limit = BWF_IOV_MAX,
		.rma_iov_limit = BWF_IOV_MAX,
	};
	*info->rx_attr = (struct fi_rx_attr){
		.caps = info->caps & (BWF_RX_CAPS | BWF_NEW_CAPS),
		.msg_order = BWF_ORDER,
		.size = BWF_CTX_SIZE,
		.iov_limit = BWF_IOV_MAX,
	};
	if (hints && hints->tx_attr) {
		info->tx_attr->op_flags = hints->tx_attr->op_flags;
		info->tx_attr->tclass = hints->tx_attr->tclass;
		if (hints->tx_attr->size > BWF_CTX_SIZE)
			info->tx_attr->size = hints->tx_attr->size;
	}
	if (hints && hints->rx_attr) {
		info->rx_attr->op_flags = hints->rx_attr->op_flags;
		if (hints->rx_attr->size > BWF_CTX_SIZE)
			info->rx_attr->size = hints->rx_attr->size;
	}
}

static void bwf_info_fill_domain(struct fi_info *info, uint32_t version,
				 const struct fi_domain_attr *hints)
{
	struct fi_domain_attr *d = info->domain_attr;
	char *name = d->name;

	*d = (struct fi_domain_attr){
		.name = name,
		.threading = FI_THREAD_SAFE,
		.control_progress = FI_PROGRESS_AUTO,
		.data_progress = FI_PROGRESS_AUTO,
		.resource_mgmt = FI_RM_ENABLED,
		.av_type = FI_AV_MAP,
		.mr_mode = bwf_info_mr_mode(version, hints ? hints->mr_mode : 0),
		.mr_key_size = sizeof(uint64_t),
		.cq_data_size = sizeof(uint64_t),
		.cq_cnt = BWF_OBJECT_MAX,
		.ep_cnt = BWF_OBJECT_MAX,
		.tx_ctx_cnt = BWF_OBJECT_MAX,
		.rx_ctx_cnt = BWF_OBJECT_MAX,
		.max_ep_tx_ctx = 1,
		.max_ep_rx_ctx = 1,
		.cntr_cnt = BWF_OBJECT_MAX,
		.mr_iov_limit = 1,
		.caps = BWF_DOMAIN_CAPS,
		.mr_cnt = BWF_OBJECT_MAX,
	};
	if (!hints)
		return;
	if (hints->threading != FI_THREAD_UNSPEC)
		d->threading = hints->threading;
	if (hints->control_progress != FI_PROGRESS_UNSPEC)
		d->control_progress = hints->control_progress;
	if (hints->data_progress != FI_PROGRESS_UNSPEC)
		d->data_progress = hints->data_progress;
	if (hints->av_type != FI_AV_UNSPEC)
		d->av_type = hints->av_type;
	if (hints->resource_mgmt != FI_RM_UNSPEC)
		d->resource_mgmt = hints->resource_mgmt;
	d->tclass = hints->tclass;
}

static bool bwf_info_copy_addr(void **to, size_t *len, const void *from)
{
	if (!from)
		return true;
	if (!*to)
		*to = malloc(sizeof(struct bw_addr));
	if (!*to)
		return false;
	memcpy(*to, from, sizeof(struct bw_addr));
	*len = sizeof(struct bw_addr);
	return true;
}

static struct fi_info *bwf_info_make(uint32_t version, const struct fi_info *hints,
				     const struct bwf_device *device)
{
	struct fi_info *info = bwf_info_new(device->name);

	if (!info)
		return NULL;
	info->caps = bwf_info_caps(version, hints);
	info->addr_format = BWF_ADDR_FORMAT;
	info->src_addrlen = sizeof(struct bw_addr);
	*info->ep_attr = (struct fi_ep_attr){
		.type = FI_EP_RDM,
		.protocol = BWF_PROTOCOL,
		.protocol_version = 1,
		.max_msg_size = BWF_MESSAGE_MAX,
		.max_order_raw_size = BWF_ATOMIC_MAX,
		.max_order_war_size = BWF_ATOMIC_MAX,
		.max_order_waw_size = BWF_ATOMIC_MAX,
		.mem_tag_format = 0xAAAAAAAAAAAAAAAAULL, /* all 64 bits, none special */
		.tx_ctx_cnt = 1,
		.rx_ctx_cnt = 1,
	};
	bwf_info_fill_queues(info, hints);
	bwf_info_fill_domain(info, version, hints ? hints->domain_attr : NULL);
	info->fabric_attr->api_version = version;
	info->fabric_attr->prov_version = FI_VERSION(0, 1);
	info->nic = bwf_nic_new(device);
	if (hints &&
	    (!bwf_info_copy_addr(&info->src_addr, &info->src_addrlen, hints->src_addr) ||
	     !bwf_info_copy_addr(&info->dest_addr, &info->dest_addrlen, hints->dest_addr))) {
		bwf_info_free(info);
		return NULL;
	}
	return info;
}

/* Names given as node and service: of the endpoint itself with FI_SOURCE, else of the one to talk
 * to. */
static int bwf_info_name(struct fi_info *info, const char *node, const char *service,
			 uint64_t flags, const struct fi_info *hints)
{
	bool numeric = (flags & FI_NUMERICHOST) != 0;
	struct bw_addr addr;
	int ret = 0;

	if (!hints || !hints->src_addr)
		ret = bwf_name_make(NULL, NULL, false, info->src_addr);
	if (ret || (!node && !service))
		return ret;
	ret = bwf_name_make(node, service, numeric, &addr);
	if (ret)
		return ret;
	if ((flags & FI_SOURCE) || !node)
		return bwf_info_copy_addr(&info->src_addr, &info->src_addrlen, &addr) ? 0
										      : -FI_ENOMEM;
	return bwf_info_copy_addr(&info->dest_addr, &info->dest_addrlen, &addr) ? 0 : -FI_ENOMEM;
}

/* Those that the hints leave: one of a name, or all. */
static int bwf_info_devices(const struct fi_info *hints, struct bwf_device *device)
{
	const char *name = hints && hints->domain_attr ? hints->domain_attr->name : NULL;

	return name ? bwf_device_find(name, device) : bwf_device_list(device, BWF_DEVICES_MAX);
}

int bwf_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info)
{
	struct bwf_device device[BWF_DEVICES_MAX];
	struct fi_info *first = NULL, **end = &first;
	int ret = 0, n;

	if (flags & FI_PROV_ATTR_ONLY) {
		hints = NULL;
		node = service = NULL;
	}
	if (hints && !bwf_info_fits(hints, version))
		return -FI_ENODATA;
	n = bwf_info_devices(hints, device);
	for (int i = 0; i < n && !ret; i++) {
		*end = bwf_info_make(version, hints, &device[i]);
		ret = *end ? bwf_info_name(*end, node, service, flags, hints) : -FI_ENOMEM;
		if (*end)
			end = &(*end)->next;
	}
	if (!ret && n) {
		*info = first;
		return 0;
	}
	while (first) {
		struct fi_info *next = first->next;

		bwf_info_free(first);
		first = next;
	}
	return ret ? ret : -FI_ENODATA;
}
