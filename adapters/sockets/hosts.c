/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Nodes without the library. See hosts.h. */
#include "hosts.h"

#include <string.h>

#include "core.h"

#define BWS_HOSTS	256
#define BWS_HOSTS_FIRST (100 * BWS_MS) /* not asked for so long after the first refusal, */
#define BWS_HOSTS_MOST	(60 * BWS_S)   /* and for twice the time after each further one */

static struct bws_host {
	uint8_t address[16];
	uint64_t until, span;
} bws_hosts[BWS_HOSTS];

static struct bws_host *bws_hosts_place(const uint8_t *address)
{
	uint32_t hash = 2166136261u;

	for (int i = 0; i < 16; i++)
		hash = (hash ^ address[i]) * 16777619u;
	return &bws_hosts[hash % BWS_HOSTS];
}

uint64_t bws_hosts_plain(const uint8_t *address, uint64_t now)
{
	struct bws_host *h = bws_hosts_place(address);

	if (memcmp(h->address, address, sizeof(h->address)) || now >= h->until)
		return 0;
	return h->until;
}

void bws_hosts_refused(const uint8_t *address, uint64_t now)
{
	struct bws_host *h = bws_hosts_place(address);

	if (memcmp(h->address, address, sizeof(h->address))) {
		memcpy(h->address, address, sizeof(h->address));
		h->span = 0;
	}
	if (now < h->until)
		return;
	h->span = h->span ? 2 * h->span : BWS_HOSTS_FIRST;
	if (h->span > BWS_HOSTS_MOST)
		h->span = BWS_HOSTS_MOST;
	h->until = now + h->span;
}
