// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Peers that die, over the local link, which learns of it at once: a child process with an endpoint
 * of libbeowire, killed in the middle of things. All that waits for it ends with an error, and
 * nothing else does.
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

static void on_message(void *arg, const struct bw_message *m)
{
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
	assert_true(inside_counted("\"unread_dropped\":1,"));
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
	assert_true(inside_counted("\"unread_dropped\":0,"));
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
	};

	return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
