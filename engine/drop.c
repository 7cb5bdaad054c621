/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of the reasons for which a frame is dropped, as counters and logs print them. */
#include "protocol.h"

static const char *const bw_drop_names[BW_DROP_REASONS] = {
	[BW_DROP_NONE] = "none",
	[BW_DROP_SHORT] = "short",
	[BW_DROP_FOREIGN] = "foreign",
	[BW_DROP_VERSION] = "version",
	[BW_DROP_CLUSTER] = "cluster",
	[BW_DROP_ENGINE] = "engine",
	[BW_DROP_HEADER] = "header",
	[BW_DROP_TYPE] = "type",
	[BW_DROP_INCARNATION] = "incarnation",
	[BW_DROP_HANDLE] = "handle",
	[BW_DROP_EARLY] = "early",
	[BW_DROP_DUPLICATE] = "duplicate",
	[BW_DROP_RANGES] = "ranges",
	[BW_DROP_MALFORMED] = "malformed",
	[BW_DROP_DATA] = "data",
	[BW_DROP_NO_BUFFER] = "no_buffer",
	[BW_DROP_WINDOW] = "window",
	[BW_DROP_STALE] = "stale",
	[BW_DROP_ECHO] = "echo",
	[BW_DROP_CREDIT] = "credit",
	[BW_DROP_ADDRESS] = "address",
	[BW_DROP_KEY] = "key",
	[BW_DROP_SEAL] = "seal",
};

const char *bw_drop_name(enum bw_drop why)
{
	return (unsigned int)why < BW_DROP_REASONS ? bw_drop_names[why] : "unknown";
}
