/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line. */
#ifndef EM_OPTIONS_H
#define EM_OPTIONS_H

#include "link.h"

enum em_options { EM_OPTIONS_RUN, EM_OPTIONS_DONE, EM_OPTIONS_WRONG };

/* Fill in what is asked for. DONE: it was a question (--help), and is answered. WRONG: `why` says
 * what, and how it would be right. */
enum em_options em_options_read(struct em_link *l, int argc, char **argv, char why[EM_WHY_MAX]);

#endif
