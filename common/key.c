/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The cluster's key, from a file; see key.h. The file is opened once, and what was opened is what
 * is checked and read, whatever becomes of its name. */
#include "key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keyed.h"
#include "whole.h"

#define BW_KEY_DIGITS (2 * BW_KEY_BYTES)
#define BW_KEY_LABEL  "beowire key fingerprint\n"

/* A digit's value; 16 and more: it is none. Without a branch or a table, as it is secret. */
static unsigned int bw_key_digit(unsigned int c)
{
	unsigned int number = c - '0', letter = (c | 0x20) - 'a';
	unsigned int is_number = -(unsigned int)(number < 10);
	unsigned int is_letter = -(unsigned int)(letter < 6);

	return (number & is_number) | ((letter + 10) & is_letter) | (~(is_number | is_letter) & 16);
}

/* The other way, likewise. */
static char bw_key_hex(unsigned int digit)
{
	return (char)('0' + digit + (-(unsigned int)(digit > 9) & ('a' - '0' - 10)));
}

/* One line that is no remark. */
static int bw_key_line(const char *text, size_t len, unsigned int line, uint8_t key[BW_KEY_BYTES],
		       char *why, size_t why_len)
{
	unsigned int bad = 0, any = 0;

	if (len != BW_KEY_DIGITS) {
		snprintf(why, why_len,
			 "line %u has %zu characters instead of %d hexadecimal digits", line, len,
			 BW_KEY_DIGITS);
		return -EINVAL;
	}
	for (size_t i = 0; i < BW_KEY_BYTES; i++) {
		unsigned int high = bw_key_digit((unsigned char)text[2 * i]);
		unsigned int low = bw_key_digit((unsigned char)text[2 * i + 1]);

		bad |= (high | low) & 16;
		key[i] = (uint8_t)(high << 4 | low);
		any |= key[i];
	}
	if (bad) {
		snprintf(why, why_len, "line %u has a character that is no hexadecimal digit",
			 line);
		return -EINVAL;
	}
	if (!any) {
		snprintf(why, why_len, "a key of zeroes is none");
		return -EINVAL;
	}
	return 0;
}

static int bw_key_find(const char *text, size_t len, uint8_t key[BW_KEY_BYTES], char *why,
		       size_t why_len)
{
	unsigned int line = 1;
	bool found = false;
	int error;

	for (size_t at = 0, n; at < len; at += n + 1, line++) {
		const char *end = memchr(text + at, '\n', len - at);

		n = end ? (size_t)(end - text) - at : len - at;
		if (text[at] == '#')
			continue;
		if (found) {
			snprintf(why, why_len, "line %u follows the key, and is no remark", line);
			return -EINVAL;
		}
		error = bw_key_line(text + at, n, line, key, why, why_len);
		if (error)
			return error;
		found = true;
	}
	if (!found)
		snprintf(why, why_len, "there is no line of %d hexadecimal digits", BW_KEY_DIGITS);
	return found ? 0 : -EINVAL;
}

int bw_key_parse(const char *text, size_t len, uint8_t key[BW_KEY_BYTES], char *why, size_t why_len)
{
	uint8_t found[BW_KEY_BYTES];
	int error = bw_key_find(text, len, found, why, why_len);

	if (!error)
		memcpy(key, found, sizeof(found));
	bw_wipe(found, sizeof(found));
	return error;
}

/* Who else could have written or could read it? */
static int bw_key_check(const char *path, int fd, char *why, size_t why_len)
{
	struct stat file, link;
	const char *through = lstat(path, &link) == 0 && S_ISLNK(link.st_mode)
				      ? ", to which a symbolic link leads,"
				      : "";
	unsigned int mode;

	if (fstat(fd, &file) < 0) {
		int error = -errno;

		snprintf(why, why_len, "%s: %s", path, strerror(-error));
		return error;
	}
	mode = file.st_mode & 07777;
	if (!S_ISREG(file.st_mode)) {
		snprintf(why, why_len, "%s is no regular file", path);
		return -EINVAL;
	}
	if (file.st_uid != geteuid() && file.st_uid != 0) {
		snprintf(why, why_len, "%s%s belongs to user %u, not to this user or root", path,
			 through, file.st_uid);
		return -EPERM;
	}
	if (mode != 0600 && mode != 0400) {
		snprintf(why, why_len, "%s%s has mode %04o%s; fix: chmod 600 %s", path, through,
			 mode, mode & 077 ? ": not only its owner may use it" : "", path);
		return -EPERM;
	}
	if (file.st_size > BW_KEY_FILE_MAX) {
		snprintf(why, why_len, "%s has %lld bytes; a key and its remarks have at most %d",
			 path, (long long)file.st_size, BW_KEY_FILE_MAX);
		return -EINVAL;
	}
	return 0;
}

static int bw_key_take(const char *path, int fd, uint8_t key[BW_KEY_BYTES], char *why,
		       size_t why_len)
{
	char text[BW_KEY_FILE_MAX + 1], what[96] = "";
	ssize_t len = bw_whole_read(fd, text, sizeof(text)); /* a byte too many is seen */
	int error;

	if (len < 0) {
		snprintf(why, why_len, "%s cannot be read: %s", path, strerror((int)-len));
		return (int)len;
	}
	if (len > BW_KEY_FILE_MAX)
		error = -EINVAL,
		snprintf(what, sizeof(what), "it is longer than %d bytes", BW_KEY_FILE_MAX);
	else
		error = bw_key_parse(text, (size_t)len, key, what, sizeof(what));
	bw_wipe(text, sizeof(text));
	if (error)
		snprintf(why, why_len, "%s holds no key: %s; beowire key new makes one", path,
			 what);
	return error;
}

int bw_key_load(const char *path, uint8_t key[BW_KEY_BYTES], char *why, size_t why_len)
{
	/* Nobody who has put something else in its place makes us wait. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error;

	if (fd < 0) {
		error = -errno;
		if (error == -ENOENT)
			snprintf(why, why_len, "there is no file %s; beowire key new makes one",
				 path);
		else
			snprintf(why, why_len, "%s cannot be opened: %s", path, strerror(-error));
		return error;
	}
	error = bw_key_check(path, fd, why, why_len);
	if (!error)
		error = bw_key_take(path, fd, key, why, why_len);
	close(fd);
	return error;
}

void bw_key_fingerprint(char text[BW_KEY_FINGERPRINT], const uint8_t key[BW_KEY_BYTES])
{
	char lines[sizeof(BW_KEY_LABEL) + BW_KEY_DIGITS + 1] = BW_KEY_LABEL, *at;
	uint8_t hash[BW_KEYED_HASH];

	at = lines + strlen(lines);
	for (size_t i = 0; i < BW_KEY_BYTES; i++) {
		*at++ = bw_key_hex(key[i] >> 4);
		*at++ = bw_key_hex(key[i] & 15);
	}
	*at++ = '\n';
	bw_sha256(hash, lines, (size_t)(at - lines));
	snprintf(text, BW_KEY_FINGERPRINT, "%02x%02x%02x%02x", hash[0], hash[1], hash[2], hash[3]);
	bw_wipe(lines, sizeof(lines));
}
