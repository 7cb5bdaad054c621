/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looking them up. See real.h. */
#include <dlfcn.h>
#include <string.h>

#include "real.h"

struct bws_real bws_real;

static void *bws_real_find(const char *name)
{
	if (!strcmp(name, "spawn_dup2"))
		name = "posix_spawn_file_actions_adddup2";
	if (!strcmp(name, "vdprintf_chk"))
		name = "__vdprintf_chk";
	return dlsym(RTLD_NEXT, name);
}

void bws_real_load(void)
{
#define BWS_REAL_FIND(result, name, arguments) *(void **)&bws_real.name = bws_real_find(#name);
	BWS_REAL_ALL(BWS_REAL_FIND)
#undef BWS_REAL_FIND
	__atomic_store_n(&bws_real.loaded, true, __ATOMIC_RELEASE);
}
