/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Offers of any content: what comes to the port of the preload library for socket programs. One
 * that is taken is within its limits and has the same bytes when it is packed again.
 */
#include "../../adapters/sockets/offer.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[BWS_OFFER_BYTES] = {'B', 'S', BWS_OFFER_VERSION}, again[BWS_OFFER_BYTES];
	struct fuzz_input in = {data, data + size};
	uint8_t how = fuzz_u8(&in);
	uint32_t n = sizeof(bytes) - 3;
	const uint8_t *rest;
	struct bws_offer o;

	/* Any bytes of any length, or a good beginning. */
	if (how & 1) {
		if (bws_offer_unpack(in.at, (size_t)(in.end - in.at), &o) &&
		    in.end - in.at != BWS_OFFER_BYTES)
			fuzz_bad("an offer of another length");
		return 0;
	}
	rest = fuzz_bytes(&in, &n);
	memcpy(bytes + 3, rest, n);
	if (!bws_offer_unpack(bytes, sizeof(bytes), &o))
		return 0;
	if (!o.id || !o.name.here_port || !o.name.there_port || !o.kind ||
	    o.kind >= BWS_OFFER_KINDS)
		fuzz_bad("an offer beyond its limits");
	bws_offer_pack(&o, again);
	if (memcmp(bytes, again, sizeof(bytes)))
		fuzz_bad("an offer that is another when it is packed again");
	return 0;
}
