/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers that nobody else can foresee; see secret.h. */
#include "secret.h"

#include <stdlib.h>
#include <sys/random.h>

uint64_t bw_secret_draw(struct bw_secret *s)
{
	uint64_t word;

	if (!s->left) {
		if (getrandom(s->word, sizeof(s->word), 0) != (ssize_t)sizeof(s->word))
			abort();
		s->left = BW_SECRET_WORDS;
	}
	word = s->word[--s->left];
	s->word[s->left] = 0;
	return word;
}
