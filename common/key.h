/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cluster's key, from a file: 64 hexadecimal digits on a line of their own; lines that begin
 * with # are ignored. The file must be ours or root's, and nobody else's to read: its mode is 0600
 * or 0400.
 */
#ifndef BW_KEY_H
#define BW_KEY_H

#include <stddef.h>
#include <stdint.h>

#define BW_KEY_BYTES	   32
#define BW_KEY_FILE_MAX	   4096 /* bytes */
#define BW_KEY_FINGERPRINT 9	/* digits, and the zero byte behind them */

/* Read and check the file. 0, or a negative errno with what is wrong in `why`, which never contains
 * anything of the file: -ENOENT, -EACCES ... as from open(2), -EPERM it is not safe, -EINVAL it
 * holds no key. `key` is written only by success. */
int bw_key_load(const char *path, uint8_t key[BW_KEY_BYTES], char *why, size_t why_len);

/* The same of the file's text. */
int bw_key_parse(const char *text, size_t len, uint8_t key[BW_KEY_BYTES], char *why,
		 size_t why_len);

/* A few digits by which people and tools see whether two keys are the same: the first of SHA-256
 * over a label and the key's digits in lower case, a line each, as a shell computes them, too. */
void bw_key_fingerprint(char text[BW_KEY_FINGERPRINT], const uint8_t key[BW_KEY_BYTES]);

#endif
