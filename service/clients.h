/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The clients: connections, and the endpoint of each. */
#ifndef BS_CLIENTS_H
#define BS_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "clock.h"
#include "device.h"
#include "keyed.h"
#include "maker.h"
#include "policy.h"
#include "protocol.h"
#include "users.h"

#define BS_GREETING  (1 * BW_S)	   /* for a request to come */
#define BS_LOOK	     (200 * BW_MS) /* between two looks at those who linger, */
#define BS_LOOK_SOON (20 * BW_MS)  /* and after one that did not find some */

enum bs_state {
	BS_FREE,
	BS_GREETS,  /* has not asked yet */
	BS_MADE,    /* a maker has its socket in hand, to make it */
	BS_LIVES,   /* has its socket */
	BS_UNMADE,  /* a maker closes ours */
	BS_LINGERS, /* somebody else still has the socket: number and memory stay taken */
};

struct bs_client {
	enum bs_state state;
	bool gone;   /* its connection ended while a maker had its socket */
	bool missed; /* the last look did not find its socket */
	int fd;	     /* its connection */
	int claim;   /* holds the name of its engine number */
	ino_t claim_inode;
	struct ucred who;
	struct bs_user *user;
	uint64_t until; /* for its request to come */
	unsigned int device;
	uint16_t engine;
	uint32_t cluster;
	uint64_t charged; /* bytes of its ring */
	struct bs_job job;
};

struct bs_counts {
	uint64_t opened, refused, closed;
};

struct bs_service {
	struct bs_policy policy;
	struct bs_spaces spaces;
	struct bs_device device[BS_DEVICES];
	struct bs_makers makers;
	struct bs_users users;
	struct bs_counts count;
	struct bs_client client[BS_ENDPOINTS];
	unsigned int most;    /* of these in use, by our limit of descriptors */
	unsigned int living;  /* not free */
	unsigned int waiting; /* greeting, or lingering */
	int epoll;
	int listener;
	int reader; /* of policies */
	/* Signs refusals in the place of the dead; made of the policy's key, if there is one. */
	uint8_t refusal_key[BW_KEYED_SIP_KEY];
	uint64_t now;
	uint64_t look_at;
};

/* There is another policy: make of its key what is needed, and tell what the administrator is to
 * know of it. */
void bs_clients_policy(struct bs_service *s);
/* Take all calls that wait. */
void bs_clients_accept(struct bs_service *s);
/* Something came by the connection of this client. */
void bs_clients_event(struct bs_service *s, unsigned int number);
/* This interface is gone: its endpoints end. */
void bs_clients_leave(struct bs_service *s, unsigned int device);
/* A maker is done with some. */
void bs_clients_made(struct bs_service *s);
/* Time has passed: hang up on those who say nothing, look at those who linger. */
void bs_clients_visit(struct bs_service *s);

#endif
