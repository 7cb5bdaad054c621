// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The arithmetic of atomic operations: one function for each datatype, generated from three
 * templates (integers, floating point, complex numbers), and the table of what is offered. Operands
 * may lie at any address, so elements are copied in and out.
 */
#include "bwf.h"

#include <complex.h>

#define BWF_TYPES (FI_UINT128 + 1)

/* Cases that every datatype has. */
#define BWF_CASES_ALL                                                                              \
	case FI_LOR:                                                                               \
		d = d != 0 || s != 0;                                                              \
		break;                                                                             \
	case FI_LAND:                                                                              \
		d = d != 0 && s != 0;                                                              \
		break;                                                                             \
	case FI_LXOR:                                                                              \
		d = (d != 0) != (s != 0);                                                          \
		break;                                                                             \
	case FI_ATOMIC_WRITE:                                                                      \
		d = s;                                                                             \
		break;                                                                             \
	case FI_CSWAP:                                                                             \
		d = c == d ? s : d;                                                                \
		break;                                                                             \
	case FI_CSWAP_NE:                                                                          \
		d = c != d ? s : d;                                                                \
		break;

/* Cases of numbers that have an order. */
#define BWF_CASES_ORDERED                                                                          \
	case FI_MIN:                                                                               \
		d = s < d ? s : d;                                                                 \
		break;                                                                             \
	case FI_MAX:                                                                               \
		d = s > d ? s : d;                                                                 \
		break;                                                                             \
	case FI_CSWAP_LE:                                                                          \
		d = c <= d ? s : d;                                                                \
		break;                                                                             \
	case FI_CSWAP_LT:                                                                          \
		d = c < d ? s : d;                                                                 \
		break;                                                                             \
	case FI_CSWAP_GE:                                                                          \
		d = c >= d ? s : d;                                                                \
		break;                                                                             \
	case FI_CSWAP_GT:                                                                          \
		d = c > d ? s : d;                                                                 \
		break;

/* Sum and product wrap around: they are computed in an unsigned type. */
#define BWF_CASES_INTEGER(T, U)                                                                    \
	case FI_SUM:                                                                               \
		d = (T)((U)d + (U)s);                                                              \
		break;                                                                             \
	case FI_PROD:                                                                              \
		d = (T)((U)d * (U)s);                                                              \
		break;                                                                             \
	case FI_BOR:                                                                               \
		d = d | s;                                                                         \
		break;                                                                             \
	case FI_BAND:                                                                              \
		d = d & s;                                                                         \
		break;                                                                             \
	case FI_BXOR:                                                                              \
		d = d ^ s;                                                                         \
		break;                                                                             \
	case FI_MSWAP:                                                                             \
		d = (T)((s & c) | (d & ~c));                                                       \
		break;

#define BWF_CASES_REAL                                                                             \
	case FI_SUM:                                                                               \
		d = d + s;                                                                         \
		break;                                                                             \
	case FI_PROD:                                                                              \
		d = d * s;                                                                         \
		break;

#define BWF_APPLY(name, T, cases)                                                                  \
	static void bwf_apply_##name(enum fi_op op, char *dst, const char *src, const char *cmp,   \
				     char *old, size_t count)                                      \
	{                                                                                          \
		for (size_t at = 0; at < count * sizeof(T); at += sizeof(T)) {                     \
			T d, s = 0, c = 0;                                                         \
                                                                                                   \
			memcpy(&d, dst + at, sizeof(T));                                           \
			if (src)                                                                   \
				memcpy(&s, src + at, sizeof(T));                                   \
			if (cmp)                                                                   \
				memcpy(&c, cmp + at, sizeof(T));                                   \
			if (old)                                                                   \
				memcpy(old + at, &d, sizeof(T));                                   \
			switch ((int)op) {                                                         \
				BWF_CASES_ALL                                                      \
				cases                                                              \
			}                                                                          \
			if (op != FI_ATOMIC_READ)                                                  \
				memcpy(dst + at, &d, sizeof(T));                                   \
		}                                                                                  \
	}

#define BWF_APPLY_INTEGER(name, T, U) BWF_APPLY(name, T, BWF_CASES_ORDERED BWF_CASES_INTEGER(T, U))
#define BWF_APPLY_REAL(name, T)	      BWF_APPLY(name, T, BWF_CASES_ORDERED BWF_CASES_REAL)
#define BWF_APPLY_COMPLEX(name, T)    BWF_APPLY(name, T, BWF_CASES_REAL)

typedef __int128 bwf_int128;
typedef unsigned __int128 bwf_uint128;

BWF_APPLY_INTEGER(int8, int8_t, uint64_t)
BWF_APPLY_INTEGER(uint8, uint8_t, uint64_t)
BWF_APPLY_INTEGER(int16, int16_t, uint64_t)
BWF_APPLY_INTEGER(uint16, uint16_t, uint64_t)
BWF_APPLY_INTEGER(int32, int32_t, uint64_t)
BWF_APPLY_INTEGER(uint32, uint32_t, uint64_t)
BWF_APPLY_INTEGER(int64, int64_t, uint64_t)
BWF_APPLY_INTEGER(uint64, uint64_t, uint64_t)
BWF_APPLY_INTEGER(int128, bwf_int128, bwf_uint128)
BWF_APPLY_INTEGER(uint128, bwf_uint128, bwf_uint128)
BWF_APPLY_REAL(float, float)
BWF_APPLY_REAL(double, double)
BWF_APPLY_REAL(long_double, long double)
BWF_APPLY_COMPLEX(float_complex, float complex)
BWF_APPLY_COMPLEX(double_complex, double complex)
BWF_APPLY_COMPLEX(long_double_complex, long double complex)

enum bwf_number { BWF_INTEGER = 1, BWF_REAL = 2, BWF_COMPLEX = 4 };

static const struct {
	void (*apply)(enum fi_op op, char *dst, const char *src, const char *cmp, char *old,
		      size_t count);
	size_t size;
	enum bwf_number number;
} bwf_type[BWF_TYPES] = {
	[FI_INT8] = {bwf_apply_int8, 1, BWF_INTEGER},
	[FI_UINT8] = {bwf_apply_uint8, 1, BWF_INTEGER},
	[FI_INT16] = {bwf_apply_int16, 2, BWF_INTEGER},
	[FI_UINT16] = {bwf_apply_uint16, 2, BWF_INTEGER},
	[FI_INT32] = {bwf_apply_int32, 4, BWF_INTEGER},
	[FI_UINT32] = {bwf_apply_uint32, 4, BWF_INTEGER},
	[FI_INT64] = {bwf_apply_int64, 8, BWF_INTEGER},
	[FI_UINT64] = {bwf_apply_uint64, 8, BWF_INTEGER},
	[FI_FLOAT] = {bwf_apply_float, sizeof(float), BWF_REAL},
	[FI_DOUBLE] = {bwf_apply_double, sizeof(double), BWF_REAL},
	[FI_FLOAT_COMPLEX] = {bwf_apply_float_complex, sizeof(float complex), BWF_COMPLEX},
	[FI_DOUBLE_COMPLEX] = {bwf_apply_double_complex, sizeof(double complex), BWF_COMPLEX},
	[FI_LONG_DOUBLE] = {bwf_apply_long_double, sizeof(long double), BWF_REAL},
	[FI_LONG_DOUBLE_COMPLEX] = {bwf_apply_long_double_complex, sizeof(long double complex),
				    BWF_COMPLEX},
	[FI_INT128] = {bwf_apply_int128, 16, BWF_INTEGER},
	[FI_UINT128] = {bwf_apply_uint128, 16, BWF_INTEGER},
};

#define BWF_KIND(kind)	  (1 << (kind))
#define BWF_BASE_OR_FETCH (BWF_KIND(BWF_ATOMIC_BASE) | BWF_KIND(BWF_ATOMIC_FETCH))

static const struct {
	uint8_t kinds;	 /* BWF_KIND() of the calls that offer it */
	uint8_t numbers; /* enum bwf_number of the datatypes that have it */
} bwf_operation[FI_MSWAP + 1] = {
	[FI_MIN] = {BWF_BASE_OR_FETCH, BWF_INTEGER | BWF_REAL},
	[FI_MAX] = {BWF_BASE_OR_FETCH, BWF_INTEGER | BWF_REAL},
	[FI_SUM] = {BWF_BASE_OR_FETCH, BWF_INTEGER | BWF_REAL | BWF_COMPLEX},
	[FI_PROD] = {BWF_BASE_OR_FETCH, BWF_INTEGER | BWF_REAL | BWF_COMPLEX},
	[FI_LOR] = {BWF_BASE_OR_FETCH, BWF_INTEGER | BWF_REAL | BWF_COMPLEX},
	[FI_LAND] = {BWF_BASE_OR_FETCH, BWF_INTEGER | BWF_REAL | BWF_COMPLEX},
	[FI_BOR] = {BWF_BASE_OR_FETCH, BWF_INTEGER},
	[FI_BAND] = {BWF_BASE_OR_FETCH, BWF_INTEGER},
	[FI_LXOR] = {BWF_BASE_OR_FETCH, BWF_INTEGER | BWF_REAL | BWF_COMPLEX},
	[FI_BXOR] = {BWF_BASE_OR_FETCH, BWF_INTEGER},
	[FI_ATOMIC_READ] = {BWF_KIND(BWF_ATOMIC_FETCH), BWF_INTEGER | BWF_REAL | BWF_COMPLEX},
	[FI_ATOMIC_WRITE] = {BWF_BASE_OR_FETCH, BWF_INTEGER | BWF_REAL | BWF_COMPLEX},
	[FI_CSWAP] = {BWF_KIND(BWF_ATOMIC_COMPARE), BWF_INTEGER | BWF_REAL | BWF_COMPLEX},
	[FI_CSWAP_NE] = {BWF_KIND(BWF_ATOMIC_COMPARE), BWF_INTEGER | BWF_REAL | BWF_COMPLEX},
	[FI_CSWAP_LE] = {BWF_KIND(BWF_ATOMIC_COMPARE), BWF_INTEGER | BWF_REAL},
	[FI_CSWAP_LT] = {BWF_KIND(BWF_ATOMIC_COMPARE), BWF_INTEGER | BWF_REAL},
	[FI_CSWAP_GE] = {BWF_KIND(BWF_ATOMIC_COMPARE), BWF_INTEGER | BWF_REAL},
	[FI_CSWAP_GT] = {BWF_KIND(BWF_ATOMIC_COMPARE), BWF_INTEGER | BWF_REAL},
	[FI_MSWAP] = {BWF_KIND(BWF_ATOMIC_COMPARE), BWF_INTEGER},
};

size_t bwf_atomic_size(enum fi_datatype type, enum fi_op op, int kind)
{
	if ((unsigned)type >= BWF_TYPES || (unsigned)op > FI_MSWAP || kind < BWF_ATOMIC_BASE ||
	    kind > BWF_ATOMIC_COMPARE)
		return 0;
	if (!(bwf_operation[op].kinds & BWF_KIND(kind)) ||
	    !(bwf_operation[op].numbers & bwf_type[type].number))
		return 0;
	return bwf_type[type].size;
}

void bwf_atomic_apply(enum fi_datatype type, enum fi_op op, void *dst, const void *src,
		      const void *cmp, void *old, size_t count)
{
	bwf_type[type].apply(op, dst, src, cmp, old, count);
}
