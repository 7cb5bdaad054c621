/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory that a port's engine grows by: for what its program asks, and for what peers send. */
#include <linux/mm.h>

#include "port.h"

#define BWK_CLEARS_MOST 1024 /* pieces for which one try waits */

/* Of what an engine may grow by, and of what its user may still hold, peers leave a part to what
 * the program itself asks. */
static bool bwk_port_may_feed_peers(const struct bwk_port *port)
{
	u64 most = bwk_port_memory_max(port);

	return port->grown_bytes + BW_GROW_BYTES <= most - most / 4 &&
	       bwk_user_room(port->account->user) >= 2 * BWK_GROWN_BYTES;
}

static bool bwk_port_is_large(const struct bwk_port *port)
{
	return port->grown_bytes + BW_GROW_BYTES > bwk_port_memory_max(port);
}

/* ERR_PTR(-ENOMEM, -ENOBUFS). */
static void *bwk_port_chunk(struct bwk_port *port, bool asked)
{
	const u32 size = BWK_GROWN_BYTES;
	struct mem_cgroup *before;
	void *chunk;

	if (bwk_port_is_large(port))
		return ERR_PTR(-ENOBUFS);
	if (!asked && !bwk_port_may_feed_peers(port))
		return ERR_PTR(-ENOBUFS);
	if (!bwk_account_charge(port->account, size))
		return ERR_PTR(-ENOBUFS);
	before = bwk_account_enter(port->account); /* peers, too, make engines grow */
	chunk = kvmalloc(size, GFP_KERNEL_ACCOUNT);
	bwk_account_left(before);
	if (chunk)
		return chunk;
	bwk_account_uncharge(port->account, size);
	return ERR_PTR(-ENOMEM);
}

static void bwk_port_grow(struct bwk_port *port, void *chunk)
{
	*(void **)chunk = port->grown;
	port->grown = chunk;
	port->grown_bytes += BW_GROW_BYTES;
	port->paid += BWK_GROWN_BYTES;
	port->crowded = false;
	port->protocol->grow(port->engine, chunk + BWK_GROWN_HEAD);
	bwk_port_run(port);
}

/* There is no more memory: from now on peers whom nobody needs make room. A program that has not
 * asked since then is to try again. */
static int bwk_port_refuse(struct bwk_port *port, bool asked, int error)
{
	bool first = !port->crowded;

	port->crowded = true;
	port->protocol->grow(port->engine, NULL);
	return asked && first ? 0 : error;
}

static int bwk_port_give(struct bwk_port *port, bool asked)
{
	void *chunk = bwk_port_chunk(port, asked);
	int error = PTR_ERR_OR_ZERO(chunk);
	bool grown = false;

	bwk_port_lock(port);
	if (!error && bwk_port_is_large(port)) /* by another thread's */
		error = -ENOBUFS;
	if (port->dead)
		error = error ?: -ESHUTDOWN;
	else if (error)
		error = bwk_port_refuse(port, asked, error);
	else
		grown = true;
	if (grown)
		bwk_port_grow(port, chunk);
	bwk_port_unlock(port);
	if (!grown && !IS_ERR(chunk)) {
		kvfree(chunk);
		bwk_account_uncharge(port->account, BWK_GROWN_BYTES);
	}
	return error;
}

/* Those that have gone for others make room, in pieces. True: some have. */
static bool bwk_port_clears(struct bwk_port *port)
{
	u32 left = BWK_CLEARS_MOST;
	bool heard;

	do {
		bwk_port_lock(port);
		heard = !port->dead && port->crowded && bwk_port_hear(port);
		bwk_port_unlock(port);
		cond_resched();
	} while (heard && --left);
	return left < BWK_CLEARS_MOST;
}

int bwk_port_feed(struct bwk_port *port)
{
	int error;

	if (bwk_port_clears(port))
		return 0;
	error = bwk_port_give(port, true);
	if (error) { /* what was to be told and sent was left to this */
		bwk_port_lock(port);
		if (!port->dead)
			bwk_port_run(port);
		bwk_port_unlock(port);
	}
	return error;
}

/* By the worker, which running the port would only call again: it is as hungry as before. */
int bwk_port_feed_peers(struct bwk_port *port, bool starved)
{
	return bwk_port_give(port, starved);
}
