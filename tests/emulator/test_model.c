/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When frames leave, against arithmetic: max(arrival, wire free) + size / rate + delay. */
#include "groups.h"
#include "model.h"
#include "ethernet.h"

#define MS 1000000ull
#define S  1000000000ull

static struct em_fate fate[EM_FATES];

static uint64_t due(struct em_model *m, uint64_t arrival, uint32_t bytes)
{
	struct em_frame f = {.arrival = arrival, .bytes = bytes, .packet = bytes - 14};

	assert_int_equal(em_model_offer(m, &f, fate), 1);
	return fate[0].due;
}

static void wire__overhead_of_ethernet(void **state)
{
	assert_int_equal(em_wire_bytes(1514), 1538); /* the well-known 1538 of a full frame */
	assert_int_equal(em_wire_bytes(60), 84);     /* and 84 of the shortest */
	assert_int_equal(em_wire_bytes(42), 84);
	assert_int_equal(em_wire_bytes(9014), 9038);
}

static void offer__one_frame(void **state)
{
	struct em_settings s = {.rate = 1000000000, .delay = 5 * MS};
	struct em_model m;

	em_model_open(&m, &s, 1);
	/* 1538 bytes at 1 Gbit/s take 12,304 ns */
	assert_int_equal(due(&m, 7 * S, 1514), 7 * S + 12304 + 5 * MS);
	assert_int_equal(fate[0].sent, 7 * S + 12304);
	/* the wire is free again */
	assert_int_equal(due(&m, 8 * S, 1514), 8 * S + 12304 + 5 * MS);
	assert_int_not_equal(fate[0].period, 1);
	em_model_close(&m);
}

static void offer__back_to_back(void **state)
{
	struct em_settings s = {.rate = 100000000, .delay = 10000};
	struct em_model m;
	uint32_t period, i;

	em_model_open(&m, &s, 1);
	assert_int_equal(due(&m, S, 60), S + 6720 + 10000);
	period = fate[0].period;
	for (i = 2; i <= 100; i++) {
		assert_int_equal(due(&m, S, 60), S + i * 6720 + 10000);
		assert_int_equal(fate[0].period, period);
		assert_int_equal(fate[0].charged, i * 84);
	}
	em_model_close(&m);
}

/* 3 Mbit/s: 84 bytes take 224,000 ns exactly, 85 bytes 226,666.67: the thirds must not be lost. */
static void offer__no_time_is_lost_by_rounding(void **state)
{
	struct em_settings s = {.rate = 3000000, .queue = 1 << 30};
	struct em_model m;
	uint32_t i;

	em_model_open(&m, &s, 1);
	for (i = 1; i <= 3000; i++)
		assert_int_equal(due(&m, S, 61), S + (uint64_t)i * 680000 / 3);
	em_model_close(&m);
}

static void offer__rates_from_kilobits_to_terabits(void **state)
{
	struct em_settings s = {.rate = 1000, .queue = 1 << 30};
	struct em_model m;

	em_model_open(&m, &s, 1);
	assert_int_equal(due(&m, 0, 65535), 65559ull * 8 * MS);
	s.rate = EM_RATE_MAX;
	em_model_set(&m, &s);
	/* 84 * 8 bits at 1000 bits a nanosecond, after the slow frame */
	assert_int_equal(due(&m, 2000 * S, 60), 2000 * S);
	assert_int_equal(due(&m, 2000 * S, 60), 2000 * S + 1);
	em_model_close(&m);
}

static void offer__no_rate_no_queue(void **state)
{
	struct em_settings s = {.delay = 1};
	struct em_model m;
	uint32_t i;

	em_model_open(&m, &s, 1);
	for (i = 0; i < 10000; i++)
		assert_int_equal(due(&m, S, 9014), S + 1);
	em_model_close(&m);
}

static void offer__arrivals_never_go_back(void **state)
{
	struct em_settings s = {.delay = 10};
	struct em_model m;

	em_model_open(&m, &s, 1);
	assert_int_equal(due(&m, 1000, 60), 1010);
	assert_int_equal(due(&m, 900, 60), 1010);
	em_model_close(&m);
}

static void set__frames_under_way_keep_their_time(void **state)
{
	struct em_settings s = {.rate = 1000000000, .delay = 5 * MS};
	struct em_model m;

	em_model_open(&m, &s, 1);
	assert_int_equal(due(&m, S, 1514), S + 12304 + 5 * MS);
	s.rate = 100000000;
	s.delay = 0;
	em_model_set(&m, &s);
	/* behind the first one at a tenth of the rate; not past it, though the way is shorter */
	assert_int_equal(due(&m, S, 1514), S + 12304 + 5 * MS);
	assert_int_equal(fate[0].sent, S + 12304 + 123040);
	assert_int_equal(due(&m, 2 * S, 1514), 2 * S + 123040);
	em_model_close(&m);
}

static void jitter__within_its_bounds_and_in_order(void **state)
{
	struct em_settings s = {.delay = 10 * MS, .jitter = 4 * MS};
	uint64_t last = 0, least = UINT64_MAX, most = 0, i;
	struct em_model m;

	em_model_open(&m, &s, 3);
	for (i = 1; i <= 2000; i++) {
		/* so far apart that the order never decides */
		uint64_t took = due(&m, i * S, 60) - i * S;

		least = took < least ? took : least;
		most = took > most ? took : most;
	}
	assert_in_range(least, 6 * MS, 6 * MS + 20000);
	assert_in_range(most, 14 * MS - 20000, 14 * MS);
	for (i = 1; i <= 2000; i++) {
		uint64_t when = due(&m, 3000 * S + i * 1000, 60);

		assert_true(when >= last);
		last = when;
	}
	em_model_close(&m);
}

static void coalesce__groups(void **state)
{
	struct em_settings s = {.coalesce = 100000};
	struct em_model m;

	em_model_open(&m, &s, 1);
	assert_int_equal(due(&m, S, 60), S + 100000);
	assert_int_equal(due(&m, S + 50000, 60), S + 100000);
	assert_int_equal(due(&m, S + 100000, 60), S + 100000);
	/* the next one begins a new group when it comes, not at the end of the old one */
	assert_int_equal(due(&m, S + 130000, 60), S + 230000);
	em_model_close(&m);
}

static void mtu__longer_packets_are_dropped(void **state)
{
	struct em_settings s = {.mtu = 1500};
	struct em_frame f = {.arrival = 1, .bytes = 1514, .packet = 1500};
	struct em_model m;

	em_model_open(&m, &s, 1);
	assert_int_equal(em_model_offer(&m, &f, fate), 1);
	/* a VLAN tag is no part of the packet */
	f = (struct em_frame){.arrival = 1, .bytes = 1518, .packet = 1500};
	assert_int_equal(em_model_offer(&m, &f, fate), 1);
	f = (struct em_frame){.arrival = 1, .bytes = 1515, .packet = 1501};
	assert_int_equal(em_model_offer(&m, &f, fate), 0);
	assert_int_equal(m.count.too_long, 1);
	assert_int_equal(m.count.frames, 3);
	em_model_close(&m);
}

static void offer__the_same_seed_the_same_fates(void **state)
{
	struct em_settings s = {.rate = 1000000,
				.delay = MS,
				.jitter = MS,
				.loss = EM_SHARE_ONE / 10,
				.burst = 3000,
				.duplicate = EM_SHARE_ONE / 10,
				.reorder = EM_SHARE_ONE / 10,
				.corrupt = EM_SHARE_ONE / 10};
	struct em_fate other[EM_FATES];
	struct em_model a, b, c;
	uint32_t i, differ = 0;

	em_model_open(&a, &s, 7);
	em_model_open(&b, &s, 7);
	em_model_open(&c, &s, 8);
	for (i = 0; i < 1000; i++) {
		struct em_frame f = {.arrival = i * MS, .bytes = 100, .packet = 86};
		int n = em_model_offer(&a, &f, fate);

		assert_int_equal(em_model_offer(&b, &f, other), n);
		if (n)
			assert_memory_equal(fate, other, (size_t)n * sizeof(fate[0]));
		differ += em_model_offer(&c, &f, other) != n;
	}
	assert_true(differ > 50);
	em_model_close(&a);
	em_model_close(&b);
	em_model_close(&c);
}

int model_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wire__overhead_of_ethernet),
		cmocka_unit_test(offer__one_frame),
		cmocka_unit_test(offer__back_to_back),
		cmocka_unit_test(offer__no_time_is_lost_by_rounding),
		cmocka_unit_test(offer__rates_from_kilobits_to_terabits),
		cmocka_unit_test(offer__no_rate_no_queue),
		cmocka_unit_test(offer__arrivals_never_go_back),
		cmocka_unit_test(set__frames_under_way_keep_their_time),
		cmocka_unit_test(jitter__within_its_bounds_and_in_order),
		cmocka_unit_test(coalesce__groups),
		cmocka_unit_test(mtu__longer_packets_are_dropped),
		cmocka_unit_test(offer__the_same_seed_the_same_fates),
	};

	return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
