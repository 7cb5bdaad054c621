/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One endpoint's local link as the tests use it: it writes down, in order and as text, what its
 *handlers are told, so that a test reads like a story. Payload is a pattern made from the tag,
 *checked on arrival.
 *
 *	new 7 | message 1 tag 2 imm 3 len 8 | envelope 1 tag 2 imm 3 len 8 | sent OP 0 | pulled OP 0
 *len 8 | down -108 |
 */
#ifndef TEST_LOCAL_NODE_H
#define TEST_LOCAL_NODE_H

#include "link/local/local.h"

#define NODE_NUMBER	1
#define CLUSTER_NUMBER	2
#define NODE_LOG_BYTES	4096
#define NODE_ENVELOPES	(1u << 17)
#define NODE_REGION	(1u << 20)
#define NODE_REGION_KEY 77

struct node {
	struct bw_local *link;
	struct bw_local_peer *peer; /* the last one that made contact or was connected to */
	uint16_t engine;
	uint32_t incarnation;
	char log[NODE_LOG_BYTES]; /* unless quiet */
	bool quiet;
	int turn_away;			    /* what peer_new returns */
	struct bw_local_envelope *envelope; /* those received */
	uint32_t envelopes;
	uint8_t *region; /* NODE_REGION bytes that peers may read */
	uint64_t messages, sents, pulleds, downs;
	uint64_t spoilt; /* payloads that were not as sent */
	int last_status; /* of the last sent or pulled */
	void (*on_message)(struct node *n, const struct bw_local_message *m);
	void (*on_pulled)(struct node *n, void *op);
};

/* A free engine number that no other program of these tests takes, claimed: the caller's to close.
 * It is another one for each process. Failure ends the test. */
uint16_t node_number(int *claim);

/* Open a link with a free engine number; incarnation 0 draws a new one. Failure ends the test. */
void node_open(struct node *n, uint32_t ring_bytes, uint32_t incarnation);
/* The same with the number of another node, which has closed. */
void node_reopen(struct node *n, const struct node *old);
void node_close(struct node *n);

/* What node_close() does with `region`, for a test that closes the link itself. */
void node_region_free(struct node *n);
/* The handlers and their argument, for a link that a test opens itself. */
extern const struct bw_local_handlers node_handlers;

/* Connect n to m and poll both until they know each other. */
void node_pair(struct node *n, struct node *m);
/* Poll both until nothing happens any more. */
void node_settle(struct node *n, struct node *m);
void node_poll(struct node *n);

/* What was written since the last call. */
const char *node_story(struct node *n);

/* Pattern of a payload. */
void pattern_fill(void *buf, uint64_t len, uint64_t tag);
bool pattern_holds(const void *buf, uint64_t len, uint64_t tag);

/* Send or offer len bytes of the pattern. */
int node_send(struct node *n, uint64_t tag, uint64_t len);

/* Seeded random numbers. */
void seed_set(uint64_t seed);
uint64_t draw(uint64_t below);

uint64_t now_ns(void);

/* Entries of a directory, such as /proc/self/fd. */
int entries(const char *directory);

#endif
