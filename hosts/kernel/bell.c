/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bell of a socket: one page that a program maps, with a word that counts up whenever something
 * new is to be received. A program that looks often looks there, and makes a system call only when
 * the bell has rung since.
 */
#include <linux/mm.h>

#include "sock.h"

static void bwk_bell_ready(struct sock *sk)
{
	struct bwk_sock *bs = bwk_sk(sk);

	/* What is to be received is there before the bell rings. */
	smp_mb__before_atomic();
	atomic_inc(page_address(READ_ONCE(bs->bell)));
	bs->ready(sk);
}

int bwk_bell_mmap(struct file *file, struct socket *sock, struct vm_area_struct *vma)
{
	struct bwk_sock *bs = bwk_sk(sock->sk);
	struct page *page;

	if (sock->type != SOCK_RDM)
		return -ENODEV;
	if (vma->vm_pgoff || vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	if (!READ_ONCE(bs->bell)) {
		page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!page)
			return -ENOMEM;
		if (cmpxchg(&bs->bell, NULL, page)) { /* another thread was faster */
			__free_page(page);
		} else {
			bs->ready = bs->sk.sk_data_ready;
			smp_store_release(&bs->sk.sk_data_ready, bwk_bell_ready);
		}
	}
	return vm_insert_page(vma, vma->vm_start, READ_ONCE(bs->bell));
}
