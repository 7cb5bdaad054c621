/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Interfaces, Ethernet, and what is said to the log, which is nothing. */
#ifndef FUZZ_KERNEL_NET_H
#define FUZZ_KERNEL_NET_H

#define ETH_ALEN	 6
#define ETH_HLEN	 14
#define ARPHRD_ETHER	 1
#define PACKET_HOST	 0
#define PACKET_OTHERHOST 3
#define NET_RX_SUCCESS	 0
#define NET_RX_DROP	 1
#define htons(x)	 __builtin_bswap16(x)
#define cpu_to_be16(x)	 __builtin_bswap16(x)

typedef u64 netdev_features_t;
#define NETIF_F_SG	       1
#define NETIF_F_FRAGLIST       2
#define NETIF_F_GSO	       4
#define NETIF_F_GSO_FRAGLIST   8
#define LL_RESERVED_SPACE(dev) 32

struct sk_buff;
struct device {
	int unused;
};
struct net_device_ops {
	struct net_device *(*ndo_get_peer_dev)(struct net_device *dev);
};
struct net_device {
	int ifindex, refs;
	unsigned int mtu;
	unsigned short type, needed_tailroom;
	netdev_features_t features;
	const u8 *dev_addr;
	const struct net_device_ops *netdev_ops;
	struct net *net;
	struct device dev;
};
#define dev_hold(d)    ((void)(d)->refs++)
#define dev_put(d)     ((void)(d)->refs--)
#define dev_net(d)     ((d)->net)
#define dev_to_node(d) 0
#define netdev_name(d) "fuzz0"

struct packet_type {
	u16 type;
	struct net_device *dev;
	int (*func)(struct sk_buff *skb, struct net_device *dev, struct packet_type *type,
		    struct net_device *orig);
	void (*list_func)(struct list_head *list, struct packet_type *type,
			  struct net_device *orig);
};
#define dev_add_pack(type)    ((void)(type))
#define dev_remove_pack(type) ((void)(type))

struct offload_callbacks {
	struct sk_buff *(*gso_segment)(struct sk_buff *skb, netdev_features_t features);
	struct sk_buff *(*gro_receive)(struct list_head *held, struct sk_buff *skb);
	int (*gro_complete)(struct sk_buff *skb, int offset);
};
struct packet_offload {
	u16 type;
	struct offload_callbacks callbacks;
};
/* The only one; NULL: none. */
__attribute__((weak)) struct packet_offload *fake_offload;
#define dev_add_offload(o)    ((void)(fake_offload = (o)))
#define dev_remove_offload(o) ((void)(fake_offload = NULL))

enum { NETDEV_UNREGISTER = 1, NETDEV_PRE_TYPE_CHANGE };
#define NOTIFY_DONE 0
struct notifier_block {
	int (*notifier_call)(struct notifier_block *block, unsigned long event, void *info);
};
#define netdev_notifier_info_to_dev(info)    ((struct net_device *)(info))
#define register_netdevice_notifier(block)   ((void)(block), 0)
#define unregister_netdevice_notifier(block) ((void)(block))

#define __ratelimit(state) true

struct new_utsname {
	char nodename[65];
};
static inline struct new_utsname *utsname(void)
{
	static struct new_utsname name = {"fuzz"};

	return &name;
}

struct ethhdr {
	u8 h_dest[ETH_ALEN], h_source[ETH_ALEN];
	u16 h_proto;
} __attribute__((packed));

static inline bool is_zero_ether_addr(const u8 *mac)
{
	static const u8 none[6];

	return !memcmp(mac, none, sizeof(none));
}

static inline bool is_valid_ether_addr(const u8 *mac)
{
	static const u8 none[6];

	return !(mac[0] & 1) && memcmp(mac, none, sizeof(none));
}
#define ether_addr_copy(to, from) ((void)memcpy(to, from, ETH_ALEN))
#define ether_addr_equal(a, b)	  (!memcmp(a, b, ETH_ALEN))

static inline u64 ether_addr_to_u64(const u8 *mac)
{
	u64 sum = 0;

	for (int i = 0; i < ETH_ALEN; i++)
		sum = sum << 8 | mac[i];
	return sum;
}

/* Numbers that repeat from run to run. */
__attribute__((weak)) u64 fake_drawn;
static inline u64 get_random_u64(void)
{
	return ++fake_drawn * 0x9E3779B97F4A7C15ull >> 7;
}
#define get_random_u32() ((u32)get_random_u64())

static inline void get_random_bytes(void *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((u8 *)to)[i] = (u8)get_random_u64();
}
#define siphash_1u64(a, key)	((a)*0xD6E8FEB86659FD93ull)
#define siphash_2u64(a, b, key) (((a) ^ (b) << 7) * 0xD6E8FEB86659FD93ull)

#define current_euid() ((kuid_t){0})
struct user_struct {
	atomic_long_t locked_vm; /* pages */
};
struct cred {
	struct user_struct *user;
};
struct task_struct {
	struct mm_struct *mm;
	struct page_frag task_frag;
	unsigned int flags;
	struct user_struct user;
	struct cred cred;
	bool signal; /* it has one, and sleeps no longer */
};
__attribute__((weak)) struct task_struct fake_task;
#define current			   (&fake_task)
#define current_user()		   (&fake_task.user)
#define get_current_cred()	   (fake_task.cred.user = &fake_task.user, &fake_task.cred)
#define put_cred(c)		   ((void)(c))
#define capable(what)		   false
#define RLIMIT_MEMLOCK		   0
#define CAP_IPC_LOCK		   14
#define PF_EXITING		   4
#define signal_pending(task)	   ((task)->signal)
#define fatal_signal_pending(task) ((task)->signal)
#define send_sig(n, task, how)	   ((void)(task))
#define need_resched()		   false
#define single_task_running()	   true
#define cpu_relax()		   ((void)0)
#define yield()			   ((void)0)
#define msleep(ms)		   usleep_range((ms)*1000ul, (ms)*1000ul)
#ifndef SIGPIPE
#define SIGPIPE 13
#endif
#define module_put(m) ((void)(m))
#define mmdrop(m)     ((void)(m))
#define mmgrab(m)     ((void)(m))

#endif
