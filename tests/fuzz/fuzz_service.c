/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes against beowired: as a request of a client, and as lines of its policy. What is taken
 * must be within its limits, and what is refused has a reason.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "policy.h"
#include "request.h"
#include "ring_shape.h"
#include "wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_request(const uint8_t *data, size_t size)
{
	char why[BW_SERVICE_TEXT] = "";
	struct bw_service_request r;
	/* exactly as long, so that a byte too far is seen */
	uint8_t *bytes = malloc(size);
	int error;

	if (size)
		memcpy(bytes, data, size);
	error = bs_request_parse(&r, bytes, size, BW_ETHERTYPE, why);
	free(bytes);
	if (error && !why[0])
		fuzz_bad("refused without a word");
	if (strnlen(why, sizeof(why)) == sizeof(why))
		fuzz_bad("a reason without an end");
	if (!error && (size != sizeof(r) || r.engine <= BW_ENGINE_KERNEL ||
		       r.ring_bytes < BW_RING_MIN || r.ethertype != BW_ETHERTYPE ||
		       strnlen(r.interface, sizeof(r.interface)) == sizeof(r.interface)))
		fuzz_bad("a request beyond its limits");
	for (const char *c = r.interface; !error && *c; c++) {
		if (*c < '!' || *c > '~')
			fuzz_bad("a name that cannot be told");
	}
}

static void check_limits(const struct bs_policy *p)
{
	if (p->users.n > BS_POLICY_IDS || p->groups.n > BS_POLICY_IDS ||
	    p->interfaces > BS_DEVICES || !p->endpoints || p->endpoints > BS_ENDPOINTS ||
	    !p->attempts || p->ring_total < 1u << 20 || p->ring_bytes < 1u << 20 ||
	    p->ring_bytes > 1ull << 40 || p->ethertype < 0x0600)
		fuzz_bad("a policy beyond its limits");
	for (unsigned int i = 0; i < p->interfaces; i++) {
		if (!p->interface[i][0] || strnlen(p->interface[i], IFNAMSIZ) == IFNAMSIZ)
			fuzz_bad("a name without an end");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *line = text, *next, why[BS_POLICY_WHY];
	struct bs_policy p;

	check_request(data, size);
	memcpy(text, data, size);
	text[size] = 0;
	bs_policy_init(&p);
	for (; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		why[0] = 0;
		if (bs_policy_line(&p, line, why) && !why[0])
			fuzz_bad("refused without a word");
		check_limits(&p);
	}
	free(text);
	return 0;
}
