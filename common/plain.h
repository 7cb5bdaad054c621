/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Buffers and callbacks of a plain host: a program that drives protocols with memory from malloc().
 * A cookie is the address of a buffer. For beowire-protocol and beowire-server.
 */
#ifndef BW_PLAIN_H
#define BW_PLAIN_H

#include "protocol.h"

/* What a buffer's cookie points to: payload of a send, or of an incoming message. */
struct plain_buffer {
	struct plain_buffer *next, **link; /* the program's own, as the next two */
	uint32_t owner;
	bool first;
	uint64_t len;
	uint8_t bytes[];
};

/* NULL when there is no memory. free() frees it. */
struct plain_buffer *plain_buffer_new(uint64_t len);

static inline struct plain_buffer *plain_buffer_of(uint64_t cookie)
{
	return (struct plain_buffer *)(uintptr_t)cookie;
}

/* Frames are whole and in one piece; no memory is registered. */
extern const struct bw_host_ops plain_host_ops;

#endif
