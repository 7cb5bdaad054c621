// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Two endpoints in one process: see pair.h. */
#include "pair.h"

#include <glob.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#define QUIET_ROUNDS 2000 /* rounds of progress after which nothing more is expected to happen */

struct fi_info *pair_info;
struct fid_fabric *pair_fabric;
struct fid_domain *pair_domain;
struct side a, b;

struct fi_info *pair_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	assert_non_null(hints);
	hints->fabric_attr->prov_name = strdup("beowire");
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE |
		      FI_MULTI_RECV | FI_RMA_EVENT;
	hints->ep_attr->type = FI_EP_RDM;
	return hints;
}

void pair_place(const char *side)
{
	const char *interface = getenv(side);

	if (!interface)
		return;
	setenv("BEOWIRE_INTERFACE", interface, 1);
	setenv("BEOWIRE_NODE", interface, 1);
}

static void side_open(struct side *s, const struct pair_options *o)
{
	struct fi_av_attr av = {.type = o->av_type};
	struct fi_cq_attr cq = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = o->wait_obj, .size = o->cq_size};
	struct fi_cntr_attr cntr = {.wait_obj = FI_WAIT_UNSPEC};

	assert_int_equal(fi_endpoint(pair_domain, pair_info, &s->ep, NULL), 0);
	assert_int_equal(fi_av_open(pair_domain, &av, &s->av, NULL), 0);
	assert_int_equal(fi_cq_open(pair_domain, &cq, &s->tx, NULL), 0);
	assert_int_equal(fi_cq_open(pair_domain, &cq, &s->rx, NULL), 0);
	assert_int_equal(fi_cntr_open(pair_domain, &cntr, &s->sent, NULL), 0);
	assert_int_equal(fi_cntr_open(pair_domain, &cntr, &s->received, NULL), 0);
	assert_int_equal(fi_cntr_open(pair_domain, &cntr, &s->written, NULL), 0);
	assert_int_equal(fi_cntr_open(pair_domain, &cntr, &s->remote_written, NULL), 0);
	assert_int_equal(fi_cntr_open(pair_domain, &cntr, &s->remote_read, NULL), 0);
	assert_int_equal(fi_ep_bind(s->ep, &s->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(s->ep, &s->tx->fid, FI_TRANSMIT | o->tx_bind), 0);
	assert_int_equal(fi_ep_bind(s->ep, &s->rx->fid, FI_RECV | o->rx_bind), 0);
	assert_int_equal(fi_ep_bind(s->ep, &s->sent->fid, FI_SEND), 0);
	assert_int_equal(fi_ep_bind(s->ep, &s->received->fid, FI_RECV), 0);
	assert_int_equal(fi_ep_bind(s->ep, &s->written->fid, FI_WRITE), 0);
	assert_int_equal(fi_ep_bind(s->ep, &s->remote_written->fid, FI_REMOTE_WRITE), 0);
	assert_int_equal(fi_ep_bind(s->ep, &s->remote_read->fid, FI_REMOTE_READ), 0);
	assert_int_equal(fi_enable(s->ep), 0);
}

static void side_insert(struct side *s, struct side *other)
{
	char name[64];
	size_t len = sizeof(name);

	assert_int_equal(fi_getname(&s->ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(s->av, name, 1, &s->self, 0, NULL), 1);
	assert_int_equal(fi_getname(&other->ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(s->av, name, 1, &s->peer, 0, NULL), 1);
}

static void side_close(struct side *s)
{
	struct fid *fids[] = {&s->ep->fid,
			      &s->tx->fid,
			      &s->rx->fid,
			      &s->sent->fid,
			      &s->received->fid,
			      &s->written->fid,
			      &s->remote_written->fid,
			      &s->remote_read->fid,
			      &s->av->fid};

	for (size_t i = 0; i < sizeof(fids) / sizeof(fids[0]); i++)
		assert_int_equal(fi_close(fids[i]), 0);
}

void pair_open(const struct pair_options *options)
{
	struct fi_info *hints = pair_hints();

	hints->domain_attr->mr_mode = options->mr_mode;
	hints->domain_attr->av_type = options->av_type;
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &pair_info), 0);
	fi_freeinfo(hints);
	assert_int_equal(fi_fabric(pair_info->fabric_attr, &pair_fabric, NULL), 0);
	assert_int_equal(fi_domain(pair_fabric, pair_info, &pair_domain, NULL), 0);
	pair_place(PAIR_A);
	side_open(&a, options);
	pair_place(PAIR_B);
	side_open(&b, options);
	side_insert(&a, &b);
	side_insert(&b, &a);
}

void pair_close(void)
{
	side_close(&a);
	side_close(&b);
	assert_int_equal(fi_close(&pair_domain->fid), 0);
	assert_int_equal(fi_close(&pair_fabric->fid), 0);
	fi_freeinfo(pair_info);
}

int pair_setup(void **state)
{
	pair_open(&(struct pair_options){.wait_obj = FI_WAIT_UNSPEC});
	return 0;
}

int pair_teardown(void **state)
{
	pair_close();
	return 0;
}

void pair_progress(void)
{
	fi_cq_read(a.tx, NULL, 0);
	fi_cq_read(b.tx, NULL, 0);
	sched_yield();
}

void pair_order(void)
{
#ifdef __SANITIZE_THREAD__
	static char nothing;

	/* A round of progress that finds nothing takes no lock; a search for an operation does. */
	fi_cancel(&a.ep->fid, &nothing);
	fi_cancel(&b.ep->fid, &nothing);
#endif
}

struct fi_cq_tagged_entry pair_completion(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;
	ssize_t n;

	while ((n = fi_cq_read(cq, &e, 1)) == -FI_EAGAIN)
		pair_progress();
	assert_int_equal(n, 1);
	pair_order();
	return e;
}

struct fi_cq_err_entry pair_error(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry error = {0};
	ssize_t n;

	while ((n = fi_cq_read(cq, &e, 1)) == -FI_EAGAIN)
		pair_progress();
	assert_int_equal(n, -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(cq, &error, 0), 1);
	pair_order();
	return error;
}

void pair_nothing(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;

	for (int i = 0; i < QUIET_ROUNDS; i++) {
		pair_progress();
		assert_int_equal(fi_cq_read(cq, &e, 1), -FI_EAGAIN);
	}
}

void pair_count(struct fid_cntr *cntr, uint64_t count)
{
	while (fi_cntr_read(cntr) < count)
		pair_progress();
	assert_int_equal(fi_cntr_read(cntr), count);
	assert_int_equal(fi_cntr_readerr(cntr), 0);
	pair_order();
}

void pair_fill(void *buf, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)buf)[i] = (uint8_t)((i ^ i >> 8 ^ i >> 16) * 31 + seed);
}

__attribute__((no_sanitize("thread"))) void pair_overwrite(void *buf, uint8_t byte, size_t n)
{
	volatile uint8_t *to = buf; /* no memset(), which ThreadSanitizer watches in any function */

	for (size_t i = 0; i < n; i++)
		to[i] = byte;
}

bool pair_filled(const void *buf, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		if (((const uint8_t *)buf)[i] != (uint8_t)((i ^ i >> 8 ^ i >> 16) * 31 + seed))
			return false;
	}
	return true;
}

void pair_counted(const char *dir, const char *text)
{
	char pattern[64], all[8192];
	bool said = !text;
	glob_t found;
	FILE *f;

	snprintf(pattern, sizeof(pattern), "%s/*.json", dir);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		f = fopen(found.gl_pathv[i], "r");
		assert_non_null(f);
		all[fread(all, 1, sizeof(all) - 1, f)] = 0;
		fclose(f);
		said |= text && strstr(all, text);
		unlink(found.gl_pathv[i]);
	}
	globfree(&found);
	rmdir(dir);
	assert_true(said);
}
