/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hostile peer on the local link: nonsense in the handshake, in records, in every shared word,
 * from a thread that writes while the victim reads. The victim may give that peer up; it must
 * neither crash, nor lose an operation, nor stop serving others. Seeded; the argument is the number
 * of rounds (build with -Db_sanitize=address,undefined to see the most).
 */
#include "local_impl.h"
#include "node.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define SMALL_RING (16u << 10)
#define BUFFER	   20000

static uint64_t rounds = 300;

static struct node victim, friend, enemy;
static uint64_t sends_open, pulls_open; /* the victim's operations */
static uint8_t buffer[BUFFER];
static uint32_t
	favourite; /* kind of record that the enemy prefers, so that it is not noticed too soon */
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

static void victim_read(uint64_t len)
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

static int setup_seed(uint64_t seed)
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

static void victim_step(void)
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

/* The friend is served as ever, and the victim ends with nothing open. */
static void aftermath(void)
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

static void hostile__records_of_any_content(void **state)
{
	uint64_t given_up = 0;

	for (uint64_t seed = 1; seed <= rounds; seed++) {
		setup_seed(seed);
		for (int i = 0; i < 100 && victim.peer && enemy.peer; i++) {
			if (draw(2))
				enemy_step();
			victim_step();
			if (draw(2))
				bw_local_poll(victim.link, 0, draw(5) == 0);
		}
		given_up += bw_local_counters(victim.link)->broken;
		aftermath();
	}
	/* The lies were noticed, not overlooked. */
	assert_true(given_up > rounds / 2);
}

/* ---- one lie at a time ---- */

static uint64_t in_flight; /* reads that the victim has asked the enemy for */

static void lie(uint32_t kind, uint32_t slot, uint32_t len, uint64_t a, uint64_t b)
{
	struct bw_local_record *r = bw_local_reserve(enemy.peer, 64, 0);

	assert_non_null(r);
	r->len = len;
	r->what = BW_LOCAL_WHAT(kind, 0, slot);
	r->a = a;
	r->b = b;
	bw_local_commit(enemy.peer, r, len < 64 ? len : 64);
}

static void lie_too_long(void)
{
	lie(BW_LOCAL_MESSAGE, BW_LOCAL_NO_SLOT, bw_local_record_limit(victim.peer->rx.bytes) + 1, 0,
	    0);
}

static void lie_kind_0(void)
{
	lie(0, 0, 0, 0, 0);
}

static void lie_kind_9(void)
{
	lie(9, 0, 0, 0, 0);
}

static void lie_envelope_length(void)
{
	lie(BW_LOCAL_ENVELOPE, 0, 15, 0, 0);
}

static void lie_release_of_a_free_slot(void)
{
	lie(BW_LOCAL_RELEASE, 5, 0, 0, 0);
}

static void lie_release_twice(void)
{
	lie(BW_LOCAL_RELEASE, 0, 0, 0, 0);
	lie(BW_LOCAL_RELEASE, 0, 0, 0, 0);
}

static void lie_release_of_no_slot(void)
{
	lie(BW_LOCAL_RELEASE, BW_LOCAL_NO_SLOT, 0, 0, 0);
}

static void lie_pull_of_a_free_slot(void)
{
	lie(BW_LOCAL_PULL, 5, 0, 10, 0);
}

static void lie_pull_of_a_message(void)
{
	lie(BW_LOCAL_PULL, 1, 0, 10, 0);
}

static void lie_pull_beyond_the_end(void)
{
	lie(BW_LOCAL_PULL, 0, 0, BUFFER + 1, 0);
}

static void lie_pull_of_nothing(void)
{
	lie(BW_LOCAL_PULL, 0, 0, 0, 0);
}

static void lie_pull_id(void)
{
	lie(BW_LOCAL_PULL, 0, 0, 10, BW_LOCAL_WINDOW);
}

static void lie_too_many_pulls(void)
{
	for (uint64_t i = 0; i <= BW_LOCAL_WINDOW; i++)
		lie(BW_LOCAL_PULL, 0, 0, 10, 0);
}

static void lie_grant_unasked(void)
{
	lie(BW_LOCAL_GRANT, BW_LOCAL_NO_SLOT, 0, 0, in_flight);
}

static void lie_refusal_unasked(void)
{
	lie(BW_LOCAL_REFUSED, BW_LOCAL_NO_SLOT, 0, 0, UINT64_MAX);
}

static void lie_data_unasked(void)
{
	lie(BW_LOCAL_DATA, BW_LOCAL_NO_SLOT, 8, 0, BW_LOCAL_WINDOW + 3);
}

static void lie_data_elsewhere(void)
{
	lie(BW_LOCAL_DATA, BW_LOCAL_NO_SLOT, 8, 8, 0);
}

static void lie_data_too_long(void)
{
	lie(BW_LOCAL_DATA, BW_LOCAL_NO_SLOT, 31, 0, 0);
}

static void lie_head_beyond(void)
{
	victim.peer->tx.control->head = victim.peer->tx.pos + victim.peer->tx.bytes;
}

static void lie_head_backwards(void)
{
	victim.peer->tx.control->head = victim.peer->tx.head_seen - 64;
}

static void hostile__each_lie_is_noticed(void **state)
{
	static void (*const lies[])(void) = {
		lie_too_long,
		lie_kind_0,
		lie_kind_9,
		lie_envelope_length,
		lie_release_of_a_free_slot,
		lie_release_twice,
		lie_release_of_no_slot,
		lie_pull_of_a_free_slot,
		lie_pull_of_a_message,
		lie_pull_beyond_the_end,
		lie_pull_of_nothing,
		lie_pull_id,
		lie_too_many_pulls,
		lie_grant_unasked,
		lie_refusal_unasked,
		lie_data_unasked,
		lie_data_elsewhere,
		lie_data_too_long,
		lie_head_beyond,
		lie_head_backwards,
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		setup_seed(i + 1);
		/* An envelope in slot 0, a message to be acknowledged in slot 1, a read of 30
		 * bytes. */
		bw_local_offer(victim.peer, 1, 1, 1, buffer, BUFFER, "op");
		bw_local_send(victim.peer, 1, 1, 1, NULL, 0, "op");
		sends_open = 2;
		victim_read(30);
		in_flight = 1;
		for (int k = 0; k < 3; k++)
			node_poll(&victim);
		assert_int_equal(victim.downs, 0);
		lies[i]();
		/* A full ring makes the victim look at the enemy's head. */
		while (victim.peer && node_send(&victim, 1, 1000) == 0)
			;
		node_poll(&victim);
		if (victim.downs != 1)
			fail_msg("lie %zu was believed", i);
		assert_int_equal(bw_local_counters(victim.link)->broken, 1);
		aftermath();
	}
}

/* The data of an envelope is being sent when the enemy says that it does not need it any more: the
 * victim's program may free the buffer at once. */
static void hostile__a_release_ends_the_sending(void **state)
{
	uint8_t *mine = malloc(200000);

	setup_seed(3);
	bw_local_offer(victim.peer, 1, 1, 1, mine, 200000, "op");
	sends_open = 1;
	lie(BW_LOCAL_PULL, 0, 0, 200000, 0);
	node_poll(&victim);
	lie(BW_LOCAL_RELEASE, 0, 0, 0, 0);
	for (int i = 0; i < 2; i++) {
		if (i == 1)
			memset(mine, 0, 200000);
		node_poll(&victim);
		if (victim.sents == 1 && mine) {
			free(mine);
			mine = NULL;
			break;
		}
	}
	assert_null(mine);
	enemy.peer->rx.control->head = enemy.peer->rx.pos = victim.peer->tx.pos;
	for (int i = 0; i < 5; i++)
		node_poll(&victim);
	assert_int_equal(victim.downs, 0);
	aftermath();
}

/* Poll the victim without a look at its sockets. */
static void victim_poll_blind(int times)
{
	for (int i = 0; i < times; i++)
		bw_local_poll(victim.link, 0, false);
}

/* The two cases in which data read by cross-memory attach is not the message any more. */
static void hostile__data_that_changed_hands_while_it_was_read(void **state)
{
	enum { LONG = 5 << 20 };
	uint8_t *from = malloc(LONG), *to = malloc(LONG);

	if (!bw_local_cma_wanted()) {
		free(from);
		free(to);
		print_message("cross-memory attach is switched off for this run\n");
		skip();
	}

	for (int withdrawn = 0; withdrawn < 2; withdrawn++) {
		setup_seed(4);
		victim.on_message = NULL;
		bw_local_offer(enemy.peer, 1, 1, 1, from, LONG, "op");
		node_poll(&victim);
		bw_local_pull(victim.peer, victim.envelope, to, LONG, "it");
		pulls_open = 1;
		victim_poll_blind(2);
		assert_int_equal(victim.pulleds, 0);
		if (withdrawn)
			enemy.peer->tx.states[0] = BW_LOCAL_RETRACTED;
		else
			shutdown(enemy.peer->conn[enemy.peer->conn[0] ? 0 : 1]->fd, SHUT_RDWR);
		victim_poll_blind(10);
		assert_int_equal(victim.pulleds, 1);
		assert_int_equal(victim.last_status, withdrawn ? -ECANCELED : -ECONNREFUSED);
		aftermath();
	}
	free(from);
	free(to);
}

/* The process that the kernel names as the peer is not the one that made the offer (it forked, or
 * passed its socket on): its memory is not read. */
static void hostile__memory_of_another_process_is_not_read(void **state)
{
	uint8_t from[1000] = {0}, to[1000];

	setup_seed(5);
	victim.on_message = NULL;
	enemy.link->probe_value++;
	bw_local_offer(enemy.peer, 1, 1, 1, from, sizeof(from), "op");
	node_poll(&victim);
	bw_local_pull(victim.peer, victim.envelope, to, sizeof(to), "it");
	pulls_open = 1;
	node_settle(&victim, &enemy);
	assert_int_equal(victim.last_status, 0);
	assert_int_equal(bw_local_counters(victim.link)->pulls_direct, 0);
	assert_int_equal(bw_local_counters(victim.link)->pulls_copied, 1);
	aftermath();
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

/* ---- handshake ---- */

static int entries(const char *directory)
{
	DIR *d = opendir(directory);
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int dial(void)
{
	struct sockaddr_un sun;
	socklen_t len = bw_local_name(victim.engine, &sun);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&sun, len), 0);
	return fd;
}

static void post(int sock, const void *data, size_t n, const int *fd, size_t fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = (void *)data, .iov_len = n};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	if (fds > 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(fds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fds * sizeof(int));
		memcpy(CMSG_DATA(c), fd, fds * sizeof(int));
	}
	assert_int_equal(sendmsg(sock, &m, 0), n);
}

static struct bw_local_hello good_hello(void)
{
	struct bw_local_hello h = {
		.magic = BW_LOCAL_MAGIC,
		.version = BW_LOCAL_VERSION,
		.node = NODE_NUMBER,
		.cluster = CLUSTER_NUMBER,
		.incarnation = 4711,
		.engine = 99,
		.dst_engine = victim.engine,
		.dst_incarnation = victim.incarnation,
		.ring_bytes = SMALL_RING,
		.key = {1, 2},
	};

	memset(h.name, 'x', sizeof(h.name)); /* no zero at its end */
	return h;
}

#define SEGMENT_BYTES (BW_LOCAL_PAGE + 2 * (off_t)BW_LOCAL_SLOTS + 2 * (off_t)SMALL_RING)

static int memory_of(off_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0 && ftruncate(fd, bytes) == 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* Post this hello and these descriptors; the status of the answer, or 1 if there is none.
 * Everything that was opened for it is closed again on both sides. */
static int answer_to(const void *data, size_t n, const int *fd, size_t fds)
{
	int sock = dial();
	struct bw_local_hello answer;
	int status = 1;

	post(sock, data, n, fd, fds);
	for (int i = 0; i < 3; i++)
		node_poll(&victim);
	if (recv(sock, &answer, sizeof(answer), MSG_DONTWAIT) == sizeof(answer)) {
		assert_int_equal(answer.answer, 1);
		status = answer.status;
	}
	close(sock);
	for (int i = 0; i < 3; i++)
		node_poll(&victim);
	return status;
}

static int answer_to_fds(int segment, int status)
{
	struct bw_local_hello h = good_hello();
	int fd[2] = {segment, status};
	int answer = answer_to(&h, sizeof(h), fd, 2);

	close(segment);
	close(status);
	return answer;
}

static void hostile__handshakes(void **state)
{
	struct bw_local_hello h;
	int page, fds;
	int status = 0;

	setup_seed(1);
	fds = entries("/proc/self/fd");
	page = memory_of(BW_LOCAL_PAGE, F_SEAL_SHRINK);
	assert_int_equal(answer_to_fds(memory_of(SEGMENT_BYTES, F_SEAL_SHRINK), dup(page)), 0);
	/* It can be cut short under our feet. */
	assert_int_equal(answer_to_fds(memory_of(SEGMENT_BYTES, 0), dup(page)), -EPROTO);
	assert_int_equal(answer_to_fds(memory_of(SEGMENT_BYTES, F_SEAL_SHRINK),
				       memory_of(BW_LOCAL_PAGE, F_SEAL_GROW)),
			 -EPROTO);
	assert_int_equal(answer_to_fds(memory_of(SEGMENT_BYTES - 1, F_SEAL_SHRINK), dup(page)),
			 -EPROTO);
	assert_int_equal(answer_to_fds(open("/dev/zero", O_RDWR), dup(page)), -EPROTO);
	assert_int_equal(
		answer_to_fds(memory_of(SEGMENT_BYTES, F_SEAL_SHRINK), open("/dev/null", O_RDWR)),
		-EPROTO);

	int many[8] = {page, page, page, page, page, page, page, page};

	h = good_hello();
	assert_int_equal(answer_to(&h, sizeof(h), NULL, 0), -EPROTO);
	assert_int_equal(answer_to(&h, sizeof(h), many, 1), -EPROTO);
	assert_int_equal(answer_to(&h, sizeof(h), many, 8), -EPROTO);
	assert_int_equal(answer_to(&h, sizeof(h) - 1, many, 2), -EPROTO);
	assert_int_equal(answer_to("x", 1, many, 2), -EPROTO);
	h.version++;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -EPROTONOSUPPORT);
	h = good_hello();
	h.answer = 1;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -EPROTO);
	h = good_hello();
	h.engine = victim.engine;
	h.incarnation = victim.incarnation;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -EPROTO);
	h = good_hello();
	h.incarnation = 0;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -EPROTO);
	h = good_hello();
	h.node++;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -ECONNREFUSED);
	h = good_hello();
	h.ring_bytes = 3 * BW_LOCAL_PAGE;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -EPROTO);
	h.ring_bytes = UINT32_MAX;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -EPROTO);
	/* Somebody who already is a peer. */
	h = good_hello();
	h.engine = friend.engine;
	h.incarnation = friend.incarnation;
	assert_int_equal(answer_to(&h, sizeof(h), many, 2), -ECONNREFUSED);
	for (uint64_t i = 0; i < 1000; i++) {
		uint8_t junk[sizeof(h)];

		for (size_t k = 0; k < sizeof(junk); k++)
			junk[k] = (uint8_t)draw(256);
		if (draw(2))
			memcpy(junk, &h, 4 + draw(30));
		status = answer_to(junk, draw(sizeof(junk)) + 1, many, draw(9));
		assert_true(status < 0);
	}
	close(page);
	assert_int_equal(entries("/proc/self/fd"), fds);
	aftermath();
}

static void hostile__connections_that_say_nothing(void **state)
{
	int fd[200];

	setup_seed(2);
	for (int i = 0; i < 200; i++)
		fd[i] = dial();
	node_poll(&victim);
	node_poll(&victim);
	/* Only so many are kept; the others were turned away. */
	assert_int_equal(bw_local_counters(victim.link)->turned_away, 200 - 64);
	for (int i = 0; i < 200; i++)
		close(fd[i]);
	aftermath();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile__records_of_any_content),
		cmocka_unit_test(hostile__each_lie_is_noticed),
		cmocka_unit_test(hostile__a_release_ends_the_sending),
		cmocka_unit_test(hostile__data_that_changed_hands_while_it_was_read),
		cmocka_unit_test(hostile__memory_of_another_process_is_not_read),
		cmocka_unit_test(hostile__writes_while_the_victim_reads),
		cmocka_unit_test(hostile__handshakes),
		cmocka_unit_test(hostile__connections_that_say_nothing),
	};

	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests_name("hostile peers", tests, NULL, NULL);
}
