// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The arithmetic of atomic operations, and the table of what is offered for which datatype.
 */
#include <complex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bwf.h"
#include "codes.h"

static int64_t apply_i64(enum fi_op op, int64_t d, int64_t s, int64_t c)
{
	int64_t old = 0, before = d;

	bwf_atomic_apply(FI_INT64, op, &d, &s, &c, &old, 1);
	assert_int_equal(old, before);
	return d;
}

static void atomic_apply__integers(void **state)
{
	assert_int_equal(apply_i64(FI_MIN, 5, -7, 0), -7);
	assert_int_equal(apply_i64(FI_MAX, 5, -7, 0), 5);
	assert_int_equal(apply_i64(FI_SUM, 5, -7, 0), -2);
	assert_int_equal(apply_i64(FI_SUM, INT64_MAX, 1, 0), INT64_MIN);
	assert_int_equal(apply_i64(FI_PROD, 5, -7, 0), -35);
	assert_int_equal(apply_i64(FI_LOR, 0, 4, 0), 1);
	assert_int_equal(apply_i64(FI_LAND, 3, 0, 0), 0);
	assert_int_equal(apply_i64(FI_LXOR, 3, 4, 0), 0);
	assert_int_equal(apply_i64(FI_LXOR, 3, 0, 0), 1);
	assert_int_equal(apply_i64(FI_BOR, 0xC, 0xA, 0), 0xE);
	assert_int_equal(apply_i64(FI_BAND, 0xC, 0xA, 0), 0x8);
	assert_int_equal(apply_i64(FI_BXOR, 0xC, 0xA, 0), 0x6);
	assert_int_equal(apply_i64(FI_ATOMIC_READ, 12, 99, 0), 12);
	assert_int_equal(apply_i64(FI_ATOMIC_WRITE, 12, 99, 0), 99);
	assert_int_equal(apply_i64(FI_MSWAP, 0x1234, 0xABCD, 0x0FF0), 0x1BC4);
}

/* libfabric compares the operand with the target: "swap if compare OP target". */
static void atomic_apply__comparisons(void **state)
{
	static const struct {
		enum fi_op op;
		bool less, equal, greater; /* swaps when compare is less than, equal to, greater
					      than target */
	} table[] = {
		{FI_CSWAP, false, true, false},	  {FI_CSWAP_NE, true, false, true},
		{FI_CSWAP_LE, true, true, false}, {FI_CSWAP_LT, true, false, false},
		{FI_CSWAP_GE, false, true, true}, {FI_CSWAP_GT, false, false, true},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(apply_i64(table[i].op, 10, 1, 9), table[i].less ? 1 : 10);
		assert_int_equal(apply_i64(table[i].op, 10, 1, 10), table[i].equal ? 1 : 10);
		assert_int_equal(apply_i64(table[i].op, 10, 1, 11), table[i].greater ? 1 : 10);
	}
}

static void atomic_apply__narrow_types_wrap_around(void **state)
{
	uint8_t u8[3] = {200, 0, 255}, add[3] = {100, 1, 1};
	uint16_t u16 = 65535, factor = 65535;

	bwf_atomic_apply(FI_UINT8, FI_SUM, u8, add, NULL, NULL, 3);
	assert_int_equal(u8[0], 44);
	assert_int_equal(u8[1], 1);
	assert_int_equal(u8[2], 0);
	bwf_atomic_apply(FI_UINT16, FI_PROD, &u16, &factor, NULL, NULL, 1);
	assert_int_equal(u16, 1);
}

static void atomic_apply__wide_and_floating_types(void **state)
{
	unsigned __int128 wide = (unsigned __int128)1 << 100, more = 5;
	double complex z = 1 + 2 * I, w = 3 - 1 * I;
	long double x = 2.5L, y = -4.0L;
	float f = 1.5f, g = 0.0f;

	bwf_atomic_apply(FI_UINT128, FI_SUM, &wide, &more, NULL, NULL, 1);
	assert_true(wide == (((unsigned __int128)1 << 100) + 5));
	bwf_atomic_apply(FI_DOUBLE_COMPLEX, FI_PROD, &z, &w, NULL, NULL, 1);
	assert_true(creal(z) == 5 && cimag(z) == 5);
	bwf_atomic_apply(FI_LONG_DOUBLE, FI_MIN, &x, &y, NULL, NULL, 1);
	assert_true(x == -4.0L);
	bwf_atomic_apply(FI_FLOAT, FI_LAND, &f, &g, NULL, NULL, 1);
	assert_true(f == 0.0f);
}

/* Operands and target may lie at odd addresses; neighbours stay untouched. */
static void atomic_apply__unaligned(void **state)
{
	char target[1 + 4 * sizeof(int32_t) + 1] = {0}, operand[1 + 4 * sizeof(int32_t)] = {0};

	target[0] = target[sizeof(target) - 1] = 77;
	for (int i = 0; i < 4; i++)
		memcpy(operand + 1 + i * 4, &(int32_t){i + 1}, 4);
	bwf_atomic_apply(FI_INT32, FI_SUM, target + 1, operand + 1, NULL, NULL, 4);
	for (int i = 0; i < 4; i++) {
		int32_t value;

		memcpy(&value, target + 1 + i * 4, 4);
		assert_int_equal(value, i + 1);
	}
	assert_int_equal(target[0], 77);
	assert_int_equal(target[sizeof(target) - 1], 77);
}

static void atomic_size__offers_what_makes_sense(void **state)
{
	assert_int_equal(bwf_atomic_size(FI_INT32, FI_SUM, BWF_ATOMIC_BASE), 4);
	assert_int_equal(bwf_atomic_size(FI_INT32, FI_SUM, BWF_ATOMIC_FETCH), 4);
	assert_int_equal(bwf_atomic_size(FI_INT32, FI_SUM, BWF_ATOMIC_COMPARE), 0);
	assert_int_equal(bwf_atomic_size(FI_INT32, FI_CSWAP, BWF_ATOMIC_FETCH), 0);
	assert_int_equal(bwf_atomic_size(FI_INT32, FI_CSWAP, BWF_ATOMIC_COMPARE), 4);
	assert_int_equal(bwf_atomic_size(FI_INT32, FI_ATOMIC_READ, BWF_ATOMIC_BASE), 0);
	assert_int_equal(bwf_atomic_size(FI_INT32, FI_ATOMIC_READ, BWF_ATOMIC_FETCH), 4);
	assert_int_equal(bwf_atomic_size(FI_DOUBLE, FI_BXOR, BWF_ATOMIC_BASE), 0);
	assert_int_equal(bwf_atomic_size(FI_DOUBLE, FI_MSWAP, BWF_ATOMIC_COMPARE), 0);
	assert_int_equal(bwf_atomic_size(FI_FLOAT_COMPLEX, FI_MIN, BWF_ATOMIC_BASE), 0);
	assert_int_equal(bwf_atomic_size(FI_FLOAT_COMPLEX, FI_CSWAP, BWF_ATOMIC_COMPARE), 8);
	assert_int_equal(bwf_atomic_size(FI_LONG_DOUBLE_COMPLEX, FI_SUM, BWF_ATOMIC_BASE), 32);
	assert_int_equal(bwf_atomic_size(FI_UINT128, FI_BOR, BWF_ATOMIC_BASE), 16);
	assert_int_equal(bwf_atomic_size(FI_UINT128 + 1, FI_SUM, BWF_ATOMIC_BASE), 0);
	assert_int_equal(bwf_atomic_size(FI_INT8, FI_MSWAP + 1, BWF_ATOMIC_COMPARE), 0);
	assert_int_equal(bwf_atomic_size((enum fi_datatype) - 1, FI_SUM, BWF_ATOMIC_BASE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(atomic_apply__integers),
		cmocka_unit_test(atomic_apply__comparisons),
		cmocka_unit_test(atomic_apply__narrow_types_wrap_around),
		cmocka_unit_test(atomic_apply__wide_and_floating_types),
		cmocka_unit_test(atomic_apply__unaligned),
		cmocka_unit_test(atomic_size__offers_what_makes_sense),
	};

	return cmocka_run_group_tests_name("atomic operations", tests, NULL, NULL);
}
