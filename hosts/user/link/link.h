/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The links on which the engine's frames travel, and what is counted of each. */
#ifndef BW_LINK_H
#define BW_LINK_H

#include <stdint.h>

#define BW_PACKET_LINKS 3 /* interfaces that one endpoint sends raw frames by, at most */

/* Numbers of the links towards the engine: lower ones are preferred. Those of packet links, one for
 * each interface, begin with BW_LINK_NO_PACKET. */
enum bw_link_number {
	BW_LINK_NO_PACKET = 0,
	BW_LINK_NO_UDP = BW_LINK_NO_PACKET + BW_PACKET_LINKS,
	BW_LINK_NUMBERS
};

struct bw_link_counters {
	uint64_t tx_frames, rx_frames;
	uint64_t tx_bytes, rx_bytes;	 /* frames from the inner header on */
	uint64_t tx_payload, rx_payload; /* payload sent, again if need be; payload accepted */
	uint64_t rx_overruns;		 /* frames that the kernel dropped: no room for them here;
					  * by UDP also those that were not for this engine,
					  * and a row counts as one */
};

#endif
