/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptors in place of the kernel's; see descriptors.h. */
#define FUZZ_DESCRIPTORS_THEMSELVES
#include "descriptors.h"

#include <sanitizer/asan_interface.h>
#include <stdlib.h>

#define FIRST	1000 /* no descriptor of the fuzzer's own has such a number */
#define MOST	4096 /* of an input */
#define PAGE	4096u
#define GROUP	1
#define SPARES	8
#define SCM_MAX 253 /* descriptors of one message, as in the kernel */

struct fuzz_input *fuzz_script;
unsigned int fuzz_failures;
struct fuzz_group fuzz_group;

static struct fuzz_socket *table[MOST];
static struct fuzz_socket *made[MOST]; /* all of this input */
static unsigned int given, open_now, sockets;

void fuzz_descriptors_reset(void)
{
	while (sockets) {
		if (made[--sockets]->ring)
			fuzz_bad("a ring is left mapped");
		free(made[sockets]);
	}
	memset(table, 0, sizeof(*table) * given);
	memset(&fuzz_group, 0, sizeof(fuzz_group));
	given = open_now = 0;
}

static struct fuzz_socket *new_socket(int domain)
{
	struct fuzz_socket *s = calloc(1, sizeof(*s));

	s->domain = domain;
	s->inode = 100 + sockets;
	made[sockets++] = s;
	return s;
}

int fuzz_descriptor_of(struct fuzz_socket *s)
{
	if (given == MOST) {
		errno = EMFILE;
		return -1;
	}
	s->refs++;
	open_now++;
	table[given] = s;
	return FIRST + (int)given++;
}

int fuzz_descriptor(int domain)
{
	if (given == MOST || sockets == MOST) {
		errno = EMFILE;
		return -1;
	}
	return fuzz_descriptor_of(new_socket(domain));
}

struct fuzz_socket *fuzz_socket_of(int fd)
{
	if (fd < FIRST || fd >= FIRST + (int)given || !table[fd - FIRST])
		fuzz_bad("a descriptor that is not open");
	return table[fd - FIRST];
}

struct fuzz_socket *fuzz_socket_at(unsigned int i)
{
	return i < sockets ? made[i] : NULL;
}

unsigned int fuzz_descriptors(void)
{
	return open_now;
}

bool fuzz_fails(int error)
{
	if (!fuzz_script || (fuzz_u8(fuzz_script) & 31) != 31)
		return false;
	errno = error;
	fuzz_failures++;
	return true;
}

ssize_t fuzz_message(struct msghdr *m, const void *bytes, size_t len, struct fuzz_socket *const *of,
		     unsigned int n)
{
	size_t room = m->msg_iov->iov_len, control = m->msg_controllen;
	unsigned int fits = 0;
	struct cmsghdr *c = m->msg_control;

	memcpy(m->msg_iov->iov_base, bytes, len < room ? len : room);
	m->msg_flags = len > room ? MSG_TRUNC : 0;
	m->msg_controllen = 0;
	if (!n || n > SCM_MAX)
		return (ssize_t)(len < room ? len : room);
	if (control > sizeof(*c))
		fits = (unsigned int)((control - sizeof(*c)) / sizeof(int));
	if (fits < n)
		m->msg_flags |= MSG_CTRUNC;
	fits = fits < n ? fits : n;
	for (unsigned int i = 0; i < fits; i++) {
		int fd = fuzz_descriptor_of(of[i]);

		if (fd < 0)
			fits = i;
		else
			memcpy(CMSG_DATA(c) + i * sizeof(fd), &fd, sizeof(fd));
	}
	if (!fits)
		return (ssize_t)(len < room ? len : room);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(fits * sizeof(int));
	m->msg_controllen =
		control < CMSG_SPACE(fits * sizeof(int)) ? control : CMSG_SPACE(fits * sizeof(int));
	return (ssize_t)(len < room ? len : room);
}

/* ---- calls ---- */

int fake_socket(int domain, int type, int protocol)
{
	if (fuzz_fails(EMFILE))
		return -1;
	if (!(type & SOCK_CLOEXEC))
		fuzz_bad("a socket that programs started later inherit");
	return fuzz_descriptor(domain);
}

/* The last one of a group takes the place of who leaves. */
static void leave(struct fuzz_socket *s)
{
	for (unsigned int i = 0; i < fuzz_group.n; i++)
		if (fuzz_group.member[i] == s)
			fuzz_group.member[i] = fuzz_group.member[--fuzz_group.n];
	s->member = false;
	if (!fuzz_group.n)
		fuzz_group.codes = 0;
	if (fuzz_group.changed)
		fuzz_group.changed();
}

void fuzz_unref(struct fuzz_socket *s)
{
	if (--s->refs == 0 && s->member)
		leave(s);
}

int fake_close(int fd)
{
	struct fuzz_socket *s = fuzz_socket_of(fd);

	table[fd - FIRST] = NULL;
	open_now--;
	fuzz_unref(s);
	return 0;
}

int fake_bind(int fd, const struct sockaddr *name, socklen_t n)
{
	struct fuzz_socket *s = fuzz_socket_of(fd);
	const struct sockaddr_ll *ll = (const struct sockaddr_ll *)name;

	if (fuzz_fails(ENETDOWN))
		return -1;
	if (s->domain != AF_PACKET || n < sizeof(*ll))
		fuzz_bad("a name of another kind");
	s->protocol = ll->sll_protocol;
	s->interface = ll->sll_ifindex;
	return 0;
}

int fake_fcntl(int fd, int what, int least)
{
	struct fuzz_socket *s = fuzz_socket_of(fd);

	if (what != F_DUPFD_CLOEXEC)
		fuzz_bad("another call than was expected");
	return fuzz_fails(EMFILE) ? -1 : fuzz_descriptor_of(s);
}

static int join(struct fuzz_socket *s, uint32_t what)
{
	uint16_t kind = (uint16_t)(what >> 16), number = (uint16_t)what;

	if (s->member || s->domain != AF_PACKET || fuzz_group.n == FUZZ_MEMBERS ||
	    (kind & 0xFF) != PACKET_FANOUT_CBPF ||
	    (kind & PACKET_FANOUT_FLAG_UNIQUEID ? fuzz_group.n != 0 : number != GROUP)) {
		errno = EINVAL;
		return -1;
	}
	s->member = true;
	fuzz_group.member[fuzz_group.n++] = s;
	if (fuzz_group.changed)
		fuzz_group.changed();
	return 0;
}

static int take_filter(struct sock_filter *to, unsigned int *n, unsigned int most,
		       const struct sock_fprog *program)
{
	if (!program->len || program->len > most)
		fuzz_bad("a filter of another length");
	memcpy(to, program->filter, program->len * sizeof(*to));
	*n = program->len;
	return 0;
}

static int packet_option(struct fuzz_socket *s, int name, const void *value)
{
	const struct tpacket_req *shape = value;

	switch (name) {
	case PACKET_RX_RING:
		if (fuzz_fails(ENOMEM))
			return -1;
		if (!shape->tp_block_size || shape->tp_block_size % PAGE || !shape->tp_block_nr ||
		    !shape->tp_frame_size || shape->tp_frame_size % TPACKET_ALIGNMENT ||
		    shape->tp_frame_nr !=
			    shape->tp_block_size / shape->tp_frame_size * shape->tp_block_nr)
			fuzz_bad("a ring that the kernel does not take");
		s->shape = *shape;
		s->ring_bytes = (size_t)shape->tp_block_size * shape->tp_block_nr;
		return 0;
	case PACKET_FANOUT:
		return fuzz_fails(ENOMEM) ? -1 : join(s, *(const uint32_t *)value);
	case PACKET_FANOUT_DATA:
		if (!s->member) {
			errno = EINVAL;
			return -1;
		}
		if (fuzz_fails(ENOMEM))
			return -1;
		return take_filter(fuzz_group.code, &fuzz_group.codes, FUZZ_STEERS, value);
	default:
		return fuzz_fails(EINVAL) ? -1 : 0;
	}
}

int fake_setsockopt(int fd, int level, int name, const void *value, socklen_t n)
{
	struct fuzz_socket *s = fuzz_socket_of(fd);

	if (level == SOL_PACKET)
		return packet_option(s, name, value);
	if (fuzz_fails(ENOMEM))
		return -1;
	s->attached += level == SOL_SOCKET && name == SO_ATTACH_FILTER;
	if (level == SOL_SOCKET && name == SO_ATTACH_FILTER)
		return take_filter(s->filter, &s->filters, FUZZ_FILTER, value);
	return 0;
}

int fake_getsockopt(int fd, int level, int name, void *value, socklen_t *n)
{
	struct fuzz_socket *s = fuzz_socket_of(fd);
	struct tpacket_stats stats = {.tp_drops = (unsigned int)s->drops};
	int number = 0;

	if (fuzz_fails(ENOPROTOOPT))
		return -1;
	if (level == SOL_SOCKET && name == SO_PEERCRED) {
		((struct ucred *)value)->uid = s->uid;
		return 0;
	}
	if (level == SOL_PACKET && name == PACKET_STATISTICS) {
		s->drops = 0;
		memcpy(value, &stats, sizeof(stats));
		return 0;
	}
	if (level == SOL_SOCKET && name == SO_DOMAIN)
		number = s->domain;
	if (level == SOL_PACKET && name == PACKET_FANOUT && s->member)
		number = GROUP | (PACKET_FANOUT_CBPF | PACKET_FANOUT_FLAG_UNIQUEID) << 16;
	memcpy(value, &number, sizeof(number));
	return 0;
}

int fake_getsockname(int fd, struct sockaddr *name, socklen_t *n)
{
	struct fuzz_socket *s = fuzz_socket_of(fd);
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET, .sll_protocol = s->protocol, .sll_ifindex = s->interface};

	memcpy(name, &ll, *n < sizeof(ll) ? *n : sizeof(ll));
	return 0;
}

int fake_fstat(int fd, struct stat *told)
{
	memset(told, 0, sizeof(*told));
	told->st_ino = fuzz_socket_of(fd)->inode;
	return fuzz_fails(ENOMEM) ? -1 : 0;
}

/* ---- rings ---- */

/* Rings are kept for the next ones, and poisoned meanwhile: to allocate them takes long. */
static struct {
	uint8_t *at;
	size_t bytes;
} spare[SPARES];
static unsigned int spares;

static uint8_t *ring_new(size_t bytes)
{
	uint8_t *ring = NULL;

	for (unsigned int i = 0; i < spares && !ring; i++)
		if (spare[i].bytes == bytes) {
			ring = spare[i].at;
			spare[i] = spare[--spares];
		}
	if (!ring)
		ring = aligned_alloc(PAGE, bytes);
	__asan_unpoison_memory_region(ring, bytes);
	memset(ring, 0, bytes);
	return ring;
}

static void ring_free(uint8_t *ring, size_t bytes)
{
	if (spares == SPARES) {
		free(ring);
		return;
	}
	__asan_poison_memory_region(ring, bytes);
	spare[spares].at = ring;
	spare[spares++].bytes = bytes;
}

void *fake_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	struct fuzz_socket *s = fuzz_socket_of(fd);

	/* Others' memory can be mapped as well as a ring. */
	if (!s->ring_bytes || bytes != s->ring_bytes || s->ring) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	if (fuzz_fails(ENOMEM))
		return MAP_FAILED;
	s->ring = ring_new(bytes);
	return s->ring;
}

static struct fuzz_socket *mapped(const void *at, size_t bytes)
{
	for (unsigned int i = 0; i < sockets; i++)
		if (made[i]->ring == at && made[i]->ring_bytes == bytes)
			return made[i];
	fuzz_bad("memory that is not mapped like this");
}

int fake_munmap(void *at, size_t bytes)
{
	struct fuzz_socket *s = mapped(at, bytes);

	ring_free(s->ring, bytes);
	s->ring = NULL;
	return 0;
}

void *fake_mremap(void *from, size_t old, size_t bytes, int flags, void *to)
{
	struct fuzz_socket *s = mapped(from, old), *there = mapped(to, bytes);

	if (old != bytes || flags != (MREMAP_MAYMOVE | MREMAP_FIXED) || s == there)
		fuzz_bad("a move of another kind");
	if (fuzz_fails(ENOMEM))
		return MAP_FAILED;
	__asan_unpoison_memory_region(from, bytes);
	__asan_unpoison_memory_region(to, bytes);
	memcpy(to, from, bytes);
	ring_free(from, bytes);
	s->ring = to;
	there->ring = NULL;
	return to;
}
