/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What tests of protocol servers share: servers in the guest's nodes, sockets of theirs, and what
 * the module tells of them. Every function ends the test when it cannot do its work. Entering a
 * node moves the calling thread, which stays there.
 */
#ifndef BEOWIRE_SERVERTEST_H
#define BEOWIRE_SERVERTEST_H

#include <errno.h>
#include <stdint.h>
#include <sys/types.h>

#include "beowire_server.h"

#define NUMBER 2 /* of the protocol, where a test says no other */

/* The path of beowire-server; main() sets it. */
extern const char *st_program;

/* The calling thread moves to this node, a network namespace. */
void st_enter(const char *node);

/* A server of this node that has said that it serves this protocol under this number; `extra` is
 * one more argument or NULL. st_end() kills it. */
pid_t st_serve_protocol(const char *node, const char *number, const char *protocol,
			const char *extra);
/* The same, with the datagram protocol. */
pid_t st_serve(const char *node, const char *number, const char *extra);
void st_end(pid_t pid);
/* Returns when it stands still. SIGCONT lets it go on. */
void st_stop(pid_t pid);

/* A datagram socket of this node, or -1 with errno. */
int st_open_socket(const char *node, int number);
/* bind() to a port; 0: any that is free. */
int st_bind_to(int fd, uint16_t port);
/* A bound socket of protocol NUMBER. */
int st_bound(const char *node, uint16_t port);
/* Where others reach it. */
struct sockaddr_beowire st_at(int fd);
ssize_t st_send_to(int fd, const void *p, size_t n, const struct sockaddr_beowire *to);

/* A column of /proc/net/beowire/servers: this namespace's server of the highest number. */
uint64_t st_listed(int column);

enum { PORTS = 3, FRAMES_IN, DROPPED, FRAMES_OUT, REFUSED };

/* The call is refused with this errno. */
#define st_refused(call, code)                                                                     \
	do {                                                                                       \
		errno = 0;                                                                         \
		assert_int_equal((call), -1);                                                      \
		assert_int_equal(errno, (code));                                                   \
	} while (0)

#endif
