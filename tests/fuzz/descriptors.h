/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors in place of the kernel's, for targets that are given some by others: sockets that are
 * counted, whose numbers are never given again, and which may be closed once. A source that is
 * included behind this header calls these functions by the names of the kernel's calls. What the
 * kernel may refuse it refuses when the script says so.
 */
#ifndef FUZZ_DESCRIPTORS_H
#define FUZZ_DESCRIPTORS_H

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

#define FUZZ_FILTER  256  /* instructions of a packet filter, at most */
#define FUZZ_STEERS  1100 /* and of a program that steers */
#define FUZZ_MEMBERS 256  /* of a group, as in the kernel */

/* What one descriptor or several stand for. */
struct fuzz_socket {
	int domain;
	int refs; /* descriptors of it, those under way included */
	ino_t inode;
	uint32_t turn; /* a target's own */
	uid_t uid;     /* of whoever is at its other end */
	/* of packet sockets */
	uint16_t protocol; /* network byte order */
	int interface;
	struct tpacket_req shape; /* of its ring */
	size_t ring_bytes;	  /* 0: it has none */
	uint8_t *ring;		  /* where it is mapped */
	struct sock_filter filter[FUZZ_FILTER];
	unsigned int filters;  /* instructions of it */
	unsigned int attached; /* times that it was given one */
	bool member;	       /* of the group */
	uint64_t drops;	       /* frames that found no room in the ring */
};

/* The group of packet sockets, in the order of their indices. */
struct fuzz_group {
	struct fuzz_socket *member[FUZZ_MEMBERS];
	unsigned int n;
	struct sock_filter code[FUZZ_STEERS];
	unsigned int codes;
	void (*changed)(void); /* told when one has joined or left; or NULL */
};

extern struct fuzz_input *fuzz_script; /* says which calls fail; NULL: none */
extern unsigned int fuzz_failures;     /* of these, ever */
extern struct fuzz_group fuzz_group;

/* Everything of the input before is gone. */
void fuzz_descriptors_reset(void);
/* A descriptor of a new socket; at the first call of an input 1000. */
int fuzz_descriptor(int domain);
/* Another one of the same socket. */
int fuzz_descriptor_of(struct fuzz_socket *s);
/* Whose it is; ends the run if the descriptor is not open. */
struct fuzz_socket *fuzz_socket_of(int fd);
/* The i-th socket of this input, which may be gone (refs 0); NULL: there are not so many. */
struct fuzz_socket *fuzz_socket_at(unsigned int i);
/* One holds it no longer who has no descriptor of the table: its peer, or a message. */
void fuzz_unref(struct fuzz_socket *s);
/* How many are open. */
unsigned int fuzz_descriptors(void);
/* Does a call fail that may? */
bool fuzz_fails(int error);
/* As recvmsg() of a unix socket: this message came, with n descriptors of these sockets in it, of
 * which those are given that there is room for. The length, or more with MSG_TRUNC. */
ssize_t fuzz_message(struct msghdr *m, const void *bytes, size_t len, struct fuzz_socket *const *of,
		     unsigned int n);

int fake_socket(int domain, int type, int protocol);
int fake_close(int fd);
int fake_bind(int fd, const struct sockaddr *name, socklen_t n);
int fake_fcntl(int fd, int what, int least);
int fake_setsockopt(int fd, int level, int name, const void *value, socklen_t n);
int fake_getsockopt(int fd, int level, int name, void *value, socklen_t *n);
int fake_getsockname(int fd, struct sockaddr *name, socklen_t *n);
int fake_fstat(int fd, struct stat *told);
void *fake_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int fake_munmap(void *at, size_t bytes);
void *fake_mremap(void *from, size_t old, size_t bytes, int flags, void *to);

#ifndef FUZZ_DESCRIPTORS_THEMSELVES
#define socket(domain, type, protocol)	       fake_socket(domain, type, protocol)
#define close(fd)			       fake_close(fd)
#define bind(fd, name, n)		       fake_bind(fd, name, n)
#define fcntl(fd, what, least)		       fake_fcntl(fd, what, least)
#define setsockopt(fd, level, name, value, n)  fake_setsockopt(fd, level, name, value, n)
#define getsockopt(fd, level, name, value, n)  fake_getsockopt(fd, level, name, value, n)
#define getsockname(fd, name, n)	       fake_getsockname(fd, name, n)
#define fstat(fd, told)			       fake_fstat(fd, told)
#define mmap(at, bytes, prot, flags, fd, from) fake_mmap(at, bytes, prot, flags, fd, from)
#define munmap(at, bytes)		       fake_munmap(at, bytes)
#define mremap(from, old, bytes, flags, to)    fake_mremap(from, old, bytes, flags, to)
#define madvise(at, bytes, what)	       ((void)(at))
#endif

#endif
