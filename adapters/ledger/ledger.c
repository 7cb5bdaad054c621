/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps a ledger of an unmodified MPI program, from the end of MPI_Init to the beginning of
 * MPI_Finalize: how often it called which function of MPI, how long it was in it and how much it
 * sent; what it asked of the kernel by way of libc; and what the kernel counted of it. It is
 * preloaded. Each process writes one file into the directory that BEOWIRE_STATS names.
 *
 * It is compiled against the program's MPI by `beowire bench apps --profile`, with that MPI's
 * compiler; the normal build has it not. Calls by Fortran are not seen. Counts of functions of MPI
 * are those of the thread that called MPI_Init.
 */
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "ledger.h"

/* Functions of MPI that are counted. */
#define MPI_CALLS(X)                                                                               \
	X(Send)                                                                                    \
	X(Isend)                                                                                   \
	X(Ssend)                                                                                   \
	X(Rsend)                                                                                   \
	X(Irsend)                                                                                  \
	X(Sendrecv)                                                                                \
	X(Sendrecv_replace)                                                                        \
	X(Recv)                                                                                    \
	X(Irecv)                                                                                   \
	X(Wait)                                                                                    \
	X(Waitall)                                                                                 \
	X(Waitany)                                                                                 \
	X(Waitsome)                                                                                \
	X(Test)                                                                                    \
	X(Testall)                                                                                 \
	X(Testany)                                                                                 \
	X(Probe)                                                                                   \
	X(Iprobe)                                                                                  \
	X(Start)                                                                                   \
	X(Startall)                                                                                \
	X(Barrier)                                                                                 \
	X(Bcast)                                                                                   \
	X(Reduce)                                                                                  \
	X(Allreduce)                                                                               \
	X(Alltoall)                                                                                \
	X(Alltoallv)                                                                               \
	X(Allgather)                                                                               \
	X(Allgatherv)                                                                              \
	X(Gather)                                                                                  \
	X(Scatter)                                                                                 \
	X(Scan)                                                                                    \
	X(File_write_at_all)                                                                       \
	X(File_read_at_all)

#define MEMBER(name) CALL_##name,
enum mpi_call { MPI_CALLS(MEMBER) MPI_CALL_COUNT };

#define NAME(name) #name,
static const char *const mpi_names[] = {MPI_CALLS(NAME)};

/* Messages by their length in bytes: up to the bound, the last class without one. */
static const uint64_t size_bounds[] = {64, 1024, 8192, 65536, 1048576, UINT64_MAX};
#define SIZES (sizeof(size_bounds) / sizeof(size_bounds[0]))

static struct {
	uint64_t calls, ns, bytes;
} mpi_counts[MPI_CALL_COUNT];
static uint64_t sizes[SIZES];

/* What the kernel had counted when MPI_Init ended. */
struct account {
	uint64_t at_ns, user_us, system_us, voluntary, involuntary, faults;
	uint64_t ran_ns, queued_ns; /* of the program's thread */
};
static struct account began;
_Atomic bool ledger_open;
_Thread_local bool ledger_program;

uint64_t ledger_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t us_of(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_usec;
}

static struct account account_now(void)
{
	unsigned long long ran = 0, queued = 0;
	FILE *file = fopen("/proc/thread-self/schedstat", "r");
	struct account now = {.at_ns = ledger_now_ns()};
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	now.user_us = us_of(usage.ru_utime);
	now.system_us = us_of(usage.ru_stime);
	now.voluntary = (uint64_t)usage.ru_nvcsw;
	now.involuntary = (uint64_t)usage.ru_nivcsw;
	now.faults = (uint64_t)usage.ru_minflt;
	if (file && fscanf(file, "%llu %llu", &ran, &queued) == 2) {
		now.ran_ns = ran;
		now.queued_ns = queued;
	}
	if (file)
		fclose(file);
	return now;
}

static void begin(void)
{
	ledger_program = true;
	began = account_now();
	ledger_open = true;
}

static void account_print(FILE *file)
{
	struct account now = account_now();

	fprintf(file,
		"\"wall_ns\": %llu, \"user_us\": %llu, \"system_us\": %llu, \"voluntary\": %llu, "
		"\"involuntary\": %llu, \"faults\": %llu, \"ran_ns\": %llu, \"queued_ns\": %llu",
		(unsigned long long)(now.at_ns - began.at_ns),
		(unsigned long long)(now.user_us - began.user_us),
		(unsigned long long)(now.system_us - began.system_us),
		(unsigned long long)(now.voluntary - began.voluntary),
		(unsigned long long)(now.involuntary - began.involuntary),
		(unsigned long long)(now.faults - began.faults),
		(unsigned long long)(now.ran_ns - began.ran_ns),
		(unsigned long long)(now.queued_ns - began.queued_ns));
}

static void calls_print(FILE *file)
{
	const char *comma = "";

	fprintf(file, ", \"mpi\": {");
	for (int i = 0; i < MPI_CALL_COUNT; i++) {
		if (!mpi_counts[i].calls)
			continue;
		fprintf(file, "%s\"%s\": [%llu, %llu, %llu]", comma, mpi_names[i],
			(unsigned long long)mpi_counts[i].calls,
			(unsigned long long)mpi_counts[i].ns,
			(unsigned long long)mpi_counts[i].bytes);
		comma = ", ";
	}
	fprintf(file, "}, \"sizes\": [");
	for (size_t i = 0; i < SIZES; i++)
		fprintf(file, "%s%llu", i ? ", " : "", (unsigned long long)sizes[i]);
	fprintf(file, "]");
	ledger_libc_print(file);
}

static void end(void)
{
	const char *directory = getenv("BEOWIRE_STATS");
	char host[HOST_NAME_MAX + 1] = "", path[PATH_MAX];
	FILE *file;

	if (!ledger_open || !directory)
		return;
	ledger_open = false;
	gethostname(host, sizeof(host) - 1);
	snprintf(path, sizeof(path), "%s/%s-%d.ledger", directory, host, (int)getpid());
	file = fopen(path, "w");
	if (!file) {
		perror(path);
		return;
	}
	fprintf(file, "{");
	account_print(file);
	calls_print(file);
	fprintf(file, "}\n");
	if (fclose(file) != 0)
		perror(path);
}

static void sent(enum mpi_call call, uint64_t bytes)
{
	size_t class = 0;

	if (!ledger_program)
		return;
	while (bytes > size_bounds[class])
		class ++;
	sizes[class]++;
	mpi_counts[call].bytes += bytes;
}

static uint64_t bytes_of(int count, MPI_Datatype type)
{
	int size = 0;

	if (count <= 0 || type == MPI_DATATYPE_NULL)
		return 0;
	PMPI_Type_size(type, &size);
	return (uint64_t)count * (uint64_t)size;
}

static void left(enum mpi_call call, uint64_t at)
{
	if (!ledger_program)
		return;
	mpi_counts[call].calls++;
	mpi_counts[call].ns += ledger_now_ns() - at;
}

/* A function of MPI with its parameters, and the arguments that they are. */
#define COUNTED(name, parameters, arguments)                                                       \
	EXPORT int MPI_##name parameters                                                           \
	{                                                                                          \
		uint64_t at = ledger_now_ns();                                                     \
		int result = PMPI_##name arguments;                                                \
                                                                                                   \
		left(CALL_##name, at);                                                             \
		return result;                                                                     \
	}

/* The same, which sends @count of @type. */
#define SENDING(name, count, type, parameters, arguments)                                          \
	EXPORT int MPI_##name parameters                                                           \
	{                                                                                          \
		uint64_t at = ledger_now_ns();                                                     \
		int result = PMPI_##name arguments;                                                \
                                                                                                   \
		left(CALL_##name, at);                                                             \
		sent(CALL_##name, bytes_of(count, type));                                          \
		return result;                                                                     \
	}

EXPORT int MPI_Init(int *argc, char ***argv)
{
	int result = PMPI_Init(argc, argv);

	begin();
	return result;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int result = PMPI_Init_thread(argc, argv, required, provided);

	begin();
	return result;
}

EXPORT int MPI_Finalize(void)
{
	end();
	return PMPI_Finalize();
}

#define TO	     const void *data, int n, MPI_Datatype type, int rank, int tag, MPI_Comm comm
#define TO_ARGUMENTS data, n, type, rank, tag, comm

SENDING(Send, n, type, (TO), (TO_ARGUMENTS))
SENDING(Ssend, n, type, (TO), (TO_ARGUMENTS))
SENDING(Rsend, n, type, (TO), (TO_ARGUMENTS))
SENDING(Isend, n, type, (TO, MPI_Request *request), (TO_ARGUMENTS, request))
SENDING(Irsend, n, type, (TO, MPI_Request *request), (TO_ARGUMENTS, request))
SENDING(Sendrecv, n, type,
	(const void *data, int n, MPI_Datatype type, int rank, int tag, void *into, int room,
	 MPI_Datatype into_type, int from, int from_tag, MPI_Comm comm, MPI_Status *status),
	(data, n, type, rank, tag, into, room, into_type, from, from_tag, comm, status))
SENDING(Sendrecv_replace, n, type,
	(void *data, int n, MPI_Datatype type, int rank, int tag, int from, int from_tag,
	 MPI_Comm comm, MPI_Status *status),
	(data, n, type, rank, tag, from, from_tag, comm, status))
COUNTED(Recv,
	(void *data, int n, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
	 MPI_Status *status),
	(TO_ARGUMENTS, status))
COUNTED(Irecv,
	(void *data, int n, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
	 MPI_Request *request),
	(TO_ARGUMENTS, request))
COUNTED(Wait, (MPI_Request * request, MPI_Status *status), (request, status))
COUNTED(Waitall, (int n, MPI_Request requests[], MPI_Status *statuses), (n, requests, statuses))
COUNTED(Waitany, (int n, MPI_Request requests[], int *which, MPI_Status *status),
	(n, requests, which, status))
COUNTED(Waitsome, (int n, MPI_Request requests[], int *count, int which[], MPI_Status statuses[]),
	(n, requests, count, which, statuses))
COUNTED(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status))
COUNTED(Testall, (int n, MPI_Request requests[], int *flag, MPI_Status statuses[]),
	(n, requests, flag, statuses))
COUNTED(Testany, (int n, MPI_Request requests[], int *which, int *flag, MPI_Status *status),
	(n, requests, which, flag, status))
COUNTED(Probe, (int rank, int tag, MPI_Comm comm, MPI_Status *status), (rank, tag, comm, status))
COUNTED(Iprobe, (int rank, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
	(rank, tag, comm, flag, status))
COUNTED(Start, (MPI_Request * request), (request))
COUNTED(Startall, (int n, MPI_Request requests[]), (n, requests))
COUNTED(Barrier, (MPI_Comm comm), (comm))
SENDING(Bcast, n, type, (void *data, int n, MPI_Datatype type, int root, MPI_Comm comm),
	(data, n, type, root, comm))
SENDING(Reduce, n, type,
	(const void *data, void *into, int n, MPI_Datatype type, MPI_Op op, int root,
	 MPI_Comm comm),
	(data, into, n, type, op, root, comm))
SENDING(Allreduce, n, type,
	(const void *data, void *into, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
	(data, into, n, type, op, comm))
SENDING(Scan, n, type,
	(const void *data, void *into, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
	(data, into, n, type, op, comm))

/* Collective calls with two buffers: the size is that of what goes to one rank. */
#define BOTH                                                                                       \
	const void *data, int n, MPI_Datatype type, void *into, int room, MPI_Datatype into_type
#define BOTH_ARGUMENTS data, n, type, into, room, into_type

SENDING(Alltoall, n, type, (BOTH, MPI_Comm comm), (BOTH_ARGUMENTS, comm))
SENDING(Allgather, n, type, (BOTH, MPI_Comm comm), (BOTH_ARGUMENTS, comm))
SENDING(Gather, n, type, (BOTH, int root, MPI_Comm comm), (BOTH_ARGUMENTS, root, comm))
SENDING(Scatter, n, type, (BOTH, int root, MPI_Comm comm), (BOTH_ARGUMENTS, root, comm))
SENDING(Allgatherv, n, type,
	(const void *data, int n, MPI_Datatype type, void *into, const int rooms[],
	 const int places[], MPI_Datatype into_type, MPI_Comm comm),
	(data, n, type, into, rooms, places, into_type, comm))
SENDING(Alltoallv, counts[0], type,
	(const void *data, const int counts[], const int places[], MPI_Datatype type, void *into,
	 const int rooms[], const int into_places[], MPI_Datatype into_type, MPI_Comm comm),
	(data, counts, places, type, into, rooms, into_places, into_type, comm))
SENDING(File_write_at_all, n, type,
	(MPI_File file, MPI_Offset at_byte, const void *data, int n, MPI_Datatype type,
	 MPI_Status *status),
	(file, at_byte, data, n, type, status))
COUNTED(File_read_at_all,
	(MPI_File file, MPI_Offset at_byte, void *data, int n, MPI_Datatype type,
	 MPI_Status *status),
	(file, at_byte, data, n, type, status))
