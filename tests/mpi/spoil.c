/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A library that is loaded before the MPI library and spoils messages, by MPI's profiling
 * interface: a program that checks what it receives must notice. SPOIL_SENT and SPOIL_RECEIVED say
 * which byte in the memory of a message is turned over, before it is sent or after MPI_Recv() has
 * received it; messages without data stay as they are. SPOIL_GATHERED does so after a collective
 * call, if it left so many bytes.
 */
#include <mpi.h>
#include <stdlib.h>

static void spoil(const char *variable, void *data, int count)
{
	const char *offset = getenv(variable);

	if (offset && count > 0)
		((unsigned char *)data)[strtoul(offset, NULL, 10)] ^= 0xff;
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	spoil("SPOIL_SENT", (void *)data, count);
	return PMPI_Send(data, count, type, to, tag, comm);
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
	      MPI_Request *request)
{
	spoil("SPOIL_SENT", (void *)data, count);
	return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
	     MPI_Status *status)
{
	int error = PMPI_Recv(data, count, type, from, tag, comm, status);

	spoil("SPOIL_RECEIVED", data, count);
	return error;
}

static void spoil_gathered(void *data, int count, MPI_Datatype type)
{
	const char *offset = getenv("SPOIL_GATHERED");
	int size;

	MPI_Type_size(type, &size);
	if (offset && strtol(offset, NULL, 10) < (long)count * size)
		spoil("SPOIL_GATHERED", data, count);
}

int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	int error = PMPI_Bcast(data, count, type, root, comm);

	spoil_gathered(data, count, type);
	return error;
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	int error = PMPI_Allreduce(in, out, count, type, op, comm);

	spoil_gathered(out, count, type);
	return error;
}

int MPI_Alltoall(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
		 MPI_Datatype out_type, MPI_Comm comm)
{
	int error = PMPI_Alltoall(in, in_count, in_type, out, out_count, out_type, comm);

	spoil_gathered(out, out_count, out_type);
	return error;
}
