/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files of settings; see setting.h. A file is opened once, and what was opened is what is checked
 * and read. Lines that are no settings are troubles, which never show more of a file than a name.
 */
#include "setting.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "whole.h"

const char *const bw_settings_names[] = {
	"BEOWIRE_CACHE",
	"BEOWIRE_CHECKSUM",
	"BEOWIRE_CLUSTER",
	"BEOWIRE_DEAD_TIMEOUT",
	"BEOWIRE_DOMAINS",
	"BEOWIRE_EAGER_MAX",
	"BEOWIRE_ENCRYPT",
	"BEOWIRE_ETHERTYPE",
	"BEOWIRE_FANOUT",
	"BEOWIRE_HELPER",
	"BEOWIRE_HUGE_PAGES",
	"BEOWIRE_INTERFACE",
	"BEOWIRE_INTERFACES",
	"BEOWIRE_KEY",
	"BEOWIRE_LINKS",
	"BEOWIRE_LOCAL_CMA",
	"BEOWIRE_LOG",
	"BEOWIRE_MEMORY",
	"BEOWIRE_MTU",
	"BEOWIRE_NODE",
	"BEOWIRE_RING",
	"BEOWIRE_SEND_COPIES",
	"BEOWIRE_SERVICE",
	"BEOWIRE_SOCKETS",
	"BEOWIRE_SOCKETS_AFTER",
	"BEOWIRE_SOCKETS_COMPARE",
	"BEOWIRE_SOCKETS_EXPLAIN",
	"BEOWIRE_SOCKETS_IO_URING",
	"BEOWIRE_SOCKETS_STATS",
	"BEOWIRE_SOCKETS_WITHIN",
	"BEOWIRE_STATE",
	"BEOWIRE_STATS",
	"BEOWIRE_STATUS",
	"BEOWIRE_UDP_ADDRESS",
	"BEOWIRE_UDP_OFFLOAD",
	"BEOWIRE_UDP_PORTS",
	"BEOWIRE_UNEXPECTED_EACH",
	"BEOWIRE_UNEXPECTED_MAX",
	"BEOWIRE_WAIT",
	NULL,
};
_Static_assert(sizeof(bw_settings_names) / sizeof(bw_settings_names[0]) <= BW_SETTINGS_NAMES + 1,
	       "struct bw_settings has room for all of them");

static struct bw_settings bw_settings_all;

__attribute__((format(printf, 3, 4))) static void
bw_settings_trouble(struct bw_settings *s, const char *path, const char *format, ...)
{
	char what[128];
	va_list args;

	if (s->troubles++ >= BW_SETTINGS_TROUBLES)
		return;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(s->trouble[s->troubles - 1], sizeof(s->trouble[0]), "%.*s%s", BW_SETTINGS_PATH - 1,
		 path, what);
}

/* ---- lines ---- */

static bool bw_settings_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool bw_settings_control(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7F)
			return true;
	return false;
}

/* Its place in the list; -1: it is none. */
static int bw_settings_number(const char *name, size_t len)
{
	for (int i = 0; bw_settings_names[i]; i++)
		if (strlen(bw_settings_names[i]) == len && !memcmp(bw_settings_names[i], name, len))
			return i;
	return -1;
}

/* One line without its end and without blanks around it, behind which there is room for a byte. */
static void bw_settings_line(struct bw_settings *s, char *text, size_t len, const char *path,
			     unsigned int line)
{
	char *equals = memchr(text, '=', len), *value;
	size_t name = 0;
	int number;

	while (name < len && (text[name] == '_' || (text[name] >= 'A' && text[name] <= 'Z') ||
			      (text[name] >= '0' && text[name] <= '9')))
		name++;
	for (size_t i = name; equals && text + i < equals; i++)
		if (!bw_settings_blank(text[i]))
			equals = NULL;
	if (!equals || !name || text + name > equals) {
		bw_settings_trouble(s, path, ":%u: this is not NAME = VALUE", line);
		return;
	}
	number = bw_settings_number(text, name);
	if (number < 0) {
		bw_settings_trouble(s, path, ":%u: there is no setting %.*s", line,
				    name < 60 ? (int)name : 60, text);
		return;
	}
	value = equals + 1;
	while (value < text + len && bw_settings_blank(*value))
		value++;
	text[len] = 0;
	if (!s->of[number].value || s->of[number].path == path)
		s->of[number] = (struct bw_setting){.value = value, .path = path, .line = line};
}

void bw_settings_parse(struct bw_settings *s, char *text, size_t len, const char *path)
{
	unsigned int line = 1;

	for (size_t at = 0, n; at < len; at += n + 1, line++) {
		char *end = memchr(text + at, '\n', len - at), *first = text + at;
		size_t left;

		n = end ? (size_t)(end - first) : len - at;
		left = n;
		while (left && bw_settings_blank(*first))
			first++, left--;
		while (left && bw_settings_blank(first[left - 1]))
			left--;
		if (!left || *first == '#')
			continue;
		if (n > BW_SETTINGS_LINE_MAX)
			bw_settings_trouble(s, path, ":%u: the line is longer than %d bytes", line,
					    BW_SETTINGS_LINE_MAX);
		else if (bw_settings_control(first, left))
			bw_settings_trouble(s, path, ":%u: the line has a control character", line);
		else
			bw_settings_line(s, first, left, path, line);
	}
}

/* ---- files ---- */

/* Could somebody else have written it? */
static bool bw_settings_check(struct bw_settings *s, const char *path, int fd, bool own)
{
	struct stat file;

	if (fstat(fd, &file) < 0)
		bw_settings_trouble(s, path, ": %s", strerror(errno));
	else if (!S_ISREG(file.st_mode))
		bw_settings_trouble(s, path, " is no regular file: it is ignored");
	else if (own && file.st_uid != geteuid() && file.st_uid != 0)
		bw_settings_trouble(s, path,
				    " belongs to user %u, not to this user or root: it is ignored",
				    file.st_uid);
	else if (file.st_mode & 022)
		bw_settings_trouble(s, path,
				    " can be written by others than its owner: it is ignored; "
				    "fix: chmod go-w");
	else
		return true;
	return false;
}

/* Does anything that is set come from this file? */
static bool bw_settings_has(const struct bw_settings *s, const char *path)
{
	for (int i = 0; bw_settings_names[i]; i++)
		if (s->of[i].path == path)
			return true;
	return false;
}

static void bw_settings_take(struct bw_settings *s, const char *path, int fd)
{
	/* with room for a byte too many, by which a longer file is seen */
	char *text = malloc(BW_SETTINGS_FILE_MAX + 1), *kept = strdup(path);
	ssize_t len = text && kept ? bw_whole_read(fd, text, BW_SETTINGS_FILE_MAX + 1) : -ENOMEM;

	if (len >= 0 && len <= BW_SETTINGS_FILE_MAX) {
		bw_settings_parse(s, text, (size_t)len, kept);
		if (bw_settings_has(s, kept))
			return;
	} else if (len < 0) {
		bw_settings_trouble(s, path, " cannot be read: %s", strerror((int)-len));
	} else {
		bw_settings_trouble(s, path, " has more than %d bytes: it is ignored",
				    BW_SETTINGS_FILE_MAX);
	}
	free(text);
	free(kept);
}

void bw_settings_read(struct bw_settings *s, const char *path, bool own, bool must)
{
	/* Nobody who has put something else in its place makes us wait. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error = errno;
	struct stat there;

	if (fd < 0) {
		/* In a directory that this user cannot enter there is nothing of theirs. */
		if (must || stat(path, &there) == 0)
			bw_settings_trouble(s, path, " cannot be opened: %s", strerror(error));
		return;
	}
	if (bw_settings_check(s, path, fd, own))
		bw_settings_take(s, path, fd);
	close(fd);
}

/* ---- this process's ---- */

/* As the XDG Base Directory Specification has it. false: there is none. */
static bool bw_settings_user(char path[BW_SETTINGS_PATH])
{
	const char *base = getenv("XDG_CONFIG_HOME"), *inside = "";

	if (!base || *base != '/') {
		base = getenv("HOME");
		inside = "/.config";
	}
	return base && *base == '/' &&
	       snprintf(path, BW_SETTINGS_PATH, "%s%s/beowire.conf", base, inside) <
		       BW_SETTINGS_PATH;
}

static void bw_settings_load(void)
{
	/* A program with another's rights hears nothing from who has started it. */
	bool secure = getauxval(AT_SECURE) != 0;
	const char *only = secure ? NULL : getenv("BEOWIRE_CONFIG");
	char path[BW_SETTINGS_PATH];

	if (only && *only) {
		if (strcmp(only, "off") != 0)
			bw_settings_read(&bw_settings_all, only, true, true);
		return;
	}
	if (!secure && bw_settings_user(path))
		bw_settings_read(&bw_settings_all, path, true, false);
	bw_settings_read(&bw_settings_all, BW_SETTINGS_SYSTEM, false, false);
}

const struct bw_settings *bw_settings_of_files(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, bw_settings_load);
	return &bw_settings_all;
}

struct bw_setting bw_setting_find(const char *name)
{
	const struct bw_settings *files = bw_settings_of_files();
	struct bw_setting found = {.value = getenv(name)};
	int number;

	if (found.value)
		return found;
	number = bw_settings_number(name, strlen(name));
	return number < 0 ? found : files->of[number];
}

const char *bw_setting(const char *name)
{
	return bw_setting_find(name).value;
}
