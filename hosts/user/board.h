/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The board: a file in memory by which an endpoint tells people's tools what state it is in, for
 * `beowire status` (docs/status.md). Its owner writes it now and then, from the chores of a round
 * (publish.c); whoever may read the file does so without asking the process, also while it is
 * stopped.
 *
 * It lies in /dev/shm/beowire-UID, a directory that only its user can enter, and goes with the
 * endpoint. A process that dies leaves it: a record lock (fcntl(2)), which the kernel takes away
 * from a process that ends or calls exec, tells that nobody writes there any more; the next one who
 * makes a board in the directory, or `beowire status`, removes it.
 *
 * Two sheets take turns: one is complete and is not written to until the other one is complete,
 * too. A reader copies the current one, and its copy is whole if `turn` was the same, and even,
 * before and after. Numbers are little-endian as the processor's, times CLOCK_MONOTONIC in ns.
 */
#ifndef BW_BOARD_H
#define BW_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BW_BOARD_MAGIC	 "beowire"
#define BW_BOARD_VERSION 1
#define BW_BOARD_PEERS	 48 /* on a sheet at most */
#define BW_BOARD_WAITS	 32
#define BW_BOARD_DROPS	 32 /* reasons that there is room for */
#define BW_BOARD_IFACES	 3

/* Bits of bw_board_peer.flags. */
enum bw_board_flag {
	BW_BOARD_KNOWN = 1,	/* the program knows the peer */
	BW_BOARD_UP = 2,	/* first contact has been made */
	BW_BOARD_PRESSED = 4,	/* it wants envelopes only */
	BW_BOARD_STALLED = 8,	/* something waits for credit, or for room in its ring */
	BW_BOARD_EXPECTED = 16, /* there is something that only it can bring */
	BW_BOARD_SLEEPING = 32, /* local: it sleeps */
};

enum bw_board_way { BW_BOARD_NO_WAY, BW_BOARD_ENGINE, BW_BOARD_LOCAL, BW_BOARD_KERNEL };
enum bw_board_wait_kind { BW_BOARD_RECEIVE = 1, BW_BOARD_UNEXPECTED = 2 };

struct bw_board_peer {
	uint64_t node;
	uint32_t incarnation, number;
	uint16_t engine;
	uint8_t way;  /* enum bw_board_way */
	uint8_t link; /* engine: of the path in use, enum bw_link_number */
	uint32_t flags;
	int32_t status; /* 0, or why it is down */
	uint32_t pid;	/* local; 0: not known */
	uint32_t mtu, probes;
	uint8_t paths, silent;
	uint8_t reserved[6];
	uint64_t srtt_ns, var_ns, window, inflight, credit;
	uint64_t tx_packets, rx_packets, tx_messages, rx_messages, tx_bytes, rx_bytes;
	uint64_t retransmits, losses;
	uint64_t heard, proven, waiting_since; /* ns; 0: never, for nothing */
	uint64_t queued, queued_bytes;	       /* sends of which something has not left */
	uint64_t exposed, exposed_bytes;       /* long messages that it has not fetched */
	uint64_t exposed_since; /* ns; since when there was always one, as far as seen */
	uint64_t pulls, pull_bytes, serves, arriving;
	char host[32];
};
_Static_assert(sizeof(struct bw_board_peer) == 280, "layout of the board");

/* What the program waits for, or what waits for the program: the oldest ones. */
struct bw_board_wait {
	uint64_t tag, ignore, bytes;
	uint64_t since; /* ns; seen first */
	uint64_t node;	/* of the peer; 0: any */
	uint32_t incarnation;
	uint16_t engine;
	uint8_t kind; /* enum bw_board_wait_kind */
	uint8_t tagged;
};
_Static_assert(sizeof(struct bw_board_wait) == 48, "layout of the board");

struct bw_board_link {
	uint64_t tx_frames, rx_frames, tx_bytes, rx_bytes, tx_payload, rx_payload, rx_overruns;
};

struct bw_board_sheet {
	_Atomic uint64_t turn; /* odd: it is being written */
	uint64_t at;	       /* ns; when it was */
	uint64_t rounds, handled;
	uint64_t rounds_at; /* ns; when the program was last seen to make rounds */
	uint64_t handled_at;
	uint64_t asleep;	      /* threads in bw_wait(), or a program on bw_ep_fd() */
	struct bw_board_link link[4]; /* packet, udp, local, kernel */
	uint64_t drops[BW_BOARD_DROPS];
	uint64_t overruns, send_errors;
	uint64_t retransmits, losses, probes, spurious, backoffs, credit_stalls;
	uint64_t tx_messages, rx_messages, tx_pulls, rx_pulls;
	uint64_t memory_bytes, copied_bytes, arriving_bytes;
	uint64_t peers;	     /* that there are */
	uint64_t peers_down; /* of those looked at lately */
	uint64_t receives;   /* that the program has posted */
	uint64_t unexpected; /* messages without one */
	uint64_t unexpected_bytes;
	uint32_t peers_told, waits_told;
	struct bw_board_peer peer[BW_BOARD_PEERS];
	struct bw_board_wait wait[BW_BOARD_WAITS];
};

struct bw_board {
	char magic[8];
	uint32_t version;
	uint32_t bytes; /* of the file */
	uint32_t head_bytes, sheet_bytes, peer_bytes, wait_bytes;
	uint32_t peers_max, waits_max;
	uint32_t pid, uid;
	uint64_t started; /* of the process: field 22 of /proc/PID/stat */
	uint64_t opened;  /* ns */
	uint64_t node;
	uint64_t network; /* inode of the network namespace */
	uint32_t incarnation, serial;
	uint16_t engine;
	uint16_t links; /* set of enum bw_env_link */
	uint32_t cluster, keyed, ifaces;
	char host[64], program[64];
	char iface[BW_BOARD_IFACES][16];
	char drop_name[BW_BOARD_DROPS][16];
	_Atomic uint32_t current; /* index of the sheet to be read */
	uint32_t reserved[5];
	struct bw_board_sheet sheet[2];
};
_Static_assert(sizeof(struct bw_board) - 2 * sizeof(struct bw_board_sheet) == 816,
	       "layout of the board");

struct bw_ep;
struct bw_ep_board {
	struct bw_board *map; /* NULL: there is none */
	int fd;		      /* which holds the lock; -1 */
	char dir[224], path[256];
	uint64_t at;	  /* ns; when it is due; BW_NEVER */
	uint64_t rounds;  /* of the endpoint when it was written last, */
	uint64_t handled; /* likewise */
	uint64_t rounds_at, handled_at;
	uint32_t scan; /* number of the peer to look at next */
	uint32_t told; /* used entries of `number`: the peers that are on the sheet */
	uint32_t number[BW_BOARD_PEERS];
	uint32_t waits; /* likewise, of the following: the program's own name for each, too */
	uint64_t wait_id[BW_BOARD_WAITS];
	struct bw_board_wait wait[BW_BOARD_WAITS];
};

/* Make it and write a first sheet. Without room, directory or descriptor there is none. Lock held.
 */
void bw_board_open(struct bw_ep *ep);
/* Its name goes; what is there of it stays, as another thread may be writing. */
void bw_board_unlink(struct bw_ep *ep);
/* Nothing is left of it. */
void bw_board_close(struct bw_ep *ep);
/* In a child of fork(): it is the parent's. */
void bw_board_abandon(struct bw_ep *ep);

/* publish.c: write a sheet, lock held. */
void bw_publish(struct bw_ep *ep);
/* When the next sheet is due, if the endpoint is going to sleep; BW_NEVER: nothing is new. */
uint64_t bw_publish_due(const struct bw_ep *ep);

#endif
