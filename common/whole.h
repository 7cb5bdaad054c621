/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Small files of users (keys, settings), read whole from what was opened and checked. */
#ifndef BW_WHOLE_H
#define BW_WHOLE_H

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

/* Up to the end of the file, at most `room` bytes: with a byte more than the file may have, one
 * that is too long is seen. How many there are, or a negative errno. Any thread. */
static inline ssize_t bw_whole_read(int fd, char *text, size_t room)
{
	size_t len = 0;
	ssize_t n;

	while (len < room) {
		n = read(fd, text + len, room - len);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		len += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)len;
}

#endif
