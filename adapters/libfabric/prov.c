// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The entry point that libfabric looks for in a provider outside its own tree. The shared object
 * uses no symbol of libfabric, only its public headers, so that one build loads into any version of
 * it.
 */
#include "bwf.h"

#ifndef EXTERNALLY_VISIBLE
#define EXTERNALLY_VISIBLE
#endif
#include <rdma/providers/fi_prov.h>

static void bwf_cleanup(void)
{
}

static struct fi_provider bwf_provider = {
	.version = FI_VERSION(0, 1),
	.fi_version = FI_VERSION(2, 99), /* at least what any application asks for */
	.name = BWF_NAME,
	.getinfo = bwf_getinfo,
	.fabric = bwf_fabric_open,
	.cleanup = bwf_cleanup,
};

FI_EXT_INI
{
	return &bwf_provider;
}
