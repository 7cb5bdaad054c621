/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What hostile programs on a job's segment share: an ear at the victim's interface, sockets in
 * other network namespaces, random numbers. Errors end the program.
 */
#ifndef SEGMENT_H
#define SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEPT	    256 /* captured frames at a time */
#define FRAME_BYTES 9216
#define BURST	    64
#define SILENCE_NS  500000000 /* the job has ended, or begins */

struct kept {
	uint8_t bytes[FRAME_BYTES]; /* from struct bw_hdr on */
	uint32_t len;
};

/* What the victim's interface receives. */
struct ear {
	int fd;
	struct kept kept[KEPT];
	uint32_t kept_n, kept_next;
	uint16_t engine; /* that they were for */
	uint8_t victim_mac[6];
	uint32_t victim_ip;
	uint16_t victim_port; /* of whom was heard of last; network byte order; 0: none */
	uint64_t heard_ns;    /* when the victim was spoken to last */
};

/* Anything but 0, to begin with. */
extern uint64_t segment_seed;

_Noreturn void segment_fail(const char *what);
/* Below `below`, of segment_seed. */
uint32_t draw(uint32_t below);
uint64_t now_ns(void);
void sleep_until(uint64_t ns);
/* A network namespace, by the name of its file. */
void enter(const char *namespace);
/* A packet socket in the namespace we are in; its interface's number and address. */
int packet(const char *interface, int protocol, uint8_t *mac, int *ifindex);
/* What was said from this address is no news: the ear's filter leaves it out before it takes any
 * room. */
void ear_deaf_to(struct ear *ear, const uint8_t *mac);
/* Takes what waits. True if the job is another one: what was kept of the other is gone. */
bool ear_listen(struct ear *ear);
/* Does somebody speak to the victim? */
bool ear_hears(const struct ear *ear);

#endif
