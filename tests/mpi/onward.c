/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two ranks exchange messages, short and long, and compare every byte, round after round, until the
 * file that ONWARD_END names is there. Rank 0 says at the end how long the longest round took, and
 * leaves the number of the last one in a file beside that one: what the launcher passes on may be
 * of rounds long ago. A rank that is told of an error leaves how long that took since its last
 * message, in ms, in another one, since its word may not get through.
 */
#include "check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { LONGEST_BYTES = 200000 };

static const size_t sizes[] = {8, 5000, LONGEST_BYTES};

struct onward {
	struct check check;
	const char *end; /* rank 0's: the file's path */
	int told;	 /* rank 0's: the file with the number of the last round, else -1 */
	unsigned char *in, *out;
	uint64_t longest_ns, good_ns; /* good: when the last message came or left */
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

static void begin_to_tell(struct onward *onward)
{
	char path[4096];

	onward->told = -1;
	if (onward->check.rank)
		return;
	snprintf(path, sizeof(path), "%s.round", onward->end);
	onward->told = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (onward->told < 0)
		ex_abort("%s cannot be written", path);
}

static void tell(const struct onward *onward, uint64_t round)
{
	if (onward->told >= 0 && pwrite(onward->told, &round, sizeof(round), 0) != sizeof(round))
		ex_abort("the number of a round cannot be written");
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
	begin_to_tell(&onward);
	for (uint64_t round = 1;; round++) {
		bool end = ends(&onward);

		if (end)
			break;
		play_round(&onward, round);
		now_ns = ex_now_ns();
		if (now_ns - begin_ns > onward.longest_ns)
			onward.longest_ns = now_ns - begin_ns;
		begin_ns = now_ns;
		tell(&onward, round);
	}
	if (onward.check.rank == 0)
		printf("longest round: %llu ms\n",
		       (unsigned long long)(onward.longest_ns / 1000000));
	free(onward.in);
	free(onward.out);
	return check_finish();
}
