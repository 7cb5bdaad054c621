/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time, timers, and work that is put off. The clock is the target's; timers go off and work is done
 * when it says so.
 */
#ifndef FUZZ_KERNEL_WORK_H
#define FUZZ_KERNEL_WORK_H

__attribute__((weak)) u64 fake_time; /* nanoseconds */

#ifndef CLOCK_MONOTONIC
#define CLOCK_MONOTONIC 1
#endif
#define ktime_get_ns()	     fake_time
#define ns_to_ktime(ns)	     ((u64)(ns))
#define jiffies		     ((unsigned long)(fake_time / 1000000))
#define msecs_to_jiffies(ms) ((unsigned long)(ms))
#define NSEC_PER_SEC	     1000000000
#define NSEC_PER_MSEC	     1000000
typedef u64 ktime_t;

/* Who sleeps finds that time has passed. */
static inline void usleep_range(unsigned long least, unsigned long most)
{
	fake_sleeps();
	fake_time += least * 1000;
}

enum hrtimer_restart { HRTIMER_NORESTART };
enum hrtimer_mode { HRTIMER_MODE_ABS_SOFT };
struct hrtimer {
	enum hrtimer_restart (*function)(struct hrtimer *timer);
	u64 at;
	bool set, known;
	struct hrtimer *next; /* known ones */
};

static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*run)(struct hrtimer *), clockid_t clock,
				 enum hrtimer_mode mode)
{
	*timer = (struct hrtimer){.function = run};
}

void hrtimer_start(struct hrtimer *timer, u64 at, enum hrtimer_mode mode);
void hrtimer_cancel(struct hrtimer *timer);
/* Those that are due go off, in softirq. True: there were any. */
bool fake_timers(void);
/* The earliest of those that are set; UINT64_MAX: none. */
u64 fake_timer_next(void);

struct work_struct {
	void (*func)(struct work_struct *work);
	struct work_struct *next;
	bool queued;
	unsigned long at; /* jiffies; not earlier */
};
struct delayed_work {
	struct work_struct work;
};
struct rcu_head {
	int unused;
};
struct rcu_work {
	struct work_struct work;
};
struct workqueue_struct;

#define WQ_UNBOUND		       0
#define alloc_workqueue(name, how, n)  ((struct workqueue_struct *)1)
#define destroy_workqueue(queue)       ((void)(queue))
#define INIT_WORK(w, f)		       (*(w) = (struct work_struct){.func = (f)})
#define INIT_RCU_WORK(w, f)	       INIT_WORK(&(w)->work, f)
#define INIT_DELAYED_WORK(w, f)	       INIT_WORK(&(w)->work, f)
#define DECLARE_WORK(name, f)	       struct work_struct name = {.func = (f)}
#define to_rcu_work(w)		       container_of(w, struct rcu_work, work)
#define to_delayed_work(w)	       container_of(w, struct delayed_work, work)
#define queue_work(queue, w)	       fake_work_add(w, 0)
#define schedule_work(w)	       fake_work_add(w, 0)
#define queue_rcu_work(queue, w)       fake_work_add(&(w)->work, 0)
#define schedule_delayed_work(w, wait) fake_work_add(&(w)->work, jiffies + (wait))
#define flush_workqueue(queue)	       ((void)fake_work())
#define flush_work(w)		       ((void)fake_work())

bool fake_work_add(struct work_struct *work, unsigned long at);
/* All that is due is done, in process context. True: there was any. */
bool fake_work(void);
void cancel_delayed_work_sync(struct delayed_work *work);

#define rcu_read_lock()			 ((void)0)
#define rcu_read_unlock()		 ((void)0)
#define rcu_barrier()			 ((void)0)
#define rcu_dereference(p)		 (p)
#define num_online_cpus()		 2
#define synchronize_rcu_expedited()	 ((void)0)
#define rcu_dereference_bh(p)		 (p)
#define rcu_dereference_protected(p, so) (p)
#define rcu_assign_pointer(p, value)	 ((void)((p) = (value)))
#define RCU_INIT_POINTER(p, value)	 ((void)((p) = (value)))
#define synchronize_net()		 ((void)0)

typedef struct {
	int unused;
} wait_queue_head_t;

#endif
