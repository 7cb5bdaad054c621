/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sets of numbers as spans; see spans.h. Searches start at the end, where arrivals mostly
 * belong. */
#include "spans.h"

/* Spans [first, last) are those that overlap or touch [lo, hi). */
static void bw_spans_touching(const struct bw_span *s, uint32_t n, uint64_t lo, uint64_t hi,
			      uint32_t *first, uint32_t *last)
{
	uint32_t i = n;

	while (i > 0 && s[i - 1].lo > hi)
		i--;
	*last = i;
	while (i > 0 && s[i - 1].hi >= lo)
		i--;
	*first = i;
}

bool bw_spans_fit(const struct bw_span *s, uint32_t n, uint32_t max, uint64_t lo, uint64_t hi)
{
	uint32_t first, last;

	if (n < max)
		return true;
	bw_spans_touching(s, n, lo, hi, &first, &last);
	return first < last;
}

bool bw_spans_fit_whole(const struct bw_span *s, uint32_t n, uint32_t max, uint64_t lo, uint64_t hi)
{
	bool begun = !lo || (n && !s[0].lo);

	return bw_spans_fit(s, n, begun ? max : max - 1, lo, hi);
}

uint64_t bw_spans_add(struct bw_span *s, uint32_t *n, uint64_t lo, uint64_t hi)
{
	uint64_t added = hi - lo;
	uint32_t first, last, i;

	if (BW_LIKELY(*n && s[*n - 1].hi == lo)) { /* the last one grows */
		s[*n - 1].hi = hi;
		return added;
	}
	bw_spans_touching(s, *n, lo, hi, &first, &last);
	if (first == last) {
		memmove(&s[first + 1], &s[first], (*n - first) * sizeof(*s));
		s[first].lo = lo;
		s[first].hi = hi;
		(*n)++;
		return added;
	}
	for (i = first; i < last; i++) {
		uint64_t from = bw_max_u64(s[i].lo, lo);
		uint64_t to = bw_min_u64(s[i].hi, hi);

		if (to > from)
			added -= to - from;
	}
	s[first].lo = bw_min_u64(s[first].lo, lo);
	s[first].hi = bw_max_u64(s[last - 1].hi, hi);
	memmove(&s[first + 1], &s[last], (*n - last) * sizeof(*s));
	*n -= last - first - 1;
	return added;
}

bool bw_spans_cover(const struct bw_span *s, uint32_t n, uint64_t lo, uint64_t hi)
{
	while (n > 0 && s[n - 1].lo > lo)
		n--;
	return n > 0 && s[n - 1].hi >= hi;
}

bool bw_pnset_has(const struct bw_pnset *s, uint64_t pn)
{
	return pn < s->base || bw_spans_cover(s->span, s->n, pn, pn + 1);
}

/* Spans that the base has reached become part of it. */
static void bw_pnset_settle(struct bw_pnset *s)
{
	uint32_t gone = 0;

	while (gone < s->n && s->span[gone].lo <= s->base) {
		s->base = bw_max_u64(s->base, s->span[gone].hi);
		gone++;
	}
	if (gone) {
		s->n -= gone;
		memmove(&s->span[0], &s->span[gone], s->n * sizeof(s->span[0]));
	}
}

bool bw_pnset_add(struct bw_pnset *s, uint64_t pn)
{
	if (pn == s->base) {
		s->base++;
		if (s->n)
			bw_pnset_settle(s);
		return true;
	}
	if (!bw_spans_fit(s->span, s->n, BW_PNSET_SPANS, pn, pn + 1))
		return false;
	bw_spans_add(s->span, &s->n, pn, pn + 1);
	return true;
}

void bw_pnset_floor(struct bw_pnset *s, uint64_t floor)
{
	if (floor <= s->base)
		return;
	s->base = floor;
	bw_pnset_settle(s);
}
