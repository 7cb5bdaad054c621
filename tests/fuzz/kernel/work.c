/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See work.h. */
#include "kernel.h"

static struct hrtimer *timers;
static struct work_struct *works;

void hrtimer_start(struct hrtimer *timer, u64 at, enum hrtimer_mode mode)
{
	if (!timer->known) {
		timer->next = timers;
		timers = timer;
		timer->known = true;
	}
	timer->at = at;
	timer->set = true;
}

void hrtimer_cancel(struct hrtimer *timer)
{
	struct hrtimer **at = &timers;

	fake_sleeps(); /* it waits for the handler, which takes a lock */
	timer->set = false;
	for (; timer->known && *at; at = &(*at)->next)
		if (*at == timer) {
			*at = timer->next;
			timer->known = false;
			return;
		}
}

u64 fake_timer_next(void)
{
	u64 first = UINT64_MAX;

	for (const struct hrtimer *t = timers; t; t = t->next)
		if (t->set)
			first = min(first, t->at);
	return first;
}

bool fake_timers(void)
{
	struct hrtimer *t;

	for (t = timers; t && !(t->set && t->at <= fake_time); t = t->next)
		;
	if (!t)
		return false;
	t->set = false;
	fake_bh++;
	t->function(t);
	fake_bh--;
	return true;
}

bool fake_work_add(struct work_struct *work, unsigned long at)
{
	struct work_struct **end = &works;

	if (work->queued)
		return false;
	for (; *end; end = &(*end)->next)
		;
	*end = work;
	work->next = NULL;
	work->queued = true;
	work->at = at;
	return true;
}

static struct work_struct *take(struct work_struct **at)
{
	struct work_struct *work = *at;

	*at = work->next;
	work->queued = false;
	return work;
}

bool fake_work(void)
{
	bool any = false;
	struct work_struct **at = &works;

	fake_sleeps();
	while (*at) {
		struct work_struct *work;

		if ((*at)->at > jiffies) {
			at = &(*at)->next;
			continue;
		}
		work = take(at);
		work->func(work);
		any = true;
		at = &works; /* it may have added some */
	}
	return any;
}

void cancel_delayed_work_sync(struct delayed_work *work)
{
	fake_sleeps();
	for (struct work_struct **at = &works; *at; at = &(*at)->next)
		if (*at == &work->work) {
			take(at);
			return;
		}
}
