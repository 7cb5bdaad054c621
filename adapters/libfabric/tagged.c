// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tagged message calls: each only fills in the arguments of tx.c and rx.c.
 */
#include "bwf.h"

static ssize_t bwf_tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
				size_t count, fi_addr_t src, uint64_t tag, uint64_t ignore,
				void *context)
{
	return bwf_rx_post(bwf_ep_of(fid),
			   &(struct bwf_rx_args){.iov = iov,
						 .n = count,
						 .addr = src,
						 .tag = tag,
						 .ignore = ignore,
						 .context = context,
						 .flags = BWF_FACE(fid)->rx_flags},
			   true);
}

static ssize_t bwf_tagged_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			       uint64_t tag, uint64_t ignore, void *context)
{
	struct iovec iov = {.iov_base = buf, .iov_len = len};

	return bwf_tagged_recvv(fid, &iov, &desc, 1, src, tag, ignore, context);
}

static ssize_t bwf_tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
				  uint64_t flags)
{
	struct bwf_rx_args a = {
		.iov = msg->msg_iov,
		.n = msg->iov_count,
		.addr = msg->addr,
		.tag = msg->tag,
		.ignore = msg->ignore,
		.context = msg->context,
		.flags = flags,
	};

	if (flags & FI_PEEK)
		return bwf_rx_peek(bwf_ep_of(fid), &a);
	if (flags & FI_CLAIM)
		return bwf_rx_claimed(bwf_ep_of(fid), &a);
	if (flags & FI_DISCARD)
		return -FI_EBADFLAGS;
	return bwf_rx_post(bwf_ep_of(fid), &a, true);
}

static ssize_t bwf_tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
				size_t count, fi_addr_t dest, uint64_t tag, void *context)
{
	return bwf_tx_send(BWF_FACE(fid), &(struct bwf_tx_args){.iov = iov,
								.n = count,
								.addr = dest,
								.tag = tag,
								.context = context,
								.flags = BWF_FACE(fid)->tx_flags,
								.code = BWF_CODE_TAGGED});
}

static ssize_t bwf_tagged_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			       fi_addr_t dest, uint64_t tag, void *context)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return bwf_tagged_sendv(fid, &iov, &desc, 1, dest, tag, context);
}

static ssize_t bwf_tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
				  uint64_t flags)
{
	bool data = flags & FI_REMOTE_CQ_DATA;

	return bwf_tx_send(
		BWF_FACE(fid),
		&(struct bwf_tx_args){.iov = msg->msg_iov,
				      .n = msg->iov_count,
				      .addr = msg->addr,
				      .tag = msg->tag,
				      .data = data ? msg->data : 0,
				      .context = msg->context,
				      .flags = flags,
				      .code = BWF_CODE_TAGGED | (data ? BWF_CODE_DATA : 0)});
}

static ssize_t bwf_tagged_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
				 uint64_t tag)
{
	return bwf_tx_inject(BWF_FACE(fid), buf, len, dest, tag, 0, BWF_CODE_TAGGED);
}

static ssize_t bwf_tagged_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
				   uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return bwf_tx_send(BWF_FACE(fid),
			   &(struct bwf_tx_args){.iov = &iov,
						 .n = 1,
						 .addr = dest,
						 .tag = tag,
						 .data = data,
						 .context = context,
						 .flags = BWF_FACE(fid)->tx_flags,
						 .code = BWF_CODE_TAGGED | BWF_CODE_DATA});
}

static ssize_t bwf_tagged_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
				     fi_addr_t dest, uint64_t tag)
{
	return bwf_tx_inject(BWF_FACE(fid), buf, len, dest, tag, data,
			     BWF_CODE_TAGGED | BWF_CODE_DATA);
}

struct fi_ops_tagged bwf_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = bwf_tagged_recv,
	.recvv = bwf_tagged_recvv,
	.recvmsg = bwf_tagged_recvmsg,
	.send = bwf_tagged_send,
	.sendv = bwf_tagged_sendv,
	.sendmsg = bwf_tagged_sendmsg,
	.inject = bwf_tagged_inject,
	.senddata = bwf_tagged_senddata,
	.injectdata = bwf_tagged_injectdata,
};
