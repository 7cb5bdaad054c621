/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Capabilities and system calls; see confine.h. */
#include "confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define BS_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define BS_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#define BS_KEPT (1ull << CAP_NET_RAW | 1ull << CAP_NET_ADMIN | 1ull << CAP_BPF)

static int bs_confine_to(uint64_t rights)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct had[2], kept[2] = {0};

	if (syscall(SYS_capget, &head, had))
		return -errno;
	for (int i = 0; i < 2; i++) {
		uint32_t mask = (uint32_t)(rights >> (32 * i));

		kept[i].effective = kept[i].permitted = had[i].permitted & mask;
	}
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
		if (!(rights >> cap & 1))
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	}
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capset, &head, kept))
		return -errno;
	return 0;
}

int bs_confine_rights(void)
{
	return bs_confine_to(BS_KEPT);
}

int bs_confine_no_rights(void)
{
	return bs_confine_to(0);
}

#ifdef BS_ARCHITECTURE

static const uint16_t bs_calls[] = {
	SYS_accept4,
	SYS_bind,
	SYS_bpf,
	SYS_brk,
	SYS_clock_gettime,
	SYS_clock_nanosleep,
	SYS_close,
	SYS_connect,
	SYS_dup,
	SYS_epoll_ctl,
	SYS_epoll_pwait,
	SYS_exit,
	SYS_exit_group,
	SYS_fcntl,
	SYS_fstat,
	SYS_futex,
	SYS_getegid,
	SYS_geteuid,
	SYS_getpeername,
	SYS_getpid,
	SYS_getrandom,
	SYS_getsockname,
	SYS_getsockopt,
	SYS_gettid,
	SYS_ioctl,
	SYS_listen,
	SYS_lseek,
	SYS_madvise,
	SYS_mmap,
	SYS_mprotect,
	SYS_mremap,
	SYS_munmap,
	SYS_nanosleep, /* usleep() of some C libraries */
	SYS_newfstatat,
	SYS_openat,
	SYS_ppoll,
	SYS_read,
	SYS_recvfrom,
	SYS_recvmsg,
	SYS_restart_syscall,
	SYS_rseq,
	SYS_set_robust_list,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_sendmsg,
	SYS_sendto,
	SYS_setsockopt,
	SYS_socket,
	SYS_tgkill,
	SYS_unlinkat,
	SYS_write,
	SYS_writev,
#ifdef SYS_poll
	SYS_poll,
#endif
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
#ifdef SYS_unlink
	SYS_unlink,
#endif
};

#define BS_CALLS (sizeof(bs_calls) / sizeof(bs_calls[0]))

int bs_confine_calls(void)
{
	struct sock_filter code[BS_CALLS + 8];
	struct sock_fprog program = {.filter = code};
	unsigned short n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BS_ARCHITECTURE, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (unsigned int i = 0; i < BS_CALLS; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, bs_calls[i],
							 (uint8_t)(BS_CALLS - i), 0);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = n;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
		return -errno;
	return 0;
}

#else

int bs_confine_calls(void)
{
	return 0;
}

#endif
