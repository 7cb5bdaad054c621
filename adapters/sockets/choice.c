/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Beowire and TCP in turn. See choice.h. */
#include "choice.h"

#define BWS_CHOICE_MORE 1.125 /* by which TCP must move more: else it is not worth a change */
#define BWS_CHOICE_WINS 3     /* of four pairs of windows in which it must */
#define BWS_CHOICE_FAR	1.5   /* by which one moves more: two pairs that agree are enough */

/* Of each four windows the two in the middle are by the other one than is used so far. */
static bool bws_choice_tries_tcp(const struct bws_choice *c)
{
	uint32_t place = (c->window - 1) % 4;

	return c->result != (place == 1 || place == 2);
}

bool bws_choice_due(const struct bws_choice *c, uint64_t now, bool crowded)
{
	/* Whether TCP is still better is asked even if cores are not short any more. */
	return now >= c->next && (c->window || c->by_tcp || crowded);
}

static void bws_choice_begin_window(struct bws_choice *c, uint64_t now)
{
	bool before = c->by_tcp;

	c->by_tcp = bws_choice_tries_tcp(c);
	c->measuring = false;
	c->began = now;
	c->next = before == c->by_tcp ? now : now + BWS_CHOICE_SETTLE;
}

static void bws_choice_hold(struct bws_choice *c, bool tcp, uint64_t now)
{
	if (tcp != c->result || !c->hold_ns)
		c->hold_ns = BWS_CHOICE_HOLD;
	else if (c->hold_ns < BWS_CHOICE_LONGEST)
		c->hold_ns *= 2;
	c->result = c->by_tcp = tcp;
	c->window = 0;
	c->next = now + c->hold_ns;
}

/* After half of the windows, which are as fair as all of them. */
static bool bws_choice_is_clear(const struct bws_choice *c)
{
	if (c->window != BWS_CHOICE_WINDOWS / 2)
		return false;
	return (c->tcp_wins == 2 && c->rate[1] > BWS_CHOICE_FAR * c->rate[0]) ||
	       (c->tcp_wins == 0 && c->rate[0] > BWS_CHOICE_FAR * c->rate[1]);
}

static void bws_choice_end_window(struct bws_choice *c, uint64_t now, uint64_t bytes)
{
	double rate = (double)(bytes - c->bytes) * 1e9 / (double)(now - c->began);

	/* Who stood still for most of a window has measured that, and not what moves more. Where it
	 * is so again, it is how things are. */
	c->again = !c->again && now - c->began > BWS_CHOICE_STALE;
	if (c->again) {
		bws_choice_begin_window(c, now);
		return;
	}
	/* Little is moved: nobody would notice, and chance would decide. It may be more soon. */
	if (c->window == 1 && bytes - c->bytes < BWS_CHOICE_LEAST) {
		c->hold_ns = 0;
		bws_choice_hold(c, false, now);
		return;
	}
	c->rate[c->by_tcp] += rate;
	/* The second of a pair is by the other one than the first. */
	if (c->window % 2 == 0)
		c->tcp_wins += c->by_tcp ? rate > c->before : c->before > rate;
	c->before = rate;
	if (bws_choice_is_clear(c))
		bws_choice_hold(c, c->rate[1] > c->rate[0], now);
	else if (c->window++ < BWS_CHOICE_WINDOWS)
		bws_choice_begin_window(c, now);
	else
		bws_choice_hold(c,
				c->rate[1] > BWS_CHOICE_MORE * c->rate[0] &&
					c->tcp_wins >= BWS_CHOICE_WINS,
				now);
}

static void bws_choice_measure(struct bws_choice *c, uint64_t now, uint64_t bytes)
{
	c->measuring = true;
	c->began = now;
	c->bytes = bytes;
	c->next = now + BWS_CHOICE_MEASURE;
}

void bws_choice_look(struct bws_choice *c, uint64_t now, const struct bws_choice_seen *seen)
{
	if (!c->window) {
		c->window = 1;
		c->rate[0] = c->rate[1] = 0;
		c->tcp_wins = 0;
		bws_choice_begin_window(c, now);
	} else if (c->measuring) {
		bws_choice_end_window(c, now, seen->bytes);
	}
	if (!c->window || c->measuring || now < c->next)
		return;
	if (seen->changed || now - c->began >= BWS_CHOICE_PATIENCE)
		bws_choice_measure(c, now, seen->bytes);
	else
		c->next = now + BWS_CHOICE_SETTLE;
}

uint64_t bws_choice_next(const struct bws_choice *c, uint64_t now)
{
	return c->window || c->by_tcp || now < c->next ? c->next : BWS_CHOICE_NEVER;
}
