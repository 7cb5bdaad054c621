/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the service tells its administrator: lines on stderr, for the journal. */
#ifndef BS_AUDIT_H
#define BS_AUDIT_H

#include <stdint.h>

enum bs_level { BS_ERROR = 3, BS_WARNING = 4, BS_NOTICE = 5, BS_INFO = 6 };

__attribute__((format(printf, 2, 3))) void bs_audit(enum bs_level level, const char *format, ...);

/* The same for what others can cause as often as they like: ten lines a second, and how many were
 * left out. */
__attribute__((format(printf, 2, 3))) void bs_audit_refused(uint64_t now, const char *format, ...);

#endif
