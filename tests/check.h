/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a child of a test demands: its parent sees by its status that it did not get it. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __func__, __LINE__, #condition);            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#endif
