/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Life of connections, and of the pieces in their queues. See conn.h. */
#include "conn.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "flow.h"
#include "grown.h"

#define BWS_CONN_BITS 18 /* of an id: which place; the others: which use of it */
#define BWS_CONN_MAX  (1u << BWS_CONN_BITS)

static struct bws_grown bws_conn_memory;
static struct bws_conn *bws_conn_all;	   /* addresses of all are reserved */
static struct bws_shared *bws_conn_shared; /* of each place; a child of fork() has new ones */
static uint32_t bws_conn_top;		   /* places used ever; place 0 is none */
static struct bws_conn *bws_conn_unused;
/* Not used here any more, but children of fork() may have them: the longest first. */
static struct bws_conn *bws_conn_lent, *bws_conn_lent_last;

static void *bws_conn_share(void)
{
	void *at = mmap(NULL, BWS_CONN_MAX * sizeof(*bws_conn_shared), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

bool bws_conn_init(void)
{
	if (!bws_grown_reserve(&bws_conn_memory, BWS_CONN_MAX * sizeof(*bws_conn_all)))
		return false;
	bws_conn_all = (struct bws_conn *)bws_conn_memory.base;
	bws_conn_shared = bws_conn_share();
	bws_conn_top = 1;
	bws_conn_unused = bws_conn_lent = NULL;
	return bws_conn_shared;
}

void bws_conn_in_child(void)
{
	struct bws_conn *c;

	bws_conn_shared = bws_conn_share();
	while ((c = bws_conn_lent)) {
		bws_conn_lent = c->next_free;
		c->next_free = bws_conn_unused;
		bws_conn_unused = c;
	}
}

static void bws_conn_lend(struct bws_conn *c)
{
	c->next_free = NULL;
	if (bws_conn_lent)
		bws_conn_lent_last->next_free = c;
	else
		bws_conn_lent = c;
	bws_conn_lent_last = c;
}

/* Those whose children are gone are unused. */
static void bws_conn_take_back(void)
{
	struct bws_conn *c;

	for (int tries = 0; (c = bws_conn_lent) && tries < 4; tries++) {
		bws_conn_lent = c->next_free;
		if (!bws_conn_alone(c)) {
			bws_conn_lend(c);
			continue;
		}
		c->next_free = bws_conn_unused;
		bws_conn_unused = c;
	}
}

/* One that nobody looks at any more. */
static struct bws_conn *bws_conn_place(void)
{
	struct bws_conn **at = &bws_conn_unused, *c;

	if (!bws_conn_shared)
		return NULL;
	if (!bws_conn_unused)
		bws_conn_take_back();
	for (int tries = 0; *at && tries < 8; tries++, at = &(*at)->next_free) {
		c = *at;
		if (atomic_load(&c->users))
			continue;
		*at = c->next_free;
		return c;
	}
	if (bws_conn_top == BWS_CONN_MAX ||
	    !bws_grown_to(&bws_conn_memory, (bws_conn_top + 1) * sizeof(*c)))
		return NULL;
	c = &bws_conn_all[bws_conn_top];
	c->index = bws_conn_top++;
	return c;
}

struct bws_conn *bws_conn_new(int fd, bool connector)
{
	struct bws_conn *c = bws_conn_place();
	uint32_t index, use;

	if (!c)
		return NULL;
	index = c->index;
	use = c->uses;
	/* Whoever looks it up just now counts in `users`. */
	memset((char *)c + sizeof(c->users), 0, sizeof(*c) - sizeof(c->users));
	c->index = index;
	c->uses = use + 1;
	use = use % ((1u << (32 - BWS_CONN_BITS)) - 1) + 1;
	c->id = use << BWS_CONN_BITS | index;
	c->fd = fd;
	c->refs = 1;
	c->connector = connector;
	c->why = "too short";
	c->shared = bws_conn_shared + index;
	memset(c->shared, 0, sizeof(*c->shared));
	atomic_store(&c->shared->holder[0], getpid());
	return c;
}

void bws_conn_put(struct bws_conn *c)
{
	atomic_fetch_sub(&c->users, 1);
}

void bws_conn_free(struct bws_conn *c)
{
	/* Its place is another connection's soon. */
	bws_push_drop(c);
	bws_queue_clear(&c->tx.queue);
	bws_queue_clear(&c->rx.queue);
	c->tx.unsent = NULL;
	c->peer_id = 0;
	c->id = 0;
	c->fd = -1;
	/* The shared part stays with the children that have it. What is the parent's is not of this
	 * process's places. */
	if (c->forked && c->shared == bws_conn_shared + c->index) {
		bws_conn_lend(c);
		return;
	}
	c->next_free = bws_conn_unused;
	bws_conn_unused = c;
}

struct bws_conn *bws_conn_by_id(uint32_t id)
{
	uint32_t index = id & (BWS_CONN_MAX - 1);

	if (!id || index >= bws_conn_top || bws_conn_all[index].id != id)
		return NULL;
	return &bws_conn_all[index];
}

struct bws_conn *bws_conn_next(struct bws_conn *c)
{
	for (uint32_t i = c ? c->index + 1 : 1; i < bws_conn_top; i++) {
		if (bws_conn_all[i].id)
			return &bws_conn_all[i];
	}
	return NULL;
}

/* Are all processes gone that had descriptors, but this one? */
static bool bws_conn_left(struct bws_conn *c)
{
	int self = getpid();
	bool left = true;

	for (int i = 0; i < BWS_HOLDERS; i++) {
		int pid = atomic_load(&c->shared->holder[i]);

		if (!pid || pid == self)
			continue;
		if (!kill(pid, 0) || errno != ESRCH)
			left = false;
		else
			atomic_compare_exchange_strong(&c->shared->holder[i], &pid, 0);
	}
	return left;
}

bool bws_conn_alone(struct bws_conn *c)
{
	if (!c->forked)
		return true;
	return !atomic_load(&c->shared->lost) && !atomic_load(&c->shared->forking) &&
	       bws_conn_left(c);
}

void bws_conn_forking(struct bws_conn *c)
{
	/* Children that are gone leave their places to the next ones. */
	bws_conn_left(c);
	c->forked = true;
	atomic_fetch_add(&c->shared->forking, 1);
}

void bws_conn_forked(struct bws_conn *c)
{
	atomic_fetch_sub(&c->shared->forking, 1);
}

void bws_conn_inherit(struct bws_conn *c)
{
	bool noted = false;

	for (int i = 0; i < BWS_HOLDERS && !noted; i++) {
		int none = 0;

		noted = atomic_compare_exchange_strong(&c->shared->holder[i], &none, getpid());
	}
	if (!noted)
		atomic_store(&c->shared->lost, true);
	bws_conn_forked(c);
}

void bws_conn_leave(struct bws_conn *c)
{
	const int self = getpid();

	for (int i = 0; i < BWS_HOLDERS; i++) {
		int pid = self;

		atomic_compare_exchange_strong(&c->shared->holder[i], &pid, 0);
	}
}

void bws_conn_settle(struct bws_conn *c)
{
	atomic_store(&c->slow, c->rx.open || c->rx.wanted || bws_conn_in_doubt(c) ||
				       c->rx.way != BWS_TCP || c->tx.way != BWS_TCP || c->error ||
				       c->untold || c->tx.epoch || c->shared->rx < c->rx.must);
}

static struct bws_piece *bws_piece_new(uint64_t off, uint32_t room)
{
	struct bws_piece *p = malloc(sizeof(*p) + room);

	if (p)
		*p = (struct bws_piece){.off = off, .room = room};
	return p;
}

struct bws_piece *bws_queue_add(struct bws_queue *q, uint64_t off, const void *data, uint32_t len)
{
	struct bws_piece *p = q->last;

	if (!p || p->busy || p->room - p->len < len) {
		/* The first one is gone soon, most often. */
		p = bws_piece_new(off, p && len < BWS_SMALL ? BWS_SMALL : len);
		if (!p)
			return NULL;
		if (q->last)
			q->last->next = p;
		else
			q->first = p;
		q->last = p;
	}
	memcpy(p->data + p->len, data, len);
	p->len += len;
	return p;
}

void bws_queue_pop(struct bws_queue *q)
{
	struct bws_piece *p = q->first;

	q->first = p->next;
	if (!q->first)
		q->last = NULL;
	if (p->busy)
		p->dropped = true;
	else
		free(p);
}

void bws_queue_clear(struct bws_queue *q)
{
	while (q->first)
		bws_queue_pop(q);
}
