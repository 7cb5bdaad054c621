/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The udp link: the same frames inside UDP datagrams over IPv4 or IPv6. It needs no privilege and
 * crosses routers. Datagrams are never fragmented; a port that nobody has is reported as a refusal.
 *
 * All have one port. One socket is open to everybody; the few peers that most is sent to have
 * sockets of their own beside it, connected, so that the kernel looks up neither their route nor,
 * for what they send, its own (inet(7), the kernel's networking/ip-sysctl.rst, udp_early_demux).
 * Frames are the same to the engine by whichever they come.
 *
 * Where to read on: socket.c opens and connects, active.c chooses who gets a socket and which is
 * looked at, udp.c receives and sends, name.c has the addresses.
 */
#ifndef BW_UDP_H
#define BW_UDP_H

#include <stdbool.h>

#include "env.h"
#include "link/batch.h"
#include "link/iface.h"
#include "link/link.h"
#include "link/name.h"
#include "protocol.h"
#include "refuse.h"

#define BW_UDP_FRAMES	 16    /* datagrams per system call */
#define BW_UDP_ROW	 65536 /* bytes of a datagram that the kernel has joined, at most */
#define BW_UDP_CONNECTED 4     /* peers that have a socket of their own, at most */
#define BW_UDP_SOCKETS	 (1 + BW_UDP_CONNECTED)
#define BW_UDP_SOUGHT	 16 /* peers without one, of which it is counted what is sent */

struct bw_udp_slot;

/* A socket of the link. */
struct bw_udp_socket {
	int fd;
	uint32_t sent;		 /* frames of data to its peer, halved now and then */
	uint32_t told;		 /* datagrams left of which the kernel is asked for all it tells:
				    * the sender's address, marks */
	uint32_t plain;		 /* datagrams of which it was not asked */
	bool streams;		 /* the last look found a datagram: there may be more */
	uint32_t cut;		 /* bytes at which it cuts rows untold; BW_BATCH_WHOLE */
	uint32_t row;		 /* bytes of a frame of the last row that had another length */
	uint32_t rows;		 /* neighbours in rows of such */
	struct bw_link_addr who; /* the peer; of the one that is open to everybody: nobody */
	uint32_t drops;		 /* datagrams that it had no room for, as counted last */
};

struct bw_udp {
	struct bw_udp_socket socket[BW_UDP_SOCKETS]; /* the first one is open to everybody */
	int sockets;				     /* of these in use: a run */
	int hot;				     /* the one that brought the last datagram */
	int other;				     /* of the others the one looked at last */
	uint32_t stay;	    /* looks left at the hot one before one at another */
	uint32_t streak;    /* datagrams in a row that it brought, up to BW_UDP_STREAK */
	union bw_name name; /* ours */
	uint32_t interface; /* number of ours, for addresses of one link */
	uint16_t port;	    /* host byte order */
	uint32_t mtu;	    /* bytes of the largest frame: a multiple of 8, for rows */
	uint32_t rcvbuf;    /* bytes that the kernel holds for us in each socket */
	bool joined;	    /* the kernel joins datagrams of one sender */
	struct bw_batch *batch;
	struct mmsghdr rx[BW_UDP_FRAMES];
	struct bw_udp_slot *slot;
	uint8_t *frames; /* of the slots, `stride` bytes each */
	size_t stride;
	bool plain;		    /* the last call asked for bytes alone */
	struct bw_link_addr sender; /* whose they are, then */
	int got;		    /* datagrams that it brought */
	int next;		    /* of these the one whose frames are being taken */
	uint32_t at;		    /* bytes of it that have been taken */
	uint64_t rx_rows;	    /* datagrams of several frames */
	int way;		    /* the socket that the frame collected last goes by */
	int due;		    /* the socket that is to cut rows of another length; 0: none */
	bool whole;		    /* no socket cuts: one took nothing as it was to */
	uint32_t sends;		    /* frames of data since `sent` and `heat` were halved */
	struct {
		struct bw_link_addr who;
		uint32_t heat; /* frames of data sent to it, less those to others of this place */
	} sought[BW_UDP_SOUGHT];
	const struct bw_link_addr *wanted; /* of these the one to be connected; NULL: none */
	uint64_t connects;		   /* sockets connected, ever */
	uint64_t tx_connected;		   /* frames sent by such */
	uint64_t rx_connected;		   /* datagrams received by such */
	struct bw_link_counters count;
};

/* Open on this address, whose port is not read, of this interface, for frames to this engine:
 * others that come to the port do not take the room of ours. 0, or a negative errno with *why. */
int bw_udp_open(struct bw_udp *u, const struct bw_env *env, const struct bw_iface *iface,
		const union bw_name *name, uint16_t engine, const char **why);
void bw_udp_close(struct bw_udp *u);

/* Look at the socket that brought the last datagram, now and then at another one first, by one
 * system call each: the number of datagrams, whose frames are then to be taken one by one with
 * bw_udp_frames(); 0 if there is none; -ECONNREFUSED if bw_udp_refusal() has something. */
int bw_udp_receive(struct bw_udp *u);
/* The same at all sockets, until one has something. */
int bw_udp_receive_any(struct bw_udp *u);
/* The next frame, valid until the one behind it is taken; false when there is no more. */
bool bw_udp_frame(struct bw_udp *u, struct bw_rx_frame *f);
/* The next ones of one datagram, up to so many, valid until one behind them is taken; 0 when there
 * is no more. */
int bw_udp_frames(struct bw_udp *u, struct bw_rx_frame *f, int max);

/* poll() said this of one of the sockets: look at it next. False if it is none of them. */
bool bw_udp_seen(struct bw_udp *u, int fd, short events);

/* The next frame of ours that met a closed port, as the refusal that nobody there could send.
 * False when there is no more. */
bool bw_udp_refusal(struct bw_udp *u, uint32_t cluster, struct bw_refuse_frame *r,
		    struct bw_rx_frame *f);

/* Collect a frame for bw_udp_flush(); false if that has to come first. */
bool bw_udp_add(struct bw_udp *u, const struct bw_tx_frame *f);
/* The same of one that carries data to where the frame collected last goes. */
bool bw_udp_add_alike(struct bw_udp *u, const struct bw_tx_frame *f);
static inline bool bw_udp_flush(struct bw_udp *u, uint64_t now)
{
	return bw_batch_flush(u->batch, u->socket[0].fd, now);
}

/* A peer at this address is gone: it needs no socket of its own. */
void bw_udp_forget(struct bw_udp *u, const struct bw_link_addr *who);

/* Count, in count.rx_overruns, what the kernel had no room for. */
void bw_udp_overruns(struct bw_udp *u);

#endif
