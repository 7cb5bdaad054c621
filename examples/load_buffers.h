/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory for messages of any length, kept for the next ones of about the same.
 */
#ifndef EXAMPLES_LOAD_BUFFERS_H
#define EXAMPLES_LOAD_BUFFERS_H

#include <stddef.h>

/* Memory for at least @bytes, until buffer_return() with the same @bytes. */
void *buffer_take(size_t bytes);
void buffer_return(void *buffer, size_t bytes);

#endif
