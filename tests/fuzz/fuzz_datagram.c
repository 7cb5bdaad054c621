/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of any content against the minimal datagram protocol. Each script is a row of frames, raw
 * or with what random bytes never have: an address and right checksums.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void one_frame(struct fuzz_host *h, struct fuzz_input *in)
{
	static uint8_t flat[FUZZ_MTU];
	uint8_t how = fuzz_u8(in);
	uint32_t len = fuzz_u16(in) % FUZZ_MTU, given = len;
	const uint8_t *bytes = fuzz_bytes(in, &given);
	struct bw_hdr hdr;

	memset(flat, 0, len);
	memcpy(flat, bytes, given);
	if (how & 8 && len >= sizeof(hdr)) {
		memcpy(&hdr, flat, sizeof(hdr));
		hdr.magic = BW_MAGIC;
		hdr.version = BW_VERSION;
		hdr.type = BW_FRAME_DGRAM;
		hdr.cluster = FUZZ_CLUSTER;
		hdr.dst_engine = 1;
		memcpy(flat, &hdr, sizeof(hdr));
	}
	if (how & 1)
		fuzz_seal(flat, len, how & 16);
	fuzz_receive(h, flat, len, how & 2, how & 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	static uint8_t flat[BW_FRAME_MAX_MTU];
	struct fuzz_host h = {.seals = false};

	fuzz_open(&h, &bw_datagram, 1);
	while (in.at < in.end) {
		one_frame(&h, &in);
		while (fuzz_next_frame(&h, flat))
			;
		fuzz_events(&h, NULL);
	}
	fuzz_close(&h);
	return 0;
}
