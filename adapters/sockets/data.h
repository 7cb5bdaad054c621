/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sending and receiving on a connection, whichever way its bytes go. */
#ifndef BWS_DATA_H
#define BWS_DATA_H

#include <sys/socket.h>
#include <sys/types.h>

#include "conn.h"

/* As recvmsg() and sendmsg(): bytes, or -1 and errno. `fd` is the descriptor that was named. */
ssize_t bws_recvmsg(struct bws_conn *c, int fd, struct msghdr *m, int flags);
ssize_t bws_sendmsg(struct bws_conn *c, int fd, const struct msghdr *m, int flags);

/* A call of the kernel that may receive or send bytes, as long as all is by TCP: false if it is
 * not, and then the kernel is not to be called. */
bool bws_rx_enter(struct bws_conn *c);
void bws_rx_leave(struct bws_conn *c, ssize_t n);
bool bws_tx_enter(struct bws_conn *c);
void bws_tx_leave(struct bws_conn *c, ssize_t n);

/* The program has moved n more bytes: is it time to offer the connection? */
void bws_counted(struct bws_conn *c, uint64_t n);

/* Would a call by this descriptor wait? */
bool bws_blocks(int fd, int flags);
/* The end of a wait for SO_RCVTIMEO or SO_SNDTIMEO. */
uint64_t bws_deadline(int fd, int option);
/* After -EINTR: does the kernel begin such a call anew? */
bool bws_restarts(uint64_t deadline);

/* What SO_ERROR tells, each error once: that of the kernel, a positive errno, or if there is none
 * (0) what the library holds. One that Beowire was lost by goes on to be the error of calls. Takes
 * the lock. */
int bws_error_take(struct bws_conn *c, int kernels);

/* Bytes that can be received at once, for FIONREAD. Lock held. */
int bws_readable(struct bws_conn *c);

#endif
