/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The library's lock and settings. See core.h. */
#include "core.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn.h"
#include "flow.h"
#include "life.h"
#include "real.h"
#include "setting.h"
#include "table.h"

#define BWS_CORE_AFTER 16384 /* bytes; default of BEOWIRE_SOCKETS_AFTER */

struct bws_core bws;

static pthread_mutex_t bws_core_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
/* Where each thread's lock was taken: the endpoint may come between lock and unlock. */
static __thread struct bw_ep *bws_core_taken[16];
static __thread unsigned int bws_core_depth;
static __thread int bws_core_cancel; /* the thread's state of pthread_setcancelstate(3) before */

void bws_lock(void)
{
	struct bw_ep *ep = atomic_load(&bws.ep);

	if (!bws_core_depth)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &bws_core_cancel);
	/* Deeper inside, what the outermost one took is what counts. */
	if (bws_core_depth)
		ep = bws_core_taken[bws_core_depth - 1];
	if (ep)
		bw_ep_lock(ep);
	pthread_mutex_lock(&bws_core_mutex);
	bws_core_taken[bws_core_depth++] = ep;
}

void bws_unlock(void)
{
	struct bw_ep *ep = bws_core_taken[--bws_core_depth];

	pthread_mutex_unlock(&bws_core_mutex);
	if (ep)
		bw_ep_unlock(ep);
	if (!bws_core_depth)
		pthread_setcancelstate(bws_core_cancel, NULL);
}

bool bws_core_is_inside(void)
{
	return bws_core_depth;
}

void bws_core_in_child(void)
{
	bws_core_mutex = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	bws_core_depth = 0;
}

int bws_progress(void)
{
	struct bw_ep *ep = atomic_load(&bws.ep);
	int n, cancel;

	if (!ep)
		return 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	n = bw_progress(ep);
	pthread_setcancelstate(cancel, NULL);
	if (bws_push_waits()) {
		bws_lock();
		bws_push_all();
		bws_unlock();
	}
	return n;
}

static bool bws_core_is_on(const char *name)
{
	const char *value = bw_setting(name);

	return value && (!strcmp(value, "on") || !strcmp(value, "1"));
}

static const char *bws_core_text(const char *name)
{
	const char *value = bw_setting(name);

	/* Programs that set their title write over their environment. */
	return value && *value ? strdup(value) : NULL;
}

static enum bws_compare bws_core_compare(void)
{
	const char *value = bw_setting("BEOWIRE_SOCKETS_COMPARE") ?: "";

	if (!strcmp(value, "off") || !strcmp(value, "0"))
		return BWS_COMPARE_NEVER;
	return strcmp(value, "always") ? BWS_COMPARE_CROWDED : BWS_COMPARE_ALWAYS;
}

__attribute__((constructor)) static void bws_core_begin(void)
{
	const char *after;

	if (bws.on)
		return;
	bws_real_load();
	after = bws_core_text("BEOWIRE_SOCKETS_AFTER");
	bws.pid = getpid();
	bws.explain = bws_core_is_on("BEOWIRE_SOCKETS_EXPLAIN");
	bws.within = bws_core_is_on("BEOWIRE_SOCKETS_WITHIN");
	bws.rings_for_files = !strcmp(bw_setting("BEOWIRE_SOCKETS_IO_URING") ?: "", "files");
	bws.compare = bws_core_compare();
	bws.stats = bws_core_text("BEOWIRE_SOCKETS_STATS");
	bws.after = after ? strtoull(after, NULL, 10) : BWS_CORE_AFTER;
	bws_life_begin();
	bws.on = bws_table_init() && bws_conn_init() &&
		 strcmp(bw_setting("BEOWIRE_SOCKETS") ?: "on", "off") != 0;
}
