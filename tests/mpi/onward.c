/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two ranks exchange messages, short and long, and compare every byte, round after round, until the
 * file that ONWARD_END names is there. Rank 0 says how far they are and, at the end, how long the
 * longest round took. A rank that is told of an error leaves how long that took since its last
 * message, in ms, in a file beside that one, since its word may not get through.
 */
#include "check.h"

#include <stdlib.h>
#include <unistd.h>

enum { LONGEST_BYTES = 200000, TELL_NS = 20000000 };

static const size_t sizes[] = {8, 5000, LONGEST_BYTES};

struct onward {
	struct check check;
	const char *end; /* rank 0's: the file's path */
	unsigned char *in, *out;
	uint64_t longest_ns, told_ns, good_ns; /* good: when the last message came or left */
};

static void expect(struct onward *onward, int error)
{
	uint64_t now_ns = ex_now_ns();
	char path[4096];
	FILE *f;

	if (error == MPI_SUCCESS) {
		onward->good_ns = now_ns;
		return;
	}
	snprintf(path, sizeof(path), "%s.%d", onward->end, onward->check.rank);
	f = fopen(path, "w");
	if (f) {
		fprintf(f, "%llu\n", (unsigned long long)((now_ns - onward->good_ns) / 1000000));
		fclose(f);
	}
	ex_abort("MPI error %d", error);
}

static void play_round(struct onward *onward, uint64_t round)
{
	int peer = 1 - onward->check.rank;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		int bytes = (int)sizes[i], tag = (int)i;
		MPI_Status status;

		ex_pattern_fill(onward->out, sizes[i], ex_mix(round << 8 | i << 1) + !peer);
		expect(onward, MPI_Sendrecv(onward->out, bytes, MPI_BYTE, peer, tag, onward->in,
					    bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &status));
		check_status(&status, peer, tag, sizes[i]);
		check_pattern(onward->in, sizes[i], ex_mix(round << 8 | i << 1) + peer, "message");
	}
}

static void tell(struct onward *onward, uint64_t round, uint64_t now_ns)
{
	if (onward->check.rank || now_ns < onward->told_ns + TELL_NS)
		return;
	printf("round %llu\n", (unsigned long long)round);
	fflush(stdout);
	onward->told_ns = now_ns;
}

static bool ends(struct onward *onward)
{
	int end = onward->check.rank == 0 && access(onward->end, F_OK) == 0;

	expect(onward, MPI_Bcast(&end, 1, MPI_INT, 0, MPI_COMM_WORLD));
	return end;
}

int main(int argc, char **argv)
{
	struct onward onward = {.check = check_start(&argc, &argv, 2), .end = getenv("ONWARD_END")};
	uint64_t begin_ns = ex_now_ns(), now_ns;

	check_options(argc, argv);
	if (onward.check.size != 2 || !onward.end)
		ex_quit(EX_EXIT_USAGE, "needs two ranks, and ONWARD_END");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	onward.in = ex_alloc(LONGEST_BYTES);
	onward.out = ex_alloc(LONGEST_BYTES);
	for (uint64_t round = 1;; round++) {
		bool end = ends(&onward);

		if (end)
			break;
		play_round(&onward, round);
		now_ns = ex_now_ns();
		if (now_ns - begin_ns > onward.longest_ns)
			onward.longest_ns = now_ns - begin_ns;
		begin_ns = now_ns;
		tell(&onward, round, now_ns);
	}
	if (onward.check.rank == 0)
		printf("longest round: %llu ms\n",
		       (unsigned long long)(onward.longest_ns / 1000000));
	free(onward.in);
	free(onward.out);
	return check_finish();
}
