/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What libbeowire and beowired say to each other over a unix socket (SOCK_SEQPACKET), see
 * beowired(8). A client sends one request, with the descriptor that claims its engine number. The
 * service answers "wait" at once, then "ready" with a packet socket, or "refused" with a reason for
 * people. After that both are silent: the end of the connection is the end of the endpoint.
 */
#ifndef BW_SERVICE_H
#define BW_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#define BW_SERVICE_SOCKET  "/run/beowire/beowired.sock"
#define BW_SERVICE_MAGIC   0x64657762u
#define BW_SERVICE_VERSION 1
#define BW_SERVICE_DEVICE  "beowired" /* how the names of its own interfaces begin */

#define BW_SERVICE_NAME	     16	 /* bytes of an interface's name, zero-padded */
#define BW_SERVICE_TEXT	     160 /* bytes of a reason, zero-terminated */
#define BW_SERVICE_KEY_BYTES 32

enum bw_service_kind {
	BW_SERVICE_OPEN = 1,
	BW_SERVICE_WAIT = 2,
	BW_SERVICE_READY = 3,
	BW_SERVICE_REFUSED = 4,
};

/* What "ready" has besides, which a client may do without: an earlier service gives nothing, and an
 * earlier client does not look. */
enum bw_service_flag {
	BW_SERVICE_KEYED = 1 << 0,    /* `key` is the cluster's */
	BW_SERVICE_ENCRYPTS = 1 << 1, /* and who has it from here encrypts */
};

/* How every message begins, in all versions. */
struct bw_service_head {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
};

struct bw_service_request {
	struct bw_service_head head; /* BW_SERVICE_OPEN */
	uint16_t engine;
	uint16_t ethertype; /* host byte order */
	uint32_t cluster;
	uint32_t ring_bytes;		 /* of the receive ring, at most */
	char interface[BW_SERVICE_NAME]; /* all zero: the service's first one that is up */
	uint32_t zero;
};

struct bw_service_answer {
	struct bw_service_head head;
	int32_t error; /* a negative errno, if refused */
	uint32_t mtu;
	uint8_t mac[6];
	uint16_t flags;
	uint32_t zero;
	uint32_t slot_bytes; /* of the receive ring */
	uint32_t block_bytes;
	uint32_t blocks;
	char interface[BW_SERVICE_NAME];
	union {
		char text[BW_SERVICE_TEXT];	   /* if refused */
		uint8_t key[BW_SERVICE_KEY_BYTES]; /* if ready */
	};
};

_Static_assert(sizeof(struct bw_service_request) == 40, "bw_service_request");
_Static_assert(sizeof(struct bw_service_answer) == 216, "bw_service_answer");

/* Messages of the version that both speak have its length exactly. */
static inline bool bw_service_is(const struct bw_service_head *h)
{
	return h->magic == BW_SERVICE_MAGIC && h->version == BW_SERVICE_VERSION;
}

#endif
