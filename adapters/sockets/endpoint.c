/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tries to open the endpoint. See endpoint.h. */
#include "endpoint.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "clock.h"
#include "core.h"
#include "flow.h"

#define BWS_ENDPOINT_SOON  (100 * BWS_MS) /* between the first try and the second, */
#define BWS_ENDPOINT_LATE  (60 * BWS_S)	  /* at most; doubled each time, */
#define BWS_ENDPOINT_SHARE 4 /* at least so many times what the try took: fork() waits for it */

static struct {
	uint64_t at, pause; /* of the next try, and since the last one; 0: none was needed yet */
} bws_endpoint;

static pthread_mutex_t bws_endpoint_opening = PTHREAD_MUTEX_INITIALIZER;

void bws_endpoint_hold(void)
{
	pthread_mutex_lock(&bws_endpoint_opening);
}

void bws_endpoint_release(void)
{
	pthread_mutex_unlock(&bws_endpoint_opening);
}

void bws_endpoint_forget(void)
{
	bws_endpoint_opening = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	bws_endpoint.at = bws_endpoint.pause = 0;
	atomic_store(&bws.ep, NULL);
	bws.ep_failed = false;
}

/* Settings do not change while the program runs. All else may: the service comes, answers late or
 * by another policy, an interface goes up, descriptors become free. */
static bool bws_endpoint_never(int error)
{
	return error == -EINVAL || error == -EOPNOTSUPP;
}

static void bws_endpoint_rest(uint64_t took)
{
	uint64_t pause = bws_endpoint.pause ? 2 * bws_endpoint.pause : BWS_ENDPOINT_SOON;

	if (pause < BWS_ENDPOINT_SHARE * took)
		pause = BWS_ENDPOINT_SHARE * took;
	bws_endpoint.pause = pause < BWS_ENDPOINT_LATE ? pause : BWS_ENDPOINT_LATE;
	bws_endpoint.at = bw_clock_now() + bws_endpoint.pause;
}

/* For people. A pause that has stopped growing is no news. */
static void bws_endpoint_explain(int error, const char *why, uint64_t before)
{
	if (!bws.explain)
		return;
	if (!error && before)
		fprintf(stderr, "beowire: the endpoint is there now\n");
	else if (bws.ep_failed)
		fprintf(stderr, "beowire: all connections stay on TCP: %s\n", why);
	else if (error && bws_endpoint.pause != before)
		fprintf(stderr, "beowire: no endpoint yet, next try in %.1f s: %s\n",
			(double)bws_endpoint.pause / BWS_S, why);
}

static void bws_endpoint_try(void)
{
	struct bw_ep_attr attr = {.handlers = &bws_flow_handlers, .spread = true};
	uint64_t began = bw_clock_now(), before = bws_endpoint.pause;
	const char *why = "";
	struct bw_ep *ep;
	int error = bw_ep_open(&ep, &attr, &why);

	if (!error) {
		bw_ep_fd(ep);
		atomic_store(&bws.ep, ep);
	} else {
		bws.ep_failed = bws_endpoint_never(error);
		bws_endpoint_rest(bw_clock_now() - began);
	}
	bws_endpoint_explain(error, why, before);
}

bool bws_endpoint_open(void)
{
	if (atomic_load(&bws.ep))
		return true;
	pthread_mutex_lock(&bws_endpoint_opening);
	if (!bws.ep_failed && bw_clock_now() >= bws_endpoint.at)
		bws_endpoint_try();
	pthread_mutex_unlock(&bws_endpoint_opening);
	return atomic_load(&bws.ep) != NULL;
}

uint64_t bws_endpoint_due(void)
{
	return atomic_load(&bws.ep) || bws.ep_failed ? UINT64_MAX : bws_endpoint.at;
}
