/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * provider_steps BYTES COUNT IDLE: as steps, with two endpoints of the libfabric provider, which is
 * linked in here: tagged messages to and fro, each received and read from its completion queue.
 * Endpoints have no helper thread, whose rounds are chance. Rounds that find nothing are counted:
 * libbeowire's call for one goes through this file.
 */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "bwf.h"

#include <stdlib.h>

#define TICK_NS	   5 /* of the clock, each time it is read */
#define BEGIN_NS   1000000000u
#define STILL_MAX  20000 /* rounds without anything in a row, after which the clock goes on */
#define ROUNDS_MAX 100000000u
#define NS_PER_S   1000000000u

struct end {
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	fi_addr_t peer;
	uint8_t *in, *out;
	uint64_t received, sent;
};

static uint64_t idle; /* rounds of either end in which nothing happened */
static uint64_t now = BEGIN_NS;
static uint64_t bytes;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fi_info *info;

int __real_bw_progress(struct bw_ep *ep);
int __wrap_bw_progress(struct bw_ep *ep);

/* In place of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	(void)clock;
	now += TICK_NS;
	t->tv_sec = (time_t)(now / NS_PER_S);
	t->tv_nsec = (long)(now % NS_PER_S);
	return 0;
}

/* Who sleeps finds that the time has come. By the machine's clock it always has, and by this one it
 * would only after as many calls as it has ticks until then: most of what a run took. */
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
	uint64_t at = (uint64_t)until->tv_sec * NS_PER_S + (uint64_t)until->tv_nsec;

	(void)clock, (void)flags, (void)left;
	if (at > now)
		now = at;
	return 0;
}

int __wrap_bw_progress(struct bw_ep *ep)
{
	static unsigned int row;
	uint64_t before = now;
	int n = __real_bw_progress(ep);

	if (n) {
		row = 0;
		return n;
	}
	idle++;
	if (++row <= STILL_MAX)
		now = before;
	sched_yield();
	return n;
}

static void must(long ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "provider_steps: %s: %s\n", what, strerror((int)-ret));
	exit(1);
}

/* Threads of this process. */
static unsigned int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int n = 0;

	if (!dir)
		exit(2);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2; /* without . and .. */
}

static void open_all(void)
{
	struct fi_info *hints = calloc(1, sizeof(*hints));
	struct fi_ep_attr attr = {.type = FI_EP_RDM};

	hints->caps = FI_TAGGED;
	hints->ep_attr = &attr;
	must(bwf_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	must(bwf_fabric_open(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
}

static void open_end(struct end *end, const char *side)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
	const char *interface;
	char name[32];

	snprintf(name, sizeof(name), "STEPS_INTERFACE_%s", side);
	interface = getenv(name);
	if (interface) {
		setenv("BEOWIRE_INTERFACE", interface, 1);
		setenv("BEOWIRE_NODE", side, 1);
	}
	*end = (struct end){.in = calloc(1, bytes), .out = malloc(bytes)};
	if (!end->in || !end->out)
		exit(2);
	memset(end->out, *side, bytes);
	must(fi_endpoint(domain, info, &end->ep, NULL), "fi_endpoint");
	must(fi_av_open(domain, &av, &end->av, NULL), "fi_av_open");
	must(fi_cq_open(domain, &cq, &end->cq, NULL), "fi_cq_open");
	must(fi_ep_bind(end->ep, &end->av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(end->ep), "fi_enable");
}

static void find(struct end *end, struct end *other)
{
	char name[64];
	size_t len = sizeof(name);

	must(fi_getname(&other->ep->fid, name, &len), "fi_getname");
	must(fi_av_insert(end->av, name, 1, &end->peer, 0, NULL) - 1, "fi_av_insert");
}

static void round_of(struct end *end)
{
	struct fi_cq_tagged_entry e;
	ssize_t n = fi_cq_read(end->cq, &e, 1);

	if (n == -FI_EAGAIN)
		return;
	must(n, "fi_cq_read");
	end->received += (e.flags & FI_RECV) != 0;
	end->sent += (e.flags & FI_SEND) != 0;
}

/* One message from one to the other, which has it in the end; and the one knows. */
static void carry(struct end *from, struct end *to)
{
	uint64_t received = to->received + 1, sent = from->sent + 1;
	ssize_t ret = -FI_EAGAIN;

	must(fi_trecv(to->ep, to->in, bytes, NULL, to->peer, 1, 0, to), "fi_trecv");
	for (unsigned int i = 0; i < ROUNDS_MAX; i++) {
		if (ret == -FI_EAGAIN)
			ret = fi_tsend(from->ep, from->out, bytes, NULL, from->peer, 1, from);
		if (ret != -FI_EAGAIN)
			must(ret, "fi_tsend");
		if (to->received < received)
			round_of(to);
		if (from->sent < sent || to->received < received)
			round_of(from);
		if (to->received == received && from->sent == sent)
			break;
		if (to->received == received)
			round_of(to);
	}
	if (memcmp(from->out, to->in, bytes) != 0)
		must(-FI_EIO, "a message is wrong");
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t more = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	struct end a, b;

	bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	if (argc != 4 || !bytes || !count) {
		fprintf(stderr, "usage: provider_steps BYTES COUNT IDLE\n");
		return 2;
	}
	setenv("BEOWIRE_HELPER", "off", 1);
	open_all();
	open_end(&a, "A");
	open_end(&b, "B");
	find(&a, &b);
	find(&b, &a);
	for (uint64_t i = 0; i < count; i++) {
		carry(&a, &b);
		carry(&b, &a);
	}
	for (more += idle; idle < more;) {
		round_of(&a);
		round_of(&b);
	}
	if (threads() != 1) {
		fprintf(stderr, "provider_steps: other threads count as well\n");
		return 1;
	}
	printf("%llu\n", (unsigned long long)idle);
	fi_close(&a.ep->fid);
	fi_close(&b.ep->fid);
	return 0;
}
