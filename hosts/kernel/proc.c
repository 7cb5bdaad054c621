/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* /proc/net/beowire: what a node is, its interfaces, its sockets, their ports, what was dropped. */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>

#include "server.h"
#include "sock.h"
#include "threshold.h"

#define BWK_PROC_PIECE 64 /* sockets that are told of at a time */

static struct bwk_node *bwk_proc_node(struct seq_file *f)
{
	return bwk_node_of(seq_file_single_net(f));
}

static int bwk_proc_show_node(struct seq_file *f, void *unused)
{
	struct bwk_node *node = bwk_proc_node(f);
	struct bwk_node_counters sum = {0};
	int cpu, i;

	for_each_possible_cpu(cpu) {
		const struct bwk_node_counters *c = per_cpu_ptr(node->count, cpu);

		sum.foreign += READ_ONCE(c->foreign);
		sum.unclaimed += READ_ONCE(c->unclaimed);
		sum.refused += READ_ONCE(c->refused);
		sum.malformed += READ_ONCE(c->malformed);
		sum.dropped += READ_ONCE(c->dropped);
		sum.squeezed += READ_ONCE(c->squeezed);
		sum.arriving_refused += READ_ONCE(c->arriving_refused);
		sum.arriving_expired += READ_ONCE(c->arriving_expired);
		sum.uncopied += READ_ONCE(c->uncopied);
		sum.bad_readers += READ_ONCE(c->bad_readers);
		sum.bad_words += READ_ONCE(c->bad_words);
		sum.questions_refused += READ_ONCE(c->questions_refused);
		sum.questions_expired += READ_ONCE(c->questions_expired);
		sum.peers_refused += READ_ONCE(c->peers_refused);
		sum.connections_refused += READ_ONCE(c->connections_refused);
		sum.taken_back += READ_ONCE(c->taken_back);
		sum.unqueued += READ_ONCE(c->unqueued);
		for (i = 0; i < BWK_BAD_KINDS; i++)
			sum.bad[i] += READ_ONCE(c->bad[i]);
	}
	seq_printf(f, "node %016llx\nfamily %d\ncluster %u\ncopy-max %u\n", node->id, bwk_family,
		   READ_ONCE(node->set.cluster), READ_ONCE(node->set.copy_max) ?: bwk_threshold);
	rcu_read_lock();
	for (i = 0; i < BWK_IFACES; i++) {
		struct bwk_iface *iface = rcu_dereference(node->iface[i]);

		if (iface)
			seq_printf(f, "interface %s %d %pM %u\n", netdev_name(iface->dev),
				   iface->dev->ifindex, iface->dev->dev_addr,
				   bwk_iface_mtu(iface->dev));
	}
	rcu_read_unlock();
	seq_printf(f, "foreign %lu\nmalformed %lu\nunclaimed %lu\nrefused %lu\ndropped %lu\n",
		   sum.foreign, sum.malformed, sum.unclaimed, sum.refused, sum.dropped);
	seq_printf(f, "squeezed %lu\narriving-refused %lu\narriving-expired %lu\nuncopied %lu\n",
		   sum.squeezed, sum.arriving_refused, sum.arriving_expired, sum.uncopied);
	seq_printf(f, "bad-addresses %lu\nbad-options %lu\nbad-ioctls %lu\n",
		   sum.bad[BWK_BAD_ADDRESS], sum.bad[BWK_BAD_OPTION], sum.bad[BWK_BAD_IOCTL]);
	seq_printf(f, "bad-readers %lu\nbad-words %lu\nquestions-refused %lu\n", sum.bad_readers,
		   sum.bad_words, sum.questions_refused);
	seq_printf(f, "questions-expired %lu\npeers-refused %lu\nunqueued %lu\n",
		   sum.questions_expired, sum.peers_refused, sum.unqueued);
	seq_printf(f, "connections-refused %lu\ntaken-back %lu\n", sum.connections_refused,
		   sum.taken_back);
	return 0;
}

static const char *bwk_proc_type(const struct sock *sk)
{
	switch (sk->sk_type) {
	case SOCK_RDM:
		return "rdm";
	case SOCK_SEQPACKET:
		return "seqpacket";
	case SOCK_STREAM:
		return "stream";
	}
	return bwk_sk(sk)->server ? "server" : "dgram";
}

static const char *bwk_proc_state(const struct bwk_sock *bs, bool bound, bool connected)
{
	switch (smp_load_acquire(&bs->sk.sk_state)) {
	case TCP_LISTEN:
		return "listening";
	case TCP_SYN_SENT:
		return "connecting";
	case TCP_ESTABLISHED:
		return "connected";
	}
	if (bwk_sock_connects(&bs->sk))
		return READ_ONCE(bs->connected) ? "ended" : bound ? "bound" : "new";
	return connected ? "connected" : bound ? "bound" : "new";
}

/* As ss(8) tells of other families' sockets: of all users', and of none what it carries. The list's
 * lock keeps a socket and its port; where it is connected to may change meanwhile. */
static void bwk_proc_show_sock(struct seq_file *f, struct bwk_sock *bs)
{
	const struct sock *sk = &bs->sk;
	const struct bwk_port *port = smp_load_acquire(&bs->port);
	const struct bwk_server_port *remote = READ_ONCE(bs->remote);
	u16 number = port ? port->number : remote ? remote->number : 0;
	/* It may change meanwhile: then parts of two addresses are shown, this once. */
	const struct sockaddr_beowire to = data_race(bs->to);
	u16 to_port = READ_ONCE(bs->to_port);

	seq_printf(f, "%-9s %-10s %-5u %pM %-5u %-10d %-10d %-10u %-10lu %d\n", bwk_proc_type(sk),
		   bwk_proc_state(bs, number, to_port), number, to.sbw_mac, to_port,
		   sk_rmem_alloc_get(sk), atomic_read(&bs->sending),
		   from_kuid_munged(seq_user_ns(f), sk->sk_uid), sock_i_ino((struct sock *)sk),
		   READ_ONCE(bs->covered));
}

/* So many sockets from `next` on; where the next piece begins, or NULL. The list's lock held. */
static struct hlist_node *bwk_proc_show_piece(struct seq_file *f, struct hlist_node *next)
{
	u32 left = BWK_PROC_PIECE;

	rcu_read_lock(); /* ports of servers */
	for (; next && left; next = next->next, left--)
		bwk_proc_show_sock(f, hlist_entry(next, struct bwk_sock, listed));
	rcu_read_unlock();
	return next;
}

/* Between two pieces others get the list's lock, and the processor. */
static void bwk_proc_show_all(struct seq_file *f, struct bwk_node *node)
{
	struct hlist_node *next;

	spin_lock_bh(&node->socks_lock);
	next = bwk_proc_show_piece(f, node->socks.first);
	while (next) {
		hlist_add_before(&node->told, next);
		this_cpu_inc(node->count->squeezed);
		spin_unlock_bh(&node->socks_lock);
		cond_resched();
		spin_lock_bh(&node->socks_lock);
		next = node->told.next;
		hlist_del_init(&node->told);
		next = bwk_proc_show_piece(f, next);
	}
	spin_unlock_bh(&node->socks_lock);
}

static int bwk_proc_show_sockets(struct seq_file *f, void *unused)
{
	struct bwk_node *node = bwk_proc_node(f);

	seq_puts(f, "type      state      port  to                      waiting    sending    "
		    "uid        inode      charged\n");
	mutex_lock(&node->telling);
	bwk_proc_show_all(f, node);
	mutex_unlock(&node->telling);
	return 0;
}

static int bwk_proc_show_ports(struct seq_file *f, void *unused)
{
	struct bwk_node *node = bwk_proc_node(f);
	struct bwk_port *port;
	int bucket;

	seq_puts(f, "port  protocol    uid        state     peers   messages-tx messages-rx "
		    "memory     arriving\n");
	rcu_read_lock();
	hash_for_each_rcu(node->ports, bucket, port, hash) {
		const struct bw_counters *c;

		bwk_port_lock(port);
		if (!port->dead) {
			c = port->protocol->counters(port->engine);
			seq_printf(f, "%-5u %-11s %-10u %-9s %-7llu %-11llu %-11llu %-10llu %llu\n",
				   port->number, port->protocol->name,
				   from_kuid_munged(seq_user_ns(f), port->uid),
				   port->lingering ? "lingering" : "open", c->peers, c->tx_messages,
				   c->rx_messages, port->grown_bytes, port->arriving_bytes);
		}
		bwk_port_unlock(port);
	}
	rcu_read_unlock();
	return 0;
}

/* By the names that BEOWIRE_STATS has for them. */
static int bwk_proc_show_counters(struct seq_file *f, void *unused)
{
	struct bwk_sums sums;
	int i;

	bwk_tally_read(bwk_proc_node(f), &sums);
	seq_printf(f, "refusals_tx %llu\nrefusals_rx %llu\n", sums.refusals_tx, sums.refusals_rx);
	seq_printf(f, "challenges_tx %llu\nchallenges_rx %llu\nevicted %llu\n", sums.challenges_tx,
		   sums.challenges_rx, sums.evicted);
	for (i = BW_DROP_NONE + 1; i < BW_DROP_REASONS; i++)
		seq_printf(f, "drops.%s %llu\n", bw_drop_name(i), sums.drop[i]);
	return 0;
}

static int bwk_proc_show_servers(struct seq_file *f, void *unused)
{
	struct bwk_node *node = bwk_proc_node(f);
	int i;

	seq_puts(f, "number protocol        uid        ports  frames-in  dropped    frames-out "
		    "refused\n");
	mutex_lock(&node->lock);
	for (i = 0; i < BEOWIRE_PROTOCOLS; i++) {
		const struct bwk_server *s = node->servers[i];

		if (s)
			seq_printf(f, "%-6u %-15s %-10u %-6u %-10lu %-10lu %-10lu %lu\n", i,
				   s->name, from_kuid_munged(seq_user_ns(f), s->uid),
				   READ_ONCE(s->count), READ_ONCE(s->frames_in),
				   READ_ONCE(s->dropped), READ_ONCE(s->frames_out),
				   READ_ONCE(s->refused));
	}
	mutex_unlock(&node->lock);
	return 0;
}

int bwk_proc_init(struct bwk_node *node)
{
	struct proc_dir_entry *folder = proc_net_mkdir(node->net, "beowire", node->net->proc_net);

	if (!folder)
		return -ENOMEM;
	if (proc_create_net_single("node", 0444, folder, bwk_proc_show_node, NULL) &&
	    proc_create_net_single("sockets", 0444, folder, bwk_proc_show_sockets, NULL) &&
	    proc_create_net_single("ports", 0444, folder, bwk_proc_show_ports, NULL) &&
	    proc_create_net_single("counters", 0444, folder, bwk_proc_show_counters, NULL) &&
	    proc_create_net_single("servers", 0444, folder, bwk_proc_show_servers, NULL))
		return 0;
	remove_proc_subtree("beowire", node->net->proc_net);
	return -ENOMEM;
}

void bwk_proc_exit(struct bwk_node *node)
{
	remove_proc_subtree("beowire", node->net->proc_net);
}
