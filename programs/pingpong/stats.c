/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Medians, percentiles, and confidence intervals of medians that assume nothing about the
 * distribution: the number of values below the true median is binomial.
 */
#include "pingpong.h"

#include <stdlib.h>
#include <string.h>

#define CONFIDENCE 0.95

bool pp_figures_init(struct pp_figures *f, size_t samples, size_t rounds)
{
	*f = (struct pp_figures){
		.sample = calloc(samples ? samples : 1, sizeof(*f->sample)),
		.round = calloc(rounds, sizeof(*f->round)),
	};
	return f->sample && f->round;
}

void pp_figures_free(struct pp_figures *f)
{
	free(f->sample);
	free(f->round);
}

static int by_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void pp_figures_sort(struct pp_figures *f)
{
	qsort(f->sample, f->samples, sizeof(*f->sample), by_u64);
}

uint64_t pp_percentile(const struct pp_figures *f, double share)
{
	size_t i = (size_t)(share * (double)f->samples);

	return f->sample[i < f->samples ? i : f->samples - 1];
}

/* Sorts x. */
uint64_t pp_median_u64(uint64_t *x, size_t n)
{
	qsort(x, n, sizeof(*x), by_u64);
	return x[n / 2];
}

static double sorted_median(const double *x, size_t n)
{
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

double pp_median(const double *x, size_t n)
{
	double *copy = malloc(n * sizeof(*copy));
	double median;

	if (!copy)
		return 0;
	memcpy(copy, x, n * sizeof(*copy));
	qsort(copy, n, sizeof(*copy), by_double);
	median = sorted_median(copy, n);
	free(copy);
	return median;
}

/* Largest k such that the k-th smallest and the k-th largest of n values hold the median between
 * them with the confidence wanted; at least 1. */
static size_t order_of(size_t n)
{
	double probability = 1,
	       below = 0; /* of exactly, of at most k - 1 values below the median */
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		probability /= 2;
	while (k < n / 2) {
		below += probability;
		if (1 - 2 * below < CONFIDENCE)
			break;
		k++;
		probability = probability * (double)(n - k + 1) / (double)k;
	}
	return k ? k : 1;
}

struct pp_interval pp_ratio(const double *a, const double *b, size_t n)
{
	double *ratio = malloc(n * sizeof(*ratio));
	struct pp_interval x = {0};
	size_t k = order_of(n);

	if (!ratio)
		return x;
	for (size_t i = 0; i < n; i++)
		ratio[i] = b[i] > 0 ? a[i] / b[i] : 0;
	qsort(ratio, n, sizeof(*ratio), by_double);
	x.median = sorted_median(ratio, n);
	x.low = ratio[k - 1];
	x.high = ratio[n - k];
	free(ratio);
	return x;
}
