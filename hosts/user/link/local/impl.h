/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The private side of the `local` link, shared by the local_*.c files. A link has peers; a peer has
 * a ring to send into, a ring to take from, offers that it made and pulls that it has under way.
 */
#ifndef BW_LOCAL_IMPL_H
#define BW_LOCAL_IMPL_H

#include "link/local/local.h"
#include "link/local/shm.h"
#include "link/local/way.h"

struct sockaddr_un;

/* A socket in the link's epoll set. */
struct bw_local_conn {
	int fd;			    /* -1: closed */
	struct bw_local_peer *peer; /* NULL: the listener, or an accepted one before its hello */
	bool answered;		    /* the handshake is complete */
	uint64_t called_at;	    /* ns: when it was accepted */
	struct bw_local_conn *next; /* greeting or dead list */
};

/* A mapped segment; unused if control is NULL. */
struct bw_local_segment {
	struct bw_local_control *control; /* [2] */
	uint8_t *states[2];		  /* BW_LOCAL_SLOTS bytes each */
	uint8_t *ring[2]; /* mapped twice in a row: nothing has to be split at the end */
	uint32_t ring_bytes;
	uint64_t key[2];
};

/* Addresses of a segment that was unmapped, for the next one of that size. */
struct bw_local_parked {
	struct bw_local_parked *next;
	uint8_t *base;
	uint32_t ring_bytes;
};

/* The ring we put records into. */
struct bw_local_tx {
	uint8_t *base;
	uint64_t pos;	    /* bytes put in, ever */
	uint64_t head_seen; /* consumer's head as last read */
	uint64_t key;
	uint32_t bytes;
	uint32_t want_room; /* as last written */
	struct bw_local_control *control;
	uint8_t *states; /* of our offers */
};

/* The ring we take records from. */
struct bw_local_rx {
	uint8_t *base;
	uint64_t pos; /* bytes taken out, ever */
	uint64_t key;
	uint32_t bytes;
	uint32_t want_served; /* the producer's want_room that we rang for */
	uint64_t rung_pos;    /* pos when we rang for one last */
	uint64_t published;   /* pos as the producer knows it */
	struct bw_local_control *control;
	uint8_t *states; /* of the peer's offers */
};

/* Something of ours that the peer must release: an envelope, or a message with ack_op. */
struct bw_local_slot {
	void *op; /* NULL: free, or retracted and not yet released */
	const void *buf;
	uint64_t len;
	uint32_t next_free; /* BW_LOCAL_NO_SLOT ends the list */
	bool live;
	bool envelope;
};

/* A pull or read of ours. */
struct bw_local_pull {
	struct bw_local_pull *next;
	void *op;
	uint8_t *buf;
	uint64_t len;	   /* bytes to fetch */
	uint64_t done;	   /* bytes in buf */
	uint64_t addr;	   /* in the peer's memory, when it is read directly */
	uint64_t key;	   /* READ */
	uint64_t off;	   /* READ */
	uint32_t slot;	   /* PULL; NO_SLOT for a READ */
	bool taken;	   /* PULL: the envelope is ours, it cannot be retracted any more */
	bool given_up;	   /* by bw_local_cancel(): nothing goes to buf, and op has been told */
	bool settled;	   /* its way has been chosen: */
	bool direct;	   /* it is read from the peer's memory */
	uint64_t asked_at; /* ns: when the peer was asked for it */
};

struct bw_local_queue {
	struct bw_local_pull *first;
	struct bw_local_pull **last;
};

/* Pulls and reads that the peer has been asked for: the id on the wire is the index here. */
#define BW_LOCAL_WINDOW 16

/* Reads of ours that wait for their turn: then the program is told to try again. */
#define BW_LOCAL_READS_MAX 4096
/* Notes that may wait: what we ask for, and what an honest peer asks for. */
#define BW_LOCAL_NOTES_MAX (2 * BW_LOCAL_WINDOW)

/* Releases that wait for room, two bits for each slot: is it to be released, and was what lay there
 * fetched? An honest peer names no slot again before it has got the release: so this is all that is
 * to be kept, 32 KiB at most. */
struct bw_local_owed {
	uint64_t *bits;
	uint32_t words; /* of bits */
	uint32_t count; /* slots */
	uint32_t at;	/* word in which the next one is sought first */
};
#define BW_LOCAL_OWED_EACH 32u /* slots of a word */

/* Data that the peer asked us to send through the ring. */
struct bw_local_serve {
	uint64_t id;
	uint64_t len;
	uint64_t done;
	uint32_t slot; /* of ours; NO_SLOT: a READ of memory `key` from `off` on */
	uint64_t key;
	uint64_t off;
};

/* A record without much payload that waits for room: it must not be lost, and nobody can be told to
 * try again. */
struct bw_local_note {
	uint32_t what;
	uint64_t a, b, c, d; /* c and d: data, if `wide` */
	bool wide;
};

enum bw_local_cma {
	BW_LOCAL_CMA_UNKNOWN = 0,
	BW_LOCAL_CMA_WORKS,
	BW_LOCAL_CMA_FORBIDDEN,
};

struct bw_local_peer {
	struct bw_local_rx rx;
	bool work; /* notes, pulls or serves are waiting: look at them at every poll */
	bool lost; /* its socket is closed: take what is left in the ring, then it is down */
	uint64_t lost_end; /* rx.pos beyond which we stop doing so */
	int lost_status;   /* how it is down then, unless it said goodbye */
	bool stalled;	   /* it had no room for us since the last poll that found some */
	bool self;	   /* loops back */
	int down;	   /* not 0: negative errno, reported at the end of the poll */
	uint32_t quiet;	   /* polls in a row without anything */
	uint32_t index;	   /* in link->peer */
	uint32_t rung;	   /* the peer's sleeping word that we rang for */
	const struct bw_local_status *status; /* its page; NULL before it answered: ring always */
	struct bw_local_tx tx;
	struct bw_local *link;
	void *ctx;
	struct bw_local_conn *conn[2];	    /* [0] ours, [1] accepted; NULL if there is none */
	struct bw_local_segment segment[2]; /* likewise */

	struct bw_local_slot *slot; /* private truth about our offers */
	uint32_t slots, slot_free;  /* allocated; head of the free list */
	uint32_t slots_live;

	struct bw_local_note *note; /* ring of waiting notes */
	uint32_t notes, note_first, notes_room;
	struct bw_local_owed owed;

	struct bw_local_queue queued; /* not yet asked for */
	struct bw_local_queue direct; /* to be read by cross-memory attach */
	struct bw_local_pull *asked[BW_LOCAL_WINDOW];
	uint32_t asked_count;
	uint32_t pulls, reads; /* that have not ended */

	struct bw_local_serve serve[BW_LOCAL_WINDOW]; /* FIFO */
	uint32_t serves, serve_first;

	enum bw_local_cma cma;
	struct bw_local_way way; /* of what we fetch */
	uint64_t probe_addr, probe_value;
	struct bw_local_id id;
};

/* An offer that was retracted, or a pull that was given up: its handler runs in the next poll. */
struct bw_local_ended {
	struct bw_local_peer *peer; /* NULL: its peer is gone, and this was reported with it */
	void *op;
	int status;
	bool pull;
};

struct bw_local {
	struct bw_local_id self;
	const struct bw_local_handlers *handlers;
	void *arg;
	uint32_t ring_bytes;
	uint32_t eager_max; /* bytes */

	struct bw_local_status *status;
	int status_fd;
	int spare_fd; /* given up for the time of turning somebody away when there is no other */
	uint32_t sleeping;    /* as written into status */
	bool cma;	      /* cross-memory attach may be tried, */
	bool cma_always;      /* and is used wherever it works */
	int pid;	      /* that opened the link: a fork's child must not speak for it */
	uint64_t probe_value; /* peers read it to prove that they can */

	int epoll;
	struct bw_local_conn listener;
	bool deaf; /* it is not looked at: there is no place for a stranger's call, or for any */
	struct bw_local_conn *greeting; /* accepted, hello not yet read */
	uint32_t greetings;
	struct bw_local_conn *dead; /* closed, freed at the end of the poll */
	uint64_t looked_ns;	    /* when the sockets were last looked at */
	uint32_t polls;		    /* since then */
	bool look_soon;		    /* something is expected there */

	struct bw_local_parked *parked; /* freed when the link is closed */
	struct bw_local_peer **peer;	/* the first `hot` ones are looked at in every poll */
	uint32_t peers, hot, peers_room;
	uint32_t cold_next;
	uint32_t downs; /* peers with .down set */

	struct bw_local_ended *ended;
	uint32_t endeds, endeds_room;

	struct bw_local_counters counters;
};

/* segment.c: memory shared with a peer */
int bw_local_segment_make(struct bw_local *l, struct bw_local_segment *s, const uint64_t key[2],
			  int *fd);
int bw_local_segment_map(struct bw_local *l, struct bw_local_segment *s, uint32_t ring_bytes,
			 const uint64_t key[2], int fd);
void bw_local_segment_unmap(struct bw_local *l, struct bw_local_segment *s);
void bw_local_segment_abandon(struct bw_local_segment *s);
void bw_local_segment_free_parked(struct bw_local *l);
int bw_local_status_make(struct bw_local_status **status, int *fd);
int bw_local_status_map(const struct bw_local_status **status, int fd);
void bw_local_status_unmap(const struct bw_local_status *status);

/* contact.c: the handshake */
int bw_local_hello_read(struct bw_local *l, struct bw_local_conn *c);
void bw_local_answer(struct bw_local *l, struct bw_local_conn *c);
void bw_local_answer_read(struct bw_local *l, struct bw_local_conn *c);
void bw_local_turn_away(struct bw_local *l, int fd, int status);

/* socket.c: the sockets of a link */
uint32_t bw_local_name(uint16_t engine, struct sockaddr_un *sun);
uint32_t bw_local_name_as(uint16_t engine, uint32_t incarnation, struct sockaddr_un *sun);
struct bw_local_conn *bw_local_conn_make(struct bw_local *l, int fd, struct bw_local_peer *p);
void bw_local_conn_close(struct bw_local *l, struct bw_local_conn *c);
void bw_local_conn_reap(struct bw_local *l);
int bw_local_spare(struct bw_local *l);
int bw_local_look(struct bw_local *l);
void bw_local_ring(struct bw_local_peer *p);
bool bw_local_alive(struct bw_local_peer *p);

/* peer.c: the set of peers */
struct bw_local_peer *bw_local_peer_make(struct bw_local *l, const struct bw_local_id *id,
					 void *ctx);
struct bw_local_peer *bw_local_peer_of(struct bw_local *l, uint16_t engine, uint32_t incarnation);
void bw_local_peer_tx(struct bw_local_peer *p, const struct bw_local_segment *s, int ring);
void bw_local_peer_rx(struct bw_local_peer *p, const struct bw_local_segment *s, int ring);
void bw_local_peer_heat(struct bw_local_peer *p);
void bw_local_peer_cool(struct bw_local_peer *p);
void bw_local_peer_lost(struct bw_local_peer *p, int status);
void bw_local_peer_fail(struct bw_local_peer *p, int status);
void bw_local_peer_end(struct bw_local_peer *p, int status);
void bw_local_peer_free(struct bw_local_peer *p);

/* send.c: putting records into a ring */
struct bw_local_record *bw_local_reserve(struct bw_local_peer *p, uint64_t len, uint32_t spare);
void bw_local_commit(struct bw_local_peer *p, struct bw_local_record *r, uint64_t len);
int bw_local_note(struct bw_local_peer *p, const struct bw_local_note *n);
void bw_local_release(struct bw_local_peer *p, uint32_t slot, uint64_t fetched);
bool bw_local_notes_flush(struct bw_local_peer *p);
bool bw_local_has_room(struct bw_local_peer *p);
void bw_local_released(struct bw_local_peer *p, uint32_t slot, uint64_t fetched);
void bw_local_slots_end(struct bw_local_peer *p, int status);

/* recv.c: taking records out of a ring */
bool bw_local_rx_ready(const struct bw_local_peer *p);
struct bw_local_sight bw_local_rx_sight(const struct bw_local_rx *rx);
int bw_local_take(struct bw_local_peer *p, uint32_t budget);
void bw_local_publish(struct bw_local_peer *p);
void bw_local_wake_producer(struct bw_local_peer *p);

/* local.c */
int bw_local_end_later(struct bw_local_peer *p, void *op, int status, bool pull);
void bw_local_end_now(struct bw_local *l, struct bw_local_ended *e);

/* pull.c: pulls, reads, and serving them */
int bw_local_pulls_run(struct bw_local_peer *p);
bool bw_local_pulls_ready(const struct bw_local_peer *p);
void bw_local_pulls_end(struct bw_local_peer *p, int status);

/* serve.c: sending data that a peer cannot read itself */
bool bw_local_serves_run(struct bw_local_peer *p);
void bw_local_serve_pull(struct bw_local_peer *p, uint32_t slot, uint64_t len, uint64_t id);
void bw_local_serve_read(struct bw_local_peer *p, uint64_t key, uint64_t off, uint64_t n,
			 uint64_t id, bool address);

/* pull.c again: what comes back */
void bw_local_granted(struct bw_local_peer *p, uint64_t id, uint64_t addr);
void bw_local_refused(struct bw_local_peer *p, uint64_t id, int64_t status);
void bw_local_data(struct bw_local_peer *p, uint64_t id, uint64_t off, const void *data,
		   uint32_t len);

/* cma.c: cross-memory attach */
void bw_local_cma_allow(void);
/* Whom to appoint to read us, under this scope of Yama's; 0: nobody. */
int bw_local_cma_tracer(int scope, int parent);
bool bw_local_cma_wanted(void);
bool bw_local_cma_demanded(void);
enum bw_local_cma bw_local_cma_with(struct bw_local_peer *p);
int64_t bw_local_cma_read(struct bw_local_peer *p, void *to, uint64_t addr, uint64_t len);

#endif
