/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A file with the cluster's key: what is one, and what is said of each that is none. */
#include "key.h"
#include "beowire.h"
#include "ep.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "keyed.h"
#include "reliable.h"

#define DIGITS "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F"
#define PRINT  "571a469f" /* of these digits, by sha256sum */

static char directory[64], path[80], other[80];
static uint8_t key[BW_KEY_BYTES];
static char why[512];

static int setup(void **state)
{
	strcpy(directory, "/tmp/beowire-key-XXXXXX");
	assert_non_null(mkdtemp(directory));
	/* others are to reach what lies in it */
	assert_int_equal(chmod(directory, 0755), 0);
	snprintf(path, sizeof(path), "%s/key", directory);
	snprintf(other, sizeof(other), "%s/other", directory);
	assert_true(bw_keyed_start());
	clearenv();
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	rmdir(path);
	unlink(other);
	return rmdir(directory);
}

static void write_file(const char *name, const void *text, size_t len, mode_t mode)
{
	int fd;

	unlink(name);
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* What is said of this file; it has no key. */
static void refused(int error, const char *said)
{
	uint8_t before[BW_KEY_BYTES];

	memset(key, 0xEE, sizeof(key));
	memset(before, 0xEE, sizeof(before));
	memset(why, 0, sizeof(why));
	assert_int_equal(bw_key_load(path, key, why, sizeof(why)), error);
	if (!strstr(why, said))
		fail_msg("%s: not said: %s", why, said);
	assert_non_null(strstr(why, path));
	assert_memory_equal(key, before, sizeof(key));
}

static void refused_text(const char *text, const char *said)
{
	write_file(path, text, strlen(text), 0600);
	refused(-EINVAL, said);
}

static void taken(const char *text, mode_t mode)
{
	memset(key, 0, sizeof(key));
	write_file(path, text, strlen(text), mode);
	if (bw_key_load(path, key, why, sizeof(why)))
		fail_msg("%s", why);
	for (uint8_t i = 0; i < BW_KEY_BYTES; i++)
		assert_int_equal(key[i], i);
}

static void key__is_a_line_of_digits(void **state)
{
	taken(DIGITS "\n", 0600);
	taken(DIGITS "\n", 0400);
	taken(DIGITS, 0600);
	taken("# the cluster's key\n" DIGITS "\n# made today\n", 0600);
	taken("#\n#" DIGITS "\n" DIGITS, 0600);
}

static void key__is_nothing_else(void **state)
{
	static char large[BW_KEY_FILE_MAX + 2];

	refused_text("", "there is no line of 64 hexadecimal digits");
	refused_text("# none\n", "there is no line of 64 hexadecimal digits");
	refused_text("0" DIGITS "\n", "line 1 has 65 characters");
	refused_text(DIGITS + 1, "line 1 has 63 characters");
	refused_text("#\n" DIGITS "\r\n", "line 2 has 65 characters");
	refused_text("\n" DIGITS "\n", "line 1 has 0 characters");
	refused_text(DIGITS "\n\n", "line 2 follows the key");
	refused_text(DIGITS "\n" DIGITS "\n", "line 2 follows the key");
	for (const char *c = "/:@G`g \t\x80"; *c; c++) {
		char text[] = DIGITS;

		text[c[0] % 64] = *c;
		refused_text(text, "line 1 has a character that is no hexadecimal digit");
	}
	refused_text("00000000000000000000000000000000"
		     "00000000000000000000000000000000\n",
		     "zeroes");
	memset(large, '#', sizeof(large));
	write_file(path, large, sizeof(large), 0600);
	refused(-EINVAL, "4098 bytes; a key and its remarks have at most 4096");
}

static void reason__has_nothing_of_the_file(void **state)
{
	refused_text("secret\n", "line 1 has 6 characters");
	assert_null(strstr(why, "secret"));
}

static void file__is_missing(void **state)
{
	unlink(path);
	refused(-ENOENT, "there is no file");
	assert_non_null(strstr(why, "key new"));
}

/* Each bit by which others, or nobody, could do something with it. */
static void file__is_for_its_owner_alone(void **state)
{
	for (unsigned int mode = 0; mode < 010000; mode++) {
		bool good = mode == 0600 || mode == 0400;
		char said[16];

		/* without the owner's, only root can open it at all */
		if (__builtin_popcount(mode & ~0600u) > 1 || !(mode & 0400))
			continue;
		write_file(path, DIGITS, 64, mode);
		if (good) {
			assert_int_equal(bw_key_load(path, key, why, sizeof(why)), 0);
			continue;
		}
		snprintf(said, sizeof(said), "has mode %04o", mode);
		refused(-EPERM, said);
		assert_non_null(strstr(why, "chmod 600"));
		assert_int_equal(!!strstr(why, "not only its owner"), !!(mode & 077));
	}
}

static void file__is_a_file(void **state)
{
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	refused(-EINVAL, "is no regular file");
	rmdir(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(-EINVAL, "is no regular file"); /* and does not wait for who writes into it */
	unlink(path);
	assert_int_equal(symlink("/dev/null", path), 0);
	refused(-EINVAL, "is no regular file");
	unlink(path);
	assert_int_equal(symlink(path, path), 0);
	refused(-ELOOP, "cannot be opened");
}

static void link__leads_to_a_file_that_is_safe(void **state)
{
	unlink(path);
	write_file(other, DIGITS "\n", 65, 0600);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(bw_key_load(path, key, why, sizeof(why)), 0);
	assert_int_equal(key[31], 31);
	assert_int_equal(chmod(other, 0644), 0);
	refused(-EPERM, "to which a symbolic link leads, has mode 0644");
}

/* Root's are for all users, others' for nobody but them. */
static void file__belongs_to_us_or_to_root(void **state)
{
	if (geteuid() != 0)
		skip();
	write_file(path, DIGITS "\n", 65, 0600);
	assert_int_equal(chown(path, 1234, 0), 0);
	refused(-EPERM, "belongs to user 1234, not to this user or root");
	unlink(path);
	write_file(other, DIGITS "\n", 65, 0600);
	assert_int_equal(lchown(other, 1234, 0), 0);
	assert_int_equal(symlink(other, path), 0);
	refused(-EPERM, "to which a symbolic link leads, belongs to user 1234");
	assert_int_equal(seteuid(1234), 0);
	assert_int_equal(bw_key_load(path, key, why, sizeof(why)), 0);
	assert_int_equal(seteuid(0), 0);

	unlink(path);
	write_file(path, DIGITS "\n", 65, 0400);
	assert_int_equal(seteuid(1234), 0);
	refused(-EACCES, "cannot be opened: Permission denied");
	assert_int_equal(seteuid(0), 0);
}

static void fingerprint__tells_keys_apart(void **state)
{
	char print[BW_KEY_FINGERPRINT], another[BW_KEY_FINGERPRINT];

	for (uint8_t i = 0; i < BW_KEY_BYTES; i++)
		key[i] = i;
	bw_key_fingerprint(print, key);
	assert_string_equal(print, PRINT);
	key[31] ^= 1;
	bw_key_fingerprint(another, key);
	assert_string_not_equal(print, another);
}

static void no_message(void *arg, const struct bw_message *m)
{
}

static void no_end(void *arg, void *op, int status)
{
}

static void no_pull(void *arg, void *op, int status, uint64_t len)
{
}

static void no_down(void *arg, bw_peer_no peer, int status)
{
}

/* No endpoint without the key that was asked for; one with it forgets it at its end. */
static void endpoint__has_the_key_or_does_not_open(void **state)
{
	static const struct bw_handlers handlers = {
		.message = no_message, .sent = no_end, .pulled = no_pull, .peer_down = no_down};
	const struct bw_ep_attr attr = {.handlers = &handlers, .no_helper = true};
	const char *said = "";
	struct bw_ep *ep;

	setenv("BEOWIRE_LINKS", "local", 1);
	setenv("BEOWIRE_KEY", path, 1);
	write_file(path, DIGITS "\n", 65, 0640);
	assert_int_equal(bw_ep_open(&ep, &attr, &said), -EPERM);
	assert_non_null(strstr(said, "BEOWIRE_KEY: "));
	assert_non_null(strstr(said, "mode 0640"));

	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(bw_ep_open(&ep, &attr, &said), 0);
	assert_true(ep->keyed);
	assert_int_equal(ep->key[31], 0); /* the engine has made of it what it needs */
	assert_false(ep->env.encrypt);
	bw_ep_close(ep, 0);

	setenv("BEOWIRE_ENCRYPT", "1", 1);
	assert_int_equal(bw_ep_open(&ep, &attr, &said), 0);
	assert_true(ep->keyed && ep->env.encrypt);
	assert_true(((struct bw_engine *)ep->engine)->cfg.features & BW_FEATURE_ENCRYPT);
	bw_ep_close(ep, 0);

	unsetenv("BEOWIRE_KEY");
	assert_int_equal(bw_ep_open(&ep, &attr, &said), -EINVAL);
	assert_non_null(strstr(said, "BEOWIRE_ENCRYPT=1 is not valid without BEOWIRE_KEY"));
	unsetenv("BEOWIRE_ENCRYPT");
	assert_int_equal(bw_ep_open(&ep, &attr, &said), 0);
	assert_false(ep->keyed);
	bw_ep_close(ep, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key__is_a_line_of_digits),
		cmocka_unit_test(key__is_nothing_else),
		cmocka_unit_test(reason__has_nothing_of_the_file),
		cmocka_unit_test(file__is_missing),
		cmocka_unit_test(file__is_for_its_owner_alone),
		cmocka_unit_test(file__is_a_file),
		cmocka_unit_test(link__leads_to_a_file_that_is_safe),
		cmocka_unit_test(file__belongs_to_us_or_to_root),
		cmocka_unit_test(fingerprint__tells_keys_apart),
		cmocka_unit_test(endpoint__has_the_key_or_does_not_open),
	};

	return cmocka_run_group_tests_name("key", tests, setup, teardown);
}
