/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What one direction of a link does to frames, as numbers and as KEY=VALUE text. All is integers:
 * times in nanoseconds, shares in parts per 1,000,000,000. Nothing here touches the outside.
 */
#ifndef EM_SETTINGS_H
#define EM_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#define EM_SHARE_ONE   1000000000u	      /* the share 1: every frame */
#define EM_RATE_MAX    1000000000000u	      /* bit/s */
#define EM_TIME_MAX    (3600 * 1000000000ull) /* ns; no delay is longer than an hour */
#define EM_BURST_ONE   1000u		      /* a burst of one frame, in thousandths */
#define EM_BURST_MAX   (1000000u * EM_BURST_ONE)
#define EM_QUEUE_MAX   (1ull << 40) /* bytes */
#define EM_MTU_MIN     68u	    /* bytes; the least that IPv4 allows [RFC 791] */
#define EM_MTU_MAX     65535u
#define EM_DIRECTIONS  2	   /* 0: A to B ("ab."), 1: back ("ba.") */
#define EM_WHY_MAX     200	   /* bytes of an error text with its end */
#define EM_TEXT_MAX    400	   /* bytes of printed settings with their end */
#define EM_QUEUE_LEAST (64u << 10) /* bytes; the default queue of a slow link */

struct em_settings {
	uint64_t rate;	    /* bit/s of frames with their Ethernet overhead; 0: unlimited */
	uint64_t delay;	    /* ns from the last bit sent to the last bit received */
	uint64_t jitter;    /* ns; the delay is uniform in delay - jitter to delay + jitter */
	uint64_t coalesce;  /* ns; frames are handed on in groups that long apart; 0: at once */
	uint64_t queue;	    /* bytes that may wait for the link; 0: em_settings_queue() chooses */
	uint64_t mark;	    /* bytes waiting above which frames are marked; 0: never */
	uint32_t loss;	    /* share */
	uint32_t burst;	    /* mean length of a burst of losses in 1/1000 frame; 0: independent */
	uint32_t duplicate; /* share */
	uint32_t reorder;   /* share */
	uint32_t corrupt;   /* share */
	uint32_t mtu;	    /* bytes of a packet, without the Ethernet header; 0: any */
};

/* The bytes that may wait: as set, or what is sent in 10 ms, and at least EM_QUEUE_LEAST. */
uint64_t em_settings_queue(const struct em_settings *s);

/*
 * Take one "[ab.|ba.]KEY=VALUE" into the settings of both directions or of one. 0, or -EINVAL with
 * a text in `why` (what is wrong and what would be right) and nothing changed.
 */
int em_settings_take(struct em_settings both[EM_DIRECTIONS], const char *text,
		     char why[EM_WHY_MAX]);

/* Do the values fit together? 0, or -EINVAL with a text. To be asked when all were taken. */
int em_settings_check(const struct em_settings *s, char why[EM_WHY_MAX]);

/* All values as KEY=VALUE words that em_settings_take() reads back exactly. */
void em_settings_print(const struct em_settings *s, char text[EM_TEXT_MAX]);

/* A time with its unit ("10us", "1.5ms", "0") in ns. 0 or -EINVAL. */
int em_settings_time(const char *text, uint64_t *ns);

/* A share ("0.1%", "0.001") in parts per EM_SHARE_ONE. 0 or -EINVAL. */
int em_settings_share(const char *text, uint32_t *share);

#endif
