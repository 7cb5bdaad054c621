/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a client asks for, and whether it is a request at all. */
#ifndef BS_REQUEST_H
#define BS_REQUEST_H

#include <stddef.h>

#include "service.h"

/* Check what came, of so many bytes: 0 with the request, or a negative errno with a reason. Looks
 * at no more than these bytes. */
int bs_request_parse(struct bw_service_request *r, const void *bytes, size_t n, uint16_t ethertype,
		     char why[BW_SERVICE_TEXT]);

/* Receive a request and the descriptor that came with it (-1: none). 0, -EAGAIN, or a negative
 * errno with a reason; -ECONNRESET: the client has gone. */
int bs_request_receive(int fd, struct bw_service_request *r, int *claim, uint16_t ethertype,
		       char why[BW_SERVICE_TEXT]);

/* Send an answer, with a descriptor or without (-1). 0 or a negative errno. */
int bs_request_answer(int fd, const struct bw_service_answer *a, int descriptor);
void bs_request_refuse(int fd, int error, const char *why);

#endif
