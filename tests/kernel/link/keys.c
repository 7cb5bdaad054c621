/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of the kernel link are made with the node's key and sealed as the node says. A program
 * that asks for another key, or that is to encrypt where the node does not, gets no endpoint.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beowire.h"

#define DIGITS	 "4242424242424242424242424242424242424242424242424242424242"
#define NODES	 "/proc/sys/net/beowire/key"
#define ENCRYPTS "/proc/sys/net/beowire/encrypt"
#define FILE_OF	 "/tmp/link-keys"

static void on_message(void *arg, const struct bw_message *m)
{
}

static void on_sent(void *arg, void *op, int status)
{
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
}

static const struct bw_handlers handlers = {on_message, on_sent, on_pulled, on_down, NULL};

/* In one call, as the kernel wants it. */
static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
		perror(path);
		exit(1);
	}
	close(fd);
}

/* Does opening an endpoint end so (0, or a negative errno), and does the reason say this? */
static bool ends(int wanted, const char *said)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .no_helper = true};
	const char *why = "";
	struct bw_ep *ep;
	int error = bw_ep_open(&ep, &attr, &why);

	if (!error)
		bw_ep_close(ep, 0);
	if (error == wanted && (!said || strstr(why, said)))
		return true;
	printf("%d instead of %d: %s\n", error, wanted, error ? why : "it is open");
	return false;
}

static int run(void)
{
	if (!ends(0, NULL)) /* neither has a key */
		return 1;
	put(FILE_OF, DIGITS "424242\n");
	setenv("BEOWIRE_KEY", FILE_OF, 1);
	if (!ends(-EKEYREJECTED, "that of the kernel module is none;"))
		return 2;
	put(NODES, DIGITS "434343");
	if (!ends(-EKEYREJECTED, "the key of BEOWIRE_KEY is "))
		return 3;
	put(NODES, DIGITS "424242");
	if (!ends(0, NULL))
		return 4;
	setenv("BEOWIRE_ENCRYPT", "1", 1);
	if (!ends(-EKEYREJECTED,
		  "does not encrypt here; fix, as root: sysctl -w net.beowire.encrypt=1;"))
		return 5;
	put(ENCRYPTS, "1");
	if (!ends(0, NULL))
		return 6;
	/* A node with a key takes programs that leave it to the node. */
	unsetenv("BEOWIRE_KEY");
	unsetenv("BEOWIRE_ENCRYPT");
	return ends(0, NULL) ? 0 : 7;
}

int main(void)
{
	int status = run();

	put(ENCRYPTS, "0");
	put(NODES, "none");
	printf("%s %d\n", status ? "failed" : "ok", status);
	return status;
}
