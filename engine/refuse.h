/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* REFUSE frames that the host makes itself, for engines that do not exist (any more). */
#ifndef BW_REFUSE_H
#define BW_REFUSE_H

#include "protocol.h"

struct bw_refuse_frame {
	struct bw_hdr hdr;
	struct bw_refuse body;
};

/* Who refuses. */
struct bw_refuser {
	uint32_t cluster;
	const char *name;   /* of the node, at most BW_NAME_MAX bytes */
	const uint8_t *key; /* that of bw_key_of_refusals(); NULL: no cluster key */
	uint32_t (*crc32c)(uint32_t crc, const void *p, size_t n); /* as in struct bw_host_ops */
	uint64_t (*siphash)(const uint8_t key[16], const void *p, size_t n); /* with a key */
};

/* The key of refusals, from the cluster's. */
void bw_key_of_refusals(uint8_t out[16], const uint8_t key[BW_CLUSTER_KEY],
			void (*hmac_sha256)(uint8_t out[32], const uint8_t *key, size_t keylen,
					    const void *data, size_t len));
/* `auth` of a REFUSE or CHALLENGE: its last 8 bytes, which do not count, nor does hcrc. len: of the
 * whole frame. */
uint64_t bw_key_auth(uint64_t (*siphash)(const uint8_t key[16], const void *p, size_t n),
		     const uint8_t key[16], const struct bw_hdr *h, uint32_t len);

/* The refusal of a frame of `whole` bytes whose first `len` are at `refused`, to be read by the
 * engine that sent it. False if it must not be refused: shorter than its refusal, not ours, or one
 * that ends something itself. */
bool bw_refuse_build(struct bw_refuse_frame *r, const struct bw_refuser *by, const void *refused,
		     uint32_t len, uint32_t whole);

#endif
