/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Overlap [B1]: how long rank 0 takes to send a long message, to compute, and to do both by
 * MPI_Isend, computing and MPI_Wait. Where the transfer goes on by itself, both take no longer than
 * the longer of the two. Rank 1 only receives; the computing lasts about as long as the transfer.
 */
#include "common.h"

#include <getopt.h>
#include <mpi.h>
#include <stdlib.h>

static const char help[] =
	"usage: mpirun -n 2 overlap [options]\n"
	"Times a transfer, computing, and both at once; prints one JSON object.\n"
	"  --bytes N    of the message (default 4m)\n"
	"  --rounds N   of the three in turn (default 7)\n"
	"  --help       print this\n";

enum kind { TRANSFER, COMPUTE, BOTH, KINDS };

struct overlap {
	size_t bytes;
	uint64_t rounds;
	uint64_t work; /* turns of the computing loop */
	unsigned char *data;
	int rank;
};

static void options_read(int argc, char **argv, struct overlap *o)
{
	static const struct option table[] = {
		{"bytes", required_argument, NULL, 'b'},
		{"rounds", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option;

	o->bytes = 4u << 20;
	o->rounds = 7;
	while ((option = ex_option(argc, argv, table, help)) != EX_OPTIONS_END) {
		if (option == 'b')
			o->bytes = ex_parse_integer("--bytes", optarg, 1, 1u << 30);
		else
			o->rounds = ex_parse_integer("--rounds", optarg, 1, 1000);
	}
}

static void compute(uint64_t turns)
{
	volatile uint64_t sum = 0;

	for (uint64_t i = 0; i < turns; i++)
		sum = ex_mix(sum);
}

/* What the sender times: the message, if there is one, and the computing, if there is any. */
static uint64_t send_timed(const struct overlap *o, enum kind kind)
{
	MPI_Request request = MPI_REQUEST_NULL;
	uint64_t start_ns = ex_now_ns();

	if (kind != COMPUTE)
		MPI_Isend(o->data, (int)o->bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
	if (kind != TRANSFER)
		compute(o->work);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	return ex_now_ns() - start_ns;
}

/* Rank 0: how long it took; others: 0. */
static uint64_t step(const struct overlap *o, enum kind kind, uint64_t seed)
{
	MPI_Request request = MPI_REQUEST_NULL;
	uint64_t took_ns = 0;

	if (o->rank == 0)
		ex_pattern_fill(o->data, o->bytes, seed);
	else if (kind != COMPUTE)
		MPI_Irecv(o->data, (int)o->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
	MPI_Barrier(MPI_COMM_WORLD);
	if (o->rank == 0)
		took_ns = send_timed(o, kind);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (o->rank == 1 && kind != COMPUTE &&
	    ex_pattern_check(o->data, o->bytes, seed) != o->bytes)
		ex_abort("the message did not arrive as it was sent");
	return took_ns;
}

/* The computing is to last as long as a transfer does: by the shortest of some of each, as others
 * may have had the processor. */
static void work_find(struct overlap *o)
{
	const uint64_t probe = 1000000;
	uint64_t sent_ns = UINT64_MAX, probe_ns = UINT64_MAX;

	for (uint64_t i = 0; i < 5; i++) {
		uint64_t ns = step(o, TRANSFER, i), start_ns;

		sent_ns = ns < sent_ns ? ns : sent_ns;
		start_ns = ex_now_ns();
		compute(probe);
		ns = ex_now_ns() - start_ns + 1;
		probe_ns = ns < probe_ns ? ns : probe_ns;
	}
	o->work = sent_ns * probe / probe_ns;
}

static void times_print(const char *name, const uint64_t *ns, uint64_t rounds)
{
	printf(", \"%s\": [", name);
	for (uint64_t i = 0; i < rounds; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)ns[i * KINDS]);
	printf("]");
}

static void overlap_measure(struct overlap *o)
{
	uint64_t *ns = ex_alloc(o->rounds * KINDS * sizeof(*ns));

	work_find(o);
	for (uint64_t round = 0; round < o->rounds; round++)
		for (enum kind kind = TRANSFER; kind < KINDS; kind++)
			ns[round * KINDS + kind] = step(o, kind, round * KINDS + kind);
	if (o->rank == 0) {
		printf("{\"program\": \"overlap\", \"library\": ");
		ex_json_string(stdout, ex_library());
		printf(", \"bytes\": %zu", o->bytes);
		times_print("transfer_ns", ns + TRANSFER, o->rounds);
		times_print("compute_ns", ns + COMPUTE, o->rounds);
		times_print("both_ns", ns + BOTH, o->rounds);
		printf("}\n");
	}
	free(ns);
}

int main(int argc, char **argv)
{
	struct overlap o = {0};
	int size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &o.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	options_read(argc, argv, &o);
	if (size != 2)
		ex_quit(EX_EXIT_USAGE, "2 ranks are needed");
	o.data = ex_alloc(o.bytes);
	overlap_measure(&o);
	free(o.data);
	MPI_Finalize();
	return 0;
}
