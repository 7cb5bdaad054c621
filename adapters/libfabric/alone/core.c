// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * fi_getinfo() and fi_fabric(): they find the provider, and are its own functions after that.
 */
#include "alone.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/providers/fi_prov.h>

#define BWA_FILE     "libbeowire-fi.so"
#define BWA_PATH_MAX 4096

/* libfabric 2.0's; earlier headers do not declare it. */
int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric, uint64_t flags, void *context);

static pthread_once_t bwa_once = PTHREAD_ONCE_INIT;
static struct fi_provider *bwa_provider; /* NULL: there is none; written once */

/* Loads the provider from a directory, for good: `length` characters of `directory`. */
static bool bwa_load_from(const char *directory, size_t length)
{
	char path[BWA_PATH_MAX];
	struct fi_provider *(*initialize)(void);
	void *library;
	int used;

	used = snprintf(path, sizeof(path), "%.*s/" BWA_FILE, (int)length, directory);
	if (!length || used < 0 || (size_t)used >= sizeof(path))
		return false;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return false;
	*(void **)&initialize = dlsym(library, "fi_prov_ini");
	bwa_provider = initialize ? initialize() : NULL;
	return bwa_provider != NULL;
}

/* From the directory above this library's. Asked for by address: what stands between us and
 * dlopen(), such as a sanitizer, would take the loader's $ORIGIN for its own. */
static void bwa_load_above(void)
{
	char path[BWA_PATH_MAX];
	const char *end;
	Dl_info own;
	int used;

	if (!dladdr((const void *)&bwa_provider, &own) || !own.dli_fname)
		return;
	end = strrchr(own.dli_fname, '/');
	if (!end)
		return;
	used = snprintf(path, sizeof(path), "%.*s/..", (int)(end - own.dli_fname), own.dli_fname);
	if (used > 0 && (size_t)used < sizeof(path))
		bwa_load_from(path, (size_t)used);
}

/* From the directories of FI_PROVIDER_PATH, else from the one above this library's. */
static void bwa_load(void)
{
	const char *path = getenv("FI_PROVIDER_PATH");

	while (path && *path) {
		size_t length = strcspn(path, ":");

		if (bwa_load_from(path, length))
			return;
		path += length + (path[length] == ':');
	}
	bwa_load_above();
}

/* Whether a list of names, such as FI_PROVIDER holds, lets the provider be: names with commas, and
 * behind ^ those that are not wanted. */
static bool bwa_is_wanted(const char *list)
{
	bool refusing = *list == '^';
	bool named = false;

	for (list += refusing; *list; list += *list == ',') {
		size_t length = strcspn(list, ",");

		named = named ||
			(length == strlen(BWA_NAME) && strncasecmp(list, BWA_NAME, length) == 0);
		list += length;
	}
	return named != refusing;
}

static struct fi_provider *bwa_find(const char *asked)
{
	const char *setting = getenv("FI_PROVIDER");

	if ((setting && *setting && !bwa_is_wanted(setting)) || (asked && !bwa_is_wanted(asked)))
		return NULL;
	pthread_once(&bwa_once, bwa_load);
	return bwa_provider;
}

/* Names the provider in what it told. */
static int bwa_name(struct fi_info *info, uint32_t version, const struct fi_provider *provider)
{
	for (; info; info = info->next) {
		struct fi_fabric_attr *fabric = info->fabric_attr;

		if (!fabric->prov_name)
			fabric->prov_name = strdup(provider->name);
		if (!fabric->prov_name)
			return -FI_ENOMEM;
		fabric->prov_version = provider->version;
		fabric->api_version = version;
	}
	return 0;
}

int bwa_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info)
{
	const char *asked = hints && hints->fabric_attr ? hints->fabric_attr->prov_name : NULL;
	struct fi_provider *provider = bwa_find(asked);
	int ret;

	*info = NULL;
	if (!provider || FI_VERSION_LT(provider->fi_version, version))
		return provider ? -FI_ENOSYS : -FI_ENODATA;
	ret = provider->getinfo(version, node, service, flags, hints, info);
	if (ret)
		return ret;
	ret = bwa_name(*info, version, provider);
	if (ret) {
		bwa_freeinfo(*info);
		*info = NULL;
	}
	return ret;
}

BWA_EXPORT int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct fi_provider *provider = attr ? bwa_find(attr->prov_name) : NULL;

	if (!attr)
		return -FI_EINVAL;
	return provider ? provider->fabric(attr, fabric, context) : -FI_ENODEV;
}

BWA_EXPORT int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric, uint64_t flags,
			  void *context)
{
	return flags ? -FI_EINVAL : fi_fabric(info->fabric_attr, fabric, context);
}

/* There are no objects of libfabric itself here. */
BWA_EXPORT int fi_open(uint32_t version, const char *name, void *attr, size_t attr_len,
		       uint64_t flags, struct fid **fid, void *context)
{
	return -FI_ENOSYS;
}

/* That of the headers from which the provider and this were built. */
BWA_EXPORT uint32_t fi_version(void)
{
	return FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

BWA_ALL_VERSIONS(bwa_getinfo, "fi_getinfo");
