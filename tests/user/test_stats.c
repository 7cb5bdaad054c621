/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files of counters in a directory in which others may have prepared something, and the files
 * that a child of fork() must not write.
 */
#include "endpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/beowire-test-stats-XXXXXX";
static char path[PATH_MAX], part[PATH_MAX], victim[PATH_MAX];
static struct bw_ep *ep;
static struct told seen;

static int setup(void **state)
{
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	setenv("BEOWIRE_STATS", dir, 1);
	ep = endpoint_open("udp", &seen);
	snprintf(path, sizeof(path), "%s/%s-%d-%u.json", dir, ep->host, (int)getpid(), ep->serial);
	snprintf(part, sizeof(part), "%s/%s-%d-%u.json.part", dir, ep->host, (int)getpid(),
		 ep->serial);
	snprintf(victim, sizeof(victim), "%s/victim", dir);
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	unlink(part);
	unlink(victim);
	return rmdir(dir);
}

static void victim_make(void)
{
	int fd = open(victim, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_int_equal(write(fd, "precious", 8), 8);
	close(fd);
}

static void assert_victim_is_whole(void)
{
	char text[32];
	int fd = open(victim, O_RDONLY);

	assert_int_equal(read(fd, text, sizeof(text)), 8);
	assert_memory_equal(text, "precious", 8);
	close(fd);
}

static void assert_counters(void)
{
	struct stat status;
	char first;
	int fd;

	assert_int_equal(lstat(path, &status), 0);
	assert_true(S_ISREG(status.st_mode));
	fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, &first, 1), 1);
	assert_int_equal(first, '{');
	close(fd);
	assert_int_equal(lstat(part, &status), -1);
}

static int files(void)
{
	DIR *d = opendir(dir);
	int n = -2; /* the directory itself and the one above it */

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void stats__are_written_at_the_close(void **state)
{
	struct stat status;

	umask(027);
	bw_ep_close(ep, 0);
	assert_counters();
	assert_int_equal(files(), 1);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0640);
}

static void stats__follow_no_link(void **state)
{
	victim_make();
	assert_int_equal(symlink(victim, part), 0);
	assert_int_equal(symlink(victim, path), 0);
	bw_ep_close(ep, 0);
	assert_victim_is_whole();
	assert_counters();
}

static void stats__write_into_no_other_file(void **state)
{
	victim_make();
	assert_int_equal(link(victim, part), 0);
	bw_ep_close(ep, 0);
	assert_victim_is_whole();
	assert_counters();
}

/* A directory cannot be taken away, as little as a file of another user under /tmp. */
static void stats__are_given_up_where_something_stays_in_the_way(void **state)
{
	assert_int_equal(mkdir(part, 0700), 0);
	bw_ep_close(ep, 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(rmdir(part), 0);
}

static void child_of_fork__writes_nothing(void **state)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(files(), 0);
	bw_ep_close(ep, 0);
	assert_counters();
}

/* Nor does it close in the parent's name, which would take the parent's file. */
static void child_of_fork__closes_without_counters(void **state)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		bw_ep_close(ep, 0);
		exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(files(), 0);
	bw_ep_close(ep, 0);
}

/* What the counters say of a key: the text behind it. */
static char *value_of(const char *key)
{
	char *text = bw_ep_stats(ep), *at, *value;

	assert_non_null(text);
	at = strstr(text, key);
	assert_non_null(at);
	value = strdup(at + strlen(key));
	free(text);
	return value;
}

static void assert_value(const char *key, const char *value)
{
	char *had = value_of(key);

	had[strlen(value)] = 0;
	assert_string_equal(had, value);
	free(had);
}

/* Whatever a host is called, and a host may call itself anything, it is one string of JSON. */
static void stats__quote_names(void **state)
{
	strcpy(ep->host, "a\"b\\c\n\x1b[d");
	assert_value("{\"host\":", "\"a\\\"b\\\\c[d\",");
	strcpy(ep->host, "plain");
	assert_value("{\"host\":", "\"plain\",");
	/* Its file has the name that it has last. */
	snprintf(path, sizeof(path), "%s/plain-%d-%u.json", dir, (int)getpid(), ep->serial);
	bw_ep_close(ep, 0);
}

/* Several interfaces are one link, and each is told by itself. */
static void stats__add_interfaces_up(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct bw_packet *p = &ep->packet[i];
		const struct bw_link_counters c = {1, 2, 3, 4, 5, 6, 7};

		p->fd = -1;
		p->batch = bw_batch_new(0, false);
		p->batch->errors = 100;
		snprintf(p->name, sizeof(p->name), "eth%d", i);
		p->count = c;
		p->count.tx_frames += (uint64_t)i;
	}
	ep->packets = 2;
	assert_value("\"packet\":{",
		     "\"tx_frames\":3,\"rx_frames\":4,\"tx_bytes\":6,\"rx_bytes\":8,"
		     "\"tx_payload\":10,\"rx_payload\":12,\"rx_overruns\":14}");
	assert_value("\"eth0\":{", "\"tx_frames\":1,");
	assert_value("\"eth1\":{", "\"tx_frames\":2,");
	assert_value("\"overrun\":", "14,\"send_error\":200}");
	for (int i = 0; i < 2; i++) {
		bw_batch_free(ep->packet[i].batch);
		ep->packet[i].batch = NULL;
	}
	ep->packets = 0;
	bw_ep_close(ep, 0);
}

/* How a program waited that only calls bw_progress(). */
static void stats__tell_of_waiting(void **state)
{
	ep->yields = 5;
	ep->naps = 6;
	assert_value("\"yields\":", "5,\"naps\":6,");
	bw_ep_close(ep, 0);
}

/* Who was refused or given up on this node. */
static void stats__tell_of_the_local_link(void **state)
{
	struct bw_local_counters *l;

	bw_ep_close(ep, 0);
	unlink(path);
	ep = endpoint_open("local", &seen);
	snprintf(path, sizeof(path), "%s/%s-%d-%u.json", dir, ep->host, (int)getpid(), ep->serial);
	l = (struct bw_local_counters *)bw_local_counters(ep->local);
	l->turned_away = 7;
	l->broken = 8;
	assert_value("\"local_turned_away\":", "7,\"local_broken\":8,");
	bw_ep_close(ep, 0);
	assert_counters();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stats__are_written_at_the_close),
		TEST(stats__follow_no_link),
		TEST(stats__write_into_no_other_file),
		TEST(stats__are_given_up_where_something_stays_in_the_way),
		TEST(stats__quote_names),
		TEST(stats__add_interfaces_up),
		TEST(stats__tell_of_waiting),
		TEST(stats__tell_of_the_local_link),
		TEST(child_of_fork__writes_nothing),
		TEST(child_of_fork__closes_without_counters),
	};

	return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
