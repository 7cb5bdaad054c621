/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Putting the link together and asking it; see link.h. */
#include "link.h"

#include <errno.h>
#include <string.h>

#include "rng.h"

const char *const em_direction_names[EM_DIRECTIONS] = {"ab", "ba"};

int em_link_open(struct em_link *l, char why[EM_WHY_MAX])
{
	int error = 0, i;

	for (i = 0; i < 2; i++) {
		l->port[i].rx = l->port[i].tx = -1;
		l->direction[i].bell = -1;
	}
	for (i = 0; i < 2 && !error; i++)
		error = em_port_open(&l->port[i], l->interface[i], why);
	if (!error && l->port[0].index == l->port[1].index) {
		snprintf(why, EM_WHY_MAX, "%s and %s are the same interface; a link joins two",
			 l->interface[0], l->interface[1]);
		error = -EINVAL;
	}
	for (i = 0; i < EM_DIRECTIONS && !error; i++)
		error = em_direction_open(&l->direction[i], &l->port[i], &l->port[!i], &l->set[i],
					  sim_mix(l->seed) + (uint64_t)i, why);
	for (i = 0; i < EM_DIRECTIONS && !error; i++)
		error = em_direction_start(&l->direction[i],
					   l->cpus ? l->cpu[(uint32_t)i % l->cpus] : -1,
					   l->realtime, why);
	l->began = em_now();
	if (error)
		em_link_close(l);
	return error;
}

void em_link_close(struct em_link *l)
{
	int i;

	/* a direction uses both ports */
	for (i = 0; i < EM_DIRECTIONS; i++)
		if (l->direction[i].in)
			em_direction_close(&l->direction[i]);
	for (i = 0; i < 2; i++)
		em_port_close(&l->port[i]);
}

bool em_link_whole(struct em_link *l)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (em_port_exists(&l->port[i]))
			continue;
		snprintf(l->gone, sizeof(l->gone),
			 "interface %.15s is gone from this network namespace; make it again and "
			 "start anew",
			 l->port[i].name);
		return false;
	}
	return true;
}

static void em_link_order(struct em_link *l, enum em_order_kind kind)
{
	struct em_order order;
	int i;

	for (i = 0; i < EM_DIRECTIONS; i++) {
		order = (struct em_order){kind, l->set[i], &l->tally[i]};
		em_direction_obey(&l->direction[i], &order);
	}
}

void em_link_set(struct em_link *l, const struct em_settings set[EM_DIRECTIONS])
{
	memcpy(l->set, set, sizeof(l->set));
	em_link_order(l, EM_ORDER_SET);
}

void em_link_tell(struct em_link *l)
{
	em_link_order(l, EM_ORDER_TELL);
}

void em_link_reset(struct em_link *l)
{
	em_link_order(l, EM_ORDER_RESET);
	l->began = em_now();
}
