/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The groups of unit tests of the link emulator, one per file; each returns how many failed. */
#ifndef TEST_EMULATOR_GROUPS_H
#define TEST_EMULATOR_GROUPS_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int settings_tests(void);
int request_tests(void);
int model_tests(void);
int queue_tests(void);
int chance_tests(void);
int histogram_tests(void);
int hold_tests(void);
int headers_tests(void);
int segment_tests(void);
int tally_tests(void);

#endif
