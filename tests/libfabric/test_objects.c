// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Objects and how they hold together: what is in use cannot be closed, what is bound is bound once,
 * what was removed is gone; events are kept until they are read.
 */
#include "pair.h"

static void close__what_is_in_use_stays(void **state)
{
	assert_int_equal(fi_close(&a.tx->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&a.sent->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&a.av->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&pair_domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&pair_fabric->fid), -FI_EBUSY);
	pair_retry(fi_tinject(a.ep, "x", 1, a.self, 1));
}

static void bind__once_each(void **state)
{
	struct fi_cntr_attr cntr_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_av *av;

	assert_int_equal(fi_cntr_open(pair_domain, &cntr_attr, &cntr, NULL), 0);
	assert_int_equal(fi_cq_open(pair_domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_av_open(pair_domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_ep_bind(a.ep, &cntr->fid, FI_SEND), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(a.ep, &cntr->fid, 0), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(a.ep, &cq->fid, FI_TRANSMIT), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(a.ep, &cq->fid, FI_RECV), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(a.ep, &av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	pair_retry(fi_tinject(a.ep, "x", 1, a.peer, 1));
	pair_count(a.sent, 1);
}

static void fabric__of_another_name_is_refused(void **state)
{
	struct fid_fabric *fabric;
	char *name = pair_info->fabric_attr->name;

	pair_info->fabric_attr->name = "another";
	assert_int_equal(fi_fabric(pair_info->fabric_attr, &fabric, NULL), -FI_ENODATA);
	pair_info->fabric_attr->name = name;
}

/* Also after the endpoint has sent there. */
static void vector__what_was_removed_is_gone(void **state)
{
	char name[64];
	size_t n = sizeof(name);
	fi_addr_t first = a.self;

	pair_retry(fi_tinject(a.ep, "x", 1, a.self, 1));
	assert_int_equal(fi_av_remove(a.av, &first, 1, 0), 0);
	assert_int_equal(fi_av_lookup(a.av, first, name, &n), -FI_EINVAL);
	assert_int_equal(fi_tinject(a.ep, "x", 1, first, 1), -FI_EINVAL);
	assert_int_equal(fi_av_remove(a.av, &first, 1, 0), -FI_EINVAL);
	pair_retry(fi_tinject(a.ep, "x", 1, a.peer, 1)); /* the others stay */
}

static struct fid_eq *open_queue(void)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD, .flags = FI_WRITE};
	struct fid_eq *eq;

	assert_int_equal(fi_eq_open(pair_fabric, &attr, &eq, NULL), 0);
	return eq;
}

static void events__are_kept_until_they_are_read(void **state)
{
	struct fid_eq *eq = open_queue();
	struct fid *fid = &eq->fid;
	uint32_t event = 0;
	char to[16] = {0};

	assert_int_equal(fi_eq_read(eq, &event, to, sizeof(to), 0), -FI_EAGAIN);
	assert_int_equal(fi_trywait(pair_fabric, &fid, 1), 0);
	assert_int_equal(fi_eq_write(eq, 7, "first", 6, 0), 6);
	assert_int_equal(fi_eq_write(eq, 8, "second", 7, 0), 7);
	assert_int_equal(fi_trywait(pair_fabric, &fid, 1), -FI_EAGAIN);
	assert_int_equal(fi_eq_read(eq, &event, to, 5, 0), -FI_ETOOSMALL);
	assert_int_equal(to[0], 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fi_eq_read(eq, &event, to, sizeof(to), FI_PEEK), 6);
		assert_int_equal(event, 7);
	}
	assert_int_equal(fi_eq_sread(eq, &event, to, sizeof(to), -1, 0), 6);
	assert_string_equal(to, "first");
	assert_int_equal(fi_eq_sread(eq, &event, to, sizeof(to), -1, 0), 7);
	assert_int_equal(event, 8);
	assert_int_equal(fi_eq_sread(eq, &event, to, sizeof(to), 1, 0), -FI_EAGAIN);
	assert_int_equal(fi_trywait(pair_fabric, &fid, 1), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
}

static void events__tell_insertions(void **state)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .flags = FI_EVENT};
	struct fid_eq *eq = open_queue();
	struct fi_eq_entry entry;
	struct fid_av *av;
	uint32_t event = 0;
	char name[64];
	size_t n = sizeof(name);
	fi_addr_t addr;

	assert_int_equal(fi_getname(&a.ep->fid, name, &n), 0);
	assert_int_equal(fi_av_open(pair_domain, &attr, &av, NULL), 0);
	assert_int_equal(fi_av_bind(av, &eq->fid, 0), 0);
	assert_int_equal(fi_av_insert(av, name, 1, &addr, 0, name), 0);
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(event, FI_AV_COMPLETE);
	assert_ptr_equal(entry.fid, &av->fid);
	assert_ptr_equal(entry.context, name);
	assert_int_equal(entry.data, 1);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)
	const struct CMUnitTest tests[] = {
		TEST(close__what_is_in_use_stays),	    TEST(bind__once_each),
		TEST(fabric__of_another_name_is_refused),   TEST(vector__what_was_removed_is_gone),
		TEST(events__are_kept_until_they_are_read), TEST(events__tell_insertions),
	};

	return cmocka_run_group_tests_name("objects", tests, NULL, NULL);
}
