/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many runs. Worker processes take every n-th seed and tell of each through a pipe before and after
 * it; the first failure ends all and prints the command that replays it.
 */
#include "batch.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIM_JOBS_MAX   256
#define SIM_HANG_S     300 /* real seconds after which a run counts as hanging */
#define SIM_PROGRESS_S 5

/* What a worker tells; shorter than PIPE_BUF, so that it arrives in one piece. */
struct sim_news {
	uint64_t seed, frames, delivered, pulled, downs, checks;
	uint32_t job;
	bool ended, ok;
	char why[400];
};

void sim_batch_spec(const struct sim_batch *b, uint64_t seed, struct sim_spec *spec)
{
	uint32_t i;

	if (b->scenario)
		*spec = *b->scenario;
	else
		sim_scenario_draw(spec, seed);
	spec->singly |= b->singly;
	sim_scenario_defaults(spec);
	if (b->protocol == &bw_reliable)
		return;
	/* Datagrams fit into a frame, and those that are lost stay lost. */
	for (i = 0; i < spec->planes; i++)
		if (spec->eager_max > spec->wire[i].mtu - 48)
			spec->eager_max = spec->wire[i].mtu - 48;
	if (spec->eager_max < 64)
		spec->eager_max = 64;
	spec->work = SIM_WORK_MIX;
}

static void sim_batch_one(const struct sim_batch *b, uint64_t seed, struct sim_news *news)
{
	struct sim_spec spec;
	struct sim *s;

	sim_batch_spec(b, seed, &spec);
	s = sim_new(&spec, b->protocol, seed);
	news->ok = sim_run(s);
	news->frames = s->frames;
	news->delivered = s->delivered;
	news->pulled = s->pulled;
	news->downs = s->downs;
	news->checks = s->checks;
	snprintf(news->why, sizeof(news->why), "%s", s->why);
	sim_free(s);
}

static void sim_batch_worker(const struct sim_batch *b, uint32_t job, int fd)
{
	uint64_t seed;

	for (seed = b->first + job; seed <= b->last; seed += b->jobs) {
		struct sim_news news = {.seed = seed, .job = job};

		if (write(fd, &news, sizeof(news)) != sizeof(news))
			_exit(0);
		alarm(SIM_HANG_S);
		sim_batch_one(b, seed, &news);
		news.ended = true;
		if (write(fd, &news, sizeof(news)) != sizeof(news) || !news.ok)
			_exit(0);
	}
	_exit(0);
}

struct sim_batch_state {
	pid_t pid[SIM_JOBS_MAX];
	uint64_t seed[SIM_JOBS_MAX]; /* what each job is at */
	bool at_it[SIM_JOBS_MAX];
	uint64_t runs, frames, delivered, pulled, downs, checks;
	uint64_t bad_seed;
	bool failed;
	char why[400];
};

static void sim_batch_fail(struct sim_batch_state *st, uint64_t seed, const char *why)
{
	if (st->failed)
		return;
	st->failed = true;
	st->bad_seed = seed;
	snprintf(st->why, sizeof(st->why), "%s", why);
}

static void sim_batch_note(struct sim_batch_state *st, const struct sim_news *news)
{
	st->seed[news->job] = news->seed;
	st->at_it[news->job] = !news->ended;
	if (!news->ended)
		return;
	st->runs++;
	st->frames += news->frames;
	st->delivered += news->delivered;
	st->pulled += news->pulled;
	st->downs += news->downs;
	st->checks += news->checks;
	if (!news->ok)
		sim_batch_fail(st, news->seed, news->why);
}

static double sim_batch_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void sim_batch_end(const struct sim_batch *b, struct sim_batch_state *st, bool enough)
{
	uint32_t i;
	int status;

	for (i = 0; i < b->jobs; i++) {
		if (enough || st->failed)
			kill(st->pid[i], SIGKILL);
		if (waitpid(st->pid[i], &status, 0) != st->pid[i] || !st->at_it[i])
			continue;
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
			sim_batch_fail(st, st->seed[i], "the run hangs");
		else if (!(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
			sim_batch_fail(st, st->seed[i], "the run crashed");
	}
}

static int sim_batch_result(const struct sim_batch *b, const struct sim_batch_state *st,
			    double took)
{
	const char *scenario = b->scenario ? b->scenario->name : "random";

	if (b->json)
		printf("{\"protocol\": \"%s\", \"scenario\": \"%s\", \"runs\": %llu, \"frames\": "
		       "%llu, "
		       "\"messages\": %llu, \"pulls\": %llu, \"peers_lost\": %llu, "
		       "\"checks\": %llu, \"seconds\": %.2f, \"failed_seed\": ",
		       b->protocol->name, scenario, (unsigned long long)st->runs,
		       (unsigned long long)st->frames, (unsigned long long)st->delivered,
		       (unsigned long long)st->pulled, (unsigned long long)st->downs,
		       (unsigned long long)st->checks, took);
	else
		printf("%s, scenario %s: %llu runs, %.1f million frames, %llu messages, %llu "
		       "pulls, "
		       "%llu peers lost, %.1f s\n",
		       b->protocol->name, scenario, (unsigned long long)st->runs,
		       (double)st->frames / 1e6, (unsigned long long)st->delivered,
		       (unsigned long long)st->pulled, (unsigned long long)st->downs, took);
	if (b->json && st->failed)
		printf("%llu}\n", (unsigned long long)st->bad_seed);
	else if (b->json)
		printf("null}\n");
	if (!st->failed)
		return 0;
	fprintf(stderr, "beowire-sim: seed %llu: %s\n", (unsigned long long)st->bad_seed, st->why);
	fprintf(stderr, "replay: beowire-sim --seed %llu --scenario %s --protocol %s --trace\n",
		(unsigned long long)st->bad_seed, scenario, b->protocol->name);
	return 1;
}

int sim_batch_run(const struct sim_batch *b)
{
	static struct sim_batch_state st;
	double start = sim_batch_seconds(), told = start, now;
	struct sim_news news;
	bool enough = false;
	int fd[2];
	uint32_t i;

	if (pipe(fd)) {
		perror("beowire-sim: pipe");
		return 2;
	}
	for (i = 0; i < b->jobs; i++) {
		st.pid[i] = fork();
		if (st.pid[i] < 0) {
			perror("beowire-sim: fork");
			return 2;
		}
		if (!st.pid[i]) {
			close(fd[0]);
			sim_batch_worker(b, i, fd[1]);
		}
	}
	close(fd[1]);
	while (!enough && !st.failed && read(fd[0], &news, sizeof(news)) == sizeof(news)) {
		sim_batch_note(&st, &news);
		enough = b->frames && st.frames >= b->frames;
		now = sim_batch_seconds();
		if (now - told < SIM_PROGRESS_S)
			continue;
		told = now;
		fprintf(stderr, "%llu runs, %.1f million frames, %.2f million/s\n",
			(unsigned long long)st.runs, (double)st.frames / 1e6,
			(double)st.frames / 1e6 / (now - start));
	}
	sim_batch_end(b, &st, enough);
	close(fd[0]);
	return sim_batch_result(b, &st, sim_batch_seconds() - start);
}
