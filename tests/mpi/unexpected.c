/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unexpected messages in quantity: the last rank sends very many of tag 1, then one of tag 2, which
 * rank 0 receives first. Credit that waited for matching would hang here; memory of the receiver is
 * printed, for the caller to judge.
 */
#include "check.h"

#include <stdlib.h>

enum tag { TAG_MANY = 1, TAG_LAST = 2 };

struct load {
	uint64_t count;
	size_t bytes; /* of each message */
	const char *name;
};

static uint64_t message_seed(const struct load *load, uint64_t index)
{
	return load->bytes << 32 | index;
}

/* Blocking sends: the short ones of this program must be taken without a receive. */
static void send_blocking(const struct load *load, int to)
{
	unsigned char *buffer = ex_alloc(load->bytes);

	for (uint64_t i = 0; i < load->count; i++) {
		ex_pattern_fill(buffer, load->bytes, message_seed(load, i));
		MPI_Send(buffer, (int)load->bytes, MPI_BYTE, to, TAG_MANY, MPI_COMM_WORLD);
	}
	MPI_Send(NULL, 0, MPI_BYTE, to, TAG_LAST, MPI_COMM_WORLD);
	free(buffer);
}

/* Non-blocking sends, complete only after the receiver has taken them, of any length. */
static void send_all_at_once(const struct load *load, int to)
{
	unsigned char *buffers = ex_alloc(load->count * load->bytes);
	MPI_Request *requests = ex_alloc(load->count * sizeof(*requests));

	for (uint64_t i = 0; i < load->count; i++) {
		unsigned char *buffer = buffers + i * load->bytes;

		ex_pattern_fill(buffer, load->bytes, message_seed(load, i));
		MPI_Isend(buffer, (int)load->bytes, MPI_BYTE, to, TAG_MANY, MPI_COMM_WORLD,
			  &requests[i]);
	}
	MPI_Send(NULL, 0, MPI_BYTE, to, TAG_LAST, MPI_COMM_WORLD);
	MPI_Waitall((int)load->count, requests, MPI_STATUSES_IGNORE);
	free(requests);
	free(buffers);
}

static void receive_last_first(const struct load *load, int from)
{
	unsigned char *buffer = ex_alloc(load->bytes);
	uint64_t before_kib = check_peak_kib();
	MPI_Status status;

	MPI_Recv(NULL, 0, MPI_BYTE, from, TAG_LAST, MPI_COMM_WORLD, &status);
	check_status(&status, from, TAG_LAST, 0);
	printf("%s: %llu messages of %zu bytes unexpected, VmHWM %llu KiB before, %llu KiB after\n",
	       load->name, (unsigned long long)load->count, load->bytes,
	       (unsigned long long)before_kib, (unsigned long long)check_peak_kib());
	for (uint64_t i = 0; i < load->count; i++) {
		MPI_Recv(buffer, (int)load->bytes, MPI_BYTE, from, TAG_MANY, MPI_COMM_WORLD,
			 &status);
		check_status(&status, from, TAG_MANY, load->bytes);
		check_pattern(buffer, load->bytes, message_seed(load, i), load->name);
	}
	free(buffer);
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 2);
	uint64_t count = check_option(argc, argv, "--count", 100000, 1, 1u << 24);
	struct load loads[] = {
		{count, 8, "blocking"},
		{count / 20 + 1, 3000, "non-blocking"},
		{count / 1000 + 1, 300000, "long"},
	};

	check_options(argc, argv);
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		if (check.rank == 0)
			receive_last_first(&loads[i], check.size - 1);
		else if (check.rank != check.size - 1)
			continue;
		else if (i == 0)
			send_blocking(&loads[i], 0);
		else
			send_all_at_once(&loads[i], 0);
	}
	return check_finish();
}
