/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the victim of the hostile tests does, and how it must come out of it. */
#include "hostile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct node victim, friend, enemy;
uint64_t sends_open, pulls_open;
uint8_t buffer[BUFFER];
uint32_t favourite;
static volatile uint8_t last_byte; /* read, so that a length beyond the memory shows */

/* A read of the victim, with bytes behind it that must stay as they are. */
struct read {
	char name[8]; /* "read", as opposed to the "it" of pulls */
	uint64_t len;
	uint8_t data[];
};

#define CANARY 8

static struct read *read_make(uint64_t len)
{
	struct read *r = malloc(sizeof(*r) + len + CANARY);

	assert_non_null(r);
	memcpy(r->name, "read", sizeof("read"));
	r->len = len;
	memset(r->data + len, 0xCA, CANARY);
	return r;
}

static void read_end(struct node *n, void *op)
{
	struct read *r = op;

	if (strcmp(op, "it") == 0)
		return;
	for (int i = 0; i < CANARY; i++)
		assert_int_equal(r->data[r->len + i], 0xCA);
	free(r);
}

void victim_read(uint64_t len)
{
	struct read *r = read_make(len);

	if (bw_local_read(victim.peer, NODE_REGION_KEY, 0, r->data, len, r) == 0)
		pulls_open++;
	else
		free(r);
}

/* The victim pulls what it is offered, whatever that is. */
static void pull_it(struct node *n, const struct bw_local_message *m)
{
	n->envelopes = 0;
	if (!m->is_envelope && m->len > 0)
		last_byte = ((const uint8_t *)m->data)[m->len - 1];
	if (m->is_envelope && n->peer &&
	    bw_local_pull(n->peer, &m->envelope, buffer, BUFFER, "it") == 0)
		pulls_open++;
}

int setup_seed(uint64_t seed)
{
	seed_set(seed);
	sends_open = pulls_open = 0;
	node_open(&victim, draw(2) ? SMALL_RING : 0, 0);
	node_open(&friend, 0, 0);
	node_open(&enemy, draw(2) ? SMALL_RING : 0, 0);
	victim.quiet = enemy.quiet = true;
	node_pair(&friend, &victim);
	if (draw(2))
		node_pair(&enemy, &victim);
	else
		node_pair(&victim, &enemy);
	victim.on_message = pull_it;
	victim.on_pulled = read_end;
	favourite = (uint32_t)draw(20);
	return 0;
}

void victim_step(void)
{
	switch (draw(6)) {
	case 0:
		node_send(&victim, draw(9), draw(2000));
		break;
	case 1:
		sends_open += bw_local_send(victim.peer, 1, 1, 1, NULL, 0, "op") == 0;
		break;
	case 2:
		sends_open += bw_local_offer(victim.peer, 1, 1, 1, buffer, draw(BUFFER), "op") == 0;
		break;
	case 3:
		victim_read(1 + draw(draw(2) ? 30 : BUFFER));
		break;
	case 4:
		bw_local_retract(victim.peer, "op");
		break;
	default:
		if (bw_local_arm(victim.link) == 0)
			bw_local_disarm(victim.link);
	}
}

void aftermath(void)
{
	if (victim.peer)
		bw_local_disconnect(victim.peer);
	for (int i = 0; i < 10; i++)
		node_poll(&victim);
	assert_int_equal(victim.sents, sends_open);
	assert_int_equal(victim.pulleds, pulls_open);
	assert_false(bw_local_busy(victim.link));
	victim.quiet = false;
	victim.peer = NULL;
	node_story(&victim);
	assert_int_equal(node_send(&friend, 7, 500), 0);
	node_settle(&victim, &friend);
	assert_string_equal(node_story(&victim), "message 1 tag 7 imm 7 len 500 | ");
	node_close(&enemy);
	node_close(&victim);
	node_close(&friend);
}
