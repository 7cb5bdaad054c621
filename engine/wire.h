/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every format and limit of Beowire's wire, version 2. All integers are little-endian and lie at
 * their natural alignment; the engine runs on little-endian machines only, so the structures below
 * are the bytes. A frame is
 *
 *	hdr (32) | body
 *
 *	HELLO	hdr | hello (128): first contact, feature exchange; never acknowledged
 *	DATA	hdr | ackblk (16) | part [payload] ...: the only type with a packet number
 *	ACK	hdr | ackblk (16) | ack (16) | range ...: received ranges; never acknowledged
 *	REFUSE	hdr | refuse (64): "I do not know that incarnation / version / handle"
 *	BYE	hdr [ackblk | ack | range ...]: the sending engine closes, having received this
 *	DGRAM	hdr | dgram (16) | payload: the minimal datagram protocol, see datagram.c
 *	CHALLENGE hdr | challenge (24): "say that HELLO again, with this cookie"
 *
 * Bytes after the stated length are legal and ignored, since Ethernet pads to 60 bytes.
 */
#ifndef BW_WIRE_H
#define BW_WIRE_H

#include "platform.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Beowire's structures are its wire format: a little-endian machine is needed"
#endif

#define BW_ETHERTYPE	   0x88B5 /* IEEE 802 local experimental EtherType 1 */
#define BW_ETHERTYPE_PAPER 0x080A /* the EtherType of [B3], selectable */
#define BW_MAGIC	   0xBE0A
#define BW_VERSION	   2

#define BW_CLUSTER_DEFAULT 0x6D8D60E8 /* id of the cluster "default": its folded FNV-1a hash */
#define BW_ENGINE_KERNEL   0x7FFF     /* engine numbers up to this are ports of the kernel host */

#define BW_FRAME_MIN_MTU  576	 /* bytes; smallest path the protocol works on, hdr included */
#define BW_FRAME_MAX_MTU  65000	 /* bytes; largest frame, hdr included */
#define BW_HEAD_MAX	  1024	 /* bytes at a frame's start: all headers and parts lie there */
#define BW_PATHS_MAX	  4	 /* paths of one peer (links it can be reached by) */
#define BW_NAME_MAX	  32	 /* bytes of a node's name in HELLO and REFUSE, zero-padded */
#define BW_ACK_RANGES_MAX 32	 /* received ranges an ACK frame states at most */
#define BW_EAGER_LIMIT	  65536	 /* bytes; an eager message that every receiver takes */
#define BW_LONG_LIMIT	  262144 /* bytes; the longest one for who offers BW_FEATURE_LONG */
#define BW_SEAL_TAG	  16	 /* bytes at the end of a DATA frame that is sealed */

enum bw_frame_type {
	BW_FRAME_HELLO = 1,
	BW_FRAME_DATA = 2,
	BW_FRAME_ACK = 3,
	BW_FRAME_REFUSE = 4,
	BW_FRAME_BYE = 5,
	BW_FRAME_DGRAM = 6,
	BW_FRAME_CHALLENGE = 7,
};

/* hdr.flags */
#define BW_HDR_ANSWER  0x01 /* HELLO: answers a HELLO, needs no answer itself */
#define BW_HDR_ACK_NOW 0x02 /* DATA: the sender waits, acknowledge at once */

/* The common header. hcrc covers every byte of the frame but the payloads. */
struct bw_hdr {
	uint16_t magic;	     /* BW_MAGIC; anything else is a foreign frame: counted, not parsed */
	uint8_t version;     /* BW_VERSION */
	uint8_t type;	     /* enum bw_frame_type */
	uint32_t cluster;    /* cluster id: frames of another cluster are counted and dropped */
	uint16_t dst_engine; /* number of the engine addressed on its node: filters steer by it */
	uint16_t src_engine; /* number of the sending engine on its node */
	uint32_t
		token; /* DATA, ACK, BYE, CHALLENGE: what the receiver gave the sender in its HELLO,
			 * and nobody else; HELLO: incarnation addressed, 0 any; else 0 */
	uint32_t conn; /* the receiver's own handle for the sender, from its HELLO; 0 in a first
			   * HELLO */
	uint32_t pn;   /* DATA: low 32 bits of the packet number on this path; else 0 */
	uint8_t path;  /* the sender's number of the path this frame travels, < BW_PATHS_MAX */
	uint8_t flags; /* BW_HDR_* */
	uint16_t len;  /* bytes of the body that follow hdr, payloads included */
	uint32_t
		hcrc; /* CRC32C of all but the payloads, with this field 0. With a cluster key DATA,
			* ACK and BYE have a tag instead, whose upper half lies in `token`. */
};

/* Body of HELLO: who I am and what I can do. Its layout never changes between versions. */
struct bw_hello {
	uint64_t node;	   /* identity of the sender's node (network namespace); never 0 */
	uint64_t features; /* BW_FEATURE_* that the sender offers */
	uint32_t inc;	   /* the sender's incarnation; never 0 */
	uint32_t conn;	   /* the sender's handle for the receiver: put into hdr.conn from now on */
	uint8_t version_min; /* versions that the sender speaks */
	uint8_t version_max;
	uint16_t engine;      /* equals hdr.src_engine */
	uint32_t credit;      /* first credit limit, in BW_CREDIT_UNIT bytes */
	uint32_t charge_min;  /* bytes of credit that each message costs at least (a ring slot) */
	uint32_t frame_max;   /* largest frame the sender can receive on this path, in bytes; at
			       * least BW_FRAME_MIN_MTU */
	uint64_t target_node; /* node the sender means to reach (0: unknown) */
	uint32_t target_inc;  /* incarnation it means to reach (0: any) */
	uint32_t token;	      /* random: put into hdr.token from now on */
	uint8_t name[BW_NAME_MAX]; /* host name of the sender, for messages to people */
	uint32_t nonce;		   /* drawn by the sender for this address, to be echoed; 0: none */
	uint32_t echo; /* nonce of the HELLO that came from the address this one goes to; 0: none */
	uint64_t cookie;  /* of a CHALLENGE that came from there; 0: none */
	uint64_t random;  /* with a cluster key: drawn for this peer, goes into its keys; else 0 */
	uint8_t auth[16]; /* of the frame with this and hcrc 0, by the cluster key; else 0 */
};

#define BW_FEATURE_CHECKSUM 0x1 /* payloads carry CRC32C; used when both sides offer it */
#define BW_FEATURE_STRIPE   0x2 /* takes the data of one pull by several paths at a time */
#define BW_FEATURE_LONG	    0x4 /* takes eager messages of up to BW_LONG_LIMIT bytes */
#define BW_FEATURE_ENCRYPT  0x8 /* its DATA is sealed; only who offers the same is spoken with */

/*
 * Credit. The receiver states a limit: the sum of what the sender may ever have charged since first
 * contact. A MESSAGE is charged bw_credit_charge(total, charge_min) when its first byte is first
 * sent, and granted again when the receiving host took it; BULK is charged byte by byte,
 * retransmissions never. PULL and PULL_ERROR are free (numbers of unacknowledged ones differ by
 * less than BW_CONTROL_MAX).
 */
#define BW_CREDIT_UNIT 64 /* bytes that one unit of credit stands for */
#define BW_CONTROL_MAX 256

/* What every DATA and ACK frame tells about the opposite direction. */
struct bw_ackblk {
	uint32_t ack;	 /* all packets of hdr.path up to and including this number, that the peer
			  * still counts as outstanding, have been received (low 32 bits) */
	uint32_t floor;	 /* lowest own packet number of hdr.path still of interest: forget older
			  * gaps */
	uint32_t credit; /* credit limit in BW_CREDIT_UNIT, low 32 bits, counted since first
			  * contact */
	uint16_t flags;	 /* BW_ACKBLK_* */
	uint16_t marks;	 /* low 16 bits of the count of congestion marks received on hdr.path */
};

#define BW_ACKBLK_PRESSURE 0x1 /* unexpected messages fill the host: send envelopes only */
#define BW_ACKBLK_NO_ACK   0x2 /* nothing was received on this path yet: .ack means nothing */

/* Body of ACK after its ackblk; hdr.path names the path acknowledged. */
struct bw_ack {
	uint32_t delay_ns; /* time between receipt of packet `largest` and this frame */
	uint32_t largest;  /* largest packet number received (low 32 bits) */
	uint16_t ranges;   /* ranges that follow, ascending, all above ackblk.ack */
	uint16_t reserved0;
	uint32_t reserved1;
};

/* Received packets beyond the gap-free part: `gap` missing ones, then `run` received ones. */
struct bw_range {
	uint32_t gap; /* >= 1 */
	uint32_t run; /* >= 1 */
};

enum bw_part_kind {
	BW_PART_MESSAGE = 1,	/* part_msg: (a segment of) an eager message */
	BW_PART_PULL = 2,	/* part_msg: "send me this region"; control flow */
	BW_PART_PULL_ERROR = 3, /* part_msg: no (more) data of that pull; control flow */
	BW_PART_BULK = 4,	/* part_bulk: data of a pull */
	BW_PART_PAD = 5,	/* part_bulk: padding that probes the size of a path; ignored */
};

/* First 8 bytes of every part. Parts start at multiples of 8 from the start of the frame. */
struct bw_part {
	uint8_t kind;  /* enum bw_part_kind */
	uint8_t code;  /* MESSAGE: the adapter's own operation code, passed through */
	uint16_t plen; /* payload bytes behind this part, padded to a multiple of 8 if a part
			* follows */
	uint32_t crc;  /* CRC32C of the payload, when the feature is agreed on; else 0 */
};

struct bw_part_msg {
	struct bw_part part;
	uint64_t id; /* number in its flow, from 0 without gaps. MESSAGE: delivered in that order;
		      * control flow: acted upon in any order, once */
	uint64_t offset; /* MESSAGE: of this segment; PULL: offset within the region */
	uint64_t total;	 /* MESSAGE: length of the whole message; PULL: bytes wanted; PULL_ERROR:
			  * bytes of that pull which were sent, lost or not: they are granted
			  * again */
	uint64_t tag;	 /* MESSAGE: the adapter's; PULL: region key; PULL_ERROR: pull id */
	uint64_t imm;	 /* MESSAGE: the adapter's; PULL: pull id */
	uint16_t dst_ep; /* endpoint within the engine addressed; BW_EP_CONTROL: control flow */
	uint16_t src_ep;
	int32_t status; /* PULL_ERROR: negative errno (Linux numbers), or 0: a pull of 0 bytes is
			 * granted; PULL: BW_PULL_* flags */
};

struct bw_part_bulk {
	struct bw_part part;
	uint64_t id;	 /* pull id that the receiver chose */
	uint64_t offset; /* bytes from the start of the pull */
};

/* Bytes before the first part of a DATA frame. */
#define BW_DATA_HEAD (sizeof(struct bw_hdr) + sizeof(struct bw_ackblk))

/* Bytes of a part's head by its kind; 0: there is no such kind. */
static inline uint32_t bw_part_bytes(uint8_t kind)
{
	switch (kind) {
	case BW_PART_MESSAGE:
	case BW_PART_PULL:
	case BW_PART_PULL_ERROR:
		return sizeof(struct bw_part_msg);
	case BW_PART_BULK:
	case BW_PART_PAD:
		return sizeof(struct bw_part_bulk);
	}
	return 0;
}

#define BW_EP_CONTROL 0xFFFF

#define BW_PULL_FINAL	 0x1 /* the region is released once this pull has been acknowledged */
#define BW_PULL_HOST_KEY 0x2 /* the key is the host's own (registered memory), not a region's */

enum bw_refusal {
	BW_REFUSAL_INCARNATION = 1, /* that incarnation is not (or no longer) alive here */
	BW_REFUSAL_VERSION = 2,	    /* no version in common */
	BW_REFUSAL_HANDLE = 3,	    /* hdr.conn is unknown here: say HELLO again */
	BW_REFUSAL_NO_ENGINE = 4,   /* no engine of that number lives on this node */
	BW_REFUSAL_KEY = 5,	    /* another cluster key, or one side has none */
	BW_REFUSAL_ENCRYPT = 6,	    /* one side encrypts, the other does not */
};

/* Body of REFUSE; the echo proves that the sender saw the refused frame. hdr.token is 0. */
struct bw_refuse {
	uint8_t why;	     /* enum bw_refusal */
	uint8_t version_min; /* versions that the refusing engine speaks */
	uint8_t version_max;
	uint8_t echo_type;    /* hdr.type of the refused frame */
	uint16_t echo_engine; /* its hdr.dst_engine */
	uint16_t reserved0;
	uint32_t echo_token;	   /* its hdr.token */
	uint32_t echo_conn;	   /* its hdr.conn; for a HELLO its hello.conn */
	uint8_t name[BW_NAME_MAX]; /* host name of the refusing node */
	uint32_t inc;		   /* the refusing engine's incarnation; 0: there is none */
	uint32_t echo_hello;	   /* for a HELLO its hello.token, else 0; 0 in versions before
				    * BW_VERSION_ECHOES */
	uint64_t auth; /* of the frame with this and hcrc 0, by the cluster key; else 0 */
};

#define BW_VERSION_ECHOES 2 /* the first whose REFUSE has echo_hello */

/* Of the whole frame; no frame that is shorter is refused. */
#define BW_REFUSE_BYTES (sizeof(struct bw_hdr) + sizeof(struct bw_refuse))

/* Body of CHALLENGE, which answers a HELLO from an address that nobody has answered from yet. */
struct bw_challenge {
	uint64_t cookie; /* to be said in HELLOs to this address from now on; never 0 */
	uint32_t nonce;	 /* the HELLO's, as proof that it was seen */
	uint32_t reserved0;
	uint64_t auth; /* of the frame with this and hcrc 0, by the cluster key; else 0 */
};

/* Body of DGRAM. */
struct bw_dgram {
	uint16_t dst_ep;
	uint16_t src_ep;
	uint16_t plen; /* payload bytes */
	uint16_t reserved0;
	uint32_t crc; /* CRC32C of the payload, 0 if none */
	uint32_t reserved1;
};

#define BW_ASSERT_LAYOUT(type, size) _Static_assert(sizeof(struct type) == (size), #type)
BW_ASSERT_LAYOUT(bw_hdr, 32);
BW_ASSERT_LAYOUT(bw_hello, 128);
BW_ASSERT_LAYOUT(bw_ackblk, 16);
BW_ASSERT_LAYOUT(bw_ack, 16);
BW_ASSERT_LAYOUT(bw_range, 8);
BW_ASSERT_LAYOUT(bw_part, 8);
BW_ASSERT_LAYOUT(bw_part_msg, 56);
BW_ASSERT_LAYOUT(bw_part_bulk, 24);
BW_ASSERT_LAYOUT(bw_refuse, 64);
BW_ASSERT_LAYOUT(bw_challenge, 24);
BW_ASSERT_LAYOUT(bw_dgram, 16);
_Static_assert(offsetof(struct bw_hdr, dst_engine) == 8, "BPF filters read this offset");
_Static_assert(offsetof(struct bw_hdr, pn) == 20, "pn");
_Static_assert(offsetof(struct bw_hdr, hcrc) == 28, "hcrc");
_Static_assert(offsetof(struct bw_hello, name) == 56, "name");
_Static_assert(offsetof(struct bw_part_msg, dst_ep) == 48, "dst_ep");

#endif
