/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An endpoint on strings: does what the lines on its standard input say, with libbeowire's public
 * API alone, and tells every result and event as one JSON object per line. Contents of messages
 * follow from tag and length, so that the receiver checks every byte by itself.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "beowire.h"

#define ACTOR_REGION_KEY   77 /* the only memory that may be read */
#define ACTOR_REGION_BYTES (4u << 20)
#define ACTOR_OPS	   4096

enum actor_policy { POLICY_PULL, POLICY_HOLD, POLICY_DISCARD, POLICY_TRUNCATE, POLICY_STOP };
enum actor_mode { MODE_WAIT, MODE_PROGRESS, MODE_FD, MODE_IDLE };

/* A buffer of ours that libbeowire uses until the operation ends. */
struct actor_op {
	unsigned char *buf;
	uint64_t len, tag;
	int number;
	bool pull;
};

struct actor_held {
	struct bw_rndv rndv;
	bw_peer_no peer;
	uint64_t tag, len;
	struct actor_held *next;
};

static struct bw_ep *actor_ep;
static enum actor_policy actor_policy;
static uint64_t actor_truncate;
static enum actor_mode actor_mode;
static struct actor_op actor_ops[ACTOR_OPS];
static struct actor_held *actor_held;
static unsigned char *actor_region;
static bool actor_quiet; /* count messages, print none */
static uint64_t actor_count, actor_bad;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	flockfile(stdout);
	vprintf(format, args);
	putchar('\n');
	fflush(stdout);
	funlockfile(stdout);
	va_end(args);
}

static unsigned char pattern(uint64_t tag, uint64_t at)
{
	return (unsigned char)(tag * 31 + at * 7 + (at >> 8) * 13 + 5);
}

static bool matches(const unsigned char *p, uint64_t tag, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		if (p[i] != pattern(tag, i))
			return false;
	}
	return true;
}

static struct actor_op *op_new(uint64_t tag, uint64_t len, int number, bool pull)
{
	for (int i = 0; i < ACTOR_OPS; i++) {
		struct actor_op *op = &actor_ops[i];

		if (op->buf)
			continue;
		op->buf = malloc(len + 1);
		if (!op->buf)
			abort();
		op->len = len;
		op->tag = tag;
		op->number = number;
		op->pull = pull;
		for (uint64_t k = 0; k < len; k++)
			op->buf[k] = pull ? 0xEE : pattern(tag, k);
		return op;
	}
	abort();
}

static void op_free(struct actor_op *op)
{
	free(op->buf);
	op->buf = NULL;
}

static void pull_by(__typeof__(bw_pull) *call, bw_peer_no peer, const struct bw_rndv *rndv,
		    uint64_t tag, uint64_t len, int number)
{
	struct actor_op *op = op_new(tag, len, number, true);
	int rc = call(actor_ep, peer, rndv, len ? op->buf : NULL, len, op);

	if (rc) {
		say("{\"event\":\"pull\",\"result\":%d,\"tag\":%llu}", rc, (unsigned long long)tag);
		op_free(op);
	}
}

static void pull(bw_peer_no peer, const struct bw_rndv *rndv, uint64_t tag, uint64_t len,
		 int number)
{
	pull_by(bw_pull, peer, rndv, tag, len, number);
}

static void hold(const struct bw_message *m)
{
	struct actor_held *h = malloc(sizeof(*h)), **at = &actor_held;

	if (!h)
		abort();
	*h = (struct actor_held){m->rndv, m->peer, m->tag, m->len, NULL};
	while (*at)
		at = &(*at)->next;
	*at = h;
}

static void on_message(void *arg, const struct bw_message *m)
{
	bool ok = m->envelope ? !m->data : matches(m->data, m->tag, m->len);

	actor_count++;
	actor_bad += !ok;
	if (!actor_quiet)
		say("{\"event\":\"message\",\"peer\":%u,\"code\":%u,\"tag\":%llu,\"imm\":%llu,"
		    "\"len\":%llu,\"envelope\":%s,\"ok\":%s}",
		    m->peer, m->code, (unsigned long long)m->tag, (unsigned long long)m->imm,
		    (unsigned long long)m->len, m->envelope ? "true" : "false",
		    ok ? "true" : "false");
	if (!m->envelope)
		return;
	switch (actor_policy) {
	case POLICY_PULL:
		pull(m->peer, &m->rndv, m->tag, m->len, -1);
		break;
	case POLICY_HOLD:
		hold(m);
		break;
	case POLICY_DISCARD:
		bw_pull(actor_ep, m->peer, &m->rndv, NULL, 0, NULL);
		break;
	case POLICY_TRUNCATE:
		pull(m->peer, &m->rndv, m->tag, actor_truncate, -1);
		break;
	case POLICY_STOP: /* the whole process, with a pull that has begun */
		pull(m->peer, &m->rndv, m->tag, m->len, -1);
		raise(SIGSTOP);
		break;
	}
}

static void on_sent(void *arg, void *op, int status)
{
	struct actor_op *o = op;

	say("{\"event\":\"sent\",\"op\":%d,\"status\":%d}", o->number, status);
	op_free(o);
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
	struct actor_op *o = op;

	if (actor_quiet && !status) {
		actor_bad += !matches(o->buf, o->tag, len);
		actor_count++;
	} else {
		say("{\"event\":\"pulled\",\"op\":%d,\"tag\":%llu,\"status\":%d,\"len\":%llu,"
		    "\"ok\":%s}",
		    o->number, (unsigned long long)o->tag, status, (unsigned long long)len,
		    status || matches(o->buf, o->tag, len) ? "true" : "false");
	}
	op_free(o);
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
	say("{\"event\":\"down\",\"peer\":%u,\"status\":%d}", peer, status);
}

static void *on_region(void *arg, bw_peer_no peer, uint64_t key, uint64_t off, uint64_t n)
{
	if (key != ACTOR_REGION_KEY || off > ACTOR_REGION_BYTES || n > ACTOR_REGION_BYTES - off)
		return NULL;
	return actor_region + off;
}

static const struct bw_handlers actor_handlers = {on_message, on_sent, on_pulled, on_down,
						  on_region};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void do_open(const char *rest)
{
	struct bw_ep_attr attr = {&actor_handlers, NULL, strstr(rest, "no_helper") != NULL};
	const char *why = "";
	struct bw_addr addr;
	char hex[2 * sizeof(struct bw_addr) + 1];
	int rc = bw_ep_open(&actor_ep, &attr, &why);

	if (rc) {
		printf("{\"event\":\"open\",\"result\":%d,\"why\":\"", rc);
		for (; *why; why++)
			printf(*why == '"' || *why == '\\' ? "\\%c" : "%c", *why);
		say("\"}");
		return;
	}
	bw_ep_addr(actor_ep, &addr);
	for (size_t i = 0; i < sizeof(addr.bytes); i++)
		sprintf(hex + 2 * i, "%02x", addr.bytes[i]);
	say("{\"event\":\"open\",\"result\":0,\"addr\":\"%s\"}", hex);
}

static void do_peer(const char *hex)
{
	struct bw_addr addr;
	bw_peer_no peer = BW_PEER_NONE;
	unsigned int byte;
	int rc;

	for (size_t i = 0; i < sizeof(addr.bytes); i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			byte = 0;
		addr.bytes[i] = (unsigned char)byte;
	}
	rc = bw_peer_find(actor_ep, &addr, &peer);
	say("{\"event\":\"peer\",\"result\":%d,\"peer\":%d}", rc, (int)peer);
}

/* A send that makes progress while there is no room. */
static int send_one(bw_peer_no peer, unsigned code, uint64_t tag, uint64_t len, unsigned flags,
		    int number)
{
	struct actor_op *op = op_new(tag, len, number, false);
	int rc;

	while ((rc = bw_send(actor_ep, peer, (uint8_t)code, tag, tag + 1000, op->buf, len, flags,
			     op)) == -EAGAIN)
		bw_wait(actor_ep, 1000000);
	if (rc)
		op_free(op);
	return rc;
}

static void do_send(const char *rest)
{
	unsigned int peer, code, flags;
	unsigned long long tag, len;
	int number;

	if (sscanf(rest, "%u %u %llu %llu %u %d", &peer, &code, &tag, &len, &flags, &number) != 6)
		abort();
	say("{\"event\":\"send\",\"op\":%d,\"result\":%d}", number,
	    send_one(peer, code, tag, len, flags, number));
}

/* n messages, each with its number as its tag. */
static void do_burst(const char *rest)
{
	unsigned int peer;
	unsigned long long n, len, i;
	int rc = 1;

	if (sscanf(rest, "%u %llu %llu", &peer, &n, &len) != 3)
		abort();
	for (i = 0; i < n && rc >= 0; i++)
		rc = send_one(peer, 1, i, len, 0, (int)i);
	say("{\"event\":\"burst\",\"sent\":%llu,\"result\":%d}", i, rc);
}

static void do_pull_held(const char *rest)
{
	struct actor_held *h = actor_held;
	unsigned long long len = 0;
	int number;

	if (!h || sscanf(rest, "%d %llu", &number, &len) != 2)
		abort();
	actor_held = h->next;
	pull(h->peer, &h->rndv, h->tag, len, number);
	free(h);
}

/* The oldest message that is held, which stays so. */
static void do_pull_early(const char *rest)
{
	unsigned long long len = 0;
	int number;

	if (!actor_held || sscanf(rest, "%d %llu", &number, &len) != 2)
		abort();
	pull_by(bw_pull_early, actor_held->peer, &actor_held->rndv, actor_held->tag, len, number);
}

static void do_read(const char *rest)
{
	unsigned int peer;
	unsigned long long key, off, len;
	struct actor_op *op;
	int number, rc;

	if (sscanf(rest, "%u %llu %llu %llu %d", &peer, &key, &off, &len, &number) != 5)
		abort();
	op = op_new(off, len, number, true);
	rc = bw_read(actor_ep, peer, key, off, op->buf, len, op);
	if (rc)
		op_free(op);
	say("{\"event\":\"read\",\"op\":%d,\"result\":%d}", number, rc);
}

/* The region's content at every multiple of 1 MiB begins a pattern of its own. */
static void region_fill(void)
{
	actor_region = malloc(ACTOR_REGION_BYTES);
	if (!actor_region)
		abort();
	for (uint64_t i = 0; i < ACTOR_REGION_BYTES; i++)
		actor_region[i] = pattern(i & ~0xFFFFFull, i & 0xFFFFF);
}

static void do_cancel(const char *rest)
{
	int number = atoi(rest), rc = -EINVAL;

	for (int i = 0; i < ACTOR_OPS; i++) {
		if (actor_ops[i].buf && !actor_ops[i].pull && actor_ops[i].number == number)
			rc = bw_send_cancel(actor_ep, &actor_ops[i]);
	}
	say("{\"event\":\"cancel\",\"op\":%d,\"result\":%d}", number, rc);
}

static void do_stats(void)
{
	char *text = bw_ep_stats(actor_ep);

	say("{\"event\":\"stats\",\"stats\":%s}", text ? text : "null");
	free(text);
}

static void do_close(const char *rest)
{
	uint64_t began = now_ns();

	bw_ep_close(actor_ep, strtoull(rest, NULL, 10) * 1000000);
	actor_ep = NULL;
	say("{\"event\":\"close\",\"ms\":%llu}",
	    (unsigned long long)((now_ns() - began) / 1000000));
}

/* Keep the processor busy without a call of the library: only the helper can serve peers. */
/* For so many milliseconds, or until the next command is there. */
static void do_compute(const char *rest)
{
	uint64_t until = now_ns() + strtoull(rest, NULL, 10) * 1000000;
	struct pollfd next = {.fd = STDIN_FILENO, .events = POLLIN};

	while (now_ns() < until && !poll(&next, 1, 0)) {
		for (volatile int i = 0; i < 100000; i++)
			;
	}
	say("{\"event\":\"compute\"}");
}

/* A child must neither disturb its parent's endpoint nor keep it alive. */
static void do_fork(const char *rest)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0 && strstr(rest, "linger")) {
		sleep(600); /* until the test ends it */
		_exit(0);
	}
	if (child == 0) {
		int rc = bw_send(actor_ep, 0, 1, 1, 0, "x", 1, 0, NULL);

		bw_progress(actor_ep);
		if (strstr(rest, "exit"))
			exit(rc == -EINVAL ? 0 : 1); /* destructors run */
		bw_ep_close(actor_ep, 1000000000);
		_exit(rc == -EINVAL ? 0 : 1);
	}
	if (!strstr(rest, "linger"))
		waitpid(child, &status, 0);
	say("{\"event\":\"fork\",\"child\":%d,\"status\":%d}", (int)child, status);
}

static void do_wait(const char *rest)
{
	uint64_t began = now_ns();
	int n = bw_wait(actor_ep, strtoull(rest, NULL, 10) * 1000000);

	say("{\"event\":\"wait\",\"result\":%d,\"ms\":%llu}", n,
	    (unsigned long long)((now_ns() - began) / 1000000));
}

static void do_policy(const char *rest)
{
	actor_policy = !strncmp(rest, "hold", 4)      ? POLICY_HOLD
		       : !strncmp(rest, "discard", 7) ? POLICY_DISCARD
		       : !strncmp(rest, "trunc", 5)   ? POLICY_TRUNCATE
		       : !strncmp(rest, "stop", 4)    ? POLICY_STOP
						      : POLICY_PULL;
	if (actor_policy == POLICY_TRUNCATE)
		actor_truncate = strtoull(rest + strlen("truncate"), NULL, 10);
	say("{\"event\":\"policy\"}");
}

static void do_mode(const char *rest)
{
	actor_mode = !strcmp(rest, "progress") ? MODE_PROGRESS
		     : !strcmp(rest, "fd")     ? MODE_FD
		     : !strcmp(rest, "idle")   ? MODE_IDLE
					       : MODE_WAIT;
	say("{\"event\":\"mode\"}");
}

static void do_count(const char *rest)
{
	actor_quiet = !strcmp(rest, "on");
	say("{\"event\":\"count\",\"count\":%llu,\"bad\":%llu}", (unsigned long long)actor_count,
	    (unsigned long long)actor_bad);
}

static void do_watch(const char *rest)
{
	unsigned int peer, on;

	if (sscanf(rest, "%u %u", &peer, &on) != 2)
		abort();
	bw_peer_watch(actor_ep, peer, on);
	say("{\"event\":\"watch\"}");
}

static void do_tell(const char *what, const char *rest)
{
	bw_peer_no peer = (bw_peer_no)strtoul(rest, NULL, 10);

	if (!strcmp(what, "status"))
		say("{\"event\":\"status\",\"status\":%d}", bw_peer_status(actor_ep, peer));
	else if (!strcmp(what, "describe"))
		say("{\"event\":\"describe\",\"text\":\"%s\"}", bw_peer_describe(actor_ep, peer));
	else
		say("{\"event\":\"eager\",\"max\":%u}", bw_eager_max(actor_ep, peer));
}

/* Commands that end or outlast the endpoint's lock. */
static bool act_unlocked(const char *line, const char *rest)
{
	if (!strcmp(line, "open"))
		do_open(rest);
	else if (!strcmp(line, "close"))
		do_close(rest);
	else if (!strcmp(line, "compute"))
		do_compute(rest);
	else if (!strcmp(line, "fork"))
		do_fork(rest);
	else if (!strcmp(line, "wait"))
		do_wait(rest);
	else if (!strcmp(line, "exit"))
		exit(atoi(rest));
	else
		return false;
	return true;
}

/* Handlers may run in another thread: what they share with commands is under the lock. */
static void act_locked(const char *line, const char *rest)
{
	if (!strcmp(line, "peer"))
		do_peer(rest);
	else if (!strcmp(line, "send"))
		do_send(rest);
	else if (!strcmp(line, "burst"))
		do_burst(rest);
	else if (!strcmp(line, "pull"))
		do_pull_held(rest);
	else if (!strcmp(line, "early"))
		do_pull_early(rest);
	else if (!strcmp(line, "read"))
		do_read(rest);
	else if (!strcmp(line, "cancel"))
		do_cancel(rest);
	else if (!strcmp(line, "policy"))
		do_policy(rest);
	else if (!strcmp(line, "mode"))
		do_mode(rest);
	else if (!strcmp(line, "count"))
		do_count(rest);
	else if (!strcmp(line, "watch"))
		do_watch(rest);
	else if (!strcmp(line, "pressure"))
		bw_ep_pressure(actor_ep, atoi(rest));
	else if (!strcmp(line, "stats"))
		do_stats();
	else
		do_tell(line, rest);
}

static void act(char *line)
{
	char *rest = strchr(line, ' ');

	line[strcspn(line, "\n")] = 0;
	if (rest)
		*rest++ = 0;
	else
		rest = line + strlen(line);
	if (act_unlocked(line, rest))
		return;
	bw_ep_lock(actor_ep);
	act_locked(line, rest);
	bw_ep_unlock(actor_ep);
}

/* Look at standard input for that long. False at its end. */
static bool listen_to_commands(int timeout_ms)
{
	static char line[8192];
	static size_t used;
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	char *end;
	ssize_t n;

	if (poll(&p, 1, timeout_ms) <= 0)
		return true;
	n = read(STDIN_FILENO, line + used, sizeof(line) - used - 1);
	if (n <= 0)
		return false;
	used += (size_t)n;
	line[used] = 0;
	while ((end = strchr(line, '\n'))) {
		char command[8192];

		memcpy(command, line, (size_t)(end - line) + 1);
		command[end - line + 1] = 0;
		used -= (size_t)(end - line) + 1;
		memmove(line, end + 1, used + 1);
		act(command);
	}
	return true;
}

/* Sleep on the endpoint's descriptor and the commands at once. */
static void sleep_on_fd(void)
{
	struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
			      {.fd = bw_ep_fd(actor_ep), .events = POLLIN}};
	uint64_t timeout_ns;

	while (bw_progress(actor_ep) > 0)
		;
	if (bw_ep_arm(actor_ep, &timeout_ns) == 0)
		poll(p, 2, timeout_ns > 1000000000 ? 1000 : (int)(timeout_ns / 1000000) + 1);
}

int main(void)
{
	bool more = true;

	region_fill();
	while (more) {
		if (!actor_ep || actor_mode == MODE_IDLE) {
			more = listen_to_commands(-1);
			continue;
		}
		if (actor_mode == MODE_WAIT)
			bw_wait(actor_ep, 5000000);
		else if (actor_mode == MODE_PROGRESS)
			for (int i = 0; i < 1000; i++)
				bw_progress(actor_ep);
		else
			sleep_on_fd();
		more = listen_to_commands(0);
	}
	if (actor_ep)
		bw_ep_close(actor_ep, 1000000000);
	free(actor_region);
	return 0;
}
