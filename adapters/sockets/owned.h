/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptors of the library itself. See own.c. */
#ifndef BWS_OWNED_H
#define BWS_OWNED_H

#include <sys/socket.h>

/* This descriptor is ours from now on: returned under a high number, or as it is (also if it is no
 * descriptor) where there is none. */
int bws_own(int fd);

int bws_own_open(const char *path, int flags, ...);
int bws_own_close(int fd);
int bws_own_socket(int domain, int type, int protocol);
int bws_own_accept4(int fd, struct sockaddr *name, socklen_t *len, int flags);
int bws_own_eventfd(unsigned int count, int flags);
int bws_own_epoll_create1(int flags);
int bws_own_memfd_create(const char *name, unsigned int flags);
ssize_t bws_own_recvmsg(int fd, struct msghdr *m, int flags);

#endif
