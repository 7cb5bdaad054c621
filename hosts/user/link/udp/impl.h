/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the udp link share. */
#ifndef BW_UDP_IMPL_H
#define BW_UDP_IMPL_H

#include "link/udp/udp.h"

#define BW_UDP_TOLD 64 /* datagrams of which the kernel is asked for all after a mark */

/* socket.c */
/* The one that is open to everybody: made, bound, with *rcvbuf as it came out. */
int bw_udp_socket_open(struct bw_udp *u, const struct bw_env *env, uint16_t engine,
		       const char **why);
/* One more, for this peer alone: 0 or a negative errno. */
int bw_udp_socket_connect(struct bw_udp *u, const struct bw_link_addr *who);
/* Close one; the last one takes its place. */
void bw_udp_socket_close(struct bw_udp *u, int i);

/* Between batches: let the socket that is due cut rows of such frames as it sends now; none any
 * more if one took nothing since. */
void bw_udp_socket_cuts(struct bw_udp *u);

/* active.c */
/* Which socket to send a frame to this peer by, which is counted; 0: the one open to everybody. */
int bw_udp_active_for(struct bw_udp *u, const struct bw_tx_frame *f);
/* The same for a frame of data to the peer whose own socket this is. */
void bw_udp_active_again(struct bw_udp *u, int i);
/* Connect the peer that is wanted. Negative, or the datagrams that stood in its way: none is
 * connected until they have been taken. */
int bw_udp_active_settle(struct bw_udp *u);
/* Which socket to look at. */
int bw_udp_active_next(struct bw_udp *u);
/* What the look brought. */
void bw_udp_active_found(struct bw_udp *u, int i, bool something);

/* udp.c */
/* Look at this socket. */
int bw_udp_look(struct bw_udp *u, int i);

#endif
