/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the memory of an endpoint lies: on which NUMA nodes, and in pages of which size
 * (BEOWIRE_MEMORY, BEOWIRE_HUGE_PAGES). While an endpoint opens, the opening thread has the policy,
 * so that what the kernel allocates for it, such as the ring of a packet socket, lies there too.
 */
#ifndef BW_HOME_H
#define BW_HOME_H

#include "area.h"
#include "env.h"

#define BW_HOME_TEXT 256

struct bw_home {
	struct bw_areas areas;
	bool open;
	bool explicit;		 /* a policy was asked for by name */
	bool by_interface;	 /* each interface's ring lies on its own node */
	struct bw_nodes allowed; /* to this process */
	struct bw_policy before; /* of the thread that has entered */
	bool entered;
	char text[160]; /* for people */
};

/* Decide, `interface` being the one that carries the most (NULL: none). What was asked for and
 * cannot be had is refused, -EINVAL or -EOPNOTSUPP with *why; a second call does nothing. */
int bw_home_open(struct bw_home *home, const struct bw_env *env, const char *interface,
		 const char **why);
/* This thread's policy is the home's from now on, with `interface` that interface's if each has its
 * own, until it leaves. Entering again goes to another interface. */
void bw_home_enter(struct bw_home *home, const char *interface);
void bw_home_leave(struct bw_home *home);
/* Memory shared with processes of this node, mapped here: it lies where BEOWIRE_MEMORY says, and
 * without it where it is touched first. */
void bw_home_share(const struct bw_home *home, void *at, size_t bytes);
/* What came of it, for people: "node 1, where eth0 is (preferred); ...". */
const char *bw_home_tell(const struct bw_home *home, char text[BW_HOME_TEXT]);

#endif
