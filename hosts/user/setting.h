/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the variables of beowire(7) are set to: by the environment, else by the user's file, else by
 * the system's. The first of these that names a variable counts, and an empty value is the default.
 * The files are read once, at the first question of a process.
 */
#ifndef BW_SETTING_H
#define BW_SETTING_H

#include <stdbool.h>
#include <stddef.h>

#define BW_SETTINGS_SYSTEM   "/etc/beowire.conf"
#define BW_SETTINGS_FILE_MAX 16384 /* bytes */
#define BW_SETTINGS_LINE_MAX 1023  /* bytes, without its end */
#define BW_SETTINGS_NAMES    48	   /* at most */
#define BW_SETTINGS_TROUBLES 8	   /* that are told one by one */
#define BW_SETTINGS_PATH     512   /* bytes of a file's name, with the zero byte */

struct bw_setting {
	const char *value; /* NULL: it is not set */
	const char *path;  /* NULL: by the environment */
	unsigned int line;
};

struct bw_settings {
	struct bw_setting of[BW_SETTINGS_NAMES]; /* as bw_settings_names */
	char trouble[BW_SETTINGS_TROUBLES][BW_SETTINGS_PATH + 128];
	unsigned int troubles; /* all of them, those without a text as well */
};

/* What a file may set, with those variables that only the tools read; NULL behind the last. */
extern const char *const bw_settings_names[];

/* The value, which may be empty; NULL where nobody has set it. */
const char *bw_setting(const char *name);
/* The same, with who has set it. */
struct bw_setting bw_setting_find(const char *name);
/* What the files of this process say. */
const struct bw_settings *bw_settings_of_files(void);

/* Take the lines of a file. `text` has `len` bytes and room for one more, and is changed: values
 * remain in it. What an earlier file has set stays; within a file the last line counts. */
void bw_settings_parse(struct bw_settings *s, char *text, size_t len, const char *path);
/* Read a file, if it is there. `own`: it has to belong to the user, or to root. `must`: that it is
 * missing is a trouble. What was read stays in memory. */
void bw_settings_read(struct bw_settings *s, const char *path, bool own, bool must);

#endif
