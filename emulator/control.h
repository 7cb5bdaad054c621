/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control socket: one line of text in, one line of JSON out. The parser is apart from the
 * socket and touches neither link nor system, so that it can be fed anything.
 */
#ifndef EM_CONTROL_H
#define EM_CONTROL_H

#include <poll.h>
#include <stdbool.h>

#include "link.h"
#include "settings.h"

#define EM_CLIENTS  8
#define EM_LINE_MAX 2048 /* bytes of a request with its end */

enum em_request { EM_REQUEST_SET, EM_REQUEST_STATS, EM_REQUEST_RESET, EM_REQUEST_STOP };

/*
 * Read a request. `line` is taken apart in place; `set` holds the settings in force and, for
 * EM_REQUEST_SET, gets the new ones. The kind of request, or -EINVAL with a text and `set` as it
 * was.
 */
int em_request_read(char *line, struct em_settings set[EM_DIRECTIONS], char why[EM_WHY_MAX]);

struct em_client {
	int fd; /* -1: free */
	size_t n;
	char line[EM_LINE_MAX];
};

struct em_control {
	const char *path; /* NULL: there is no socket */
	int fd;
	struct em_client client[EM_CLIENTS];
};

/* Listen at a path; a socket there that nobody listens at is replaced. 0, or a negative errno and a
 * text. */
int em_control_open(struct em_control *c, const char *path, char why[EM_WHY_MAX]);
void em_control_close(struct em_control *c);

/* Fill in what to wait for, at most EM_CLIENTS + 1; their number. */
int em_control_poll(const struct em_control *c, struct pollfd *fds);
/* Serve all that has come. True: the run is to stop. */
bool em_control_serve(struct em_control *c, struct em_link *l);

#endif
