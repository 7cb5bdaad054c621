// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Peers that die, over the local link, which learns of it at once: a child process with an endpoint
 * of libbeowire, killed in the middle of things. All that waits for it ends with an error, and
 * nothing else does. Also a peer that speaks before its address is known.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codes.h"
#include "inside.h"

#define LONG (1 << 20)

static char buf[LONG], other[LONG];
static pid_t child;
static struct bw_addr child_addr;
static fi_addr_t dead; /* the child, as b knows it */
static bool full;      /* bw_pull() has no room */

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

/* The child: it tells its address, begins a long write and a long message, and takes all that
 * comes without an answer. */
static void live(const struct bw_addr *b_addr, int to)
{
	struct bwf_write_request req = {.token = 1, .len = LONG, .segments = 1};
	struct bwf_segment seg = {.len = LONG, .key = 42};
	char request[sizeof(req) + sizeof(seg)];
	struct bw_addr addr;
	struct bw_ep *ep;
	bw_peer_no peer;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memcpy(request, &req, sizeof(req));
	memcpy(request + sizeof(req), &seg, sizeof(seg));
	if (bw_ep_open(&ep, &(struct bw_ep_attr){.handlers = &handlers}, NULL) ||
	    bw_peer_find(ep, b_addr, &peer))
		_exit(1);
	bw_ep_addr(ep, &addr);
	while (bw_send(ep, peer, BWF_CODE_WRITE_LONG, 0, 0, request, sizeof(request), BW_SEND_EAGER,
		       NULL) == -EAGAIN)
		bw_progress(ep);
	while (bw_send(ep, peer, BWF_CODE_TAGGED, 5, 0, buf, LONG, BW_SEND_SYNC, &addr) == -EAGAIN)
		bw_progress(ep);
	if (write(to, &addr, sizeof(addr)) != sizeof(addr))
		_exit(1);
	for (;;)
		bw_wait(ep, UINT64_MAX);
}

static int setup(void **state)
{
	struct bw_addr addr;
	size_t n = sizeof(addr);
	int ends[2];

	full = true;
	inside_calls = (struct inside_calls){.pull = pull};
	pair_setup(state);
	assert_int_equal(fi_getname(&b.ep->fid, &addr, &n), 0);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		live(&addr, ends[1]);
	while (!inside(&b)->incoming.first) /* it is there, and b has taken its request */
		pair_progress();
	assert_int_equal(read(ends[0], &child_addr, sizeof(child_addr)), sizeof(child_addr));
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(fi_av_insert(b.av, &child_addr, 1, &dead, 0, NULL), 1);
	return 0;
}

static void die(void)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static int teardown(void **state)
{
	full = false;
	return pair_teardown(state);
}

/* Whoever names the dead one is told; a receive from anybody goes on, since somebody is left. */
static void death__ends_receives_that_name_it(void **state)
{
	pair_retry(fi_trecv(b.ep, buf, 8, NULL, dead, 1, 0, "its"));
	pair_retry(fi_trecv(b.ep, other, 8, NULL, FI_ADDR_UNSPEC, 1, 0, "anybody's"));
	pair_retry(fi_trecv(b.ep, other, 8, NULL, b.peer, 1, 0, "a's"));
	die();
	assert_string_equal(pair_error(b.rx).op_context, "its");
	pair_nothing(b.rx);
	pair_retry(fi_trecv(b.ep, buf, 8, NULL, dead, 1, 0, "late"));
	assert_string_equal(pair_error(b.rx).op_context, "late");
	pair_retry(fi_trecv(b.ep, other, 8, NULL, FI_ADDR_UNSPEC, 1, 0, "late, anybody's"));
	pair_nothing(b.rx);
	for (int i = 0; i < 3; i++)
		pair_retry(fi_tinject(a.ep, "x", 1, a.peer, 1));
	assert_string_equal(pair_completion(b.rx).op_context, "anybody's");
	assert_string_equal(pair_completion(b.rx).op_context, "a's");
	assert_string_equal(pair_completion(b.rx).op_context, "late, anybody's");
}

static void death__ends_operations_that_wait_for_answers(void **state)
{
	pair_retry(fi_write(b.ep, buf, 8, NULL, dead, 0, 42, "write"));
	pair_retry(fi_fetch_atomic(b.ep, buf, 1, NULL, other, NULL, dead, 0, 42, FI_UINT64, FI_SUM,
				   "atomic"));
	pair_nothing(b.tx);
	die();
	pair_error(b.tx);
	pair_error(b.tx);
	pair_nothing(b.tx);
	assert_int_equal(fi_cntr_readerr(b.written), 1);
	assert_int_equal(fi_cntr_read(b.written), 0);
	while (fi_write(b.ep, buf, 8, NULL, dead, 0, 42, NULL) == 0)
		pair_error(b.tx);
}

/* Its long write is forgotten, its message cannot be fetched any more. */
static void death__ends_what_it_began(void **state)
{
	pair_retry(fi_trecv(b.ep, buf, LONG, NULL, dead, 5, 0, "long"));
	while (!atomic_load(&inside(&b)->todo_count))
		pair_progress();
	die();
	assert_string_equal(pair_error(b.rx).op_context, "long");
	assert_int_equal(atomic_load(&inside(&b)->todo_count), 0);
	assert_null(inside(&b)->incoming.first);
	pair_nothing(b.rx);
}

/* Until the child's request is forgotten, and all else has been done that its end brings about:
 * b's helper may be at it, with the lock. */
static void await_its_end(void)
{
	while (inside(&b)->incoming.first)
		pair_progress();
	bw_ep_lock(inside(&b)->bw);
	bw_ep_unlock(inside(&b)->bw);
}

/* The child is at fault. */
static void refuse(void)
{
	bw_ep_lock(inside(&b)->bw);
	bwf_peer_refuse(inside(&b), (bw_peer_no)inside(&b)->incoming.first->peer, "lies");
	bw_ep_unlock(inside(&b)->bw);
}

/* What b says while it sees the child die, or finds it at fault; at most `room` bytes of it. */
static void said_of_the_child(bool dies, char *text, size_t room)
{
	int before = dup(STDERR_FILENO);
	FILE *told = tmpfile();

	assert_non_null(told);
	fflush(stderr);
	assert_int_equal(dup2(fileno(told), STDERR_FILENO), STDERR_FILENO);
	if (dies)
		die();
	else
		refuse();
	await_its_end();
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(told);
	text[fread(text, 1, room - 1, told)] = 0;
	fclose(told);
}

static void death__of_a_named_one_is_told(void **state)
{
	char text[1024];

	said_of_the_child(true, text, sizeof(text));
	assert_non_null(strstr(text, "operations with it end with an error"));
	assert_int_not_equal(inside(&b)->crashed, 0);
}

/* Else anybody who may speak could end a job, whose launcher listens to what its ranks say. */
static void death__of_one_that_is_in_no_vector_is_nobodys(void **state)
{
	char text[1024];

	assert_int_equal(fi_av_remove(b.av, &dead, 1, 0), 0);
	said_of_the_child(true, text, sizeof(text));
	assert_string_equal(text, "");
	assert_int_equal(inside(&b)->crashed, 0);
}

/* The child is in no vector, and nobody else but b itself; `end` of it is of no consequence until
 * it is inserted. What b says then. */
static void named_after(void (*end)(void), char *text, size_t room)
{
	int before = dup(STDERR_FILENO);
	FILE *told = tmpfile();

	assert_non_null(told);
	assert_int_equal(fi_av_remove(b.av, &dead, 1, 0), 0);
	assert_int_equal(fi_av_remove(b.av, &b.peer, 1, 0), 0);
	pair_retry(fi_trecv(b.ep, other, 8, NULL, FI_ADDR_UNSPEC, 1, 0, "anybody's"));
	end();
	await_its_end();
	pair_nothing(b.rx);
	assert_int_equal(inside(&b)->crashed, 0);
	assert_int_equal(dup2(fileno(told), STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(fi_av_insert(b.av, &child_addr, 1, &dead, 0, NULL), 1);
	pair_progress();
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(told);
	text[fread(text, 1, room - 1, told)] = 0;
	fclose(told);
}

static void death__before_it_is_named_is_told_then(void **state)
{
	char text[1024];

	named_after(die, text, sizeof(text));
	assert_string_equal(pair_error(b.rx).op_context, "anybody's");
	assert_non_null(strstr(text, "operations with it end with an error"));
	pair_retry(fi_trecv(b.ep, other, 8, NULL, FI_ADDR_UNSPEC, 1, 0, "late"));
	assert_string_equal(pair_error(b.rx).op_context, "late");
}

static void refused__before_it_is_named_is_told_then(void **state)
{
	struct fi_cq_err_entry e;
	char text[1024];

	named_after(refuse, text, sizeof(text));
	e = pair_error(b.rx);
	assert_string_equal(e.op_context, "anybody's");
	assert_int_equal(e.err, FI_ECONNABORTED);
	die();
}

/* Others are left, and go on. */
static void death__before_it_is_named_ends_nothing_of_others(void **state)
{
	assert_int_equal(fi_av_remove(b.av, &dead, 1, 0), 0);
	pair_retry(fi_trecv(b.ep, other, 8, NULL, FI_ADDR_UNSPEC, 1, 0, "anybody's"));
	die();
	await_its_end();
	assert_int_equal(fi_av_insert(b.av, &child_addr, 1, &dead, 0, NULL), 1);
	pair_nothing(b.rx);
	assert_int_not_equal(inside(&b)->crashed, 0);
	pair_retry(fi_tinject(a.ep, "x", 1, a.peer, 1));
	assert_string_equal(pair_completion(b.rx).op_context, "anybody's");
}

static void refused__of_one_that_is_in_no_vector_is_not_told(void **state)
{
	char text[1024];

	assert_int_equal(fi_av_remove(b.av, &dead, 1, 0), 0);
	said_of_the_child(false, text, sizeof(text));
	assert_string_equal(text, "");
	assert_int_equal(inside(&b)->crashed, 0);
	die();
}

static void refused__is_told_of_a_named_one(void **state)
{
	char text[1024];

	said_of_the_child(false, text, sizeof(text));
	assert_non_null(strstr(text, "is given up, since it lies"));
	die();
}

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

static bool counted(const char *text)
{
	char *stats = bw_ep_stats(inside(&b)->bw);
	bool found = strstr(stats, text) != NULL;

	free(stats);
	return found;
}

/* Nobody who is not named leaves anything by dying. */
static void unread__of_a_stranger_dies_with_it(void **state)
{
	struct bwf_ep *in = inside(&b);

	assert_int_equal(fi_av_remove(b.av, &dead, 1, 0), 0);
	while (!in->tagged.arrived_count)
		pair_progress();
	assert_int_not_equal(in->unexpected.strangers, 0);
	assert_int_equal(in->unexpected.strangers, in->unexpected.bytes);
	die();
	await_its_end();
	assert_int_equal(in->tagged.arrived_count, 0);
	assert_int_equal(in->unexpected.bytes, 0);
	assert_int_equal(in->unexpected.strangers, 0);
	assert_true(counted("\"unread_dropped\":1,"));
}

static void unread__of_a_named_one_stays_when_it_dies(void **state)
{
	struct bwf_ep *in = inside(&b);

	while (!in->tagged.arrived_count)
		pair_progress();
	assert_int_equal(bwf_peer_source(in, (bw_peer_no)in->incoming.first->peer), dead);
	assert_int_equal(in->unexpected.strangers, 0);
	die();
	await_its_end();
	assert_int_equal(in->tagged.arrived_count, 1);
	assert_true(counted("\"unread_dropped\":0,"));
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
	assert_true(counted("\"unread_dropped\":3,"));
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

static int full_setup(void **state)
{
	full = true;
	answered = no_room = 0;
	inside_calls = (struct inside_calls){.pull = pull};
	return pair_setup(state);
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
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(death__ends_receives_that_name_it),
		TEST(death__ends_operations_that_wait_for_answers),
		TEST(death__ends_what_it_began),
		TEST(death__of_a_named_one_is_told),
		TEST(death__of_one_that_is_in_no_vector_is_nobodys),
		TEST(death__before_it_is_named_is_told_then),
		TEST(death__before_it_is_named_ends_nothing_of_others),
		TEST(refused__before_it_is_named_is_told_then),
		TEST(refused__of_one_that_is_in_no_vector_is_not_told),
		TEST(refused__is_told_of_a_named_one),
		TEST(unread__of_a_stranger_dies_with_it),
		TEST(unread__of_a_named_one_stays_when_it_dies),
		cmocka_unit_test_setup_teardown(unread__of_who_said_goodbye_makes_room_first,
						pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(unread__of_who_is_named_later_is_no_strangers,
						pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(source__is_known_when_its_address_is, pair_setup,
						pair_teardown),
		cmocka_unit_test_setup_teardown(source__is_nobodys_place_that_was_removed,
						pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(goodbye__before_it_is_named_is_no_loss, pair_setup,
						pair_teardown),
		cmocka_unit_test_setup_teardown(needed__is_who_is_in_the_vector_or_unread,
						pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(bounced__is_bounded, full_setup, teardown),
		cmocka_unit_test_setup_teardown(asked__of_strangers_is_bounded, full_setup,
						teardown),
		cmocka_unit_test_setup_teardown(kept__of_strangers_is_bounded, full_setup,
						teardown),
		cmocka_unit_test_setup_teardown(not_needed__leaves_nothing_behind, pair_setup,
						pair_teardown),
	};

	return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
