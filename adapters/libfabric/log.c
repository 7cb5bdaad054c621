// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Messages to people on stderr, as much as BEOWIRE_LOG asks for. An event that every rank of a job
 * sees is said by one process of a node only: the first one that claims an abstract socket name for
 * it.
 */
#include "bwf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static enum bwf_log_level bwf_log_limit(void)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};
	const char *wish = getenv("BEOWIRE_LOG");

	for (int i = 0; wish && i <= BWF_LOG_DEBUG; i++) {
		if (strcmp(wish, names[i]) == 0)
			return (enum bwf_log_level)i;
	}
	return BWF_LOG_WARN;
}

void bwf_log(enum bwf_log_level level, const char *format, ...)
{
	char text[512];
	va_list args;

	if (level > bwf_log_limit())
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "beowire: %s\n", text);
}

bool bwf_log_first(uint64_t key)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "beowire-said-%016llx",
			 (unsigned long long)key);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return true;
	if (bind(fd, (struct sockaddr *)&name,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) == 0)
		return true; /* fd stays open, so that the name stays claimed while this process
				lives */
	n = errno;
	close(fd);
	return n != EADDRINUSE;
}

const char *bwf_strerror(int prov_errno, char *buf, size_t len)
{
	const char *text = strerror(prov_errno);

	if (!buf || !len)
		return text;
	snprintf(buf, len, "%s", text);
	return buf;
}
