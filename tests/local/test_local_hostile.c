/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nonsense in records and in every shared word, before the victim looks and, from a thread, while
 * it reads. Seeded; the argument is the number of rounds.
 */
#include "hostile.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#define NO_LIE UINT64_MAX

static uint64_t rounds = 150;

/* ---- records ---- */

/* Mostly small, else anything. */
static uint64_t odd_number(void)
{
	switch (draw(4)) {
	case 0:
		return draw(20);
	case 1:
		return draw(100000);
	case 2:
		return UINT64_MAX - draw(100);
	default:
		return draw(UINT64_MAX);
	}
}

static uint64_t plausible_length(uint32_t kind, uint64_t len)
{
	switch (kind) {
	case BW_LOCAL_MESSAGE:
	case BW_LOCAL_DATA:
		return len;
	case BW_LOCAL_ENVELOPE:
	case BW_LOCAL_READ:
		return 16;
	default:
		return 0;
	}
}

/* A record that is well committed, with any content. */
static void enemy_record(void)
{
	struct bw_local_peer *p = enemy.peer;
	uint64_t len = draw(500);
	struct bw_local_record *r = bw_local_reserve(p, len, 0);

	if (!r)
		return;
	for (uint64_t i = 0; i < len; i++)
		r->data[i] = (uint8_t)draw(256);
	if (len >= 16 && draw(2))
		for (int i = 0; i < 2; i++) {
			uint64_t x = draw(2) ? (uintptr_t)buffer : odd_number();

			memcpy(r->data + 8 * i, &x, sizeof(x));
		}
	uint32_t kind = (uint32_t)(favourite < 10 && draw(9) ? favourite : draw(10));

	r->len = (uint32_t)(draw(9) ? plausible_length(kind, len) : odd_number());
	r->what = BW_LOCAL_WHAT(kind, draw(256),
				(uint32_t)(draw(9) ? draw(4) : draw(BW_LOCAL_SLOTS)));
	r->a = draw(3) == 0 ? NODE_REGION_KEY : draw(2) ? 0 : odd_number();
	r->b = draw(9) ? draw(4) : odd_number();
	bw_local_commit(p, r, draw(9) ? r->len & 0xFFF : len);
}

/* Words of the segment that the enemy shares with the victim. */
static void enemy_scribble(void)
{
	struct bw_local_peer *p = enemy.peer;
	const struct bw_local_segment *s = &p->segment[p->segment[0].control ? 0 : 1];
	uint64_t *ring = (uint64_t *)s->ring[draw(2)];

	switch (draw(5)) {
	case 0:
		s->control[draw(2)].head = odd_number();
		break;
	case 1:
		s->control[draw(2)].want_room = (uint32_t)odd_number();
		s->control[draw(2)].closed = (uint32_t)draw(2);
		break;
	case 2:
		s->states[draw(2)][draw(draw(2) ? 16 : BW_LOCAL_SLOTS)] = (uint8_t)draw(6);
		break;
	case 3:
		ring[draw(s->ring_bytes / 8)] = s->key[draw(2)] + 64 * draw(s->ring_bytes / 64);
		break;
	default:
		ring[draw(s->ring_bytes / 8)] = odd_number();
	}
}

static void enemy_socket(void)
{
	uint8_t junk[200];
	struct bw_local_peer *p = enemy.peer;
	int fd = p->conn[p->conn[0] ? 0 : 1]->fd;

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (uint8_t)draw(256);
	send(fd, junk, draw(sizeof(junk)) + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void enemy_step(void)
{
	enemy.link->status->sleeping = (uint32_t)draw(4);
	switch (draw(8)) {
	case 0:
		enemy_scribble();
		break;
	case 1:
		enemy_socket();
		break;
	default:
		enemy_record();
	}
}

/* The position of the first record that lies about its kind or length, of those that the victim
 * takes next; NO_LIE if there is none. */
static uint64_t next_lie(void)
{
	const struct bw_local_rx *rx = &victim.peer->rx;
	uint64_t pos = rx->pos;

	while (pos - rx->pos < rx->bytes) {
		const struct bw_local_record *r = (void *)(rx->base + (pos & (rx->bytes - 1)));
		uint32_t kind = BW_LOCAL_KIND(r->what);

		if (r->commit != rx->key + pos)
			break;
		if (r->len > bw_local_record_limit(rx->bytes) || kind < BW_LOCAL_MESSAGE ||
		    kind > BW_LOCAL_DATA || r->len != plausible_length(kind, r->len))
			return pos;
		pos += bw_local_record_bytes(r->len);
	}
	return NO_LIE;
}

/* The victim looks into the ring. Whoever lied there is given up, and not only passed over. */
static bool victim_looks(void)
{
	uint64_t lie = next_lie();

	bw_local_poll(victim.link, 0, draw(5) == 0);
	if (lie != NO_LIE && victim.peer && victim.peer->rx.pos > lie)
		fail_msg("the peer lied, and is believed ever after");
	return lie != NO_LIE && !victim.peer;
}

static void hostile__records_of_any_content(void **state)
{
	uint64_t given_up = 0, lies = 0;

	for (uint64_t seed = 1; seed <= rounds; seed++) {
		setup_seed(seed);
		for (int i = 0; i < 100 && victim.peer && enemy.peer; i++) {
			if (draw(2))
				enemy_step();
			victim_step();
			if (draw(2))
				lies += victim_looks();
		}
		given_up += bw_local_counters(victim.link)->broken;
		aftermath();
	}
	/* Most of those who were given up had lied in a record's head. */
	assert_true(given_up > rounds / 2);
	assert_true(lies > rounds / 4);
}

/* ---- while the victim reads ---- */

static bool stop;

static void *scribbler(void *arg)
{
	const struct bw_local_segment *s = arg;
	uint64_t x = 88172645463325252ull;

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;

		int i = x >> 63;
		uint32_t at = (uint32_t)(x >> 8) & (s->ring_bytes - 1) & ~7u;

		/* Half of the writes make a record at a place look complete, with the head as it
		 * is. */
		if (x & 1)
			__atomic_store_n((uint64_t *)(s->ring[i] + (at & ~63u)),
					 s->key[i] + (at & ~63u), __ATOMIC_RELEASE);
		else
			__atomic_store_n((uint64_t *)(s->ring[i] + at), (x & 6) ? x % 3000 : x,
					 __ATOMIC_RELAXED);
		if ((x & 0xFFF0) == 0)
			__atomic_store_n(&s->control[i].head, x % s->ring_bytes, __ATOMIC_RELAXED);
		s->states[i][x % 64] = (uint8_t)(x >> 32) % 4;
	}
	return NULL;
}

static void hostile__writes_while_the_victim_reads(void **state)
{
	for (uint64_t seed = 1; seed <= rounds / 3; seed++) {
		pthread_t thread;

		setup_seed(seed + 5000);

		/* The mapping of the enemy's side, which outlives the victim's. */
		struct bw_local_peer *p = enemy.peer;

		stop = false;
		assert_int_equal(pthread_create(&thread, NULL, scribbler,
						&p->segment[p->segment[0].control ? 0 : 1]),
				 0);
		for (int i = 0; i < 3000 && victim.peer; i++) {
			victim_step();
			bw_local_poll(victim.link, 0, draw(50) == 0);
		}
		__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
		aftermath();
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile__records_of_any_content),
		cmocka_unit_test(hostile__writes_while_the_victim_reads),
	};

	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests_name("hostile records", tests, NULL, NULL);
}
