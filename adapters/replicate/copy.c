/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A copy of a file's areas in memory of one node. It has the same offsets as the file, and holes
 * where nothing was copied. No mapping of it is ever both writable and executable: it is written
 * by pwrite(), sealed, and mapped afterwards; one in large pages is anonymous memory that is
 * written before it becomes executable.
 */
#include "replicate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8 /* Linux 6.3 */
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA	     0x53564d41 /* Linux 5.17 */
#define PR_SET_VMA_ANON_NAME 0
#endif

#define CHUNK	   65536
#define NODES_MAX  1024
#define WORD_BITS  (8 * sizeof(unsigned long))
#define SEALS	   (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)
#define NAME_MAX_N 240 /* memfd_create(2) allows 249 */

/* Pages of this memory come from that node if it has any; no other policy would survive a node
 * that is full. Where the call is forbidden they come from the node of who touches them first. */
static void prefer(void *memory, size_t n, unsigned int node)
{
	unsigned long nodes[NODES_MAX / WORD_BITS] = {0};

	if (node >= NODES_MAX)
		return;
	nodes[node / WORD_BITS] |= 1ul << node % WORD_BITS;
	syscall(SYS_mbind, memory, n, MPOL_PREFERRED, nodes, (unsigned long)NODES_MAX, 0);
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int bwrp_copy_begin(const char *path, uint64_t size, unsigned int node)
{
	char name[NAME_MAX_N];
	void *memory;
	int copy;

	snprintf(name, sizeof(name), "beowire-node%u:%s", node, base(path));
	copy = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (copy < 0 && errno == EINVAL)
		copy = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (copy < 0)
		return -1;
	if (ftruncate(copy, (off_t)size)) {
		close(copy);
		return -1;
	}
	/* A policy for a shared mapping stays with the file when the mapping is gone. */
	memory = mmap(NULL, size, PROT_NONE, MAP_SHARED, copy, 0);
	if (memory != MAP_FAILED) {
		prefer(memory, size, node);
		munmap(memory, size);
	}
	return copy;
}

/* So many bytes of the file; what lies behind its end is 0, as in the last page of a mapping. */
static bool read_whole(int file, uint8_t *bytes, size_t n, uint64_t offset)
{
	size_t got = 0;

	while (got < n) {
		ssize_t some = pread(file, bytes + got, n - got, (off_t)(offset + got));

		if (some < 0 && errno != EINTR)
			return false;
		if (some == 0)
			break;
		if (some > 0)
			got += (size_t)some;
	}
	memset(bytes + got, 0, n - got);
	return true;
}

/* Each piece of the area: `use` gets the file's bytes, which are those in memory. */
static bool each(int file, const struct bwrp_area *area,
		 bool (*use)(void *arg, const uint8_t *bytes, size_t n, size_t at), void *arg)
{
	static uint8_t bytes[CHUNK]; /* before main() there is one thread here */
	size_t n = bwrp_length(area), some;

	for (size_t at = 0; at < n; at += some) {
		some = n - at < CHUNK ? n - at : CHUNK;
		if (!read_whole(file, bytes, some, area->offset + at) ||
		    memcmp(bytes, (const uint8_t *)area->start + at, some) != 0)
			return false;
		if (use && !use(arg, bytes, some, at))
			return false;
	}
	return true;
}

struct target {
	int copy;
	uint64_t offset;
};

static bool to_file(void *arg, const uint8_t *bytes, size_t n, size_t at)
{
	const struct target *to = arg;

	return pwrite(to->copy, bytes, n, (off_t)(to->offset + at)) == (ssize_t)n;
}

static bool to_memory(void *arg, const uint8_t *bytes, size_t n, size_t at)
{
	memcpy((uint8_t *)arg + at, bytes, n);
	return true;
}

bool bwrp_copy_fill(int copy, int file, const struct bwrp_area *area)
{
	struct target to = {copy, area->offset};

	return each(file, area, to_file, &to);
}

bool bwrp_copy_seal(int copy)
{
	return fcntl(copy, F_ADD_SEALS, SEALS) == 0;
}

bool bwrp_copy_sealed(int copy, uint64_t size)
{
	struct stat status;
	int seals = fcntl(copy, F_GET_SEALS);

	return seals >= 0 && (seals & SEALS) == SEALS && fstat(copy, &status) == 0 &&
	       (uint64_t)status.st_size == size;
}

bool bwrp_copy_equal(int copy, const struct bwrp_area *area)
{
	return each(copy, area, NULL, NULL);
}

int bwrp_copy_map(int copy, int file, const struct bwrp_area *area)
{
	size_t n = bwrp_length(area);
	void *at = mmap(NULL, n, area->prot, MAP_PRIVATE | MAP_POPULATE, copy, (off_t)area->offset);
	int error;

	if (at == MAP_FAILED)
		return -errno;
	error = bwrp_replace(at, file, area);
	if (error)
		munmap(at, n);
	return error;
}

/* Memory for the area that lies to large pages as the area itself does. */
static uint8_t *aligned(const struct bwrp_area *area, size_t n)
{
	size_t room = n + BWRP_HUGE, before;
	uint8_t *all = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED)
		return NULL;
	before = (area->start - (uintptr_t)all) & (BWRP_HUGE - 1);
	if (before)
		munmap(all, before);
	if (room - before > n)
		munmap(all + before + n, room - before - n);
	return all + before;
}

int bwrp_copy_map_huge(int file, const struct bwrp_area *area, unsigned int node)
{
	size_t n = bwrp_length(area);
	uint8_t *at = aligned(area, n);
	char name[NAME_MAX_N / 4];
	int error = 0;

	if (!at)
		return -ENOMEM;
	prefer(at, n, node);
	if (madvise(at, n, MADV_HUGEPAGE))
		error = -errno;
	else if (!each(file, area, to_memory, at))
		error = -ESTALE;
	else if (mprotect(at, n, area->prot))
		error = -errno;
	if (!error) {
		__builtin___clear_cache((char *)at, (char *)at + n);
		error = bwrp_replace(at, file, area);
	}
	if (error) {
		munmap(at, n);
		return error;
	}
	/* Not every kernel has names; without one it is anonymous memory. */
	snprintf(name, sizeof(name), "beowire-node%u:%s", node, base(area->path));
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, area->start, n, name);
	return 0;
}

void bwrp_pages_count(const struct bwrp_area *area, unsigned int node, size_t *here,
		      size_t *elsewhere)
{
	enum { BATCH = 512 };
	size_t size = (size_t)sysconf(_SC_PAGESIZE), n = bwrp_length(area) / size;
	void *pages[BATCH];
	int status[BATCH];

	*here = *elsewhere = 0;
	for (size_t i = 0, some; i < n; i += some) {
		some = n - i < BATCH ? n - i : BATCH;
		for (size_t j = 0; j < some; j++)
			pages[j] = (void *)(area->start + (i + j) * size);
		if (syscall(SYS_move_pages, 0, some, pages, NULL, status, 0))
			return;
		for (size_t j = 0; j < some; j++) {
			*here += status[j] == (int)node;
			*elsewhere += status[j] >= 0 && status[j] != (int)node;
		}
	}
}
