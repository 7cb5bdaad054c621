/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A node's key: who may set it, what is one, and what is told of it. That the module computes with
 * keys as the standards say is checked by itself when it is loaded: else nothing here would run.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kuser.h"

#define FILE_NAME "/proc/sys/net/beowire/key"
#define DIGITS	  "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F"
#define PRINT	  "571a469f\n" /* of these digits, as ./beowire key show tells it */

/* 0 or a negative errno; in the node that the thread is in. */
static int set(const char *text)
{
	int fd = open(FILE_NAME, O_WRONLY), error = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		error = -errno;
	close(fd);
	return error;
}

static const char *told(void)
{
	static char text[128];
	int fd = open(FILE_NAME, O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	assert_true(fd >= 0 && n >= 0);
	text[n] = 0;
	close(fd);
	return text;
}

static void test_a_key_is_told_by_its_fingerprint(void **state)
{
	char begin[8];
	int fd;

	kt_enter("a");
	assert_string_equal(told(), "none\n");
	assert_int_equal(set(DIGITS "\n"), 0);
	assert_string_equal(told(), PRINT);
	kt_enter("b");
	assert_string_equal(told(), "none\n");
	assert_int_equal(set("1" DIGITS), -EINVAL);
	kt_enter("a");
	fd = open(FILE_NAME,
		  O_RDONLY); /* a short read gets the beginning, and the next one nothing */
	assert_int_equal(read(fd, begin, 3), 3);
	assert_memory_equal(begin, PRINT, 3);
	assert_int_equal(read(fd, begin, sizeof(begin)), 0);
	close(fd);
	assert_int_equal(set("none\n"), 0);
	assert_string_equal(told(), "none\n");
	assert_int_equal(set(DIGITS), 0);
	assert_string_equal(told(), PRINT);
	assert_int_equal(set("none"), 0);
}

/* What is none leaves the one that is there. */
static void test_a_key_is_64_digits(void **state)
{
	static const char *const none[] = {
		"\n",
		"no",
		"none\n\n",
		"0" DIGITS,
		DIGITS "0\n",
		DIGITS "\n\n",
		" " DIGITS,
		"# key\n" DIGITS,
		"0000000000000000000000000000000000000000000000000000000000000000\n",
		"000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1G",
		"000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1",
	};
	int fd;

	kt_enter("a");
	assert_int_equal(set(DIGITS), 0);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_int_equal(set(none[i]), -EINVAL);
		assert_string_equal(told(), PRINT);
	}
	fd = open(FILE_NAME, O_WRONLY); /* in pieces it is none either */
	kt_refused(write(fd, DIGITS, 32), EINVAL);
	assert_int_equal(pwrite(fd, DIGITS, 64, 64), -1);
	close(fd);
	assert_string_equal(told(), PRINT);
	assert_int_equal(set("none"), 0);
}

static int set_as_told(void *arg)
{
	return -set(arg);
}

static int print_is_told(void *arg)
{
	return strcmp(told(), PRINT) != 0;
}

/* Root, but not the network's administrator. */
static int set_without_capability(void *arg)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return 200;
	data[0].effective &= ~(1u << CAP_NET_ADMIN);
	data[0].permitted &= ~(1u << CAP_NET_ADMIN);
	if (syscall(SYS_capset, &head, data))
		return 201;
	return -set(arg);
}

/* Administrator of a network of his own. */
static int set_in_own_namespace(void *arg)
{
	FILE *map;

	/* who has put on another uid may not write to his own /proc/self otherwise */
	if (prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return 202;
	map = fopen("/proc/self/uid_map", "w");
	if (!map || fprintf(map, "0 %d 1", KT_ALICE) < 0 || fclose(map))
		return 203;
	if (strcmp(told(), "none\n"))
		return 204;
	return set(DIGITS) || strcmp(told(), PRINT);
}

static void test_a_key_is_its_administrators(void **state)
{
	kt_enter("a");
	assert_int_equal(kt_as(KT_ALICE, set_as_told, DIGITS), EACCES);
	assert_int_equal(kt_as(0, set_without_capability, DIGITS), EPERM);
	assert_string_equal(told(), "none\n");
	assert_int_equal(set(DIGITS), 0);
	assert_int_equal(kt_as(KT_ALICE, print_is_told, NULL), 0);
	assert_int_equal(kt_as(KT_ALICE, set_as_told, "none"), EACCES);
	assert_int_equal(set("none"), 0);
	assert_int_equal(kt_as(KT_ALICE, set_in_own_namespace, NULL), 0);
	assert_string_equal(told(), "none\n");
}

/* Nor does the log have it, or any part of it, whatever was wrong with it. */
static void test_a_key_is_in_no_log(void **state)
{
	static char log[1 << 20];
	int n;

	kt_enter("a");
	assert_int_equal(set(DIGITS), 0);
	assert_int_equal(set(DIGITS "0"), -EINVAL);
	assert_int_equal(set("none"), 0);
	n = klogctl(3 /* SYSLOG_ACTION_READ_ALL */, log, sizeof(log) - 1);
	assert_true(n > 0);
	log[n] = 0;
	assert_null(strstr(log, "0c0d0e0f"));
}

static void test_a_new_namespace_has_none(void **state)
{
	for (int i = 0; i < 20; i++) {
		kt_shell("ip netns add fresh");
		kt_enter("fresh");
		assert_string_equal(told(), "none\n");
		assert_int_equal(set(DIGITS), 0);
		kt_enter("a");
		kt_shell("ip netns del fresh");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_a_key_is_told_by_its_fingerprint), kt_test(test_a_key_is_64_digits),
		kt_test(test_a_key_is_its_administrators),	kt_test(test_a_key_is_in_no_log),
		kt_test(test_a_new_namespace_has_none),
	};

	return cmocka_run_group_tests(tests, kt_open_to_all, NULL);
}
