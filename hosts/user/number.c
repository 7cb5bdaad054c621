/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Engine numbers of a node; see number.h. */
#include <errno.h>
#include <unistd.h>

#include "link/local/local.h"
#include "number.h"
#include "wire.h"

#define BW_NUMBERS (UINT16_MAX - BW_ENGINE_KERNEL) /* numbers above the kernel host's */

int bw_number_own(uint16_t engine, uint32_t incarnation, struct bw_number *number)
{
	number->claim = bw_local_claim(engine);
	number->borrowed = number->claim == -EADDRINUSE;
	if (number->borrowed)
		number->claim = bw_local_claim_as(engine, incarnation);
	return number->claim < 0 ? number->claim : 0;
}

int bw_number_claim(uint32_t random, uint32_t incarnation, uint16_t *engine,
		    struct bw_number *number)
{
	*number = (struct bw_number){.claim = -EADDRINUSE};
	for (uint32_t i = 0; i < BW_NUMBERS && number->claim == -EADDRINUSE; i++) {
		*engine = (uint16_t)(BW_ENGINE_KERNEL + 1 + (random + i) % BW_NUMBERS);
		number->claim = bw_local_claim(*engine);
	}
	if (number->claim == -EADDRINUSE)
		return bw_number_own(*engine, incarnation, number);
	return number->claim < 0 ? number->claim : 0;
}

bool bw_number_held(uint16_t engine)
{
	int fd = bw_local_claim(engine);

	if (fd < 0)
		return true;
	close(fd);
	return false;
}
