/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sums of what ports count, which outlive the ports. See tally.h. */
#include "tally.h"

#include "port.h"

void bwk_tally_init(struct bwk_tally *tally)
{
	mutex_init(&tally->one);
	spin_lock_init(&tally->lock);
}

static void bwk_tally_add(struct bwk_sums *sums, const struct bwk_sums *more)
{
	int i;

	for (i = 0; i < BW_DROP_REASONS; i++)
		sums->drop[i] += more->drop[i];
	sums->refusals_tx += more->refusals_tx;
	sums->refusals_rx += more->refusals_rx;
	sums->challenges_tx += more->challenges_tx;
	sums->challenges_rx += more->challenges_rx;
	sums->evicted += more->evicted;
}

/* As they are now. Lock held. */
static void bwk_tally_ask(struct bwk_port *port, struct bwk_sums *sums)
{
	const struct bw_counters *c = port->protocol->counters(port->engine);

	memcpy(sums->drop, c->drop, sizeof(sums->drop));
	sums->refusals_tx = c->refusals_tx;
	sums->refusals_rx = c->refusals_rx;
	sums->challenges_tx = c->challenges_tx;
	sums->challenges_rx = c->challenges_rx;
	sums->evicted = c->evicted;
}

void bwk_tally_begin(struct bwk_port *port)
{
	port->tallied = true;
}

void bwk_tally_end(struct bwk_port *port)
{
	struct bwk_tally *tally = &port->node->tally;
	struct bwk_sums sums;

	bwk_tally_ask(port, &sums);
	port->tallied = false;
	spin_lock(&tally->lock);
	bwk_tally_add(&tally->ended, &sums);
	if (port->reading != tally->reading)
		bwk_tally_add(&tally->missed, &sums);
	spin_unlock(&tally->lock);
}

static void bwk_tally_read_port(struct bwk_port *port, u64 reading, struct bwk_sums *sums)
{
	struct bwk_sums its;

	spin_lock_bh(&port->lock);
	if (port->tallied) {
		port->reading = reading;
		bwk_tally_ask(port, &its);
		bwk_tally_add(sums, &its);
	}
	spin_unlock_bh(&port->lock);
}

void bwk_tally_read(struct bwk_node *node, struct bwk_sums *sums)
{
	struct bwk_tally *tally = &node->tally;
	struct bwk_port *port;
	int bucket;
	u64 reading;

	mutex_lock(&tally->one);
	spin_lock_bh(&tally->lock);
	reading = ++tally->reading;
	*sums = tally->ended;
	memset(&tally->missed, 0, sizeof(tally->missed));
	spin_unlock_bh(&tally->lock);
	rcu_read_lock();
	hash_for_each_rcu(node->ports, bucket, port, hash)
		bwk_tally_read_port(port, reading, sums);
	rcu_read_unlock();
	spin_lock_bh(&tally->lock);
	bwk_tally_add(sums, &tally->missed);
	spin_unlock_bh(&tally->lock);
	mutex_unlock(&tally->one);
}
