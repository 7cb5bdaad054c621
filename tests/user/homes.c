/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opens an endpoint and prints where its memory begins, then what the kernel says of all mappings:
 * tests/tools/placement/test_machine_of_nodes.py reads both in a guest of several NUMA nodes. */
#include "endpoint.h"

#include <stdio.h>
#include <string.h>

static void nothing(void *arg, const struct bw_message *m)
{
}

static void ended(void *arg, void *op, int status)
{
}

static void pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void down(void *arg, bw_peer_no peer, int status)
{
}

int main(void)
{
	static const struct bw_handlers handlers = {
		.message = nothing, .sent = ended, .pulled = pulled, .peer_down = down};
	const struct bw_ep_attr attr = {.handlers = &handlers, .no_helper = true};
	char line[1024], text[BW_HOME_TEXT];
	const char *why = "";
	struct bw_ep *ep;
	FILE *f;

	if (bw_ep_open(&ep, &attr, &why)) {
		printf("refused: %s\n", why);
		return 0;
	}
	printf("told: %s\n", bw_home_tell(&ep->home, text));
	printf("engine %lx\n", (unsigned long)ep->engine);
	for (uint64_t len = 128; len <= 65536; len *= 8) {
		struct bw_buffer *b = bw_buffer_get(&ep->buffers, len);

		memset(b->data, 1, len);
		printf("buffer %lx\n", (unsigned long)b->data);
	}
	if (ep->has_packet)
		printf("ring %lx\n", (unsigned long)ep->packet[0].ring);
	if (ep->has_udp)
		printf("udp %lx\n", (unsigned long)ep->udp.frames + ep->udp.stride);
	f = fopen("/proc/self/numa_maps", "re");
	while (f && fgets(line, sizeof(line), f))
		printf("map %s", line);
	bw_ep_close(ep, 0);
	return 0;
}
