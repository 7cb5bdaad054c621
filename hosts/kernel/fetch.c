/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bytes of a long message are fetched: pulled straight into the program's pages where pinning
 * them pays [B2 B6], else into pages of ours and copied from there.
 */
#include "sock.h"

int bwk_fetch(struct bwk_port *port, const struct bwk_source *from, struct bwk_buf *b, u64 *id)
{
	struct bw_op op = {.type = BW_OP_PULL, .peer = from->handle, .cookie = bwk_buf_cookie(b)};
	int error;

	op.pull.key = from->key;
	op.pull.off = from->off;
	op.pull.len = b->len;
	op.pull.buf = b->len ? bwk_buf_cookie(b) : 0;
	op.pull.buf_off = 0;
	op.pull.flags = (from->last ? BW_PULL_FINAL : 0) | (from->memory ? BW_PULL_HOST_KEY : 0);
	b->use = BWK_BUF_PULL;
	do {
		bwk_port_lock(port);
		error = bwk_port_submit(port, &op);
		if (!error) {
			*id = b->key = op.pull.id;
			b->handle = from->handle;
			list_add(&b->all, &port->bufs);
			bwk_port_run(port);
		}
		bwk_port_unlock(port);
	} while (error == -EAGAIN && bwk_port_feed(port) == 0);
	return error;
}

/* Memory of the program to be pulled into, or else of ours. */
static struct bwk_buf *bwk_fetch_room(struct bwk_sock *bs, struct iov_iter *to, size_t len)
{
	struct bwk_buf *b = ERR_PTR(-EAGAIN);

	if (len > bs->copy_max)
		b = bwk_buf_pin(to, len, true);
	if (b == ERR_PTR(-EAGAIN)) {
		b = bwk_buf_room(len);
		return b ? b : ERR_PTR(-ENOMEM);
	}
	return b;
}

int bwk_fetch_now(struct bwk_sock *bs, const struct bwk_source *from, struct iov_iter *to,
		  size_t len)
{
	struct bw_op cancel = {.type = BW_OP_CANCEL_PULL, .peer = from->handle};
	struct bwk_buf *b = bwk_fetch_room(bs, to, len);
	int error;

	if (IS_ERR(b))
		return PTR_ERR(b);
	b->owner = bs;
	b->awaited = true;
	error = bwk_fetch(bs->port, from, b, &cancel.pull_id);
	if (error) {
		bwk_buf_free_now(b);
		return error;
	}
	error = bwk_sock_await(bs, bs->port, b, &cancel);
	if (error)
		return error;
	error = b->status;
	if (!error && b->kind != BWK_BUF_USER)
		error = bwk_buf_to_iter(b, len, to);
	bwk_buf_free_now(b);
	return error;
}
