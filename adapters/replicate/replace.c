/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One mapping takes another's place. The kernel holds the lock of all mappings meanwhile, so no
 * thread sees a gap. What fails may leave one, though, where the C library was: so what follows
 * needs no instruction outside of this library, whose own text stays where it is.
 */
#include "replicate.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
static long call(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
static long call(long number, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#else
static long call(long number, long a, long b, long c, long d, long e, long f)
{
	long result = syscall(number, a, b, c, d, e, f);

	return result < 0 ? -errno : result;
}
#endif

static void __attribute__((noreturn)) give_up(void)
{
	static const char text[] = "beowire-replicate: a mapping is gone and cannot be restored\n";

	call(SYS_write, STDERR_FILENO, (long)text, sizeof(text) - 1, 0, 0, 0);
	for (;;)
		call(SYS_exit_group, 127, 0, 0, 0, 0, 0);
}

int bwrp_replace(void *from, int file, const struct bwrp_area *area)
{
	long start = (long)area->start, n = (long)bwrp_length(area), result;

	result = call(SYS_mremap, (long)from, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, start, 0);
	if (result == start)
		return 0;
	/* What was there was the file's; whether it still is or not. */
	if (call(SYS_mmap, start, n, area->prot, MAP_PRIVATE | MAP_FIXED, file,
		 (long)area->offset) != start)
		give_up();
	return (int)result;
}
