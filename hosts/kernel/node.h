/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A node: one network namespace as other nodes see it. It has an identity, the interfaces that it
 * speaks over, and the ports of its sockets.
 */
#ifndef BWK_NODE_H
#define BWK_NODE_H

#include <linux/bitmap.h>
#include <linux/hashtable.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/ratelimit.h>
#include <net/net_namespace.h>

#include "beowire_protocol.h"
#include "beowire_socket.h"
#include "node_key.h"
#include "tally.h"

#define BWK_IFACES	     8 /* interfaces in use at a time: the engine's link numbers */
#define BWK_PORT_BITS	     10
#define BWK_SERVER_PORT_BITS 10

#define BWK_PATH_BITS  8
#define BWK_PATH_KNOWN BIT(31)
#define BWK_PATH_PAUSE msecs_to_jiffies(10)

/* An interface in use. Readers hold RCU's read lock. */
struct bwk_iface {
	struct packet_type type;
	struct net_device *dev;
	struct bwk_node *node;
	u8 link;		    /* its number towards engines */
	char name[BW_NAME_MAX + 1]; /* of the host, as who attached it sees it */
	struct rcu_head rcu;
	/* By a path's number: the device's queue and when a frame left by it last; see tx.c. */
	u32 path_queue[1 << BWK_PATH_BITS];
};

/* Settings of a node: /proc/sys/net/beowire. */
struct bwk_settings {
	unsigned int cluster;	      /* id that frames carry; others' are ignored */
	unsigned long group_range[2]; /* groups whose members may open sockets */
	int qdisc_bypass;	      /* 1: frames go past the queueing discipline */
	int taps;		      /* 1: frames sent are shown to taps, such as tcpdump's */
	unsigned int copy_max;	      /* bytes; default of BEOWIRE_COPY_MAX; 0: as measured */
	unsigned int memory_max;      /* bytes that one port's engine may take */
	unsigned int shards;	      /* of a listening socket; 0: one for each processor */
	struct bwk_key key;	      /* of ports that are opened from now on */
	int encrypt;		      /* 1: those seal what they send with it */
};

/* Kinds of what programs get wrong. */
enum bwk_bad { BWK_BAD_ADDRESS, BWK_BAD_OPTION, BWK_BAD_IOCTL, BWK_BAD_KINDS };

/* Frames that no port counts, and malformed calls. Words, as others read them meanwhile. */
struct bwk_node_counters {
	unsigned long foreign, unclaimed, refused, malformed;
	unsigned long squeezed;		/* pieces of what is long that left something to be done */
	unsigned long arriving_refused; /* they begin a message that there is no room for */
	unsigned long arriving_expired; /* peers given up that let a message stand still */
	unsigned long uncopied;	   /* no memory for what has to be copied of them; unreadable */
	unsigned long dropped;	   /* ours, by a queueing discipline or the device below it */
	unsigned long bad_readers; /* calls of others than who asked for bytes: they get none */
	unsigned long bad_words;   /* by peers, of a pull's end or a message's length */
	unsigned long questions_refused;   /* of peers, where a port has as many as it may */
	unsigned long questions_expired;   /* the same that were not asked again for long */
	unsigned long peers_refused;	   /* they came, and the port has no memory for one more */
	unsigned long connections_refused; /* for want of memory for their sockets */
	unsigned long taken_back;	   /* sends: their receiver had begun, and not ended */
	unsigned long unqueued; /* messages for which their socket has no room, or no memory */
	unsigned long bad[BWK_BAD_KINDS];
};

struct bwk_peer;
struct bw_event;

struct bwk_node {
	struct net *net;
	u64 id;
	struct bwk_settings set;
	struct mutex lock; /* changes of `iface` and `servers` */
	struct bwk_iface __rcu *iface[BWK_IFACES];
	spinlock_t ports_lock; /* `numbers`, and changes of both tables of ports */
	DECLARE_BITMAP(numbers, BEOWIRE_PORTS + 1); /* of both kinds of ports; `ports_lock` */
	DECLARE_HASHTABLE(ports, BWK_PORT_BITS);
	spinlock_t socks_lock;	 /* `socks` */
	struct hlist_head socks; /* bwk_sock.listed */
	struct mutex telling;	 /* one at a time tells all of `socks`, in pieces */
	struct hlist_node told;	 /* its place in them between two pieces */
	struct ratelimit_state refusals;
	struct bwk_news other_version;
	atomic64_t still; /* when bwk_tell_still() told last, ns (monotonic); 0: never */
	DECLARE_HASHTABLE(server_ports, BWK_SERVER_PORT_BITS); /* of protocol servers */
	struct bwk_server *servers[BEOWIRE_PROTOCOLS];	       /* by number; `lock` */
	struct bwk_node_counters __percpu *count;
	struct bwk_tally tally;
	struct ctl_table_header *sysctl;
	struct ctl_table *table;
};

extern unsigned int bwk_node_id; /* of struct bwk_node in struct net */
extern int bwk_family;		 /* number of the address family */

struct bwk_node *bwk_node_of(const struct net *net);

/* node.c */
int bwk_node_init(void);
void bwk_node_exit(void);

/* complaint.c. An error of a call, counted and told if it is one of malformed arguments; `error` is
 * returned. Process context. */
int bwk_bad_call(const struct bwk_node *node, enum bwk_bad kind, int error);
/* The same of a frame, which is counted by its reason already. */
void bwk_bad_frame(const struct bwk_iface *iface, const struct sk_buff *skb, int reason);
/* Is the log to be told something of this peer? Not if it was told the same of the same address as
 * one of the last, and not more often than of what is malformed. */
bool bwk_is_news(struct bwk_news *news, const struct sockaddr_beowire *peer);
/* What is so from now on is told anew. */
void bwk_news_forget(struct bwk_news *news);
/* These tell the log of a peer of this node, which has its name, address and identity, what is so
 * and how it is fixed: that it speaks no version that this node does; */
void bwk_tell_version(struct bwk_node *node, const struct bwk_peer *peer,
		      const struct bw_event *down);
/* that one of the two has another key, or none; */
void bwk_tell_key(struct bwk_node *node, const struct bwk_peer *peer);
/* that one of the two encrypts, and the other does not; */
void bwk_tell_encrypts(struct bwk_node *node, const struct bwk_peer *peer);
/* that timers ran so late, at the time `now`, while it was waited for that this node must have
 * stood still; once for all ports and peers. It may be NULL: not known. */
void bwk_tell_still(struct bwk_node *node, const struct bwk_peer *peer, u64 now, u64 late_ns);

/* sysctl.c */
int bwk_sysctl_init(struct bwk_node *node);
void bwk_sysctl_exit(struct bwk_node *node);
/* May the current task open sockets of the family? */
bool bwk_sysctl_allows(struct bwk_node *node);

/* proc.c */
int bwk_proc_init(struct bwk_node *node);
void bwk_proc_exit(struct bwk_node *node);

/* iface.c. ATTACH: 0, -ENODEV, -EEXIST, -ENOSPC (too many), -EINVAL (not Ethernet). */
int bwk_iface_attach(struct bwk_node *node, struct net_device *dev);
int bwk_iface_detach(struct bwk_node *node, const struct net_device *dev);
void bwk_iface_detach_all(struct bwk_node *node);
int bwk_iface_init(void);
void bwk_iface_exit(void);
/* The interface with this number, or the first in use for 0. RCU's read lock held. */
struct bwk_iface *bwk_iface_find(struct bwk_node *node, u32 ifindex);

/* Bytes of the largest frame on this device, Ethernet header excluded. */
static inline u32 bwk_iface_mtu(const struct net_device *dev)
{
	return min_t(u32, READ_ONCE(dev->mtu), BW_FRAME_MAX_MTU);
}

#endif
