/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What hosts agree on beyond the engine, so that those in user space and in the kernel understand
 * one another: endpoints within an engine, how a long message is announced, and connections.
 */
#ifndef BW_HOSTS_H
#define BW_HOSTS_H

#include "wire.h"

#define BW_EP_MESSAGES	  0    /* messages of programs, as they are */
#define BW_EP_CONNECTIONS 1    /* the kernel host's connections, enum bw_conn_code */
#define BW_CODE_ENVELOPE  0x80 /* in a MESSAGE's code: its payload is a bw_envelope */

struct bw_envelope {
	uint64_t key; /* of the exposed region; its bytes are the message */
	uint64_t len; /* bytes of the message */
};

/* Codes of messages of BW_EP_CONNECTIONS. Between two engines there is at most one connection at a
 * time. */
enum bw_conn_code {
	BW_CONN_REQUEST = 1, /* tag: 1 keeps message boundaries, 2 carries bytes */
	BW_CONN_ACCEPT = 2,
	BW_CONN_REFUSE = 3,
	BW_CONN_DATA = 4,  /* or an envelope */
	BW_CONN_END = 5,   /* nothing more is sent */
	BW_CONN_RESET = 6, /* nothing more is received either */
};

BW_ASSERT_LAYOUT(bw_envelope, 16);

#endif
