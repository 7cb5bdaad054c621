/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Derived datatypes: a message sent from scattered memory arrives in scattered memory, element by
 * element, and what lies in the gaps stays as it was. Each layout is sent as itself and as packed
 * bytes, and received as itself and as packed bytes.
 */
#include "check.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 0xA5, LAYOUTS = 7 };

struct layout {
	const char *name;
	MPI_Datatype type;
	int count;
};

struct record {
	char letter;
	double number;
	short pair[2];
};

static MPI_Datatype record_type(void)
{
	int lengths[] = {1, 1, 2};
	MPI_Aint offsets[] = {offsetof(struct record, letter), offsetof(struct record, number),
			      offsetof(struct record, pair)};
	MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT}, packed, type;

	MPI_Type_create_struct(3, lengths, offsets, types, &packed);
	MPI_Type_create_resized(packed, 0, sizeof(struct record), &type);
	MPI_Type_free(&packed);
	return type;
}

/* Layouts with small and large gaps, in kilobytes and megabytes. */
static void layouts_make(struct layout *layouts)
{
	int lengths[] = {3, 1, 7}, places[] = {0, 5, 11};
	int whole[] = {600, 700}, part[] = {500, 333}, start[] = {50, 77};

	layouts[0] = (struct layout){"contiguous", MPI_DATATYPE_NULL, 40};
	MPI_Type_contiguous(100, MPI_INT, &layouts[0].type);
	layouts[1] = (struct layout){"short vector", MPI_DATATYPE_NULL, 1};
	MPI_Type_vector(20, 1, 3, MPI_SHORT, &layouts[1].type);
	layouts[2] = (struct layout){"column of a matrix", MPI_DATATYPE_NULL, 1};
	MPI_Type_vector(20000, 1, 50, MPI_DOUBLE, &layouts[2].type);
	layouts[3] = (struct layout){"megabytes in rows", MPI_DATATYPE_NULL, 1};
	MPI_Type_vector(600, 4000, 4100, MPI_BYTE, &layouts[3].type);
	layouts[4] = (struct layout){"indexed", MPI_DATATYPE_NULL, 300};
	MPI_Type_indexed(3, lengths, places, MPI_FLOAT, &layouts[4].type);
	layouts[5] = (struct layout){"part of a matrix", MPI_DATATYPE_NULL, 1};
	MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &layouts[5].type);
	layouts[6] = (struct layout){"records", record_type(), 5000};
	for (int i = 0; i < LAYOUTS; i++)
		MPI_Type_commit(&layouts[i].type);
}

/* Bytes of memory from the first to behind the last byte of the layout. */
static size_t layout_span(const struct layout *layout)
{
	MPI_Aint lower, extent, true_lower, true_extent;

	MPI_Type_get_extent(layout->type, &lower, &extent);
	MPI_Type_get_true_extent(layout->type, &true_lower, &true_extent);
	return (size_t)(extent * (layout->count - 1) + true_lower + true_extent);
}

static size_t layout_bytes(const struct layout *layout)
{
	int bytes;

	MPI_Type_size(layout->type, &bytes);
	return (size_t)bytes * (size_t)layout->count;
}

/* @packed: as a row of bytes in the order of the layout, else in the layout itself. */
static void send_layout(const struct layout *layout, bool packed, int to)
{
	unsigned char *memory = ex_alloc(layout_span(layout));
	size_t bytes = layout_bytes(layout);

	ex_pattern_fill(memory, layout_span(layout), bytes);
	if (packed) {
		unsigned char *row = ex_alloc(bytes);
		int at = 0;

		MPI_Pack(memory, layout->count, layout->type, row, (int)bytes, &at, MPI_COMM_WORLD);
		MPI_Send(row, at, MPI_PACKED, to, 1, MPI_COMM_WORLD);
		free(row);
	} else {
		MPI_Send(memory, layout->count, layout->type, to, 1, MPI_COMM_WORLD);
	}
	free(memory);
}

/* Byte by byte: what the layout covers must be the sender's, the gaps must be the guard. */
static void compare(const struct layout *layout, const unsigned char *memory)
{
	size_t span = layout_span(layout), bytes = layout_bytes(layout);
	unsigned char *source = ex_alloc(span), *wanted = ex_alloc(span), *row = ex_alloc(bytes);
	int at = 0;

	ex_pattern_fill(source, span, bytes);
	memset(wanted, GUARD, span);
	MPI_Pack(source, layout->count, layout->type, row, (int)bytes, &at, MPI_COMM_WORLD);
	at = 0;
	MPI_Unpack(row, (int)bytes, &at, wanted, layout->count, layout->type, MPI_COMM_WORLD);
	for (size_t i = 0; i < span; i++)
		check_that(memory[i] == wanted[i], "%s: byte %zu of %zu differs", layout->name, i,
			   span);
	free(row);
	free(wanted);
	free(source);
}

static void receive_layout(const struct layout *layout, bool packed, int from)
{
	size_t span = layout_span(layout), bytes = layout_bytes(layout);
	unsigned char *memory = ex_alloc(span);
	MPI_Status status;

	memset(memory, GUARD, span);
	if (packed) {
		unsigned char *row = ex_alloc(bytes);
		int at = 0;

		MPI_Recv(row, (int)bytes, MPI_PACKED, from, 1, MPI_COMM_WORLD, &status);
		MPI_Unpack(row, (int)bytes, &at, memory, layout->count, layout->type,
			   MPI_COMM_WORLD);
		free(row);
	} else {
		int count;

		MPI_Recv(memory, layout->count, layout->type, from, 1, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, layout->type, &count);
		check_that(count == layout->count, "%s: %d elements instead of %d", layout->name,
			   count, layout->count);
	}
	compare(layout, memory);
	free(memory);
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 2);
	struct layout layouts[LAYOUTS];
	int last = check.size - 1;

	check_options(argc, argv);
	layouts_make(layouts);
	for (int i = 0; i < LAYOUTS; i++) {
		for (int way = 0; way < 4; way++) {
			if (check.rank == 0)
				receive_layout(&layouts[i], way & 1, last);
			else if (check.rank == last)
				send_layout(&layouts[i], way & 2, 0);
		}
		MPI_Type_free(&layouts[i].type);
	}
	return check_finish();
}
