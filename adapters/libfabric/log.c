// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Messages to people on stderr, as much as BEOWIRE_LOG asks for. An event that every rank of a job
 * sees is said by one process of a node only: the first one that claims an abstract socket name for
 * it. A loss is left in the directory of BEOWIRE_STATS as well, for a launcher that ends a job does
 * not always pass on what its ranks said last (MPICH's may serve a rank's abort before its stderr).
 */
#include "bwf.h"
#include "claim.h"
#include "setting.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static enum bwf_log_level bwf_log_limit(void)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};
	const char *wish = bw_setting("BEOWIRE_LOG");

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

/* A new file: the directory may be everybody's, and the name can be guessed. If that fails, the
 * line is on stderr at least. */
static void bwf_log_keep(uint64_t teller, uint64_t key, const char *line)
{
	const char *directory = bw_setting("BEOWIRE_STATS");
	char path[PATH_MAX];
	int n, fd;

	if (!directory || !*directory)
		return;
	n = snprintf(path, sizeof(path), "%s/%016llx-%016llx.told", directory,
		     (unsigned long long)teller, (unsigned long long)key);
	if (n >= (int)sizeof(path))
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	dprintf(fd, "beowire: %s\n", line);
	close(fd);
}

void bwf_log_loss(uint64_t teller, uint64_t key, const char *peer, const char *format, ...)
{
	char what[256], text[512];
	va_list args;

	if (bwf_log_limit() < BWF_LOG_WARN)
		return;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(text, sizeof(text), "%s is %s", peer, what);
	bwf_log(BWF_LOG_WARN, "%s", text);
	bwf_log_keep(teller, key, text);
}

bool bwf_log_first(uint64_t key)
{
	char name[64];

	snprintf(name, sizeof(name), "beowire/gone/%016llx", (unsigned long long)key);
	/* The descriptor stays open, so that the name stays claimed while this process lives. */
	return bw_claim_name(name) != -EADDRINUSE;
}

const char *bwf_strerror(int prov_errno, char *buf, size_t len)
{
	const char *text = strerror(prov_errno);

	if (!buf || !len)
		return text;
	snprintf(buf, len, "%s", text);
	return buf;
}
