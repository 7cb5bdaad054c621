/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a protocol server sees of the kernel module [A2]: a process that holds /dev/beowire open
 * and speaks a protocol for the sockets of other processes. Applications call socket(AF_BEOWIRE,
 * SOCK_DGRAM, number) as for a protocol of the kernel; what they ask for, and the frames that come
 * for their ports, reach the server through rings in memory that both map.
 *
 *	open, BEOWIRE_SERVER_CLAIM	the number is the server's, in its network namespace
 *	mmap of `area` bytes at 0	four rings, see struct beowire_ring
 *	BEOWIRE_SERVER_TURN		take what is in the rings out, wait for something in
 *
 * When the last descriptor is closed, or the process dies, its sockets fail with ECONNRESET and
 * EPIPE, and the number is free for the next server.
 */
#ifndef BEOWIRE_SERVER_H
#define BEOWIRE_SERVER_H

#include "beowire_socket.h"

#define BEOWIRE_SERVER_IFACES 8
#define BEOWIRE_SERVER_BYTES  65536 /* longest message, and longest frame from its header on */

enum beowire_ring_number {
	BEOWIRE_REQUESTS,   /* to the server: OPEN, SEND, PRESSED, CLOSE */
	BEOWIRE_FRAMES_IN,  /* to the server: FRAME */
	BEOWIRE_ANSWERS,    /* from the server: OPENED, ARRIVED, DONE, FAILED, CLOSED */
	BEOWIRE_FRAMES_OUT, /* from the server: FRAME */
	BEOWIRE_RINGS,
};

/*
 * A ring carries records one after another; `head` and `tail` count bytes ever written and read,
 * and a record begins in the data at its count modulo the ring's size. The writer writes a record,
 * then moves head (with release order); the reader reads, then moves tail. A record does not wrap:
 * where one would, BEOWIRE_PAD fills up the ring to its end.
 */
struct beowire_ring {
	__u32 head;
	__u32 unused0[15];
	__u32 tail;
	__u32 unused1[15];
};

/* Where record types go is told at enum beowire_ring_number. */
enum beowire_record_type {
	BEOWIRE_PAD,	/* only `len` means something */
	BEOWIRE_OPEN,	/* a socket was bound to addr.sbw_port with incarnation addr.sbw_inc */
	BEOWIRE_SEND,	/* send the bytes to addr */
	BEOWIRE_CLOSE,	/* the socket is gone; CLOSED when nothing of its port is left to be done */
	BEOWIRE_FRAME,	/* a frame, see struct beowire_frame; its first bytes are struct bw_hdr */
	BEOWIRE_OPENED, /* the answer to OPEN: status, and the longest message in result.bytes */
	BEOWIRE_ARRIVED, /* a message from addr */
	BEOWIRE_DONE,	 /* the answer to SEND of result.bytes, which need not be kept any longer */
	BEOWIRE_FAILED,	 /* a peer that the socket has sent to is lost, or a send has failed:
			  * result.status is the socket's error. Not of others: whoever calls could
			  * end the calls of its program */
	BEOWIRE_CLOSED,	 /* the answer to CLOSE: the port is free, its frames no longer come */
	BEOWIRE_PRESSED, /* result.status 1: more than SO_RCVBUF of what ARRIVED is unread; 0: not
			  * even half of it any more */
};

/* In the answer OPENED: of what ARRIVED nothing is to be dropped beyond SO_RCVBUF, as the server
 * heeds PRESSED; what comes on in spite of that is kept up to the sysctl memory_max, then dropped,
 * and the socket has the error ENOBUFS. */
#define BEOWIRE_OPENED_KEEP 0x1

struct beowire_frame {
	__u32 ifindex;
	__u8 mac[6];	  /* in: of the sender; out: of the receiver */
	__u8 reserved[2]; /* 0 */
};

/* 48 bytes, a multiple of 16; its payload follows, filled up to a multiple of 16. */
struct beowire_record {
	__u32 len; /* bytes of the record with its payload and filling */
	__u16 type;
	__u16 reserved; /* 0 */
	__u32 socket;	/* which one; numbers are not used again soon */
	__u32 bytes;	/* of payload */
	union {
		struct sockaddr_beowire addr;
		struct beowire_frame frame;
		struct {
			__s32 status; /* 0 or a negative errno */
			__u32 bytes;
			__u32 flags; /* OPENED: BEOWIRE_OPENED_* */
		} result;
	};
};

struct beowire_server_iface {
	char name[16];
	__u32 ifindex;
	__u32 mtu; /* bytes of the largest frame, Ethernet header excluded */
	__u8 mac[6];
	__u8 reserved[2];
};

struct beowire_server_claim {
	__u32 number;	  /* of the protocol: 2 to 15 */
	__u32 ring_bytes; /* size of each ring: a power of two, 512 KiB to 8 MiB; 0: 1 MiB */
	char name[16];	  /* of the protocol, for listings */
	/* results */
	__aligned_u64 node; /* identity of this node */
	__aligned_u64 area; /* bytes to map */
	__u32 cluster;	    /* id that frames carry */
	__u32 reserved;
	struct {
		__u32 ring; /* offset of its struct beowire_ring in the area */
		__u32 data; /* offset of its data */
	} at[BEOWIRE_RINGS];
};

struct beowire_server_turn {
	/* Longest wait for something in; 0: none; negative: no limit. */
	__s64 timeout_ns __attribute__((aligned(8)));
};

/*
 * CLAIM: EBUSY (the number is taken, or this descriptor has one), EINVAL, EKEYREJECTED (the node
 * has a key, which no server is given), ENOMEM (also: the limit of locked memory is reached).
 * TURN: EINTR; EPROTO: something out made no sense, the rest of its ring was thrown away. A record
 * that is well made but refers to nothing is skipped and counted. LINKS: the interfaces in use,
 * ifindex 0 behind the last. poll() says POLLIN when there is something in.
 */
#define BEOWIRE_SERVER_CLAIM _IOWR('B', 1, struct beowire_server_claim)
#define BEOWIRE_SERVER_TURN  _IOW('B', 2, struct beowire_server_turn)
#define BEOWIRE_SERVER_LINKS _IOR('B', 3, struct beowire_server_iface[BEOWIRE_SERVER_IFACES])

#endif
