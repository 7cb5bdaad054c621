/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packet sockets from beowired, for processes without CAP_NET_RAW. The connection to the service
 * stays open for as long as the socket is in use: when it ends the socket is of no use any more,
 * and another one is asked for, now and then.
 */
#ifndef BW_SERVED_H
#define BW_SERVED_H

#include <stdbool.h>
#include <stdint.h>

struct bw_env;
struct bw_ep;
struct bw_packet;

/* Is there a service to be asked? */
bool bw_service_there(const struct bw_env *env);

/* Ask for a socket for this engine on p's interface: p has its socket and ring then, and address,
 * MTU and name of the interface that it is for, and the cluster's key, if there is one. `claim`
 * holds the engine number. Waits for up to 100 ms for a sign of life, or 5 s where no other link
 * between nodes is allowed. 0 or a negative errno with *why. */
int bw_service_open(struct bw_packet *p, const struct bw_env *env, uint16_t engine, int claim,
		    const char **why);

/* Now and then: notice the service's end, and find it again. */
void bw_service_visit(struct bw_ep *ep, struct bw_packet *p);

/* How long a service is left alone that has given nothing of use so many times in a row before. */
uint64_t bw_service_pause(uint32_t refusals);

#endif
