// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Strangers: peers that speak before their address is known, or that no address vector ever has.
 * What all of them together may leave with the program is bounded, and who is needed for nothing
 * goes. Over the local link, as endpoints of libbeowire in this process.
 */
#include <stdio.h>
#include <unistd.h>

#include "codes.h"
#include "ep.h"
#include "inside.h"

#define LONG	   (1 << 20)
#define SECOND	   1000000000ULL
#define NO_MORE	   (512ULL << 20) /* more than an engine grows to for others (host.c) */
#define CROWD_MOST 200

static char buf[LONG], other[LONG];
static bool full; /* libbeowire's calls have no room */

static int pull(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *to,
		uint64_t len, void *op)
{
	return full ? -EAGAIN : __real_bw_pull(ep, peer, rndv, to, len, op);
}

static int no_send(struct bw_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, uint64_t imm,
		   const void *bytes, uint64_t len, unsigned flags, void *op)
{
	if (full && ep == inside(&b)->bw)
		return -EAGAIN;
	return __real_bw_send(ep, peer, code, tag, imm, bytes, len, flags, op);
}

static atomic_int answered, no_room; /* writes of the stranger's; those refused for want of room */

static void on_message(void *arg, const struct bw_message *m)
{
	if ((m->code & BWF_CODE_MASK) != BWF_CODE_WRITE_DONE)
		return;
	no_room += m->imm == FI_ENOBUFS;
	answered++;
}

static void on_end(void *arg, void *op, int status)
{
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
}

static const struct bw_handlers handlers = {
	.message = on_message, .sent = on_end, .pulled = on_pulled, .peer_down = on_down};

static fi_addr_t source_of_next(struct bw_ep *ep, bw_peer_no peer)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t src = 0;

	pair_retry(fi_trecv(b.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 9, 0, NULL));
	while (bw_send(ep, peer, BWF_CODE_TAGGED, 9, 0, "x", 1, BW_SEND_EAGER, NULL) == -EAGAIN)
		bw_progress(ep);
	while (fi_cq_readfrom(b.rx, &e, 1, &src) == -FI_EAGAIN) {
		pair_progress();
		bw_progress(ep);
	}
	return src;
}

/* An endpoint that has spoken to b, which knows it by no address; the caller closes it. Its
 * address, and how both name one another. */
static struct bw_ep *stranger(struct bw_addr *addr, bw_peer_no *peer, bw_peer_no *there)
{
	size_t n = sizeof(*addr);
	struct bw_ep *ep;

	assert_int_equal(fi_getname(&b.ep->fid, addr, &n), 0);
	assert_int_equal(bw_ep_open(&ep, &(struct bw_ep_attr){.handlers = &handlers}, NULL), 0);
	assert_int_equal(bw_peer_find(ep, addr, peer), 0);
	source_of_next(ep, *peer);
	bw_ep_addr(ep, addr);
	assert_int_equal(bw_peer_find(inside(&b)->bw, addr, there), 0);
	return ep;
}

/* It speaks; then its address is inserted. */
static void source__is_known_when_its_address_is(void **state)
{
	struct bw_addr addr;
	size_t n = sizeof(addr);
	struct bw_ep *ep;
	fi_addr_t src;
	bw_peer_no peer;

	assert_int_equal(fi_getname(&b.ep->fid, &addr, &n), 0);
	assert_int_equal(bw_ep_open(&ep, &(struct bw_ep_attr){.handlers = &handlers}, NULL), 0);
	assert_int_equal(bw_peer_find(ep, &addr, &peer), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(source_of_next(ep, peer), FI_ADDR_NOTAVAIL);
	bw_ep_addr(ep, &addr);
	assert_int_equal(fi_av_insert(b.av, &addr, 1, &src, 0, NULL), 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(source_of_next(ep, peer), src);
	bw_ep_close(ep, 0);
}

/* Its address is removed although nothing was ever sent there, and the next one gets its place. */
static void source__is_nobodys_place_that_was_removed(void **state)
{
	struct bw_addr addr, another;
	bw_peer_no peer, there;
	struct bw_ep *ep = stranger(&addr, &peer, &there), *next;
	fi_addr_t src, place;

	assert_int_equal(fi_av_insert(b.av, &addr, 1, &src, 0, NULL), 1);
	assert_int_equal(source_of_next(ep, peer), src);
	assert_int_equal(fi_av_remove(b.av, &src, 1, 0), 0);
	assert_int_equal(source_of_next(ep, peer), FI_ADDR_NOTAVAIL);
	assert_int_equal(bw_ep_open(&next, &(struct bw_ep_attr){.handlers = &handlers}, NULL), 0);
	bw_ep_addr(next, &another);
	assert_int_equal(fi_av_insert(b.av, &another, 1, &place, 0, NULL), 1);
	assert_int_equal(place, src);
	assert_int_equal(source_of_next(ep, peer), FI_ADDR_NOTAVAIL);
	bw_ep_close(next, 0);
	bw_ep_close(ep, 0);
}

/* Who said goodbye before he is named leaves nobody waiting in vain. */
static void goodbye__before_it_is_named_is_no_loss(void **state)
{
	struct bwf_ep *in = inside(&b);
	bw_peer_no peer, there;
	struct bw_addr addr;
	struct bw_ep *ep;
	fi_addr_t src;

	ep = stranger(&addr, &peer, &there);
	bw_ep_close(ep, 0);
	while (!in->peer[there].down)
		pair_progress();
	assert_int_equal(in->peer[there].down, -ESHUTDOWN);
	assert_int_equal(fi_av_remove(b.av, &b.peer, 1, 0), 0);
	pair_retry(fi_trecv(b.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 9, 0, NULL));
	assert_int_equal(fi_av_insert(b.av, &addr, 1, &src, 0, NULL), 1);
	assert_int_equal(bwf_peer_source(in, there), src);
	pair_nothing(b.rx);
	assert_int_equal(in->crashed, 0);
}

/* A peer that the address vector does not know is needed while a message of its is unread. */
static void needed__is_who_is_in_the_vector_or_unread(void **state)
{
	struct bwf_ep *in = inside(&b);
	bw_peer_no peer, there;
	struct bw_addr addr;
	struct bw_ep *ep;
	fi_addr_t src;

	ep = stranger(&addr, &peer, &there);
	assert_false(bwf_peer_needed(in, there));
	assert_false(bwf_peer_needed(in, (bw_peer_no)in->peer_count));
	while (bw_send(ep, peer, BWF_CODE_TAGGED, 5, 0, "x", 1, BW_SEND_EAGER, NULL) == -EAGAIN)
		bw_progress(ep);
	while (!in->peer[there].unexpected) {
		pair_progress();
		bw_progress(ep);
	}
	assert_true(bwf_peer_needed(in, there));
	source_of_next(ep, peer); /* another one is read */
	assert_true(bwf_peer_needed(in, there));
	assert_int_equal(in->peer[there].unexpected, 1);
	in->peer[there].unexpected = 0;
	assert_int_equal(fi_av_insert(b.av, &addr, 1, &src, 0, NULL), 1);
	assert_true(
		bwf_peer_needed(in, there)); /* perhaps: it is looked up with the next progress */
	assert_int_equal(in->peer[there].addr, FI_ADDR_NOTAVAIL);
	pair_progress();
	assert_int_equal(in->peer[there].addr, src);
	assert_true(bwf_peer_needed(in, there));
	in->peer[there].unexpected = 1;
	bw_ep_close(ep, 0);
}

/* A message of `len` bytes of a stranger's, which waits for a receive. */
static void leave_unread(struct bw_ep *ep, bw_peer_no peer, bw_peer_no there, size_t len)
{
	size_t before = inside(&b)->peer[there].unexpected;

	while (bw_send(ep, peer, BWF_CODE_TAGGED, 5, 0, buf, len, BW_SEND_EAGER, NULL) == -EAGAIN)
		bw_progress(ep);
	while (inside(&b)->peer[there].unexpected == before) {
		pair_progress();
		bw_progress(ep);
	}
}

/* Bounds count bytes of messages: memory must not be many times as much. */
static void unread__takes_no_more_than_twice_its_length(void **state)
{
	static const size_t lengths[] = {65, 129, 257, 513, 1025, 2049, 4000, 5000};
	struct bwf_ep *in = inside(&b);
	bw_peer_no peer, there;
	struct bw_addr addr;
	struct bw_ep *ep = stranger(&addr, &peer, &there);

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t before = in->peer[there].unread;

		leave_unread(ep, peer, there, lengths[i]);
		assert_in_range(in->peer[there].unread - before, lengths[i],
				sizeof(struct bwf_unexpected) + 2 * lengths[i]);
	}
	bw_ep_close(ep, 0);
}

/* Who says goodbye has sent what it had to say; it is read, unless room is needed. */
static void unread__of_who_said_goodbye_makes_room_first(void **state)
{
	struct bwf_ep *in = inside(&b);
	bw_peer_no peer[2], there[2];
	struct bw_addr addr;
	struct bw_ep *ep[2];

	for (int i = 0; i < 2; i++)
		ep[i] = stranger(&addr, &peer[i], &there[i]);
	leave_unread(ep[0], peer[0], there[0], 100);
	bw_ep_close(ep[0], 1000000000);
	while (!in->peer[there[0]].down)
		pair_progress();
	assert_int_equal(in->peer[there[0]].unexpected, 1);
	in->unexpected.strangers_max = in->unexpected.strangers + 8;
	leave_unread(ep[1], peer[1], there[1], 100);
	assert_int_equal(in->peer[there[0]].unexpected, 0);
	assert_false(in->peer[there[1]].refused);
	assert_int_equal(in->unexpected.strangers, in->peer[there[1]].unread);
	in->unexpected.strangers_max = in->unexpected.strangers;
	while (bw_send(ep[1], peer[1], BWF_CODE_TAGGED, 5, 0, buf, 100, BW_SEND_EAGER, NULL) ==
	       -EAGAIN)
		bw_progress(ep[1]);
	while (!in->peer[there[1]].refused) {
		pair_progress();
		bw_progress(ep[1]);
	}
	assert_int_equal(in->unexpected.strangers, 0);
	assert_int_equal(in->unexpected.bytes, 0);
	assert_true(inside_counted("\"unread_dropped\":3,"));
	bw_ep_close(ep[1], 0);
}

static void unread__of_who_is_named_later_is_no_strangers(void **state)
{
	struct bwf_ep *in = inside(&b);
	bw_peer_no peer, there;
	struct bw_addr addr;
	struct bw_ep *ep = stranger(&addr, &peer, &there);
	fi_addr_t src;

	leave_unread(ep, peer, there, 100);
	assert_int_equal(in->unexpected.strangers, in->unexpected.bytes);
	assert_int_equal(fi_av_insert(b.av, &addr, 1, &src, 0, NULL), 1);
	bw_ep_lock(in->bw);
	assert_int_equal(bwf_peer_resolve(in, src, &there), 0);
	bw_ep_unlock(in->bw);
	assert_int_equal(in->unexpected.strangers, 0);
	leave_unread(ep, peer, there, 100);
	assert_int_equal(in->unexpected.strangers, 0);
	assert_int_equal(fi_av_remove(b.av, &src, 1, 0), 0);
	assert_int_equal(in->unexpected.strangers, in->unexpected.bytes);
	bw_ep_close(ep, 0);
}

/* A message of so many bytes, whatever becomes of it. */
static void say(struct bw_ep *ep, bw_peer_no peer, size_t len)
{
	while (bw_send(ep, peer, BWF_CODE_TAGGED, 5, 0, buf, len, BW_SEND_EAGER, NULL) == -EAGAIN)
		bw_progress(ep);
}

static void until_counted(struct bw_ep *ep, const char *text)
{
	while (!inside_counted(text)) {
		pair_progress();
		bw_progress(ep);
	}
}

/* Messages that nobody gets are counted: those for which there is no memory, the one for which its
 * sender is given up, and all that come of it then. */
static void lost__is_counted(void **state)
{
	struct bwf_ep *in = inside(&b);
	bw_peer_no peer, there;
	struct bw_addr addr;
	struct bw_ep *ep = stranger(&addr, &peer, &there);

	assert_true(inside_counted("\"messages_lost\":0,"));
	inside_malloc_max = 100000; /* there is none for a slab of the provider's */
	say(ep, peer, 100);
	until_counted(ep, "\"messages_lost\":1,");
	inside_malloc_max = SIZE_MAX;
	assert_int_equal(in->tagged.arrived_count, 0);
	assert_true(inside_counted("\"peers_given_up\":0,"));
	in->unexpected.each = 1;
	leave_unread(ep, peer, there, 100);
	say(ep, peer, 100);
	until_counted(ep, "\"messages_lost\":2,");
	assert_true(inside_counted("\"peers_given_up\":1,"));
	say(ep, peer, 100);
	until_counted(ep, "\"messages_lost\":3,");
	assert_true(inside_counted("\"peers_given_up\":1,"));
	bw_ep_close(ep, 0);
}

/* As if all unread messages of this peer had come so much earlier. */
static void grow_older(bw_peer_no there, uint64_t ns)
{
	struct bwf_ep *in = inside(&b);

	bw_ep_lock(in->bw);
	for (struct bwf_unexpected *u = in->peer[there].oldest; u; u = u->newer)
		u->since -= ns;
	bw_ep_unlock(in->bw);
}

/* Who is in no vector is needed for its oldest message for a minute, and for nothing after it; but
 * for one that the program has claimed, and while it is in a vector, whatever the time. */
static void needed__ends_when_nobody_reads_for_long(void **state)
{
	struct bwf_ep *in = inside(&b);
	bw_peer_no peer, there;
	struct bw_addr addr;
	struct bw_ep *ep = stranger(&addr, &peer, &there);
	fi_addr_t src;
	struct iovec to = {.iov_base = other, .iov_len = 8};
	struct fi_msg_tagged claim = {.msg_iov = &to,
				      .iov_count = 1,
				      .addr = FI_ADDR_UNSPEC,
				      .tag = 5,
				      .context = &claim};

	leave_unread(ep, peer, there, 8);
	grow_older(there, 30 * SECOND);
	leave_unread(ep, peer, there, 8);
	assert_true(bwf_peer_needed(in, there));
	grow_older(there, 31 * SECOND);
	assert_false(bwf_peer_needed(in, there));
	pair_retry(fi_trecv(b.ep, other, 8, NULL, FI_ADDR_UNSPEC, 5, 0, NULL));
	pair_completion(b.rx);
	assert_true(bwf_peer_needed(in, there)); /* the other one came later */
	grow_older(there, 30 * SECOND);
	assert_false(bwf_peer_needed(in, there));
	assert_int_equal(fi_av_insert(b.av, &addr, 1, &src, 0, NULL), 1);
	assert_int_equal(bwf_peer_source(in, there), src);
	assert_true(bwf_peer_needed(in, there));
	assert_int_equal(fi_av_remove(b.av, &src, 1, 0), 0);
	for (int i = 0; i < 2; i++, pair_progress())
		assert_true(bwf_peer_needed(in, there)); /* from now on it counts */
	grow_older(there, 59 * SECOND);
	assert_true(bwf_peer_needed(in, there));
	grow_older(there, SECOND);
	assert_true(bwf_peer_needed(in, there)); /* perhaps: its address may be there once more */
	pair_progress();
	assert_false(bwf_peer_needed(in, there));
	leave_unread(ep, peer, there, 8);
	pair_retry(fi_trecvmsg(b.ep, &claim, FI_PEEK | FI_CLAIM));
	pair_completion(b.rx);
	grow_older(there, 61 * SECOND);
	assert_true(bwf_peer_needed(in, there));
	pair_retry(fi_trecvmsg(b.ep, &claim, FI_CLAIM));
	pair_completion(b.rx);
	assert_false(bwf_peer_needed(in, there));
	assert_int_equal(in->peer[there].unexpected, 1);
	bw_ep_close(ep, 0);
}

/* As libbeowire tells of one that has made room. */
static void evict(bw_peer_no there)
{
	struct bwf_ep *in = inside(&b);

	bw_ep_lock(in->bw);
	bwf_peer_down(in, there, -ENOBUFS);
	bw_ep_unlock(in->bw);
}

/* What it left unread goes with it and is counted, and nobody else's; a message that the program
 * claimed is its own. */
static void unread__of_one_that_made_room_goes(void **state)
{
	struct iovec to = {.iov_base = other, .iov_len = 8};
	struct fi_msg_tagged claim = {.msg_iov = &to,
				      .iov_count = 1,
				      .addr = FI_ADDR_UNSPEC,
				      .tag = 5,
				      .context = &claim};
	struct bwf_ep *in = inside(&b);
	bw_peer_no peer[2], there[2];
	struct bw_addr addr;
	struct bw_ep *ep[2];

	for (int i = 0; i < 2; i++) {
		ep[i] = stranger(&addr, &peer[i], &there[i]);
		for (int j = 0; j < 3; j++)
			leave_unread(ep[i], peer[i], there[i], 8);
	}
	assert_int_equal(in->tagged.arrived_count, 6);
	pair_retry(fi_trecvmsg(b.ep, &claim, FI_PEEK | FI_CLAIM));
	pair_completion(b.rx);
	evict(there[0]);
	assert_int_equal(in->tagged.arrived_count, 3);
	assert_int_equal(in->peer[there[1]].unexpected, 3);
	assert_int_equal(in->peer[there[0]].unexpected, 1);
	assert_true(inside_counted("\"unread_dropped\":2,"));
	assert_true(inside_counted("\"peers_given_up\":1,"));
	pair_retry(fi_trecvmsg(b.ep, &claim, FI_CLAIM));
	pair_completion(b.rx);
	assert_int_equal(in->peer[there[0]].unexpected, 0);
	assert_int_equal(in->unexpected.strangers, in->peer[there[1]].unread);
	evict(there[0]); /* one that left nothing is not given up */
	assert_true(inside_counted("\"peers_given_up\":1,"));
	for (int i = 0; i < 2; i++)
		bw_ep_close(ep[i], 0);
}

/* Strangers by UDP, as shared memory has bounds of its own. */
struct crowd {
	struct bw_ep *ep[CROWD_MOST];
	bw_peer_no there[CROWD_MOST]; /* as b knows them */
	int n;
};

static int crowd_setup(void **state)
{
	setenv("BEOWIRE_LINKS", "udp", 1);
	return pair_setup(state);
}

static int crowd_teardown(void **state)
{
	int ret = pair_teardown(state);

	setenv("BEOWIRE_LINKS", "local", 1);
	return ret;
}

/* One more speaks, and is not read; false if it could not within so many ns. */
static bool crowd_joins(struct crowd *c, uint64_t ns)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .no_helper = true};
	struct bwf_ep *in = inside(&b);
	size_t n = sizeof(struct bw_addr), before = in->tagged.arrived_count;
	uint64_t until = bwf_now_ns() + ns;
	struct bw_addr addr;
	struct bw_ep *ep;
	bw_peer_no peer, i;
	int sent = -EAGAIN;

	assert_int_equal(bw_ep_open(&ep, &attr, NULL), 0);
	assert_int_equal(fi_getname(&b.ep->fid, &addr, &n), 0);
	assert_int_equal(bw_peer_find(ep, &addr, &peer), 0);
	c->ep[c->n] = ep;
	while (bwf_now_ns() < until) {
		if (sent == -EAGAIN)
			sent = bw_send(ep, peer, BWF_CODE_TAGGED, 5, 0, "x", 1, BW_SEND_EAGER,
				       NULL);
		for (int k = 0; k <= c->n; k++)
			bw_progress(c->ep[k]);
		pair_progress();
		usleep(300);
		for (i = 0; i < in->peer_count; i++) {
			if (in->peer[i].newest && !in->peer[i].newest->newer &&
			    in->peer[i].newest->since + ns >= until)
				break;
		}
		if (i < in->peer_count && in->tagged.arrived_count >= before) {
			c->there[c->n++] = i;
			return true;
		}
	}
	bw_ep_close(ep, 0);
	return false;
}

/* All room for peers is taken by such that have left a message each. Nobody gets in while these are
 * young; then whose is the oldest makes room, and the rest stay. */
static void room__is_made_by_whom_nobody_reads(void **state)
{
	struct bwf_ep *in = inside(&b);
	struct crowd c = {.n = 0};
	int full;

	bw_ep_lock(in->bw);
	in->bw->grown_bytes += NO_MORE;
	bw_ep_unlock(in->bw);
	while (c.n < CROWD_MOST - 1 && crowd_joins(&c, 3 * SECOND)) /* then all of them are idle */
		;
	full = c.n;
	assert_in_range(full, 8, CROWD_MOST - 2);
	assert_true(inside_counted("\"evicted\":0,"));
	grow_older(c.there[3], 60 * SECOND);
	assert_true(crowd_joins(&c, 10 * SECOND));
	assert_true(inside_counted("\"evicted\":1,"));
	assert_true(inside_counted("\"unread_dropped\":1,"));
	assert_true(inside_counted("\"peers_given_up\":1,"));
	assert_int_equal(in->tagged.arrived_count, full);
	for (int i = 0; i < c.n; i++)
		assert_true(i == 3 || in->peer[c.there[i]].unexpected == 1);
	bw_ep_lock(in->bw);
	in->bw->grown_bytes -= NO_MORE;
	bw_ep_unlock(in->bw);
	for (int i = 0; i < c.n; i++)
		bw_ep_close(c.ep[i], 0);
}

static int full_setup(void **state)
{
	full = true;
	answered = no_room = 0;
	inside_calls = (struct inside_calls){.pull = pull};
	return pair_setup(state);
}

static int full_teardown(void **state)
{
	full = false;
	return pair_teardown(state);
}

/* A request to write to two segments; the data follow. */
static void ask_to_write(struct bw_ep *ep, bw_peer_no peer, uint64_t token)
{
	struct bwf_write_request req = {.token = token, .len = LONG, .segments = 2};
	struct bwf_segment seg[2] = {{.len = LONG / 2, .key = 42}, {.len = LONG / 2, .key = 42}};
	char request[sizeof(req) + sizeof(seg)];

	memcpy(request, &req, sizeof(req));
	memcpy(request + sizeof(req), seg, sizeof(seg));
	while (bw_send(ep, peer, BWF_CODE_WRITE_LONG, 0, 0, request, sizeof(request), BW_SEND_EAGER,
		       NULL) == -EAGAIN)
		bw_progress(ep);
}

/* A write of `buf` to two segments, whose data b cannot fetch now. */
static void write_to_two(struct bw_ep *ep, bw_peer_no peer, uint64_t token)
{
	ask_to_write(ep, peer, token);
	while (bw_send(ep, peer, BWF_CODE_WRITE_DATA, token, 0, buf, LONG, BW_SEND_SYNC, buf) ==
	       -EAGAIN)
		bw_progress(ep);
}

static void drive(struct bw_ep *ep, const atomic_int *n, int until)
{
	while (*n < until) {
		pair_progress();
		bw_progress(ep);
	}
}

/* What writes are fetched into on their way to several segments is bounded, for all together. */
static void bounced__is_bounded(void **state)
{
	struct bwf_ep *in = inside(&b);
	bw_peer_no peer, there;
	struct bw_addr addr;
	struct bw_ep *ep = stranger(&addr, &peer, &there);
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(pair_domain, other, LONG, FI_REMOTE_WRITE, 0, 42, 0, &mr, NULL),
			 0);
	in->unexpected.limit = 5 * LONG / 2;
	for (uint64_t i = 0; i < 4; i++)
		write_to_two(ep, peer, i);
	while (atomic_load(&in->todo_count) < 4) {
		pair_progress();
		bw_progress(ep);
	}
	assert_int_equal(in->bounced, 2 * LONG);
	full = false;
	drive(ep, &answered, 4);
	assert_int_equal(no_room, 2);
	assert_int_equal(in->bounced, 0);
	in->unexpected.limit = 1; /* one alone is taken whatever its length */
	write_to_two(ep, peer, 4);
	drive(ep, &answered, 5);
	assert_int_equal(no_room, 2);
	assert_int_equal(in->bounced, 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	bw_ep_close(ep, 0);
}

/* Two strangers of b's: their endpoints, and how they and b name one another. */
struct two {
	struct bw_ep *ep[2];
	struct bw_addr addr[2];
	bw_peer_no peer[2], there[2];
};

static void two_strangers(struct two *s)
{
	for (int i = 0; i < 2; i++)
		s->ep[i] = stranger(&s->addr[i], &s->peer[i], &s->there[i]);
}

static void two_progress(const struct two *s)
{
	pair_progress();
	for (int i = 0; i < 2; i++)
		bw_progress(s->ep[i]);
}

static void two_close(const struct two *s)
{
	for (int i = 0; i < 2; i++)
		bw_ep_close(s->ep[i], 0);
	while (!inside(&b)->peer[s->there[0]].down || !inside(&b)->peer[s->there[1]].down)
		pair_progress();
}

/* The i-th one asks; until b keeps `asked` of its requests, and so many answers have come. */
static void two_ask(const struct two *s, int i, uint64_t token, uint32_t asked, int answers)
{
	ask_to_write(s->ep[i], s->peer[i], token);
	while (answered < answers)
		two_progress(s);
	while (inside(&b)->peer[s->there[i]].asked != asked)
		two_progress(s);
}

/* Requests whose data do not come are bounded for all strangers together, and the oldest goes;
 * those of a peer that is named do not count. Who asked is needed, and nobody else for that. */
static void asked__of_strangers_is_bounded(void **state)
{
	const uint32_t others = BWF_WRITES_STRANGERS - 2;
	struct bwf_ep *in = inside(&b);
	struct two s;
	fi_addr_t src;

	two_strangers(&s);
	two_ask(&s, 0, 1, 1, 0);
	assert_true(bwf_peer_needed(in, s.there[0]));
	assert_false(bwf_peer_needed(in, s.there[1]));
	assert_int_equal(in->strangers.asked, 1);
	src = FI_ADDR_NOTAVAIL; /* as of an address that could not be inserted */
	assert_int_equal(fi_av_remove(b.av, &src, 1, 0), -FI_EINVAL);
	assert_int_equal(in->strangers.asked, 1);
	in->strangers.asked += others;
	two_ask(&s, 1, 2, 1, 0);
	two_ask(&s, 1, 3, 2, 1); /* in the place of the first one's */
	assert_int_equal(no_room, 1);
	assert_int_equal(in->peer[s.there[0]].asked, 0);
	assert_int_equal(in->peer[s.there[0]].writes_in, 0);
	assert_false(bwf_peer_needed(in, s.there[0]));

	assert_int_equal(fi_av_insert(b.av, &s.addr[1], 1, &src, 0, NULL), 1);
	assert_int_equal(bwf_peer_source(in, s.there[1]), src);
	assert_int_equal(in->strangers.asked, others);
	two_ask(&s, 0, 4, 1, 1);
	two_ask(&s, 0, 5, 2, 1);
	two_ask(&s, 0, 6, 2, 2); /* in the place of its own, not of older ones of the named one */
	assert_int_equal(no_room, 2);
	assert_int_equal(in->peer[s.there[1]].asked, 2);
	assert_int_equal(in->incoming.last->token, 6);
	assert_int_equal(fi_av_remove(b.av, &src, 1, 0), 0);
	assert_int_equal(in->strangers.asked, others + 4);
	two_close(&s);
	assert_int_equal(in->strangers.asked, others);
	assert_null(in->incoming.first);
	assert_null(in->incoming.last);
}

/* It names a key that nobody has; until so many answers are kept for it. */
static void two_err(const struct two *s, int i, uint64_t token, uint32_t kept)
{
	struct bwf_write_request req = {.token = token, .len = 8, .segments = 1};
	struct bwf_segment seg = {.len = 8, .key = 4242};
	char request[sizeof(req) + sizeof(seg) + 8] = {0};

	memcpy(request, &req, sizeof(req));
	memcpy(request + sizeof(req), &seg, sizeof(seg));
	while (bw_send(s->ep[i], s->peer[i], BWF_CODE_WRITE, 0, 0, request, sizeof(request),
		       BW_SEND_EAGER, NULL) == -EAGAIN)
		bw_progress(s->ep[i]);
	while (inside(&b)->peer[s->there[i]].kept != kept)
		two_progress(s);
}

/* Answers that nobody takes are bounded for all strangers together: who has most is given up. */
static void kept__of_strangers_is_bounded(void **state)
{
	struct bwf_ep *in = inside(&b);
	struct two s;

	inside_calls.send = no_send;
	full = false;
	two_strangers(&s);
	full = true;
	two_err(&s, 0, 1, 1);
	two_err(&s, 0, 2, 2);
	two_err(&s, 1, 3, 1);
	assert_true(bwf_peer_needed(in, s.there[0]) && bwf_peer_needed(in, s.there[1]));
	assert_int_equal(in->strangers.kept, 3);
	in->strangers.kept += BWF_KEPT_STRANGERS - 3;
	two_err(&s, 1, 4, 2);
	assert_true(in->peer[s.there[0]].refused);
	assert_false(in->peer[s.there[1]].refused);
	assert_int_equal(in->strangers.kept, BWF_KEPT_STRANGERS - 1);
	full = false;
	drive(s.ep[1], &answered, 2);
	while (atomic_load(&in->todo_count))
		two_progress(&s);
	for (int i = 0; i < 100; i++)
		two_progress(&s);
	assert_int_equal(answered, 2); /* nothing is answered to the other one */
	assert_int_equal(in->peer[s.there[0]].kept + in->peer[s.there[1]].kept, 0);
	assert_int_equal(in->strangers.kept, BWF_KEPT_STRANGERS - 3);
	assert_false(bwf_peer_needed(in, s.there[1]));

	/* by their bytes as well, and who asks is given up himself if it is he who has most */
	full = true;
	in->strangers.kept = 0;
	two_err(&s, 1, 5, 1);
	in->strangers.kept_bytes = BWF_ANSWERS_STRANGERS + 1;
	two_err(&s, 1, 6, 1);
	while (!in->peer[s.there[1]].refused)
		two_progress(&s);
	full = false;
	two_close(&s);
}

/* Its number may be another one's soon: nothing of it stays. */
static void not_needed__leaves_nothing_behind(void **state)
{
	struct bwf_ep *in = inside(&b);
	struct bwf_peer *p = bwf_peer_get(in, 7);

	p->known = true;
	p->guesses = 3;
	bwf_peer_down(in, 7, -ENOBUFS);
	p = bwf_peer_get(in, 7);
	assert_false(p->known || p->guesses || p->down);
	p->down = -ECONNREFUSED; /* the same later, of one that has been gone for long */
	bwf_peer_down(in, 7, -ENOBUFS);
	assert_int_equal(p->down, 0);
	assert_int_equal(p->addr, FI_ADDR_NOTAVAIL);
	assert_int_equal(in->crashed, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)
#define FULL(f) cmocka_unit_test_setup_teardown(f, full_setup, full_teardown)
	const struct CMUnitTest tests[] = {
		TEST(unread__of_who_said_goodbye_makes_room_first),
		TEST(unread__takes_no_more_than_twice_its_length),
		TEST(unread__of_who_is_named_later_is_no_strangers),
		TEST(source__is_known_when_its_address_is),
		TEST(source__is_nobodys_place_that_was_removed),
		TEST(goodbye__before_it_is_named_is_no_loss),
		TEST(needed__is_who_is_in_the_vector_or_unread),
		TEST(lost__is_counted),
		TEST(needed__ends_when_nobody_reads_for_long),
		TEST(unread__of_one_that_made_room_goes),
		cmocka_unit_test_setup_teardown(room__is_made_by_whom_nobody_reads, crowd_setup,
						crowd_teardown),
		FULL(bounced__is_bounded),
		FULL(asked__of_strangers_is_bounded),
		FULL(kept__of_strangers_is_bounded),
		TEST(not_needed__leaves_nothing_behind),
	};

	return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
