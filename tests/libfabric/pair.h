/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two endpoints of the provider in one process, for tests that go through libfabric as applications
 * do. Every call asserts its success; what a test waits for, both ends are driven for.
 */
#ifndef PAIR_H
#define PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

/* Modes of libfabric 1.x; the headers of 2.x warn of their names. */
enum { MR_UNSPEC = 0, MR_BASIC = 1 << 0, MR_SCALABLE = 1 << 1 };

/* One side: endpoint, queues and counters of its own, domain and fabric shared by both. */
struct side {
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *tx, *rx;
	struct fid_cntr *sent, *received, *written, *remote_written, *remote_read;
	fi_addr_t self, peer; /* addresses in its vector */
};

struct pair_options {
	uint64_t tx_bind, rx_bind; /* FI_SELECTIVE_COMPLETION, ... */
	enum fi_wait_obj wait_obj;
	enum fi_av_type av_type;
	int mr_mode;
	size_t cq_size;
};

extern struct fi_info *pair_info;
extern struct fid_fabric *pair_fabric;
extern struct fid_domain *pair_domain;
extern struct side a, b;

/* Environment variables that name an interface for each side: they are then nodes of their own. */
#define PAIR_A "PAIR_INTERFACE_A"
#define PAIR_B "PAIR_INTERFACE_B"
/* Endpoints opened from now on are on this side's interface, if there is one. */
void pair_place(const char *side);

/* Hints that ask for this provider and nothing else. Freed with fi_freeinfo(). */
struct fi_info *pair_hints(void);
void pair_open(const struct pair_options *options);
void pair_close(void);
/* cmocka's set-up and tear-down with default options. */
int pair_setup(void **state);
int pair_teardown(void **state);

/* Drive both ends once. */
void pair_progress(void);
/* What the test did to memory comes before what either end does from now on, and after what it did
 * until now. Links keep that order, but by what ThreadSanitizer does not know: sockets, and memory
 * mapped twice. In its builds both ends' locks are taken here, which it knows. */
void pair_order(void);
/* Repeat a call until it finds room. */
#define pair_retry(call)                                                                           \
	do {                                                                                       \
		ssize_t ret_;                                                                      \
		pair_order();                                                                      \
		while ((ret_ = (call)) == -FI_EAGAIN)                                              \
			pair_progress();                                                           \
		assert_int_equal(ret_, 0);                                                         \
	} while (0)
/* The next completion of a queue, which must be a success. */
struct fi_cq_tagged_entry pair_completion(struct fid_cq *cq);
/* The next completion of a queue, which must be an error. */
struct fi_cq_err_entry pair_error(struct fid_cq *cq);
/* After both ends were driven for a while the queue is still empty. */
void pair_nothing(struct fid_cq *cq);
void pair_count(struct fid_cntr *cntr, uint64_t count);

/* n bytes that tell where they belong. */
void pair_fill(void *buf, size_t n, uint32_t seed);
/* Of registered memory that the peer may still read: a program may write there at any time, and
 * ThreadSanitizer is not asked. */
void pair_overwrite(void *buf, uint8_t byte, size_t n);
bool pair_filled(const void *buf, size_t n, uint32_t seed);

/* Of the endpoints that left counters in `dir` (BEOWIRE_STATS) when they were closed one says
 * `text`; NULL: whatever they say. The directory is removed. */
void pair_counted(const char *dir, const char *text);

#endif
