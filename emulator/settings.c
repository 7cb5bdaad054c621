/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text and numbers: a value is digits, perhaps a fraction, and a unit from its key's table. It is
 * kept in units of 1e-9 until the unit is known, so that 0.1 is exactly that.
 */
#include "settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define EM_FINE	  1000000000u /* parts of one that are told apart */
#define EM_DIGITS 18	      /* before the point; more is out of every range */

struct em_unit {
	const char *name;
	uint64_t times;
};

static const struct em_unit em_rates[] = {
	{"", 1},
	{"bit", 1},
	{"k", 1000},
	{"kbit", 1000},
	{"K", 1000},
	{"M", 1000000},
	{"Mbit", 1000000},
	{"G", 1000000000},
	{"Gbit", 1000000000},
	{"T", 1000000000000},
	{"Tbit", 1000000000000},
	{NULL, 0},
};
static const struct em_unit em_times[] = {
	{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0},
};
static const struct em_unit em_sizes[] = {
	{"", 1},	  {"k", 1000},	    {"K", 1000},      {"M", 1000000}, {"G", 1000000000},
	{"Ki", 1u << 10}, {"Mi", 1u << 20}, {"Gi", 1u << 30}, {NULL, 0},
};
/* Multiplied into parts per EM_SHARE_ONE. */
static const struct em_unit em_shares[] = {
	{"", EM_SHARE_ONE},
	{"%", EM_SHARE_ONE / 100},
	{NULL, 0},
};
static const struct em_unit em_frames[] = {{"", EM_BURST_ONE}, {NULL, 0}};

static bool em_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The value times its unit, rounded down, at most `max`. */
static int em_value(const char *text, const struct em_unit *unit, uint64_t max, uint64_t *value)
{
	unsigned __int128 fine = 0, whole;
	uint32_t part = EM_FINE;
	int digits = 0;

	if (!em_digit(*text))
		return -EINVAL;
	for (; em_digit(*text); text++) {
		if (++digits > EM_DIGITS)
			return -ERANGE;
		fine = fine * 10 + (unsigned int)(*text - '0');
	}
	fine *= EM_FINE;
	if (*text == '.') {
		if (!em_digit(*++text))
			return -EINVAL;
		for (; em_digit(*text); text++) {
			part /= 10;
			fine += (unsigned __int128)part * (unsigned int)(*text - '0');
		}
	}
	/* nothing is nothing in every unit */
	if (!fine && !*text) {
		*value = 0;
		return 0;
	}
	for (; unit->name; unit++) {
		if (strcmp(unit->name, text))
			continue;
		whole = fine * unit->times / EM_FINE;
		if (whole > max)
			return -ERANGE;
		*value = (uint64_t)whole;
		return 0;
	}
	return -EINVAL;
}

int em_settings_time(const char *text, uint64_t *ns)
{
	return em_value(text, em_times, EM_TIME_MAX, ns) ? -EINVAL : 0;
}

int em_settings_share(const char *text, uint32_t *share)
{
	uint64_t value;

	if (em_value(text, em_shares, EM_SHARE_ONE, &value))
		return -EINVAL;
	*share = (uint32_t)value;
	return 0;
}

struct em_key {
	const char *name;
	size_t at, bytes;
	const struct em_unit *units;
	uint64_t max;
	const char *like; /* what a right value looks like */
};

#define EM_KEY(field, units, max, like)                                                            \
	{                                                                                          \
#field, offsetof(struct em_settings, field),                                       \
			sizeof(((struct em_settings *)0)->field), units, max, like                 \
	}

#define EM_LIKE_SHARE "a share from 0 to 1, such as 0.1% or 0.001"
#define EM_LIKE_TIME  "a time of at most 3600s with its unit, such as 10us, 5ms or 1s"
#define EM_LIKE_BYTES "bytes, such as 100000, 100K or 64Ki; at most 1024Gi"

static const struct em_key em_keys[] = {
	EM_KEY(rate, em_rates, EM_RATE_MAX, "bit/s up to 1T, such as 100M or 2.5G; 0 for no limit"),
	EM_KEY(delay, em_times, EM_TIME_MAX, EM_LIKE_TIME),
	EM_KEY(jitter, em_times, EM_TIME_MAX, EM_LIKE_TIME),
	EM_KEY(loss, em_shares, EM_SHARE_ONE, EM_LIKE_SHARE),
	EM_KEY(burst, em_frames, EM_BURST_MAX, "frames from 1 to 1000000, such as 3.5; 0 for none"),
	EM_KEY(duplicate, em_shares, EM_SHARE_ONE, EM_LIKE_SHARE),
	EM_KEY(reorder, em_shares, EM_SHARE_ONE, EM_LIKE_SHARE),
	EM_KEY(corrupt, em_shares, EM_SHARE_ONE, EM_LIKE_SHARE),
	EM_KEY(queue, em_sizes, EM_QUEUE_MAX, EM_LIKE_BYTES),
	EM_KEY(mark, em_sizes, EM_QUEUE_MAX, EM_LIKE_BYTES),
	EM_KEY(mtu, em_sizes, EM_MTU_MAX, "bytes from 68 to 65535; 0 for any"),
	EM_KEY(coalesce, em_times, EM_TIME_MAX, EM_LIKE_TIME),
};

#define EM_KEYS (sizeof(em_keys) / sizeof(em_keys[0]))

static uint64_t em_get(const struct em_settings *s, const struct em_key *key)
{
	uint32_t small;
	uint64_t large;

	if (key->bytes == sizeof(large)) {
		memcpy(&large, (const char *)s + key->at, sizeof(large));
		return large;
	}
	memcpy(&small, (const char *)s + key->at, sizeof(small));
	return small;
}

static void em_put(struct em_settings *s, const struct em_key *key, uint64_t value)
{
	uint32_t small = (uint32_t)value;

	if (key->bytes == sizeof(value))
		memcpy((char *)s + key->at, &value, sizeof(value));
	else
		memcpy((char *)s + key->at, &small, sizeof(small));
}

static int em_unknown(const char *text, char *why)
{
	size_t n = 0, used;

	used = (size_t)snprintf(why, EM_WHY_MAX, "%.40s: no such setting; there are:", text);
	for (n = 0; n < EM_KEYS && used < EM_WHY_MAX; n++)
		used += (size_t)snprintf(why + used, EM_WHY_MAX - used, " %s", em_keys[n].name);
	return -EINVAL;
}

int em_settings_take(struct em_settings both[EM_DIRECTIONS], const char *text, char why[EM_WHY_MAX])
{
	const char *key = text, *equals = strchr(text, '=');
	unsigned int first = 0, last = EM_DIRECTIONS - 1, d;
	uint64_t value;
	size_t n;

	if (!equals) {
		snprintf(why, EM_WHY_MAX, "%.40s: not a setting; write KEY=VALUE, such as rate=1G",
			 text);
		return -EINVAL;
	}
	if (!strncmp(text, "ab.", 3) || !strncmp(text, "ba.", 3)) {
		first = last = text[0] == 'b';
		key += 3;
	}
	for (n = 0; n < EM_KEYS; n++) {
		const struct em_key *k = &em_keys[n];

		if (strlen(k->name) != (size_t)(equals - key) ||
		    strncmp(key, k->name, strlen(k->name)))
			continue;
		if (em_value(equals + 1, k->units, k->max, &value)) {
			snprintf(why, EM_WHY_MAX, "%.60s: the value must be %s", text, k->like);
			return -EINVAL;
		}
		for (d = first; d <= last; d++)
			em_put(&both[d], k, value);
		return 0;
	}
	return em_unknown(text, why);
}

int em_settings_check(const struct em_settings *s, char why[EM_WHY_MAX])
{
	/* see loss.c: p / (L (1 - p)) is a probability */
	uint64_t least = s->loss < EM_SHARE_ONE
				 ? (uint64_t)s->loss * EM_BURST_ONE / (EM_SHARE_ONE - s->loss)
				 : 0;

	if (s->jitter > s->delay) {
		snprintf(why, EM_WHY_MAX,
			 "a jitter of %" PRIu64 " ns is longer than the delay of %" PRIu64
			 " ns; raise delay= or lower jitter=",
			 s->jitter, s->delay);
		return -EINVAL;
	}
	if (s->burst && s->burst < EM_BURST_ONE) {
		snprintf(why, EM_WHY_MAX,
			 "a burst of losses has at least 1 frame; set burst=1 or more, or burst=0 "
			 "for independent losses");
		return -EINVAL;
	}
	if (s->burst && s->burst < least) {
		snprintf(why, EM_WHY_MAX,
			 "this loss needs bursts of at least %" PRIu64 ".%03" PRIu64
			 " frames on average; raise burst= or lower loss=",
			 least / EM_BURST_ONE, least % EM_BURST_ONE);
		return -EINVAL;
	}
	if (s->mtu && s->mtu < EM_MTU_MIN) {
		snprintf(why, EM_WHY_MAX,
			 "mtu=%u is below %u, the least that IP works with; raise it", s->mtu,
			 EM_MTU_MIN);
		return -EINVAL;
	}
	return 0;
}

uint64_t em_settings_queue(const struct em_settings *s)
{
	uint64_t bytes = s->rate / 8 / 100;

	if (s->queue)
		return s->queue;
	return bytes > EM_QUEUE_LEAST ? bytes : EM_QUEUE_LEAST;
}

void em_settings_print(const struct em_settings *s, char text[EM_TEXT_MAX])
{
	size_t used = 0, n;

	for (n = 0; n < EM_KEYS && used < EM_TEXT_MAX; n++) {
		const struct em_key *k = &em_keys[n];
		uint64_t value = em_get(s, k), one = k->units[0].times;

		used += (size_t)snprintf(text + used, EM_TEXT_MAX - used, "%s%s=", n ? " " : "",
					 k->name);
		if (used >= EM_TEXT_MAX)
			return;
		if (one == 1)
			used += (size_t)snprintf(text + used, EM_TEXT_MAX - used, "%" PRIu64 "%s",
						 value, k->units[0].name);
		else
			used += (size_t)snprintf(text + used, EM_TEXT_MAX - used,
						 "%" PRIu64 ".%0*" PRIu64, value / one,
						 one == EM_SHARE_ONE ? 9 : 3, value % one);
	}
}
