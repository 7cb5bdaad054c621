/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names claimed by binding abstract unix sockets: the kernel keeps them unique per network
 * namespace. The socket that claims an engine number is the one that the local link listens on.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "claim.h"
#include "link/local/local.h"
#include "wire.h"

#define BW_CLAIM_ENGINES (UINT16_MAX - BW_ENGINE_KERNEL) /* numbers above the kernel host's */

int bw_claim_name(const char *name)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	size_t n = strlen(name);

	if (n > sizeof(sun.sun_path) - 2)
		return -ENAMETOOLONG;
	memcpy(sun.sun_path + 1, name, n);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&sun,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) == 0)
		return fd;
	int error = -errno;

	close(fd);
	return error;
}

int bw_claim_engine(uint32_t random, uint16_t *engine)
{
	int fd = -EADDRINUSE;

	for (uint32_t i = 0; i < BW_CLAIM_ENGINES && fd == -EADDRINUSE; i++) {
		*engine = (uint16_t)(BW_ENGINE_KERNEL + 1 + (random + i) % BW_CLAIM_ENGINES);
		fd = bw_local_claim(*engine);
	}
	return fd;
}

bool bw_claim_engine_held(uint16_t engine)
{
	int fd = bw_local_claim(engine);

	if (fd < 0)
		return true;
	close(fd);
	return false;
}
