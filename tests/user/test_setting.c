/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files of settings: which lines count, which are named, and whose files are read at all. */
#include "env.h"
#include "setting.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* What was read of files stays in memory, and in sight. */
static struct bw_settings many[64], *at = many;
static char room[4][BW_SETTINGS_FILE_MAX + 2];

static const struct bw_setting *of(const char *name)
{
	for (int i = 0; bw_settings_names[i]; i++)
		if (!strcmp(bw_settings_names[i], name))
			return &at->of[i];
	fail();
	return NULL;
}

/* The text as the file that is taken as number `i`. */
static void take(int i, const char *text)
{
	static const char *const paths[] = {"/a", "/b", "/c", "/d"};

	strcpy(room[i], text);
	bw_settings_parse(at, room[i], strlen(text), paths[i]);
}

static void take_only(const char *text)
{
	memset(at, 0, sizeof(*at));
	take(0, text);
}

static void line__is_a_name_and_a_value(void **state)
{
	take_only(
		"# BEOWIRE_MTU = 1\n\n \t BEOWIRE_LINKS \t=  local,udp \t\nBEOWIRE_NODE=a = b #c\n"
		"\t# BEOWIRE_MTU = 2\nBEOWIRE_KEY =\nBEOWIRE_RING = 5");
	assert_int_equal(at->troubles, 0);
	assert_null(of("BEOWIRE_MTU")->value);
	assert_string_equal(of("BEOWIRE_LINKS")->value, "local,udp");
	assert_int_equal(of("BEOWIRE_LINKS")->line, 3);
	assert_string_equal(of("BEOWIRE_LINKS")->path, "/a");
	assert_string_equal(of("BEOWIRE_NODE")->value, "a = b #c");
	assert_string_equal(of("BEOWIRE_KEY")->value, "");
	assert_string_equal(of("BEOWIRE_RING")->value, "5");
}

/* Nothing of them is taken, and each is named by its file and line; what follows is read. */
static void line__that_is_none_is_named(void **state)
{
	static const char *const wrong[] = {
		"BEOWIRE_MTU 1500",	"= 1500",
		"beowire_mtu = 1500",	"BEOWIRE MTU = 1500",
		"-BEOWIRE_MTU = 1500",	"export BEOWIRE_MTU=1500",
		"BEOWIRE_MTUX = 1500",	"BEOWIRE_MT = 1500",
		"BEOWIRE_MTU = 15\r",	"BEOWIRE_MTU = 15\x1b[2J",
		"BEOWIRE_MTU = 15\x7f",
	};
	char text[256];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), "\n%s\nBEOWIRE_WAIT = spin\n", wrong[i]);
		take_only(text);
		assert_int_equal(at->troubles, 1);
		assert_non_null(strstr(at->trouble[0], "/a:2: "));
		assert_null(of("BEOWIRE_MTU")->value);
		assert_string_equal(of("BEOWIRE_WAIT")->value, "spin");
	}
}

/* A zero byte does not hide what follows it in its line. */
static void line__with_a_zero_byte_is_named(void **state)
{
	char text[] = "BEOWIRE_MTU = 1500\0x\nBEOWIRE_WAIT = spin\n";

	memset(at, 0, sizeof(*at));
	bw_settings_parse(at, text, sizeof(text) - 1, "/a");
	assert_int_equal(at->troubles, 1);
	assert_null(of("BEOWIRE_MTU")->value);
	assert_string_equal(of("BEOWIRE_WAIT")->value, "spin");
}

static void line__is_as_long_as_allowed(void **state)
{
	char text[BW_SETTINGS_LINE_MAX + 2] = "BEOWIRE_NODE=";

	memset(text + strlen(text), 'a', sizeof(text) - 1 - strlen(text));
	text[BW_SETTINGS_LINE_MAX] = 0;
	take_only(text);
	assert_int_equal(at->troubles, 0);
	assert_int_equal(strlen(of("BEOWIRE_NODE")->value), BW_SETTINGS_LINE_MAX - 13);
	text[BW_SETTINGS_LINE_MAX] = 'a';
	take_only(text);
	assert_int_equal(at->troubles, 1);
	assert_null(of("BEOWIRE_NODE")->value);
}

static void troubles__are_counted_beyond_those_told(void **state)
{
	char text[4096] = "";

	for (int i = 0; i < 100; i++)
		strcat(text, "nonsense\n");
	take_only(text);
	assert_int_equal(at->troubles, 100);
	assert_non_null(strstr(at->trouble[BW_SETTINGS_TROUBLES - 1], "/a:8: "));
}

/* Within a file the last line counts, among files the first; an empty value is one. */
static void file__that_comes_first_counts(void **state)
{
	take_only("BEOWIRE_WAIT = spin\nBEOWIRE_KEY =\nBEOWIRE_WAIT = block\n");
	take(1, "BEOWIRE_WAIT = adaptive\nBEOWIRE_KEY = /k\nBEOWIRE_MTU = 600\n");
	assert_string_equal(of("BEOWIRE_WAIT")->value, "block");
	assert_int_equal(of("BEOWIRE_WAIT")->line, 3);
	assert_string_equal(of("BEOWIRE_KEY")->value, "");
	assert_string_equal(of("BEOWIRE_MTU")->value, "600");
	assert_string_equal(of("BEOWIRE_MTU")->path, "/b");
}

/* ---- files ---- */

static void write_file(const char *path, size_t bytes, mode_t mode)
{
	FILE *f;

	unlink(path);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("BEOWIRE_MTU=600\n", f);
	for (size_t i = 16; i < bytes; i++)
		putc(i == 16 ? '#' : ' ', f);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
}

static bool is_read(const char *path, bool own, unsigned int troubles)
{
	if (++at == many + sizeof(many) / sizeof(many[0]))
		fail();
	bw_settings_read(at, path, own, false);
	assert_int_equal(at->troubles, troubles);
	assert_true(!troubles || !strncmp(at->trouble[0], path, strlen(path)));
	return of("BEOWIRE_MTU")->value;
}

static void file__is_read_if_nobody_else_may_write_it(void **state)
{
	char place[] = "/tmp/test_setting.XXXXXX", path[64];

	assert_non_null(mkdtemp(place));
	snprintf(path, sizeof(path), "%s/f", place);
	assert_false(is_read(path, true, 0)); /* it is not there */
	assert_false(is_read("/dev/null/f", true, 0));
	assert_false(is_read(place, true, 1)); /* a directory */
	for (int own = 0; own < 2; own++) {
		write_file(path, 16, 0644);
		assert_true(is_read(path, own, 0));
		write_file(path, 16, 0664);
		assert_false(is_read(path, own, 1));
		write_file(path, 16, 0646);
		assert_false(is_read(path, own, 1));
		write_file(path, BW_SETTINGS_FILE_MAX, 0600);
		assert_true(is_read(path, own, 0));
		write_file(path, BW_SETTINGS_FILE_MAX + 1, 0600);
		assert_false(is_read(path, own, 1));
	}
	write_file(path, 16, 0644);
	if (geteuid() == 0) { /* only root can give it away, and take the part of another user */
		assert_int_equal(chmod(place, 0755), 0);
		assert_int_equal(chown(path, 4321, 4321), 0);
		assert_false(is_read(path, true, 1));
		assert_true(is_read(path, false, 0));
		assert_int_equal(chown(path, 0, 0), 0);
		assert_int_equal(seteuid(4321), 0);
		assert_true(is_read(path, true, 0)); /* root's */
		assert_int_equal(seteuid(0), 0);
	}
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(is_read(path, true, 1)); /* and nobody waits for its other end */
	unlink(path);
	rmdir(place);
}

/* The environment comes before files, also with nothing; a wrong value of a file is an error that
 * names its line. (The files of this process are read by its first question: see main.) */
static void env__reads_the_files(void **state)
{
	struct bw_env env;
	const char *why = "";

	clearenv();
	assert_int_equal(bw_env_read(&env, &why), -EINVAL);
	assert_non_null(strstr(why, "BEOWIRE_WAIT=fast ("));
	assert_non_null(strstr(why, "/f:1) is not valid"));
	setenv("BEOWIRE_WAIT", "block", 1);
	assert_int_equal(bw_env_read(&env, &why), 0);
	assert_int_equal(env.wait, BW_WAIT_BLOCK);
	assert_int_equal(env.mtu, 700);
	setenv("BEOWIRE_WAIT", "", 1);
	setenv("BEOWIRE_MTU", "", 1);
	assert_int_equal(bw_env_read(&env, &why), 0);
	assert_int_equal(env.wait, BW_WAIT_ADAPTIVE);
	assert_int_equal(env.mtu, 0);
}

/* ---- programs with another's rights ---- */

static bool secure;

unsigned long __real_getauxval(unsigned long type);

unsigned long __wrap_getauxval(unsigned long type)
{
	return type == AT_SECURE ? secure : __real_getauxval(type);
}

/* What this program, executed anew, finds by this variable. */
static int executed(const char *how, const char *variable, const char *value)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		clearenv();
		setenv(variable, value, 1);
		execl("/proc/self/exe", "test_setting", how, NULL);
		_exit(9);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void secure__hears_nothing_from_its_caller(void **state)
{
	char place[] = "/tmp/test_setting.XXXXXX", inside[64], path[96];

	assert_non_null(mkdtemp(place));
	snprintf(inside, sizeof(inside), "%s/.config", place);
	assert_int_equal(mkdir(inside, 0700), 0);
	snprintf(path, sizeof(path), "%s/beowire.conf", inside);
	write_file(path, 16, 0644);
	for (int rights = 0; rights < 2; rights++) {
		const char *how = rights ? "secure" : "plain";

		assert_int_equal(executed(how, "BEOWIRE_CONFIG", path), !rights);
		assert_int_equal(executed(how, "XDG_CONFIG_HOME", inside), !rights);
		assert_int_equal(executed(how, "HOME", place), !rights);
	}
	assert_int_equal(executed("plain", "XDG_CONFIG_HOME", "."), 0);
	unlink(path);
	rmdir(inside);
	rmdir(place);
}

/* The part of the program that is executed anew. */
static int ask(const char *how)
{
	const char *value;

	secure = !strcmp(how, "secure");
	value = bw_setting("BEOWIRE_MTU");
	return value && !strcmp(value, "600");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line__is_a_name_and_a_value),
		cmocka_unit_test(line__that_is_none_is_named),
		cmocka_unit_test(line__with_a_zero_byte_is_named),
		cmocka_unit_test(line__is_as_long_as_allowed),
		cmocka_unit_test(troubles__are_counted_beyond_those_told),
		cmocka_unit_test(file__that_comes_first_counts),
		cmocka_unit_test(file__is_read_if_nobody_else_may_write_it),
		cmocka_unit_test(env__reads_the_files),
		cmocka_unit_test(secure__hears_nothing_from_its_caller),
	};
	char place[] = "/tmp/test_setting.XXXXXX", path[64];
	FILE *f;

	if (argc > 1)
		return ask(argv[1]);
	umask(022);
	snprintf(path, sizeof(path), "%s/f", mkdtemp(place) ?: "/");
	f = fopen(path, "w");
	if (!f)
		return 1;
	fputs("BEOWIRE_WAIT = fast\nBEOWIRE_MTU = 700\n", f);
	fclose(f);
	setenv("BEOWIRE_CONFIG", path, 1);
	bw_setting("BEOWIRE_WAIT");
	unlink(path);
	rmdir(place);
	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
