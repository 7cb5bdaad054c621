/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What stands in the 56 bytes of a struct bw_addr: who an endpoint is and by which links it can be
 * reached. Little-endian like the wire; programs treat it as opaque bytes. There are programs on
 * libfabric that have room for no more than 56.
 */
#ifndef BW_ADDR_H
#define BW_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include "beowire.h"
#include "protocol.h"

#define BW_ADDR_MAGIC	0xAD
#define BW_ADDR_VERSION 2
#define BW_ADDR_MACS	3 /* interfaces that an address has room for */

struct bw_addr_fields {
	uint8_t magic;	   /* BW_ADDR_MAGIC */
	uint8_t version;   /* BW_ADDR_VERSION */
	uint8_t links;	   /* set of enum bw_env_link: which of the following are filled in */
	uint8_t more_macs; /* packet: how many */
	uint32_t cluster;
	uint64_t node;	    /* identity of the node (network namespace) */
	uint32_t inc;	    /* incarnation of the endpoint */
	uint16_t engine;    /* number on its node */
	uint16_t ethertype; /* packet: of its frames */
	uint8_t mac[6];	    /* packet */
	uint16_t udp_port;  /* udp, host byte order of a little-endian machine */
	union {
		struct {
			uint8_t ip[4];		/* udp over IPv4 */
			uint8_t more_mac[2][6]; /* packet: of further interfaces, to be used
						 * together */
		};
		uint8_t ip6[16]; /* udp over IPv6: there are no further interfaces */
	};
	uint16_t packet_mtu; /* packet: bytes of the largest frame, Ethernet header excluded; 0:
				unknown */
	uint16_t udp_mtu;    /* udp: likewise */
	uint32_t crc;	     /* CRC32C of the 52 bytes before it */
};

_Static_assert(sizeof(struct bw_addr_fields) == sizeof(struct bw_addr), "address format");

/* The MTU of an interface, as an address has room for it. */
static inline uint16_t bw_addr_mtu(uint32_t mtu)
{
	return mtu < UINT16_MAX ? (uint16_t)mtu : UINT16_MAX;
}

/* Fill in magic, version and check, and give out the bytes. */
void bw_addr_pack(struct bw_addr_fields *f, struct bw_addr *addr);

/* 0, -EINVAL if these are not the bytes of an address or contradict each other, -EPROTONOSUPPORT
 * for another version. */
int bw_addr_unpack(const struct bw_addr *addr, struct bw_addr_fields *f);

/* The part of the udp link: filled in, and read out if `links`, of both kinds, allows it. */
void bw_addr_set_udp(struct bw_addr_fields *f, const struct bw_link_addr *udp);
bool bw_addr_udp(const struct bw_addr_fields *f, unsigned int links, struct bw_link_addr *udp);

#endif
