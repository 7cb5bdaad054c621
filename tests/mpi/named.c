/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two endpoints of libfabric that exchange messages and memory of which every byte is checked,
 * while the first of them has named a third one, which is hostile: named 0|1 DIRECTORY ROUNDS
 * [TOLD]. The two find each other by files in DIRECTORY. TOLD is a file with the address of the
 * hostile one, which changes now and then: whenever it does, it is inserted into the address
 * vector, and of all before the last one is taken out. To every second one receives are posted,
 * messages are sent, and its memory is asked for. Whatever comes of that may fail; of the other two
 * nothing may.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

enum {
	MESSAGES = 16, /* from one to the other in a round, at most */
	TAGS = 4,
	LONGEST = 300000,
	HALF = 1 << 16, /* bytes of memory that are written, in each of two rounds, or read */
	CALLS = 64,	/* that have to do with the hostile one */
	RECEIVES = 16,
	ROOM = 20000,
	MEET_S = 60,
};

#define FAIL(...) (fprintf(stderr, "named: " __VA_ARGS__), fprintf(stderr, "\n"), exit(1))
#define RIGHT(call)                                                                                \
	do {                                                                                       \
		ssize_t is_ = (call);                                                              \
		if (is_)                                                                           \
			FAIL("%s: %s", #call, fi_strerror((int)-is_));                             \
	} while (0)
/* Repeats a call until it finds room. */
#define SOON(call)                                                                                 \
	do {                                                                                       \
		ssize_t is_;                                                                       \
		while ((is_ = (call)) == -FI_EAGAIN)                                               \
			progress();                                                                \
		if (is_)                                                                           \
			FAIL("%s: %s", #call, fi_strerror((int)-is_));                             \
	} while (0)

/* An operation, as its completion finds it again. */
struct call {
	struct fi_context2 room;
	bool hostile, busy;
	size_t len;
	uint64_t tag;
	fi_addr_t from;
	char *data;
};

struct message {
	struct call call;
	bool tagged;
	uint64_t tag, seed;
	size_t len;
};

struct batch {
	struct message message[MESSAGES];
	unsigned int count;
};

/* What can be reached by others. */
static struct memory {
	_Alignas(64) uint64_t counter;
	char inbox[2][HALF], outbox[HALF];
} memory;

/* What the two tell each other first. */
struct card {
	uint8_t addr[56];
	uint64_t key; /* of its memory, named by offsets */
};

static bool first;
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_ep *ep;
static struct fid_av *av;
static struct fid_cq *tx, *rx;
static struct fid_mr *mr;
static fi_addr_t other;
static struct card other_card;
static struct call calls[CALLS];
static uint8_t named_bytes[56];
static fi_addr_t named = FI_ADDR_NOTAVAIL, before = FI_ADDR_NOTAVAIL;
static uint64_t names, got, sends, errors;

/* ---- what is to come ---- */

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x9E3779B97F4A7C15ull;
	x ^= x >> 29;
	x *= 0xBF58476D1CE4E5B9ull;
	return x ^ x >> 32;
}

static uint64_t draw(uint64_t *state, uint64_t below)
{
	return mix(*state += 0x9E3779B97F4A7C15ull) % below;
}

static void fill(char *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t word = mix(seed + i);

		memcpy(p + i, &word, n - i < 8 ? n - i : 8);
	}
}

static void check(const char *p, size_t n, uint64_t seed, const char *what)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t word = mix(seed + i);

		if (memcmp(p + i, &word, n - i < 8 ? n - i : 8))
			FAIL("%s of %zu bytes is wrong at %zu", what, n, i);
	}
}

/* What `from` does in a round: both know it. */
static uint64_t state_of(bool from, int round)
{
	return mix((uint64_t)round << 1 | from) | 1;
}

static void schedule(struct batch *b, bool from, int round)
{
	uint64_t state = state_of(from, round);

	b->count = (unsigned int)draw(&state, MESSAGES + 1);
	for (unsigned int i = 0; i < b->count; i++) {
		struct message *m = &b->message[i];
		static const uint64_t most[] = {64, 1000, 20000, LONGEST};

		*m = (struct message){
			.tagged = draw(&state, 4) != 0,
			.tag = (uint64_t)round << 8 | draw(&state, TAGS),
			.seed = mix(state),
			.len = (size_t)draw(&state, most[draw(&state, 4)]),
		};
		m->call.data = malloc(m->len + 1);
		if (!m->call.data)
			FAIL("no memory");
	}
}

/* ---- completions ---- */

static void take(const struct fi_cq_tagged_entry *e, fi_addr_t from)
{
	struct call *c = e->op_context;

	if (!c) { /* data with a write, which the other one does not send */
		if (from == other)
			FAIL("data that were not sent");
		return;
	}
	if (!c->busy)
		FAIL("a completion without an operation");
	c->len = e->len;
	c->tag = e->tag;
	c->from = from;
	c->busy = false;
	if (c->hostile && (e->flags & FI_RECV)) {
		got++;
		if (from != named && from != before && from != FI_ADDR_NOTAVAIL)
			FAIL("a message of another one");
	}
}

static void take_error(struct fid_cq *cq)
{
	struct fi_cq_err_entry e = {0};
	struct call *c;

	if (fi_cq_readerr(cq, &e, 0) != 1)
		return;
	c = e.op_context;
	if (!c || !c->hostile)
		FAIL("an operation with the other one: %s", fi_strerror(e.err));
	c->busy = false;
	errors++;
}

static void progress(void)
{
	struct fi_cq_tagged_entry e[16];
	fi_addr_t from[16];
	bool any = false;
	ssize_t n;

	while ((n = fi_cq_readfrom(rx, e, 16, from)) != -FI_EAGAIN) {
		any = true;
		if (n == -FI_EAVAIL)
			take_error(rx);
		for (ssize_t i = 0; i < n; i++)
			take(&e[i], from[i]);
	}
	while ((n = fi_cq_read(tx, e, 16)) != -FI_EAGAIN) {
		any = true;
		if (n == -FI_EAVAIL)
			take_error(tx);
		for (ssize_t i = 0; i < n; i++)
			take(&e[i], FI_ADDR_NOTAVAIL);
	}
	if (!any)
		sched_yield();
}

static void await(const struct call *c)
{
	while (c->busy)
		progress();
}

static struct call *begun(struct call *c)
{
	c->busy = true;
	return c;
}

/* ---- the two ---- */

static void post(struct batch *b, unsigned int from, unsigned int end)
{
	for (unsigned int i = from; i < end; i++) {
		struct message *m = &b->message[i];

		begun(&m->call);
		if (m->tagged)
			SOON(fi_trecv(ep, m->call.data, m->len, NULL, other, m->tag, 0, &m->call));
		else
			SOON(fi_recv(ep, m->call.data, m->len, NULL, other, &m->call));
	}
}

static void send_all(struct batch *b)
{
	for (unsigned int i = 0; i < b->count; i++) {
		struct message *m = &b->message[i];

		fill(m->call.data, m->len, m->seed);
		begun(&m->call);
		if (m->tagged)
			SOON(fi_tsend(ep, m->call.data, m->len, NULL, other, m->tag, &m->call));
		else
			SOON(fi_send(ep, m->call.data, m->len, NULL, other, &m->call));
	}
}

static void check_all(struct batch *b)
{
	for (unsigned int i = 0; i < b->count; i++) {
		struct message *m = &b->message[i];

		await(&m->call);
		if (m->call.len != m->len || m->call.from != other ||
		    (m->tagged && m->call.tag != m->tag))
			FAIL("a message of %zu bytes instead of %zu, tag %" PRIx64, m->call.len,
			     m->len, m->call.tag);
		check(m->call.data, m->len, m->seed, "a message");
	}
}

static void batch_end(struct batch *b)
{
	for (unsigned int i = 0; i < b->count; i++) {
		await(&b->message[i].call);
		free(b->message[i].call.data);
	}
}

/* What `from` writes into the other's inbox in a round. */
static size_t written(bool from, int round, uint64_t *seed)
{
	uint64_t state = ~state_of(from, round);

	*seed = mix(state);
	return (size_t)draw(&state, draw(&state, 2) ? HALF : 1000);
}

/* Write, read and count in the other's memory. */
static void reach(int round)
{
	static char out[HALF], in[HALF];
	struct call write = {0}, read = {0}, add = {0};
	uint64_t seed, one = 1, was = 0;
	size_t n = written(first, round, &seed);

	fill(out, n, seed);
	memset(in, 0, n);
	SOON(fi_write(ep, out, n, NULL, other,
		      offsetof(struct memory, inbox) + (size_t)(round % 2) * HALF, other_card.key,
		      begun(&write)));
	SOON(fi_read(ep, in, n, NULL, other, offsetof(struct memory, outbox), other_card.key,
		     begun(&read)));
	SOON(fi_fetch_atomic(ep, &one, 1, NULL, &was, NULL, other, offsetof(struct memory, counter),
			     other_card.key, FI_UINT64, FI_SUM, begun(&add)));
	await(&write);
	await(&read);
	await(&add);
	check(in, n, !first, "what was read");
	if (was != (uint64_t)round)
		FAIL("the other one's counter is %" PRIu64 " in round %d", was, round);
}

/* Nobody goes on before both are here. */
static void meet(int round)
{
	struct call out = {0}, in = {0};
	char mine = 0, theirs;

	SOON(fi_trecv(ep, &theirs, 1, NULL, other, ~(uint64_t)round, 0, begun(&in)));
	SOON(fi_tsend(ep, &mine, 1, NULL, other, ~(uint64_t)round, begun(&out)));
	await(&out);
	await(&in);
}

static void play(int round)
{
	static struct batch out, in;
	unsigned int early;
	uint64_t seed;
	size_t n;

	schedule(&out, first, round);
	schedule(&in, !first, round);
	early = round % 3 == 0 ? in.count : round % 3 == 1 ? in.count / 2 : 0;
	post(&in, 0, early);
	send_all(&out);
	reach(round);
	post(&in, early, in.count);
	check_all(&in);
	batch_end(&out);
	batch_end(&in);
	meet(round);
	n = written(!first, round, &seed);
	check(memory.inbox[round % 2], n, seed, "what was written");
	if (memory.counter < (uint64_t)round + 1 || memory.counter > (uint64_t)round + 2)
		FAIL("the counter is %" PRIu64 " after round %d", memory.counter, round);
}

/* ---- the hostile one ---- */

static struct call *idle(int from, int end)
{
	for (int i = from; i < end; i++) {
		if (!calls[i].busy)
			return &calls[i];
	}
	return NULL;
}

/* It has another address: that is named, and the one before the last no longer. */
static void name_anew(const uint8_t *bytes)
{
	memcpy(named_bytes, bytes, sizeof(named_bytes));
	for (int i = 0; i < RECEIVES; i++) {
		if (calls[i].busy)
			fi_cancel(&ep->fid, &calls[i]);
	}
	if (before != FI_ADDR_NOTAVAIL)
		RIGHT(fi_av_remove(av, &before, 1, 0));
	before = named;
	if (fi_av_insert(av, bytes, 1, &named, 0, NULL) != 1)
		FAIL("an address is not taken");
	names++;
}

static void seek(const char *told)
{
	uint8_t bytes[56];
	FILE *f = fopen(told, "r");

	if (!f)
		return;
	if (fread(bytes, sizeof(bytes), 1, f) == 1 && memcmp(bytes, named_bytes, sizeof(bytes)))
		name_anew(bytes);
	fclose(f);
}

/* Whatever finds no room, or is refused, is left out. */
static void attempt(struct call *c, ssize_t ret)
{
	if (ret) {
		c->busy = false;
		errors += ret != -FI_EAGAIN;
	} else {
		sends += c >= calls + RECEIVES;
	}
}

/* Whoever it names is spoken with. */
static void speak(int round)
{
	static char longer[ROOM * 4];
	struct call *c;

	while ((c = idle(0, RECEIVES))) {
		ssize_t ret;

		begun(c);
		ret = (c - calls) % 2 ? fi_recv(ep, c->data, ROOM, NULL, named, c)
				      : fi_trecv(ep, c->data, ROOM, NULL, named, 0, UINT64_MAX, c);
		attempt(c, ret);
		if (ret)
			break;
	}
	c = idle(RECEIVES, CALLS);
	if (!c)
		return;
	begun(c);
	switch (round % 64) {
	case 0:
		attempt(c, fi_tsend(ep, longer, sizeof(longer), NULL, named, 1, c));
		break;
	case 16:
		attempt(c, fi_send(ep, longer, 100, NULL, named, c));
		break;
	case 32:
		attempt(c, fi_write(ep, longer, sizeof(longer), NULL, named, 4096, 7, c));
		break;
	case 48:
		attempt(c, fi_read(ep, c->data, ROOM, NULL, named, 4096, 7, c));
		break;
	default:
		c->busy = false;
	}
}

static void calls_make(void)
{
	for (int i = 0; i < CALLS; i++) {
		calls[i].hostile = true;
		calls[i].data = malloc(ROOM);
		if (!calls[i].data)
			FAIL("no memory");
	}
}

/* ---- from beginning to end ---- */

static void objects_make(void)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};

	hints->fabric_attr->prov_name = strdup("beowire");
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE;
	hints->ep_attr->type = FI_EP_RDM;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY;
	RIGHT(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	RIGHT(fi_fabric(info->fabric_attr, &fabric, NULL));
	RIGHT(fi_domain(fabric, info, &domain, NULL));
	RIGHT(fi_endpoint(domain, info, &ep, NULL));
	RIGHT(fi_av_open(domain, &av_attr, &av, NULL));
	RIGHT(fi_cq_open(domain, &cq, &tx, NULL));
	RIGHT(fi_cq_open(domain, &cq, &rx, NULL));
	RIGHT(fi_ep_bind(ep, &av->fid, 0));
	RIGHT(fi_ep_bind(ep, &tx->fid, FI_TRANSMIT));
	RIGHT(fi_ep_bind(ep, &rx->fid, FI_RECV));
	RIGHT(fi_enable(ep));
	RIGHT(fi_mr_reg(domain, &memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0,
			&mr, NULL));
}

static void objects_end(void)
{
	struct fid *fids[] = {&mr->fid, &ep->fid,     &av->fid,	   &tx->fid,
			      &rx->fid, &domain->fid, &fabric->fid};

	for (size_t i = 0; i < sizeof(fids) / sizeof(fids[0]); i++)
		RIGHT(fi_close(fids[i]));
	fi_freeinfo(info);
}

static void card_give(const char *directory)
{
	struct card card = {.key = fi_mr_key(mr)};
	char name[4096], next[4104];
	size_t len = sizeof(card.addr);
	FILE *f;

	RIGHT(fi_getname(&ep->fid, card.addr, &len));
	snprintf(name, sizeof(name), "%s/card-%d", directory, first);
	snprintf(next, sizeof(next), "%s.next", name);
	f = fopen(next, "w");
	if (!f || fwrite(&card, sizeof(card), 1, f) != 1 || fclose(f) || rename(next, name))
		FAIL("%s cannot be written", name);
}

static void card_take(const char *directory)
{
	time_t end = time(NULL) + MEET_S;
	char name[4096];
	FILE *f;

	snprintf(name, sizeof(name), "%s/card-%d", directory, !first);
	while (!(f = fopen(name, "r"))) {
		if (time(NULL) > end)
			FAIL("the other one does not come");
		usleep(1000);
	}
	if (fread(&other_card, sizeof(other_card), 1, f) != 1 ||
	    fi_av_insert(av, other_card.addr, 1, &other, 0, NULL) != 1)
		FAIL("%s is no address", name);
	fclose(f);
}

int main(int argc, char **argv)
{
	int rounds;

	if (argc < 4 || argc > 5)
		return 2;
	first = !strcmp(argv[1], "0");
	rounds = atoi(argv[3]);
	fill(memory.outbox, HALF, first);
	calls_make();
	objects_make();
	card_give(argv[2]);
	card_take(argv[2]);
	for (int round = 0; round < rounds; round++) {
		if (argc > 4)
			seek(argv[4]);
		/* What is not over at the end is waited for. */
		if (named != FI_ADDR_NOTAVAIL && names % 2 && round < rounds / 4 * 3)
			speak(round);
		play(round);
	}
	objects_end();
	printf("ok named: %" PRIu64 " names, %" PRIu64 " got, %" PRIu64 " sends, %" PRIu64
	       " errors\n",
	       names, got, sends, errors);
	return 0;
}
