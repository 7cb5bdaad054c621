/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Message lengths from 0 to 70000 bytes, both ways at once between rank 0 and the last rank: every
 * length up to 10000, then steps, and every length near the usual thresholds (powers of two, whole
 * numbers of frames). The bytes behind the receive buffer must stay untouched.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE_MAX_BYTES = 70000, EVERY_UP_TO = 10000, STEP = 41, NEAR = 6 };
enum { GUARD_BYTES = 64, GUARD = 0xA5 };

/* Whether @bytes lies within NEAR of a multiple of @unit. */
static bool near_multiple(int bytes, int unit)
{
	int rest = bytes % unit;

	return rest <= NEAR || unit - rest <= NEAR;
}

static bool worth_trying(int bytes)
{
	/* Payloads of frames of 1500 and 9000 bytes, with and without usual headers. */
	static const int units[] = {4096, 8936, 8952, 8968, 9000};

	if (bytes <= EVERY_UP_TO || bytes % STEP == 0)
		return true;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (near_multiple(bytes, units[i]))
			return true;
	return false;
}

static void exchange(int rank, int peer, int bytes, unsigned char *out, unsigned char *in)
{
	MPI_Status status;

	ex_pattern_fill(out, (size_t)bytes, (uint64_t)bytes << 8 | (uint64_t)rank);
	memset(in + bytes, GUARD, GUARD_BYTES);
	MPI_Sendrecv(out, bytes, MPI_BYTE, peer, bytes, in, bytes, MPI_BYTE, peer, bytes,
		     MPI_COMM_WORLD, &status);
	check_status(&status, peer, bytes, (size_t)bytes);
	check_pattern(in, (size_t)bytes, (uint64_t)bytes << 8 | (uint64_t)peer, "message");
	check_untouched(in + bytes, GUARD_BYTES, GUARD, "behind the message");
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 2);
	int peer = check.size - 1 - check.rank;

	check_options(argc, argv);
	if (check.rank == 0 || check.rank == check.size - 1) {
		unsigned char *out = ex_alloc(SIZE_MAX_BYTES);
		unsigned char *in = ex_alloc(SIZE_MAX_BYTES + GUARD_BYTES);

		for (int bytes = 0; bytes <= SIZE_MAX_BYTES; bytes++)
			if (worth_trying(bytes))
				exchange(check.rank, peer, bytes, out, in);
		free(in);
		free(out);
	}
	return check_finish();
}
