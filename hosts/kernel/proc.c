/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* /proc/net/beowire: what a node is, its interfaces, its sockets' ports, and what was dropped. */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>

#include "server.h"
#include "sock.h"
#include "threshold.h"

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

		sum.foreign += c->foreign;
		sum.unclaimed += c->unclaimed;
		sum.refused += c->refused;
		sum.malformed += c->malformed;
		sum.dropped += c->dropped;
	}
	seq_printf(f, "node %016llx\nfamily %d\ncluster %u\ncopy-max %u\n", node->id, bwk_family,
		   node->set.cluster, node->set.copy_max ?: bwk_threshold);
	rcu_read_lock();
	for (i = 0; i < BWK_IFACES; i++) {
		struct bwk_iface *iface = rcu_dereference(node->iface[i]);

		if (iface)
			seq_printf(f, "interface %s %d %pM %u\n", netdev_name(iface->dev),
				   iface->dev->ifindex, iface->dev->dev_addr,
				   bwk_iface_mtu(iface->dev));
	}
	rcu_read_unlock();
	seq_printf(f, "foreign %llu\nmalformed %llu\nunclaimed %llu\nrefused %llu\ndropped %llu\n",
		   sum.foreign, sum.malformed, sum.unclaimed, sum.refused, sum.dropped);
	return 0;
}

static int bwk_proc_show_ports(struct seq_file *f, void *unused)
{
	struct bwk_node *node = bwk_proc_node(f);
	struct bwk_port *port;
	int bucket;

	seq_puts(f, "port  protocol    uid        state     peers   messages-tx messages-rx "
		    "memory\n");
	rcu_read_lock();
	hash_for_each_rcu(node->ports, bucket, port, hash) {
		const struct bw_counters *c;

		bwk_port_lock(port);
		if (!port->dead) {
			c = port->protocol->counters(port->engine);
			seq_printf(f, "%-5u %-11s %-10u %-9s %-7llu %-11llu %-11llu %llu\n",
				   port->number, port->protocol->name,
				   from_kuid_munged(seq_user_ns(f), port->uid),
				   port->lingering ? "lingering" : "open", c->peers, c->tx_messages,
				   c->rx_messages, port->grown_bytes);
		}
		bwk_port_unlock(port);
	}
	rcu_read_unlock();
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
			seq_printf(f, "%-6u %-15s %-10u %-6u %-10llu %-10llu %-10llu %llu\n", i,
				   s->name, from_kuid_munged(seq_user_ns(f), s->uid), s->count,
				   s->frames_in, s->dropped, s->frames_out, s->refused);
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
	    proc_create_net_single("ports", 0444, folder, bwk_proc_show_ports, NULL) &&
	    proc_create_net_single("servers", 0444, folder, bwk_proc_show_servers, NULL))
		return 0;
	remove_proc_subtree("beowire", node->net->proc_net);
	return -ENOMEM;
}

void bwk_proc_exit(struct bwk_node *node)
{
	remove_proc_subtree("beowire", node->net->proc_net);
}
