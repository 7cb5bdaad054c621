// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The untagged message calls: each only fills in the arguments of tx.c and rx.c.
 */
#include "bwf.h"

static ssize_t bwf_msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			     fi_addr_t src, void *context)
{
	return bwf_rx_post(bwf_ep_of(fid),
			   &(struct bwf_rx_args){.iov = iov,
						 .n = count,
						 .addr = src,
						 .context = context,
						 .flags = BWF_FACE(fid)->rx_flags},
			   false);
}

static ssize_t bwf_msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			    void *context)
{
	struct iovec iov = {.iov_base = buf, .iov_len = len};

	return bwf_msg_recvv(fid, &iov, &desc, 1, src, context);
}

static ssize_t bwf_msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	return bwf_rx_post(bwf_ep_of(fid),
			   &(struct bwf_rx_args){.iov = msg->msg_iov,
						 .n = msg->iov_count,
						 .addr = msg->addr,
						 .context = msg->context,
						 .flags = flags},
			   false);
}

static ssize_t bwf_msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			     fi_addr_t dest, void *context)
{
	return bwf_tx_send(BWF_FACE(fid), &(struct bwf_tx_args){.iov = iov,
								.n = count,
								.addr = dest,
								.context = context,
								.flags = BWF_FACE(fid)->tx_flags,
								.code = BWF_CODE_MSG});
}

static ssize_t bwf_msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			    fi_addr_t dest, void *context)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return bwf_msg_sendv(fid, &iov, &desc, 1, dest, context);
}

static ssize_t bwf_msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	bool data = flags & FI_REMOTE_CQ_DATA;

	return bwf_tx_send(
		BWF_FACE(fid),
		&(struct bwf_tx_args){.iov = msg->msg_iov,
				      .n = msg->iov_count,
				      .addr = msg->addr,
				      .data = data ? msg->data : 0,
				      .context = msg->context,
				      .flags = flags,
				      .code = BWF_CODE_MSG | (data ? BWF_CODE_DATA : 0)});
}

static ssize_t bwf_msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest)
{
	return bwf_tx_inject(BWF_FACE(fid), buf, len, dest, 0, 0, BWF_CODE_MSG);
}

static ssize_t bwf_msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
				uint64_t data, fi_addr_t dest, void *context)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return bwf_tx_send(BWF_FACE(fid),
			   &(struct bwf_tx_args){.iov = &iov,
						 .n = 1,
						 .addr = dest,
						 .data = data,
						 .context = context,
						 .flags = BWF_FACE(fid)->tx_flags,
						 .code = BWF_CODE_MSG | BWF_CODE_DATA});
}

static ssize_t bwf_msg_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
				  fi_addr_t dest)
{
	return bwf_tx_inject(BWF_FACE(fid), buf, len, dest, 0, data, BWF_CODE_MSG | BWF_CODE_DATA);
}

struct fi_ops_msg bwf_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = bwf_msg_recv,
	.recvv = bwf_msg_recvv,
	.recvmsg = bwf_msg_recvmsg,
	.send = bwf_msg_send,
	.sendv = bwf_msg_sendv,
	.sendmsg = bwf_msg_sendmsg,
	.inject = bwf_msg_inject,
	.senddata = bwf_msg_senddata,
	.injectdata = bwf_msg_injectdata,
};
