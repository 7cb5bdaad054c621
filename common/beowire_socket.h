/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What programs see of the kernel module: the address family, its addresses, options, control
 * messages and ioctls. A socket that is bound (or sends first) owns a *port*: an engine of its own
 * in the kernel, with the number that other nodes address; docs/kernel-module.md has the semantics
 * of each call.
 *
 *	SOCK_DGRAM	unreliable datagrams (protocol module beowire_datagram)
 *	SOCK_RDM	reliable messages between ports, no connections
 *	SOCK_SEQPACKET	connections that keep message boundaries
 *	SOCK_STREAM	connections that carry bytes
 *
 * socket()'s third argument is 0, or the number of a registered protocol for SOCK_DGRAM.
 *
 * All structures have the same layout for programs of 32 bits: hence __aligned_u64.
 */
#ifndef BEOWIRE_SOCKET_H
#define BEOWIRE_SOCKET_H

#include <linux/ioctl.h>
#include <linux/socket.h>
#include <linux/sockios.h>
#include <linux/types.h>

/*
 * Linux gives numbers of families to none but its own protocols, so an abandoned one is taken; the
 * module's parameter `family` chooses another. /proc/net/beowire/node tells which it is.
 */
#define AF_BEOWIRE  19
#define SOL_BEOWIRE 319

#define BEOWIRE_PORTS	32767 /* ports are 1 to this; larger engine numbers are user space's */
#define BEOWIRE_MSG_MAX (1ull << 30) /* bytes; the longest message of SOCK_RDM and SOCK_SEQPACKET */

struct sockaddr_beowire {
	__kernel_sa_family_t sbw_family; /* AF_BEOWIRE */
	__u16 sbw_port;		/* engine number on its node; 0 in bind(): any that is free */
	__u32 sbw_ifindex;	/* interface; 0: the first that is attached */
	__aligned_u64 sbw_node; /* identity of the node; 0: unknown */
	__u32 sbw_inc;		/* incarnation of the port; 0: any */
	__u8 sbw_mac[6];	/* Ethernet address; all 0 in bind() */
	__u8 sbw_zero[6];	/* the first two must be 0 */
};

/* Options of level SOL_BEOWIRE; int unless stated. */
enum beowire_option {
	BEOWIRE_BUSY_US = 1, /* receive calls spin so long before they sleep; 0 to 1000000 */
	BEOWIRE_CHECKSUM,    /* payload checksum, 0 or 1 (default); before the port is made */
	BEOWIRE_COPY_MAX,    /* bytes; longer sends take the pages instead of copying them */
	BEOWIRE_EAGER_MAX,   /* bytes; longer messages travel as envelopes; at most 65536 */
	BEOWIRE_DEAD_MS,     /* a silent peer is given up after so long; before the port is made */
	BEOWIRE_INFO_WANTED, /* SOCK_RDM: recvmsg() gives every event with its beowire_info */
	BEOWIRE_COUNTERS,    /* read only: struct beowire_counters of the port */
	BEOWIRE_PEER_NUMBER, /* read only: struct sockaddr_beowire in, its peer number out */
	BEOWIRE_PEER_NAME,   /* read only: a peer's number in, the name of its host out, 0-ended */
	BEOWIRE_PRESSURE,    /* SOCK_RDM: 1: peers are to send envelopes only */
	BEOWIRE_PEER_UP,     /* read only: struct sockaddr_beowire in, of which node, port and
			      * incarnation count; 1 out: that peer has answered, 0: not yet */
	BEOWIRE_WAIT,	     /* BEOWIRE_WAIT_*: whether BEOWIRE_BUSY_US is always made use of */
};

#define BEOWIRE_WAIT_FIXED 0 /* receive calls look for BEOWIRE_BUSY_US, then sleep (default) */
#define BEOWIRE_WAIT_ADAPTIVE                                                                      \
	1 /* no longer than waiting took lately; not at all where that was more than BUSY_US */

/* Kinds of what recvmsg() gives. Without BEOWIRE_INFO_WANTED there are only messages, and a long
 * one is fetched within the call. */
enum beowire_event {
	BEOWIRE_MESSAGE = 1, /* its bytes are in the iovec */
	BEOWIRE_ENVELOPE,    /* of `len` bytes: to be fetched by BEOWIRE_IOC_PULL with `key` */
	BEOWIRE_SENT,	     /* the send with this cookie ended: its buffer is free */
	BEOWIRE_PULLED,	     /* the pull with this cookie ended, `len` bytes are in place */
	BEOWIRE_REGION,	     /* `peer` wants to read memory `key`, `len` bytes at `imm`: answer by
			      * BEOWIRE_IOC_REGION with `cookie`; without an answer it may come
			      * again, for whichever process has the socket then */
	BEOWIRE_DOWN, /* peer `peer` is lost, `status` says why; its bytes: the host's name. With
		       * -EPROTONOSUPPORT `imm` has the versions of the wire protocol that it
		       * speaks: the lowest one, and 256 times the highest one */
};

/*
 * mmap() of one page at offset 0 of a SOCK_RDM socket: its first 32-bit word counts up whenever
 * something new is to be received. Look at the word, then receive until EAGAIN; as long as the word
 * stays, there is nothing new.
 */

/* Control message of level SOL_BEOWIRE, type BEOWIRE_INFO, of SOCK_RDM: what goes with a message,
 * in both directions. */
#define BEOWIRE_INFO 1
struct beowire_info {
	__aligned_u64 tag;    /* passed through */
	__aligned_u64 imm;    /* passed through */
	__aligned_u64 cookie; /* send: not 0 asks for BEOWIRE_SENT; comes back in events */
	__aligned_u64 len;    /* receive: bytes of the whole message */
	__aligned_u64 key;    /* receive: ENVELOPE: for BEOWIRE_IOC_PULL */
	__u32 peer;	      /* number of the peer in this socket; send: 0: by msg_name instead */
	__s32 status;	      /* receive: 0 or a negative errno */
	__u8 event;	      /* receive: enum beowire_event */
	__u8 code;	      /* 0 to 127, passed through */
	__u16 flags;	      /* send: BEOWIRE_SEND_* */
	__u32 reserved;
};

#define BEOWIRE_SEND_ASYNC                                                                         \
	0x1 /* of a long message: return at once, the buffer is busy until SENT */
#define BEOWIRE_SEND_ACKED 0x2 /* SENT only once the peer's port has it */
/* At most one of these; without them the length decides. */
#define BEOWIRE_SEND_EAGER 0x4 /* no envelope; at most 65536 bytes */
#define BEOWIRE_SEND_SHORT                                                                         \
	0x8 /* the same, but EMSGSIZE while the peer wants envelopes, unless it is very short */
#define BEOWIRE_SEND_LONG 0x10 /* an envelope: SENT once the peer has fetched the bytes */

#define BEOWIRE_PULL_MEMORY                                                                        \
	0x1 /* of BEOWIRE_IOC_PULL: `key` names memory that the peer registered */

/* BEOWIRE_IOC_PULL: fetch an envelope's bytes (as many as `len`, or less) into `buf`. */
struct beowire_pull {
	__aligned_u64 key;
	__aligned_u64 off;    /* of the first byte; of an envelope's: 0 */
	__aligned_u64 buf;    /* address in the caller's memory */
	__aligned_u64 len;    /* bytes; 0 discards the message */
	__aligned_u64 cookie; /* of the event BEOWIRE_PULLED; 0: none */
	__u32 peer;
	__u32 flags; /* BEOWIRE_PULL_* */
};

/* BEOWIRE_IOC_REGION: the answer to BEOWIRE_REGION; the memory is pinned while it is read. EAGAIN:
 * there is no memory to answer with; the event comes again.
 * BEOWIRE_IOC_SERVING: 1 while any of `len` bytes at `buf` are being read for a peer. */
struct beowire_region {
	__aligned_u64 id;  /* `cookie` of the event */
	__aligned_u64 buf; /* address in the caller's memory; 0: it may not be read */
	__aligned_u64 len; /* bytes */
};

/* BEOWIRE_IOC_WATCH: a watched peer's death is noticed although it is idle.
 * BEOWIRE_IOC_NEED: a peer whose number was told is kept as long as it lives; one that is not
 * needed may go for others while nothing is under way between the two (BEOWIRE_DOWN, ENOBUFS). It
 * is needed again once something of its is told, or something is sent to it. */
struct beowire_watch {
	__u32 peer;
	__u32 on; /* 0 or 1 */
};

/* An interface of the network namespace. */
struct beowire_iface {
	char name[16];
	__u32 ifindex; /* result */
	__u32 mtu;     /* result: bytes of the largest frame, Ethernet header excluded */
};

/* ioctl()s on any socket of the family. CAP_NET_ADMIN: ATTACH, DETACH. */
#define BEOWIRE_IOC_ATTACH  (SIOCPROTOPRIVATE + 0) /* struct beowire_iface: use it */
#define BEOWIRE_IOC_DETACH  (SIOCPROTOPRIVATE + 1) /* struct beowire_iface: stop; ports live on */
#define BEOWIRE_IOC_PULL    (SIOCPROTOPRIVATE + 2) /* struct beowire_pull; SOCK_RDM */
#define BEOWIRE_IOC_CANCEL  (SIOCPROTOPRIVATE + 3) /* __u64: cookie of a long send or a pull */
#define BEOWIRE_IOC_WATCH   (SIOCPROTOPRIVATE + 4) /* struct beowire_watch; SOCK_RDM */
#define BEOWIRE_IOC_REGION  (SIOCPROTOPRIVATE + 5) /* struct beowire_region; SOCK_RDM */
#define BEOWIRE_IOC_SERVING (SIOCPROTOPRIVATE + 6) /* struct beowire_region, without id; SOCK_RDM */
#define BEOWIRE_IOC_NEED    (SIOCPROTOPRIVATE + 7) /* struct beowire_watch; SOCK_RDM */

#define BEOWIRE_DROP_REASONS 24

struct beowire_counters {
	__aligned_u64 tx_frames, rx_frames;
	__aligned_u64 tx_bytes, rx_bytes;     /* of these frames, Ethernet headers excluded */
	__aligned_u64 tx_payload, rx_payload; /* bytes */
	__aligned_u64 tx_messages, rx_messages;
	__aligned_u64 duplex_payload, duplex_messages; /* received while as much was under way */
	__aligned_u64 retransmits, losses, probes;
	__aligned_u64 copied_tx, copied_rx; /* bytes of payload copied by the processor */
	__aligned_u64 pinned;		    /* bytes sent from or received into pinned pages */
	__aligned_u64 memlock_limited; /* sends that were copied since RLIMIT_MEMLOCK was reached */
	__aligned_u64 tx_busy;	       /* frames given back since the interface's queue was full */
	__aligned_u64 peers;
	__aligned_u64 drop[BEOWIRE_DROP_REASONS]; /* by enum bw_drop of the engine */
	__aligned_u64 evicted; /* peers that made room for others, as there was no more memory */
};

#endif
