/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Users for tests of the kernel module: processes that have put on another uid. Failures in them
 * are their exit status: assertions belong to the test's own process. */
#ifndef KUSER_H
#define KUSER_H

#include "ktest.h"

enum { KT_ALICE = 1001, KT_BOB = 1002 };

/* A setting of both nodes, by its name in /proc/sys/net/beowire. */
void kt_settings(const char *name, const char *value);
/* Write the settings of this node's alone: 0, or a negative errno. */
int kt_set(const char *name, const char *text);
/* The same by root without CAP_NET_ADMIN, which is given up for good: 0 or a positive errno. */
int kt_set_without_admin(const char *name, const char *text);
/* A parameter of the module. */
uint64_t kt_parameter(const char *name);
/* Until the test ends. The name is kept. */
void kt_set_parameter(const char *name, uint64_t value);
/* What the test has set is as it was before. */
void kt_restore_parameters(void);
/* Before all tests of a program: kt_attach(), and users may open sockets. */
int kt_open_to_all(void **state);
/* A process of this user and these groups runs `f` and exits with what that gives. It ends with
 * the test at the latest. */
pid_t kt_begin_as(uid_t user, gid_t group, gid_t other, int (*f)(void *), void *arg);
/* Its exit status, or 128 and the signal. */
int kt_end_of(pid_t pid);
/* Those that the test has begun and that have not ended are killed. */
void kt_end_begun(void);
/* kt_begin_as() and kt_end_of(). */
int kt_as(uid_t user, int (*f)(void *), void *arg);

#endif
