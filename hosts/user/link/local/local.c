/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The `local` link as a whole: opening, polling, sleeping, closing. A poll takes records from the
 * rings of peers, goes on with pulls, now and then looks at the sockets, and at last reports peers
 * that are down.
 */
#include "discard.h"
#include "link/local/impl.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define EAGER_MAX   16384      /* bytes; above, one copy with a system call beats two without */
#define TAKE_BUDGET 64	       /* records per peer and poll */
#define QUIET_POLLS 1000       /* without anything, then a peer is looked at now and then only */
#define COLD_SHARE  4	       /* of such peers per poll */
#define LOOK_NS	    50000u     /* the sockets are looked at so often ... */
#define DEAF_NS	    100000000u /* between two looks whether calls can be taken again */
#define LOOK_POLLS  20000u     /* ... or after so many polls, if the caller's clock stands still */

static int listener_open(struct bw_local *l, int claim)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &l->listener};

	l->listener.fd = claim;
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, claim, &event) < 0 || listen(claim, SOMAXCONN) < 0)
		return -errno;
	return 0;
}

static int resources_open(struct bw_local *l, int claim)
{
	int error = bw_local_status_make(&l->status, &l->status_fd);

	if (error == 0)
		error = bw_local_spare(l);
	if (error < 0)
		return error;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0)
		return -errno;
	if (getrandom(&l->probe_value, sizeof(l->probe_value), 0) != sizeof(l->probe_value))
		return -EIO;
	return listener_open(l, claim);
}

static void resources_close(struct bw_local *l)
{
	if (l->epoll >= 0)
		close(l->epoll);
	if (l->status_fd >= 0)
		close(l->status_fd);
	if (l->spare_fd >= 0)
		close(l->spare_fd);
	bw_local_status_unmap(l->status);
	bw_local_segment_free_parked(l);
	free(l->peer);
	free(l->ended);
	free(l);
}

static uint32_t ring_bytes_of(const struct bw_local_attr *attr)
{
	uint32_t bytes = attr->ring_bytes ? attr->ring_bytes : BW_LOCAL_RING_DEFAULT;
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);

	return bytes < page ? page : bytes;
}

int bw_local_open(struct bw_local **link, const struct bw_local_attr *attr)
{
	uint32_t bytes = ring_bytes_of(attr);
	struct bw_local *l;
	int error;

	if (attr->claim < 0 || attr->self.incarnation == 0 || bytes < BW_LOCAL_RING_MIN ||
	    bytes > BW_LOCAL_RING_MAX || (bytes & (bytes - 1)))
		return -EINVAL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->self = attr->self;
	l->self.pid = (uint32_t)getpid();
	l->handlers = attr->handlers;
	l->arg = attr->arg;
	l->ring_bytes = bytes;
	l->eager_max = attr->eager_max ? attr->eager_max : EAGER_MAX;
	l->pid = getpid();
	l->status_fd = l->spare_fd = -1;
	l->epoll = -1;
	l->cma = bw_local_cma_wanted();
	l->cma_always = bw_local_cma_demanded();
	error = resources_open(l, attr->claim);
	if (error < 0) {
		resources_close(l);
		return error;
	}
	if (l->cma)
		bw_local_cma_allow();
	*link = l;
	return 0;
}

static void greetings_close(struct bw_local *l)
{
	while (l->greeting) {
		struct bw_local_conn *c = l->greeting;

		l->greeting = c->next;
		bw_local_conn_close(l, c);
	}
}

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void abandon_peer(struct bw_local_peer *p)
{
	for (int i = 0; i < 2; i++) {
		if (p->conn[i])
			fd_close(&p->conn[i]->fd);
		bw_local_segment_abandon(&p->segment[i]);
	}
	bw_local_status_unmap(p->status);
	p->status = NULL;
}

void bw_local_abandon(struct bw_local *l)
{
	for (uint32_t i = 0; i < l->peers; i++)
		abandon_peer(l->peer[i]);
	for (struct bw_local_conn *c = l->greeting; c; c = c->next)
		fd_close(&c->fd);
	fd_close(&l->listener.fd);
	fd_close(&l->epoll);
	fd_close(&l->status_fd);
	fd_close(&l->spare_fd);
	bw_local_status_unmap(l->status);
	l->status = NULL;
}

void bw_local_close(struct bw_local *l)
{
	if (getpid() != l->pid) {
		bw_local_abandon(l);
		return;
	}
	while (l->peers > 0) {
		struct bw_local_peer *p = l->peer[l->peers - 1];

		bw_local_peer_fail(p, -ECANCELED);
		bw_local_peer_end(p, -ECANCELED);
		bw_local_peer_free(p);
	}
	greetings_close(l);
	bw_local_conn_reap(l);
	bw_discard_listener(l->listener.fd);
	resources_close(l);
}

/* Report an operation in the next poll. */
int bw_local_end_later(struct bw_local_peer *p, void *op, int status, bool pull)
{
	struct bw_local *l = p->link;

	if (l->endeds == l->endeds_room) {
		uint32_t room = l->endeds_room ? 2 * l->endeds_room : 8;
		struct bw_local_ended *ended = realloc(l->ended, room * sizeof(*ended));

		if (!ended)
			return -ENOMEM;
		l->ended = ended;
		l->endeds_room = room;
	}
	l->ended[l->endeds++] =
		(struct bw_local_ended){.peer = p, .op = op, .status = status, .pull = pull};
	return 0;
}

/* The handler may add to the list, which then lies elsewhere. */
void bw_local_end_now(struct bw_local *l, struct bw_local_ended *at)
{
	struct bw_local_ended e = *at;

	at->peer = NULL;
	if (e.pull)
		l->handlers->pulled(l->arg, e.peer->ctx, e.op, e.status, 0);
	else
		l->handlers->sent(l->arg, e.peer->ctx, e.op, e.status);
}

static int ended_run(struct bw_local *l)
{
	int n = 0;

	/* Handlers may add to the list. */
	for (uint32_t i = 0; i < l->endeds; i++) {
		if (!l->ended[i].peer)
			continue;
		bw_local_end_now(l, &l->ended[i]);
		n++;
	}
	l->endeds = 0;
	return n;
}

/* A peer whose socket is closed: is there nothing left to take? Then say how it went. */
static void lost_check(struct bw_local_peer *p, int taken)
{
	bool closed = __atomic_load_n(&p->rx.control->closed, __ATOMIC_ACQUIRE) != 0;

	if (taken == 0 || p->rx.pos > p->lost_end)
		bw_local_peer_fail(p, closed && p->lost_status == -ECONNREFUSED ? -ESHUTDOWN
										: p->lost_status);
}

static int work(struct bw_local_peer *p)
{
	int n = bw_local_pulls_run(p);

	if (!p->lost && bw_local_notes_flush(p) && bw_local_serves_run(p))
		p->work = p->direct.first || p->queued.first;
	return n;
}

static int poll_peer(struct bw_local_peer *p)
{
	int n = bw_local_rx_ready(p) ? bw_local_take(p, TAKE_BUDGET) : 0;

	if (BW_UNLIKELY(p->stalled || p->work || p->lost)) {
		if (p->lost && !p->down)
			lost_check(p, n);
		if (p->stalled && !p->down && bw_local_has_room(p)) {
			p->stalled = false;
			n++;
		}
		if (p->work && !p->down)
			n += work(p);
		p->quiet = 0;
	}
	if (n > 0)
		p->quiet = 0;
	else if (++p->quiet > QUIET_POLLS)
		bw_local_peer_cool(p);
	return n;
}

static int poll_hot(struct bw_local *l)
{
	int n = 0;

	/* Downwards, since a peer that cools changes places with the last hot one. */
	for (uint32_t i = l->hot; i-- > 0;)
		if (i < l->hot)
			n += poll_peer(l->peer[i]);
	return n;
}

static int poll_cold(struct bw_local *l)
{
	uint32_t cold = l->peers - l->hot;
	int n = 0;

	for (uint32_t i = 0; i < COLD_SHARE && i < cold && l->peers > l->hot; i++) {
		struct bw_local_peer *p = l->peer[l->hot + l->cold_next++ % (l->peers - l->hot)];

		if (!bw_local_rx_ready(p))
			continue;
		bw_local_peer_heat(p);
		n += poll_peer(p);
	}
	return n;
}

/* Report the peers that are down. Handlers may bring more of them down. */
static int downs_run(struct bw_local *l)
{
	int n = 0;

	while (l->downs > 0) {
		uint32_t i = 0;

		while (!l->peer[i]->down)
			i++;

		struct bw_local_peer *p = l->peer[i];
		int status = p->down;
		void *ctx = p->ctx;

		bw_local_peer_end(p, status);
		l->handlers->peer_down(l->arg, ctx, status);
		bw_local_peer_free(p);
		n++;
	}
	return n;
}

static bool time_to_look(struct bw_local *l, uint64_t now)
{
	if (!l->look_soon && now - l->looked_ns < LOOK_NS && ++l->polls < LOOK_POLLS)
		return false;
	l->looked_ns = now;
	l->polls = 0;
	return true;
}

int bw_local_poll(struct bw_local *l, uint64_t now, bool ready)
{
	int n = 0;

	bw_local_disarm(l);
	if (time_to_look(l, now) || ready)
		n += bw_local_look(l);
	n += poll_hot(l);
	if (l->peers > l->hot)
		n += poll_cold(l);
	if (BW_UNLIKELY(l->endeds > 0))
		n += ended_run(l);
	if (BW_UNLIKELY(l->downs > 0))
		n += downs_run(l);
	if (BW_UNLIKELY(l->dead != NULL))
		bw_local_conn_reap(l);
	return n;
}

uint64_t bw_local_due(const struct bw_local *l, uint64_t now)
{
	return l->deaf ? now + DEAF_NS : UINT64_MAX;
}

int bw_local_fd(const struct bw_local *l)
{
	return l->epoll;
}

/* Would a poll find something in p, now that it knows that we are about to sleep? */
static bool has_work(const struct bw_local_peer *p)
{
	return p->down || p->lost || bw_local_rx_ready(p) || bw_local_pulls_ready(p);
}

static void awake(struct bw_local *l)
{
	__atomic_store_n(&l->status->sleeping, ++l->sleeping, __ATOMIC_RELAXED);
}

/* What peers must know of one who sleeps. */
static void arm_peer(struct bw_local_peer *p)
{
	struct bw_local_tx *tx = &p->tx;

	bw_local_publish(p);
	if (p->stalled)
		__atomic_store_n(&tx->control->want_room, ++tx->want_room, __ATOMIC_RELAXED);
}

int bw_local_sights(const struct bw_local *l, struct bw_local_sight *sight, int most)
{
	if (l->peers > (uint32_t)most || l->endeds || l->downs || l->dead || l->look_soon)
		return -1;
	for (uint32_t i = 0; i < l->peers; i++) {
		const struct bw_local_peer *p = l->peer[i];

		if (p->stalled || p->work || p->lost)
			return -1;
		sight[i] = bw_local_rx_sight(&p->rx);
	}
	return (int)l->peers;
}

bool bw_local_armed(const struct bw_local *l)
{
	return l->sleeping & 1;
}

int bw_local_arm(struct bw_local *l)
{
	bool work = l->endeds > 0 || l->downs > 0;

	if (!bw_local_armed(l))
		__atomic_store_n(&l->status->sleeping, ++l->sleeping, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < l->peers; i++)
		arm_peer(l->peer[i]);
	/* Pairs with those of bw_local_commit() and bw_local_take(): a peer sees the words above
	 * after its next write, or we see now what it wrote. membarrier(2) here would spare peers
	 * their barrier, but it costs microseconds and interrupts every core on which a peer
	 * computes. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < l->peers; i++) {
		struct bw_local_peer *p = l->peer[i];

		bw_local_wake_producer(p);
		if (work || !(has_work(p) || (p->stalled && bw_local_has_room(p))))
			continue;
		work = true;
		bw_local_peer_heat(p);
	}
	if (!work)
		return 0;
	awake(l);
	return -EAGAIN;
}

void bw_local_disarm(struct bw_local *l)
{
	if (!bw_local_armed(l))
		return;
	awake(l);
	/* A doorbell may have been rung: left unread, it would end the next sleep at once. */
	l->look_soon |= l->peers > 0 || l->deaf;
}

void bw_local_looked(struct bw_local *l, uint64_t now)
{
	l->looked_ns = now;
	l->polls = 0;
}

void bw_local_expect(struct bw_local *l)
{
	l->look_soon = true;
}

void bw_local_pressure(struct bw_local *l, bool on)
{
	__atomic_store_n(&l->status->pressure, on, __ATOMIC_RELAXED);
}

bool bw_local_busy(const struct bw_local *l)
{
	for (uint32_t i = 0; i < l->peers; i++) {
		const struct bw_local_peer *p = l->peer[i];

		if (p->slots_live > 0 || p->asked_count > 0 || p->queued.first || p->direct.first ||
		    p->notes > 0 || p->owed.count > 0 || p->serves > 0)
			return true;
	}
	return l->endeds > 0;
}

const struct bw_local_counters *bw_local_counters(const struct bw_local *l)
{
	return &l->counters;
}
