/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Making and mapping the memory that two endpoints of a node share. It is anonymous (memfd), so it
 * goes with the last process that maps it, and sealed against shrinking, so that nobody can turn a
 * read of it into SIGBUS.
 */
#include "link/local/impl.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x8U /* Linux 6.3 */
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10 /* Linux 5.1 */
#endif

static size_t control_bytes(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return page > BW_LOCAL_PAGE ? page : BW_LOCAL_PAGE;
}

static size_t front_bytes(void)
{
	return control_bytes() + 2 * (size_t)BW_LOCAL_SLOTS;
}

/* A memfd of n bytes that allows seals, or a negative errno. */
static int memory(const char *name, size_t n)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)n) < 0) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

/* Is it a memfd of n bytes that cannot become shorter? */
static bool trusted(int fd, size_t n)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &st) == 0 &&
	       st.st_size == (off_t)n;
}

static bool map_at(uint8_t *at, size_t n, int fd, size_t off)
{
	return mmap(at, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)off) !=
	       MAP_FAILED;
}

static bool map_rings(struct bw_local_segment *s, uint8_t *base, int fd)
{
	size_t ring = s->ring_bytes;

	for (size_t i = 0; i < 2; i++) {
		uint8_t *at = base + front_bytes() + 2 * i * ring;
		size_t off = front_bytes() + i * ring;

		if (!map_at(at, ring, fd, off) || !map_at(at + ring, ring, fd, off))
			return false;
		s->ring[i] = at;
		s->states[i] = base + control_bytes() + i * BW_LOCAL_SLOTS;
	}
	return true;
}

static size_t span_bytes(uint32_t ring_bytes)
{
	return front_bytes() + 4 * (size_t)ring_bytes;
}

/* Addresses for a segment: parked ones, or new ones. */
static uint8_t *reserve(struct bw_local *l, uint32_t ring_bytes)
{
	for (struct bw_local_parked **at = &l->parked; *at; at = &(*at)->next) {
		struct bw_local_parked *parked = *at;
		uint8_t *base = parked->base;

		if (parked->ring_bytes != ring_bytes)
			continue;
		*at = parked->next;
		free(parked);
		return base;
	}
	return mmap(NULL, span_bytes(ring_bytes), PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Give the memory back, but not its addresses: somebody may look at them (struct bw_local_sight),
 * and finds nothing. Where that fails the memory stays until the addresses are used again. */
static void park(struct bw_local *l, uint8_t *base, uint32_t ring_bytes)
{
	struct bw_local_parked *parked = malloc(sizeof(*parked));

	mmap(base, span_bytes(ring_bytes), PROT_READ,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	if (!parked)
		return;
	*parked =
		(struct bw_local_parked){.next = l->parked, .base = base, .ring_bytes = ring_bytes};
	l->parked = parked;
}

/* Map a segment received from a peer (or made here). -EPROTO if it is not what it should be. */
int bw_local_segment_map(struct bw_local *l, struct bw_local_segment *s, uint32_t ring_bytes,
			 const uint64_t key[2], int fd)
{
	if (ring_bytes < BW_LOCAL_RING_MIN || ring_bytes > BW_LOCAL_RING_MAX ||
	    (ring_bytes & (ring_bytes - 1)) || ring_bytes % control_bytes() ||
	    !trusted(fd, front_bytes() + 2 * (size_t)ring_bytes))
		return -EPROTO;
	uint8_t *base = reserve(l, ring_bytes);

	if (base == MAP_FAILED)
		return -errno;
	s->ring_bytes = ring_bytes;
	if (!map_at(base, front_bytes(), fd, 0) || !map_rings(s, base, fd)) {
		int error = -errno;

		park(l, base, ring_bytes);
		return error;
	}
	s->control = (struct bw_local_control *)base;
	s->key[0] = key[0];
	s->key[1] = key[1];
	return 0;
}

/* Make a segment and map it; *fd is to be sent to the peer and closed. */
int bw_local_segment_make(struct bw_local *l, struct bw_local_segment *s, const uint64_t key[2],
			  int *fd)
{
	uint32_t ring_bytes = l->ring_bytes;
	int memfd = memory("beowire-pair", front_bytes() + 2 * (size_t)ring_bytes);
	int error = memfd;

	if (memfd < 0)
		return memfd;
	if (fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		error = -errno;
	else
		error = bw_local_segment_map(l, s, ring_bytes, key, memfd);
	if (error < 0) {
		close(memfd);
		return error;
	}
	*fd = memfd;
	if (l->handlers->share) {
		l->handlers->share(l->arg, s->control, front_bytes());
		l->handlers->share(l->arg, s->ring[0], ring_bytes);
		l->handlers->share(l->arg, s->ring[1], ring_bytes);
	}
	return error;
}

void bw_local_segment_unmap(struct bw_local *l, struct bw_local_segment *s)
{
	if (s->control)
		park(l, (uint8_t *)s->control, s->ring_bytes);
	s->control = NULL;
}

/* In a child of fork(), where nobody looks. */
void bw_local_segment_abandon(struct bw_local_segment *s)
{
	if (s->control)
		munmap(s->control, span_bytes(s->ring_bytes));
	s->control = NULL;
}

void bw_local_segment_free_parked(struct bw_local *l)
{
	while (l->parked) {
		struct bw_local_parked *parked = l->parked;

		l->parked = parked->next;
		munmap(parked->base, span_bytes(parked->ring_bytes));
		free(parked);
	}
}

/* Our own status page, and the descriptor of it that peers get: they can only read it (where the
 * kernel knows that seal; elsewhere a peer that writes there costs wake-ups, no more). */
int bw_local_status_make(struct bw_local_status **status, int *fd)
{
	int memfd = memory("beowire-status", control_bytes());

	if (memfd < 0)
		return memfd;
	void *page = mmap(NULL, control_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	int seals = F_SEAL_SHRINK | F_SEAL_GROW;

	if (page == MAP_FAILED || (fcntl(memfd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) < 0 &&
				   fcntl(memfd, F_ADD_SEALS, seals) < 0)) {
		int error = -errno;

		if (page != MAP_FAILED)
			munmap(page, control_bytes());
		close(memfd);
		return error;
	}
	*status = page;
	*fd = memfd;
	return 0;
}

int bw_local_status_map(const struct bw_local_status **status, int fd)
{
	if (!trusted(fd, control_bytes()))
		return -EPROTO;
	void *page = mmap(NULL, control_bytes(), PROT_READ, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	*status = page;
	return 0;
}

void bw_local_status_unmap(const struct bw_local_status *status)
{
	if (status)
		munmap((void *)status, control_bytes());
}
