/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What two libraries tell each other of a connection by messages of libbeowire, and what becomes of
 * its two directions. docs/sockets.md has the messages. The lock is held in all of these.
 */
#ifndef BWS_FLOW_H
#define BWS_FLOW_H

#include "conn.h"
#include "core.h"

/* `code` of a message. Its tag: the receiver's name of the connection, and the low 32 bits of the
 * offset up to which the sender has taken bytes. `imm` is an offset or number as told here. */
enum bws_code {
	BWS_HELLO = 1,	 /* imm: the sender's id; both nonces */
	BWS_WELCOME = 2, /* imm: the sender's id */
	BWS_READY = 3,	 /* imm: epoch. The peer may switch. */
	BWS_SWITCH = 4,	 /* imm: epoch; 8 bytes: offset of the first byte by Beowire */
	BWS_DATA = 5,	 /* imm: offset; bytes */
	BWS_CREDIT = 6,	 /* the tag says it */
	BWS_RETURN = 7,	 /* imm: offset from which on bytes are to come by TCP; a byte: for good? */
	BWS_BACK = 8,	 /* ask for RETURN */
	BWS_PARK = 9,	 /* imm 1: RETURN, and no READY until further notice, which is imm 0 */
	BWS_CROWDED = 10, /* cores are short here: compare with TCP */
};

extern const struct bw_handlers bws_flow_handlers;

/* Tell what is owed, and send what was not sent, as far as libbeowire takes it. */
void bws_push(struct bws_conn *c);
/* Try again all for which there was no room. */
void bws_push_all(void);
bool bws_push_waits(void);
/* Not this one: it ends. */
void bws_push_drop(struct bws_conn *c);
void bws_push_forget(void);

/* Beowire has lost it, or the peer breaks the rules: calls fail with `error`, and TCP ends. */
void bws_break(struct bws_conn *c, int error, const char *why);

/* Beowire does not reach the peer any more. If TCP does, the two go on by TCP alone. */
void bws_lose(struct bws_conn *c);
/* Each knows what the other has taken: all goes by TCP, and is offered again in a while. */
void bws_rescue_over(struct bws_conn *c);

/* A direction leaves TCP: by which link is told at the end. */
void bws_flow_link(struct bws_conn *c);

/* Begin to receive by Beowire, if nothing is against it. */
void bws_rx_ready(struct bws_conn *c);
/* Receive by TCP again; `final`: this process will not ask for Beowire again. */
void bws_rx_return(struct bws_conn *c, bool final);
/* What has come by Beowire and is about to be thrown away, TCP has to bring before it ends. */
static inline void bws_rx_must(struct bws_conn *c)
{
	if (c->rx.way != BWS_TCP && c->rx.next > c->shared->rx)
		c->rx.must = c->rx.next;
}
/* A message of the peer. */
void bws_rx_switch(struct bws_conn *c, uint64_t epoch, uint64_t from);
void bws_rx_data(struct bws_conn *c, uint64_t off, const void *data, uint64_t len);
/* The program has taken n more bytes that came by TCP, or by Beowire. */
void bws_rx_by_tcp(struct bws_conn *c, uint64_t n);
void bws_rx_taken(struct bws_conn *c, uint64_t n);

/* Send by Beowire from now on, if nothing is against it. */
void bws_tx_switch(struct bws_conn *c);
/* Ask for the way back. */
void bws_tx_back(struct bws_conn *c);
/* The peer gives it: from `from` on. False: it cannot be. */
bool bws_tx_returned(struct bws_conn *c, uint64_t from);
/* The peer's program has taken up to an offset with these low bits. */
void bws_tx_taken(struct bws_conn *c, uint32_t low);
/* Copy bytes to be sent by Beowire; how many there was room for. */
uint64_t bws_tx_add(struct bws_conn *c, const void *data, uint64_t len);
uint64_t bws_tx_room(const struct bws_conn *c);
/* Give to TCP what waits for it. */
void bws_tx_drain(struct bws_conn *c);

/* Nothing goes or is to go by Beowire, and nothing is left to be given to TCP. */
bool bws_settled(const struct bws_conn *c);
/* True, unless its way back was waited for in vain and has not come to its end since: until then
 * neither direction leaves TCP again. */
bool bws_is_back(struct bws_conn *c);

/* Nobody is at the other end any more; it may be asked anew in a while. */
void bws_reoffer(struct bws_conn *c);

#define BWS_WHY_PARKED "TCP moves more while cores are short"

/* Stay on TCP, or leave it again; the peer does the same. */
void bws_park(struct bws_conn *c, bool parked);

/* All the way back. */
void bws_return(struct bws_conn *c, bool final);
/* And wait until that is done, for so long at most, all connections or (c) one; no lock held.
 * False: it is not. */
bool bws_return_wait(struct bws_conn *c, bool final, uint64_t timeout_ns);
/* By TCP for good, from now on. No lock held. Waits for the peer to give the way back, and for its
 * program to take what TCP has no room for. False, with errno: it does not, and the connection is
 * at its end; the kernel's, too, whoever else has it. */
bool bws_pin(struct bws_conn *c, const char *why);
/* The same of what this descriptor leads to, if it is a connection. */
bool bws_pin_fd(int fd, const char *why);
/* The same for a call of the kernel that receives: nothing is waited for. */
bool bws_pin_to_receive(struct bws_conn *c, const char *why);
/* The same for a call of the kernel that sends: as a send it waits for room as long as the program
 * wants, EAGAIN of a descriptor that does not wait or with MSG_DONTWAIT. False, with errno. */
bool bws_pin_to_send(struct bws_conn *c, int fd, const char *why, int flags);

struct msghdr;
/* Connections that a message passes to another process are by TCP for good before. False: one of
 * them cannot be (bws_pin()). */
bool bws_pass(const struct msghdr *m);

#endif
