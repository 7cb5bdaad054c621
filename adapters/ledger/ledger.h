/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the two parts of the ledger share: calls of MPI (ledger.c) and of libc (libc.c). */
#ifndef LEDGER_H
#define LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

/* Between MPI_Init and MPI_Finalize. */
extern _Atomic bool ledger_open;

/* This thread called MPI_Init: it is the program's, others are the transport's helpers. */
extern _Thread_local bool ledger_program;

uint64_t ledger_now_ns(void);

/* Writes what was asked of libc as a part of a JSON object, beginning with a comma. */
void ledger_libc_print(FILE *file);

#endif
