/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of descriptors. See table.h. */
#include "table.h"

#include <sys/mman.h>

#include "conn.h"

/* The kind is in the lowest bits of the pointer. */
#define BWS_TABLE_KIND 3u

static _Atomic uintptr_t *bws_table;
static _Atomic int bws_table_top; /* no number from here on has ever been known */

bool bws_table_init(void)
{
	void *at;

	if (bws_table)
		return true;
	at = mmap(NULL, BWS_TABLE_FDS * sizeof(*bws_table), PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return false;
	bws_table = at;
	return true;
}

static uintptr_t bws_table_get(int fd)
{
	if ((unsigned int)fd >= BWS_TABLE_FDS || !bws_table)
		return 0;
	return atomic_load_explicit(&bws_table[fd], memory_order_acquire);
}

struct bws_conn *bws_table_conn(int fd)
{
	uintptr_t is = bws_table_get(fd);
	struct bws_conn *c = (struct bws_conn *)(is & ~(uintptr_t)BWS_TABLE_KIND);

	if ((is & BWS_TABLE_KIND) != BWS_CONN)
		return NULL;
	/* Memory of connections stays memory of connections. Whoever takes it out of the table
	 * looks at the users after that, and we at the table after this: in one order of both. */
	atomic_fetch_add(&c->users, 1);
	if (atomic_load(&bws_table[fd]) == is)
		return c;
	bws_conn_put(c);
	return NULL;
}

struct bws_epoll *bws_table_epoll(int fd)
{
	uintptr_t is = bws_table_get(fd);

	if ((is & BWS_TABLE_KIND) != BWS_EPOLL)
		return NULL;
	return (struct bws_epoll *)(is & ~(uintptr_t)BWS_TABLE_KIND);
}

bool bws_table_own(int fd)
{
	return (bws_table_get(fd) & BWS_TABLE_KIND) == BWS_OWN;
}

void bws_table_set(int fd, enum bws_table_kind kind, void *what)
{
	int top = atomic_load(&bws_table_top);

	if ((unsigned int)fd >= BWS_TABLE_FDS || !bws_table)
		return;
	if (kind == BWS_NOTHING && !bws_table_get(fd))
		return;
	while (fd >= top && !atomic_compare_exchange_weak(&bws_table_top, &top, fd + 1))
		;
	atomic_store(&bws_table[fd], (uintptr_t)what | (uintptr_t)kind);
}

int bws_table_next(int fd)
{
	int top = atomic_load(&bws_table_top);

	for (; fd < top; fd++) {
		if (bws_table_get(fd))
			return fd;
	}
	return -1;
}
