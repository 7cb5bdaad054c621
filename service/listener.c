/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The socket that clients call; see listener.h. */
#include "listener.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int bs_listener_directory(const char *path, char why[BS_POLICY_WHY])
{
	char copy[sizeof(((struct sockaddr_un *)0)->sun_path)];
	const char *directory;
	struct stat told;

	if (strlen(path) >= sizeof(copy)) {
		snprintf(why, BS_POLICY_WHY, "--socket: the path is longer than %zu bytes",
			 sizeof(copy) - 1);
		return -ENAMETOOLONG;
	}
	memcpy(copy, path, strlen(path) + 1);
	directory = dirname(copy);
	if (lstat(directory, &told)) {
		snprintf(why, BS_POLICY_WHY, "%.100s: %s; fix: mkdir -m 755 %.100s", directory,
			 strerror(errno), directory);
		return -errno;
	}
	if (S_ISDIR(told.st_mode) && !(told.st_mode & (S_IWGRP | S_IWOTH)) &&
	    (!told.st_uid || told.st_uid == geteuid()))
		return 0;
	snprintf(why, BS_POLICY_WHY,
		 "%.100s must be a directory of root's that nobody else may write to; fix: "
		 "chown root, chmod 755",
		 directory);
	return -EPERM;
}

/* Make room: only a socket that nobody listens at may go. */
static int bs_listener_stale(const struct sockaddr_un *name, char why[BS_POLICY_WHY])
{
	struct stat told;
	int fd, error;

	if (lstat(name->sun_path, &told))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(told.st_mode)) {
		snprintf(why, BS_POLICY_WHY, "%.100s is there and is no socket; fix: remove it",
			 name->sun_path);
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	error = connect(fd, (const struct sockaddr *)name, sizeof(*name)) ? errno : 0;
	close(fd);
	if (error == ECONNREFUSED)
		return unlink(name->sun_path) ? -errno : 0;
	snprintf(why, BS_POLICY_WHY, "another beowired listens at %.100s; fix: stop it first",
		 name->sun_path);
	return -EADDRINUSE;
}

int bs_listener_open(const char *path, char why[BS_POLICY_WHY])
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = -1, error;
	mode_t mask;

	why[0] = 0;
	error = bs_listener_directory(path, why);
	if (error)
		return error;
	memcpy(name.sun_path, path, strlen(path) + 1);
	error = bs_listener_stale(&name, why);
	if (!error) {
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		/* Everybody may call; who may have an endpoint says the policy. */
		mask = umask(0111);
		error = fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof(name)) ||
					listen(fd, SOMAXCONN)
				? -errno
				: 0;
		umask(mask);
	}
	if (!error)
		return fd;
	if (!why[0])
		snprintf(why, BS_POLICY_WHY, "%.100s: %s", path, strerror(-error));
	if (fd >= 0)
		close(fd);
	return error;
}

void bs_listener_close(int fd, const char *path)
{
	unlink(path);
	close(fd);
}
