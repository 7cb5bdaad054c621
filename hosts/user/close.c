/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Closing an endpoint, in the process that opened it and in a child of fork(). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ep.h"
#include "keyed.h"
#include "thread.h"

void bw_ep_close_packets(struct bw_ep *ep)
{
	while (ep->packets)
		bw_packet_close(&ep->packet[--ep->packets]);
	ep->has_packet = false;
}

static void bw_ep_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* All descriptors but those of the packet, the local and the kernel link. */
static void bw_ep_close_fds(struct bw_ep *ep)
{
	int poll_fd = atomic_exchange(&ep->poll_fd, -1);

	if (ep->has_udp)
		bw_udp_close(&ep->udp);
	ep->has_udp = false;
	bw_watch_close(&ep->watch, ep->inherited);
	bw_ep_close_fd(&ep->claim);
	bw_ep_close_fd(&ep->number);
	bw_ep_close_fd(&ep->wake_fd);
	bw_ep_close_fd(&poll_fd);
	bw_ep_close_fd(&ep->epoll_fd);
	bw_ep_close_fd(&ep->helper.fd);
}

/* Give up the packet sockets, and the memory. Lock held. */
static void bw_ep_end(struct bw_ep *ep)
{
	bw_fanout_end(ep);
	bw_ep_close_packets(ep);
	/* fork() gets the lock between, and finds nothing to close. */
	bw_lock_release(&ep->lock);
	bw_process_remove(ep);
	bw_wipe(ep->key, sizeof(ep->key));
	/* The engine has keys, and so have its peers. */
	if (ep->keyed && ep->engine)
		bw_wipe(ep->engine, ep->engine_bytes);
	bw_area_put(&ep->home.areas, ep->engine);
	bw_grown_free_all(ep);
	bw_copies_free_all(ep);
	bw_buffer_free_all(&ep->buffers);
	bw_area_end(&ep->home.areas);
	bw_remote_free_all(&ep->remotes);
	free(ep);
}

static void *bw_ep_end_later(void *arg)
{
	struct bw_ep *ep = arg;

	bw_lock_take(&ep->lock);
	bw_ep_end(ep);
	return NULL;
}

/* The kernel closes a packet socket in two RCU grace periods, 15 to 60 ms, for which no program has
 * to wait: a thread does. fork() waits for that thread, as for any that holds the lock. */
void bw_ep_free(struct bw_ep *ep)
{
	bw_board_close(ep);
	if (ep->local)
		bw_local_close(ep->local);
	ep->local = NULL;
	if (ep->kernel)
		bw_kernel_close(ep->kernel);
	ep->kernel = NULL;
	bw_ep_close_fds(ep);
	if (!ep->packets || !ep->helper.wanted) {
		bw_ep_end(ep);
		return;
	}
	bw_lock_release(&ep->lock);
	if (bw_thread_spawn(bw_ep_end_later, ep))
		bw_ep_end_later(ep);
}

static bool bw_ep_busy(struct bw_ep *ep)
{
	return ep->stuck || bw_reliable.busy(ep->engine) ||
	       (ep->local && bw_local_busy(ep->local)) ||
	       (ep->kernel && bw_kernel_under_way(ep->kernel));
}

/* What the kernel has no room for now is not worth waiting for; what the engine says again is, as
 * it comes within a millisecond. */
void bw_ep_farewell(struct bw_ep *ep)
{
	uint64_t at;

	ep->now = bw_clock_now();
	ep->dead = true;
	ep->looked = true; /* nothing is read any more */
	bw_reliable.close(ep->engine, ep->now);
	bw_host_transmit(ep);
	while (!ep->stuck && (at = bw_reliable.next_deadline(ep->engine)) != BW_NEVER) {
		bw_clock_sleep(at);
		ep->now = bw_clock_now();
		bw_host_transmit(ep);
	}
}

void bw_ep_close(struct bw_ep *ep, uint64_t timeout_ns)
{
	uint64_t began = bw_clock_now(), now = began;

	bw_lock_take(&ep->lock);
	while (!ep->dead && bw_ep_busy(ep) && now - began < timeout_ns) {
		bw_wait(ep, timeout_ns - (now - began));
		now = bw_clock_now();
	}
	bw_lock_release(&ep->lock);
	bw_helper_stop(ep);
	bw_lock_take(&ep->lock);
	if (!ep->dead) {
		bw_ep_farewell(ep);
		bw_stats_write(ep); /* the farewell counts too */
	}
	bw_wait_end_all(ep);
	bw_ep_free(ep);
}

void bw_ep_abandon(struct bw_ep *ep)
{
	memset(&ep->lock, 0, sizeof(ep->lock));
	ep->dead = ep->inherited = true;
	ep->helper.running = false;
	bw_wipe(ep->key, sizeof(ep->key));
	bw_board_abandon(ep);
	bw_fanout_abandon(ep);
	bw_ep_close_packets(ep);
	bw_ep_close_fds(ep);
	if (ep->local)
		bw_local_abandon(ep->local);
	if (ep->kernel)
		bw_kernel_close(ep->kernel);
	ep->local = NULL;
	ep->kernel = NULL;
}
