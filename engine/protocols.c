/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The list of protocols, from which hosts choose by name. A new one is registered here. */
#include "protocol.h"

const struct bw_protocol *const bw_protocols[] = {&bw_reliable, &bw_datagram, NULL};

const struct bw_protocol *bw_protocol_find(const char *name)
{
	const struct bw_protocol *const *at = bw_protocols;

	while (*at && strcmp((*at)->name, name))
		at++;
	return *at;
}
