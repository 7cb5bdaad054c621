/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside beowire-info: what was found out about this host and about one peer, kept apart from how
 * it is printed (for people or as JSON).
 */
#ifndef BW_INFO_H
#define BW_INFO_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "protocol.h"
#include "beowire.h"
#include "link/iface.h"

#define INFO_WHY       400
#define INFO_ADDRESSES 16
#define INFO_VARIABLES 64
#define INFO_LINKS     4
#define INFO_PORT      "47098"
#define INFO_GREETING  "beowire-info 1 " /* then the address in hexadecimal and a newline */
#define INFO_HEX       (2 * sizeof(struct bw_addr))

struct info_interface {
	struct bw_iface iface;
	int64_t speed; /* Mbit/s; -1: the driver does not say */
	char driver[32];
	char address[INFO_ADDRESSES][INET6_ADDRSTRLEN + 4]; /* with "/length of the prefix" */
	unsigned int addresses;
	bool chosen; /* for raw frames */
};

/* A link of this host, tried by opening an endpoint that may use no other. */
struct info_link {
	const char *name;
	bool usable;
	char why[INFO_WHY];   /* how it is used, or what forbids it and what fixes that */
	uint32_t frame_bytes; /* largest frame; 0: there are none */
};

/* A variable that is set, and by whom. */
struct info_setting {
	char name[64], value[256];
	const char *path; /* the file; NULL: the environment */
	unsigned int line;
};

struct info {
	char host[65];
	char kernel[65];
	const char *version;
	const char *checksum;
	const char *sodium;
	bool keyed, encrypted; /* as a program's endpoint is, or as the settings have it */
	bool key_given;	       /* by the service */
	unsigned int cores_online, cores_allowed;
	double cores_granted; /* by cpuset and quota */
	bool cma;
	const char *cma_why;
	struct info_interface interface[BW_IFACE_MAX];
	int interfaces;
	char interface_why[INFO_WHY]; /* why none was chosen */
	struct info_link link[INFO_LINKS];
	char memory[INFO_WHY];	/* where that of an endpoint lies; "": none could be opened */
	char trouble[INFO_WHY]; /* why a program could not open an endpoint; "" if it could */
	struct info_setting setting[INFO_VARIABLES];
	unsigned int settings;
};

/* How one peer is reached. */
struct info_path {
	const char *name;
	bool offered, passes, used;
	uint32_t frame_bytes; /* largest that passed */
	const char *why;
};

/* One pair of interfaces, or of addresses, by which its frames travel. */
struct info_way {
	char from[IFNAMSIZ]; /* the interface, or "udp" */
	char to[32];	     /* Ethernet or IPv4 address */
	const char *state;   /* "used", "up", "silent" or "down" */
	uint64_t round_trip_ns, rate_bps;
	uint32_t frame_bytes;
};

struct info_peer {
	char host[65];
	uint64_t node;
	uint16_t engine;
	uint32_t frame_bytes;	/* in use; 0 for the local link */
	uint64_t round_trip_ns; /* of an 8-byte message and its answer, median */
	struct info_path path[INFO_LINKS];
	struct info_way way[BW_PATHS_MAX];
	unsigned int ways;
	char text[INFO_WHY]; /* libbeowire's own words */
};

/* host.c. -1, and the reason in info_error. */
int info_host(struct info *info);
/* Whether a program can open an endpoint, and nothing else about the host. */
int info_check(void);

/* peer.c */
/* Print an address and answer whoever finds it, until a signal ends it. */
int info_listen(const char *port);
/* `to` is an address in hexadecimal, or HOST[:PORT] where info_listen() runs. */
int info_peer(const char *to, struct info_peer *peer);

/* print.c */
void info_print(const struct info *info);
void info_print_peer(const struct info_peer *peer);
void info_print_json(const struct info *info, const struct info_peer *peer);

extern char info_error[INFO_WHY];
__attribute__((format(printf, 1, 2))) int info_fail(const char *format, ...);

#endif
