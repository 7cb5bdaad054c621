/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoints for tests. See endpoint.h. */
#include "endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void on_message(void *arg, const struct bw_message *m)
{
	struct told *told = arg;

	told->messages++;
	told->peer = m->peer;
	told->len = m->len;
	if (m->envelope)
		told->rndv = m->rndv;
}

static void on_sent(void *arg, void *op, int status)
{
	struct told *told = arg;

	told->sents++;
	told->failed += status != 0;
	told->status = status;
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
	struct told *told = arg;

	told->pulleds++;
	told->status = status;
	told->len = len;
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
	struct told *told = arg;

	told->downs++;
	told->peer = peer;
	told->status = status;
}

static void *on_place(void *arg, const struct bw_message *m, void **op)
{
	struct told *told = arg;

	told->asked++;
	told->len = m->len;
	*op = told;
	return told->place;
}

static bool on_needed(void *arg, bw_peer_no peer)
{
	struct told *told = arg;

	told->peer = peer;
	return !told->needs_nobody;
}

static const struct bw_handlers handlers = {.message = on_message,
					    .sent = on_sent,
					    .pulled = on_pulled,
					    .peer_down = on_down,
					    .peer_needed = on_needed,
					    .place = on_place};

struct bw_ep *endpoint_open(const char *links, struct told *told)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .arg = told, .no_helper = true};
	struct bw_ep *ep;
	const char *why;

	*told = (struct told){0};
	setenv("BEOWIRE_LINKS", links, 1);
	setenv("BEOWIRE_UDP_ADDRESS", "127.0.0.1", 1);
	if (bw_ep_open(&ep, &attr, &why))
		fail_msg("%s", why);
	return ep;
}

bw_peer_no endpoint_find(struct bw_ep *ep, struct bw_ep *other)
{
	struct bw_addr addr;
	bw_peer_no peer;

	bw_ep_addr(other, &addr);
	assert_int_equal(bw_peer_find(ep, &addr, &peer), 0);
	return peer;
}

void endpoint_await(struct bw_ep *one, struct bw_ep *other, const uint64_t *counter, uint64_t value)
{
	uint64_t until = bw_clock_now() + SOON_MS * BW_MS;

	while (*counter < value && bw_clock_now() < until) {
		bw_progress(one);
		bw_progress(other);
	}
	assert_int_equal(*counter, value);
}
