/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A place in a program's list of buffers. The list is not changed. */
#ifndef BWS_IOV_H
#define BWS_IOV_H

#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#define BWS_IOV_PART 16 /* buffers given to the kernel at once */

struct bws_iov {
	const struct iovec *at;
	size_t n;      /* of buffers from `at` on */
	size_t done;   /* bytes of the first one */
	uint64_t left; /* bytes of all */
};

static inline void bws_iov_settle(struct bws_iov *v)
{
	while (v->n && v->done == v->at->iov_len) {
		v->at++;
		v->n--;
		v->done = 0;
	}
}

static inline void bws_iov_begin(struct bws_iov *v, const struct iovec *at, size_t n)
{
	*v = (struct bws_iov){.at = at, .n = n};
	for (size_t i = 0; i < n; i++)
		v->left += at[i].iov_len;
	bws_iov_settle(v);
}

static inline uint64_t bws_iov_left(const struct bws_iov *v)
{
	return v->left;
}

static inline void bws_iov_skip(struct bws_iov *v, uint64_t bytes)
{
	while (bytes && v->n) {
		uint64_t some = v->at->iov_len - v->done;

		if (some > bytes)
			some = bytes;
		v->done += some;
		v->left -= some;
		bytes -= some;
		bws_iov_settle(v);
	}
}

/* Copy bytes there; they fit. */
static inline void bws_iov_put(struct bws_iov *v, const uint8_t *from, uint64_t bytes)
{
	while (bytes && v->n) {
		uint64_t some = v->at->iov_len - v->done;

		if (some > bytes)
			some = bytes;
		memcpy((uint8_t *)v->at->iov_base + v->done, from, some);
		from += some;
		bytes -= some;
		bws_iov_skip(v, some);
	}
}

/* The next buffers, of `limit` bytes at most: how many. */
static inline size_t bws_iov_part(const struct bws_iov *v, struct iovec *some, uint64_t limit)
{
	size_t done = v->done, n = 0;

	for (size_t i = 0; i < v->n && n < BWS_IOV_PART && limit; i++, done = 0) {
		uint64_t bytes = v->at[i].iov_len - done;

		if (!bytes)
			continue;
		if (bytes > limit)
			bytes = limit;
		some[n++] = (struct iovec){(uint8_t *)v->at[i].iov_base + done, bytes};
		limit -= bytes;
	}
	return n;
}

#endif
