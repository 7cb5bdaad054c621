/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * /dev/beowire: how a process becomes a protocol server, and frames on their way to it. A file that
 * has claimed a number holds its network namespace, so that this ends after the server.
 */
#include "server.h"

#include <linux/capability.h>
#include <linux/etherdevice.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/nsproxy.h>
#include <linux/poll.h>
#include <linux/sched/user.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "registry.h"

#define BWK_RING_BYTES	     (1 << 20)
#define BWK_RING_BYTES_LEAST (512 << 10) /* half of it holds any record, and the filling before */
#define BWK_RING_BYTES_MOST  (8 << 20)
#define BWK_RETRY_NS	     (50 * BW_US) /* until the next turn when an interface had no room */

/* An open file of the device. */
struct bwk_server_file {
	struct net *net;
	struct mutex lock; /* claiming */
	struct bwk_server *server;
};

/* ---- lifetime ---- */

void bwk_server_put(struct bwk_server *server)
{
	if (!refcount_dec_and_test(&server->refs))
		return;
	xa_destroy(&server->ports);
	kfree_rcu(server, rcu);
}

struct bwk_server *bwk_server_get(struct bwk_node *node, int number)
{
	struct bwk_server *server = NULL;

	if (number < 1 || number >= BEOWIRE_PROTOCOLS)
		return NULL;
	mutex_lock(&node->lock);
	server = node->servers[number];
	if (server)
		refcount_inc(&server->refs);
	mutex_unlock(&node->lock);
	return server;
}

/* The rings' memory is locked memory of the user, as mlock() counts it. */
static int bwk_server_charge(struct bwk_server *server)
{
	struct user_struct *user = current_user();
	long pages = server->area_bytes >> PAGE_SHIFT;

	if (atomic_long_add_return(pages, &user->locked_vm) > rlimit(RLIMIT_MEMLOCK) >>
		    PAGE_SHIFT &&
	    !capable(CAP_IPC_LOCK)) {
		atomic_long_sub(pages, &user->locked_vm);
		return -ENOMEM;
	}
	server->locker = get_current_cred();
	return 0;
}

static void bwk_server_free_area(struct bwk_server *server)
{
	vfree(server->area);
	if (!server->locker)
		return;
	atomic_long_sub(server->area_bytes >> PAGE_SHIFT, &server->locker->user->locked_vm);
	put_cred(server->locker);
}

/* The area: one page with all the rings' counts, then their data. */
static int bwk_server_map(struct bwk_server *server, struct beowire_server_claim *claim)
{
	u32 size = claim->ring_bytes ? claim->ring_bytes : BWK_RING_BYTES;
	int i;

	BUILD_BUG_ON(BEOWIRE_RINGS * sizeof(struct beowire_ring) > PAGE_SIZE);
	if (size < BWK_RING_BYTES_LEAST || size > BWK_RING_BYTES_MOST || !is_power_of_2(size))
		return -EINVAL;
	server->area_bytes = PAGE_SIZE + BEOWIRE_RINGS * size;
	if (bwk_server_charge(server))
		return -ENOMEM;
	server->area = vmalloc_user(server->area_bytes);
	if (!server->area)
		return -ENOMEM;
	claim->area = server->area_bytes;
	for (i = 0; i < BEOWIRE_RINGS; i++) {
		struct bwk_ring *ring = &server->ring[i];

		claim->at[i].ring = i * sizeof(struct beowire_ring);
		claim->at[i].data = PAGE_SIZE + i * size;
		spin_lock_init(&ring->lock);
		ring->shared = server->area + claim->at[i].ring;
		ring->data = server->area + claim->at[i].data;
		ring->size = size;
	}
	return 0;
}

static bool bwk_server_taken(struct bwk_node *node, int number)
{
	struct module *owner;

	if (node->servers[number])
		return true;
	if (!bwk_registry_get(number, &owner))
		return false;
	module_put(owner);
	return true;
}

static struct bwk_server *bwk_server_new(struct bwk_node *node, struct beowire_server_claim *claim)
{
	struct bwk_server *server = kzalloc(sizeof(*server), GFP_KERNEL_ACCOUNT);
	int error;

	if (!server)
		return ERR_PTR(-ENOMEM);
	refcount_set(&server->refs, 1);
	server->node = node;
	server->number = claim->number;
	strscpy(server->name, claim->name, sizeof(server->name));
	server->uid = current_euid();
	spin_lock_init(&server->lock);
	xa_init_flags(&server->ports, XA_FLAGS_ALLOC1);
	INIT_LIST_HEAD(&server->closing);
	mutex_init(&server->turn);
	init_waitqueue_head(&server->wait);
	error = bwk_server_map(server, claim);
	if (!error) {
		mutex_lock(&node->lock);
		if (bwk_server_taken(node, claim->number))
			error = -EBUSY;
		else
			node->servers[claim->number] = server;
		mutex_unlock(&node->lock);
	}
	if (!error)
		return server;
	bwk_server_free_area(server);
	bwk_server_put(server);
	return ERR_PTR(error);
}

/* Sockets fail, ports are free, nothing touches the rings any more. */
static void bwk_server_end(struct bwk_server *server)
{
	struct bwk_server_port *port;
	struct sock *sk;
	unsigned long id;
	int i;

	mutex_lock(&server->node->lock);
	server->node->servers[server->number] = NULL;
	mutex_unlock(&server->node->lock);
	spin_lock_bh(&server->lock);
	WRITE_ONCE(server->dead, true);
	spin_unlock_bh(&server->lock);
	for (i = 0; i < BEOWIRE_RINGS; i++) {
		spin_lock_bh(&server->ring[i].lock);
		server->ring[i].shared = NULL;
		spin_unlock_bh(&server->ring[i].lock);
	}
	/* No port is added from here on. */
	xa_for_each(&server->ports, id, port) {
		spin_lock_bh(&server->lock);
		sk = port->sk;
		if (sk)
			sock_hold(sk);
		bwk_server_port_forget(port);
		spin_unlock_bh(&server->lock);
		if (sk) {
			bwk_server_sock_reset(sk);
			sock_put(sk);
		}
		cond_resched();
	}
	bwk_server_free_area(server);
	bwk_server_put(server);
}

/* ---- frames to the server ---- */

void bwk_server_wake(struct bwk_server *server)
{
	if (wq_has_sleeper(&server->wait))
		wake_up_interruptible_poll(&server->wait, EPOLLIN | EPOLLRDNORM);
}

struct bwk_server_port *bwk_server_find(struct bwk_node *node, u16 number)
{
	struct bwk_server_port *port;

	hash_for_each_possible_rcu(node->server_ports, port, hash, number)
		if (port->number == number)
			return port;
	return NULL;
}

static bool bwk_server_put_frame(struct bwk_ring *ring, u32 id, const struct bwk_iface *iface,
				 struct sk_buff *skb)
{
	struct beowire_record *record =
		ring->shared ? bwk_ring_reserve(ring, BEOWIRE_FRAME, id, skb->len) : NULL;

	if (!record || skb_copy_bits(skb, 0, record + 1, (int)skb->len))
		return false;
	record->frame.ifindex = iface->dev->ifindex;
	ether_addr_copy(record->frame.mac, eth_hdr(skb)->h_source);
	bwk_ring_commit(ring, skb->len);
	return true;
}

bool bwk_server_frame(const struct bwk_iface *iface, struct sk_buff *skb, u16 number)
{
	struct bwk_server_port *port = bwk_server_find(iface->node, number);
	struct bwk_server *server;
	struct bwk_ring *ring;

	if (!port)
		return false;
	server = port->server;
	ring = &server->ring[BEOWIRE_FRAMES_IN];
	spin_lock(&ring->lock);
	if (bwk_server_put_frame(ring, port->id, iface, skb))
		WRITE_ONCE(server->frames_in, server->frames_in + 1);
	else
		WRITE_ONCE(server->dropped, server->dropped + 1);
	spin_unlock(&ring->lock);
	bwk_server_wake(server);
	consume_skb(skb);
	return true;
}

/* ---- the device ---- */

static int bwk_server_open(struct inode *inode, struct file *file)
{
	struct net *net = current->nsproxy->net_ns;
	struct bwk_server_file *f;

	if (!ns_capable(net->user_ns, CAP_NET_ADMIN))
		return -EPERM;
	f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);
	if (!f)
		return -ENOMEM;
	f->net = get_net(net);
	mutex_init(&f->lock);
	file->private_data = f;
	return 0;
}

static int bwk_server_release(struct inode *inode, struct file *file)
{
	struct bwk_server_file *f = file->private_data;

	if (f->server)
		bwk_server_end(f->server);
	put_net(f->net);
	kfree(f);
	return 0;
}

static struct bwk_server *bwk_server_of(const struct file *file)
{
	struct bwk_server_file *f = file->private_data;

	return smp_load_acquire(&f->server);
}

static int bwk_server_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct bwk_server *server = bwk_server_of(file);

	if (!server)
		return -ENODEV;
	if (vma->vm_pgoff || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	return remap_vmalloc_range(vma, server->area, 0); /* refuses what is longer */
}

static bool bwk_server_readable(struct bwk_server *server)
{
	return bwk_ring_waiting(&server->ring[BEOWIRE_REQUESTS]) ||
	       bwk_ring_waiting(&server->ring[BEOWIRE_FRAMES_IN]);
}

static __poll_t bwk_server_poll(struct file *file, poll_table *wait)
{
	struct bwk_server *server = bwk_server_of(file);

	if (!server)
		return EPOLLERR;
	poll_wait(file, &server->wait, wait);
	return bwk_server_readable(server) ? EPOLLIN | EPOLLRDNORM : 0;
}

static int bwk_server_claim(struct bwk_server_file *f, void __user *user)
{
	struct bwk_node *node = bwk_node_of(f->net);
	struct beowire_server_claim claim;
	struct bwk_server *server;
	int error = 0;

	if (bwk_key_is_set(&node->set.key))
		return -EKEYREJECTED;
	if (copy_from_user(&claim, user, sizeof(claim)))
		return -EFAULT;
	if (claim.number <= BEOWIRE_PROTOCOL_DATAGRAM || claim.number >= BEOWIRE_PROTOCOLS ||
	    claim.reserved)
		return -EINVAL;
	claim.name[sizeof(claim.name) - 1] = '\0';
	mutex_lock(&f->lock);
	server = f->server ? ERR_PTR(-EBUSY) : bwk_server_new(node, &claim);
	if (IS_ERR(server))
		error = PTR_ERR(server);
	else
		smp_store_release(&f->server, server);
	mutex_unlock(&f->lock);
	claim.node = node->id;
	claim.cluster = READ_ONCE(node->set.cluster);
	if (!error && copy_to_user(user, &claim, sizeof(claim)))
		error = -EFAULT; /* the number stays claimed until the file is closed */
	return error;
}

/* Negative: without an end. */
static int bwk_server_wait(struct bwk_server *server, s64 timeout_ns)
{
	ktime_t until = ktime_add_safe(ktime_get(), ns_to_ktime(timeout_ns));
	DEFINE_WAIT(wait);
	int error = 0;

	if (!timeout_ns)
		return 0;
	do {
		prepare_to_wait(&server->wait, &wait, TASK_INTERRUPTIBLE);
		if (bwk_server_readable(server))
			break;
		if (signal_pending(current))
			error = -EINTR;
	} while (!error && schedule_hrtimeout(timeout_ns < 0 ? NULL : &until, HRTIMER_MODE_ABS));
	finish_wait(&server->wait, &wait);
	return error;
}

static int bwk_server_ioctl_turn(struct bwk_server *server, const void __user *user)
{
	struct beowire_server_turn turn;
	int error;

	if (copy_from_user(&turn, user, sizeof(turn)))
		return -EFAULT;
	error = bwk_server_turn(server);
	if (error == -EBUSY && (turn.timeout_ns < 0 || turn.timeout_ns > (s64)BWK_RETRY_NS))
		turn.timeout_ns = BWK_RETRY_NS;
	if (error && error != -EBUSY)
		return error;
	return bwk_server_wait(server, turn.timeout_ns);
}

static int bwk_server_links(struct bwk_node *node, void __user *user)
{
	struct beowire_server_iface list[BEOWIRE_SERVER_IFACES] = {0};
	int i, n = 0;

	BUILD_BUG_ON(BEOWIRE_SERVER_IFACES != BWK_IFACES);
	rcu_read_lock();
	for (i = 0; i < BWK_IFACES; i++) {
		struct bwk_iface *iface = rcu_dereference(node->iface[i]);

		if (!iface)
			continue;
		strscpy(list[n].name, iface->dev->name, sizeof(list[n].name));
		list[n].ifindex = iface->dev->ifindex;
		list[n].mtu = bwk_iface_mtu(iface->dev);
		ether_addr_copy(list[n++].mac, iface->dev->dev_addr);
	}
	rcu_read_unlock();
	return copy_to_user(user, list, sizeof(list)) ? -EFAULT : 0;
}

static int bwk_server_control(struct file *file, unsigned int command, unsigned long arg)
{
	struct bwk_server_file *f = file->private_data;
	struct bwk_server *server = bwk_server_of(file);
	void __user *user = (void __user *)arg;

	switch (command) {
	case BEOWIRE_SERVER_CLAIM:
		return bwk_server_claim(f, user);
	case BEOWIRE_SERVER_TURN:
		return server ? bwk_server_ioctl_turn(server, user) : -ENODEV;
	case BEOWIRE_SERVER_LINKS:
		return bwk_server_links(bwk_node_of(f->net), user);
	}
	return -ENOTTY;
}

static long bwk_server_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	const struct bwk_server_file *f = file->private_data;
	int result = bwk_server_control(file, command, arg);

	return result < 0 ? bwk_bad_call(bwk_node_of(f->net), BWK_BAD_IOCTL, result) : result;
}

static const struct file_operations bwk_server_file_ops = {
	.owner = THIS_MODULE,
	.open = bwk_server_open,
	.release = bwk_server_release,
	.mmap = bwk_server_mmap,
	.poll = bwk_server_poll,
	.unlocked_ioctl = bwk_server_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* Whoever rules over a network namespace may serve there: open() decides, not the file's mode. */
static struct miscdevice bwk_server_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "beowire",
	.fops = &bwk_server_file_ops,
	.mode = 0666,
};

int bwk_server_init(void)
{
	return misc_register(&bwk_server_device);
}

void bwk_server_exit(void)
{
	misc_deregister(&bwk_server_device);
}
