// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A peer that does not keep to the provider's protocol: see stranger.h. */
#include <stdio.h>
#include <string.h>

#include "stranger.h"

struct bw_ep *bad;
bw_peer_no victim;
struct seen seen[SEEN_MAX];
size_t seen_count;
int sent_count, pulled_count, pulled_status;
fi_addr_t bad_addr;
struct fid_mr *mr;
char *theirs, *mine;

static bool counted;	   /* the endpoints' counters are looked at */
static char counters[32];  /* their directory */
static char expected[100]; /* that they say; empty: nothing is expected */

static void on_message(void *arg, const struct bw_message *m)
{
	assert_true(seen_count < SEEN_MAX);
	seen[seen_count].m = *m;
	if (m->data)
		memcpy(seen[seen_count].data, m->data, m->len < SHORT_BYTES ? m->len : SHORT_BYTES);
	seen_count++;
}

static void on_sent(void *arg, void *op, int status)
{
	sent_count++;
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
	pulled_count++;
	pulled_status = status;
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
}

const struct bw_handlers stranger_handlers = {
	.message = on_message, .sent = on_sent, .pulled = on_pulled, .peer_down = on_down};

void stranger_counts(const char *name, uint64_t value)
{
	snprintf(expected, sizeof(expected), "\"%s\":%llu,", name, (unsigned long long)value);
}

int stranger_setup(void **state)
{
	struct bw_addr addr;
	size_t len = sizeof(addr);

	expected[0] = 0;
	counted = !getenv("BEOWIRE_STATS"); /* else who runs the program reads them */
	if (counted) {
		strcpy(counters, "/tmp/beowire-test-XXXXXX");
		assert_non_null(mkdtemp(counters));
		setenv("BEOWIRE_STATS", counters, 1);
	}
	seen_count = 0;
	sent_count = pulled_count = 0;
	theirs = calloc(1, LONG);
	mine = calloc(1, LONG);
	pair_setup(state);
	if (counted)
		unsetenv("BEOWIRE_STATS");
	pair_place(PAIR_A);
	assert_int_equal(
		bw_ep_open(&bad,
			   &(struct bw_ep_attr){.handlers = &stranger_handlers, .no_helper = true},
			   NULL),
		0);
	assert_int_equal(fi_getname(&b.ep->fid, &addr, &len), 0);
	assert_int_equal(bw_peer_find(bad, &addr, &victim), 0);
	bw_ep_addr(bad, &addr);
	assert_int_equal(fi_av_insert(b.av, &addr, 1, &bad_addr, 0, NULL), 1);
	assert_int_equal(fi_mr_reg(pair_domain, theirs, LONG, FI_REMOTE_WRITE | FI_REMOTE_READ, 0,
				   KEY, 0, &mr, NULL),
			 0);
	return 0;
}

int stranger_teardown(void **state)
{
	pair_retry(fi_write(a.ep, "honest", 7, NULL, a.peer, 100, KEY, mine));
	while (fi_cntr_read(a.written) < 1)
		pair_progress();
	pair_order();
	assert_string_equal(theirs + 100, "honest");
	bw_ep_close(bad, 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	pair_teardown(state);
	free(theirs);
	free(mine);
	if (counted)
		pair_counted(counters, expected[0] ? expected : NULL);
	return 0;
}

void stranger_progress(void)
{
	pair_progress();
	bw_progress(bad);
}

void stranger_say(uint8_t code, uint64_t tag, uint64_t imm, const void *buf, size_t len)
{
	int ret;

	while ((ret = bw_send(bad, victim, code, tag, imm, buf, len, BW_SEND_EAGER, NULL)) ==
	       -EAGAIN)
		stranger_progress();
	assert_int_equal(ret, 1);
}
