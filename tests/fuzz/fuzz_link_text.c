/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any text against the link emulator's settings and control requests. What is accepted must be
 * within its limits and be read back from its printed form; what is refused changes nothing.
 */
#include <stdlib.h>

#include "control.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_limits(const struct em_settings *s)
{
	if (s->rate > EM_RATE_MAX || s->delay > EM_TIME_MAX || s->jitter > s->delay ||
	    s->coalesce > EM_TIME_MAX || s->queue > EM_QUEUE_MAX || s->mark > EM_QUEUE_MAX ||
	    s->loss > EM_SHARE_ONE || s->duplicate > EM_SHARE_ONE || s->reorder > EM_SHARE_ONE ||
	    s->corrupt > EM_SHARE_ONE || s->burst > EM_BURST_MAX || s->mtu > EM_MTU_MAX)
		fuzz_bad("a setting beyond its limits");
}

static void check_printed(const struct em_settings *s)
{
	struct em_settings both[EM_DIRECTIONS];
	char text[EM_TEXT_MAX], why[EM_WHY_MAX], *word, *at;

	memset(both, 0, sizeof(both));
	em_settings_print(s, text);
	for (word = strtok_r(text, " ", &at); word; word = strtok_r(NULL, " ", &at))
		if (em_settings_take(both, word, why))
			fuzz_bad("a printed setting that is refused");
	if (memcmp(&both[0], s, sizeof(*s)))
		fuzz_bad("a printed setting that is read as another");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct em_settings set[EM_DIRECTIONS], before[EM_DIRECTIONS];
	/* exactly as long as the text, so that a byte too far is seen */
	char *line = malloc(size + 1), why[EM_WHY_MAX] = "";
	int request, i;

	memcpy(line, data, size);
	line[size] = 0;
	memset(set, 0, sizeof(set));
	memcpy(before, set, sizeof(set));
	request = em_request_read(line, set, why);
	if (request < 0 && !why[0])
		fuzz_bad("refused without a word");
	if (request != EM_REQUEST_SET && memcmp(before, set, sizeof(set)))
		fuzz_bad("settings changed by something else");
	for (i = 0; i < EM_DIRECTIONS; i++) {
		check_limits(&set[i]);
		check_printed(&set[i]);
	}
	free(line);
	return 0;
}
