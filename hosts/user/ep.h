/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The inside of an endpoint: one engine, the links it speaks over, and the peers it knows. All of
 * it is guarded by `lock`; the few atomics are what threads look at without it.
 *
 * Where to read on: open.c, close.c; ep.c makes progress; host.c serves the engine's callbacks and
 * transmits; remote.c knows peers; message.c sends and delivers, fetch.c pulls, by what transport.h
 * says of the ways to a peer; wait.c sleeps; helper.c is the thread that serves peers while the
 * program computes; publish.c writes for people what state all is in, to the board of board.c.
 */
#ifndef BW_EP_H
#define BW_EP_H

#include <pthread.h>
#include <stdatomic.h>

#include "addr.h"
#include "board.h"
#include "beowire.h"
#include "buffer.h"
#include "clock.h"
#include "copies.h"
#include "count.h"
#include "crowd.h"
#include "env.h"
#include "home.h"
#include "key.h"
#include "link/kernel/kernel.h"
#include "link/link.h"
#include "link/local/local.h"
#include "lock.h"
#include "look.h"
#include "link/packet/packet.h"
#include "protocol.h"
#include "remote.h"
#include "secret.h"
#include "stats.h"
#include "link/udp/udp.h"
#include "link/watch.h"

#define BW_UDP_HOT                                                                                 \
	256				 /* rounds without a datagram, then udp is looked at rarely;
				      * rounds without a message from this node, then often */
#define BW_UDP_ALONE	    32		 /* datagrams without a raw frame: raw frames do not pass */
#define BW_UDP_PAUSE_NS	    (20 * BW_US) /* between such looks, while other links are in use; */
#define BW_UDP_PAUSE_MAX_NS (500 * BW_US) /* doubled by each that finds nothing, up to this */

struct bw_helper {
	pthread_t thread;
	bool wanted; /* the program lets us have threads */
	bool running;
	bool stop;
	bool serving; /* asleep on all descriptors, and nobody else looks at them */
	bool asleep;  /* until `until`, an event, or the program's next round */
	int fd;	      /* eventfd that wakes it */
	uint64_t until;
	uint64_t rounds;	/* ep.rounds at its last look */
	_Atomic uint32_t brisk; /* looks left that follow closely, since messages may wait for
				 * them; written under the lock, which a look may not get */
};

/* What follows the engine's events. */
enum bw_ep_after {
	BW_AFTER_TELL = 1,    /* of some eager messages the program does not know that they ended */
	BW_AFTER_RELIEVE = 2, /* there was no room for a message that arrives */
};

struct bw_ep {
	struct bw_lock lock;
	struct bw_look look;

	/* progress */
	void *engine;		/* instance of bw_reliable */
	uint64_t now;		/* the clock, as read last */
	uint64_t deadline;	/* when the engine wants attention */
	uint64_t rounds;	/* rounds made by the program */
	uint64_t burst_round;	/* `rounds` when the current row of sends began */
	uint32_t burst;		/* sends in this row */
	uint64_t handled;	/* frames and messages handled, ever */
	uint32_t idle;		/* rounds and looks in a row without anything */
	uint32_t idle_timed;	/* of these before the clock was read last */
	uint32_t untimed;	/* rounds with something since then */
	const uint8_t *rx_head; /* the frame in the engine's hands: events may refer to it */
	bool given;		/* frames may be to be sent: the engine was given something, or a
				 * refusal was collected */
	bool dirty;		/* the engine may have events */
	bool dispatching;	/* inside the loop that takes events */
	bool looked;		/* this round has taken all that has arrived */
	bool stuck;		/* a batch waits for room in the kernel */
	uint64_t retry_at;	/* while stuck: no try before */
	bool has_packet, has_udp;
	bool dead;	    /* not open yet, closed, or inherited by fork() */
	bool inherited;	    /* by fork() */
	bool fork_held;	    /* the thread that forks holds the lock meanwhile */
	uint32_t udp_hot;   /* rounds for which the udp socket is looked at every time */
	uint32_t local_hot; /* rounds for which the local link is taken for the one in use */
	uint64_t udp_seen;  /* when it was looked at last */
	uint64_t udp_pause; /* until the next look; 0: at once */
	uint64_t udp_bytes; /* payload by udp, both ways, when datagrams came last, */
	uint64_t udp_raw;   /* frames that had come by packet sockets by then, */
	uint32_t udp_alone; /* and datagrams that have come since the last one of these */
	struct bw_packet packet[BW_PACKET_LINKS];
	int packets;		  /* of these in use, one for each interface */
	struct bw_local *local;	  /* NULL: not in use */
	struct bw_kernel *kernel; /* NULL: not in use; else there is no packet */
	uint32_t eager_max;	  /* bytes, over the engine */
	uint32_t ahead_max;	  /* bytes, likewise: longer messages are fetched */
	uint32_t eager_least;	  /* bytes, whatever the peer */
	uint64_t copied;	  /* bytes of eager messages on their way through the engine */
	uint8_t after;		  /* the engine's events: of enum bw_ep_after */
	struct bw_copies copies;  /* of long messages */
	struct bw_lone fetching;  /* pulls and reads over the engine */
	uint64_t early;		  /* calls of bw_pull_early() that succeeded */
	struct bw_remotes remotes;
	struct bw_buffers buffers;
	const struct bw_handlers *handlers;
	void *arg;

	/* waiting */
	_Atomic uint32_t sleepers; /* threads asleep in bw_wait() */
	_Atomic uint32_t wakes;	   /* calls of bw_ep_wake(), ever */
	uint32_t waits;		   /* calls of bw_wait() that have not returned */
	bool armed;		   /* a program sleeps on bw_ep_fd(), */
	uintptr_t armed_by;	   /* by this thread (pthread_self()) */
	int wake_fd;		   /* eventfd, for sleepers in bw_wait() */
	_Atomic int poll_fd;	   /* eventfd, for one on bw_ep_fd(); -1 before its first use */
	_Atomic uint64_t rings;	   /* that were written to it, or are about to be, */
	uint64_t rings_seen;	   /* and those that were taken out of it */
	int epoll_fd;		   /* bw_ep_fd(), likewise */
	short epoll_kernel;	   /* what it waits for at the kernel link */
	uint64_t spin_ns;	   /* how long bw_wait() spins now */
	uint64_t idle_since;	   /* when a row of empty bw_progress() calls was last timed */
	uint64_t yields;	   /* times that bw_progress() gave its core away */
	uint64_t naps;		   /* times that it slept */
	struct bw_crowd crowd;
	struct bw_helper helper;

	/* rarely */
	struct bw_udp udp;
	struct bw_watch watch;
	struct bw_buffer memory;   /* BW_BUFFER_MEMORY */
	struct bw_buffer *pending; /* sends that can be canceled */
	struct bw_buffer *pulling; /* pulls and reads, but by the local link */
	struct bw_buffer *placing; /* messages that arrive in the program's memory */
	uint64_t placed;	   /* of these, ever */
	uint64_t arriving;	   /* bytes of messages that have not arrived whole (arriving.h) */
	uint64_t relief_at;	   /* no look at who takes it before */
	uint64_t stale_peers;	   /* given up for that, ever */
	_Atomic uint64_t counts[BW_COUNTS]; /* events, ever, as bw_count_event() tells */
	struct bw_ep_board board;
	uint64_t chores_at; /* next look at the watch and the peers' links, while rounds are made */
	uint64_t links_at;  /* earliest check_at of a peer; BW_NEVER */
	struct bw_env env;
	bool keyed;		   /* frames carry tags that only who has the key can make */
	bool key_given;		   /* if so: by beowired, as BEOWIRE_KEY names none */
	uint8_t key[BW_KEY_BYTES]; /* the cluster's, if so */
	struct bw_addr_fields self;
	struct bw_iface iface; /* of the first packet link, or of the kernel's port */
	struct bw_tx_frame tx;
	struct bw_batch *ahead; /* while the engine makes the next frame like `tx`: where it goes */
	struct bw_home home;	/* where all this lies */
	size_t engine_bytes;	/* of the engine's own memory */
	struct bw_grown **grown; /* what the engine grew by, in the order of addresses */
	uint32_t pieces, pieces_room;
	uint64_t grown_bytes; /* so much */
	bool shrinking;	      /* what of it is free is looked at, in steps */
	uint64_t shrunk_free; /* bytes of it that were not in use after the last such look */
	int claim;	    /* descriptor that holds our engine number, -1: the local link has it */
	bool borrowed;	    /* the number's name is not ours (number.h), */
	int number;	    /* until it is free and held by this descriptor */
	struct bw_ep *next; /* all endpoints of the process */
	char host[65];	    /* name of this node, for people */
	unsigned int serial;	 /* number of the endpoint in its process, from 0 */
	struct bw_secret secret; /* what the engine's keys, tokens and nonces are made of */
};

/* One round of progress, lock held: receive, deliver, transmit. What was handled. */
int bw_ep_round(struct bw_ep *ep);
void bw_ep_slept(struct bw_ep *ep);
/* Take all frames that wait in a link's ring. Lock held, outside the handlers. */
void bw_ep_drain(struct bw_ep *ep, struct bw_packet *p);

/* close.c */
void bw_ep_close_packets(struct bw_ep *ep);
/* Give up everything but the engine's farewell. Lock held; it is dead, and nobody waits in it. */
void bw_ep_free(struct bw_ep *ep);
/* Say goodbye to all peers; nothing but freeing may follow. Lock held. */
void bw_ep_farewell(struct bw_ep *ep);
/* In a child of fork(): give up all descriptors, touch nothing that the parent shares. */
void bw_ep_abandon(struct bw_ep *ep);

/* shrink.c: pieces of memory that the engine grows by. */
/* One more, or NULL: there is no memory. */
void *bw_grown_add(struct bw_ep *ep);
void bw_grown_free_all(struct bw_ep *ep);
/* Now and then, outside the handlers: what the engine needs no more goes. A step of it; more are
 * to be made while ep.shrinking. */
void bw_host_shrink(struct bw_ep *ep);

/* host.c */
extern const struct bw_host_ops bw_host_ops;
/* Send what the engine wants sent, and note when it wants to be asked again. */
void bw_host_transmit(struct bw_ep *ep);
/* Deliver the engine's events. */
void bw_host_events(struct bw_ep *ep);
/* The engine grows for what others send us, if it may; else it is told that it does not. */
bool bw_host_feed(struct bw_ep *ep);
/* Submit an operation, growing the engine as needed. */
int bw_host_submit(struct bw_ep *ep, struct bw_op *op);
/* Hand the engine a frame and deliver what comes of it. */
void bw_host_receive(struct bw_ep *ep, const struct bw_rx_frame *f);
/* The same of n frames, in their order. */
void bw_host_receive_row(struct bw_ep *ep, const struct bw_rx_frame *f, uint32_t n);
/* The time for an operation called by the program: handlers use that of their round. */
static inline void bw_host_tick(struct bw_ep *ep)
{
	if (!ep->dispatching)
		ep->now = bw_clock_now();
}

/* Would timers run now that end a peer's conversation, for whose last frames nobody has looked? */
static inline bool bw_host_parting(const struct bw_ep *ep)
{
	return ep->now >= ep->deadline && bw_reliable.parting(ep->engine);
}

/* message.c */
/* struct bw_rndv: which transport, and its own idea of where the data lies. */
enum bw_rndv_word { BW_RNDV_KEY = 0, BW_RNDV_LEN = 1, BW_RNDV_KIND = 3 };
enum bw_rndv_kind { BW_RNDV_ENGINE = 1, BW_RNDV_LOCAL = 2, BW_RNDV_KERNEL = 3 };
void bw_message_event(struct bw_ep *ep, const struct bw_event *ev);
/* A quiet send has ended. Calls nobody; BW_AFTER_TELL: the program is then to hear of others. */
void bw_message_acked(struct bw_ep *ep, uint64_t cookie);
void bw_message_tell_all(struct bw_ep *ep);

/* by_local.c */
extern const struct bw_local_handlers bw_by_local_handlers;

/* fetch.c: pulls and reads by the engine */
int bw_fetch_message(struct bw_ep *ep, struct bw_remote *p, const struct bw_rndv *rndv, void *buf,
		     uint64_t len, void *user_op);
int bw_fetch_memory(struct bw_ep *ep, struct bw_remote *p, uint64_t key, uint64_t off, void *buf,
		    uint64_t len, void *user_op);
void bw_fetch_pulled(struct bw_ep *ep, const struct bw_event *ev);

/* wait.c */
/* Make ready to sleep on bw_wait_fds(): 0, or -EAGAIN if there is work at once. */
int bw_wait_arm(struct bw_ep *ep);
/* What to sleep on; at most BW_WAIT_FDS entries. */
#define BW_WAIT_FDS (4 + 2 * BW_PACKET_LINKS + BW_UDP_SOCKETS)
struct pollfd;
int bw_wait_fds(const struct bw_ep *ep, struct pollfd *fds);
/* Who sleeps is to look for himself: bw_wait() goes on if nothing was handled, unlike after
 * bw_ep_wake(). From any thread, also without the lock. */
void bw_wait_rouse(struct bw_ep *ep);
/* A thread of the program has made its rounds, and goes to do something else. Others may sleep, in
 * bw_wait() or, if it was `armed` before, on bw_ep_fd(): they are to hear of what it has `found`,
 * and of what comes next. */
void bw_wait_leave(struct bw_ep *ep, bool found, bool armed);
/* What poll() said of them. */
void bw_wait_seen(struct bw_ep *ep, const struct pollfd *fds, int n);
/* The udp link has another socket: whoever sleeps has to sleep on it, too. */
void bw_wait_udp(struct bw_ep *ep);
/* One more, or less, to sleep on. */
void bw_wait_listen(struct bw_ep *ep, int fd);
void bw_wait_unlisten(struct bw_ep *ep, int fd);
/* Nanoseconds from `now` until the engine or a chore wants attention. */
uint64_t bw_wait_limit(const struct bw_ep *ep, uint64_t now);
/* Of an endpoint that is dead: let all calls of bw_wait() return, before it is freed. Lock held
 * once. */
void bw_wait_end_all(struct bw_ep *ep);
/* After a round of the program without result: get out of the way of others if cores are short.
 * True if it slept, so that another round is due. */
bool bw_wait_yield(struct bw_ep *ep);

/* helper.c */
int bw_helper_start(struct bw_ep *ep);
/* Called without the lock. */
void bw_helper_stop(struct bw_ep *ep);
/* Will the helper look soon, so that messages may wait for one another? */
bool bw_helper_brisk(struct bw_ep *ep);
/* The program makes a round, which ends what the local link's peers know of sleepers: the helper,
 * if it is asleep, is to look how it goes on. */
void bw_helper_rouse(struct bw_ep *ep);
/* Something is due then: wake the helper if it would sleep past that. */
void bw_helper_at(struct bw_ep *ep, uint64_t at);
/* The same; the engine's deadline moved. */
void bw_helper_deadline(struct bw_ep *ep);

/* process.c: all endpoints of this process, for fork() and exit(). They are known from before their
 * first descriptor until after the last one, and fork() waits for the lock. */
void bw_process_add(struct bw_ep *ep);
void bw_process_remove(struct bw_ep *ep);
/* For the next one that opens. */
unsigned int bw_process_serial(void);

#endif
