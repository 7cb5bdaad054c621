/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program's own pages in a buffer: pinned or referred to, charged to its user as locked memory,
 * and lent to frames.
 */
#include "buf.h"

#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>

#include "port.h"

static atomic_long_t bwk_buf_pinned; /* pages, of all users */

static int bwk_buf_pinned_show(char *to, const struct kernel_param *param)
{
	return sysfs_emit(to, "%ld\n", atomic_long_read(&bwk_buf_pinned));
}

static int bwk_buf_pinned_set(const char *value, const struct kernel_param *param)
{
	return -EPERM; /* when the module is loaded; afterwards the file's mode says so */
}

static const struct kernel_param_ops bwk_buf_pinned_ops = {
	.get = bwk_buf_pinned_show,
	.set = bwk_buf_pinned_set,
};

module_param_cb(pinned_pages, &bwk_buf_pinned_ops, NULL, 0400);
MODULE_PARM_DESC(pinned_pages, "pages of programs that are in use now (read only)");

/* Locked memory is charged to the user, as mlock() charges it; false: the limit is reached. */
static bool bwk_buf_charge(struct bwk_buf *b, u32 npages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	long now = atomic_long_add_return(npages, &current_user()->locked_vm);

	if (now > limit && !capable(CAP_IPC_LOCK)) {
		atomic_long_sub(npages, &current_user()->locked_vm);
		return false;
	}
	/* Each reference writes the same 0 that all others do, in the kernel's get_cred(). */
	b->locker = data_race(get_current_cred());
	b->charge = npages;
	atomic_long_add(npages, &bwk_buf_pinned);
	return true;
}

void bwk_buf_unpin(struct bwk_buf *b)
{
	if (!b->locker)
		return;
	if (b->pinned)
		unpin_user_pages_dirty_lock(b->pages, b->npages, b->use == BWK_BUF_PULL);
	else
		bwk_buf_put_pages(b);
	atomic_long_sub(b->charge, &b->locker->user->locked_vm);
	atomic_long_sub(b->charge, &bwk_buf_pinned);
	put_cred(b->locker);
}

/* ---- memory that frames refer to ----
 *
 * A frame may outlive its acknowledgement: one that was sent twice, and waits in a queueing
 * discipline or a slow ring. Until the last frame is gone the program must not get its memory back:
 * what it writes there would leave by that frame. Frames that somebody receives on this machine are
 * copied instead, by the kernel (skb_orphan_frags_rx()), as a receiver may keep them; a macvtap's
 * program is no such receiver to the kernel, and holds the sender up while it does not read. */

static atomic_t bwk_buf_out; /* buffers whose owners are done with them, and frames are not */

/* A frame lets go. Any context, under any lock, that of the port as well. */
static void bwk_buf_gone(struct sk_buff *skb, struct ubuf_info *lent, bool success)
{
	if (!refcount_dec_and_test(&lent->refcnt))
		return;
	bwk_buf_put_off(container_of(lent, struct bwk_buf, lent));
	atomic_dec(&bwk_buf_out);
}

bool bwk_buf_let_go(struct bwk_buf *b)
{
	if (b->kind != BWK_BUF_USER || !refcount_read(&b->lent.refcnt))
		return true;
	atomic_inc(&bwk_buf_out);
	if (!refcount_dec_and_test(&b->lent.refcnt))
		return false;
	atomic_dec(&bwk_buf_out);
	return true;
}

bool bwk_buf_over(struct bwk_buf *b, struct bwk_port *port)
{
	if (b->back) /* asked before */
		return false;
	bwk_port_hold(port);
	b->back = port;
	if (!bwk_buf_let_go(b))
		return false;
	b->back = NULL;
	bwk_port_put(port);
	return true;
}

void bwk_buf_exit(void)
{
	while (atomic_read(&bwk_buf_out))
		msleep(1);
	synchronize_net(); /* the last frame's end has returned */
	bwk_buf_flush();
}

/* The pieces of memory that an iterator's next `len` bytes lie in, one after another. */
struct bwk_pieces {
	struct iov_iter at;
	size_t left;
};

static bool bwk_buf_next_piece(struct bwk_pieces *p, unsigned long *at, size_t *len)
{
	struct iovec piece;

	while (p->left && iov_iter_count(&p->at)) {
		if (iter_is_ubuf(&p->at)) /* of write() and read() */
			piece = (struct iovec){p->at.ubuf + p->at.iov_offset, p->left};
		else
			piece = bwk_iter_first(&p->at);
		*at = (unsigned long)piece.iov_base;
		*len = min_t(size_t, piece.iov_len, p->left);
		iov_iter_advance(&p->at, *len);
		p->left -= *len;
		if (*len)
			return true;
	}
	return false;
}

static u32 bwk_buf_pages_of(unsigned long at, size_t len)
{
	return DIV_ROUND_UP(offset_in_page(at) + len, PAGE_SIZE);
}

/* How many pieces there are, and pages that they touch. */
static u32 bwk_buf_count_pieces(struct bwk_pieces p, u32 *npages)
{
	unsigned long at;
	size_t len;
	u32 n = 0;

	for (*npages = 0; bwk_buf_next_piece(&p, &at, &len); n++)
		*npages += bwk_buf_pages_of(at, len);
	return n;
}

/* What a send call that waits gives is referred to, as MSG_ZEROCOPY does; what is written to is
 * pinned, so that its file system knows (Documentation/core-api/pin_user_pages.rst), and so is what
 * a peer reads, and what is sent after the call is over. A pin that outlives its call lasts as long
 * as a peer likes, which is that document's case 2: FOLL_LONGTERM first moves the pages to where
 * they keep nobody from using memory that is to be movable, and refuses those of files that cannot
 * be held so long, which are then copied. A receive call gives its pins up whenever it ends, as
 * direct I/O does (case 1), and is spared the search for such pages. */
static bool bwk_buf_pin_piece(struct bwk_buf *b, unsigned long at, u32 npages, enum bwk_pin how)
{
	unsigned int flags = (how == BWK_PIN_READ_LONG ? 0 : FOLL_WRITE) |
			     (how == BWK_PIN_WRITE ? 0 : FOLL_LONGTERM);
	struct page **to;
	u32 done = 0;
	int n;

	for (at &= PAGE_MASK; done < npages; at += n * PAGE_SIZE, done += n, b->npages += n) {
		to = b->pages + b->npages;
		n = how == BWK_PIN_READ ? get_user_pages_fast(at, npages - done, 0, to)
					: pin_user_pages_fast(at, npages - done, flags, to);
		if (n <= 0)
			return false;
	}
	return true;
}

static bool bwk_buf_pin_pieces(struct bwk_buf *b, struct bwk_pieces p, enum bwk_pin how)
{
	unsigned long at;
	u64 off = 0;
	size_t len;
	u32 i;

	for (i = 0; bwk_buf_next_piece(&p, &at, &len); i++, off += len) {
		if (b->parts)
			b->parts[i] = (struct bwk_part){off, b->npages, offset_in_page(at)};
		else
			b->first = offset_in_page(at);
		if (!bwk_buf_pin_piece(b, at, bwk_buf_pages_of(at, len), how))
			return false;
	}
	return true;
}

/* Room for what describes so many pieces. */
static struct bwk_buf *bwk_buf_new_user(size_t len, u32 nparts, u32 npages, enum bwk_pin how)
{
	bool writing = how == BWK_PIN_WRITE || how == BWK_PIN_WRITE_LONG;
	struct bwk_buf *b = bwk_buf_new_pages(BWK_BUF_USER, len, npages);

	if (!b)
		return NULL;
	b->use = writing ? BWK_BUF_PULL : BWK_BUF_EXPOSED;
	b->pinned = how != BWK_PIN_READ;
	if (!writing) {
		BWK_LENT_SET(&b->lent, bwk_buf_gone);
		b->lent.flags = SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN;
		refcount_set(&b->lent.refcnt, 1);
	}
	b->nparts = nparts;
	if (nparts == 1)
		return b;
	b->parts = kvmalloc_array(nparts, sizeof(*b->parts), GFP_KERNEL_ACCOUNT);
	if (b->parts)
		return b;
	bwk_buf_free(b);
	return NULL;
}

/* Bytes of what describes it. */
static u64 bwk_buf_description(const struct bwk_buf *b, u32 npages)
{
	return sizeof(*b) + (u64)npages * sizeof(*b->pages) + (u64)b->nparts * sizeof(*b->parts);
}

struct bwk_buf *bwk_buf_pin(struct bwk_account *account, struct iov_iter *from, size_t len,
			    enum bwk_pin how)
{
	struct bwk_pieces pieces = {.at = *from, .left = len};
	u32 nparts, npages;
	struct bwk_buf *b;

	if ((!iter_is_ubuf(from) && !iter_is_iovec(from)) || iov_iter_count(from) < len)
		return ERR_PTR(-EAGAIN);
	nparts = bwk_buf_count_pieces(pieces, &npages);
	if (nparts > 1 && len / nparts < PAGE_SIZE)
		return ERR_PTR(-EAGAIN);
	b = bwk_buf_new_user(len, nparts, npages, how);
	if (!b)
		return ERR_PTR(-ENOMEM);
	if (bwk_buf_pay(b, account, bwk_buf_description(b, npages))) {
		bwk_buf_free(b);
		return ERR_PTR(-ENOBUFS);
	}
	if (!bwk_buf_charge(b, npages)) {
		bwk_buf_free(b);
		return ERR_PTR(-EDQUOT);
	}
	if (!bwk_buf_pin_pieces(b, pieces, how)) {
		bwk_buf_free(b);
		return ERR_PTR(-EAGAIN);
	}
	iov_iter_advance(from, len);
	return b;
}
