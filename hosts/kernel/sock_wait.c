/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How calls of sockets wait: for room to send, for what is to be received, for a buffer's end. */
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>

#include "sock.h"

static bool bwk_sock_has_room(const struct sock *sk)
{
	return bwk_sock_roomy(sk, atomic_read(&bwk_sk(sk)->sending));
}

/* Or nothing more is to be sent, which the send then finds. */
static bool bwk_sock_may_charge(const struct sock *sk, int sending)
{
	return bwk_sock_roomy(sk, sending) || (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN);
}

static bool bwk_sock_may_send(const struct sock *sk)
{
	return bwk_sock_may_charge(sk, atomic_read(&bwk_sk(sk)->sending));
}

static noinline int bwk_sock_await_room(struct bwk_sock *bs, long *timeout)
{
	/* What takes the room may be a row of messages that waits for this one. */
	if (bs->port) {
		bwk_port_lock(bs->port);
		bwk_port_run(bs->port);
		bwk_port_unlock(bs->port);
	}
	return bwk_sock_wait(&bs->sk, bwk_sock_may_send, timeout);
}

int bwk_sock_charge(struct bwk_sock *bs, size_t len, long *timeout)
{
	int sending = atomic_read(&bs->sending), error;

	do { /* added to what was seen and nothing else: others charge at the same time */
		while (unlikely(!bwk_sock_may_charge(&bs->sk, sending))) {
			error = bwk_sock_await_room(bs, timeout);
			if (error)
				return error;
			sending = atomic_read(&bs->sending);
		}
	} while (!atomic_try_cmpxchg(&bs->sending, &sending, sending + (int)len + BWK_SEND_COST));
	return 0;
}

noinline void bwk_sock_uncharged(struct bwk_sock *bs, int before, int now)
{
	struct sock *sk = &bs->sk;

	if ((!bwk_sock_roomy(sk, before) && bwk_sock_has_room(sk)) ||
	    (!now && bwk_sock_lingers(sk)))
		sk->sk_write_space(sk);
}

/* The receive call looks for a while before it sleeps, and gives its core away between two looks
 * if others want it. The while begins at the second look: mostly there is none. It lasts no longer
 * than the call may wait.
 *
 * By yield(), though a loop around it looks like one that waits for its condition. It does not: the
 * while has an end, and so a thread of a real-time class, whose yield() lets only its equals run,
 * keeps others waiting no longer than BEOWIRE_BUSY_US allows. cond_resched() would not do: it gives
 * nothing away before the slice of time is used up, and who is to answer may be the one that waits
 * for this very core. */
static bool bwk_sock_spin(struct sock *sk, bool (*ready)(const struct sock *sk), u64 for_ns,
			  long *timeout)
{
	unsigned long begin = jiffies, patience = *timeout;
	u64 until = 0;
	bool again = false, found;

	for (; !(found = ready(sk)); again = true) {
		if (signal_pending(current) || READ_ONCE(sk->sk_err))
			break;
		if (until && (ktime_get_ns() >= until || jiffies - begin >= patience))
			break;
		if (again && !until)
			until = ktime_get_ns() + for_ns;
		if (need_resched() || !single_task_running())
			yield();
		else
			cpu_relax();
	}
	if (*timeout != MAX_SCHEDULE_TIMEOUT)
		*timeout -= min(jiffies - begin, patience);
	return found;
}

static int bwk_sock_look(struct sock *sk, bool (*ready)(const struct sock *sk), u64 for_ns,
			 long *timeout)
{
	if (for_ns && bwk_sock_spin(sk, ready, for_ns, timeout))
		return 0;
	return bwk_sock_wait(sk, ready, timeout);
}

/* Looks for twice as long as waiting has taken lately, by a moving mean with a weight of an eighth
 * (as TCP's of the round trip, RFC 6298), and not at all where that is more than it may. */
static noinline int bwk_sock_adapt(struct sock *sk, bool (*ready)(const struct sock *sk),
				   long *timeout)
{
	struct bwk_sock *bs = bwk_sk(sk);
	u64 most = READ_ONCE(bs->busy_us) * BW_US, mean = READ_ONCE(bs->waited_ns),
	    begin = ktime_get_ns();
	int error =
		bwk_sock_look(sk, ready, mean <= most ? min(2 * mean + BW_US, most) : 0, timeout);

	WRITE_ONCE(bs->waited_ns, mean + ((s64)(ktime_get_ns() - begin - mean) >> 3));
	return error;
}

int bwk_sock_wait_busy(struct sock *sk, bool (*ready)(const struct sock *sk), long *timeout)
{
	const struct bwk_sock *bs = bwk_sk(sk);
	u32 busy_us = READ_ONCE(bs->busy_us);

	if (!*timeout || !busy_us)
		return bwk_sock_wait(sk, ready, timeout);
	if (READ_ONCE(bs->adaptive))
		return bwk_sock_adapt(sk, ready, timeout);
	return bwk_sock_look(sk, ready, busy_us * BW_US, timeout);
}

int bwk_sock_wait(struct sock *sk, bool (*ready)(const struct sock *sk), long *timeout)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int error = 0;

	if (!*timeout)
		return -EAGAIN;
	add_wait_queue(sk_sleep(sk), &wait);
	smp_mb(); /* pairs with that of skwq_has_sleeper(): it finds us, or we what it wrote */
	while (!ready(sk)) {
		error = sock_error(sk);
		if (error)
			break;
		if (signal_pending(current)) {
			error = sock_intr_errno(*timeout);
			break;
		}
		if (!*timeout) {
			error = -EAGAIN;
			break;
		}
		*timeout = wait_woken(&wait, TASK_INTERRUPTIBLE, *timeout);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return error;
}

/* Is it done, or does it make way for what has arrived? */
static bool bwk_sock_settled(const struct bwk_sock *bs, const struct bwk_buf *b)
{
	return smp_load_acquire(&b->done) || (b->yields && !bwk_apart_alone(bs));
}

int bwk_sock_await(struct bwk_sock *bs, const struct bwk_buf *b, long *timeout)
{
	long left = *timeout;

	if (smp_load_acquire(&b->done))
		return 0;
	if (!left)
		return -EAGAIN;
	left = wait_event_interruptible_timeout(*sk_sleep(&bs->sk), bwk_sock_settled(bs, b), left);
	if (left == -ERESTARTSYS)
		return sock_intr_errno(*timeout);
	*timeout = left;
	if (smp_load_acquire(&b->done))
		return 0;
	return left ? -EBUSY : -EAGAIN;
}

bool bwk_sock_stop_locked(struct bwk_port *port, struct bwk_buf *b, struct bw_op *op)
{
	if (!b->done) {
		bwk_port_submit(port, op);
		bwk_port_run(port);
	}
	if (b->done)
		return true;
	b->awaited = b->notify = b->ahead = false;
	return false;
}

bool bwk_sock_stop(struct bwk_port *port, struct bwk_buf *b, struct bw_op *op)
{
	bool done;

	bwk_port_lock(port);
	done = bwk_sock_stop_locked(port, b, op);
	bwk_port_unlock(port);
	return done;
}
