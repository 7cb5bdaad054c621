/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The whole link: two ports, two directions, and how it was asked for. It belongs to the main
 * thread, which gives the directions their orders.
 */
#ifndef EM_LINK_H
#define EM_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "direction.h"
#include "port.h"
#include "settings.h"
#include "tally.h"

#define EM_CPUS 64

struct em_link {
	/* as asked for */
	const char *interface[2];
	const char *control; /* path of the socket; NULL: none */
	struct em_settings set[EM_DIRECTIONS];
	struct em_bound bound;
	uint64_t seed;
	int cpu[EM_CPUS]; /* that the directions run on, in turn */
	uint32_t cpus;	  /* 0: anywhere */
	bool realtime, json;
	/* as it is */
	struct em_port port[2];
	struct em_direction direction[EM_DIRECTIONS];
	struct em_tally tally[EM_DIRECTIONS]; /* as last told */
	uint64_t began;			      /* ns; the run, or the last reset */
	char gone[EM_WHY_MAX];		      /* why the run ended early; "" if it did not */
};

/* Open and start everything. 0, or a negative errno and a text, and then nothing is open. */
int em_link_open(struct em_link *l, char why[EM_WHY_MAX]);
void em_link_close(struct em_link *l);

/* Are both interfaces still there? If not, `gone` says which is not. */
bool em_link_whole(struct em_link *l);

/* New settings for both directions; they were checked. */
void em_link_set(struct em_link *l, const struct em_settings set[EM_DIRECTIONS]);
/* Ask the directions for what they did. */
void em_link_tell(struct em_link *l);
void em_link_reset(struct em_link *l);

/* ---- What is said of it (report.c) ---- */

extern const char *const em_direction_names[EM_DIRECTIONS];

/* Lines of JSON: the link is ready; what it did, and the verdict. The latter returns whether the
 * run is valid. em_link_tell() comes first. */
void em_report_ready(FILE *f, const struct em_link *l);
bool em_report_json(FILE *f, const struct em_link *l);
/* The same for people. */
void em_report_text(FILE *f, const struct em_link *l);
/* {"ok": false, "error": "..."}; with NULL {"ok": true}. */
void em_report_answer(FILE *f, const char *error);

#endif
