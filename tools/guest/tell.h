/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a guest does now, told on its console for whoever asks why it does not end. */
#ifndef GUEST_TELL_H
#define GUEST_TELL_H

/* `why` in one line; then where each processor and each blocked task of the kernel is, and each
 * thread of each process with its stack in the kernel. The host looks for the first line and the
 * last one: vm/machine.py. */
void guest_tell(const char *why);

#endif
