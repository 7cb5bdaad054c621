/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cross-memory attach: reading the memory of another process (process_vm_readv) into a buffer of
 * ours, one copy and no help from it. The kernel may forbid this (Yama, containers, seccomp), so
 * each pair finds out once, by reading a word whose value the peer told us.
 */
#include "link/local/impl.h"
#include "setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define YAMA_SCOPE "/proc/sys/kernel/yama/ptrace_scope"

/* Yama's restriction: 0 none (or no Yama), 1 descendants and appointed tracers only, 2 privileged
 * processes only, 3 nobody. */
static int yama_scope(void)
{
	FILE *f = fopen(YAMA_SCOPE, "re");
	int scope = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%d", &scope) != 1)
		scope = 0;
	fclose(f);
	return scope;
}

int bw_local_cma_tracer(int scope, int parent)
{
	return scope == 1 && parent > 1 ? parent : 0;
}

/* Let peers read us. Under Yama's scope 1 that needs an appointment, of one process; it holds for
 * all that descend from that one (of the same user, which the kernel checks as ever). The ranks of
 * a job on a node are children of its launcher there: so our parent is appointed. Every process
 * descends from init, which stands for a parent that has ended. */
void bw_local_cma_allow(void)
{
	int tracer = bw_local_cma_tracer(yama_scope(), getppid());

	if (tracer)
		prctl(PR_SET_PTRACER, (unsigned long)tracer, 0, 0, 0);
}

static bool set_to(const char *value)
{
	const char *setting = bw_setting("BEOWIRE_LOCAL_CMA");

	return setting && strcmp(setting, value) == 0;
}

bool bw_local_cma_wanted(void)
{
	return !set_to("off");
}

bool bw_local_cma_demanded(void)
{
	return set_to("on");
}

static int64_t read_process(uint32_t pid, void *to, uint64_t addr, uint64_t len)
{
	struct iovec local = {.iov_base = to, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
	ssize_t n = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);

	return n < 0 ? -errno : n;
}

static bool reads_probe(const struct bw_local_peer *p)
{
	uint64_t word = 0;

	return p->id.pid && p->probe_addr &&
	       read_process(p->id.pid, &word, p->probe_addr, sizeof(word)) == sizeof(word) &&
	       word == p->probe_value;
}

/* Whether we can read this peer's memory; UNKNOWN while it has not yet told where its word is. */
enum bw_local_cma bw_local_cma_with(struct bw_local_peer *p)
{
	if (p->cma != BW_LOCAL_CMA_UNKNOWN)
		return p->cma;
	if (p->self)
		p->cma = BW_LOCAL_CMA_WORKS;
	else if (!p->link->cma)
		p->cma = BW_LOCAL_CMA_FORBIDDEN;
	else if (p->status) /* it has answered */
		p->cma = reads_probe(p) ? BW_LOCAL_CMA_WORKS : BW_LOCAL_CMA_FORBIDDEN;
	return p->cma;
}

/* Read up to len bytes at addr in the peer's memory: how many, or a negative errno. */
int64_t bw_local_cma_read(struct bw_local_peer *p, void *to, uint64_t addr, uint64_t len)
{
	if (p->self) {
		memmove(to, (const void *)(uintptr_t)addr, len);
		return (int64_t)len;
	}
	return read_process(p->id.pid, to, addr, len);
}

static const char *reason_of(int scope)
{
	if (scope == 1)
		return "Yama allows it to processes of one launcher alone, and this one has none: "
		       "start it by one, or set kernel.yama.ptrace_scope=0";
	if (scope >= 2)
		return "kernel.yama.ptrace_scope is 2 or more: set it to 0 or 1";
	return "the kernel forbids process_vm_readv(): allow it in the container's seccomp profile";
}

int bw_local_cma_check(const char **why)
{
	volatile uint32_t word = 0x600DF00D;
	int status = 0;

	*why = "cross-memory attach works";
	if (!bw_local_cma_wanted()) {
		*why = "BEOWIRE_LOCAL_CMA=off forbids it";
		return -EPERM;
	}
	bw_local_cma_allow();
	/* A child reading its parent is what two unrelated processes of one user are to each other.
	 */
	pid_t parent = getpid(), child = fork();

	if (child < 0) {
		*why = "cannot start a process to try it";
		return -errno;
	}
	if (child == 0) {
		uint32_t seen = 0;
		int64_t n = read_process((uint32_t)parent, &seen, (uintptr_t)&word, sizeof(seen));

		_exit(n == sizeof(seen) && seen == word ? 0 : 1);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	*why = reason_of(yama_scope());
	return -EPERM;
}
