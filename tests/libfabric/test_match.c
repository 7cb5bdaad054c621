// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The matching engine against MPI's rule, which a model states in its plainest form: two arrays
 * searched from the front. First the cases that a reader should see, then long random runs, then
 * depth.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "match.h"

#define ANY BWF_MATCH_ANY

static struct bwf_posted receive(uint32_t peer, uint64_t tag, uint64_t ignore)
{
	return (struct bwf_posted){.tag = tag, .ignore = ignore, .peer = peer};
}

static struct bwf_arrived message(uint32_t peer, uint64_t tag)
{
	return (struct bwf_arrived){.tag = tag, .peer = peer};
}

static void match_target__takes_the_receive_posted_first(void **state)
{
	struct bwf_match m = {0};
	struct bwf_posted exact = receive(1, 7, 0), any = receive(ANY, 7, 0);
	struct bwf_posted wild = receive(1, 0, ~0ULL);

	bwf_match_post(&m, &wild);
	bwf_match_post(&m, &any);
	bwf_match_post(&m, &exact);
	assert_ptr_equal(bwf_match_target(&m, 1, 7), &wild);
	bwf_match_unpost(&m, &wild);
	assert_ptr_equal(bwf_match_target(&m, 1, 7), &any);
	bwf_match_unpost(&m, &any);
	assert_ptr_equal(bwf_match_target(&m, 1, 7), &exact);
	assert_null(bwf_match_target(&m, 2, 7));
	assert_null(bwf_match_target(&m, 1, 8));
	bwf_match_unpost(&m, &exact);
	assert_null(bwf_match_target(&m, 1, 7));
	bwf_match_free(&m);
}

static void match_find__takes_the_message_that_came_first(void **state)
{
	struct bwf_match m = {0};
	struct bwf_arrived a = message(1, 0x17), b = message(2, 0x17), c = message(1, 0x27);

	bwf_match_store(&m, &a);
	bwf_match_store(&m, &b);
	bwf_match_store(&m, &c);
	assert_ptr_equal(bwf_match_find(&m, ANY, 0x17, 0), &a);
	assert_ptr_equal(bwf_match_find(&m, 2, 0x17, 0), &b);
	assert_ptr_equal(bwf_match_find(&m, 1, 0x07, 0xF0), &a);
	assert_ptr_equal(bwf_match_find(&m, 1, 0x20, 0x0F), &c);
	assert_null(bwf_match_find(&m, 3, 0, ~0ULL));
	bwf_match_unstore(&m, &a);
	assert_ptr_equal(bwf_match_find(&m, ANY, 0, ~0ULL), &b);
	bwf_match_unstore(&m, &b);
	bwf_match_unstore(&m, &c);
	assert_null(bwf_match_find(&m, ANY, 0, ~0ULL));
	bwf_match_free(&m);
}

/* Ignored bits of a receive's own tag may be set: they mean nothing. */
static void match_target__ignored_bits_of_the_receive_do_not_matter(void **state)
{
	struct bwf_match m = {0};
	struct bwf_posted many[BWF_MATCH_SHORT + 4];

	for (size_t i = 0; i < BWF_MATCH_SHORT + 4; i++) {
		many[i] = receive(5, 0xFF00 | i, 0xFF00);
		bwf_match_post(&m, &many[i]);
	}
	assert_true(m.posted_hashed);
	assert_ptr_equal(bwf_match_target(&m, 5, 0x1203), &many[3]);
	for (size_t i = 0; i < BWF_MATCH_SHORT + 4; i++)
		bwf_match_unpost(&m, &many[i]);
	bwf_match_free(&m);
}

#define MODEL_MAX 400

/* The rule, literally. Entries are indices into the arrays of receives and messages. */
struct model {
	size_t posted[MODEL_MAX], arrived[MODEL_MAX];
	size_t posted_count, arrived_count;
};

static size_t model_pop(size_t *list, size_t *count, size_t at)
{
	size_t value = list[at];

	memmove(list + at, list + at + 1, (--*count - at) * sizeof(*list));
	return value;
}

static uint64_t rng_state;

static uint64_t rng(uint64_t below)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state % below;
}

/* More kinds of receives than there are classes, so that the linear paths are walked, too. */
static const uint64_t masks[] = {0, 0xF, 0xF0, ~0ULL, 0xFF};

static void fits_step_message(struct bwf_match *m, struct model *model, struct bwf_posted *posts,
			      struct bwf_arrived *messages, size_t slot)
{
	uint32_t peer = (uint32_t)rng(4);
	uint64_t tag = rng(64);
	struct bwf_posted *got = bwf_match_target(m, peer, tag);

	for (size_t i = 0; i < model->posted_count; i++) {
		struct bwf_posted *p = &posts[model->posted[i]];

		if (((p->tag ^ tag) & ~p->ignore) || (p->peer != ANY && p->peer != peer))
			continue;
		assert_ptr_equal(got, p);
		bwf_match_unpost(m, p);
		model_pop(model->posted, &model->posted_count, i);
		return;
	}
	assert_null(got);
	messages[slot] = message(peer, tag);
	bwf_match_store(m, &messages[slot]);
	model->arrived[model->arrived_count++] = slot;
}

static void fits_step_receive(struct bwf_match *m, struct model *model, struct bwf_posted *posts,
			      struct bwf_arrived *messages, size_t slot, size_t kinds)
{
	uint32_t peer = rng(3) ? (uint32_t)rng(4) : ANY;
	uint64_t ignore = masks[rng(kinds)], tag = rng(64);
	struct bwf_arrived *got = bwf_match_find(m, peer, tag, ignore);

	for (size_t i = 0; i < model->arrived_count; i++) {
		struct bwf_arrived *a = &messages[model->arrived[i]];

		if (((a->tag ^ tag) & ~ignore) || (peer != ANY && a->peer != peer))
			continue;
		assert_ptr_equal(got, a);
		bwf_match_unstore(m, a);
		model_pop(model->arrived, &model->arrived_count, i);
		return;
	}
	assert_null(got);
	posts[slot] = receive(peer, tag, ignore);
	bwf_match_post(m, &posts[slot]);
	model->posted[model->posted_count++] = slot;
}

static void match__random_runs_follow_the_rule(void **state)
{
	static struct bwf_posted posts[MODEL_MAX];
	static struct bwf_arrived messages[MODEL_MAX];

	for (uint64_t seed = 1; seed <= 600; seed++) {
		/* from balanced runs to ones where either side runs far ahead; few or many classes
		 */
		uint64_t bias = seed % 5 + 1;
		size_t kinds = seed % 2 ? 2 : sizeof(masks) / sizeof(masks[0]);
		struct bwf_match m = {0};
		struct model model = {0};

		rng_state = seed * 0x9E3779B97F4A7C15u;
		for (size_t slot = 0; slot < MODEL_MAX; slot++) {
			if (rng(6) < bias)
				fits_step_message(&m, &model, posts, messages, slot);
			else
				fits_step_receive(&m, &model, posts, messages, slot, kinds);
			/* now and then a receive is cancelled */
			if (model.posted_count && !rng(16)) {
				size_t at = rng(model.posted_count);

				bwf_match_unpost(
					&m,
					&posts[model_pop(model.posted, &model.posted_count, at)]);
			}
			assert_int_equal(m.posted_count, model.posted_count);
			assert_int_equal(m.arrived_count, model.arrived_count);
		}
		while (model.posted_count)
			bwf_match_unpost(&m,
					 &posts[model_pop(model.posted, &model.posted_count, 0)]);
		while (model.arrived_count)
			bwf_match_unstore(
				&m, &messages[model_pop(model.arrived, &model.arrived_count, 0)]);
		assert_null(m.posted_head);
		assert_null(m.arrived_head);
		bwf_match_free(&m);
	}
}

/* 100,000 messages of one tag, then one of another, which is received first. A search that walked
 * the queue for each of the receives would need 5 thousand million steps. */
static void match_find__deep_queue_of_one_tag(void **state)
{
	enum { DEPTH = 100000 };
	struct bwf_arrived *messages = calloc(DEPTH + 1, sizeof(*messages));
	struct bwf_match m = {0};

	for (size_t i = 0; i <= DEPTH; i++) {
		messages[i] = message(3, i < DEPTH ? 1 : 2);
		bwf_match_store(&m, &messages[i]);
	}
	assert_ptr_equal(bwf_match_find(&m, 3, 2, 0), &messages[DEPTH]);
	bwf_match_unstore(&m, &messages[DEPTH]);
	for (size_t i = 0; i < DEPTH; i++) {
		assert_null(bwf_match_find(&m, 3, 2, 0));
		assert_ptr_equal(bwf_match_find(&m, 3, 1, 0), &messages[i]);
		bwf_match_unstore(&m, &messages[i]);
	}
	assert_int_equal(m.arrived_count, 0);
	bwf_match_free(&m);
	free(messages);
}

/* Many receives, each for its own tag, matched in the reverse order, beside wildcards of another
 * peer. */
static void match_target__deep_queue_of_many_tags(void **state)
{
	enum { DEPTH = 100000 };
	struct bwf_posted *posts = calloc(DEPTH, sizeof(*posts));
	struct bwf_posted wild = receive(9, 0, ~0ULL);
	struct bwf_match m = {0};

	bwf_match_post(&m, &wild);
	for (size_t i = 0; i < DEPTH; i++) {
		posts[i] = receive(i % 2 ? ANY : 3, i, 0);
		bwf_match_post(&m, &posts[i]);
	}
	for (size_t i = DEPTH; i-- > 0;) {
		assert_ptr_equal(bwf_match_target(&m, 3, i), &posts[i]);
		bwf_match_unpost(&m, &posts[i]);
		assert_null(bwf_match_target(&m, 3, i));
	}
	assert_ptr_equal(bwf_match_target(&m, 9, 5), &wild);
	bwf_match_unpost(&m, &wild);
	bwf_match_free(&m);
	free(posts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(match_target__takes_the_receive_posted_first),
		cmocka_unit_test(match_find__takes_the_message_that_came_first),
		cmocka_unit_test(match_target__ignored_bits_of_the_receive_do_not_matter),
		cmocka_unit_test(match__random_runs_follow_the_rule),
		cmocka_unit_test(match_find__deep_queue_of_one_tag),
		cmocka_unit_test(match_target__deep_queue_of_many_tags),
	};

	return cmocka_run_group_tests_name("matching engine", tests, NULL, NULL);
}
