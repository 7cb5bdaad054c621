/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A libfabric that knows one provider, Beowire: what an MPI calls of libfabric itself before the
 * provider's own functions take over. Distributions link theirs with the libraries of all devices,
 * and every process pays for their start (two of them measure the clock for 0.1 s each, and the
 * kernel's table of symbols is read twice), whatever FI_PROVIDER says.
 *
 * Its functions are documented in libfabric's manual pages: fi_getinfo(3), fi_fabric(3),
 * fi_errno(3). All may be called by several threads at once.
 */
#ifndef BEOWIRE_ALONE_H
#define BEOWIRE_ALONE_H

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>

#define BWA_NAME "beowire"

/* What programs see; alone.map says in which version. */
#define BWA_EXPORT __attribute__((visibility("default")))

#define BWA_VERSION(function, mark, symbol)                                                        \
	BWA_EXPORT extern __typeof__(function) function##mark __attribute__((alias(#function)));   \
	__asm__(".symver " #function #mark "," symbol)

/* The functions that take or give a struct fi_info have a new version whenever a structure grows at
 * its end. Programs built with libfabric 1.9 and later find theirs; 1.9 to 1.19 have FABRIC_1.3. */
#define BWA_ALL_VERSIONS(function, name)                                                           \
	BWA_VERSION(function, _1_3, name "@FABRIC_1.3");                                           \
	BWA_VERSION(function, _1_7, name "@FABRIC_1.7");                                           \
	BWA_VERSION(function, _1_8, name "@FABRIC_1.8");                                           \
	BWA_VERSION(function, _1_9, name "@@FABRIC_1.9")

/* fi_freeinfo(), fi_dupinfo() and fi_getinfo() without a version. */
void bwa_freeinfo(struct fi_info *info);
struct fi_info *bwa_dupinfo(const struct fi_info *info);
int bwa_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);

#endif
