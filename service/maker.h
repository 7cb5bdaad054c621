/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that live in the clients' namespace and make packet sockets there, and close them: both
 * wait for grace periods of the kernel (10 to 60 ms), several at a time. What an endpoint has to wait
 * for in its making is the grace period of its receive ring, so that two with the ring that programs
 * ask for by default are ready before anybody comes.
 */
#ifndef BS_MAKER_H
#define BS_MAKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BS_MAKERS 8
#define BS_SPARES 2 /* rings of 8 MiB that are kept ready; a grace period later there are as many */

/* One endpoint's socket, in the hands of a maker from bs_makers_give() until bs_makers_take(). */
struct bs_job {
	struct bs_job *next;
	unsigned int number; /* of the client */
	bool close;	     /* close what was made, else make it */
	/* to be made */
	int index; /* of the interface, in the clients' namespace */
	uint32_t mtu, bytes;
	uint16_t engine, ethertype;
	/* what was made */
	int error;
	const char *step; /* that failed */
	int packet;
	void *ring; /* mapped here as well, so that nobody can change it */
	uint32_t slot_bytes, block_bytes, blocks;
	uint64_t cookie;
	ino_t inode;
};

struct bs_makers {
	unsigned int threads;
	pthread_mutex_t mutex;
	pthread_cond_t more, begins;
	unsigned int begun; /* of the threads */
	int error;	    /* that one of them had then */
	struct bs_job *todo, **todo_end;
	struct bs_job *done;
	/* Sockets with a ring of the default size that nobody has asked for yet, bound to nothing. */
	struct bs_job spare[BS_SPARES];
	unsigned int spares, spares_begun; /* that are there; that makers make now */
	uint32_t spare_mtu;		   /* that they are for; 0: none are wanted */
	int bell;			   /* eventfd: something is done */
	pid_t tid; /* of one of them; what /proc/self/task/TID/net tells is of their namespace */
};

/* From a thread in the clients' namespace; they end with the process. 0 or a negative errno. */
int bs_makers_start(struct bs_makers *m);

/* Has spare ones made, for an interface with this MTU. */
void bs_makers_spare(struct bs_makers *m, uint32_t mtu);

void bs_makers_give(struct bs_makers *m, struct bs_job *job);
/* One that is done; NULL: none. */
struct bs_job *bs_makers_take(struct bs_makers *m);

/* Which of these packet sockets does the kernel still have? Clears the inodes of others. False if
 * it cannot be told. */
bool bs_makers_look(const struct bs_makers *m, ino_t *inode, unsigned int n);

#endif
