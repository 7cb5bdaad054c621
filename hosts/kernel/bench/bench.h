/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The words that the benchmark's files share. A *case* is one thing to measure (a transport, a way
 * of waiting, a size); its two *ends* are sockets in two network namespaces that a veth joins.
 * Errors end the program: a benchmark that goes on after one measures something else.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define BENCH_BYTES_MAX (16u << 20) /* of one message or of one row of messages */
#define BENCH_COUNT_MAX 1024	    /* messages of a row */

enum bench_wait {
	BENCH_BLOCK, /* two processes that sleep in the receive call */
	BENCH_POLL,  /* two processes that ask again and again, with MSG_DONTWAIT */
	BENCH_BUSY,  /* two processes; the receive call itself waits busily (module only) */
	BENCH_ONE,   /* one process that holds both ends, so that nobody ever waits */
};

struct bench_transport;

/* What to measure, as the command line tells it. */
struct bench_case {
	const struct bench_transport *transport;
	enum bench_wait wait;
	size_t bytes;	  /* of a message */
	unsigned count;	  /* messages of a row; 0: a round trip of one message each way */
	bool together;	  /* a row goes out in one call, not in one per message */
	unsigned mtu;	  /* bytes */
	bool offloads;	  /* segmentation offloads of the veth: TSO, GSO, GRO */
	bool checksum;	  /* the module's payload checksum */
	bool key;	  /* both sides have the cluster key; module only */
	bool encrypt;	  /* and encrypt */
	size_t bulk;	  /* bytes that TCP carries beside each round trip */
	unsigned trips;	  /* how many are measured */
	unsigned warmup;  /* how many before that */
	unsigned profile; /* how many afterwards, between bench_mark_begin() and _end() */
};

/* Two namespaces and the veth between them; index: side. */
struct bench_net {
	int ns[2];
	int ifindex[2];
	uint8_t mac[2][6];
	char ifname[2][16];
};

struct bench_end {
	const struct bench_case *c;
	const struct bench_net *net;
	int side;
	int fd;
	int listener;	     /* -1: none */
	bool yield;	     /* between two looks, as the other end needs this processor */
	uint16_t port;	     /* of the module */
	struct iovec *iov;   /* BENCH_COUNT_MAX, for rows */
	struct mmsghdr *row; /* BENCH_COUNT_MAX, for rows */
	uint8_t *buffer;     /* BENCH_BYTES_MAX */
	pid_t helper;	     /* process that ends with the case; 0: none */
};

/* Bytes of payload that the processor copied, and frames; all 0 if the transport does not tell. */
struct bench_counters {
	uint64_t copied_tx, copied_rx, pinned;
	uint64_t tx_frames, rx_frames, retransmits;
};

/*
 * A transport. open() is called in the end's namespace for side 1, then for side 0; join() for side
 * 0, then for side 1. send() and receive() move one whole message from or to the end's buffer.
 */
struct bench_transport {
	const char *name;
	bool stream;	    /* a row of messages is received as bytes */
	size_t head;	    /* bytes before each message in the buffer, which join() fills */
	bool (*here)(void); /* whether the kernel has it; NULL: always */
	void (*open)(struct bench_end *end);
	void (*join)(struct bench_end *end, const struct bench_end *peer);
	void (*send)(struct bench_end *end, size_t bytes);
	void (*receive)(struct bench_end *end, size_t bytes);
	void (*count)(const struct bench_end *end, struct bench_counters *counters); /* or NULL */
};

extern const struct bench_transport bench_tcp, bench_udp, bench_raw, bench_raw_all, bench_none;
extern const struct bench_transport bench_rdm, bench_seqpacket, bench_datagram, bench_stream;
extern const struct bench_transport bench_server;

/* What was measured, in the clock's unit. */
struct bench_result {
	uint64_t *whole;	      /* c->trips of them: round trips or rows */
	uint64_t *sent;		      /* rows: until the sender's calls had returned; else 0 */
	struct bench_counters tx, rx; /* growth at sides 0 and 1 while it was measured */
};

/* case.c */
const char *bench_case_parse(struct bench_case *c, char *text);

/* net.c */
void bench_net_make(struct bench_net *net);
void bench_net_enter(const struct bench_net *net, int side);
void bench_net_set(const struct bench_net *net, const struct bench_case *c);
uint32_t bench_net_address(int side);

/* socket.c */
int bench_socket(int family, int type, int protocol);
void bench_option(int fd, int level, int name, int value);
void bench_send_all(struct bench_end *end, size_t bytes);
size_t bench_receive_some(struct bench_end *end, size_t offset, size_t bytes);
void bench_receive_all(struct bench_end *end, size_t bytes);
void bench_receive_whole(struct bench_end *end, size_t bytes);

/* beowire.c */
void bench_beowire_attach(const struct bench_end *end);
void bench_beowire_bind(struct bench_end *end, int type, int protocol);
void bench_beowire_connect(struct bench_end *end, const struct bench_end *peer);

/* row.c: `count` messages, as the case says */
void bench_row_send(struct bench_end *end, size_t bytes, unsigned count);
void bench_row_receive(struct bench_end *end, size_t bytes, unsigned count);

/* measure.c */
void bench_measure(const struct bench_case *c, const struct bench_net *net,
		   struct bench_result *result);

/* On this processor from now on, where there are several. */
void bench_pin(int cpu);

/* crowd.c: exchanges a second with all of so many connections of one listener, by one processor
 * and by two. The transport is one of connections. */
void bench_crowd(const struct bench_case *c, const struct bench_net *net, unsigned connections,
		 uint64_t *one, uint64_t *two);

/* main.c */
uint64_t bench_now(void);
void bench_mark_begin(void);
void bench_mark_end(void);
_Noreturn void bench_fail(const char *format, ...);

#endif
